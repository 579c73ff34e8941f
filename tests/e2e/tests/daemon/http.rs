//! Everything that a hostile client or page may try.

use super::{bench, cycles, settings};
use crate::support::vm;
use proxops_e2e::{Bench, CLUSTER, Daemon};
use proxops_sim::seed;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

const TOKEN: &str = "0123456789abcdef";
/// Every path with a body that says something.
const PATHS: [&str; 7] =
    ["/", "/status", "/diff", "/metrics", "/events", "/clusters/lab", "/clusters/lab/objects/VM/web"];

fn converged() -> (Bench, Daemon) {
    let bench = bench();
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    (bench, daemon)
}

#[test]
fn beyond_loopback_a_token_is_needed() {
    let mut bench = bench();
    bench.run(&["run", "--listen", "0.0.0.0:0"]).exits(1).says("http.token");
    assert!(bench.writes().is_empty());
    bench.set("PROXOPS_HTTP_TOKEN", TOKEN);
    let daemon = Daemon::spawn(&bench, &["run", "--listen", "0.0.0.0:0"]);
    let bearer = format!("Bearer {TOKEN}");
    let until = Instant::now() + Duration::from_secs(60);
    while daemon.get("/healthz").status != 200 {
        assert!(Instant::now() < until, "{}", daemon.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    for path in PATHS {
        for headers in [
            &[][..],
            &[("Authorization", "Bearer wrong")],
            &[("Authorization", "Bearer ")],
            &[("Authorization", "Bearer 0123456789abcde")],
            &[("Authorization", "Basic d3Jvbmc6d3Jvbmc=")],
            &[("Authorization", TOKEN)],
            &[("Cookie", "token=0123456789abcdef")],
        ] {
            let answer = daemon.send("GET", path, headers, b"");
            assert_eq!(answer.status, 401, "{path} {headers:?}");
            assert!(!answer.body.contains("web") && !answer.body.contains(CLUSTER), "{path}: {answer:?}");
            if headers.len() == 1 && path != "/" {
                break; // each wrong token is answered late
            }
        }
    }
    assert_eq!(daemon.send("GET", "/status?token=0123456789abcdef", &[], b"").status, 401);
    let right = daemon.send("GET", "/status", &[("Authorization", &bearer)], b"");
    assert_eq!(right.status, 200);
    // The browser's way: any user, the token as password.
    let basic = daemon.send("GET", "/", &[("Authorization", "Basic eDowMTIzNDU2Nzg5YWJjZGVm")], b"");
    assert!(basic.status == 200 && basic.body.contains("web"), "{basic:?}");
    let asked = daemon.send("GET", "/", &[], b"");
    assert!(asked.header("www-authenticate").unwrap().starts_with("Basic "));
    assert!(!daemon.log().contains(TOKEN) && !right.body.contains(TOKEN));
}

#[test]
fn another_sites_page_gets_nothing() {
    let (_bench, daemon) = converged();
    for path in PATHS {
        let cross =
            daemon.send("GET", path, &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")], b"");
        assert_eq!(cross.status, 403, "{path}");
        let origin = daemon.send("GET", path, &[("Origin", "https://evil.example")], b"");
        assert_eq!(origin.status, 403, "{path}");
        // A name that was made to lead here.
        let rebound = daemon.send("GET", path, &[("Host", "evil.example:9494")], b"");
        assert_eq!(rebound.status, 421, "{path}");
        for answer in [cross, origin, rebound] {
            assert!(!answer.body.contains("web"), "{path}: {answer:?}");
            assert!(answer.headers.iter().all(|(n, _)| !n.starts_with("access-control")), "{answer:?}");
        }
    }
    let link =
        [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")];
    assert_eq!(daemon.send("GET", "/", &link, b"").status, 200);
    assert_eq!(daemon.send("POST", "/webhook", &[("Origin", "https://evil.example")], b"{}").status, 403);
}

#[test]
fn every_answer_has_its_protective_headers() {
    let (_bench, daemon) = converged();
    for (path, status) in
        [("/", 200), ("/nothing", 404), ("/assets/page.js", 200), ("/status", 200), ("/healthz", 200)]
    {
        let answer = daemon.get(path);
        assert_eq!(answer.status, status, "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
    }
    let page = daemon.get("/").body;
    for elsewhere in ["src=\"http", "href=\"http", "//cdn", "style=\"", "onclick"] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
}

#[test]
fn no_path_leaves_the_house() {
    let (bench, daemon) = converged();
    bench.write("secret.txt", "top-secret-content");
    for path in [
        "/../secret.txt",
        "/..%2f..%2fsecret.txt",
        "/assets/../../secret.txt",
        "/assets/..%2f..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/page.css",
        "/clusters/..",
        "/clusters/..%2f..%2fetc%2fpasswd",
        "/clusters/lab/objects/..%2f..%2fetc/passwd",
        "/clusters/lab/objects/VM/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/clusters/lab%00",
        "//etc/passwd",
        "/%ff%fe",
    ] {
        let answer = daemon.get(path);
        assert!([400, 404].contains(&answer.status), "{path}: {answer:?}");
        for leak in ["top-secret-content", "root:x:", "/bin/bash"] {
            assert!(!answer.body.contains(leak), "{path}: {answer:?}");
        }
    }
}

#[test]
fn nothing_of_a_request_becomes_a_header_of_the_answer() {
    let (_bench, daemon) = converged();
    for path in [
        "/clusters/x%0d%0aX-Evil:%20yes",
        "/clusters/lab/objects/VM/x%0d%0aSet-Cookie:%20a=b",
        "/?q=%0d%0aX-Evil:%20yes&page=%0d%0aX-Evil:yes",
        "/%0d%0aX-Evil:%20yes",
    ] {
        let answer = daemon.get(path);
        assert!(answer.status >= 200, "{path}");
        assert!(
            answer.header("x-evil").is_none() && answer.header("set-cookie").is_none(),
            "{path}: {answer:?}"
        );
    }
    // A bare line end in a head is no end of a header.
    let smuggled = daemon.raw(
        format!(
            "GET / HTTP/1.1\r\nHost: {}\r\nX-A: b\rX-Evil: yes\r\nConnection: close\r\n\r\n",
            daemon.address
        )
        .as_bytes(),
    );
    assert!(smuggled.header("x-evil").is_none() && smuggled.status == 400, "{smuggled:?}");
    // Two lengths would let two servers read two requests.
    let two = daemon.raw(
        format!(
            "POST /webhook HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nGET /",
            daemon.address
        )
        .as_bytes(),
    );
    assert_eq!(two.status, 400, "{two:?}");
}

#[test]
fn what_is_too_large_is_refused_unread() {
    let mut bench = bench();
    bench.set("PROXOPS_WEBHOOK_SECRET", "s");
    let daemon = Daemon::start(&bench, &[]);
    let head = |more: &str| {
        format!(
            "POST /webhook HTTP/1.1\r\nHost: x\r\nX-Gitlab-Token: s\r\nConnection: close\r\n{more}\r\n\r\n"
        )
    };
    // Announced, and never sent.
    assert_eq!(daemon.raw(head("Content-Length: 1048577").as_bytes()).status, 413);
    assert_eq!(daemon.raw(head("Content-Length: 99999999999999999999").as_bytes()).status, 400);
    // Not announced.
    let mut chunked = head("Transfer-Encoding: chunked").into_bytes();
    for _ in 0..40 {
        chunked.extend_from_slice(b"8000\r\n");
        chunked.extend_from_slice(&[b'x'; 0x8000]);
        chunked.extend_from_slice(b"\r\n");
    }
    let answer = daemon.raw(&chunked);
    assert!([413, 0].contains(&answer.status), "{answer:?}");
    let metrics = daemon.get("/metrics").body;
    assert!(metrics.contains("proxops_webhook_requests_total{result=\"too-large\"} 2\n"), "{metrics}");
    // A head of 64 KiB, and one with a thousand headers.
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n", "a".repeat(64 * 1024));
    let many = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "X-A: b\r\n".repeat(1000));
    for head in [long, many] {
        let status = daemon.raw(head.as_bytes()).status;
        assert!([400, 431, 0].contains(&status), "{status}");
    }
    assert_eq!(daemon.get("/readyz").status, 200);
}

#[test]
fn clients_that_dawdle_are_cut_off_and_hold_up_nobody() {
    let mut bench = bench();
    bench.set("PROXOPS_WEBHOOK_SECRET", "s");
    let daemon = Daemon::start(&bench, &[]);
    daemon.until_converged(CLUSTER);
    // Heads that never end, a body that never comes, and connections that say nothing.
    let mut slow: Vec<_> = (0..60).map(|_| daemon.connect()).collect();
    for (i, stream) in slow.iter_mut().enumerate() {
        match i % 3 {
            0 => stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n").unwrap(),
            1 if i < 30 => stream
                .write_all(
                    b"POST /webhook HTTP/1.1\r\nHost: x\r\nX-Gitlab-Token: s\r\nContent-Length: 100\r\n\r\n{",
                )
                .unwrap(),
            _ => {}
        }
    }
    let started = Instant::now();
    let before = cycles(&daemon.cluster(CLUSTER));
    while started.elapsed() < Duration::from_secs(14) {
        assert_eq!(daemon.get("/healthz").status, 200);
        for stream in slow.iter_mut().step_by(3) {
            let _ = stream.write_all(b"X-A: b\r\n");
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(cycles(&daemon.cluster(CLUSTER)) > before, "cycles went on");
    for (i, mut stream) in slow.into_iter().enumerate() {
        stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        let mut rest = Vec::new();
        let end = stream.read_to_end(&mut rest);
        let open = end.is_err_and(|e| {
            matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
        });
        assert!(!open, "connection {i} is still open");
    }
}

#[test]
fn more_connections_than_there_are_places_do_not_stop_the_daemon() {
    let (_bench, daemon) = converged();
    let before = cycles(&daemon.cluster(CLUSTER));
    let held: Vec<_> = (0..400).map(|_| daemon.connect()).collect();
    // No place is left, so nobody can ask; the cycles are counted afterwards.
    assert_ne!(daemon.get("/healthz").status, 200);
    std::thread::sleep(Duration::from_secs(3));
    drop(held);
    // The places become free one after the other, as the daemon gets to each closed connection.
    let started = Instant::now();
    while cycles(&daemon.cluster_or_nothing(CLUSTER)) <= before {
        assert!(started.elapsed() < Duration::from_secs(60), "{}", daemon.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn html_in_a_manifest_or_in_pve_is_shown_as_text() {
    const EVIL: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>";
    let mut bench = Bench::new(seed::empty());
    settings(&bench, "reconcile: {poll-interval: 1s}\n");
    let description = format!("{EVIL}\" onmouseover='alert(3)'");
    bench.documents(
        &format!("vm/{CLUSTER}/web.yaml"),
        &[vm("web", 100, json!({"pve-description": description}))],
    );
    bench.world().add_guest(
        proxops_sim::GuestKind::Qemu,
        100,
        "pve01",
        &[("name", "web"), ("tags", "proxops"), ("description", "<svg onload=alert(4)>"), ("memory", "512")],
    );
    let daemon = Daemon::start(&bench, &["--observe"]);
    daemon.until(CLUSTER, "looked at", |c| cycles(c) >= 1);
    let object = daemon.get("/clusters/lab/objects/VM/web").body;
    assert!(object.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{object}");
    assert!(object.contains("&lt;svg onload=alert(4)&gt;"), "{object}");
    // A manifest whose name is HTML is refused, and the refusal is shown.
    bench.write(&format!("vm/{CLUSTER}/web.yaml"), format!("{:#}", vm(EVIL, 100, json!({}))));
    let cluster = daemon.until(CLUSTER, "aborted", |c| c["last_cycle"]["state"] == "aborted");
    assert!(cluster["last_cycle"]["error"].as_str().unwrap().contains("<script>"), "{cluster:#}");
    for path in [
        "/",
        "/clusters/lab",
        "/clusters/lab/objects/VM/web",
        "/?q=%3Cscript%3Ealert(1)%3C/script%3E",
        "/clusters/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
    ] {
        let page = daemon.get(path).body;
        let lower = page.to_lowercase();
        for raw in ["<script>", "<img", "<svg", "onmouseover='", "\" onmouseover"] {
            assert!(!lower.contains(raw), "{path}: {raw}\n{page}");
        }
    }
    assert!(daemon.get("/").body.contains("&lt;script&gt;"));
}

#[test]
fn tls_serves_with_the_given_certificate_and_refuses_what_is_no_pair() {
    let bench = bench();
    let files = ["cert.pem", "key.pem"].map(|name| bench.repo().join(name));
    let made = std::process::Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .arg("-keyout")
        .arg(&files[1])
        .arg("-out")
        .arg(&files[0])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    settings(&bench, "http: {cert-file: cert.pem, key-file: key.pem}\nreconcile: {poll-interval: 1s}\n");
    let daemon = Daemon::start(&bench, &[]);
    let curl = |extra: &[&str]| {
        let url = format!("https://localhost:{}/readyz", daemon.address.port());
        std::process::Command::new("curl")
            .args(["-sS", "--max-time", "20"])
            .args(extra)
            .arg(url)
            .output()
            .unwrap()
    };
    let ca = files[0].to_str().unwrap();
    let answer = curl(&["--cacert", ca]);
    assert_eq!(
        String::from_utf8_lossy(&answer.stdout),
        "ok\n",
        "{}",
        String::from_utf8_lossy(&answer.stderr)
    );
    assert!(!curl(&["--cacert", ca, "--tls-max", "1.1"]).status.success());
    assert_eq!(daemon.get("/readyz").status, 0, "plain HTTP is not answered");
    settings(&bench, "http: {cert-file: cert.pem}\n");
    bench.run(&["run", "--listen", "127.0.0.1:0"]).exits(1).says("belong together");
    settings(&bench, "http: {cert-file: key.pem, key-file: cert.pem}\n");
    bench.run(&["run", "--listen", "127.0.0.1:0"]).exits(1).says("cert-file");
}
