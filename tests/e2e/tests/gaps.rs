//! `GAPS.md` has one row for each PVE key that a guest can be created or configured with, and no other. The keys come
//! from the API schema, which is not part of the project: without it this test says so and passes.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The schema, if it is on this machine.
fn schema() -> Option<Value> {
    let shared = std::env::var_os("PROXOPS_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let file = shared.join("pve/api-9.2.3.json");
    match std::fs::read(&file) {
        Ok(bytes) => Some(serde_json::from_slice(&bytes).expect("the API schema is JSON")),
        Err(error) => {
            eprintln!("note: {}: {error}; GAPS.md is not compared with the API schema", file.display());
            None
        }
    }
}

/// Parameters of create and of both config calls of a guest type.
fn schema_keys(schema: &Value, guest_type: &str) -> BTreeSet<String> {
    let base = format!("/nodes/{{node}}/{guest_type}");
    let methods = schema["methods"].as_object().expect("methods by name");
    [format!("{base} POST"), format!("{base}/{{vmid}}/config PUT"), format!("{base}/{{vmid}}/config POST")]
        .iter()
        .filter_map(|name| methods.get(name)?["parameters"].as_object())
        .flat_map(|parameters| parameters.keys().cloned())
        .collect()
}

/// Key to verdict, of the table under `## <section>`.
fn rows(section: &str) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(root().join("GAPS.md")).expect("GAPS.md");
    let heading = format!("## {section}");
    let mut found = BTreeMap::new();
    let body = text.lines().skip_while(|line| line.trim_end() != heading).skip(1);
    for line in body.take_while(|line| !line.starts_with("## ")) {
        let Some(row) = line.strip_prefix("| `") else { continue };
        let mut cells = row.split('|').map(str::trim);
        let key = cells.next().unwrap_or_default().trim_end_matches('`').to_owned();
        let verdict = cells.next().unwrap_or_default().to_owned();
        assert!(found.insert(key.clone(), verdict).is_none(), "GAPS.md, {section}: two rows for {key}");
    }
    assert!(!found.is_empty(), "GAPS.md has no table under {heading}");
    found
}

/// All Rust text of a crate's `src`.
fn source(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("source folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            source(&path, text);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text.push_str(&std::fs::read_to_string(&path).expect("source file"));
        }
    }
}

const TYPES: [&str; 2] = ["qemu", "lxc"];

#[test]
fn every_key_of_the_schema_has_a_row_and_every_row_is_a_key_of_the_schema() {
    let Some(schema) = schema() else { return };
    for guest_type in TYPES {
        let wanted = schema_keys(&schema, guest_type);
        assert!(wanted.len() > 40, "{guest_type}: the schema has only {} keys", wanted.len());
        let rows: BTreeSet<String> = rows(guest_type).into_keys().collect();
        let missing: Vec<&String> = wanted.difference(&rows).collect();
        let unknown: Vec<&String> = rows.difference(&wanted).collect();
        assert!(missing.is_empty(), "GAPS.md, {guest_type}: no row for {missing:?}");
        assert!(unknown.is_empty(), "GAPS.md, {guest_type}: the schema has no {unknown:?}");
    }
}

#[test]
fn a_verdict_is_one_of_three_words() {
    for guest_type in TYPES {
        for (key, verdict) in rows(guest_type) {
            let known = ["modelled", "bookkeeping", "gap"].contains(&verdict.as_str());
            assert!(known, "GAPS.md, {guest_type}, {key}: {verdict:?} is no verdict");
        }
    }
}

#[test]
fn a_key_that_is_said_to_be_modelled_stands_in_its_kinds_source() {
    for (guest_type, folder) in TYPES.into_iter().zip(["kinds/qemu/src", "kinds/container/src"]) {
        let mut text = String::new();
        source(&root().join(folder), &mut text);
        for (key, verdict) in rows(guest_type) {
            let family = format!("\"{}\"", key.trim_end_matches("[n]"));
            assert!(verdict != "modelled" || text.contains(&family), "{folder} does not name {family}");
        }
    }
}
