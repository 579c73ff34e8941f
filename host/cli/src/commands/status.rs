//! `status`: what is converged and what is not, from a running daemon or by a read-only cycle.

use super::diff::{code, plan_all};
use super::{FAILED, OK};
use crate::args::{Global, Output};
use crate::{ask, open, render, signals};
use proxops_daemon::run::suspension;
use proxops_daemon::{ClusterStatus, Process, Wish};
use proxops_model::plan::ClusterState;

pub async fn run(global: &Global, ask: bool) -> anyhow::Result<u8> {
    let process = open::process(global)?;
    let clusters = open::some_clusters(&process, global)?;
    if ask && let Some(code) = from_daemon(&process, global).await? {
        return Ok(code);
    }
    let cancel = signals::listen();
    let planned = plan_all(&process, &clusters, Wish::Look, &cancel).await?;
    let clusters = planned.iter().map(|p| p.status(&process)).collect::<Vec<_>>();
    match global.output {
        Output::Json => render::status::json(&clusters)?,
        _ => {
            let data_dir = &process.repository.settings.data_dir;
            let paused = clusters.iter().filter_map(|c| {
                let suspension = suspension(data_dir, &c.cluster)?;
                Some((c.cluster.clone(), paused(suspension.reason.as_deref(), None)))
            });
            render::status::text(&clusters, &paused.collect(), global.color)?;
        }
    }
    let plans: Vec<_> = planned.into_iter().map(|p| p.plan).collect();
    Ok(code(&plans, false))
}

/// `None` = there is no daemon, or it has not looked at every cluster yet.
async fn from_daemon(process: &Process, global: &Global) -> anyhow::Result<Option<u8>> {
    let Some(mut document) = ask::daemon(process, "/status", ask::Same::DataDir).await else {
        return Ok(None);
    };
    ask::select(&mut document, &global.cluster);
    let Ok(clusters) = serde_json::from_value::<Vec<ClusterStatus>>(document["clusters"].clone()) else {
        return Ok(None);
    };
    match global.output {
        Output::Json => render::json::print(&document)?,
        _ => {
            let told = document["clusters"].as_array().into_iter().flatten();
            let paused = told.filter(|c| !c["suspended"].is_null()).filter_map(|c| {
                let last = c["cycles"][0]["ended_at"].as_str();
                Some((c["cluster"].as_str()?.to_owned(), paused(c["suspended"]["reason"].as_str(), last)))
            });
            render::status::text(&clusters, &paused.collect(), global.color)?;
        }
    }
    let failed = |c: &ClusterStatus| {
        c.last_cycle.state == ClusterState::Aborted || c.objects.iter().any(|o| o.state == "failed")
    };
    Ok(Some(if clusters.iter().any(failed) { FAILED } else { OK }))
}

/// How a cluster that the daemon leaves alone is called; what is known of it is as old as its last cycle.
fn paused(reason: Option<&str>, last_cycle: Option<&str>) -> String {
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let last = last_cycle.map(|at| format!(", last cycle at {at}")).unwrap_or_default();
    format!("suspended{reason}{last}")
}
