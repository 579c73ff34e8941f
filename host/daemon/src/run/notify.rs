//! Tells the operator's own address (`notify.url`) what changed for the worse, and when it is well again.

use super::board::Found;
use super::metrics::Metrics;
use crate::client;
use jiff::Timestamp;
use proxops_exec::Cancel;
use proxops_model::plan::{Anomaly, ClusterState, Outcome};
use proxops_model::{Severity, text::printable};
use proxops_repo::{SecretSetting, Serve};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// Messages that wait for an address that does not answer; more are dropped, and counted.
const WAITING: usize = 200;
/// Tries of one message.
const TRIES: u32 = 4;

/// One message: `proxops.notify/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Message {
    format: &'static str,
    /// `cycle-failed`, `action-failed`, `anomaly` or `converged`.
    event: &'static str,
    cluster: String,
    commit: Option<String>,
    /// RFC 3339.
    #[serde(with = "super::when")]
    time: Timestamp,
    /// One or more sentences.
    message: String,
    /// `Kind/name` of what it is about.
    resource: Option<String>,
    /// What to do.
    help: Option<String>,
}

/// Compares what a cluster was with what it is, and sends what is new. Clones share one queue.
#[derive(Clone)]
pub(crate) struct Notifier {
    queue: Option<mpsc::Sender<Message>>,
    inbox: Arc<Mutex<Option<mpsc::Receiver<Message>>>>,
    target: Arc<Option<Target>>,
    metrics: Arc<Metrics>,
}

struct Target {
    url: String,
    token: Option<SecretSetting>,
    http: reqwest::Client,
}

impl Notifier {
    /// Without an address it does nothing.
    pub(crate) fn new(serve: &Serve, metrics: Arc<Metrics>) -> anyhow::Result<Self> {
        let Some(url) = serve.notify_url.clone() else {
            return Ok(Self { queue: None, inbox: Arc::default(), target: Arc::default(), metrics });
        };
        let http = client::http_client(serve.notify_ca.as_deref(), Duration::from_secs(10))?;
        let (queue, inbox) = mpsc::channel(WAITING);
        let target = Target { url, token: serve.notify_token.clone(), http };
        Ok(Self {
            queue: Some(queue),
            inbox: Arc::new(Mutex::new(Some(inbox))),
            target: Arc::new(Some(target)),
            metrics,
        })
    }

    /// Sends what is new in a cluster. Never waits.
    pub(crate) fn compare(&self, cluster: &str, before: Option<&Found>, now: &Found) {
        let Some(queue) = &self.queue else { return };
        for message in news(cluster, before, now) {
            let event = message.event;
            if queue.try_send(message).is_err() {
                self.metrics.notified(event, "dropped");
            }
        }
    }

    /// Sends the queue until the stop.
    pub(crate) async fn deliver(self, stop: Cancel) {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(mut inbox), Some(target)) = (inbox, self.target.as_ref()) else { return };
        loop {
            let message = tokio::select! {
                message = inbox.recv() => message,
                () = stop.cancelled() => return,
            };
            let Some(message) = message else { return };
            let sent = tokio::select! {
                sent = target.send(&message) => sent,
                () = stop.cancelled() => return,
            };
            let result = match sent {
                Ok(()) => "ok",
                Err(why) => {
                    tracing::warn!("a notification was not taken: {}", printable(&why));
                    "failed"
                }
            };
            self.metrics.notified(message.event, result);
        }
    }
}

impl Target {
    async fn send(&self, message: &Message) -> Result<(), String> {
        let mut pause = Duration::from_secs(1);
        let mut tries = 0;
        loop {
            tries += 1;
            let why = match self.once(message).await {
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

    async fn once(&self, message: &Message) -> Result<(), String> {
        let mut request = self.http.post(&self.url).json(message);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.read()?.expose());
        }
        // The address may hold a secret part.
        let answer = request.send().await.map_err(|error| error.without_url().to_string())?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("notify.url answered {status}")),
        }
    }
}

