//! Objects of third-party kinds, end to end: the example kinds as their authors build them, and a hostile one.

use crate::support::manifest;
use proxops_e2e::{Bench, CLUSTER, example_kind, hostile_kind};
use proxops_sim::{FaultAnswer, GuestKind, RequestFault, World, seed};
use serde_json::{Value, json};

const GRANT: &str =
    "kinds:\n  - {kind: Pool, allow: [/pools]}\n  - {kind: HAResource, allow: [/cluster/ha/resources]}\n";

fn thing(kind: &str, name: &str, spec: Value) -> Value {
    let mut manifest = manifest(kind, name, spec);
    manifest["apiVersion"] = json!("example.org/v1");
    manifest
}

fn pool(name: &str, spec: Value) -> Value {
    thing("Pool", name, spec)
}

fn bench(world: World) -> Bench {
    let mut bench = Bench::new(world);
    bench.write("kinds/pool.wasm", example_kind("pool"));
    bench.write("kinds/ha.wasm", example_kind("ha-resource"));
    bench.write("proxops.yaml", GRANT);
    // the token of the simulator's user is no administrator
    bench = bench.as_root();
    bench
}

fn web(bench: &mut Bench, specs: &[(&str, Value)]) {
    let documents: Vec<Value> = specs.iter().map(|(name, spec)| pool(name, spec.clone())).collect();
    bench.documents(&format!("pool/{CLUSTER}/pools.yaml"), &documents);
}

fn paths(bench: &Bench) -> Vec<String> {
    bench.writes().iter().map(|w| format!("{} {}", w.method, w.path)).collect()
}

#[test]
fn a_pool_is_made_filled_changed_and_removed_and_each_time_nothing_is_left_to_do() {
    let mut bench = bench(seed::empty());
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[crate::support::vm("web", 100, json!({}))]);
    web(
        &mut bench,
        &[("web", json!({"pool": "web", "comment": "Web", "guests": ["VM/web"], "storages": ["nfs"]}))],
    );
    let plan = bench.diff();
    assert_eq!(plan.actions(), ["create VM/web", "create Pool/web"], "{plan}");
    bench.apply().exits(0);
    {
        let world = bench.world();
        let made = &world.pools["web"];
        assert_eq!(made.comment, "Web\nproxops:proxops:Pool/web");
        assert!(made.vms.contains(&100) && made.storages.contains("nfs"));
    }
    bench.converged();

    // somebody changes it behind the back
    bench.meddle("PUT", "/pools", json!({"poolid": "web", "vms": "100", "delete": "1"}));
    bench.meddle("PUT", "/pools", json!({"poolid": "web", "comment": "mine\nproxops:proxops:Pool/web"}));
    let plan = bench.diff();
    assert_eq!(plan.actions(), ["update Pool/web"], "{plan}");
    bench.apply().exits(0);
    assert_eq!(bench.world().pools["web"].comment, "Web\nproxops:proxops:Pool/web");
    bench.converged();

    web(&mut bench, &[("web", json!({"pool": "web"}))]);
    bench.apply().exits(0);
    bench.converged();
    bench.unlist(&format!("pool/{CLUSTER}/pools.yaml"));
    let plan = bench.diff();
    assert_eq!(plan.actions(), ["delete Pool/web"], "{plan}");
    bench.writes();
    bench.apply().exits(0);
    assert_eq!(paths(&bench), ["DELETE /pools"]);
    assert!(bench.world().pools.is_empty());
    bench.converged();
}

#[test]
fn without_a_grant_nothing_is_read_and_the_lines_to_add_are_shown() {
    let mut bench = bench(seed::empty());
    bench.write("proxops.yaml", "kinds:\n  - {kind: HAResource, allow: [/pools]}\n");
    web(&mut bench, &[("web", json!({"pool": "web"}))]);
    // whoever reads there learns nothing
    let answer = FaultAnswer::Status {
        status: 500,
        message: "must not be read".to_owned(),
        errors: [].into(),
        effect: false,
    };
    bench.sim().inject(RequestFault { times: 0, ..RequestFault::once("*", "/pools", answer) });
    let plan = bench.diff();
    assert_eq!(plan.anomalies(), ["not-granted Pool/web"], "{plan}");
    let help = plan.list("anomalies")[0]["help"].as_str().unwrap().to_owned();
    assert!(help.contains("kinds: [{kind: Pool, allow: [/pools]}]"), "{help}");
    assert!(!plan.stdout.contains("must not be read"), "{plan}");
    bench.apply();
    assert_eq!(bench.writes().len(), 0);
}

