//! The tree as a whole.

use crate::support::{CONFIG, Tree, manifest, place};
use proptest::{collection, prelude::*};
use serde_json::Value;
use std::{fs, sync::Arc};

/// Anything, with field names and values that the files know.
fn settings_like() -> impl Strategy<Value = Value> {
    let words = [
        "log",
        "level",
        "pve",
        "clusters",
        "lab",
        "base-url",
        "https://pve",
        "nodes",
        "auth",
        "token",
        "secrets",
        "secrets-file",
        "reconcile",
        "concurrency",
        "kinds",
        "kind",
        "allow",
        "resources",
        "../../vm/lab/web.yaml",
        "metadata",
        "name",
        "labels",
        "annotations",
        "proxops/depends-on",
        "proxops/ignore",
        "VM:a",
        "spec",
        "apiVersion",
        "proxops/v1alpha1",
        "VM",
        "listen",
        "[::1]:1",
        "data-dir",
        "30s",
        "",
    ];
    let word = prop::sample::select(words.to_vec()).prop_map(str::to_owned);
    let leaf = prop_oneof![
        word.clone().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            collection::btree_map(word.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn files_with_any_content_give_diagnostics_and_never_a_panic(
        files in prop::array::uniform4(settings_like()),
        real in prop::array::uniform4(any::<bool>()),
    ) {
        let names = ["proxops.yaml", "clusters/lab/config.yaml", "clusters/lab/resources.yaml", "vm/lab/web.yaml"];
        let mut tree = Tree::listing(&["vm/lab/web.yaml"]).with("vm/lab/web.yaml", &manifest("VM", "web"));
        for ((name, value), keep) in names.iter().zip(&files).zip(real) {
            if !keep {
                tree = tree.with(name, &value.to_string());
            }
        }
        let repo = tree.load();
        for cluster in &repo.clusters {
            prop_assert_eq!(cluster.ok, repo.errors_of(&cluster.name).count() == 0);
            prop_assert!(!cluster.ok || cluster.config.is_some());
        }
        for diagnostic in &repo.diagnostics {
            prop_assert!(!diagnostic.location.file.is_empty() && !diagnostic.message.is_empty());
        }
    }
}

/// Clusters `lab` and `prod` with these entries.
fn two(lab: &[&str], prod: &[&str]) -> Tree {
    let list = |paths: &[&str]| match paths {
        [] => "resources: []\n".to_owned(),
        _ => format!("resources:\n{}", paths.iter().map(|p| format!("  - ../../{p}\n")).collect::<String>()),
    };
    Tree::lab()
        .with("clusters/lab/resources.yaml", &list(lab))
        .with("clusters/prod/config.yaml", &CONFIG.replace("lab", "prod").replace("pve.lan", "prod.lan"))
        .with("clusters/prod/resources.yaml", &list(prod))
}

#[test]
fn a_dozen_mistakes_give_a_dozen_diagnostics() {
    let tree = two(
        &[
            "vm/lab/a.yaml",
            "vm/lab/b.yaml",
            "vm/lab/missing.yaml",
            "vm/prod/c.yaml",
            "vm/lab/a.yaml",
            "lxc/lab/d.yaml",
        ],
        &["vm/prod/c.yaml", "vm/prod/e.yaml", "iso/prod/f.yaml", "vm/prod/g.json"],
    )
    .with("proxops.yaml", "log: {level: loud}\n")
    .with("clusters/new/resources.yaml", "resources: []\n")
    .with("vm/lab/a.yaml", &manifest("VM", "A"))
    .with(
        "vm/lab/b.yaml",
        "apiVersion: proxops/v1alpha1\nkind: VM\nmetadata: {name: b, x: 1}\nspec:\n  a: 1\n  a: 2\n",
    )
    .with("vm/prod/c.yaml", &manifest("VM", "c"))
    .with("lxc/lab/d.yaml", "kind: [\n")
    .with("vm/prod/e.yaml", &manifest("LXC", "e"))
    .with_bytes("iso/prod/f.yaml", b"a: \xff\n");
    let repo = tree.load();
    let found: Vec<_> =
        repo.diagnostics.iter().map(|d| (place(d), d.cluster.as_deref().unwrap_or("-"))).collect();
    let found: Vec<_> = found.iter().map(|(place, cluster)| (place.as_str(), *cluster)).collect();
    assert_eq!(
        found,
        [
            ("clusters/lab/resources.yaml:4:5 no-such-file", "lab"),
            ("clusters/lab/resources.yaml:5:5 wrong-folder", "lab"),
            ("clusters/lab/resources.yaml:6:5 listed-twice", "lab"),
            ("clusters/new/resources.yaml:1:1 no-cluster-config", "new"),
            ("clusters/prod/resources.yaml:5:5 not-yaml", "prod"),
            ("iso/prod/f.yaml:1:4 not-utf8", "prod"),
            ("lxc/lab/d.yaml:2:1 yaml-syntax", "lab"),
            ("proxops.yaml:1:7 invalid-value", "-"),
            ("vm/lab/a.yaml:4:3 invalid-name", "lab"),
            ("vm/lab/b.yaml:3:21 unknown-field", "lab"),
            ("vm/lab/b.yaml:6:3 duplicate-key", "lab"),
            ("vm/prod/e.yaml:2:1 wrong-folder", "prod"),
        ]
    );
}

#[test]
fn one_cluster_s_mistakes_do_not_stop_another() {
    let tree = two(&["vm/lab/a.yaml"], &["vm/prod/c.yaml"])
        .with("vm/lab/a.yaml", "nonsense: true\n")
        .with("vm/prod/c.yaml", &manifest("VM", "c"));
    let repo = tree.load();
    let ok: Vec<_> = repo.clusters.iter().map(|c| (c.name.as_str(), c.ok, c.manifests.len())).collect();
    assert_eq!(ok, [("lab", false, 0), ("prod", true, 1)]);
    assert_eq!(repo.errors_of("prod").count(), 0);
    assert!(repo.errors_of("lab").count() > 0);
    assert_eq!(repo.global_errors().count(), 0);
}

#[test]
fn a_shared_manifest_is_read_once_and_its_mistake_stops_everyone_who_lists_it() {
    let shared =
        two(&["vm/base/web.yaml"], &["vm/base/web.yaml"]).with("vm/base/web.yaml", &manifest("VM", "web"));
    let repo = shared.load();
    assert_eq!(repo.diagnostics, []);
    assert!(Arc::ptr_eq(&repo.clusters[0].manifests[0], &repo.clusters[1].manifests[0]));
    let repo = shared.with("vm/base/web.yaml", &manifest("VM", "Web")).load();
    let found: Vec<_> = repo.diagnostics.iter().map(|d| d.cluster.as_deref().unwrap()).collect();
    assert_eq!(found, ["lab", "prod"]);
    assert!(repo.clusters.iter().all(|c| !c.ok));
}

#[test]
fn two_loads_of_a_large_tree_give_the_same_answer() {
    let paths: Vec<String> = (0..500).map(|i| format!("vm/lab/vm-{i:03}.yaml")).collect();
    let names: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut tree = Tree::listing(&names);
    for (i, path) in paths.iter().enumerate() {
        let name = if i % 50 == 7 { "Bad".to_owned() } else { format!("vm-{i:03}") };
        tree = tree.with(path, &manifest("VM", &name));
    }
    let (one, two) = (tree.load(), tree.load());
    assert_eq!(one.diagnostics.len(), 10);
    assert_eq!(one.diagnostics, two.diagnostics);
    assert_eq!(one.clusters[0].manifests, two.clusters[0].manifests);
    let order: Vec<_> = one.clusters[0].manifests.iter().map(|m| m.file.clone()).collect();
    assert_eq!(order, paths);
}

#[test]
fn nothing_is_written() {
    let tree = two(&["vm/lab/a.yaml"], &[]).with("vm/lab/a.yaml", &manifest("VM", "a"));
    let list = || {
        let mut found = Vec::new();
        let mut open = vec![tree.path("")];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                if entry.path().is_dir() {
                    open.push(entry.path());
                }
                found.push((entry.path(), entry.metadata().unwrap().modified().unwrap()));
            }
        }
        found.sort();
        found
    };
    let before = list();
    tree.load();
    assert_eq!(before, list());
}

