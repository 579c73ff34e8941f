//! Config writes to a VM: facts Q11 to Q13, Q17, Q20, Q23 to Q37, R2 to R5.

use crate::{Lab, VM, json};

#[test]
fn a_nic_written_without_mac_gets_a_new_one_q13() {
    let mut lab = Lab::with_vm();
    let mut seen = vec!["virtio=BC:24:11:00:00:01,bridge=vmbr0".to_owned()];
    for _ in 0..2 {
        lab.put(json!({"net0": "virtio,bridge=vmbr0"}));
        let net = lab.vm(101)["net0"].as_str().unwrap().to_owned();
        assert!(!seen.contains(&net), "{net} again");
        seen.push(net);
    }
    lab.0.options.insert("mac_prefix".into(), "AA:BB".into());
    lab.put(json!({"net0": "model=e1000,bridge=vmbr0"}));
    let net = lab.vm(101)["net0"].as_str().unwrap().to_owned();
    assert!(
        net.starts_with("e1000=AA:BB:") && net.len() == "e1000=AA:BB:00:00:00:00,bridge=vmbr0".len(),
        "{net}"
    );
}

#[test]
fn nets_are_reprinted_with_the_rest_by_alphabet_q35() {
    let mut lab = Lab::with_vm();
    lab.put(
        json!({"net0": "tag=5,macaddr=bc:24:11:00:00:aa,rate=2.5,model=virtio,bridge=vmbr0,firewall=on"}),
    );
    assert_eq!(lab.vm(101)["net0"], "virtio=BC:24:11:00:00:AA,bridge=vmbr0,firewall=1,rate=2.5,tag=5");
}

#[test]
fn drives_are_reprinted_with_their_size_q35() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"scsi0": "ssd=on,file=local-lvm:vm-101-disk-0,discard=on,backup=no,size=1G,mbps_rd=10"}));
    assert_eq!(lab.vm(101)["scsi0"], "local-lvm:vm-101-disk-0,backup=0,discard=on,mbps_rd=10,size=32G,ssd=1");
}

#[test]
fn a_create_form_over_a_live_slot_allocates_and_keeps_the_old_one_q33_r2() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"scsi0": "local-lvm:8"}));
    lab.put(json!({"scsi0": "local-lvm:8"}));
    let vm = lab.vm(101);
    assert_eq!(vm["scsi0"], "local-lvm:vm-101-disk-2,size=8G");
    assert_eq!(
        (&vm["unused0"], &vm["unused1"]),
        (&json!("local-lvm:vm-101-disk-0"), &json!("local-lvm:vm-101-disk-1"))
    );
}

#[test]
fn a_detached_disk_is_unused_and_deleting_that_frees_it_q33_r5() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"delete": "scsi0"}));
    let vm = lab.vm(101);
    assert!(vm.get("scsi0").is_none());
    assert_eq!(vm["unused0"], "local-lvm:vm-101-disk-0");
    assert_eq!(vm["boot"], "order=net0", "a deleted device leaves the boot order (Q34)");
    lab.put(json!({"scsi3": "local-lvm:vm-101-disk-0"}));
    let vm = lab.vm(101);
    assert_eq!(vm["scsi3"], "local-lvm:vm-101-disk-0,size=32G");
    assert!(vm.get("unused0").is_none(), "attached again");
    lab.put(json!({"delete": "scsi3"}));
    lab.put(json!({"delete": "unused0"}));
    assert_eq!(lab.ok("GET", "/nodes/pve01/storage/local-lvm/content", json!({})), json!([]));
}

#[test]
fn force_frees_a_detached_disk_q33() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"delete": "scsi0", "force": "1"}));
    assert!(lab.vm(101).get("unused0").is_none());
    assert_eq!(lab.ok("GET", "/nodes/pve01/storage/local-lvm/content", json!({})), json!([]));
}

#[test]
fn a_cd_drive_joins_the_boot_order_the_cloud_init_drive_does_not_q34() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"ide2": "local:iso/x.iso,media=cdrom", "ide0": "local-lvm:cloudinit"}));
    assert_eq!(lab.vm(101)["boot"], "order=scsi0;net0;ide2");
    lab.put(json!({"delete": "ide2"}));
    assert_eq!(lab.vm(101)["boot"], "order=scsi0;net0");
}

