//! What an execution writes down.

use super::{Journal, JournalError, StepState, now};
use proxops_model::kind::GuestType;
use proxops_model::{Outcome, ResourceId, Step};
use rusqlite::{OptionalExtension as _, Transaction, params};

/// What is known when an operation begins.
pub(crate) struct OperationStart<'a> {
    pub cluster: &'a str,
    pub commit: Option<&'a str>,
    pub actor: Option<&'a str>,
    pub action: &'a str,
    pub verb: &'a str,
    pub resource: &'a ResourceId,
    pub node: Option<&'a str>,
    pub guest: Option<(GuestType, u32)>,
}

/// What a guest will be owed once a request is out.
#[derive(Debug, Clone)]
pub(crate) struct Debt {
    pub cluster: String,
    pub vmid: u32,
    pub resource: ResourceId,
    pub node: String,
    pub guest_type: GuestType,
    pub clone_of: Option<ResourceId>,
    pub seed: bool,
    /// Slots of disks that are made at one size and grown to another.
    pub grow: Vec<String>,
    /// The request makes the guest.
    pub making: bool,
}

impl Journal {
    /// A new operation with its steps, numbered from 0.
    pub(crate) fn begin(&self, start: &OperationStart<'_>, steps: &[Step]) -> Result<i64, JournalError> {
        self.write(false, |tx| {
            tx.execute(
                "insert into operations (cluster, commit_id, actor, action, verb, kind, name, node, vmid, guest_type, started)
                 values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                params![
                    start.cluster,
                    start.commit,
                    start.actor,
                    start.action,
                    start.verb,
                    start.resource.kind,
                    start.resource.name,
                    start.node,
                    start.guest.map(|(_, vmid)| vmid),
                    start.guest.map(|(guest_type, _)| guest_type.as_str()),
                    now()
                ],
            )?;
            let operation = tx.last_insert_rowid();
            insert_steps(tx, operation, 0, steps)?;
            Ok(operation)
        })
    }

    /// Replaces the steps that were not begun by others, numbered from `first`.
    pub(crate) fn replace(&self, operation: i64, first: u32, steps: &[Step]) -> Result<(), JournalError> {
        self.write(false, |tx| {
            drop_planned(tx, operation)?;
            insert_steps(tx, operation, first, steps)
        })
    }

    /// Before a request leaves. On the disk when this returns.
    pub(crate) fn intent(&self, operation: i64, seq: u32, debt: Option<&Debt>) -> Result<(), JournalError> {
        self.write(true, |tx| {
            set_state(tx, operation, seq, StepState::Intent)?;
            debt.map_or(Ok(()), |debt| insert_debt(tx, debt))
        })
    }

    /// PVE answered with a task.
    pub(crate) fn sent(&self, operation: i64, seq: u32, upid: &str) -> Result<(), JournalError> {
        self.write(false, |tx| {
            tx.execute(
                "update steps set state = 'sent', upid = ?3, changed = ?4 where operation = ?1 and seq = ?2",
                params![operation, seq, upid, now()],
            )?;
            Ok(())
        })
    }

    /// A step ended.
    pub(crate) fn ended(
        &self,
        operation: i64,
        seq: u32,
        state: StepState,
        error: Option<&str>,
    ) -> Result<(), JournalError> {
        self.write(false, |tx| {
            tx.execute(
                "update steps set state = ?3, error = ?4, changed = ?5 where operation = ?1 and seq = ?2",
                params![operation, seq, state.as_str(), error, now()],
            )?;
            Ok(())
        })
    }

    /// An operation ended; what was not begun is dropped.
    pub(crate) fn finish(
        &self,
        operation: i64,
        result: Outcome,
        error: Option<&str>,
    ) -> Result<(), JournalError> {
        let result = match result {
            Outcome::Ok => "ok",
            Outcome::Failed => "failed",
            Outcome::Deferred => "deferred",
            Outcome::NotStarted => "not-started",
        };
        self.close(operation, result, error)
    }

    /// Closes what an earlier process left open, for the audit trail: its `note` says what was found.
    /// What guests are owed stays.
    pub fn resolve(&self, operation: i64, note: &str) -> Result<(), JournalError> {
        self.close(operation, "interrupted", Some(note))
    }

    fn close(&self, operation: i64, result: &str, error: Option<&str>) -> Result<(), JournalError> {
        self.write(false, |tx| {
            drop_planned(tx, operation)?;
            tx.execute(
                "update operations set finished = ?2, result = ?3, error = ?4 where id = ?1",
                params![operation, now(), result, error],
            )?;
            Ok(())
        })
    }

