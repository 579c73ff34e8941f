//! Manifests, live guests and contexts for the tests, and what PVE makes of a create.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proxops_kind::*;
use proxops_qemu::{TemplateVm, Vm};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

pub fn manifest(name: &str, spec: &Json) -> Manifest {
    Manifest {
        name: name.to_owned(),
        labels: vec![],
        annotations: vec![],
        spec: spec.to_string(),
        ext: vec![],
    }
}

/// A value as the host hands it over.
fn live_value(value: &Json) -> LiveValue {
    match value {
        Json::String(text) => LiveValue::Text(text.clone()),
        Json::Bool(flag) => LiveValue::Text(if *flag { "1" } else { "0" }.to_owned()),
        Json::Number(number) => LiveValue::Text(number.to_string()),
        other => LiveValue::Json(other.to_string()),
    }
}

/// A stopped guest 101 on pve01 with this configuration; `cipassword` becomes a secret that is there.
pub fn guest(config: &Json) -> LiveGuest {
    let config = config.as_object().expect("an object");
    LiveGuest {
        node: "pve01".into(),
        vmid: 101,
        name: config.get("name").and_then(Json::as_str).map(str::to_owned),
        power: LivePower::Stopped,
        template: config.get("template").is_some(),
        lock: None,
        values: config
            .iter()
            .filter(|(key, _)| *key != "cipassword")
            .map(|(key, value)| (key.clone(), live_value(value)))
            .collect(),
        secrets_present: config.keys().filter(|key| *key == "cipassword").cloned().collect(),
        pending: vec![],
        hidden: vec![],
        fresh_clone_of: None,
        ext: vec![],
    }
}

/// A cluster with some artifacts, a template and one SSH key.
pub fn context() -> Context {
    let resolved = |kind: &str, name: &str, attributes: &[(&str, &str)]| Resolved {
        to: ResourceRef::new(kind, name),
        attributes: attributes.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        ext: vec![],
    };
    Context {
        cluster: "lab".into(),
        pve_version: "9.2.3".into(),
        references: vec![
            resolved("ISO", "netinst", &[("volid", "local:iso/netinst.iso")]),
            resolved("ISO", "debian-13-netinst", &[("volid", "local:iso/debian-13.iso")]),
            resolved("DiskImage", "debian-13", &[("volid", "local:import/deb13.qcow2")]),
            resolved("TemplateVM", "tpl", &[("vmid", "9000"), ("node", "pve01")]),
        ],
        public_keys: vec![("cloud-init.ssh-keys.ops".into(), KEY_A.into())],
        ..Context::default()
    }
}

pub const KEY_A: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZpeHR1cmUta2V5LWZvci10ZXN0cy1vbmx5LTAwMDAwMDAx ops@a";
pub const KEY_B: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZpeHR1cmUta2V5LWZvci10ZXN0cy1vbmx5LTAwMDAwMDAy other";

/// The converged VM of the acceptance cases.
pub fn app_spec() -> Json {
    json!({
        "node": "pve01", "vmid": 101, "state": "stopped", "memory": "2GiB",
        "cpu": { "type": "host", "cores": 2 },
        "disks": [{ "storage": "local-lvm", "size": "32GiB", "interface": "scsi0", "controller": "virtio-scsi-single" }],
        "networks": [{ "model": "virtio", "bridge": "vmbr0" }],
    })
}

/// What PVE reports of it.
pub fn app_live() -> Json {
    json!({
        "boot": "order=scsi0;net0", "cores": 2, "cpu": "host", "memory": "2048",
        "meta": "creation-qemu=10.1.2,ctime=1760000000", "name": "app",
        "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0", "scsi0": "local-lvm:vm-101-disk-0,size=32G",
        "scsihw": "virtio-scsi-single", "smbios1": "uuid=11111111-2222-3333-4444-555555555555",
        "tags": "proxops", "vmgenid": "66666666-7777-8888-9999-000000000000",
    })
}

/// `base` with `over` merged in; `null` removes.
pub fn with(base: Json, over: Json) -> Json {
    match (base, over) {
        (Json::Object(mut base), Json::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    base.remove(&key);
                } else {
                    let old = base.remove(&key).unwrap_or(Json::Null);
                    base.insert(key, with(old, value));
                }
            }
            Json::Object(base)
        }
        (_, over) => over,
    }
}

pub fn vm_drift(spec: &Json, live: &LiveGuest) -> DriftReport {
    vm_drift_in(spec, live, &context())
}

pub fn vm_drift_in(spec: &Json, live: &LiveGuest, context: &Context) -> DriftReport {
    kind::drift::<Vm>(&manifest("app", spec), &Live::Guest(live.clone()), context).expect("a report")
}

