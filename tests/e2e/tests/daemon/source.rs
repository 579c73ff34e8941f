//! A daemon whose tree comes from a git server: pushes, a server that is away, and ends in the middle of a fetch.

use super::cycles;
use super::pushes::signature;
use crate::git_source::{remote, with_server};
use crate::support::vm;
use proxops_e2e::{Bench, CLUSTER, Daemon, GIT_TOKEN, GitServer, Upstream};
use proxops_sim::seed;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

const SECRET: &str = "hook-fixture-secret";
const WEB: &str = "vm/lab/web.yaml";

/// A bench with a tree at a server that is asked this often.
fn served(interval: &str) -> (Bench, Upstream, GitServer, String) {
    let (mut bench, upstream, server, _) = with_server();
    let commit = settle(&upstream, interval);
    let (url, ca) = (server.url(), server.ca().display());
    bench.write(
        "proxops.yaml",
        format!("git: {{url: '{url}', ca-file: '{ca}', poll-interval: {interval}}}\n"),
    );
    bench.set("PROXOPS_WEBHOOK_SECRET", SECRET);
    (bench, upstream, server, commit)
}

/// The settings of cycles are the fetched tree's own.
fn settle(upstream: &Upstream, interval: &str) -> String {
    upstream.write("proxops.yaml", format!("reconcile: {{poll-interval: {interval}}}\n"));
    upstream.push("main")
}

fn push(upstream: &Upstream, memory: &str) -> String {
    upstream.write(WEB, format!("{:#}", vm("web", 100, json!({"memory": memory}))));
    upstream.push("main")
}

fn announce(daemon: &Daemon) {
    let body = br#"{"ref":"refs/heads/main"}"#;
    let signature = format!("sha256={}", signature(SECRET, body));
    let headers = [("X-GitHub-Event", "push"), ("X-Hub-Signature-256", signature.as_str())];
    assert_eq!(daemon.send("POST", "/webhook", &headers, body).status, 202);
}

fn memory(bench: &Bench) -> String {
    // 512 is what PVE says nothing about.
    bench.world().guests[&100].config.get("memory").cloned().unwrap_or_else(|| "512".to_owned())
}

fn tree(daemon: &Daemon) -> Value {
    daemon.status()["daemon"]["tree"].clone()
}

/// The token is nowhere that a reader may look.
#[track_caller]
fn hidden(daemon: &Daemon) {
    for path in ["/", "/status", "/diff", "/metrics", "/clusters/lab"] {
        assert!(!daemon.get(path).body.contains(GIT_TOKEN), "{path}");
    }
    assert!(!daemon.log().contains(GIT_TOKEN), "{}", daemon.log());
}

#[test]
fn an_announced_push_is_fetched_and_the_cycle_works_on_its_commit() {
    let (bench, upstream, _server, first) = served("1h");
    let daemon = Daemon::start(&bench, &[]);
    let cluster = daemon.until_converged(CLUSTER);
    assert_eq!((&cluster["commit"], &cluster["stale"]), (&json!(first), &json!(false)), "{cluster:#}");
    assert_eq!(memory(&bench), "512");

    let second = push(&upstream, "1GiB");
    assert_eq!(cycles(&daemon.cluster(CLUSTER)), 1, "nobody said a word yet");
    announce(&daemon);
    let cluster = daemon.until(CLUSTER, "cycled again", |c| cycles(c) == 2);
    let cycle = &cluster["cycles"][0];
    assert_eq!((&cycle["why"], &cycle["commit"]), (&json!("webhook"), &json!(second)), "{cluster:#}");
    assert_eq!((&cluster["commit"], memory(&bench).as_str()), (&json!(second), "1024"));
    assert_eq!(tree(&daemon)["commit"], json!(second));
    assert!(daemon.get("/").body.contains(&second[..10]), "the page names the commit");

    // A commit that does not parse stops the cluster and says where; nothing is pruned.
    upstream.write(WEB, "kind: [");
    let broken = upstream.push("main");
    announce(&daemon);
    let cluster = daemon.until(CLUSTER, "aborted", |c| c["last_cycle"]["state"] == "aborted");
    assert_eq!(cluster["commit"], json!(broken), "{cluster:#}");
    assert!(cluster["last_cycle"]["error"].as_str().unwrap().contains("vm/lab/web.yaml:"), "{cluster:#}");
    assert_eq!(bench.world().guests.len(), 1);
    let fixed = push(&upstream, "2GiB");
    announce(&daemon);
    let cluster = daemon.until(CLUSTER, "on the fixed commit", |c| c["commit"] == json!(fixed));
    assert_eq!((&cluster["last_cycle"]["state"], memory(&bench).as_str()), (&json!("ok"), "2048"));
    hidden(&daemon);
}

#[test]
fn without_a_webhook_the_source_is_asked_every_poll_interval() {
    let (mut bench, upstream) = remote(seed::empty(), "file:///nowhere", "");
    bench.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let url = upstream.bare().display().to_string();
    bench.write("proxops.yaml", format!("git: {{url: 'file://{url}', poll-interval: 1s}}\n"));
    settle(&upstream, "1s");
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    let second = push(&upstream, "1GiB");
    daemon.until(CLUSTER, "on the second commit", |c| {
        c["commit"] == json!(second) && c["last_cycle"]["clean"] == true
    });
    assert_eq!(memory(&bench), "1024");
}

