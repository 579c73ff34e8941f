//! Over real connections: facts T1 to T18, T23, R11.

use std::sync::Arc;
use std::time::Duration;

use proxops_sim::{FaultAnswer, RequestFault, Sim, SimHandle, SimOptions, Tls, seed};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{Lab, json};

async fn start(options: SimOptions) -> SimHandle {
    Sim::start(Lab::with_vm().0, options).await.unwrap()
}

fn address(sim: &SimHandle) -> String {
    sim.url().split("//").nth(1).unwrap().to_owned()
}

fn authorization() -> String {
    format!("Authorization: PVEAPIToken={}={}\r\n", seed::ROOT_TOKEN_ID, seed::TOKEN_SECRET)
}

/// One request on a fresh connection; everything that came back.
async fn raw(sim: &SimHandle, request: String) -> String {
    let mut stream = TcpStream::connect(address(sim)).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ =
        tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await.expect("no end");
    String::from_utf8(answer).unwrap()
}

/// The same with the root token, closing afterwards.
async fn ask(sim: &SimHandle, method: &str, path: &str, body: &str) -> String {
    ask_as(sim, method, path, "application/x-www-form-urlencoded", body).await
}

async fn ask_as(sim: &SimHandle, method: &str, path: &str, kind: &str, body: &str) -> String {
    let length = if body.is_empty() {
        String::new()
    } else {
        format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len())
    };
    raw(
        sim,
        format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}{length}\r\n{body}",
            authorization()
        ),
    )
    .await
}

fn first_line(answer: &str) -> &str {
    answer.lines().next().unwrap_or_default()
}

fn body(answer: &str) -> serde_json::Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

const VERSION: &str = "/api2/json/version";
const CONFIG: &str = "/api2/json/nodes/pve01/qemu/101/config";

#[tokio::test]
async fn success_and_refusal_have_their_shapes_t17_r11() {
    let sim = start(SimOptions::default()).await;
    let good = ask(&sim, "GET", VERSION, "").await;
    assert_eq!(first_line(&good), "HTTP/1.1 200 OK");
    assert!(good.contains("content-type: application/json;charset=UTF-8\r\n"), "{good}");
    assert_eq!(body(&good)["data"]["release"], "9.2");
    let bad = ask(&sim, "PUT", CONFIG, "cores=0").await;
    assert_eq!(first_line(&bad), "HTTP/1.1 400 Parameter verification failed.");
    assert_eq!(body(&bad)["errors"]["cores"], "value must have a minimum value of 1");
    assert_eq!(body(&bad)["data"], json!(null));
    let missing = ask(&sim, "GET", "/api2/json/nodes/pve01/qemu/9/config", "").await;
    assert_eq!(first_line(&missing), "HTTP/1.1 400 Parameter verification failed.");
    let missing = ask(&sim, "GET", "/api2/json/nodes/pve01/qemu/999/config", "").await;
    assert_eq!(
        first_line(&missing),
        "HTTP/1.1 500 Configuration file 'nodes/pve01/qemu-server/999.conf' does not exist"
    );
    let extjs = ask(&sim, "GET", "/api2/extjs/nodes/pve01/qemu/999/config", "").await;
    assert_eq!(first_line(&extjs), "HTTP/1.1 200 OK");
    assert_eq!((&body(&extjs)["success"], &body(&extjs)["status"]), (&json!(0), &json!(500)));
    let unknown = ask(&sim, "GET", "/api2/json/cluster/nodes", "").await;
    assert_eq!(first_line(&unknown), "HTTP/1.1 501 Method 'GET /cluster/nodes' not implemented");
}

#[tokio::test]
async fn form_bodies_lose_raw_separators_and_json_does_not_t7_r1() {
    let sim = start(SimOptions::default()).await;
    let answer = ask(&sim, "PUT", CONFIG, "tags=a;b").await;
    assert!(body(&answer)["errors"]["b"].as_str().unwrap().starts_with("property is not defined"));
    assert!(
        first_line(&ask(&sim, "PUT", CONFIG, "tags=a%3Bb&scsi1=local-lvm%3A1%2Cssd%3D1").await)
            .ends_with("200 OK")
    );
    let guest = sim.world().guests[&101].clone();
    assert_eq!(
        (guest.config["tags"].as_str(), guest.config["scsi1"].as_str()),
        ("a;b", "local-lvm:vm-101-disk-1,size=1G,ssd=1")
    );
    let json = r#"{"tags":"x;y","onboot":true}"#;
    assert!(first_line(&ask_as(&sim, "PUT", CONFIG, "application/json", json).await).ends_with("200 OK"));
    assert_eq!(sim.world().guests[&101].config["tags"], "x;y");
    let answer = ask_as(&sim, "PUT", CONFIG, "application/json", "{").await;
    assert!(first_line(&answer).starts_with("HTTP/1.1 500 malformed JSON string"), "{answer}");
    assert!(!answer.contains("content-type"), "plain (T6, T18)");
    let answer = ask_as(&sim, "PUT", CONFIG, "text/plain", "x").await;
    assert!(first_line(&answer).starts_with("HTTP/1.1 506 "), "{answer}");
}