#[test]
fn the_cloud_init_drive_over_itself_fails_and_is_freed_when_removed_q20_q33() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"ide2": "local-lvm:cloudinit"}));
    let (status, text) = lab.error("PUT", VM, json!({"ide2": "local-lvm:cloudinit"}));
    assert_eq!(status, 500);
    assert!(text.starts_with("lvcreate 'pve/vm-101-cloudinit' error:"), "{text}");
    let exit = lab.task("POST", VM, json!({"ide2": "local-lvm:cloudinit"}));
    assert!(exit.starts_with("lvcreate 'pve/vm-101-cloudinit' error:"), "a task error by POST: {exit}");
    assert_eq!(lab.vm(101)["ide2"], "local-lvm:vm-101-cloudinit,media=cdrom", "the old drive is untouched");
    let (_, text) = lab.error("PUT", VM, json!({"ide0": "nfs:cloudinit"}));
    assert_eq!(text, "ide0 - cloud-init drive is already attached at 'ide2'");
    lab.put(json!({"delete": "ide2"}));
    assert!(lab.vm(101).get("unused0").is_none());
    lab.put(json!({"scsi1": "nfs:cloudinit"}));
    assert!(lab.error("PUT", VM, json!({"scsi1": "nfs:cloudinit"})).1.starts_with("disk image '"));
}

#[test]
fn tags_are_sorted_folded_and_joined_c4_r3() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"tags": "Web, db;web backup"}));
    assert_eq!(lab.vm(101)["tags"], "backup;db;web");
    lab.0.options.insert("tag-style".into(), "case-sensitive=1,ordering=config".into());
    lab.put(json!({"tags": "Web,db,web"}));
    assert_eq!(lab.vm(101)["tags"], "Web;db;web");
}

#[test]
fn some_values_stay_as_sent_q35() {
    let mut lab = Lab::with_vm();
    let sent = json!({"cpu": "host,flags=+aes;-pcid", "agent": "fstrim_cloned_disks=1,enabled=1", "startup": "up=3,order=2",
        "ipconfig0": "ip=dhcp,ip6=auto", "vga": "memory=32,type=std"});
    lab.put(sent.clone());
    let vm = lab.vm(101);
    for (key, value) in sent.as_object().unwrap() {
        assert_eq!(&vm[key], value);
    }
    lab.put(json!({"cpuunits": "50000", "vmgenid": "1"}));
    let vm = lab.vm(101);
    assert_eq!(vm["cpuunits"], 10000, "clamped");
    assert_eq!(vm["vmgenid"].as_str().unwrap().len(), 36, "a fresh uuid");
}

#[test]
fn descriptions_lose_trailing_white_space_q37() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"description": "one\ntwo\n\n "}));
    assert_eq!(lab.vm(101)["description"], "one\ntwo");
    lab.put(json!({"description": ""}));
    assert!(lab.vm(101).get("description").is_none());
}

#[test]
fn numbers_are_numbers_and_property_strings_are_strings_q25() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"onboot": "1", "cores": "4", "cpulimit": "1.5", "memory": "4096", "balloon": "1024"}));
    let vm = lab.vm(101);
    assert_eq!((&vm["onboot"], &vm["cores"], &vm["balloon"]), (&json!(1), &json!(4), &json!(1024)));
    assert_eq!((&vm["cpulimit"], &vm["memory"]), (&json!("1.5"), &json!("4096")));
}

#[test]
fn boot_devices_must_exist_q17() {
    let mut lab = Lab::with_vm();
    let missing = (500, "invalid bootorder: device 'ide2' does not exist'".to_owned());
    assert_eq!(lab.error("PUT", VM, json!({"boot": "order=scsi0;ide2"})), missing);
    let (_, text) = lab.error("PUT", VM, json!({"boot": "order=scsi0;net0", "delete": "net0"}));
    assert_eq!(text, "invalid bootorder: device 'net0' does not exist'");
    lab.put(json!({"boot": "order=ide2;scsi0", "ide2": "none,media=cdrom"}));
    assert_eq!(lab.vm(101)["boot"], "order=ide2;scsi0");
    assert!(
        lab.param_error("PUT", VM, json!({"boot": "order=efidisk0"}), "boot").contains("invalid boot device")
    );
}

