//! Containers: facts L1 to L23, R13, R15.

use std::time::Duration;

use crate::{CT, Lab, json};

const CREATE: &str = "/nodes/pve01/lxc";
const TEMPLATE: &str = "local:vztmpl/debian-13.tar.zst";

#[test]
fn create_writes_its_defaults_l1_l4() {
    let mut lab = Lab::new();
    let sent = json!({"vmid": 200, "ostemplate": TEMPLATE, "storage": "local-lvm", "password": "hunter2-fixture",
        "net0": "name=eth0,bridge=vmbr0,ip=dhcp", "description": "about"});
    assert_eq!(lab.task("POST", CREATE, sent), "OK");
    let ct = lab.ct(200);
    assert_eq!(ct["rootfs"], "local-lvm:vm-200-disk-0,size=4G", "L2");
    assert_eq!((&ct["hostname"], &ct["memory"], &ct["swap"]), (&json!("CT200"), &json!(512), &json!(512)));
    assert_eq!(
        (&ct["unprivileged"], &ct["arch"], &ct["ostype"]),
        (&json!(1), &json!("amd64"), &json!("debian"))
    );
    assert_eq!(ct["description"], "about\n", "Q37");
    let net = ct["net0"].as_str().unwrap();
    assert!(
        net.starts_with("name=eth0,bridge=vmbr0,hwaddr=BC:24:11:") && net.ends_with(",ip=dhcp,type=veth"),
        "{net}"
    );
    for key in ["ostemplate", "storage", "password"] {
        assert!(ct.get(key).is_none(), "{key} is never reported");
    }
}

#[test]
fn create_errors_l2_l3() {
    let mut lab = Lab::with_ct();
    let create = |id: u32, key: &str, value: &str| json!({"vmid": id, "ostemplate": TEMPLATE, "storage": "local-lvm", key: value});
    assert_eq!(
        lab.error("POST", CREATE, create(201, "memory", "512")),
        (500, "CT 201 already exists on node 'pve01'".into())
    );
    let (_, text) = lab.error("POST", CREATE, create(200, "mp0", "local-lvm:1,mp=/data"));
    assert_eq!(text, "mount points configured, but 'rootfs' not set - aborting");
    let exit = lab.task(
        "POST",
        CREATE,
        json!({"vmid": 200, "ostemplate": "local:vztmpl/none.tar.gz", "rootfs": "local-lvm:4"}),
    );
    assert_eq!(exit, "unable to create CT 200 - volume 'local:vztmpl/none.tar.gz' does not exist");
    assert!(!lab.0.guests.contains_key(&200));
    let (_, text) =
        lab.error("POST", CREATE, json!({"vmid": 200, "ostemplate": TEMPLATE, "rootfs": "local:4"}));
    assert_eq!(text, "storage 'local' does not support container directories");
}

#[test]
fn root_and_mount_points_share_one_counter_l16() {
    let mut lab = Lab::new();
    let sent = json!({"vmid": 200, "ostemplate": TEMPLATE, "mp10": "local-lvm:3,mp=/c", "mp2": "local-lvm:2,mp=/b", "rootfs": "local-lvm:1"});
    assert_eq!(lab.task("POST", CREATE, sent), "OK");
    let ct = lab.ct(200);
    assert_eq!(ct["rootfs"], "local-lvm:vm-200-disk-0,size=1G");
    assert_eq!(ct["mp2"], "local-lvm:vm-200-disk-1,mp=/b,size=2G");
    assert_eq!(ct["mp10"], "local-lvm:vm-200-disk-2,mp=/c,size=3G");
}

#[test]
fn keys_that_do_not_exist_l6_l11() {
    let mut lab = Lab::with_ct();
    for key in ["nesting", "keyctl", "fuse", "ttys", "ostemplate", "lxc"] {
        assert!(
            lab.param_error("PUT", CT, json!({key: "1"}), key).starts_with("property is not defined"),
            "{key}"
        );
    }
}

#[test]
fn read_only_and_required_options_l5() {
    let mut lab = Lab::with_ct();
    let (_, text) = lab.error("PUT", CT, json!({"unprivileged": "1"}));
    assert_eq!(text, "unable to modify read-only option: 'unprivileged'");
    assert_eq!(
        lab.error("PUT", CT, json!({"delete": "unprivileged"})).1,
        "unable to delete read-only option: 'unprivileged'"
    );
    for key in ["memory", "rootfs", "ostype"] {
        assert_eq!(
            lab.error("PUT", CT, json!({"delete": key})).1,
            format!("unable to delete required option '{key}'")
        );
    }
}

