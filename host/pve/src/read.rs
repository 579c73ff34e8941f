//! Typed reads: what callers need of PVE's answers, in one shape whatever form PVE sends it in.

mod cluster;
mod guest;
mod storage;

pub use cluster::{
    ClusterNode, ClusterStatus, GuestRow, HaResource, Inventory, Node, Permissions, ReplicationJob,
    StorageRow, TaskQuery, TaskRow, TokenInfo, Version,
};
pub use guest::{GuestConfig, GuestEntry, GuestStatus};
pub use storage::{StorageConfig, StorageStatus, Volume};

use crate::class::Class;
use crate::error::PveError;
use proxops_model::kind::GuestType;

/// A row that lacks what it can't be without: the whole answer can't be trusted, for a guest that is
/// left out would look absent.
fn unreadable(path: &str, what: &str) -> PveError {
    PveError::request(Class::NotJson, "GET", path, format!("PVE's answer can't be read: {what}"))
}

fn guest_path(node: &str, guest_type: GuestType, vmid: u32, rest: &[&str]) -> Result<String, PveError> {
    let vmid = vmid.to_string();
    let mut segments = vec!["nodes", node, guest_type.as_str(), &vmid];
    segments.extend(rest);
    crate::path::path(&segments)
}