#[test]
fn a_pool_that_is_not_marked_as_ours_is_never_touched() {
    let mut world = seed::empty();
    for (name, comment) in [
        ("mine", "of somebody"),
        ("theirs", "proxops:other:Pool/theirs"),
        ("twin", "proxops:proxops:Pool/other"),
    ] {
        world.pools.entry(name.to_owned()).or_default().comment = comment.to_owned();
    }
    let before: Vec<String> = world.pools.values().map(|p| p.comment.clone()).collect();
    let mut bench = bench(world);
    let all = ["mine", "theirs", "twin"].map(|name| (name, json!({"pool": name, "comment": "now ours"})));
    web(&mut bench, &all);
    let plan = bench.diff();
    assert_eq!(
        plan.anomalies(),
        ["not-ours Pool/mine", "not-ours Pool/theirs", "not-ours Pool/twin"],
        "{plan}"
    );
    bench.apply();
    assert_eq!(bench.writes().len(), 0);
    // nor deleted
    web(&mut bench, &[("lab", json!({"pool": "lab"}))]);
    bench.configure(&["reconcile: {prune-budget: 0}"]);
    bench.apply().exits(0);
    let after: Vec<String> = bench.world().pools.values().map(|p| p.comment.clone()).collect();
    assert!(before[..2].iter().all(|comment| after.contains(comment)), "{after:?}");
    // the third carries our tag, our kind and a name that no manifest has
    assert!(!bench.world().pools.contains_key("twin"));
    // handed over by its marker
    bench.meddle("PUT", "/pools", json!({"poolid": "mine", "comment": "proxops:proxops:Pool/mine"}));
    web(
        &mut bench,
        &[("lab", json!({"pool": "lab"})), ("mine", json!({"pool": "mine", "comment": "now ours"}))],
    );
    bench.apply().exits(0);
    assert_eq!(bench.world().pools["mine"].comment, "now ours\nproxops:proxops:Pool/mine");
}

#[test]
fn prune_of_objects_keeps_the_budget_and_the_empty_desired_guard() {
    let mut world = seed::empty();
    for n in 0..5 {
        let name = format!("old-{n}");
        world.pools.entry(name.clone()).or_default().comment = format!("proxops:proxops:Pool/{name}");
    }
    let mut bench = bench(world);
    let plan = bench.diff();
    assert_eq!(plan.anomalies(), ["empty-desired Pool/*"], "{plan}");
    web(&mut bench, &[("lab", json!({"pool": "lab"}))]);
    let plan = bench.diff();
    assert_eq!(plan.actions().iter().filter(|a| a.starts_with("delete ")).count(), 3, "{plan}");
    assert_eq!(plan.list("deferred").len(), 2, "{plan}");
    bench.apply().exits(0);
    assert_eq!(bench.world().pools.len(), 3);
    bench.apply().exits(0);
    bench.converged();
}

#[test]
fn a_pool_that_is_not_empty_stays_and_says_so() {
    let mut world = seed::empty();
    world.add_guest(GuestKind::Qemu, 300, "pve01", &[("name", "other"), ("memory", "512")]);
    let old = world.pools.entry("old".to_owned()).or_default();
    old.comment = "proxops:proxops:Pool/old".to_owned();
    old.vms.insert(300);
    let bench = bench(world);
    let run = bench.apply().exits(1);
    assert!(run.stdout.contains("is not empty (contains VM 300)"), "{run}");
    assert!(bench.world().pools.contains_key("old"));
}

#[test]
fn an_answer_that_was_lost_is_looked_for_before_anything_is_sent_again() {
    let mut bench = bench(seed::empty());
    web(&mut bench, &[("web", json!({"pool": "web", "comment": "Web"}))]);
    bench.sim().inject(RequestFault::once("POST", "/pools", FaultAnswer::DropAfter));
    bench.apply().exits(0);
    assert_eq!(paths(&bench), ["POST /pools"]);
    bench.converged();
}

