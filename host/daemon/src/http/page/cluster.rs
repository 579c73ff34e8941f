//! `/clusters/<name>`: the plan, the findings, the objects and the cycles of one cluster.

use super::super::api;
use super::super::router::App;
use super::filter::Filter;
use super::{overview, parts};
use crate::ObjectStatus;
use maud::{Markup, html};
use proxops_model::plan::Summary;
use proxops_model::text::printable;
use std::collections::BTreeSet;

/// `None` = there is no such cluster.
pub(super) fn body(app: &App, name: &str, filter: &Filter) -> Option<Markup> {
    let clusters = app.board().clusters();
    let c = clusters.get(name)?;
    // On a cluster's own page the filter's cluster means nothing.
    let filter = Filter { cluster: String::new(), ..filter.clone() };
    let objects: Vec<(String, ObjectStatus)> =
        api::objects(c).into_iter().map(|o| (name.to_owned(), o)).collect();
    let kinds: BTreeSet<&str> = objects.iter().map(|(_, o)| o.kind.as_str()).collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    let plan = c.found.as_ref().map(|f| &f.plan);
    Some(html! {
        div data-live="head" {
            h1 { (printable(name)) " " (overview::verdict(c)) }
            p { (overview::now(c)) }
            @if let Some(error) = plan.and_then(|p| p.error.as_ref()) {
                div.notice.bad role="alert" { strong { "The last cycle was aborted." } pre { (printable(error)) } }
            }
        }
        div data-live="running" {
            @if !c.running.is_empty() {
                section aria-labelledby="running-h" {
                    h2 id="running-h" { "Running" }
                    (parts::running(c.running.values().map(|r| (name, r))))
                }
            }
        }
        div data-live="plan" {
            @if let Some(plan) = plan {
                @if !plan.actions.is_empty() {
                    section aria-labelledby="plan-h" {
                        h2 id="plan-h" { "Plan of the last cycle" }
                        (counts(&Summary::of(std::slice::from_ref(plan))))
                        (parts::plan(name, &plan.actions))
                    }
                }
                @let quiet = plan.anomalies.is_empty() && plan.unknown.is_empty() && plan.deferred.is_empty() && plan.pending.is_empty() && plan.skipped.is_empty();
                @if !quiet {
                    section aria-labelledby="findings-h" {
                        h2 id="findings-h" { "To look at" }
                        (parts::anomalies(plan.anomalies.iter().map(|a| (name, a)), 500))
                        (parts::noted("unknown", name, &plan.unknown))
                        (parts::noted("deferred", name, &plan.deferred))
                        (parts::pending(&plan.pending.iter().collect::<Vec<_>>()))
                        (parts::noted("skipped", name, &plan.skipped))
                    }
                }
            }
        }
        section id="objects" aria-labelledby="objects-h" {
            h2 id="objects-h" { "Objects" }
            (filter.form(&kinds, &[]))
            (parts::objects(&filter, &objects, false))
        }
        section aria-labelledby="cycles-h" {
            h2 id="cycles-h" { "Last cycles" }
            div data-live="cycles" { (parts::cycles(c.cycles.iter().map(|cycle| (name, cycle)), false)) }
        }
    })
}

fn counts(s: &Summary) -> Markup {
    let parts = [
        (s.create, "to create"),
        (s.update, "to update"),
        (s.download, "to download"),
        (s.power, "to start or stop"),
    ];
    html! {
        p.summary {
            @for (n, what) in parts { @if n > 0 { span { (n) " " (what) } } }
            @if s.delete > 0 { strong.delete { (s.delete) " to DELETE" } }
        }
    }
}
