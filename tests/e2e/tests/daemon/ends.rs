//! How the daemon ends, and what the next start does.

use super::{bench, cycles};
use crate::support::vm;
use proxops_e2e::{CLUSTER, Daemon};
use serde_json::json;
use std::time::Duration;

#[test]
fn sigterm_while_idle_ends_it_at_once_and_well() {
    let bench = bench();
    let mut daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    daemon.signal("TERM");
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
}

/// Loops hear the stop as soon as the daemon does: that one ended first is no failure. A matter of luck, so many times.
#[test]
fn a_clean_stop_tells_of_no_broken_loop() {
    let bench = bench();
    for _ in 0..10 {
        let mut daemon = Daemon::start(&bench, &[]);
        daemon.until_converged(CLUSTER);
        daemon.signal("TERM");
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
        assert!(!daemon.log().contains("broke down"), "{}", daemon.log());
    }
}

#[test]
fn sigterm_during_an_apply_waits_for_what_is_in_flight_and_starts_nothing_more() {
    let mut bench = bench();
    bench.world().task_duration = Duration::from_secs(3600);
    bench.configure(&["reconcile: {concurrency: 1}"]);
    bench.documents(&format!("vm/{CLUSTER}/all.yaml"), &[vm("a", 200, json!({})), vm("b", 201, json!({}))]);
    let mut daemon = Daemon::start(&bench, &[]);
    let cluster = daemon.until(CLUSTER, "creating", |c| c["running"][0]["upid"].is_string());
    assert_eq!(cluster["phase"], "executing");
    daemon.signal("TERM");
    std::thread::sleep(Duration::from_millis(500));
    assert!(daemon.runs(), "it waits for the task: {}", daemon.log());
    {
        let mut world = bench.world();
        world.task_duration = Duration::ZERO;
        world.advance(Duration::from_secs(7200));
    }
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    let creates = || bench.sim().write_log().iter().filter(|w| w.path == "/nodes/pve01/qemu").count();
    assert_eq!(creates(), 1, "nothing more was started");
    // The next start makes the rest, once.
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    assert_eq!(creates(), 3);
    bench.converged();
}

#[test]
fn a_daemon_killed_during_an_apply_is_continued_by_the_next() {
    let bench = bench();
    bench.world().task_duration = Duration::from_secs(3600);
    let daemon = Daemon::start(&bench, &[]);
    daemon.until(CLUSTER, "creating", |c| c["running"][0]["upid"].is_string());
    drop(daemon); // SIGKILL
    let daemon = Daemon::start(&bench, &[]);
    // It waits for the task that it found in flight.
    daemon.until(CLUSTER, "planning", |c| c["phase"] == "planning");
    {
        let mut world = bench.world();
        world.task_duration = Duration::ZERO;
        world.advance(Duration::from_secs(7200));
    }
    let cluster = daemon.until_converged(CLUSTER);
    assert!(cycles(&cluster) >= 1);
    assert_eq!(
        bench.sim().write_log().iter().filter(|w| w.path == "/nodes/pve01/qemu").count(),
        1,
        "created once"
    );
}

/// Two minutes: run it with `--ignored`.
#[test]
#[ignore = "waits for the whole bound of 120 s"]
fn sigterm_while_a_task_never_ends_is_bounded() {
    let bench = bench();
    bench.world().task_duration = Duration::from_secs(360_000);
    let mut daemon = Daemon::start(&bench, &[]);
    daemon.until(CLUSTER, "creating", |c| c["running"][0]["upid"].is_string());
    daemon.signal("TERM");
    let started = std::time::Instant::now();
    while daemon.runs() {
        assert!(started.elapsed() < Duration::from_secs(150), "{}", daemon.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    eprintln!("it ended after {:?}", started.elapsed());
}
