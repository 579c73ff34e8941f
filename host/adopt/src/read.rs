//! Reads every guest and file that may be adopted. A guest that changes, moves or goes away meanwhile is read again
//! where it is now, or named.

use crate::report::Noted;
use crate::select::Wanted;
use crate::{Progress, target};
use futures::stream::{self, StreamExt as _};
use proxops_daemon::load::{self, guest_read};
use proxops_model::kind::{KindSet, Placement, PlacementState, Presence, Target};
use proxops_plan::{GuestFact, GuestRead, Index, NodeState, World};
use proxops_pve::{Class, Client, PveError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Sender;

/// Reads at once; the client has a bound of its own.
const PARALLEL: usize = 16;
/// Locks that say that the configuration is half made or about to go.
const IN_FLUX: [&str; 5] = ["create", "clone", "rollback", "destroyed", "migrate"];

/// A file on a storage with all its copies.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub content: String,
    pub storage: String,
    pub filename: String,
    /// Present copies, by node.
    pub copies: Vec<PlacementState>,
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// By vmid.
    pub guests: BTreeMap<u32, GuestRead>,
    /// By content, storage and name.
    pub files: Vec<File>,
    /// Objects that could not be read, and why.
    pub skipped: Vec<Noted>,
    /// Objects that changed while they were read, and what was made of it.
    pub noted: Vec<Noted>,
}

/// Lists the storages that may hold wanted files.
pub(crate) async fn files(
    client: &Client,
    world: &World,
    index: &Index,
    wanted: &Wanted,
    kinds: &dyn KindSet,
    readings: &mut Readings,
) {
    let listings = listings(world, index, wanted, kinds, &mut readings.skipped);
    let listed = stream::iter(listings)
        .map(|listing| async move {
            let outcome = list(client, &listing).await;
            (listing, outcome)
        })
        .buffer_unordered(PARALLEL)
        .collect::<Vec<_>>()
        .await;
    gather(listed, readings);
}

/// Reads guests, and hands each on as soon as it is there.
pub(crate) async fn guests(
    client: &Client,
    world: &World,
    index: &Index,
    facts: Vec<&GuestFact>,
    hand_on: Sender<GuestRead>,
    progress: &dyn Progress,
    readings: &mut Readings,
) {
    let mut reads = stream::iter(facts)
        .map(|fact| async move { (fact, one(client, fact, world, index).await) })
        .buffer_unordered(PARALLEL);
    while let Some((fact, outcome)) = reads.next().await {
        if let Outcome::Read(read) = &outcome {
            // Nobody listens any more: then it is drafted later.
            let _ = hand_on.send(GuestRead::clone(read));
        }
        readings.take(fact, outcome);
        progress.read();
    }
}

/// Looks for guests that moved or went away since they were read.
pub(crate) async fn strays(
    client: &Client,
    world: &World,
    index: &Index,
    readings: &mut Readings,
) -> Result<(), PveError> {
    let again = client.inventory().await?;
    let places: BTreeMap<u32, &str> = again.guests.iter().map(|g| (g.vmid, g.node.as_str())).collect();
    let strayed: Vec<&GuestFact> = readings
        .guests
        .iter()
        .filter(|(vmid, read)| places.get(vmid) != Some(&read.live.node.as_str()))
        .filter_map(|(vmid, _)| world.guests.get(vmid))
        .collect();
    for fact in strayed {
        readings.guests.remove(&fact.vmid);
        let outcome = look_again(client, fact, index, None).await;
        readings.take(fact, outcome);
    }
    Ok(())
}

/// What came of one guest.
enum Outcome {
    Read(Box<GuestRead>),
    /// Read, and something is to be said about it.
    Noted(Box<GuestRead>, String),
    Skipped(String),
}

