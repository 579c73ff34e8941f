//! Logging in with a password: tickets, their renewal and replacement, and what may go wrong.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Reply, Seen, Server, bare, data, http, refuse, token};
use proxops_pve::{Class, Client, ClientConfig, Credential, Method, Mode, ParamText};
use proxops_secrets::Secret;
use std::sync::atomic::{AtomicUsize, Ordering};

const TICKET: &str = "PVE:root@pam:66A1::sig/+=";

fn client(server: &Server, mode: Mode) -> Client {
    let credential = Credential::Ticket { user: "root@pam".into(), password: Secret::new("hunter=2;x") };
    let mut config = ClientConfig::new("lab", server.url(), credential);
    config.mode = mode;
    Client::new(config).unwrap()
}

fn grant(number: usize) -> Reply {
    data(&format!(
        r#"{{"username":"root@pam","ticket":"{TICKET}{number}","CSRFPreventionToken":"csrf{number}"}}"#
    ))
}

fn is_login(seen: &Seen) -> bool {
    seen.verb == "POST" && seen.target == "/api2/json/access/ticket"
}

fn logins(server: &Server) -> usize {
    server.requests().iter().filter(|seen| is_login(seen)).count()
}

#[tokio::test]
async fn one_login_serves_many_requests_and_writes_carry_the_csrf_token() {
    let server = Server::start(|seen| if is_login(seen) { grant(1) } else { data("[]") }).await;
    let client = client(&server, Mode::ReadWrite);
    let reads: Vec<_> = (0..10)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.nodes().await.unwrap() })
        })
        .collect();
    for read in reads {
        read.await.unwrap();
    }
    client.send(Method::Put, "/x", &[("a".to_owned(), ParamText::from("b"))]).await.unwrap();
    let all = server.requests();
    assert_eq!(logins(&server), 1);
    assert_eq!(all[0].body, "username=root%40pam&password=hunter%3D2%3Bx");
    assert!(!all[0].headers.contains_key("cookie"));
    let put = all.iter().find(|seen| seen.verb == "PUT").unwrap();
    assert_eq!(put.headers["cookie"], format!("PVEAuthCookie={TICKET}1"));
    assert_eq!(put.headers["csrfpreventiontoken"], "csrf1");
    let get = all.iter().find(|seen| seen.verb == "GET").unwrap();
    assert!(!get.headers.contains_key("csrfpreventiontoken"));
    assert_eq!(client.writes(), 1);
    assert!(client.is_root());
}

#[tokio::test]
async fn a_refused_ticket_is_replaced_once_and_the_request_repeated() {
    for method in [Method::Get, Method::Put] {
        let granted = AtomicUsize::new(0);
        let server = Server::start(move |seen| {
            if is_login(seen) {
                return grant(granted.fetch_add(1, Ordering::SeqCst) + 1);
            }
            match seen.headers["cookie"].ends_with('1') {
                true => bare(401, "Permission denied - invalid csrf token"),
                false => data("null"),
            }
        })
        .await;
        client(&server, Mode::ReadWrite).send(method, "/x", &[]).await.unwrap();
        assert_eq!(logins(&server), 2);
        assert_eq!(server.requests().len(), 4);
    }
}

#[tokio::test]
async fn a_ticket_that_is_always_refused_ends_in_an_error() {
    let server = Server::start(|seen| if is_login(seen) { grant(1) } else { bare(401, "No ticket") }).await;
    let error = client(&server, Mode::ReadWrite).get("/x", &[]).await.unwrap_err();
    assert_eq!(error.class, Class::Auth);
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn many_requests_with_one_refused_ticket_log_in_once_more_only() {
    let granted = AtomicUsize::new(0);
    let server = Server::start(move |seen| {
        if is_login(seen) {
            return grant(granted.fetch_add(1, Ordering::SeqCst) + 1);
        }
        match seen.headers["cookie"].ends_with('1') {
            true => bare(401, "Authentication failed!"),
            false => data("[]"),
        }
    })
    .await;
    let client = client(&server, Mode::ReadWrite);
    let reads: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.nodes().await.unwrap() })
        })
        .collect();
    for read in reads {
        read.await.unwrap();
    }
    assert_eq!(logins(&server), 2);
}

