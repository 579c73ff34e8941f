//! Every field of ISO, DiskImage and CTTemplate. A file is downloaded where it is absent and never changed: present is
//! converged, whatever else the manifest says.

use crate::support::{manifest, merge};
use proxops_e2e::{Bench, CLUSTER, field_paths};
use proxops_sim::seed;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const KINDS: [(&str, &str, &str); 3] =
    [("ISO", "iso", ".iso"), ("DiskImage", "diskimage", ".qcow2"), ("CTTemplate", "ctt", ".tar.zst")];

/// Field, further parts of the spec, first and second value, and whether another value is another file.
fn rows(end: &str) -> Vec<(&'static str, Value, Value, Value, bool)> {
    let sum = |digit: &str| json!({"algorithm": "sha256", "value": digit.repeat(64)});
    let mut rows = vec![
        ("node", json!({}), json!("pve01"), json!("pve02"), true),
        ("nodes", json!({"node": null}), json!(["pve01"]), json!(["pve01", "pve03"]), true),
        ("storage", json!({}), json!("local"), json!("nfs"), true),
        ("filename", json!({}), json!(format!("one{end}")), json!(format!("two{end}")), true),
        (
            "url",
            json!({}),
            json!(format!("https://a.example.org/x{end}")),
            json!(format!("https://b.example.org/x{end}")),
            false,
        ),
        (
            "checksum.algorithm",
            json!({}),
            sum("a"),
            json!({"algorithm": "md5", "value": "b".repeat(32)}),
            false,
        ),
        ("checksum.value", json!({}), sum("a"), sum("b"), false),
        ("verify-certificates", json!({}), json!(false), json!(true), false),
    ];
    if end == ".iso" {
        rows.push(("compression", json!({}), json!("gz"), json!("zst"), false));
    }
    rows
}

fn artifact(kind: &str, number: usize, end: &str, field: &str, with: &Value, value: &Value) -> Value {
    let file = format!("field-{number}{end}");
    let mut spec = json!({
        "node": "pve01", "storage": "local", "filename": file, "url": format!("https://images.example.org/{file}"),
    });
    merge(&mut spec, with);
    // The two parts of a checksum belong together.
    let key = field.split('.').next().unwrap();
    merge(&mut spec, &json!({ key: value }));
    manifest(kind, &format!("field-{number}"), spec)
}

#[test]
fn every_field_of_an_artifact_converges_when_it_is_set_and_when_it_is_changed() {
    let mut bench = Bench::new(seed::empty());
    let write = |bench: &mut Bench, second: bool| {
        for (kind, root, end) in KINDS {
            let documents: Vec<Value> = rows(end)
                .iter()
                .enumerate()
                .map(|(n, (field, with, a, b, _))| {
                    artifact(kind, n, end, field, with, if second { b } else { a })
                })
                .collect();
            bench.documents(&format!("{root}/{CLUSTER}/all.yaml"), &documents);
        }
    };
    write(&mut bench, false);
    assert_eq!(bench.errors(), [""; 0]);
    bench.apply().exits(0);
    bench.converged();
    write(&mut bench, true);
    let mut expected: Vec<String> = KINDS
        .iter()
        .flat_map(|(kind, _, end)| {
            let other = rows(end).into_iter().enumerate().filter(|(_, row)| row.4);
            other.map(|(n, _)| format!("download {kind}/field-{n}")).collect::<Vec<_>>()
        })
        .collect();
    expected.sort();
    let mut planned = bench.diff().actions();
    planned.sort();
    assert_eq!(planned, expected);
    bench.writes();
    bench.apply().exits(0);
    assert!(bench.writes().iter().all(|w| w.path.ends_with("/download-url")), "an artifact is never deleted");
    bench.converged();
}

#[test]
fn the_table_has_every_field_of_the_artifacts_schemas() {
    for (kind, _, end) in KINDS {
        let covered: BTreeSet<String> = rows(end).iter().map(|row| row.0.to_owned()).collect();
        assert_eq!(covered, field_paths(kind), "{kind}");
    }
}
