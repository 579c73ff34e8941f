//! Creating and cloning: one guest, complete, whatever is lost on the way.

use crate::support::*;
use proxops_model::kind::KindStep;
use proxops_model::plan::Subject;
use proxops_model::{Outcome, ResourceId, Step, Verb};
use proxops_sim::{FaultAnswer, GuestKind, TaskRule, World, seed};

const CREATE: &str = "POST /nodes/pve01/qemu";

fn template() -> World {
    let mut world = seed::empty();
    world.add_guest(
        GuestKind::Qemu,
        9000,
        "pve01",
        &[
            ("name", "tpl"),
            ("memory", "1024"),
            ("scsi0", "local-lvm:base-9000-disk-0,size=8G"),
            ("ide2", "local-lvm:vm-9000-cloudinit,media=cdrom"),
            ("ciuser", "builder"),
            ("cipassword", "$5$abcdefgh$hash"),
            ("tags", "proxops"),
            ("template", "1"),
        ],
    );
    world
}

fn clone(vmid: u32, name: &str) -> proxops_model::Action {
    let source = ResourceId::new("TemplateVM", "tpl");
    let from = Step::CloneFrom {
        source_node: "pve01".into(),
        source_vmid: 9000,
        source,
        params: params(&[("name", name)]),
    };
    action(Verb::Clone, vmid, name, vec![from, Step::Settle])
}

#[tokio::test]
async fn a_created_guest_is_read_back_and_completed_in_the_same_action() {
    let bench = bench(seed::empty()).await;
    bench.planner.want(101, "app", &[("memory", "1024"), ("onboot", "1")]);
    let ended = bench.run_one(create(101, "app")).await;
    ok(&ended);
    assert_eq!(bench.writes(), [CREATE, "PUT /nodes/pve01/qemu/101/config"]);
    assert_eq!(bench.sent(0, "vmid").as_deref(), Some("101"));
    assert!(bench.sent(1, "digest").is_some());
    assert_eq!(bench.config(101, "onboot").as_deref(), Some("1"));
    assert_eq!(ended.upids.len(), 1, "{:?}", ended.upids);
}

#[tokio::test]
async fn a_create_whose_answer_is_lost_is_not_sent_again() {
    let bench = bench(seed::empty()).await;
    bench.planner.want(101, "app", &[("memory", "1024")]);
    bench.fault("POST", "/nodes/pve01/qemu", FaultAnswer::DropAfter);
    let ended = bench.run_one(create(101, "app")).await;
    ok(&ended);
    assert_eq!(bench.writes(), [CREATE]);
    assert_eq!(ended.upids.len(), 1, "its task was found and awaited: {:?}", ended.upids);
    assert_eq!(bench.config(101, "lock"), None);
}

#[tokio::test]
async fn a_create_that_never_arrived_is_sent_once_more() {
    let bench = bench(seed::empty()).await;
    bench.planner.want(101, "app", &[("memory", "1024")]);
    bench.fault("POST", "/nodes/pve01/qemu", FaultAnswer::DropBefore);
    ok(&bench.run_one(create(101, "app")).await);
    assert_eq!(bench.writes(), [CREATE, CREATE]);
}

#[tokio::test]
async fn a_create_that_is_lost_twice_is_given_up() {
    let bench = bench(seed::empty()).await;
    for _ in 0..2 {
        bench.fault("POST", "/nodes/pve01/qemu", FaultAnswer::DropBefore);
    }
    error(&bench.run_one(create(101, "app")).await, Outcome::Failed);
    assert_eq!(bench.writes().len(), 2);
}

#[tokio::test]
async fn a_vmid_that_another_guest_took_is_named_and_left_alone() {
    let mut world = seed::empty();
    world.add_guest(GuestKind::Lxc, 101, "pve02", &[("hostname", "stranger")]);
    let bench = bench(world).await;
    bench.planner.want(101, "app", &[]);
    let text = error(&bench.run_one(create(101, "app")).await, Outcome::Failed);
    assert!(text.contains("stranger") && text.contains("pve02"), "{text}");
    assert_eq!(bench.writes(), [CREATE]);
}

#[tokio::test]
async fn a_guest_of_ours_that_is_there_already_is_completed() {
    let mut world = seed::empty();
    world.add_guest(
        GuestKind::Qemu,
        101,
        "pve01",
        &[("name", "app"), ("memory", "512"), ("tags", "proxops")],
    );
    let bench = bench(world).await;
    bench.planner.want(101, "app", &[("memory", "1024")]);
    ok(&bench.run_one(create(101, "app")).await);
    assert_eq!(bench.config(101, "memory").as_deref(), Some("1024"));
}

