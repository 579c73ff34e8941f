//! Creating VMs: facts Q1 to Q7, Q9, Q10, Q12, Q19, Q45.

use std::time::Duration;

use crate::{Lab, json};

const CREATE: &str = "/nodes/pve01/qemu";

#[test]
fn create_fills_in_what_was_not_sent_q5() {
    let mut lab = Lab::new();
    let sent = json!({"vmid": 100, "memory": "2048", "scsi1": "local-lvm:8", "ide2": "local:iso/x.iso,media=cdrom",
        "net1": "virtio,bridge=vmbr0", "net0": "e1000,bridge=vmbr0"});
    assert_eq!(lab.task("POST", CREATE, sent), "OK");
    let vm = lab.vm(100);
    assert_eq!(vm["boot"], "order=scsi1;ide2;net0");
    assert!(vm["meta"].as_str().unwrap().starts_with("creation-qemu="));
    assert!(vm["smbios1"].as_str().unwrap().starts_with("uuid="));
    assert_eq!(vm["vmgenid"].as_str().unwrap().len(), 36);
    assert!(vm["net0"].as_str().unwrap().starts_with("e1000=BC:24:11:"), "{}", vm["net0"]);
    assert_ne!(vm["net0"].as_str().unwrap()[5..].to_owned(), vm["net1"].as_str().unwrap()[6..].to_owned());
    assert_eq!(vm["ide2"], "local:iso/x.iso,media=cdrom,size=700M");
    assert_eq!(vm["memory"], "2048", "memory is a string (Q18)");
    assert!(vm.get("lock").is_none());
}

#[test]
fn a_vm_without_devices_boots_from_a_space_r3() {
    let mut lab = Lab::new();
    lab.task("POST", CREATE, json!({"vmid": 100}));
    assert_eq!(lab.vm(100)["boot"], " ");
}

#[test]
fn windows_pins_its_machine_q5() {
    let mut lab = Lab::new();
    lab.task("POST", CREATE, json!({"vmid": 100, "ostype": "win11", "machine": "q35"}));
    lab.task("POST", CREATE, json!({"vmid": 101, "ostype": "l26", "machine": "q35"}));
    assert!(lab.vm(100)["machine"].as_str().unwrap().starts_with("pc-q35-"));
    assert_eq!(lab.vm(101)["machine"], "q35");
}

#[test]
fn while_the_task_runs_the_config_is_locked_and_nearly_empty_q2() {
    let mut lab = Lab::new();
    lab.0.task_duration = Duration::from_secs(5);
    let upid = lab.ok("POST", CREATE, json!({"vmid": 100, "memory": "2048", "scsi0": "local-lvm:8"}));
    let vm = lab.vm(100);
    assert_eq!(vm["lock"], "create");
    assert!(vm.get("scsi0").is_none());
    assert_eq!(lab.0.exit_status(&upid), None);
    lab.0.advance(Duration::from_secs(5));
    assert_eq!(lab.0.exit_status(&upid).as_deref(), Some("OK"));
    assert_eq!(lab.vm(100)["scsi0"], "local-lvm:vm-100-disk-0,size=8G");
}

#[test]
fn a_used_id_is_refused_without_a_task_q1() {
    let mut lab = Lab::with_ct();
    lab.task("POST", CREATE, json!({"vmid": 100}));
    let used = |id: u32, what: &str| {
        (500, format!("unable to create VM {id} - {what} {id} already exists on node 'pve01'"))
    };
    assert_eq!(lab.error("POST", CREATE, json!({"vmid": 100})), used(100, "VM"));
    assert_eq!(lab.error("POST", "/nodes/pve02/qemu", json!({"vmid": 201})), used(201, "CT"));
}

#[test]
fn volumes_are_numbered_per_storage_in_slot_order_s13() {
    let mut lab = Lab::new();
    let sent = json!({"vmid": 100, "virtio0": "local-lvm:1", "scsi10": "local-lvm:2", "scsi2": "local-lvm:3", "sata0": "nfs:4",
        "efidisk0": "local-lvm:1,efitype=4m", "tpmstate0": "nfs:1,version=v2.0"});
    assert_eq!(lab.task("POST", CREATE, sent), "OK");
    let vm = lab.vm(100);
    assert_eq!(vm["scsi2"], "local-lvm:vm-100-disk-0,size=3G");
    assert_eq!(vm["scsi10"], "local-lvm:vm-100-disk-1,size=2G");
    assert_eq!(vm["virtio0"], "local-lvm:vm-100-disk-2,size=1G");
    assert_eq!(vm["sata0"], "nfs:100/vm-100-disk-0.raw,size=4G");
    assert_eq!(vm["efidisk0"], "local-lvm:vm-100-disk-3,efitype=4m,size=4M");
    assert_eq!(vm["tpmstate0"], "nfs:100/vm-100-disk-1.raw,size=4M,version=v2.0");
}

