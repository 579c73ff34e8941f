//! A process that runs for long: what changed takes effect at the next cycle, what broke does not.

use crate::documents::age_key;
use crate::support::{sops, vm};
use proxops_daemon::{Planned, Process, Refreshed, Wish};
use proxops_e2e::{Bench, CLUSTER};
use proxops_exec::Cancel;
use proxops_model::plan::ClusterState;
use proxops_repo::LoadOptions;
use proxops_secrets::{ClusterSecrets, IdentitySources};
use proxops_sim::seed;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A process over a bench, as the daemon holds one.
struct Running<'a> {
    bench: &'a Bench,
    process: Process,
    runtime: tokio::runtime::Runtime,
}

fn options<T>(bench: &Bench, use_them: impl FnOnce(&LoadOptions<'_>) -> T) -> T {
    let env = |name: &str| bench.env.get(name).cloned();
    let mut options = LoadOptions::new(bench.repo(), &env);
    options.overrides.data_dir = Some(bench.data_dir());
    use_them(&options)
}

impl<'a> Running<'a> {
    fn start(bench: &'a Bench) -> Self {
        let mut process = options(bench, |options| Process::open(options, None)).unwrap();
        let identities =
            IdentitySources::new(|name| (name == "SOPS_AGE_KEY").then(|| age_key().0.clone()), None);
        process.secrets = Arc::new(ClusterSecrets::new(identities));
        Self { bench, process, runtime: tokio::runtime::Runtime::new().unwrap() }
    }

    /// What the daemon does before each cycle, and a plan.
    fn cycle(&mut self) -> (Refreshed, Planned) {
        let stop = AtomicBool::new(false);
        let refreshed = options(self.bench, |options| self.process.refresh(options, None, &stop));
        let cluster = self.process.repository.cluster(CLUSTER).unwrap().clone();
        let plan = self.runtime.block_on(self.process.plan(&cluster, Wish::Look, &Cancel::new()));
        (refreshed, plan)
    }
}

fn codes(planned: &Planned) -> Vec<&str> {
    planned.plan.anomalies.iter().map(|a| a.code.as_str()).collect()
}

/// One VM, and a token out of the secrets document.
fn bench() -> Bench {
    let mut bench = Bench::new(seed::empty());
    bench.env.clear();
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({}))]);
    bench.configure(&[
        "secrets-file: secrets.sops.yaml",
        "secrets: {pve: {user: user, token-id: id, token: token}}",
    ]);
    write_token(&bench, seed::TOKEN_SECRET);
    bench
}

fn write_token(bench: &Bench, token: &str) {
    let entries = [("secrets.user", "gitops@pve"), ("secrets.id", "proxops"), ("secrets.token", token)];
    bench.write(&format!("clusters/{CLUSTER}/secrets.sops.yaml"), sops(&entries));
}

#[test]
fn a_changed_secrets_file_is_used_by_the_next_cycle_and_a_broken_one_is_reported_and_not_used() {
    let bench = bench();
    let mut running = Running::start(&bench);
    let (refreshed, planned) = running.cycle();
    assert_eq!(
        (refreshed, planned.plan.state),
        (Refreshed::Taken, ClusterState::Ok),
        "{:?}",
        planned.plan.error
    );
    assert_eq!(codes(&planned), Vec::<&str>::new());

    for broken in ["secrets: {token: plain}\n", "not: [yaml", ""] {
        bench.write(&format!("clusters/{CLUSTER}/secrets.sops.yaml"), broken);
        let (_, planned) = running.cycle();
        assert_eq!(
            (planned.plan.state, codes(&planned)),
            (ClusterState::Ok, vec!["secrets-kept"]),
            "{broken:?}"
        );
        let anomaly = &planned.plan.anomalies[0];
        assert!(anomaly.message.contains("secrets.sops.yaml") && anomaly.help.is_some(), "{anomaly:?}");
    }
    std::fs::remove_file(bench.repo().join(format!("clusters/{CLUSTER}/secrets.sops.yaml"))).unwrap();
    assert_eq!(codes(&running.cycle().1), ["secrets-kept"]);

    // A new token takes effect, a wrong one too.
    bench.world().add_token("gitops@pve", "proxops", "new-Lynx-fixture", true);
    write_token(&bench, "new-Lynx-fixture");
    let (_, planned) = running.cycle();
    assert_eq!(
        (planned.plan.state, codes(&planned).len()),
        (ClusterState::Ok, 0),
        "{:?}",
        planned.plan.error
    );
    write_token(&bench, "other-Lynx-fixture");
    let (_, planned) = running.cycle();
    assert_eq!(planned.plan.state, ClusterState::Aborted);
    assert!(!planned.plan.error.unwrap().contains("Lynx"));
}

#[test]
fn a_changed_configuration_is_used_by_the_next_cycle_and_a_broken_one_keeps_the_last_good() {
    let bench = bench();
    let config = format!("clusters/{CLUSTER}/config.yaml");
    let good = std::fs::read_to_string(bench.repo().join(&config)).unwrap();
    let mut running = Running::start(&bench);
    assert_eq!(running.cycle().1.plan.actions.len(), 1);

    let changed = format!("{good}      nodes: [pve02]\n");
    bench.write(&config, &changed);
    let (refreshed, planned) = running.cycle();
    assert_eq!((refreshed, planned.plan.state), (Refreshed::Taken, ClusterState::Aborted));
    assert!(planned.plan.error.unwrap().contains("pve01"), "the node is outside of the new boundary");
    bench.write(&config, &good);
    assert_eq!(running.cycle().1.plan.state, ClusterState::Ok);

    for (file, text) in [
        (config.as_str(), "pve: [".to_owned()),
        (config.as_str(), good.replace("base-url", "base-uri")),
        (config.as_str(), good.replace("lab:", "other:")),
        ("proxops.yaml", "reconcile: {prune-budget: many}\n".to_owned()),
    ] {
        bench.write(file, &text);
        let (refreshed, planned) = running.cycle();
        let Refreshed::Kept(why) = refreshed else { panic!("{file}: {text} was taken") };
        assert!(why.contains(file), "{why}");
        assert_eq!((planned.plan.state, planned.plan.stale), (ClusterState::Ok, true), "{text}");
        assert_eq!(planned.plan.actions.len(), 1);
        bench.write(&config, &good);
        let _ = std::fs::remove_file(bench.repo().join("proxops.yaml"));
        let (refreshed, planned) = running.cycle();
        assert_eq!((refreshed, planned.plan.stale), (Refreshed::Taken, false));
    }
}

#[test]
fn a_mistake_in_one_clusters_manifest_is_taken_and_stops_that_cluster_alone() {
    let bench = bench();
    bench.write("clusters/other/config.yaml", "pve: {clusters: {other: {base-url: 'https://127.0.0.1:1'}}}");
    bench.write("clusters/other/resources.yaml", "resources: []");
    let mut running = Running::start(&bench);
    running.cycle();
    bench.write("clusters/other/resources.yaml", "resources: [../../vm/other/nope.yaml]");
    let (refreshed, planned) = running.cycle();
    assert_eq!((refreshed, planned.plan.state), (Refreshed::Taken, ClusterState::Ok));
    assert!(!running.process.repository.cluster("other").unwrap().ok);
    // A tree that is gone is no tree without manifests.
    let clusters = bench.repo().join("clusters");
    std::fs::rename(&clusters, bench.repo().join("moved")).unwrap();
    let (refreshed, planned) = running.cycle();
    assert!(matches!(refreshed, Refreshed::Kept(_)));
    assert_eq!((planned.plan.state, planned.plan.stale), (ClusterState::Ok, true));
}
