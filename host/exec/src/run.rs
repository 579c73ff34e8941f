//! One action from its first step to its end.

use crate::env::Pauses;
use crate::journal::OperationStart;
use crate::notes::grown_slot;
use crate::unknown::is_in_the_making;
use crate::{ExecEnv, Journal, JournalError, Replanned, params};
use proxops_model::kind::{GuestType, KindStep, Param, ParamValue};
use proxops_model::plan::Subject;
use proxops_model::{Action, Change, Ended, Outcome, ResourceId, Step, Verb};
use proxops_secrets::{MASK, Secret};
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

/// Why an action goes no further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// With what to do.
    Failed(String),
    /// Nothing is wrong but the moment.
    Deferred(String),
}

pub(crate) type Flow<T = ()> = Result<T, Stop>;

pub(crate) fn failed<T>(text: impl Into<String>) -> Flow<T> {
    Err(Stop::Failed(text.into()))
}

/// The guest that an action is about, where it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guest {
    pub guest_type: GuestType,
    pub vmid: u32,
    pub node: String,
}

impl std::fmt::Display for Guest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.guest_type.noun(), self.vmid)
    }
}

/// A step and its number in the journal.
#[derive(Debug, Clone)]
pub(crate) struct Queued {
    pub seq: u32,
    pub step: Step,
}

/// How often something was tried again. Each has its bound.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    pub conflicts: u32,
    pub settles: u32,
    pub unknowns: u32,
    pub resends: u32,
    pub busy: u32,
    pub moves: u32,
    pub locked: u32,
}

pub(crate) struct Run<'a> {
    pub env: &'a ExecEnv,
    pub action: &'a Action,
    pub operation: i64,
    next_seq: u32,
    pub queue: VecDeque<Queued>,
    pub guest: Option<Guest>,
    /// Digest that the next configuration write carries; `None` = read it first.
    pub digest: Option<String>,
    /// Set while the guest may carry its template's identity.
    pub fresh_clone_of: Option<ResourceId>,
    /// This run wrote that debt down.
    pub clone_debt_is_ours: bool,
    /// This run makes the guest, and wrote that down.
    pub making: bool,
    pub seed_owed: bool,
    /// Resize steps of disks that this run made, or may have made, and that are not done.
    pub growing: Vec<Step>,
    /// Something was written that no read-back has shown yet.
    pub unproven: bool,
    /// The guest was looked at since the plan and is the right one.
    pub confirmed: bool,
    /// A running guest was stopped by this run.
    pub stopped_here: bool,
    /// The outcome of a request is not known: the next run must look again.
    pub open: bool,
    pub tries: Tries,
    pub warnings: Vec<String>,
    pub upids: Vec<String>,
    /// Secrets that were put into requests.
    pub secrets: Vec<Secret>,
    /// Keys that this run wrote a secret to. PVE masks them, so that no reading shows what they hold (fact Q23).
    pub secrets_written: BTreeSet<String>,
}

/// Carries one action out. Never panics on purpose, never returns before its tasks ended or timed out.
pub(crate) async fn run_action(env: &ExecEnv, action: &Action) -> Ended {
    let clock = Instant::now();
    env.progress.started(action);
    let mut ended = match Run::begin(env, action) {
        Ok(mut run) => {
            let flow = run.all().await;
            run.finish(flow).await
        }
        Err(text) => ended(Outcome::Failed, Some(text)),
    };
    ended.duration_ms = u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX);
    ended
}

/// An end without requests.
pub(crate) fn ended(result: Outcome, error: Option<String>) -> Ended {
    Ended { result, error, warnings: Vec::new(), upids: Vec::new(), duration_ms: 0 }
}

