//! `resources.yaml`: what may be listed.

use crate::support::{Tree, manifest};
use std::{fs, os::unix::fs::symlink};

/// The code of the only error, at the first entry.
fn code(tree: &Tree) -> String {
    let found = tree.places();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].strip_prefix("clusters/lab/resources.yaml:2:5 ").unwrap_or(&found[0]).to_owned()
}

fn vm() -> String {
    manifest("VM", "web")
}

#[test]
fn shared_and_own_manifests_are_loaded_in_the_order_of_the_list() {
    let tree = Tree::listing(&["vm/lab/web.yaml", "vm/base/app.yml", "lxc/lab/deep/er.yaml"])
        .with("vm/lab/web.yaml", &vm())
        .with("vm/base/app.yml", &manifest("VM", "app"))
        .with("lxc/lab/deep/er.yaml", &manifest("LXC", "er"));
    let repo = tree.load();
    assert_eq!(repo.diagnostics, []);
    let found: Vec<_> =
        repo.clusters[0].manifests.iter().map(|m| (m.id.to_string(), m.file.as_str())).collect();
    assert_eq!(
        found,
        [
            ("VM/web".into(), "vm/lab/web.yaml"),
            ("VM/app".into(), "vm/base/app.yml"),
            ("LXC/er".into(), "lxc/lab/deep/er.yaml")
        ]
    );
}

#[test]
fn a_file_must_lie_in_base_or_in_this_cluster_s_folder() {
    for path in [
        "vm/web.yaml",
        "vm/prod/web.yaml",
        "other/lab/web.yaml",
        "web.yaml",
        "vmx/lab/web.yaml",
        "clusters/lab/web.yaml",
    ] {
        assert_eq!(code(&Tree::listing(&[path]).with(path, &vm())), "wrong-folder", "{path}");
    }
}

#[test]
fn a_file_must_exist_be_a_file_and_end_in_yaml() {
    assert_eq!(code(&Tree::listing(&["vm/lab/web.yaml"])), "no-such-file");
    assert_eq!(code(&Tree::listing(&["vm/lab/web.yaml"]).with("vm/lab/web.yaml/x", "")), "not-a-file");
    assert_eq!(code(&Tree::listing(&["vm/lab/web.json"]).with("vm/lab/web.json", "")), "not-yaml");
    assert_eq!(code(&Tree::listing(&["vm/lab/web.yaml/"]).with("vm/lab/web.yaml", "")), "not-yaml");
    let near = Tree::listing(&["vm/lab/wbe.yaml"]).with("vm/lab/web.yaml", &vm()).load();
    assert!(near.diagnostics[0].help.as_deref().unwrap().contains("vm/lab/web.yaml"));
}

#[test]
fn patterns_are_not_expanded() {
    let repo = Tree::listing(&["vm/lab/*.yaml"]).with("vm/lab/web.yaml", &vm()).load();
    assert_eq!(repo.diagnostics.len(), 1);
    assert!(repo.diagnostics[0].help.as_deref().unwrap().contains("not expanded"));
    assert!(repo.clusters[0].manifests.is_empty());
}

#[test]
fn a_path_can_not_leave_the_repository() {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("web.yaml");
    fs::write(&file, vm()).unwrap();
    let absolute = format!("resources:\n  - {}\n", file.display());
    assert_eq!(code(&Tree::lab().with("clusters/lab/resources.yaml", &absolute)), "outside-repository");
    assert_eq!(code(&Tree::listing(&["../web.yaml"])), "outside-repository");
    assert_eq!(code(&Tree::listing(&["vm/../../../../../../../../etc/x.yaml"])), "outside-repository");

    let tree = Tree::listing(&["vm/lab/web.yaml"]).with("vm/lab/other.yaml", "");
    symlink(&file, tree.path("vm/lab/web.yaml")).unwrap();
    assert_eq!(code(&tree), "outside-repository");

    let tree = Tree::listing(&["vm/lab/web.yaml"]).with("vm/x", "");
    symlink(outside.path(), tree.path("vm/lab")).unwrap();
    assert_eq!(code(&tree), "outside-repository");
}

