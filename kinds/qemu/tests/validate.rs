//! What a manifest may say.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
use common::*;
use proxops_kind::{Identity, Power, Severity, Target, kind};
use proxops_qemu::{TemplateVm, Vm};
use serde_json::{Value as Json, json};

fn findings(spec: &Json) -> Vec<(String, String, Severity)> {
    let validation = kind::validate::<Vm>(&manifest("app", spec));
    validation.diagnostics.into_iter().map(|d| (d.at, d.code, d.severity)).collect()
}

fn errors(over: Json) -> Vec<(String, String)> {
    findings(&with(app_spec(), over))
        .into_iter()
        .filter(|f| f.2 == Severity::Error)
        .map(|f| (f.0, f.1))
        .collect()
}

#[test]
fn every_example_validates() {
    for (examples, template) in
        [(kind::describe::<Vm>().examples, false), (kind::describe::<TemplateVm>().examples, true)]
    {
        assert!(examples.len() >= 2);
        for text in examples {
            let whole: Json = serde_json::from_str(&text).unwrap();
            let m = manifest(whole["metadata"]["name"].as_str().unwrap(), &whole["spec"]);
            let validation =
                if template { kind::validate::<TemplateVm>(&m) } else { kind::validate::<Vm>(&m) };
            assert_eq!(validation.diagnostics, vec![], "{text}");
            assert!(validation.validated.is_some());
        }
    }
}

#[test]
fn describe_is_stable_and_every_property_has_a_description() {
    let info = kind::describe::<Vm>();
    assert_eq!(info, kind::describe::<Vm>());
    assert!(matches!(info.target, Target::Guest(_)));
    let schema: Json = serde_json::from_str(&info.schema).unwrap();
    fn walk(schema: &Json, path: &str) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            assert!(property["description"].is_string(), "{path}.{name}");
        }
    }
    walk(&schema, "spec");
    for (name, part) in schema["$defs"].as_object().unwrap() {
        walk(part, name);
    }
    assert_eq!(schema["properties"]["memory"]["x-pve-key"], "memory");
    assert_eq!(schema["properties"]["memory"]["x-unit"], "MiB");
}

