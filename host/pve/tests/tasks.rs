//! Waiting for tasks.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Reply, Seen, Server, bare, client, data, http, refuse};
use proxops_pve::{Class, Method, TaskEnd, TaskQuery, Upid};
use std::time::Duration;

const UPID: &str = "UPID:pve02:0003C2B1:0A1B2C3D:66A1B2C3:qmclone:9000:root@pam!ci:";
const LONG: Duration = Duration::from_secs(60);

fn upid() -> Upid {
    Upid::parse(UPID).unwrap()
}

fn running() -> Reply {
    data(r#"{"status":"running"}"#)
}

fn stopped(exit: &str) -> Reply {
    data(&format!(r#"{{"status":"stopped","exitstatus":{exit:?}}}"#))
}

fn is_log(seen: &Seen) -> bool {
    seen.target.contains("/log")
}

async fn wait(server: &Server) -> TaskEnd {
    client(server).wait_task(&upid(), LONG, &mut |_| {}).await.unwrap()
}

#[tokio::test]
async fn a_task_is_polled_on_its_own_node_until_it_ends() {
    let server = Server::start(|seen| if seen.nth < 4 { running() } else { stopped("OK") }).await;
    let mut looks = Vec::new();
    let end = client(&server).wait_task(&upid(), LONG, &mut |elapsed| looks.push(elapsed)).await.unwrap();
    assert_eq!(end, TaskEnd::Ok);
    assert_eq!(server.lines(), vec![format!("GET /nodes/pve02/tasks/{UPID}/status"); 4]);
    assert_eq!(looks.len(), 3);
    assert!(looks.is_sorted());
}

#[tokio::test]
async fn warnings_come_with_their_lines_of_the_whole_log() {
    let server = Server::start(|seen| match is_log(seen) {
        true => data(
            r#"[{"n":1,"t":"starting"},{"n":3,"t":"TASK WARNINGS: 1"},{"n":2,"t":"WARN: Systemd 257 detected. You may need to enable nesting."}]"#,
        ),
        false => stopped("WARNINGS: 1"),
    })
    .await;
    let line = "WARN: Systemd 257 detected. You may need to enable nesting.".to_owned();
    assert_eq!(wait(&server).await, TaskEnd::Warnings { count: 1, lines: vec![line] });
    assert!(server.lines()[1].ends_with("/log?start=0&limit=0"), "{:?}", server.lines());
}

#[tokio::test]
async fn warnings_are_success_even_without_a_log() {
    let server = Server::start(|seen| {
        if is_log(seen) { refuse(403, "Permission check failed") } else { stopped("WARNINGS: 2") }
    })
    .await;
    assert_eq!(wait(&server).await, TaskEnd::Warnings { count: 2, lines: vec![] });
}

#[tokio::test]
async fn a_failed_task_is_classified_by_its_text() {
    for (text, class) in [
        ("VM is locked (backup)", Class::Locked("backup".into())),
        ("can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout", Class::Busy),
        ("close (rename) atomic file '/etc/pve/x' failed: File exists", Class::Taken),
        ("shrinking disks is not supported", Class::Invalid),
        ("unexpected status", Class::UnknownOutcome),
        ("nobody has seen this", Class::Server),
    ] {
        let server = Server::start(move |_| stopped(text)).await;
        assert_eq!(wait(&server).await, TaskEnd::Failed { class, text: text.to_owned() });
    }
}

#[tokio::test]
async fn the_time_limit_ends_the_waiting_not_the_task() {
    let server = Server::start(|_| running()).await;
    let limit = Duration::from_millis(200);
    let end = client(&server).wait_task(&upid(), limit, &mut |_| {}).await.unwrap();
    assert_eq!(end, TaskEnd::Timeout);
    assert!(server.lines().iter().all(|line| line.starts_with("GET ")));
}

#[tokio::test]
async fn polling_survives_faults_in_passing() {
    // R8: a status that can't be read for a moment
    let server = Server::start(|seen| match seen.nth {
        1 => Reply::Drop,
        2 => bare(596, "Connection timed out"),
        3 => refuse(500, "no such task\n"),
        4 => Reply::Close(http(
            "400 x",
            r#"{"message":"Parameter verification failed.","errors":{"upid":"no such task"}}"#,
        )),
        5 => running(),
        _ => stopped("OK"),
    })
    .await;
    assert_eq!(wait(&server).await, TaskEnd::Ok);
}

/// What the cluster says of pve02, while its tasks answer as `task` says.
async fn of_a_silent_node(status: &'static str, task: fn() -> Reply) -> Server {
    Server::start(move |seen| match seen.target.ends_with("/nodes") {
        true => {
            data(&format!(r#"[{{"node":"pve01","status":"online"}},{{"node":"pve02","status":"{status}"}}]"#))
        }
        false => task(),
    })
    .await
}

#[tokio::test]
async fn a_task_of_a_node_that_is_offline_is_not_awaited_to_the_end_of_its_time() {
    // T23, C8
    let server = of_a_silent_node("offline", || bare(595, "No route to host")).await;
    let TaskEnd::Lost { why } =
        client(&server).wait_task(&upid(), Duration::from_secs(20), &mut |_| {}).await.unwrap()
    else {
        panic!("awaited")
    };
    assert_eq!(why, "node pve02 is offline");
}

#[tokio::test]
async fn a_node_that_is_online_and_silent_is_given_longer_and_then_named() {
    let server = of_a_silent_node("online", || bare(595, "Connection refused")).await;
    let started = std::time::Instant::now();
    let time = Duration::from_secs(8);
    let end = client(&server).wait_task(&upid(), time, &mut |_| {}).await.unwrap();
    let TaskEnd::Lost { why } = end else { panic!("{end:?}") };
    assert!(why.contains("pve02") && why.contains("Connection refused"), "{why}");
    assert!(started.elapsed() >= time / 2, "an online node gets half of the time: {:?}", started.elapsed());
}

#[tokio::test]
async fn a_node_that_is_silent_when_the_time_is_up_is_named_and_the_task_not_said_to_run() {
    let server = of_a_silent_node("online", || bare(595, "Connection refused")).await;
    let end = client(&server).wait_task(&upid(), Duration::from_millis(300), &mut |_| {}).await.unwrap();
    assert!(matches!(&end, TaskEnd::Lost { why } if why.contains("pve02")), "{end:?}");
}

#[tokio::test]
async fn a_node_that_comes_back_is_asked_again_as_if_nothing_had_been() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static POLLS: AtomicUsize = AtomicUsize::new(0);
    // the first read and its repetitions find the node gone; its cluster has seen it leave
    let server = of_a_silent_node("offline", || match POLLS.fetch_add(1, Ordering::SeqCst) {
        0..5 => bare(595, "No route to host"),
        5 => running(),
        _ => stopped("OK"),
    })
    .await;
    assert_eq!(wait(&server).await, TaskEnd::Ok);
}

#[tokio::test]
async fn a_task_that_nobody_knows_has_an_unknown_outcome() {
    let body =
        r#"{"message":"Parameter verification failed.","errors":{"upid":"unable to parse worker upid"}}"#;
    let server = Server::start(move |_| Reply::Close(http("400 x", body))).await;
    let error = client(&server).wait_task(&upid(), LONG, &mut |_| {}).await.unwrap_err();
    assert!(error.outcome_unknown(), "{error:?}");
    assert!(error.message.contains(UPID), "{error}");
}

#[tokio::test]
async fn a_task_that_may_not_be_seen_is_an_error_at_once() {
    let server = Server::start(|_| refuse(403, "Permission check failed (/nodes/pve02, Sys.Audit)")).await;
    let error = client(&server).wait_task(&upid(), LONG, &mut |_| {}).await.unwrap_err();
    assert_eq!(error.class, Class::Forbidden);
    assert_eq!(server.lines().len(), 1);
}

#[tokio::test]
async fn the_task_of_a_write_is_found_in_its_answer() {
    let server = Server::start(|seen| match seen.nth {
        1 => data(&format!("{UPID:?}")),
        2 => data("null"),
        _ => data("\"UPID:broken\""),
    })
    .await;
    let client = client(&server);
    assert_eq!(client.send(Method::Post, "/x", &[]).await.unwrap().upid(), Some(upid()));
    assert_eq!(client.send(Method::Put, "/x", &[]).await.unwrap().upid(), None);
    // a task that was started and can't be followed
    assert!(client.send(Method::Post, "/x", &[]).await.unwrap_err().outcome_unknown());
}

#[tokio::test]
async fn tasks_of_a_node_are_listed_with_those_that_run() {
    let server = Server::start(|_| {
        data(&format!(
            r#"[{{"upid":"old","type":"qmclone","id":"1","user":"u","starttime":10,"endtime":"12","status":"OK"}},
                {{"upid":{UPID:?},"type":"vztemplate","id":"201","user":"u","starttime":20,"status":"RUNNING"}}]"#
        ))
    })
    .await;
    let client = client(&server);
    let query =
        TaskQuery { vmid: Some(201), task_type: Some("vztemplate".into()), since: Some(5), running: false };
    let all = client.node_tasks("pve02", &query).await.unwrap();
    assert_eq!(all.iter().map(|task| task.start_time).collect::<Vec<_>>(), [20, 10]);
    assert_eq!((all[0].status.clone(), all[1].status.as_deref()), (None, Some("OK")));
    assert_eq!(
        server.lines(),
        ["GET /nodes/pve02/tasks?source=all&limit=500&vmid=201&typefilter=vztemplate&since=5"]
    );
    let query = TaskQuery { running: true, ..query };
    assert_eq!(client.node_tasks("pve02", &query).await.unwrap().len(), 1);
}