#[test]
fn a_link_that_leads_nowhere_is_called_so() {
    let tree = Tree::listing(&["vm/lab/web.yaml"]).with("vm/lab/x", "");
    symlink("gone.yaml", tree.path("vm/lab/web.yaml")).unwrap();
    let repo = tree.load();
    let error = repo.diagnostics[0].to_string();
    assert!(error.contains("leads nowhere") && !error.contains("did you mean"), "{error}");
}

#[test]
fn a_link_can_not_reach_what_its_target_s_place_forbids() {
    let linked = |target: &str| {
        let tree = Tree::listing(&["vm/lab/web.yaml"]).with(target, &vm()).with("vm/lab/x", "");
        symlink(tree.path(target), tree.path("vm/lab/web.yaml")).unwrap();
        tree
    };
    assert_eq!(code(&linked("vm/prod/web.yaml")), "wrong-folder");
    assert_eq!(code(&linked("lxc/lab/web.yaml")), "wrong-folder");
    assert_eq!(code(&linked("secret.yaml")), "wrong-folder");
    assert_eq!(linked("vm/base/web.yaml").places(), Vec::<String>::new());
    let tree = Tree::listing(&["vm/lab/web.yaml"]).with("vm/lab/x", "");
    symlink("web.yaml", tree.path("vm/lab/web.yaml")).unwrap();
    assert_eq!(code(&tree), "unreadable-file");
}

#[test]
fn a_file_is_listed_once_however_it_is_spelled() {
    let tree = Tree::listing(&["vm/lab/web.yaml", "vm/./base/../lab//web.yaml", "vm/lab/link.yaml"])
        .with("vm/lab/web.yaml", &vm())
        .with("vm/base/x", "");
    symlink("web.yaml", tree.path("vm/lab/link.yaml")).unwrap();
    assert_eq!(
        tree.places(),
        ["clusters/lab/resources.yaml:3:5 listed-twice", "clusters/lab/resources.yaml:4:5 listed-twice"]
    );
    let message = tree.load().diagnostics[0].message.clone();
    assert!(message.contains("line 2"), "{message}");
}

#[test]
fn the_list_itself_must_be_a_list_of_texts() {
    let places = |text: &str| Tree::lab().with("clusters/lab/resources.yaml", text).places();
    let file = "clusters/lab/resources.yaml";
    assert_eq!(places("resources: []\n"), Vec::<String>::new());
    assert_eq!(places("resources:\n"), [format!("{file}:1:1 missing-field")]);
    assert_eq!(places("resources: vm/lab/web.yaml\n"), [format!("{file}:1:1 missing-field")]);
    assert_eq!(places("- a\n"), [format!("{file}:1:1 missing-field")]);
    assert_eq!(places("resource: []\nresources: []\n"), [format!("{file}:1:1 unknown-field")]);
    assert_eq!(
        places("resources: [1, {a: b}, ~]\n"),
        [13, 16, 24].map(|column| format!("{file}:1:{column} wrong-type"))
    );
    assert_eq!(places("resources: [\n")[0], format!("{file}:2:1 yaml-syntax"));
    assert_eq!(Tree::lab().with("clusters/lab/resources.yaml", "").load().diagnostics.len(), 1);
}

#[test]
fn the_longest_root_wins_where_kinds_nest_their_folders() {
    use proxops_repo::{KindTable, LoadOptions, Repository};
    let tree = Tree::listing(&["fw/groups/lab/a.yaml", "fw/base/b.yaml"])
        .with("fw/groups/lab/a.yaml", &manifest("Group", "a"))
        .with("fw/base/b.yaml", &manifest("Firewall", "b"));
    let env = |_: &str| None;
    let kinds = KindTable::from_roots([("Firewall", "fw"), ("Group", "fw/groups")]);
    let repo = Repository::load(&LoadOptions::new(tree.path(""), &env), &kinds).unwrap();
    assert_eq!(repo.diagnostics, []);
    assert_eq!(repo.clusters[0].manifests.len(), 2);
}
