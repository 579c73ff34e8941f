//! `doctor`: what stands in the way of an apply, and what only deserves a look.

use crate::support::{iso, vm};
use proxops_e2e::{Bench, CLUSTER, Run};
use proxops_sim::{GuestKind, World, seed};
use serde_json::{Value, json};

fn doctor(bench: &Bench) -> Run {
    let run = bench.run(&["doctor", "-o", "json"]);
    let document = run.json();
    assert_eq!(document["format"], "proxops.doctor/v1", "{run}");
    for check in document["checks"].as_array().unwrap() {
        assert!(["ok", "warn", "fail"].contains(&check["state"].as_str().unwrap()), "{check}");
        assert!(check["state"] == "ok" || check["help"].is_string(), "what to do is not said: {check}");
    }
    let failed = document["checks"].as_array().unwrap().iter().any(|c| c["state"] == "fail");
    assert_eq!(run.code, i32::from(failed), "{run}");
    run
}

/// "state: message" of every check of this name.
fn found(run: &Run, check: &str) -> Vec<String> {
    let document = run.json();
    let checks = document["checks"].as_array().unwrap().iter().filter(|c| c["check"] == check);
    checks.map(|c| format!("{}: {}", c["state"].as_str().unwrap(), c["message"].as_str().unwrap())).collect()
}

fn help(run: &Run, check: &str) -> String {
    let document = run.json();
    let mut checks = document["checks"].as_array().unwrap().iter().filter(|c| c["check"] == check);
    checks.find_map(|c| c["help"].as_str()).unwrap_or_default().to_owned()
}

/// A VM and an ISO, over TLS.
fn bench(world: World) -> Bench {
    let mut bench = Bench::tls(world);
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({}))]);
    bench.documents(&format!("iso/{CLUSTER}/debian.yaml"), &[iso("debian")]);
    bench
}

#[test]
fn a_cluster_in_order_has_nothing_but_ok_and_no_write() {
    let bench = bench(seed::empty());
    let run = doctor(&bench);
    let states: Vec<Value> =
        run.json()["checks"].as_array().unwrap().iter().map(|c| c["state"].clone()).collect();
    assert!(states.iter().all(|state| state == "ok"), "{run}");
    for check in [
        "composition",
        "dns",
        "tcp",
        "tls",
        "credential",
        "version",
        "quorum",
        "nodes",
        "privileges",
        "tasks",
        "locks",
        "journal",
    ] {
        assert!(!found(&run, check).is_empty(), "no {check}: {run}");
    }
    assert_eq!(found(&run, "storage").len(), 2, "local for the ISO, local-lvm for the disk: {run}");
    assert!(found(&run, "storage")[0].contains("free"), "{run}");
    assert!(
        found(&run, "tls")[0].contains("fingerprint") && found(&run, "tls")[0].contains("valid until"),
        "{run}"
    );
    let text = bench.run(&["doctor"]).exits(0);
    assert!(text.stdout.contains("cluster lab") && text.stdout.contains("0 in the way"), "{text}");
    assert!(bench.writes().is_empty());
}

#[test]
fn missing_privileges_are_named_by_path_with_the_role_that_has_them() {
    let mut world = seed::empty();
    let token = seed::TOKEN_ID;
    for who in ["gitops@pve", token] {
        world.grant(who, "/", &["Sys.Audit", "Datastore.Audit", "SDN.Use", "Sys.AccessNetwork"], true);
        world.grant(who, "/vms", &["VM.Audit", "VM.Allocate", "VM.Config.CPU"], true);
        world.grant(who, "/storage/local-lvm", &["Datastore.Audit", "Datastore.AllocateSpace"], true);
    }
    let bench = bench(world);
    let run = doctor(&bench);
    let missing = found(&run, "privileges");
    let guest = missing.iter().find(|m| m.contains("/vms/100")).unwrap_or_else(|| panic!("{run}"));
    assert!(
        guest.starts_with("fail") && guest.contains("VM.Config.Memory") && guest.contains("VM.PowerMgmt"),
        "{guest}"
    );
    assert!(!guest.contains("VM.Allocate") && !guest.contains("VM.Config.CPU"), "{guest}");
    let storage = missing.iter().find(|m| m.contains("/storage/")).unwrap_or_else(|| panic!("{run}"));
    assert_eq!(storage, "fail: missing on /storage/local: Datastore.AllocateTemplate");
    assert_eq!(missing.len(), 2, "{missing:?}");
    let all = run.json().to_string();
    assert!(all.contains("PVEVMAdmin") && all.contains("PVEDatastoreAdmin"), "{all}");
    assert!(all.contains("--tokens 'gitops@pve!proxops'"), "{all}");

    // What the advice says is enough.
    {
        let mut world = bench.world();
        for who in ["gitops@pve", token] {
            world.grant(who, "/vms", proxops_sim::world::access::PRIVILEGES, true);
            world.grant(who, "/storage/local", &["Datastore.Audit", "Datastore.AllocateTemplate"], true);
        }
    }
    assert!(found(&doctor(&bench), "privileges")[0].starts_with("ok"));
    bench.apply().exits(0);
}

