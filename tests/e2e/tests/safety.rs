//! The safety model at the wire: what the simulator was asked to write, not what the plan says.

use crate::support::{iso, vm};
use proxops_e2e::{Bench, CLUSTER};
use proxops_sim::{FaultAnswer, GuestKind, LoggedRequest, RequestFault, World, seed};
use serde_json::json;
use std::collections::BTreeSet;

/// A guest that nobody stopped, with one disk.
fn live(world: &mut World, vmid: u32, node: &str, name: &str, tags: Option<&str>) {
    let disk = format!("local-lvm:vm-{vmid}-disk-0,size=1G");
    let mut config = vec![
        ("name", name),
        ("memory", "512"),
        ("cores", "2"),
        ("cpu", "host"),
        ("scsihw", "virtio-scsi-single"),
        ("scsi0", disk.as_str()),
        ("net0", "virtio=BC:24:11:00:00:AA,bridge=vmbr0"),
    ];
    config.extend(tags.map(|tags| ("tags", tags)));
    world.add_guest(GuestKind::Qemu, vmid, node, &config);
}

/// vmids of guests that writes reached.
fn touched(writes: &[LoggedRequest]) -> BTreeSet<u32> {
    let vmid = |w: &LoggedRequest| match w.path.split('/').nth(4) {
        Some(id) => id.parse().ok(),
        None => w.params.get("vmid")?.to_string().trim_matches('"').parse().ok(),
    };
    writes.iter().filter_map(vmid).collect()
}

fn deleted(writes: &[LoggedRequest]) -> BTreeSet<u32> {
    writes
        .iter()
        .filter(|w| w.method == "DELETE")
        .filter_map(|w| w.path.split('/').nth(4)?.parse().ok())
        .collect()
}

fn web(bench: &mut Bench) {
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({}))]);
}

#[test]
fn guests_without_the_tag_and_without_a_manifest_are_never_touched() {
    let mut world = seed::demo();
    live(&mut world, 300, "pve01", "foreign", None);
    live(&mut world, 301, "pve01", "foreign-too", Some("proxops-not;web"));
    let before = world.guests.clone();
    let mut bench = Bench::tls(world);
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 150, json!({}))]);
    bench.apply().exits(0);
    assert_eq!(touched(&bench.writes()), BTreeSet::from([150]));
    for (vmid, guest) in &before {
        assert_eq!(bench.world().guests[vmid].config, guest.config, "{vmid}");
    }
    bench.converged();
}

#[test]
fn a_vmid_that_a_foreign_guest_holds_is_an_anomaly_and_never_an_update() {
    let mut world = seed::empty();
    live(&mut world, 100, "pve01", "somebody-elses", None);
    let mut bench = Bench::new(world);
    web(&mut bench);
    assert_eq!(bench.diff().anomalies(), ["not-ours VM/web"]);
    bench.apply();
    assert!(bench.writes().is_empty());
    // and a guest of another type
    bench.world().guests.clear();
    bench.world().add_guest(GuestKind::Lxc, 100, "pve02", &[("hostname", "web"), ("tags", "proxops")]);
    assert_eq!(bench.diff().anomalies(), ["other-guest-type VM/web"]);
    bench.apply();
    assert!(bench.writes().is_empty(), "claimed by a manifest, so never pruned either");
}

#[test]
fn a_guest_of_the_manifests_name_gets_the_tag_as_a_plain_change() {
    let mut world = seed::empty();
    live(&mut world, 100, "pve01", "web", Some("prod"));
    let mut bench = Bench::new(world);
    web(&mut bench);
    let plan = bench.diff();
    assert_eq!(plan.actions(), ["update VM/web"]);
    let changes = &plan.list("actions")[0]["changes"];
    assert_eq!(changes.as_array().unwrap().len(), 1, "{plan}");
    assert_eq!((&changes[0]["key"], &changes[0]["from"]), (&json!("tags"), &json!("prod")), "{plan}");
    bench.apply().exits(0);
    let writes = bench.writes();
    assert_eq!(writes.len(), 1, "{writes:?}");
    assert_eq!((writes[0].method.as_str(), writes[0].path.as_str()), ("PUT", "/nodes/pve01/qemu/100/config"));
    let keys: Vec<&str> = writes[0].params.keys().map(String::as_str).collect();
    assert_eq!(keys, ["digest", "tags"]);
    assert_eq!(bench.world().guests[&100].config["tags"], "prod;proxops");
    bench.converged();
}

