//! What goes over the wire, and what becomes of every way in which an answer can go wrong.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Reply, Server, bare, client, data, http, refuse, token};
use proxops_model::kind::GuestType;
use proxops_pve::{Class, Client, ClientConfig, Method, Mode, ParamText, path};
use proxops_secrets::Secret;
use std::sync::atomic::Ordering;
use std::time::Duration;

const CONFIG: &str = "/nodes/pve01/qemu/101/config";

fn memory() -> Vec<(String, ParamText)> {
    vec![("memory".to_owned(), ParamText::from("4096"))]
}

#[tokio::test]
async fn a_read_carries_the_token_and_no_body() {
    let server = Server::start(|_| data(r#"{"version":"9.2.3","release":"9.2"}"#)).await;
    let version = client(&server).version().await.unwrap();
    assert_eq!((version.version.as_str(), version.release.as_str()), ("9.2.3", "9.2"));
    let seen = &server.requests()[0];
    assert_eq!((seen.verb.as_str(), seen.target.as_str()), ("GET", "/api2/json/version"));
    assert_eq!(seen.headers["authorization"], "PVEAPIToken=root@pam!ci=11111111-2222-3333-4444-555555555555");
    assert!(!seen.headers.contains_key("content-length") && !seen.headers.contains_key("transfer-encoding"));
}

#[tokio::test]
async fn parameters_of_put_travel_in_a_form_with_separators_encoded() {
    let server = Server::start(|_| data("null")).await;
    let params = [
        ("tags".to_owned(), ParamText::from("a;b")),
        ("scsi0".to_owned(), ParamText::from("local:1,ssd=1")),
        ("vms".to_owned(), ParamText::Many(vec!["1".into(), "2".into()])),
        ("cipassword".to_owned(), ParamText::Secret(Secret::new("p=w;d & more"))),
    ];
    client(&server).send(Method::Put, CONFIG, &params).await.unwrap();
    let seen = &server.requests()[0];
    assert_eq!(seen.headers["content-type"], "application/x-www-form-urlencoded");
    assert_eq!(
        seen.body,
        "tags=a%3Bb&scsi0=local%3A1%2Cssd%3D1&vms=1&vms=2&cipassword=p%3Dw%3Bd%20%26%20more"
    );
}

#[tokio::test]
async fn a_post_without_parameters_has_an_empty_body_of_known_length() {
    let server = Server::start(|_| data("null")).await;
    client(&server).send(Method::Post, "/nodes/a/qemu/1/status/start", &[]).await.unwrap();
    let seen = &server.requests()[0];
    assert_eq!((seen.headers["content-length"].as_str(), seen.body.as_str()), ("0", ""));
    assert!(!seen.headers.contains_key("transfer-encoding"));
}

#[tokio::test]
async fn parameters_of_delete_travel_in_the_query() {
    let server = Server::start(|_| data("null")).await;
    let params = [("purge".to_owned(), ParamText::from("1")), ("x".to_owned(), ParamText::from("a;b"))];
    client(&server).send(Method::Delete, "/nodes/pve01/qemu/101", &params).await.unwrap();
    let seen = &server.requests()[0];
    assert_eq!(seen.target, "/api2/json/nodes/pve01/qemu/101?purge=1&x=a%3Bb");
    assert_eq!(seen.body, "");
    assert!(!seen.headers.contains_key("content-length") && !seen.headers.contains_key("transfer-encoding"));
}

#[tokio::test]
async fn a_read_is_repeated_when_the_connection_breaks() {
    let server = Server::start(|seen| match seen.nth {
        1 => Reply::Drop,
        2 => Reply::Close(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"data\":".to_vec()),
        3 => Reply::Close(http("200 OK", "{\"data\":{\"version\":")),
        _ => data(r#"{"version":"9.2.3"}"#),
    })
    .await;
    assert_eq!(client(&server).version().await.unwrap().version, "9.2.3");
    assert_eq!(server.lines().len(), 4);
}

#[tokio::test]
async fn a_read_that_never_gets_through_says_so_and_stops() {
    let server = Server::start(|_| bare(596, "Connection timed out")).await;
    let error = client(&server).get("/nodes/a/qemu", &[]).await.unwrap_err();
    assert_eq!(error.class, Class::NodeUnreachable);
    assert_eq!(error.to_string(), "GET /nodes/a/qemu: Connection timed out (HTTP 596)");
    assert_eq!(server.lines().len(), 5);
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_sent_once_and_its_outcome_is_unknown() {
    type Make = fn() -> Reply;
    let lost: [(&str, Make); 12] = [
        ("dropped", || Reply::Drop),
        ("cut by length", || {
            Reply::Close(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"data\":".to_vec())
        }),
        ("cut JSON", || Reply::Close(http("200 OK", "{\"data\":"))),
        ("half a head", || Reply::Close(b"HTTP/1.1 200 OK\r\nContent-".to_vec())),
        ("502", || bare(502, "Bad Gateway")),
        ("503", || bare(503, "Service Unavailable")),
        ("504", || bare(504, "Gateway Timeout")),
        ("595", || bare(595, "No route to host")),
        ("596", || bare(596, "Connection timed out")),
        ("597", || bare(597, "Broken pipe")),
        ("599", || bare(599, "x")),
        ("no upid", || refuse(500, "got no worker upid - start worker failed\n")),
    ];
    for (name, reply) in lost {
        let server = Server::start(move |_| reply()).await;
        let client = client(&server);
        let error = client.send(Method::Post, "/nodes/pve01/qemu", &memory()).await.unwrap_err();
        assert!(error.outcome_unknown(), "{name}: {error:?}");
        assert!(!error.is_transient(), "{name}");
        assert_eq!(server.lines().len(), 1, "{name}");
        assert_eq!(client.writes(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_write_on_a_busy_lock_is_repeated() {
    let text = "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout\n";
    let server = Server::start(move |seen| if seen.nth < 3 { refuse(500, text) } else { data("null") }).await;
    client(&server).send(Method::Put, CONFIG, &memory()).await.unwrap();
    assert_eq!(server.lines(), vec![format!("PUT {CONFIG}"); 3]);
}

#[tokio::test]
async fn a_lock_that_stays_busy_comes_back_as_busy() {
    let text = "cfs-lock 'storage-nas' error: got lock request timeout";
    let server = Server::start(move |_| refuse(500, text)).await;
    let error = client(&server).send(Method::Put, CONFIG, &memory()).await.unwrap_err();
    assert_eq!(error.class, Class::Busy);
    assert_eq!(server.lines().len(), 5);
}

#[tokio::test]
async fn refusals_are_not_repeated() {
    for (status, text, class) in [
        (400, "Parameter verification failed.", Class::Invalid),
        (403, "Permission check failed (/vms/101, VM.Config.Memory)", Class::Forbidden),
        (500, "VM is locked (backup)", Class::Locked("backup".into())),
        (500, "checksum mismatch (file change by other user?)", Class::Conflict),
        (500, "cluster not ready - no quorum?", Class::NoQuorum),
        (500, "something nobody has seen before", Class::Server),
        (501, "Method 'PUT /x' not implemented", Class::Unsupported),
    ] {
        let server = Server::start(move |_| refuse(status, text)).await;
        let error = client(&server).send(Method::Put, CONFIG, &memory()).await.unwrap_err();
        assert_eq!((error.class.clone(), error.status), (class, Some(status)), "{text}");
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(server.lines().len(), 1, "{text}");
        assert!(!error.help().is_empty());
    }
}

#[tokio::test]
async fn errors_of_single_parameters_are_named() {
    let body = r#"{"data":null,"message":"Parameter verification failed.\n","errors":{"memory":"type check failed\nvalue too small\n","net0":"invalid format"}}"#;
    let server = Server::start(move |_| Reply::Close(http("400 Parameter verification failed.", body))).await;
    let error = client(&server).send(Method::Put, CONFIG, &memory()).await.unwrap_err();
    assert_eq!(error.errors["memory"], "type check failed; value too small");
    assert_eq!(
        error.message,
        "Parameter verification failed (memory: type check failed; value too small, net0: invalid format)"
    );
}

#[tokio::test]
async fn an_empty_401_is_explained_without_the_token() {
    let server = Server::start(|_| bare(401, "Authentication failed!")).await;
    let error = client(&server).get("/version", &[]).await.unwrap_err();
    assert_eq!(error.class, Class::Auth);
    assert!(error.message.contains("Authentication failed!"));
    assert!(error.help().contains("token"), "{}", error.help());
    assert!(!format!("{error} {error:?}").contains("11111111"));
    assert_eq!(server.lines().len(), 1);
}

#[tokio::test]
async fn secrets_that_a_server_quotes_are_masked() {
    let server = Server::start(|seen| {
        let quoted = format!("you sent {} and {} and hunter=2!", seen.headers["authorization"], seen.body);
        refuse(500, &quoted)
    })
    .await;
    let params = [("cipassword".to_owned(), ParamText::Secret(Secret::new("hunter=2!")))];
    let error = client(&server).send(Method::Put, CONFIG, &params).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("11111111") && !shown.contains("hunter"), "{shown}");
    assert!(shown.contains("you sent") && shown.contains("***"), "{shown}");
}

#[tokio::test]
async fn a_page_of_something_else_is_described_and_harmless() {
    let server = Server::start(|_| {
        let page = "<html>\u{1b}[2J<title>Sign in</title></html>";
        let length = page.len();
        Reply::Keep(
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{page}")
                .into_bytes(),
        )
    })
    .await;
    let client = client(&server);
    let error = client.get("/version", &[]).await.unwrap_err();
    assert_eq!(error.class, Class::NotJson);
    assert!(error.message.contains("text/html") && error.message.contains("Sign in"), "{error}");
    assert!(!error.message.contains('\u{1b}'));
    assert_eq!(server.lines().len(), 1);
    // nobody knows what stands behind it
    assert!(client.send(Method::Put, CONFIG, &memory()).await.unwrap_err().outcome_unknown());
}

#[tokio::test]
async fn json_of_another_program_is_not_an_answer() {
    let server = Server::start(|_| Reply::Keep(http("200 OK", r#"{"status":"ok"}"#))).await;
    assert_eq!(client(&server).get("/version", &[]).await.unwrap_err().class, Class::NotJson);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let server = Server::start(|seen| match seen.target.as_str() {
        "/api2/json/version" => Reply::Keep(
            b"HTTP/1.1 302 Found\r\nLocation: /api2/json/elsewhere\r\nContent-Length: 0\r\n\r\n".to_vec(),
        ),
        _ => data(r#"{"version":"9.2.3"}"#),
    })
    .await;
    let error = client(&server).version().await.unwrap_err();
    assert_eq!((error.class, error.status), (Class::NotJson, Some(302)));
    assert_eq!(server.lines(), ["GET /version"]);
}

#[tokio::test]
async fn plain_text_errors_from_before_the_handler_are_shown() {
    // T18, with a standard reason phrase
    let server = Server::start(|_| {
        Reply::Close(b"HTTP/1.1 501 Not Implemented\r\nContent-Length: 18\r\n\r\nfor data too large".to_vec())
    })
    .await;
    let error = client(&server).get("/version", &[]).await.unwrap_err();
    assert_eq!((error.class, error.message.as_str()), (Class::Unsupported, "for data too large"));
}

#[tokio::test]
async fn packed_answers_are_unpacked() {
    // gzip of {"data":{"version":"9.2.3","release":"9.2"}}
    const PACKED: &str = "1f8b0800000000000203ab564a492c4954b2aa562a4b2d2acecccf53b252b2d433d23356d2512a4acd494d2c4e858828d5d602001446081b2c000000";
    let server = Server::start(|seen| {
        assert!(seen.headers["accept-encoding"].contains("gzip"));
        let body = hex::decode(PACKED).unwrap();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len());
        Reply::Keep([head.into_bytes(), body].concat())
    })
    .await;
    assert_eq!(client(&server).version().await.unwrap().version, "9.2.3");
}

#[tokio::test]
async fn an_answer_without_bound_is_cut() {
    let server = Server::start(|_| {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 70000000\r\n\r\n".to_vec();
        Reply::Close([head, vec![b' '; 70_000_000]].concat())
    })
    .await;
    let error = client(&server).get("/version", &[]).await.unwrap_err();
    assert_eq!(error.class, Class::NotJson);
    assert!(error.message.contains("64 MiB"), "{error}");
}

#[tokio::test]
async fn connections_are_reused_until_pve_closes_them() {
    // T3: at most 100 requests per connection
    let server = Server::start(|seen| {
        let body = r#"{"data":[]}"#;
        match seen.nth_on_connection {
            100 => Reply::Close(
                format!(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )
                .into_bytes(),
            ),
            _ => data("[]"),
        }
    })
    .await;
    let client = client(&server);
    for _ in 0..250 {
        client.nodes().await.unwrap();
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 3);
    assert_eq!(server.lines().len(), 250);
}

#[tokio::test]
async fn a_connection_closed_while_idle_costs_nothing() {
    // closes after each answer without saying so
    let server = Server::start(|_| Reply::Close(http("200 OK", r#"{"data":[]}"#))).await;
    let client = client(&server);
    for _ in 0..20 {
        client.nodes().await.unwrap();
    }
}

#[tokio::test]
async fn reads_in_flight_are_bounded() {
    let server = Server::with(|_| data("[]"), None, Duration::from_millis(20)).await;
    let mut config = ClientConfig::new("lab", server.url(), token());
    config.concurrency = 3;
    let client = Client::new(config).unwrap();
    let tasks: Vec<_> = (0..30)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.nodes().await.unwrap() })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(server.most_in_flight.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_client_that_only_reads_sends_no_write() {
    let server = Server::start(|_| data("null")).await;
    let mut config = ClientConfig::new("lab", server.url(), token());
    config.mode = Mode::ReadOnly;
    let client = Client::new(config).unwrap();
    for method in [Method::Put, Method::Post, Method::Delete] {
        assert!(client.send(method, CONFIG, &memory()).await.is_err());
    }
    client.get(CONFIG, &[]).await.unwrap();
    assert_eq!(server.lines(), [format!("GET {CONFIG}")]);
    assert_eq!(client.writes(), 0);
}

#[tokio::test]
async fn nothing_listening_is_explained() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let client = Client::new(ClientConfig::new("lab", format!("http://127.0.0.1:{port}"), token())).unwrap();
    let error = client.send(Method::Put, CONFIG, &memory()).await.unwrap_err();
    assert_eq!(error.class, Class::Connect);
    assert!(error.message.contains(&format!("127.0.0.1:{port}")), "{error}");
    assert!(error.message.contains("refused"), "{error}");
    assert!(!error.outcome_unknown());
}

#[tokio::test]
async fn a_dead_node_does_not_slow_down_every_read() {
    let server = Server::start(|_| bare(595, "No route to host")).await;
    let client = client(&server);
    assert!(client.get("/nodes/dead/qemu", &[]).await.is_err());
    assert_eq!(server.lines().len(), 5);
    let error = client.get("/nodes/dead/lxc", &[]).await.unwrap_err();
    assert_eq!(error.class, Class::NodeUnreachable);
    assert_eq!(server.lines().len(), 6);
}

#[tokio::test]
async fn a_missing_guest_is_told_from_a_server_in_trouble() {
    let server = Server::start(|_| {
        refuse(500, "Configuration file 'nodes/pve01/qemu-server/101.conf' does not exist\n")
    })
    .await;
    let error = client(&server).guest_config("pve01", GuestType::Qemu, 101).await.unwrap_err();
    assert_eq!(error.class, Class::NotFound);
}

#[tokio::test]
async fn the_inventory_is_read_in_every_number_form_and_sorted() {
    let server = Server::start(|_| {
        data(
            r#"[{"type":"qemu","vmid":"102","node":"b","name":"two","status":"running","template":0,"tags":"a;b","mem":3.5e9},
            {"type":"lxc","vmid":101.0,"node":"a","status":"unknown","lock":"backup","hastate":"started"},
            {"type":"storage","storage":"local","node":"a","plugintype":"dir","content":"iso,vztmpl","shared":"0","status":"available"},
            {"type":"node","node":"b","status":"offline"},{"type":"node","node":"a","status":"online"},
            {"type":"sdn","sdn":"localnetwork","node":"a"}]"#,
        )
    })
    .await;
    let inventory = client(&server).inventory().await.unwrap();
    let guests: Vec<_> = inventory.guests.iter().map(|g| (g.vmid, g.guest_type, g.name.as_deref())).collect();
    assert_eq!(guests, [(101, GuestType::Lxc, None), (102, GuestType::Qemu, Some("two"))]);
    assert_eq!(inventory.guests[0].lock.as_deref(), Some("backup"));
    assert_eq!(inventory.guests[0].ha_state.as_deref(), Some("started"));
    assert_eq!(inventory.storages[0].content, ["iso", "vztmpl"]);
    assert!(!inventory.storages[0].shared);
    let nodes: Vec<_> = inventory.nodes.iter().map(|n| (n.name.as_str(), n.online())).collect();
    assert_eq!(nodes, [("a", true), ("b", false)]);
}

#[tokio::test]
async fn an_inventory_that_hides_a_guest_is_refused() {
    // a guest that is left out would look absent, and be made again
    for rows in [r#"[{"type":"qemu","node":"a"}]"#, r#"[{"type":"lxc","vmid":101}]"#, "null", "{}"] {
        let server = Server::start(move |_| data(rows)).await;
        assert_eq!(client(&server).inventory().await.unwrap_err().class, Class::NotJson, "{rows}");
    }
}

#[tokio::test]
async fn a_path_that_points_elsewhere_is_never_sent() {
    let server = Server::start(|_| data("null")).await;
    let client = client(&server);
    for bad in ["/nodes/../access/users", "/nodes/a%2fb", "/version?x=1", "version"] {
        assert_eq!(client.get(bad, &[]).await.unwrap_err().class, Class::Invalid, "{bad}");
    }
    assert!(path(&["nodes", "a/b"]).is_err());
    assert!(server.lines().is_empty());
}

#[tokio::test]
async fn an_oversized_form_is_refused_before_it_is_sent() {
    let server = Server::start(|_| data("null")).await;
    let params = [("description".to_owned(), ParamText::Text("x".repeat(600 << 10)))];
    let error = client(&server).send(Method::Put, CONFIG, &params).await.unwrap_err();
    assert_eq!(error.class, Class::Invalid);
    assert!(server.lines().is_empty());
}