#[test]
fn a_server_that_is_away_leaves_the_last_tree_marked_stale_until_it_is_back() {
    let (bench, upstream, server, first) = served("1s");
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    assert_eq!(tree(&daemon)["stale"], Value::Null);
    server.manners.lock().unwrap().down = true;
    let second = push(&upstream, "1GiB");

    let cluster = daemon.until(CLUSTER, "stale", |c| c["stale"] == true);
    assert_eq!(cluster["commit"], json!(first), "{cluster:#}");
    let about = tree(&daemon);
    assert!(about["stale"].as_str().is_some_and(|why| why.contains("503")), "{about:#}");
    assert_eq!(about["commit"], json!(first));
    let since = about["stale_since"].clone();
    // Cycles go on, on the last good tree.
    bench.meddle("PUT", "/nodes/pve01/qemu/100/config", json!({"memory": "4096"}));
    let before = cluster["cycles"][0]["ended_at"].clone();
    daemon.until(CLUSTER, "put right", |c| {
        c["last_cycle"]["clean"] == true && c["cycles"][0]["ended_at"] != before && memory(&bench) == "512"
    });
    assert_eq!(tree(&daemon)["stale_since"], since, "since when it is so does not move");
    // Everybody who looks is told.
    let diff = daemon.get("/diff").json();
    assert_eq!(diff["clusters"][0]["stale"], json!(true), "{diff:#}");
    let page = daemon.get("/").body;
    assert!(
        page.contains("The last good tree and configuration are used.") && page.contains("503"),
        "{page}"
    );
    let metrics = daemon.get("/metrics").body;
    assert!(metrics.contains("proxops_tree_stale 1\n"), "{metrics}");
    let seconds = metrics.lines().find_map(|l| l.strip_prefix("proxops_tree_stale_seconds ")).unwrap();
    assert!(seconds.parse::<f64>().unwrap() > 0.0, "{seconds}");
    assert_eq!(daemon.get("/healthz").status, 200, "the daemon itself is well");

    server.manners.lock().unwrap().down = false;
    let cluster = daemon.until(CLUSTER, "fresh", |c| c["stale"] == false && c["last_cycle"]["clean"] == true);
    assert_eq!((cluster["commit"].clone(), memory(&bench).as_str()), (json!(second), "1024"));
    let about = tree(&daemon);
    assert_eq!((&about["stale"], &about["stale_since"]), (&Value::Null, &Value::Null), "{about:#}");
    let metrics = daemon.get("/metrics").body;
    for line in ["proxops_tree_stale 0", "proxops_tree_stale_seconds 0"] {
        assert!(metrics.contains(&format!("{line}\n")), "{line}\n{metrics}");
    }
    assert!(!daemon.get("/").body.contains("The last good tree"), "the page forgets it");
    hidden(&daemon);
}

#[test]
fn a_daemon_that_starts_while_the_server_is_away_goes_on_with_the_last_tree() {
    let (bench, _upstream, server, first) = served("1s");
    drop(Daemon::start(&bench, &["--observe"]));
    server.manners.lock().unwrap().down = true;
    let daemon = Daemon::start(&bench, &[]);
    let cluster = daemon.until_converged(CLUSTER);
    assert_eq!((&cluster["commit"], &cluster["stale"]), (&json!(first), &json!(true)), "{cluster:#}");
    assert!(tree(&daemon)["stale"].as_str().is_some_and(|why| why.contains("503")));
}

/// Pushes far more than the server will hand out before it stands still.
fn push_much(upstream: &Upstream) -> String {
    for n in 0..50 {
        let noise: Vec<u8> = (0..4000u32).map(|i| (i.wrapping_mul(2_654_435_761 + n) >> 13) as u8).collect();
        upstream.write(&format!("blob/{n}"), noise);
    }
    push(upstream, "1GiB")
}

fn until_stalled(server: &GitServer) {
    let until = Instant::now() + Duration::from_secs(60);
    while server.manners.lock().unwrap().stalled == 0 {
        assert!(Instant::now() < until, "nothing was fetched");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_fetch_that_hangs_holds_up_no_cycle_and_no_end() {
    let (bench, upstream, server, first) = served("1s");
    let mut daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    server.manners.lock().unwrap().stall_after = Some(20_000);
    let second = push_much(&upstream);
    until_stalled(&server);
    let before = cycles(&daemon.cluster(CLUSTER));
    bench.meddle("PUT", "/nodes/pve01/qemu/100/config", json!({"memory": "4096"}));
    let cluster =
        daemon.until(CLUSTER, "going on", |c| cycles(c) >= (before + 3).min(20) && memory(&bench) == "512");
    assert_eq!(cluster["commit"], json!(first), "{cluster:#}");
    daemon.signal("TERM");
    let asked = Instant::now();
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(5), "it took {took:?} to end: {}", daemon.log());
    eprintln!("ended {took:?} after SIGTERM in a fetch");
    drop(daemon);
    // The next start reads no half of a tree, and cleans up.
    server.manners.lock().unwrap().stall_after = None;
    let daemon = Daemon::start(&bench, &[]);
    let cluster = daemon.until_converged(CLUSTER);
    assert_eq!((&cluster["commit"], &cluster["stale"]), (&json!(second), &json!(false)), "{cluster:#}");
    let git = std::fs::read_dir(bench.data_dir().join("git")).unwrap().next().unwrap().unwrap().path();
    let names: Vec<_> = std::fs::read_dir(git).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with("tmp-")), "{names:?}");
}

#[test]
fn sigterm_in_the_first_fetch_ends_the_start_before_pve_is_asked() {
    let (bench, upstream, server, _) = served("1s");
    server.manners.lock().unwrap().stall_after = Some(2_000);
    push_much(&upstream);
    let mut child = bench
        .command(&["run", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until_stalled(&server);
    let sent = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let asked = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if asked.elapsed() > Duration::from_secs(5) {
            child.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(status.signal() == Some(15) || status.code() == Some(0), "{status}");
    assert_eq!(bench.sim().requests(), 0);
}