#[test]
fn prune_deletes_owned_guests_only_and_no_more_than_the_budget_in_a_cycle() {
    let mut world = seed::empty();
    for vmid in 200..205 {
        live(&mut world, vmid, "pve01", &format!("old-{vmid}"), Some("proxops"));
    }
    live(&mut world, 300, "pve01", "foreign", None);
    let mut bench = Bench::new(world);
    web(&mut bench);
    bench.apply().exits(0); // makes web, deletes three
    assert_eq!(deleted(&bench.writes()).len(), 3);
    let rest = bench.diff();
    assert_eq!(rest.actions().len(), 2, "{rest}");
    // without a terminal, deletes need --yes
    bench.run(&["apply"]).exits(1).says("--yes");
    assert!(bench.writes().is_empty());
    bench.apply().exits(0);
    assert_eq!(deleted(&bench.writes()).len(), 2);
    assert_eq!(bench.world().guests.keys().copied().collect::<Vec<_>>(), [100, 300]);
    bench.converged();
}

#[test]
fn what_the_budget_leaves_is_listed_as_deferred() {
    let mut world = seed::empty();
    for vmid in 200..205 {
        live(&mut world, vmid, "pve01", &format!("old-{vmid}"), Some("proxops"));
    }
    let mut bench = Bench::new(world);
    web(&mut bench);
    bench.configure(&["reconcile: {prune-budget: 1}"]);
    let plan = bench.diff();
    assert_eq!(plan.actions().iter().filter(|a| a.starts_with("delete")).count(), 1, "{plan}");
    assert_eq!(plan.list("deferred").len(), 4, "{plan}");
    // the command line lies over the files of every cluster
    let plan = bench.run(&["diff", "-o", "json", "--prune-budget", "3"]);
    assert_eq!(plan.actions().iter().filter(|a| a.starts_with("delete")).count(), 3, "{plan}");
    bench.run(&["diff", "--prune-budget", "many"]).exits(1).says("--prune-budget");
    bench.run(&["diff", "--concurrency", "0"]).exits(1).says("one or two numbers from 1");
    bench.run(&["diff", "--task-timeout", "30"]).exits(1).says("30s, 5m, 1h30m");
}

#[test]
fn a_composition_without_any_vm_deletes_none_until_the_budget_allows_all() {
    let mut world = seed::empty();
    for vmid in 200..204 {
        live(&mut world, vmid, "pve01", &format!("old-{vmid}"), Some("proxops"));
    }
    let mut bench = Bench::new(world);
    bench.documents(&format!("iso/{CLUSTER}/rescue.yaml"), &[iso("rescue")]);
    let plan = bench.diff();
    assert_eq!(plan.anomalies(), ["empty-desired VM/*"]);
    let help = plan.list("anomalies")[0]["help"].as_str().unwrap().to_owned();
    assert!(help.contains('4'), "names the budget that would let it pass: {help}");
    bench.apply().exits(0);
    assert_eq!(deleted(&bench.writes()), BTreeSet::new());
    assert_eq!(bench.world().guests.len(), 4);
    bench.configure(&["reconcile: {prune-budget: 0}"]);
    bench.apply().exits(0);
    assert_eq!(deleted(&bench.writes()), BTreeSet::from([200, 201, 202, 203]));
    bench.converged();
}

#[test]
fn protection_a_lock_ha_and_replication_keep_an_owned_guest() {
    let mut world = seed::empty();
    for (vmid, name) in [(200, "protected"), (201, "locked"), (202, "in-ha"), (203, "replicated")] {
        live(&mut world, vmid, "pve01", name, Some("proxops"));
        world.guests.get_mut(&vmid).unwrap().running = true;
    }
    world.guests.get_mut(&200).unwrap().config.insert("protection".to_owned(), "1".to_owned());
    world.guests.get_mut(&201).unwrap().config.insert("lock".to_owned(), "backup".to_owned());
    world.ha.insert("vm:202".to_owned(), [("state".to_owned(), "started".to_owned())].into());
    world.replication.push(proxops_sim::world::Replication {
        id: "203-0".to_owned(),
        guest: 203,
        target: "pve02".to_owned(),
    });
    let mut bench = Bench::new(world);
    web(&mut bench);
    bench.configure(&["reconcile: {prune-budget: 0}"]);
    let plan = bench.diff();
    let expected =
        ["ha-managed VM/in-ha", "locked VM/locked", "protected VM/protected", "replicated VM/replicated"];
    assert_eq!(plan.anomalies(), expected, "{plan}");
    for anomaly in plan.list("anomalies") {
        assert!(anomaly["help"].as_str().is_some_and(|help| !help.is_empty()), "{anomaly}");
    }
    bench.apply().exits(0);
    assert_eq!(touched(&bench.writes()), BTreeSet::from([100]));
    assert!((200..204).all(|vmid| bench.world().guests[&vmid].running));
}