#[test]
fn a_list_that_can_not_be_read_is_unknown_and_prunes_nothing() {
    let mut world = seed::empty();
    world.pools.entry("old".to_owned()).or_default().comment = "proxops:proxops:Pool/old".to_owned();
    let mut bench = bench(world);
    web(&mut bench, &[("web", json!({"pool": "web"}))]);
    let answer =
        FaultAnswer::Status { status: 500, message: "no".to_owned(), errors: [].into(), effect: false };
    bench.sim().inject(RequestFault { times: 0, ..RequestFault::once("GET", "/pools", answer) });
    let plan = bench.diff();
    assert_eq!((plan.actions().len(), plan.list("unknown").len()), (0, 1), "{plan}");
    bench.apply();
    assert_eq!(bench.writes().len(), 0);
}

#[test]
fn two_manifests_of_one_object_are_a_mistake() {
    let mut bench = bench(seed::empty());
    web(&mut bench, &[("a", json!({"pool": "web"})), ("b", json!({"pool": "web"}))]);
    let errors = bench.errors();
    assert!(errors.len() == 1 && errors[0].starts_with("duplicate-object pool/lab/pools.yaml"), "{errors:?}");
}

#[test]
fn an_ha_resource_of_a_guest_follows_its_manifest_with_digest_and_delete_list() {
    let mut bench = bench(seed::empty());
    bench.documents(
        &format!("vm/{CLUSTER}/web.yaml"),
        &[crate::support::vm("web", 100, json!({"state": "stopped"}))],
    );
    let ha = |spec: Value| thing("HAResource", "web", spec);
    let file = format!("ha/{CLUSTER}/web.yaml");
    let spec =
        json!({"guest": "VM/web", "vmid": 100, "state": "stopped", "max-restart": 2, "comment": "the site"});
    bench.documents(&file, &[ha(spec)]);
    bench.apply().exits(0);
    assert_eq!(bench.world().ha["vm:100"]["comment"], "the site proxops:proxops:HAResource/web");
    bench.converged();
    bench.documents(
        &file,
        &[ha(json!({"guest": "VM/web", "vmid": 100, "state": "disabled", "comment": "the site"}))],
    );
    bench.writes();
    bench.apply().exits(0);
    let writes = bench.writes();
    assert_eq!(writes.len(), 1, "{writes:?}");
    assert_eq!((writes[0].method.as_str(), writes[0].path.as_str()), ("PUT", "/cluster/ha/resources/vm:100"));
    let keys: Vec<&str> = writes[0].params.keys().map(String::as_str).collect();
    assert_eq!(keys, ["delete", "digest", "state"]);
    bench.converged();
    bench.unlist(&file);
    bench.apply().exits(0);
    assert!(bench.world().ha.is_empty());
}

fn hostile(describe: &str, attack: &str, world: World) -> Bench {
    let mut bench = Bench::new(world).as_root();
    bench.write("kinds/evil.wasm", hostile_kind(describe, "Evil", "evil"));
    bench.write("proxops.yaml", "kinds: [{kind: Evil, allow: [/pools]}]\n");
    let bad = manifest("Evil", "bad", json!({ "attack": attack }));
    bench.documents(&format!("evil/{CLUSTER}/bad.yaml"), &[bad]);
    bench
}

#[test]
fn a_hostile_object_kind_writes_nothing_that_it_may_not() {
    for attack in [
        "call-delete",
        "var-id",
        "set-id",
        "rename",
        "drop-marker",
        "foreign-marker",
        "untagged",
        "var:..",
        "id:../access",
    ] {
        let mut world = seed::empty();
        world.pools.entry("lab".to_owned()).or_default().comment = "proxops:proxops:Pool/lab".to_owned();
        let bench = hostile("object", attack, world);
        let run = bench.apply().exits(1);
        assert!(run.stdout.contains("evil.wasm") || run.stderr.contains("evil.wasm"), "{attack}: {run}");
        assert_eq!(bench.writes().len(), 0, "{attack}");
        assert_eq!(bench.world().pools.len(), 1, "{attack}");
    }
}

#[test]
fn a_path_that_was_not_granted_is_not_written_even_if_the_kind_declares_it() {
    let mut world = seed::empty();
    world.add_guest(GuestKind::Qemu, 100, "pve01", &[("name", "x"), ("memory", "512")]);
    let bench = hostile("object-wide", "ungranted", world);
    let plan = bench.diff();
    assert_eq!(plan.anomalies(), ["not-granted Evil/bad"], "{plan}");
    bench.apply();
    assert_eq!(bench.writes().len(), 0);
}

