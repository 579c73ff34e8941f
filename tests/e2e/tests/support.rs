//! Manifests that several subjects use.

use serde_json::{Value, json};

/// `a` with everything of `b` laid over it: maps are merged, all else is replaced, null removes.
pub fn merge(a: &mut Value, b: &Value) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in b {
                if value.is_null() {
                    a.remove(key);
                } else {
                    merge(a.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (a, b) => *a = b.clone(),
    }
}

/// A manifest.
pub fn manifest(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "proxops/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// A small stopped VM on pve01 with `over` laid over its spec.
pub fn vm(name: &str, vmid: u32, over: Value) -> Value {
    let mut spec = json!({
        "node": "pve01",
        "vmid": vmid,
        "state": "stopped",
        "memory": "512MiB",
        "cpu": {"type": "host", "cores": 2},
        "disks": [{"interface": "scsi0", "controller": "virtio-scsi-single", "storage": "local-lvm", "size": "1GiB"}],
        "networks": [{"slot": "net0", "bridge": "vmbr0"}],
    });
    merge(&mut spec, &over);
    manifest("VM", name, spec)
}

/// An ISO of pve01.
pub fn iso(name: &str) -> Value {
    let file = format!("{name}.iso");
    let url = format!("https://images.example.org/{file}");
    manifest("ISO", name, json!({"node": "pve01", "storage": "local", "filename": file, "url": url}))
}

/// A secrets document of these entries, `secrets.<key>` or any other dot path, for the tests' age key.
pub fn sops(entries: &[(&str, &str)]) -> String {
    use proxops_secrets::Value as Secret;
    let mut tree = Secret::Map(Vec::new());
    for (path, value) in entries {
        let mut at = &mut tree;
        for part in path.split('.') {
            let Secret::Map(entries) = at else { panic!("{path} goes through a value") };
            let index = entries.iter().position(|(key, _)| key == part).unwrap_or_else(|| {
                entries.push((part.to_owned(), Secret::Map(Vec::new())));
                entries.len() - 1
            });
            at = &mut entries[index].1;
        }
        *at = Secret::str(*value);
    }
    let key = crate::documents::age_key();
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    proxops_secrets::Document::create("secrets.sops.yaml", std::slice::from_ref(&key.1), &tree, now).unwrap()
}

/// A program that some tests need: named by this variable, or on the path. `None`, and lines that nobody overlooks,
/// where it is missing.
pub fn tool(variable: &str, name: &str, untested: &str) -> Option<std::path::PathBuf> {
    let given = std::env::var_os(variable).map(std::path::PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = std::env::split_paths(&path).map(|folder| folder.join(name));
    let found = given.into_iter().chain(usual).find(|program| program.is_file());
    if found.is_none() {
        eprintln!("==================================================================================");
        eprintln!(
            "SKIPPED: no {name} here, so {untested} NOT tested. Install it, or name one in {variable}."
        );
        eprintln!("==================================================================================");
    }
    found
}