#[test]
fn deletes_are_checked_q28() {
    let mut lab = Lab::with_vm();
    let text = lab.param_error("PUT", VM, json!({"cores": "1", "delete": "cores"}), "delete");
    assert_eq!(text, "you can't use '-cores' and -delete cores' at the same time");
    assert_eq!(
        lab.param_error("PUT", VM, json!({"delete": "nonsense"}), "delete"),
        "unknown option 'nonsense'"
    );
    lab.put(json!({"delete": "balloon"}));
    assert_eq!(lab.error("PUT", VM, json!({})), (500, "no options specified".into()));
    assert_eq!(lab.error("PUT", VM, json!({"digest": "x"})), (500, "no options specified".into()));
}

#[test]
fn a_stale_digest_is_refused_and_a_write_changes_it_q27() {
    let mut lab = Lab::with_vm();
    let digest = lab.vm(101)["digest"].clone();
    assert_eq!(digest.as_str().unwrap().len(), 40);
    lab.put(json!({"cores": "3", "digest": digest}));
    let stale = (500, "checksum mismatch (file change by other user?)".to_owned());
    assert_eq!(lab.error("PUT", VM, json!({"cores": "4", "digest": digest})), stale);
    assert_eq!(
        lab.error(
            "PUT",
            "/nodes/pve01/qemu/101/resize",
            json!({"disk": "scsi0", "size": "+1G", "digest": digest})
        ),
        stale
    );
    assert_eq!(lab.vm(101)["cores"], 3);
}

#[test]
fn a_locked_vm_refuses_writes_early_q29() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"lock": "backup"}));
    let locked = (500, "VM is locked (backup)".to_owned());
    assert_eq!(lab.error("PUT", VM, json!({"cores": "1"})), locked);
    assert_eq!(lab.error("POST", VM, json!({"cores": "1"})), locked);
    assert_eq!(lab.error("PUT", VM, json!({"delete": "lock"})), locked);
    lab.put(json!({"delete": "lock", "skiplock": "1"}));
    assert!(lab.vm(101).get("lock").is_none());
}

#[test]
fn a_running_vm_takes_some_keys_at_once_and_keeps_others_pending_q30() {
    let mut lab = Lab::with_vm().running(101);
    lab.put(json!({"name": "new", "tags": "x", "description": "d", "onboot": "1", "ciuser": "ops", "cpulimit": "1",
        "net1": "virtio,bridge=vmbr0", "scsi1": "local-lvm:1",
        "cores": "8", "memory": "4096", "cpu": "host", "agent": "1", "serial0": "socket", "ide0": "local-lvm:1"}));
    let current = lab.ok("GET", VM, json!({"current": "1"}));
    for key in ["tags", "description", "onboot", "ciuser", "cpulimit", "net1", "scsi1"] {
        assert!(current.get(key).is_some(), "{key} waits");
    }
    assert_eq!(current["name"], "new");
    assert_eq!((&current["cores"], &current["memory"]), (&json!(2), &json!("2048")));
    for key in ["cpu", "agent", "serial0", "ide0"] {
        assert!(current.get(key).is_none(), "{key} does not wait");
    }
    let merged = lab.vm(101);
    assert_eq!(
        (&merged["cores"], &merged["memory"]),
        (&json!(8), &json!("4096")),
        "GET config shows pending values (R4)"
    );
    let pending = lab.ok("GET", "/nodes/pve01/qemu/101/pending", json!({}));
    let row = |key: &str| pending.as_array().unwrap().iter().find(|row| row["key"] == key).cloned().unwrap();
    assert_eq!(row("cores"), json!({"key": "cores", "value": 2, "pending": 8}));
    assert_eq!(row("digest")["value"], merged["digest"], "R14");
    lab.put(json!({"revert": "cores"}));
    assert_eq!(lab.vm(101)["cores"], 2);
    lab.task("POST", "/nodes/pve01/qemu/101/status/stop", json!({}));
    let current = lab.ok("GET", VM, json!({"current": "1"}));
    assert_eq!(current["memory"], "4096");
    assert_eq!(lab.0.guests[&101].pending.len(), 0);
}

