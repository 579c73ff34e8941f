//! A git server: `git http-backend` behind TLS and a token, and a work tree that pushes to it.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// What the server's token is in every test.
pub const GIT_TOKEN: &str = "glpat-Zebra-fixture-91-tundra";

/// A bare repository and a clone that pushes to it.
#[derive(Debug)]
pub struct Upstream {
    folder: TempDir,
}

impl Default for Upstream {
    fn default() -> Self {
        Self::new()
    }
}

impl Upstream {
    /// Empty, with branch `main`.
    pub fn new() -> Self {
        let upstream = Self { folder: tempfile::tempdir().unwrap() };
        run(upstream.folder.path(), &["init", "-q", "--bare", "-b", "main", "infra.git"]);
        run(upstream.folder.path(), &["init", "-q", "-b", "main", "work"]);
        upstream.git(&["remote", "add", "origin", "../infra.git"]);
        upstream
    }

    /// The folder that a server serves.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The bare repository.
    pub fn bare(&self) -> PathBuf {
        self.folder.path().join("infra.git")
    }

    /// The work tree.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Runs git in the work tree.
    pub fn git(&self, args: &[&str]) -> String {
        run(&self.work(), args)
    }

    /// Writes a file of the work tree.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let file = self.work().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    /// Commits everything and pushes the branch, by force if need be; the new commit.
    pub fn push(&self, branch: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "change"]);
        self.git(&["push", "-q", "--force", "origin", &format!("HEAD:refs/heads/{branch}")]);
        self.git(&["rev-parse", "HEAD"])
    }
}

fn run(folder: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    for setting in ["user.name=t", "user.email=t@example.org", "commit.gpgsign=false", "gc.auto=0"] {
        git.args(["-c", setting]);
    }
    git.args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null");
    let output = git.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// How the server behaves, and what it saw.
#[derive(Debug, Default)]
pub struct Manners {
    /// Answers 503 to everything.
    pub down: bool,
    /// Stops for ever after so many bytes of a pack.
    pub stall_after: Option<usize>,
    /// Connections that stand still.
    pub stalled: usize,
    /// Each request: method, path, and the Authorization header.
    pub seen: Vec<(String, String, String)>,
    /// What was posted.
    pub asked: Vec<String>,
}

/// Smart HTTP over TLS on loopback.
#[derive(Debug)]
pub struct GitServer {
    port: u16,
    ca: PathBuf,
    /// To change while it serves.
    pub manners: Arc<Mutex<Manners>>,
    _folder: TempDir,
}

impl GitServer {
    /// Serves a folder of bare repositories to whoever has the token.
    pub fn start(root: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let ca = folder.path().join("ca.pem");
        std::fs::write(&ca, made.cert.pem()).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config =
            rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![made.cert.der().clone()], key)
                .unwrap();
        let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
        let port = listener.local_addr().unwrap().port();
        let manners = Arc::new(Mutex::new(Manners::default()));
        let (root, shared) = (root.to_owned(), Arc::clone(&manners));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, root, manners) = (Arc::clone(&config), root.clone(), Arc::clone(&shared));
                std::thread::spawn(move || {
                    // A client that goes away is not the server's trouble.
                    let _ = serve(stream, config, &root, &manners);
                });
            }
        });
        Self { port, ca, manners, _folder: folder }
    }

    /// Of the repository `infra.git`.
    pub fn url(&self) -> String {
        format!("https://localhost:{}/infra.git", self.port)
    }

    /// The certificate to trust.
    pub fn ca(&self) -> &Path {
        &self.ca
    }
}

fn serve(
    stream: TcpStream,
    config: Arc<rustls::ServerConfig>,
    root: &Path,
    manners: &Mutex<Manners>,
) -> std::io::Result<()> {
    let session = rustls::ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut tls = BufReader::new(rustls::StreamOwned::new(session, stream));
    let mut line = String::new();
    tls.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or("").to_owned(), words.next().unwrap_or("").to_owned());
    let (mut length, mut chunked, mut auth, mut kind, mut protocol) =
        (0, false, String::new(), String::new(), String::new());
    loop {
        let mut header = String::new();
        if tls.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').unwrap_or_default();
        let value = value.trim().to_owned();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "transfer-encoding" => chunked = value == "chunked",
            "authorization" => auth = value,
            "content-type" => kind = value,
            "git-protocol" => protocol = value,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    if chunked {
        body = read_chunks(&mut tls)?;
    } else {
        tls.read_exact(&mut body)?;
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (down, stall) = {
        let mut manners = manners.lock().unwrap();
        manners.seen.push((method.clone(), path.to_owned(), auth.clone()));
        manners.asked.push(String::from_utf8_lossy(&body).into_owned());
        (manners.down, manners.stall_after)
    };
    let out = tls.get_mut();
    if down {
        return reply(out, "503 Service Unavailable", "", b"down");
    }
    if !auth.strip_prefix("Basic ").is_some_and(allowed) {
        return reply(out, "401 Unauthorized", "WWW-Authenticate: Basic realm=\"git\"\r\n", b"no");
    }
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", &method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", &kind)
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("GIT_PROTOCOL", &protocol)
        .env("REMOTE_USER", "t")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    backend.stdin.take().unwrap().write_all(&body)?;
    let answer = backend.wait_with_output()?.stdout;
    let cut = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(answer.len().saturating_sub(4));
    let headers = String::from_utf8_lossy(&answer[..cut]).into_owned();
    let body = &answer[(cut + 4).min(answer.len())..];
    let status = headers.lines().find_map(|l| l.strip_prefix("Status: ")).unwrap_or("200 OK").to_owned();
    let rest: String =
        headers.lines().filter(|l| !l.starts_with("Status:")).map(|l| format!("{l}\r\n")).collect();
    let pack = body.windows(8).any(|w| w == b"packfile");
    if let Some(bytes) = stall.filter(|_| pack) {
        write!(out, "HTTP/1.1 {status}\r\n{rest}Content-Length: {}\r\n\r\n", body.len())?;
        out.write_all(&body[..bytes.min(body.len())])?;
        out.flush()?;
        manners.lock().unwrap().stalled += 1;
        std::thread::sleep(std::time::Duration::from_secs(3600));
        return Ok(());
    }
    reply(out, &status, &rest, body)
}

fn allowed(basic: &str) -> bool {
    use base64::Engine as _;
    let decoded = base64::engine::general_purpose::STANDARD.decode(basic).unwrap_or_default();
    String::from_utf8_lossy(&decoded).split_once(':').is_some_and(|(_, password)| password == GIT_TOKEN)
}

fn read_chunks(from: &mut impl std::io::BufRead) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
        let mut part = vec![0; size];
        from.read_exact(&mut part)?;
        let mut end = String::new();
        from.read_line(&mut end)?;
        if size == 0 {
            return Ok(body);
        }
        body.extend(part);
    }
}

fn reply(out: &mut impl Write, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    write!(out, "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
    out.write_all(body)?;
    out.flush()
}
