//! The plan of one cluster and its JSON form (`proxops.diff/v1`, `proxops.apply/v1`).

use crate::{Severity, kind::KindStep};
use serde::{Deserialize, Serialize};

/// Identity of a resource within a cluster: kind and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResourceId {
    /// The manifest's kind.
    pub kind: String,
    /// The manifest's `metadata.name`; for a guest without a manifest its name in PVE.
    pub name: String,
}

impl ResourceId {
    /// From its two parts.
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind: kind.into(), name: name.into() }
    }
}

impl std::fmt::Display for ResourceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// What an action does, strongest word first where it does several things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Verb {
    Create,
    Clone,
    MarkTemplate,
    Update,
    Resize,
    Download,
    Start,
    Stop,
    Delete,
}

impl Verb {
    /// As written in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Clone => "clone",
            Self::MarkTemplate => "mark-template",
            Self::Update => "update",
            Self::Resize => "resize",
            Self::Download => "download",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Delete => "delete",
        }
    }
}

impl std::fmt::Display for Verb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One field that changes. `from` and `to` are masked when `sensitive`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// RFC 6901 pointer into the manifest.
    pub field: String,
    /// PVE's key.
    pub key: String,
    /// `None` = not set.
    pub from: Option<String>,
    /// `None` = will be removed.
    pub to: Option<String>,
    /// The values are masked.
    pub sensitive: bool,
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Outcome {
    Ok,
    Failed,
    Deferred,
    NotStarted,
}

/// What an action touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// A guest; `guest_type` is "qemu" or "lxc".
    Guest {
        /// "qemu" or "lxc".
        guest_type: String,
    },
    /// Copies of a file.
    Artifact {
        /// PVE's content type.
        content: String,
    },
    /// Another API object.
    Object {
        /// Its id and path variables.
        id: crate::kind::ObjectId,
    },
}

/// One step of an action, in execution order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// A write that a kind asked for.
    Kind(KindStep),
    /// Clone with the source resolved to where it is now.
    CloneFrom {
        /// Node of the source.
        source_node: String,
        /// vmid of the source.
        source_vmid: u32,
        /// The template's resource.
        source: ResourceId,
        /// The kind's parameters.
        params: Vec<crate::kind::Param>,
    },
    /// Read the guest, ask the planner again, and run what it says: after a create or clone.
    Settle,
    /// Shut down with a time limit; `hard` falls back to a stop.
    Stop {
        /// Fall back to a hard stop.
        hard: bool,
    },
    /// Start.
    Start,
    /// Destroy a stopped guest and prove its absence.
    Destroy,
}

/// One planned change of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// Unique in the plan, stable for the same plan: `<verb>:<kind>/<name>`, `delete:<type>/<vmid>`, or
    /// `delete:<kind>#<object id>`.
    pub id: String,
    /// What it does.
    pub verb: Verb,
    /// The manifest's kind, or the kind that the guest's type and template flag give.
    pub kind: String,
    /// The manifest's name, or the guest's name in PVE.
    pub name: String,
    /// Where it happens; for an artifact on several nodes the first.
    pub node: Option<String>,
    /// Guests only.
    pub vmid: Option<u32>,
    /// Depth in the graph of prerequisites, from 0.
    pub level: u32,
    /// Ids of actions that must succeed first.
    pub after: Vec<String>,
    /// A running guest is stopped, restarted or deleted.
    pub disruptive: bool,
    /// One sentence: why.
    pub reason: String,
    /// Field by field.
    pub changes: Vec<Change>,
    /// What it touches. Not part of the public JSON.
    #[serde(skip)]
    pub subject: Option<Subject>,
    /// What to do. Not part of the public JSON.
    #[serde(skip)]
    pub steps: Vec<Step>,
    /// The digest of the report that it was planned on. Not part of the public JSON.
    #[serde(skip)]
    pub digest: Option<String>,
    /// Filled by the executor.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

impl Action {
    /// The resource.
    pub fn resource(&self) -> ResourceId {
        ResourceId::new(&self.kind, &self.name)
    }
}

/// What became of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How it ended.
    pub result: Outcome,
    /// Why it failed or was not done, with what to do.
    pub error: Option<String>,
    /// Lines of tasks that ended with warnings.
    pub warnings: Vec<String>,
    /// Every task that it started.
    pub upids: Vec<String>,
    /// From its first request to its end.
    pub duration_ms: u64,
}

