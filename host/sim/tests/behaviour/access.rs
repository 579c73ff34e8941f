//! Privileges: facts P1 to P10, T20, T26 to T28, Q51, L7, L8, C5, C9.

use proxops_sim::world::access::RECONCILER_ROLE;
use proxops_sim::{Caller, Refused, World};
use serde_json::Value;

use crate::{CT, Lab, VM, json};

fn token() -> Caller {
    Caller::token("gitops@pve", "proxops")
}

fn root_token() -> Caller {
    Caller::token("root@pam", "proxops")
}

/// A user with these privileges on these paths and nothing else.
fn user(world: &mut World, grants: &[(&str, &[&str])]) -> Caller {
    for (path, privileges) in grants {
        world.grant("ann@pve", path, privileges, true);
    }
    Caller::user("ann@pve")
}

fn denied(result: Result<Value, Refused>) -> String {
    let refused = result.expect_err("the call was accepted");
    assert_eq!(refused.status, 403, "{refused}");
    refused.message
}

#[test]
fn a_root_token_is_not_root_t26_q51() {
    let mut lab = Lab::with_vm();
    let mut put = |caller: &Caller, params: Value| lab.0.call(caller, "PUT", VM, params);
    for key in ["args", "hookscript", "affinity", "arch", "vmgenid", "lock"] {
        let value = match key {
            "hookscript" => "local:snippets/x.pl",
            "arch" => "x86_64",
            "vmgenid" => "1",
            "lock" => "backup",
            "affinity" => "0-3",
            _ => "-no-hpet",
        };
        let refused = put(&root_token(), json!({key: value})).unwrap_err();
        assert_eq!(
            (refused.status, refused.message),
            (500, format!("only root can set '{key}' config")),
            "R7"
        );
    }
    assert!(put(&root_token(), json!({"cores": "3"})).is_ok());
    let refused = put(&root_token(), json!({"hostpci0": "0000:01:00.0"})).unwrap_err();
    assert_eq!(refused.message, "only root can set 'hostpci0' config for non-mapped devices");
    let refused = put(&root_token(), json!({"serial0": "/dev/ttyS0"})).unwrap_err();
    assert_eq!(refused.message, "only root can set 'serial0' config for real devices");
    assert!(put(&root_token(), json!({"hostpci0": "mapping=gpu", "serial0": "socket"})).is_ok());
    let refused = put(&root_token(), json!({"scsi5": "/dev/sdb"})).unwrap_err();
    assert!(refused.message.starts_with("Only root can pass arbitrary filesystem paths."));
    assert!(put(&Caller::root(), json!({"args": "-no-hpet", "hostpci0": "0000:01:00.0"})).is_ok());
    let refused = put(&root_token(), json!({"delete": "hostpci0"})).unwrap_err();
    assert_eq!(refused.status, 500, "also on delete");
    let refused = put(&root_token(), json!({"cores": "1", "skiplock": "1"})).unwrap_err();
    assert_eq!(
        (refused.status, refused.errors["skiplock"].as_str()),
        (400, "Only root may use this option."),
        "Q27"
    );
}

