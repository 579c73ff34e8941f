//! Readers of stdout and stderr that go away, and disks that are full: the work and its exit code are what they are.

use crate::support::vm;
use proxops_e2e::{Bench, CLUSTER, Run, binary};
use proxops_sim::seed;
use serde_json::json;
use std::fs::File;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// An end of a pipe that nobody reads.
fn nobody() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn bench() -> Bench {
    let mut bench = Bench::new(seed::empty());
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({}))]);
    bench
}

/// The run with a stdout that nobody reads.
fn unheard(bench: &Bench, words: &[&str]) -> Run {
    Run::of(bench.command(words).stdout(nobody()).output().unwrap())
}

/// The run with a stdout whose disk is full.
fn full(bench: &Bench, words: &[&str]) -> Run {
    let disk = File::options().write(true).open("/dev/full").unwrap();
    Run::of(bench.command(words).stdout(disk).output().unwrap())
}

fn ended(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > Duration::from_secs(30) {
            child.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn terminate(child: &Child) {
    let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn a_reader_of_stdout_that_went_away_does_not_change_the_exit_code() {
    let bench = bench();
    for output in ["text", "json", "markdown"] {
        unheard(&bench, &["diff", "-o", output]).exits(0);
        unheard(&bench, &["diff", "--exit-code", "-o", output]).exits(2);
    }
    unheard(&bench, &["apply"]).exits(0);
    bench.converged();
    unheard(&bench, &["status"]).exits(0);

    // Nothing answers.
    let mut dead = Bench::offline("https://127.0.0.1:1");
    dead.set("PROXOPS_PVE_TOKEN_VALUE", "gitops@pve!proxops=5ec7e700-0000-4000-8000-c0ffee000009");
    for words in [["diff"].as_slice(), &["apply"], &["status"], &["doctor"], &["diff", "-o", "json"]] {
        unheard(&dead, words).exits(1);
    }
    unheard(&dead, &["validate"]).exits(0);
    dead.write("proxops.yaml", "lisen: 127.0.0.1:1\n");
    unheard(&dead, &["validate"]).exits(1);
    unheard(&dead, &["validate", "-o", "json"]).exits(1);
}

#[test]
fn no_command_breaks_down_over_a_stdout_that_nobody_reads() {
    let bench = bench();
    let schemas = bench.data_dir().join("schemas").display().to_string();
    let schemas = schemas.as_str();
    for words in [
        ["completions", "bash"].as_slice(),
        &["schema", "VM"],
        &["schema", "--all", schemas],
        &["explain", "VM"],
        &["kinds", "list"],
        &["kinds", "inspect", "VM"],
        &["history"],
        &["suspend", "--cluster", CLUSTER],
        &["resume", "--cluster", CLUSTER],
        &["--help"],
        &["--version"],
    ] {
        unheard(&bench, words).exits(0);
    }
    assert!(bench.data_dir().join("schemas/manifest.schema.json").exists());
}

#[test]
fn a_demo_that_nobody_watches_takes_its_folder_away_again() {
    let bench = bench();
    let temporary = bench.data_dir().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = Command::new(binary());
    command.arg("demo").env_clear().env("PATH", "/usr/bin:/bin").env("TMPDIR", &temporary);
    command.env("HOME", &temporary).current_dir(&temporary).stdin(Stdio::null()).stdout(nobody());
    Run::of(command.output().unwrap()).exits(0);
    let left: Vec<_> = std::fs::read_dir(&temporary).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("proxops-demo")), "{left:?}");
}

#[test]
fn a_full_disk_under_stdout_is_an_error_that_says_so() {
    let bench = bench();
    for words in [
        ["diff"].as_slice(),
        &["diff", "-o", "json", "--exit-code"],
        &["completions", "bash"],
        &["explain", "VM"],
        &["suspend", "--cluster", CLUSTER],
        &["resume", "--cluster", CLUSTER],
        &["--help"],
    ] {
        full(&bench, words).exits(1).says("stdout can't be written");
    }
    // What was asked for is done all the same.
    full(&bench, &["apply"]).exits(1);
    bench.converged();
}

#[test]
fn an_apply_whose_stderr_nobody_reads_does_all_of_its_work() {
    let mut bench = bench();
    bench.documents(&format!("vm/{CLUSTER}/db.yaml"), &[vm("db", 101, json!({}))]);
    let output = bench.command(&["apply", "-vv", "-o", "json"]).stderr(nobody()).output().unwrap();
    let run = Run::of(output).exits(0);
    assert_eq!(run.list("actions").len(), 2, "{run}");
    bench.converged();
}

#[test]
fn a_daemon_and_a_simulator_whose_stderr_nobody_reads_work_and_end_when_they_are_told_to() {
    let bench = bench();
    bench.write("proxops.yaml", "reconcile: {poll-interval: 1s}\nlog: {level: debug}\n");
    let mut daemon = bench
        .command(&["run", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(nobody())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !bench.world().guests.contains_key(&100) {
        assert!(daemon.try_wait().unwrap().is_none(), "the daemon ended");
        assert!(start.elapsed() < Duration::from_secs(30), "the VM is not made");
        std::thread::sleep(Duration::from_millis(50));
    }
    terminate(&daemon);
    assert_eq!(ended(&mut daemon).code(), Some(0));
    bench.converged();

    let mut sim = bench.command(&["sim", "--port", "0"]).stdout(nobody()).stderr(nobody()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert!(sim.try_wait().unwrap().is_none(), "the simulator ended");
    terminate(&sim);
    assert_eq!(ended(&mut sim).code(), Some(0));
}
