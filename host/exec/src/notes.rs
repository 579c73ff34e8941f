//! What a run writes down as it goes, and what it keeps out of every text.

use crate::journal::{Debt, StepState};
use crate::run::{Flow, Run, Stop, failed};
use crate::{Journal, JournalError, params};
use proxops_model::kind::{KindStep, Param};
use proxops_model::{ResourceId, Step};
use proxops_secrets::MASK;
use std::sync::Arc;

impl Run<'_> {
    /// On the disk before the request leaves.
    pub(crate) async fn intent(&mut self, seq: u32, debt: Option<Debt>) -> Flow {
        let (journal, operation) = (Arc::clone(&self.env.journal), self.operation);
        let written =
            tokio::task::spawn_blocking(move || journal.intent(operation, seq, debt.as_ref())).await;
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => failed(format!("{error}. This request was not sent")),
            Err(error) => failed(format!("internal: the journal's writer ended: {error}")),
        }
    }

    pub(crate) fn sent(&self, seq: u32, upid: &str) {
        self.note(|journal| journal.sent(self.operation, seq, upid));
    }

    pub(crate) fn step_done(&self, seq: u32) {
        self.note_state(seq, StepState::Done);
    }

    pub(crate) fn note_state(&self, seq: u32, state: StepState) {
        self.note(|journal| journal.ended(self.operation, seq, state, None));
    }

    pub(crate) fn step_failed(&self, seq: u32, text: &str) {
        let text = self.scrub(text);
        self.note(|journal| journal.ended(self.operation, seq, StepState::Failed, Some(&text)));
    }

    /// A write that no request depends on. What PVE already did is not undone by a full disk.
    pub(crate) fn note(&self, work: impl FnOnce(&Journal) -> Result<(), JournalError>) {
        if let Err(error) = work(&self.env.journal) {
            tracing::warn!(cluster = self.env.cluster, action = self.action.id, %error, "the journal misses an entry");
        }
    }

    /// What this guest is owed once the next request is out.
    pub(crate) fn debt(&self, clone_of: Option<ResourceId>, seed: bool) -> Option<Debt> {
        let guest = self.guest.as_ref()?;
        Some(Debt {
            cluster: self.env.cluster.clone(),
            vmid: guest.vmid,
            resource: self.action.resource(),
            node: guest.node.clone(),
            guest_type: guest.guest_type,
            clone_of,
            seed,
            grow: Vec::new(),
            making: false,
        })
    }

    /// Adds that the next request makes the guest: until the whole action ended well, its making goes on, in whatever
    /// mode the resource is.
    pub(crate) fn owe_making(&mut self, debt: Option<Debt>) -> Option<Debt> {
        let mut debt = debt.or_else(|| self.debt(None, false))?;
        debt.making = true;
        self.making = true;
        Some(debt)
    }

    /// Adds the growth that follows the next request: disks that it makes at one size and that later steps
    /// grow. Killed in between, nobody could tell such a disk from one that is to stay small.
    pub(crate) fn owe_growth(&mut self, debt: Option<Debt>) -> Option<Debt> {
        let growing: Vec<Step> = self
            .queue
            .iter()
            .map(|queued| &queued.step)
            .filter(|step| matches!(step, Step::Kind(KindStep::Resize { .. })))
            .cloned()
            .collect();
        if growing.is_empty() {
            return debt;
        }
        let mut debt = debt.or_else(|| self.debt(None, false))?;
        debt.grow = growing.iter().filter_map(grown_slot).map(str::to_owned).collect();
        self.growing = growing;
        Some(debt)
    }

    /// The disk of a resize step has its size.
    pub(crate) fn grown(&mut self, disk: &str) {
        let before = self.growing.len();
        self.growing.retain(|step| grown_slot(step) != Some(disk));
        if before > 0 && self.growing.is_empty() {
            self.settle_debt(Journal::settle_growth);
        }
    }

    /// No disk was made: what this run wrote down about its growth goes again.
    pub(crate) fn forget_growth(&mut self) {
        if !std::mem::take(&mut self.growing).is_empty() {
            self.settle_debt(Journal::settle_growth);
        }
    }

    /// No guest was made: what this run wrote down about it goes again.
    pub(crate) fn forget_debt(&mut self) {
        self.forget_growth();
        if std::mem::take(&mut self.making) {
            self.settle_debt(Journal::settle_making);
        }
        if std::mem::take(&mut self.clone_debt_is_ours) {
            self.fresh_clone_of = None;
            self.settle_debt(Journal::settle_clone);
        }
    }

    pub(crate) fn settle_debt(&self, work: impl FnOnce(&Journal, &str, u32) -> Result<(), JournalError>) {
        if let Some(guest) = &self.guest {
            self.note(|journal| work(journal, &self.env.cluster, guest.vmid));
        }
    }

    pub(crate) fn form(&mut self, params: &[Param], reserved: &[&str]) -> Flow<params::Form> {
        params::form(params, reserved, &*self.env.secrets, &mut self.secrets).map_err(Stop::Failed)
    }

    /// No secret of this action is in the text, whoever put it there.
    pub(crate) fn scrub(&self, text: &str) -> String {
        self.secrets
            .iter()
            .filter(|secret| secret.expose().len() > 2)
            .fold(text.to_owned(), |text, secret| text.replace(secret.expose(), MASK))
    }
}

/// The slot that a resize step grows.
pub(crate) fn grown_slot(step: &Step) -> Option<&str> {
    match step {
        Step::Kind(KindStep::Resize { disk, .. }) => Some(disk),
        _ => None,
    }
}