#[test]
fn mount_points_are_allocated_reprinted_and_kept_l16_r13() {
    let mut lab = Lab::with_ct();
    lab.ok("PUT", CT, json!({"mp0": "local-lvm:5,mp=/data,backup=1"}));
    assert_eq!(lab.ct(201)["mp0"], "local-lvm:vm-201-disk-1,mp=/data,backup=1,size=5G");
    lab.ok("PUT", CT, json!({"mp0": "local-lvm:vm-201-disk-1,ro=1,mp=/new"}));
    assert_eq!(lab.ct(201)["mp0"], "local-lvm:vm-201-disk-1,mp=/new,ro=1,size=5G");
    lab.ok("PUT", CT, json!({"mp0": "local-lvm:6,mp=/new"}));
    let ct = lab.ct(201);
    assert_eq!(
        (&ct["mp0"], &ct["unused0"]),
        (&json!("local-lvm:vm-201-disk-2,mp=/new,size=6G"), &json!("local-lvm:vm-201-disk-1"))
    );
    lab.ok("PUT", CT, json!({"delete": "mp0"}));
    assert_eq!(lab.ct(201)["unused1"], "local-lvm:vm-201-disk-2");
}

#[test]
fn rootfs_is_stored_as_sent_r13() {
    let mut lab = Lab::with_ct();
    lab.ok("PUT", CT, json!({"rootfs": "local-lvm:vm-201-disk-0,quota=1"}));
    assert_eq!(
        lab.ct(201)["rootfs"],
        "local-lvm:vm-201-disk-0,quota=1",
        "without size the size token is lost"
    );
}

#[test]
fn a_card_without_hwaddr_gets_a_new_one_l10() {
    let mut lab = Lab::with_ct();
    lab.ok("PUT", CT, json!({"net0": "name=eth0,bridge=vmbr0,tag=7"}));
    let net = lab.ct(201)["net0"].as_str().unwrap().to_owned();
    assert!(!net.contains("BC:24:11:00:00:02") && net.contains("hwaddr=BC:24:11:"), "{net}");
}

#[test]
fn a_running_container_takes_some_keys_at_once_l15() {
    let mut lab = Lab::with_ct().running(201);
    lab.ok("PUT", CT, json!({"memory": "1024", "hostname": "new", "mp0": "local-lvm:1,mp=/x", "features": "nesting=1", "tty": "3"}));
    let current = lab.ok("GET", CT, json!({"current": "1"}));
    assert_eq!((&current["memory"], &current["hostname"]), (&json!(1024), &json!("new")));
    assert!(current.get("mp0").is_some(), "a new mount point is plugged");
    assert!(current.get("features").is_none() && current.get("tty").is_none());
    lab.ok("PUT", CT, json!({"mp0": "local-lvm:vm-201-disk-1,mp=/y"}));
    assert_eq!(lab.ok("GET", CT, json!({"current": "1"}))["mp0"], "local-lvm:vm-201-disk-1,mp=/x,size=1G");
    lab.task("POST", "/nodes/pve01/lxc/201/status/reboot", json!({}));
    let current = lab.ok("GET", CT, json!({"current": "1"}));
    assert_eq!(
        (&current["features"], &current["mp0"]),
        (&json!("nesting=1"), &json!("local-lvm:vm-201-disk-1,mp=/y,size=1G"))
    );
}

#[test]
fn locks_digests_and_protection_l15_l23_q27() {
    let mut lab = Lab::with_ct();
    let digest = lab.ct(201)["digest"].clone();
    lab.ok("PUT", CT, json!({"cores": "2", "digest": digest}));
    let (_, text) = lab.error("PUT", CT, json!({"cores": "3", "digest": digest}));
    assert_eq!(text, "detected modified configuration - file changed by other user? Try again.");
    lab.ok("PUT", CT, json!({"protection": "1"}));
    let (_, text) = lab.error("PUT", CT, json!({"rootfs": "local-lvm:vm-201-disk-0,size=8G"}));
    assert_eq!(text, "can't update CT 201 drive 'rootfs' - protection mode enabled");
    lab.ok("PUT", CT, json!({"lock": "backup"}));
    assert_eq!(lab.error("PUT", CT, json!({"cores": "3"})), (500, "CT is locked (backup)".into()));
}