#[test]
fn the_reconcilers_role_is_enough_p10() {
    let mut lab = Lab::with_vm();
    lab.0.grant("gitops@pve", "/", RECONCILER_ROLE, true);
    lab.0.grant("gitops@pve!proxops", "/", RECONCILER_ROLE, true);
    let calls = [
        ("GET", "/cluster/resources", json!({})),
        ("GET", "/cluster/status", json!({})),
        ("GET", "/nodes/pve01/storage/local/content", json!({})),
        (
            "POST",
            "/nodes/pve01/storage/local/download-url",
            json!({"content": "iso", "filename": "n.iso", "url": "https://e.org/n.iso"}),
        ),
        (
            "POST",
            "/nodes/pve01/qemu",
            json!({"vmid": 100, "memory": "1024", "cores": "2", "cpu": "host", "scsihw": "virtio-scsi-single",
            "scsi0": "local-lvm:4", "scsi1": "local-lvm:0,import-from=local:import/deb.qcow2", "ide2": "local:iso/x.iso,media=cdrom",
            "sata0": "local-lvm:cloudinit", "net0": "virtio,bridge=vmbr0,tag=5", "ciuser": "ops", "tags": "a", "agent": "1", "start": "1"}),
        ),
        (
            "PUT",
            VM,
            json!({"cores": "3", "memory": "1024", "net0": "virtio,bridge=vmbr0", "scsi1": "local-lvm:1", "ciuser": "x"}),
        ),
        ("PUT", "/nodes/pve01/qemu/101/resize", json!({"disk": "scsi0", "size": "+1G"})),
        ("POST", "/nodes/pve01/qemu/101/clone", json!({"newid": 111})),
        (
            "POST",
            "/nodes/pve01/lxc",
            json!({"vmid": 200, "ostemplate": "local:vztmpl/debian-13.tar.zst", "rootfs": "local-lvm:4",
            "features": "nesting=1", "net0": "name=eth0,bridge=vmbr0"}),
        ),
        ("DELETE", "/nodes/pve01/qemu/100", json!({})),
    ];
    for (method, path, params) in calls {
        let result = lab.0.call(&token(), method, path, params);
        // the VM runs by then, which is another refusal
        if let Err(refused) = result {
            assert_ne!(refused.status, 403, "{method} {path}: {refused}");
            assert!(refused.message.ends_with("is running - destroy failed"), "{method} {path}: {refused}");
        }
        lab.0.finish_tasks();
    }
    let text = denied(lab.0.call(&token(), "PUT", VM, json!({"startup": "order=1"})));
    assert_eq!(text, "Permission check failed (/, Sys.Modify)", "P3");
    let text =
        denied(lab.0.call(&token(), "DELETE", "/nodes/pve01/storage/local/content/iso/x.iso", json!({})));
    assert_eq!(text, "Permission check failed (/storage/local, Datastore.Allocate)", "S9");
    let text = denied(lab.0.call(&token(), "POST", "/pools", json!({"poolid": "x"})));
    assert_eq!(text, "Permission check failed (/pool/x, Pool.Allocate)");
    let text = denied(lab.0.call(&token(), "POST", "/cluster/ha/resources", json!({"sid": "vm:101"})));
    assert_eq!(text, "Permission check failed (/, Sys.Console)");
}

#[test]
fn each_key_class_has_its_privilege_p2() {
    let cases: [(&str, Value, &str); 9] = [
        ("cores", json!("1"), "VM.Config.CPU"),
        ("memory", json!("512"), "VM.Config.Memory"),
        ("vga", json!("std"), "VM.Config.HWType"),
        ("name", json!("x"), "VM.Config.Options"),
        ("boot", json!("order=scsi0"), "VM.Config.Disk"),
        ("net0", json!("virtio"), "VM.Config.Network"),
        ("ciuser", json!("x"), "VM.Config.Cloudinit|VM.Config.Network"),
        ("ide2", json!("none,media=cdrom"), "VM.Config.CDROM"),
        ("scsi5", json!("local-lvm:vm-101-disk-0"), "VM.Config.Disk"),
    ];
    for (key, value, privilege) in cases {
        let mut lab = Lab::with_vm();
        // one that lets the call through its declared check, but not this one
        let other = if privilege == "VM.Config.CPU" { "VM.Config.Memory" } else { "VM.Config.CPU" };
        let ann = user(&mut lab.0, &[("/vms", &[other, "VM.Audit"])]);
        let text = denied(lab.0.call(&ann, "PUT", VM, json!({key: value})));
        assert_eq!(text, format!("Permission check failed (/vms/101, {privilege})"), "{key}");
        let enough = privilege.split('|').next().unwrap();
        // a card also needs its old bridge (P4)
        let ann = user(&mut lab.0, &[("/vms", &[enough, "VM.Audit"]), ("/sdn", &["SDN.Use"])]);
        lab.0.call(&ann, "PUT", VM, json!({key: value})).unwrap();
    }
}

#[test]
fn bridges_and_storages_have_paths_of_their_own_p1_p4() {
    let mut lab = Lab::with_vm();
    let ann = user(&mut lab.0, &[("/vms", &["VM.Config.Network", "VM.Config.Disk"])]);
    let text = denied(lab.0.call(&ann, "PUT", VM, json!({"net0": "virtio,bridge=vmbr0,tag=7"})));
    assert_eq!(text, "Permission check failed (/sdn/zones/localnetwork/vmbr0/7, SDN.Use)");
    let text = denied(lab.0.call(&ann, "PUT", VM, json!({"scsi1": "local-lvm:1"})));
    assert_eq!(text, "Permission check failed (/storage/local-lvm, Datastore.AllocateSpace)");
    user(
        &mut lab.0,
        &[
            ("/sdn/zones/localnetwork/vmbr0", &["SDN.Use"]),
            ("/storage/local-lvm", &["Datastore.AllocateSpace"]),
        ],
    );
    lab.0
        .call(&ann, "PUT", VM, json!({"net0": "virtio,bridge=vmbr0,tag=7", "scsi1": "local-lvm:1"}))
        .unwrap();
}