pub fn template_drift(spec: &Json, live: &LiveGuest) -> DriftReport {
    kind::drift::<TemplateVm>(&manifest("tpl", spec), &Live::Guest(live.clone()), &context())
        .expect("a report")
}

/// What a report would write: parameters and the keys to remove.
pub fn writes(report: &DriftReport) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut set, mut unset) = (BTreeMap::new(), Vec::new());
    for step in &report.steps {
        if let Step::Configure(step) = step {
            for param in &step.set {
                set.insert(param.key.clone(), text_of(&param.value));
            }
            unset.extend(step.unset.iter().map(|p| p.key.clone()));
        }
    }
    (set, unset)
}

pub fn text_of(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Many(many) => many.join(","),
        Value::Secret(name) => format!("secret:{name}"),
        Value::Other(_) => "other".into(),
    }
}

pub fn create(spec: &Json) -> BTreeMap<String, String> {
    let creation = kind::create_params::<Vm>(&manifest("app", spec), &context()).expect("steps");
    match &creation.steps[0] {
        Step::Create(params) => params.iter().map(|p| (p.key.clone(), text_of(&p.value))).collect(),
        Step::Clone(step) => step.params.iter().map(|p| (p.key.clone(), text_of(&p.value))).collect(),
        other => panic!("{other:?}"),
    }
}

/// Nothing differs, nothing is pending, and no anomaly above info.
pub fn assert_clean(report: &DriftReport, what: &str) {
    assert_eq!(report.changes, vec![], "{what}");
    assert_eq!(report.steps, vec![], "{what}");
    assert_eq!(report.pending, vec![], "{what}");
    let loud: Vec<_> = report.anomalies.iter().filter(|a| a.severity != Severity::Info).collect();
    assert!(loud.is_empty(), "{what}: {loud:?}");
}

/// The configuration that PVE reports after a create with these parameters (facts Q5, Q10, Q19, Q35, Q36).
pub fn after_create(params: &BTreeMap<String, String>) -> Json {
    let mut out = serde_json::Map::new();
    let mut disks = 0;
    for (key, text) in params {
        let parts: Vec<&str> = text.split(',').collect();
        let is_drive =
            ["scsi", "virtio", "sata", "ide"].iter().any(|bus| live::slot_index(key, bus).is_some());
        let made = if is_drive || key == "efidisk0" || key == "tpmstate0" {
            let (storage, rest) = parts[0].split_once(':').unwrap_or((parts[0], ""));
            let mut options: Vec<String> = parts[1..].iter().map(|p| (*p).to_owned()).collect();
            options.retain(|o| !o.starts_with("import-from=") && !o.starts_with("format="));
            let volume = if rest == "cloudinit" {
                options.push("media=cdrom".into());
                format!("{storage}:vm-101-cloudinit")
            } else if let Ok(gib) = rest.parse::<f64>() {
                let bytes = match key.as_str() {
                    "efidisk0" | "tpmstate0" => 4 << 20,
                    _ if text.contains("import-from") => 64 << 30,
                    _ => (gib * (1u64 << 30) as f64) as u64,
                };
                options.push(format!("size={}", Size(bytes).pve()));
                disks += 1;
                format!("{storage}:vm-101-disk-{}", disks - 1)
            } else {
                parts[0].to_owned()
            };
            options.sort();
            [vec![volume], options].concat().join(",")
        } else if live::slot_index(key, "net").is_some() {
            match parts[0].split_once('=') {
                Some(_) => text.clone(),
                None => [
                    vec![format!("{}=BC:24:11:AA:BB:CC", parts[0])],
                    parts[1..].iter().map(|p| (*p).to_owned()).collect(),
                ]
                .concat()
                .join(","),
            }
        } else {
            text.clone()
        };
        match key.as_str() {
            "pool" => {}
            _ => {
                out.insert(key.clone(), Json::String(made));
            }
        }
    }
    out.insert("meta".into(), json!("creation-qemu=10.1.2,ctime=1760000000"));
    out.insert("smbios1".into(), json!("uuid=11111111-2222-3333-4444-555555555555"));
    out.insert("vmgenid".into(), json!("66666666-7777-8888-9999-000000000000"));
    Json::Object(out)
}

/// The first example of this name.
pub fn example(name: &str) -> Json {
    let info = kind::describe::<Vm>();
    info.examples
        .iter()
        .map(|text| serde_json::from_str::<Json>(text).expect("JSON"))
        .find(|m| m["metadata"]["name"] == name)
        .expect("an example")["spec"]
        .clone()
}
