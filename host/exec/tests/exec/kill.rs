//! A process that is killed in the middle, and the run after it. The killed one is this test binary again.

use crate::support::*;
use proxops_exec::{Cancel, ClusterLock, execute, resume};
use proxops_model::kind::KindStep;
use proxops_model::{ClusterPlan, ResourceId, Step, Verb};
use proxops_sim::{FaultAnswer, GuestKind, RequestFault, Sim, SimOptions, TaskRule, seed};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// Runs one `#[ignore]`d test of this binary in a process of its own.
fn child(test: &str, dir: &Path, url: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("CHILD_DIR", dir)
        .env("CHILD_URL", url)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn dir_of_parent() -> std::path::PathBuf {
    std::env::var_os("CHILD_DIR").expect("only run by its parent").into()
}

fn wait_for_line(child: &mut Child, wanted: &str) {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(
        lines.map_while(Result::ok).any(|line| line.contains(wanted)),
        "the child ended without '{wanted}'"
    );
}

#[test]
#[ignore = "a child of the test below"]
fn child_holds_the_lock() {
    let _lock = ClusterLock::acquire(&dir_of_parent(), "lab").unwrap();
    println!("locked");
    loop {
        std::thread::park();
    }
}

#[test]
fn two_processes_exclude_each_other_and_a_killed_one_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = child("kill::child_holds_the_lock", dir.path(), "");
    wait_for_line(&mut child, "locked");
    let refused = ClusterLock::acquire(dir.path(), "lab").unwrap_err().to_string();
    assert!(refused.contains(&format!("pid {}", child.id())) && refused.contains("since"), "{refused}");
    ClusterLock::acquire(dir.path(), "other").unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    ClusterLock::acquire(dir.path(), "lab").unwrap();
}

fn clone_web() -> ClusterPlan {
    let source = ResourceId::new("TemplateVM", "tpl");
    let from = Step::CloneFrom {
        source_node: "pve01".into(),
        source_vmid: 9000,
        source,
        params: params(&[("name", "web")]),
    };
    let mut plan = ClusterPlan::new("lab");
    plan.actions = vec![action(Verb::Clone, 111, "web", vec![from, Step::Settle])];
    plan
}

