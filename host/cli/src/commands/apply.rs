//! `apply`: one cycle of every cluster.

use super::FAILED;
use super::diff::{code, plan_all};
use crate::args::{Global, Output};
use crate::{open, progress, render, signals};
use proxops_daemon::Wish;
use proxops_model::Verb;
use proxops_model::plan::ClusterPlan;
use std::io::{IsTerminal as _, Write as _};

pub async fn run(global: &Global, exit_code: bool, yes: bool) -> anyhow::Result<u8> {
    let process = open::process(global)?;
    let cancel = signals::listen();
    let mut planned = plan_all(&process, global, Wish::Change, &cancel).await?;
    let deletes: Vec<String> = planned
        .iter()
        .flat_map(|p| &p.plan.actions)
        .filter(|a| a.verb == Verb::Delete)
        .map(|a| format!("{}/{} (vmid {})", a.kind, a.name, a.vmid.unwrap_or_default()))
        .collect();
    if !deletes.is_empty() && !yes && !confirmed(&deletes)? {
        return Ok(FAILED);
    }
    let bars = progress::terminal();
    futures::future::join_all(planned.iter_mut().map(|one| {
        let lines = progress::Lines::new(&one.plan.cluster, bars.clone());
        process.execute(one, lines, cancel.clone())
    }))
    .await;
    let plans: Vec<ClusterPlan> = planned.into_iter().map(|p| p.plan).collect();
    match global.output {
        Output::Json => render::json::apply(&plans)?,
        Output::Markdown => render::markdown::diff(&plans)?,
        Output::Text => render::text::apply(&plans, global.color)?,
    }
    Ok(code(&plans, exit_code))
}

/// Asks on a terminal; without one the answer is no.
fn confirmed(deletes: &[String]) -> anyhow::Result<bool> {
    let mut err = std::io::stderr().lock();
    writeln!(err, "this plan deletes {}: {}", guests(deletes.len()), deletes.join(", "))?;
    if !std::io::stdin().is_terminal() {
        writeln!(err, "error: without a terminal a plan with deletes needs --yes; nothing was written")?;
        return Ok(false);
    }
    write!(err, "delete {}? Type yes to go on: ", guests(deletes.len()))?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    let agreed = answer.trim() == "yes";
    if !agreed {
        writeln!(err, "nothing was written")?;
    }
    Ok(agreed)
}

fn guests(n: usize) -> String {
    if n == 1 { "1 guest".to_owned() } else { format!("{n} guests") }
}
