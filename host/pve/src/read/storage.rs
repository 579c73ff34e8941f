//! Storages and what lies on them.

use super::unreadable;
use crate::client::Client;
use crate::error::PveError;
use crate::lenient::Scalar;
use crate::path::path;
use serde::Deserialize;

/// A file or volume on a storage (fact S7).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Volume {
    /// Such as `local:iso/debian.iso`.
    pub volid: String,
    /// Content type.
    pub content: String,
    /// Such as "iso" or "qcow2".
    pub format: String,
    /// Bytes.
    pub size: Option<u64>,
}

/// A storage of the cluster's configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StorageConfig {
    /// Its name.
    pub name: String,
    /// Plugin type, such as "nfs".
    pub storage_type: String,
    /// Content types, sorted.
    pub content: Vec<String>,
    /// Where it may be used, sorted; empty = everywhere.
    pub nodes: Vec<String>,
    /// The same on all its nodes.
    pub shared: bool,
    /// Switched off.
    pub disabled: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct VolumeAnswer {
    volid: Scalar,
    content: Scalar,
    format: Scalar,
    size: Scalar,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StorageAnswer {
    storage: Scalar,
    #[serde(rename = "type")]
    storage_type: Scalar,
    content: Scalar,
    nodes: Scalar,
    shared: Scalar,
    disable: Scalar,
}

/// A storage as one node sees it now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StorageStatus {
    /// Its name.
    pub name: String,
    /// Content types that it takes.
    pub content: Vec<String>,
    /// Switched on in the configuration.
    pub enabled: bool,
    /// Can be used.
    pub active: bool,
    /// Bytes; `None` where PVE can't tell.
    pub total: Option<u64>,
    /// Bytes.
    pub available: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusAnswer {
    storage: Scalar,
    content: Scalar,
    enabled: Scalar,
    active: Scalar,
    total: Scalar,
    avail: Scalar,
}

impl Client {
    /// The storages of a node that are visible to the caller, sorted by name.
    pub async fn storage_status(&self, node: &str) -> Result<Vec<StorageStatus>, PveError> {
        let at = path(&["nodes", node, "storage"])?;
        let rows = self.read::<Vec<StatusAnswer>>(&at, &[]).await?.data;
        let mut list: Vec<StorageStatus> = rows
            .into_iter()
            .map(|row| match row.storage.filled() {
                Some(name) => Ok(StorageStatus {
                    name,
                    content: row.content.list(),
                    enabled: row.enabled.flag(),
                    active: row.active.flag(),
                    total: row.total.whole().filter(|total| *total > 0),
                    available: row.avail.whole(),
                }),
                None => Err(unreadable(&at, "a storage without a name")),
            })
            .collect::<Result<_, _>>()?;
        list.sort();
        Ok(list)
    }

    /// What lies on a node's storage, of one content type, sorted. Entries that the caller may not read
    /// are missing (fact S7).
    pub async fn storage_content(
        &self,
        node: &str,
        storage: &str,
        content: &str,
    ) -> Result<Vec<Volume>, PveError> {
        let at = path(&["nodes", node, "storage", storage, "content"])?;
        let rows = self.read::<Vec<VolumeAnswer>>(&at, &[("content", content)]).await?.data;
        let mut list: Vec<Volume> = rows
            .into_iter()
            .map(|row| match row.volid.filled() {
                Some(volid) => Ok(Volume {
                    volid,
                    content: row.content.or_empty(),
                    format: row.format.or_empty(),
                    size: row.size.whole(),
                }),
                None => Err(unreadable(&at, "a volume without an id")),
            })
            .collect::<Result<_, _>>()?;
        list.sort();
        Ok(list)
    }

    /// The storages that are configured in the cluster and visible to the caller, sorted by name.
    pub async fn storages(&self) -> Result<Vec<StorageConfig>, PveError> {
        const PATH: &str = "/storage";
        let rows = self.read::<Vec<StorageAnswer>>(PATH, &[]).await?.data;
        let mut list: Vec<StorageConfig> = rows
            .into_iter()
            .map(|row| match row.storage.filled() {
                Some(name) => Ok(StorageConfig {
                    name,
                    storage_type: row.storage_type.or_empty(),
                    content: row.content.list(),
                    nodes: row.nodes.list(),
                    shared: row.shared.flag(),
                    disabled: row.disable.flag(),
                }),
                None => Err(unreadable(PATH, "a storage without a name")),
            })
            .collect::<Result<_, _>>()?;
        list.sort();
        Ok(list)
    }
}