#[test]
fn the_efi_disk_has_its_own_size_and_ms_cert_q10_q36() {
    let mut lab = Lab::new();
    let sent = json!({"vmid": 100, "efidisk0": "nfs:1,efitype=4m,pre-enrolled-keys=1,size=64M"});
    assert_eq!(lab.task("POST", CREATE, sent), "OK");
    assert_eq!(
        lab.vm(100)["efidisk0"],
        "nfs:100/vm-100-disk-0.raw,efitype=4m,ms-cert=2023k,pre-enrolled-keys=1,size=528K"
    );
}

#[test]
fn sizes_are_exact_q36() {
    let mut lab = Lab::new();
    lab.task("POST", CREATE, json!({"vmid": 100, "scsi0": "local-lvm:1.5", "scsi1": "local-lvm:2048"}));
    let vm = lab.vm(100);
    assert_eq!(vm["scsi0"], "local-lvm:vm-100-disk-0,size=1536M");
    assert_eq!(vm["scsi1"], "local-lvm:vm-100-disk-1,size=2T");
}

#[test]
fn an_iso_needs_an_explicit_media_q6() {
    let mut lab = Lab::new();
    let text = lab.param_error("POST", CREATE, json!({"vmid": 100, "ide2": "local:iso/x.iso"}), "ide2");
    assert_eq!(text, "explicit 'media=cdrom' is required for iso images");
}

#[test]
fn a_cdrom_on_virtio_does_not_parse_q9() {
    let mut lab = Lab::new();
    for (slot, value) in [
        ("virtio0", "none,media=cdrom"),
        ("ide2", "none,media=cdrom,format=raw"),
        ("ide2", "none,media=cdrom,snapshot=1"),
    ] {
        let text = lab.param_error("POST", CREATE, json!({"vmid": 100, slot: value}), slot);
        assert_eq!(text, "unable to parse drive options", "{value}");
    }
}

#[test]
fn import_takes_its_size_from_the_source_and_is_not_reported_q7() {
    let mut lab = Lab::new();
    let text = lab.param_error(
        "POST",
        CREATE,
        json!({"vmid": 100, "scsi0": "local-lvm:8,import-from=local:import/deb.qcow2"}),
        "scsi0",
    );
    assert_eq!(text, "'import-from' requires special syntax - use <storage ID>:0,import-from=<source>");
    let sent = json!({"vmid": 100, "scsi0": "local-lvm:0,import-from=local:import/deb.qcow2,discard=on"});
    assert_eq!(lab.task("POST", CREATE, sent), "OK");
    assert_eq!(lab.vm(100)["scsi0"], "local-lvm:vm-100-disk-0,discard=on,size=3G");
    let missing = json!({"vmid": 101, "scsi0": "local-lvm:0,import-from=local:import/none.qcow2"});
    assert_eq!(
        lab.task("POST", CREATE, missing),
        "unable to create VM 101 - volume 'local:import/none.qcow2' does not exist"
    );
}

#[test]
fn a_failed_create_leaves_nothing_behind_q2() {
    let mut lab = Lab::new();
    let sent = json!({"vmid": 100, "ide2": "local:iso/none.iso,media=cdrom", "ide0": "local-lvm:8"});
    let exit = lab.task("POST", CREATE, sent);
    assert_eq!(exit, "unable to create VM 100 - volume 'local:iso/none.iso' does not exist");
    assert_eq!(
        lab.error("GET", "/nodes/pve01/qemu/100/config", json!({})).1,
        "Configuration file 'nodes/pve01/qemu-server/100.conf' does not exist"
    );
    let left = lab.ok("GET", "/nodes/pve01/storage/local-lvm/content", json!({}));
    assert_eq!(left, json!([]));
}

