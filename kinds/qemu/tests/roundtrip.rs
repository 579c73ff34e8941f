//! create, then drift is empty; adopt of the result validates and drifts empty; hostile reports never panic.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![recursion_limit = "512"]
mod common;
use common::*;
use proptest::prelude::*;
use proxops_kind::{AdoptOptions, Adopted, Context, Live, LiveGuest, LiveValue, kind};
use proxops_qemu::{TemplateVm, Vm};
use serde_json::{Value as Json, json};

fn adopt(live: &LiveGuest, secrets: bool) -> Adopted {
    let options = AdoptOptions { secrets, ext: vec![] };
    kind::adopt::<Vm>("app", &Live::Guest(live.clone()), &context(), &options).unwrap()
}

/// Adopts, checks that the manifest is valid, and that it drifts empty against what it was made from.
fn adopt_and_compare(live: &LiveGuest) -> (Json, Adopted) {
    let adopted = adopt(live, false);
    let spec: Json = serde_json::from_str(&adopted.spec).unwrap();
    let validation = kind::validate::<Vm>(&manifest("app", &spec));
    assert_eq!(validation.diagnostics, vec![], "{spec}");
    assert_clean(&vm_drift(&spec, live), &spec.to_string());
    (spec, adopted)
}

#[test]
fn create_then_drift_then_adopt() {
    for name in ["minimal", "full"] {
        // The name in PVE must be the manifest's for the adopted one to match.
        let spec = with(example(name), json!({ "vmid": 101, "pve-name": null }));
        let params = create(&spec);
        let mut config = after_create(&params);
        if params.contains_key("cipassword") {
            config["cipassword"] = json!("**********");
        }
        let live = guest(&config);
        let report = vm_drift(&spec, &live);
        assert_clean(&report, name);
        let (adopted, rest) = adopt_and_compare(&live);
        let gaps: Vec<&str> = rest.gaps.iter().map(|g| g.key.as_str()).collect();
        let expected: &[&str] = if name == "full" { &["migrate_downtime", "vmstatestorage"] } else { &[] };
        assert_eq!(gaps, expected, "{adopted}");
    }
}

#[test]
fn create_sends_what_the_manifest_says() {
    let spec = with(
        app_spec(),
        json!({ "hardware": { "cdrom": { "iso": "netinst" }, "cloud-init": { "storage": "local-lvm" } } }),
    );
    let params = create(&spec);
    let expected = [
        ("cores", "2"),
        ("cpu", "host"),
        ("ide2", "local-lvm:cloudinit"),
        ("ide3", "local:iso/netinst.iso,media=cdrom"),
        ("memory", "2048"),
        ("name", "app"),
        ("net0", "virtio,bridge=vmbr0"),
        ("scsi0", "local-lvm:32"),
        ("scsihw", "virtio-scsi-single"),
        ("tags", "proxops"),
    ];
    assert_eq!(params.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect::<Vec<_>>(), expected);
    let seeded = json!({ "disks": [{ "storage": "local-lvm", "image": "debian-13", "format": "qcow2", "size": "20GiB" }] });
    let params = create(&with(app_spec(), seeded));
    assert_eq!(params["scsi0"], "local-lvm:0,import-from=local:import/deb13.qcow2,format=qcow2");
}

#[test]
fn a_template_is_created_without_the_template_key() {
    let creation = kind::create_params::<TemplateVm>(&manifest("tpl", &app_spec()), &context()).unwrap();
    let text = format!("{:?}", creation.steps);
    assert!(!text.contains("\"template\""), "{text}");
}

