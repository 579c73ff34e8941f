//! Rows of the failure table that no other file has: what fails is shown, the rest goes on, the next run converges.

use crate::support::{iso, vm};
use proxops_e2e::{Bench, CLUSTER};
use proxops_sim::{FaultAnswer, Faults, RequestFault, TaskRule, World, seed};
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::Duration;

fn bench(world: World) -> Bench {
    let mut bench = Bench::new(world);
    bench.documents(&format!("iso/{CLUSTER}/all.yaml"), &[iso("rescue")]);
    let with_cd = json!({"hardware": {"cdrom": {"iso": "rescue"}}});
    bench.documents(
        &format!("vm/{CLUSTER}/all.yaml"),
        &[vm("reader", 100, with_cd), vm("other", 101, json!({}))],
    );
    bench
}

#[test]
fn a_storage_that_can_not_be_listed_defers_what_needs_it_and_nothing_is_downloaded_blindly() {
    let bench = bench(seed::empty());
    let broken = [("local".to_owned(), "mount is gone".to_owned())].into();
    bench.sim().apply(Faults { storage_errors: broken, ..Faults::default() });
    let plan = bench.diff();
    assert_eq!(plan.actions(), ["create VM/other"], "{plan}");
    let names = |list: &str| -> Vec<String> {
        plan.list(list).iter().map(|n| n["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (names("unknown"), names("deferred")),
        (vec!["rescue".into()], vec!["reader".into()]),
        "{plan}"
    );
    assert!(plan.stdout.contains("mount is gone"), "{plan}");
    bench.apply().exits(0);
    assert_eq!(bench.world().guests.keys().copied().collect::<Vec<_>>(), [101]);
    assert!(bench.writes().iter().all(|write| !write.path.contains("download-url")));

    for storage in bench.world().storages.values_mut() {
        storage.broken = None;
    }
    bench.apply().exits(0);
    bench.converged();
}

#[test]
fn a_task_that_fails_is_shown_in_pves_words_and_the_next_run_does_it_again() {
    let bench = bench(seed::empty());
    bench.world().task_rules.push(TaskRule::fail("download", "download failed: 404 Not Found"));
    bench.world().task_rules.push(TaskRule {
        id: Some("101".into()),
        ..TaskRule::fail("qmcreate", "unable to create VM 101 - lvcreate 'pve/vm-101-disk-0' error: boom")
    });
    let run = bench.apply().exits(1);
    let failures = run.failures();
    assert_eq!(failures.len(), 3, "{run}");
    let of = |name: &str| {
        failures.iter().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {run}"))
    };
    assert!(of("ISO/rescue").contains("404 Not Found"), "{run}");
    assert!(of("VM/other").contains("error: boom"), "{run}");
    assert!(of("VM/reader").contains("prerequisite") && of("VM/reader").contains("ISO/rescue"), "{run}");
    bench.apply().exits(0);
    bench.converged();
}

#[test]
fn a_download_that_outlives_its_run_is_not_begun_again() {
    let mut bench = Bench::new(seed::empty());
    bench.configure(&["reconcile: {task-timeout: 1s}"]);
    bench.documents(&format!("iso/{CLUSTER}/rescue.yaml"), &[iso("rescue")]);
    let hangs = TaskRule { hang: true, ..TaskRule::fail("download", "") };
    bench.world().task_rules.push(hangs);
    bench.apply().exits(1);
    bench.writes();
    for _ in 0..2 {
        let run = bench.apply();
        assert!(run.list("deferred")[0]["why"].as_str().unwrap().contains("still runs"), "{run}");
        assert!(bench.writes().is_empty(), "{run}");
    }
}

#[test]
fn a_guest_is_not_stopped_again_for_a_change_that_pve_refuses() {
    let mut bench = Bench::new(seed::empty());
    let mut web = vm("web", 100, json!({"state": "started", "memory": "1GiB"}));
    web["metadata"]["annotations"] = json!({"proxops/restart": "allow"});
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[web.clone()]);
    bench.apply().exits(0);
    web["spec"]["memory"] = json!("2GiB");
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[web]);
    let refused = |status, message: &str| FaultAnswer::Status {
        status,
        message: message.to_owned(),
        errors: Default::default(),
        effect: false,
    };
    bench.sim().inject(RequestFault {
        times: 2,
        ..RequestFault::once(
            "PUT|POST",
            "/nodes/pve01/qemu/100/config",
            refused(403, "Permission check failed (/vms/100, VM.Config.Memory)"),
        )
    });
    let stops = |bench: &Bench| bench.writes().iter().filter(|write| write.path.contains("/status/")).count();
    bench.writes();
    bench.apply().exits(1);
    assert_eq!(stops(&bench), 2, "stopped, and started again");
    bench.apply().exits(1);
    assert_eq!(stops(&bench), 0);
    // PVE takes it, as pending; the next run restarts for it
    bench.apply().exits(0);
    bench.apply().exits(0);
    assert_eq!(stops(&bench), 2);
    bench.converged();
}

