//! `doctor`: whether everything that an apply needs is as it should be.

use super::{FAILED, OK};
use crate::args::{Global, Output};
use crate::{open, render, signals};
use proxops_daemon::{Check, CheckState};

pub async fn run(global: &Global) -> anyhow::Result<u8> {
    let process = open::process(global)?;
    let cancel = signals::listen();
    let clusters = open::clusters(&process, global)?;
    let all = futures::future::join_all(clusters.iter().map(|cluster| process.doctor(cluster)));
    let checks: Vec<Check> = tokio::select! {
        checks = all => checks.into_iter().flatten().collect(),
        () = cancel.cancelled() => anyhow::bail!("stopped"),
    };
    match global.output {
        Output::Json => render::doctor::json(&checks)?,
        _ => render::doctor::text(&checks, process.repository.global_errors(), global.color)?,
    }
    let failed = checks.iter().any(|check| check.state == CheckState::Fail);
    let broken = process.repository.global_errors().next().is_some();
    Ok(if failed || broken || checks.is_empty() { FAILED } else { OK })
}