impl Readings {
    fn take(&mut self, fact: &GuestFact, outcome: Outcome) {
        match outcome {
            Outcome::Read(read) => {
                if let Some(why) = changed(fact, &read) {
                    self.noted.push(about(fact, &read.live.node, why));
                }
                self.guests.insert(fact.vmid, *read);
            }
            Outcome::Noted(read, why) => {
                self.noted.push(about(fact, &read.live.node, why));
                self.guests.insert(fact.vmid, *read);
            }
            Outcome::Skipped(why) => self.skipped.push(about(fact, &fact.node, why)),
        }
    }
}

fn about(fact: &GuestFact, node: &str, why: String) -> Noted {
    Noted {
        kind: target::guest_word(fact.guest_type, fact.template).to_owned(),
        name: fact.name.clone().unwrap_or_default(),
        node: Some(node.to_owned()),
        vmid: Some(fact.vmid),
        file: None,
        why,
    }
}

/// What differs between the node's list and the configuration, which was read later.
fn changed(fact: &GuestFact, read: &GuestRead) -> Option<String> {
    let (was, is) = (fact.name.as_deref().unwrap_or_default(), read.live.name.as_deref().unwrap_or_default());
    // A guest without a name is listed under one that PVE makes up.
    if !is.is_empty() && was != is {
        return Some(format!("it was renamed from {was} to {is} while adopt read; the new name is used"));
    }
    if fact.template != read.live.template {
        return Some("it became a template while adopt read, and is adopted as one".to_owned());
    }
    None
}

async fn one(client: &Client, fact: &GuestFact, world: &World, index: &Index) -> Outcome {
    if world.nodes.get(&fact.node) != Some(&NodeState::Online) {
        let why = world.node_trouble(&fact.node).unwrap_or_else(|| format!("node {} is unknown", fact.node));
        return Outcome::Skipped(format!("{why}; adopt again when it answers"));
    }
    match guest_read(client, fact, false).await {
        Ok(read) => settled(read, None),
        // Gone, or gone elsewhere. Any other error would be the same again.
        Err(error) if matches!(error.class, Class::NotFound | Class::NodeUnreachable) => {
            look_again(client, fact, index, Some(error)).await
        }
        Err(error) => Outcome::Skipped(format!("it can't be read: {error}")),
    }
}

/// The guest where it is now: the list that named its node is a moment old.
async fn look_again(client: &Client, fact: &GuestFact, index: &Index, error: Option<PveError>) -> Outcome {
    let gone = || Outcome::Skipped("it was deleted while adopt read".to_owned());
    let unread = |error: PveError| Outcome::Skipped(format!("it can't be read: {error}"));
    let now = match load::locate_guest(client, fact.vmid).await {
        Ok(Some(now)) => now,
        Ok(None) => return gone(),
        Err(again) => return unread(error.unwrap_or(again)),
    };
    if !index.allows(&now.node) {
        return Outcome::Skipped(format!(
            "it moved to node {} while adopt read, which is outside the cluster's node allowlist",
            now.node
        ));
    }
    if now.guest_type != fact.guest_type {
        return Outcome::Skipped("its vmid was given to a guest of another type meanwhile".to_owned());
    }
    let moved = now.node != fact.node;
    let note = moved.then(|| format!("it moved from node {} to {} while adopt read", fact.node, now.node));
    match guest_read(client, &now, false).await {
        Ok(read) => settled(read, note),
        Err(again) if again.class == Class::NotFound => gone(),
        Err(again) => unread(again),
    }
}

fn settled(read: GuestRead, note: Option<String>) -> Outcome {
    match (read.live.lock.as_deref().filter(|lock| IN_FLUX.contains(lock)), note) {
        (Some(lock), _) => Outcome::Skipped(format!(
            "it is locked ({lock}) and not what it will be; adopt again when the lock is gone"
        )),
        (None, Some(note)) => Outcome::Noted(Box::new(read), note),
        (None, None) => Outcome::Read(Box::new(read)),
    }
}

