//! `validate`: every mistake of the whole tree in one run, each with its place and what to do, and no network.

use crate::support::{manifest, vm};
use proxops_e2e::{Bench, CLUSTER};
use serde_json::json;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Mark of a mistake's place in the texts below; it is taken out before they are written.
const HERE: char = '§';

/// A text without its marks, and where they stood: (line, column), from 1.
fn marked(text: &str) -> (String, Vec<(usize, usize)>) {
    let mut places = Vec::new();
    let lines: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(n, line)| {
            let mut clean = String::new();
            for c in line.chars() {
                if c == HERE {
                    places.push((n + 1, clean.chars().count() + 1));
                } else {
                    clean.push(c);
                }
            }
            clean
        })
        .collect();
    (lines.join("\n") + "\n", places)
}

/// Twelve mistakes in six files, four of them in one.
const TREE: &[(&str, &str)] = &[
    ("proxops.yaml", "reconcile:\n  §prune-bugdet: 3\n"),
    ("clusters/lab/config.yaml", "pve:\n  clusters:\n    lab:\n      base-url: URL\n      §node: [pve01]\n"),
    (
        "clusters/lab/resources.yaml",
        "resources:\n  - ../../vm/lab/web.yaml\n  - ../../vm/lab/db.yaml\n  - §../../vm/lab/gone.yaml\n  - ../../iso/lab/all.yaml\n  - §../../vm/lab/web.yaml\n",
    ),
    (
        "vm/lab/web.yaml",
        "apiVersion: proxops/v1alpha1\nkind: VM\nmetadata: {name: web}\nspec:\n  node: pve01\n  §vmid: 100\n  §memory: 100KiB\n  cpu: {type: host, §coress: 2, cores: 2}\n  disks:\n    - {interface: virtio0, storage: local-lvm, size: 1GiB, §ssd: true}\n  networks:\n    - {slot: net0, bridge: vmbr0, §vlan: 5000}\n",
    ),
    (
        "vm/lab/db.yaml",
        "apiVersion: proxops/v1alpha1\nkind: VM\nmetadata: {name: db}\nspec:\n  node: pve02\n  vmid: 100\n  memory: 1GiB\n  cpu: {type: host, cores: 1}\n  hardware: {cdrom: {§iso: debain}}\n",
    ),
    (
        "iso/lab/all.yaml",
        "apiVersion: proxops/v1alpha1\nkind: ISO\nmetadata: {name: debian}\nspec:\n  node: pve01\n  storage: local\n  §filename: debian.qcow2\n  §url: http://images.example.org/debian.iso\n",
    ),
];

#[test]
fn twelve_mistakes_in_a_tree_are_twelve_errors_with_their_places_and_no_network_call() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });

    let mut bench = Bench::offline(&url);
    let mut expected = Vec::new();
    for (path, text) in TREE {
        let (text, places) = marked(text);
        bench.write(path, text.replace("URL", &url));
        expected.extend(places.iter().map(|(line, column)| format!("{path}:{line}:{column}")));
    }
    expected.sort();
    assert_eq!(expected.len(), 12);
    // Credentials are there, so nothing but the command itself keeps it off the network.
    bench.set("PROXOPS_PVE_TOKEN_VALUE", "gitops@pve!proxops=5ec7e700-0000-4000-8000-c0ffee000009");

    let run = bench.run(&["validate", "-o", "json"]).exits(1);
    let document = run.json();
    assert_eq!(document["format"], "proxops.validate/v1");
    let diagnostics = document["diagnostics"].as_array().unwrap();
    let errors: Vec<_> = diagnostics.iter().filter(|d| d["severity"] == "error").collect();
    let mut found: Vec<String> = errors
        .iter()
        .map(|d| format!("{}:{}:{}", d["file"].as_str().unwrap(), d["line"], d["column"]))
        .collect();
    found.sort();
    assert_eq!(found, expected, "{run}");
    for error in &errors {
        for part in ["code", "message", "help"] {
            assert!(error[part].as_str().is_some_and(|text| !text.is_empty()), "no {part}: {error}");
        }
    }

    let text = bench.run(&["validate"]).exits(1);
    for place in &expected {
        assert!(
            text.stdout.lines().any(|line| line.starts_with(&format!("{place}: error["))),
            "{place}: {text}"
        );
    }
    assert_eq!(text.stdout.matches("  help: ").count(), 12, "{text}");
    assert!(text.stdout.contains("12 errors"), "{text}");
    assert_eq!(calls.load(Ordering::SeqCst), 0, "validate made a network call");
}

