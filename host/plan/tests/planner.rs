//! The safety model of the planner, on small fake kinds: no WebAssembly, no network.

// Helpers of tests are not in test functions, where clippy.toml already allows it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake;

use fake::{Bench, guest, owned};
use proxops_model::Severity;
use proxops_model::kind::{LivePower, PendingValue, Presence};
use proxops_model::plan::{ClusterPlan, Step, Verb};
use proxops_plan::{Mode, NodeState};

fn verbs(plan: &ClusterPlan) -> Vec<String> {
    plan.actions.iter().map(|a| a.id.clone()).collect()
}

fn codes(plan: &ClusterPlan) -> Vec<&str> {
    plan.anomalies.iter().map(|a| a.code.as_str()).collect()
}

#[test]
fn an_absent_guest_is_created_and_started_in_one_action() {
    let plan = Bench::new().vm("web", 101, "2048").plan();
    assert_eq!(verbs(&plan), ["create:VM/web"]);
    assert_eq!(plan.actions[0].steps[1..], [Step::Settle, Step::Start]);
}

#[test]
fn a_converged_guest_gives_an_empty_plan() {
    let plan = Bench::new().vm("web", 101, "2048").live(owned(101, "web", "2048")).plan();
    assert!(plan.is_clean(), "{plan:?}");
}

#[test]
fn drift_is_one_update_with_the_digest_of_its_report() {
    let plan = Bench::new().vm("web", 101, "2048").live(owned(101, "web", "1024")).plan();
    assert_eq!(verbs(&plan), ["update:VM/web"]);
    assert_eq!(plan.actions[0].digest.as_deref(), Some("d101"));
    assert!(!plan.actions[0].disruptive);
}

#[test]
fn a_stopped_guest_that_should_run_is_updated_first_and_started_after() {
    let live = owned(101, "web", "1024").power(LivePower::Stopped);
    let plan = Bench::new().vm("web", 101, "2048").live(live).plan();
    assert_eq!(verbs(&plan), ["update:VM/web", "start:VM/web"]);
    assert_eq!(plan.actions[1].after, ["update:VM/web"]);
}

#[test]
fn a_running_guest_that_should_be_stopped_is_stopped_before_its_update() {
    let bench = Bench::new().vm("web", 101, "2048").stopped("web").live(owned(101, "web", "1024"));
    let plan = bench.plan();
    assert_eq!(verbs(&plan), ["stop:VM/web", "update:VM/web"]);
    assert_eq!(plan.actions[0].steps, [Step::Stop { hard: false }]);
}

#[test]
fn an_unowned_guest_with_another_name_is_an_anomaly_and_never_an_update() {
    let plan = Bench::new().vm("web", 101, "2048").live(guest(101, "db", "", "1024")).plan();
    assert!(plan.actions.is_empty());
    assert_eq!(codes(&plan), ["not-ours"]);
}

#[test]
fn an_unowned_guest_is_claimed_if_its_name_is_empty_or_the_manifests() {
    for name in ["", "web"] {
        let plan = Bench::new().vm("web", 101, "2048").live(guest(101, name, "", "1024")).plan();
        assert_eq!(verbs(&plan), ["update:VM/web"], "live name {name:?}");
    }
}

#[test]
fn a_vmid_that_holds_a_container_is_an_anomaly() {
    let plan = Bench::new().vm("web", 101, "2048").live(owned(101, "web", "2048").container()).plan();
    assert!(plan.actions.is_empty());
    assert_eq!(codes(&plan), ["other-guest-type"]);
}

#[test]
fn a_live_template_never_becomes_a_plain_guest() {
    let plan = Bench::new().vm("web", 101, "2048").live(owned(101, "web", "1024").template()).plan();
    assert!(plan.actions.is_empty());
    assert_eq!(codes(&plan), ["kind-flip"]);
}

