//! The cluster as a whole: version, nodes, inventory, HA, replication, tasks.

use super::unreadable;
use crate::client::Client;
use crate::error::PveError;
use crate::lenient::Scalar;
use crate::path::path;
use proxops_model::kind::{GuestType, TagStyle};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// PVE's version (fact C14).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Such as "9.2.3".
    pub version: String,
    /// Such as "9.2".
    pub release: String,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// online, offline or unknown.
    pub status: String,
}

impl Node {
    /// Whether the cluster sees it.
    pub fn online(&self) -> bool {
        self.status == "online"
    }
}

/// Quorum and membership (fact C7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStatus {
    /// `None` on a node that stands alone.
    pub name: Option<String>,
    /// True on a node that stands alone.
    pub quorate: bool,
    /// Sorted by name.
    pub nodes: Vec<ClusterNode>,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterNode {
    /// Its name.
    pub name: String,
    /// Whether the others see it.
    pub online: bool,
    /// The one that answered.
    pub local: bool,
}

/// A guest in the inventory. `name`, `status` and `template` lag up to 10 s behind (fact C2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestRow {
    /// Unique in the cluster (fact Q1).
    pub vmid: u32,
    /// VM or container.
    pub guest_type: GuestType,
    /// Where it is.
    pub node: String,
    /// Missing until the node's next report.
    pub name: Option<String>,
    /// running, stopped or unknown.
    pub status: String,
    /// Marked as a template.
    pub template: bool,
    /// As PVE joins them.
    pub tags: String,
    /// Name of the lock.
    pub lock: Option<String>,
    /// Its pool.
    pub pool: Option<String>,
    /// HA's state of it, if HA manages it.
    pub ha_state: Option<String>,
}

/// A storage on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageRow {
    /// Its name.
    pub name: String,
    /// Where.
    pub node: String,
    /// Plugin type, such as "lvmthin"; "" if unknown.
    pub storage_type: String,
    /// The same on all its nodes.
    pub shared: bool,
    /// Content types, sorted.
    pub content: Vec<String>,
    /// available or unknown.
    pub status: String,
}

/// Everything in one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Sorted by vmid.
    pub guests: Vec<GuestRow>,
    /// Sorted by name and node.
    pub storages: Vec<StorageRow>,
    /// Sorted by name.
    pub nodes: Vec<Node>,
}

/// What PVE says of an API token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenInfo {
    /// Seconds since 1970; `None` = never.
    pub expires: Option<u64>,
    /// It has only what both its own and its user's grants allow (fact T27).
    pub separated: bool,
}

/// A resource under HA (fact C11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HaResource {
    /// `vm:N` or `ct:N`.
    pub sid: String,
    /// The guest's vmid.
    pub guest: Option<u32>,
    /// The requested state.
    pub state: String,
}

/// A replication job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicationJob {
    /// Such as "101-0".
    pub id: String,
    /// The guest's vmid.
    pub guest: Option<u32>,
    /// The node that receives.
    pub target: String,
}

/// Which tasks of a node to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskQuery {
    /// About this guest.
    pub vmid: Option<u32>,
    /// Such as "vztemplate".
    pub task_type: Option<String>,
    /// Started at or after this, seconds since 1970.
    pub since: Option<u64>,
    /// Only those that still run.
    pub running: bool,
}

