//! Whole cycles against the simulator, in a process of its own.

use crate::fetch;
use crate::ground::{CLUSTER, Ground, Served, token};
use crate::report::{Row, median, time};
use anyhow::{Context as _, Result, ensure};
use proxops_daemon::{Process, Wish};
use proxops_exec::Cancel;
use proxops_repo::{LoadOptions, Overrides};
use proxops_sim::seed;
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

const GUESTS: u32 = 1_000;

/// Rows about a cycle of 1,000 guests that changes nothing.
pub async fn no_op() -> Result<Vec<Row>> {
    let mut rows = no_op_at(Duration::ZERO, "answers at once").await?;
    rows.extend(no_op_at(crate::LATE, "answers after 5 ms").await?);
    Ok(rows)
}

async fn no_op_at(answer: Duration, how: &str) -> Result<Vec<Row>> {
    let served = Served::slow(&format!("fleet:{GUESTS}"), Duration::ZERO, answer)?;
    let ground = Ground::new(&seed::fleet(GUESTS).1, &served.url, &[])?;
    ground.converged()?;

    // The cycle of a process that is open already, as the daemon's is.
    let token = token();
    let env = |name: &str| (name == "PROXOPS_PVE_TOKEN_VALUE").then(|| token.clone());
    let overrides = Overrides { data_dir: Some(ground.data()), ..Overrides::default() };
    let options = LoadOptions { overrides, ..LoadOptions::new(ground.repo(), &env) };
    let process = Process::open(&options, None)?;
    let cluster = process.repository.clusters.first().context("no cluster")?;
    let paths = guest_paths(GUESTS);
    let (mut ours, mut bare, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..15 {
        bare.push(fetch::all(&served.url, &paths).await?);
        let started = Instant::now();
        let planned = process.plan(cluster, Wish::Look, &Cancel::new()).await;
        ours.push(started.elapsed());
        ensure!(planned.plan.is_clean(), "not converged: {:?}", planned.plan);
        whole.push(ground.run(&["diff"])?.0);
    }
    let (ours, bare, whole) = (median(ours), median(bare), median(whole));
    let what = format!("no-op cycle of {GUESTS} guests, a cluster that {how}");
    Ok(vec![
        Row::ratio(what, ours, ("bare fetch", bare), 1.25),
        Row::plain(format!("`proxops diff` of them, whole command, {how}"), time(whole)),
    ])
}

/// The configuration of all guests of [`seed::fleet`], and what waits for a restart of those that run.
pub fn guest_paths(count: u32) -> Vec<String> {
    let of = |n: u32| {
        let guest = format!("/nodes/{}/qemu/{}", seed::NODES[n as usize % seed::NODES.len()], 1000 + n);
        let mut paths = vec![format!("{guest}/config")];
        if n.is_multiple_of(2) {
            paths.push(format!("{guest}/pending"));
        }
        paths
    };
    (0..count).flat_map(of).collect()
}

/// The row about 200 guests that are created.
pub async fn apply() -> Result<Vec<Row>> {
    const NEW: u32 = 200;
    const TASK: Duration = Duration::from_millis(500);
    let (at_once, per_node) = (16, 6);
    let served = Served::start("empty", TASK)?;
    let concurrency = format!("concurrency: {{cluster: {at_once}, node: {per_node}}}");
    let ground = Ground::new(&seed::fleet(NEW).1, &served.url, &["reconcile:", &format!("  {concurrency}")])?;
    // Compiles the kinds.
    ground.run(&["validate"])?;
    let (ours, output) = ground.run(&["apply", "--yes", "-o", "json"])?;
    let document: Value = serde_json::from_slice(&output.stdout)?;
    let actions = document.pointer("/clusters/0/actions").and_then(Value::as_array).map_or(0, Vec::len);
    ensure!(actions == NEW as usize, "{actions} actions, not {NEW}");
    let mut tasks = 0;
    for node in seed::NODES {
        let url = format!("{}/api2/json/nodes/{node}/tasks?source=all", served.url);
        let header = format!("PVEAPIToken={}", token());
        let client = reqwest::Client::builder().no_proxy().build()?;
        let answer = client.get(url).header("authorization", header).send().await?.bytes().await?;
        let answer: Value = serde_json::from_slice(&answer)?;
        tasks += answer["total"].as_u64().context("no total")?;
    }
    let width = at_once.min(per_node * seed::NODES.len() as u32);
    let least = TASK * u32::try_from(tasks)? / width;
    ground.converged()?;
    let what = format!("apply of {NEW} guests, {tasks} tasks of 500 ms, {width} at once");
    Ok(vec![Row::ratio(what, ours, ("sum of task time / width", least), 1.3)])
}

/// The row about memory.
pub async fn memory() -> Result<Vec<Row>> {
    const MANY: u32 = 10_000;
    let idle = peak(1).await?;
    let many = peak(MANY).await?;
    let each = (many.0.saturating_sub(idle.0)) as f64 / f64::from(MANY);
    let figures =
        format!("{} MB of `proxops diff` at {MANY} guests, {} MB at one", many.0 / 1024, idle.0 / 1024);
    Ok(vec![
        Row::amount(format!("peak memory at {MANY} guests, for each"), figures, each, 20.0, " KB"),
        Row::plain(format!("`proxops diff` of {MANY} VMs, whole command"), time(many.1)),
    ])
}

/// The most memory that `proxops diff` of a converged fleet had resident, in KB, and its time.
async fn peak(guests: u32) -> Result<(u64, Duration)> {
    let served = Served::start(&format!("fleet:{guests}"), Duration::ZERO)?;
    let ground = Ground::new(&seed::fleet(guests).1, &served.url, &[])?;
    ground.converged()?;
    let started = Instant::now();
    let mut child = ground.proxops(&["diff", "--exit-code"])?.stdout(Stdio::null()).spawn()?;
    let mut most = 0;
    let status = loop {
        let about = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = about.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let now = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse().ok());
        most = now.unwrap_or(most).max(most);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    ensure!(status.success(), "diff of {guests} guests of cluster {CLUSTER} ended with {status}");
    Ok((most, started.elapsed()))
}