impl<'a> Run<'a> {
    fn begin(env: &'a ExecEnv, action: &'a Action) -> Result<Self, String> {
        let guest = match (&action.subject, action.vmid) {
            (Some(Subject::Guest { guest_type }), Some(vmid)) => Some(Guest {
                guest_type: params::guest_type(guest_type)
                    .ok_or_else(|| format!("internal: '{guest_type}' is no guest type"))?,
                vmid,
                node: action.node.clone().ok_or("internal: an action on a guest names no node")?,
            }),
            (Some(Subject::Guest { .. }), None) => {
                return Err("internal: an action on a guest names no vmid".to_owned());
            }
            _ => None,
        };
        let nothing_sent = |error: JournalError| format!("{error}. Nothing was sent");
        let start = OperationStart {
            cluster: &env.cluster,
            commit: env.commit.as_deref(),
            actor: env.actor.as_deref(),
            action: &action.id,
            verb: action.verb.as_str(),
            resource: &action.resource(),
            node: action.node.as_deref(),
            guest: guest.as_ref().map(|guest| (guest.guest_type, guest.vmid)),
        };
        let owed = match action.vmid {
            Some(vmid) => env.journal.owed(&env.cluster).map_err(nothing_sent)?.remove(&vmid),
            None => None,
        };
        let owed_slots = owed.as_ref().map(|owed| owed.grow.as_slice()).unwrap_or_default();
        let is_owed =
            |step: &&Step| grown_slot(step).is_some_and(|slot| owed_slots.iter().any(|owed| owed == slot));
        let growing = action.steps.iter().filter(is_owed).cloned().collect();
        let operation = env.journal.begin(&start, &action.steps).map_err(nothing_sent)?;
        let queue: VecDeque<Queued> =
            (0..).zip(&action.steps).map(|(seq, step)| Queued { seq, step: step.clone() }).collect();
        let mut run = Self {
            env,
            action,
            operation,
            next_seq: u32::try_from(queue.len()).unwrap_or(u32::MAX),
            queue,
            guest,
            digest: action.digest.clone(),
            fresh_clone_of: owed.as_ref().and_then(|owed| owed.fresh_clone_of.clone()),
            clone_debt_is_ours: false,
            making: false,
            seed_owed: owed.as_ref().is_some_and(|owed| owed.rebuild_seed),
            growing,
            unproven: false,
            confirmed: false,
            stopped_here: false,
            open: false,
            tries: Tries::default(),
            warnings: Vec::new(),
            upids: Vec::new(),
            secrets: Vec::new(),
            secrets_written: BTreeSet::new(),
        };
        if run.seed_owed && run.queue.iter().any(|queued| matches!(queued.step, Step::Kind(_))) {
            // a seed image that an earlier run owed is rebuilt by the next action that writes
            let steps = run.queue.drain(..).map(|queued| queued.step).collect();
            run.enqueue(steps, false, false);
        }
        Ok(run)
    }

    async fn all(&mut self) -> Flow {
        if self.action.verb == Verb::Delete {
            self.guard_delete().await?;
        }
        while let Some(queued) = self.queue.pop_front() {
            self.env.progress.step(self.action, &params::words(&queued.step), None);
            self.step(&queued).await?;
        }
        self.read_back().await
    }

    async fn step(&mut self, queued: &Queued) -> Flow {
        match &queued.step {
            Step::Kind(KindStep::Create { params }) => self.create(queued, params, false).await,
            Step::Kind(KindStep::Restore { params }) => self.create(queued, params, true).await,
            Step::Kind(KindStep::Clone { source, .. }) => {
                failed(format!("internal: where {source} is was not resolved"))
            }
            Step::CloneFrom { source_node, source_vmid, source, params } => {
                self.clone_guest(queued, (source_node, *source_vmid, source), params).await
            }
            Step::Kind(KindStep::Configure { set, unset, revert }) => {
                self.configure(queued, set, unset, revert).await
            }
            Step::Kind(KindStep::Resize { disk, bytes, .. }) => self.resize(queued, disk, *bytes).await,
            Step::Kind(KindStep::RebuildCloudInit) => self.rebuild_seed(queued).await,
            Step::Kind(KindStep::MarkTemplate) => self.mark_template(queued).await,
            Step::Kind(KindStep::Download { node, storage, filename, params }) => {
                self.download(queued, (node, storage, filename), params).await
            }
            Step::Kind(KindStep::Call { operation, vars, set, unset }) => {
                self.call(queued, operation, vars, set, unset).await
            }
            Step::Settle => self.settle(queued).await,
            Step::Stop { hard } => self.stop(queued, *hard).await,
            Step::Start => self.start(queued).await,
            Step::Destroy if self.guest.is_some() => self.destroy(queued).await,
            Step::Destroy => self.call(queued, "delete", &Vec::new(), &[], &[]).await,
        }
    }

    /// The guest, for steps that need one.
    pub(crate) fn guest(&self) -> Flow<Guest> {
        self.guest.clone().ok_or_else(|| Stop::Failed("internal: this step needs a guest".to_owned()))
    }

