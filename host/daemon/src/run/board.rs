//! What the daemon knows of every cluster: what the page, `/status` and the metrics show.

use super::pause::Suspension;
use crate::ClusterStatus;
use jiff::Timestamp;
use proxops_exec::Progress;
use proxops_model::plan::{ClusterPlan, ClusterState, Outcome};
use proxops_model::{Action, Ended, Severity};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::PoisonError;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Cycles that are remembered, for each cluster.
const CYCLES: usize = 20;

/// What a cluster's loop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Until the next cycle is due.
    Waiting,
    /// Reads and plans.
    Planning,
    /// Carries the plan out.
    Executing,
    /// Left alone on request.
    Suspended,
}

impl Phase {
    /// As written in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Planning => "planning",
            Self::Executing => "executing",
            Self::Suspended => "suspended",
        }
    }
}

/// Why a cycle began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The daemon or the cluster is new.
    Start,
    /// The poll interval passed.
    Interval,
    /// A push was announced.
    Webhook,
    /// SIGHUP.
    Signal,
}

impl Why {
    /// As written in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Interval => "interval",
            Self::Webhook => "webhook",
            Self::Signal => "signal",
        }
    }
}

/// One cycle that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CycleRecord {
    /// RFC 3339.
    #[serde(with = "super::when")]
    pub started_at: Timestamp,
    /// RFC 3339.
    #[serde(with = "super::when")]
    pub ended_at: Timestamp,
    /// From start to end.
    pub duration_ms: u64,
    /// Why it began.
    pub why: Why,
    /// Whether it could be planned.
    pub state: ClusterState,
    /// Why not.
    pub error: Option<String>,
    /// Commit of the tree.
    pub commit: Option<String>,
    /// Actions of the plan.
    pub planned: usize,
    /// Those that ended well.
    pub ok: usize,
    /// Those that failed.
    pub failed: usize,
    /// Those that were deferred or not started.
    pub deferred: usize,
    /// Above `info`.
    pub anomalies: usize,
}

impl CycleRecord {
    pub(crate) fn of(plan: &ClusterPlan, why: Why, started_at: Timestamp, took: Duration) -> Self {
        let ended = |wanted: &[Outcome]| {
            let ends = plan.actions.iter().filter_map(|a| a.ended.as_ref());
            ends.filter(|e| wanted.contains(&e.result)).count()
        };
        Self {
            started_at,
            ended_at: Timestamp::now(),
            duration_ms: took.as_millis() as u64,
            why,
            state: plan.state,
            error: plan.error.clone(),
            commit: plan.commit.clone(),
            planned: plan.actions.len(),
            ok: ended(&[Outcome::Ok]),
            failed: ended(&[Outcome::Failed]),
            deferred: ended(&[Outcome::Deferred, Outcome::NotStarted]),
            anomalies: plan.anomalies.iter().filter(|a| a.severity != Severity::Info).count(),
        }
    }
}

/// An action that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunningAction {
    /// Of the action.
    pub id: String,
    /// What it does.
    pub verb: &'static str,
    /// Kind of the resource.
    pub kind: String,
    /// Name of the resource.
    pub name: String,
    /// Where.
    pub node: Option<String>,
    /// Guests only.
    pub vmid: Option<u32>,
    /// The step that it is at.
    pub step: String,
    /// The task that it waits for.
    pub upid: Option<String>,
    /// RFC 3339.
    #[serde(with = "super::when")]
    pub since: Timestamp,
}

/// What one cycle found and did.
#[derive(Debug, Clone)]
pub struct Found {
    /// State of every object.
    pub status: ClusterStatus,
    /// The plan, with the ends of its actions if it was carried out.
    pub plan: ClusterPlan,
}