/// One listing to make.
struct Listing {
    storage: String,
    content: String,
    /// On the first of these that answers; a storage that nodes do not share has one listing a node.
    nodes: Vec<String>,
}

fn listings(
    world: &World,
    index: &Index,
    wanted: &Wanted,
    kinds: &dyn KindSet,
    skipped: &mut Vec<Noted>,
) -> Vec<Listing> {
    let contents: BTreeSet<&str> = kinds
        .all()
        .into_iter()
        .filter(|kind| wanted.kinds.contains(&kind.info().kind))
        .filter_map(|kind| match &kind.info().target {
            Target::Artifact { content, .. } => Some(content.as_str()),
            _ => None,
        })
        .collect();
    let mut out = Vec::new();
    for storage in &world.context.storages {
        let allowed = storage.nodes.iter().filter(|node| index.allows(node));
        let (online, silent): (Vec<&String>, Vec<&String>) =
            allowed.partition(|node| world.nodes.get(*node) == Some(&NodeState::Online));
        for content in contents.iter().filter(|c| storage.content.iter().any(|have| have == *c)) {
            let listing = |nodes: Vec<String>| Listing {
                storage: storage.name.clone(),
                content: (*content).to_owned(),
                nodes,
            };
            if storage.shared {
                let nodes: Vec<String> = online.iter().map(|node| (*node).clone()).collect();
                out.extend((!nodes.is_empty()).then(|| listing(nodes)));
            } else {
                out.extend(online.iter().map(|node| listing(vec![(*node).clone()])));
            }
            let lost = if storage.shared && !online.is_empty() { &[][..] } else { &silent[..] };
            skipped.extend(lost.iter().map(|node| Noted {
                kind: target::content_word(content).to_owned(),
                name: "*".to_owned(),
                node: Some((*node).clone()),
                vmid: None,
                file: None,
                why: format!(
                    "files on storage {} are not known: {}",
                    storage.name,
                    world.node_trouble(node).unwrap_or_default()
                ),
            }));
        }
    }
    out
}

async fn list(client: &Client, listing: &Listing) -> Result<Vec<PlacementState>, PveError> {
    let mut last = None;
    for node in &listing.nodes {
        match client.storage_content(node, &listing.storage, &listing.content).await {
            Ok(volumes) => {
                let prefix = format!("{}:{}/", listing.storage, listing.content);
                let copy = |volume: proxops_pve::Volume| {
                    let filename = volume.volid.strip_prefix(&prefix)?.to_owned();
                    let at = Placement { node: node.clone(), storage: listing.storage.clone(), filename };
                    Some(PlacementState { at, presence: Presence::Present, size: volume.size })
                };
                return Ok(volumes.into_iter().filter_map(copy).collect());
            }
            Err(error) => last = Some(error),
        }
    }
    last.map_or_else(|| Ok(Vec::new()), Err)
}

fn gather(listed: Vec<(Listing, Result<Vec<PlacementState>, PveError>)>, readings: &mut Readings) {
    let mut files: BTreeMap<(String, String, String), Vec<PlacementState>> = BTreeMap::new();
    for (listing, outcome) in listed {
        match outcome {
            Ok(copies) => {
                for copy in copies {
                    let key = (listing.content.clone(), copy.at.storage.clone(), copy.at.filename.clone());
                    files.entry(key).or_default().push(copy);
                }
            }
            Err(error) => readings.skipped.push(Noted {
                kind: target::content_word(&listing.content).to_owned(),
                name: "*".to_owned(),
                node: listing.nodes.first().cloned(),
                vmid: None,
                file: None,
                why: format!("files on storage {} can't be listed: {error}", listing.storage),
            }),
        }
    }
    readings.files = files
        .into_iter()
        .map(|((content, storage, filename), mut copies)| {
            copies.sort_by(|a, b| a.at.cmp(&b.at));
            File { content, storage, filename, copies }
        })
        .collect();
}
