//! Nodes, storages, and what somebody or something left behind.

use super::Report;
use futures::stream::{self, StreamExt as _};
use proxops_exec::Journal;
use proxops_model::kind::Identity;
use proxops_model::text;
use proxops_plan::{Index, Mode};
use proxops_pve::{Client, ClusterStatus, Inventory, Node, PveError, StorageStatus, TaskQuery};
use proxops_repo::ClusterConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Below this share of a storage, or this many bytes, room is worth a warning.
const SHARE: u64 = 20;
const LEAST: u64 = 1 << 30;
/// Nodes asked at once.
const PARALLEL: usize = 8;

pub(super) fn quorum(report: &mut Report, status: Result<ClusterStatus, PveError>) {
    match status {
        Ok(status) if !status.quorate => report.fail(
            "quorum",
            "the cluster has none: PVE refuses every write",
            "bring the missing nodes back; `pvecm status` shows the votes",
        ),
        Ok(status) => match status.name {
            Some(name) => {
                report.ok("quorum", format!("cluster {name} of {} nodes is quorate", status.nodes.len()))
            }
            None => report.ok("quorum", "a single node needs none"),
        },
        Err(error) => report.warn("quorum", format!("not known: {error}"), "it takes Sys.Audit on /"),
    }
}

/// The nodes within the boundary that are online.
pub(super) fn nodes(
    report: &mut Report,
    config: &ClusterConfig,
    nodes: Result<Vec<Node>, PveError>,
) -> Vec<String> {
    let nodes = match nodes {
        Ok(nodes) => nodes,
        Err(error) => {
            report.fail("nodes", format!("they can't be listed: {error}"), "see the checks before this one");
            return Vec::new();
        }
    };
    for wanted in &config.nodes {
        if !nodes.iter().any(|node| node.name == *wanted) {
            report.fail(
                "nodes",
                format!("{wanted} is no node of this cluster"),
                "correct `nodes` in config.yaml",
            );
        }
    }
    let (online, offline): (Vec<Node>, Vec<Node>) =
        nodes.into_iter().filter(|node| config.allows_node(&node.name)).partition(Node::online);
    for node in offline {
        report.warn(
            "nodes",
            format!("{} is {}", node.name, if node.status.is_empty() { "unknown" } else { &node.status }),
            "its guests and storages are unknown until it is back",
        );
    }
    let names: Vec<String> = online.into_iter().map(|node| node.name).collect();
    if !names.is_empty() {
        report.ok("nodes", format!("online: {}", names.join(", ")));
    }
    names
}

/// Every storage that manifests name, on the node that needs it.
pub(super) async fn storages(report: &mut Report, client: &Client, index: &Index, online: &[String]) {
    let wanted = wanted(index);
    let asked: BTreeSet<String> =
        wanted.keys().map(|(_, node)| node.clone()).filter(|node| online.contains(node)).collect();
    let lists: BTreeMap<String, Result<Vec<StorageStatus>, PveError>> = stream::iter(asked)
        .map(|node| async move {
            let list = client.storage_status(&node).await;
            (node, list)
        })
        .buffered(PARALLEL)
        .collect()
        .await;
    for ((storage, node), contents) in wanted {
        let list = match lists.get(&node) {
            Some(Ok(list)) => list,
            Some(Err(error)) => {
                report.fail("storage", format!("{node}: {error}"), "see the checks before this one");
                continue;
            }
            // An offline node was told of already.
            None => continue,
        };
        let place = format!("{storage} on {node}");
        let Some(found) = list.iter().find(|s| s.name == storage) else {
            report.fail(
                "storage",
                format!("{place} is not there"),
                "check its name and nodes in Datacenter > Storage; without Datastore.Audit it can't be seen",
            );
            continue;
        };
        if !found.enabled || !found.active {
            let word = if found.enabled { "not active" } else { "disabled" };
            report.fail("storage", format!("{place} is {word}"), "see to it in Datacenter > Storage");
            continue;
        }
        let lacking: Vec<&str> =
            contents.iter().map(String::as_str).filter(|c| !found.content.iter().any(|f| f == c)).collect();
        if !lacking.is_empty() {
            report.fail(
                "storage",
                format!(
                    "{place} does not take {}; it takes {}",
                    lacking.join(", "),
                    found.content.join(", ")
                ),
                "add the content type in Datacenter > Storage, or name another storage",
            );
            continue;
        }
        let message = match (found.available, found.total) {
            (Some(free), Some(total)) => {
                format!("{place}: {}; {} of {} free", found.content.join(", "), size(free), size(total))
            }
            _ => format!("{place}: {}", found.content.join(", ")),
        };
        match (found.available, found.total) {
            (Some(free), Some(total)) if free < LEAST || free < total / SHARE => {
                report.warn("storage", message, "make room before something fails half-way");
            }
            _ => report.ok("storage", message),
        }
    }
}

