//! The live facts of one cluster, as far as a plan needs them.

use proxops_model::ResourceId;
use proxops_model::kind::{Context, GuestType, LiveGuest, LiveObject, LivePower, Pairs, Placement, Presence};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Whether a node can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeState {
    /// It answers.
    Online,
    /// It does not: PVE's word or the error.
    Unreachable(String),
}

/// One guest of the inventory, whatever its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestFact {
    /// Unique in the cluster.
    pub vmid: u32,
    /// VM or container.
    pub guest_type: GuestType,
    /// Where it is.
    pub node: String,
    /// Name as the lists show it; may lag (fact C2).
    pub name: Option<String>,
    /// From the node's own list.
    pub power: LivePower,
    /// From the node's own list.
    pub template: bool,
    /// A lock's name.
    pub lock: Option<String>,
    /// Tag list as PVE prints it.
    pub tags: String,
    /// Managed by HA.
    pub ha: bool,
}

/// A guest's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestRead {
    /// What the kind gets.
    pub live: Arc<LiveGuest>,
    /// Of the report.
    pub digest: Option<String>,
}

impl GuestRead {
    /// A configured value, if it is a scalar.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.live.values.get(key).and_then(|v| v.text())
    }

    /// Tags of the configuration, "" if none.
    pub fn tags(&self) -> &str {
        self.value("tags").unwrap_or_default()
    }
}

/// What an unfinished operation of an earlier run left to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leftover {
    /// The guest was cloned, but the action did not end: the template's identity may still be in it.
    pub fresh_clone_of: Option<ResourceId>,
    /// Cloud-init data was written, the seed image was not rebuilt.
    pub rebuild_seed: bool,
    /// Slots of disks that were made and not grown to their size.
    pub grow: Vec<String>,
    /// Its making was begun and did not end well.
    pub making: bool,
}

/// An object of a third-party kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRead {
    /// What the kind gets.
    pub live: LiveObject,
    /// Of the report, where PVE gives one.
    pub digest: Option<String>,
}

/// Objects by id: those that manifests name, and those that could be ours. `Err` = could not be read.
pub type Objects = BTreeMap<String, Result<ObjectRead, String>>;

/// One copy of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactFact {
    /// Whether the file is there.
    pub presence: Presence,
    /// Bytes.
    pub size: Option<u64>,
    /// Why it is unknown.
    pub why: Option<String>,
}

/// Everything that one cycle read of one cluster.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// What is the same for every call of a kind; references and keys are filled per resource.
    pub context: Context,
    /// Every node that PVE knows.
    pub nodes: BTreeMap<String, NodeState>,
    /// By vmid; also guests outside the allowlist.
    pub guests: BTreeMap<u32, GuestFact>,
    /// Configurations, of desired and owned guests only; `Err` = could not be read.
    pub reads: BTreeMap<u32, Result<GuestRead, String>>,
    /// Copies of desired artifacts.
    pub artifacts: BTreeMap<(Placement, String), ArtifactFact>,
    /// Objects of third-party kinds, by kind and the variables of its list; `Err` = could not be listed.
    pub objects: BTreeMap<(String, Pairs), Result<Objects, String>>,
    /// vmids with a replication job; `Err` = could not be read.
    pub replicated: Option<Result<BTreeSet<u32>, String>>,
    /// vmids under HA; `Err` = could not be read.
    pub ha: Option<Result<BTreeSet<u32>, String>>,
    /// Why the inventory is not complete; nothing is pruned then.
    pub partial: Option<String>,
    /// Guests on which a task of an earlier run still works, and what it is.
    pub busy: BTreeMap<u32, String>,
    /// The same of files and objects.
    pub busy_resources: BTreeMap<ResourceId, String>,
    /// Guests that were stopped for a change which then failed.
    pub stopped_in_vain: BTreeSet<u32>,
    /// From the operation journal.
    pub leftovers: BTreeMap<u32, Leftover>,
}

impl World {
    /// Why a node can't be used, or `None`.
    pub fn node_trouble(&self, node: &str) -> Option<String> {
        match self.nodes.get(node) {
            Some(NodeState::Online) => None,
            Some(NodeState::Unreachable(why)) => Some(format!("node {node} is {why}")),
            None => Some(format!("the cluster has no node {node}")),
        }
    }

    /// What to say of a guest that is the shell of a clone which never ended: what a dead worker leaves once somebody
    /// took its lock away is a configuration that holds nothing yet (fact Q41). Filled in, it would converge without
    /// ever having had its disks.
    pub fn shell(&self, vmid: u32) -> Option<String> {
        self.leftovers.get(&vmid)?.fresh_clone_of.as_ref()?;
        let read = self.reads.get(&vmid)?.as_ref().ok()?;
        // R3: PVE shows a boot order even where there is nothing
        let empty = read.live.values.keys().all(|key| key == "boot") && read.live.lock.is_none();
        empty.then(|| {
            format!(
                "its clone never ended and left an empty guest without a name on {}. Look at it in PVE and remove it; \
                 the next run clones it anew",
                read.live.node
            )
        })
    }

    /// A storage that the node has.
    pub fn storage_on(&self, storage: &str, node: &str) -> Option<&proxops_model::kind::StorageInfo> {
        self.context
            .storages
            .iter()
            .find(|s| s.name == storage && (s.nodes.is_empty() || s.nodes.iter().any(|n| n == node)))
    }
}

impl World {
    /// The same facts without guests and files: what a fresh look at one guest needs.
    pub(crate) fn without_guests(&self) -> Self {
        Self {
            context: self.context.clone(),
            nodes: self.nodes.clone(),
            leftovers: self.leftovers.clone(),
            ..Self::default()
        }
    }
}
