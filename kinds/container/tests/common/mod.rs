//! Builders and a small model of what PVE makes of a container's configuration.
#![allow(dead_code)]

use proxops_container::{Lxc, TemplateCt};
use proxops_kind::kind;
use proxops_kind::*;
use serde_json::{Value as Json, json};

/// The converged container of the acceptance base: manifest and report.
pub fn spec() -> Json {
    json!({
        "node": "pve01", "vmid": 201, "state": "stopped", "memory": "512MiB", "swap": "512MiB",
        "cpu": { "cores": 1 }, "template": "deb13", "root": { "storage": "local-lvm", "size": "8GiB" },
        "networks": [{ "bridge": "vmbr0", "iface": "eth0" }], "options": { "unprivileged": true },
    })
}

/// The base with some fields replaced; null removes one.
pub fn spec_with(fields: Json) -> Json {
    let mut spec = spec();
    for (key, value) in fields.as_object().unwrap() {
        if value.is_null() {
            spec.as_object_mut().unwrap().remove(key);
        } else {
            spec[key] = value.clone();
        }
    }
    spec
}

pub fn manifest(spec: Json) -> Manifest {
    let (labels, annotations) = (vec![], vec![]);
    Manifest { name: "cache".into(), labels, annotations, spec: spec.to_string(), ext: vec![] }
}

pub fn config() -> Vec<(String, LiveValue)> {
    [
        ("arch", "amd64"),
        ("cores", "1"),
        ("hostname", "cache"),
        ("memory", "512"),
        ("net0", "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,type=veth"),
        ("ostype", "debian"),
        ("rootfs", "local-lvm:vm-201-disk-0,size=8G"),
        ("swap", "512"),
        ("tags", "proxops"),
        ("unprivileged", "1"),
    ]
    .map(|(k, v)| (k.to_owned(), LiveValue::Text(v.to_owned())))
    .to_vec()
}

pub fn guest(values: Vec<(String, LiveValue)>) -> LiveGuest {
    LiveGuest {
        node: "pve01".into(),
        vmid: 201,
        name: Some("cache".into()),
        power: LivePower::Stopped,
        template: false,
        lock: None,
        values,
        secrets_present: vec![],
        pending: vec![],
        hidden: vec![],
        fresh_clone_of: None,
        ext: vec![],
    }
}

/// The base report with some keys replaced; an empty text removes one.
pub fn live_with(keys: &[(&str, &str)]) -> LiveGuest {
    let mut values = config();
    for (key, value) in keys {
        values.retain(|(k, _)| k != key);
        if !value.is_empty() {
            values.push(((*key).to_owned(), LiveValue::Text((*value).to_owned())));
        }
    }
    values.sort_by(|a, b| a.0.cmp(&b.0));
    guest(values)
}

pub fn context() -> Context {
    let resolved = |kind: &str, name: &str, pairs: &[(&str, &str)]| Resolved {
        to: ResourceRef::new(kind, name),
        attributes: pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        ext: vec![],
    };
    Context {
        references: vec![
            resolved("CTTemplate", "deb13", &[("volid", "local:vztmpl/deb13.tar.zst")]),
            resolved("CTTemplate", "debian-13", &[("volid", "local:vztmpl/debian-13.tar.zst")]),
            resolved("TemplateCT", "base", &[("vmid", "9100"), ("node", "pve01")]),
        ],
        public_keys: vec![("cloud-init.ssh-keys.ops".into(), "ssh-ed25519 AAAA ops\n".into())],
        ..Context::default()
    }
}

pub fn root() -> Context {
    Context { root: true, ..context() }
}

pub fn validate(spec: Json) -> Validation {
    kind::validate::<Lxc>(&manifest(spec))
}

pub fn errors(validation: &Validation) -> Vec<(String, String)> {
    let errors = validation.diagnostics.iter().filter(|d| d.severity == Severity::Error);
    errors.map(|d| (d.at.clone(), format!("{} {}", d.message, d.help.clone().unwrap_or_default()))).collect()
}

pub fn drift(spec: Json, live: LiveGuest, context: &Context) -> DriftReport {
    kind::drift::<Lxc>(&manifest(spec), &Live::Guest(live), context).unwrap()
}

pub fn template_drift(spec: Json, live: LiveGuest, context: &Context) -> DriftReport {
    kind::drift::<TemplateCt>(&manifest(spec), &Live::Guest(live), context).unwrap()
}

pub fn create(spec: Json, context: &Context) -> Result<Creation, Refusal> {
    kind::create_params::<Lxc>(&manifest(spec), context)
}

/// What is set by the only configuration step.
pub fn set(report: &DriftReport) -> Vec<(String, String)> {
    let mut out = vec![];
    for step in &report.steps {
        if let Step::Configure(write) = step {
            out.extend(write.set.iter().map(|p| (p.key.clone(), text(&p.value))));
        }
    }
    out.sort();
    out
}

