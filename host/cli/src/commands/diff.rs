//! `diff`: the plan of every cluster.

use super::{CHANGES, FAILED, OK};
use crate::args::{Global, Output};
use crate::{ask, open, render, signals};
use proxops_daemon::{Planned, Process, SavedPlan, Wish};
use proxops_exec::Cancel;
use proxops_model::Severity;
use proxops_model::plan::{ClusterPlan, ClusterState, Outcome};
use proxops_repo::Cluster;
use std::path::Path;

pub async fn run(global: &Global, exit_code: bool, out: Option<&Path>, ask: bool) -> anyhow::Result<u8> {
    let process = open::process(global)?;
    let clusters = open::some_clusters(&process, global)?;
    // What is saved must be planned here: `apply` holds the world against it.
    let told = if ask && out.is_none() { from_daemon(&process, global).await } else { None };
    let plans: Vec<ClusterPlan> = match told {
        Some(plans) => plans,
        None => {
            let cancel = signals::listen();
            let planned = plan_all(&process, &clusters, Wish::Look, &cancel).await?;
            planned.into_iter().map(|p| p.plan).collect()
        }
    };
    let saved = match out {
        Some(file) => SavedPlan::of(&process, &plans).and_then(|saved| saved.write(file)),
        None => Ok(()),
    };
    match global.output {
        Output::Json => render::json::diff(&plans)?,
        Output::Markdown => render::markdown::diff(&plans)?,
        Output::Text => render::text::diff(&plans, global.color)?,
    }
    saved?;
    Ok(code(&plans, exit_code))
}

/// The plans of a daemon that works on this very tree. `None` = there is none, or it has not planned every cluster.
async fn from_daemon(process: &Process, global: &Global) -> Option<Vec<ClusterPlan>> {
    let mut document = ask::daemon(process, "/diff", ask::Same::Commit).await?;
    ask::select(&mut document, &global.cluster);
    let plans: Vec<ClusterPlan> = serde_json::from_value(document["clusters"].take()).ok()?;
    let wanted = open::clusters(process, global).ok()?;
    (plans.len() == wanted.len()).then_some(plans)
}

/// Plans the selected clusters concurrently; the result is in name order.
pub async fn plan_all(
    process: &Process,
    clusters: &[&Cluster],
    wish: Wish,
    cancel: &Cancel,
) -> anyhow::Result<Vec<Planned>> {
    let all = futures::future::join_all(clusters.iter().map(|cluster| process.plan(cluster, wish, cancel)));
    tokio::select! {
        planned = all => Ok(planned),
        () = cancel.cancelled() => anyhow::bail!("stopped before anything was written"),
    }
}

/// The exit code of plans, executed or not.
pub fn code(plans: &[ClusterPlan], exit_code: bool) -> u8 {
    let failed = plans.iter().any(|p| {
        p.state == ClusterState::Aborted
            || p.anomalies.iter().any(|a| a.severity == Severity::Error)
            || p.actions
                .iter()
                .filter_map(|a| a.ended.as_ref())
                .any(|e| matches!(e.result, Outcome::Failed | Outcome::NotStarted))
    });
    match (failed, exit_code && plans.iter().any(|p| !p.is_clean())) {
        (true, _) => FAILED,
        (false, true) => CHANGES,
        (false, false) => OK,
    }
}
