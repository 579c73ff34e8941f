//! `run`: the daemon.

use super::OK;
use crate::args::{Global, RunArgs};
use crate::{open, signals};
use anyhow::Context as _;
use proxops_daemon::run::{Daemon, DaemonOptions, Reload};
use std::sync::Arc;

pub async fn run(global: &Global, args: &RunArgs) -> anyhow::Result<u8> {
    let mut global = global.clone();
    global.listen.clone_from(&args.listen);
    let place = open::Place::here(&global)?;
    global.kinds_dir = global.kinds_dir.map(std::path::absolute).transpose()?;
    // Reading a tree may fetch it.
    let opened = {
        let global = global.clone();
        tokio::task::spawn_blocking(move || open::process(&global))
            .await
            .context("reading the repository broke down")?
    };
    let process = opened?;
    // While it runs the last good settings are kept; a start has none to keep.
    let errors: Vec<String> = process.repository.global_errors().map(ToString::to_string).collect();
    anyhow::ensure!(errors.is_empty(), "{}", errors.join("\n"));
    open::clusters(&process, &global)?;
    let cancel = signals::listen();
    let options = DaemonOptions { observe: args.observe, clusters: global.cluster.clone() };
    let reload: Reload = Arc::new(move |process, stop| open::refresh(process, &global, &place, stop));
    let daemon = Daemon::new(process, reload, options, cancel)?;
    daemon.run().await?;
    Ok(OK)
}
