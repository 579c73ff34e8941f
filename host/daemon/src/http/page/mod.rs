//! The page for people: rendered here, so that it works without a script; a script only keeps it fresh.
//!
//! Whatever comes from manifests or from PVE goes through the template's escaping, never through a raw string.

mod cluster;
mod filter;
mod object;
mod overview;
mod parts;

use super::router::App;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use filter::Filter;
use maud::{DOCTYPE, Markup, html};
use proxops_model::text::printable;

/// Everything at a glance.
pub(super) async fn overview(State(app): State<App>, Query(filter): Query<Filter>) -> Response {
    page(&app, "proxops", &[], overview::body(&app, &filter))
}

/// One cluster: plan, findings, objects, cycles.
pub(super) async fn cluster(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(filter): Query<Filter>,
) -> Response {
    match cluster::body(&app, &name, &filter) {
        Some(body) => page(&app, &name, &[(name.as_str(), None)], body),
        None => missing(&app, &format!("There is no cluster {name}.")),
    }
}

/// One object: its state, and its drift field by field.
pub(super) async fn object(
    State(app): State<App>,
    Path((cluster, kind, name)): Path<(String, String, String)>,
    Query(which): Query<object::Which>,
) -> Response {
    match object::body(&app, &cluster, &kind, &name, which.vmid) {
        Some(body) => {
            let link = parts::cluster_link(&cluster);
            let trail =
                [(cluster.as_str(), Some(link.as_str())), (kind.as_str(), None), (name.as_str(), None)];
            page(&app, &format!("{kind}/{name}"), &trail, body)
        }
        None => missing(&app, &format!("Cluster {cluster} has no object {kind}/{name}.")),
    }
}

fn missing(app: &App, what: &str) -> Response {
    let body =
        html! { section { h1 { "Not found" } p { (printable(what)) } p { a href="/" { "All clusters" } } } };
    (StatusCode::NOT_FOUND, page(app, "Not found", &[], body)).into_response()
}

/// The frame around every page.
fn page(app: &App, title: &str, trail: &[(&str, Option<&str>)], body: Markup) -> Response {
    let tree = app.board().tree();
    let title = printable(title);
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) @if title != "proxops" { " · proxops" } }
                link rel="stylesheet" href="/assets/page.css";
                script src="/assets/page.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                header.top {
                    nav aria-label="Trail" {
                        a.brand href="/" { "proxops" }
                        @for (name, link) in trail {
                            span.sep aria-hidden="true" { "/" }
                            @match link {
                                Some(link) => { a href=(link) { (printable(name)) } }
                                None => { span aria-current="page" { (printable(name)) } }
                            }
                        }
                    }
                    div.about data-live="about" {
                        @if app.daemon.options.observe { (parts::badge("watching only", "info", "○")) }
                        @if let Some(tree) = &tree {
                            span { "tree " code { (parts::short(tree.commit.as_deref())) @if tree.dirty { " + local changes" } } }
                            @if tree.stale.is_some() { (parts::badge("stale", "warn", "!")) }
                        }
                        span.live hidden="" data-state="" role="status" { "live" }
                    }
                }
                div data-live="stale" {
                    @if let Some(why) = tree.as_ref().and_then(|t| t.stale.as_ref()) {
                        div.notice.warn role="alert" {
                            strong { "The last good tree and configuration are used. " } (printable(why))
                        }
                    }
                }
                main id="main" { (body) }
                footer {
                    "proxops " (env!("CARGO_PKG_VERSION")) " · "
                    a href="/status" { "status" } " · " a href="/diff" { "diff" } " · " a href="/metrics" { "metrics" } " · "
                    a href="/openapi.json" { "interface" }
                }
            }
        }
    };
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], document.into_string()).into_response()
}
