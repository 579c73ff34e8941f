//! What PVE lets only root@pam with a ticket set (facts Q51, L7, L8, T26): told at plan time for a token,
//! converged with a ticket.

use proxops_kind::{Anomaly, Severity};
use proxops_kind_tests::converge::{created, settled};
use proxops_kind_tests::kinds::{Kind, LXC, VM};
use proxops_kind_tests::lab::Lab;
use proxops_kind_tests::oracle::Expected;
use serde_json::{Value as Json, json};

fn merged(base: &Json, over: &Json) -> Json {
    match (base, over) {
        (Json::Object(a), Json::Object(b)) => {
            let mut out = a.clone();
            for (name, value) in b {
                let value = a.get(name).map_or_else(|| value.clone(), |old| merged(old, value));
                out.insert(name.clone(), value);
            }
            Json::Object(out)
        }
        (_, over) => over.clone(),
    }
}

/// A manifest's addition, the PVE key that the message names, and the place in the manifest.
fn cases() -> Vec<(Kind, Json, &'static str, &'static str)> {
    let options = |o: Json| json!({ "options": o });
    let features = |f: Json| json!({ "options": { "features": f } });
    vec![
        (VM, json!({ "hugepages": "any" }), "hugepages", "/spec/hugepages"),
        (VM, json!({ "keep-hugepages": true }), "keephugepages", "/spec/keep-hugepages"),
        (VM, json!({ "cpu": { "affinity": "0-3" } }), "affinity", "/spec/cpu/affinity"),
        (
            VM,
            options(json!({ "hookscript": "local:snippets/hook.sh" })),
            "hookscript",
            "/spec/options/hookscript",
        ),
        (VM, json!({ "hardware": { "serial1": "/dev/ttyS0" } }), "serial1", "/spec/hardware/serial1"),
        (
            VM,
            json!({ "hardware": { "pci-devices": [{ "slot": "hostpci0", "device": "01:00.0" }] } }),
            "hostpci0",
            "/spec/hardware/pci-devices/0",
        ),
        (
            VM,
            json!({ "hardware": { "usb-devices": [{ "slot": "usb2", "host": "1-2" }] } }),
            "usb2",
            "/spec/hardware/usb-devices/0",
        ),
        (
            VM,
            json!({ "disks": [{ "interface": "scsi4", "volume": "/dev/sdb" }] }),
            "scsi4",
            "/spec/disks/0/volume",
        ),
        (VM, json!({ "extra": { "args": "-no-hpet" } }), "args", "/spec/extra/args"),
        (
            LXC,
            options(json!({ "hookscript": "local:snippets/hook.sh" })),
            "hookscript",
            "/spec/options/hookscript",
        ),
        (
            LXC,
            json!({ "bind-mounts": [{ "slot": "mp3", "host-path": "/srv/x", "mount-point": "/x" }] }),
            "mp3",
            "/spec/bind-mounts/0",
        ),
        (LXC, json!({ "devices": [{ "slot": "dev1", "path": "/dev/fuse" }] }), "dev1", "/spec/devices/0"),
        (LXC, features(json!({ "keyctl": true })), "features", "/spec/options/features/keyctl"),
        (LXC, features(json!({ "fuse": true })), "features", "/spec/options/features/fuse"),
        (LXC, features(json!({ "mknod": true })), "features", "/spec/options/features/mknod"),
        (LXC, features(json!({ "mount": ["nfs"] })), "features", "/spec/options/features/mount"),
        (LXC, features(json!({ "force-rw-sys": true })), "features", "/spec/options/features/force-rw-sys"),
        (LXC, options(json!({ "keyctl": true })), "features", "/spec/options/keyctl"),
        (
            LXC,
            json!({ "options": { "unprivileged": false, "features": { "nesting": true } } }),
            "features",
            "/spec/options/features/nesting",
        ),
    ]
}

fn base(kind: &Kind) -> Json {
    match kind.name {
        "VM" => {
            json!({ "node": "pve01", "vmid": 101, "memory": "2GiB", "cpu": { "type": "host", "cores": 2 } })
        }
        _ => json!({
            "node": "pve01", "vmid": 101, "template": "deb13", "root": { "storage": "local-lvm", "size": "8GiB" },
        }),
    }
}

