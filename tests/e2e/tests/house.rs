//! The table of docs/contributors.md: which room may use which. A new edge is a decision, so it fails here first.

use proxops_e2e::root;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Room to the rooms it may import, of the table in docs/contributors.md, and all rooms in their order there.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("docs/contributors.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells: Vec<(String, String)> = rows
        .map(|row| {
            let mut cells = row.split('|').map(str::trim);
            let room = cells.next().unwrap_or_default().trim_end_matches('`').to_owned();
            (room, cells.nth(1).unwrap_or_default().to_owned())
        })
        .collect();
    assert!(cells.len() >= 10, "docs/contributors.md has no table of rooms: {cells:?}");
    let names: Vec<&String> = cells.iter().map(|(room, _)| room).collect();
    let mut allowed = BTreeMap::new();
    for (i, (room, may)) in cells.iter().enumerate() {
        let rooms: BTreeSet<String> = match may.as_str() {
            "-" => BTreeSet::new(),
            "all" => names.iter().filter(|n| **n != room).map(|n| (*n).clone()).collect(),
            "all above" => names[..i].iter().map(|n| (*n).clone()).collect(),
            list => list.split(", ").map(str::to_owned).collect(),
        };
        for name in &rooms {
            assert!(
                names.contains(&name),
                "docs/contributors.md: {room} may import {name}, which is no room"
            );
        }
        allowed.insert(room.clone(), rooms);
    }
    allowed
}

/// Of one workspace package: its folder, such as `host/pve`, and (folder, "normal" | "build" | "dev") of what it uses.
fn edges() -> BTreeMap<String, BTreeSet<(String, String)>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let top = metadata["workspace_root"].as_str().unwrap();
    let inside = |path: &str| path.strip_prefix(top).map(|p| p.trim_matches('/').to_owned());
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            let folder = inside(package["manifest_path"].as_str().unwrap()).unwrap();
            let used = package["dependencies"].as_array().unwrap().iter().filter_map(|d| {
                let kind = d["kind"].as_str().unwrap_or("normal").to_owned();
                Some((inside(d["path"].as_str()?)?, kind))
            });
            (folder.trim_end_matches("/Cargo.toml").to_owned(), used.collect())
        })
        .collect()
}

/// Why an edge may not be there.
fn objection(
    from: &str,
    to: &str,
    kind: &str,
    table: &BTreeMap<String, BTreeSet<String>>,
) -> Option<&'static str> {
    let room = |path: &str| path.strip_prefix("host/").map(str::to_owned);
    if to.starts_with("tests/") {
        return Some("nothing is built on a test crate");
    }
    if from.starts_with("tests/") {
        return None;
    }
    match (room(from), room(to)) {
        (Some(from), Some(to)) => {
            let listed = table.get(&from).is_some_and(|may| may.contains(&to));
            // A test may use the simulator, which knows nothing of the host.
            let tested = kind == "dev" && to == "sim";
            // The built-in kinds are described when they are built.
            let built = kind == "build" && from == "builtin" && to == "model";
            (!listed && !tested && !built).then_some("the table of docs/contributors.md does not list it")
        }
        (Some(from), None) => {
            let built = kind == "build" && from == "builtin";
            // A measurement compares components with the same code, native.
            let measured = kind == "dev" && from == "kinds";
            (!built && !measured).then_some("the host reaches kinds through WebAssembly only")
        }
        (None, Some(_)) => Some("a kind is WebAssembly and knows nothing of the host"),
        (None, None) => {
            let shared = ["kinds/sdk", "kinds/qemu", "kinds/container", "kinds/artifact"].contains(&to);
            (!shared).then_some("kinds share the SDK and the three crates of a target")
        }
    }
}