#[test]
fn a_token_with_separation_has_only_what_its_user_has_too_t27() {
    let mut world = seed::empty();
    world.grant("gitops@pve", "/", &["Sys.Audit"], true);
    let bench = bench(world);
    assert!(
        found(&doctor(&bench), "privileges").iter().any(|m| m.contains("/vms/100")),
        "its user has nothing"
    );
}

#[test]
fn what_a_pool_grants_counts() {
    let mut world = seed::empty();
    let role = proxops_sim::world::access::PRIVILEGES;
    for who in ["gitops@pve", seed::TOKEN_ID] {
        let rest: Vec<&str> = role.iter().copied().filter(|p| !p.starts_with("VM.")).collect();
        world.grant(who, "/", &rest, true);
        world.grant(who, "/pool/mine", role, true);
    }
    world.pools.entry("mine".to_owned()).or_default().vms.insert(100);
    let bench = bench(world);
    assert!(found(&doctor(&bench), "privileges")[0].starts_with("ok"), "{}", doctor(&bench));
}

#[test]
fn a_password_of_root_needs_no_list_of_privileges() {
    let bench = bench(seed::empty()).as_root();
    let run = doctor(&bench);
    assert!(found(&run, "credential")[0].contains("root@pam"), "{run}");
    assert!(found(&run, "privileges")[0].starts_with("ok"), "{run}");
}

#[test]
fn each_step_on_the_way_to_a_cluster_fails_by_its_own_name() {
    let at = |url: &str| {
        let mut bench = Bench::offline(url);
        bench.set("PROXOPS_PVE_TOKEN_VALUE", "a@pve!b=c");
        doctor(&bench)
    };
    let run = at("https://no-such-host.invalid:8006");
    assert!(found(&run, "dns")[0].starts_with("fail") && found(&run, "tcp").is_empty(), "{run}");
    let run = at("https://127.0.0.1:1");
    assert!(found(&run, "dns")[0].starts_with("ok") && found(&run, "tcp")[0].starts_with("fail"), "{run}");

    let bench = Bench::new(seed::empty());
    let plain = bench.url().replace("http://", "https://");
    let run = at(&plain);
    assert!(found(&run, "tcp")[0].starts_with("ok") && found(&run, "tls")[0].starts_with("fail"), "{run}");

    let mut bench = Bench::tls(seed::empty());
    bench.set("PROXOPS_PVE_TOKEN_VALUE", &format!("{}=wrong-Otter-fixture", seed::TOKEN_ID));
    let run = doctor(&bench);
    assert!(
        found(&run, "tls")[0].starts_with("ok") && found(&run, "credential")[0].starts_with("fail"),
        "{run}"
    );
    assert!(!run.stdout.contains("Otter"), "{run}");
    bench.env.clear();
    let run = doctor(&bench);
    assert!(found(&run, "credential")[0].contains("no PVE credential"), "{run}");
}

#[test]
fn a_certificate_that_is_not_trusted_is_a_failure_of_tls() {
    let server = Bench::tls(seed::empty());
    let mut bench = Bench::offline(&server.url());
    bench.set("PROXOPS_PVE_TOKEN_VALUE", &format!("{}={}", seed::TOKEN_ID, seed::TOKEN_SECRET));
    let run = doctor(&bench);
    let tls = found(&run, "tls");
    assert!(tls.len() == 1 && tls[0].starts_with("fail") && tls[0].contains("not trusted"), "{run}");
    assert!(found(&run, "credential").is_empty(), "nothing is known of it: {run}");
}

