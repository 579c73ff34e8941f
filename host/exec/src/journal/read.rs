//! What can be read back: leftovers of earlier processes, what guests are owed, the audit trail.

use super::{Journal, JournalError, StepState};
use proxops_model::kind::GuestType;
use proxops_model::{ResourceId, Step};
use proxops_pve::Upid;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, params};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// An operation that an earlier process began and did not finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// For [`Journal::resolve`].
    pub id: i64,
    /// Whose resource.
    pub cluster: String,
    /// Kind and name.
    pub resource: ResourceId,
    /// What it did.
    pub verb: String,
    /// Where.
    pub node: Option<String>,
    /// Guests only.
    pub guest: Option<(GuestType, u32)>,
    /// When it began.
    pub started: String,
    /// Set while the guest may still carry its template's identity.
    pub fresh_clone_of: Option<ResourceId>,
    /// The seed image must be rebuilt.
    pub rebuild_seed_owed: bool,
    /// Tasks that are not known to have ended.
    pub in_flight: Vec<InFlight>,
    /// Steps whose request may have been sent, with no answer known.
    pub unanswered: Vec<(u32, Step)>,
    /// Steps that were never begun.
    pub left: Vec<Step>,
}

/// A task of a leftover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlight {
    /// Number of its step.
    pub seq: u32,
    /// Its id.
    pub upid: Upid,
}

/// What a guest is still owed, by whatever operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owed {
    /// The resource that was worked on.
    pub resource: ResourceId,
    /// Where it was then.
    pub node: String,
    /// VM or container.
    pub guest_type: GuestType,
    /// Its template, while the guest may still carry the template's identity.
    pub fresh_clone_of: Option<ResourceId>,
    /// The seed image must be rebuilt.
    pub rebuild_seed: bool,
    /// Slots of disks that were made, or may have been, and were to grow afterwards.
    pub grow: Vec<String>,
    /// Its making was begun and did not end well.
    pub making: bool,
}

/// Which operations of the audit trail; an empty filter is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryFilter {
    /// Of this cluster.
    pub cluster: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Of this name.
    pub name: Option<String>,
    /// On this guest.
    pub vmid: Option<u32>,
}

/// One operation of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HistoryEntry {
    /// Rises with time.
    pub id: i64,
    /// Whose resource.
    pub cluster: String,
    /// Commit that asked for it.
    pub commit: Option<String>,
    /// Who ran it.
    pub actor: Option<String>,
    /// The action's id in its plan.
    pub action: String,
    /// What it did.
    pub verb: String,
    /// Kind of the resource.
    pub kind: String,
    /// Name of the resource.
    pub name: String,
    /// Where.
    pub node: Option<String>,
    /// Guests only.
    pub vmid: Option<u32>,
    /// RFC 3339.
    pub started: String,
    /// RFC 3339; `None` = still running, or left behind.
    pub finished: Option<String>,
    /// ok, failed, deferred or interrupted.
    pub result: Option<String>,
    /// Why it did not end well.
    pub error: Option<String>,
    /// In order.
    pub steps: Vec<HistoryStep>,
}

/// One step of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HistoryStep {
    /// Secrets are named, never shown.
    pub step: Step,
    /// How far it came.
    pub state: StepState,
    /// The task that it started last.
    pub upid: Option<String>,
    /// What PVE said.
    pub error: Option<String>,
}

impl Journal {
    /// What earlier processes began on a cluster and did not finish, oldest first. Hold the cluster's lock:
    /// else these may be the work of a process that lives.
    pub fn unfinished(&self, cluster: &str) -> Result<Vec<Leftover>, JournalError> {
        let owed = self.owed(cluster)?;
        self.read(|db| {
            let mut query = db.prepare(
                "select id, kind, name, verb, node, vmid, guest_type, started from operations
                 where cluster = ?1 and finished is null order by id",
            )?;
            let mut found = query
                .query_map([cluster], |row| {
                    let guest = guest(row, 6, 5)?;
                    let debt = guest.and_then(|(_, vmid)| owed.get(&vmid));
                    Ok(Leftover {
                        id: row.get(0)?,
                        cluster: cluster.to_owned(),
                        resource: ResourceId::new(row.get::<_, String>(1)?, row.get::<_, String>(2)?),
                        verb: row.get(3)?,
                        node: row.get(4)?,
                        guest,
                        started: row.get(7)?,
                        fresh_clone_of: debt.and_then(|debt| debt.fresh_clone_of.clone()),
                        rebuild_seed_owed: debt.is_some_and(|debt| debt.rebuild_seed),
                        in_flight: Vec::new(),
                        unanswered: Vec::new(),
                        left: Vec::new(),
                    })
                })?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            for leftover in &mut found {
                for (seq, step) in steps(db, leftover.id)? {
                    // an id that can't be read is as good as none
                    let upid = step.upid.as_deref().and_then(|text| Upid::parse(text).ok());
                    match (step.state, upid) {
                        (StepState::Planned, _) => leftover.left.push(step.step),
                        (StepState::Sent, Some(upid)) => leftover.in_flight.push(InFlight { seq, upid }),
                        (StepState::Intent | StepState::Sent, _) => {
                            leftover.unanswered.push((seq, step.step))
                        }
                        (StepState::Done | StepState::Failed | StepState::Dropped, _) => {}
                    }
                }
            }
            Ok(found)
        })
    }

