//! Finding kinds: what is one, what is none, and what is kept on disk.

use crate::components::*;
use proxops_kinds::{KindProblem, Kinds, Limits, Sources};
use proxops_model::kind::KindSet;
use std::{collections::BTreeMap, fs, path::Path, time::Duration};

fn names(kinds: &Kinds) -> Vec<&str> {
    kinds.infos().map(|i| i.kind.as_str()).collect()
}

fn only_problem(kinds: &Kinds) -> &KindProblem {
    match kinds.problems() {
        [problem] => problem,
        problems => panic!("{problems:?}"),
    }
}

/// A file whose `describe` attacks, beside a good one: the good one works, the problem names the file.
fn refused(attack: &str) -> String {
    let folder = Folder::new();
    folder.file("evil.wasm", &patched(plain(), attack, "Evil", "evil"));
    folder.file("good.wasm", &patched(plain(), "honest", "Good", "good"));
    let kinds = folder.load();
    assert_eq!(names(&kinds), ["Good"]);
    assert!(kinds.session().get("Good").unwrap().validate(&manifest("honest")).is_ok());
    let problem = only_problem(&kinds);
    assert!(problem.origin.ends_with("evil.wasm"));
    problem.message.clone()
}

#[test]
fn a_hostile_describe_costs_only_its_own_file() {
    for (attack, expected) in [
        ("loop", "it failed in describe: it did more work than one call may do (limit fuel = 400000000)"),
        ("large", "it failed in describe: its answer is larger than 4 MiB (limit output-bytes)"),
        (
            "items",
            "it failed in describe: its answer has more than 20000 list elements (limit output-items = 20000)",
        ),
        ("nul", "it failed in describe: its version \"a\\\\u{0}b\" holds a NUL byte"),
        ("ext", "it failed in describe: it sent the extension \"repaint\", which this host does not know"),
        (
            "other",
            "it failed in describe: its target is the extension \"quantum\", which this host does not know",
        ),
        (
            "kind",
            "it failed in describe: its kind \"../VM\" is not a letter followed by letters and digits (at most 40)",
        ),
        ("root", "it failed in describe: its root \"clusters\" is a folder that proxops uses itself"),
        (
            "access",
            "it failed in describe: its path \"/access/users/{id}\" reaches into /access, which no object kind may",
        ),
        ("dots", "it failed in describe: its path \"..\" can't stand in an API path"),
        ("encoded", "it failed in describe: its path \"%2e%2e\" can't stand in an API path"),
        ("empty", "it failed in describe: its path \"\" can't stand in an API path"),
        ("query", "it failed in describe: its path \"pools?delete=1\" can't stand in an API path"),
        ("fragment", "it failed in describe: its path \"pools#{id}\" can't stand in an API path"),
    ] {
        assert_eq!(refused(attack), expected, "{attack}");
    }
    assert!(refused("allocate").contains("limit memory = 64 MiB"));
    assert!(refused("schema").starts_with("it failed in describe: its schema is not JSON"));
    assert!(refused("panic").starts_with("it failed in describe: it trapped"));
}

#[test]
fn a_kind_that_changes_its_description_is_refused() {
    assert_eq!(refused("flip"), "it describes itself differently from call to call");
}

#[test]
fn files_that_are_no_kinds_are_told_what_one_is() {
    let folder = Folder::new();
    folder.file("a-text.wasm", b"hello");
    folder.file("b-module.wasm", b"\0asm\x01\0\0\0");
    folder.file("c-component.wasm", b"\0asm\x0d\0\x01\0");
    let half = &plain()[..plain().len() / 2];
    folder.file("d-half.wasm", half);
    folder.file("readme.txt", b"not looked at");
    let kinds = folder.load();
    let messages: Vec<&str> = kinds.problems().iter().map(|p| p.message.as_str()).collect();
    assert_eq!(messages.len(), 4, "{messages:?}");
    assert!(messages[0].contains("not WebAssembly"));
    assert!(messages[1].contains("core WebAssembly module"));
    assert!(messages[2].contains("does not export proxops:kind/api@"));
    assert!(messages[3].contains("damaged"));
}

