//! Updates: never over somebody else's change, never believed without a look.

use crate::support::*;
use proxops_exec::HistoryFilter;
use proxops_model::kind::KindStep;
use proxops_model::{Action, Outcome, Step, Verb};
use proxops_sim::{FaultAnswer, GuestKind, RequestFault, TaskRule, World, seed};

const CONFIG: &str = "PUT /nodes/pve01/qemu/101/config";

fn world() -> World {
    let mut world = seed::empty();
    world.add_guest(
        GuestKind::Qemu,
        101,
        "pve01",
        &[
            ("name", "app"),
            ("memory", "1024"),
            ("cores", "2"),
            ("scsi0", "local-lvm:vm-101-disk-0,size=8G"),
            ("ide2", "local-lvm:vm-101-cloudinit,media=cdrom"),
            ("tags", "proxops"),
        ],
    );
    world
}

async fn update(bench: &Bench, steps: Vec<Step>) -> Action {
    let mut update = action(Verb::Update, 101, "app", steps);
    update.digest = bench.digest(101).await;
    update
}

#[tokio::test]
async fn an_update_carries_the_digest_that_it_was_planned_on() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[("memory", "2048")]);
    let update = update(&bench, vec![configure(&[("memory", "2048")])]).await;
    let digest = update.digest.clone();
    ok(&bench.run_one(update).await);
    assert_eq!(bench.writes(), [CONFIG]);
    assert_eq!(bench.sent(0, "digest"), digest);
}

#[tokio::test]
async fn a_change_behind_the_back_is_planned_again_not_overwritten() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[("memory", "2048")]);
    let update = update(&bench, vec![configure(&[("memory", "2048"), ("cores", "2")])]).await;
    bench.sim.world().guests.get_mut(&101).unwrap().config.insert("cores".into(), "6".into());
    ok(&bench.run_one(update).await);
    // the second write is the new plan, which knows nothing of cores
    assert_eq!(bench.writes(), [CONFIG, CONFIG]);
    assert_eq!(bench.sent(1, "cores"), None);
    assert_eq!(bench.config(101, "cores").as_deref(), Some("6"));
    assert_eq!(bench.config(101, "memory").as_deref(), Some("2048"));
}

#[tokio::test]
async fn somebody_who_keeps_writing_wins() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[("memory", "2048")]);
    let update = update(&bench, vec![configure(&[("memory", "2048")])]).await;
    for _ in 0..3 {
        bench.fault(
            "PUT",
            "/nodes/pve01/qemu/101/config",
            refuse("checksum mismatch (file change by other user?)"),
        );
    }
    let text = error(&bench.run_one(update).await, Outcome::Failed);
    assert!(text.contains("somebody else"), "{text}");
    assert_eq!(bench.writes().len(), 3);
    assert_eq!(bench.config(101, "memory").as_deref(), Some("1024"));
}

#[tokio::test]
async fn an_update_whose_answer_is_lost_is_looked_at_before_anything_else() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[("memory", "2048")]);
    let steps = vec![configure(&[("memory", "2048")])];
    let first = update(&bench, steps.clone()).await;
    bench.fault("PUT", "/nodes/pve01/qemu/101/config", FaultAnswer::DropAfter);
    ok(&bench.run_one(first).await);
    assert_eq!(bench.writes(), [CONFIG], "it was done: nothing to repeat");

    bench.planner.want(101, "app", &[("memory", "4096")]);
    let second = update(&bench, vec![configure(&[("memory", "4096")])]).await;
    bench.fault("PUT", "/nodes/pve01/qemu/101/config", FaultAnswer::DropBefore);
    ok(&bench.run_one(second).await);
    assert_eq!(bench.writes(), [CONFIG, CONFIG, CONFIG], "it was not done: planned again");
    assert_eq!(bench.config(101, "memory").as_deref(), Some("4096"));
}

#[tokio::test]
async fn a_guest_that_someone_else_made_under_the_vmid_is_not_written() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[("memory", "2048")]);
    let update = update(&bench, vec![configure(&[("memory", "2048")])]).await;
    bench.sim.world().guests.get_mut(&101).unwrap().config.insert("name".into(), "stranger".into());
    let text = error(&bench.run_one(update).await, Outcome::Failed);
    assert!(text.contains("stranger"), "{text}");
    assert_eq!(bench.writes(), [CONFIG]);
}

#[tokio::test]
async fn a_guest_that_moved_is_updated_where_it_is() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[("memory", "2048")]);
    let update = update(&bench, vec![configure(&[("memory", "2048")])]).await;
    bench.sim.world().move_guest(101, "pve02");
    ok(&bench.run_one(update).await);
    assert_eq!(bench.writes(), [CONFIG, "PUT /nodes/pve02/qemu/101/config"]);
}

