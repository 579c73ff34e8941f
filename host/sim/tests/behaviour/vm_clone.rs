//! Clones: facts Q38 to Q41, S13.

use std::time::Duration;

use proxops_sim::GuestKind;

use crate::{Lab, json};

const CLONE: &str = "/nodes/pve01/qemu/101/clone";

fn lab() -> Lab {
    let mut lab = Lab::with_vm();
    lab.put(json!({"tags": "a;b", "description": "about", "onboot": "1", "cipassword": "$5$s$hash", "ide2": "local-lvm:cloudinit",
        "smbios1": "uuid=11111111-2222-3333-4444-555555555555,base64=1,family=Zm9v"}));
    lab
}

#[test]
fn a_clone_copies_all_but_identity_q39() {
    let mut lab = lab();
    assert_eq!(lab.task("POST", CLONE, json!({"newid": 111, "name": "web"})), "OK");
    let (old, new) = (lab.vm(101), lab.vm(111));
    for key in ["tags", "description", "onboot", "meta", "boot", "cores", "cipassword"] {
        assert_eq!(old[key], new[key], "{key}");
    }
    assert_eq!(new["name"], "web");
    assert_ne!(old["vmgenid"], new["vmgenid"]);
    assert_ne!(old["net0"], new["net0"]);
    let smbios = new["smbios1"].as_str().unwrap();
    assert!(smbios.ends_with(",base64=1,family=Zm9v") && !smbios.contains("11111111-2222"), "{smbios}");
    assert_eq!(new["scsi0"], "local-lvm:vm-111-disk-0,size=32G");
    assert_eq!(
        new["ide2"], "local-lvm:vm-111-cloudinit,media=cdrom,size=4M",
        "with a size after a clone (Q19)"
    );
    assert!(new.get("lock").is_none() && new.get("unused0").is_none());
}

#[test]
fn a_clone_without_name_or_with_a_description_q39() {
    let mut lab = lab();
    lab.task("POST", CLONE, json!({"newid": 111, "description": "other\n"}));
    let new = lab.vm(111);
    assert_eq!((&new["name"], &new["description"]), (&json!("Copy-of-VM-app"), &json!("other")));
}

#[test]
fn the_new_config_is_there_locked_while_the_task_runs_q41() {
    let mut lab = lab();
    lab.0.task_duration = Duration::from_secs(5);
    lab.ok("POST", CLONE, json!({"newid": 111}));
    assert_eq!(lab.vm(111)["lock"], "clone");
    assert_eq!(
        lab.error("PUT", "/nodes/pve01/qemu/111/config", json!({"cores": "1"})),
        (500, "VM is locked (clone)".into())
    );
}

#[test]
fn clone_takes_no_other_parameters_q38() {
    let mut lab = lab();
    for key in ["start", "tags", "cores"] {
        assert!(
            lab.param_error("POST", CLONE, json!({"newid": 111, key: "1"}), key)
                .starts_with("property is not defined")
        );
    }
}

#[test]
fn clone_errors_q40() {
    let mut lab = lab();
    assert_eq!(
        lab.error("POST", "/nodes/pve01/qemu/999/clone", json!({"newid": 111})),
        (500, "unable to find configuration file for VM 999 on node 'pve01'".into())
    );
    lab.0.add_guest(GuestKind::Qemu, 102, "pve01", &[]);
    assert_eq!(
        lab.error("POST", CLONE, json!({"newid": 102})),
        (500, "unable to create VM 102: config file already exists".into())
    );
    lab.0.add_guest(GuestKind::Qemu, 103, "pve02", &[]);
    let exit = lab.task("POST", CLONE, json!({"newid": 103}));
    assert!(
        exit.starts_with("close (rename) atomic file '") && exit.ends_with("failed: File exists"),
        "{exit}"
    );
    assert!(lab.0.guests.contains_key(&103), "the other guest is untouched");
    lab.put(json!({"lock": "backup"}));
    assert_eq!(lab.error("POST", CLONE, json!({"newid": 111})), (500, "VM is locked (backup)".into()));
}

#[test]
fn linked_clones_of_templates_q38_s13() {
    let mut lab = lab();
    lab.put(json!({"scsi1": "nfs:2"}));
    assert_eq!(lab.task("POST", "/nodes/pve01/qemu/101/template", json!({})), "OK");
    for key in [json!({"storage": "nfs"}), json!({"format": "raw"})] {
        let mut params = key.clone();
        params["newid"] = json!(111);
        let name = key.as_object().unwrap().keys().next().unwrap().clone();
        assert_eq!(
            lab.error("POST", CLONE, params).1,
            format!("parameter '{name}' not allowed for linked clones")
        );
    }
    assert_eq!(lab.task("POST", CLONE, json!({"newid": 111})), "OK", "linked by default");
    let new = lab.vm(111);
    assert_eq!(new["scsi0"], "local-lvm:vm-111-disk-0,size=32G", "LVM-thin does not name the base");
    assert_eq!(new["scsi1"], "nfs:101/base-101-disk-0.raw/111/vm-111-disk-0.qcow2,size=2G");
    assert!(new.get("template").is_none());
    let exit = lab.task("DELETE", "/nodes/pve01/qemu/101", json!({}));
    assert_eq!(exit, "base volume 'nfs:101/base-101-disk-0.raw' is still in use by linked cloned", "Q46, R6");
    assert_eq!(lab.task("POST", CLONE, json!({"newid": 112, "full": "1", "storage": "nfs"})), "OK");
    assert_eq!(lab.vm(112)["scsi0"], "nfs:112/vm-112-disk-0.raw,size=32G");
}

#[test]
fn another_node_needs_shared_storage_q38() {
    let mut lab = lab();
    let (_, text) = lab.error("POST", CLONE, json!({"newid": 111, "target": "pve02"}));
    assert_eq!(text, "can't clone VM to node 'pve02' (VM uses local storage)");
    lab.put(json!({"delete": "ide2,scsi0"}));
    lab.put(json!({"delete": "unused0", "scsi0": "nfs:4"}));
    assert_eq!(lab.task("POST", CLONE, json!({"newid": 111, "target": "pve02"})), "OK");
    assert_eq!(lab.0.guests[&111].node, "pve02");
}

#[test]
fn a_failed_clone_leaves_nothing_q41() {
    let mut lab = lab();
    lab.0.remove_volume("local-lvm:vm-101-disk-0", "pve01");
    assert_eq!(
        lab.task("POST", CLONE, json!({"newid": 111})),
        "clone failed: volume 'local-lvm:vm-101-disk-0' does not exist"
    );
    assert!(!lab.0.guests.contains_key(&111));
    assert!(lab.0.guests[&101].lock().is_none());
}