#[test]
fn every_mistake_is_found_with_its_place() {
    let cases = [
        (json!({ "memory": "1.5KiB" }), "/spec/memory", "not-whole-mib"),
        (json!({ "memory": 12 }), "/spec/memory", "wrong-type"),
        (json!({ "memory": null }), "/spec/memory", "missing-field"),
        (json!({ "memory": "8MiB" }), "/spec/memory", "out-of-range"),
        (json!({ "balloon": "4GiB" }), "/spec/balloon", "out-of-range"),
        (json!({ "vmid": 99 }), "/spec/vmid", "out-of-range"),
        (json!({ "vmid": 1_000_000_000 }), "/spec/vmid", "out-of-range"),
        (json!({ "cpu": { "coress": 2 } }), "/spec/cpu/coress", "unknown-field"),
        (json!({ "cpu": { "cores": 0 } }), "/spec/cpu/cores", "out-of-range"),
        (json!({ "cpu": { "vcpus": 3 } }), "/spec/cpu/vcpus", "out-of-range"),
        (json!({ "cpu": { "flags": ["+avx"] } }), "/spec/cpu/flags", "unknown-flag"),
        (json!({ "cpu": { "type": "host,flags=+aes" } }), "/spec/cpu/type", "bad-value"),
        (
            json!({ "cpu": { "sockets": 2 }, "hardware": { "sockets": 1 } }),
            "/spec/hardware/sockets",
            "contradiction",
        ),
        (json!({ "state": "on" }), "/spec/state", "unknown-value"),
        (json!({ "pve-name": "a_b" }), "/spec/pve-name", "bad-name"),
        (json!({ "tags": ["-x"] }), "/spec/tags/0", "bad-tag"),
        (json!({ "extra": { "memory": 1 } }), "/spec/extra/memory", "modelled-key"),
        (json!({ "extra": { "net7": "x" } }), "/spec/extra/net7", "modelled-key"),
        (json!({ "extra": { "tags": "x" } }), "/spec/extra/tags", "modelled-key"),
        (json!({ "extra": { "template": 1 } }), "/spec/extra/template", "reserved-key"),
        (json!({ "extra": { "skiplock": 1 } }), "/spec/extra/skiplock", "reserved-key"),
        (json!({ "clone-storage": "a1" }), "/spec/clone-storage", "needs-clone"),
        (json!({ "networks": [{ "model": "virtio" }] }), "/spec/networks/0/bridge", "missing-field"),
        (json!({ "networks": [{ "bridge": "vmbr0", "mac": "x" }] }), "/spec/networks/0/mac", "bad-mac"),
        (
            json!({ "networks": [{ "bridge": "vmbr0", "vlan": 4095 }] }),
            "/spec/networks/0/vlan",
            "out-of-range",
        ),
        (json!({ "networks": [{ "absent": true }] }), "/spec/networks/0/slot", "missing-field"),
        (json!({ "hardware": { "bios": "uefi" } }), "/spec/hardware/bios", "unknown-value"),
        (json!({ "hardware": { "machine": "q36" } }), "/spec/hardware/machine", "bad-value"),
        (json!({ "hardware": { "tpm": {} } }), "/spec/hardware/tpm/storage", "missing-field"),
        (
            json!({ "hardware": { "cloud-init": { "storage": "a1", "slot": "virtio1" } } }),
            "/spec/hardware/cloud-init/slot",
            "bad-slot",
        ),
        (json!({ "hardware": { "cloud-init": {} } }), "/spec/hardware/cloud-init/storage", "missing-field"),
        (
            json!({ "hardware": { "pci-devices": [{ "slot": "hostpci16", "mapping": "a1" }] } }),
            "/spec/hardware/pci-devices/0/slot",
            "bad-slot",
        ),
        (
            json!({ "hardware": { "pci-devices": [{}] } }),
            "/spec/hardware/pci-devices/0/device",
            "missing-field",
        ),
        (
            json!({ "hardware": { "usb-devices": [{ "host": "12:34" }] } }),
            "/spec/hardware/usb-devices/0/host",
            "bad-value",
        ),
        (json!({ "hardware": { "serial0": "tcp" } }), "/spec/hardware/serial0", "bad-value"),
        (
            json!({ "disks": [{ "storage": "local-lvm", "size": "8GiB", "limits": { "mbps-rd-max": 20 } }] }),
            "/spec/disks/0/limits/mbps-rd-max",
            "burst-without-limit",
        ),
        (
            json!({ "hardware": { "display": { "type": "qxl", "memory": 1024 } } }),
            "/spec/hardware/display/memory",
            "out-of-range",
        ),
        (
            json!({ "disks": [{ "storage": "local-lvm", "size": "8GiB", "serial": "123456789012345678901" }] }),
            "/spec/disks/0/serial",
            "bad-value",
        ),
        (json!({ "options": { "startup": "first" } }), "/spec/options/startup", "bad-value"),
        (json!({ "options": { "hookscript": "hook.sh" } }), "/spec/options/hookscript", "bad-value"),
        (
            json!({ "cloud-init-data": { "ssh-keys": ["*", KEY_A] } }),
            "/spec/cloud-init-data/ssh-keys/0",
            "contradiction",
        ),
        (
            json!({ "cloud-init-data": { "ssh-keys": ["hunter2"] } }),
            "/spec/cloud-init-data/ssh-keys/0",
            "bad-key",
        ),
        (
            json!({ "cloud-init-data": { "ci-password-ref": "hunter2" } }),
            "/spec/cloud-init-data/ci-password-ref",
            "bad-reference",
        ),
        (
            json!({ "cloud-init-data": { "ipconfigs": [{ "ip": "dhcp", "gateway": "192.0.2.1" }] } }),
            "/spec/cloud-init-data/ipconfigs/0/gateway",
            "gateway-without-address",
        ),
        (
            json!({ "cloud-init-data": { "ipconfigs": [{ "ip": "192.0.2.1" }] } }),
            "/spec/cloud-init-data/ipconfigs/0/ip",
            "bad-address",
        ),
        (
            json!({ "cloud-init-data": { "nameservers": ["192.0.2.300"] } }),
            "/spec/cloud-init-data/nameservers",
            "bad-address",
        ),
    ];
    for (over, at, code) in cases {
        assert_eq!(errors(over.clone()), [(at.to_owned(), code.to_owned())], "{over}");
    }
}

#[test]
fn disks_obey_their_bus_and_their_source() {
    let disk = |d: Json| json!({ "disks": [d] });
    let base = json!({ "storage": "local-lvm", "size": "1GiB" });
    for (over, at, code) in [
        (json!({ "interface": "nvme0" }), "interface", "bad-slot"),
        (json!({ "interface": "scsi31" }), "interface", "bad-slot"),
        (json!({ "interface": "virtio0", "ssd": true }), "ssd", "wrong-bus"),
        (json!({ "interface": "sata0", "iothread": true }), "iothread", "wrong-bus"),
        (json!({ "interface": "ide0", "read-only": true }), "read-only", "wrong-bus"),
        (json!({ "size": null }), "size", "missing-field"),
        (json!({ "storage": null }), "storage", "missing-field"),
        (json!({ "storage": null, "volume": "x", "size": null }), "volume", "bad-value"),
        (json!({ "image": "a", "volume": "a:b", "storage": null }), "image", "contradiction"),
        (json!({ "discard": "yes" }), "discard", "unknown-value"),
        (json!({ "size": "0.1KiB" }), "size", "bad-value"),
    ] {
        let found = errors(disk(with(base.clone(), over.clone())));
        assert_eq!(found, [(format!("/spec/disks/0/{at}"), code.to_owned())], "{over}");
    }
    let twice = json!({ "disks": [{ "storage": "local-lvm", "size": "1GiB", "interface": "scsi0" }, { "storage": "local-lvm", "size": "1GiB", "interface": "scsi0" }] });
    assert_eq!(errors(twice), [("/spec/disks/1/interface".to_owned(), "slot-taken".to_owned())]);
    assert_eq!(errors(json!({ "disks": [] })), []);
}