    /// Asks the planner anew. What it says about identity and obstacles ends the action here.
    pub(crate) async fn replan(&mut self) -> Flow<Replanned> {
        let fresh = self.fresh_clone_of.clone();
        let mut found = match self.env.replanner.replan(self.action, fresh.as_ref()).await {
            Ok(found) => found,
            Err(text) => return failed(format!("{} can't be read back: {text}", self.what())),
        };
        self.leave_written_secrets(&mut found);
        if let Some(why) = &found.blocked {
            return failed(why.clone());
        }
        if found.present && !found.matches {
            self.forget_debt();
            return failed(self.holder().await);
        }
        if found.present {
            if let (Some(guest), Some(node)) = (self.guest.as_mut(), &found.node) {
                guest.node.clone_from(node);
            }
            if self.action.verb != Verb::Delete && found.steps.iter().any(is_creation) {
                return failed(format!(
                    "internal: {} is there and was planned to be made again",
                    self.what()
                ));
            }
            self.digest.clone_from(&found.digest);
            self.confirmed = true;
        }
        Ok(found)
    }

    /// A kind can't see which secret PVE holds, and asks for it as long as the action that clones is not complete.
    /// Each is written once.
    fn leave_written_secrets(&self, found: &mut Replanned) {
        let written = |param: &Param| {
            matches!(param.value, ParamValue::Secret(_)) && self.secrets_written.contains(&param.key)
        };
        for step in &mut found.steps {
            if let Step::Kind(KindStep::Configure { set, .. }) = step {
                set.retain(|param| !written(param));
            }
        }
        let empty = |step: &Step| {
            matches!(step, Step::Kind(KindStep::Configure { set, unset, revert })
                if set.is_empty() && unset.is_empty() && revert.is_empty())
        };
        found.steps.retain(|step| !empty(step));
        found.changes.retain(|change| !(change.sensitive && self.secrets_written.contains(&change.key)));
    }

    /// Runs what the planner says instead of the rest of the queue.
    pub(crate) async fn replan_rest(&mut self) -> Flow {
        let found = self.replan().await?;
        if !found.present {
            return failed(format!(
                "{} is gone: it was deleted after the plan was made. Run again",
                self.what()
            ));
        }
        self.requeue(found.steps);
        Ok(())
    }

    /// Replaces the queue, keeping what the old one owed: the read-back, the start at the end.
    pub(crate) fn requeue(&mut self, steps: Vec<Step>) {
        let has = |wanted: &Step| self.queue.iter().any(|queued| queued.step == *wanted);
        let (settle, start) = (has(&Step::Settle), has(&Step::Start));
        // power alone is another action's business
        let steps = if has_work(&steps) { steps } else { Vec::new() };
        self.enqueue(steps, settle, start);
    }

    fn enqueue(&mut self, mut steps: Vec<Step>, settle: bool, start: bool) {
        let last = matches!(steps.last(), Some(Step::Start));
        if last {
            steps.pop();
        }
        for owed in &self.growing {
            if !steps.iter().any(|step| grown_slot(step).is_some() && grown_slot(step) == grown_slot(owed)) {
                steps.push(owed.clone());
            }
        }
        let seed = Step::Kind(KindStep::RebuildCloudInit);
        let is_vm = self.guest.as_ref().is_some_and(|guest| guest.guest_type == GuestType::Qemu);
        if self.seed_owed && is_vm && !steps.contains(&seed) {
            steps.push(seed);
        }
        if settle && !steps.contains(&Step::Settle) {
            steps.push(Step::Settle);
        }
        if last || (start && !steps.contains(&Step::Start)) {
            steps.push(Step::Start);
        }
        let first = self.next_seq;
        self.next_seq = first.saturating_add(u32::try_from(steps.len()).unwrap_or(u32::MAX));
        let operation = self.operation;
        self.note(|journal| journal.replace(operation, first, &steps));
        self.queue = (first..).zip(steps).map(|(seq, step)| Queued { seq, step }).collect();
    }

    /// Read, plan, write, until nothing is left. Four rounds: a second one is normal (what creation fills
    /// in shows only afterwards), more means that two sides disagree.
    async fn settle(&mut self, queued: &Queued) -> Flow {
        let found = self.replan().await?;
        if !found.present {
            return failed(format!("PVE reported success, but {} is not there", self.what()));
        }
        if let Some(lock) = found.lock.filter(|lock| is_in_the_making(lock)) {
            self.tries.locked += 1;
            if self.tries.locked > self.env.timing.looks {
                return failed(format!("PVE reported success, but {}", self.orphaned(&lock)));
            }
            Pauses::new(&self.env.timing).wait().await;
            self.queue.push_front(queued.clone());
            return Ok(());
        }
        if !has_work(&found.steps) {
            self.step_done(queued.seq);
            self.unproven = false;
            return Ok(());
        }
        self.tries.settles += 1;
        if self.tries.settles > 4 {
            return failed(self.not_as_wanted(&found.changes));
        }
        self.queue.push_front(queued.clone());
        self.requeue(found.steps);
        Ok(())
    }

