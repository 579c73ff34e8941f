//! The daemon: one loop a cluster, one that looks at the files, and what they tell.
//!
//! Every cluster's loop is a thread of its own. A kind that spins, an endpoint that hangs, or a manifest that does
//! not parse costs its own cluster's time and nobody else's. Loops share only the tree, which is replaced as a
//! whole ([`Daemon::process`]), and the board that they write on.

mod board;
mod courier;
mod forge;
mod metrics;
mod notify;
mod pause;
mod stamp;
mod systemd;
mod turn;
pub(crate) mod when;

pub use board::{Board, ClusterBoard, CycleRecord, Found, Phase, RunningAction, TreeView, Why};
pub use metrics::Metrics;
pub use pause::{Suspension, resume, suspend, suspension};

use crate::{Process, http};
use anyhow::bail;
use proxops_exec::Cancel;
use proxops_repo::Settings;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Looks at files and source again and changes the process, or says why nothing was changed. Blocks; the switch ends
/// a transfer early.
pub type Reload = Arc<dyn Fn(&mut Process, &AtomicBool) -> Result<(), String> + Send + Sync>;

/// How the daemon runs.
#[derive(Debug, Clone, Default)]
pub struct DaemonOptions {
    /// Plan and show, never write.
    pub observe: bool,
    /// Only these clusters; empty = all.
    pub clusters: Vec<String>,
}

/// After the last push that was announced this long nothing more comes: one cycle serves them all.
const QUIET: Duration = Duration::from_millis(700);
/// A stream of pushes holds a cycle back no longer than this.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest pause between two looks at the files.
const LOOK: Duration = Duration::from_secs(30);
/// Loops that still run this long after a stop are left behind; more than an execution waits for what is in flight.
const LEAVE: Duration = Duration::from_secs(150);

/// Asks for a cycle of every cluster. The number rises with every ask; equal numbers are one cycle.
#[derive(Debug, Clone, Copy)]
struct Round {
    number: u64,
    why: Why,
}

/// Everything that loops and the HTTP server share.
pub struct Daemon {
    /// What is known of every cluster.
    pub board: Arc<Board>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// How it runs.
    pub options: DaemonOptions,
    /// Address, tokens, as they were at the start.
    pub settings: Settings,
    process: RwLock<Arc<Process>>,
    reload: Reload,
    seen: stamp::Seen,
    asks: watch::Sender<u64>,
    round: watch::Sender<Round>,
    notifier: Arc<notify::Notifier>,
    stop: Cancel,
}

impl Daemon {
    /// A daemon over a process that was opened.
    ///
    /// # Errors
    /// A setting of notifications can't be used.
    pub fn new(
        process: Process,
        reload: Reload,
        options: DaemonOptions,
        stop: Cancel,
    ) -> anyhow::Result<Arc<Self>> {
        let settings = process.repository.settings.clone();
        let metrics = Arc::<Metrics>::default();
        let notifier = Arc::new(notify::Notifier::new(&settings.serve, &metrics)?);
        Ok(Arc::new(Self {
            board: Arc::default(),
            metrics,
            options,
            settings,
            process: RwLock::new(Arc::new(process)),
            reload,
            seen: stamp::Seen::default(),
            asks: watch::Sender::new(0),
            round: watch::Sender::new(Round { number: 0, why: Why::Start }),
            notifier,
            stop,
        }))
    }

    /// The tree and the kinds as they are now. A cycle keeps the ones that it began with.
    pub fn process(&self) -> Arc<Process> {
        Arc::clone(&self.process.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks for a cycle of every cluster on a fresh tree. Many asks in a short time are one.
    pub fn ask(&self) {
        self.asks.send_modify(|n| *n += 1);
    }

    /// Serves and reconciles until the stop is asked for; then waits for what is in flight, within bounds.
    ///
    /// # Errors
    /// The address can't be listened on, or a token or certificate can't be used. Nothing was written then.
    pub async fn run(self: &Arc<Self>) -> anyhow::Result<()> {
        let server = http::Server::bind(self).await?;
        let address = server.address();
        // The one line that a start prints, so that a port of 0 can be used.
        let _ = std::io::stderr().write_all(format!("listening on {address}\n").as_bytes());
        let served = tokio::spawn(server.serve(self.stop.clone()));
        let (notifier, stop) = (Arc::clone(&self.notifier), self.stop.clone());
        let told = tokio::spawn(async move { notifier.deliver(&stop).await });
        let alive = tokio::spawn(Arc::clone(self).watchdog());
        systemd::notify("READY=1");
        let left = self.supervise().await;
        systemd::notify("STOPPING=1");
        alive.abort();
        let _ = tokio::time::timeout(Duration::from_secs(3), served).await;
        let _ = tokio::time::timeout(Duration::from_secs(3), told).await;
        if left > 0 {
            bail!(
                "{left} clusters were still busy when the time to stop was over; the next start takes up what they did"
            );
        }
        Ok(())
    }

    /// Looks at the files, keeps one loop for each cluster, and passes asks on. Returns how many loops were left
    /// behind.
    async fn supervise(self: &Arc<Self>) -> usize {
        let (done, mut ended) = mpsc::unbounded_channel::<String>();
        let mut loops: BTreeMap<String, Cancel> = BTreeMap::new();
        let mut asks = self.asks.subscribe();
        let hup = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup());
        let mut hup = match hup {
            Ok(hup) => Some(hup),
            Err(error) => {
                tracing::warn!("SIGHUP can't be heard: {error}");
                None
            }
        };
        self.take_tree_view();
        self.keep_loops(&mut loops, &done);
        loop {
            let hung_up = async {
                match &mut hup {
                    Some(hup) => hup.recv().await,
                    None => std::future::pending().await,
                }
            };
            let why = tokio::select! {
                () = self.stop.cancelled() => break,
                _ = hung_up => Some(Why::Signal),
                Ok(()) = asks.changed() => Some(Why::Webhook),
                Some(name) = ended.recv() => {
                    // Only a loop that was asked to end may; another one gets a successor at the next look.
                    // Loops hear the stop by themselves, and one may be heard of before it is heard here.
                    let asked = loops.remove(&name).is_none_or(|asked| asked.is_cancelled());
                    if !asked && !self.stop.is_cancelled() {
                        tracing::error!(cluster = name, "the cluster's loop broke down; it is started again");
                    }
                    continue;
                }
                () = tokio::time::sleep(self.look_every()) => None,
            };
            if why == Some(Why::Webhook) {
                self.settle(&mut asks).await;
            }
            self.refresh(why.is_some()).await;
            self.keep_loops(&mut loops, &done);
            if let Some(why) = why {
                self.round.send_modify(|round| *round = Round { number: round.number + 1, why });
            }
        }
        for stop in loops.values() {
            stop.cancel();
        }
        let leave = tokio::time::sleep(LEAVE);
        tokio::pin!(leave);
        while !loops.is_empty() {
            tokio::select! {
                Some(name) = ended.recv() => { loops.remove(&name); }
                () = &mut leave => break,
            }
        }
        loops.len()
    }

    /// Waits until no further push is announced for a moment.
    async fn settle(&self, asks: &mut watch::Receiver<u64>) {
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            asks.borrow_and_update();
            let quiet = tokio::time::timeout(QUIET, asks.changed());
            tokio::select! {
                quiet = quiet => if quiet.is_err() { break },
                () = tokio::time::sleep_until(until) => break,
                () = self.stop.cancelled() => break,
            }
        }
        asks.borrow_and_update();
    }