/// The three files that make a tree what it is.
const CONFIGURATION: [&str; 3] = ["proxops.yaml", "clusters/lab/config.yaml", "clusters/lab/resources.yaml"];

#[test]
fn configuration_is_read_from_inside_the_tree_only_and_nothing_outside_is_quoted() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("shadow");
    fs::write(&secret, "root:$6$hunter2:19000:0:99999:7:::\n").unwrap();
    for name in CONFIGURATION {
        let tree = Tree::lab();
        let _ = fs::remove_file(tree.path(name));
        std::os::unix::fs::symlink(&secret, tree.path(name)).unwrap();
        let repo = tree.load();
        assert_eq!(repo.diagnostics.len(), 1, "{:?}", repo.diagnostics);
        assert_eq!(repo.diagnostics[0].code, "outside-repository");
        assert!(!format!("{:?}", repo.diagnostics).contains("hunter2"));
        assert_eq!(repo.text(name), None);

        // The folder that it lies in.
        if let Some((folder, file)) = name.rsplit_once('/') {
            let tree = Tree::lab();
            fs::rename(tree.path(folder), outside.path().join("lab")).unwrap();
            std::os::unix::fs::symlink(outside.path().join("lab"), tree.path(folder)).unwrap();
            assert!(tree.places().contains(&format!("{folder}/{file} outside-repository")), "{name}");
            fs::remove_dir_all(outside.path().join("lab")).unwrap();
        }

        // A link that stays inside is a file as any other.
        let tree = Tree::lab();
        let kept = fs::read_to_string(tree.path(name)).unwrap_or_default();
        let _ = fs::remove_file(tree.path(name));
        let tree = tree.with("shared/it.yaml", &kept);
        std::os::unix::fs::symlink(tree.path("shared/it.yaml"), tree.path(name)).unwrap();
        assert_eq!(tree.places(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_device_and_a_large_file_are_no_configuration() {
    for name in CONFIGURATION {
        let tree = Tree::lab();
        let _ = fs::remove_file(tree.path(name));
        std::os::unix::fs::symlink("/dev/zero", tree.path(name)).unwrap();
        assert_eq!(tree.places(), [format!("{name} outside-repository")]);
        fs::remove_file(tree.path(name)).unwrap();
        let tree = tree.with(name, &"#".repeat((1 << 20) + 1));
        assert_eq!(tree.places(), [format!("{name}:1:1 file-too-large")]);
        assert_eq!(tree.load().text(name), None, "nor is it quoted");
    }
}
