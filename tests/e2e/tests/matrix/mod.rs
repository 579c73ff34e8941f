//! `apply`, then `diff` is empty: for every field of VM, ISO and DiskImage, set and then changed.
//!
//! One guest a field, all in one repository, so that one apply and one diff cover the whole table. That every field of
//! the kind's own schema is in the table is a test too.

mod artifact_fields;
mod vm_fields;

use crate::support::{manifest, vm};
use proxops_e2e::{Bench, CLUSTER, Run, field_paths};
use proxops_sim::{Storage, World, seed};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use vm_fields::{ROWS, Row, Then};

/// `value` at a path such as `disks[].cache`, in the first element of a list.
fn nested(path: &str, value: Value) -> Value {
    match path.split_once('.') {
        None => json!({ path: value }),
        Some((first, rest)) => match first.strip_suffix("[]") {
            Some(list) => json!({ list: [nested(rest, value)] }),
            None => json!({ first: nested(rest, value) }),
        },
    }
}

/// `over` laid over `spec`: null removes, and the first elements of two lists are merged.
fn lay(spec: &mut Value, over: &Value) {
    match (spec, over) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in b {
                if value.is_null() {
                    a.remove(key);
                } else {
                    lay(a.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.first().is_some_and(Value::is_object) => {
            b.iter().take(1).for_each(|value| lay(&mut a[0], value));
        }
        (a, b) => *a = b.clone(),
    }
}

fn text(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

/// The manifest of a row: its setting, and the field with one of its two values. JSON null leaves it out.
fn guest(row: &Row, number: usize, state: &str, value: &str) -> Value {
    let vmid = 1000 + u32::try_from(number).unwrap();
    let node = seed::NODES[number % 3];
    let mut manifest = vm(&format!("field-{number:03}"), vmid, json!({"node": node, "state": state}));
    let spec = &mut manifest["spec"];
    lay(spec, &text(row.with));
    let value = text(&value.replace("{vmid}", &vmid.to_string()).replace("{node}", node));
    if !value.is_null() {
        lay(spec, &nested(row.field, value));
    }
    if spec.get("clone").is_some() {
        spec.as_object_mut().unwrap().remove("disks");
    }
    manifest
}

/// What the table's values need: templates, images, files, pools, volumes.
fn world() -> World {
    let mut world = seed::empty();
    for node in seed::NODES {
        for file in [
            "iso/a.iso",
            "iso/b.iso",
            "import/a.qcow2",
            "import/b.qcow2",
            "snippets/a.yaml",
            "snippets/b.yaml",
        ] {
            let size = if file.starts_with("import") { 400 << 20 } else { 1 << 20 };
            let file = world.add_file("nfs", node, file, size);
            if file.content == "import" {
                file.virtual_size = Some(1 << 30);
            }
        }
    }
    world.add_storage("other", Storage::new("lvmthin", "images,rootdir", 2000));
    for pool in ["one", "two"] {
        world.pools.insert(pool.to_owned(), Default::default());
    }
    world
}

/// Templates and artifacts that the rows refer to. Templates lie on shared storage, for any node to clone.
fn prerequisites() -> Vec<Value> {
    let disks =
        json!([{"interface": "scsi0", "controller": "virtio-scsi-single", "storage": "nfs", "size": "1GiB"}]);
    let template = |name: &str, vmid: u32| {
        let mut manifest = vm(name, vmid, json!({ "disks": disks }));
        manifest["kind"] = json!("TemplateVM");
        manifest
    };
    let artifact = |kind: &str, name: &str, file: String| {
        manifest(kind, name, json!({"nodes": seed::NODES, "storage": "nfs", "filename": file}))
    };
    let mut all = vec![template("template-a", 900), template("template-b", 901)];
    for name in ["a", "b"] {
        all.push(artifact("ISO", name, format!("{name}.iso")));
        all.push(artifact("DiskImage", name, format!("{name}.qcow2")));
    }
    all
}

fn write(bench: &mut Bench, documents: &[Value]) {
    let mut by_kind: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for document in documents {
        let root = match document["kind"].as_str().unwrap() {
            "VM" => "vm",
            "TemplateVM" => "templatevm",
            "ISO" => "iso",
            _ => "diskimage",
        };
        by_kind.entry(root).or_default().push(document.clone());
    }
    for (root, documents) in by_kind {
        bench.documents(&format!("{root}/{CLUSTER}/all.yaml"), &documents);
    }
}

/// Anomaly codes by the number of the row whose guest has them.
fn anomalies(run: &Run) -> BTreeMap<usize, BTreeSet<String>> {
    let mut found: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for anomaly in run.list("anomalies") {
        let number = number_of(anomaly["name"].as_str().unwrap()).unwrap_or_else(|| panic!("{anomaly}"));
        found.entry(number).or_default().insert(anomaly["code"].as_str().unwrap().to_owned());
    }
    found
}

fn number_of(name: &str) -> Option<usize> {
    name.strip_prefix("field-")?.parse().ok()
}

/// Verbs of the plan by the number of the row.
fn verbs(run: &Run) -> BTreeMap<usize, Vec<String>> {
    let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for action in run.list("actions") {
        let number = number_of(action["name"].as_str().unwrap()).unwrap_or_else(|| panic!("{action}"));
        found.entry(number).or_default().push(action["verb"].as_str().unwrap().to_owned());
    }
    found
}

/// Whether one of an action's changes is about a field of the spec, or about the part that it lies in.
fn names(action: &Value, field: &str) -> bool {
    let pointer = format!("/spec/{}", field.replace("[]", "/0").replace('.', "/"));
    action["changes"].as_array().unwrap().iter().any(|change| {
        let at = change["field"].as_str().unwrap();
        pointer.starts_with(at) || at.starts_with(&pointer)
    })
}

/// Every action ended well.
#[track_caller]
fn well(applied: &Run) {
    let failed: Vec<String> = applied
        .failures()
        .iter()
        .map(|text| {
            let number = text.split([':', '/']).nth(1).and_then(number_of);
            format!("{}: {text}", number.map_or("-", |n| ROWS[n].field))
        })
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(applied.code, 0, "{applied}");
}

/// Creates every row's guest with the field's first value, and changes all to the second.
fn set_then_change(state: &str) {
    let running = state == "started";
    let mut bench = Bench::new(world()).as_root();
    bench.set("SOPS_AGE_KEY", &crate::documents::age_key().0);
    bench.configure(&crate::documents::SECRETS_LINES);
    bench.write(&format!("clusters/{CLUSTER}/secrets.sops.yaml"), crate::documents::secrets_document());
    {
        // Volumes that rows attach.
        let mut world = bench.world();
        for (number, _) in ROWS.iter().enumerate().filter(|(_, row)| row.field == "disks[].volume") {
            for disk in [8, 9] {
                let volid = format!("nfs:{0}/vm-{0}-disk-{disk}.raw", 1000 + number);
                let mut volume = world.add_file("nfs", "pve01", "iso/any.iso", 1 << 30).clone();
                volume.content = "images".to_owned();
                volume.format = "raw".to_owned();
                volume.vmid = Some(1000 + u32::try_from(number).unwrap());
                world.put_volume(&volid, "pve01", volume);
            }
        }
    }
    let opposite = |state: &str| if state == "started" { r#""stopped""# } else { r#""started""# };
    let rows = |second: bool| -> Vec<Value> {
        let value = |row: &Row| match (row.field, second) {
            ("state", false) => format!("\"{state}\""),
            ("state", true) => opposite(state).to_owned(),
            (_, false) => row.first.to_owned(),
            (_, true) => row.second.to_owned(),
        };
        ROWS.iter().enumerate().map(|(number, row)| guest(row, number, state, &value(row))).collect()
    };
    let field = |number: usize| ROWS[number].field;

    write(&mut bench, &[prerequisites(), rows(false)].concat());
    assert!(bench.errors().is_empty(), "{}", bench.run(&["validate"]));
    well(&bench.apply());
    let first = bench.diff();
    assert_eq!(first.actions(), [""; 0], "after the first apply: {first}");
    assert_eq!(anomalies(&first), BTreeMap::new(), "after the first apply: {first}");

    write(&mut bench, &rows(true));
    bench.writes();
    let change = bench.diff();
    let planned = verbs(&change);
    let mut wrong = Vec::new();
    for (number, row) in ROWS.iter().enumerate() {
        let verbs = planned.get(&number).map_or(&[][..], Vec::as_slice);
        let fits = match row.then {
            Then::Converges | Then::Leaves(_) => verbs.len() == 1,
            Then::Fixed(_) | Then::Ignored => verbs.is_empty(),
        };
        if !fits {
            wrong.push(format!("{}: {verbs:?} planned, expected {:?}", row.field, row.then));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for action in change.list("actions") {
        let field = field(number_of(action["name"].as_str().unwrap()).unwrap());
        assert!(field == "state" || names(&action, field), "the change of {field} is not named: {action:#}");
    }

    well(&bench.apply());

    // A field that only creation can set was not written at all.
    let written: BTreeSet<usize> = bench
        .writes()
        .iter()
        .filter_map(|w| w.path.split('/').nth(4)?.parse::<usize>().ok())
        .filter_map(|vmid| vmid.checked_sub(1000))
        .collect();
    let touched: Vec<&str> = written
        .iter()
        .filter(|number| matches!(ROWS[**number].then, Then::Fixed(_) | Then::Ignored))
        .map(|number| field(*number))
        .collect();
    assert!(touched.is_empty(), "written although only creation sets them: {touched:?}");

    let second = bench.diff();
    let left = verbs(&second);
    let again: Vec<String> = left.iter().map(|(n, verbs)| format!("{}: {verbs:?}", field(*n))).collect();
    assert!(again.is_empty(), "planned again after the second apply: {again:#?}\n{second}");
    let said = anomalies(&second);
    let mut wrong = Vec::new();
    for (number, row) in ROWS.iter().enumerate() {
        let expected: BTreeSet<String> = match row.then {
            Then::Fixed(code) | Then::Leaves(code) => BTreeSet::from([code.to_owned()]),
            Then::Converges | Then::Ignored => BTreeSet::new(),
        };
        let got = said.get(&number).cloned().unwrap_or_default();
        if got != expected {
            wrong.push(format!("{}: anomalies {got:?}, expected {expected:?}", row.field));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let pending = second.list("pending");
    if !running {
        assert_eq!(pending, [json!(null); 0], "nothing is pending on a stopped guest");
        return;
    }
    // What PVE holds back is gone after a restart, and is what the manifest says.
    assert!(!pending.is_empty(), "{second}");
    let started: Vec<(u32, String)> =
        bench.world().guests.values().filter(|g| g.running).map(|g| (g.vmid, g.node.clone())).collect();
    assert!(started.len() > ROWS.len() / 2);
    for (vmid, node) in started {
        for verb in ["stop", "start"] {
            bench.meddle("POST", &format!("/nodes/{node}/qemu/{vmid}/status/{verb}"), json!({}));
        }
    }
    let third = bench.diff();
    assert_eq!(third.actions(), [""; 0], "after a restart: {third}");
    assert_eq!(third.list("pending"), [json!(null); 0], "after a restart: {third}");
    assert_eq!(anomalies(&third), said, "after a restart: {third}");
}

#[test]
fn every_field_of_a_stopped_vm_converges_when_it_is_set_and_when_it_is_changed() {
    set_then_change("stopped");
}

#[test]
fn every_field_of_a_running_vm_converges_or_waits_for_a_restart() {
    set_then_change("started");
}

#[test]
fn the_table_has_every_field_of_the_vms_schema() {
    let mut covered: BTreeSet<String> = ROWS.iter().map(|row| row.field.to_owned()).collect();
    for (field, why) in vm_fields::NOT_COMPARED {
        assert!(!why.is_empty());
        assert!(covered.insert((*field).to_owned()), "{field} is in the table and in the list of exceptions");
    }
    assert_eq!(covered, field_paths("VM"));
    // One spec serves both kinds.
    assert_eq!(covered, field_paths("TemplateVM"));
}

#[test]
fn a_rows_two_values_differ() {
    for row in ROWS {
        assert_ne!(
            text(&row.first.replace("{vmid}", "1")),
            text(&row.second.replace("{vmid}", "1")),
            "{}",
            row.field
        );
        text(row.with);
    }
}