#[tokio::test]
async fn a_guest_that_somebody_destroyed_meanwhile_is_not_made_by_an_update() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[("memory", "2048")]);
    let update = update(&bench, vec![configure(&[("memory", "2048")])]).await;
    bench.sim.world().guests.remove(&101);
    let text = error(&bench.run_one(update).await, Outcome::Failed);
    assert!(text.contains("deleted after the plan was made"), "{text}");
    assert_eq!(bench.writes(), [CONFIG]);
}

#[tokio::test]
async fn a_locked_guest_defers_with_the_locks_name() {
    let bench = bench(world()).await;
    bench.sim.world().guests.get_mut(&101).unwrap().config.insert("lock".into(), "backup".into());
    let update = update(&bench, vec![configure(&[("memory", "2048")])]).await;
    let text = error(&bench.run_one(update).await, Outcome::Deferred);
    assert!(text.contains("backup"), "{text}");
    assert!(bench.writes().len() <= 1, "no hot retry: {:?}", bench.writes());
}

#[tokio::test]
async fn a_permanent_refusal_ends_the_action_at_once_with_help() {
    let bench = bench(world()).await;
    let update = update(&bench, vec![configure(&[("memory", "2048")]), configure(&[("cores", "3")])]).await;
    let denied = FaultAnswer::Status {
        status: 403,
        message: "Permission check failed (/vms/101, VM.Config.Memory)".into(),
        errors: Default::default(),
        effect: false,
    };
    bench.fault("PUT", "/nodes/pve01/qemu/101/config", denied);
    let text = error(&bench.run_one(update).await, Outcome::Failed);
    assert!(text.contains("grant VM.Config.Memory on /vms/101"), "{text}");
    assert_eq!(bench.writes(), [CONFIG]);
}

#[tokio::test]
async fn a_write_that_pve_took_and_did_not_do_is_a_failure() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[("memory", "2048")]);
    let update = update(&bench, vec![configure(&[("cores", "3")])]).await;
    let text = error(&bench.run_one(update).await, Outcome::Failed);
    assert!(text.contains("memory is 1024, not 2048"), "{text}");
}

#[tokio::test]
async fn a_value_that_allocates_is_written_in_a_task() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[]);
    let update = update(&bench, vec![configure(&[("scsi1", "local-lvm:4")])]).await;
    let ended = bench.run_one(update).await;
    ok(&ended);
    assert_eq!(bench.writes(), ["POST /nodes/pve01/qemu/101/config"]);
    assert!(bench.sent(0, "digest").is_some());
    assert_eq!(ended.upids.len(), 1);
}

#[tokio::test]
async fn each_write_of_an_action_carries_a_fresh_digest() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[("memory", "2048"), ("cores", "3")]);
    let steps = vec![
        configure(&[("memory", "2048")]),
        Step::Kind(KindStep::Resize {
            disk: "scsi0".into(),
            bytes: 12 << 30,
            at: "/spec/disks/0/size".into(),
        }),
        configure(&[("cores", "3")]),
    ];
    let update = update(&bench, steps).await;
    ok(&bench.run_one(update).await);
    assert_eq!(bench.writes(), [CONFIG, "PUT /nodes/pve01/qemu/101/resize", CONFIG]);
    assert_eq!(bench.sent(1, "size").as_deref(), Some("12G"));
    let digests: Vec<_> = (0..3).map(|index| bench.sent(index, "digest")).collect();
    assert!(
        digests.iter().all(Option::is_some) && digests[0] != digests[1] && digests[1] != digests[2],
        "{digests:?}"
    );
}

#[tokio::test]
async fn a_disk_that_is_large_enough_is_not_resized() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[]);
    let grow = |bytes| vec![Step::Kind(KindStep::Resize { disk: "scsi0".into(), bytes, at: String::new() })];
    let smaller = update(&bench, grow(4 << 30)).await;
    ok(&bench.run_one(smaller).await);
    assert_eq!(bench.writes(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_seed_image_that_could_not_be_rebuilt_stays_owed() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[("ciuser", "ops")]);
    bench.sim.world().guests.get_mut(&101).unwrap().running = true;
    let steps = vec![configure(&[("ciuser", "ops")]), Step::Kind(KindStep::RebuildCloudInit)];
    let first = update(&bench, steps).await;
    bench.fault("PUT", "/nodes/pve01/qemu/101/cloudinit", refuse("it broke"));
    error(&bench.run_one(first).await, Outcome::Failed);
    assert!(bench.env.journal.owed("lab").unwrap()[&101].rebuild_seed);

    // the next action that writes pays it, though its plan does not say so
    bench.sim.clear_log();
    bench.planner.want(101, "app", &[("ciuser", "ops"), ("onboot", "1")]);
    let second = update(&bench, vec![configure(&[("onboot", "1")])]).await;
    ok(&bench.run_one(second).await);
    assert_eq!(bench.writes(), [CONFIG, "PUT /nodes/pve01/qemu/101/cloudinit"]);
    assert!(bench.env.journal.owed("lab").unwrap().is_empty());
    assert_eq!(bench.sim.world().guests[&101].seeded.get("ciuser").map(String::as_str), Some("ops"));
}