#[test]
fn two_files_with_one_kind_or_root_are_both_refused_by_name() {
    let folder = Folder::new();
    folder.file("a.wasm", &patched(plain(), "honest", "Pool", "pool"));
    folder.file("b.wasm", &patched(plain(), "honest", "Pool", "pools"));
    folder.file("c.wasm", &patched(plain(), "honest", "Group", "shared"));
    folder.file("d.wasm", &patched(plain(), "honest", "Team", "shared"));
    let kinds = folder.load();
    assert_eq!(names(&kinds), Vec::<&str>::new());
    assert_eq!(kinds.problems().len(), 4);
    for problem in kinds.problems() {
        let kind = problem.kind.as_deref().unwrap();
        let (what, files) = if kind == "Pool" {
            ("kind \"Pool\"", ["a.wasm", "b.wasm"])
        } else {
            ("root \"shared\"", ["c.wasm", "d.wasm"])
        };
        assert!(problem.message.contains(what), "{problem}");
        assert!(files.iter().all(|f| problem.message.contains(f)), "{problem}");
    }
    // a manifest of that kind learns why it is not served
    let fault = kinds.session().get("Pool").unwrap().validate(&manifest("honest")).unwrap_err();
    assert!(fault.message.contains("a.wasm") && fault.message.contains("b.wasm"), "{fault}");
}

#[test]
fn a_file_can_not_take_the_place_of_a_built_in_kind() {
    let folder = Folder::new();
    folder.file("iso.wasm", &patched(plain(), "honest", "ISO", "images"));
    folder.file("root.wasm", &patched(plain(), "honest", "Disc", "iso"));
    let kinds = Kinds::load(&Sources { builtin: true, ..folder.sources() }, limits(), None).unwrap();
    assert!(names(&kinds).contains(&"ISO") && !names(&kinds).contains(&"Disc"));
    assert_eq!(kinds.problems().len(), 2);
    assert!(kinds.problems().iter().all(|p| p.message.contains("built-in")));
    let listing = kinds.list();
    let iso = listing.iter().find(|l| l.kind.as_deref() == Some("ISO") && l.error.is_none()).unwrap();
    assert_eq!(iso.origin, "built-in");
}

#[test]
fn a_pinned_file_must_have_its_digest() {
    let folder = Folder::new();
    folder.file("pool.wasm", &patched(plain(), "honest", "Pool", "pool"));
    let digest = folder.load().list()[0].digest.clone().unwrap();
    let pinned = |pin: &str| {
        let pins = BTreeMap::from([("Pool".to_owned(), pin.to_owned())]);
        Kinds::load(&Sources { pins, ..folder.sources() }, limits(), None).unwrap()
    };
    assert_eq!(pinned(&digest.to_uppercase()).problems(), []);
    let wrong = pinned(&"0".repeat(64));
    assert!(only_problem(&wrong).message.contains(&digest), "{:?}", wrong.problems());
    assert!(wrong.session().get("Pool").unwrap().validate(&manifest("honest")).is_err());
}

#[test]
fn a_missing_folder_is_empty_and_a_missing_file_is_a_problem() {
    let folder = Folder::new();
    let sources = Sources {
        folders: vec![folder.0.path().join("none")],
        files: vec![folder.0.path().join("none.wasm")],
        ..Sources::default()
    };
    let kinds = Kinds::load(&sources, limits(), None).unwrap();
    assert!(only_problem(&kinds).origin.ends_with("none.wasm"));
}

#[test]
fn a_folder_named_twice_is_one_folder() {
    let folder = Folder::new();
    folder.file("pool.wasm", &patched(plain(), "honest", "Pool", "pool"));
    let twice = Sources {
        folders: vec![folder.0.path().to_owned(), folder.0.path().join(".")],
        ..Sources::default()
    };
    assert_eq!(names(&Kinds::load(&twice, limits(), None).unwrap()), ["Pool"]);
}

