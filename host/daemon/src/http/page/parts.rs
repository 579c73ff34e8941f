//! Pieces that several pages share.

use super::filter::{Filter, ROWS, rank};
use crate::ObjectStatus;
use crate::run::{CycleRecord, RunningAction};
use jiff::Timestamp;
use maud::{Markup, html};
use proxops_model::Severity;
use proxops_model::plan::{Action, Anomaly, ClusterState, Noted, Outcome, Pending, Verb};
use proxops_model::text::printable;

/// A word with a sign, so that colour is never all that tells.
pub(super) fn badge(word: &str, tone: &str, sign: &str) -> Markup {
    html! { span class={ "badge " (tone) } { span aria-hidden="true" { (sign) } " " (word) } }
}

/// The state of an object.
pub(super) fn state(state: &str) -> Markup {
    let (tone, sign) = match state {
        "converged" => ("good", "✓"),
        "failed" => ("bad", "✗"),
        "anomalous" => ("warn", "!"),
        "drift" => ("warn", "≠"),
        "desired" => ("info", "+"),
        "in-progress" => ("info", "▸"),
        "pruned" => ("bad", "−"),
        "unknown" => ("mute", "?"),
        _ => ("mute", "…"),
    };
    badge(state, tone, sign)
}

/// A time that a script may make relative.
pub(super) fn time(at: &Timestamp) -> Markup {
    // Whole seconds are enough for people.
    let at = Timestamp::from_second(at.as_second()).unwrap_or(*at).to_string();
    html! { time datetime=(at) { (at.replace('T', " ")) } }
}

/// The first digits of a commit.
pub(super) fn short(commit: Option<&str>) -> String {
    commit.map_or_else(|| "no commit".to_owned(), |c| printable(&c.chars().take(10).collect::<String>()))
}

/// One element of a path or query.
pub(super) fn encode(text: &str) -> String {
    let mut out = String::new();
    for b in text.bytes() {
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(b));
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    out
}

pub(super) fn cluster_link(cluster: &str) -> String {
    format!("/clusters/{}", encode(cluster))
}

pub(super) fn object_link(cluster: &str, kind: &str, name: &str, vmid: Option<u32>) -> String {
    let vmid = vmid.map(|v| format!("?vmid={v}")).unwrap_or_default();
    format!("{}/objects/{}/{}{vmid}", cluster_link(cluster), encode(kind), encode(name))
}

fn where_is(node: Option<&str>, vmid: Option<u32>) -> Markup {
    html! {
        @if let Some(node) = node { (printable(node)) }
        @if let Some(vmid) = vmid { " " span.vmid { (vmid) } }
    }
}

/// The table of objects, filtered, worst first, in pages.
pub(super) fn objects(filter: &Filter, all: &[(String, ObjectStatus)], with_cluster: bool) -> Markup {
    let mut rows: Vec<&(String, ObjectStatus)> = all.iter().filter(|(c, o)| filter.shows(c, o)).collect();
    rows.sort_by(|(ca, a), (cb, b)| {
        (rank(&a.state), ca, &a.kind, &a.name).cmp(&(rank(&b.state), cb, &b.kind, &b.name))
    });
    let page = filter.page(rows.len());
    let pages = rows.len().div_ceil(ROWS).max(1);
    html! {
        div data-live="objects" {
            p.count role="status" { (rows.len()) " of " (all.len()) " objects" @if pages > 1 { ", page " (page + 1) " of " (pages) } }
            @if !rows.is_empty() {
                table.rows {
                    caption.hidden { "Objects" }
                    thead { tr {
                        th scope="col" { "State" }
                        th scope="col" { "Object" }
                        @if with_cluster { th scope="col" { "Cluster" } }
                        th scope="col" { "Where" }
                        th scope="col" { "Why" }
                        th scope="col" { "Last action" }
                    } }
                    tbody {
                        @for (cluster, o) in rows.iter().skip(page * ROWS).take(ROWS) {
                            tr {
                                td data-label="State" { (state(&o.state)) }
                                th scope="row" data-label="Object" {
                                    a href=(object_link(cluster, &o.kind, &o.name, o.vmid)) { span.kind { (printable(&o.kind)) } (printable(&o.name)) }
                                }
                                @if with_cluster { td data-label="Cluster" { a href=(cluster_link(cluster)) { (printable(cluster)) } } }
                                td.tight data-label="Where" { (where_is(o.node.as_deref(), o.vmid)) }
                                td.why data-label="Why" { (printable(o.reason.as_deref().unwrap_or(""))) }
                                td.tight data-label="Last action" {
                                    @if let Some(action) = &o.last_action { (printable(action)) " " }
                                    @if let Some(at) = o.updated_at.as_ref().and_then(|at| at.parse::<Timestamp>().ok()) { (time(&at)) }
                                    @if let Some(error) = &o.last_error { div.error { (printable(error)) } }
                                }
                            }
                        }
                    }
                }
            }
            @if pages > 1 {
                nav.pages aria-label="Pages of objects" {
                    @if page > 0 { a rel="prev" href=(filter.query(page - 1)) { "‹ previous" } }
                    @if page + 1 < pages { a rel="next" href=(filter.query(page + 1)) { "next ›" } }
                }
            }
        }
    }
}

