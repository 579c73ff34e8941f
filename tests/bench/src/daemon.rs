//! The daemon over a large estate: a round against a bare fetch, what it costs when nothing happens, and whether it
//! grows.

use crate::fetch;
use crate::ground::{Ground, Served};
use crate::report::Row;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const CLUSTERS: u32 = 50;
const GUESTS: u32 = 200;
const ROUNDS: usize = 3;
const CYCLES: u64 = 1_000;

struct Running {
    child: Child,
    url: String,
    http: reqwest::Client,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(ground: &Ground) -> Result<Self> {
        let mut command = ground.proxops(&["run", "--listen", "127.0.0.1:0"])?;
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stderr.take().context("no stderr")?);
        let mut line = String::new();
        let url = loop {
            line.clear();
            ensure!(lines.read_line(&mut line)? > 0, "the daemon ended at its start");
            if let Some(address) = line.trim().strip_prefix("listening on ") {
                break format!("http://{address}");
            }
        };
        // Somebody must read the rest, or the daemon waits for it.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Ok(Self { child, url, http: reqwest::Client::builder().no_proxy().build()? })
    }

    async fn metrics(&self) -> Result<String> {
        Ok(String::from_utf8(
            self.http.get(format!("{}/metrics", self.url)).send().await?.bytes().await?.to_vec(),
        )?)
    }

    /// Cycles that ended well, and others.
    async fn cycles(&self) -> Result<(u64, u64)> {
        let (mut ok, mut bad) = (0, 0);
        for line in self.metrics().await?.lines().filter(|l| l.starts_with("proxops_cycles_total{")) {
            let n: u64 = line.rsplit(' ').next().context("no value")?.parse()?;
            *if line.contains("result=\"ok\"") { &mut ok } else { &mut bad } += n;
        }
        Ok((ok, bad))
    }

    async fn until(&self, cycles: u64) -> Result<()> {
        let started = Instant::now();
        loop {
            let (ok, bad) = self.cycles().await?;
            ensure!(bad == 0, "{bad} cycles did not end well");
            if ok >= cycles {
                return Ok(());
            }
            if started.elapsed() > Duration::from_secs(900) {
                bail!("{ok} of {cycles} cycles after 15 minutes");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// From the first start to the last end of every cluster's last cycle.
    async fn last_round(&self) -> Result<Duration> {
        let body = self.http.get(format!("{}/status", self.url)).send().await?.bytes().await?;
        let status: Value = serde_json::from_slice(&body)?;
        let (mut from, mut to) = (i64::MAX, i64::MIN);
        for cluster in status["clusters"].as_array().context("no clusters")? {
            ensure!(cluster["last_cycle"]["clean"] == true, "{} is not converged", cluster["cluster"]);
            let at = |key: &str| -> Result<i64> {
                let text = cluster["cycles"][0][key].as_str().context("no time")?;
                Ok(text.parse::<jiff::Timestamp>()?.as_microsecond())
            };
            (from, to) = (from.min(at("started_at")?), to.max(at("ended_at")?));
        }
        Ok(Duration::from_micros(u64::try_from(to - from)?))
    }

    fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let after = stat.rsplit_once(')').context("no stat")?.1;
        let ticks: u64 =
            after.split_whitespace().skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }

    /// Resident memory in KiB.
    fn memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches("kB").trim().parse()?)
    }

    fn hang_up(&self) -> Result<()> {
        let pid = self.child.id().to_string();
        ensure!(std::process::Command::new("kill").args(["-HUP", &pid]).status()?.success(), "kill failed");
        Ok(())
    }
}

/// Rows about one daemon.
pub async fn rows() -> Result<Vec<Row>> {
    let served = Served::start(&format!("estate:{CLUSTERS}:{GUESTS}"), Duration::ZERO)?;
    let urls: Vec<&str> = served.url.split(' ').collect();
    let manifests = proxops_sim::seed::fleet(GUESTS).1;
    let ground = Ground::estate(&manifests, &urls, "reconcile: {poll-interval: 1h}\n")?;
    let daemon = Running::start(&ground)?;
    daemon.until(u64::from(CLUSTERS)).await?;
    let paths = crate::cycle::guest_paths(GUESTS);
    let (mut round, mut bare) = (Duration::MAX, Duration::MAX);
    for n in 0..ROUNDS {
        let started = Instant::now();
        futures::future::try_join_all(urls.iter().map(|url| fetch::all(url, &paths))).await?;
        bare = bare.min(started.elapsed());
        daemon.hang_up()?;
        daemon.until(u64::from(CLUSTERS) * (n as u64 + 2)).await?;
        round = round.min(daemon.last_round().await?);
    }
    let what = format!("daemon: a round of {CLUSTERS} clusters x {GUESTS} guests");
    let mut rows = vec![Row::ratio(what, round, ("bare fetch", bare), 1.3)];

    tokio::time::sleep(Duration::from_secs(5)).await;
    let (cpu, started) = (daemon.cpu()?, Instant::now());
    tokio::time::sleep(Duration::from_secs(60)).await;
    let used = daemon.cpu()?.saturating_sub(cpu);
    let percent = 100.0 * used.as_secs_f64() / started.elapsed().as_secs_f64();
    let figures = format!(
        "{} ms of processor time in a minute, {} MB resident",
        used.as_millis(),
        daemon.memory()? / 1024
    );
    rows.push(Row::amount("daemon: idle processor time", figures, percent, 1.0, " %"));
    drop(daemon);

    let ground = Ground::estate(&manifests, &urls[..1], "reconcile: {poll-interval: 10ms}\n")?;
    let daemon = Running::start(&ground)?;
    daemon.until(CYCLES / 5).await?;
    let early = daemon.memory()?;
    daemon.until(CYCLES / 5 + CYCLES).await?;
    let late = daemon.memory()?;
    let figures = format!(
        "{} MB after {} cycles of {GUESTS} guests, {} MB after {CYCLES} more",
        early / 1024,
        CYCLES / 5,
        late / 1024
    );
    rows.push(Row::amount(
        "daemon: memory after 1,000 cycles",
        figures,
        late as f64 / early as f64,
        1.05,
        "x",
    ));
    Ok(rows)
}