#[test]
fn a_new_disk_needs_a_storage_for_images_s15() {
    let mut lab = Lab::new();
    let text = lab.param_error("POST", CREATE, json!({"vmid": 100, "scsi0": "local:8"}), "storage");
    assert_eq!(text, "storage 'local' does not support vm images");
    assert_eq!(
        lab.error("POST", CREATE, json!({"vmid": 100, "scsi0": "none-such:8"})),
        (500, "storage 'none-such' does not exist".into())
    );
}

#[test]
fn a_cloud_init_drive_there_is_made_but_does_not_start_s15() {
    let mut lab = Lab::new();
    assert_eq!(lab.task("POST", CREATE, json!({"vmid": 100, "ide2": "local:cloudinit"})), "OK");
    assert_eq!(lab.vm(100)["ide2"], "local:100/vm-100-cloudinit.qcow2,media=cdrom");
    let exit = lab.task("POST", "/nodes/pve01/qemu/100/status/start", json!({}));
    assert_eq!(exit, "storage 'local' does not support content-type 'images'");
}

#[test]
fn the_cloud_init_drive_has_a_fixed_name_and_no_size_q19() {
    let mut lab = Lab::new();
    lab.task("POST", CREATE, json!({"vmid": 100, "sata1": "local-lvm:cloudinit"}));
    assert_eq!(lab.vm(100)["sata1"], "local-lvm:vm-100-cloudinit,media=cdrom");
    let exit = lab.task(
        "POST",
        CREATE,
        json!({"vmid": 101, "ide2": "local-lvm:cloudinit", "scsi1": "local-lvm:cloudinit"}),
    );
    assert_eq!(exit, "unable to create VM 101 - scsi1 - cloud-init drive is already attached at 'ide2'");
}

#[test]
fn create_with_template_makes_base_volumes_q45() {
    let mut lab = Lab::new();
    lab.task(
        "POST",
        CREATE,
        json!({"vmid": 100, "scsi0": "local-lvm:8", "ide2": "local-lvm:cloudinit", "template": "1"}),
    );
    let vm = lab.vm(100);
    assert_eq!(vm["scsi0"], "local-lvm:base-100-disk-0,size=8G");
    assert_eq!(vm["ide2"], "local-lvm:vm-100-cloudinit,media=cdrom");
    assert_eq!(vm["template"], 1);
}

#[test]
fn start_after_create_is_a_task_of_its_own_q3() {
    let mut lab = Lab::new();
    let sent = json!({"vmid": 100, "cores": "99", "start": "1"});
    assert_eq!(lab.task("POST", CREATE, sent), "OK", "a failed start does not fail the create");
    let start = lab.0.all_tasks().find(|task| task.kind == "qmstart").unwrap();
    assert_eq!(start.exit.as_deref(), Some("MAX 16 vcpus allowed per VM on this node"));
}

#[test]
fn a_drive_beside_an_archive_conflicts_q4() {
    let mut lab = Lab::new();
    let text = lab.param_error(
        "POST",
        CREATE,
        json!({"vmid": 100, "archive": "local:backup/x.vma", "scsi0": "local-lvm:1"}),
        "scsi0",
    );
    assert_eq!(text, "option conflicts with option 'archive'");
    assert_eq!(
        lab.param_error("POST", CREATE, json!({"vmid": 100, "unique": "1"}), "archive"),
        "missing property required by 'unique'"
    );
}

#[test]
fn a_password_is_stored_as_sent_on_create_and_masked_q23() {
    let mut lab = Lab::new();
    lab.task("POST", CREATE, json!({"vmid": 100, "cipassword": "hunter2-fixture"}));
    assert_eq!(lab.vm(100)["cipassword"], "**********");
    assert_eq!(lab.0.guests[&100].config["cipassword"], "hunter2-fixture");
}

#[test]
fn no_space_is_said_by_plain_storages_only_s14() {
    let mut lab = Lab::new();
    assert_eq!(
        lab.task("POST", CREATE, json!({"vmid": 100, "scsi0": "local-lvm:900000"})),
        "OK",
        "LVM-thin overcommits"
    );
    let exit = lab.task("POST", CREATE, json!({"vmid": 101, "scsi0": "nfs:900000"}));
    assert_eq!(exit, "unable to create VM 101 - unable to create image: No space left on device");
}