#[test]
fn adoption_leaves_defaults_out_and_drifts_by_the_tag_only() {
    let live = guest(&with(app_live(), json!({ "agent": "1", "keyboard": "de", "onboot": 1, "tags": null })));
    let adopted = adopt(&live, false);
    let spec: Json = serde_json::from_str(&adopted.spec).unwrap();
    let expected = json!({
        "node": "pve01", "vmid": 101, "state": "stopped", "memory": "2GiB", "cpu": { "type": "host", "cores": 2 },
        "disks": [{ "interface": "scsi0", "storage": "local-lvm", "size": "32GiB", "controller": "virtio-scsi-single" }],
        "networks": [{ "slot": "net0", "bridge": "vmbr0", "mac": "BC:24:11:00:00:01" }],
        "options": { "onboot": true, "agent": true, "boot-order": ["scsi0", "net0"], "keyboard": "de" },
    });
    assert_eq!(spec, expected);
    assert!(adopted.gaps.is_empty(), "{:?}", adopted.gaps);
    assert!(adopted.spec.starts_with("{\"node\":\"pve01\",\"vmid\":101,"), "documentation order");
    let report = vm_drift(&spec, &live);
    assert_eq!(
        writes(&report).0.into_iter().collect::<Vec<_>>(),
        [("tags".to_owned(), "proxops".to_owned())]
    );
}

#[test]
fn what_pve_holds_and_no_manifest_can_say_is_a_gap_under_pves_key_with_pves_text() {
    let live = guest(&json!({
        "cores": "2", "cpu": "host", "memory": "2048", "name": "app", "tags": "proxops", "vcpus": "794",
        "hostpci1": "rombar=0", "nameserver": "1",
        "cicustom": "user=local:snippets/u.yaml,meta=local:iso/netinst.iso",
    }));
    // A slot that only PVE describes is an anomaly, which the host has ignored by an annotation.
    let adopted = adopt(&live, false);
    let spec: Json = serde_json::from_str(&adopted.spec).unwrap();
    assert_eq!(kind::validate::<Vm>(&manifest("app", &spec)).diagnostics, vec![], "{spec}");
    assert!(vm_drift(&spec, &live).changes.is_empty(), "{spec}");
    let gaps: Vec<(&str, Option<&str>)> =
        adopted.gaps.iter().map(|g| (g.key.as_str(), g.value.as_deref())).collect();
    for gap in [
        ("vcpus", Some("794")),
        ("hostpci1", Some("rombar=0")),
        ("nameserver", Some("1")),
        ("cicustom", Some("local:iso/netinst.iso")),
    ] {
        assert!(gaps.contains(&gap), "{gap:?} is not in {gaps:?}");
    }
    assert!(
        adopted.gaps.iter().all(|g| g.why.starts_with("no manifest can say this: ")),
        "{:?}",
        adopted.gaps
    );
    assert_eq!(spec["cloud-init-data"]["custom"], json!({"user": "local:snippets/u.yaml"}), "the rest stays");
    assert!(spec["hardware"].get("pci-devices").is_none() && spec["cpu"].get("vcpus").is_none(), "{spec}");
    assert!(
        adopted.spec.starts_with("{\"node\":\"pve01\",\"vmid\":101,"),
        "documentation order: {}",
        adopted.spec
    );
}

