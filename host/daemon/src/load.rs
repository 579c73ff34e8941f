//! Reads the live facts of one cluster: its inventory and the guest lists of its nodes, and then only what
//! the composition needs.

use crate::ahead::{self, Ahead, List, PARALLEL, Wanted};
use futures::stream::{self, StreamExt};
use proxops_model::kind::{
    Context, GuestType, Identity, LiveGuest, LivePower, Placement, Presence, StorageInfo, Target,
};
use proxops_model::text;
use proxops_plan::{ArtifactFact, GuestFact, GuestRead, Index, NodeState, World};
use proxops_pve::{Class, Client, GuestRow, PveError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Loads the world. `Err` = the inventory could not be read: the cycle of this cluster ends.
pub async fn load(client: &Client, index: &Arc<Index>, owner_tag: &str) -> Result<World, PveError> {
    let wanted = Wanted { index: Arc::clone(index), owner_tag: owner_tag.to_owned() };
    let (mut world, reads) = look(client, index, owner_tag, Some(&wanted)).await?;
    guest_reads(client, &wanted, reads, &mut world).await;
    artifacts(client, index, &mut world).await;
    let candidates = world
        .guests
        .values()
        .any(|g| text::has_tag(&g.tags, owner_tag) && !index.vmids.contains_key(&g.vmid));
    if candidates {
        let (ha, replication) = futures::join!(client.ha_resources(), client.replication());
        world.ha =
            Some(ha.map(|list| list.iter().filter_map(|r| r.guest).collect()).map_err(|e| e.to_string()));
        world.replicated = Some(
            replication.map(|list| list.iter().filter_map(|r| r.guest).collect()).map_err(|e| e.to_string()),
        );
    }
    Ok(world)
}

/// What there is, without looking into any of it: version, tag style, nodes, storages, and every guest with its
/// power. Of the index only name and allowlist count. `Err` = the inventory could not be read.
pub async fn survey(client: &Client, index: &Index, owner_tag: &str) -> Result<World, PveError> {
    Ok(look(client, index, owner_tag, None).await?.0)
}

type Reads = BTreeMap<u32, (GuestFact, Result<GuestRead, String>)>;

/// The survey, and the wanted guests as they were when nodes' lists named them.
async fn look(
    client: &Client,
    index: &Index,
    owner_tag: &str,
    wanted: Option<&Wanted>,
) -> Result<(World, Reads), PveError> {
    let (version, tag_style, inventory, ahead) = futures::join!(
        client.version(),
        client.options(),
        client.inventory(),
        ahead::read(client, index, wanted)
    );
    let inventory = inventory?;
    let tag_style = tag_style?;
    let mut world = World {
        context: Context {
            cluster: index.cluster.clone(),
            pve_version: version?.version,
            owner_tag: owner_tag.to_owned(),
            root: client.is_root(),
            tag_style,
            ..Context::default()
        },
        ..World::default()
    };
    world.context.storages = storages(&inventory.storages);
    for node in &inventory.nodes {
        let state =
            if node.online() { NodeState::Online } else { NodeState::Unreachable(node.status.clone()) };
        world.nodes.insert(node.name.clone(), state);
    }
    let Ahead { lists, reads } = ahead;
    node_lists(client, index, &inventory.guests, lists, &mut world).await;
    Ok((world, reads))
}

fn storages(rows: &[proxops_pve::StorageRow]) -> Vec<StorageInfo> {
    let mut by_name: BTreeMap<&str, StorageInfo> = BTreeMap::new();
    for row in rows {
        let entry = by_name.entry(&row.name).or_insert_with(|| StorageInfo {
            name: row.name.clone(),
            storage_type: row.storage_type.clone(),
            shared: row.shared,
            content: row.content.clone(),
            nodes: Vec::new(),
        });
        entry.nodes.push(row.node.clone());
    }
    by_name.into_values().collect()
}

/// Power, lock and template mark come from each node's own lists: the inventory lags (fact C2).
async fn node_lists(
    client: &Client,
    index: &Index,
    rows: &[GuestRow],
    mut lists: BTreeMap<List, Result<Vec<proxops_pve::GuestEntry>, PveError>>,
    world: &mut World,
) {
    let due: BTreeSet<List> = world
        .nodes
        .iter()
        .filter(|(name, state)| index.allows(name) && **state == NodeState::Online)
        .flat_map(|(name, _)| ahead::lists_of(name))
        .collect();
    lists.retain(|list, _| due.contains(list));
    let missing = due.into_iter().filter(|list| !lists.contains_key(list)).collect();
    lists.extend(ahead::lists_and_guests(client, missing, None).await.lists);
    let mut listed = BTreeMap::new();
    for ((node, guest_type), list) in lists {
        match list {
            Ok(entries) => {
                for entry in entries {
                    listed.insert((node.clone(), guest_type, entry.vmid), entry);
                }
            }
            Err(error) => {
                world.nodes.insert(node, NodeState::Unreachable(format!("not readable: {error}")));
            }
        }
    }
    for row in rows {
        let mut fact = GuestFact {
            vmid: row.vmid,
            guest_type: row.guest_type,
            node: row.node.clone(),
            name: row.name.clone(),
            power: LivePower::Unknown,
            template: row.template,
            lock: row.lock.clone(),
            tags: row.tags.clone(),
            ha: row.ha_state.is_some(),
        };
        if let Some(entry) = listed.remove(&(row.node.clone(), row.guest_type, row.vmid)) {
            fact.power = power(&entry.status);
            fact.template = entry.template;
            fact.name = entry.name.or(fact.name);
            fact.lock = entry.lock.or(fact.lock);
        }
        world.guests.insert(row.vmid, fact);
    }
    // What only a node's list shows was made while the inventory was read.
    for ((node, guest_type, vmid), entry) in listed {
        world.guests.entry(vmid).or_insert_with(|| ahead::fact(entry, &node, guest_type));
    }
    let trouble = world.nodes.iter().find_map(|(name, state)| match state {
        NodeState::Unreachable(why) if index.allows(name) => Some(format!("node {name} is {why}")),
        _ => None,
    });
    world.partial = trouble;
}

pub(crate) fn power(status: &str) -> LivePower {
    match status {
        "running" => LivePower::Running,
        "stopped" => LivePower::Stopped,
        "paused" => LivePower::Paused,
        _ => LivePower::Unknown,
    }
}

/// Configurations of desired and owned guests; what waits for a restart only where one runs. Read again are those
/// that the inventory knows elsewhere than where they were read.
async fn guest_reads(client: &Client, wanted: &Wanted, mut reads: Reads, world: &mut World) {
    let World { guests, nodes, reads: known, .. } = world;
    let allowed =
        |f: &GuestFact| wanted.index.allows(&f.node) && nodes.get(&f.node) == Some(&NodeState::Online);
    let mut left = Vec::new();
    for fact in guests.values().filter(|f| allowed(f) && wanted.holds(f.vmid, &f.tags)) {
        let as_read =
            |f: &GuestFact| f.node == fact.node && f.guest_type == fact.guest_type && f.power == fact.power;
        match reads.remove(&fact.vmid) {
            Some((then, read)) if as_read(&then) => {
                known.insert(fact.vmid, read);
            }
            _ => left.push(fact.clone()),
        }
    }
    let read = ahead::read_all(client, left, &wanted.index).await;
    known.extend(read.into_iter().map(|(fact, read)| (fact.vmid, read)));
}

/// One guest's configuration, its power, and with `pending` what waits for a restart.
pub async fn guest_read(client: &Client, fact: &GuestFact, pending: bool) -> Result<GuestRead, PveError> {
    let (node, guest_type, vmid) = (fact.node.as_str(), fact.guest_type, fact.vmid);
    let config = client.guest_config(node, guest_type, vmid);
    let runs = fact.power != LivePower::Stopped;
    let waiting = async {
        if pending && runs { client.guest_pending(node, guest_type, vmid).await } else { Ok(Vec::new()) }
    };
    let power = async {
        if fact.power == LivePower::Unknown {
            client.guest_status(node, guest_type, vmid).await.map(|status| status.power())
        } else {
            Ok(fact.power)
        }
    };
    let (config, waiting, power) = futures::join!(config, waiting, power);
    let config = config?;
    // Without the privilege PVE leaves a container's variables out (fact L12).
    let left_out = guest_type == GuestType::Lxc && !config.values.contains_key("env");
    let readable =
        !left_out || client.may(&format!("/vms/{vmid}"), "VM.Config.Options").await.unwrap_or(false);
    let hidden = if readable { Vec::new() } else { vec!["env".to_owned()] };
    let mut values = config.values;
    for key in ["digest", "lock"] {
        values.remove(key);
    }
    Ok(GuestRead {
        live: Arc::new(LiveGuest {
            node: fact.node.clone(),
            vmid,
            name: config.name,
            power: power?,
            template: config.template,
            lock: config.lock,
            values,
            secrets_present: config.secrets_present,
            hidden,
            pending: waiting?,
            fresh_clone_of: None,
        }),
        digest: config.digest,
    })
}

/// Where a guest is now. `Ok(None)` = the cluster has no such vmid.
pub async fn locate_guest(client: &Client, vmid: u32) -> Result<Option<GuestFact>, PveError> {
    let inventory = client.inventory().await?;
    let row = inventory.guests.into_iter().find(|g| g.vmid == vmid);
    Ok(row.map(|row| GuestFact {
        vmid,
        guest_type: row.guest_type,
        node: row.node,
        name: row.name,
        power: LivePower::Unknown,
        template: row.template,
        lock: row.lock,
        tags: row.tags,
        ha: row.ha_state.is_some(),
    }))
}

/// The same, and what it looks like.
pub(crate) async fn find_guest(
    client: &Client,
    vmid: u32,
) -> Result<Option<(GuestFact, GuestRead)>, PveError> {
    let Some(fact) = locate_guest(client, vmid).await? else { return Ok(None) };
    match guest_read(client, &fact, true).await {
        Ok(read) => {
            let power = read.live.power;
            Ok(Some((GuestFact { power, template: read.live.template, ..fact }, read)))
        }
        Err(error) if error.class == Class::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// One listing per (node, storage, content) that a desired artifact needs.
async fn artifacts(client: &Client, index: &Index, world: &mut World) {
    let mut wanted: BTreeMap<(String, String, String), BTreeSet<Placement>> = BTreeMap::new();
    for r in index.resources.values() {
        let (Identity::Artifact(placements), Target::Artifact { content, .. }) =
            (&r.validated.identity, &r.target)
        else {
            continue;
        };
        for p in placements {
            let carries = world.storage_on(&p.storage, &p.node).is_some_and(|s| s.content.contains(content));
            if world.node_trouble(&p.node).is_none() && index.allows(&p.node) && carries {
                wanted
                    .entry((p.node.clone(), p.storage.clone(), content.clone()))
                    .or_default()
                    .insert(p.clone());
            }
        }
    }
    let lists: Vec<_> = stream::iter(wanted)
        .map(|((node, storage, content), placements)| async move {
            let list = client.storage_content(&node, &storage, &content).await;
            (storage, content, placements, list)
        })
        .buffered(PARALLEL)
        .collect()
        .await;
    for (storage, content, placements, list) in lists {
        for p in placements {
            let volid = format!("{storage}:{content}/{}", p.filename);
            let fact = match &list {
                Ok(volumes) => match volumes.iter().find(|v| v.volid == volid) {
                    Some(volume) => {
                        ArtifactFact { presence: Presence::Present, size: volume.size, why: None }
                    }
                    None => ArtifactFact { presence: Presence::Absent, size: None, why: None },
                },
                Err(error) => ArtifactFact {
                    presence: Presence::Unknown,
                    size: None,
                    why: Some(format!("storage {storage} of node {} can't be listed: {error}", p.node)),
                },
            };
            world.artifacts.insert((p, content.clone()), fact);
        }
    }
}
