//! `adopt`: manifests for what a cluster has.

use super::{FAILED, OK};
use crate::args::{AdoptArgs, Global, Output};
use crate::{open, progress, render, signals};
use anyhow::bail;
use proxops_adopt::{Options, Report, adopt};
use proxops_repo::Cluster;

pub async fn run(global: &Global, args: &AdoptArgs) -> anyhow::Result<u8> {
    let process = open::process_offline(global)?;
    let clusters = open::clusters(&process, global)?;
    let cluster = match (global.cluster.as_slice(), clusters.as_slice()) {
        ([_], [cluster]) => *cluster,
        (_, all) => bail!("adopt works on one cluster: name it with --cluster ({})", names(all)),
    };
    let options = Options {
        only: args.only.clone(),
        secrets: args.adopt_secrets,
        force: args.force,
        dry_run: args.dry_run,
    };
    let cancel = signals::listen();
    let reading = progress::Reading::new(&cluster.name);
    let report: Report = tokio::select! {
        report = adopt(&process, cluster, &options, &reading) => report?,
        () = cancel.cancelled() => bail!("stopped: nothing was written to PVE, and no file half"),
    };
    reading.end();
    let failed = report.failed;
    match global.output {
        Output::Json => render::adopt::json(&report)?,
        _ => render::adopt::text(&report, &process.repository, global.color)?,
    }
    Ok(if failed { FAILED } else { OK })
}

fn names(clusters: &[&Cluster]) -> String {
    let names: Vec<&str> = clusters.iter().map(|c| c.name.as_str()).collect();
    if names.is_empty() { "the repository has none".to_owned() } else { names.join(", ") }
}