#[test]
fn adoption_copes_with_everything_pve_reports() {
    let live = guest(&json!({
        "name": "db", "cores": 1, "sockets": 2, "numa": 1, "memory": "current=1536", "balloon": 0, "cpulimit": "1.5",
        "cpu": "cputype=kvm64,flags=+aes;+nested-virt,hidden=1,phys-bits=40", "scsihw": "virtio-scsi-pci",
        "machine": "pc-q35-9.2+pve1,viommu=virtio", "vga": "qxl,memory=32", "agent": "enabled=1,fstrim_cloned_disks=1",
        "boot": " ", "startup": "order=3,up=5", "ostype": "win11", "hotplug": "network,disk", "localtime": 0,
        "scsi1": "ceph:vm-101-disk-1,cache=writeback,iops_rd=100,size=1536M,wwn=0x5000", "virtio0": "/dev/sdb,size=1T",
        "sata0": "local:iso/netinst.iso,media=cdrom,size=700M", "ide0": "none,media=cdrom",
        "scsi9": "local-lvm:vm-101-cloudinit,media=cdrom,size=4M",
        "efidisk0": "local-lvm:vm-101-disk-5,efitype=4m,ms-cert=2023k,pre-enrolled-keys=1,size=4M",
        "tpmstate0": "local-lvm:vm-101-disk-6,size=4M,version=v2.0",
        "net0": "e1000=BC:24:11:00:00:01,bridge=vmbr0,tag=7,trunks=10;20", "net3": "virtio=BC:24:11:00:00:03",
        "hostpci0": "0000:01:00.0,pcie=1,romfile=x.bin", "usb0": "spice,usb3=1", "serial0": "socket",
        "rng0": "source=/dev/urandom,max_bytes=1024", "watchdog": "model=i6300esb,action=reset", "audio0": "device=AC97",
        "ipconfig0": "ip=dhcp,ip6=auto", "nameserver": "192.0.2.1 192.0.2.2", "searchdomain": "a.example b.example",
        "cicustom": "user=local:snippets/u.yaml", "ciupgrade": 0, "citype": "nocloud", "cipassword": "**********",
        "sshkeys": proxops_kind::text::percent_encode(&format!("{KEY_A}\n")),
        "tags": "proxops;Web", "description": "notes\n", "args": "-vnc password=on", "unused0": "ceph:vm-101-disk-9",
        "smbios1": "uuid=1-2,serial=abc", "digest": "x", "lock": "backup", "numa0": "cpus=0",
    }));
    let adopted = adopt(&live, false);
    let spec: Json = serde_json::from_str(&adopted.spec).unwrap();
    let validation = kind::validate::<Vm>(&manifest("app", &spec));
    assert_eq!(validation.diagnostics, vec![], "{spec}");
    let report = vm_drift(&spec, &live);
    assert!(report.changes.is_empty(), "{:?}", report.changes);
    assert_eq!(spec["pve-name"], "db");
    assert_eq!(spec["tags"], json!(["web"]));
    assert_eq!(spec["cloud-init-data"]["ssh-key-refs"], json!(["cloud-init.ssh-keys.ops"]));
    assert_eq!(spec["hardware"]["cdrom"]["iso"], "none");
    assert_eq!(adopted.masked_secrets, 1);
    let gap = |key: &str| {
        adopted.gaps.iter().find(|g| g.key == key).unwrap_or_else(|| panic!("{key}: {:?}", adopted.gaps))
    };
    assert_eq!(gap("args").value, None, "secret-like");
    for (key, value) in [
        ("cpu", "phys-bits=40"),
        ("hostpci0", "romfile=x.bin"),
        ("machine", "viommu=virtio"),
        ("net3", "virtio=BC:24:11:00:00:03"),
        ("numa0", "cpus=0"),
        ("sata0", "local:iso/netinst.iso,media=cdrom,size=700M"),
        ("scsi1", "wwn=0x5000"),
        ("smbios1", "uuid=1-2,serial=abc"),
        ("unused0", "ceph:vm-101-disk-9"),
    ] {
        assert_eq!(gap(key).value.as_deref(), Some(value));
    }
    assert_eq!(adopted.gaps.len(), 10, "{:?}", adopted.gaps);
}

#[test]
fn ssh_keys_are_matched_all_or_nothing() {
    let encoded = proxops_kind::text::percent_encode(&format!("{KEY_A}\n{KEY_B}\n"));
    let live = guest(&with(app_live(), json!({ "sshkeys": encoded })));
    let (spec, adopted) = adopt_and_compare(&live);
    assert_eq!(spec["cloud-init-data"]["ssh-keys"], json!(["*"]));
    assert!(adopted.new_public_keys.is_empty());
    let adopted = adopt(&live, true);
    let [(name, text)] = adopted.new_public_keys.as_slice() else { panic!("{:?}", adopted.new_public_keys) };
    // First 8 bytes of sha256("sshpki\0ssh-ed25519\0AAAA...").
    assert!(name.strip_prefix("cloud-init.ssh-keys.adopted-").is_some_and(|hex| hex.len() == 16));
    assert_eq!(text, KEY_B);
    let spec: Json = serde_json::from_str(&adopted.spec).unwrap();
    assert_eq!(spec["cloud-init-data"]["ssh-key-refs"], json!([name, "cloud-init.ssh-keys.ops"]));
    let context = Context {
        public_keys: [context().public_keys, adopted.new_public_keys.clone()].concat(),
        ..context()
    };
    let report = kind::drift::<Vm>(&manifest("app", &spec), &Live::Guest(live), &context).unwrap();
    assert_clean(&report, "with the new key");
}

