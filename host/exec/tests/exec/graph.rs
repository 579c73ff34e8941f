//! What starts when. Each action is a start whose task ends when the test says so.

use crate::support::{action, timing};
use futures::FutureExt;
use futures::future::BoxFuture;
use proxops_exec::{
    Cancel, ExecEnv, Journal, Limits, NoProgress, Replanned, Replanner, SecretSource, Wire, execute,
};
use proxops_model::kind::{GuestType, Method};
use proxops_model::plan::Subject;
use proxops_model::{Action, ClusterPlan, Outcome, ResourceId, Step, Verb};
use proxops_pve::{
    Answer, Class, GuestConfig, GuestStatus, ParamText, PveError, ReplicationJob, TaskEnd, TaskQuery,
    TaskRow, Upid, Volume,
};
use proxops_secrets::Secret;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

/// Guests that start when they are told to, and a channel that says which was asked.
struct Gated {
    asked: mpsc::UnboundedSender<u32>,
    ends: Mutex<BTreeMap<u32, TaskEnd>>,
    running: Mutex<BTreeSet<u32>>,
    changed: Notify,
}

impl Gated {
    fn end(&self, vmid: u32, end: TaskEnd) {
        if end == TaskEnd::Ok {
            self.running.lock().unwrap().insert(vmid);
        }
        self.ends.lock().unwrap().insert(vmid, end);
        self.changed.notify_waiters();
    }
}

fn nothing<T>() -> Result<T, PveError> {
    let message = "not scripted".to_owned();
    Err(PveError {
        class: Class::Server,
        method: "GET",
        path: String::new(),
        status: None,
        message,
        errors: BTreeMap::new(),
    })
}

impl Wire for Gated {
    fn send<'a>(
        &'a self,
        _: Method,
        path: &'a str,
        _: &'a [(String, ParamText)],
    ) -> BoxFuture<'a, Result<Answer, PveError>> {
        async move {
            let parts: Vec<&str> = path.split('/').collect();
            let (node, vmid) = (parts[2], parts[4]);
            self.asked.send(vmid.parse().unwrap()).unwrap();
            let upid = format!("UPID:{node}:00000001:00000001:00000001:qmstart:{vmid}:root@pam:");
            Ok(Answer { data: upid.into(), total: None })
        }
        .boxed()
    }

    fn wait_task<'a>(&'a self, upid: &'a Upid, _: Duration) -> BoxFuture<'a, Result<TaskEnd, PveError>> {
        let vmid: u32 = upid.id.parse().unwrap();
        async move {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                if let Some(end) = self.ends.lock().unwrap().remove(&vmid) {
                    return Ok(end);
                }
                changed.await;
            }
        }
        .boxed()
    }

    fn guest_status<'a>(
        &'a self,
        _: &'a str,
        _: GuestType,
        vmid: u32,
    ) -> BoxFuture<'a, Result<GuestStatus, PveError>> {
        let runs = self.running.lock().unwrap().contains(&vmid);
        let status = if runs { "running" } else { "stopped" }.to_owned();
        async move { Ok(GuestStatus { status, qmp_status: None, lock: None, ha_managed: false }) }.boxed()
    }

    fn guest_config<'a>(
        &'a self,
        _: &'a str,
        _: GuestType,
        _: u32,
    ) -> BoxFuture<'a, Result<GuestConfig, PveError>> {
        async { nothing() }.boxed()
    }

    fn locate(&self, _: u32) -> BoxFuture<'_, Result<Option<(String, GuestType)>, PveError>> {
        async { nothing() }.boxed()
    }

    fn nodes(&self) -> BoxFuture<'_, Result<Vec<proxops_pve::Node>, PveError>> {
        async { nothing() }.boxed()
    }

    fn node_tasks<'a>(
        &'a self,
        _: &'a str,
        _: &'a TaskQuery,
    ) -> BoxFuture<'a, Result<Vec<TaskRow>, PveError>> {
        async { nothing() }.boxed()
    }

    fn storage_content<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Volume>, PveError>> {
        async { nothing() }.boxed()
    }

    fn replication(&self) -> BoxFuture<'_, Result<Vec<ReplicationJob>, PveError>> {
        async { nothing() }.boxed()
    }
}

struct Nobody;

