//! Reads nodes' guest lists, and the guests that they name, while the inventory is still on its way: of a large
//! cluster that one answer takes PVE as long as many small ones.

use crate::load::guest_read;
use futures::stream::{self, StreamExt};
use proxops_model::kind::GuestType;
use proxops_model::text;
use proxops_plan::{GuestFact, GuestRead, Index};
use proxops_pve::{Client, GuestEntry, PveError};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Reads at once; the client has a bound of its own.
pub(crate) const PARALLEL: usize = 16;

/// The lists of one node.
pub(crate) type List = (String, GuestType);

/// What was read.
#[derive(Default)]
pub(crate) struct Ahead {
    /// Guests of one type on one node.
    pub lists: BTreeMap<List, Result<Vec<GuestEntry>, PveError>>,
    /// The guest as its node's list had it, and its configuration.
    pub reads: BTreeMap<u32, (GuestFact, Result<GuestRead, String>)>,
}

/// Which guests are worth a look: those of the composition, and those that carry this tag.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub index: Arc<Index>,
    pub owner_tag: String,
}

impl Wanted {
    pub(crate) fn holds(&self, vmid: u32, tags: &str) -> bool {
        self.index.vmids.contains_key(&vmid) || text::has_tag(tags, &self.owner_tag)
    }
}

/// The lists of all nodes that PVE calls online and the allowlist holds. If PVE does not name its nodes there are
/// none: the inventory names them too.
pub(crate) async fn read(client: &Client, index: &Index, wanted: Option<&Wanted>) -> Ahead {
    let Ok(nodes) = client.nodes().await else { return Ahead::default() };
    let online = nodes.into_iter().filter(|node| node.online() && index.allows(&node.name));
    lists_and_guests(client, online.flat_map(|node| lists_of(&node.name)).collect(), wanted).await
}

/// The lists that a node has.
pub(crate) fn lists_of(node: &str) -> [List; 2] {
    [GuestType::Qemu, GuestType::Lxc].map(|guest_type| (node.to_owned(), guest_type))
}

/// These lists, and of the guests in them those that are wanted. Each list is a task of its own, so that answers are
/// taken apart on all processors.
pub(crate) async fn lists_and_guests(client: &Client, lists: Vec<List>, wanted: Option<&Wanted>) -> Ahead {
    let mut tasks = JoinSet::new();
    for list in lists {
        let (client, wanted) = (client.clone(), wanted.cloned());
        tasks.spawn(async move {
            let entries = client.guest_list(&list.0, list.1).await;
            let reads = match (&entries, wanted) {
                (Ok(entries), Some(wanted)) => guests(&client, &list, entries, &wanted).await,
                _ => Vec::new(),
            };
            (list, entries, reads)
        });
    }
    let mut ahead = Ahead::default();
    // A task that panicked leaves its list out: it is asked for again.
    while let Some(done) = tasks.join_next().await {
        let Ok((list, entries, reads)) = done else { continue };
        ahead.lists.insert(list, entries);
        ahead.reads.extend(reads.into_iter().map(|(fact, read)| (fact.vmid, (fact, read))));
    }
    ahead
}

async fn guests(
    client: &Client,
    (node, guest_type): &List,
    entries: &[GuestEntry],
    wanted: &Wanted,
) -> Vec<(GuestFact, Result<GuestRead, String>)> {
    let held = entries.iter().filter(|entry| wanted.holds(entry.vmid, &entry.tags));
    read_all(client, held.map(|entry| fact(entry.clone(), node, *guest_type)).collect(), &wanted.index).await
}

/// Reads these guests; what waits for a restart of those in the composition.
pub(crate) async fn read_all(
    client: &Client,
    facts: Vec<GuestFact>,
    index: &Index,
) -> Vec<(GuestFact, Result<GuestRead, String>)> {
    stream::iter(facts)
        .map(|fact| async move {
            let desired = index.vmids.contains_key(&fact.vmid);
            let read = guest_read(client, &fact, desired).await.map_err(|e| e.to_string());
            (fact, read)
        })
        .buffer_unordered(PARALLEL)
        .collect()
        .await
}

/// What a node's list says of a guest.
pub(crate) fn fact(entry: GuestEntry, node: &str, guest_type: GuestType) -> GuestFact {
    GuestFact {
        vmid: entry.vmid,
        guest_type,
        node: node.to_owned(),
        name: entry.name,
        power: crate::load::power(&entry.status),
        template: entry.template,
        lock: entry.lock,
        tags: entry.tags,
        ha: false,
    }
}