#[tokio::test]
async fn a_refused_cloud_init_write_owes_no_seed_image() {
    let bench = bench(world()).await;
    let steps = vec![configure(&[("ciuser", "ops")]), Step::Kind(KindStep::RebuildCloudInit)];
    let update = update(&bench, steps).await;
    bench.fault("PUT", "/nodes/pve01/qemu/101/config", refuse("cluster not ready - no quorum?"));
    let text = error(&bench.run_one(update).await, Outcome::Failed);
    assert!(text.contains("quorum"), "{text}");
    assert!(bench.env.journal.owed("lab").unwrap().is_empty());
}

#[tokio::test]
async fn a_restart_stops_writes_and_starts() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[("cores", "4")]);
    bench.sim.world().guests.get_mut(&101).unwrap().running = true;
    let steps = vec![Step::Stop { hard: false }, configure(&[("cores", "4")]), Step::Start];
    let update = update(&bench, steps).await;
    ok(&bench.run_one(update).await);
    assert_eq!(
        bench.writes(),
        ["POST /nodes/pve01/qemu/101/status/shutdown", CONFIG, "POST /nodes/pve01/qemu/101/status/start"]
    );
    assert_eq!(bench.sent(0, "timeout").as_deref(), Some("1"));
    assert!(bench.sim.world().guests[&101].running);
}

#[tokio::test]
async fn a_restart_whose_write_fails_leaves_the_guest_running() {
    let bench = bench(world()).await;
    bench.sim.world().guests.get_mut(&101).unwrap().running = true;
    let steps = vec![Step::Stop { hard: false }, configure(&[("cores", "4")]), Step::Start];
    let update = update(&bench, steps).await;
    bench.fault(
        "PUT",
        "/nodes/pve01/qemu/101/config",
        refuse("invalid bootorder: device 'net9' does not exist'"),
    );
    let text = error(&bench.run_one(update).await, Outcome::Failed);
    assert!(text.contains("bootorder") && text.contains("started again"), "{text}");
    assert!(bench.sim.world().guests[&101].running);
}

#[tokio::test]
async fn a_guest_that_does_not_shut_down_is_not_changed() {
    let mut world = world();
    world.task_rules.push(TaskRule::fail("qmshutdown", "VM quit/powerdown failed - got timeout"));
    let bench = bench(world).await;
    bench.sim.world().guests.get_mut(&101).unwrap().running = true;
    let steps = vec![Step::Stop { hard: false }, configure(&[("cores", "4")]), Step::Start];
    let update = update(&bench, steps).await;
    let text = error(&bench.run_one(update).await, Outcome::Failed);
    assert!(text.contains("left running"), "{text}");
    assert_eq!(bench.writes(), ["POST /nodes/pve01/qemu/101/status/shutdown"]);
}

#[tokio::test]
async fn a_task_that_outlives_its_time_stays_in_the_journal() {
    let mut world = world();
    world.task_rules.push(TaskRule { kind: "qmconfig".into(), hang: true, ..TaskRule::default() });
    let mut bench = bench(world).await;
    bench.env.timing.task = std::time::Duration::from_millis(300);
    let update = update(&bench, vec![configure(&[("scsi1", "local-lvm:4")])]).await;
    let text = error(&bench.run_one(update).await, Outcome::Failed);
    assert!(text.contains("still runs"), "{text}");
    let left = bench.env.journal.unfinished("lab").unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].in_flight.len(), 1);
}

#[tokio::test]
async fn the_audit_trail_says_who_asked_what_was_done_and_how_it_ended() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[("memory", "2048")]);
    let update = update(&bench, vec![configure(&[("memory", "2048")])]).await;
    ok(&bench.run_one(update).await);
    let history = bench
        .env
        .journal
        .history(&HistoryFilter { vmid: Some(101), ..HistoryFilter::default() }, 10)
        .unwrap();
    assert_eq!(history.len(), 1);
    assert_eq!(history[0].commit.as_deref(), Some("c0ffee"));
    assert_eq!(history[0].result.as_deref(), Some("ok"));
    assert_eq!(history[0].steps[0].step, configure(&[("memory", "2048")]));
}

#[tokio::test]
async fn reads_that_fail_in_passing_do_not_fail_the_action() {
    let bench = bench(world()).await;
    bench.planner.want(101, "app", &[("memory", "2048")]);
    let update = update(&bench, vec![configure(&[("memory", "2048")])]).await;
    bench.sim.inject(RequestFault::once("GET", "/nodes/pve01/qemu/101/config", FaultAnswer::DropBefore));
    ok(&bench.run_one(update).await);
}
