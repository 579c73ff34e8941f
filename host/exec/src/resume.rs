//! After a crash or a kill: wait for what still runs, close what an earlier process left open, and say
//! what planning must know.

use crate::env::Pauses;
use crate::journal::{KEPT, Leftover, Owed};
use crate::unknown::{is_in_the_making, task_hint};
use crate::{Cancel, Journal, JournalError, StepState, Timing, Wire};
use futures::future::join_all;
use proxops_model::ResourceId;
use proxops_pve::{Class, PveError, TaskEnd, TaskQuery, Upid};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// What planning must know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Guests that are owed something, by vmid: a clone's identity to clear, a seed image to rebuild.
    pub owed: BTreeMap<u32, Owed>,
    /// Guests on which an earlier request may still be at work, and why: defer them in this cycle.
    pub busy: BTreeMap<u32, String>,
    /// The same of files and objects.
    pub busy_resources: BTreeMap<ResourceId, String>,
    /// Guests that were stopped for a change which then failed: it is tried without a stop first.
    pub stopped_in_vain: BTreeSet<u32>,
    /// What was found, one line each, for the log.
    pub notes: Vec<String>,
}

/// Looks after the unfinished operations of a cluster. Call it before every cycle, with the cluster's lock
/// held. Waits for tasks that still run, each for what is left of its timeout; once `cancel` is thrown no
/// longer.
pub async fn resume(
    client: &dyn Wire,
    journal: &Journal,
    cluster: &str,
    timing: &Timing,
    cancel: &Cancel,
) -> Result<Resumed, JournalError> {
    let mut resumed = Resumed::default();
    let leftovers = journal.unfinished(cluster)?;
    let looks = leftovers.iter().map(|leftover| async move {
        tokio::select! {
            found = look_after(client, journal, leftover, timing) => found,
            () = cancel.cancelled() => Err("proxops was asked to stop".to_owned()),
        }
    });
    for (leftover, found) in leftovers.iter().zip(join_all(looks).await) {
        let what = format!("{} {} (begun {})", leftover.verb, leftover.resource, leftover.started);
        match found {
            Ok(note) => {
                journal.resolve(leftover.id, &note)?;
                resumed.notes.push(format!("an earlier run left {what} unfinished: {note}"));
            }
            Err(why) => {
                resumed.notes.push(format!("an earlier run left {what} unfinished and it stays so: {why}"));
                match leftover.guest {
                    Some((_, vmid)) => drop(resumed.busy.insert(vmid, why)),
                    None => drop(resumed.busy_resources.insert(leftover.resource.clone(), why)),
                }
            }
        }
    }
    journal.prune(cluster, KEPT)?;
    resumed.stopped_in_vain = journal.stopped_in_vain(cluster)?;
    for (vmid, owed) in journal.owed(cluster)? {
        if resumed.busy.contains_key(&vmid) {
            resumed.owed.insert(vmid, owed);
            continue;
        }
        if is_gone(client, vmid, &owed).await {
            journal.settle_all(cluster, vmid)?;
            let gone = format!("{} ({vmid}) is not there: nothing is owed to it any more", owed.resource);
            resumed.notes.push(gone);
            continue;
        }
        resumed.owed.insert(vmid, owed);
    }
    Ok(resumed)
}

/// Why it can't be told yet, and the node that could not be asked, if that is why.
struct Open {
    why: String,
    node: Option<String>,
}

impl Open {
    fn at(node: &str) -> impl Fn(PveError) -> Self {
        move |error| Self {
            why: error.to_string(),
            node: (error.class == Class::NodeUnreachable).then(|| node.to_owned()),
        }
    }
}

impl From<String> for Open {
    fn from(why: String) -> Self {
        Self { why, node: None }
    }
}

/// What was found, or why it can't be told yet.
async fn look_after(
    client: &dyn Wire,
    journal: &Journal,
    leftover: &Leftover,
    timing: &Timing,
) -> Result<String, String> {
    match ask_after(client, journal, leftover, timing).await {
        Ok(found) => Ok(found),
        Err(Open { why, node: Some(node) }) => outlived(client, leftover, &node).await.ok_or(why),
        Err(Open { why, node: None }) => Err(why),
    }
}

/// A node that can't be asked may never come back. Its tasks are over once it left the cluster, and once the
/// guest is on another node: nobody can take a guest over before its node is shut out.
async fn outlived(client: &dyn Wire, leftover: &Leftover, node: &str) -> Option<String> {
    let nodes = client.nodes().await.ok()?;
    if !nodes.iter().any(|known| known.name == node) {
        return Some(format!("node {node} is no member of the cluster any more"));
    }
    let offline = nodes.iter().any(|known| known.name == node && known.status == "offline");
    let (_, vmid) = leftover.guest.filter(|_| offline && leftover.node.as_deref() == Some(node))?;
    let (now, _) = client.locate(vmid).await.ok()??;
    (now != node).then(|| format!("node {node} is offline and the guest is on {now} now"))
}