#[test]
fn some_disk_options_wait_for_a_power_cycle_q31() {
    let mut lab = Lab::with_vm().running(101);
    lab.put(json!({"scsi0": "local-lvm:vm-101-disk-0,mbps_rd=10"}));
    assert_eq!(
        lab.ok("GET", VM, json!({"current": "1"}))["scsi0"],
        "local-lvm:vm-101-disk-0,mbps_rd=10,size=32G"
    );
    lab.put(json!({"scsi0": "local-lvm:vm-101-disk-0,mbps_rd=10,discard=on"}));
    assert_eq!(
        lab.ok("GET", VM, json!({"current": "1"}))["scsi0"],
        "local-lvm:vm-101-disk-0,mbps_rd=10,size=32G"
    );
    assert_eq!(lab.vm(101)["scsi0"], "local-lvm:vm-101-disk-0,discard=on,mbps_rd=10,size=32G");
}

#[test]
fn a_removal_on_a_running_vm_can_wait_q25() {
    let mut lab = Lab::with_vm().running(101);
    lab.put(json!({"delete": "cores,name"}));
    let pending = lab.ok("GET", "/nodes/pve01/qemu/101/pending", json!({}));
    let rows = pending.as_array().unwrap();
    assert!(rows.contains(&json!({"key": "cores", "value": 2, "delete": 1})));
    assert!(!rows.iter().any(|row| row["key"] == "name"));
    assert!(lab.vm(101).get("cores").is_none());
    assert_eq!(lab.ok("GET", VM, json!({"current": "1"}))["cores"], 2);
}

#[test]
fn a_write_of_the_same_value_leaves_nothing_pending() {
    let mut lab = Lab::with_vm().running(101);
    lab.put(json!({"cores": "8"}));
    lab.put(json!({"cores": "2"}));
    assert!(lab.0.guests[&101].pending.is_empty());
}

#[test]
fn a_failed_hotplug_is_a_400_and_stays_pending_q32_r4() {
    let mut lab = Lab::with_vm().running(101);
    lab.0.hotplug_errors.entry(101).or_default().insert("net0".into(), "no free slot".into());
    let text = lab.param_error("PUT", VM, json!({"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr1"}), "net0");
    assert_eq!(text, "hotplug problem - no free slot");
    assert_eq!(lab.vm(101)["net0"], "virtio=BC:24:11:00:00:01,bridge=vmbr1");
    assert_eq!(lab.ok("GET", VM, json!({"current": "1"}))["net0"], "virtio=BC:24:11:00:00:01,bridge=vmbr0");
}

#[test]
fn the_tpm_version_is_fixed_q12() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"tpmstate0": "local-lvm:1,version=v2.0"}));
    assert_eq!(lab.vm(101)["tpmstate0"], "local-lvm:vm-101-disk-1,size=4M,version=v2.0");
    let refused = lab.refused("PUT", VM, json!({"tpmstate0": "local-lvm:vm-101-disk-1,version=v1.2"}));
    assert!(format!("{refused:?}").contains("cannot change TPM state version after creation"));
}

#[test]
fn toggling_enrolled_keys_changes_text_only_q11() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"efidisk0": "local-lvm:1,efitype=4m,pre-enrolled-keys=1"}));
    lab.put(json!({"efidisk0": "local-lvm:vm-101-disk-1,efitype=4m,pre-enrolled-keys=0"}));
    assert_eq!(lab.vm(101)["efidisk0"], "local-lvm:vm-101-disk-1,efitype=4m,pre-enrolled-keys=0,size=4M");
}

