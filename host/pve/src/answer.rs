//! From bytes to an answer or an error.

use crate::class::{Class, is_gateway};
use crate::error::{PveError, joined, one_line};
use crate::task::Upid;
use crate::wire::{Fault, Raw};
use proxops_model::text::scalar;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// What PVE answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// `data`; null for most synchronous writes (fact U9).
    pub data: Value,
    /// Number of rows beside a part of a list (fact T17).
    pub total: Option<u64>,
}

impl Answer {
    /// The task that the call started, if any (fact U8).
    pub fn upid(&self) -> Option<Upid> {
        self.data.as_str().and_then(|text| Upid::parse(text).ok())
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Envelope<T> {
    pub data: T,
    #[serde(default)]
    pub total: crate::lenient::Scalar,
}

/// No whole answer: for a write that was sent, nothing may be assumed (fact T24).
pub(crate) fn fault(method: &'static str, path: &str, write: bool, fault: Fault) -> PveError {
    let (class, why) = match fault {
        Fault::NotSent { class, why } => (class, why),
        Fault::Broken { why } if write => (Class::UnknownOutcome, why),
        Fault::Broken { why } => (Class::Connect, why),
        Fault::TooLarge if write => (Class::UnknownOutcome, "the answer is larger than 64 MiB".to_owned()),
        Fault::TooLarge => (Class::NotJson, "the answer is larger than 64 MiB".to_owned()),
    };
    PveError::request(class, method, path, why)
}

/// `data` of a good answer, or what the answer says went wrong.
pub(crate) fn decode<T: DeserializeOwned>(
    method: &'static str,
    path: &str,
    write: bool,
    raw: Raw,
) -> Result<Envelope<T>, PveError> {
    if raw.status >= 400 {
        return Err(refusal(method, path, write, &raw));
    }
    let read = match raw.status {
        200..=299 => serde_json::from_slice(&raw.body),
        _ => return Err(foreign(method, path, write, &raw, "not an answer of PVE")),
    };
    read.map_err(|error| {
        if error.is_eof() && !raw.body.is_empty() {
            // cut off: as if the connection had broken
            let why = format!("the answer is cut off after {} bytes", raw.body.len());
            return fault(method, path, write, Fault::Broken { why }).with_status(raw.status);
        }
        match error.classify() {
            serde_json::error::Category::Data => foreign(
                method,
                path,
                write,
                &raw,
                &format!("JSON, but not of the shape of PVE's answer: {error}"),
            ),
            _ => foreign(method, path, write, &raw, "not JSON"),
        }
    })
}

/// Bad status (facts T15, T17, T18).
fn refusal(method: &'static str, path: &str, write: bool, raw: &Raw) -> PveError {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        message: Value,
        #[serde(default)]
        errors: Value,
    }
    let body: Option<Body> = serde_json::from_slice(&raw.body).ok();
    let mut errors = BTreeMap::new();
    if let Some(Value::Object(map)) = body.as_ref().map(|body| &body.errors) {
        for (key, value) in map {
            let text = scalar(value).unwrap_or_else(|| value.to_string());
            errors.insert(key.clone(), joined(&text));
        }
    }
    let plain = || match body {
        None if is_text(&raw.content_type) => String::from_utf8_lossy(&raw.body).into_owned(),
        _ => String::new(),
    };
    let first = body
        .as_ref()
        .and_then(|body| scalar(&body.message))
        .filter(|text| !text.trim().is_empty())
        .or_else(|| raw.reason.clone())
        .unwrap_or_else(plain);
    let first = one_line(&first);
    let mut class = Class::of_answer(raw.status, &first, &errors);
    if write && is_gateway(raw.status) {
        class = Class::UnknownOutcome;
    }
    let mut message = match first.is_empty() {
        false => first,
        true => reqwest::StatusCode::from_u16(raw.status)
            .ok()
            .and_then(|status| status.canonical_reason())
            .unwrap_or("no message")
            .to_owned(),
    };
    if !errors.is_empty() {
        let list: Vec<String> = errors.iter().map(|(key, text)| format!("{key}: {text}")).collect();
        message = format!("{} ({})", message.trim_end_matches('.'), list.join(", "));
    }
    if is_html(raw) {
        message = format!("{message}; {}", describe(raw));
    }
    let mut error = PveError::request(class, method, path, message).with_status(raw.status);
    error.errors = errors;
    error
}

/// Something else than PVE answered.
fn foreign(method: &'static str, path: &str, write: bool, raw: &Raw, what: &str) -> PveError {
    let class = if write { Class::UnknownOutcome } else { Class::NotJson };
    let message = format!("the answer is {what}: {}", describe(raw));
    PveError::request(class, method, path, message).with_status(raw.status)
}

/// Content type and the start of a body, printable.
fn describe(raw: &Raw) -> String {
    let kind = if raw.content_type.is_empty() { "no content type" } else { &raw.content_type };
    if raw.body.is_empty() {
        return format!("HTTP {}, {kind}, empty", raw.status);
    }
    let start = raw.body.get(..raw.body.len().min(400)).unwrap_or(&raw.body);
    let text = String::from_utf8_lossy(start);
    let words: Vec<&str> = text.split_whitespace().collect();
    let snippet: String = words.join(" ").chars().take(120).collect();
    format!("HTTP {}, {kind}, {} bytes that start with {snippet:?}", raw.status, raw.body.len())
}

fn is_text(content_type: &str) -> bool {
    content_type.is_empty() || content_type.starts_with("text/plain")
}

fn is_html(raw: &Raw) -> bool {
    raw.content_type.starts_with("text/html")
}
