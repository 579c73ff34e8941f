//! Mistakes, each at its place.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use proxops_container::TemplateCt;
use proxops_kind::{Severity, kind};
use serde_json::{Value, json};

/// The one error of a manifest.
fn error(fields: Value) -> (String, String) {
    let validation = validate(spec_with(fields));
    let mut errors = errors(&validation);
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

#[test]
fn every_mistake_is_found_at_its_place() {
    let mp = |fields: Value| {
        let mut mount = json!({ "storage": "local-lvm", "size": "4GiB", "mount-point": "/data" });
        for (key, value) in fields.as_object().unwrap() {
            mount[key] = value.clone();
        }
        json!({ "mount-points": [mount] })
    };
    let nic = |fields: Value| {
        let mut nic = json!({ "bridge": "vmbr0" });
        for (key, value) in fields.as_object().unwrap() {
            nic[key] = value.clone();
        }
        json!({ "networks": [nic] })
    };
    let bind = |host: &str| json!({ "bind-mounts": [{ "host-path": host, "mount-point": "/m" }] });
    let device = |path: &str, mode: &str| json!({ "devices": [{ "path": path, "mode": mode }] });
    for (fields, at, says) in [
        (json!({ "memory": "1.5K" }), "/spec/memory", "whole MiB"),
        (json!({ "memory": "8MiB" }), "/spec/memory", "at least 16MiB"),
        (json!({ "vmid": 99 }), "/spec/vmid", "100"),
        (json!({ "node": "pve_1" }), "/spec/node", "node's name"),
        (json!({ "cpu": { "coress": 1 } }), "/spec/cpu/coress", "cores"),
        (json!({ "cpu": { "cores": 0 } }), "/spec/cpu/cores", "1"),
        (json!({ "tags": ["ok", "-no"] }), "/spec/tags/1", "tag"),
        (json!({ "clone": "base", "root": null }), "/spec/clone", "exclude"),
        (json!({ "clone-storage": "tank" }), "/spec/clone-storage", "clone"),
        (json!({ "root": { "storage": "a:b", "size": "8GiB" } }), "/spec/root/storage", "storage"),
        (json!({ "template": null, "clone": "base" }), "/spec/root/storage", "clone"),
        (mp(json!({ "mount-point": "data" })), "/spec/mount-points/0/mount-point", "absolute"),
        (mp(json!({ "slot": "scsi0" })), "/spec/mount-points/0/slot", "mp0"),
        (mp(json!({ "slot": "mp256" })), "/spec/mount-points/0/slot", "mp255"),
        (
            mp(json!({ "options": { "mount-options": ["sync"] } })),
            "/spec/mount-points/0/options/mount-options/0",
            "nosuid",
        ),
        (bind("/etc"), "/spec/bind-mounts/0/host-path", "system"),
        (bind("srv"), "/spec/bind-mounts/0/host-path", "absolute"),
        (device("/srv/x", "0660"), "/spec/devices/0/path", "/dev"),
        (device("/dev/fuse", "660"), "/spec/devices/0/mode", "octal"),
        (nic(json!({ "bridge": null })), "/spec/networks/0/bridge", "bridge"),
        (nic(json!({ "ip": "10.0.0.5" })), "/spec/networks/0/ip", "prefix length"),
        (nic(json!({ "ip6": "10.0.0.5/24" })), "/spec/networks/0/ip6", "IPv6"),
        (nic(json!({ "ip": "10.0.0.5/24", "gw": "10.0.0.1/24" })), "/spec/networks/0/gw", "prefix length"),
        (nic(json!({ "hwaddr": "BC:24" })), "/spec/networks/0/hwaddr", "MAC"),
        (nic(json!({ "trunks": [5, 5000] })), "/spec/networks/0/trunks", "4094"),
        (nic(json!({ "slot": "net1", "absent": true })), "/spec/networks/0", "only `slot`"),
        (
            json!({ "networks": [{ "bridge": "vmbr0", "iface": "lan" }, { "slot": "net1", "bridge": "vmbr0", "iface": "lan" }] }),
            "/spec/networks/1/iface",
            "lan",
        ),
        (
            json!({ "root": { "storage": "local-lvm", "size": "8GiB", "mount-options": "noatime;sync" } }),
            "/spec/root/mount-options",
            "sync",
        ),
        (json!({ "options": { "features": { "mount": "nfs;a-b" } } }), "/spec/options/features/mount", "a-b"),
        (json!({ "networks": [{ "absent": true }] }), "/spec/networks/0/slot", "slot"),
        (json!({ "dns": { "hostname": "a_b" } }), "/spec/dns/hostname", "DNS"),
        (json!({ "dns": { "nameservers": ["ns1"] } }), "/spec/dns/nameservers", "IP address"),
        (json!({ "env": { "A B": "1" } }), "/spec/env", "letters"),
        (json!({ "env": { "A": "x\ny" } }), "/spec/env", "line break"),
        (json!({ "options": { "startup": "soon" } }), "/spec/options/startup", "order="),
        (json!({ "options": { "ttys": 2, "tty": 3 } }), "/spec/options/tty", "disagree"),
        (
            json!({ "options": { "nesting": true, "features": { "nesting": false } } }),
            "/spec/options/nesting",
            "disagree",
        ),
        (json!({ "options": { "ttys": 7 } }), "/spec/options/ttys", "6"),
        (json!({ "password-ref": "hunter2" }), "/spec/password-ref", "cloud-init.passwords."),
        (json!({ "extra": { "net1": "x" } }), "/spec/extra/net1", "verbatim"),
        (json!({ "extra": { "tags": "x" } }), "/spec/extra/tags", "verbatim"),
        (json!({ "extra": { "cpulimit": 2 } }), "/spec/extra/cpulimit", "cpu.limit"),
        (
            json!({ "extra": { "lxc.apparmor.profile": "x" } }),
            "/spec/extra/lxc.apparmor.profile",
            "not a PVE key",
        ),
    ] {
        let (place, text) = error(fields.clone());
        assert_eq!(place, at, "{fields}: {text}");
        assert!(text.contains(says), "{fields}: {text}");
    }
}

#[test]
fn a_password_never_stands_in_a_message() {
    let (_, text) = error(json!({ "password-ref": "hunter2" }));
    assert!(!text.contains("hunter2"));
}

#[test]
fn two_entries_never_share_a_slot_or_a_path() {
    let mount = |slot: &str, path: &str| json!({ "slot": slot, "storage": "l-l", "size": "1GiB", "mount-point": path });
    let (at, text) = error(json!({ "mount-points": [mount("mp0", "/a"), mount("mp0", "/b")] }));
    assert_eq!(at, "/spec/mount-points/1/slot");
    assert!(text.contains("mp0"));
    let bind = json!([{ "slot": "mp1", "host-path": "/srv/a", "mount-point": "/a/" }]);
    let (at, _) = error(json!({ "mount-points": [mount("mp0", "/a")], "bind-mounts": bind }));
    assert_eq!(at, "/spec/bind-mounts/0/mount-point");
}

#[test]
fn slots_that_follow_from_order_are_a_warning() {
    let mount = |path: &str| json!({ "storage": "local-lvm", "size": "1GiB", "mount-point": path });
    let validation = validate(spec_with(json!({ "mount-points": [mount("/a"), mount("/b")] })));
    assert!(errors(&validation).is_empty());
    let [warning] = &validation.diagnostics[..] else { panic!("{:?}", validation.diagnostics) };
    assert_eq!((warning.severity, warning.at.as_str()), (Severity::Warning, "/spec/mount-points"));
    assert!(validate(spec_with(json!({ "mount-points": [mount("/a")] }))).diagnostics.is_empty());
}

#[test]
fn several_mistakes_come_in_one_run() {
    let validation =
        validate(spec_with(json!({ "memory": "lots", "swap": "much", "options": { "ttys": "two" } })));
    let places: Vec<String> = errors(&validation).into_iter().map(|(at, _)| at).collect();
    assert_eq!(places, ["/spec/memory", "/spec/options/ttys", "/spec/swap"]);
    assert!(validation.validated.is_some(), "the host can go on with names and references");
}

#[test]
fn old_and_new_spelling_of_ttys_are_the_same() {
    for name in ["tty", "ttys"] {
        let wanted = spec_with(json!({ "options": { name: 4 } }));
        assert!(validate(wanted.clone()).diagnostics.is_empty());
        assert_eq!(set(&drift(wanted, live_with(&[]), &context())), [("tty".to_owned(), "4".to_owned())]);
    }
}

#[test]
fn lists_may_be_written_in_pves_own_form() {
    let wanted = spec_with(json!({
        "networks": [{ "bridge": "vmbr0", "trunks": "31;30" }],
        "dns": { "nameservers": "10.0.0.1 10.0.0.2", "domain": "a.example.org b.example.org" },
        "options": { "startup": { "order": 2, "up": 30 }, "features": { "mount": "nfs;cifs" } },
        "root": { "storage": "local-lvm", "size": "8GiB", "mount-options": "nodev;noatime" },
        "env": ["A=1"],
    }));
    assert_eq!(validate(wanted.clone()).diagnostics, []);
    let written = set(&drift(wanted, live_with(&[]), &root()));
    let of = |key: &str| written.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
    assert_eq!(of("net0"), Some("name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,type=veth,trunks=30;31"));
    assert_eq!(of("nameserver"), Some("10.0.0.1 10.0.0.2"));
    assert_eq!(of("searchdomain"), Some("a.example.org b.example.org"));
    assert_eq!(of("startup"), Some("order=2,up=30"));
    assert_eq!(of("features"), Some("mount=nfs;cifs"));
    assert_eq!(of("rootfs"), Some("local-lvm:vm-201-disk-0,size=8G,mountoptions=noatime;nodev"));
    assert_eq!(of("env"), Some("A=1"));
}

#[test]
fn a_template_never_runs() {
    let started = manifest(spec_with(json!({ "state": "started" })));
    let errors = errors(&kind::validate::<TemplateCt>(&started));
    assert_eq!(errors[0].0, "/spec/state");
    let silent = manifest(spec_with(json!({ "state": null })));
    let validation = kind::validate::<TemplateCt>(&silent);
    assert!(validation.diagnostics.is_empty());
    assert_eq!(validation.validated.unwrap().power, Some(proxops_kind::Power::Stopped));
}