#[test]
fn passwords_are_hashed_on_a_write_and_never_wait_q23() {
    let mut lab = Lab::with_vm().running(101);
    lab.put(json!({"cipassword": "hunter2-fixture"}));
    assert_eq!(lab.vm(101)["cipassword"], "**********");
    assert!(lab.0.guests[&101].config["cipassword"].starts_with("$5$"));
    let first = lab.0.guests[&101].config["cipassword"].clone();
    lab.put(json!({"cipassword": "**********"}));
    assert_ne!(lab.0.guests[&101].config["cipassword"], first, "the mask is stored like any password");
    lab.put(json!({"cipassword": "$6$salt$0123456789"}));
    assert_eq!(lab.0.guests[&101].config["cipassword"], "$6$salt$0123456789", "a crypt text stays");
}

#[test]
fn the_seed_image_is_rebuilt_by_its_call_and_at_start_q24() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"ide2": "local-lvm:cloudinit", "ciuser": "old"}));
    lab.ok("PUT", "/nodes/pve01/qemu/101/cloudinit", json!({}));
    let mut lab = lab.running(101);
    lab.put(json!({"ciuser": "new"}));
    let row = |lab: &mut Lab| {
        let rows = lab.ok("GET", "/nodes/pve01/qemu/101/cloudinit", json!({}));
        rows.as_array().unwrap().iter().find(|row| row["key"] == "ciuser").cloned().unwrap()
    };
    assert_eq!(row(&mut lab), json!({"key": "ciuser", "value": "old", "pending": "new"}));
    lab.ok("PUT", "/nodes/pve01/qemu/101/cloudinit", json!({}));
    assert_eq!(row(&mut lab), json!({"key": "ciuser", "value": "new"}));
}

#[test]
fn post_config_is_the_same_in_a_task_q26() {
    let mut lab = Lab::with_vm();
    assert_eq!(lab.task("POST", VM, json!({"cores": "5"})), "OK");
    assert_eq!(lab.vm(101)["cores"], 5);
    assert_eq!(lab.ok("POST", VM, json!({"cores": "6", "background_delay": "5"})), json!(null));
    let (status, text) =
        lab.error("POST", VM, json!({"ide2": "local:iso/none.iso,media=cdrom", "background_delay": "5"}));
    assert_eq!(
        (status, text.as_str()),
        (500, "failed to update VM 101: volume 'local:iso/none.iso' does not exist")
    );
}

#[test]
fn protection_guards_drives() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"protection": "1"}));
    assert_eq!(
        lab.error("PUT", VM, json!({"delete": "scsi0"})),
        (500, "can't remove drive 'scsi0' - protection mode enabled".into())
    );
}

#[test]
fn snapshot_and_current_exclude_each_other_q25() {
    let mut lab = Lab::with_vm();
    assert_eq!(lab.error("GET", VM, json!({"snapshot": "before", "current": "1"})).0, 400);
    let list = lab.ok("GET", "/nodes/pve01/qemu/101/snapshot", json!({}));
    assert_eq!(list.as_array().unwrap().last().unwrap()["name"], "current", "Q52");
}

#[test]
fn cloud_init_snippets_must_exist_at_start_q21() {
    let mut lab = Lab::with_vm();
    assert_eq!(
        lab.error("PUT", VM, json!({"cicustom": "user=none:snippets/a.yaml"})),
        (500, "storage 'none' does not exist".into())
    );
    lab.put(json!({"cicustom": "user=local:snippets/a.yaml"}));
    let start = "/nodes/pve01/qemu/101/status/start";
    assert_eq!(lab.task("POST", start, json!({})), "volume 'local:snippets/a.yaml' does not exist");
    lab.0.add_file("local", "pve01", "snippets/a.yaml", 100);
    assert_eq!(lab.task("POST", start, json!({})), "OK");
}

/// `order=` names no value, a blank is no legacy letter; a list without entries is one (`pve-qm-boot`).
#[test]
fn a_boot_order_without_devices_is_a_list_without_entries() {
    let mut lab = Lab::with_vm();
    for refused in ["order=", " "] {
        let (status, text) = lab.error("PUT", VM, json!({"boot": refused}));
        assert_eq!(status, 400, "{refused:?}: {text}");
    }
    lab.put(json!({"boot": "order=;"}));
    assert_eq!(lab.vm(101)["boot"], " ", "and it is reported as a blank (R3)");
}