#[test]
fn a_creation_that_ended_well_and_left_its_lock_fails_and_says_what_to_do() {
    let mut bench = Bench::new(seed::empty());
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({}))]);
    // the second look at the inventory is the read-back
    let locked = Faults { guest_locks: [(100, "create".into())].into(), ..Faults::default() };
    bench.sim().inject(RequestFault {
        skip: 1,
        answer: None,
        change: Some(Box::new(locked)),
        ..RequestFault::once("GET", "/cluster/resources", FaultAnswer::Html)
    });
    let run = bench.apply().exits(1);
    let error = run.failures().remove(0);
    assert!(error.contains("locked (create)") && error.contains("`qm unlock 100` on pve01"), "{run}");
    assert!(error.contains("Look at its disks"), "{run}");

    // a later run finds a locked guest, which it leaves alone: nothing failed, and the cluster is not clean
    bench.writes();
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({"memory": "1GiB"}))]);
    let run = bench.run(&["apply", "-o", "json", "--yes", "--exit-code"]).exits(2);
    assert!(run.list("deferred")[0]["why"].as_str().unwrap().contains("qm unlock 100"), "{run}");
    bench.run(&["apply", "--yes"]).exits(0).says("0 actions done, 0 failed, 1 deferred.");
    assert!(bench.writes().is_empty(), "{run}");

    bench.world().guests.get_mut(&100).unwrap().config.remove("lock");
    bench.apply().exits(0);
    bench.converged();
}

/// Moves the times that the journal holds, which is what a clock that jumped looks like to the next run.
fn shift_journal(bench: &Bench, years: i32) {
    let script = "import sqlite3,sys
db = sqlite3.connect(sys.argv[1])
n = db.execute(\"update operations set started = strftime('%Y-%m-%dT%H:%M:%SZ', started, ?)\", (sys.argv[2],)).rowcount
db.commit()
assert n > 0, 'no operation'";
    let file = bench.data_dir().join("journal.sqlite3");
    let shift = format!("{years:+} years");
    let done = Command::new("python3").args(["-c", script]).arg(file).arg(shift).status().unwrap();
    assert!(done.success());
}

#[test]
fn a_clock_that_jumped_neither_blocks_a_run_nor_makes_a_second_guest() {
    // forward: what was begun looks ten years old; back: it lies in the future
    for years in [-10, 10] {
        let mut world = seed::empty();
        world.task_duration = Duration::from_secs(3600);
        let mut bench = Bench::new(world);
        bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({}))]);
        let mut child =
            bench.command(&["apply", "--yes"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while bench.sim().write_log().is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "apply ended early");
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        shift_journal(&bench, years);
        {
            let mut world = bench.world();
            world.task_duration = Duration::ZERO;
            world.advance(Duration::from_secs(7200));
        }
        bench.apply().exits(0);
        let creates = bench.writes().iter().filter(|write| write.path == "/nodes/pve01/qemu").count();
        assert_eq!(creates, 1, "{years} years");
        bench.converged();
        let history = bench.run(&["history", "-o", "json"]).exits(0);
        assert!(history.stdout.contains("interrupted"), "{years} years: {history}");
    }
}

#[test]
fn a_fault_file_of_the_simulators_command_does_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("faults.yaml");
    std::fs::write(
        &file,
        "requests:\n  - {method: POST, path: '/nodes/*/qemu', times: 1, answer: drop-after}\n",
    )
    .unwrap();
    let mut sim = Command::new(proxops_e2e::binary())
        .args(["sim", "--http", "--port", "0", "--faults"])
        .arg(&file)
        .env_clear()
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(sim.stdout.take().unwrap()));
    let url =
        lines.find_map(|line| line.unwrap().rsplit_once(" on ").map(|(_, url)| url.to_owned())).unwrap();
    let mut bench = Bench::offline(&url);
    bench.set("PROXOPS_PVE_TOKEN_VALUE", &format!("{}={}", seed::TOKEN_ID, seed::TOKEN_SECRET));
    bench.configure(&["reconcile: {owner-tag: mine}"]);
    let node = json!({"node": "pve01", "disks": null, "networks": null});
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 7777, node)]);
    let run = bench.apply();
    let again = bench.run(&["diff", "-o", "json"]);
    sim.kill().unwrap();
    sim.wait().unwrap();
    let run = run.exits(0);
    assert_eq!(run.list("actions")[0]["result"], "ok", "{run}");
    assert!(again.actions().is_empty(), "{again}");

    std::fs::write(&file, "requets: []\n").unwrap();
    let refused = Command::new(proxops_e2e::binary())
        .args(["sim", "--http", "--port", "0", "--faults"])
        .arg(&file)
        .env_clear()
        .output()
        .unwrap();
    let refused = proxops_e2e::Run::of(refused).exits(1);
    assert!(refused.stderr.contains("requets") && refused.stderr.contains("faults.yaml"), "{refused}");
}