#[test]
fn a_clone_names_slots_and_sizes_only() {
    let clone = json!({ "clone": "tpl", "disks": [{ "interface": "scsi0", "size": "64GiB" }] });
    assert_eq!(errors(clone.clone()), []);
    let found = errors(with(
        clone,
        json!({ "disks": [{ "interface": "scsi0", "storage": "local-lvm", "size": "64GiB" }] }),
    ));
    assert_eq!(found, [("/spec/disks/0/storage".to_owned(), "clone-disk".to_owned())]);
}

#[test]
fn slots_left_out_twice_are_a_warning() {
    let spec = with(
        app_spec(),
        json!({
            "disks": [{ "storage": "local-lvm", "size": "1GiB" }, { "storage": "local-lvm", "size": "1GiB" }],
            "networks": [{ "bridge": "vmbr0" }, { "bridge": "vmbr1" }],
        }),
    );
    let found = findings(&spec);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|f| f.2 == Severity::Warning && f.1 == "slots-by-order"));
}

#[test]
fn the_host_learns_what_it_needs_even_beside_errors() {
    let spec = with(
        app_spec(),
        json!({
            "memory": 12, "state": null,
            "disks": [{ "interface": "scsi0", "storage": "local-lvm", "image": "debian-13" }],
            "hardware": { "cdrom": { "iso": "netinst" }, "cloud-init": { "storage": "ceph" } },
            "cloud-init-data": { "ci-password-ref": "cloud-init.passwords.ops", "ssh-key-refs": ["cloud-init.ssh-keys.ops"] },
        }),
    );
    let validated = kind::validate::<Vm>(&manifest("app", &spec)).validated.unwrap();
    assert_eq!(validated.identity, Identity::guest_id("pve01", 101, Some("app")));
    assert_eq!(validated.power, Some(Power::Running));
    let places: Vec<&str> = validated.references.iter().map(|r| r.at.as_str()).collect();
    assert_eq!(places, ["/spec/disks/0/image", "/spec/hardware/cdrom/iso"]);
    let storages: Vec<(&str, &str)> =
        validated.storages.iter().map(|s| (s.storage.as_str(), s.content.as_str())).collect();
    assert_eq!(storages, [("local-lvm", "images"), ("ceph", "images")]);
    assert_eq!(validated.secrets.len(), 2);
    // A broken identity is no identity.
    assert!(kind::validate::<Vm>(&manifest("app", &with(spec, json!({ "vmid": "x" })))).validated.is_none());
}

#[test]
fn a_template_is_stopped() {
    let m = |state: Json| manifest("tpl", &with(app_spec(), json!({ "state": state })));
    assert_eq!(kind::validate::<TemplateVm>(&m(json!("started"))).diagnostics[0].code, "template-never-runs");
    for state in [json!("stopped"), Json::Null] {
        let validation = kind::validate::<TemplateVm>(&m(state));
        assert!(validation.diagnostics.is_empty());
        assert_eq!(validation.validated.unwrap().power, Some(Power::Stopped));
    }
}

#[test]
fn old_spellings_and_yaml_leftovers_are_read() {
    let spec = json!({
        "hardware": { "sockets": 2, "numa": true, "efi-disk": { "storage": "local-lvm", "template": "4m", "size": "528K" }, "bios": "ovmf", "cdrom": { "iso": "netinst", "media": "cdrom" } },
        "options": { "hidden": true, "nested-virt": true, "boot-order": "scsi0;net0", "agent": true, "startup": 1 },
        "cloud-init-data": null, "extra": null,
    });
    let found = findings(&with(app_spec(), spec));
    assert_eq!(found, vec![]);
}

#[test]
fn what_pve_takes_and_a_guest_can_hardly_use_is_a_warning() {
    for (over, at) in [
        (
            json!({ "cloud-init-data": { "nameservers": ["dns.example.org"] } }),
            "/spec/cloud-init-data/nameservers",
        ),
        (
            json!({ "disks": [{ "storage": "local-lvm", "size": "8GiB", "limits": { "iops-wr": 0, "iops-wr-max": 9 } }] }),
            "/spec/disks/0/limits/iops-wr-max",
        ),
    ] {
        let found = findings(&with(app_spec(), over));
        assert_eq!(found.iter().map(|f| (&*f.0, f.2)).collect::<Vec<_>>(), [(at, Severity::Warning)]);
    }
    // Percent-encoded on the wire, so nothing in it is forbidden.
    let disk =
        json!({ "disks": [{ "storage": "local-lvm", "size": "8GiB", "serial": "a,b=c/d 0123456789 x" }] });
    assert_eq!(errors(disk), []);
}
