//! `suspend`, `resume`: a running daemon leaves a cluster alone, or goes on with it.

use super::OK;
use crate::args::Global;
use crate::open;
use crate::say;
use anyhow::ensure;
use proxops_daemon::run;

pub fn suspend(global: &Global, reason: Option<&str>) -> anyhow::Result<u8> {
    let process = open::process_offline(global)?;
    ensure!(!global.cluster.is_empty(), "name the clusters with --cluster");
    for cluster in open::clusters(&process, global)? {
        run::suspend(&process.repository.settings.data_dir, &cluster.name, reason)?;
        say::out!("{}: suspended; a cycle that runs already is finished", cluster.name);
    }
    Ok(OK)
}

pub fn resume(global: &Global) -> anyhow::Result<u8> {
    let process = open::process_offline(global)?;
    ensure!(!global.cluster.is_empty(), "name the clusters with --cluster");
    for cluster in open::clusters(&process, global)? {
        let was = run::resume(&process.repository.settings.data_dir, &cluster.name)?;
        say::out!("{}: {}", cluster.name, if was { "goes on" } else { "was not suspended" });
    }
    Ok(OK)
}
