//! `/`: all clusters, what runs, what wants a look, all objects.

use super::super::api;
use super::super::router::App;
use super::filter::{Filter, STATES, rank};
use super::parts;
use crate::ObjectStatus;
use crate::run::{ClusterBoard, CycleRecord, Phase};
use maud::{Markup, html};
use proxops_model::Severity;
use proxops_model::plan::ClusterState;
use proxops_model::text::printable;
use std::collections::{BTreeMap, BTreeSet};

/// Anomalies that are shown here; a cluster's own page shows all.
const ANOMALIES: usize = 20;
/// Cycles that are shown here.
const CYCLES: usize = 12;

pub(super) fn body(app: &App, filter: &Filter) -> Markup {
    let clusters = app.board().clusters();
    let objects: Vec<(String, ObjectStatus)> = clusters
        .iter()
        .flat_map(|(name, c)| api::objects(c).into_iter().map(move |o| (name.clone(), o)))
        .collect();
    let kinds: BTreeSet<&str> = objects.iter().map(|(_, o)| o.kind.as_str()).collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    let names: Vec<&str> = clusters.keys().map(String::as_str).collect();
    let running: usize = clusters.values().map(|c| c.running.len()).sum();
    let anomalies: Vec<_> = clusters
        .iter()
        .flat_map(|(name, c)| c.found.iter().flat_map(|f| &f.plan.anomalies).map(move |a| (name.as_str(), a)))
        .filter(|(_, a)| a.severity != Severity::Info)
        .collect();
    let mut cycles: Vec<(&str, &CycleRecord)> = clusters
        .iter()
        .flat_map(|(name, c)| c.cycles.iter().map(move |cycle| (name.as_str(), cycle)))
        .collect();
    cycles.sort_by_key(|(_, cycle)| std::cmp::Reverse(cycle.ended_at));
    html! {
        h1.hidden { "All clusters" }
        (tiles(&clusters, &objects, anomalies.len()))
        section aria-labelledby="clusters-h" {
            h2 id="clusters-h" { "Clusters" }
            div data-live="clusters" { (table(&clusters)) }
        }
        div data-live="running" {
            @if running > 0 {
                section aria-labelledby="running-h" {
                    h2 id="running-h" { "Running" }
                    (parts::running(clusters.iter().flat_map(|(n, c)| c.running.values().map(move |r| (n.as_str(), r)))))
                }
            }
        }
        div data-live="anomalies" {
            @if !anomalies.is_empty() {
                section id="anomalies" aria-labelledby="anomalies-h" {
                    h2 id="anomalies-h" { "To look at" }
                    (parts::anomalies(anomalies.iter().copied(), ANOMALIES))
                }
            }
        }
        section id="objects" aria-labelledby="objects-h" {
            h2 id="objects-h" { "Objects" }
            (filter.form(&kinds, &names))
            (parts::objects(filter, &objects, true))
        }
        section aria-labelledby="cycles-h" {
            h2 id="cycles-h" { "Last cycles" }
            div data-live="cycles" { (parts::cycles(cycles.into_iter().take(CYCLES), true)) }
        }
    }
}

fn tiles(
    clusters: &BTreeMap<String, ClusterBoard>,
    objects: &[(String, ObjectStatus)],
    anomalies: usize,
) -> Markup {
    let mut by: BTreeMap<usize, (&str, usize)> = BTreeMap::new();
    for (_, o) in objects {
        by.entry(rank(&o.state)).or_insert((&o.state, 0)).1 += 1;
    }
    let converged =
        clusters.values().filter(|c| c.found.as_ref().is_some_and(|f| f.status.last_cycle.clean)).count();
    html! {
        ul.tiles data-live="tiles" {
            li { span.number { (converged) "/" (clusters.len()) } span { "clusters converged" } }
            @for (rank, (state, n)) in &by {
                @let known = STATES.get(*rank).is_some();
                li { a href=(format!("/?state={}#objects", if known { parts::encode(state) } else { String::new() })) {
                    span.number { (n) } (parts::state(state))
                } }
            }
            @if anomalies > 0 { li { a href="#anomalies" { span.number { (anomalies) } (parts::badge("to look at", "warn", "!")) } } }
        }
    }
}

fn table(clusters: &BTreeMap<String, ClusterBoard>) -> Markup {
    html! {
        @if clusters.is_empty() { p { "The repository has no clusters." } }
        @else {
            table.rows {
                caption.hidden { "Clusters" }
                thead { tr { th scope="col" { "Cluster" } th scope="col" { "State" } th scope="col" { "Now" } th scope="col" { "Last cycle" } th scope="col" { "Commit" } } }
                tbody {
                    @for (name, c) in clusters {
                        tr {
                            th scope="row" data-label="Cluster" { a href=(parts::cluster_link(name)) { (printable(name)) } }
                            td data-label="State" { (verdict(c)) @if let Some(error) = c.cycles.front().and_then(|c| c.error.as_ref()) { div.error { (printable(first_line(error))) } } }
                            td data-label="Now" { (now(c)) }
                            td.tight data-label="Last cycle" { @if let Some(cycle) = c.cycles.front() { (parts::time(&cycle.ended_at)) ", " (parts::took(cycle.duration_ms)) } @else { "none yet" } }
                            td.tight data-label="Commit" { code { (parts::short(c.found.as_ref().and_then(|f| f.plan.commit.as_deref()))) } }
                        }
                    }
                }
            }
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The last cycle in a word.
pub(super) fn verdict(c: &ClusterBoard) -> Markup {
    let Some(found) = &c.found else { return parts::badge("no cycle yet", "mute", "…") };
    match (found.status.last_cycle.state, found.status.last_cycle.clean) {
        (ClusterState::Aborted, _) => parts::badge("aborted", "bad", "✗"),
        (_, true) => parts::badge("converged", "good", "✓"),
        (_, false) => {
            let left = api::left(&found.plan).actions.len();
            let failed = c.cycles.front().is_some_and(|cycle| cycle.failed > 0);
            match (left, failed) {
                (_, true) => parts::badge("failed", "bad", "✗"),
                (0, _) => parts::badge("to look at", "warn", "!"),
                (n, _) => parts::badge(&format!("{n} to change"), "warn", "≠"),
            }
        }
    }
}

/// What the loop does.
pub(super) fn now(c: &ClusterBoard) -> Markup {
    html! {
        @match c.phase {
            Phase::Waiting => { "next " (parts::time(&c.due_at)) }
            Phase::Planning => { (parts::badge("planning", "info", "▸")) }
            Phase::Executing => { (parts::badge(&format!("{} running, {} waiting", c.running.len(), c.queued), "info", "▸")) }
            Phase::Suspended => {
                (parts::badge("suspended", "warn", "‖"))
                @if let Some(why) = c.suspended.as_ref().and_then(|s| s.reason.as_ref()) { " " (printable(why)) }
            }
        }
        @if c.failures > 1 { " " span.error { (c.failures) " cycles in a row were aborted" } }
    }
}
