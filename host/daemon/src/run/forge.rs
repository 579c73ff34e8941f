//! Tells the git server what became of a commit (`commit-status`): one status for each cluster.

use super::board::Found;
use super::courier::{Courier, Letter};
use proxops_model::Severity;
use proxops_model::plan::{ClusterState, Outcome};
use proxops_repo::Forge;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The end of a cycle in the server's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Status {
    state: &'static str,
    /// One for each cluster, so that one does not hide another.
    context: String,
    /// No more than 140 characters, and nothing that only the operators of the clusters should read.
    description: String,
}

/// The statuses that were told last.
pub(super) struct Statuses {
    forge: Forge,
    /// Of the repository in the server's API.
    url: String,
    courier: Courier,
    told: Mutex<BTreeMap<String, (String, Status)>>,
}

impl Statuses {
    pub fn new(forge: Forge, url: String, courier: Courier) -> Self {
        Self { forge, url, courier, told: Mutex::default() }
    }

    pub fn courier(&self) -> &Courier {
        &self.courier
    }

    /// Tells how the cluster's commit is doing, if that is news. Never waits.
    pub fn tell(&self, cluster: &str, now: &Found) {
        // What is not committed is nobody's commit.
        let Some(commit) = now.plan.commit.as_ref().filter(|_| !now.plan.dirty) else { return };
        let status = status(self.forge, cluster, now);
        let next = (commit.clone(), status.clone());
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.get(cluster) == Some(&next) {
            return;
        }
        told.insert(cluster.to_owned(), next);
        drop(told);
        let Ok(body) = serde_json::to_string(&status) else { return };
        self.courier.take(Letter {
            event: "commit-status",
            url: format!("{}/statuses/{commit}", self.url),
            body,
        });
    }
}

fn status(forge: Forge, cluster: &str, now: &Found) -> Status {
    let plan = &now.plan;
    let ended = |wanted: Outcome| {
        plan.actions.iter().filter(|a| a.ended.as_ref().is_some_and(|end| end.result == wanted)).count()
    };
    let failed = ended(Outcome::Failed);
    let left = plan.actions.len() - ended(Outcome::Ok);
    let odd = plan.anomalies.iter().filter(|a| a.severity != Severity::Info).count() + plan.unknown.len();
    let failure = match forge {
        Forge::GitHub | Forge::Gitea => "failure",
        Forge::GitLab => "failed",
    };
    let (state, description) = if plan.state == ClusterState::Aborted {
        (failure, "can't be planned; proxops says why".to_owned())
    } else if failed > 0 {
        (failure, format!("{failed} of {} actions failed", plan.actions.len()))
    } else if now.status.last_cycle.clean {
        ("success", "converged".to_owned())
    } else {
        let counts = [
            (left, "to change"),
            (odd, "to look at"),
            (plan.deferred.len(), "deferred"),
            (plan.pending.len(), "until a restart"),
        ];
        let counts = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
        ("pending", counts.collect::<Vec<_>>().join(", "))
    };
    Status { state, context: format!("proxops/{cluster}"), description }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClusterStatus, LastCycle};
    use proxops_model::ClusterPlan;
    use proxops_model::plan::Noted;

    fn found(plan: ClusterPlan) -> Found {
        let last_cycle = LastCycle { state: plan.state, error: plan.error.clone(), clean: plan.is_clean() };
        let (cluster, commit) = (plan.cluster.clone(), plan.commit.clone());
        let status = ClusterStatus { cluster, commit, stale: false, last_cycle, objects: Vec::new() };
        Found { status, plan }
    }

    fn of(forge: Forge, plan: ClusterPlan) -> (&'static str, String) {
        let status = status(forge, "lab", &found(plan));
        assert_eq!(status.context, "proxops/lab");
        (status.state, status.description)
    }

    #[test]
    fn a_cycle_is_told_in_the_words_of_each_server() {
        let well = || ClusterPlan::new("lab");
        let down = || ClusterPlan::aborted("lab", "10.0.0.1 refuses user root@pam");
        for forge in [Forge::GitHub, Forge::GitLab, Forge::Gitea] {
            assert_eq!(of(forge, well()), ("success", "converged".to_owned()));
            let (state, text) = of(forge, down());
            assert_eq!(state, if forge == Forge::GitLab { "failed" } else { "failure" });
            assert!(!text.contains("10.0.0.1"), "what is wrong inside is not for the git server: {text}");
        }
        let noted = || Noted {
            kind: "VM".to_owned(),
            name: "web".to_owned(),
            node: None,
            vmid: None,
            why: "offline".to_owned(),
        };
        let plan = ClusterPlan { unknown: vec![noted()], deferred: vec![noted(), noted()], ..well() };
        assert_eq!(of(Forge::GitLab, plan), ("pending", "1 to look at, 2 deferred".to_owned()));
    }
}