#[test]
fn workspace_crates_use_each_other_as_the_table_of_the_house_says() {
    let table = table();
    let edges = edges();
    let mut bad = Vec::new();
    for (from, used) in &edges {
        if let Some(room) = from.strip_prefix("host/") {
            assert!(table.contains_key(room), "docs/contributors.md has no row for host/{room}");
        }
        for (to, kind) in used {
            if let Some(why) = objection(from, to, kind, &table) {
                bad.push(format!("{from} -> {to} ({kind}): {why}"));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
    for room in table.keys() {
        assert!(
            edges.contains_key(&format!("host/{room}")),
            "docs/contributors.md names host/{room}, which is not there"
        );
    }
}

#[test]
fn the_rule_objects_to_what_it_is_there_for() {
    let table = table();
    let objects = |from, to, kind| objection(from, to, kind, &table).is_some();
    assert!(objects("host/model", "host/pve", "normal"));
    assert!(objects("host/plan", "host/kinds", "normal"));
    assert!(objects("host/plan", "host/kinds", "dev"));
    assert!(objects("host/exec", "host/sim", "normal"));
    assert!(objects("host/plan", "kinds/qemu", "normal"));
    assert!(objects("kinds/qemu", "host/model", "normal"));
    assert!(objects("host/cli", "tests/e2e", "dev"));
    assert!(objects("kinds/vm", "kinds/iso", "normal"));
    assert!(!objects("host/exec", "host/sim", "dev"));
    assert!(!objects("host/daemon", "host/plan", "normal"));
}

/// Names in backticks within the tables of a document, as far as they have the form of a test's name.
fn named_tests(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.starts_with('|'))
        .filter_map(|line| line.trim_end_matches('|').rsplit_once('|'))
        .flat_map(|(_, cell)| cell.split('`').skip(1).step_by(2))
        .collect()
}

fn sources(folder: &std::path::Path, all: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, all);
        } else if path.extension().is_some_and(|e| e == "rs") {
            all.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_test_that_the_table_of_failures_names_is_there() {
    let root = proxops_e2e::root();
    let document = std::fs::read_to_string(root.join("docs/failures.md")).unwrap();
    let named = named_tests(&document);
    assert!(named.len() > 60, "{}", named.len());
    let mut all = String::new();
    for folder in ["host", "tests"] {
        sources(&root.join(folder), &mut all);
    }
    let missing: Vec<&&str> = named.iter().filter(|name| !all.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Files of Rust below a folder.
fn rust_files(folder: &std::path::Path, all: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, all);
        } else if path.extension().is_some_and(|e| e == "rs") {
            all.push(path);
        }
    }
}

/// Why a text of the host may not write to stdout or stderr as it does: both can be closed, and then it panics.
fn may_panic(text: &str) -> Option<&'static str> {
    let bare = |name: &str| {
        let mut found = text.match_indices(name).map(|(at, _)| text[..at].chars().next_back());
        found.any(|before| before.is_none_or(|c| !c.is_alphanumeric() && c != '_'))
    };
    if ["println!", "eprintln!", "print!", "eprint!", "dbg!"].iter().any(|name| bare(name)) {
        return Some("it panics where nobody reads: use host/cli/src/say.rs");
    }
    let raw = text.split("stdout()").skip(1).any(|after| !after.starts_with(".is_terminal"));
    raw.then_some("an error of stdout must not decide what a command does: use host/cli/src/say.rs")
}

#[test]
fn the_host_says_everything_in_a_way_that_can_not_break_it() {
    let mut files = Vec::new();
    for room in std::fs::read_dir(root().join("host")).unwrap().flatten() {
        rust_files(&room.path().join("src"), &mut files);
    }
    files.retain(|file| !file.ends_with("cli/src/say.rs"));
    assert!(files.len() > 150, "{}", files.len());
    let bad: Vec<_> = files
        .iter()
        .filter_map(|file| Some((file, may_panic(&std::fs::read_to_string(file).unwrap())?)))
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert!(may_panic("  println!(\"x\")").is_some() && may_panic("std::io::stdout().lock()").is_some());
    assert!(may_panic("say::out!(\"x\")").is_none());
}
