//! One request and its answer, without retries and without meaning.

use crate::config::{ClientConfig, Endpoint};
use crate::error::PveError;
use crate::{class::Class, tls};
use proxops_model::kind::Method;
use reqwest::Url;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use std::error::Error as _;
use std::time::Duration;

/// The largest answer that is read, unpacked.
const LARGEST_BODY: usize = 64 << 20;
/// The largest form that PVE accepts (fact T4).
pub(crate) const LARGEST_FORM: usize = 512 << 10;
/// PVE gives up on another node or its own daemon after 30 s (facts T23, T24).
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// PVE closes idle connections after 5 s (fact T3).
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection pool to one endpoint.
#[derive(Debug)]
pub(crate) struct Wire {
    http: reqwest::Client,
    root: Url,
    /// Of every path: ends in `/api2/json`.
    prefix: String,
    base: String,
}

/// A whole answer. Not `Debug`: it may hold a ticket.
pub(crate) struct Raw {
    pub status: u16,
    /// The reason phrase, where it is not the standard one: the first line of PVE's message (fact T17).
    pub reason: Option<String>,
    pub content_type: String,
    pub body: Vec<u8>,
}

/// No whole answer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Nothing was sent.
    NotSent { class: Class, why: String },
    /// It was sent, at least in part, and then the connection broke or nothing came in time.
    Broken { why: String },
    /// The answer is too large to be PVE's.
    TooLarge,
}

impl Wire {
    pub(crate) fn new(config: &ClientConfig) -> Result<Self, PveError> {
        let endpoint = Endpoint::parse(&config.base_url)?;
        let tls = tls::configure(endpoint.https, config.ca_file.as_deref(), config.fingerprint.as_deref())?;
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .http1_only()
            .user_agent(concat!("proxops/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .tcp_nodelay(true)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(config.concurrency.max(1).saturating_mul(2));
        if endpoint.loopback {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| {
            PveError::setup(Class::Connect, format!("the HTTP client can't be set up: {}", chain(&error)))
        })?;
        let root = Url::parse(&endpoint.base).map_err(|error| {
            PveError::setup(Class::Connect, format!("{} is no address: {error}", endpoint.base))
        })?;
        let prefix = format!("{}/api2/json", root.path().trim_end_matches('/'));
        Ok(Self { http, root, prefix, base: endpoint.base })
    }

    /// Sends one request. `query` and `form` are encoded already.
    pub(crate) async fn exchange(
        &self,
        method: Method,
        path: &str,
        query: &str,
        form: Option<String>,
        headers: HeaderMap,
    ) -> Result<Raw, Fault> {
        let mut url = self.root.clone();
        url.set_path(&format!("{}{path}", self.prefix));
        url.set_query(Some(query).filter(|query| !query.is_empty()));
        let mut request = self.http.request(verb(method), url).headers(headers);
        if let Some(form) = form {
            request = request
                .header(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"))
                .header(CONTENT_LENGTH, HeaderValue::from(form.len()))
                .body(form);
        }
        let mut response = request.send().await.map_err(|error| self.fault(error))?;
        let status = response.status().as_u16();
        let reason = response
            .extensions()
            .get::<hyper::ext::ReasonPhrase>()
            .map(|phrase| String::from_utf8_lossy(phrase.as_bytes()).into_owned())
            .filter(|phrase| !phrase.is_empty());
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
            .to_owned();
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > LARGEST_BODY => return Err(Fault::TooLarge),
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                // status and reason of an error say enough
                Err(_) if status >= 400 => break,
                Err(error) => return Err(self.fault(error)),
            }
        }
        Ok(Raw { status, reason, content_type, body })
    }

    fn fault(&self, error: reqwest::Error) -> Fault {
        let error = error.without_url();
        if error.is_builder() {
            let why = format!("the request can't be built: {}", chain(&error));
            return Fault::NotSent { class: Class::Invalid, why };
        }
        if !error.is_connect() {
            let why = match error.is_timeout() {
                true => format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()),
                false => format!("the connection broke before the answer was complete: {}", chain(&error)),
            };
            return Fault::Broken { why };
        }
        if let Some(why) = tls::explain(&error) {
            return Fault::NotSent { class: Class::Tls, why: format!("{}: {why}", self.base) };
        }
        let why = match error.is_timeout() {
            true => format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
            false => chain(&error),
        };
        Fault::NotSent { class: Class::Connect, why: format!("can't connect to {}: {why}", self.base) }
    }
}

fn verb(method: Method) -> reqwest::Method {
    match method {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Delete => reqwest::Method::DELETE,
    }
}

pub(crate) fn verb_text(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
    }
}

/// The causes of an error below its outermost, general one.
fn chain(error: &reqwest::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !text.starts_with("client error") && parts.last() != Some(&text) {
            parts.push(text);
        }
        next = cause.source();
    }
    match parts.is_empty() {
        true => error.to_string(),
        false => parts.join(": "),
    }
}
