//! The daemon: its loops, its HTTP side, its page, and how it ends.

mod ends;
mod health;
mod http;
mod isolation;
mod loops;
mod page;
mod pushes;
mod source;
mod told;

use crate::support::vm;
use proxops_e2e::{Bench, CLUSTER};
use proxops_sim::seed;
use serde_json::{Value, json};

/// One VM that is not there yet, and a daemon that looks every second.
fn bench() -> Bench {
    let mut bench = Bench::new(seed::empty());
    settings(&bench, "reconcile: {poll-interval: 1s}\n");
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({}))]);
    bench
}

/// One VM, and a daemon that looks once an hour: whatever else happens was asked for.
fn slow() -> Bench {
    let bench = bench();
    settings(&bench, "reconcile: {poll-interval: 1h}\n");
    bench
}

fn settings(bench: &Bench, text: &str) {
    bench.write("proxops.yaml", text);
}

/// A further cluster without manifests at this address.
fn add_cluster(bench: &Bench, name: &str, url: &str, resources: &str) {
    let config = format!("pve:\n  clusters:\n    {name}:\n      base-url: {url}\n");
    bench.write(&format!("clusters/{name}/config.yaml"), config);
    bench.write(&format!("clusters/{name}/resources.yaml"), resources);
}

/// Cycles that ended, as far back as the daemon remembers.
fn cycles(cluster: &Value) -> usize {
    cluster["cycles"].as_array().map_or(0, Vec::len)
}
