//! What programs read: health, metrics, `proxops.status/v1`, `proxops.diff/v1`.

use super::router::{App, text};
use crate::run::{
    Board, ClusterBoard, CycleRecord, Daemon, Phase, RunningAction, Suspension, TreeView, when,
};
use crate::{LastCycle, ObjectStatus};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use proxops_model::plan::{ClusterPlan, Outcome, Summary};
use serde::Serialize;
use std::borrow::Cow;

/// 200 once a full cycle of all clusters ended and no loop is late.
pub(super) async fn healthz(State(app): State<App>) -> Response {
    match app.board().unhealthy() {
        None => text(StatusCode::OK, "ok\n"),
        Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// 200 once the repository was read.
pub(super) async fn readyz(State(app): State<App>) -> Response {
    match app.board().tree() {
        Some(_) => text(StatusCode::OK, "ok\n"),
        None => text(StatusCode::SERVICE_UNAVAILABLE, "the repository was not read yet\n"),
    }
}

pub(super) async fn metrics(State(app): State<App>) -> Response {
    let body = app.daemon.metrics.render(app.board());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], body).into_response()
}

/// What the daemon says of itself.
#[derive(Debug, Serialize)]
pub struct About {
    /// Of the program.
    pub version: &'static str,
    /// RFC 3339.
    #[serde(with = "when")]
    pub started_at: Timestamp,
    /// It writes nothing.
    pub observe: bool,
    /// Where journal and locks lie, absolute, symlinks resolved.
    pub data_dir: String,
    /// The tree that it works on.
    pub tree: Option<TreeView>,
}

impl About {
    pub(super) fn of(daemon: &Daemon) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            started_at: daemon.board.started,
            observe: daemon.options.observe,
            data_dir: proxops_repo::resolved(&daemon.settings.data_dir).display().to_string(),
            tree: daemon.board.tree(),
        }
    }
}

/// `proxops.status/v1` of a daemon: that of the command, and what only a daemon knows.
#[derive(Debug, Serialize)]
pub struct StatusDocument {
    format: &'static str,
    daemon: About,
    clusters: Vec<ClusterDocument>,
}

#[derive(Debug, Serialize)]
struct ClusterDocument {
    cluster: String,
    commit: Option<String>,
    stale: bool,
    /// `null` before the first cycle ended.
    last_cycle: Option<LastCycle>,
    objects: Vec<ObjectStatus>,
    phase: Phase,
    #[serde(serialize_with = "when::maybe")]
    next_cycle_at: Option<Timestamp>,
    failures: u32,
    suspended: Option<Suspension>,
    queued: usize,
    running: Vec<RunningAction>,
    cycles: Vec<CycleRecord>,
}

impl ClusterDocument {
    fn of(name: &str, c: &ClusterBoard) -> Self {
        let status = c.found.as_ref().map(|f| &f.status);
        Self {
            cluster: name.to_owned(),
            commit: status.and_then(|s| s.commit.clone()),
            stale: status.is_some_and(|s| s.stale),
            last_cycle: status.map(|s| s.last_cycle.clone()),
            objects: objects(c),
            phase: c.phase,
            next_cycle_at: (c.phase == Phase::Waiting).then_some(c.due_at),
            failures: c.failures,
            suspended: c.suspended.clone(),
            queued: c.queued,
            running: c.running.values().cloned().collect(),
            cycles: c.cycles.iter().cloned().collect(),
        }
    }
}

/// The objects of the last cycle; what is being worked on is `in-progress`.
pub(super) fn objects(c: &ClusterBoard) -> Vec<ObjectStatus> {
    let mut objects = c.found.as_ref().map(|f| f.status.objects.clone()).unwrap_or_default();
    for running in c.running.values() {
        let same = |o: &&mut ObjectStatus| o.kind == running.kind && o.name == running.name;
        for object in
            objects.iter_mut().filter(same).filter(|o| running.vmid.is_none() || o.vmid == running.vmid)
        {
            object.state = Cow::Borrowed("in-progress");
            object.reason = Some(format!("{} is running", running.verb));
        }
    }
    objects
}

impl StatusDocument {
    fn of(daemon: &Daemon) -> Self {
        let clusters = daemon.board.clusters();
        let clusters = clusters.iter().map(|(name, c)| ClusterDocument::of(name, c)).collect();
        Self { format: "proxops.status/v1", daemon: About::of(daemon), clusters }
    }
}

pub(super) async fn status(State(app): State<App>) -> Response {
    json(&StatusDocument::of(&app.daemon))
}

/// `proxops.diff/v1` of a daemon: what the last cycle found and did not put right.
#[derive(Debug, Serialize)]
pub struct DiffDocument {
    format: &'static str,
    daemon: About,
    clusters: Vec<PlannedCluster>,
    summary: Summary,
}

#[derive(Debug, Serialize)]
struct PlannedCluster {
    #[serde(flatten)]
    plan: ClusterPlan,
    /// RFC 3339: when it was planned.
    #[serde(serialize_with = "when::maybe")]
    planned_at: Option<Timestamp>,
}

/// A plan without what was done since.
pub(super) fn left(plan: &ClusterPlan) -> ClusterPlan {
    let mut left = plan.clone();
    left.actions.retain(|a| a.ended.as_ref().is_none_or(|end| end.result != Outcome::Ok));
    left.actions.iter_mut().for_each(|a| a.ended = None);
    left
}

impl DiffDocument {
    fn of(daemon: &Daemon, board: &Board) -> Self {
        let clusters = board.clusters();
        let found = clusters.values().filter_map(|c| Some((c.found.as_ref()?, c.cycles.front())));
        let clusters: Vec<PlannedCluster> = found
            .map(|(found, cycle)| PlannedCluster {
                plan: left(&found.plan),
                planned_at: cycle.map(|cycle| cycle.started_at),
            })
            .collect();
        let plans: Vec<ClusterPlan> = clusters.iter().map(|c| c.plan.clone()).collect();
        Self { format: "proxops.diff/v1", daemon: About::of(daemon), clusters, summary: Summary::of(&plans) }
    }
}

pub(super) async fn diff(State(app): State<App>) -> Response {
    json(&DiffDocument::of(&app.daemon, app.board()))
}

fn json(document: &impl Serialize) -> Response {
    match serde_json::to_vec(document) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}