#[test]
fn a_pool_grants_its_members() {
    let mut lab = Lab::with_vm();
    lab.ok("POST", "/pools", json!({"poolid": "lab"}));
    lab.ok("PUT", "/pools", json!({"poolid": "lab", "vms": "101"}));
    let ann = user(&mut lab.0, &[("/pool/lab", &["VM.Audit", "VM.Allocate"])]);
    assert_eq!(lab.0.call(&ann, "GET", VM, json!({})).unwrap()["name"], "app");
    lab.0.call(&ann, "POST", "/nodes/pve01/qemu", json!({"vmid": 102, "pool": "lab"})).unwrap();
    assert_eq!(
        denied(lab.0.call(&ann, "POST", "/nodes/pve01/qemu", json!({"vmid": 103}))),
        "Permission check failed"
    );
}

#[test]
fn a_separated_token_has_no_more_than_both_t27() {
    let mut lab = Lab::with_vm();
    lab.0.add_user("bob@pve", "pw");
    lab.0.grant("bob@pve", "/vms", &["VM.Audit", "VM.PowerMgmt"], true);
    lab.0.add_token("bob@pve", "sep", "s", true);
    lab.0.add_token("bob@pve", "full", "s", false);
    let (sep, full) = (Caller::token("bob@pve", "sep"), Caller::token("bob@pve", "full"));
    assert!(lab.0.call(&full, "GET", VM, json!({})).is_ok());
    assert_eq!(
        denied(lab.0.call(&sep, "GET", VM, json!({}))),
        "Permission check failed (/vms/101, VM.Audit)"
    );
    lab.0.grant("bob@pve!sep", "/vms/101", &["VM.Audit", "VM.Config.CPU"], true);
    assert!(lab.0.call(&sep, "GET", VM, json!({})).is_ok());
    assert_eq!(
        lab.0.call(&sep, "PUT", VM, json!({"cores": "1"})).unwrap_err().status,
        403,
        "the user lacks it"
    );
}

#[test]
fn a_403_hides_a_400_t20() {
    let mut lab = Lab::with_vm();
    let ann = user(&mut lab.0, &[]);
    assert_eq!(lab.0.call(&ann, "PUT", VM, json!({"nonsense": "1"})).unwrap_err().status, 403);
}

#[test]
fn tokens_cannot_log_in_t28() {
    let mut lab = Lab::new();
    let text =
        denied(lab.0.call(&token(), "POST", "/access/ticket", json!({"username": "x", "password": "y"})));
    assert_eq!(
        text,
        "Permission check failed (URI '/access/ticket' not available with API token, need proper ticket."
    );
}

#[test]
fn permissions_are_listed_by_path_c9() {
    let mut lab = Lab::new();
    let ann = user(&mut lab.0, &[("/vms/101", &["VM.Audit"])]);
    let all = lab.0.call(&ann, "GET", "/access/permissions", json!({})).unwrap();
    assert_eq!(all, json!({"/vms/101": {"VM.Audit": 1}}));
    let one = lab.0.call(&ann, "GET", "/access/permissions", json!({"path": "/storage"})).unwrap();
    assert_eq!(one, json!({"/storage": {}}));
}

#[test]
fn lists_leave_out_what_may_not_be_seen() {
    let mut lab = Lab::with_vm();
    let ann = user(&mut lab.0, &[]);
    assert_eq!(lab.0.call(&ann, "GET", "/nodes/pve01/qemu", json!({})).unwrap(), json!([]));
    let rows = lab.0.call(&ann, "GET", "/cluster/resources", json!({})).unwrap();
    assert!(rows.as_array().unwrap().iter().all(|row| row["type"] == "node"), "{rows}");
}

#[test]
fn tags_can_be_restricted_c5() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"tags": "old"}));
    lab.0.options.insert("user-tag-access".into(), "user-allow=list,user-allow-list=web;old".into());
    lab.0.options.insert("registered-tags".into(), "gold".into());
    let ann = user(&mut lab.0, &[("/vms", &["VM.Config.Options"])]);
    lab.0.call(&ann, "PUT", VM, json!({"tags": "web"})).unwrap();
    for tag in ["other", "gold"] {
        let text = denied(lab.0.call(&ann, "PUT", VM, json!({"tags": format!("web;{tag}")})));
        assert_eq!(text, format!("Permission check failed (/, Sys.Modify for modifying tag '{tag}')"));
    }
    user(&mut lab.0, &[("/", &["Sys.Modify"])]);
    lab.0.call(&ann, "PUT", VM, json!({"tags": "gold"})).unwrap();
}

