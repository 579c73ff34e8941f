//! Properties that hold for any sequence of writes.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;

use crate::{Lab, VM, json};

fn write() -> impl Strategy<Value = Value> {
    let slot = prop_oneof![Just("scsi0"), Just("scsi1"), Just("virtio0"), Just("ide2"), Just("sata0")];
    let file = prop_oneof![
        Just("local-lvm:1"),
        Just("nfs:2"),
        Just("local-lvm:cloudinit"),
        Just("none,media=cdrom"),
        Just("local:iso/x.iso,media=cdrom"),
        Just("local-lvm:vm-101-disk-0"),
        Just("local-lvm:vm-101-disk-1,discard=on"),
    ];
    prop_oneof![
        // a cloud-init drive on virtio no longer parses and so is never freed (Q9)
        (slot.clone(), file)
            .prop_filter("not on virtio", |(slot, file)| *slot != "virtio0" || !file.ends_with("cloudinit"))
            .prop_map(|(slot, file)| json!({slot: file})),
        slot.prop_map(|slot| json!({"delete": slot})),
        Just(json!({"delete": "unused0"})),
        (1u32..8).prop_map(|n| json!({"cores": n.to_string()})),
        Just(json!({"net0": "virtio,bridge=vmbr0"})),
        Just(json!({"power": "start"})),
        Just(json!({"power": "stop"})),
        Just(json!({"revert": "scsi0,cores,boot"})),
    ]
}

fn volumes(lab: &Lab) -> BTreeSet<String> {
    let guest = &lab.0.guests[&101];
    let all = guest.config.values().chain(guest.pending.values());
    all.map(|text| text.split(',').next().unwrap_or_default())
        .filter(|volume| volume.contains("vm-101-"))
        .map(str::to_owned)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// No volume is lost or invented, whatever is written: what is on the storages is what the
    /// configuration names.
    #[test]
    fn every_volume_of_a_vm_is_in_its_configuration(writes in prop::collection::vec(write(), 1..20)) {
        let mut lab = Lab::with_vm();
        for mut params in writes {
            let result = match params.as_object_mut().and_then(|map| map.remove("power")) {
                Some(power) => {
                    let path = format!("/nodes/pve01/qemu/101/status/{}", power.as_str().unwrap());
                    lab.0.call(&proxops_sim::Caller::root(), "POST", &path, json!({}))
                }
                None => lab.0.call(&proxops_sim::Caller::root(), "PUT", VM, params),
            };
            lab.0.finish_tasks();
            if let Err(refused) = result {
                prop_assert!(refused.status == 500 || refused.status == 400, "{}", refused);
            }
            let mut stored = BTreeSet::new();
            for storage in ["local-lvm", "nfs"] {
                let rows = lab.ok("GET", &format!("/nodes/pve01/storage/{storage}/content"), json!({"vmid": "101"}));
                stored.extend(rows.as_array().unwrap().iter().map(|row| row["volid"].as_str().unwrap().to_owned()));
            }
            prop_assert_eq!(&volumes(&lab), &stored);
        }
    }

    /// Sending back what GET reports changes nothing.
    #[test]
    fn writing_back_the_live_form_changes_nothing(writes in prop::collection::vec(write(), 0..10)) {
        let mut lab = Lab::with_vm();
        for params in writes.into_iter().filter(|params| params.get("power").is_none()) {
            let _ = lab.0.call(&proxops_sim::Caller::root(), "PUT", VM, params);
        }
        let before = lab.vm(101);
        for (key, value) in before.as_object().unwrap() {
            let text = value.as_str().map(str::to_owned).unwrap_or_else(|| value.to_string());
            // an empty boot order cannot be sent, and unused disks are PVE's to keep
            if matches!(key.as_str(), "digest" | "meta") || key.starts_with("unused") || text == " " {
                continue;
            }
            // nor does a CD drive on virtio parse (Q9), and a cloud-init drive gains its size (Q19, Q35)
            if text.contains("-cloudinit") {
                continue;
            }
            lab.put(json!({key: text}));
        }
        prop_assert_eq!(lab.vm(101), before);
    }
}
