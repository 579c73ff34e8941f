//! Power, resize, template, removal: facts Q42, Q44, Q46 to Q49, U8, U10, R6.

use std::time::Duration;

use crate::{Lab, VM, json};

const STATUS: &str = "/nodes/pve01/qemu/101/status";

fn power(lab: &mut Lab, what: &str) -> String {
    lab.task("POST", &format!("{STATUS}/{what}"), json!({}))
}

#[test]
fn power_faults_are_found_by_the_task_q47_q48_r6() {
    let mut lab = Lab::with_vm();
    assert_eq!(power(&mut lab, "stop"), "OK", "a stopped VM stops again");
    assert_eq!(power(&mut lab, "start"), "OK");
    assert_eq!(power(&mut lab, "start"), "VM 101 already running");
    assert_eq!(power(&mut lab, "shutdown"), "OK");
    assert_eq!(lab.error("POST", &format!("{STATUS}/reboot"), json!({})), (500, "VM 101 not running".into()));
    let exit = lab.task("POST", "/nodes/pve01/qemu/999/status/start", json!({}));
    assert_eq!(exit, "Configuration file 'nodes/pve01/qemu-server/999.conf' does not exist");
    let (_, text) = lab.error("POST", "/nodes/pve01/qemu/999/status/reboot", json!({}));
    assert_eq!(text, "unable to find configuration file for VM 999 on node 'pve01'");
    lab.put(json!({"lock": "snapshot"}));
    assert_eq!(power(&mut lab, "start"), "VM is locked (snapshot)");
}

#[test]
fn status_current_says_both_states_q49() {
    let mut lab = Lab::with_vm();
    let read = |lab: &mut Lab| lab.ok("GET", &format!("{STATUS}/current"), json!({}));
    let status = read(&mut lab);
    assert_eq!((&status["status"], &status["qmpstatus"]), (&json!("stopped"), &json!("stopped")));
    assert!(status.get("template").is_none() && status.get("agent").is_none() && status.get("pid").is_none());
    lab.put(json!({"agent": "1"}));
    power(&mut lab, "start");
    power(&mut lab, "suspend");
    let status = read(&mut lab);
    assert_eq!(
        (&status["status"], &status["qmpstatus"], &status["agent"]),
        (&json!("running"), &json!("paused"), &json!(1))
    );
    assert_eq!(
        lab.error("POST", &format!("{STATUS}/shutdown"), json!({})),
        (500, "VM is paused - cannot shutdown".into())
    );
}

#[test]
fn resize_is_a_task_that_finds_out_q42() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"ide2": "none,media=cdrom"}));
    let mut resize = |disk: &str, size: &str| {
        lab.task("PUT", "/nodes/pve01/qemu/101/resize", json!({"disk": disk, "size": size}))
    };
    assert_eq!(resize("scsi0", "16G"), "shrinking disks is not supported");
    assert_eq!(resize("scsi0", "32G"), "OK", "an equal size is fine");
    assert_eq!(resize("scsi5", "32G"), "disk 'scsi5' does not exist");
    assert_eq!(resize("ide2", "+1G"), "you can't resize a cdrom");
    assert_eq!(resize("scsi0", "+512M"), "OK");
    assert_eq!(lab.vm(101)["scsi0"], "local-lvm:vm-101-disk-0,size=33280M");
    lab.put(json!({"lock": "backup"}));
    assert_eq!(
        lab.task("PUT", "/nodes/pve01/qemu/101/resize", json!({"disk": "scsi0", "size": "64G"})),
        "VM is locked (backup)"
    );
    assert!(
        lab.param_error(
            "PUT",
            "/nodes/pve01/qemu/101/resize",
            json!({"disk": "scsi99", "size": "1G"}),
            "disk"
        )
        .contains("enumeration")
    );
}

