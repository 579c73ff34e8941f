//! Killed at the worst moment, and two processes at once.

use crate::support::vm;
use proxops_e2e::{Bench, CLUSTER};
use proxops_sim::seed;
use serde_json::json;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Starts `apply` and waits until a write with this method and path reached the simulator.
fn apply_until(bench: &Bench, method: &str, path: &str) -> Child {
    let mut child =
        bench.command(&["apply", "--yes"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    loop {
        let sent = bench.sim().write_log().iter().any(|w| w.method == method && w.path == path);
        if sent {
            return child;
        }
        assert!(child.try_wait().unwrap().is_none(), "apply ended before {method} {path}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn count(bench: &Bench, method: &str, path: &str) -> usize {
    bench.sim().write_log().iter().filter(|w| w.method == method && w.path == path).count()
}

#[test]
fn a_second_process_names_the_first_and_a_killed_create_is_taken_up_again() {
    let mut world = seed::empty();
    world.task_duration = Duration::from_secs(3600);
    let mut bench = Bench::new(world);
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({"state": "started"}))]);
    let mut first = apply_until(&bench, "POST", "/nodes/pve01/qemu");

    let second = bench.run(&["apply", "--yes"]).exits(1);
    let pid = format!("pid {}", first.id());
    assert!(second.stderr.contains(&pid) || second.stdout.contains(&pid), "{pid} is not named: {second}");
    // looking needs no lock
    bench.run(&["diff"]).exits(0);

    first.kill().unwrap(); // SIGKILL
    first.wait().unwrap();
    {
        // PVE goes on without us.
        let mut world = bench.world();
        world.task_duration = Duration::ZERO;
        world.advance(Duration::from_secs(7200));
    }
    bench.apply().exits(0);
    assert_eq!(count(&bench, "POST", "/nodes/pve01/qemu"), 1, "created once");
    assert_eq!(bench.world().guests.len(), 1);
    assert!(bench.world().guests[&100].running);
    bench.converged();
}

#[test]
fn a_run_that_finds_the_killed_ones_task_in_flight_waits_for_it() {
    let mut world = seed::empty();
    world.task_duration = Duration::from_secs(3600);
    let mut bench = Bench::new(world);
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({}))]);
    let mut first = apply_until(&bench, "POST", "/nodes/pve01/qemu");
    first.kill().unwrap();
    first.wait().unwrap();

    let mut again =
        bench.command(&["apply", "--yes"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The task still runs, so whatever the second run does it must not create again nor end well.
    let asked = bench.sim().requests();
    while bench.sim().requests() < asked + 5 {
        assert!(again.try_wait().unwrap().is_none(), "apply ended while the create task was in flight");
        std::thread::sleep(Duration::from_millis(10));
    }
    {
        let mut world = bench.world();
        world.task_duration = Duration::ZERO;
        world.advance(Duration::from_secs(7200));
    }
    assert!(again.wait().unwrap().success());
    assert_eq!(count(&bench, "POST", "/nodes/pve01/qemu"), 1, "created once");
    bench.converged();
}

#[test]
fn a_killed_clone_is_finished_and_keeps_nothing_of_its_template() {
    let mut world = seed::empty();
    world.add_guest(
        proxops_sim::GuestKind::Qemu,
        900,
        "pve01",
        &[
            ("name", "base"),
            ("template", "1"),
            ("tags", "proxops;golden"),
            ("memory", "1024"),
            ("cores", "1"),
            ("cpu", "host"),
            ("ciuser", "template-user"),
            ("scsihw", "virtio-scsi-single"),
            ("scsi0", "nfs:900/base-900-disk-0.raw,size=1G"),
            ("net0", "virtio=BC:24:11:00:00:AB,bridge=vmbr0"),
        ],
    );
    world.task_duration = Duration::from_secs(3600);
    let mut bench = Bench::new(world);
    let mut template = vm("base", 900, json!({"memory": "1GiB", "cpu": {"cores": 1}}));
    template["kind"] = json!("TemplateVM");
    template["spec"]["disks"][0]["storage"] = json!("nfs");
    bench.documents(&format!("templatevm/{CLUSTER}/base.yaml"), &[template]);
    let clone = vm("web", 100, json!({"clone": "base", "disks": null}));
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[clone]);
    let mut first = apply_until(&bench, "POST", "/nodes/pve01/qemu/900/clone");
    first.kill().unwrap();
    first.wait().unwrap();
    {
        let mut world = bench.world();
        world.task_duration = Duration::ZERO;
        world.advance(Duration::from_secs(7200));
    }
    bench.apply().exits(0);
    assert_eq!(count(&bench, "POST", "/nodes/pve01/qemu/900/clone"), 1, "cloned once");
    let config = bench.world().guests[&100].config.clone();
    assert_eq!(config["tags"], "proxops");
    assert!(!config.contains_key("ciuser"), "{config:?}");
    bench.converged();
}

#[test]
fn a_stop_signal_ends_a_run_in_good_order() {
    let mut world = seed::empty();
    world.task_duration = Duration::from_secs(3600);
    let mut bench = Bench::new(world);
    bench.configure(&["reconcile: {concurrency: 1}"]);
    bench.documents(&format!("vm/{CLUSTER}/all.yaml"), &[vm("a", 100, json!({})), vm("b", 101, json!({}))]);
    let mut child = apply_until(&bench, "POST", "/nodes/pve01/qemu");
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    {
        let mut world = bench.world();
        world.task_duration = Duration::ZERO;
        world.advance(Duration::from_secs(7200));
    }
    let code = child.wait().unwrap().code();
    assert!(code.is_some(), "it ended by the signal, not in its own way");
    bench.apply().exits(0);
    bench.converged();
    assert_eq!(bench.world().guests.keys().copied().collect::<Vec<_>>(), [100, 101]);
}