/// The plan: what would be done or was done, deletes unmistakable.
pub(super) fn plan(cluster: &str, actions: &[Action]) -> Markup {
    html! {
        ol.plan {
            @for a in actions {
                @let (sign, tone) = match a.verb {
                    Verb::Create | Verb::Clone | Verb::Download => ("+", "add"),
                    Verb::Delete => ("−", "delete"),
                    Verb::Start | Verb::Stop => ("›", "power"),
                    _ => ("~", "change"),
                };
                li class=(tone) {
                    div.head {
                        span.sign aria-hidden="true" { (sign) }
                        @if a.verb == Verb::Delete { strong.verb { "DELETE" } } @else { span.verb { (a.verb) } }
                        " "
                        a href=(object_link(cluster, &a.kind, &a.name, a.vmid)) { span.kind { (printable(&a.kind)) } (printable(&a.name)) }
                        " " span.where { (where_is(a.node.as_deref(), a.vmid)) }
                        @if a.disruptive { " " (badge("disruptive", "bad", "!")) }
                        @if let Some(end) = &a.ended { " " (outcome(end.result)) }
                    }
                    p.reason { (printable(&a.reason)) }
                    @if let Some(error) = a.ended.as_ref().and_then(|e| e.error.as_ref()) { p.error { (printable(error)) } }
                    @for warning in a.ended.iter().flat_map(|e| &e.warnings) { p.warning { "warning: " (printable(warning)) } }
                    @if !a.changes.is_empty() { (changes(a)) }
                }
            }
        }
    }
}

fn outcome(result: Outcome) -> Markup {
    match result {
        Outcome::Ok => badge("done", "good", "✓"),
        Outcome::Failed => badge("failed", "bad", "✗"),
        Outcome::Deferred => badge("deferred", "mute", "…"),
        Outcome::NotStarted => badge("not started", "mute", "…"),
    }
}

/// Field by field.
pub(super) fn changes(a: &Action) -> Markup {
    let value = |v: &Option<String>| match v {
        Some(v) => html! { code { (printable(v)) } },
        None => html! { span.unset { "not set" } },
    };
    html! {
        table.changes {
            caption.hidden { "Changes of " (printable(&a.name)) }
            thead { tr { th scope="col" { "Field" } th scope="col" { "Live" } th scope="col" { "Manifest" } th scope="col" { "PVE key" } } }
            tbody {
                @for c in &a.changes {
                    tr {
                        th scope="row" data-label="Field" { code { (printable(&c.field)) } }
                        td.from data-label="Live" { (value(&c.from)) }
                        td.to data-label="Manifest" { (value(&c.to)) }
                        td data-label="PVE key" { code { (printable(&c.key)) } }
                    }
                }
            }
        }
    }
}

/// Anomalies with what to do. `limit` keeps a broken estate readable.
pub(super) fn anomalies<'a>(list: impl Iterator<Item = (&'a str, &'a Anomaly)>, limit: usize) -> Markup {
    let all: Vec<_> = list.collect();
    html! {
        ul.findings {
            @for (cluster, a) in all.iter().take(limit) {
                li class=(if a.severity == Severity::Info { "info" } else { "warn" }) {
                    div.head {
                        @match a.severity {
                            Severity::Info => { (badge("info", "mute", "i")) }
                            Severity::Warning => { (badge("anomaly", "warn", "!")) }
                            Severity::Error => { (badge("error", "bad", "✗")) }
                        }
                        " " a href=(object_link(cluster, &a.kind, &a.name, a.vmid)) { span.kind { (printable(&a.kind)) } (printable(&a.name)) }
                        " " span.where { (where_is(a.node.as_deref(), a.vmid)) } " " code.code { (printable(&a.code)) }
                    }
                    p { (printable(&a.message)) }
                    @if let Some(help) = &a.help { p.help { strong { "What to do: " } (printable(help)) } }
                }
            }
        }
        @if all.len() > limit { p { "and " (all.len() - limit) " more" } }
    }
}

