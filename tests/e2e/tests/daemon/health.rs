//! What programs read: health, metrics, and documents that keep their schema.

use super::{add_cluster, bench, cycles, settings};
use crate::support::vm;
use proxops_e2e::{Bench, CLUSTER, Daemon};
use proxops_sim::TaskRule;
use serde_json::{Value, json};

/// The document must be as `/openapi.json` of the same daemon says.
#[track_caller]
fn conforms(daemon: &Daemon, document: &Value, schema: &str) {
    let openapi = daemon.get("/openapi.json").json();
    let mut errors = Vec::new();
    check(&openapi, &openapi["components"]["schemas"][schema], document, schema, &mut errors);
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
}

/// The few words of JSON Schema that the document uses; a field that the schema does not know is an error here, so
/// that the schema stays whole.
fn check(all: &Value, schema: &Value, value: &Value, at: &str, errors: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = all.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("{reference}"));
        return check(all, target, value, at, errors);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let tries = choices.iter().map(|choice| {
            let mut errors = Vec::new();
            check(all, choice, value, at, &mut errors);
            errors
        });
        let mut tries: Vec<_> = tries.collect();
        tries.sort_by_key(Vec::len);
        errors.append(&mut tries[0]);
        return;
    }
    let is = |name: &str| match name {
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        other => panic!("{other}"),
    };
    let fits = match &schema["type"] {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().any(|n| is(n.as_str().unwrap())),
        _ => schema["enum"].as_array().map_or(schema["const"] == *value, |list| list.contains(value)),
    };
    if !fits {
        errors.push(format!("{at}: {value} is not {schema}"));
    }
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        check(all, &schema["items"], item, &format!("{at}/{i}"), errors);
    }
    let Some(fields) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten() {
        if !fields.contains_key(name.as_str().unwrap()) {
            errors.push(format!("{at}: {name} is missing"));
        }
    }
    for (name, field) in fields {
        match schema["properties"].get(name) {
            Some(of) => check(all, of, field, &format!("{at}/{name}"), errors),
            None => errors.push(format!("{at}: {name} is not documented")),
        }
    }
}

#[test]
fn status_and_diff_are_as_the_openapi_document_says() {
    let mut bench = bench();
    bench.documents(&format!("vm/{CLUSTER}/db.yaml"), &[vm("db", 9000, json!({"memory": "1GiB"}))]);
    // A foreign guest on a wanted vmid: an anomaly.
    bench.world().add_guest(
        proxops_sim::GuestKind::Qemu,
        9000,
        "pve01",
        &[("name", "foreign"), ("memory", "512")],
    );
    let daemon = Daemon::start(&bench, &["--observe"]);
    conforms(&daemon, &daemon.status(), "Status");
    daemon.until(CLUSTER, "looked at", |c| cycles(c) >= 1);
    let status = daemon.status();
    conforms(&daemon, &status, "Status");
    let diff = daemon.get("/diff").json();
    conforms(&daemon, &diff, "Diff");
    assert_eq!(diff["clusters"][0]["anomalies"].as_array().unwrap().len(), 1, "{diff:#}");
    assert_eq!(diff["clusters"][0]["actions"].as_array().unwrap().len(), 1, "{diff:#}");
    // The check is worth something only if it can fail.
    let openapi = daemon.get("/openapi.json").json();
    let mut broken = status.clone();
    broken["clusters"][0]["objects"][0]["state"] = json!("fine");
    broken["clusters"][0]["phase"] = Value::Null;
    let mut errors = Vec::new();
    check(&openapi, &openapi["components"]["schemas"]["Status"], &broken, "", &mut errors);
    assert_eq!(errors.len(), 2, "{errors:#?}");
}

#[test]
fn every_path_of_the_openapi_document_is_there() {
    let bench = bench();
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    let openapi = daemon.get("/openapi.json").json();
    for path in openapi["paths"].as_object().unwrap().keys().filter(|p| *p != "/events" && *p != "/webhook") {
        let path = path.replace("{cluster}", CLUSTER).replace("{kind}", "VM").replace("{name}", "web");
        assert_eq!(daemon.get(&path).status, 200, "{path}");
    }
}