/// One cluster.
#[derive(Debug, Clone)]
pub struct ClusterBoard {
    /// What its loop does.
    pub phase: Phase,
    /// When that began, or when something last moved.
    pub moved: Instant,
    /// When the next cycle is due, while it waits.
    pub due: Instant,
    /// The same for people.
    pub due_at: Timestamp,
    /// The last cycle's result.
    pub found: Option<Arc<Found>>,
    /// The last cycles, newest first.
    pub cycles: VecDeque<CycleRecord>,
    /// Actions that run now, by id.
    pub running: BTreeMap<String, RunningAction>,
    /// Actions that wait for their turn.
    pub queued: usize,
    /// Cycles in a row that could not be planned.
    pub failures: u32,
    /// Why it is left alone.
    pub suspended: Option<Suspension>,
    /// Longest time without a sign of life before the loop counts as stuck.
    pub patience: Duration,
}

impl ClusterBoard {
    fn new() -> Self {
        Self {
            phase: Phase::Waiting,
            moved: Instant::now(),
            due: Instant::now(),
            due_at: Timestamp::now(),
            found: None,
            cycles: VecDeque::new(),
            running: BTreeMap::new(),
            queued: 0,
            failures: 0,
            suspended: None,
            patience: Duration::from_secs(600),
        }
    }

    /// The loop is late: it neither moves nor waits for a time that is still to come.
    fn stuck(&self, now: Instant) -> bool {
        const GRACE: Duration = Duration::from_secs(30);
        match self.phase {
            Phase::Waiting | Phase::Suspended => now.saturating_duration_since(self.due) > GRACE,
            Phase::Planning | Phase::Executing => now.saturating_duration_since(self.moved) > self.patience,
        }
    }
}

/// Which tree the daemon works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TreeView {
    /// Where it lies.
    pub root: String,
    /// 40 hex digits.
    pub commit: Option<String>,
    /// The work tree differs from the commit.
    pub dirty: bool,
    /// Why it is older than its source.
    pub stale: Option<String>,
    /// Since when.
    #[serde(serialize_with = "super::when::maybe")]
    pub stale_since: Option<Timestamp>,
    /// When files or source were last looked at.
    #[serde(with = "super::when")]
    pub read_at: Timestamp,
}

/// All clusters. Short locks only: nothing is awaited while one is held.
pub struct Board {
    clusters: RwLock<BTreeMap<String, ClusterBoard>>,
    tree: RwLock<Option<TreeView>>,
    changed: watch::Sender<u64>,
    /// Since when the process runs.
    pub started: Timestamp,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            clusters: RwLock::default(),
            tree: RwLock::default(),
            changed: watch::Sender::new(0),
            started: Timestamp::now(),
        }
    }
}

