//! Carries letters to one address, in their order and a few times each. What is not taken is counted and dropped: an
//! address that does not answer disturbs no cycle.

use super::metrics::Metrics;
use crate::client;
use proxops_exec::Cancel;
use proxops_model::text::printable;
use proxops_repo::SecretSetting;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// Letters that wait for an address that does not answer; more are dropped, and counted.
const WAITING: usize = 200;
/// Tries of one letter.
const TRIES: u32 = 4;
/// For one try.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Letter {
    /// For the counter.
    pub event: &'static str,
    pub url: String,
    /// JSON.
    pub body: String,
}

/// One address with its queue.
pub(super) struct Courier {
    /// The setting that names the address, for messages.
    setting: &'static str,
    queue: mpsc::Sender<Letter>,
    inbox: Mutex<Option<mpsc::Receiver<Letter>>>,
    token: Option<SecretSetting>,
    http: reqwest::Client,
    metrics: Arc<Metrics>,
}

impl Courier {
    /// # Errors
    /// The authorities' file can't be used.
    pub fn new(
        setting: &'static str,
        token: Option<SecretSetting>,
        ca_file: Option<&Path>,
        metrics: &Arc<Metrics>,
    ) -> anyhow::Result<Self> {
        let http = client::http_client(ca_file, PATIENCE)?;
        let (queue, inbox) = mpsc::channel(WAITING);
        let inbox = Mutex::new(Some(inbox));
        Ok(Self { setting, queue, inbox, token, http, metrics: Arc::clone(metrics) })
    }

    /// Takes a letter. Never waits.
    pub fn take(&self, letter: Letter) {
        let event = letter.event;
        if self.queue.try_send(letter).is_err() {
            self.metrics.notified(event, "dropped");
        }
    }

    /// Carries until the stop.
    pub async fn carry(&self, stop: &Cancel) {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut inbox) = inbox else { return };
        loop {
            let letter = tokio::select! {
                letter = inbox.recv() => letter,
                () = stop.cancelled() => return,
            };
            let Some(letter) = letter else { return };
            let sent = tokio::select! {
                sent = self.send(&letter) => sent,
                () = stop.cancelled() => return,
            };
            let result = match sent {
                Ok(()) => "ok",
                Err(why) => {
                    tracing::warn!("a message was not taken: {}", printable(&why));
                    "failed"
                }
            };
            self.metrics.notified(letter.event, result);
        }
    }

    async fn send(&self, letter: &Letter) -> Result<(), String> {
        let mut pause = Duration::from_secs(1);
        let mut tries = 0;
        loop {
            tries += 1;
            let why = match self.once(letter).await {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            if tries == TRIES {
                return Err(why);
            }
            tokio::time::sleep(pause).await;
            pause *= 3;
        }
    }

    async fn once(&self, letter: &Letter) -> Result<(), String> {
        let mut request = self.http.post(&letter.url).header("content-type", "application/json");
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.read()?.expose());
        }
        // The address may hold a secret part.
        let answer = request.body(letter.body.clone()).send().await;
        match answer.map_err(|error| format!("{}: {}", self.setting, error.without_url()))?.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("{} answered {status}", self.setting)),
        }
    }
}