    /// The pause between two looks at files or source.
    fn look_every(&self) -> Duration {
        let process = self.process();
        let settings = &process.repository.settings;
        let shortest = process.repository.clusters.iter().filter_map(|c| c.config.as_ref());
        let shortest =
            shortest.map(|c| c.reconcile.poll_interval).min().unwrap_or(settings.reconcile.poll_interval);
        match (&settings.git.url, settings.git.poll_interval) {
            (Some(_), Some(interval)) => interval,
            (Some(_), None) => shortest,
            (None, _) => (shortest / 2).min(LOOK),
        }
    }

    /// Looks at files and source again. A look that hangs holds up only this: loops go on with what there is.
    async fn refresh(self: &Arc<Self>, asked: bool) {
        let before = self.process();
        let reload = Arc::clone(&self.reload);
        let stop = Arc::new(AtomicBool::new(false));
        let switch = Arc::clone(&stop);
        let daemon = Arc::clone(self);
        let work = tokio::task::spawn_blocking(move || {
            let (changed, stamp) = daemon.seen.look(&before);
            if !asked && !changed {
                return None;
            }
            let mut next = (*before).clone();
            let result = reload(&mut next, &switch);
            daemon.seen.keep(stamp.filter(|_| result.is_ok()));
            Some((next, result))
        });
        let done = tokio::select! {
            done = work => done,
            () = self.stop.cancelled() => {
                stop.store(true, Ordering::Relaxed);
                return;
            }
        };
        match done {
            Ok(None) => {}
            Ok(Some((next, result))) => {
                *self.process.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
                if result.is_ok() {
                    tracing::debug!("the tree was read again");
                }
                self.take_tree_view();
            }
            Err(error) => tracing::error!("looking at the files broke down: {error}"),
        }
    }

    fn take_tree_view(&self) {
        let process = self.process();
        let repository = &process.repository;
        self.board.set_tree(TreeView {
            root: repository.root.display().to_string(),
            commit: repository.commit.clone(),
            dirty: repository.dirty,
            stale: process.stale().map(str::to_owned),
            stale_since: None,
            read_at: jiff::Timestamp::now(),
        });
    }

    /// One loop for each cluster of the tree, none for others.
    fn keep_loops(
        self: &Arc<Self>,
        loops: &mut BTreeMap<String, Cancel>,
        done: &mpsc::UnboundedSender<String>,
    ) {
        let process = self.process();
        let wanted =
            |name: &str| self.options.clusters.is_empty() || self.options.clusters.iter().any(|c| c == name);
        let names: Vec<&str> =
            process.repository.clusters.iter().map(|c| c.name.as_str()).filter(|name| wanted(name)).collect();
        for (_, stop) in loops.iter().filter(|(name, _)| !names.contains(&name.as_str())) {
            stop.cancel();
        }
        for name in names {
            if loops.contains_key(name) {
                continue;
            }
            let stop = Cancel::new();
            match turn::spawn(self, name, stop.clone(), done.clone()) {
                Ok(()) => {
                    loops.insert(name.to_owned(), stop);
                }
                Err(error) => tracing::error!(cluster = name, "no loop can be started: {error}"),
            }
        }
    }

    /// Signs of life for systemd, as long as no loop is stuck.
    async fn watchdog(self: Arc<Self>) {
        let Some(every) = systemd::watchdog() else { return };
        loop {
            match self.board.stuck() {
                None => systemd::notify("WATCHDOG=1"),
                Some(why) => {
                    tracing::error!("{why}");
                    systemd::notify(&format!("STATUS={why}"));
                }
            }
            tokio::time::sleep(every).await;
        }
    }
}