pub fn unset(report: &DriftReport) -> Vec<String> {
    let writes = report.steps.iter().filter_map(|s| if let Step::Configure(w) = s { Some(w) } else { None });
    writes.flat_map(|w| w.unset.iter().map(|p| p.key.clone())).collect()
}

pub fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Secret(name) => format!("secret:{name}"),
        other => panic!("{other:?}"),
    }
}

pub fn is_clean(report: &DriftReport) -> bool {
    report.changes.is_empty()
        && report.steps.is_empty()
        && report.anomalies.is_empty()
        && report.pending.is_empty()
}

/// Only this anomaly, and nothing to write.
pub fn only_anomaly(report: &DriftReport) -> String {
    assert!(report.changes.is_empty() && report.steps.is_empty(), "{report:?}");
    let [anomaly] = &report.anomalies[..] else { panic!("{:?}", report.anomalies) };
    assert_eq!(anomaly.severity, Severity::Warning);
    format!("{} {} {}", anomaly.code, anomaly.message, anomaly.help.clone().unwrap_or_default())
}

/// What PVE reports after a create (facts L1, L4, L9, L10, L16, L37).
pub fn created(params: &[Param]) -> LiveGuest {
    let mut values = vec![];
    for param in params {
        if !["ostemplate", "password", "ssh-public-keys", "pool"].contains(&param.key.as_str()) {
            values.push((param.key.clone(), text(&param.value)));
        }
    }
    for (key, default) in [
        ("unprivileged", "1"),
        ("memory", "512"),
        ("swap", "512"),
        ("arch", "amd64"),
        ("ostype", "debian"),
        ("hostname", "CT201"),
    ] {
        if !values.iter().any(|(k, _)| k == key) {
            values.push((key.to_owned(), default.to_owned()));
        }
    }
    guest(stored(values))
}

/// What PVE reports after a configuration write.
pub fn applied(mut live: LiveGuest, report: &DriftReport) -> LiveGuest {
    let mut values: Vec<(String, String)> = live
        .values
        .iter()
        .map(|(k, v)| match v {
            LiveValue::Text(text) => (k.clone(), text.clone()),
            LiveValue::Json(json) => (k.clone(), json.clone()),
        })
        .collect();
    for step in &report.steps {
        match step {
            Step::Configure(write) => {
                let gone: Vec<&String> = write.unset.iter().map(|p| &p.key).collect();
                values.retain(|(k, _)| !gone.contains(&k) && !write.set.iter().any(|p| p.key == *k));
                values.extend(write.set.iter().map(|p| (p.key.clone(), text(&p.value))));
            }
            Step::Resize(resize) => {
                let (_, value) = values.iter_mut().find(|(k, _)| *k == resize.disk).unwrap();
                let kept: Vec<&str> = value.split(',').filter(|t| !t.starts_with("size=")).collect();
                *value = format!("{},size={}", kept.join(","), Size(resize.bytes).pve());
            }
            Step::MarkTemplate => live.template = true,
            other => panic!("{other:?}"),
        }
    }
    live.values = stored(values);
    live
}

/// PVE's rewrites: allocation, size, generated addresses, the newline after a description.
fn stored(values: Vec<(String, String)>) -> Vec<(String, LiveValue)> {
    let mut disks = 10;
    let mut out: Vec<(String, LiveValue)> = values
        .into_iter()
        .map(|(key, value)| {
            let (first, rest) = value.split_once(',').map_or((&*value, ""), |(f, r)| (f, r));
            let new = match key.trim_end_matches(|c: char| c.is_ascii_digit()) {
                "rootfs" | "mp" => match first.split_once(':').map(|(s, n)| (s, n.parse::<f64>())) {
                    Some((storage, Ok(gib))) => {
                        disks += 1;
                        let mut tokens: Vec<&str> = rest.split(',').filter(|t| !t.is_empty()).collect();
                        tokens.sort_unstable_by_key(|t| (!t.starts_with("mp="), *t));
                        tokens.insert(0, "");
                        let size = Size((gib * 1024.0) as u64 * size::MIB).pve();
                        format!("{storage}:vm-201-disk-{disks}{},size={size}", tokens.join(","))
                    }
                    _ => value.clone(),
                },
                "net" if !value.contains("hwaddr=") => {
                    let mut tokens: Vec<&str> = value.split(',').collect();
                    tokens.push("hwaddr=BC:24:11:AA:BB:CC");
                    tokens.sort_unstable_by_key(|t| (!t.starts_with("name="), *t));
                    tokens.join(",")
                }
                "description" => format!("{}\n", value.trim_end()),
                _ => value.clone(),
            };
            (key, LiveValue::Text(new))
        })
        .collect();
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}