/// (storage, node) with the contents that manifests put or need there.
fn wanted(index: &Index) -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut wanted: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for resource in index.resources.values().filter(|r| r.mode != Mode::Suspended) {
        let own = resource.guest_id().map(|guest| guest.node.clone());
        for used in &resource.validated.storages {
            if let Some(node) = used.node.clone().or_else(|| own.clone()) {
                wanted.entry((used.storage.clone(), node)).or_default().insert(used.content.clone());
            }
        }
        if let (Identity::Artifact(places), proxops_model::kind::Target::Artifact { content, .. }) =
            (&resource.validated.identity, &resource.target)
        {
            for place in places {
                let at = (place.storage.clone(), place.node.clone());
                wanted.entry(at).or_default().insert(content.clone());
            }
        }
    }
    wanted
}

/// Running tasks and locks on guests that are ours.
pub(super) async fn leftovers(
    report: &mut Report,
    config: &ClusterConfig,
    client: &Client,
    index: &Index,
    online: &[String],
    inventory: Result<Inventory, PveError>,
) {
    let inventory = match inventory {
        Ok(inventory) => inventory,
        Err(error) => {
            report.fail(
                "locks",
                format!("the inventory can't be read: {error}"),
                "see the checks before this one",
            );
            return;
        }
    };
    let tag = &config.reconcile.owner_tag;
    let ours: Vec<_> = inventory
        .guests
        .iter()
        .filter(|g| config.allows_node(&g.node))
        .filter(|g| index.vmids.contains_key(&g.vmid) || text::has_tag(&g.tags, tag))
        .collect();
    let query = TaskQuery { running: true, ..TaskQuery::default() };
    let lists: Vec<_> = stream::iter(online)
        .map(|node| async { (node.clone(), client.node_tasks(node, &query).await) })
        .buffered(PARALLEL)
        .collect()
        .await;
    let mut busy = BTreeSet::new();
    let mut seen = false;
    for (node, list) in lists {
        match list {
            Ok(tasks) => {
                for task in tasks {
                    let Some(guest) = ours.iter().find(|g| g.vmid.to_string() == task.id) else { continue };
                    seen = true;
                    busy.insert(guest.vmid);
                    report.warn(
                        "tasks",
                        format!(
                            "{} of guest {} runs on {node} since {}, by {}",
                            task.task_type,
                            guest.vmid,
                            super::date(i64::try_from(task.start_time).unwrap_or(0)),
                            task.user
                        ),
                        "an apply defers this guest until it has ended",
                    );
                }
            }
            Err(error) => {
                seen = true;
                report.warn("tasks", format!("{node}: {error}"), "they are seen with Sys.Audit on the node");
            }
        }
    }
    if !seen {
        report.ok("tasks", "none runs on a guest of this composition");
    }
    let mut locked = false;
    for guest in ours {
        let Some(lock) = &guest.lock else { continue };
        locked = true;
        let tool = guest.guest_type.tool();
        let help = if busy.contains(&guest.vmid) {
            "its task is running: wait".to_owned()
        } else {
            format!(
                "no task of it is running: if it is a leftover, `{tool} unlock {}` on {} removes it",
                guest.vmid, guest.node
            )
        };
        report.warn("locks", format!("guest {} is locked ({lock})", guest.vmid), help);
    }
    if !locked {
        report.ok("locks", "no guest of this composition is locked");
    }
}

/// What earlier runs began and did not end.
pub(super) fn journal(report: &mut Report, data_dir: &Path) {
    let journal = match Journal::open_existing(data_dir) {
        Ok(Some(journal)) => journal,
        Ok(None) => return report.ok("journal", "nothing was applied from here yet"),
        Err(error) => return report.fail("journal", error.to_string(), "see to the data-dir"),
    };
    let cluster = report.cluster.clone();
    match journal.unfinished(&cluster).and_then(|left| Ok((left, journal.owed(&cluster)?))) {
        Err(error) => report.fail("journal", error.to_string(), "see to the data-dir"),
        Ok((unfinished, owed)) if unfinished.is_empty() && owed.is_empty() => {
            report.ok("journal", "no operation is unfinished");
        }
        Ok((unfinished, owed)) => {
            let names: BTreeSet<String> = owed
                .iter()
                .map(|(vmid, owed)| format!("{} ({vmid})", owed.resource))
                .chain(unfinished.iter().map(|left| left.resource.to_string()))
                .collect();
            report.warn(
                "journal",
                format!(
                    "an earlier run did not finish: {}",
                    names.into_iter().collect::<Vec<_>>().join(", ")
                ),
                "the next apply finishes it; another run may be at it right now",
            );
        }
    }
}

fn size(bytes: u64) -> String {
    let gib = bytes as f64 / f64::from(1u32 << 30);
    if gib >= 1024.0 { format!("{:.1} TiB", gib / 1024.0) } else { format!("{gib:.1} GiB") }
}
