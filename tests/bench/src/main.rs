//! Figures to hold: one line for each, its bound and PASS or MISS. Ratios are of times taken in one run, because
//! machines differ and are noisy.
//!
//! `bench` runs everything but the soak, `bench plan drift` only these parts, `bench soak` the soak. Exit code 1 if a bound is missed.

mod adopt;
mod cycle;
mod daemon;
mod example;
mod fetch;
mod ground;
mod kinds;
mod live;
mod native;
mod plan;
mod report;
mod soak;

use anyhow::{Result, ensure};
use report::Row;
use std::process::ExitCode;

/// Parts, in the order of the table.
const PARTS: [&str; 10] =
    ["drift", "plan", "cycle", "adopt", "apply", "example", "memory", "kinds", SOAK, "daemon"];
/// A cluster that takes its time, as one behind a network does; the figure is an assumption. The simulator answers at
/// once and shares both cores with what is measured, which is the stricter measure.
const LATE: std::time::Duration = std::time::Duration::from_millis(5);
/// Takes minutes: only when it is named.
const SOAK: &str = "soak";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = runtime.map_err(anyhow::Error::from).and_then(|runtime| match words.as_slice() {
        [serve, world, task_ms, answer_ms] if serve == "serve" => {
            runtime.block_on(ground::serve(world, task_ms, answer_ms)).map(|()| true)
        }
        words => runtime.block_on(measure(words)),
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(1)
        }
    }
}

async fn measure(words: &[String]) -> Result<bool> {
    let wrong = words.iter().find(|word| !PARTS.contains(&word.as_str()));
    ensure!(wrong.is_none(), "there is no part {wrong:?}; there are {}", PARTS.join(", "));
    // Fails only if it is set already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ground::need_binary()?;
    let mut held = true;
    for part in PARTS
        .into_iter()
        .filter(|part| (words.is_empty() && *part != SOAK) || words.iter().any(|word| word == part))
    {
        match rows(part).await {
            Ok(rows) => rows.iter().for_each(|row| held &= row.print()),
            Err(error) => {
                println!("FAIL {part}: {error:#}");
                held = false;
            }
        }
    }
    Ok(held)
}

async fn rows(part: &str) -> Result<Vec<Row>> {
    match part {
        "drift" => plan::drift(),
        "plan" => plan::plans(),
        "cycle" => cycle::no_op().await,
        "adopt" => adopt::rows().await,
        "apply" => cycle::apply().await,
        "example" => example::rows().await,
        "memory" => cycle::memory().await,
        "kinds" => kinds::rows(),
        SOAK => soak::rows().await,
        _ => daemon::rows().await,
    }
}
