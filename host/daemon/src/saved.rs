//! Saved plans: what `diff --out` writes and `apply PLAN` holds the world against.
//!
//! A saved plan is never executed from its file. `apply` plans anew and goes on only if that plan is the saved one
//! in every part: the same commit, the same kinds, the same actions with the same steps on the same live digests.
//! So a file that was edited, or taken from elsewhere, can only be refused. Steps are kept as a SHA-256: they may
//! hold values that a plan shows masked.

use crate::Process;
use anyhow::{Context as _, bail};
use proxops_model::plan::{Action, ClusterPlan, ClusterState};
use proxops_model::text::printable;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Name and version of the file format.
const FORMAT: &str = "proxops.plan/v1";
/// Largest file that is read: some hundred thousand actions.
const MOST: usize = 64 << 20;
/// Most differences that a refusal lists.
const SHOWN: usize = 20;

/// A plan of one or more clusters, as `diff --out` saves it (`proxops.plan/v1`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPlan {
    format: String,
    /// RFC 3339.
    made: String,
    /// Version of the program.
    proxops: String,
    /// The kinds of its actions, by name.
    kinds: BTreeMap<String, SavedKind>,
    clusters: Vec<SavedCluster>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SavedKind {
    version: Option<String>,
    /// SHA-256 of the component.
    digest: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SavedCluster {
    /// As in `proxops.diff/v1`.
    #[serde(flatten)]
    plan: ClusterPlan,
    /// By action id.
    proofs: BTreeMap<String, Proof>,
}

/// What an action shows of itself besides its public fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Proof {
    /// SHA-256 of the steps.
    steps: String,
    /// Digest of the live configuration that it was planned on.
    digest: Option<String>,
}

impl Proof {
    fn of(action: &Action) -> Self {
        let steps = serde_json::to_vec(&(&action.subject, &action.steps)).unwrap_or_default();
        Self { steps: hex::encode(Sha256::digest(&steps)), digest: action.digest.clone() }
    }
}

impl SavedPlan {
    /// Of these plans, none of which may be aborted.
    ///
    /// # Errors
    /// A cluster without a plan.
    pub fn of(process: &Process, plans: &[ClusterPlan]) -> anyhow::Result<Self> {
        if let Some(aborted) = plans.iter().find(|plan| plan.state == ClusterState::Aborted) {
            bail!("no plan was saved: cluster {} could not be planned", aborted.cluster);
        }
        let clusters = plans
            .iter()
            .map(|plan| SavedCluster {
                plan: plan.clone(),
                proofs: plan.actions.iter().map(|action| (action.id.clone(), Proof::of(action))).collect(),
            })
            .collect();
        Ok(Self {
            format: FORMAT.to_owned(),
            made: jiff::Timestamp::now().to_string(),
            proxops: env!("CARGO_PKG_VERSION").to_owned(),
            kinds: kinds(process, plans),
            clusters,
        })
    }