#[test]
fn a_kind_without_a_proof_of_ownership_never_deletes() {
    let bench = hostile("object-none", "honest", seed::empty());
    bench.apply().exits(0);
    assert_eq!(bench.world().pools.len(), 1);
    bench.write(&format!("clusters/{CLUSTER}/resources.yaml"), "resources: []\n");
    let run = bench.apply().exits(0);
    assert_eq!(bench.world().pools.len(), 1, "{run}");
}

#[test]
fn another_kinds_object_is_neither_changed_nor_deleted() {
    let mut world = seed::empty();
    world.pools.entry("evil".to_owned()).or_default().comment = "proxops:proxops:Pool/evil".to_owned();
    let bench = hostile("object", "change", world);
    let plan = bench.diff();
    assert_eq!(plan.anomalies(), ["not-ours Evil/bad"], "{plan}");
    bench.apply();
    bench.write(&format!("clusters/{CLUSTER}/resources.yaml"), "resources: []\n");
    bench.apply();
    assert_eq!(bench.writes().len(), 0);
}

#[test]
fn the_example_kinds_keep_the_contract() {
    let bench = bench(seed::empty());
    let run = bench.run(&["kinds", "test", "kinds/pool.wasm", "kinds/ha.wasm", "-o", "json"]).exits(0);
    let report = run.json();
    for kind in report["kinds"].as_array().unwrap() {
        for check in kind["checks"].as_array().unwrap() {
            // only guests have keys of PVE's grammar; everything else must have been looked at
            let skipped = check["outcome"] == "skipped";
            assert_eq!(skipped, check["name"] == "keys", "{check}");
        }
    }
}

/// The component of a Python kind, built by componentize-py; `None` where the machine has none.
pub fn python_kind(folder: &std::path::Path, wit: &std::path::Path, out: &std::path::Path) -> Option<()> {
    let program = std::env::var_os("PROXOPS_COMPONENTIZE_PY").unwrap_or_else(|| "componentize-py".into());
    let mut command = std::process::Command::new(program);
    command.current_dir(folder).arg("-q").arg("-d").arg(wit).args([
        "-w",
        "kind",
        "componentize",
        "--stub-wasi",
        "app",
        "-o",
    ]);
    match command.arg(out).status() {
        Ok(status) => {
            assert!(status.success());
            Some(())
        }
        Err(_) => {
            eprintln!("not run: there is no componentize-py; PROXOPS_COMPONENTIZE_PY may name one");
            None
        }
    }
}

#[test]
fn a_firewall_group_in_python_keeps_the_contract_and_converges() {
    let mut bench = Bench::new(seed::empty()).as_root();
    let file = bench.repo().join("kinds/firewall-group.wasm");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let root = proxops_e2e::root();
    if python_kind(&root.join("examples/kinds/firewall-group"), &root.join("wit"), &file).is_none() {
        return;
    }
    bench.write("proxops.yaml", "kinds: [{kind: FirewallGroup, allow: [/cluster/firewall/groups]}]\n");
    bench.run(&["kinds", "test", "kinds/firewall-group.wasm"]).exits(0);
    let path = format!("firewall-group/{CLUSTER}/web.yaml");
    let group = |rules: Value| {
        thing("FirewallGroup", "web", json!({"group": "web", "comment": "Web", "rules": rules}))
    };
    let rule = |port: &str| json!({"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": port});
    let ports = |bench: &Bench| -> Vec<String> {
        bench.world().groups["web"].rules.iter().map(|rule| rule["dport"].clone()).collect()
    };
    bench.documents(&path, &[group(json!([rule("22"), rule("80"), rule("443")]))]);
    bench.apply().exits(0);
    assert_eq!(ports(&bench), ["22", "80", "443"]);
    bench.converged();
    // rules go, change, and somebody adds one in front
    bench.meddle(
        "POST",
        "/cluster/firewall/groups/web",
        json!({"type": "in", "action": "DROP", "proto": "tcp", "dport": "1"}),
    );
    bench.documents(&path, &[group(json!([rule("80"), rule("8443")]))]);
    bench.writes();
    bench.apply().exits(0);
    assert_eq!(ports(&bench), ["80", "8443"]);
    assert!(bench.writes().iter().all(|w| w.params.contains_key("digest")));
    bench.converged();
}