    /// What the guests of a cluster are owed, by vmid.
    pub fn owed(&self, cluster: &str) -> Result<BTreeMap<u32, Owed>, JournalError> {
        self.read(|db| {
            let mut query = db.prepare(
                "select vmid, guest_type, kind, name, node, clone_of_kind, clone_of_name, seed, grow, making from owed
                 where cluster = ?1",
            )?;
            let rows = query.query_map([cluster], |row| {
                let clone_of = (row.get::<_, Option<String>>(5)?, row.get::<_, Option<String>>(6)?);
                let owed = Owed {
                    resource: ResourceId::new(row.get::<_, String>(2)?, row.get::<_, String>(3)?),
                    node: row.get(4)?,
                    guest_type: guest_type(row, 1)?,
                    fresh_clone_of: match clone_of {
                        (Some(kind), Some(name)) => Some(ResourceId::new(kind, name)),
                        _ => None,
                    },
                    rebuild_seed: row.get(7)?,
                    grow: row.get::<_, String>(8)?.split_whitespace().map(str::to_owned).collect(),
                    making: row.get(9)?,
                };
                Ok((row.get(0)?, owed))
            })?;
            rows.collect()
        })
    }

    /// Guests that were stopped for a change which then failed, and for which nothing ended well since.
    pub fn stopped_in_vain(&self, cluster: &str) -> Result<BTreeSet<u32>, JournalError> {
        self.read(|db| {
            let mut query = db.prepare(
                "select o.vmid, s.step from operations o join steps s on s.operation = o.id
                 where o.cluster = ?1 and o.vmid is not null and o.verb = 'update' and o.result = 'failed'
                   and s.state = 'done'
                   and not exists (select 1 from operations later where later.cluster = o.cluster
                     and later.vmid = o.vmid and later.id > o.id and later.result = 'ok')",
            )?;
            let rows = query
                .query_map([cluster], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?)))?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let stops = |step: &str| matches!(serde_json::from_str(step), Ok(Step::Stop { .. }));
            Ok(rows.into_iter().filter(|(_, step)| stops(step)).map(|(vmid, _)| vmid).collect())
        })
    }

    /// The audit trail, newest first, at most `limit` operations.
    pub fn history(&self, filter: &HistoryFilter, limit: u32) -> Result<Vec<HistoryEntry>, JournalError> {
        self.read(|db| {
            let mut query = db.prepare(&format!(
                "select {ENTRY} from operations
                 where (?1 is null or cluster = ?1) and (?2 is null or kind = ?2) and (?3 is null or name = ?3)
                   and (?4 is null or vmid = ?4)
                 order by id desc limit ?5",
            ))?;
            let arguments = params![filter.cluster, filter.kind, filter.name, filter.vmid, limit];
            let mut entries = query.query_map(arguments, entry)?.collect::<rusqlite::Result<Vec<_>>>()?;
            for entry in &mut entries {
                entry.steps = steps(db, entry.id)?.into_iter().map(|(_, step)| step).collect();
            }
            Ok(entries)
        })
    }

    /// The last operation of every resource of a cluster, without its steps.
    pub fn latest(&self, cluster: &str) -> Result<Vec<HistoryEntry>, JournalError> {
        self.read(|db| {
            let mut query = db.prepare(&format!(
                "select {ENTRY} from operations
                 where id in (select max(id) from operations where cluster = ?1 group by kind, name, vmid)
                 order by id",
            ))?;
            query.query_map([cluster], entry)?.collect()
        })
    }
}

/// Columns of [`entry`].
const ENTRY: &str =
    "id, cluster, commit_id, action, verb, kind, name, node, vmid, started, finished, result, error, actor";

/// An operation without its steps.
fn entry(row: &Row<'_>) -> rusqlite::Result<HistoryEntry> {
    Ok(HistoryEntry {
        id: row.get(0)?,
        cluster: row.get(1)?,
        commit: row.get(2)?,
        action: row.get(3)?,
        verb: row.get(4)?,
        kind: row.get(5)?,
        name: row.get(6)?,
        node: row.get(7)?,
        vmid: row.get(8)?,
        started: row.get(9)?,
        finished: row.get(10)?,
        result: row.get(11)?,
        error: row.get(12)?,
        actor: row.get(13)?,
        steps: Vec::new(),
    })
}

fn steps(db: &Connection, operation: i64) -> rusqlite::Result<Vec<(u32, HistoryStep)>> {
    let mut query = db.prepare_cached(
        "select seq, step, state, upid, error from steps where operation = ?1 order by seq",
    )?;
    let rows = query.query_map([operation], |row| {
        let step = serde_json::from_str(&row.get::<_, String>(1)?)
            .map_err(|error| rusqlite::Error::FromSqlConversionFailure(1, Type::Text, Box::new(error)))?;
        let state = StepState::parse(&row.get::<_, String>(2)?).ok_or_else(|| strange(2, "state"))?;
        Ok((row.get(0)?, HistoryStep { step, state, upid: row.get(3)?, error: row.get(4)? }))
    })?;
    rows.collect()
}

fn guest(row: &Row<'_>, type_at: usize, vmid_at: usize) -> rusqlite::Result<Option<(GuestType, u32)>> {
    match row.get::<_, Option<u32>>(vmid_at)? {
        Some(vmid) if row.get::<_, Option<String>>(type_at)?.is_some() => {
            Ok(Some((guest_type(row, type_at)?, vmid)))
        }
        _ => Ok(None),
    }
}

fn guest_type(row: &Row<'_>, at: usize) -> rusqlite::Result<GuestType> {
    crate::params::guest_type(&row.get::<_, String>(at)?).ok_or_else(|| strange(at, "guest type"))
}

fn strange(column: usize, what: &str) -> rusqlite::Error {
    let text = format!("unknown {what}");
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, text.into())
}
