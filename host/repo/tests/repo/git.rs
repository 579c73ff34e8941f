//! What git says about the tree. `git` itself makes the repositories.

use crate::support::{Tree, manifest};
use std::{fs, process::Command};

fn git(tree: &Tree, args: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "commit.gpgsign=false",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .current_dir(tree.path(""))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn committed() -> Tree {
    let tree = Tree::listing(&["vm/lab/web.yaml"])
        .with("vm/lab/web.yaml", &manifest("VM", "web"))
        .with("notes.txt", "a\n");
    fs::remove_dir(tree.path(".git")).unwrap();
    git(&tree, &["init", "-q"]);
    git(&tree, &["add", "-A"]);
    git(&tree, &["commit", "-qm", "one"]);
    tree
}

#[test]
fn a_clean_tree_has_its_commit_and_is_not_dirty() {
    let tree = committed();
    let repo = tree.load();
    assert_eq!(repo.diagnostics, []);
    assert_eq!(repo.commit, Some(git(&tree, &["rev-parse", "HEAD"])));
    assert!(!repo.dirty);
}

#[test]
fn a_change_of_a_tracked_file_is_dirty_staged_or_not() {
    let tree = committed().with("notes.txt", "other\n");
    assert!(tree.load().dirty);
    git(&tree, &["add", "-A"]);
    assert!(tree.load().dirty);
    git(&tree, &["commit", "-qm", "two"]);
    assert!(!tree.load().dirty);
    fs::remove_file(tree.path("notes.txt")).unwrap();
    assert!(tree.load().dirty);
}

#[test]
fn an_untracked_file_counts_only_if_it_was_read() {
    let tree = committed().with("scratch.txt", "x").with("vm/lab/unlisted.yaml", "x");
    assert!(!tree.load().dirty);
    assert!(committed().with("proxops.yaml", "").load().dirty);
    let tree = committed();
    git(&tree, &["rm", "-q", "--cached", "vm/lab/web.yaml"]);
    git(&tree, &["commit", "-qm", "two"]);
    assert!(tree.load().dirty);
}

#[test]
fn a_linked_work_tree_has_the_commit_of_its_own_head() {
    let tree = committed();
    git(&tree, &["worktree", "add", "-q", "-b", "side", "side"]);
    fs::write(tree.path("side/notes.txt"), "b\n").unwrap();
    let repo = tree.load_with(|options| options.start = tree.path("side/vm"));
    assert_eq!(repo.root, tree.path("side").canonicalize().unwrap());
    assert_eq!(repo.commit, Some(git(&tree, &["rev-parse", "side"])));
    assert!(repo.dirty);
    assert!(!tree.load().dirty);
}

#[test]
fn a_pinned_folder_inside_a_work_tree_is_judged_as_part_of_it() {
    let tree = committed();
    fs::create_dir(tree.path("infra")).unwrap();
    for folder in ["clusters", "vm"] {
        fs::rename(tree.path(folder), tree.path("infra").join(folder)).unwrap();
    }
    git(&tree, &["add", "-A"]);
    git(&tree, &["commit", "-qm", "move"]);
    let load = || tree.load_with(|options| options.git_path = Some("infra".into()));
    assert_eq!((load().commit.is_some(), load().dirty), (true, false));
    fs::write(tree.path("infra/proxops.yaml"), "").unwrap();
    assert!(load().dirty);
}

#[test]
fn a_tree_without_a_usable_repository_has_no_commit_and_is_no_error() {
    let tree = committed();
    fs::remove_dir_all(tree.path(".git")).unwrap();
    git(&tree, &["init", "-q"]);
    let unborn = tree.load();
    assert_eq!((unborn.commit, unborn.diagnostics.len()), (None, 0));
    fs::remove_dir_all(tree.path(".git")).unwrap();
    fs::write(tree.path(".git"), "gitdir: /nowhere\n").unwrap();
    let broken = tree.load();
    assert_eq!((broken.commit, broken.dirty, broken.diagnostics.len()), (None, false, 0));
    assert_eq!(Tree::lab().load().commit, None);
}