impl Replanner for Nobody {
    fn replan<'a>(
        &'a self,
        _: &'a Action,
        _: Option<&'a ResourceId>,
    ) -> BoxFuture<'a, Result<Replanned, String>> {
        async { Err("not scripted".to_owned()) }.boxed()
    }
}

impl SecretSource for Nobody {
    fn secret(&self, _: &str) -> Result<Secret, String> {
        Err("not scripted".to_owned())
    }
}

struct Stage {
    wire: Arc<Gated>,
    asked: mpsc::UnboundedReceiver<u32>,
    cancel: Cancel,
    run: JoinHandle<ClusterPlan>,
    _dir: TempDir,
}

fn start(vmid: u32) -> Action {
    action(Verb::Start, vmid, &format!("vm{vmid}"), vec![Step::Start])
}

fn after(mut action: Action, others: &[u32]) -> Action {
    action.after = others.iter().map(|vmid| start(*vmid).id).collect();
    action.level = 1;
    action
}

impl Stage {
    fn new(cluster: usize, node: usize, actions: Vec<Action>) -> Self {
        let (send, asked) = mpsc::unbounded_channel();
        let wire = Arc::new(Gated {
            asked: send,
            ends: Mutex::default(),
            running: Mutex::default(),
            changed: Notify::new(),
        });
        let dir = tempfile::tempdir().unwrap();
        let cancel = Cancel::new();
        let env = ExecEnv {
            cluster: "lab".into(),
            commit: None,
            actor: None,
            client: wire.clone(),
            journal: Arc::new(Journal::open(dir.path()).unwrap()),
            replanner: Arc::new(Nobody),
            secrets: Arc::new(Nobody),
            progress: Arc::new(NoProgress),
            limits: Limits { cluster, node },
            timing: timing(),
            owner_tag: "proxops".into(),
            cancel: cancel.clone(),
        };
        let run = tokio::spawn(async move {
            let mut plan = ClusterPlan::new("lab");
            plan.actions = actions;
            execute(&mut plan, &env).await;
            plan
        });
        Self { wire, asked, cancel, run, _dir: dir }
    }

    /// The next that is asked to start.
    async fn next(&mut self) -> u32 {
        self.asked.recv().await.unwrap()
    }

    /// The next `count` that are asked to start, in any order.
    async fn next_set(&mut self, count: usize) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        for _ in 0..count {
            found.insert(self.next().await);
        }
        found
    }

    fn ok(&self, vmid: u32) {
        self.wire.end(vmid, TaskEnd::Ok);
    }

    fn fail(&self, vmid: u32) {
        self.wire.end(vmid, TaskEnd::Failed { class: Class::Server, text: "boom".into() });
    }

    /// Nothing else is asked before all of these ended; then the results in plan order.
    async fn results(mut self) -> Vec<(u32, Outcome, Option<String>)> {
        let plan = self.run.await.unwrap();
        assert_eq!(self.asked.try_recv().ok(), None, "something started that nobody expected");
        plan.actions
            .into_iter()
            .map(|action| {
                let ended = action.ended.unwrap();
                (action.vmid.unwrap(), ended.result, ended.error)
            })
            .collect()
    }
}

#[tokio::test]
async fn an_action_starts_the_moment_its_own_prerequisites_are_done() {
    let mut stage = Stage::new(
        8,
        8,
        vec![start(101), start(102), after(start(103), &[101]), after(start(104), &[101, 102])],
    );
    assert_eq!(stage.next_set(2).await, BTreeSet::from([101, 102]));
    stage.ok(101);
    // 102 still runs: levels are no barrier
    assert_eq!(stage.next().await, 103);
    stage.ok(103);
    stage.ok(102);
    assert_eq!(stage.next().await, 104);
    stage.ok(104);
    let results = stage.results().await;
    assert!(results.iter().all(|(_, result, _)| *result == Outcome::Ok), "{results:?}");
}

#[tokio::test]
async fn what_needs_a_failed_action_is_deferred_with_the_reason_and_the_rest_goes_on() {
    let mut third = after(start(103), &[102]);
    third.level = 2;
    let mut stage = Stage::new(8, 8, vec![start(101), start(104), after(start(102), &[101]), third]);
    assert_eq!(stage.next_set(2).await, BTreeSet::from([101, 104]));
    stage.fail(101);
    stage.ok(104);
    let results = stage.results().await;
    let of = |vmid| results.iter().find(|(id, ..)| *id == vmid).unwrap();
    assert_eq!(of(101).1, Outcome::Failed);
    assert_eq!(of(102).1, Outcome::Deferred);
    assert_eq!(of(102).2.as_deref(), Some("its prerequisite start:VM/vm101 failed"));
    assert_eq!(of(103).1, Outcome::Deferred);
    assert_eq!(of(103).2.as_deref(), Some("its prerequisite start:VM/vm102 was deferred"));
    assert_eq!(of(104).1, Outcome::Ok);
}