#[test]
fn templates_have_base_volumes_and_never_start_q44() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"ide2": "local-lvm:cloudinit", "ide0": "local:iso/x.iso,media=cdrom"}));
    assert_eq!(lab.task("POST", "/nodes/pve01/qemu/101/template", json!({})), "OK");
    let vm = lab.vm(101);
    assert_eq!(vm["template"], 1);
    assert_eq!(vm["scsi0"], "local-lvm:base-101-disk-0,size=32G");
    assert_eq!(vm["ide2"], "local-lvm:vm-101-cloudinit,media=cdrom");
    assert_eq!(power(&mut lab, "start"), "you can't start a vm if it's a template");
    assert_eq!(
        lab.error("POST", "/nodes/pve01/qemu/101/template", json!({})),
        (500, "you can't convert a template to a template".into())
    );
    assert_eq!(lab.ok("GET", &format!("{STATUS}/current"), json!({}))["template"], 1);
    let mut lab = Lab::with_vm().running(101);
    assert_eq!(
        lab.error("POST", "/nodes/pve01/qemu/101/template", json!({})),
        (500, "you can't convert a VM to template if VM is running".into())
    );
}

#[test]
fn a_put_of_template_only_flips_the_flag_q45() {
    let mut lab = Lab::with_vm();
    lab.put(json!({"template": "1"}));
    let vm = lab.vm(101);
    assert_eq!((&vm["template"], &vm["scsi0"]), (&json!(1), &json!("local-lvm:vm-101-disk-0,size=32G")));
}

#[test]
fn removal_q46() {
    let mut lab = Lab::with_vm().running(101);
    let path = "/nodes/pve01/qemu/101";
    assert_eq!(lab.error("DELETE", path, json!({})), (500, "VM 101 is running - destroy failed".into()));
    power(&mut lab, "stop");
    lab.put(json!({"protection": "1"}));
    assert_eq!(
        lab.error("DELETE", path, json!({})),
        (500, "can't remove VM 101 - protection mode enabled".into())
    );
    lab.put(json!({"protection": "0"}));
    lab.ok("POST", "/cluster/ha/resources", json!({"sid": "vm:101"}));
    let (_, text) = lab.error("DELETE", path, json!({}));
    assert_eq!(text, "unable to remove VM 101 - used in HA resources and purge parameter not set.");
    lab.ok("DELETE", "/cluster/ha/resources/vm:101", json!({}));
    lab.put(json!({"lock": "backup"}));
    assert_eq!(
        lab.task("DELETE", path, json!({})),
        "VM is locked (backup)",
        "a lock shows up in the task only"
    );
    lab.put(json!({"delete": "lock", "skiplock": "1"}));
    assert_eq!(lab.task("DELETE", path, json!({})), "OK");
    assert_eq!(
        lab.error("GET", VM, json!({})),
        (500, "Configuration file 'nodes/pve01/qemu-server/101.conf' does not exist".into())
    );
    assert_eq!(lab.ok("GET", "/nodes/pve01/storage/local-lvm/content", json!({})), json!([]));
}

#[test]
fn purge_also_forgets_ha_q46() {
    let mut lab = Lab::with_vm();
    lab.ok("POST", "/cluster/ha/resources", json!({"sid": "101", "state": "stopped"}));
    assert_eq!(lab.task("DELETE", "/nodes/pve01/qemu/101", json!({"purge": "1"})), "OK");
    assert_eq!(lab.ok("GET", "/cluster/ha/resources", json!({})), json!([]));
}

#[test]
fn a_managed_vm_starts_by_a_request_task_u8() {
    let mut lab = Lab::with_vm();
    lab.ok("POST", "/cluster/ha/resources", json!({"sid": "vm:101", "state": "stopped"}));
    let upid = lab.ok("POST", &format!("{STATUS}/start"), json!({}));
    assert!(upid.as_str().unwrap().contains(":hastart:101:"), "{upid}");
}

#[test]
fn a_move_behind_the_back_makes_the_old_path_a_missing_guest() {
    let mut lab = Lab::with_vm();
    lab.0.move_guest(101, "pve02");
    assert_eq!(lab.error("GET", VM, json!({})).0, 500);
    assert_eq!(lab.ok("GET", "/nodes/pve02/qemu/101/config", json!({}))["name"], "app");
    lab.0.advance(Duration::from_secs(1));
    assert_eq!(
        lab.task("POST", "/nodes/pve02/qemu/101/status/start", json!({})),
        "OK",
        "its volumes moved along"
    );
}