#[test]
fn a_guest_outside_the_allowlist_is_an_anomaly_for_who_claims_its_vmid() {
    let bench =
        Bench::new().allow(&["pve01"]).vm("web", 101, "2048").live(owned(101, "web", "1024").on("pve02"));
    let plan = bench.plan();
    assert!(plan.actions.is_empty());
    assert_eq!(codes(&plan), ["outside-allowlist"]);
}

#[test]
fn an_owned_guest_outside_the_allowlist_is_not_pruned() {
    let bench = Bench::new().allow(&["pve01"]).vm("web", 101, "2048").live(owned(101, "web", "2048"));
    assert!(bench.live(owned(103, "old", "1").on("pve02")).plan().is_clean());
}

#[test]
fn a_moved_guest_is_managed_where_it_is() {
    let plan = Bench::new().vm("web", 101, "2048").live(owned(101, "web", "1024").on("pve02")).plan();
    assert_eq!(codes(&plan), ["placement"]);
    assert_eq!(verbs(&plan), ["update:VM/web"]);
    assert_eq!(plan.actions[0].node.as_deref(), Some("pve02"));
}

#[test]
fn an_unreachable_node_makes_its_guests_unknown_and_stops_every_prune() {
    let bench = Bench::new().vm("web", 101, "2048").vm("new", 102, "1").live(owned(103, "old", "1"));
    let bench = bench
        .live(owned(101, "web", "1024").on("pve02"))
        .node("pve02", NodeState::Unreachable("offline".into()));
    let plan = bench.plan();
    assert_eq!(verbs(&plan), ["create:VM/new"]);
    assert_eq!(plan.unknown.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["web"]);
    assert_eq!(plan.deferred.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["old"]);
}

#[test]
fn a_guest_whose_configuration_can_not_be_read_is_unknown_not_absent() {
    let plan = Bench::new().vm("web", 101, "2048").live(owned(101, "web", "1024").unreadable()).plan();
    assert!(plan.actions.is_empty());
    assert_eq!(plan.unknown.len(), 1);
}

#[test]
fn a_locked_guest_is_deferred_with_the_locks_name() {
    let plan = Bench::new().vm("web", 101, "2048").live(owned(101, "web", "1024").lock("backup")).plan();
    assert!(plan.actions.is_empty());
    assert!(plan.deferred[0].why.contains("backup"), "{:?}", plan.deferred);
}

#[test]
fn a_guest_on_which_an_earlier_run_still_works_is_left_alone() {
    let base = || Bench::new().vm("web", 101, "2048");
    for bench in [base(), base().live(owned(101, "web", "1024"))] {
        let plan = bench.busy(101).plan();
        assert!(plan.actions.is_empty());
        assert_eq!(plan.deferred[0].name, "web");
    }
}

#[test]
fn the_shell_of_a_clone_that_never_ended_is_not_filled_in() {
    let base = || Bench::new().vm("web", 101, "2048").fresh_clone(101, "golden");
    let plan = base().live(guest(101, "web", "", "").only("boot")).plan();
    assert!(plan.actions.is_empty(), "{plan:?}");
    assert!(plan.deferred[0].why.contains("remove it"), "{:?}", plan.deferred);
    // what a clone copied is there: the rest of the action is done
    let plan = base().live(guest(101, "web", "", "1024")).plan();
    assert_eq!(verbs(&plan), ["update:VM/web"]);
}

#[test]
fn the_prune_budget_bounds_deletes_and_the_rest_is_deferred() {
    let bench = Bench::new().budget(1).vm("web", 101, "2048").live(owned(101, "web", "2048"));
    let plan = bench.live(owned(104, "b", "1")).live(owned(103, "a", "1")).plan();
    assert_eq!(verbs(&plan), ["delete:qemu/103"]);
    assert_eq!(plan.actions[0].steps, [Step::Stop { hard: true }, Step::Destroy]);
    assert_eq!(plan.deferred[0].vmid, Some(104));
}