#[test]
fn another_certificate_than_the_pinned_one_shows_both_fingerprints() {
    let mut bench = bench(seed::empty());
    let pinned = vec!["AB"; 32].join(":");
    bench.configure(&[&format!("fingerprint: '{pinned}'")]);
    let run = doctor(&bench);
    let tls = &found(&run, "tls")[0];
    assert!(tls.starts_with("fail") && tls.contains(&pinned), "{run}");
    let seen = tls.split("seen ").nth(1).unwrap().trim().to_owned();
    assert_eq!(seen.len(), 95, "{tls}");
    bench.run(&["diff"]).exits(1).says(&pinned).says(&seen);
    // What it says can be pinned works.
    let mut bench = Bench::offline(&bench.url());
    bench.set("PROXOPS_PVE_TOKEN_VALUE", &format!("{}={}", seed::TOKEN_ID, seed::TOKEN_SECRET));
    bench.configure(&[&format!("fingerprint: '{seen}'")]);
    assert!(found(&doctor(&bench), "tls")[0].starts_with("ok: pinned"));
}

#[test]
fn a_token_that_ends_soon_is_worth_a_look_and_one_that_ended_is_in_the_way() {
    let bench = bench(seed::empty());
    let now = jiff::Timestamp::now().as_second() as u64;
    bench.world().set_token_end("gitops@pve", "proxops", now + 200 * 24 * 3600);
    assert!(found(&doctor(&bench), "credential")[0].contains("expires 20"));
    bench.world().set_token_end("gitops@pve", "proxops", now + 5 * 24 * 3600);
    assert!(found(&doctor(&bench), "credential")[0].starts_with("warn"));
    bench.world().set_token_end("gitops@pve", "proxops", 1);
    assert!(found(&doctor(&bench), "credential")[0].starts_with("fail"));
}

#[test]
fn nodes_quorum_storages_locks_and_tasks_are_looked_at() {
    let mut world = seed::empty();
    world.add_guest(
        GuestKind::Qemu,
        100,
        "pve01",
        &[("name", "web"), ("lock", "backup"), ("tags", "proxops")],
    );
    world.set_node("pve03", false);
    world.storages.get_mut("local-lvm").unwrap().content = ["rootdir".to_owned()].into();
    let mut bench = bench(world);
    bench.configure(&["nodes: [pve01, pve03, pve09]"]);
    let run = doctor(&bench);
    let nodes = found(&run, "nodes");
    assert!(nodes.iter().any(|n| n == "fail: pve09 is no node of this cluster"), "{run}");
    assert!(nodes.iter().any(|n| n.starts_with("warn: pve03 is")), "{run}");
    assert!(!run.json().to_string().contains("pve02"), "outside of the boundary: {run}");
    assert!(
        found(&run, "storage").iter().any(|s| s.starts_with("fail") && s.contains("does not take images")),
        "{run}"
    );
    assert!(found(&run, "locks")[0].starts_with("warn: guest 100 is locked (backup)"), "{run}");
    assert!(help(&run, "locks").contains("qm unlock 100"), "{run}");

    bench.world().quorate = false;
    assert!(found(&doctor(&bench), "quorum")[0].starts_with("fail"));
}

#[test]
fn clusters_are_looked_at_each_for_itself_and_can_be_selected() {
    let bench = bench(seed::empty());
    bench.write("clusters/gone/config.yaml", "pve: {clusters: {gone: {base-url: 'https://127.0.0.1:1'}}}");
    bench.write("clusters/gone/resources.yaml", "resources: []");
    let run = doctor(&bench);
    let document = run.json();
    let of = |cluster: &str| {
        let checks = document["checks"].as_array().unwrap().iter().filter(|c| c["cluster"] == cluster);
        checks.map(|c| c["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(of("gone").contains(&"fail".to_owned()) && !of("lab").contains(&"fail".to_owned()), "{run}");
    bench.run(&["doctor", "--cluster", "lab"]).exits(0);
    bench.run(&["doctor", "--cluster", "gome"]).exits(1).says("did you mean gone?");
}

#[test]
fn mistakes_in_files_are_in_the_way_and_the_cluster_is_looked_at_all_the_same() {
    let mut bench = bench(seed::empty());
    bench.manifest(&format!("vm/{CLUSTER}/bad.yaml"), "kind: [");
    let run = doctor(&bench);
    assert!(found(&run, "composition")[0].contains("bad.yaml"), "{run}");
    assert!(found(&run, "credential")[0].starts_with("ok"), "{run}");
}