    /// The clone of this vmid is complete: nothing of its template's identity is left.
    pub fn settle_clone(&self, cluster: &str, vmid: u32) -> Result<(), JournalError> {
        self.settle(cluster, vmid, "update owed set clone_of_kind = null, clone_of_name = null")
    }

    /// The seed image of this vmid was rebuilt.
    pub fn settle_seed(&self, cluster: &str, vmid: u32) -> Result<(), JournalError> {
        self.settle(cluster, vmid, "update owed set seed = 0")
    }

    /// The disks of this vmid have the size that they were to grow to, or were never made.
    pub fn settle_growth(&self, cluster: &str, vmid: u32) -> Result<(), JournalError> {
        self.settle(cluster, vmid, "update owed set grow = ''")
    }

    /// The action that made this vmid ended well, or there is nothing left of it to do.
    pub fn settle_making(&self, cluster: &str, vmid: u32) -> Result<(), JournalError> {
        self.settle(cluster, vmid, "update owed set making = 0")
    }

    /// The guest is gone, or the request that would have owed it something did nothing.
    pub fn settle_all(&self, cluster: &str, vmid: u32) -> Result<(), JournalError> {
        self.settle(
            cluster,
            vmid,
            "update owed set seed = 0, clone_of_kind = null, clone_of_name = null, grow = '', making = 0",
        )
    }

    /// Drops all but the newest `keep` finished operations of a cluster, with their steps. What is open and
    /// what guests are owed stays.
    pub fn prune(&self, cluster: &str, keep: u32) -> Result<(), JournalError> {
        let oldest: Option<i64> = self.read(|db| {
            db.query_row(
                "select id from operations where cluster = ?1 and finished is not null
                 order by id desc limit 1 offset ?2",
                params![cluster, keep],
                |row| row.get(0),
            )
            .optional()
        })?;
        let Some(oldest) = oldest else { return Ok(()) };
        self.write(false, |tx| {
            tx.execute(
                "delete from operations where cluster = ?1 and finished is not null and id <= ?2",
                params![cluster, oldest],
            )?;
            Ok(())
        })
    }

    fn settle(&self, cluster: &str, vmid: u32, change: &str) -> Result<(), JournalError> {
        self.write(false, |tx| {
            tx.execute(&format!("{change} where cluster = ?1 and vmid = ?2"), params![cluster, vmid])?;
            tx.execute(
                "delete from owed where seed = 0 and clone_of_name is null and grow = '' and making = 0",
                [],
            )?;
            Ok(())
        })
    }
}

fn insert_steps(tx: &Transaction<'_>, operation: i64, first: u32, steps: &[Step]) -> rusqlite::Result<()> {
    for (seq, step) in (first..).zip(steps) {
        let json = serde_json::to_string(step)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        tx.execute(
            "insert into steps (operation, seq, step, state, changed) values (?1, ?2, ?3, 'planned', ?4)",
            params![operation, seq, json, now()],
        )?;
    }
    Ok(())
}

fn drop_planned(tx: &Transaction<'_>, operation: i64) -> rusqlite::Result<()> {
    tx.execute(
        "update steps set state = 'dropped', changed = ?2 where operation = ?1 and state = 'planned'",
        params![operation, now()],
    )?;
    Ok(())
}

fn set_state(tx: &Transaction<'_>, operation: i64, seq: u32, state: StepState) -> rusqlite::Result<()> {
    tx.execute(
        "update steps set state = ?3, upid = null, error = null, changed = ?4 where operation = ?1 and seq = ?2",
        params![operation, seq, state.as_str(), now()],
    )?;
    Ok(())
}

/// Adds to what is owed already; a new clone starts afresh.
fn insert_debt(tx: &Transaction<'_>, debt: &Debt) -> rusqlite::Result<()> {
    tx.execute(
        "insert into owed (cluster, vmid, kind, name, node, guest_type, clone_of_kind, clone_of_name, seed, grow, making, since)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
         on conflict (cluster, vmid) do update set
           kind = excluded.kind, name = excluded.name, node = excluded.node, guest_type = excluded.guest_type,
           clone_of_kind = coalesce(excluded.clone_of_kind, clone_of_kind),
           clone_of_name = coalesce(excluded.clone_of_name, clone_of_name),
           seed = max(seed, excluded.seed),
           grow = case when excluded.grow = '' then grow else excluded.grow end,
           making = max(making, excluded.making)",
        params![
            debt.cluster,
            debt.vmid,
            debt.resource.kind,
            debt.resource.name,
            debt.node,
            debt.guest_type.as_str(),
            debt.clone_of.as_ref().map(|id| id.kind.as_str()),
            debt.clone_of.as_ref().map(|id| id.name.as_str()),
            debt.seed,
            debt.grow.join(" "),
            debt.making,
            now()
        ],
    )?;
    Ok(())
}