#[test]
fn a_guest_without_the_owner_tag_is_never_pruned() {
    let bench = Bench::new().vm("web", 101, "2048").live(owned(101, "web", "2048"));
    assert!(bench.live(guest(103, "old", "proxops-not;PROXOPS;prod", "1")).plan().is_clean());
}

#[test]
fn nothing_desired_and_more_owned_than_the_budget_suppresses_the_prune() {
    let many = || Bench::new().budget(1).live(owned(103, "a", "1")).live(owned(104, "b", "1"));
    let plan = many().plan();
    assert!(plan.actions.is_empty());
    assert_eq!(codes(&plan), ["empty-desired"]);
    assert_eq!(many().budget(2).plan().actions.len(), 2);
    assert_eq!(many().budget(0).plan().actions.len(), 2);
}

#[test]
fn guests_and_templates_count_together_where_neither_is_desired() {
    let many = || Bench::new().budget(1).live(owned(103, "a", "1")).live(owned(104, "b", "1").template());
    let plan = many().plan();
    assert!(plan.actions.is_empty(), "{plan:?}");
    assert_eq!(codes(&plan), ["empty-desired"]);
    assert!(plan.anomalies[0].message.contains("2 live"), "{:?}", plan.anomalies);
    assert_eq!(many().vm("web", 101, "1").plan().deferred.len(), 1, "the budget alone counts");
}

#[test]
fn a_template_is_not_pruned_while_a_guest_that_may_be_its_clone_stays() {
    let bench = || Bench::new().vm("web", 101, "1").template_vm("tpl", 900);
    let plan = bench()
        .live(owned(103, "old", "1").value("protection", "1"))
        .live(owned(901, "old-tpl", "1").template())
        .ha(0)
        .replicated(0)
        .plan();
    assert!(plan.actions.iter().all(|a| a.verb != Verb::Delete), "{:?}", plan.actions);
    assert!(
        plan.deferred.iter().any(|n| n.name == "old-tpl" && n.why.contains("old")),
        "{:?}",
        plan.deferred
    );
}

#[test]
fn protection_lock_ha_and_replication_keep_a_guest_from_being_pruned() {
    let base = || Bench::new().vm("web", 101, "2048").live(owned(101, "web", "2048"));
    let one = |bench: Bench, code: &str| {
        let plan = bench.plan();
        assert!(plan.actions.is_empty(), "{code}");
        assert_eq!(codes(&plan), [code]);
    };
    one(base().live(owned(103, "old", "1").value("protection", "1")), "protected");
    one(base().live(owned(103, "old", "1").lock("backup")), "locked");
    one(base().live(owned(103, "old", "1")).ha(103), "ha-managed");
    one(base().live(owned(103, "old", "1")).replicated(103), "replicated");
    one(base().live(owned(103, "old", "1")).no_ha_list(), "ha-unknown");
}

#[test]
fn a_broken_kind_fails_its_resources_alone_and_stops_every_prune() {
    let bench = Bench::new().vm("web", 101, "1").live(owned(103, "old", "1")).broken("Pool", "ops");
    let plan = bench.plan();
    assert_eq!(verbs(&plan), ["create:VM/web"]);
    assert_eq!(codes(&plan), ["kind-fault"]);
    assert_eq!(plan.deferred[0].vmid, Some(103));
}

#[test]
fn modes_observe_ensure_exists_and_suspended_write_nothing_to_a_live_guest() {
    for mode in [Mode::Observe, Mode::EnsureExists, Mode::Suspended] {
        let bench = Bench::new().vm("web", 101, "2048").mode("web", mode).live(owned(101, "web", "1024"));
        let plan = bench.plan();
        assert!(plan.actions.is_empty(), "{mode:?}");
        assert_eq!(plan.skipped.len(), 1, "{mode:?}");
        assert!(plan.is_clean());
    }
}

#[test]
fn an_absent_guest_is_created_by_ensure_exists_only() {
    let made = |mode| Bench::new().vm("web", 101, "2048").mode("web", mode).plan().actions.len();
    assert_eq!((made(Mode::EnsureExists), made(Mode::Observe), made(Mode::Suspended)), (1, 0, 0));
}

