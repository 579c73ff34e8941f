//! Cycles: what starts one, what a cluster's state is, what is left alone.

use super::{add_cluster, bench, cycles, settings, slow};
use crate::support::vm;
use proxops_e2e::{Bench, CLUSTER, Daemon};
use proxops_sim::seed;
use serde_json::json;

#[test]
fn a_cluster_is_converged_and_put_right_when_somebody_changes_it() {
    let bench = bench();
    let daemon = Daemon::start(&bench, &[]);
    let cluster = daemon.until_converged(CLUSTER);
    assert_eq!(cluster["objects"][0]["state"], "converged", "{cluster:#}");
    assert_eq!(cluster["objects"][0]["last_action"], "create", "{cluster:#}");
    bench.meddle("PUT", "/nodes/pve01/qemu/100/config", json!({"memory": "1024"}));
    daemon.until(CLUSTER, "put right", |c| c["objects"][0]["last_action"] == "update");
    assert_eq!(bench.world().guests[&100].config["memory"], "512");
}

#[test]
fn watching_shows_drift_and_writes_nothing() {
    let bench = bench();
    let daemon = Daemon::start(&bench, &["--observe"]);
    let cluster = daemon.until(CLUSTER, "looked at twice", |c| cycles(c) >= 2);
    assert_eq!(cluster["objects"][0]["state"], "desired", "{cluster:#}");
    assert_eq!(daemon.status()["daemon"]["observe"], true);
    let diff = daemon.get("/diff").json();
    assert_eq!(diff["summary"]["create"], 1, "{diff:#}");
    assert!(bench.writes().is_empty());
    assert!(!bench.data_dir().join("locks").exists(), "watching takes no lock");
}

#[test]
fn a_changed_manifest_takes_effect_without_a_restart() {
    let mut bench = bench();
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    bench.documents(&format!("vm/{CLUSTER}/db.yaml"), &[vm("db", 101, json!({}))]);
    daemon.until(CLUSTER, "aware of the second VM", |c| {
        c["objects"]
            .as_array()
            .is_some_and(|o| o.iter().any(|o| o["name"] == "db" && o["state"] == "converged"))
    });
    assert!(bench.world().guests.contains_key(&101));
}

#[test]
fn sighup_begins_a_cycle_on_the_tree_as_it_is_now() {
    let mut bench = slow();
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    bench.documents(&format!("vm/{CLUSTER}/db.yaml"), &[vm("db", 101, json!({}))]);
    daemon.signal("HUP");
    let cluster = daemon.until(CLUSTER, "cycled again", |c| cycles(c) == 2);
    assert_eq!(cluster["cycles"][0]["why"], "signal", "{cluster:#}");
    assert!(bench.world().guests.contains_key(&101));
}

#[test]
fn a_suspended_cluster_is_left_alone_across_restarts_until_it_is_resumed() {
    let bench = bench();
    bench.run(&["suspend"]).exits(1).says("--cluster");
    bench.run(&["suspend", "--cluster", CLUSTER, "--reason", "disk swap"]).exits(0);
    for _ in 0..2 {
        let daemon = Daemon::start(&bench, &[]);
        let cluster = daemon.until(CLUSTER, "suspended", |c| c["phase"] == "suspended");
        assert_eq!(cluster["suspended"]["reason"], "disk swap");
        assert_eq!(daemon.get("/healthz").status, 200, "a suspended cluster is no illness");
    }
    assert!(bench.writes().is_empty());
    let daemon = Daemon::start(&bench, &[]);
    daemon.until(CLUSTER, "suspended", |c| c["phase"] == "suspended");
    bench.run(&["resume", "--cluster", CLUSTER]).exits(0).says("goes on");
    daemon.until_converged(CLUSTER);
    bench.run(&["resume", "--cluster", CLUSTER]).exits(0).says("was not suspended");
}

