//! `diff --out FILE`, then `apply FILE`: exactly what was agreed to, or nothing.

use crate::support::vm;
use proxops_e2e::{Bench, CLUSTER, Run};
use proxops_sim::{GuestKind, seed};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A new guest, one to update, one to delete; everything committed.
fn bench() -> (Bench, PathBuf) {
    let mut world = seed::empty();
    let disk = |vmid: u32| format!("local-lvm:vm-{vmid}-disk-0,size=1G");
    for (vmid, name) in [(101, "there"), (102, "old")] {
        let disk = disk(vmid);
        let config = [
            ("name", name),
            ("memory", "256"),
            ("cores", "2"),
            ("cpu", "host"),
            ("scsihw", "virtio-scsi-single"),
            ("scsi0", &disk),
            ("net0", "virtio=BC:24:11:00:01:01,bridge=vmbr0"),
            ("tags", "proxops"),
        ];
        world.add_guest(GuestKind::Qemu, vmid, "pve01", &config);
    }
    let mut bench = Bench::new(world);
    bench.documents(
        &format!("vm/{CLUSTER}/a.yaml"),
        &[vm("new", 100, json!({})), vm("there", 101, json!({}))],
    );
    commit(&bench);
    let file = bench.data_dir().join("plan.json");
    (bench, file)
}

fn commit(bench: &Bench) {
    for words in [&["add", "-A"][..], &["commit", "--quiet", "-m", "state"]] {
        let git = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(words)
            .current_dir(bench.repo())
            .status()
            .unwrap();
        assert!(git.success());
    }
}

fn save(bench: &Bench, file: &Path) -> Run {
    bench.run(&["diff", "-o", "json", "--out", file.to_str().unwrap()]).exits(0)
}

fn apply(bench: &Bench, file: &Path) -> Run {
    bench.run(&["apply", "-o", "json", "--yes", file.to_str().unwrap()])
}

/// Nothing was written, and the text says what changed.
fn refused(bench: &Bench, file: &Path, words: &[&str]) {
    let run = apply(bench, file).exits(1);
    assert!(bench.writes().is_empty(), "{run}");
    let document = run.json();
    assert_eq!(document["clusters"][0]["state"], "aborted", "{run}");
    let error = document["clusters"][0]["error"].as_str().unwrap();
    for word in words {
        assert!(error.contains(word), "{word:?} is not in {error}");
    }
}

#[test]
fn a_saved_plan_is_applied_as_it_was_shown() {
    let (bench, file) = bench();
    let shown = save(&bench, &file);
    assert!(bench.writes().is_empty());
    let text = fs::read_to_string(&file).unwrap();
    let saved: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(saved["format"], "proxops.plan/v1");
    assert_eq!(saved["clusters"][0]["actions"], shown.json()["clusters"][0]["actions"]);
    let run = apply(&bench, &file).exits(0);
    assert_eq!(run.actions(), shown.actions());
    assert_eq!(run.failures(), [""; 0]);
    bench.converged();
    // once applied, it fits no more
    bench.writes();
    refused(&bench, &file, &["create:VM/new", "not needed any more"]);
}

#[test]
fn deletes_of_a_saved_plan_are_asked_for_as_any() {
    let (bench, file) = bench();
    save(&bench, &file);
    bench.run(&["apply", file.to_str().unwrap()]).exits(1).says("--yes");
    assert!(bench.writes().is_empty());
}

#[test]
fn a_dry_run_of_a_saved_plan_tells_whether_it_still_fits() {
    let (bench, file) = bench();
    save(&bench, &file);
    let dry = bench.run(&["apply", "--dry-run", file.to_str().unwrap()]).exits(0).says("DELETE");
    assert_eq!(dry.stdout, bench.run(&["diff"]).stdout, "what would be done is the plan");
    bench.meddle("PUT", "/nodes/pve01/qemu/101/config", json!({"cores": 4}));
    bench.writes();
    bench.run(&["apply", "--dry-run", file.to_str().unwrap()]).exits(1).says("live configuration");
    assert!(bench.writes().is_empty());
}

#[test]
fn a_change_behind_the_back_refuses_the_plan_and_names_the_guest() {
    let (bench, file) = bench();
    save(&bench, &file);
    // not even a key that the plan is about
    bench.meddle("PUT", "/nodes/pve01/qemu/101/config", json!({"description": "by hand"}));
    bench.writes();
    refused(&bench, &file, &["update:VM/there", "live configuration was changed"]);
}

#[test]
fn a_guest_that_appeared_refuses_the_plan() {
    let (bench, file) = bench();
    save(&bench, &file);
    bench.world().add_guest(GuestKind::Qemu, 103, "pve02", &[("name", "late"), ("tags", "proxops")]);
    refused(&bench, &file, &["delete:qemu/103", "the saved plan does not have it"]);
}

#[test]
fn another_commit_refuses_the_plan() {
    let (mut bench, file) = bench();
    save(&bench, &file);
    bench.write("README.md", "nothing that a plan depends on");
    commit(&bench);
    refused(&bench, &file, &["commit"]);
    bench.documents(&format!("vm/{CLUSTER}/b.yaml"), &[vm("more", 105, json!({}))]);
    refused(&bench, &file, &["commit", "create:VM/more"]);
}

#[test]
fn an_uncommitted_change_of_a_manifest_refuses_the_plan() {
    let (mut bench, file) = bench();
    save(&bench, &file);
    let more = json!({"memory": "1GiB"});
    bench.documents(&format!("vm/{CLUSTER}/a.yaml"), &[vm("new", 100, more), vm("there", 101, json!({}))]);
    refused(&bench, &file, &["create:VM/new", "something else"]);
}

#[test]
fn another_version_of_a_kind_or_an_edited_file_refuses_the_plan() {
    let (bench, file) = bench();
    save(&bench, &file);
    let saved: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let mut other = saved.clone();
    other["kinds"]["VM"]["version"] = json!("0.0.1");
    fs::write(&file, other.to_string()).unwrap();
    refused(&bench, &file, &["kind VM", "it was 0.0.1"]);
    let mut other = saved.clone();
    let actions = other["clusters"][0]["actions"].as_array_mut().unwrap();
    actions.retain(|action| action["verb"] != "delete");
    fs::write(&file, other.to_string()).unwrap();
    refused(&bench, &file, &["delete:qemu/102"]);
    let mut other = saved;
    other["clusters"][0]["actions"][0]["changes"][0]["to"] = json!("nonsense");
    fs::write(&file, other.to_string()).unwrap();
    refused(&bench, &file, &["something else"]);
}

#[test]
fn what_is_no_saved_plan_is_told_and_nothing_is_done() {
    let (bench, file) = bench();
    let name = file.to_str().unwrap().to_owned();
    bench.run(&["apply", "--yes", &name]).exits(1).says("can't be read");
    for (text, says) in [
        ("vm: yaml", "is not a saved plan"),
        ("{}", "is not a saved plan"),
        ("{\"format\": \"proxops.plan/v9\"}", "proxops.plan/v9"),
        ("{\"format\": \"proxops.plan/v1\", \"clusters\": 3}", "is damaged"),
    ] {
        fs::write(&file, text).unwrap();
        bench.run(&["apply", "--yes", &name]).exits(1).says(says);
    }
    assert!(bench.writes().is_empty());
}

#[test]
fn no_plan_is_saved_of_a_cluster_that_can_not_be_planned() {
    let (mut bench, file) = bench();
    bench.point_at("http://127.0.0.1:1");
    bench.run(&["diff", "--out", file.to_str().unwrap()]).exits(1).says("no plan was saved");
    assert!(!file.exists());
}