#[test]
fn health_is_good_once_every_cluster_had_its_cycle() {
    let bench = bench();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    add_cluster(&bench, "second", &format!("http://{}", silent.local_addr().unwrap()), "resources: []\n");
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_ready();
    let ill = daemon.get("/healthz");
    assert_eq!(ill.status, 503);
    daemon.until_converged(CLUSTER);
    let ill = daemon.get("/healthz");
    assert!(ill.status == 503 && ill.body.contains("cluster second"), "{ill:?}");
    std::fs::remove_dir_all(bench.repo().join("clusters/second")).unwrap();
    drop(silent);
    daemon.until("second", "gone", Value::is_null);
    assert_eq!(daemon.get("/healthz").status, 200);
}

#[test]
fn an_aborted_cycle_is_no_illness_of_the_daemon_but_shows_in_its_metrics() {
    let bench = Bench::offline("http://127.0.0.1:1");
    settings(&bench, "reconcile: {poll-interval: 1h}\n");
    let daemon = Daemon::start(&bench, &[]);
    daemon.until(CLUSTER, "aborted", |c| c["last_cycle"]["state"] == "aborted");
    assert_eq!(daemon.get("/healthz").status, 200);
    let metrics = daemon.get("/metrics").body;
    assert!(metrics.contains("proxops_cluster_up{cluster=\"lab\"} 0\n"), "{metrics}");
    assert!(metrics.contains("proxops_cycles_total{cluster=\"lab\",result=\"aborted\"} 1\n"), "{metrics}");
}

#[test]
fn metrics_tell_cycles_actions_requests_drift_and_calls_of_kinds() {
    let mut bench = bench();
    settings(&bench, "reconcile: {poll-interval: 1h}\n");
    bench.documents(&format!("vm/{CLUSTER}/db.yaml"), &[vm("db", 101, json!({}))]);
    bench
        .world()
        .task_rules
        .push(TaskRule { id: Some("101".into()), ..TaskRule::fail("qmcreate", "no space left") });
    let daemon = Daemon::start(&bench, &[]);
    daemon.until(CLUSTER, "done", |c| cycles(c) == 1);
    let metrics = daemon.get("/metrics").body;
    for line in [
        "proxops_build_info{version=\"0.1.0\"} 1",
        "proxops_cycles_total{cluster=\"lab\",result=\"failed\"} 1",
        "proxops_actions_total{cluster=\"lab\",verb=\"create\",result=\"ok\"} 1",
        "proxops_actions_total{cluster=\"lab\",verb=\"create\",result=\"failed\"} 1",
        "proxops_objects{cluster=\"lab\",kind=\"VM\",state=\"converged\"} 1",
        "proxops_objects{cluster=\"lab\",kind=\"VM\",state=\"failed\"} 1",
        "proxops_actions_running{cluster=\"lab\"} 0",
        "proxops_actions_queued{cluster=\"lab\"} 0",
        "proxops_tree_stale 0",
    ] {
        assert!(metrics.contains(&format!("{line}\n")), "{line}\n{metrics}");
    }
    for start in [
        "proxops_pve_request_duration_seconds_bucket{cluster=\"lab\",method=\"GET\",class=\"ok\",le=\"0.01\"} ",
        "proxops_pve_request_duration_seconds_count{cluster=\"lab\",method=\"POST\",class=\"ok\"} ",
        "proxops_kind_calls_total{kind=\"VM\",function=\"validate\",result=\"ok\"} ",
        "process_resident_memory_bytes ",
        "process_cpu_seconds_total ",
    ] {
        assert!(metrics.lines().any(|l| l.starts_with(start)), "{start}\n{metrics}");
    }
    well_formed(&metrics);
}

/// Every line is a comment, or a sample of the family that was announced last.
fn well_formed(text: &str) {
    let mut family = "";
    let mut seen = std::collections::BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split(' ').next().unwrap();
            assert!(seen.insert(family), "{family} is there twice");
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        assert!(name.starts_with(family), "{line} is not of {family}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
        if let Some((_, labels)) = name.split_once('{') {
            assert!(labels.ends_with("\"}"), "{line}");
        }
    }
}

#[test]
fn events_tell_when_something_moved() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let bench = bench();
    let daemon = Daemon::start(&bench, &["--observe"]);
    daemon.until(CLUSTER, "looked at", |c| cycles(c) >= 1);
    let mut stream = daemon.connect();
    write!(stream, "GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", daemon.address).unwrap();
    let lines = BufReader::new(stream).lines();
    let mut data = lines.map_while(Result::ok).filter(|l| l.starts_with("data: "));
    let first: Value = serde_json::from_str(&data.next().unwrap()[6..]).unwrap();
    assert_eq!(first[0]["cluster"], CLUSTER, "{first}");
    assert!(data.next().is_some(), "a further cycle is told");
}