#[test]
fn what_must_only_exist_is_made_to_its_end_and_then_left_alone() {
    let plan = |mode, half: bool| {
        let bench = Bench::new().vm("web", 101, "2048").mode("web", mode).live(owned(101, "web", "1024"));
        if half { bench.half_made(101).plan() } else { bench.plan() }
    };
    assert_eq!(verbs(&plan(Mode::EnsureExists, true)), ["update:VM/web"]);
    assert!(plan(Mode::EnsureExists, false).actions.is_empty());
    assert!(plan(Mode::Observe, true).actions.is_empty());
}

#[test]
fn nothing_is_made_from_a_template_that_nobody_will_mark() {
    let with = |mode| {
        let bench =
            Bench::new().vm("web", 101, "1").template_vm("tpl", 900).refers("web", "TemplateVM", "tpl");
        bench.mode("tpl", mode)
    };
    for mode in [Mode::Observe, Mode::EnsureExists, Mode::Suspended] {
        let plain = with(mode).live(owned(900, "tpl", "1").power(LivePower::Stopped)).plan();
        assert!(plain.actions.is_empty(), "{mode:?}");
        assert_eq!(plain.deferred[0].name, "web", "{mode:?}");
        let marked = with(mode).live(owned(900, "tpl", "1").template()).plan();
        assert_eq!(verbs(&marked), ["create:VM/web"], "{mode:?}");
        let foreign = with(mode).live(guest(900, "alien", "prod", "1").template()).plan();
        assert!(foreign.actions.is_empty(), "{mode:?}");
    }
}

#[test]
fn who_needs_a_guest_that_is_locked_waits_with_it() {
    let bench = || Bench::new().vm("db", 100, "2048").vm("web", 101, "1").refers("web", "VM", "db");
    let plan = bench().live(owned(100, "db", "1024").lock("backup")).plan();
    assert!(plan.actions.is_empty());
    assert_eq!(plan.deferred.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["db", "web"]);
    let plan = bench().live(owned(100, "db", "2048").lock("create")).plan();
    assert!(plan.actions.is_empty());
    // nothing is to be done on it: then its lock is nobody's business
    let plan = bench().live(owned(100, "db", "2048").lock("backup")).plan();
    assert_eq!(verbs(&plan), ["create:VM/web"]);
}

#[test]
fn a_file_that_an_earlier_run_still_fetches_is_not_fetched_again() {
    let bench = Bench::new().vm("web", 101, "1").iso("cd", &["pve01"]).refers("web", "ISO", "cd");
    let plan = bench.file("cd", "pve01", Presence::Absent).busy_resource("ISO", "cd").plan();
    assert!(plan.actions.is_empty());
    assert_eq!(plan.deferred.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["cd", "web"]);
}

#[test]
fn a_change_that_needs_a_stop_restarts_only_with_leave() {
    let bench = || Bench::new().vm("web", 101, "needs-stop").live(owned(101, "web", "1024"));
    let plan = bench().plan();
    assert!(!plan.actions[0].disruptive);
    assert_eq!(plan.actions[0].steps.len(), 1);
    let plan = bench().restart("web").plan();
    assert!(plan.actions[0].disruptive);
    assert_eq!(plan.actions[0].steps.first(), Some(&Step::Stop { hard: false }));
    assert_eq!(plan.actions[0].steps.last(), Some(&Step::Start));
    // it was stopped for that before, and PVE refused the change
    let plan = bench().restart("web").stopped_in_vain(101).plan();
    assert!(!plan.actions[0].disruptive);
    assert_eq!(plan.actions[0].steps.len(), 1);
}