/// Unknown, deferred or skipped ones.
pub(super) fn noted(word: &str, cluster: &str, list: &[Noted]) -> Markup {
    html! {
        @if !list.is_empty() {
            ul.findings {
                @for n in list {
                    li.mute {
                        div.head {
                            (badge(word, "mute", "?")) " "
                            a href=(object_link(cluster, &n.kind, &n.name, n.vmid)) { span.kind { (printable(&n.kind)) } (printable(&n.name)) }
                            " " span.where { (where_is(n.node.as_deref(), n.vmid)) }
                        }
                        p { (printable(&n.why)) }
                    }
                }
            }
        }
    }
}

/// What PVE holds back until a restart.
pub(super) fn pending(list: &[&Pending]) -> Markup {
    let value = |v: &Option<String>| printable(v.as_deref().unwrap_or("not set"));
    html! {
        @if !list.is_empty() {
            ul.findings {
                @for p in list {
                    li.mute {
                        div.head { (badge("pending", "mute", "…")) " " span.kind { (printable(&p.kind)) } (printable(&p.name)) }
                        p { code { (printable(&p.key)) } " is " code { (value(&p.current)) } " until the guest restarts, then " code { (value(&p.pending)) } }
                    }
                }
            }
        }
    }
}

/// Actions that run now.
pub(super) fn running<'a>(list: impl Iterator<Item = (&'a str, &'a RunningAction)>) -> Markup {
    html! {
        table.rows {
            caption.hidden { "Running actions" }
            thead { tr { th scope="col" { "Action" } th scope="col" { "Where" } th scope="col" { "Step" } th scope="col" { "Task" } th scope="col" { "Since" } } }
            tbody {
                @for (cluster, r) in list {
                    tr {
                        th scope="row" data-label="Action" { (r.verb) " " a href=(object_link(cluster, &r.kind, &r.name, r.vmid)) { span.kind { (printable(&r.kind)) } (printable(&r.name)) } }
                        td data-label="Where" { (printable(cluster)) " " (where_is(r.node.as_deref(), r.vmid)) }
                        td data-label="Step" { (printable(&r.step)) }
                        td data-label="Task" { @if let Some(upid) = &r.upid { code.upid { (printable(upid)) } } }
                        td data-label="Since" { (time(&r.since)) }
                    }
                }
            }
        }
    }
}

/// Cycles, newest first.
pub(super) fn cycles<'a>(
    list: impl Iterator<Item = (&'a str, &'a CycleRecord)>,
    with_cluster: bool,
) -> Markup {
    html! {
        table.rows {
            caption.hidden { "Last cycles" }
            thead { tr {
                th scope="col" { "Ended" }
                @if with_cluster { th scope="col" { "Cluster" } }
                th scope="col" { "Result" } th scope="col" { "Took" } th scope="col" { "Because of" } th scope="col" { "Commit" }
            } }
            tbody {
                @for (cluster, c) in list {
                    tr {
                        td data-label="Ended" { (time(&c.ended_at)) }
                        @if with_cluster { td data-label="Cluster" { a href=(cluster_link(cluster)) { (printable(cluster)) } } }
                        td data-label="Result" { (result(c)) }
                        td data-label="Took" { (took(c.duration_ms)) }
                        td data-label="Because of" { (c.why.as_str()) }
                        td data-label="Commit" { code { (short(c.commit.as_deref())) } }
                    }
                }
            }
        }
    }
}

fn result(c: &CycleRecord) -> Markup {
    match (c.state, c.failed, c.planned) {
        (ClusterState::Aborted, ..) => badge("aborted", "bad", "✗"),
        (_, 0, 0) if c.anomalies == 0 => badge("nothing to do", "good", "✓"),
        (_, 0, 0) => badge(&format!("{} to look at", c.anomalies), "warn", "!"),
        (_, 0, n) if c.ok == n => badge(&format!("{n} done"), "good", "✓"),
        (_, 0, n) if c.ok == 0 && c.deferred == 0 => badge(&format!("{n} planned"), "info", "≠"),
        (_, failed, n) => {
            let text = format!("{} of {n} done, {failed} failed, {} deferred", c.ok, c.deferred);
            badge(&text, if failed > 0 { "bad" } else { "warn" }, if failed > 0 { "✗" } else { "…" })
        }
    }
}

/// A duration for people.
pub(super) fn took(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{:.1} s", ms as f64 / 1000.0),
        _ => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
    }
}
