//! A server that answers exactly the bytes a test wants, over TCP or TLS.

#![allow(dead_code)] // not every test file uses all of it
#![allow(clippy::unwrap_used)]

use proxops_pve::{Client, ClientConfig, Credential};
use proxops_secrets::Secret;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

/// A request as it came over the wire.
#[derive(Debug, Clone)]
pub struct Seen {
    pub verb: String,
    /// Path and query, undecoded.
    pub target: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
    /// Number of the connection, from 0.
    pub connection: usize,
    /// Number of the request on its connection, from 1.
    pub nth_on_connection: usize,
    /// Number of the request on the server, from 1.
    pub nth: usize,
}

pub enum Reply {
    /// These bytes, then keep the connection.
    Keep(Vec<u8>),
    /// These bytes, then close.
    Close(Vec<u8>),
    /// Close without a byte.
    Drop,
}

pub struct Server {
    pub port: u16,
    pub seen: Arc<Mutex<Vec<Seen>>>,
    pub connections: Arc<AtomicUsize>,
    pub most_in_flight: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Shared {
    handler: Box<dyn Fn(&Seen) -> Reply + Send + Sync>,
    seen: Arc<Mutex<Vec<Seen>>>,
    in_flight: AtomicUsize,
    most_in_flight: Arc<AtomicUsize>,
    delay: Duration,
}

impl Server {
    pub async fn start(handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::with(handler, None, Duration::ZERO).await
    }

    pub async fn with(
        handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
        tls: Option<Arc<rustls::ServerConfig>>,
        delay: Duration,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let most_in_flight = Arc::new(AtomicUsize::new(0));
        let connections = Arc::new(AtomicUsize::new(0));
        let shared = Arc::new(Shared {
            handler: Box::new(handler),
            seen: seen.clone(),
            in_flight: AtomicUsize::new(0),
            most_in_flight: most_in_flight.clone(),
            delay,
        });
        let counter = connections.clone();
        let task = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let connection = counter.fetch_add(1, Ordering::SeqCst);
                let (shared, tls) = (shared.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, connection, &shared).await,
                        Some(config) => {
                            if let Ok(stream) = tokio_rustls::TlsAcceptor::from(config).accept(stream).await {
                                serve(stream, connection, &shared).await;
                            }
                        }
                    }
                });
            }
        });
        Self { port, seen, connections, most_in_flight, task }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// "GET /version", with `/api2/json` taken off.
    pub fn lines(&self) -> Vec<String> {
        let short = |seen: &Seen| seen.target.replacen("/api2/json", "", 1);
        self.requests().iter().map(|seen| format!("{} {}", seen.verb, short(seen))).collect()
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, connection: usize, shared: &Shared) {
    let mut buffer = Vec::new();
    for nth_on_connection in 1.. {
        let head = loop {
            if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let text = String::from_utf8(buffer[..head].to_vec()).unwrap();
        let mut lines = text.split("\r\n");
        let first: Vec<&str> = lines.next().unwrap().split(' ').collect();
        let headers: BTreeMap<String, String> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        while buffer.len() < head + 4 + length {
            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let body = String::from_utf8(buffer[head + 4..head + 4 + length].to_vec()).unwrap();
        buffer.drain(..head + 4 + length);
        let request = {
            let mut log = shared.seen.lock().unwrap();
            let request = Seen {
                verb: first[0].to_owned(),
                target: first[1].to_owned(),
                headers,
                body,
                connection,
                nth_on_connection,
                nth: log.len() + 1,
            };
            log.push(request.clone());
            request
        };
        let now = shared.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most_in_flight.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(shared.delay).await;
        let reply = (shared.handler)(&request);
        shared.in_flight.fetch_sub(1, Ordering::SeqCst);
        match reply {
            Reply::Keep(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
                let _ = stream.flush().await;
            }
            Reply::Close(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                return;
            }
            Reply::Drop => return,
        }
    }
}

/// `{"data": ...}` as PVE sends it (fact R11).
pub fn data(json: &str) -> Reply {
    Reply::Keep(http("200 OK", &format!("{{\"data\":{json}}}")))
}

/// An error with a JSON body; the reason phrase is the message's first line (fact T17).
pub fn refuse(status: u16, message: &str) -> Reply {
    let body = format!("{{\"data\":null,\"message\":{}}}", serde_json::to_string(message).unwrap());
    Reply::Close(http(&format!("{status} {}", message.lines().next().unwrap_or("")), &body))
}

/// An error with nothing but a reason phrase (facts T15, T23).
pub fn bare(status: u16, reason: &str) -> Reply {
    Reply::Close(
        format!("HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes(),
    )
}

pub fn http(status: &str, body: &str) -> Vec<u8> {
    let kind = "application/json;charset=UTF-8";
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

pub fn token() -> Credential {
    Credential::Token(Secret::new("root@pam!ci=11111111-2222-3333-4444-555555555555"))
}

pub fn client(server: &Server) -> Client {
    Client::new(ClientConfig::new("lab", server.url(), token())).unwrap()
}