#[tokio::test]
async fn a_500_whose_worker_died_leaves_a_lock_and_is_a_failure() {
    // fact R8: nobody but a person takes that lock away
    let mut world = seed::empty();
    world.add_guest(GuestKind::Qemu, 101, "pve01", &[("lock", "create")]);
    let bench = bench(world).await;
    bench.fault("POST", "/nodes/pve01/qemu", refuse("got no worker upid - start worker failed"));
    let text = error(&bench.run_one(create(101, "app")).await, Outcome::Failed);
    assert!(text.contains("(create)") && text.contains("qm unlock 101"), "{text}");
    assert_eq!(bench.writes(), [CREATE]);
}

#[tokio::test]
async fn a_guest_whose_creation_ended_well_and_left_its_lock_is_a_failure() {
    let bench = bench(seed::empty()).await;
    bench.planner.want(101, "app", &[("memory", "1024")]);
    // as the guest is read back
    let locked = proxops_sim::Faults { guest_locks: [(101, "create".into())].into(), ..Default::default() };
    bench.sim.inject(proxops_sim::RequestFault {
        answer: None,
        change: Some(Box::new(locked)),
        ..proxops_sim::RequestFault::once("GET", "/cluster/resources", FaultAnswer::Html)
    });
    let text = error(&bench.run_one(create(101, "app")).await, Outcome::Failed);
    assert!(text.contains("PVE reported success, but VM 101 is locked (create)"), "{text}");
    assert!(text.contains("`qm unlock 101`") && text.contains("disks"), "{text}");
    assert_eq!(bench.writes(), [CREATE]);
}

#[tokio::test]
async fn a_creation_whose_node_dies_ends_soon_with_nothing_known() {
    let mut world = seed::empty();
    world.task_rules.push(TaskRule { kind: "qmcreate".into(), hang: true, ..TaskRule::default() });
    let mut bench = bench(world).await;
    bench.env.timing.task = std::time::Duration::from_secs(600);
    bench.planner.want(101, "app", &[("memory", "1024")]);
    let dead = proxops_sim::Faults { nodes_down: vec!["pve01".into()], ..Default::default() };
    bench.sim.inject(proxops_sim::RequestFault {
        skip: 2,
        answer: None,
        change: Some(Box::new(dead)),
        ..proxops_sim::RequestFault::once("GET", "/nodes/pve01/tasks/*/status", FaultAnswer::Html)
    });
    let text = error(&bench.run_one(create(101, "app")).await, Outcome::Failed);
    assert!(text.contains("pve01 is offline") && text.contains(":qmcreate:101:"), "{text}");
    assert_eq!(bench.writes(), [CREATE]);
    let left = bench.env.journal.unfinished("lab").unwrap();
    assert_eq!((left.len(), left[0].in_flight.len()), (1, 1), "the next run looks for it");
}

#[tokio::test]
async fn a_failed_create_task_shows_pves_text() {
    let mut world = seed::empty();
    world
        .task_rules
        .push(TaskRule::fail("qmcreate", "unable to create VM 101 - lvcreate 'pve/x' error: boom"));
    let bench = bench(world).await;
    let text = error(&bench.run_one(create(101, "app")).await, Outcome::Failed);
    assert!(text.contains("lvcreate 'pve/x' error: boom"), "{text}");
}

#[tokio::test]
async fn a_task_that_ended_for_a_busy_lock_is_done_again() {
    let mut world = seed::empty();
    world.task_rules.push(TaskRule::fail(
        "qmcreate",
        "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout",
    ));
    let bench = bench(world).await;
    bench.planner.want(101, "app", &[("memory", "1024")]);
    ok(&bench.run_one(create(101, "app")).await);
    assert_eq!(bench.writes(), [CREATE, CREATE]);
}

#[tokio::test]
async fn a_create_that_says_ok_and_did_nothing_is_a_failure() {
    let mut world = seed::empty();
    world.task_rules.push(TaskRule { kind: "qmcreate".into(), effect: Some(false), ..TaskRule::default() });
    let bench = bench(world).await;
    let ended = bench.run_one(create(101, "app")).await;
    assert_ne!(ended.result, Outcome::Ok);
}

#[tokio::test]
async fn two_sides_that_never_agree_end_after_four_rounds() {
    let bench = bench(seed::empty()).await;
    // PVE lower-cases tags, so this planner is never content
    bench.planner.want(101, "app", &[("tags", "PROXOPS")]);
    let text = error(&bench.run_one(create(101, "app")).await, Outcome::Failed);
    assert!(text.contains("tags is proxops, not PROXOPS"), "{text}");
    assert_eq!(bench.writes().len(), 1 + 4);
}

#[tokio::test]
async fn a_template_is_made_in_one_action() {
    let bench = bench(seed::empty()).await;
    bench.planner.want(101, "app", &[("memory", "1024")]);
    bench.planner.edit(101, |wanted| wanted.template = true);
    ok(&bench.run_one(create(101, "app")).await);
    assert_eq!(bench.writes(), [CREATE, "POST /nodes/pve01/qemu/101/template"]);
    assert_eq!(bench.config(101, "template").as_deref(), Some("1"));
}