/// What a person must know and proxops does not put right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anomaly {
    /// Stable and kebab-case.
    pub code: String,
    /// `Info` never makes a cluster unclean.
    pub severity: Severity,
    /// Kind of the resource.
    pub kind: String,
    /// Name of the resource.
    pub name: String,
    /// Where it is.
    pub node: Option<String>,
    /// Guests only.
    pub vmid: Option<u32>,
    /// What and why.
    pub message: String,
    /// What the operator can do.
    pub help: Option<String>,
}

/// A resource that this cycle leaves alone, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// Kind of the resource.
    pub kind: String,
    /// Name of the resource.
    pub name: String,
    /// Where it is or should be.
    pub node: Option<String>,
    /// Guests only.
    pub vmid: Option<u32>,
    /// One sentence.
    pub why: String,
}

/// A wanted value that PVE holds back until the guest restarts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Kind of the resource.
    pub kind: String,
    /// Name of the resource.
    pub name: String,
    /// Where it is.
    pub node: Option<String>,
    /// Guests only.
    pub vmid: Option<u32>,
    /// PVE's key.
    pub key: String,
    /// What runs.
    pub current: Option<String>,
    /// What will run.
    pub pending: Option<String>,
}

/// Whether the cycle of a cluster could be planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum ClusterState {
    Ok,
    Aborted,
}

/// The plan of one cluster; serialises as one entry of `clusters` in `proxops.diff/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterPlan {
    /// The cluster's name.
    pub cluster: String,
    /// Commit of the tree, if it has one.
    pub commit: Option<String>,
    /// The work tree differs from the commit.
    pub dirty: bool,
    /// The tree is older than its source, which could not be read.
    pub stale: bool,
    /// Whether there is a plan.
    pub state: ClusterState,
    /// Why there is none.
    pub error: Option<String>,
    /// Ordered by level, kind and name.
    pub actions: Vec<Action>,
    /// Ordered by kind, name and code.
    pub anomalies: Vec<Anomaly>,
    /// Neither present nor absent can be told.
    pub unknown: Vec<Noted>,
    /// Would be done but for something that is missing in this cycle.
    pub deferred: Vec<Noted>,
    /// Left alone on request.
    pub skipped: Vec<Noted>,
    /// Held back by PVE until a restart.
    pub pending: Vec<Pending>,
}

impl ClusterPlan {
    /// An empty plan.
    pub fn new(cluster: impl Into<String>) -> Self {
        Self {
            cluster: cluster.into(),
            commit: None,
            dirty: false,
            stale: false,
            state: ClusterState::Ok,
            error: None,
            actions: Vec::new(),
            anomalies: Vec::new(),
            unknown: Vec::new(),
            deferred: Vec::new(),
            skipped: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// A cluster that can't be planned.
    pub fn aborted(cluster: impl Into<String>, error: impl Into<String>) -> Self {
        Self { state: ClusterState::Aborted, error: Some(error.into()), ..Self::new(cluster) }
    }

    /// Nothing to do and nothing that a person should look at. `skipped` and `info` are clean.
    pub fn is_clean(&self) -> bool {
        self.state == ClusterState::Ok
            && self.actions.is_empty()
            && self.anomalies.iter().all(|a| a.severity == Severity::Info)
            && self.unknown.is_empty()
            && self.deferred.is_empty()
            && self.pending.is_empty()
    }
}

/// Counts for the last line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// create, clone.
    pub create: usize,
    /// update, resize, mark-template.
    pub update: usize,
    /// delete.
    pub delete: usize,
    /// download.
    pub download: usize,
    /// start, stop.
    pub power: usize,
    /// Above info.
    pub anomalies: usize,
    /// deferred.
    pub deferred: usize,
    /// unknown.
    pub unknown: usize,
}

impl Summary {
    /// Over all clusters.
    pub fn of(plans: &[ClusterPlan]) -> Self {
        let mut s = Self::default();
        for plan in plans {
            for action in &plan.actions {
                match action.verb {
                    Verb::Create | Verb::Clone => s.create += 1,
                    Verb::Update | Verb::Resize | Verb::MarkTemplate => s.update += 1,
                    Verb::Delete => s.delete += 1,
                    Verb::Download => s.download += 1,
                    Verb::Start | Verb::Stop => s.power += 1,
                }
            }
            s.anomalies += plan.anomalies.iter().filter(|a| a.severity != Severity::Info).count();
            s.deferred += plan.deferred.len();
            s.unknown += plan.unknown.len();
        }
        s
    }
}