/// The one anomaly names key and place, and says what to do.
fn says_what_to_do(anomalies: &[Anomaly], severity: Severity, key: &str, at: &str) {
    let [one] = anomalies else { panic!("{key}: {anomalies:?}") };
    assert_eq!(
        (one.code.as_str(), one.key.as_deref(), one.at.as_deref()),
        ("needs-root-ticket", Some(key), Some(at))
    );
    assert_eq!(one.severity, severity, "{key}");
    let help = one.help.as_deref().unwrap_or_default();
    assert!(one.message.contains(key) && one.message.contains("root@pam"), "{}", one.message);
    assert!(
        one.message.contains("ticket") && help.contains("auth: ticket") && help.contains("remove"),
        "{help}"
    );
}

#[test]
fn a_token_is_told_before_anything_is_written() {
    for (kind, addition, key, at) in cases() {
        let spec = merged(&base(&kind), &addition);
        assert!(kind.errors(&spec).is_empty(), "{spec}");
        let lab = Lab::new().with_token();
        let creation = (kind.create)(&kind.manifest(&spec), &lab.context).unwrap();
        says_what_to_do(&creation.anomalies, Severity::Error, key, at);

        // On a guest that is there everything else still converges. What it is at creation, it stays.
        let mut before = base(&kind);
        if addition.pointer("/options/unprivileged").is_some() {
            before = merged(&before, &json!({ "options": { "unprivileged": false } }));
        }
        let mut lab = created(&kind, &before).unwrap().with_token();
        let more = merged(&spec, &json!({ "memory": "3GiB" }));
        let report = lab.drift(&kind, &more).unwrap();
        says_what_to_do(&report.anomalies, Severity::Warning, key, at);
        assert_eq!(report.changes.iter().map(|c| c.key.as_str()).collect::<Vec<_>>(), ["memory"], "{key}");
        lab.run(&kind, &report.steps).unwrap();
        assert!(!lab.config().contains_key(key), "{key}");
    }
}

#[test]
fn pve_does_refuse_what_a_token_is_told_about() {
    for (kind, addition, key, _) in cases() {
        let spec = merged(&base(&kind), &addition);
        let mut lab = Lab::new().with_token();
        let creation = (kind.create)(&kind.manifest(&spec), &lab.context).unwrap();
        let refused = lab.run(&kind, &creation.steps).expect_err(key);
        let told = ["only root", "root@pam", "Only root"].iter().any(|word| refused.contains(word));
        assert!(told, "{key}: {refused}");
    }
}

#[test]
fn a_ticket_of_root_converges() {
    for (kind, addition, key, _) in cases() {
        let spec = merged(&base(&kind), &addition);
        let lab = created(&kind, &spec).unwrap_or_else(|why| panic!("{key}: {why}"));
        assert!(lab.config().contains_key(key), "{key}");
        if addition.pointer("/options/unprivileged").is_some() {
            continue;
        }
        let mut lab = created(&kind, &base(&kind)).unwrap();
        let report = lab.drift(&kind, &spec).unwrap();
        lab.run(&kind, &report.steps).unwrap_or_else(|why| panic!("{key}: {why}"));
        settled(key, &lab.drift(&kind, &spec).unwrap(), &Expected::default(), false).unwrap();
    }
}

#[test]
fn what_is_there_already_needs_no_root() {
    for (kind, addition, key, _) in cases() {
        let spec = merged(&base(&kind), &addition);
        let mut lab = created(&kind, &spec).unwrap().with_token();
        let report = lab.drift(&kind, &spec).unwrap();
        settled(key, &report, &Expected::default(), false).unwrap();
    }
}

#[test]
fn a_token_may_set_nesting_and_mapped_devices() {
    for (kind, addition) in [
        (LXC, json!({ "options": { "nesting": true, "keyctl": false, "features": { "fuse": false } } })),
        (
            VM,
            json!({ "hardware": { "pci-devices": [{ "mapping": "gpu" }], "usb-devices": [{ "host": "spice" }], "serial0": "socket" } }),
        ),
    ] {
        let spec = merged(&base(&kind), &addition);
        let mut lab = Lab::new().with_token();
        lab.create(&kind, &spec).unwrap();
        settled("token", &lab.drift(&kind, &spec).unwrap(), &Expected::default(), false).unwrap();
    }
}
