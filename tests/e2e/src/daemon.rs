//! A running daemon, and requests to it that no decent client would send.

use crate::Bench;
use proxops_sim::seed;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longest wait for anything. Far more than anything takes; a test that waits this long has failed.
const LONG: Duration = Duration::from_secs(60);

/// `proxops run` on a free port. Ends with the value; a panic or a secret in its log fails the test.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    log: Arc<Mutex<String>>,
}

/// An answer, as it came.
#[derive(Debug, Clone)]
pub struct Answer {
    /// 0 = the connection was closed without an answer.
    pub status: u16,
    /// Lines of the head, names in lower case.
    pub headers: Vec<(String, String)>,
    /// All of it.
    pub body: String,
}

impl Answer {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Daemon {
    /// Starts it with further words, and waits until it listens.
    #[track_caller]
    pub fn start(bench: &Bench, words: &[&str]) -> Self {
        let mut all = vec!["run", "--listen", "127.0.0.1:0"];
        all.extend_from_slice(words);
        Self::spawn(bench, &all)
    }

    /// Starts exactly these words.
    #[track_caller]
    pub fn spawn(bench: &Bench, words: &[&str]) -> Self {
        let mut child = bench
            .command(words)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(String::new()));
        let mut first = String::new();
        let address = loop {
            first.clear();
            let n = lines.read_line(&mut first).unwrap();
            log.lock().unwrap().push_str(&first);
            assert!(n > 0, "the daemon ended: {}", log.lock().unwrap());
            if let Some(address) = first.trim().strip_prefix("listening on ") {
                break address.parse::<SocketAddr>().unwrap();
            }
        };
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            let mut line = String::new();
            while lines.read_line(&mut line).is_ok_and(|n| n > 0) {
                kept.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Self { child, address, log }
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Sends bytes as they are, and reads until the other side closes.
    pub fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses early may close before everything was sent.
        let _ = stream.write_all(bytes);
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        parse(&all)
    }

    /// A connection to it.
    pub fn connect(&self) -> TcpStream {
        let mut here = self.address;
        if here.ip().is_unspecified() {
            here.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        let stream = TcpStream::connect_timeout(&here, LONG).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        stream
    }

    /// One request with these headers besides `Host` and `Connection`.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if method == "POST" && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("transfer-encoding"))
        {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        self.raw(&[head.as_bytes(), body].concat())
    }

    /// GET without anything special.
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    /// `/status`.
    #[track_caller]
    pub fn status(&self) -> Value {
        let answer = self.get("/status");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// A cluster of `/status`; `null` while it is not there.
    #[track_caller]
    pub fn cluster(&self, name: &str) -> Value {
        named(&self.status(), name)
    }

    /// The same where the daemon may have no place for another connection.
    pub fn cluster_or_nothing(&self, name: &str) -> Value {
        let answer = self.get("/status");
        if answer.status == 200 { named(&answer.json(), name) } else { Value::Null }
    }

    /// Waits until the repository was read.
    pub fn until_ready(&self) {
        let start = Instant::now();
        while self.get("/readyz").status != 200 {
            assert!(start.elapsed() < LONG, "never ready\n{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a cluster of `/status` is so.
    #[track_caller]
    pub fn until(&self, name: &str, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let cluster = self.cluster(name);
            if so(&cluster) {
                return cluster;
            }
            assert!(start.elapsed() < LONG, "cluster {name} is not {what}: {cluster:#}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a cluster is converged.
    #[track_caller]
    pub fn until_converged(&self, name: &str) -> Value {
        self.until(name, "converged", |c| c["last_cycle"]["clean"] == true)
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < LONG, "the daemon does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- log of the daemon\n{}", self.log());
            return;
        }
        let log = self.log();
        assert!(!log.contains("panicked at"), "{log}");
        for secret in [seed::TOKEN_SECRET, seed::ROOT_PASSWORD] {
            assert!(!log.contains(secret), "a secret is in the log: {log}");
        }
    }
}

/// A cluster of `/status`; `null` where it is not there.
fn named(status: &Value, name: &str) -> Value {
    let list = status["clusters"].as_array().unwrap();
    list.iter().find(|c| c["cluster"] == name).cloned().unwrap_or_default()
}

fn parse(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let chunked = headers.iter().any(|(n, v)| n == "transfer-encoding" && v == "chunked");
    let body = if chunked { dechunked(body) } else { body.to_owned() };
    Answer { status, headers, body }
}

fn dechunked(mut rest: &str) -> String {
    let mut out = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || !after.is_char_boundary(size.min(after.len())) {
            break;
        }
        out.push_str(&after[..size.min(after.len())]);
        rest = after.get(size + 2..).unwrap_or("");
    }
    out
}
