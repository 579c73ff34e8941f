//! Listens, and bounds what a connection may cost.

use super::patient::Patient;
use super::router::{App, router};
use super::tls;
use crate::run::Daemon;
use anyhow::{Context as _, bail};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use proxops_exec::Cancel;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// Connections at once; more are closed.
const CONNECTIONS: usize = 256;
/// For a request's whole head, and for the next request of a connection.
const HEAD: Duration = Duration::from_secs(10);
/// For a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// For an answer that is not read.
const STALLED: Duration = Duration::from_secs(20);
/// For a connection, streams of events included; browsers connect again.
const LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Bytes of a request's head.
const HEAD_BYTES: usize = 32 * 1024;

/// A server that has its address.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    router: Router,
}

impl Server {
    /// Takes the address.
    ///
    /// # Errors
    /// It is taken; it is beyond loopback and there is no token; or a token, secret or certificate can't be read.
    pub async fn bind(daemon: &Arc<Daemon>) -> anyhow::Result<Self> {
        let settings = &daemon.settings;
        let read = |setting: &Option<proxops_repo::SecretSetting>| {
            setting.as_ref().map(|s| s.read().map_err(anyhow::Error::msg)).transpose()
        };
        let token = read(&settings.serve.token)?;
        let webhook = read(&settings.serve.webhook_secret)?;
        let tls = settings.serve.tls.as_ref().map(tls::acceptor).transpose()?;
        let listen = &settings.listen;
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host(listen)
            .await
            .with_context(|| format!("`listen` {listen} is no address"))?
            .collect();
        if let Some(wide) = addresses.iter().find(|a| !a.ip().is_loopback())
            && token.is_none()
        {
            bail!(
                "`listen` {wide} can be reached from other machines, so readers need a token: set http.token, \
                 http.token-file or PROXOPS_HTTP_TOKEN, or listen on 127.0.0.1"
            );
        }
        let listener = TcpListener::bind(addresses.as_slice())
            .await
            .with_context(|| format!("can't listen on {listen}; is another daemon running?"))?;
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() && tls.is_none() {
            tracing::warn!(
                "{address} serves plain HTTP: the token can be read on the way; set http.cert-file and http.key-file, \
                 or put a TLS proxy before it"
            );
        }
        let router = router(App::new(Arc::clone(daemon), token, webhook));
        Ok(Self { listener, address, tls, router })
    }

    /// Where it listens, with the port that was taken for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the stop is asked for.
    pub async fn serve(self, stop: Cancel) {
        let slots = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stop.cancelled() => return,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Such as too many open files: trying at once would only burn time.
                    tracing::warn!("a connection can't be taken: {error}");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    continue;
                }
            };
            let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
                tracing::debug!("a connection was closed: there are {CONNECTIONS} already");
                continue;
            };
            let (router, tls, stop) = (self.router.clone(), self.tls.clone(), stop.clone());
            tokio::spawn(async move {
                let _slot = slot;
                tokio::select! {
                    () = connection(stream, tls, router) => {}
                    () = tokio::time::sleep(LIFETIME) => {}
                    () = stopped(stop) => {}
                }
            });
        }
    }
}

/// What is being answered when the stop comes gets a moment to end.
async fn stopped(stop: Cancel) {
    stop.cancelled().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router) {
    let _ = stream.set_nodelay(true);
    match tls {
        None => http(stream, router).await,
        Some(tls) => match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
            Ok(Ok(stream)) => http(stream, router).await,
            Ok(Err(error)) => tracing::debug!("a TLS handshake failed: {error}"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        },
    }
}

async fn http<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, router: Router) {
    let io = TokioIo::new(Patient::new(stream, STALLED));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(io, TowerToHyperService::new(router))
        .await;
    if let Err(error) = served {
        tracing::debug!("a connection ended: {error}");
    }
}
