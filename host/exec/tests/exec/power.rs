//! Start and stop as actions of their own.

use crate::support::*;
use proxops_model::plan::Subject;
use proxops_model::{Action, Outcome, Step, Verb};
use proxops_sim::{FaultAnswer, GuestKind, TaskRule, World, seed};

const START: &str = "POST /nodes/pve01/qemu/101/status/start";

fn world(running: bool) -> World {
    let mut world = seed::empty();
    world.add_guest(GuestKind::Qemu, 101, "pve01", &[("name", "app"), ("tags", "proxops")]).running = running;
    world
}

fn start() -> Action {
    action(Verb::Start, 101, "app", vec![Step::Start])
}

#[tokio::test]
async fn a_start_that_ends_with_warnings_succeeded_and_shows_them() {
    let mut world = world(false);
    world.task_rules.push(TaskRule {
        kind: "qmstart".into(),
        exit: Some("WARNINGS: 1".into()),
        log: vec!["WARN: You may need to enable nesting.".into()],
        ..TaskRule::default()
    });
    let bench = bench(world).await;
    let ended = bench.run_one(start()).await;
    ok(&ended);
    assert_eq!(ended.warnings, ["WARN: You may need to enable nesting."]);
    assert!(bench.sim.world().guests[&101].running);
}

#[tokio::test]
async fn a_guest_that_runs_already_is_not_started() {
    let bench = bench(world(true)).await;
    ok(&bench.run_one(start()).await);
    assert_eq!(bench.writes(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_start_that_somebody_else_was_quicker_with_is_fine() {
    // fact Q48: the failure is only in the task
    let mut world = world(false);
    world.task_rules.push(TaskRule {
        kind: "qmstart".into(),
        exit: Some("VM 101 already running".into()),
        effect: Some(true),
        times: 1,
        ..TaskRule::default()
    });
    let bench = bench(world).await;
    ok(&bench.run_one(start()).await);
}

#[tokio::test]
async fn a_start_that_says_ok_and_did_nothing_is_a_failure() {
    let mut world = world(false);
    world.task_rules.push(TaskRule { kind: "qmstart".into(), effect: Some(false), ..TaskRule::default() });
    let bench = bench(world).await;
    let text = error(&bench.run_one(start()).await, Outcome::Failed);
    assert!(text.contains("not running"), "{text}");
}

#[tokio::test]
async fn a_start_whose_answer_is_lost_is_looked_at_first() {
    let bench = bench(world(false)).await;
    bench.fault("POST", "/nodes/pve01/qemu/101/status/start", FaultAnswer::DropAfter);
    ok(&bench.run_one(start()).await);
    assert_eq!(bench.writes(), [START]);

    bench.sim.clear_log();
    bench.sim.world().guests.get_mut(&101).unwrap().running = false;
    bench.fault("POST", "/nodes/pve01/qemu/101/status/start", FaultAnswer::DropBefore);
    ok(&bench.run_one(start()).await);
    assert_eq!(bench.writes(), [START, START]);
}

#[tokio::test]
async fn a_guest_that_became_another_is_not_stopped() {
    let bench = bench(world(true)).await;
    bench.planner.want(101, "app", &[]);
    let mut stop = action(Verb::Stop, 101, "app", vec![Step::Stop { hard: false }]);
    stop.digest = bench.digest(101).await;
    bench.sim.world().guests.get_mut(&101).unwrap().config.insert("name".into(), "stranger".into());
    error(&bench.run_one(stop).await, Outcome::Failed);
    assert_eq!(bench.writes(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_stop_is_a_shutdown_and_shows() {
    let bench = bench(world(true)).await;
    bench.planner.want(101, "app", &[]);
    ok(&bench.run_one(action(Verb::Stop, 101, "app", vec![Step::Stop { hard: false }])).await);
    assert_eq!(bench.writes(), ["POST /nodes/pve01/qemu/101/status/shutdown"]);
    assert!(!bench.sim.world().guests[&101].running);
}

#[tokio::test]
async fn a_container_that_somebody_else_started_is_fine() {
    // fact L21: the refusal is synchronous
    let mut world = seed::empty();
    world.add_guest(
        GuestKind::Lxc,
        201,
        "pve01",
        &[("hostname", "ct"), ("rootfs", "local-lvm:vm-201-disk-0,size=8G")],
    );
    // whoever it was, it runs by now
    world.task_rules.push(TaskRule { kind: "vzstart".into(), seconds: Some(0.0), ..TaskRule::default() });
    let bench = bench(world).await;
    let running = FaultAnswer::Status {
        status: 500,
        message: "CT 201 already running".into(),
        errors: Default::default(),
        effect: true,
    };
    bench.fault("POST", "/nodes/pve01/lxc/201/status/start", running);
    let mut start = action(Verb::Start, 201, "ct", vec![Step::Start]);
    start.subject = Some(Subject::Guest { guest_type: "lxc".into() });
    ok(&bench.run_one(start).await);
}

#[tokio::test]
async fn a_start_that_ha_only_noted_is_waited_for() {
    // fact U10
    let mut world = world(false);
    world.ha.insert("vm:101".into(), Default::default());
    world.task_rules.push(TaskRule { kind: "hastart".into(), effect: Some(false), ..TaskRule::default() });
    let bench = bench(world).await;
    let later = async {
        while bench.sim.world().all_tasks().all(|task| task.exit.is_none()) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        // well past the looks that a plain start gets
        let seen = bench.sim.requests();
        while bench.sim.requests() < seen + 10 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        bench.sim.world().guests.get_mut(&101).unwrap().running = true;
    };
    let (ended, ()) = tokio::join!(bench.run_one(start()), later);
    ok(&ended);
    assert_eq!(bench.writes(), [START]);
}

#[tokio::test]
async fn a_locked_guest_is_not_started_and_deferred() {
    let bench = bench(world(false)).await;
    bench.sim.world().guests.get_mut(&101).unwrap().config.insert("lock".into(), "backup".into());
    let text = error(&bench.run_one(start()).await, Outcome::Deferred);
    assert!(text.contains("backup"), "{text}");
    assert_eq!(bench.writes(), [START]);
}
