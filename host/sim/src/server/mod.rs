//! Serves a world on loopback as PVE serves its own API (facts T1 to T28).

mod body;
mod connection;
mod request;
mod tls;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Map, Value};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::faults::{Faults, NewCertificate, RequestFault};
use crate::world::World;

/// HTTPS with an own CA.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Where to write the CA certificate (PEM).
    pub ca_file: Option<PathBuf>,
    /// Names and addresses in the server certificate besides `127.0.0.1` and `localhost`.
    pub names: Vec<String>,
}

/// How a world is served.
#[derive(Clone, Debug, Default)]
pub struct SimOptions {
    /// Port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// HTTPS; `None` is plain HTTP.
    pub tls: Option<Tls>,
    /// How long tasks take; `None` leaves what the world says.
    pub task_duration: Option<Duration>,
    /// How long a 401 is held back: PVE waits 3 s (fact T15), tests mostly 0.
    pub auth_delay: Duration,
    /// Refuse every write with a 403.
    pub read_only: bool,
    /// Faults from the start.
    pub faults: Faults,
}

/// One request that was not a GET, logins left out.
#[derive(Clone, Debug)]
pub struct LoggedRequest {
    /// HTTP method.
    pub method: String,
    /// Path below `/api2/json`, decoded.
    pub path: String,
    /// Parameters as they were decoded, those in the path left out. Passwords are masked.
    pub params: Map<String, Value>,
    /// Status; 0 when the connection was dropped.
    pub status: u16,
    /// The call was carried out, whatever the client was told.
    pub done: bool,
}

/// Starts simulators.
#[derive(Debug)]
pub struct Sim;

/// A running simulator; it stops when this is dropped.
#[derive(Debug)]
pub struct SimHandle {
    shared: Arc<Shared>,
    address: SocketAddr,
    stop: watch::Sender<bool>,
}

struct Shared {
    world: Mutex<World>,
    faults: Mutex<Vec<RequestFault>>,
    log: Mutex<Vec<LoggedRequest>>,
    requests: AtomicU64,
    held: AtomicU64,
    acceptor: RwLock<Option<TlsAcceptor>>,
    authority: Mutex<Option<tls::Authority>>,
    names: Vec<String>,
    started: Instant,
    /// The world's clock when the server started.
    base: Duration,
    auth_delay: Duration,
    read_only: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("requests", &self.requests).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        let mut world = lock(&self.world);
        world.advance_to(self.base + self.started.elapsed());
        world
    }

    fn apply(&self, faults: Faults) {
        faults.apply(&mut self.world());
        if let Some(new) = faults.certificate_changed {
            // on plain HTTP there is none to change
            let _ = self.change_certificate(new == NewCertificate::NewAuthority);
        }
        lock(&self.faults).extend(faults.requests);
    }

    fn change_certificate(&self, new_authority: bool) -> anyhow::Result<()> {
        let mut authority = lock(&self.authority);
        if new_authority {
            *authority = Some(tls::Authority::new()?);
        }
        let ca = authority.as_ref().context("a simulator on plain HTTP has no certificate")?;
        let fresh = ca.acceptor(&self.names)?;
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = Some(fresh);
        Ok(())
    }
}

impl Sim {
    /// Serves `world` until the handle is dropped. Needs a tokio runtime.
    ///
    /// # Errors
    /// The port is taken, or the CA file cannot be written.
    pub async fn start(mut world: World, options: SimOptions) -> anyhow::Result<SimHandle> {
        if let Some(duration) = options.task_duration {
            world.task_duration = duration;
        }
        options.faults.apply(&mut world);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))
            .await
            .with_context(|| format!("cannot listen on 127.0.0.1:{}", options.port))?;
        let address = listener.local_addr().context("cannot read the listening address")?;
        let names = options.tls.as_ref().map(|tls| tls.names.clone()).unwrap_or_default();
        let authority = options.tls.as_ref().map(|_| tls::Authority::new()).transpose()?;
        let acceptor = authority.as_ref().map(|ca| ca.acceptor(&names)).transpose()?;
        if let (Some(ca), Some(file)) =
            (&authority, options.tls.as_ref().and_then(|tls| tls.ca_file.as_ref()))
        {
            std::fs::write(file, ca.pem())
                .with_context(|| format!("cannot write CA certificate {}", file.display()))?;
        }
        let shared = Arc::new(Shared {
            base: world.now(),
            world: Mutex::new(world),
            faults: Mutex::new(options.faults.requests),
            log: Mutex::default(),
            requests: AtomicU64::new(0),
            held: AtomicU64::new(0),
            acceptor: RwLock::new(acceptor),
            authority: Mutex::new(authority),
            names,
            started: Instant::now(),
            auth_delay: options.auth_delay,
            read_only: options.read_only,
        });
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(connection::accept(listener, Arc::clone(&shared), stopped));
        Ok(SimHandle { shared, address, stop })
    }
}

impl SimHandle {
    /// Base address without a path: `http://127.0.0.1:<port>` or `https://...`.
    pub fn url(&self) -> String {
        let tls = self.shared.acceptor.read().is_ok_and(|acceptor| acceptor.is_some());
        format!("{}://{}", if tls { "https" } else { "http" }, self.address)
    }

    /// Certificate of the CA that signed the server certificate, PEM; `None` on plain HTTP.
    pub fn ca_pem(&self) -> Option<String> {
        lock(&self.shared.authority).as_ref().map(tls::Authority::pem)
    }

    /// The world behind the server. Requests wait while the guard lives.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world()
    }

    /// Adds a fault of requests.
    pub fn inject(&self, fault: RequestFault) {
        lock(&self.shared.faults).push(fault);
    }

    /// Puts all of a fault file into force.
    pub fn apply(&self, faults: Faults) {
        self.shared.apply(faults);
    }

    /// Removes all faults of requests.
    pub fn clear_request_faults(&self) {
        lock(&self.shared.faults).clear();
    }

    /// Every write so far, logins left out.
    pub fn write_log(&self) -> Vec<LoggedRequest> {
        lock(&self.shared.log).clone()
    }

    /// Empties the log of writes.
    pub fn clear_log(&self) {
        lock(&self.shared.log).clear();
    }

    /// Number of requests so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Requests that a fault's delay has held back so far, those whose client went away included.
    pub fn held(&self) -> u64 {
        self.shared.held.load(Ordering::Relaxed)
    }

    /// Serves a new certificate to new connections: of the same CA, or of a new one that no client
    /// knows yet. Open connections go on.
    ///
    /// # Errors
    /// The server speaks plain HTTP.
    pub fn change_certificate(&self, new_authority: bool) -> anyhow::Result<()> {
        self.shared.change_certificate(new_authority)
    }

    /// Stops listening and closes open connections.
    pub fn stop(self) {
        let _ = self.stop.send(true);
    }
}

impl Drop for SimHandle {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
    }
}