    /// Writes the file whole or not at all.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn write(&self, file: &Path) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        let mut part = file.as_os_str().to_owned();
        part.push(".part");
        std::fs::write(&part, text)
            .and_then(|()| std::fs::rename(&part, file))
            .with_context(|| format!("the plan can't be saved to {}", file.display()))
    }

    /// Reads a file of [`SavedPlan::write`].
    ///
    /// # Errors
    /// No such file, or it is not a saved plan of this version.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            format: Option<String>,
        }
        let name = file.display();
        let bytes = proxops_model::file::whole(file, MOST)
            .with_context(|| format!("the saved plan {name} can't be read"))?;
        let head: Option<Head> = serde_json::from_slice(&bytes).ok();
        match head.and_then(|head| head.format).as_deref() {
            Some(FORMAT) => serde_json::from_slice(&bytes)
                .with_context(|| format!("{name} is damaged: make it anew with `proxops diff --out {name}`")),
            Some(other) => bail!(
                "{name} has the format {}, and this version applies {FORMAT}: make it anew with `proxops diff --out {name}`",
                printable(other)
            ),
            None => bail!("{name} is not a saved plan; `proxops diff --out FILE` makes one"),
        }
    }

    /// Names of its clusters, in order.
    pub fn clusters(&self) -> impl Iterator<Item = &str> {
        self.clusters.iter().map(|cluster| cluster.plan.cluster.as_str())
    }

    /// The part of these clusters; all without a name.
    pub fn only(&self, names: &[String]) -> Self {
        let mut part = self.clone();
        part.clusters.retain(|cluster| names.is_empty() || names.contains(&cluster.plan.cluster));
        part
    }

    /// Why these fresh plans are not the saved ones, one line a difference, per cluster; clusters without one are
    /// left out. `plans` are of the saved clusters.
    pub fn differences(&self, process: &Process, plans: &[ClusterPlan]) -> BTreeMap<String, Vec<String>> {
        let kinds = kinds(process, plans);
        let mut found = BTreeMap::new();
        for saved in &self.clusters {
            let name = &saved.plan.cluster;
            let lines = match plans.iter().find(|plan| plan.cluster == *name) {
                None => vec!["the repository has this cluster no more".to_owned()],
                Some(plan) if plan.state == ClusterState::Aborted => {
                    vec![plan.error.clone().unwrap_or_else(|| "it can't be planned now".to_owned())]
                }
                Some(plan) => self.cluster_differences(saved, plan, &kinds),
            };
            if !lines.is_empty() {
                found.insert(name.clone(), lines);
            }
        }
        found
    }

    fn cluster_differences(
        &self,
        saved: &SavedCluster,
        now: &ClusterPlan,
        kinds: &BTreeMap<String, SavedKind>,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        if saved.plan.commit != now.commit {
            let word = |commit: &Option<String>| commit.clone().unwrap_or_else(|| "none".to_owned());
            lines.push(format!(
                "the repository is at commit {}, the plan was made at {}",
                word(&now.commit),
                word(&saved.plan.commit)
            ));
        }
        let used: BTreeSet<&String> = saved.plan.actions.iter().map(|action| &action.kind).collect();
        for kind in used {
            let (was, is) = (self.kinds.get(kind), kinds.get(kind));
            if let (Some(was), Some(is)) = (was, is)
                && was != is
            {
                let version = |kind: &SavedKind| kind.version.clone().unwrap_or_else(|| "?".to_owned());
                lines.push(match version(was) == version(is) {
                    true => format!("kind {kind} {} is another component than before", version(is)),
                    false => format!("kind {kind} is {} now, it was {}", version(is), version(was)),
                });
            }
        }
        let fresh: BTreeMap<&str, &Action> =
            now.actions.iter().map(|action| (action.id.as_str(), action)).collect();
        for action in &saved.plan.actions {
            match fresh.get(action.id.as_str()) {
                None => lines.push(format!("{}: it is not needed any more, or can't be done now", action.id)),
                Some(now) => lines.extend(action_difference(action, saved.proofs.get(&action.id), now)),
            }
        }
        let known: BTreeSet<&str> = saved.plan.actions.iter().map(|action| action.id.as_str()).collect();
        for action in now.actions.iter().filter(|action| !known.contains(action.id.as_str())) {
            lines.push(format!("{}: the saved plan does not have it ({})", action.id, action.reason));
        }
        if lines.len() > SHOWN {
            let more = lines.len() - SHOWN;
            lines.truncate(SHOWN);
            lines.push(format!("and {more} more differences"));
        }
        lines
    }
}

/// The first thing that tells two actions of one id apart.
fn action_difference(saved: &Action, proof: Option<&Proof>, now: &Action) -> Option<String> {
    let id = &saved.id;
    let Some(proof) = proof else { return Some(format!("{id}: the file lacks its proof")) };
    let fresh = Proof::of(now);
    if saved.node != now.node || saved.vmid != now.vmid {
        let node = |action: &Action| action.node.clone().unwrap_or_default();
        return Some(format!("{id}: it is on node {} now, it was on {}", node(now), node(saved)));
    }
    if proof.digest != fresh.digest {
        let word = |digest: &Option<String>| digest.clone().unwrap_or_else(|| "none".to_owned());
        return Some(format!(
            "{id}: the live configuration was changed since (digest {}, it was {})",
            word(&fresh.digest),
            word(&proof.digest)
        ));
    }
    let same = Action { ended: None, ..saved.clone() }
        == Action { subject: None, steps: Vec::new(), digest: None, ended: None, ..now.clone() };
    (!same || proof.steps != fresh.steps).then(|| format!("{id}: it would do something else now"))
}

fn kinds(process: &Process, plans: &[ClusterPlan]) -> BTreeMap<String, SavedKind> {
    let used: BTreeSet<&str> =
        plans.iter().flat_map(|plan| &plan.actions).map(|action| action.kind.as_str()).collect();
    process
        .kinds
        .list()
        .into_iter()
        .filter_map(|row| Some((row.kind?, SavedKind { version: row.version, digest: row.digest })))
        .filter(|(kind, _)| used.contains(kind.as_str()))
        .collect()
}
