//! Inventory, ids, options, pools, HA, firewall, nodes: facts C1 to C13, T23, T25, E.

use std::time::Duration;

use proxops_sim::GuestKind;

use crate::{Lab, VM, json};

fn guest_row(lab: &mut Lab, vmid: u32) -> serde_json::Value {
    let rows = lab.ok("GET", "/cluster/resources", json!({"type": "vm"}));
    rows.as_array().unwrap().iter().find(|row| row["vmid"] == vmid).cloned().unwrap()
}

#[test]
fn the_inventory_lists_guests_storages_and_nodes_c1() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"tags": "b;a"}));
    let row = guest_row(&mut lab, 101);
    assert_eq!(row["id"], "qemu/101");
    assert_eq!(
        (&row["name"], &row["status"], &row["template"], &row["tags"]),
        (&json!("app"), &json!("stopped"), &json!(0), &json!("a;b"))
    );
    assert!(row.get("lock").is_none());
    let all = lab.ok("GET", "/cluster/resources", json!({}));
    let count = |kind: &str| all.as_array().unwrap().iter().filter(|row| row["type"] == kind).count();
    assert_eq!((count("qemu"), count("node"), count("storage")), (1, 3, 9));
}

#[test]
fn with_a_lag_a_new_guest_has_no_name_until_the_next_round_c2() {
    let mut lab = Lab::with_vm();
    lab.0.lag = Duration::from_secs(10);
    assert_eq!(guest_row(&mut lab, 101)["name"], "app");
    lab.task("POST", "/nodes/pve01/qemu", json!({"vmid": 102, "name": "fresh", "tags": "x"}));
    lab.put(json!({"lock": "backup", "name": "renamed"}));
    let fresh = guest_row(&mut lab, 102);
    assert_eq!((&fresh["status"], &fresh["tags"]), (&json!("unknown"), &json!("x")));
    assert!(fresh.get("name").is_none() && fresh.get("template").is_none());
    let old = guest_row(&mut lab, 101);
    assert_eq!(
        (&old["name"], &old["lock"]),
        (&json!("app"), &json!("backup")),
        "the lock is current, the name is not"
    );
    lab.0.advance(Duration::from_secs(10));
    assert_eq!(guest_row(&mut lab, 102)["name"], "fresh");
}

#[test]
fn a_node_that_is_down_c2_t20_t23() {
    let mut lab = Lab::with_vm();
    lab.0.set_node("pve01", false);
    let row = guest_row(&mut lab, 101);
    assert_eq!(row["status"], "unknown");
    assert!(row.get("name").is_none());
    assert_eq!(lab.error("GET", VM, json!({})), (595, "No route to host".into()));
    assert_eq!(lab.error("PUT", VM, json!({"nonsense": "1"})).0, 595, "an unreachable node hides a 400");
    let nodes = lab.ok("GET", "/nodes", json!({}));
    assert_eq!((&nodes[0]["status"], &nodes[1]["status"]), (&json!("offline"), &json!("online")));
    let (status, text) = lab.error("GET", "/nodes/pve09/status", json!({}));
    assert_eq!(status, 500);
    assert!(
        text.starts_with("hostname lookup 'pve09' failed - failed to get address info for: pve09:"),
        "T25: {text}"
    );
}

#[test]
fn without_quorum_writes_fail_and_reads_work_c13() {
    let mut lab = Lab::with_vm();
    lab.0.quorate = false;
    assert_eq!(lab.vm(101)["name"], "app");
    assert_eq!(lab.error("PUT", VM, json!({"cores": "1"})), (500, "cluster not ready - no quorum?".into()));
    assert_eq!(
        lab.error("POST", "/nodes/pve01/qemu", json!({"vmid": 102})),
        (500, "cluster not ready - no quorum?".into())
    );
    assert_eq!(
        lab.error("POST", "/pools", json!({"poolid": "x"})),
        (500, "cfs-lock 'file-user_cfg' error: no quorum!".into())
    );
    assert_eq!(lab.ok("GET", "/cluster/status", json!({}))[0]["quorate"], 0);
}