#[test]
fn a_suspension_shows_at_once_however_long_the_interval_is() {
    let bench = bench();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    settings(&bench, &format!("listen: 127.0.0.1:{port}\nreconcile: {{poll-interval: 1h}}\n"));
    let daemon = Daemon::spawn(&bench, &["run"]);
    daemon.until_converged(CLUSTER);
    bench.run(&["suspend", "--cluster", CLUSTER, "--reason", "disk swap"]).exits(0);
    daemon.until(CLUSTER, "suspended", |c| c["suspended"]["reason"] == "disk swap");
    let metrics = daemon.get("/metrics").body;
    assert!(metrics.contains(&format!("proxops_cluster_suspended{{cluster=\"{CLUSTER}\"}} 1")), "{metrics}");
    bench.run(&["status"]).exits(0).says("suspended (disk swap), last cycle at 20");
    bench.run(&["status", "--no-daemon"]).exits(0).says("suspended (disk swap); ");
    bench.run(&["resume", "--cluster", CLUSTER]).exits(0);
    daemon.until(CLUSTER, "looked at again", |c| cycles(c) == 2 && c["suspended"].is_null());
    let run = bench.run(&["status"]).exits(0);
    assert!(!run.stdout.contains("suspended"), "{run}");
}

#[test]
fn clusters_come_and_go_with_the_tree() {
    let bench = bench();
    let other = Bench::new(seed::empty());
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    add_cluster(&bench, "second", &other.url(), "resources: []\n");
    daemon.until_converged("second");
    std::fs::remove_dir_all(bench.repo().join("clusters/second")).unwrap();
    daemon.until("second", "gone", serde_json::Value::is_null);
    daemon.until_converged(CLUSTER);
}

#[test]
fn only_the_selected_clusters_are_touched_and_a_wrong_name_is_refused() {
    let bench = bench();
    let other = Bench::new(seed::empty());
    add_cluster(&bench, "second", &other.url(), "resources: []\n");
    let daemon = Daemon::start(&bench, &["--cluster", CLUSTER]);
    daemon.until_converged(CLUSTER);
    assert!(daemon.cluster("second").is_null());
    bench.run(&["run", "--listen", "127.0.0.1:0", "--cluster", "secnd"]).exits(1).says("did you mean second");
}

#[test]
fn a_broken_manifest_aborts_the_cluster_says_where_and_prunes_nothing() {
    let bench = bench();
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    bench.write(&format!("vm/{CLUSTER}/web.yaml"), "kind: [");
    let cluster = daemon.until(CLUSTER, "aborted", |c| c["last_cycle"]["state"] == "aborted");
    assert!(cluster["last_cycle"]["error"].as_str().unwrap().contains("vm/lab/web.yaml:"), "{cluster:#}");
    assert_eq!(bench.world().guests.len(), 1, "nothing is pruned");
}

#[test]
fn a_second_daemon_on_one_address_is_refused() {
    let bench = bench();
    let daemon = Daemon::start(&bench, &[]);
    let taken = daemon.address.to_string();
    bench.run(&["run", "--listen", &taken]).exits(1).says("is another daemon running");
}

