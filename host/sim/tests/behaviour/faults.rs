//! Fault files and what they do to a world.

use proxops_sim::{Caller, FaultAnswer, Faults};

use crate::{Lab, VM, json};

#[test]
fn a_fault_file_says_all_of_it() {
    let text = r#"{
        "requests": [
            {"method": "PUT|POST", "path": "/nodes/*/qemu/101/config", "times": 1, "delay": 0.1, "answer": "drop-after"},
            {"path": "/version", "answer": {"status": {"status": 500, "message": "no", "errors": {"a": "b"}}}}
        ],
        "tasks": [{"type": "qmstart", "id": "101", "times": 1, "exit": "WARNINGS: 1"}],
        "nodes-down": ["pve03"], "quorum-lost": false, "storage-errors": {"nfs": "mount error"},
        "config-locks": {"101": 1}, "guest-locks": {"101": "backup"}, "moved": {}, "inventory-lag": 10,
        "hotplug-errors": {"101": {"net0": "no"}}
    }"#;
    let faults: Faults = serde_json::from_str(text).unwrap();
    assert!(matches!(faults.requests[0].answer, Some(FaultAnswer::DropAfter)));
    assert!(matches!(&faults.requests[1].answer, Some(FaultAnswer::Status { status: 500, .. })));
    let mut lab = Lab::with_vm();
    faults.apply(&mut lab.0);
    assert_eq!(lab.error("GET", "/nodes/pve03/status", json!({})).0, 595);
    assert_eq!(lab.error("GET", "/nodes/pve01/storage/nfs/content", json!({})), (500, "mount error".into()));
    assert!(lab.error("PUT", VM, json!({"cores": "1"})).1.ends_with("got timeout"));
    assert_eq!(lab.error("PUT", VM, json!({"cores": "1"})).1, "VM is locked (backup)");
    assert!(
        serde_json::from_str::<Faults>(r#"{"request": []}"#).is_err(),
        "a typing error is no silent no-op"
    );
}

#[test]
fn the_state_of_the_cluster_can_change_for_the_worse_and_back() {
    let mut lab = Lab::with_vm();
    let apply = |lab: &mut Lab, text: &str| serde_json::from_str::<Faults>(text).unwrap().apply(&mut lab.0);
    apply(&mut lab, r#"{"nodes-down": ["pve02"], "quorum-lost": true, "storage-full": ["nfs", "local"]}"#);
    assert!(!lab.0.nodes["pve02"].online && !lab.0.quorate);
    apply(&mut lab, r#"{"nodes-up": ["pve02"], "quorum-lost": false}"#);
    assert!(lab.0.nodes["pve02"].online && lab.0.quorate);

    let root = Caller::root();
    let new = serde_json::json!({"vmid": 300, "scsi0": "nfs:8"});
    let upid = lab.0.call(&root, "POST", "/nodes/pve01/qemu", new).unwrap();
    lab.0.finish_tasks();
    // fact S14: the text of the operating system
    assert!(lab.0.exit_status(&upid).unwrap().contains("No space left on device"));
    assert!(!lab.0.guests.contains_key(&300));
    let file = serde_json::json!({"content": "iso", "filename": "no-room.iso", "url": "https://example.org/no-room.iso"});
    let upid = lab.0.call(&root, "POST", "/nodes/pve01/storage/local/download-url", file).unwrap();
    lab.0.finish_tasks();
    assert!(lab.0.exit_status(&upid).unwrap().contains("No space left on device"));
    assert!(lab.0.volume("local:iso/no-room.iso", "pve01").is_none());
}
