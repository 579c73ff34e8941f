//! `apply`: one cycle of every cluster.

use super::FAILED;
use super::diff::{code, plan_all};
use crate::args::{Global, Output};
use crate::{open, progress, render, signals};
use proxops_daemon::{SavedPlan, Wish};
use proxops_model::Verb;
use proxops_model::plan::ClusterPlan;
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

/// What the command line asks for.
pub struct Wanted<'a> {
    pub exit_code: bool,
    pub dry_run: bool,
    pub yes: bool,
    pub plan: Option<&'a Path>,
}

pub async fn run(global: &Global, wanted: &Wanted<'_>) -> anyhow::Result<u8> {
    let saved = wanted.plan.map(SavedPlan::read).transpose()?;
    let process = open::process(global)?;
    let cancel = signals::listen();
    let mut clusters = open::some_clusters(&process, global)?;
    if let Some(saved) = &saved {
        for name in &global.cluster {
            if !saved.clusters().any(|saved| saved == name) {
                anyhow::bail!("the saved plan has no cluster {name}");
            }
        }
        clusters.retain(|cluster| saved.clusters().any(|name| name == cluster.name));
    }
    let wish = if wanted.dry_run { Wish::Look } else { Wish::Change };
    let mut planned = plan_all(&process, &clusters, wish, &cancel).await?;
    if let Some(saved) = &saved {
        let saved = saved.only(&global.cluster);
        let plans: Vec<ClusterPlan> = planned.iter().map(|p| p.plan.clone()).collect();
        let differences = saved.differences(&process, &plans);
        if !differences.is_empty() {
            return refuse(global, wanted.dry_run, plans, &differences);
        }
    }
    let deletes: Vec<String> = planned
        .iter()
        .flat_map(|p| &p.plan.actions)
        .filter(|a| a.verb == Verb::Delete)
        .map(|a| format!("{}/{} (vmid {})", a.kind, a.name, a.vmid.unwrap_or_default()))
        .collect();
    if !wanted.dry_run && !deletes.is_empty() && !wanted.yes && !confirmed(&deletes)? {
        return Ok(FAILED);
    }
    let bars = if wanted.dry_run { None } else { progress::terminal() };
    futures::future::join_all(planned.iter_mut().map(|one| {
        let lines = progress::Lines::new(&one.plan.cluster, bars.clone());
        process.execute(one, lines, cancel.clone())
    }))
    .await;
    let plans: Vec<ClusterPlan> = planned.into_iter().map(|p| p.plan).collect();
    print(global, wanted.dry_run, &plans)?;
    Ok(code(&plans, wanted.exit_code))
}

fn print(global: &Global, dry_run: bool, plans: &[ClusterPlan]) -> anyhow::Result<()> {
    match global.output {
        Output::Json => render::json::apply(plans),
        Output::Markdown => render::markdown::diff(plans),
        // Nothing was done, so what there is to tell is the plan.
        Output::Text if dry_run => render::text::diff(plans, global.color),
        Output::Text => render::text::apply(plans, global.color),
    }
}

/// All or nothing: what was agreed to was the whole plan.
fn refuse(
    global: &Global,
    dry_run: bool,
    plans: Vec<ClusterPlan>,
    differences: &BTreeMap<String, Vec<String>>,
) -> anyhow::Result<u8> {
    let names: Vec<&str> = differences.keys().map(String::as_str).collect();
    let plans: Vec<ClusterPlan> = plans
        .into_iter()
        .map(|plan| {
            let why = match differences.get(&plan.cluster) {
                Some(lines) => format!(
                    "the saved plan was refused and nothing was written, because things changed since it was made:\n{}\n\
                     make a new one with `proxops diff --out FILE`",
                    lines.iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
                ),
                None => format!("nothing was written, because the saved plan no longer fits {}", names.join(", ")),
            };
            ClusterPlan { commit: plan.commit, dirty: plan.dirty, ..ClusterPlan::aborted(plan.cluster, why) }
        })
        .collect();
    for missing in names.iter().filter(|name| !plans.iter().any(|plan| plan.cluster == **name)) {
        tracing::error!("the saved plan has cluster {missing}, and the repository has it no more");
    }
    print(global, dry_run, &plans)?;
    Ok(FAILED)
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
