//! `/webhook`: a git server announces a push. Only a right signature does anything, and all it can do is ask for a
//! cycle.

use super::router::{App, text};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use hmac::{Hmac, Mac as _};
use http_body_util::{BodyExt as _, Limited};
use proxops_secrets::Secret;
use sha2::Sha256;
use std::time::Duration;

/// Largest body.
const LARGEST: usize = 1 << 20;
/// For a body to arrive.
const BODY: Duration = Duration::from_secs(10);
/// Names of a push event, as the servers spell it.
const PUSH: [&str; 3] = ["push", "Push Hook", "System Hook"];
/// Which event it is, by server.
const EVENT: [&str; 4] = ["x-github-event", "x-gitlab-event", "x-gitea-event", "x-forgejo-event"];

/// POST of a git server.
pub(super) async fn webhook(State(app): State<App>, headers: HeaderMap, body: Body) -> Response {
    let (result, answer) = judge(&app, &headers, body).await;
    app.daemon.metrics.webhook(result);
    answer
}

async fn judge(app: &App, headers: &HeaderMap, body: Body) -> (&'static str, Response) {
    let Some(secret) = &app.webhook else {
        let why = "the webhook is closed: set webhook.secret or PROXOPS_WEBHOOK_SECRET\n";
        return ("closed", text(StatusCode::NOT_FOUND, why));
    };
    let too_large = || ("too-large", text(StatusCode::PAYLOAD_TOO_LARGE, "more than 1 MiB\n"));
    let length = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > LARGEST as u64) {
        return too_large();
    }
    let Ok(_slot) = app.bodies.try_acquire() else {
        return ("busy", text(StatusCode::SERVICE_UNAVAILABLE, "too many at once\n"));
    };
    let body = match tokio::time::timeout(BODY, Limited::new(body, LARGEST).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => return too_large(),
        Ok(Err(_)) => return ("broken", text(StatusCode::BAD_REQUEST, "the body broke off\n")),
        Err(_) => return ("slow", text(StatusCode::REQUEST_TIMEOUT, "the body took too long\n")),
    };
    if !signed(headers, &body, secret) {
        return ("refused", text(StatusCode::UNAUTHORIZED, "no right signature\n"));
    }
    let branch = app.daemon.settings.git.branch.as_deref();
    if let Some(why) = pointless(headers, &body, branch) {
        return ("ignored", text(StatusCode::OK, format!("{why}\n")));
    }
    app.daemon.ask();
    ("accepted", text(StatusCode::ACCEPTED, "a cycle begins\n"))
}

/// Every signature that is there is right, and there is one: GitHub's and Gitea's are HMAC-SHA256 of the body,
/// GitLab's is the secret itself.
fn signed(headers: &HeaderMap, body: &[u8], secret: &Secret) -> bool {
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()) else { return false };
    let mac = mac.chain_update(body);
    let hex_of = |digits: &str| {
        let mut given = [0; 32];
        // `verify_slice` takes the same time wherever two values differ.
        hex::decode_to_slice(digits, &mut given).is_ok() && mac.clone().verify_slice(&given).is_ok()
    };
    let mut right = 0;
    for (name, value) in headers {
        let Ok(value) = value.to_str() else { continue };
        let held = match name.as_str() {
            "x-hub-signature-256" => value.strip_prefix("sha256=").is_some_and(hex_of),
            "x-gitea-signature" | "x-forgejo-signature" | "x-gogs-signature" => hex_of(value),
            "x-gitlab-token" => Secret::new(value) == *secret,
            _ => continue,
        };
        if !held {
            return false;
        }
        right += 1;
    }
    right > 0
}

/// Why a signed call needs no cycle: it is not a push, or one to another branch.
fn pointless(headers: &HeaderMap, body: &[u8], branch: Option<&str>) -> Option<&'static str> {
    let event = EVENT.iter().find_map(|name| headers.get(*name)).and_then(|v| v.to_str().ok());
    if event.is_some_and(|event| !PUSH.contains(&event)) {
        return Some("not a push: nothing to do");
    }
    #[derive(serde::Deserialize)]
    struct Push {
        #[serde(rename = "ref")]
        reference: Option<String>,
    }
    let pushed = serde_json::from_slice::<Push>(body).ok()?.reference?;
    let pushed = pushed.strip_prefix("refs/heads/").or_else(|| pushed.strip_prefix("refs/tags/"))?;
    (branch.is_some_and(|branch| branch != pushed)).then_some("another branch: nothing to do")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(k, v)| (axum::http::HeaderName::from_static(k), v.parse().unwrap())).collect()
    }

    // The example of GitHub's documentation on validating deliveries.
    const BODY: &[u8] = b"Hello, World!";
    const SECRET: &str = "It's a Secret to Everybody";
    const HEX: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn ok(pairs: &[(&'static str, &str)]) -> bool {
        signed(&headers(pairs), BODY, &Secret::new(SECRET))
    }

    #[test]
    fn the_signatures_of_the_three_servers_are_known() {
        assert!(ok(&[("x-hub-signature-256", &format!("sha256={HEX}"))]));
        assert!(ok(&[("x-gitea-signature", HEX)]));
        assert!(ok(&[("x-forgejo-signature", HEX), ("x-hub-signature-256", &format!("sha256={HEX}"))]));
        assert!(ok(&[("x-gitlab-token", SECRET)]));
    }

    #[test]
    fn anything_else_is_not_signed() {
        assert!(!ok(&[]));
        assert!(!ok(&[("x-hub-signature-256", HEX)]), "without its prefix");
        assert!(!ok(&[("x-hub-signature-256", "sha256=")]));
        assert!(!ok(&[("x-hub-signature", "sha1=0123")]), "the old header is not enough");
        assert!(!ok(&[("x-gitea-signature", &HEX.replace('7', "8"))]));
        assert!(!ok(&[("x-gitlab-token", "It's a Secret")]));
        assert!(!ok(&[("x-gitlab-token", SECRET), ("x-gitea-signature", "00")]), "one right and one wrong");
        assert!(!signed(&headers(&[("x-gitea-signature", HEX)]), b"Hello, World?", &Secret::new(SECRET)));
    }

    #[test]
    fn pings_and_other_branches_ask_for_nothing() {
        let push = headers(&[("x-github-event", "push")]);
        let body = br#"{"ref":"refs/heads/main"}"#;
        assert_eq!(pointless(&push, body, Some("main")), None);
        assert_eq!(pointless(&push, body, None), None, "the remote's default branch is not known here");
        assert!(pointless(&push, body, Some("prod")).is_some());
        assert!(pointless(&headers(&[("x-github-event", "ping")]), b"{}", None).is_some());
        assert_eq!(pointless(&headers(&[("x-gitlab-event", "Push Hook")]), body, None), None);
        assert_eq!(pointless(&headers(&[]), b"not JSON", Some("main")), None);
    }
}