fn entries(cache: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(cache).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_warm_start_compiles_nothing_and_a_damaged_entry_is_compiled_again() {
    let (folder, cache) = (Folder::new(), Folder::new());
    folder.file("pool.wasm", &patched(plain(), "honest", "Pool", "pool"));
    let dir = cache.0.path().join("kinds");
    let load = || Kinds::load(&folder.sources(), limits(), Some(&dir)).unwrap();
    let works =
        |kinds: &Kinds| assert!(kinds.session().get("Pool").unwrap().validate(&manifest("honest")).is_ok());

    let cold = load();
    works(&cold);
    let digest = cold.list()[0].digest.clone().unwrap();
    let (code, info) = (format!("{digest}.code"), format!("{digest}.info"));
    assert_eq!(entries(&dir), [code.clone(), info.clone(), "key".to_owned()]);

    // the description alone is enough to know the kind; its code is not even looked at
    fs::remove_file(dir.join(&code)).unwrap();
    let warm = load();
    assert_eq!(names(&warm), ["Pool"]);
    assert!(!dir.join(&code).exists());
    works(&warm);
    assert!(dir.join(&code).exists());

    for entry in [&code, &info] {
        let mut bytes = fs::read(dir.join(entry)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(dir.join(entry), &bytes).unwrap();
        works(&load());
        assert_ne!(fs::read(dir.join(entry)).unwrap(), bytes, "{entry} was written again");
    }
}

#[test]
fn code_that_another_key_signed_is_not_run() {
    let (folder, ours, theirs) = (Folder::new(), Folder::new(), Folder::new());
    folder.file("pool.wasm", &patched(plain(), "honest", "Pool", "pool"));
    let load = |cache: &Folder| Kinds::load(&folder.sources(), limits(), Some(cache.0.path())).unwrap();
    let digest = load(&theirs).list()[0].digest.clone().unwrap();
    load(&ours);
    let entry = format!("{digest}.code");
    let foreign = fs::read(theirs.0.path().join(&entry)).unwrap();
    fs::write(ours.0.path().join(&entry), &foreign).unwrap();
    let kinds = load(&ours);
    assert!(kinds.session().get("Pool").unwrap().validate(&manifest("honest")).is_ok());
    assert_ne!(fs::read(ours.0.path().join(&entry)).unwrap(), foreign);
}

#[test]
fn a_cache_that_can_not_be_written_costs_time_only() {
    let folder = Folder::new();
    let not_a_folder = folder.file("pool.wasm", &patched(plain(), "honest", "Pool", "pool"));
    let kinds = Kinds::load(&folder.sources(), limits(), Some(&not_a_folder)).unwrap();
    assert!(kinds.session().get("Pool").unwrap().validate(&manifest("honest")).is_ok());
}

#[test]
fn an_artifact_kind_downloads_only_what_its_manifest_names() {
    let folder = Folder::new();
    folder.file("evil.wasm", &patched(plain(), "artifact", "Evil", "evil"));
    let session = folder.load().session();
    assert_eq!(
        validate(&session, "filename").unwrap_err().message,
        "its file name \"../../etc/passwd\" leaves its folder"
    );
    let refusal = format!("{:?}", drift(&session, "download").unwrap_err());
    assert!(refusal.contains("n1/local/other.iso") && refusal.contains("no placement"), "{refusal}");
}

#[test]
fn a_component_that_is_too_large_or_too_slow_to_compile_is_refused() {
    let folder = Folder::new();
    folder.file("pool.wasm", &patched(plain(), "honest", "Pool", "pool"));
    for (limits, expected) in [
        (
            Limits { component_bytes: 64 * 1024, ..limits() },
            "it is larger than 64 KiB (limit component-bytes)",
        ),
        (
            Limits { compile: Duration::ZERO, ..limits() },
            "it took longer than 0 s to compile (limit compile)",
        ),
    ] {
        let kinds = Kinds::load(&folder.sources(), limits, None).unwrap();
        assert_eq!(only_problem(&kinds).message, expected);
    }
}
