//! Storages and the checks that every access to one makes.

use std::collections::BTreeSet;

use super::{GIB, World};
use crate::refused::{Refused, Reply};

/// One configured storage.
#[derive(Clone, Debug)]
pub struct Storage {
    /// Plugin type: `dir`, `nfs`, `lvmthin`, `zfspool`, ...
    pub kind: String,
    /// Content types it may hold.
    pub content: BTreeSet<String>,
    /// Whether all nodes see the same volumes.
    pub shared: bool,
    /// The nodes it exists on; `None`: all.
    pub nodes: Option<BTreeSet<String>>,
    /// Switched off in the configuration.
    pub disabled: bool,
    /// Capacity in bytes.
    pub total: u64,
    /// Directory of a file storage.
    pub path: String,
    /// When set, its listings fail with this text.
    pub broken: Option<String>,
}

impl Storage {
    /// A storage on all nodes; `content` separated by commas. `nfs`, `cifs`, `cephfs`, `rbd` and `iscsi` are shared.
    pub fn new(kind: &str, content: &str, total_gib: u64) -> Self {
        Self {
            kind: kind.to_owned(),
            content: content.split(',').map(str::to_owned).collect(),
            shared: matches!(kind, "nfs" | "cifs" | "cephfs" | "rbd" | "iscsi" | "pbs"),
            nodes: None,
            disabled: false,
            total: total_gib * GIB,
            path: "/var/lib/vz".to_owned(),
            broken: None,
        }
    }

    /// Whether volumes are files in a directory (fact S13).
    pub fn file_based(&self) -> bool {
        matches!(self.kind.as_str(), "dir" | "nfs" | "cifs" | "cephfs" | "btrfs")
    }

    /// Whether it exists on a node.
    pub fn on(&self, node: &str) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(node))
    }

    /// Content types joined by commas.
    pub fn contents(&self) -> String {
        self.content.iter().map(String::as_str).collect::<Vec<_>>().join(",")
    }
}

impl World {
    /// Adds or replaces a storage.
    pub fn add_storage(&mut self, name: &str, storage: Storage) {
        let path = if storage.kind == "dir" { "/var/lib/vz".to_owned() } else { format!("/mnt/pve/{name}") };
        self.storages.insert(name.to_owned(), Storage { path, ..storage });
    }

    /// A storage that a node can use, else 500 (fact S11).
    pub(crate) fn usable_storage(&self, name: &str, node: &str) -> Reply<&Storage> {
        let spec = self
            .storages
            .get(name)
            .ok_or_else(|| Refused::die(format!("storage '{name}' does not exist")))?;
        if spec.disabled {
            return Err(Refused::die(format!("storage '{name}' is disabled")));
        }
        if !spec.on(node) {
            return Err(Refused::die(format!("storage '{name}' is not available on node '{node}'")));
        }
        Ok(spec)
    }
}
