//! Connections: accepting, keep-alive, idle time, and the way of one request (facts T2 to T5, T15, T17, T18).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::body::Answered;
use super::request::{self, Sent};
use super::{LoggedRequest, Shared, lock};
use crate::api::{self, Answer};
use crate::faults::{FaultAnswer, RequestFault};
use crate::refused::Refused;
use crate::world::Caller;

/// Requests a connection may carry (fact T3).
const MAX_REQUESTS: u32 = 100;
/// Idle time after which a connection is closed (fact T3).
const IDLE: Duration = Duration::from_secs(5);
/// Largest body (fact T4).
const MAX_BODY: u64 = 512 << 10;

/// The connection is to be dropped without an answer.
#[derive(Debug, thiserror::Error)]
#[error("connection dropped")]
struct Dropped;

pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        let Ok((stream, _)) = stream else { continue };
        let _ = stream.set_nodelay(true);
        let acceptor = shared.acceptor.read().ok().and_then(|acceptor| acceptor.clone());
        let (shared, stopped) = (Arc::clone(&shared), stopped.clone());
        tokio::spawn(async move {
            match acceptor {
                None => serve(stream, shared, stopped).await,
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, shared, stopped).await;
                    }
                }
            }
        });
    }
}

async fn serve<S>(stream: S, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let opened = Instant::now();
    let served = AtomicU32::new(0);
    let open = AtomicU32::new(0);
    let last = AtomicU64::new(0);
    let service = service_fn(|request| {
        let (shared, served, open, last) = (Arc::clone(&shared), &served, &open, &last);
        async move {
            open.fetch_add(1, Ordering::Relaxed);
            let full = served.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_REQUESTS;
            let result = handle(request, shared).await.map(|mut response| {
                if full || response.status().as_u16() >= 400 {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                response
            });
            last.store(opened.elapsed().as_millis() as u64, Ordering::Relaxed);
            open.fetch_sub(1, Ordering::Relaxed);
            result
        }
    });
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_headers(64)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    loop {
        let idle_since = Duration::from_millis(last.load(Ordering::Relaxed));
        tokio::select! {
            _ = connection.as_mut() => return,
            // dropping the connection closes it
            _ = stopped.changed() => return,
            () = tokio::time::sleep_until((opened + idle_since + IDLE).into()), if open.load(Ordering::Relaxed) == 0 => {
                if open.load(Ordering::Relaxed) == 0 && opened.elapsed() >= Duration::from_millis(last.load(Ordering::Relaxed)) + IDLE {
                    return;
                }
            }
            // while a request is under way, look again
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
}

async fn handle(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Answered>, Dropped> {
    shared.requests.fetch_add(1, Ordering::Relaxed);
    let (head, body) = request.into_parts();
    let method = head.method.as_str().to_owned();
    if !matches!(method.as_str(), "GET" | "POST" | "PUT" | "DELETE") {
        return Ok(plain(501, &format!("method '{method}' not available")));
    }
    if head.headers.contains_key(header::TRANSFER_ENCODING) {
        return Ok(plain(501, "chunked transfer encoding not supported"));
    }
    let length = head
        .headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<u64>().ok())
        .unwrap_or(0);
    if length > MAX_BODY {
        return Ok(plain(501, "for data too large"));
    }
    let Some((format, path)) = request::split_path(head.uri.path()) else {
        return Ok(plain(501, "no such uri"));
    };
    let caller = match authenticate(&shared, &head, &method, &path) {
        Ok(caller) => caller,
        Err(reason) => {
            tokio::time::sleep(shared.auth_delay).await;
            return Ok(plain(401, reason));
        }
    };
    if length > 0 && matches!(method.as_str(), "GET" | "DELETE") {
        return Ok(plain(501, &format!("Unexpected content for method '{method}'")));
    }
    let bytes = if length > 0 { body.collect().await.map_err(|_| Dropped)?.to_bytes() } else { Bytes::new() };
    let params = match request::params(&head, &bytes) {
        Ok(params) => params,
        Err((status, reason)) => return Ok(plain(status, &reason)),
    };
    let sent = Sent { method, path, format, params };
    let fault =
        lock(&shared.faults).iter_mut().find_map(|f| f.hits(&sent.method, &sent.path).then(|| f.clone()));
    if let Some(change) = fault.as_ref().and_then(|fault| fault.change.clone()) {
        shared.apply(*change);
    }
    answer(&shared, &caller, sent, fault).await
}

fn authenticate(
    shared: &Shared,
    head: &hyper::http::request::Parts,
    method: &str,
    path: &str,
) -> Result<Caller, &'static str> {
    if api::is_open(method, path) {
        return Ok(Caller::anonymous());
    }
    let mut world = lock(&shared.world);
    world.advance_to(shared.base + shared.started.elapsed());
    if let Some(ticket) = request::ticket(head) {
        let caller = world.ticket_caller(&ticket).ok_or("Authentication failed!")?;
        let csrf =
            head.headers.get("CSRFPreventionToken").and_then(|value| value.to_str().ok()).unwrap_or_default();
        if method != "GET" && !world.csrf_valid(&caller, csrf) {
            return Err("Permission denied - invalid csrf token");
        }
        return Ok(caller);
    }
    match request::token(head) {
        Some(credential) => world.token_caller(&credential).ok_or("Authentication failed!"),
        None => Err("No ticket"),
    }
}

async fn answer(
    shared: &Shared,
    caller: &Caller,
    sent: Sent,
    fault: Option<RequestFault>,
) -> Result<Response<Answered>, Dropped> {
    let (wait, what) = fault.map_or((Duration::ZERO, None), |fault| (fault.wait(), fault.answer));
    let effect = !matches!(what, Some(FaultAnswer::DropBefore | FaultAnswer::Status { effect: false, .. }));
    let mut result = if effect { Some(call(shared, caller, &sent)) } else { None };
    let carried_out = matches!(&result, Some(Ok(_)));
    if let Some(FaultAnswer::Status { status, message, errors, .. }) = &what {
        result = Some(Err(Refused { status: *status, message: message.clone(), errors: errors.clone() }));
    }
    let dropped = matches!(what, Some(FaultAnswer::DropBefore | FaultAnswer::DropAfter));
    let status = match &result {
        _ if dropped => 0,
        Some(Err(refused)) => refused.status,
        _ => 200,
    };
    let done = match &what {
        Some(FaultAnswer::Status { .. }) => carried_out,
        _ => matches!(&result, Some(Ok(_))),
    };
    record(shared, &sent, status, done);
    if !wait.is_zero() {
        shared.held.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(wait).await;
    }
    match (what, result) {
        (Some(FaultAnswer::DropBefore | FaultAnswer::DropAfter), _) | (_, None) => Err(Dropped),
        (Some(FaultAnswer::Html), _) => {
            let page = "<html><head><title>Login</title></head><body><h1>It works!</h1></body></html>";
            Ok(respond(200, "OK", Some("text/html"), Answered::whole(page)))
        }
        (Some(FaultAnswer::Truncated), Some(Ok(answer))) => {
            Ok(respond(200, "OK", Some(JSON), Answered::cut(success(&sent.format, answer))))
        }
        (_, Some(Ok(answer))) => {
            Ok(respond(200, "OK", Some(JSON), Answered::whole(success(&sent.format, answer))))
        }
        (_, Some(Err(refused))) => {
            if refused.status == 401 {
                tokio::time::sleep(shared.auth_delay).await;
            }
            Ok(refusal(&sent.format, &refused))
        }
    }
}

fn call(shared: &Shared, caller: &Caller, sent: &Sent) -> Result<Answer, Refused> {
    if shared.read_only && sent.method != "GET" && sent.path != "/access/ticket" {
        return Err(Refused::denied("this simulator is read-only"));
    }
    let mut world = lock(&shared.world);
    world.advance_to(shared.base + shared.started.elapsed());
    api::answer(&mut world, caller, &sent.method, &sent.path, sent.params.clone())
}

fn record(shared: &Shared, sent: &Sent, status: u16, done: bool) {
    if sent.method == "GET" || sent.path == "/access/ticket" {
        return;
    }
    let mut params = sent.params.clone();
    for secret in ["cipassword", "password"] {
        if let Some(value) = params.get_mut(secret) {
            *value = json!("**********");
        }
    }
    lock(&shared.log).push(LoggedRequest {
        method: sent.method.clone(),
        path: sent.path.clone(),
        params,
        status,
        done,
    });
}

/// Content type of every JSON answer (fact R11).
const JSON: &str = "application/json;charset=UTF-8";

fn success(format: &str, answer: Answer) -> Vec<u8> {
    let mut body = Value::Object([("data".to_owned(), answer.data)].into_iter().collect());
    if let Some(total) = answer.total {
        body["total"] = json!(total);
    }
    if format == "extjs" {
        body["success"] = json!(1);
    }
    // much faster than its text, and it cannot fail: the keys are texts
    serde_json::to_vec(&body).unwrap_or_default()
}

/// The reason is the first line of the message; `extjs` always says 200 (fact T17). Answers of the proxy
/// have no body (fact T23).
fn refusal(format: &str, refused: &Refused) -> Response<Answered> {
    let reason = refused.message.lines().next().unwrap_or_default();
    if refused.status >= 595 {
        return respond(refused.status, reason, None, Answered::whole(""));
    }
    let mut body = json!({"data": Value::Null, "message": format!("{}\n", refused.message.trim_end())});
    if !refused.errors.is_empty() {
        body["errors"] = json!(refused.errors);
    }
    if format == "extjs" {
        body["success"] = json!(0);
        body["status"] = json!(refused.status);
        return respond(200, "OK", Some(JSON), Answered::whole(body.to_string()));
    }
    respond(refused.status, reason, Some(JSON), Answered::whole(body.to_string()))
}

/// An answer from before any handler: no JSON, no content type; a 401 has no body at all (facts T15, T18).
fn plain(status: u16, reason: &str) -> Response<Answered> {
    let body = if status == 401 { String::new() } else { reason.to_owned() };
    respond(status, reason, None, Answered::whole(body))
}

fn respond(
    status: u16,
    reason: &str,
    content_type: Option<&'static str>,
    body: Answered,
) -> Response<Answered> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let printable: Vec<u8> =
        reason.bytes().map(|b| if (0x20..0x7f).contains(&b) { b } else { b'?' }).collect();
    if let Ok(phrase) = ReasonPhrase::try_from(printable) {
        response.extensions_mut().insert(phrase);
    }
    let headers = response.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static("pve-api-daemon/3.0"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=0"));
    if let Some(kind) = content_type {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    response
}