/// What is worth telling: failures and anomalies that were not there before, and that all is well again.
fn news(cluster: &str, before: Option<&Found>, now: &Found) -> Vec<Message> {
    let message = |event, text: String, resource: Option<String>, help: Option<String>| Message {
        format: "proxops.notify/v1",
        event,
        cluster: cluster.to_owned(),
        commit: now.plan.commit.clone(),
        time: Timestamp::now(),
        message: text,
        resource,
        help,
    };
    let mut out = Vec::new();
    if now.plan.state == ClusterState::Aborted {
        // Once for each reason, not every thirty seconds.
        if before.is_none_or(|b| b.plan.error != now.plan.error) {
            let why = now.plan.error.clone().unwrap_or_default();
            out.push(message("cycle-failed", why, None, None));
        }
        return out;
    }
    let failures = |found: &Found| -> BTreeSet<(String, String)> {
        let failed = found.plan.actions.iter().filter_map(|a| Some((a, a.ended.as_ref()?)));
        let failed = failed.filter(|(_, end)| end.result == Outcome::Failed);
        failed.map(|(a, end)| (a.id.clone(), end.error.clone().unwrap_or_default())).collect()
    };
    let known = before.map(failures).unwrap_or_default();
    for a in &now.plan.actions {
        let Some(end) = a.ended.as_ref().filter(|end| end.result == Outcome::Failed) else { continue };
        let why = end.error.clone().unwrap_or_default();
        if !known.contains(&(a.id.clone(), why.clone())) {
            out.push(message(
                "action-failed",
                format!("{} failed: {why}", a.verb),
                Some(a.resource().to_string()),
                None,
            ));
        }
    }
    let seen: Vec<&Anomaly> = before.iter().flat_map(|b| &b.plan.anomalies).collect();
    for a in now.plan.anomalies.iter().filter(|a| a.severity != Severity::Info) {
        if !seen.contains(&a) {
            let resource = format!("{}/{}", a.kind, a.name);
            out.push(message("anomaly", a.message.clone(), Some(resource), a.help.clone()));
        }
    }
    let was_unclean = before.is_some_and(|b| !b.status.last_cycle.clean);
    if was_unclean && now.status.last_cycle.clean {
        out.push(message("converged", "the cluster is converged again".to_owned(), None, None));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClusterStatus, LastCycle};
    use proxops_model::ClusterPlan;

    fn found(plan: ClusterPlan) -> Found {
        let last_cycle = LastCycle { state: plan.state, error: plan.error.clone(), clean: plan.is_clean() };
        let status = ClusterStatus {
            cluster: plan.cluster.clone(),
            commit: None,
            stale: false,
            last_cycle,
            objects: Vec::new(),
        };
        Found { status, plan }
    }

    fn with_anomaly() -> ClusterPlan {
        let anomaly = Anomaly {
            code: "size".to_owned(),
            severity: Severity::Warning,
            kind: "VM".to_owned(),
            name: "a".to_owned(),
            node: None,
            vmid: Some(100),
            message: "smaller".to_owned(),
            help: Some("grow it".to_owned()),
        };
        ClusterPlan { anomalies: vec![anomaly], ..ClusterPlan::new("lab") }
    }

    fn events(before: Option<&Found>, now: &Found) -> Vec<&'static str> {
        news("lab", before, now).iter().map(|m| m.event).collect()
    }

    #[test]
    fn each_finding_is_told_once_and_its_end_too() {
        let (well, odd) = (found(ClusterPlan::new("lab")), found(with_anomaly()));
        assert_eq!(events(None, &well), [""; 0], "a start that finds nothing is no news");
        assert_eq!(events(Some(&well), &odd), ["anomaly"]);
        assert_eq!(events(Some(&odd), &odd), [""; 0]);
        assert_eq!(events(Some(&odd), &well), ["converged"]);
    }

    #[test]
    fn an_aborted_cycle_is_told_once_for_each_reason() {
        let down = found(ClusterPlan::aborted("lab", "connection refused"));
        let other = found(ClusterPlan::aborted("lab", "401"));
        assert_eq!(events(None, &down), ["cycle-failed"]);
        assert_eq!(events(Some(&down), &down), [""; 0]);
        assert_eq!(events(Some(&down), &other), ["cycle-failed"]);
        assert_eq!(events(Some(&other), &found(ClusterPlan::new("lab"))), ["converged"]);
    }
}
