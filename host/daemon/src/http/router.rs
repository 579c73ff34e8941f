//! Which path leads where.

use super::{api, events, guard, page, webhook};
use crate::run::{Board, Daemon};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use proxops_secrets::Secret;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Streams of events at once.
const STREAMS: usize = 64;
/// Bodies that are read at once.
const BODIES: usize = 16;

/// What handlers share.
#[derive(Clone)]
pub(super) struct App(Arc<Inner>);

pub(super) struct Inner {
    pub daemon: Arc<Daemon>,
    /// What a reader must show; `None` only on loopback.
    pub token: Option<Secret>,
    /// What signs a push; `None` = the webhook is closed.
    pub webhook: Option<Secret>,
    pub streams: Arc<Semaphore>,
    pub bodies: Semaphore,
}

impl App {
    pub(super) fn new(daemon: Arc<Daemon>, token: Option<Secret>, webhook: Option<Secret>) -> Self {
        Self(Arc::new(Inner {
            daemon,
            token,
            webhook,
            streams: Arc::new(Semaphore::new(STREAMS)),
            bodies: Semaphore::new(BODIES),
        }))
    }

    pub(super) fn board(&self) -> &Board {
        &self.0.daemon.board
    }
}

impl std::ops::Deref for App {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

pub(super) fn router(app: App) -> Router {
    Router::new()
        .route("/", get(page::overview))
        .route("/clusters/{cluster}", get(page::cluster))
        .route("/clusters/{cluster}/objects/{kind}/{name}", get(page::object))
        .route(
            "/assets/page.css",
            get(|| async { asset("text/css; charset=utf-8", include_str!("page/page.css")) }),
        )
        .route(
            "/assets/page.js",
            get(|| async { asset("text/javascript; charset=utf-8", include_str!("page/page.js")) }),
        )
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
        .route("/healthz", get(api::healthz))
        .route("/readyz", get(api::readyz))
        .route("/metrics", get(api::metrics))
        .route("/status", get(api::status))
        .route("/diff", get(api::diff))
        .route("/events", get(events::events))
        .route("/openapi.json", get(|| async { asset("application/json", include_str!("openapi.json")) }))
        .route("/webhook", post(webhook::webhook))
        .fallback(|| async {
            text(StatusCode::NOT_FOUND, "there is nothing here; / is the page, /openapi.json the interface\n")
        })
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}

/// A plain answer.
pub(super) fn text(status: StatusCode, text: impl Into<String>) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text.into()).into_response()
}

fn asset(kind: &'static str, content: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], content).into_response()
}
