//! Reads and writes with retries.

use crate::answer::{self, Answer, Envelope};
use crate::auth::Auth;
use crate::class::Class;
use crate::config::{ClientConfig, Mode};
use crate::error::PveError;
use crate::path::{self, ParamText};
use crate::read::Permissions;
use crate::stats;
use crate::wire::{LARGEST_FORM, Wire, verb_text};
use backon::{ExponentialBuilder, Retryable};
use proxops_model::kind::Method;
use proxops_secrets::Secret;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OnceCell, Semaphore};

/// Repetitions of one request that failed in passing.
const RETRIES: usize = 4;
/// After this long there is at most one repetition: a host that drops packets takes 10 s each time.
const PATIENCE: Duration = Duration::from_secs(20);
/// For how long reads from a node that PVE could not reach are not repeated: they all wait in vain.
const NODE_DOWN_HOLDS: Duration = Duration::from_secs(10);

/// A client of one cluster. Cheap to clone; clones share connections, ticket and counters.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    cluster: String,
    task_timeout: Duration,
    mode: Mode,
    wire: Wire,
    auth: Auth,
    reads: Semaphore,
    writes: AtomicU64,
    nodes_down: Mutex<HashMap<String, Instant>>,
    permissions: OnceCell<Permissions>,
}

/// One request, ready to be sent more than once.
struct Request<'a> {
    method: Method,
    path: &'a str,
    query: String,
    form: Option<String>,
    secrets: Vec<&'a Secret>,
}

impl Request<'_> {
    fn write(&self) -> bool {
        self.method != Method::Get
    }
    fn verb(&self) -> &'static str {
        verb_text(self.method)
    }
    /// The node that the path addresses.
    fn node(&self) -> Option<&str> {
        self.path.strip_prefix("/nodes/")?.split('/').next()
    }
}

impl Client {
    /// Checks the settings and loads certificates; sends nothing.
    pub fn new(config: ClientConfig) -> Result<Self, PveError> {
        let wire = Wire::new(&config)?;
        let auth = Auth::new(config.credential)?;
        Ok(Self {
            inner: Arc::new(Inner {
                cluster: config.cluster,
                task_timeout: config.task_timeout,
                mode: config.mode,
                wire,
                auth,
                reads: Semaphore::new(config.concurrency.clamp(1, Semaphore::MAX_PERMITS)),
                writes: AtomicU64::new(0),
                nodes_down: Mutex::default(),
                permissions: OnceCell::new(),
            }),
        })
    }

    /// The cluster's name.
    pub fn cluster(&self) -> &str {
        &self.inner.cluster
    }

    /// How long to wait for one task unless something else is said.
    pub fn task_timeout(&self) -> Duration {
        self.inner.task_timeout
    }

    /// The credential is a root@pam ticket, which may set what PVE allows to root@pam only (fact T26).
    pub fn is_root(&self) -> bool {
        self.inner.auth.is_root()
    }

    /// Who logs in: `user@realm`, or `user@realm!id` for an API token. No secret.
    pub fn identity(&self) -> &str {
        self.inner.auth.identity()
    }

    /// What the credential may do by the paths that PVE lists; asked once.
    pub(crate) async fn known_permissions(&self) -> Result<&Permissions, PveError> {
        self.inner.permissions.get_or_try_init(|| self.permissions()).await
    }

    /// Writes that were sent so far, repetitions included and logins not.
    pub fn writes(&self) -> u64 {
        self.inner.writes.load(Ordering::Relaxed)
    }

    /// Reads. Broken connections, gateway statuses and busy locks are retried a few times with growing,
    /// jittered pauses.
    pub async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Answer, PveError> {
        self.read::<Value>(path, query).await.map(into_answer)
    }