#[tokio::test]
async fn limits_of_requests_t1_t2_t4_t5() {
    let sim = start(SimOptions::default()).await;
    assert_eq!(
        first_line(&ask(&sim, "DELETE", "/api2/json/nodes/pve01/qemu/101", "purge=1").await),
        "HTTP/1.1 501 Unexpected content for method 'DELETE'"
    );
    assert_eq!(first_line(&ask(&sim, "PATCH", VERSION, "").await).split(' ').nth(1), Some("501"));
    assert_eq!(first_line(&ask(&sim, "GET", "/api2/version", "").await), "HTTP/1.1 501 no such uri");
    let chunked = format!(
        "PUT {CONFIG} HTTP/1.1\r\nHost: x\r\n{}Transfer-Encoding: chunked\r\n\r\n7\r\ncores=1\r\n0\r\n\r\n",
        authorization()
    );
    assert_eq!(first_line(&raw(&sim, chunked).await), "HTTP/1.1 501 chunked transfer encoding not supported");
    let large =
        format!("PUT {CONFIG} HTTP/1.1\r\nHost: x\r\n{}Content-Length: 600000\r\n\r\n", authorization());
    assert_eq!(first_line(&raw(&sim, large).await), "HTTP/1.1 501 for data too large");
}

#[tokio::test]
async fn missing_and_wrong_credentials_have_no_body_t15() {
    let sim = start(SimOptions::default()).await;
    for (header, reason) in [
        ("", "No ticket"),
        ("Authorization: PVEAPIToken=root@pam!proxops=wrong\r\n", "Authentication failed!"),
        ("Cookie: PVEAuthCookie=nonsense\r\n", "Authentication failed!"),
    ] {
        let answer =
            raw(&sim, format!("GET {VERSION} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{header}\r\n"))
                .await;
        assert_eq!(first_line(&answer), format!("HTTP/1.1 401 {reason}"));
        assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    }
    let login = "username=root@pam&password=wrong";
    let answer = raw(&sim, format!(
        "POST /api2/json/access/ticket HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{login}",
        login.len()
    )).await;
    assert_eq!(first_line(&answer), "HTTP/1.1 401 authentication failure");
    assert_eq!(body(&answer)["data"], json!(null), "a wrong password has a body");
}

#[tokio::test]
async fn tickets_need_a_csrf_token_for_writes_t13_t14() {
    let sim = start(SimOptions::default()).await;
    let login = format!("username=root&realm=pam&password={}", seed::ROOT_PASSWORD);
    let request = |method: &str, path: &str, headers: &str, body: &str| {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let answer = raw(&sim, request("POST", "/api2/json/access/ticket", "", &login)).await;
    let data = body(&answer)["data"].clone();
    let ticket = data["ticket"].as_str().unwrap();
    let cookie = format!("Cookie: PVEAuthCookie={}\r\n", ticket.replace(':', "%3A").replace('=', "%3D"));
    let answer = raw(&sim, request("PUT", CONFIG, &cookie, "args=-no-hpet")).await;
    assert_eq!(first_line(&answer), "HTTP/1.1 401 Permission denied - invalid csrf token");
    let both = format!("{cookie}CSRFPreventionToken: {}\r\n", data["CSRFPreventionToken"].as_str().unwrap());
    let answer = raw(&sim, request("PUT", CONFIG, &both, "args=-no-hpet")).await;
    assert_eq!(first_line(&answer), "HTTP/1.1 200 OK", "a root ticket may set root-only options");
    let renewal = format!("username=root@pam&password={}", ticket.replace('=', "%3D"));
    let answer = raw(&sim, request("POST", "/api2/json/access/ticket", "", &renewal)).await;
    assert_eq!(first_line(&answer), "HTTP/1.1 200 OK", "the old ticket renews");
    sim.world().advance(Duration::from_secs(7201));
    let answer =
        raw(&sim, format!("GET {VERSION} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{cookie}\r\n")).await;
    assert_eq!(first_line(&answer), "HTTP/1.1 401 Authentication failed!", "two hours");
}

#[tokio::test]
async fn a_connection_carries_100_requests_and_none_after_an_error_t3() {
    let sim = start(SimOptions::default()).await;
    let one = format!("GET {VERSION} HTTP/1.1\r\nHost: x\r\n{}\r\n", authorization());
    let answer = raw(&sim, one.repeat(105)).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 100);
    let bad = format!("GET /api2/json/nonsense HTTP/1.1\r\nHost: x\r\n{}\r\n", authorization());
    let answer = raw(&sim, format!("{one}{bad}{one}")).await;
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 2, "{answer}");
}

