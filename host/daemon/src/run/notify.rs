//! Tells the operator's own address (`notify.url`) what changed for the worse, and when it is well again.

use super::board::Found;
use super::courier::{Courier, Letter};
use super::forge::Statuses;
use super::metrics::Metrics;
use jiff::Timestamp;
use proxops_exec::Cancel;
use proxops_model::Severity;
use proxops_model::plan::{Anomaly, ClusterState, Outcome};
use proxops_repo::Serve;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

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

/// Compares what a cluster was with what it is, and tells what is new: the operator's address, and the git server.
pub(crate) struct Notifier {
    news: Option<(String, Courier)>,
    statuses: Option<Statuses>,
}

impl Notifier {
    /// Without addresses it does nothing.
    ///
    /// # Errors
    /// A file of authorities can't be used.
    pub(crate) fn new(serve: &Serve, metrics: &Arc<Metrics>) -> anyhow::Result<Self> {
        let news = match serve.notify_url.clone() {
            None => None,
            Some(url) => {
                let (token, ca) = (serve.notify_token.clone(), serve.notify_ca.as_deref());
                Some((url, Courier::new("notify.url", token, ca, metrics)?))
            }
        };
        let statuses = match &serve.commit_status {
            None => None,
            Some(to) => {
                let courier =
                    Courier::new("commit-status.url", to.token.clone(), to.ca_file.as_deref(), metrics)?;
                Some(Statuses::new(to.forge, to.url.clone(), courier))
            }
        };
        Ok(Self { news, statuses })
    }

    /// Tells what is new in a cluster. Never waits.
    pub(crate) fn compare(&self, cluster: &str, before: Option<&Found>, now: &Found) {
        if let Some((url, courier)) = &self.news {
            for message in news(cluster, before, now) {
                if let Ok(body) = serde_json::to_string(&message) {
                    courier.take(Letter { event: message.event, url: url.clone(), body });
                }
            }
        }
        if let Some(statuses) = &self.statuses {
            statuses.tell(cluster, now);
        }
    }

    /// Delivers until the stop.
    pub(crate) async fn deliver(&self, stop: &Cancel) {
        let news = async {
            if let Some((_, courier)) = &self.news {
                courier.carry(stop).await;
            }
        };
        let statuses = async {
            if let Some(statuses) = &self.statuses {
                statuses.courier().carry(stop).await;
            }
        };
        tokio::join!(news, statuses);
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
