//! Components of third parties: one that misbehaves fails its own resources, is named, and nothing else stops.

use crate::support::{manifest, vm};
use proxops_e2e::{Bench, CLUSTER, hostile_kind};
use proxops_sim::{World, seed};
use serde_json::json;

fn world() -> World {
    let mut world = seed::empty();
    // The node that the hostile kind's guests name.
    world.add_node("n1");
    world
}

/// One honest VM, and one resource of the hostile kind with this attack.
fn bench(attack: &str) -> Bench {
    let mut bench = Bench::new(world());
    bench.write("kinds/evil.wasm", hostile_kind("honest", "Evil", "evil"));
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 200, json!({}))]);
    bench.documents(
        &format!("evil/{CLUSTER}/bad.yaml"),
        &[manifest("Evil", "bad", json!({ "attack": attack }))],
    );
    bench
}

#[test]
fn a_kind_that_loops_traps_or_returns_nonsense_fails_its_own_resources_and_is_named() {
    for attack in ["loop", "panic", "vmid", "items"] {
        let bench = bench(attack);
        let run = bench.run(&["validate", "-o", "json"]).exits(1);
        let document = run.json();
        let found = document["diagnostics"].as_array().unwrap();
        assert_eq!(found.len(), 1, "{attack}: {run}");
        assert_eq!(
            (&found[0]["code"], &found[0]["file"]),
            (&json!("kind-fault"), &json!("evil/lab/bad.yaml")),
            "{run}"
        );
        let message = found[0]["message"].as_str().unwrap();
        assert!(message.contains("Evil") && message.contains("evil.wasm"), "{attack}: {message}");
        let run = bench.apply().exits(1);
        assert_eq!(run.actions(), ["create VM/web"], "{attack}: {run}");
        assert!(run.anomalies().iter().any(|a| a.ends_with("Evil/bad")), "{attack}: {run}");
        assert_eq!(bench.world().guests.keys().copied().collect::<Vec<_>>(), [200], "{attack}");
    }
}

#[test]
fn a_kind_that_asks_for_what_no_kind_may_ask_gets_nothing_written() {
    for attack in ["skiplock", "value-other", "secret-unlisted", "gigabytes"] {
        let bench = bench(attack);
        let run = bench.apply().exits(1);
        let named = run.list("anomalies").iter().any(|a| {
            a["kind"] == "Evil"
                && a["severity"] == "error"
                && a["message"].as_str().unwrap().contains("evil.wasm")
        });
        // Some attacks are already seen when the manifest is checked; then validate says so as well.
        assert!(named, "{attack}: {run}");
        assert_eq!(bench.world().guests.keys().copied().collect::<Vec<_>>(), [200], "{attack}");
    }
}

#[test]
fn a_file_that_is_no_kind_is_named_and_all_others_go_on() {
    let mut bench = Bench::new(world());
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 200, json!({}))]);
    bench.write("kinds/loops.wasm", hostile_kind("loop", "Loops", "loops"));
    bench.write("kinds/panics.wasm", hostile_kind("panic", "Panics", "panics"));
    bench.write("kinds/nonsense.wasm", b"\x00\x01garbage");
    bench.write("kinds/good.wasm", hostile_kind("honest", "Good", "good"));
    let list = bench.run(&["kinds", "list", "-o", "json"]).exits(1);
    for file in ["loops.wasm", "panics.wasm", "nonsense.wasm"] {
        assert!(list.stdout.contains(file), "{file}: {list}");
    }
    let run = bench.apply().exits(0);
    assert_eq!(run.actions(), ["create VM/web"]);
    for file in ["loops.wasm", "panics.wasm", "nonsense.wasm"] {
        assert!(run.stderr.contains(file), "{file}: {run}");
    }
    assert!(!run.stderr.contains("good.wasm"), "{run}");
    bench.converged();
}

#[test]
fn a_kind_that_panics_while_it_describes_itself_does_not_take_the_host_along() {
    // The only file, so that the thread that loads kinds is the one that meets it.
    let mut bench = Bench::new(world());
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 200, json!({}))]);
    bench.write("kinds/panics.wasm", hostile_kind("panic", "Panics", "panics"));
    let run = bench.apply().exits(0).says("panics.wasm");
    assert_eq!(run.actions(), ["create VM/web"]);
}

#[test]
fn a_broken_kind_holds_prunes_back_since_its_vmids_are_not_known() {
    let bench = bench("loop");
    bench.world().add_guest(
        proxops_sim::GuestKind::Qemu,
        300,
        "pve01",
        &[("name", "perhaps-its"), ("memory", "512"), ("tags", "proxops")],
    );
    let run = bench.apply().exits(1);
    assert!(bench.world().guests.contains_key(&300), "{run}");
    assert_eq!(run.list("deferred").len(), 1, "{run}");
}
