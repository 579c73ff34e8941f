//! The state of every resource, from a plan and the operation journal (`proxops.status/v1`).

use proxops_exec::HistoryEntry;
use proxops_model::plan::{ClusterPlan, ClusterState, Outcome, Verb};
use proxops_model::{ResourceId, Severity};
use proxops_plan::Index;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One cluster of `proxops.status/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// The cluster's name.
    pub cluster: String,
    /// Commit of the tree.
    pub commit: Option<String>,
    /// The tree is older than its source.
    pub stale: bool,
    /// The cycle that this is the result of.
    pub last_cycle: LastCycle,
    /// Ordered by kind and name.
    pub objects: Vec<ObjectStatus>,
}

/// How the cycle went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCycle {
    /// Whether it could be planned.
    pub state: ClusterState,
    /// Why not.
    pub error: Option<String>,
    /// Nothing to do and nothing to look at.
    pub clean: bool,
}

/// One resource, or one owned guest without a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectStatus {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Where it is or should be.
    pub node: Option<String>,
    /// Guests only.
    pub vmid: Option<u32>,
    /// desired, drift, converged, failed, skipped, deferred, pending, pruned, anomalous or unknown.
    pub state: Cow<'static, str>,
    /// Why it is in that state, if not converged.
    pub reason: Option<String>,
    /// The last thing that proxops did to it.
    pub last_action: Option<String>,
    /// Why that failed.
    pub last_error: Option<String>,
    /// When that ended, RFC 3339.
    pub updated_at: Option<String>,
}

/// From a plan, executed or not.
pub fn status(plan: &ClusterPlan, index: Option<&Index>, history: &[HistoryEntry]) -> ClusterStatus {
    let mut objects: BTreeMap<(ResourceId, Option<u32>), ObjectStatus> = BTreeMap::new();
    for r in index.iter().flat_map(|i| i.resources.values()) {
        let (node, vmid) = match &r.validated.identity {
            proxops_model::kind::Identity::Guest(g) => (Some(g.node.clone()), Some(g.vmid)),
            proxops_model::kind::Identity::Artifact(p) => (p.first().map(|p| p.node.clone()), None),
            proxops_model::kind::Identity::Object(_) => (None, None),
        };
        objects.insert((r.id.clone(), vmid), object(&r.id, node, vmid, "converged", None));
    }
    let mut mark = |kind: &str,
                    name: &str,
                    node: &Option<String>,
                    vmid: Option<u32>,
                    state: &'static str,
                    why: Option<&str>| {
        let id = ResourceId::new(kind, name);
        let entry = objects
            .entry((id.clone(), vmid))
            .or_insert_with(|| object(&id, node.clone(), vmid, "converged", None));
        if rank(state) > rank(&entry.state) {
            entry.state = Cow::Borrowed(state);
            entry.reason = why.map(str::to_owned);
        }
        if node.is_some() {
            entry.node.clone_from(node);
        }
    };
    for p in &plan.pending {
        mark(&p.kind, &p.name, &p.node, p.vmid, "pending", Some("a change waits for a restart of the guest"));
    }
    for a in plan.anomalies.iter().filter(|a| a.severity != Severity::Info && a.name != "*") {
        let state = if a.severity == Severity::Error { "failed" } else { "anomalous" };
        // An artifact's or an absent guest's anomaly still belongs to its resource.
        mark(&a.kind, &a.name, &a.node, a.vmid, state, Some(&a.message));
    }
    for (list, state) in
        [(&plan.skipped, "skipped"), (&plan.deferred, "deferred"), (&plan.unknown, "unknown")]
    {
        for n in list {
            mark(&n.kind, &n.name, &n.node, n.vmid, state, Some(&n.why));
        }
    }
    for a in &plan.actions {
        let (state, why) = match (&a.ended, a.verb) {
            (Some(e), Verb::Delete) if e.result == Outcome::Ok => ("pruned", Some(a.reason.as_str())),
            (Some(e), _) if e.result == Outcome::Ok => continue,
            (Some(e), _) if e.result == Outcome::Failed => ("failed", e.error.as_deref()),
            (Some(e), _) => ("deferred", e.error.as_deref()),
            (None, Verb::Create | Verb::Clone | Verb::Download) => ("desired", Some(a.reason.as_str())),
            (None, _) => ("drift", Some(a.reason.as_str())),
        };
        mark(&a.kind, &a.name, &a.node, a.vmid, state, why);
    }
    let mut latest: BTreeMap<(&str, &str), Vec<&HistoryEntry>> = BTreeMap::new();
    for h in history {
        latest.entry((&h.kind, &h.name)).or_default().push(h);
    }
    for ((id, vmid), entry) in &mut objects {
        let own = latest.get(&(id.kind.as_str(), id.name.as_str()));
        let own = own.into_iter().flatten().filter(|h| vmid.is_none() || h.vmid == *vmid);
        if let Some(last) = own.max_by_key(|h| h.id) {
            entry.last_action = Some(last.verb.clone());
            entry.last_error.clone_from(&last.error);
            entry.updated_at = last.finished.clone().or_else(|| Some(last.started.clone()));
        }
    }
    ClusterStatus {
        cluster: plan.cluster.clone(),
        commit: plan.commit.clone(),
        stale: plan.stale,
        last_cycle: LastCycle { state: plan.state, error: plan.error.clone(), clean: is_clean_now(plan) },
        objects: objects.into_values().collect(),
    }
}

/// Nothing was to do, or all of it was done: the executor has read back what it wrote.
fn is_clean_now(plan: &ClusterPlan) -> bool {
    let done = |a: &proxops_model::Action| a.ended.as_ref().is_some_and(|e| e.result == Outcome::Ok);
    if !plan.actions.iter().all(done) {
        return false;
    }
    let mut rest = plan.clone();
    rest.actions.clear();
    rest.is_clean()
}

fn object(
    id: &ResourceId,
    node: Option<String>,
    vmid: Option<u32>,
    state: &'static str,
    reason: Option<String>,
) -> ObjectStatus {
    ObjectStatus {
        kind: id.kind.clone(),
        name: id.name.clone(),
        node,
        vmid,
        state: Cow::Borrowed(state),
        reason,
        last_action: None,
        last_error: None,
        updated_at: None,
    }
}

/// Which of two findings says more.
fn rank(state: &str) -> u8 {
    [
        "converged",
        "pending",
        "skipped",
        "anomalous",
        "drift",
        "desired",
        "pruned",
        "deferred",
        "unknown",
        "failed",
    ]
    .iter()
    .position(|s| *s == state)
    .map_or(0, |i| i as u8)
}
