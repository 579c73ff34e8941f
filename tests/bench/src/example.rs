//! The example repository: what a person waits for.

use crate::fetch;
use crate::ground::{Ground, Served};
use crate::report::Row;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;

/// Rows about the example repository, converged, and about starting.
pub async fn rows() -> Result<Vec<Row>> {
    let served = Served::start("demo", Duration::ZERO)?;
    let ground = Ground::example(&served.url)?;
    ground.run(&["apply", "--yes"])?;
    ground.run(&["diff", "--exit-code"])?;
    let paths = asked(&ground)?;
    let (mut diff, mut git, mut bare) = (Duration::MAX, Duration::MAX, Duration::MAX);
    let (mut version, mut validate) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        diff = diff.min(ground.run(&["diff"])?.0);
        let started = Instant::now();
        ground.git(&["status", "--porcelain"])?;
        git = git.min(started.elapsed());
        bare = bare.min(fetch::all(&served.url, &paths).await?);
        version = version.min(ground.run(&["--version"])?.0);
        validate = validate.min(ground.run(&["validate"])?.0);
    }
    let mut cold = Duration::MAX;
    for _ in 0..3 {
        std::fs::remove_dir_all(ground.data().join("cache"))?;
        cold = cold.min(ground.run(&["diff"])?.0);
    }
    let measure = format!("git status {} + fetch of {} URLs", crate::report::time(git), paths.len());
    Ok(vec![
        Row::ratio("`diff` of the example, warm cache", diff, (&measure, git + bare), 3.0),
        Row::amount(
            "`diff` of the example, cold cache",
            crate::report::time(cold),
            cold.as_secs_f64(),
            2.0,
            " s",
        ),
        Row::plain("`validate` of the example, warm cache", crate::report::time(validate)),
        Row::plain("`proxops --version`", crate::report::time(version)),
    ])
}

/// The paths that `diff` asks for, out of its own log.
fn asked(ground: &Ground) -> Result<Vec<String>> {
    let output =
        ground.proxops(&["diff"])?.env("PROXOPS_LOG", "proxops_pve=trace").env("NO_COLOR", "1").output()?;
    let log = String::from_utf8_lossy(&output.stderr);
    let paths: Vec<String> = log
        .lines()
        .filter(|line| line.contains("verb=\"GET\""))
        .filter_map(|line| line.split("path=\"").nth(1)?.split('"').next().map(str::to_owned))
        .collect();
    ensure!(!paths.is_empty(), "no request in the log: {log}");
    Ok(paths)
}