    /// The last word of an action that wrote: nothing is left to do, or PVE did not do what it said.
    async fn read_back(&mut self) -> Flow {
        if !self.unproven || (self.action.verb == Verb::Delete && self.guest.is_some()) {
            return Ok(());
        }
        let found = self.replan().await?;
        match (self.action.verb == Verb::Delete, found.present) {
            (true, false) => {}
            (true, true) => {
                return failed(format!("PVE reported success, but {} is still there", self.what()));
            }
            (false, false) => {
                return failed(format!("PVE reported success, but {} is not there", self.what()));
            }
            (false, true) if has_work(&found.steps) => return failed(self.not_as_wanted(&found.changes)),
            (false, true) => {}
        }
        self.unproven = false;
        Ok(())
    }

    pub(crate) fn not_as_wanted(&self, changes: &[Change]) -> String {
        let fields: Vec<String> = changes
            .iter()
            .map(|change| {
                let text = |value: &Option<String>| match value {
                    Some(_) if change.sensitive => MASK.to_owned(),
                    Some(value) => value.clone(),
                    None => "unset".to_owned(),
                };
                format!("{} is {}, not {}", change.key, text(&change.from), text(&change.to))
            })
            .collect();
        let fields =
            if fields.is_empty() { "steps that are still to do".to_owned() } else { fields.join("; ") };
        format!("PVE reported success, but reading {} back shows: {fields}", self.what())
    }

    /// Waits a moment before another try of what was busy, five times at most.
    pub(crate) async fn busy_pause(&mut self) -> bool {
        self.tries.busy += 1;
        if self.tries.busy > 5 {
            return false;
        }
        let mut pauses = Pauses::new(&self.env.timing);
        for _ in 0..self.tries.busy {
            pauses.wait().await;
        }
        true
    }

    /// What the action is about, for people.
    pub(crate) fn what(&self) -> String {
        match &self.guest {
            Some(guest) => guest.to_string(),
            None => self.action.resource().to_string(),
        }
    }

    async fn finish(mut self, flow: Flow) -> Ended {
        let flow = match flow {
            Err(stop) if self.stopped_here => Err(self.bring_back(stop).await),
            flow => flow,
        };
        let (result, error) = match flow {
            Ok(()) => (Outcome::Ok, None),
            Err(Stop::Failed(text)) => (Outcome::Failed, Some(self.scrub(&text))),
            Err(Stop::Deferred(text)) => (Outcome::Deferred, Some(self.scrub(&text))),
        };
        let proven = !self.unproven
            && matches!(
                self.action.verb,
                Verb::Create | Verb::Clone | Verb::Update | Verb::Resize | Verb::MarkTemplate
            );
        if result == Outcome::Ok && proven && self.fresh_clone_of.is_some() {
            self.settle_debt(Journal::settle_clone);
        }
        if result == Outcome::Ok && proven && self.making {
            self.settle_debt(Journal::settle_making);
        }
        if !self.open {
            let operation = self.operation;
            self.note(|journal| journal.finish(operation, result, error.as_deref()));
        }
        let warnings = self.warnings.iter().map(|line| self.scrub(line)).collect();
        Ended { result, error, warnings, upids: self.upids, duration_ms: 0 }
    }

    /// A failed change must not leave a service off that ran before.
    async fn bring_back(&mut self, stop: Stop) -> Stop {
        let Some(start) = self.queue.iter().find(|queued| queued.step == Step::Start).cloned() else {
            return stop;
        };
        let added = match self.start(&start).await {
            Ok(()) => "it was started again".to_owned(),
            Err(Stop::Failed(text) | Stop::Deferred(text)) => {
                format!("it was stopped for the change and could not be started again: {text}")
            }
        };
        match stop {
            Stop::Failed(text) => Stop::Failed(format!("{text}; {added}")),
            Stop::Deferred(text) => Stop::Deferred(format!("{text}; {added}")),
        }
    }

    /// Time that one task may take.
    pub(crate) fn task_time(&self) -> Duration {
        self.env.timing.task
    }
}

/// Whether something besides power and the seed image is left to do.
fn has_work(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Kind(KindStep::RebuildCloudInit) => false,
        Step::Kind(_) | Step::CloneFrom { .. } | Step::Destroy => true,
        Step::Settle | Step::Stop { .. } | Step::Start => false,
    })
}

/// The step makes a guest that was not there.
pub(crate) fn is_creation(step: &Step) -> bool {
    matches!(
        step,
        Step::CloneFrom { .. }
            | Step::Kind(KindStep::Create { .. } | KindStep::Restore { .. } | KindStep::Clone { .. })
    )
}