impl Board {
    /// All clusters, by name.
    pub fn clusters(&self) -> RwLockReadGuard<'_, BTreeMap<String, ClusterBoard>> {
        self.clusters.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, ClusterBoard>> {
        self.clusters.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tree, once one was read.
    pub fn tree(&self) -> Option<TreeView> {
        self.tree.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Rises with every change.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn tell(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    /// Takes note of the tree.
    pub(crate) fn set_tree(&self, next: TreeView) {
        let mut tree = self.tree.write().unwrap_or_else(PoisonError::into_inner);
        let since = tree.as_ref().and_then(|before| before.stale_since);
        let stale_since = next.stale.as_ref().map(|_| since.unwrap_or_else(Timestamp::now));
        *tree = Some(TreeView { stale_since, ..next });
        drop(tree);
        self.tell();
    }

    /// A cluster that is there from now on.
    pub(crate) fn add(&self, cluster: &str) {
        self.write().entry(cluster.to_owned()).or_insert_with(ClusterBoard::new);
        self.tell();
    }

    /// A cluster that is there no more.
    pub(crate) fn remove(&self, cluster: &str) {
        self.write().remove(cluster);
        self.tell();
    }

    /// Changes what is known of a cluster.
    pub(crate) fn change(&self, cluster: &str, change: impl FnOnce(&mut ClusterBoard)) {
        if let Some(board) = self.write().get_mut(cluster) {
            change(board);
        }
        self.tell();
    }

    /// The loop does something else now.
    pub(crate) fn phase(&self, cluster: &str, phase: Phase) {
        self.change(cluster, |c| {
            c.phase = phase;
            c.moved = Instant::now();
        });
    }

    /// The loop waits.
    pub(crate) fn wait(&self, cluster: &str, phase: Phase, pause: Duration) {
        let at = Timestamp::now().checked_add(pause).unwrap_or(Timestamp::MAX);
        self.change(cluster, |c| {
            c.phase = phase;
            c.moved = Instant::now();
            c.due = Instant::now() + pause;
            c.due_at = at;
        });
    }

    /// A cycle ended.
    pub(crate) fn ended(&self, cluster: &str, found: Found, record: CycleRecord) {
        self.change(cluster, |c| {
            c.failures = if record.state == ClusterState::Aborted { c.failures + 1 } else { 0 };
            c.found = Some(Arc::new(found));
            c.cycles.push_front(record);
            c.cycles.truncate(CYCLES);
            c.running.clear();
            c.queued = 0;
        });
    }

    /// Why the daemon is not healthy: no full cycle of all clusters has ended yet, or a loop is stuck.
    pub fn unhealthy(&self) -> Option<String> {
        let clusters = self.clusters();
        let first = clusters.iter().find(|(_, c)| c.cycles.is_empty() && c.suspended.is_none());
        if let Some((name, _)) = first {
            return Some(format!("the first cycle of cluster {name} has not ended yet"));
        }
        drop(clusters);
        self.stuck()
    }

    /// A loop that is late, in words.
    pub fn stuck(&self) -> Option<String> {
        let now = Instant::now();
        let clusters = self.clusters();
        let (name, c) = clusters.iter().find(|(_, c)| c.stuck(now))?;
        Some(format!("the loop of cluster {name} is stuck while {}", c.phase.as_str()))
    }
}

/// Writes the progress of one cluster's actions on the board.
pub(crate) struct Reporter {
    pub board: Arc<Board>,
    pub cluster: String,
    pub metrics: Arc<super::metrics::Metrics>,
}

impl Progress for Reporter {
    fn started(&self, action: &Action) {
        let running = RunningAction {
            id: action.id.clone(),
            verb: action.verb.as_str(),
            kind: action.kind.clone(),
            name: action.name.clone(),
            node: action.node.clone(),
            vmid: action.vmid,
            step: String::new(),
            upid: None,
            since: Timestamp::now(),
        };
        tracing::info!(cluster = self.cluster, "{} {} begins", action.verb, action.resource());
        self.board.change(&self.cluster, |c| {
            c.running.insert(action.id.clone(), running);
            c.queued = c.queued.saturating_sub(1);
            c.moved = Instant::now();
        });
    }

    fn step(&self, action: &Action, text: &str, upid: Option<&str>) {
        self.board.change(&self.cluster, |c| {
            c.moved = Instant::now();
            if let Some(running) = c.running.get_mut(&action.id) {
                running.step = text.to_owned();
                running.upid = upid.map(str::to_owned).or(running.upid.take());
            }
        });
    }

    fn finished(&self, action: &Action, ended: &Ended) {
        let result = match ended.result {
            Outcome::Ok => "ok",
            Outcome::Failed => "failed",
            Outcome::Deferred => "deferred",
            Outcome::NotStarted => "not-started",
        };
        self.metrics.action(&self.cluster, action.verb.as_str(), result);
        let why = ended.error.as_deref().unwrap_or_default();
        let (cluster, id, verb) = (&self.cluster, action.resource(), action.verb);
        match ended.result {
            Outcome::Ok => {
                tracing::info!(cluster, "{verb} {id} is done in {} ms", ended.duration_ms);
            }
            Outcome::Failed => tracing::error!(cluster, "{verb} {id} failed: {why}"),
            _ => tracing::warn!(cluster, "{verb} {id} is {result}: {why}"),
        }
        self.board.change(&self.cluster, |c| {
            // What never started was still in the queue.
            if c.running.remove(&action.id).is_none() {
                c.queued = c.queued.saturating_sub(1);
            }
            c.moved = Instant::now();
        });
    }
}