#[tokio::test]
async fn a_wrong_password_is_tried_once_and_never_shown() {
    let body = r#"{"data":null,"message":"authentication failure\n"}"#;
    let server = Server::start(move |_| Reply::Close(http("401 authentication failure", body))).await;
    let client = client(&server, Mode::ReadWrite);
    for _ in 0..3 {
        let error = client.get("/x", &[]).await.unwrap_err();
        assert_eq!(error.class, Class::Auth);
        assert!(error.message.contains("root@pam"), "{error}");
        assert!(!format!("{error} {error:?} {client:?}").contains("hunter"));
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_login_survives_a_broken_connection() {
    let server = Server::start(|seen| match seen.nth {
        1 => Reply::Drop,
        _ if is_login(seen) => grant(1),
        _ => data("null"),
    })
    .await;
    client(&server, Mode::ReadWrite).send(Method::Put, "/x", &[]).await.unwrap();
    assert_eq!(server.lines(), ["POST /access/ticket", "POST /access/ticket", "PUT /x"]);
}

#[tokio::test]
async fn tickets_that_a_server_quotes_are_masked() {
    let server = Server::start(|seen| match is_login(seen) {
        true => grant(1),
        false => refuse(
            500,
            &format!("you sent {} {TICKET}1 {}", seen.headers["cookie"], seen.headers["csrfpreventiontoken"]),
        ),
    })
    .await;
    let error = client(&server, Mode::ReadWrite).send(Method::Put, "/x", &[]).await.unwrap_err();
    let shown = format!("{error:?}");
    assert!(shown.contains("you sent") && !shown.contains("sig") && !shown.contains("csrf1"), "{shown}");
    // an answer to the login that makes no sense is not quoted at all
    let server = Server::start(|_| data(&format!("\"{TICKET}\""))).await;
    let error = client(&server, Mode::ReadWrite).get("/x", &[]).await.unwrap_err();
    assert_eq!(error.class, Class::NotJson);
    assert!(!format!("{error:?}").contains("sig"), "{error:?}");
}

#[tokio::test]
async fn a_second_factor_is_explained() {
    let server =
        Server::start(|_| data(r#"{"ticket":"PVE:!tfa!x","CSRFPreventionToken":"c","NeedTFA":1}"#)).await;
    let error = client(&server, Mode::ReadWrite).get("/x", &[]).await.unwrap_err();
    assert_eq!(error.class, Class::Auth);
    assert!(error.message.contains("second factor") && error.message.contains("token"), "{error}");
}

#[tokio::test]
async fn a_client_that_only_reads_may_log_in() {
    let server = Server::start(|seen| if is_login(seen) { grant(1) } else { data("[]") }).await;
    let client = client(&server, Mode::ReadOnly);
    client.nodes().await.unwrap();
    assert!(client.send(Method::Post, "/x", &[]).await.is_err());
    assert_eq!(server.lines(), ["POST /access/ticket", "GET /nodes"]);
    assert_eq!(client.writes(), 0);
}

#[test]
fn credentials_of_the_wrong_shape_are_refused_at_once_and_not_shown() {
    for bad in
        ["", "11111111-2222", "root@pam=11111111", "root!ci=11111111", "root@pam!ci=", "root@pam!=11111111"]
    {
        let config = ClientConfig::new("lab", "https://pve", Credential::Token(Secret::new(bad)));
        let error = Client::new(config).unwrap_err();
        assert_eq!(error.class, Class::Auth, "{bad}");
        assert!(!format!("{error:?}").contains("11111111"));
    }
    let nobody = Credential::Ticket { user: "root".into(), password: Secret::new("x") };
    assert!(Client::new(ClientConfig::new("lab", "http://127.0.0.1:1", nobody)).is_err());
    assert!(!format!("{:?}", token()).contains("11111111"));
}
