//! `status`: what is converged and what is not, by a read-only cycle.

use super::diff::{code, plan_all};
use crate::args::{Global, Output};
use crate::{open, render, signals};
use proxops_daemon::Wish;

pub async fn run(global: &Global) -> anyhow::Result<u8> {
    let process = open::process(global)?;
    let cancel = signals::listen();
    let planned = plan_all(&process, &open::clusters(&process, global)?, Wish::Look, &cancel).await?;
    let clusters = planned.iter().map(|p| p.status(&process)).collect::<Vec<_>>();
    match global.output {
        Output::Json => render::status::json(&clusters)?,
        _ => render::status::text(&clusters)?,
    }
    let plans: Vec<_> = planned.into_iter().map(|p| p.plan).collect();
    Ok(code(&plans, false))
}