#[tokio::test]
async fn a_container_template_is_awaited_though_pve_names_no_task() {
    // fact L17
    let mut world = seed::empty();
    world.add_guest(
        GuestKind::Lxc,
        201,
        "pve01",
        &[("hostname", "ct"), ("rootfs", "local-lvm:vm-201-disk-0,size=8G"), ("memory", "512")],
    );
    let bench = bench(world).await;
    bench.planner.want(201, "ct", &[]);
    bench.planner.edit(201, |wanted| wanted.template = true);
    let mut mark = action(Verb::MarkTemplate, 201, "ct", vec![Step::Kind(KindStep::MarkTemplate)]);
    mark.subject = Some(Subject::Guest { guest_type: "lxc".into() });
    let ended = bench.run_one(mark).await;
    ok(&ended);
    assert_eq!(bench.config(201, "template").as_deref(), Some("1"));
    assert!(
        ended.upids.iter().all(|upid| upid.contains(":vztemplate:")) && ended.upids.len() == 1,
        "{:?}",
        ended.upids
    );
}

#[tokio::test]
async fn a_clone_loses_its_templates_identity_in_the_same_action() {
    let bench = bench(template()).await;
    bench.planner.want(111, "web", &[("cores", "4")]);
    bench.planner.edit(111, |wanted| wanted.cleared_in_clones = vec!["ciuser".into(), "cipassword".into()]);
    ok(&bench.run_one(clone(111, "web")).await);
    assert_eq!(bench.writes(), ["POST /nodes/pve01/qemu/9000/clone", "PUT /nodes/pve01/qemu/111/config"]);
    assert_eq!(bench.sent(0, "newid").as_deref(), Some("111"));
    assert_eq!(bench.sent(0, "full").as_deref(), Some("1"));
    assert_eq!(bench.sent(1, "delete").as_deref(), Some("ciuser,cipassword"));
    assert_eq!(bench.config(111, "ciuser"), None);
    assert!(bench.env.journal.owed("lab").unwrap().is_empty());
}

#[tokio::test]
async fn a_clone_that_fails_half_way_stays_owed_until_a_later_action_completes_it() {
    let bench = bench(template()).await;
    bench.planner.want(111, "web", &[("cores", "4")]);
    bench.planner.edit(111, |wanted| wanted.cleared_in_clones = vec!["ciuser".into()]);
    bench.fault("PUT", "/nodes/pve01/qemu/111/config", refuse("something broke"));
    error(&bench.run_one(clone(111, "web")).await, Outcome::Failed);
    let owed = bench.env.journal.owed("lab").unwrap();
    assert_eq!(owed[&111].fresh_clone_of, Some(ResourceId::new("TemplateVM", "tpl")));

    let mut update = action(
        Verb::Update,
        111,
        "web",
        vec![Step::Kind(KindStep::Configure {
            set: params(&[("cores", "4")]),
            unset: vec!["ciuser".into()],
            revert: vec![],
        })],
    );
    update.digest = bench.digest(111).await;
    ok(&bench.run_one(update).await);
    assert_eq!(
        bench.planner.asked.lock().unwrap().last().unwrap(),
        &Some(ResourceId::new("TemplateVM", "tpl"))
    );
    assert!(bench.env.journal.owed("lab").unwrap().is_empty());
}

#[tokio::test]
async fn a_clone_that_was_refused_owes_nothing() {
    let bench = bench(template()).await;
    bench.fault("POST", "/nodes/pve01/qemu/9000/clone", refuse("storage 'nope' does not exist"));
    error(&bench.run_one(clone(111, "web")).await, Outcome::Failed);
    assert!(bench.env.journal.owed("lab").unwrap().is_empty());
}

#[tokio::test]
async fn a_clone_whose_answer_is_lost_is_awaited_not_repeated() {
    let bench = bench(template()).await;
    bench.planner.want(111, "web", &[("cores", "4")]);
    bench.fault("POST", "/nodes/pve01/qemu/9000/clone", FaultAnswer::DropAfter);
    ok(&bench.run_one(clone(111, "web")).await);
    let clones = bench.writes().iter().filter(|write| write.ends_with("/clone")).count();
    assert_eq!(clones, 1);
}

#[tokio::test]
async fn a_secret_is_on_the_wire_and_nowhere_else() {
    let mut world = seed::empty();
    // a PVE that repeats what it was sent
    world.task_rules.push(TaskRule::fail("qmcreate", &format!("bad value {PASSWORD} in cipassword")));
    let bench = bench(world).await;
    let mut action = create(101, "app");
    if let Some(Step::Kind(KindStep::Create { params })) = action.steps.first_mut() {
        let value = proxops_model::kind::ParamValue::Secret("cloud-init.passwords.ops".into());
        params.push(proxops_model::kind::Param { key: "cipassword".into(), value, at: None });
    }
    let text = error(&bench.run_one(action).await, Outcome::Failed);
    assert!(text.contains("bad value *** in cipassword"), "{text}");
    for file in std::fs::read_dir(bench.dir.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap_or_default();
        assert!(!bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes()));
    }
}
