//! `/events`: server-sent events, one whenever something moved. The page reads itself anew then.

use super::router::{App, text};
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use std::convert::Infallible;
use std::time::Duration;

/// Shortest pause between two events.
const PACE: Duration = Duration::from_millis(500);
/// A line without meaning after this long, so that nobody in between gives the connection up.
const ALIVE: Duration = Duration::from_secs(15);

/// One cluster of an event's data.
#[derive(Serialize)]
struct Line {
    cluster: String,
    phase: &'static str,
    clean: Option<bool>,
    running: usize,
    failures: u32,
}

pub(super) async fn events(State(app): State<App>) -> Response {
    let Ok(slot) = app.streams.clone().try_acquire_owned() else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "too many readers of events\n");
    };
    let changed = app.board().watch();
    let start = (app, changed, slot, true);
    let stream = futures::stream::unfold(start, |(app, mut changed, slot, first)| async move {
        let event = if first {
            changed.borrow_and_update();
            event(&app, *changed.borrow())
        } else {
            tokio::time::sleep(PACE).await;
            match tokio::time::timeout(ALIVE, changed.changed()).await {
                Ok(Ok(())) => {
                    let number = *changed.borrow_and_update();
                    event(&app, number)
                }
                Ok(Err(_)) => return None,
                Err(_) => ": still here\n\n".to_owned(),
            }
        };
        Some((Ok::<_, Infallible>(Bytes::from(event)), (app, changed, slot, false)))
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream")];
    (headers, Body::from_stream(stream)).into_response()
}

fn event(app: &App, number: u64) -> String {
    let clusters = app.board().clusters();
    let lines: Vec<Line> = clusters
        .iter()
        .map(|(name, c)| Line {
            cluster: name.clone(),
            phase: c.phase.as_str(),
            clean: c.found.as_ref().map(|f| f.status.last_cycle.clean),
            running: c.running.len(),
            failures: c.failures,
        })
        .collect();
    let data = serde_json::to_string(&lines).unwrap_or_default();
    format!("id: {number}\nevent: change\ndata: {data}\n\n")
}
