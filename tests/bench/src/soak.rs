//! A thousand cycles of one process while somebody keeps changing guests and requests keep failing: an hour of a
//! daemon, compressed. What it holds on to must stay as it is: memory, descriptors, threads, the journal.

use crate::ground::{Ground, Served, token};
use crate::report::{Row, time};
use anyhow::{Context as _, Result, ensure};
use proxops_daemon::{Process, Wish};
use proxops_exec::{Cancel, NoProgress};
use proxops_model::Outcome;
use proxops_repo::{LoadOptions, Overrides};
use proxops_sim::{FaultAnswer, RequestFault, SimHandle, seed};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Guests; every second one is stopped and changed again and again.
pub const GUESTS: u32 = 40;
const CYCLES: u32 = 1_000;
/// A cycle begins no sooner after the one before: there must be something to put right in each.
const PACE: Duration = Duration::from_millis(110);
/// From here on nothing may grow: caches are warm, and the journal has been trimmed.
const WARM: u32 = 700;

/// The simulator's side: changes all stopped guests every 100 ms, and harms a request every second.
pub async fn disturb(sim: &SimHandle) {
    let answers = [
        FaultAnswer::DropBefore,
        FaultAnswer::DropAfter,
        FaultAnswer::Truncated,
        FaultAnswer::Html,
        FaultAnswer::Status {
            status: 500,
            message: "can't lock file '/var/lock/qemu-server/lock-1001.conf' - got timeout".to_owned(),
            errors: Default::default(),
            effect: false,
        },
        FaultAnswer::Status {
            status: 596,
            message: "Connection timed out".to_owned(),
            errors: Default::default(),
            effect: true,
        },
    ];
    for tick in 0_usize.. {
        tokio::time::sleep(Duration::from_millis(100)).await;
        for guest in sim.world().guests.values_mut().filter(|guest| !guest.running) {
            guest.config.insert("memory".to_owned(), "1024".to_owned());
        }
        sim.clear_log();
        if tick.is_multiple_of(10) {
            let method = if tick.is_multiple_of(20) { "PUT" } else { "GET" };
            let answer = answers[tick / 10 % answers.len()].clone();
            sim.clear_request_faults();
            sim.inject(RequestFault::once(method, "/nodes/*/qemu/*/config", answer));
        }
    }
}

/// What the process holds.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    resident_kb: u64,
    descriptors: u64,
    threads: u64,
    journal_kb: u64,
}

impl Held {
    fn now(data: &Path) -> Result<Self> {
        let about = std::fs::read_to_string("/proc/self/status")?;
        let field = |name: &str| {
            let line = about.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or_default()
        };
        let size = |name: &str| std::fs::metadata(data.join(name)).map_or(0, |file| file.len());
        Ok(Self {
            resident_kb: field("VmRSS:"),
            threads: field("Threads:"),
            descriptors: std::fs::read_dir("/proc/self/fd")?.count() as u64,
            journal_kb: (size("journal.sqlite3") + size("journal.sqlite3-wal")) / 1024,
        })
    }

    fn most(self, other: Self) -> Self {
        Self {
            resident_kb: self.resident_kb.max(other.resident_kb),
            descriptors: self.descriptors.max(other.descriptors),
            threads: self.threads.max(other.threads),
            journal_kb: self.journal_kb.max(other.journal_kb),
        }
    }
}

/// The rows about growth: the most that was held in the last cycles against the most in those before.
pub async fn rows() -> Result<Vec<Row>> {
    let served = Served::start(&format!("soak:{GUESTS}"), Duration::ZERO)?;
    let ground = Ground::new(&seed::fleet(GUESTS).1, &served.url, &["reconcile:", "  task-timeout: 10s"])?;
    let token = token();
    let env = |name: &str| (name == "PROXOPS_PVE_TOKEN_VALUE").then(|| token.clone());
    let overrides = Overrides { data_dir: Some(ground.data()), ..Overrides::default() };
    let options = LoadOptions { overrides, ..LoadOptions::new(ground.repo(), &env) };
    let process = Process::open(&options, None)?;
    let cluster = process.repository.clusters.first().context("no cluster")?;
    let (mut before, mut after) = (Held::default(), Held::default());
    let (mut done, mut failed, mut aborted) = (0_u32, 0_u32, 0_u32);
    let mut last_error = None;
    let started = Instant::now();
    let mut pace = tokio::time::interval(PACE);
    for cycle in 0..CYCLES {
        pace.tick().await;
        let mut planned = process.plan(cluster, Wish::Change, &Cancel::new()).await;
        process.execute(&mut planned, Arc::new(NoProgress), Cancel::new()).await;
        aborted += u32::from(planned.plan.error.is_some());
        last_error = planned.plan.error.take().or(last_error);
        for ended in planned.plan.actions.iter().filter_map(|action| action.ended.as_ref()) {
            if ended.error.is_some() {
                last_error.clone_from(&ended.error);
            }
            if ended.result == Outcome::Ok { done += 1 } else { failed += 1 }
        }
        drop(planned);
        let held = Held::now(&ground.data())?;
        if cycle < WARM { before = before.most(held) } else { after = after.most(held) }
    }
    ensure!(
        done > 10 * CYCLES,
        "only {done} actions succeeded ({failed} failed, {aborted} cycles aborted, last: {last_error:?}): the journal \
         was never trimmed"
    );
    let row = |what: &str, before: u64, after: u64, most: f64, unit: &'static str| {
        let figures = format!("{before} at most in cycles 1 to {WARM}, {after} in {} to {CYCLES}", WARM + 1);
        Row::amount(
            format!("soak: growth of {what}"),
            figures,
            after.saturating_sub(before) as f64,
            most,
            unit,
        )
    };
    let told = format!(
        "{done} actions well, {failed} not, {aborted} cycles aborted, in {}",
        time(started.elapsed())
    );
    Ok(vec![
        Row::plain(format!("soak: {CYCLES} cycles of {GUESTS} guests under faults"), told),
        row("resident memory", before.resident_kb, after.resident_kb, 2048.0, " KB"),
        row("open descriptors", before.descriptors, after.descriptors, 2.0, ""),
        row("threads", before.threads, after.threads, 2.0, ""),
        row("the journal", before.journal_kb, after.journal_kb, 256.0, " KB"),
    ])
}
