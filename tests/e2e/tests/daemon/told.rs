//! Who is told what: the operator's own address, and the git server.

use super::{bench, cycles, settings};
use crate::support::vm;
use proxops_e2e::{Bench, CLUSTER, Daemon};
use proxops_sim::{GuestKind, TaskRule};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// One call that came in.
#[derive(Debug)]
struct Call {
    head: String,
    token: Option<String>,
    body: Value,
}

/// A server that takes calls and answers each with the next of these words, the last one for ever.
struct Hook {
    address: SocketAddr,
    calls: Receiver<Call>,
}

impl Hook {
    fn start(answers: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (send, calls) = channel();
        let answers = answers.to_vec();
        std::thread::spawn(move || {
            for (n, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut call = Call { head: String::new(), token: None, body: Value::Null };
                let (mut length, mut line) = (0, String::new());
                reader.read_line(&mut call.head).unwrap();
                while reader.read_line(&mut line).unwrap() > 2 {
                    let (name, value) = line.trim_end().split_once(": ").unwrap();
                    match name.to_ascii_lowercase().as_str() {
                        "content-length" => length = value.parse().unwrap(),
                        "authorization" => call.token = Some(value.to_owned()),
                        "content-type" => assert_eq!(value, "application/json"),
                        _ => {}
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                call.body = serde_json::from_slice(&body).unwrap();
                let answer = answers.get(n).or(answers.last()).unwrap();
                let _ = write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                if send.send(call).is_err() {
                    return;
                }
            }
        });
        Self { address, calls }
    }

    #[track_caller]
    fn next(&self) -> Call {
        self.calls.recv_timeout(Duration::from_secs(60)).expect("a call")
    }
}

#[test]
fn the_operators_own_address_is_told_of_trouble_and_of_its_end() {
    let hook = Hook::start(&["204 No Content"]);
    let mut bench = bench();
    let url = format!("http://{}/hook", hook.address);
    settings(&bench, &format!("reconcile: {{poll-interval: 1s}}\nnotify: {{url: '{url}', token: n0tify}}\n"));
    bench.documents(&format!("vm/{CLUSTER}/db.yaml"), &[vm("db", 9000, json!({}))]);
    bench.world().add_guest(GuestKind::Qemu, 9000, "pve01", &[("name", "foreign")]);
    let daemon = Daemon::start(&bench, &[]);
    let first = hook.next();
    assert_eq!(first.token.as_deref(), Some("Bearer n0tify"));
    assert_eq!(first.head, "POST /hook HTTP/1.1\r\n");
    assert_eq!(
        (&first.body["event"], &first.body["resource"]),
        (&json!("anomaly"), &json!("VM/db")),
        "{first:#?}"
    );
    bench.unlist(&format!("vm/{CLUSTER}/db.yaml"));
    let second = hook.next();
    assert_eq!(
        (&second.body["event"], &second.body["cluster"]),
        (&json!("converged"), &json!(CLUSTER)),
        "{second:#?}"
    );
    assert!(!daemon.log().contains("n0tify"));
}

/// Commits everything that is there; the new commit.
fn commit(bench: &Bench) -> String {
    let git = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(words);
        let output = git.current_dir(bench.repo()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["add", "-A"]);
    git(&["commit", "-qm", "change"]);
    git(&["rev-parse", "HEAD"])
}

fn with_status(bench: &Bench, server: &str, hook: SocketAddr) {
    let to = format!("{{server: {server}, url: 'http://{hook}/api/acme/estate/', token: st4tus}}");
    settings(bench, &format!("reconcile: {{poll-interval: 1s}}\ncommit-status: {to}\n"));
}

#[test]
fn each_git_server_is_told_once_what_became_of_a_commit() {
    for (server, failure) in [("github", "failure"), ("gitlab", "failed"), ("gitea", "failure")] {
        let hook = Hook::start(&["201 Created"]);
        let mut bench = bench();
        with_status(&bench, server, hook.address);
        let first = commit(&bench);
        let daemon = Daemon::start(&bench, &[]);
        let call = hook.next();
        assert_eq!(call.head, format!("POST /api/acme/estate/statuses/{first} HTTP/1.1\r\n"), "{server}");
        assert_eq!(call.token.as_deref(), Some("Bearer st4tus"), "{server}");
        let said =
            |state: &str, text: &str| json!({"state": state, "context": "proxops/lab", "description": text});
        assert_eq!(call.body, said("success", "converged"), "{server}");
        // Nothing new, nothing told; what is not committed is nobody's commit.
        let seen = cycles(&daemon.cluster(CLUSTER));
        bench.write("notes.txt", "not committed");
        bench.meddle("PUT", "/nodes/pve01/qemu/100/config", json!({"memory": "2048"}));
        daemon.until(CLUSTER, "cycled again", |c| cycles(c) >= seen + 3);
        assert!(hook.calls.try_recv().is_err(), "{server}");

        bench.world().task_rules.push(TaskRule {
            times: 0,
            id: Some("101".into()),
            ..TaskRule::fail("qmcreate", "no space left")
        });
        bench.documents(&format!("vm/{CLUSTER}/db.yaml"), &[vm("db", 101, json!({}))]);
        let second = commit(&bench);
        let call = hook.next();
        assert!(call.head.contains(&format!("/statuses/{second} ")), "{server}: {call:?}");
        assert_eq!(call.body, said(failure, "1 of 1 actions failed"), "{server}");
        bench.world().task_rules.clear();
        let call = hook.next();
        assert!(call.head.contains(&format!("/statuses/{second} ")), "{server}: {call:?}");
        assert_eq!(call.body, said("success", "converged"), "{server}");
        let metrics = daemon.get("/metrics").body;
        let line = "proxops_notifications_total{event=\"commit-status\",result=\"ok\"} ";
        assert!(metrics.contains(line), "{server}: {metrics}");
        assert!(!daemon.log().contains("st4tus"));
    }
}

#[test]
fn a_git_server_that_fails_or_hangs_disturbs_no_cycle_and_no_end() {
    // The first answer is trouble: the letter is carried again.
    let hook = Hook::start(&["500 Internal Server Error", "201 Created"]);
    let bench = bench();
    with_status(&bench, "gitea", hook.address);
    commit(&bench);
    let daemon = Daemon::start(&bench, &[]);
    let (first, again) = (hook.next(), hook.next());
    assert_eq!((first.head, first.body), (again.head, again.body));
    drop(daemon);

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    with_status(&bench, "gitea", silent.local_addr().unwrap());
    commit(&bench);
    let mut daemon = Daemon::start(&bench, &[]);
    let (_stream, _) = silent.accept().unwrap();
    daemon.until(CLUSTER, "going on", |c| cycles(c) >= 4);
    daemon.signal("TERM");
    let asked = Instant::now();
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
}
