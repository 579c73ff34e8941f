//! The graph executor: what may start when, and what becomes of what can't.

use crate::run::{ended, run_action};
use crate::{ExecEnv, Limits};
use futures::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};
use proxops_model::kind::GuestType;
use proxops_model::plan::{ClusterState, Subject};
use proxops_model::{Action, ClusterPlan, Ended, Outcome, Severity, Step};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use tokio::time::Instant;

/// Carries out the actions of one cluster and fills in how each ended.
///
/// An action starts the moment all of its prerequisites are done, in parallel up to the limits and never
/// two at once on one guest; among those that could, the one of the lowest level and then plan order goes
/// first. What depends on an action that did not end well is deferred. After [`crate::Cancel::cancel`]
/// nothing more starts; those in flight have [`crate::Timing::shutdown`] to end, and what they leave behind
/// stays open in the journal.
///
/// Nothing here fails as a whole: every action ends somehow. Hold the cluster's lock.
pub async fn execute(plan: &mut ClusterPlan, env: &ExecEnv) {
    let mut actions = std::mem::take(&mut plan.actions);
    let ends = run_graph(&actions, env).await;
    for (action, end) in actions.iter_mut().zip(ends) {
        action.ended = Some(end);
    }
    plan.actions = actions;
    settle_complete(plan, env);
}

async fn run_graph(actions: &[Action], env: &ExecEnv) -> Vec<Ended> {
    let mut graph = Graph::new(actions, env.limits);
    let mut running = FuturesUnordered::new();
    let mut cancelled = std::pin::pin!(env.cancel.cancelled());
    let mut grace = None;
    graph.defer_hopeless(env);
    loop {
        while grace.is_none()
            && !env.cancel.is_cancelled()
            && let Some(index) = graph.start_next()
        {
            let Some(action) = actions.get(index) else { continue };
            running.push(async move {
                // a bug in one action must not take the others down; the journal keeps it open
                let end = AssertUnwindSafe(run_action(env, action)).catch_unwind().await;
                (
                    index,
                    end.unwrap_or_else(|_| {
                        ended(Outcome::Failed, Some("internal: this action panicked".into()))
                    }),
                )
            });
        }
        if running.is_empty() {
            break;
        }
        tokio::select! {
            Some((index, end)) = running.next() => graph.end(index, end, env),
            () = &mut cancelled, if grace.is_none() => {
                grace = Some(Instant::now() + env.timing.shutdown);
            }
            () = until(grace), if grace.is_some() => break,
        }
    }
    graph.close(env)
}

async fn until(deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        tokio::time::sleep_until(deadline).await;
    }
}

/// Where one action stands.
enum State {
    Waiting,
    Running,
    Ended(Ended),
}

struct Graph<'a> {
    actions: &'a [Action],
    limits: Limits,
    by_id: HashMap<&'a str, usize>,
    states: Vec<State>,
    /// Waiting actions in the order in which they would start.
    waiting: BTreeSet<(u32, usize)>,
    guests: BTreeSet<u32>,
    /// Kinds with an object in the making: their objects share one file of PVE and its digest.
    objects: BTreeSet<&'a str>,
    nodes: BTreeMap<&'a str, usize>,
    running: usize,
}

impl<'a> Graph<'a> {
    fn new(actions: &'a [Action], limits: Limits) -> Self {
        let limits = Limits { cluster: limits.cluster.max(1), node: limits.node.max(1) };
        // one at a time means plan order
        let level = |action: &Action| if limits.cluster == 1 { 0 } else { action.level };
        Self {
            actions,
            limits,
            by_id: actions.iter().enumerate().map(|(index, action)| (action.id.as_str(), index)).collect(),
            states: actions.iter().map(|_| State::Waiting).collect(),
            waiting: actions.iter().enumerate().map(|(index, action)| (level(action), index)).collect(),
            guests: BTreeSet::new(),
            objects: BTreeSet::new(),
            nodes: BTreeMap::new(),
            running: 0,
        }
    }

    /// Takes the next action that may run now.
    fn start_next(&mut self) -> Option<usize> {
        if self.running >= self.limits.cluster {
            return None;
        }
        let key = self.waiting.iter().copied().find(|(_, index)| self.may_start(*index))?;
        self.waiting.remove(&key);
        let (_, index) = key;
        let action = self.actions.get(index)?;
        *self.states.get_mut(index)? = State::Running;
        self.running += 1;
        self.guests.extend(guests_of(action));
        self.objects.extend(object_kind(action));
        if let Some(node) = action.node.as_deref() {
            *self.nodes.entry(node).or_default() += 1;
        }
        Some(index)
    }

    fn may_start(&self, index: usize) -> bool {
        let Some(action) = self.actions.get(index) else { return false };
        let on_node = action.node.as_deref().and_then(|node| self.nodes.get(node)).copied().unwrap_or(0);
        on_node < self.limits.node
            && guests_of(action).all(|vmid| !self.guests.contains(&vmid))
            && object_kind(action).is_none_or(|kind| !self.objects.contains(kind))
            && action.after.iter().all(|id| self.outcome(id) == Some(Outcome::Ok))
    }

    fn outcome(&self, id: &str) -> Option<Outcome> {
        match self.by_id.get(id).and_then(|index| self.states.get(*index))? {
            State::Ended(end) => Some(end.result),
            State::Waiting | State::Running => None,
        }
    }

