//! `/webhook`.

use super::{cycles, settings, slow};
use crate::support::vm;
use hmac::{Hmac, Mac as _};
use proxops_e2e::{Bench, CLUSTER, Daemon};
use serde_json::json;
use sha2::Sha256;
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

const SECRET: &str = "correct horse battery staple";
const BODY: &[u8] = br#"{"ref":"refs/heads/main"}"#;

fn with_webhook() -> Bench {
    let mut bench = slow();
    bench.set("PROXOPS_WEBHOOK_SECRET", SECRET);
    bench
}

pub(super) fn signature(secret: &str, body: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap().chain_update(body);
    hex::encode(mac.finalize().into_bytes())
}

/// Waits as long as a cycle that was asked for would take at most to begin, and to be seen.
fn nothing_begins(daemon: &Daemon, before: usize) {
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(cycles(&daemon.cluster(CLUSTER)), before, "{}", daemon.log());
}

#[test]
fn a_push_of_each_git_server_begins_a_cycle_on_the_tree_as_it_is_now() {
    let mut bench = with_webhook();
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    let right = signature(SECRET, BODY);
    let github = format!("sha256={right}");
    let servers: [&[(&str, &str)]; 3] = [
        &[("X-GitHub-Event", "push"), ("X-Hub-Signature-256", &github)],
        &[("X-Gitea-Event", "push"), ("X-Gitea-Signature", &right), ("X-Hub-Signature-256", &github)],
        &[("X-Gitlab-Event", "Push Hook"), ("X-Gitlab-Token", SECRET)],
    ];
    for (i, headers) in (1..).zip(servers) {
        let name = format!("vm-{i}");
        bench.documents(&format!("vm/{CLUSTER}/{name}.yaml"), &[vm(&name, 200 + i, json!({}))]);
        assert_eq!(daemon.send("POST", "/webhook", headers, BODY).status, 202);
        let cluster = daemon.until(CLUSTER, "cycled", |c| cycles(c) == 1 + i as usize);
        assert_eq!(cluster["cycles"][0]["why"], "webhook");
        assert!(bench.world().guests.contains_key(&(200 + i)), "{cluster:#}");
    }
}

#[test]
fn a_wrong_or_missing_signature_does_nothing() {
    let bench = with_webhook();
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    let other = signature("another secret", BODY);
    let of_other_body = signature(SECRET, b"{}");
    let (prefixed, cut) = (format!("sha256={other}"), signature(SECRET, BODY)[..62].to_owned());
    let wrong: [&[(&str, &str)]; 7] = [
        &[],
        &[("X-GitHub-Event", "push")],
        &[("X-Hub-Signature-256", &prefixed)],
        &[("X-Gitea-Signature", &of_other_body)],
        &[("X-Gitea-Signature", &cut)],
        &[("X-Gitlab-Token", "guess")],
        &[("Authorization", "Bearer correct horse battery staple")],
    ];
    for headers in wrong {
        let answer = daemon.send("POST", "/webhook", headers, BODY);
        assert_eq!(answer.status, 401, "{headers:?}: {answer:?}");
    }
    assert_eq!(daemon.get("/webhook").status, 405);
    nothing_begins(&daemon, 1);
    let metrics = daemon.get("/metrics").body;
    assert!(metrics.contains("proxops_webhook_requests_total{result=\"refused\"} 7\n"), "{metrics}");
}

#[test]
fn a_signed_call_that_is_no_push_does_nothing() {
    let bench = with_webhook();
    settings(&bench, "reconcile: {poll-interval: 1h}\n");
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    let github = format!("sha256={}", signature(SECRET, BODY));
    let ping = daemon.send(
        "POST",
        "/webhook",
        &[("X-GitHub-Event", "ping"), ("X-Hub-Signature-256", &github)],
        BODY,
    );
    assert_eq!(ping.status, 200);
    nothing_begins(&daemon, 1);
}

#[test]
fn without_a_secret_there_is_no_webhook() {
    let bench = slow();
    let daemon = Daemon::start(&bench, &[]);
    let empty = signature("", BODY);
    assert_eq!(daemon.send("POST", "/webhook", &[("X-Gitea-Signature", &empty)], BODY).status, 404);
}

#[test]
fn a_thousand_good_calls_in_a_second_cause_one_further_cycle() {
    let bench = with_webhook();
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    let right = signature(SECRET, BODY);
    let call = format!(
        "POST /webhook HTTP/1.1\r\nHost: x\r\nX-Gitea-Signature: {right}\r\nContent-Length: {}\r\n\r\n{}",
        BODY.len(),
        String::from_utf8_lossy(BODY)
    );
    let started = Instant::now();
    let accepted: usize = std::thread::scope(|scope| {
        let sender = || {
            scope.spawn(|| {
                let mut stream = daemon.connect();
                let mut accepted = 0;
                let mut buffer = [0; 4096];
                for _ in 0..125 {
                    stream.write_all(call.as_bytes()).unwrap();
                    let n = stream.read(&mut buffer).unwrap();
                    accepted += usize::from(buffer[..n].starts_with(b"HTTP/1.1 202"));
                }
                accepted
            })
        };
        let senders: Vec<_> = (0..8).map(|_| sender()).collect();
        senders.into_iter().map(|s| s.join().unwrap()).sum()
    });
    eprintln!("{accepted} calls accepted in {:?}", started.elapsed());
    assert_eq!(accepted, 1000);
    daemon.until(CLUSTER, "cycled again", |c| cycles(c) >= 2);
    nothing_begins(&daemon, 2);
}
