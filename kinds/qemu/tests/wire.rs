//! Every parameter that a create, clone or update sends is one that PVE 9.2 accepts. Runs where the
//! reference schema is (`PROXOPS_API_SCHEMA`, or `shared/pve` beside the repository), else does nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
use common::*;
use proxops_kind::{live::slot_index, props::Props, props::Table};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

fn schema() -> Option<Json> {
    let path = std::env::var("PROXOPS_API_SCHEMA").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/pve/api-9.2.3.json").to_owned()
    });
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

struct Api<'a> {
    all: &'a Json,
    method: &'a Json,
}

impl Api<'_> {
    fn parameter(&self, key: &str) -> Option<&Json> {
        let parameters = self.method["parameters"].as_object().expect("parameters");
        parameters.get(key).or_else(|| {
            parameters.iter().find_map(|(name, schema)| {
                let n = slot_index(key, name.strip_suffix("[n]")?)?;
                let range = schema["indexed"].as_array()?;
                (range[0].as_u64()? <= n.into() && u64::from(n) <= range[1].as_u64()?).then_some(schema)
            })
        })
    }

    fn problem(&self, key: &str, text: &str) -> Option<String> {
        let Some(schema) = self.parameter(key) else { return Some(format!("{key}: unknown parameter")) };
        self.value(schema, text).map(|p| format!("{key}={text}: {p}"))
    }

    fn value(&self, schema: &Json, text: &str) -> Option<String> {
        let format = match &schema["format"] {
            Json::String(name) => &self.all["formats"][name]["properties"],
            inline => inline,
        };
        if let Some(table) = format.as_object() {
            return self.properties(table, text);
        }
        if let Some(choices) = schema["enum"].as_array() {
            return (!choices.iter().any(|c| c == text)).then(|| "not a choice".to_owned());
        }
        match schema["type"].as_str() {
            Some("boolean") => (text != "0" && text != "1").then(|| "no boolean".to_owned()),
            Some("integer") if text.parse::<i64>().is_err() => Some("no integer".to_owned()),
            Some("number") if text.parse::<f64>().is_err() => Some("no number".to_owned()),
            Some("integer" | "number") => {
                let n: f64 = text.parse().expect("a number");
                let low = schema["minimum"].as_f64().is_some_and(|low| n < low);
                let high = schema["maximum"].as_f64().is_some_and(|high| n > high);
                (low || high).then(|| "out of range".to_owned())
            }
            _ => None,
        }
    }

    fn properties(&self, table: &serde_json::Map<String, Json>, text: &str) -> Option<String> {
        static ANY: Table = Table { default_key: None, aliases: &[] };
        let default =
            table.iter().find(|(_, s)| s["default_key"].as_bool() == Some(true)).map(|(k, _)| k.as_str());
        let mut seen: Vec<String> = Vec::new();
        for (key, value) in Props::parse(text, &ANY).iter() {
            let key = if key.is_empty() { default.unwrap_or_default() } else { key };
            let Some(mut schema) = table.get(key) else { return Some(format!("unknown option {key:?}")) };
            let mut name = key;
            if let Some(alias) = schema["alias"].as_str() {
                seen.extend(schema["keyAlias"].as_str().map(str::to_owned));
                name = alias;
                schema = table.get(alias)?;
            }
            if seen.iter().any(|s| s == name) {
                return Some(format!("{name} twice"));
            }
            seen.push(name.to_owned());
            if let Some(problem) = self.value(schema, value) {
                return Some(format!("{key}: {problem}"));
            }
        }
        let missing = table.iter().find(|(name, s)| {
            s["optional"].as_bool() != Some(true) && s["alias"].is_null() && !seen.iter().any(|k| k == *name)
        });
        missing.map(|(name, _)| format!("{name} is missing"))
    }
}

fn check(all: &Json, method: &str, params: &BTreeMap<String, String>) {
    let api = Api { all, method: &all["methods"][method] };
    let problems: Vec<String> = params.iter().filter_map(|(k, v)| api.problem(k, v)).collect();
    assert_eq!(problems, Vec::<String>::new(), "{method}");
}

fn rich() -> Vec<Json> {
    let device = |over: Json| with(example("full"), over);
    vec![
        example("minimal"),
        example("full"),
        device(
            json!({ "balloon": 0, "hugepages": 2, "keep-hugepages": true, "cpu": { "affinity": "0-3", "hidden": true, "nested-virt": true } }),
        ),
        device(
            json!({ "hardware": { "pci-devices": [{ "device": "01:00.0", "x-vga": true, "mdev": "nvidia-63" }], "usb-devices": [{ "host": "spice" }],
                       "display": "serial0", "serial0": "/dev/ttyS0", "machine": "i440fx", "efi-disk": { "secure-boot": "disabled", "type": "2m" } } }),
        ),
        device(
            json!({ "options": { "agent": false, "startup": 4, "hotplug": [], "boot-order": "scsi0", "localtime": true, "hookscript": "local:snippets/a.pl" } }),
        ),
        device(
            json!({ "cloud-init-data": { "ssh-key-refs": null, "ssh-keys": [KEY_A, KEY_B], "custom": { "user": "local:snippets/u.yaml" }, "ipconfigs": [{ "ip6": "2001:db8::2/64", "gateway6": "2001:db8::1" }] } }),
        ),
        device(json!({ "disks": [
            { "interface": "ide0", "storage": "local-lvm", "size": "3.5GiB", "ssd": true, "format": "raw" },
            { "interface": "sata1", "storage": "local-lvm", "size": "1GiB", "aio": "native", "cache": "none" },
            { "interface": "virtio0", "volume": "/dev/sdb", "read-only": true },
        ], "options": { "boot-order": "ide0" } })),
    ]
}

#[test]
fn creates_are_accepted() {
    let Some(all) = schema() else { return };
    for spec in rich() {
        check(&all, "/nodes/{node}/qemu POST", &create(&spec));
    }
}

#[test]
fn clones_are_accepted() {
    let Some(all) = schema() else { return };
    let spec = with(example("clone"), json!({ "clone-format": "qcow2", "pool": "web", "clone": "tpl" }));
    check(&all, "/nodes/{node}/qemu/{vmid}/clone POST", &create(&spec));
}

#[test]
fn updates_are_accepted() {
    let Some(all) = schema() else { return };
    // From a bare guest to each manifest, and from each manifest's guest to the next one.
    let mut lives = vec![json!({ "name": "app" })];
    lives.extend(rich().iter().map(|spec| after_create(&create(spec))));
    for spec in rich() {
        for live in &lives {
            let context = proxops_kind::Context { root: true, ..context() };
            let live = proxops_kind::Live::Guest(guest(live));
            let report =
                proxops_kind::kind::drift::<proxops_qemu::Vm>(&manifest("app", &spec), &live, &context)
                    .expect("a report");
            let (set, unset) = writes(&report);
            check(&all, "/nodes/{node}/qemu/{vmid}/config PUT", &set);
            assert!(unset.iter().all(|key| !set.contains_key(key)));
        }
    }
}