    fn end(&mut self, index: usize, end: Ended, env: &ExecEnv) {
        let Some(action) = self.actions.get(index) else { return };
        self.running = self.running.saturating_sub(1);
        for vmid in guests_of(action) {
            self.guests.remove(&vmid);
        }
        if let Some(kind) = object_kind(action) {
            self.objects.remove(kind);
        }
        if let Some(count) = action.node.as_deref().and_then(|node| self.nodes.get_mut(node)) {
            *count = count.saturating_sub(1);
        }
        let hopeless = end.result != Outcome::Ok;
        self.set(index, end, env);
        if hopeless {
            self.defer_hopeless(env);
        }
    }

    fn set(&mut self, index: usize, end: Ended, env: &ExecEnv) {
        if let (Some(action), Some(state)) = (self.actions.get(index), self.states.get_mut(index)) {
            env.progress.finished(action, &end);
            *state = State::Ended(end);
        }
    }

    /// Defers what waits for something that will not come, again and again: it may be waited for itself.
    fn defer_hopeless(&mut self, env: &ExecEnv) {
        loop {
            let hopeless =
                self.waiting.iter().copied().find_map(|key| Some((key, self.why_hopeless(key.1)?)));
            let Some((key, end)) = hopeless else { return };
            self.waiting.remove(&key);
            self.set(key.1, end, env);
        }
    }

    fn why_hopeless(&self, index: usize) -> Option<Ended> {
        self.actions.get(index)?.after.iter().find_map(|id| {
            let (result, what) = match self.outcome(id) {
                None if !self.by_id.contains_key(id.as_str()) => {
                    (Outcome::Deferred, "is not part of this plan")
                }
                None | Some(Outcome::Ok) => return None,
                Some(Outcome::Failed) => (Outcome::Deferred, "failed"),
                Some(Outcome::Deferred) => (Outcome::Deferred, "was deferred"),
                Some(Outcome::NotStarted) => (Outcome::NotStarted, "was not started"),
            };
            Some(ended(result, Some(format!("its prerequisite {id} {what}"))))
        })
    }

    /// The ends of all, in plan order; what is still open ends here.
    fn close(mut self, env: &ExecEnv) -> Vec<Ended> {
        let cancelled = env.cancel.is_cancelled();
        for index in 0..self.states.len() {
            let end = match self.states.get(index) {
                Some(State::Waiting) if cancelled => {
                    ended(Outcome::NotStarted, Some("proxops was asked to stop before it began".to_owned()))
                }
                Some(State::Waiting) => {
                    ended(Outcome::Deferred, Some("its prerequisites wait for each other".to_owned()))
                }
                Some(State::Running) => ended(
                    Outcome::Failed,
                    Some(format!(
                        "proxops was asked to stop and did not wait longer than {} s; what runs in PVE goes on and is \
                         looked for in the next run",
                        env.timing.shutdown.as_secs()
                    )),
                ),
                Some(State::Ended(_)) | None => continue,
            };
            self.set(index, end, env);
        }
        self.states
            .into_iter()
            .map(|state| match state {
                State::Ended(end) => end,
                State::Waiting | State::Running => ended(Outcome::NotStarted, None),
            })
            .collect()
    }
}

/// Guests that no other action may touch meanwhile. A container that is cloned is locked as well (fact
/// L18); a VM may be cloned several times at once.
fn guests_of(action: &Action) -> impl Iterator<Item = u32> {
    let lxc = matches!(&action.subject, Some(Subject::Guest { guest_type }) if guest_type == GuestType::Lxc.as_str());
    let source = action.steps.iter().find_map(|step| match step {
        Step::CloneFrom { source_vmid, .. } if lxc => Some(*source_vmid),
        _ => None,
    });
    action.vmid.into_iter().chain(source)
}

/// The kind of an action on an object.
fn object_kind(action: &Action) -> Option<&str> {
    matches!(action.subject, Some(Subject::Object { .. })).then_some(action.kind.as_str())
}

/// A guest whose making this plan found nothing left to do for is complete, and so is a disk that was to grow.
fn settle_complete(plan: &ClusterPlan, env: &ExecEnv) {
    if plan.state != ClusterState::Ok {
        return;
    }
    let owed = match env.journal.owed(&env.cluster) {
        Ok(owed) => owed,
        Err(error) => {
            tracing::warn!(cluster = env.cluster, %error, "what guests are owed can't be read");
            return;
        }
    };
    let open: BTreeSet<u32> = plan
        .actions
        .iter()
        .filter(|action| action.ended.as_ref().is_none_or(|end| end.result != Outcome::Ok))
        .filter_map(|action| action.vmid)
        .chain(
            [&plan.unknown, &plan.deferred, &plan.skipped]
                .into_iter()
                .flatten()
                .filter_map(|noted| noted.vmid),
        )
        .chain(
            plan.anomalies
                .iter()
                .filter(|anomaly| anomaly.severity == Severity::Error)
                .filter_map(|a| a.vmid),
        )
        .collect();
    for (vmid, owed) in owed.iter().filter(|(vmid, _)| !open.contains(vmid)) {
        let clone = owed.fresh_clone_of.as_ref().map(|_| env.journal.settle_clone(&env.cluster, *vmid));
        let growth = (!owed.grow.is_empty()).then(|| env.journal.settle_growth(&env.cluster, *vmid));
        let making = owed.making.then(|| env.journal.settle_making(&env.cluster, *vmid));
        for error in [clone, growth, making].into_iter().flatten().filter_map(Result::err) {
            tracing::warn!(cluster = env.cluster, vmid, %error, "the journal misses an entry");
        }
    }
}
