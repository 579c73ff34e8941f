//! Deleting: nothing is stopped that will not be deleted, and what is deleted is gone.

use crate::support::*;
use proxops_model::{Action, Outcome, Step, Verb};
use proxops_sim::world::Replication;
use proxops_sim::{FaultAnswer, Guest, GuestKind, RequestFault, TaskRule, World, seed};

const SHUTDOWN: &str = "POST /nodes/pve01/qemu/103/status/shutdown";
const DELETE: &str = "DELETE /nodes/pve01/qemu/103";

fn world() -> World {
    let mut world = seed::empty();
    world
        .add_guest(
            GuestKind::Qemu,
            103,
            "pve01",
            &[("name", "old"), ("scsi0", "local-lvm:vm-103-disk-0,size=8G"), ("tags", "proxops")],
        )
        .running = true;
    world
}

fn delete() -> Action {
    let mut delete = action(Verb::Delete, 103, "old", vec![Step::Stop { hard: true }, Step::Destroy]);
    delete.disruptive = true;
    delete
}

#[tokio::test]
async fn a_running_guest_is_shut_down_destroyed_and_gone() {
    let bench = bench(world()).await;
    let ended = bench.run_one(delete()).await;
    ok(&ended);
    assert_eq!(bench.writes(), [SHUTDOWN, DELETE]);
    assert_eq!(bench.sent(1, "purge"), None);
    assert!(!bench.sim.world().guests.contains_key(&103));
    assert_eq!(ended.upids.len(), 2);
}

#[tokio::test]
async fn a_guest_that_does_not_shut_down_is_stopped_hard() {
    let mut world = world();
    world.task_rules.push(TaskRule::fail("qmshutdown", "VM quit/powerdown failed - got timeout"));
    let bench = bench(world).await;
    ok(&bench.run_one(delete()).await);
    assert_eq!(bench.writes(), [SHUTDOWN, "POST /nodes/pve01/qemu/103/status/stop", DELETE]);
}

/// The guest was changed after the plan: the action does not even stop it.
async fn refused(change: impl FnOnce(&mut World), result: Outcome, words: &[&str]) {
    let bench = bench(world()).await;
    change(&mut bench.sim.world());
    let text = error(&bench.run_one(delete()).await, result);
    for word in words {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert_eq!(bench.writes(), [] as [&str; 0]);
    assert!(bench.sim.world().guests[&103].running);
}

fn guest(world: &mut World) -> &mut Guest {
    world.guests.get_mut(&103).unwrap()
}

#[tokio::test]
async fn a_protected_guest_is_left_running() {
    let protect = |world: &mut World| drop(guest(world).config.insert("protection".into(), "1".into()));
    refused(protect, Outcome::Failed, &["protected"]).await;
}

#[tokio::test]
async fn a_guest_that_lost_the_tag_is_left_running() {
    let untag = |world: &mut World| drop(guest(world).config.insert("tags".into(), "other".into()));
    refused(untag, Outcome::Failed, &["tag 'proxops'", "not ours"]).await;
}

#[tokio::test]
async fn a_guest_with_another_name_is_left_running() {
    let rename = |world: &mut World| drop(guest(world).config.insert("name".into(), "new".into()));
    refused(rename, Outcome::Failed, &["'new'", "'old'"]).await;
}

#[tokio::test]
async fn a_locked_guest_is_left_running_and_deferred() {
    let lock = |world: &mut World| drop(guest(world).config.insert("lock".into(), "backup".into()));
    refused(lock, Outcome::Deferred, &["backup"]).await;
}

#[tokio::test]
async fn a_guest_that_moved_is_left_running() {
    refused(|world| world.move_guest(103, "pve02"), Outcome::Failed, &["pve02"]).await;
}

#[tokio::test]
async fn a_guest_in_ha_is_left_running() {
    let manage = |world: &mut World| drop(world.ha.insert("vm:103".into(), Default::default()));
    refused(manage, Outcome::Failed, &["ha-manager remove vm:103"]).await;
}

#[tokio::test]
async fn a_replicated_guest_is_left_running() {
    let job = Replication { id: "103-0".into(), guest: 103, target: "pve02".into() };
    refused(|world| world.replication.push(job), Outcome::Failed, &["103-0", "pve02"]).await;
}

#[tokio::test]
async fn protection_that_comes_during_the_shutdown_still_counts() {
    let mut world = world();
    // the guest stays as it is, the task takes a moment: time for a person
    world.task_rules.push(TaskRule { kind: "qmshutdown".into(), seconds: Some(0.2), ..TaskRule::default() });
    let bench = bench(world).await;
    let protect = async {
        while bench.writes().is_empty() {
            tokio::task::yield_now().await;
        }
        guest(&mut bench.sim.world()).config.insert("protection".into(), "1".into());
    };
    let (ended, ()) = tokio::join!(bench.run_one(delete()), protect);
    error(&ended, Outcome::Failed);
    assert_eq!(bench.writes(), [SHUTDOWN]);
    assert!(bench.sim.world().guests.contains_key(&103));
}

#[tokio::test]
async fn a_guest_that_is_gone_already_is_no_failure() {
    let bench = bench(world()).await;
    bench.sim.world().guests.remove(&103);
    ok(&bench.run_one(delete()).await);
    assert_eq!(bench.writes(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_delete_that_says_ok_and_did_nothing_is_a_failure() {
    let mut world = world();
    world.task_rules.push(TaskRule { kind: "qmdestroy".into(), effect: Some(false), ..TaskRule::default() });
    let bench = bench(world).await;
    let text = error(&bench.run_one(delete()).await, Outcome::Failed);
    assert!(text.contains("still there"), "{text}");
}

#[tokio::test]
async fn a_delete_whose_answer_is_lost_is_looked_at_first() {
    let bench = bench(world()).await;
    bench.fault("DELETE", "/nodes/pve01/qemu/103", FaultAnswer::DropAfter);
    ok(&bench.run_one(delete()).await);
    assert_eq!(bench.writes(), [SHUTDOWN, DELETE]);
}

#[tokio::test]
async fn a_guest_that_takes_the_vmid_after_a_delete_whose_answer_is_lost_is_not_deleted() {
    let bench = bench(world()).await;
    bench.fault("DELETE", "/nodes/pve01/qemu/103", FaultAnswer::DropAfter);
    // the first look for the task of the delete takes its time
    bench.sim.inject(RequestFault {
        delay: 1.0,
        answer: None,
        ..RequestFault::once("GET", "/nodes/pve01/tasks", FaultAnswer::Html)
    });
    let newcomer = async {
        while bench.sim.world().guests.contains_key(&103) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let config = [("name", "stranger"), ("memory", "512")];
        bench.sim.world().add_guest(GuestKind::Qemu, 103, "pve01", &config);
    };
    let (ended, ()) = tokio::join!(bench.run_one(delete()), newcomer);
    let text = error(&ended, Outcome::Failed);
    assert!(text.contains("stranger"), "{text}");
    assert_eq!(bench.writes().iter().filter(|write| write.starts_with("DELETE")).count(), 1);
    assert_eq!(bench.config(103, "name").as_deref(), Some("stranger"));
}

#[tokio::test]
async fn a_delete_that_never_arrived_is_sent_once_more() {
    let bench = bench(world()).await;
    bench.fault("DELETE", "/nodes/pve01/qemu/103", FaultAnswer::DropBefore);
    ok(&bench.run_one(delete()).await);
    assert_eq!(bench.writes(), [SHUTDOWN, DELETE, DELETE]);
}