#[tokio::test]
#[ignore = "a child of the test below"]
async fn child_clones() {
    let client = client(&std::env::var("CHILD_URL").unwrap());
    let planner = Arc::new(Planner::new(client.clone()));
    let mut env = env(client, planner, &dir_of_parent());
    env.timing.task = std::time::Duration::from_secs(600);
    execute(&mut clone_web(), &env).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_killed_while_it_clones_is_picked_up_and_makes_no_second_copy() {
    let mut world = seed::empty();
    world.add_guest(
        GuestKind::Qemu,
        9000,
        "pve01",
        &[
            ("name", "tpl"),
            ("scsi0", "local-lvm:base-9000-disk-0,size=8G"),
            ("ciuser", "builder"),
            ("tags", "proxops"),
            ("template", "1"),
        ],
    );
    world.task_rules.push(TaskRule { kind: "qmclone".into(), seconds: Some(600.0), ..TaskRule::default() });
    let sim = Sim::start(world, SimOptions::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut child = child("kill::child_clones", dir.path(), &sim.url());
    // the task id is written down right after the answer
    loop {
        let journal = proxops_exec::Journal::open(dir.path()).unwrap();
        if journal.unfinished("lab").unwrap().iter().any(|left| !left.in_flight.is_empty()) {
            break;
        }
        assert!(child.try_wait().unwrap().is_none(), "the child ended early");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let client = client(&sim.url());
    let planner = Arc::new(Planner::new(client.clone()));
    planner.want(111, "web", &[("cores", "4")]);
    planner.edit(111, |wanted| wanted.cleared_in_clones = vec!["ciuser".into()]);
    let env = env(client.clone(), planner.clone(), dir.path());

    // while the task runs the guest is to be left alone
    let mut short = timing();
    short.task = std::time::Duration::from_millis(50);
    let resumed = resume(&client, &env.journal, "lab", &short, &Cancel::new()).await.unwrap();
    assert!(resumed.busy[&111].contains("still runs"), "{resumed:?}");

    sim.world().finish_tasks();
    let resumed = resume(&client, &env.journal, "lab", &timing(), &Cancel::new()).await.unwrap();
    assert!(resumed.busy.is_empty(), "{resumed:?}");
    let template = ResourceId::new("TemplateVM", "tpl");
    assert_eq!(resumed.owed[&111].fresh_clone_of, Some(template.clone()));
    assert!(env.journal.unfinished("lab").unwrap().is_empty());
    assert_eq!(sim.world().guests[&111].config.get("ciuser").map(String::as_str), Some("builder"));

    // the next plan sees a guest that is a fresh clone, and updates it
    let clear = Step::Kind(KindStep::Configure {
        set: params(&[("cores", "4")]),
        unset: vec!["ciuser".into()],
        revert: vec![],
    });
    let mut plan = ClusterPlan::new("lab");
    plan.actions = vec![action(Verb::Update, 111, "web", vec![clear])];
    execute(&mut plan, &env).await;
    ok(plan.actions[0].ended.as_ref().unwrap());
    assert_eq!(sim.world().guests[&111].config.get("ciuser"), None);
    assert_eq!(planner.asked.lock().unwrap().last().unwrap(), &Some(template));
    assert!(env.journal.owed("lab").unwrap().is_empty());
    let clones = sim.write_log().iter().filter(|sent| sent.path.ends_with("/clone")).count();
    assert_eq!(clones, 1);
}

#[tokio::test]
async fn what_is_owed_to_a_guest_that_is_gone_is_forgotten() {
    let bench = bench(seed::empty()).await;
    bench.sim.world().add_guest(GuestKind::Qemu, 9000, "pve01", &[("name", "tpl"), ("template", "1")]);
    bench.planner.want(111, "web", &[("tags", "NEVER-SO")]);
    execute(&mut clone_web(), &bench.env).await;
    assert!(bench.env.journal.owed("lab").unwrap().contains_key(&111));
    bench.sim.world().guests.remove(&111);
    let resumed = resume(&bench.client, &bench.env.journal, "lab", &timing(), &Cancel::new()).await.unwrap();
    assert!(resumed.owed.is_empty(), "{resumed:?}");
}

#[tokio::test]
async fn a_clone_that_a_later_plan_finds_complete_is_settled() {
    let bench = bench(seed::empty()).await;
    bench.sim.world().add_guest(GuestKind::Qemu, 9000, "pve01", &[("name", "tpl"), ("template", "1")]);
    bench.planner.want(111, "web", &[("tags", "NEVER-SO")]);
    execute(&mut clone_web(), &bench.env).await;
    assert!(bench.env.journal.owed("lab").unwrap().contains_key(&111));
    execute(&mut ClusterPlan::new("lab"), &bench.env).await;
    assert!(bench.env.journal.owed("lab").unwrap().is_empty());
}

/// Runs a plan until this write was answered by PVE but not yet to us, then drops it: what a kill leaves.
async fn killed_before_the_answer(bench: &Bench, path: &str, mut plan: ClusterPlan) {
    let held =
        RequestFault { delay: 600.0, answer: None, ..RequestFault::once("POST", path, FaultAnswer::Html) };
    bench.sim.inject(held);
    let sent = async {
        while bench.sim.write_log().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = execute(&mut plan, &bench.env) => panic!("it ended: {:?}", plan.actions),
        () = sent => {}
    }
}

#[tokio::test]
async fn a_run_killed_before_the_answer_finds_its_task_by_the_guest() {
    let bench = bench(seed::empty()).await;
    bench.sim.world().add_guest(GuestKind::Qemu, 9000, "pve01", &[("name", "tpl"), ("template", "1")]);
    killed_before_the_answer(&bench, "/nodes/pve01/qemu/9000/clone", clone_web()).await;
    let left = bench.env.journal.unfinished("lab").unwrap();
    assert_eq!((left.len(), left[0].unanswered.len(), left[0].in_flight.len()), (1, 1, 0));

    let resumed = resume(&bench.client, &bench.env.journal, "lab", &timing(), &Cancel::new()).await.unwrap();
    assert!(resumed.busy.is_empty(), "{resumed:?}");
    assert!(resumed.owed[&111].fresh_clone_of.is_some());
    assert_eq!(bench.config(111, "lock"), None, "the clone was awaited");
    assert!(bench.env.journal.unfinished("lab").unwrap().is_empty());
}

#[tokio::test]
async fn a_node_that_is_down_keeps_its_leftovers_for_later() {
    let bench = bench(seed::empty()).await;
    bench.sim.world().add_guest(GuestKind::Qemu, 9000, "pve01", &[("name", "tpl"), ("template", "1")]);
    killed_before_the_answer(&bench, "/nodes/pve01/qemu/9000/clone", clone_web()).await;
    bench.sim.world().set_node("pve01", false);
    let resumed = resume(&bench.client, &bench.env.journal, "lab", &timing(), &Cancel::new()).await.unwrap();
    assert!(resumed.busy.contains_key(&111), "{resumed:?}");
    assert!(resumed.owed.contains_key(&111), "{resumed:?}");
    assert_eq!(bench.env.journal.unfinished("lab").unwrap().len(), 1);
}

async fn look(bench: &Bench) -> proxops_exec::Resumed {
    resume(&bench.client, &bench.env.journal, "lab", &timing(), &Cancel::new()).await.unwrap()
}

#[tokio::test]
async fn a_dead_nodes_task_is_over_once_the_guest_is_on_another_node() {
    let bench = bench(seed::empty()).await;
    bench.planner.want(101, "app", &[("cores", "2")]);
    let mut plan = ClusterPlan::new("lab");
    plan.actions = vec![create(101, "app")];
    killed_before_the_answer(&bench, "/nodes/pve01/qemu", plan).await;
    bench.sim.world().set_node("pve01", false);
    assert!(look(&bench).await.busy.contains_key(&101), "it lies on the dead node and may come back with it");

    // somebody, or HA, took the configuration over
    bench.sim.world().move_guest(101, "pve02");
    let resumed = look(&bench).await;
    assert!(resumed.busy.is_empty(), "{resumed:?}");
    assert!(resumed.notes.iter().any(|note| note.contains("the guest is on pve02 now")), "{resumed:?}");
    assert!(bench.env.journal.unfinished("lab").unwrap().is_empty());
}

#[tokio::test]
async fn a_node_that_left_the_cluster_holds_nothing_up() {
    let bench = bench(seed::empty()).await;
    let mut plan = ClusterPlan::new("lab");
    plan.actions = vec![create(101, "app")];
    killed_before_the_answer(&bench, "/nodes/pve01/qemu", plan).await;
    bench.sim.world().set_node("pve01", false);
    bench.sim.world().nodes.remove("pve01");
    let resumed = resume(&bench.client, &bench.env.journal, "lab", &timing(), &Cancel::new()).await.unwrap();
    assert!(resumed.notes.iter().any(|note| note.contains("no member of the cluster")), "{resumed:?}");
    assert!(bench.env.journal.unfinished("lab").unwrap().is_empty(), "{resumed:?}");
}

#[tokio::test]
async fn the_empty_guest_that_a_dead_clone_left_stays_owed_until_it_is_removed() {
    // Q41: the killed worker leaves a locked configuration that holds nothing; somebody unlocks it
    let bench = bench(seed::empty()).await;
    bench.sim.world().add_guest(GuestKind::Qemu, 9000, "pve01", &[("name", "tpl"), ("template", "1")]);
    killed_before_the_answer(&bench, "/nodes/pve01/qemu/9000/clone", clone_web()).await;
    bench.sim.world().set_node("pve01", false);
    bench.sim.world().set_node("pve01", true);
    bench.sim.world().guests.get_mut(&111).unwrap().config.remove("lock");
    let resumed = look(&bench).await;
    assert!(resumed.owed[&111].fresh_clone_of.is_some(), "the planner knows the shell by it: {resumed:?}");
    assert!(look(&bench).await.owed.contains_key(&111), "and so it stays");

    bench.sim.world().guests.remove(&111);
    let resumed = look(&bench).await;
    assert!(resumed.busy.is_empty() && resumed.owed.is_empty(), "{resumed:?}");
}

#[tokio::test]
async fn a_lock_that_a_dead_worker_left_does_not_hold_up_the_next_run() {
    let bench = bench(seed::empty()).await;
    bench.sim.world().add_guest(GuestKind::Qemu, 9000, "pve01", &[("name", "tpl"), ("template", "1")]);
    killed_before_the_answer(&bench, "/nodes/pve01/qemu/9000/clone", clone_web()).await;
    bench.sim.world().finish_tasks();
    bench.sim.world().guests.get_mut(&111).unwrap().config.insert("lock".into(), "clone".into());
    let resumed = resume(&bench.client, &bench.env.journal, "lab", &timing(), &Cancel::new()).await.unwrap();
    assert!(resumed.notes.iter().any(|note| note.contains("locked (clone)")), "{resumed:?}");
    assert!(resumed.busy.is_empty(), "planning sees the lock itself: {resumed:?}");
}