#[test]
fn flags_that_the_manifest_can_not_name_are_left_alone() {
    let live = guest(&with(app_live(), json!({ "cpu": "host,flags=+aes;+avx512f" })));
    let (spec, adopted) = adopt_and_compare(&live);
    assert_eq!(spec["cpu"], json!({ "type": "host", "cores": 2 }));
    assert_eq!(adopted.gaps[0].value.as_deref(), Some("flags=+aes;+avx512f"));
}

#[test]
fn an_adopted_template_is_stopped() {
    let live =
        guest(&with(app_live(), json!({ "template": 1, "scsi0": "local-lvm:base-101-disk-0,size=32G" })));
    let options = AdoptOptions { secrets: false, ext: vec![] };
    let adopted = kind::adopt::<TemplateVm>("app", &Live::Guest(live.clone()), &context(), &options).unwrap();
    let spec: Json = serde_json::from_str(&adopted.spec).unwrap();
    assert_eq!(spec["state"], "stopped");
    let report = kind::drift::<TemplateVm>(&manifest("app", &spec), &Live::Guest(live), &context()).unwrap();
    assert_clean(&report, "template");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_report_breaks_drift_or_adopt(
        entries in proptest::collection::vec(
            (prop_oneof![
                "[a-z0-9]{1,8}",
                proptest::sample::select(vec!["scsi0", "net0", "cpu", "memory", "agent", "boot", "tags", "sshkeys", "efidisk0",
                    "tpmstate0", "ide2", "hostpci0", "usb0", "ipconfig0", "startup", "vga", "machine", "hotplug", "scsi00", "net99999999999"])
                    .prop_map(str::to_owned),
            ], "[ -~]{0,40}|\\PC{0,20}"),
            0..20,
        ),
        fresh in any::<bool>(),
    ) {
        let mut live = guest(&app_live());
        for (key, value) in entries {
            live.values.retain(|(k, _)| *k != key);
            live.values.push((key, LiveValue::Text(value)));
        }
        if fresh {
            live.fresh_clone_of = Some(proxops_kind::ResourceRef::new("TemplateVM", "tpl"));
        }
        let live = Live::Guest(live);
        let options = AdoptOptions { secrets: true, ext: vec![] };
        for spec in [app_spec(), example("full"), example("clone")] {
            let _ = kind::drift::<Vm>(&manifest("app", &spec), &live, &context());
        }
        let adopted = kind::adopt::<Vm>("app", &live, &context(), &options).unwrap();
        prop_assert!(serde_json::from_str::<Json>(&adopted.spec).is_ok());
    }

    #[test]
    fn no_spec_breaks_validate(text in "\\PC{0,60}", field in "[a-z-]{1,10}", value in "[ -~]{0,20}") {
        let _ = kind::validate::<Vm>(&proxops_kind::Manifest { spec: text, ..manifest("app", &json!({})) });
        for spec in [json!({ &field: value }), json!({ "disks": [{ &field: value }], "hardware": { &field: value } }), json!({ "options": value })] {
            let validation = kind::validate::<Vm>(&manifest("app", &with(app_spec(), spec)));
            prop_assert!(validation.validated.is_some() || !validation.diagnostics.is_empty());
        }
    }
}
