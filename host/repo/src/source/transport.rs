//! A connection to a git server: HTTPS with rustls, or a child process that speaks the protocol on its pipes.

use super::{Address, Source, Trouble};
use gix::protocol::transport::Protocol;
use gix::protocol::transport::client::blocking_io::{Transport, http};
use gix::protocol::transport::client::git::{ConnectMode, blocking_io::Connection};
use gix::protocol::transport::client::{Account, TransportWithoutIO as _};
use rustls_pki_types::pem::PemObject as _;
use std::io::Read;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Of one read or write on the connection.
const PATIENCE: Duration = Duration::from_secs(60);
/// How much a child may say about its failure.
const SAID: u64 = 4096;
/// The user beside a token where the address names none. Servers that look at the token alone take any.
const USER: &str = "x-access-token";

/// An open connection.
pub(crate) struct Line {
    /// To talk through.
    pub transport: Box<dyn Transport + Send>,
    /// For HTTP: how to make requests.
    pub options: Option<Box<dyn std::any::Any>>,
    /// What a child process said on stderr.
    pub said: Said,
}

/// Text that a child process writes while it runs.
#[derive(Clone, Default)]
pub(crate) struct Said(Arc<Mutex<String>>);

impl Said {
    /// On one line; empty if there was none.
    pub fn text(&self) -> String {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Opens a connection; nothing is sent yet.
pub(crate) fn open(source: &Source, address: &Address) -> Result<Line, Trouble> {
    match address {
        Address::Http { url, secure } => web(source, url, *secure),
        Address::Ssh { user, host, port, path } => {
            let mut ssh = Command::new("ssh");
            // A daemon can't answer questions, and must notice a peer that went away.
            for option in [
                "BatchMode=yes",
                "ConnectTimeout=20",
                "ServerAliveInterval=15",
                "SendEnv=GIT_PROTOCOL",
                "ClearAllForwardings=yes",
            ] {
                ssh.args(["-o", option]);
            }
            if let Some(port) = port {
                ssh.args(["-p", &port.to_string()]);
            }
            let quoted = format!("'{}'", path.replace('\'', r"'\''"));
            let target = user.as_ref().map_or_else(|| host.clone(), |user| format!("{user}@{host}"));
            ssh.args(["--", &target, &format!("git-upload-pack {quoted}")]);
            child(ssh, "ssh", path)
        }
        Address::File { path } => {
            let mut git = Command::new("git");
            git.arg("upload-pack").arg(path);
            child(git, "git", &path.to_string_lossy())
        }
    }
}

fn web(source: &Source, url: &gix::Url, secure: bool) -> Result<Line, Trouble> {
    let mut transport: Box<dyn Transport + Send> =
        Box::new(http::Transport::<http::reqwest::Remote>::new(url.clone(), Protocol::V2, false));
    if let Some(token) = &source.token {
        if !secure {
            return Err(Trouble::new("a token is not sent over plain http", "use https://"));
        }
        let account = Account {
            username: url.user().unwrap_or(USER).to_owned(),
            password: token.expose().to_owned(),
            oauth_refresh_token: None,
        };
        transport
            .set_identity(account)
            .map_err(|_| Trouble::new("the token can't be used", "leave git.token out"))?;
    }
    let tls = tls(source.ca_file.as_deref())?;
    let backend = http::reqwest::Options {
        configure_client: Some(Box::new(move |builder| {
            Ok(builder.tls_backend_preconfigured(tls.clone()).timeout(PATIENCE))
        })),
        configure_request: None,
    };
    let options = http::Options { backend: Some(Arc::new(Mutex::new(backend))), ..http::Options::default() };
    Ok(Line { transport, options: Some(Box::new(options)), said: Said::default() })
}

/// The system's authorities and those of `git.ca-file`.
fn tls(ca_file: Option<&Path>) -> Result<rustls::ClientConfig, Trouble> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(file) = ca_file {
        let refuse = |why: String| {
            Trouble::new(format!("git.ca-file {} {why}", file.display()), "name a PEM file of certificates")
        };
        let pem = proxops_model::file::whole(file, proxops_model::file::SMALL)
            .map_err(|error| refuse(format!("can't be read: {error}")))?;
        let mut count = 0;
        for certificate in rustls_pki_types::CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| refuse(format!("is not PEM: {error}")))?;
            roots
                .add(certificate)
                .map_err(|error| refuse(format!("holds an unusable certificate: {error}")))?;
            count += 1;
        }
        if count == 0 {
            return Err(refuse("holds no certificate".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Trouble::new(format!("TLS can't be set up: {error}"), "please report it"))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Runs a program that serves the protocol. It gets none of our secrets.
fn child(mut command: Command, program: &str, path: &str) -> Result<Line, Trouble> {
    proxops_secrets::without_secrets(&mut command);
    // A hook's variables would lead it to another repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"] {
        command.env_remove(name);
    }
    let mut process = command
        .env("GIT_PROTOCOL", "version=2")
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            Trouble::new(format!("{program} can't be started: {error}"), format!("install {program}"))
        })?;
    let said = Said::default();
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (process.stdin.take(), process.stdout.take(), process.stderr.take())
    else {
        return Err(Trouble::new(format!("{program} has no pipes"), "please report it"));
    };
    let listener = {
        let said = said.clone();
        std::thread::spawn(move || listen(stderr, &said))
    };
    let reader = Process { stdout, process, listener: Some(listener) };
    let host: Option<(String, Option<u16>)> = None;
    let transport = Connection::new(reader, stdin, Protocol::V2, path, host, ConnectMode::Process, false);
    Ok(Line { transport: Box::new(transport), options: None, said })
}

fn listen(mut stderr: impl Read, said: &Said) {
    let mut text = Vec::new();
    let _ = stderr.by_ref().take(SAID).read_to_end(&mut text);
    said.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(&text));
    let _ = std::io::copy(&mut stderr, &mut std::io::sink());
}

/// Ends the child when the connection ends.
struct Process {
    stdout: ChildStdout,
    process: Child,
    listener: Option<std::thread::JoinHandle<()>>,
}

impl Read for Process {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stdout.read(buffer)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A child that ended by itself has said why; one that still runs is in nobody's way for long.
        let ended = (0..20).any(|_| {
            let done = matches!(self.process.try_wait(), Ok(Some(_)));
            if !done {
                std::thread::sleep(Duration::from_millis(5));
            }
            done
        });
        if !ended {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
        // What a child left behind may hold its stderr open: it is not waited for.
        if ended && let Some(listener) = self.listener.take() {
            for _ in 0..20 {
                if listener.is_finished() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}
