//! A cluster that is broken, in whatever way, is its own trouble.

use super::{add_cluster, bench, cycles};
use crate::support::manifest;
use proxops_e2e::{Bench, CLUSTER, Daemon, hostile_kind};
use proxops_sim::{FaultAnswer, RequestFault, seed};
use serde_json::{Value, json};

/// Cycles of the healthy cluster that must end while the broken one is stuck.
const MANY: usize = 8;

/// The healthy cluster's cycles, and how its starts lie apart: interval with jitter, plus one cycle of its own.
#[track_caller]
fn goes_on(daemon: &Daemon, broken: &str, still: impl Fn(&Value) -> bool) {
    let healthy = daemon.until(CLUSTER, "cycled many times", |c| cycles(c) >= MANY);
    assert_eq!(healthy["last_cycle"]["clean"], true, "{healthy:#}");
    let cluster = daemon.cluster(broken);
    assert!(still(&cluster), "{broken} is not broken as meant: {cluster:#}");
    let at = |cycle: &Value, key: &str| cycle[key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let list = healthy["cycles"].as_array().unwrap();
    let gaps: Vec<i64> = list
        .windows(2)
        .map(|two| at(&two[0], "started_at").as_millisecond() - at(&two[1], "ended_at").as_millisecond())
        .collect();
    let took: Vec<u64> = list.iter().map(|c| c["duration_ms"].as_u64().unwrap()).collect();
    eprintln!("{broken}: pauses of the healthy cluster {gaps:?} ms, its cycles took {took:?} ms");
}

#[test]
fn a_bad_manifest_delays_no_other_cluster() {
    let bench = bench();
    let other = Bench::new(seed::empty());
    bench.write("vm/second/bad.yaml", "kind: VM\nspec: {nonsense: [}\n");
    add_cluster(&bench, "second", &other.url(), "resources: [../../vm/second/bad.yaml]\n");
    let daemon = Daemon::start(&bench, &[]);
    goes_on(&daemon, "second", |c| c["last_cycle"]["state"] == "aborted" && c["failures"].as_u64() > Some(0));
    // It is asked less often than the healthy one.
    assert!(cycles(&daemon.cluster("second")) < MANY / 2, "{:#}", daemon.cluster("second"));
}

#[test]
fn a_dead_endpoint_delays_no_other_cluster() {
    let bench = bench();
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    add_cluster(&bench, "second", &format!("http://{gone}"), "resources: []\n");
    let daemon = Daemon::start(&bench, &[]);
    goes_on(&daemon, "second", |c| {
        c["last_cycle"].is_null() || c["last_cycle"]["error"].as_str().is_some_and(|e| e.contains("connect"))
    });
}

#[test]
fn a_hanging_endpoint_delays_no_other_cluster() {
    let bench = bench();
    // It takes connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    add_cluster(&bench, "second", &format!("http://{}", silent.local_addr().unwrap()), "resources: []\n");
    let daemon = Daemon::start(&bench, &[]);
    goes_on(&daemon, "second", |c| c["last_cycle"].is_null() || c["cycles"][0]["anomalies"] == 60);
    assert_eq!(daemon.get("/healthz").status, 503, "its first cycle has not ended");
    assert_eq!(daemon.get("/readyz").status, 200);
}

#[test]
fn an_endpoint_that_hangs_later_delays_no_other_cluster() {
    let bench = bench();
    let other = Bench::new(seed::empty());
    add_cluster(&bench, "second", &other.url(), "resources: []\n");
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged("second");
    let hang = RequestFault {
        times: 0,
        delay: 3600.0,
        answer: None,
        ..RequestFault::once("GET", "**", FaultAnswer::DropBefore)
    };
    other.sim().inject(hang);
    daemon.until("second", "hanging", |c| c["phase"] == "planning");
    let before = cycles(&daemon.cluster(CLUSTER));
    daemon.until(CLUSTER, "going on", |c| cycles(c) >= (before + 3).min(20));
    assert_eq!(daemon.cluster("second")["phase"], "planning");
}

#[test]
fn a_kind_that_spins_delays_no_other_cluster() {
    let bench = bench();
    let mut world = seed::empty();
    world.add_node("n1");
    let other = Bench::new(world);
    bench.write("kinds/evil.wasm", hostile_kind("honest", "Evil", "evil"));
    // Each call runs into its limit of work: all of them take seconds, several cycles of the healthy cluster.
    let all: String = (0..60)
        .map(|n| format!("---\n{:#}\n", manifest("Evil", &format!("bad-{n}"), json!({"attack": "loop"}))))
        .collect();
    bench.write("evil/second/all.yaml", all);
    add_cluster(&bench, "second", &other.url(), "resources: [../../evil/second/all.yaml]\n");
    let daemon = Daemon::start(&bench, &[]);
    goes_on(&daemon, "second", |c| c["last_cycle"].is_null() || c["cycles"][0]["anomalies"] == 60);
}