#[test]
fn power_faults_are_said_at_once_l21() {
    let mut lab = Lab::with_ct();
    let path = |what: &str| format!("/nodes/pve01/lxc/201/status/{what}");
    assert_eq!(lab.error("POST", &path("stop"), json!({})), (500, "CT 201 not running".into()));
    assert_eq!(lab.task("POST", &path("start"), json!({})), "OK");
    assert_eq!(lab.error("POST", &path("start"), json!({})), (500, "CT 201 already running".into()));
    let exit = lab.task("POST", "/nodes/pve01/lxc/999/status/start", json!({}));
    assert_eq!(exit, "Configuration file 'nodes/pve01/lxc/999.conf' does not exist", "R15");
}

#[test]
fn resize_says_at_once_what_is_wrong_l19() {
    let mut lab = Lab::with_ct();
    let path = "/nodes/pve01/lxc/201/resize";
    assert_eq!(
        lab.error("PUT", path, json!({"disk": "rootfs", "size": "4G"})),
        (500, "unable to shrink disk size".into())
    );
    assert_eq!(
        lab.error("PUT", path, json!({"disk": "rootfs", "size": "8G"})),
        (500, "disk is already at specified size".into())
    );
    assert_eq!(lab.task("PUT", path, json!({"disk": "rootfs", "size": "10G"})), "OK");
    assert_eq!(lab.ct(201)["rootfs"], "local-lvm:vm-201-disk-0,size=10G");
}

#[test]
fn template_throws_its_task_away_l17() {
    let mut lab = Lab::with_ct();
    lab.0.task_duration = Duration::from_secs(3);
    assert_eq!(lab.ok("POST", "/nodes/pve01/lxc/201/template", json!({})), json!(null));
    assert!(lab.ct(201).get("template").is_none(), "the mark comes last");
    lab.0.advance(Duration::from_secs(3));
    let ct = lab.ct(201);
    assert_eq!((&ct["template"], &ct["rootfs"]), (&json!(1), &json!("local-lvm:base-201-disk-0,size=8G")));
    let tasks = lab.ok("GET", "/nodes/pve01/tasks", json!({"typefilter": "vztemplate"}));
    assert_eq!(tasks[0]["status"], "OK");
    assert_eq!(lab.task("POST", "/nodes/pve01/lxc/201/clone", json!({"newid": 300})), "OK");
    let exit = lab.task("POST", "/nodes/pve01/lxc/201/status/start", json!({}));
    assert_eq!(exit, "you can't start a CT if it's a template");
}

#[test]
fn clone_l18() {
    let mut lab = Lab::with_ct();
    let path = "/nodes/pve01/lxc/201/clone";
    lab.0.task_duration = Duration::from_secs(3);
    let upid = lab.ok("POST", path, json!({"newid": 202}));
    assert_eq!(lab.0.guests[&201].lock(), Some("disk"));
    assert_eq!(lab.0.guests[&202].lock(), Some("create"));
    lab.0.finish_tasks();
    assert_eq!(lab.0.exit_status(&upid).as_deref(), Some("OK"));
    let ct = lab.ct(202);
    assert_eq!(
        (&ct["hostname"], &ct["rootfs"]),
        (&json!("cache"), &json!("local-lvm:vm-202-disk-0,size=8G"))
    );
    assert_ne!(ct["net0"], lab.ct(201)["net0"]);
    assert!(lab.0.guests[&201].lock().is_none());
    assert_eq!(
        lab.error("POST", path, json!({"newid": 202})),
        (500, "CT 202 already exists on node 'pve01'".into())
    );
    lab.ok("PUT", CT, json!({"mp0": "/srv/data,mp=/data"}));
    assert_eq!(
        lab.error("POST", path, json!({"newid": 203})),
        (500, "unable to clone mountpoint 'mp0' (type bind)".into())
    );
}

#[test]
fn removal_l20() {
    let mut lab = Lab::with_ct().running(201);
    let path = "/nodes/pve01/lxc/201";
    assert_eq!(
        lab.error("DELETE", path, json!({})),
        (500, "unable to destroy CT 201 - container is running".into())
    );
    assert_eq!(lab.task("DELETE", path, json!({"force": "1"})), "OK");
    let mut lab = Lab::with_ct();
    lab.ok("PUT", CT, json!({"lock": "backup"}));
    assert_eq!(lab.error("DELETE", path, json!({})), (500, "CT is locked (backup)".into()), "said at once");
}

#[test]
fn raw_lines_are_reported_as_pairs_l14() {
    let mut lab = Lab::with_ct();
    lab.0.guests.get_mut(&201).unwrap().raw.push(("lxc.cap.drop".into(), "sys_time".into()));
    assert_eq!(lab.ct(201)["lxc"], json!([["lxc.cap.drop", "sys_time"]]));
}