#[test]
fn a_held_config_lock_times_out_e() {
    let mut lab = Lab::with_vm();
    lab.0.busy.insert(101, 1);
    let (status, text) = lab.error("PUT", VM, json!({"cores": "1"}));
    assert_eq!(
        (status, text.as_str()),
        (500, "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout")
    );
    lab.put(json!({"cores": "1"}));
}

#[test]
fn next_ids_c6_r9() {
    let mut lab = Lab::with_vm();
    assert_eq!(lab.ok("GET", "/cluster/nextid", json!({})), json!("100"), "a string");
    assert_eq!(lab.ok("GET", "/cluster/nextid", json!({"vmid": "500"})), json!("500"));
    assert_eq!(
        lab.param_error("GET", "/cluster/nextid", json!({"vmid": "101"}), "vmid"),
        "VM 101 already exists"
    );
    lab.ok("PUT", "/cluster/options", json!({"next-id": "lower=5000,upper=6000"}));
    assert_eq!(lab.ok("GET", "/cluster/nextid", json!({})), json!("5000"));
}

#[test]
fn options_are_objects_where_pve_says_so_r12() {
    let mut lab = Lab::new();
    lab.ok(
        "PUT",
        "/cluster/options",
        json!({"tag-style": "case-sensitive=1,ordering=config", "registered-tags": "a;b"}),
    );
    let options = lab.ok("GET", "/cluster/options", json!({}));
    assert_eq!(options["tag-style"], json!({"case-sensitive": 1, "ordering": "config"}));
    assert_eq!(options["registered-tags"], json!(["a", "b"]));
}

#[test]
fn cluster_status_c7() {
    let mut lab = Lab::new();
    let rows = lab.ok("GET", "/cluster/status", json!({}));
    assert_eq!(
        (&rows[0]["type"], &rows[0]["nodes"], &rows[0]["quorate"]),
        (&json!("cluster"), &json!(3), &json!(1))
    );
    lab.0.nodes.retain(|name, _| name == "pve01");
    assert_eq!(lab.ok("GET", "/cluster/status", json!({}))[0]["type"], "node", "a single node is no cluster");
}

#[test]
fn pools_c10() {
    let mut lab = Lab::with_vm();
    lab.ok("POST", "/pools", json!({"poolid": "lab", "comment": "c"}));
    assert_eq!(
        lab.error("POST", "/pools", json!({"poolid": "lab"})),
        (500, "pool 'lab' already exists".into())
    );
    lab.ok("PUT", "/pools", json!({"poolid": "lab", "vms": "101", "storage": "nfs"}));
    assert_eq!(
        lab.error("PUT", "/pools", json!({"poolid": "lab", "vms": "101"})),
        (500, "VM 101 is already a pool member".into())
    );
    let pool = lab.ok("GET", "/pools", json!({"poolid": "lab"}));
    assert_eq!(
        (&pool[0]["comment"], &pool[0]["members"][0]["vmid"], &pool[0]["members"][1]["storage"]),
        (&json!("c"), &json!(101), &json!("nfs"))
    );
    assert_eq!(guest_row(&mut lab, 101)["pool"], "lab");
    assert_eq!(
        lab.error("DELETE", "/pools", json!({"poolid": "lab"})),
        (500, "pool 'lab' is not empty (contains VM 101)".into())
    );
    lab.ok("PUT", "/pools/lab", json!({"vms": "101", "storage": "nfs", "delete": "1"}));
    lab.ok("DELETE", "/pools/lab", json!({}));
    let (status, text) = lab.error("POST", "/nodes/pve01/qemu", json!({"vmid": 102, "pool": "none"}));
    assert_eq!((status, text.as_str()), (403, "Permission check failed (pool 'none' does not exist)"));
}

#[test]
fn a_guest_leaves_its_pool_with_its_removal() {
    let mut lab = Lab::new();
    lab.ok("POST", "/pools", json!({"poolid": "lab"}));
    lab.task("POST", "/nodes/pve01/qemu", json!({"vmid": 100, "pool": "lab"}));
    assert!(lab.0.pools["lab"].vms.contains(&100));
    lab.task("DELETE", "/nodes/pve01/qemu/100", json!({}));
    assert!(lab.0.pools["lab"].vms.is_empty());
}

