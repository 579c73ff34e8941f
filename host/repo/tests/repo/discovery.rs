//! Finding the tree.

use crate::support::{CONFIG, Tree};
use proxops_repo::{KindTable, LoadOptions, RepoError, Repository, Workspace, discover};
use std::fs;

#[test]
fn the_nearest_git_directory_above_the_working_directory_is_the_root() {
    let tree =
        Tree::lab().with("a/b/c.txt", "").with("nested/sub/x", "").with("nested/.git", "gitdir: elsewhere\n");
    let root = tree.path("").canonicalize().unwrap();
    assert_eq!(discover(&tree.path("a/b")).unwrap(), root);
    assert_eq!(discover(&tree.path("")).unwrap(), root);
    // A worktree or submodule has a file.
    assert_eq!(discover(&tree.path("nested/sub")).unwrap(), root.join("nested"));
}

#[test]
fn without_git_above_there_is_an_error_that_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let error = discover(dir.path()).unwrap_err();
    assert!(matches!(error, RepoError::NotFound { .. }));
    let text = error.to_string();
    assert!(text.contains("--git-path") && text.contains(&dir.path().display().to_string()), "{text}");
    assert!(discover(&dir.path().join("missing")).is_err());
}

#[test]
fn a_pinned_tree_needs_no_git_and_the_flag_wins_over_the_variable() {
    let (tree, other) = (Tree::lab(), Tree::lab());
    fs::remove_dir(tree.path(".git")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    let (a, b) = (tree.path("").display().to_string(), other.path("").display().to_string());
    let env = |name: &str| (name == "PROXOPS_GIT_PATH").then(|| b.clone());
    let mut options = LoadOptions::new(outside.path(), &env);
    assert_eq!(Workspace::open(&options).unwrap().root, other.path("").canonicalize().unwrap());
    options.git_path = Some(a.into());
    assert_eq!(Workspace::open(&options).unwrap().root, tree.path("").canonicalize().unwrap());
    options.git_path = Some("no/such/folder".into());
    assert!(matches!(Workspace::open(&options), Err(RepoError::BadPath { .. })));
}

#[test]
fn a_named_process_file_replaces_the_one_in_the_tree_and_its_paths_start_from_it() {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("settings.yaml");
    fs::write(&file, "data-dir: state\npve: {ca-file: ca.pem}\n").unwrap();
    let tree = Tree::lab().with("proxops.yaml", "listen: 127.0.0.1:1\n").with("sub/x", "");
    let repo = tree.load_with(|options| {
        options.start = tree.path("sub");
        options.config = Some(file.clone());
    });
    assert_eq!(repo.diagnostics, []);
    assert_eq!(repo.settings.data_dir, outside.path().join("state"));
    assert_eq!(repo.settings.listen, "127.0.0.1:9494");
    assert_eq!(repo.clusters[0].config.as_ref().unwrap().ca_file, Some(outside.path().join("ca.pem")));
}

#[test]
fn a_named_cluster_file_loads_that_cluster_alone() {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("lab.yaml");
    fs::write(&file, format!("{CONFIG}      secrets-file: s.yaml\n")).unwrap();
    let tree = Tree::lab()
        .with("proxops.yaml", "reconcile: {prune-budget: 7}\n")
        .with("clusters/broken/config.yaml", "nonsense\n")
        .var("PROXOPS_CONFIG", &file.display().to_string());
    let repo = tree.load();
    assert_eq!(repo.diagnostics, []);
    assert_eq!(repo.clusters.len(), 1);
    let config = repo.clusters[0].config.as_ref().unwrap();
    assert_eq!(config.secrets_file, Some(outside.path().join("s.yaml")));
    assert_eq!(config.reconcile.prune_budget, 7);
    // The same for a file of the tree itself.
    let repo = tree.load_with(|options| options.config = Some("clusters/lab/config.yaml".into()));
    assert_eq!((repo.diagnostics.len(), repo.clusters.len()), (0, 1));
}

#[test]
fn a_named_file_that_is_missing_stops_everything() {
    let repo = Tree::lab().load_with(|options| options.config = Some("nowhere.yaml".into()));
    assert_eq!(repo.global_errors().count(), 1);
    assert!(repo.clusters.iter().all(|cluster| !cluster.ok));
}

#[test]
fn a_root_that_was_found_is_not_searched_for_again() {
    let outer = Tree::lab().with("inner/clusters/lab/config.yaml", CONFIG).with("inner/.git/x", "");
    let inner = outer.path("inner").canonicalize().unwrap();
    let env = |_: &str| None::<String>;
    let mut options = LoadOptions::new(&inner, &env);
    assert_eq!(Workspace::open(&options).unwrap().root, inner);
    options.found = Some(inner.clone());
    // Where it started is gone; where the repository is, is known.
    options.start = outer.path("no/such/folder");
    assert_eq!(Workspace::open(&options).unwrap().root, inner);
    // The repository around it is another one.
    fs::remove_dir_all(inner.join(".git")).unwrap();
    options.start = inner.clone();
    let error = Workspace::open(&options).unwrap_err();
    assert!(matches!(error, RepoError::Gone { .. }) && error.to_string().contains(inner.to_str().unwrap()));
    options.git_path = Some(outer.path(""));
    assert_eq!(Workspace::open(&options).unwrap().root, outer.path("").canonicalize().unwrap());
}

#[test]
fn a_named_file_that_names_no_source_because_it_is_wrong_says_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let env = |_: &str| None::<String>;
    let mut options = LoadOptions::new(dir.path(), &env);
    options.config = Some("p.yaml".into());
    for (text, place) in [
        ("git: {url: ftp://x}\n", "p.yaml:1:7 git-url"),
        ("git: {urll: https://git.example.org/x.git}\n", "p.yaml:1:7 unknown-field"),
        ("git: {url: [\n", "p.yaml"),
    ] {
        fs::write(dir.path().join("p.yaml"), text).unwrap();
        // Not a tree, whatever lies there.
        fs::create_dir_all(dir.path().join("clusters/lab")).unwrap();
        fs::write(dir.path().join("clusters/lab/config.yaml"), CONFIG).unwrap();
        let repo = Repository::load(&options, &KindTable::builtin()).unwrap();
        let first = crate::support::place(&repo.diagnostics[0]);
        assert!(first.starts_with(place), "{first}");
        assert!(repo.clusters.is_empty() && repo.global_errors().next().is_some());
    }
    fs::write(dir.path().join("p.yaml"), "log: {level: debug}\n").unwrap();
    assert!(matches!(Workspace::open(&options), Err(RepoError::NotFound { .. })));
}

#[test]
fn names_of_one_folder_are_one_path() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().canonicalize().unwrap();
    fs::create_dir(real.join("a")).unwrap();
    std::os::unix::fs::symlink(real.join("a"), real.join("link")).unwrap();
    for (name, path) in
        [("a/", "a"), ("a/../a/.", "a"), ("link", "a"), ("link/data", "a/data"), ("a/../x/y/", "x/y")]
    {
        assert_eq!(proxops_repo::resolved(&dir.path().join(name)), real.join(path), "{name}");
    }
}