#[tokio::test]
async fn never_more_at_once_than_the_cluster_allows() {
    let mut stage = Stage::new(2, 8, (101..=105).map(start).collect());
    assert_eq!(stage.next_set(2).await, BTreeSet::from([101, 102]));
    stage.ok(102);
    assert_eq!(stage.next().await, 103);
    stage.ok(101);
    assert_eq!(stage.next().await, 104);
    stage.ok(103);
    assert_eq!(stage.next().await, 105);
    stage.ok(104);
    stage.ok(105);
    assert_eq!(stage.results().await.len(), 5);
}

#[tokio::test]
async fn a_full_node_does_not_hold_up_another() {
    let mut elsewhere = start(103);
    elsewhere.node = Some("pve02".into());
    let mut stage = Stage::new(8, 1, vec![start(101), start(102), elsewhere]);
    assert_eq!(stage.next_set(2).await, BTreeSet::from([101, 103]));
    stage.ok(101);
    assert_eq!(stage.next().await, 102);
    stage.ok(102);
    stage.ok(103);
    stage.results().await;
}

#[tokio::test]
async fn one_at_a_time_follows_the_plan() {
    // plan order, not level order
    let mut stage = Stage::new(1, 4, vec![start(105), after(start(103), &[105]), start(104)]);
    for vmid in [105, 103, 104] {
        assert_eq!(stage.next().await, vmid);
        stage.ok(vmid);
    }
    stage.results().await;
}

#[tokio::test]
async fn one_guest_is_never_in_two_hands() {
    let mut again = start(101);
    again.id = "again".into();
    let mut stage = Stage::new(8, 8, vec![start(101), again, start(102)]);
    assert_eq!(stage.next_set(2).await, BTreeSet::from([101, 102]));
    stage.ok(101);
    stage.ok(102);
    // the second found it running
    let results = stage.results().await;
    assert!(results.iter().all(|(_, result, _)| *result == Outcome::Ok), "{results:?}");
}

#[tokio::test]
async fn a_container_is_cloned_by_one_at_a_time() {
    // fact L18: the source is locked meanwhile
    let clone = |vmid: u32| {
        let from = Step::CloneFrom {
            source_node: "pve01".into(),
            source_vmid: 900,
            source: ResourceId::new("TemplateCT", "tpl"),
            params: Vec::new(),
        };
        let mut clone = action(Verb::Clone, vmid, &format!("ct{vmid}"), vec![from]);
        clone.subject = Some(Subject::Guest { guest_type: "lxc".into() });
        clone
    };
    let mut stage = Stage::new(8, 8, vec![clone(201), clone(202), start(101)]);
    // both clones post to the source's path
    assert_eq!(stage.next_set(2).await, BTreeSet::from([900, 101]));
    stage.fail(900);
    assert_eq!(stage.next().await, 900);
    stage.fail(900);
    stage.ok(101);
    stage.results().await;
}

#[tokio::test]
async fn after_cancel_nothing_starts_and_what_runs_is_awaited() {
    let mut stage = Stage::new(1, 4, vec![start(101), start(102), after(start(103), &[102])]);
    assert_eq!(stage.next().await, 101);
    stage.cancel.cancel();
    stage.ok(101);
    let results = stage.results().await;
    let outcomes: Vec<Outcome> = results.iter().map(|(_, result, _)| *result).collect();
    assert_eq!(outcomes, [Outcome::Ok, Outcome::NotStarted, Outcome::NotStarted]);
}

#[tokio::test]
async fn a_plan_that_waits_for_itself_ends() {
    let stage = Stage::new(
        8,
        8,
        vec![after(start(101), &[102]), after(start(102), &[101]), after(start(103), &[999])],
    );
    let results = stage.results().await;
    assert!(results.iter().all(|(_, result, _)| *result == Outcome::Deferred), "{results:?}");
    assert!(results[2].2.as_deref().unwrap().contains("not part of this plan"), "{results:?}");
}