#[test]
fn ha_resources_c11_r9() {
    let mut lab = Lab::with_vm();
    lab.ok("POST", "/cluster/ha/resources", json!({"sid": "101", "max_restart": "2", "comment": "c"}));
    let row = lab.ok("GET", "/cluster/ha/resources/vm:101", json!({}));
    assert_eq!(
        (&row["sid"], &row["state"], &row["max_restart"]),
        (&json!("vm:101"), &json!("started"), &json!(2))
    );
    lab.ok("PUT", "/cluster/ha/resources/vm:101", json!({"state": "ignored", "delete": "comment"}));
    let row = lab.ok("GET", "/cluster/ha/resources/vm:101", json!({}));
    assert_eq!(row["state"], "ignored");
    assert!(row.get("comment").is_none());
    assert_eq!(lab.ok("GET", "/nodes/pve01/qemu/101/status/current", json!({}))["ha"]["managed"], 1);
    assert!(lab.error("GET", "/cluster/ha/groups", json!({})).1.ends_with("migrated to rules"));
    lab.ok("DELETE", "/cluster/ha/resources/vm:101", json!({}));
    assert_eq!(lab.error("GET", "/cluster/ha/resources/vm:101", json!({})).0, 500);
}

#[test]
fn replication_keeps_a_guest_from_being_removed() {
    let mut lab = Lab::with_vm();
    lab.0.replication.push(proxops_sim::world::Replication {
        id: "101-0".into(),
        guest: 101,
        target: "pve02".into(),
    });
    assert_eq!(lab.ok("GET", "/cluster/replication", json!({}))[0]["id"], "101-0");
    assert_eq!(lab.ok("GET", "/nodes/pve01/replication", json!({"guest": "101"}))[0]["target"], "pve02");
    let (_, text) = lab.error("DELETE", "/nodes/pve01/qemu/101", json!({}));
    assert_eq!(text, "There is a replication job '101-0' for guest '101' - Please remove that first.");
}

#[test]
fn security_groups_c12() {
    let mut lab = Lab::new();
    let path = "/cluster/firewall/groups";
    lab.ok("POST", path, json!({"group": "web", "comment": "c"}));
    let rule =
        |port: &str| json!({"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": port, "enable": "1"});
    lab.ok("POST", "/cluster/firewall/groups/web", rule("80"));
    lab.ok("POST", "/cluster/firewall/groups/web", rule("443"));
    let rules = lab.ok("GET", "/cluster/firewall/groups/web", json!({}));
    assert_eq!(
        (&rules[0]["dport"], &rules[0]["pos"], &rules[1]["dport"]),
        (&json!("443"), &json!(0), &json!("80")),
        "new rules come first"
    );
    let digest = rules[0]["digest"].clone();
    lab.ok("PUT", "/cluster/firewall/groups/web/1", json!({"comment": "x", "digest": digest}));
    assert_eq!(
        lab.error("DELETE", "/cluster/firewall/groups/web/0", json!({"digest": digest})).0,
        500,
        "a stale digest"
    );
    lab.ok("PUT", "/cluster/firewall/groups/web/0", json!({"moveto": "2"}));
    let rules = lab.ok("GET", "/cluster/firewall/groups/web", json!({}));
    assert_eq!((&rules[0]["comment"], &rules[1]["dport"]), (&json!("x"), &json!("443")));
    assert_eq!(lab.error("DELETE", "/cluster/firewall/groups/web", json!({})).0, 500, "not empty");
}

#[test]
fn localhost_is_a_node_t25() {
    let mut lab = Lab::with_vm();
    assert_eq!(lab.ok("GET", "/nodes/localhost/qemu/101/config", json!({}))["name"], "app");
    lab.0.add_guest(GuestKind::Qemu, 102, "pve02", &[]);
    assert_eq!(lab.error("GET", "/nodes/localhost/qemu/102/config", json!({})).0, 500);
}