async fn ask_after(
    client: &dyn Wire,
    journal: &Journal,
    leftover: &Leftover,
    timing: &Timing,
) -> Result<String, Open> {
    let deadline = Instant::now() + time_left(leftover, timing);
    let mut found = Vec::new();
    for task in &leftover.in_flight {
        // wait_task is patient with a node that is down: ask first whether it is
        let asked =
            client.node_tasks(&task.upid.node, &TaskQuery { running: true, ..TaskQuery::default() }).await;
        asked.map_err(Open::at(&task.upid.node))?;
        found.push(end_of(client, journal, leftover.id, task.seq, &task.upid, deadline).await?);
    }
    let guest = leftover.node.as_deref().zip(leftover.guest.map(|(_, vmid)| vmid));
    for (seq, step) in &leftover.unanswered {
        let Some(hint) = task_hint(step, guest) else { continue };
        let query = TaskQuery { vmid: hint.id.parse().ok(), running: true, ..TaskQuery::default() };
        let rows = client.node_tasks(&hint.node, &query).await.map_err(Open::at(&hint.node))?;
        let ours =
            rows.iter().filter(|row| row.id == hint.id && hint.types.contains(&row.task_type.as_str()));
        for upid in ours.filter_map(|row| Upid::parse(&row.upid).ok()) {
            found.push(end_of(client, journal, leftover.id, *seq, &upid, deadline).await?);
        }
    }
    if let Some(lock) = await_making(client, leftover, timing, deadline).await? {
        found.push(format!("the guest is locked ({lock}) and no task works on it"));
    }
    if found.is_empty() {
        found.push("no task of it runs".to_owned());
    }
    Ok(found.join("; "))
}

/// What is left of the task timeout, and always long enough for one look.
fn time_left(leftover: &Leftover, timing: &Timing) -> Duration {
    let age = leftover
        .started
        .parse::<jiff::Timestamp>()
        .ok()
        .and_then(|started| u64::try_from(jiff::Timestamp::now().as_second() - started.as_second()).ok())
        .map_or(Duration::ZERO, Duration::from_secs);
    timing.task.saturating_sub(age).max(timing.poll_max * 2)
}

async fn end_of(
    client: &dyn Wire,
    journal: &Journal,
    operation: i64,
    seq: u32,
    upid: &Upid,
    deadline: Instant,
) -> Result<String, String> {
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let (state, text) = match client.wait_task(upid, left).await {
        Ok(TaskEnd::Ok | TaskEnd::Warnings { .. }) => (StepState::Done, None),
        Ok(TaskEnd::Failed { text, .. }) => (StepState::Failed, Some(text)),
        Ok(TaskEnd::Timeout) => return Err(format!("task {upid} still runs")),
        Ok(TaskEnd::Lost { why }) => return Err(format!("what became of task {upid} is not known: {why}")),
        // its log is gone: the state of the guest tells, and planning reads that
        Err(error) if error.class == Class::UnknownOutcome => (StepState::Intent, Some(error.to_string())),
        Err(error) => return Err(error.to_string()),
    };
    if let Err(error) = journal.ended(operation, seq, state, text.as_deref()) {
        tracing::warn!(%error, "the journal misses an entry");
    }
    Ok(match text {
        None => format!("task {} ended well", upid.task_type),
        Some(text) => format!("task {} ended with: {text}", upid.task_type),
    })
}

/// Waits while the guest is being made. The lock of one that nobody works on any more.
async fn await_making(
    client: &dyn Wire,
    leftover: &Leftover,
    timing: &Timing,
    deadline: Instant,
) -> Result<Option<String>, Open> {
    let (Some((guest_type, vmid)), Some(node)) = (leftover.guest, leftover.node.as_deref()) else {
        return Ok(None);
    };
    let mut pauses = Pauses::new(timing);
    let mut idle = 0;
    loop {
        let lock = match client.guest_config(node, guest_type, vmid).await {
            Ok(config) => config.lock.filter(|lock| is_in_the_making(lock)),
            Err(error) if error.class == Class::NotFound => None,
            Err(error) => return Err(Open::at(node)(error)),
        };
        let Some(lock) = lock else { return Ok(None) };
        if !anybody_works(client, leftover).await.map_err(Open::at(node))? {
            idle += 1;
            if idle > timing.looks {
                return Ok(Some(lock));
            }
        } else if Instant::now() > deadline {
            return Err(format!("guest {vmid} is still being made (lock {lock})").into());
        }
        pauses.wait().await;
    }
}

async fn anybody_works(client: &dyn Wire, leftover: &Leftover) -> Result<bool, PveError> {
    let guest = leftover.node.as_deref().zip(leftover.guest.map(|(_, vmid)| vmid));
    for (_, step) in &leftover.unanswered {
        let Some(hint) = task_hint(step, guest) else { continue };
        let query = TaskQuery { vmid: hint.id.parse().ok(), running: true, ..TaskQuery::default() };
        let rows = client.node_tasks(&hint.node, &query).await?;
        if rows.iter().any(|row| row.id == hint.id && hint.types.contains(&row.task_type.as_str())) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a guest that is owed something is certainly nowhere in the cluster.
async fn is_gone(client: &dyn Wire, vmid: u32, owed: &Owed) -> bool {
    let config = client.guest_config(&owed.node, owed.guest_type, vmid).await;
    config.is_err_and(|error| error.class == Class::NotFound) && matches!(client.locate(vmid).await, Ok(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time left for a task of an operation that began so many seconds ago.
    fn left(seconds_ago: i64) -> Duration {
        let started = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() - seconds_ago).unwrap();
        let leftover = Leftover {
            id: 1,
            cluster: "lab".into(),
            resource: proxops_model::ResourceId::new("VM", "web"),
            verb: "create".into(),
            node: None,
            guest: None,
            started: started.to_string(),
            fresh_clone_of: None,
            rebuild_seed_owed: false,
            in_flight: Vec::new(),
            unanswered: Vec::new(),
            left: Vec::new(),
        };
        time_left(&leftover, &Timing::default())
    }

    #[test]
    fn a_clock_that_jumped_neither_waits_for_ever_nor_not_at_all() {
        let whole = Timing::default().task;
        // set back after the operation began: its start lies in the future
        assert_eq!(left(-400 * 24 * 3600), whole);
        // set forward: everything looks old, and one look is still made
        assert_eq!(left(400 * 24 * 3600), Timing::default().poll_max * 2);
        assert!(left(60) < whole && left(60) > whole - Duration::from_secs(70));
    }
}