#[tokio::test]
async fn an_idle_connection_is_closed_t3() {
    let sim = start(SimOptions::default()).await;
    let mut stream = TcpStream::connect(address(&sim)).await.unwrap();
    let one = format!("GET {VERSION} HTTP/1.1\r\nHost: x\r\n{}\r\n", authorization());
    stream.write_all(one.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    // ends although neither side asked for it
    tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut all))
        .await
        .expect("still open")
        .unwrap();
    assert!(all.starts_with(b"HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn a_dead_node_answers_595_without_a_body_t23() {
    let sim = start(SimOptions::default()).await;
    sim.world().set_node("pve01", false);
    let answer = ask(&sim, "GET", CONFIG, "").await;
    assert_eq!(first_line(&answer), "HTTP/1.1 595 No route to host");
    assert!(answer.ends_with("\r\n\r\n"));
}

#[tokio::test]
async fn request_faults_on_the_wire() {
    let sim = start(SimOptions::default()).await;
    let cores = |sim: &SimHandle| sim.world().guests[&101].config["cores"].clone();
    let put = |what: FaultAnswer| RequestFault::once("PUT", "/nodes/*/qemu/101/config", what);
    sim.inject(put(FaultAnswer::DropBefore));
    assert_eq!(ask(&sim, "PUT", CONFIG, "cores=3").await, "");
    assert_eq!(cores(&sim), "2", "without the effect");
    sim.inject(put(FaultAnswer::DropAfter));
    assert_eq!(ask(&sim, "PUT", CONFIG, "cores=4").await, "");
    assert_eq!(cores(&sim), "4", "with the effect");
    let status = |effect| FaultAnswer::Status {
        status: 596,
        message: "Connection timed out".into(),
        errors: Default::default(),
        effect,
    };
    sim.inject(put(status(true)));
    assert_eq!(first_line(&ask(&sim, "PUT", CONFIG, "cores=5").await), "HTTP/1.1 596 Connection timed out");
    assert_eq!(cores(&sim), "5");
    sim.inject(RequestFault::once("GET", "/version", FaultAnswer::Html));
    let answer = ask(&sim, "GET", VERSION, "").await;
    assert!(answer.contains("content-type: text/html") && answer.ends_with("</html>"));
    sim.inject(RequestFault::once("GET", "/version", FaultAnswer::Truncated));
    let answer = ask(&sim, "GET", VERSION, "").await;
    let (head, cut) = answer.split_once("\r\n\r\n").unwrap();
    let length: usize =
        head.lines().find_map(|l| l.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    assert!(cut.len() < length, "{answer}");
    assert!(first_line(&ask(&sim, "GET", VERSION, "").await).ends_with("200 OK"), "each fault hits once");
    let log = sim.write_log();
    assert_eq!(log.iter().map(|entry| entry.status).collect::<Vec<_>>(), [0, 0, 596]);
    assert_eq!(
        (log[1].path.as_str(), &log[1].params["cores"]),
        ("/nodes/pve01/qemu/101/config", &json!("4"))
    );
}

#[tokio::test]
async fn tasks_end_by_the_clock_of_the_server() {
    let sim =
        start(SimOptions { task_duration: Some(Duration::from_millis(300)), ..SimOptions::default() }).await;
    let answer = ask(&sim, "POST", "/api2/json/nodes/pve01/qemu/101/status/start", "").await;
    let upid = body(&answer)["data"].as_str().unwrap().to_owned();
    let path = format!("/api2/json/nodes/pve01/tasks/{upid}/status");
    assert_eq!(body(&ask(&sim, "GET", &path, "").await)["data"]["status"], "running");
    let done = async {
        while body(&ask(&sim, "GET", &path, "").await)["data"]["status"] != "stopped" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), done).await.expect("the task never ended");
    let log = ask(&sim, "GET", &format!("/api2/json/nodes/pve01/tasks/{upid}/log"), "").await;
    assert_eq!(
        (&body(&log)["total"], &body(&log)["data"][0]["t"]),
        (&json!(1), &json!("TASK OK")),
        "total sits beside data"
    );
}

#[tokio::test]
async fn a_read_only_simulator_refuses_writes() {
    let sim = start(SimOptions { read_only: true, ..SimOptions::default() }).await;
    assert_eq!(first_line(&ask(&sim, "PUT", CONFIG, "cores=3").await).split(' ').nth(1), Some("403"));
    assert_eq!(sim.world().guests[&101].config["cores"], "2");
}

/// First line of an answer over TLS, trusting `ca`.
async fn over_tls(sim: &SimHandle, ca: &str) -> Result<String, std::io::Error> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    let tcp = TcpStream::connect(address(sim)).await?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp).await?;
    stream
        .write_all(
            format!("GET {VERSION} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}\r\n", authorization())
                .as_bytes(),
        )
        .await?;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    Ok(String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn tls_has_its_own_ca_and_the_certificate_can_change_t1() {
    let file = std::env::temp_dir().join(format!("proxops-sim-ca-{}.pem", std::process::id()));
    let tls = Tls { ca_file: Some(file.clone()), ..Tls::default() };
    let sim = start(SimOptions { tls: Some(tls), ..SimOptions::default() }).await;
    assert!(sim.url().starts_with("https://127.0.0.1:"));
    let ca = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(Some(&ca), sim.ca_pem().as_ref());
    assert_eq!(over_tls(&sim, &ca).await.unwrap(), "HTTP/1.1 200 OK");
    sim.change_certificate(false).unwrap();
    assert_eq!(over_tls(&sim, &ca).await.unwrap(), "HTTP/1.1 200 OK", "renewed by the same CA");
    sim.change_certificate(true).unwrap();
    assert!(over_tls(&sim, &ca).await.is_err(), "a CA that nobody knows");
    assert_eq!(over_tls(&sim, &sim.ca_pem().unwrap()).await.unwrap(), "HTTP/1.1 200 OK");
}

#[tokio::test]
async fn a_dropped_handle_stops_the_server() {
    let sim = start(SimOptions::default()).await;
    let address = address(&sim);
    drop(sim);
    let gone = async {
        while TcpStream::connect(&address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.expect("still listening");
}

#[tokio::test]
async fn the_cluster_can_change_when_a_request_arrives() {
    let sim = start(SimOptions::default()).await;
    let text = r#"{"path": "**", "skip": 1, "times": 1, "change": {"nodes-down": ["pve01"]}}"#;
    sim.inject(serde_json::from_str::<RequestFault>(text).unwrap());
    assert!(first_line(&ask(&sim, "GET", CONFIG, "").await).ends_with("200 OK"));
    let answer = ask(&sim, "GET", CONFIG, "").await;
    assert!(first_line(&answer).starts_with("HTTP/1.1 595"), "{answer}");
    assert!(!sim.world().nodes["pve01"].online);
}

#[tokio::test]
async fn the_record_of_writes_tells_which_were_carried_out() {
    let sim = start(SimOptions::default()).await;
    let body = "description=x";
    for answer in [FaultAnswer::DropBefore, FaultAnswer::DropAfter] {
        sim.inject(RequestFault::once("PUT", "/nodes/pve01/qemu/101/config", answer));
        ask(&sim, "PUT", CONFIG, body).await;
    }
    ask(&sim, "PUT", CONFIG, "nonsense=1").await;
    ask(&sim, "PUT", CONFIG, body).await;
    let told: Vec<(u16, bool)> = sim.write_log().iter().map(|w| (w.status, w.done)).collect();
    assert_eq!(told, [(0, false), (0, true), (400, false), (200, true)]);
}

#[tokio::test]
async fn a_fault_file_expires_tickets_and_changes_the_certificate() {
    let sim = start(SimOptions { tls: Some(Tls::default()), ..SimOptions::default() }).await;
    let old = sim.ca_pem().unwrap();
    let ticket = {
        let mut world = sim.world();
        let login = serde_json::json!({"username": "root@pam", "password": seed::ROOT_PASSWORD});
        let answer = world.call(&proxops_sim::Caller::anonymous(), "POST", "/access/ticket", login).unwrap();
        answer["ticket"].as_str().unwrap().to_owned()
    };
    assert!(sim.world().ticket_caller(&ticket).is_some());
    let faults = serde_json::json!({"tickets-expired": true, "certificate-changed": "new-authority"});
    sim.apply(serde_json::from_value(faults).unwrap());
    assert!(sim.world().ticket_caller(&ticket).is_none());
    assert_ne!(sim.ca_pem().unwrap(), old);
    assert!(over_tls(&sim, &old).await.is_err(), "the old CA signed nothing that is served now");
}
