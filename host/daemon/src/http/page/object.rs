//! `/clusters/<cluster>/objects/<kind>/<name>`: one object.

use super::super::api;
use super::super::router::App;
use super::parts;
use jiff::Timestamp;
use maud::{Markup, html};
use proxops_model::text::printable;
use serde::Deserialize;

/// Guests without a manifest may share a name; the vmid tells them apart.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::http) struct Which {
    pub vmid: Option<u32>,
}

/// `None` = there is no such object.
pub(super) fn body(app: &App, cluster: &str, kind: &str, name: &str, vmid: Option<u32>) -> Option<Markup> {
    let clusters = app.board().clusters();
    let c = clusters.get(cluster)?;
    let same = |k: &str, n: &str, v: Option<u32>| {
        k == kind && n == name && (vmid.is_none() || v.is_none() || v == vmid)
    };
    let object = api::objects(c).into_iter().find(|o| same(&o.kind, &o.name, o.vmid));
    let plan = c.found.as_ref().map(|f| &f.plan)?;
    let actions: Vec<_> = plan.actions.iter().filter(|a| same(&a.kind, &a.name, a.vmid)).cloned().collect();
    let anomalies: Vec<_> = plan.anomalies.iter().filter(|a| same(&a.kind, &a.name, a.vmid)).collect();
    let pending: Vec<_> = plan.pending.iter().filter(|p| same(&p.kind, &p.name, p.vmid)).collect();
    let noted = |list: &[proxops_model::plan::Noted]| -> Vec<_> {
        list.iter().filter(|n| same(&n.kind, &n.name, n.vmid)).cloned().collect()
    };
    let running: Vec<_> = c.running.values().filter(|r| same(&r.kind, &r.name, r.vmid)).collect();
    if object.is_none() && actions.is_empty() && anomalies.is_empty() {
        return None;
    }
    Some(html! {
        div data-live="object" {
            h1 { span.kind { (printable(kind)) } (printable(name)) " " @if let Some(o) = &object { (parts::state(&o.state)) } }
            @if let Some(o) = &object {
                dl.facts {
                    dt { "Cluster" } dd { a href=(parts::cluster_link(cluster)) { (printable(cluster)) } }
                    @if let Some(node) = &o.node { dt { "Node" } dd { (printable(node)) } }
                    @if let Some(vmid) = o.vmid { dt { "vmid" } dd { (vmid) } }
                    @if let Some(reason) = &o.reason { dt { "Why" } dd { (printable(reason)) } }
                    @if let Some(action) = &o.last_action {
                        dt { "Last action" }
                        dd { (printable(action)) " " @if let Some(at) = o.updated_at.as_ref().and_then(|at| at.parse::<Timestamp>().ok()) { (parts::time(&at)) } }
                    }
                    @if let Some(error) = &o.last_error { dt { "Its error" } dd.error { (printable(error)) } }
                }
            }
            @if !running.is_empty() {
                section { h2 { "Running" } (parts::running(running.into_iter().map(|r| (cluster, r)))) }
            }
            @if !actions.is_empty() {
                section { h2 { "Drift, field by field" } (parts::plan(cluster, &actions)) }
            }
            @if !anomalies.is_empty() {
                section { h2 { "To look at" } (parts::anomalies(anomalies.into_iter().map(|a| (cluster, a)), 100)) }
            }
            (parts::noted("unknown", cluster, &noted(&plan.unknown)))
            (parts::noted("deferred", cluster, &noted(&plan.deferred)))
            (parts::noted("skipped", cluster, &noted(&plan.skipped)))
            (parts::pending(&pending))
        }
    })
}