#[test]
fn a_vmid_is_used_once_in_a_cluster_whatever_the_node_and_kind() {
    let lxc = |name: &str, vmid: u32| {
        let root = json!({"storage": "local-lvm", "size": "4GiB"});
        manifest("LXC", name, json!({"node": "pve02", "vmid": vmid, "template": "debian", "root": root}))
    };
    let template = manifest(
        "CTTemplate",
        "debian",
        json!({"node": "pve02", "storage": "local", "filename": "debian.tar.zst"}),
    );
    let mut bench = Bench::offline("https://192.0.2.1:8006");
    bench.documents(&format!("ctt/{CLUSTER}/debian.yaml"), &[template]);
    bench.documents(&format!("lxc/{CLUSTER}/cache.yaml"), &[lxc("cache", 100)]);
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 101, json!({"node": "pve01"}))]);
    assert_eq!(bench.errors(), [""; 0]);

    // another kind, another node
    bench.documents(&format!("lxc/{CLUSTER}/cache.yaml"), &[lxc("cache", 101)]);
    let errors = bench.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with("duplicate-vmid "), "{errors:?}");

    // the same kind, another node
    bench.documents(&format!("lxc/{CLUSTER}/cache.yaml"), &[lxc("cache", 100)]);
    bench.documents(&format!("vm/{CLUSTER}/db.yaml"), &[vm("db", 101, json!({"node": "pve03"}))]);
    let errors = bench.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with("duplicate-vmid "), "{errors:?}");
}

#[test]
fn a_mistake_in_one_cluster_leaves_the_others_to_be_planned() {
    let mut bench = Bench::new(proxops_sim::seed::empty());
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({}))]);
    bench.write(
        "clusters/bad/config.yaml",
        "pve:\n  clusters:\n    bad:\n      base-url: https://192.0.2.7:8006\n",
    );
    bench.write("clusters/bad/resources.yaml", "resources:\n  - ../../vm/bad/x.yaml\n");
    bench.write(
        "vm/bad/x.yaml",
        "apiVersion: proxops/v1alpha1\nkind: VM\nmetadata: {name: x}\nspec: {nod: pve01}\n",
    );
    let run = bench.diff().exits(1);
    let document = run.json();
    let states: Vec<_> =
        document["clusters"].as_array().unwrap().iter().map(|c| c["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["aborted", "ok"], "{run}");
    assert_eq!(document["clusters"][1]["actions"][0]["id"], "create:VM/web", "{run}");
    assert!(document["clusters"][0]["error"].as_str().unwrap().contains("vm/bad/x.yaml:"), "{run}");
}

#[test]
fn a_repository_without_a_cluster_is_the_same_error_for_every_command() {
    let bench = Bench::offline("https://192.0.2.1:8006");
    std::fs::remove_dir_all(bench.repo().join("clusters")).unwrap();
    for words in [
        ["validate"].as_slice(),
        &["diff"],
        &["diff", "--exit-code", "-o", "json"],
        &["apply", "--exit-code"],
        &["apply", "--dry-run"],
        &["status"],
        &["doctor"],
        &["run", "--listen", "127.0.0.1:0"],
    ] {
        bench.run(words).exits(1).says("no cluster is configured").says("add clusters/<name>/config.yaml");
    }
}

#[test]
fn a_named_file_outside_of_any_tree_that_is_wrong_is_what_the_error_is_about() {
    let bench = Bench::offline("https://192.0.2.1:8006");
    let folder = tempfile::tempdir().unwrap();
    for (text, place) in [
        ("git: {url: ftp://git.example.org/x}\n", "p.yaml:1:7: error[git-url]"),
        ("gitt: {url: https://git.example.org/x.git}\n", "p.yaml:1:1: error[unknown-field]"),
        ("git: [\n", "p.yaml:"),
    ] {
        std::fs::write(folder.path().join("p.yaml"), text).unwrap();
        for command in ["validate", "diff", "apply", "status", "doctor"] {
            let mut command = bench.command(&[command, "--config", "p.yaml"]);
            let run = proxops_e2e::Run::of(command.current_dir(folder.path()).output().unwrap());
            let run = run.exits(1).says(place);
            assert!(!run.stderr.contains("no git repository"), "{run}");
        }
    }
}