#[test]
fn what_pve_holds_pending_is_shown_and_not_written_again() {
    let waits =
        PendingValue { key: "memory".into(), running: Some("1024".into()), configured: Some("2048".into()) };
    let bench = || Bench::new().vm("web", 101, "2048").live(owned(101, "web", "2048").pending(waits.clone()));
    let plan = bench().plan();
    assert!(plan.actions.is_empty());
    assert_eq!(plan.pending[0].key, "memory");
    assert_eq!(verbs(&bench().restart("web").plan()), ["update:VM/web"]);
}

#[test]
fn a_download_comes_before_the_guest_that_needs_it() {
    let plan = Bench::new()
        .vm("web", 101, "1")
        .iso("cd", &["pve01"])
        .refers("web", "ISO", "cd")
        .file("cd", "pve01", Presence::Absent)
        .plan();
    assert_eq!(verbs(&plan), ["download:ISO/cd", "create:VM/web"]);
    assert_eq!(plan.actions[1].after, ["download:ISO/cd"]);
    assert_eq!(plan.actions[1].level, 1);
}

#[test]
fn an_unlisted_storage_defers_the_guest_and_downloads_nothing() {
    let plan = Bench::new()
        .vm("web", 101, "1")
        .iso("cd", &["pve01"])
        .refers("web", "ISO", "cd")
        .file("cd", "pve01", Presence::Unknown)
        .plan();
    assert!(plan.actions.is_empty());
    assert_eq!(plan.unknown[0].name, "cd");
    assert_eq!(plan.deferred[0].name, "web");
}

#[test]
fn one_download_per_node_and_the_guest_waits_for_its_own() {
    let bench = Bench::new().vm("web", 101, "1").iso("cd", &["pve01", "pve02"]).refers("web", "ISO", "cd");
    let plan = bench.file("cd", "pve01", Presence::Absent).file("cd", "pve02", Presence::Absent).plan();
    let web = plan.actions.iter().find(|a| a.verb == Verb::Create).unwrap();
    assert_eq!(plan.actions.iter().filter(|a| a.verb == Verb::Download).count(), 2);
    assert_eq!(web.after, ["download:ISO/cd@pve01"]);
}

#[test]
fn a_shared_storage_is_filled_once() {
    let bench = Bench::new().shared_files().iso("cd", &["pve01", "pve02"]);
    let plan = bench.file("cd", "pve01", Presence::Absent).file("cd", "pve02", Presence::Absent).plan();
    assert_eq!(verbs(&plan), ["download:ISO/cd"]);
}

#[test]
fn the_plan_does_not_depend_on_order_or_threads() {
    let build = |reverse: bool, threads| {
        let mut ids: Vec<u32> = (101..140).collect();
        if reverse {
            ids.reverse();
        }
        let mut bench = Bench::new().threads(threads);
        for id in ids {
            bench = bench.vm(&format!("web-{id}"), id, "2048");
            if id % 3 == 0 {
                bench = bench.live(owned(id, &format!("web-{id}"), "1024"));
            }
        }
        serde_json::to_string(&bench.plan()).unwrap()
    };
    let one = build(false, 1);
    assert_eq!(one, build(true, 1));
    assert_eq!(one, build(false, 4));
}

#[test]
fn every_offline_mistake_is_reported() {
    let (_, found) = Bench::new()
        .allow(&["pve01"])
        .vm("a", 101, "1")
        .vm("b", 101, "1")
        .vm_on("c", 102, "pve09")
        .refers("a", "ISO", "nobody")
        .index();
    let codes: Vec<&str> = found.iter().map(|d| d.code.as_str()).collect();
    assert_eq!(codes, ["duplicate-vmid", "node-not-allowed", "unknown-reference"]);
    assert!(found.iter().all(|d| d.help.is_some() && d.severity == Severity::Error));
}

#[test]
fn resources_that_wait_for_each_other_are_refused() {
    let (_, found) = Bench::new()
        .vm("a", 101, "1")
        .vm("b", 102, "1")
        .refers("a", "VM", "b")
        .refers("b", "VM", "a")
        .index();
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("VM/a -> VM/b -> VM/a"), "{}", found[0].message);
}