#[test]
fn a_live_volume_is_never_made_anew_moved_shrunk_or_grown_unasked() {
    for (what, disk, code) in [
        ("another storage", json!({"storage": "nfs"}), "storage-mismatch"),
        ("larger", json!({"size": "2GiB"}), "size-mismatch"),
        ("smaller", json!({"size": "512MiB", "grow": true}), "size-mismatch"),
    ] {
        let mut world = seed::empty();
        live(&mut world, 100, "pve01", "web", Some("proxops"));
        let before = world.guests[&100].config.clone();
        let mut bench = Bench::new(world);
        let mut manifest = vm("web", 100, json!({}));
        crate::support::merge(&mut manifest["spec"]["disks"][0], &disk);
        bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[manifest]);
        let plan = bench.diff();
        assert_eq!(plan.actions(), [""; 0], "{what}: {plan}");
        assert_eq!(plan.anomalies(), [format!("{code} VM/web")], "{what}: {plan}");
        bench.apply().exits(0);
        assert!(bench.writes().is_empty(), "{what}");
        assert_eq!(bench.world().guests[&100].config, before, "{what}");
    }
}

#[test]
fn another_change_of_a_disk_carries_the_live_volume_along() {
    let mut world = seed::empty();
    live(&mut world, 100, "pve01", "web", Some("proxops"));
    let live_disk = "local-lvm:vm-100-disk-0,detect_zeroes=0,size=1G";
    world.guests.get_mut(&100).unwrap().config.insert("scsi0".to_owned(), live_disk.to_owned());
    let mut bench = Bench::new(world);
    let mut manifest = vm("web", 100, json!({}));
    manifest["spec"]["disks"][0]["cache"] = json!("writeback");
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[manifest]);
    bench.apply().exits(0);
    let writes = bench.writes();
    assert_eq!(writes.len(), 1, "{writes:?}");
    let sent = writes[0].params["scsi0"].as_str().unwrap();
    let parts: BTreeSet<&str> = sent.split(',').collect();
    assert!(
        sent.starts_with("local-lvm:vm-100-disk-0,") || sent.contains("file=local-lvm:vm-100-disk-0"),
        "{sent}"
    );
    assert!(parts.contains("detect_zeroes=0") && parts.contains("cache=writeback"), "{sent}");
    assert!(!bench.world().guests[&100].config.keys().any(|key| key.starts_with("unused")));
    bench.converged();
}

#[test]
fn nodes_outside_the_allowlist_are_neither_read_nor_written_nor_pruned() {
    let mut world = seed::empty();
    live(&mut world, 200, "pve02", "owned-elsewhere", Some("proxops"));
    live(&mut world, 101, "pve02", "db", Some("proxops"));
    let mut bench = Bench::new(world);
    bench.configure(&["nodes: [pve01, pve03]"]);
    bench
        .documents(&format!("vm/{CLUSTER}/all.yaml"), &[vm("web", 100, json!({})), vm("db", 101, json!({}))]);
    // Whoever reads below that node learns nothing.
    let answer = FaultAnswer::Status {
        status: 500,
        message: "must not be read".to_owned(),
        errors: [].into(),
        effect: false,
    };
    bench.sim().inject(RequestFault { times: 0, ..RequestFault::once("*", "/nodes/pve02/**", answer) });
    let plan = bench.diff();
    assert_eq!(plan.actions(), ["create VM/web"], "{plan}");
    assert_eq!(plan.anomalies(), ["outside-allowlist VM/db"], "{plan}");
    assert!(!plan.stdout.contains("must not be read"), "{plan}");
    bench.apply().exits(0);
    assert_eq!(touched(&bench.writes()), BTreeSet::from([100]));
    // and a manifest that wants to be there is a mistake
    bench.documents(&format!("vm/{CLUSTER}/all.yaml"), &[vm("web", 100, json!({"node": "pve02"}))]);
    let errors = bench.errors();
    assert!(errors.len() == 1 && errors[0].starts_with("node-not-allowed "), "{errors:?}");
}

#[test]
fn a_guest_on_an_unreachable_node_is_unknown_and_nothing_is_pruned() {
    let mut world = seed::empty();
    live(&mut world, 100, "pve02", "web", Some("proxops"));
    live(&mut world, 200, "pve01", "old", Some("proxops"));
    world.set_node("pve02", false);
    let mut bench = Bench::new(world);
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({"node": "pve02"}))]);
    let plan = bench.diff();
    assert_eq!(plan.actions(), [""; 0], "{plan}");
    assert_eq!(plan.list("unknown").len(), 1, "{plan}");
    bench.apply();
    assert!(bench.writes().is_empty());
}
