//! Who may read, from where; and the headers of every answer.

use super::router::{App, text};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use base64::Engine as _;
use proxops_secrets::Secret;
use std::net::IpAddr;
use std::time::Duration;

/// For one answer to begin.
const ANSWER: Duration = Duration::from_secs(30);
/// A wrong token is answered late, so that guessing is slow.
const WRONG: Duration = Duration::from_millis(500);
/// Paths without a token: health tells nothing but "well" or which cluster is late, the webhook has its signature.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/webhook"];

/// Nothing from elsewhere is loaded, nothing inline runs, nobody frames the page, nothing is kept.
const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// Around every request.
pub(super) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut answer = match refuse(&app, &request) {
        Some((refused, wait)) => {
            tokio::time::sleep(wait).await;
            refused
        }
        None => match tokio::time::timeout(ANSWER, next.run(request)).await {
            Ok(answer) => answer,
            Err(_) => text(StatusCode::GATEWAY_TIMEOUT, "the answer took too long\n"),
        },
    };
    for (name, value) in HEADERS {
        answer.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    app.daemon.metrics.http(answer.status().as_u16());
    answer
}

/// Why a request is not even looked at, and how long the answer is held back.
fn refuse(app: &App, request: &Request) -> Option<(Response, Duration)> {
    let (headers, path) = (request.headers(), request.uri().path());
    if foreign(request.method(), headers) {
        let why = "requests from other sites are not answered\n";
        return Some((text(StatusCode::FORBIDDEN, why), Duration::ZERO));
    }
    if OPEN.contains(&path) {
        return None;
    }
    let Some(token) = &app.token else {
        // Without a token only this machine is let in, and a name that leads here from elsewhere is a trick on a
        // browser that runs here.
        let host = headers.get(header::HOST).and_then(|h| h.to_str().ok()).unwrap_or_default();
        let why = "without http.token only 127.0.0.1, [::1] and localhost are served\n";
        return (!is_local(host)).then(|| (text(StatusCode::MISDIRECTED_REQUEST, why), Duration::ZERO));
    };
    let given = given(headers);
    if given.as_ref() == Some(token) {
        return None;
    }
    let mut refused = text(
        StatusCode::UNAUTHORIZED,
        "a token is needed: `Authorization: Bearer ...`, or the token as password\n",
    );
    // Browsers know Basic: its password is the token, its user does not matter.
    let how = HeaderValue::from_static("Basic realm=\"proxops\", charset=\"UTF-8\"");
    refused.headers_mut().insert(header::WWW_AUTHENTICATE, how);
    Some((refused, if given.is_some() { WRONG } else { Duration::ZERO }))
}

/// A browser says that another site's page asks. Following a link to the page is fine.
fn foreign(method: &Method, headers: &HeaderMap) -> bool {
    let value = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
    let elsewhere = matches!(value("sec-fetch-site"), Some("cross-site" | "same-site"));
    let follows_link = *method == Method::GET
        && value("sec-fetch-mode") == Some("navigate")
        && value("sec-fetch-dest") == Some("document");
    let origin = value("origin").map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    let other_origin = origin.is_some_and(|origin| Some(origin) != value("host"));
    (elsewhere && !follows_link) || other_origin
}

/// The token of `Authorization: Bearer` or the password of `Basic`.
fn given(headers: &HeaderMap) -> Option<Secret> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Secret::new(rest.trim()));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let bytes = base64::engine::general_purpose::STANDARD.decode(rest.trim()).ok()?;
    let pair = Secret::new(String::from_utf8(bytes).ok()?);
    pair.expose().split_once(':').map(|(_, password)| Secret::new(password))
}

/// `Host` names this machine's loopback.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(address, _)| address),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(k, v)| (HeaderName::from_static(k), v.parse().unwrap())).collect()
    }

    #[test]
    fn only_names_of_loopback_are_local() {
        for host in ["127.0.0.1:9494", "localhost", "LOCALHOST:1", "[::1]:9494", "127.9.9.9"] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "192.0.2.1",
            "[2001:db8::1]:1",
            "127.0.0.1.evil.example:80",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn another_sites_page_is_told_apart_from_a_link_and_from_a_program() {
        let link = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert!(!foreign(&Method::GET, &headers(&link)));
        assert!(foreign(&Method::POST, &headers(&link)));
        assert!(foreign(
            &Method::GET,
            &headers(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")])
        ));
        let frame =
            [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
        assert!(foreign(&Method::GET, &headers(&frame)));
        assert!(foreign(
            &Method::GET,
            &headers(&[("origin", "https://evil.example"), ("host", "127.0.0.1:1")])
        ));
        assert!(!foreign(
            &Method::GET,
            &headers(&[("origin", "http://127.0.0.1:1"), ("host", "127.0.0.1:1")])
        ));
        assert!(
            !foreign(&Method::POST, &headers(&[("host", "127.0.0.1:1")])),
            "git servers send no such header"
        );
    }

    #[test]
    fn the_token_comes_as_bearer_or_as_password() {
        let of = |value: &str| given(&headers(&[("authorization", value)])).map(|s| s.expose().to_owned());
        assert_eq!(of("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(of("bearer  abc ").as_deref(), Some("abc"));
        assert_eq!(of("Basic YWRtaW46YTpi").as_deref(), Some("a:b"));
        for wrong in ["abc", "Digest abc", "Basic !!", "Basic YWJj"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