#[test]
fn status_and_diff_ask_a_running_daemon_first() {
    let bench = bench();
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let mut git = std::process::Command::new("git");
        assert!(git.current_dir(bench.repo()).args(identity).args(words).output().unwrap().status.success());
    };
    // A free port, which the commands must know as well.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    settings(&bench, &format!("listen: 127.0.0.1:{port}\nreconcile: {{poll-interval: 1h}}\n"));
    git(&["add", "-A"]);
    git(&["commit", "-qm", "one"]);
    let daemon = Daemon::spawn(&bench, &["run", "--observe"]);
    daemon.until(CLUSTER, "looked at", |c| cycles(c) == 1);
    let asked = bench.sim().requests();
    let status = bench.run(&["status", "-o", "json"]).exits(0).says("as the running daemon found it").json();
    assert_eq!(
        (&status["format"], &status["clusters"][0]["objects"][0]["state"]),
        (&json!("proxops.status/v1"), &json!("desired"))
    );
    bench.run(&["status"]).exits(0).says("not converged");
    let diff =
        bench.run(&["diff", "-o", "json", "--exit-code"]).exits(2).says("as the running daemon found it");
    assert_eq!(diff.actions(), ["create VM/web"]);
    assert_eq!(bench.sim().requests(), asked, "PVE was not asked again");
    let alone = bench.run(&["diff", "--no-daemon"]).exits(0);
    assert!(!alone.stderr.contains("daemon") && bench.sim().requests() > asked, "{alone}");
    // What is edited here is not what the daemon planned.
    bench.write("notes.yaml", "x: 1");
    bench.write(&format!("vm/{CLUSTER}/web.yaml"), format!("{:#}", vm("web", 101, json!({}))));
    let own = bench.run(&["diff", "-o", "json"]).exits(0);
    assert!(!own.stderr.contains("as the running daemon"), "{own}");
    assert_eq!(own.list("actions")[0]["vmid"], 101);
    // Another name of the data directory is the same directory.
    let link = bench.data_dir().with_file_name("link");
    std::os::unix::fs::symlink(bench.data_dir(), &link).unwrap();
    let plain = bench.command(&[]);
    for name in ["../data", "../data/", "./../repo/../data", link.to_str().unwrap()] {
        let mut command = std::process::Command::new(plain.get_program());
        command.args(["status", "--data-dir", name]).current_dir(bench.repo()).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        proxops_e2e::Run::of(command.output().unwrap()).exits(0).says("as the running daemon found it");
    }
}

#[test]
fn a_repository_that_is_deleted_leaves_the_last_good_tree_and_a_new_clone_at_its_place_is_read() {
    let bench = bench();
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let mut git = std::process::Command::new("git");
        let run = git.args(identity).args(words).current_dir(bench.data_dir()).output().unwrap();
        assert!(run.status.success(), "{run:?}");
        String::from_utf8(run.stdout).unwrap().trim().to_owned()
    };
    let (repo, kept) = (bench.repo().display().to_string(), "kept");
    git(&["-C", &repo, "add", "-A"]);
    git(&["-C", &repo, "commit", "-qm", "one"]);
    git(&["clone", "-q", "--bare", &repo, kept]);
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    let tree = || daemon.status()["daemon"]["tree"].clone();
    let until = |what: &str, so: &dyn Fn(&serde_json::Value) -> bool| {
        let start = std::time::Instant::now();
        while !so(&tree()) {
            assert!(start.elapsed().as_secs() < 60, "{what}: {:#}\n{}", tree(), daemon.log());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    let first = git(&["-C", &repo, "rev-parse", "HEAD"]);
    assert_eq!((&tree()["commit"], &tree()["stale"]), (&json!(first), &json!(null)));

    // The daemon's working directory is deleted with it.
    std::fs::remove_dir_all(bench.repo()).unwrap();
    until("stale", &|tree| tree["stale"].as_str().is_some_and(|why| why.contains("is gone")));
    assert_eq!(tree()["commit"], json!(first), "the last good tree is kept");
    assert!(bench.world().guests.contains_key(&100));

    git(&["clone", "-q", kept, &repo]);
    until("as its clone", &|tree| tree["stale"].is_null() && tree["commit"] == json!(first));
    bench
        .write(&format!("vm/{CLUSTER}/web.yaml"), format!("{:#}", vm("web", 100, json!({"memory": "1GiB"}))));
    git(&["-C", &repo, "commit", "-qam", "two"]);
    let second = git(&["-C", &repo, "rev-parse", "HEAD"]);
    until("at the second commit", &|tree| tree["commit"] == json!(second));
    daemon.until(CLUSTER, "on the new tree", |_| {
        bench.world().guests[&100].config.get("memory").is_some_and(|memory| memory == "1024")
    });
}