#[test]
fn container_options_for_root_only_l7_l8() {
    let mut lab = Lab::with_ct();
    let mut put = |params: Value| lab.0.call(&root_token(), "PUT", CT, params);
    let cases = [
        (json!({"mp0": "/srv/x,mp=/x"}), "mount point type bind is only allowed for root@pam"),
        (json!({"mp0": "/dev/sdb,mp=/x"}), "mount point type device is only allowed for root@pam"),
        (json!({"dev0": "/dev/ttyUSB0"}), "configuring device passthrough is only allowed for root@pam"),
        (
            json!({"hookscript": "local:snippets/x.pl"}),
            "changing the hookscript is only allowed for root@pam",
        ),
        (
            json!({"features": "keyctl=1"}),
            "changing feature flags (except nesting) is only allowed for root@pam",
        ),
        (
            json!({"features": "nesting=1,fuse=1"}),
            "changing feature flags (except nesting) is only allowed for root@pam",
        ),
    ];
    for (params, text) in cases {
        assert_eq!(denied(put(params)), format!("Permission check failed ({text})"));
    }
    put(json!({"features": "nesting=1"})).unwrap();
    lab.ok("PUT", CT, json!({"features": "nesting=1,keyctl=1", "mp0": "/srv/x,mp=/x"}));
    let mut put = |params: Value| lab.0.call(&root_token(), "PUT", CT, params);
    put(json!({"features": "keyctl=1,nesting=0"})).unwrap();
    assert_eq!(put(json!({"features": "nesting=1"})).unwrap_err().status, 403, "foreign keys must be kept");
    put(json!({"delete": "mp0"})).unwrap();
}

#[test]
fn privileged_containers_l4_l7() {
    let mut lab = Lab::new();
    lab.0.grant("gitops@pve", "/", RECONCILER_ROLE, true);
    let params = json!({"vmid": 200, "ostemplate": "local:vztmpl/debian-13.tar.zst", "rootfs": "local-lvm:4", "unprivileged": "0"});
    assert_eq!(
        denied(lab.0.call(&token(), "POST", "/nodes/pve01/lxc", params.clone())),
        "Permission check failed (/, Sys.Modify)"
    );
    assert_eq!(lab.task("POST", "/nodes/pve01/lxc", params), "OK");
    let text = denied(lab.0.call(
        &root_token(),
        "PUT",
        "/nodes/pve01/lxc/200/config",
        json!({"features": "nesting=1"}),
    ));
    assert_eq!(
        text,
        "Permission check failed (changing feature flags for privileged container is only allowed for root@pam)"
    );
}

#[test]
fn a_task_is_visible_to_its_owner_u7() {
    let mut lab = Lab::with_vm();
    let upid = lab.ok("POST", VM, json!({"cores": "1"}));
    let path = format!("/nodes/pve01/tasks/{}/status", upid.as_str().unwrap());
    let ann = user(&mut lab.0, &[]);
    assert_eq!(
        denied(lab.0.call(&ann, "GET", &path, json!({}))),
        "Permission check failed (/nodes/pve01, Sys.Audit)"
    );
    user(&mut lab.0, &[("/nodes", &["Sys.Audit"])]);
    assert!(lab.0.call(&ann, "GET", &path, json!({})).is_ok());
}

#[test]
fn a_token_is_told_to_its_user_and_to_whoever_manages_users() {
    let mut lab = Lab::with_vm();
    lab.0.set_token_end("gitops@pve", "proxops", 1_900_000_000);
    let path = "/access/users/gitops@pve/token/proxops";
    let answer = lab.0.call(&token(), "GET", path, json!({})).unwrap();
    assert_eq!((answer["expire"].as_u64(), answer["privsep"].as_u64()), (Some(1_900_000_000), Some(1)));
    assert!(!answer.to_string().contains(proxops_sim::seed::TOKEN_SECRET));
    let ann = user(&mut lab.0, &[("/", &["VM.Audit"])]);
    assert!(denied(lab.0.call(&ann, "GET", path, json!({}))).contains("User.Modify"));
    let ann = user(&mut lab.0, &[("/access/groups", &["User.Modify"])]);
    assert!(lab.0.call(&ann, "GET", path, json!({})).is_ok());
    assert!(lab.0.call(&ann, "GET", "/access/users/gitops@pve/token/other", json!({})).is_err());
    let credential = format!("gitops@pve!proxops={}", proxops_sim::seed::TOKEN_SECRET);
    assert!(lab.0.token_caller(&credential).is_some());
    lab.0.set_token_end("gitops@pve", "proxops", 1);
    assert!(lab.0.token_caller(&credential).is_none(), "an ended token is refused");
}