    /// The same with `data` in the form of `T`.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Envelope<T>, PveError> {
        let request =
            Request { method: Method::Get, path, query: path::query(query), form: None, secrets: Vec::new() };
        self.run(&request).await
    }

    /// Carries out one logical write.
    ///
    /// Repeated by itself only where PVE certainly did nothing: no connection was made, a lock was not
    /// free (class `Busy`), or a ticket was refused. Everything after which the outcome is not known comes
    /// back as `UnknownOutcome`: a broken connection, no answer in time, a cut or foreign answer, and the
    /// statuses 502 to 504 and 595 to 599 (fact T24).
    ///
    /// Parameters of DELETE travel in the query (fact T5), all others in a form.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        params: &[(String, ParamText)],
    ) -> Result<Answer, PveError> {
        let text = path::form(params);
        let (query, form) = match method {
            Method::Get | Method::Delete => (text, None),
            Method::Post | Method::Put => (String::new(), Some(text)),
        };
        let secrets = params.iter().filter_map(|(_, value)| match value {
            ParamText::Secret(secret) => Some(secret),
            _ => None,
        });
        let request = Request { method, path, query, form, secrets: secrets.collect() };
        if request.write() && self.inner.mode == Mode::ReadOnly {
            return Err(PveError::request(
                Class::Forbidden,
                request.verb(),
                path,
                "this run only reads: nothing was sent",
            ));
        }
        if request.form.as_ref().is_some_and(|form| form.len() > LARGEST_FORM) {
            return Err(PveError::request(
                Class::Invalid,
                request.verb(),
                path,
                "the parameters exceed the 512 KiB that PVE accepts",
            ));
        }
        let answer = into_answer(self.run::<Value>(&request).await?);
        match answer.data.as_str() {
            // a task that can't be followed
            Some(text) if text.starts_with("UPID:") && answer.upid().is_none() => {
                let why = format!("PVE started a task with an unreadable id: {text}");
                Err(PveError::request(Class::UnknownOutcome, request.verb(), path, why))
            }
            _ => Ok(answer),
        }
    }

    async fn run<T: DeserializeOwned>(&self, request: &Request<'_>) -> Result<Envelope<T>, PveError> {
        path::check(request.verb(), request.path)?;
        let backoff = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(200))
            .with_factor(2.0)
            .with_max_times(RETRIES)
            .with_jitter()
            // its own seed is the same for everybody
            .with_jitter_seed(rand::random());
        let started = Instant::now();
        let mut retries = 0;
        let result = (|| self.once(request))
            .retry(backoff)
            .when(|error: &PveError| {
                retries += 1;
                let patient = retries == 1 || started.elapsed() < PATIENCE;
                error.is_transient() && patient && self.node_worth_asking(request, error)
            })
            .notify(|error: &PveError, pause: Duration| {
                // not its text, which is not scrubbed yet
                let (class, status) = (&error.class, error.status.unwrap_or(0));
                let pause_ms = pause.as_millis() as u64;
                tracing::debug!(
                    cluster = self.cluster(),
                    path = request.path,
                    ?class,
                    status,
                    pause_ms,
                    "retry"
                );
            })
            .await;
        self.note_node(request, result.as_ref().err());
        match result {
            Ok(answer) => Ok(answer),
            Err(error) => Err(error
                .scrubbed(request.secrets.iter().copied())
                .scrubbed(&self.inner.auth.secrets().await)),
        }
    }

    /// One request, and once more with a new ticket if the old one was refused: a request that got a 401
    /// was not carried out.
    async fn once<T: DeserializeOwned>(&self, request: &Request<'_>) -> Result<Envelope<T>, PveError> {
        let (answer, ticket) = self.exchange(request).await?;
        match answer {
            Err(error) if error.status == Some(401) && self.inner.auth.refused(ticket).await => {
                tracing::debug!(cluster = self.cluster(), "the ticket was refused; logging in again");
                self.exchange(request).await?.0
            }
            answer => answer,
        }
    }

    /// The outer error is one of the login.
    async fn exchange<T: DeserializeOwned>(
        &self,
        request: &Request<'_>,
    ) -> Result<(Result<Envelope<T>, PveError>, u64), PveError> {
        let inner = &self.inner;
        let (verb, write) = (request.verb(), request.write());
        let _permit = match write {
            false => inner.reads.acquire().await.ok(),
            true => None,
        };
        let headers = inner.auth.headers(&inner.wire, write).await?;
        if write {
            inner.writes.fetch_add(1, Ordering::Relaxed);
        }
        let started = Instant::now();
        let raw = inner
            .wire
            .exchange(request.method, request.path, &request.query, request.form.clone(), headers.map)
            .await;
        tracing::trace!(
            cluster = inner.cluster,
            verb,
            path = request.path,
            status = raw.as_ref().map_or(0, |raw| raw.status),
            ms = started.elapsed().as_millis() as u64,
            "request"
        );
        let answer = match raw {
            Ok(raw) => answer::decode(verb, request.path, write, raw),
            Err(fault) => Err(answer::fault(verb, request.path, write, fault)),
        };
        stats::count(&inner.cluster, verb, answer.as_ref().err().map(|e| &e.class), started.elapsed());
        Ok((answer, headers.ticket))
    }

    /// Whether a read that PVE could not pass on is worth repeating: not if the same node was out of reach
    /// a moment ago. One dead node must not slow down the others.
    fn node_worth_asking(&self, request: &Request<'_>, error: &PveError) -> bool {
        let (Some(595), Some(node)) = (error.status, request.node()) else { return true };
        let down = self.inner.nodes_down.lock().unwrap_or_else(PoisonError::into_inner);
        down.get(node).is_none_or(|since| since.elapsed() >= NODE_DOWN_HOLDS)
    }

    fn note_node(&self, request: &Request<'_>, error: Option<&PveError>) {
        let Some(node) = request.node() else { return };
        let mut down = self.inner.nodes_down.lock().unwrap_or_else(PoisonError::into_inner);
        match error.and_then(|error| error.status) {
            Some(595) => {
                down.insert(node.to_owned(), Instant::now());
            }
            _ => {
                down.remove(node);
            }
        }
    }
}

fn into_answer(envelope: Envelope<Value>) -> Answer {
    Answer { total: envelope.total.whole(), data: envelope.data }
}