/// A task in a node's list (fact U6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// See [`crate::Upid`].
    pub upid: String,
    /// Such as "qmcreate".
    pub task_type: String,
    /// Mostly a vmid.
    pub id: String,
    /// Who started it.
    pub user: String,
    /// Seconds since 1970.
    pub start_time: u64,
    /// Seconds since 1970; `None` while it runs.
    pub end_time: Option<u64>,
    /// How it ended; `None` while it runs.
    pub status: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resource {
    #[serde(rename = "type")]
    row_type: Scalar,
    vmid: Scalar,
    node: Scalar,
    name: Scalar,
    status: Scalar,
    template: Scalar,
    tags: Scalar,
    lock: Scalar,
    pool: Scalar,
    hastate: Scalar,
    storage: Scalar,
    plugintype: Scalar,
    shared: Scalar,
    content: Scalar,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Member {
    #[serde(rename = "type")]
    row_type: Scalar,
    name: Scalar,
    online: Scalar,
    local: Scalar,
    quorate: Scalar,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeAnswer {
    node: Scalar,
    status: Scalar,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct VersionAnswer {
    version: Scalar,
    release: Scalar,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenAnswer {
    expire: Scalar,
    privsep: Scalar,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HaAnswer {
    sid: Scalar,
    state: Scalar,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReplicationAnswer {
    id: Scalar,
    guest: Scalar,
    target: Scalar,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TaskAnswer {
    upid: Scalar,
    #[serde(rename = "type")]
    task_type: Scalar,
    id: Scalar,
    user: Scalar,
    starttime: Scalar,
    endtime: Scalar,
    status: Scalar,
}

/// Effective privileges: path, privilege, whether it propagates.
pub type Permissions = BTreeMap<String, BTreeMap<String, bool>>;

/// Whether the nearest listed path at or above this one grants the privilege.
fn granted(all: &Permissions, path: &str, privilege: &str) -> bool {
    let mut above = Some(path);
    while let Some(here) = above {
        if let Some(privileges) = all.get(here) {
            return privileges.get(privilege).is_some_and(|propagates| *propagates || here == path);
        }
        above = match here.rsplit_once('/') {
            _ if here == "/" => None,
            Some(("", _)) => Some("/"),
            Some((parent, _)) => Some(parent),
            None => None,
        };
    }
    false
}

impl Client {
    /// PVE's version.
    pub async fn version(&self) -> Result<Version, PveError> {
        let answer = self.read::<VersionAnswer>("/version", &[]).await?.data;
        let version = answer.version.filled().ok_or_else(|| unreadable("/version", "no version"))?;
        Ok(Version { version, release: answer.release.or_empty() })
    }

    /// The caller's own effective privileges: path, privilege, whether it propagates (fact C9).
    pub async fn permissions(&self) -> Result<Permissions, PveError> {
        self.permissions_of(&[]).await
    }

    /// The privileges that the caller holds on one path, inherited ones and those of pools included (fact C9).
    pub async fn permissions_at(&self, path: &str) -> Result<BTreeSet<String>, PveError> {
        let paths = self.permissions_of(&[("path", path)]).await?;
        Ok(paths.into_values().flat_map(BTreeMap::into_keys).collect())
    }

    /// What PVE says of the API token that the caller is; `None` for a user. Its secret is not told.
    pub async fn token_info(&self) -> Result<Option<TokenInfo>, PveError> {
        let Some((user, token)) = self.identity().split_once('!') else { return Ok(None) };
        let at = path(&["access", "users", user, "token", token])?;
        let answer = self.read::<TokenAnswer>(&at, &[]).await?.data;
        Ok(Some(TokenInfo {
            expires: answer.expire.whole().filter(|at| *at > 0),
            separated: answer.privsep.flag(),
        }))
    }

    /// Whether the caller has a privilege on a path. Asks once for what PVE lists, and again for a path
    /// that gets it in a way the list does not show, such as a pool.
    pub async fn may(&self, path: &str, privilege: &str) -> Result<bool, PveError> {
        let all = self.is_root() || granted(self.known_permissions().await?, path, privilege);
        Ok(all || self.permissions_at(path).await?.contains(privilege))
    }

    async fn permissions_of(&self, query: &[(&str, &str)]) -> Result<Permissions, PveError> {
        type Paths = BTreeMap<String, BTreeMap<String, Scalar>>;
        let paths = self.read::<Paths>("/access/permissions", query).await?.data;
        let flags = |privileges: BTreeMap<String, Scalar>| {
            privileges.into_iter().map(|(name, propagate)| (name, propagate.flag())).collect()
        };
        Ok(paths.into_iter().map(|(path, privileges)| (path, flags(privileges))).collect())
    }

    /// Quorum and membership.
    pub async fn cluster_status(&self) -> Result<ClusterStatus, PveError> {
        let rows = self.read::<Vec<Member>>("/cluster/status", &[]).await?.data;
        let mut status = ClusterStatus { name: None, quorate: true, nodes: Vec::new() };
        for row in rows {
            match row.row_type.filled().as_deref() {
                Some("cluster") => {
                    status.quorate = row.quorate.flag();
                    status.name = row.name.filled();
                }
                Some("node") => status.nodes.push(ClusterNode {
                    name: row.name.or_empty(),
                    online: row.online.flag(),
                    local: row.local.flag(),
                }),
                _ => {}
            }
        }
        status.nodes.sort();
        Ok(status)
    }

    /// The datacenter's tag style; a property string before 9.2, an object since (fact R12).
    pub async fn options(&self) -> Result<TagStyle, PveError> {
        let answer = self.get("/cluster/options", &[]).await?;
        Ok(tag_style(answer.data.get("tag-style").unwrap_or(&Value::Null)))
    }

    /// The nodes (fact C8).
    pub async fn nodes(&self) -> Result<Vec<Node>, PveError> {
        let rows = self.read::<Vec<NodeAnswer>>("/nodes", &[]).await?.data;
        let mut nodes: Vec<Node> = rows
            .into_iter()
            .map(|row| match row.node.filled() {
                Some(name) => Ok(Node { name, status: row.status.or_empty() }),
                None => Err(unreadable("/nodes", "a node without a name")),
            })
            .collect::<Result<_, _>>()?;
        nodes.sort();
        Ok(nodes)
    }

    /// Guests, storages and nodes (fact C1).
    pub async fn inventory(&self) -> Result<Inventory, PveError> {
        const PATH: &str = "/cluster/resources";
        let rows = self.read::<Vec<Resource>>(PATH, &[]).await?.data;
        let mut inventory = Inventory::default();
        for row in rows {
            let guest_type = match row.row_type.filled().as_deref() {
                Some("qemu") => GuestType::Qemu,
                Some("lxc") => GuestType::Lxc,
                Some("storage") => {
                    let (Some(name), Some(node)) = (row.storage.filled(), row.node.filled()) else {
                        return Err(unreadable(PATH, "a storage without name or node"));
                    };
                    inventory.storages.push(StorageRow {
                        name,
                        node,
                        storage_type: row.plugintype.or_empty(),
                        shared: row.shared.flag(),
                        content: row.content.list(),
                        status: row.status.or_empty(),
                    });
                    continue;
                }
                Some("node") => {
                    let Some(name) = row.node.filled() else {
                        return Err(unreadable(PATH, "a node without a name"));
                    };
                    inventory.nodes.push(Node { name, status: row.status.or_empty() });
                    continue;
                }
                _ => continue,
            };
            let (Some(vmid), Some(node)) = (row.vmid.vmid(), row.node.filled()) else {
                return Err(unreadable(PATH, "a guest without vmid or node"));
            };
            inventory.guests.push(GuestRow {
                vmid,
                guest_type,
                node,
                name: row.name.filled(),
                status: row.status.or_empty(),
                template: row.template.flag(),
                tags: row.tags.or_empty(),
                lock: row.lock.filled(),
                pool: row.pool.filled(),
                ha_state: row.hastate.filled(),
            });
        }
        inventory.guests.sort_by_key(|guest| guest.vmid);
        inventory.storages.sort_by(|a, b| (&a.name, &a.node).cmp(&(&b.name, &b.node)));
        inventory.nodes.sort();
        Ok(inventory)
    }

    /// What HA manages, sorted by id.
    pub async fn ha_resources(&self) -> Result<Vec<HaResource>, PveError> {
        let rows = self.read::<Vec<HaAnswer>>("/cluster/ha/resources", &[]).await?.data;
        let mut list: Vec<HaResource> = rows
            .into_iter()
            .map(|row| {
                let sid = row.sid.or_empty();
                let guest = sid.split_once(':').and_then(|(_, vmid)| vmid.parse().ok());
                HaResource { guest, state: row.state.or_empty(), sid }
            })
            .collect();
        list.sort_by(|a, b| a.sid.cmp(&b.sid));
        Ok(list)
    }

    /// The cluster's replication jobs, sorted by id.
    pub async fn replication(&self) -> Result<Vec<ReplicationJob>, PveError> {
        let rows = self.read::<Vec<ReplicationAnswer>>("/cluster/replication", &[]).await?.data;
        let mut list: Vec<ReplicationJob> = rows
            .into_iter()
            .map(|row| {
                let id = row.id.or_empty();
                let of_id = || id.split_once('-').and_then(|(vmid, _)| vmid.parse().ok());
                ReplicationJob { guest: row.guest.vmid().or_else(of_id), target: row.target.or_empty(), id }
            })
            .collect();
        list.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(list)
    }

    /// Tasks of a node, newest first (fact U6); only what the caller may see (fact U7).
    pub async fn node_tasks(&self, node: &str, query: &TaskQuery) -> Result<Vec<TaskRow>, PveError> {
        let at = path(&["nodes", node, "tasks"])?;
        let vmid = query.vmid.map(|vmid| vmid.to_string());
        let since = query.since.map(|since| since.to_string());
        let source = if query.running { "active" } else { "all" };
        let mut pairs = vec![("source", source), ("limit", "500")];
        pairs.extend(vmid.as_deref().map(|vmid| ("vmid", vmid)));
        pairs.extend(query.task_type.as_deref().map(|task_type| ("typefilter", task_type)));
        pairs.extend(since.as_deref().map(|since| ("since", since)));
        let rows = self.read::<Vec<TaskAnswer>>(&at, &pairs).await?.data;
        let mut list: Vec<TaskRow> = rows
            .into_iter()
            .map(|row| TaskRow {
                upid: row.upid.or_empty(),
                task_type: row.task_type.or_empty(),
                id: row.id.or_empty(),
                user: row.user.or_empty(),
                start_time: row.starttime.whole().unwrap_or(0),
                end_time: row.endtime.whole(),
                status: row.status.filled().filter(|status| status != "RUNNING"),
            })
            // `active` holds tasks that ended a moment ago as well
            .filter(|task| !query.running || task.end_time.is_none())
            .collect();
        list.sort_by(|a, b| (b.start_time, &b.upid).cmp(&(a.start_time, &a.upid)));
        Ok(list)
    }
}

fn tag_style(value: &Value) -> TagStyle {
    let get = |key: &str| match value {
        Value::Object(map) => map.get(key).and_then(proxops_model::text::scalar),
        Value::String(text) => text
            .split(',')
            .find_map(|pair| pair.split_once('=').filter(|(k, _)| k.trim() == key))
            .map(|(_, v)| v.to_owned()),
        _ => None,
    };
    let flag = |text: String| Scalar::from(text.as_str()).flag();
    TagStyle {
        case_sensitive: get("case-sensitive").is_some_and(flag),
        keep_order: get("ordering").is_some_and(|ordering| ordering == "config"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_tag_style_is_read_as_object_and_as_property_string() {
        let both = TagStyle { case_sensitive: true, keep_order: true };
        assert_eq!(tag_style(&json!({"case-sensitive": 1, "ordering": "config"})), both);
        assert_eq!(tag_style(&json!("case-sensitive=1,ordering=config,shape=full")), both);
        assert_eq!(tag_style(&json!("ordering=alphabetical")), TagStyle::default());
        assert_eq!(tag_style(&json!(null)), TagStyle::default());
    }

    #[test]
    fn a_privilege_holds_where_it_is_and_below_where_it_propagates() {
        let all: Permissions =
            [("/", "Sys.Audit", true), ("/vms", "VM.Audit", true), ("/vms/7", "VM.Clone", false)]
                .into_iter()
                .map(|(path, privilege, propagates)| {
                    (path.to_owned(), [(privilege.to_owned(), propagates)].into())
                })
                .collect();
        assert!(granted(&all, "/vms/6", "VM.Audit") && granted(&all, "/vms/7", "VM.Clone"));
        assert!(granted(&all, "/nodes/a", "Sys.Audit") && granted(&all, "/", "Sys.Audit"));
        // PVE lists what is effective: the nearest path has all of it
        assert!(!granted(&all, "/vms/7", "VM.Audit") && !granted(&all, "/vms/7/x", "VM.Clone"));
        assert!(!granted(&all, "/vms/6", "VM.Clone") && !granted(&Permissions::new(), "/vms/6", "VM.Audit"));
    }
}
