//! The loop of one cluster: a cycle, a pause, and again.

use super::board::{CycleRecord, Found, Phase, Reporter, Why};
use super::{Daemon, Round, pause};
use crate::{Planned, Process, Wish};
use jiff::Timestamp;
use proxops_exec::Cancel;
use proxops_model::plan::ClusterState;
use proxops_repo::Cluster;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// The longest pause of a cluster that can't be planned, unless its interval is longer.
const LONGEST: Duration = Duration::from_secs(600);
/// How often a loop that waits looks whether its cluster is suspended, or no more.
const SUSPENDED: Duration = Duration::from_secs(5);

/// Starts the loop in a thread of its own. `done` hears the name when it ended, whyever.
pub(super) fn spawn(
    daemon: &Arc<Daemon>,
    name: &str,
    gone: Cancel,
    done: mpsc::UnboundedSender<String>,
) -> std::io::Result<()> {
    let tells = Tells { done, name: name.to_owned() };
    let turn = Turn { daemon: Arc::clone(daemon), name: name.to_owned(), gone };
    daemon.board.add(name);
    let runtime = tokio::runtime::Handle::current();
    std::thread::Builder::new().name(format!("cluster {name}")).spawn(move || {
        let tells = tells;
        runtime.block_on(turn.run());
        drop(tells);
    })?;
    Ok(())
}

/// Tells that the loop ended, also when it panicked.
struct Tells {
    done: mpsc::UnboundedSender<String>,
    name: String,
}

impl Drop for Tells {
    fn drop(&mut self) {
        let _ = self.done.send(std::mem::take(&mut self.name));
    }
}

struct Turn {
    daemon: Arc<Daemon>,
    name: String,
    /// The cluster left the tree, or the daemon stops.
    gone: Cancel,
}

impl Turn {
    async fn run(self) {
        let mut round = self.daemon.round.subscribe();
        let mut why = Why::Start;
        while !self.stopping() {
            // Asks up to here are served by the cycle that begins now.
            round.borrow_and_update();
            let process = self.daemon.process();
            let Some(cluster) = process.repository.clusters.iter().find(|c| c.name == self.name) else {
                break;
            };
            let pause = match pause::suspension(&process.repository.settings.data_dir, &self.name) {
                Some(suspension) => {
                    self.daemon.board.change(&self.name, |c| c.suspended = Some(suspension));
                    let pause = SUSPENDED.min(interval(&process, cluster));
                    self.daemon.board.wait(&self.name, Phase::Suspended, pause);
                    pause
                }
                None => {
                    self.daemon.board.change(&self.name, |c| c.suspended = None);
                    let Some(record) = self.cycle(&process, cluster, why).await else { break };
                    let pause = self.pause(interval(&process, cluster), &record);
                    self.daemon.board.wait(&self.name, Phase::Waiting, pause);
                    pause
                }
            };
            // The tree that the cycle worked on may be large: it must not live through the pause.
            let data_dir = process.repository.settings.data_dir.clone();
            drop(process);
            let Some(next) = self.wait(&mut round, pause, &data_dir).await else { break };
            why = next;
        }
        if !self.daemon.stop.is_cancelled() {
            self.daemon.board.remove(&self.name);
            tracing::info!(cluster = self.name, "the cluster left the repository");
        }
    }

    fn stopping(&self) -> bool {
        self.gone.is_cancelled() || self.daemon.stop.is_cancelled()
    }

    async fn stopped(&self) {
        tokio::select! { () = self.gone.cancelled() => {}, () = self.daemon.stop.cancelled() => {} }
    }

    /// A suspension ends the pause early, so that it shows.
    async fn wait(
        &self,
        round: &mut watch::Receiver<Round>,
        pause: Duration,
        data_dir: &Path,
    ) -> Option<Why> {
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            tokio::select! {
                () = self.stopped() => return None,
                Ok(()) = round.changed() => return Some(round.borrow_and_update().why),
                () = tokio::time::sleep(left.min(SUSPENDED)) => {}
            }
            if left <= SUSPENDED || pause::suspension(data_dir, &self.name).is_some() {
                return Some(Why::Interval);
            }
        }
    }

    /// The pause after a cycle: the interval, more after failures, and a tenth up or down at random so that clusters
    /// do not all ask at once.
    fn pause(&self, interval: Duration, record: &CycleRecord) -> Duration {
        let failures = self.daemon.board.clusters().get(&self.name).map_or(0, |c| c.failures);
        let base = match record.state {
            ClusterState::Aborted => backed_off(interval, failures),
            ClusterState::Ok if record.failed > 0 => interval * 2,
            ClusterState::Ok => interval,
        };
        base.mul_f64(0.9 + rand::random::<f64>() / 5.0)
    }

    /// `None` = stopped before anything was written.
    async fn cycle(&self, process: &Process, cluster: &Cluster, why: Why) -> Option<CycleRecord> {
        let daemon = &self.daemon;
        let (started_at, started) = (Timestamp::now(), Instant::now());
        let patience = cluster.config.as_ref().map_or(LONGEST, |c| c.reconcile.task_timeout + LONGEST);
        daemon.board.change(&self.name, |c| c.patience = patience);
        daemon.board.phase(&self.name, Phase::Planning);
        let wish = if daemon.options.observe { Wish::Look } else { Wish::Change };
        let mut planned = tokio::select! {
            planned = process.plan(cluster, wish, &daemon.stop) => planned,
            () = self.stopped() => return None,
        };
        let planning = started.elapsed();
        if wish == Wish::Change && !planned.plan.actions.is_empty() {
            self.execute(process, &mut planned).await;
        }
        let found = Found { status: planned.status(process), plan: planned.plan };
        let record = CycleRecord::of(&found.plan, why, started_at, started.elapsed());
        daemon.metrics.cycle(&self.name, &record, planning);
        if let Some(error) = &record.error {
            tracing::error!(cluster = self.name, "the cycle was aborted: {error}");
        } else {
            let (ms, actions, failed) = (record.duration_ms, record.planned, record.failed);
            tracing::debug!(cluster = self.name, ms, actions, failed, why = why.as_str(), "cycle");
        }
        let before = daemon.board.clusters().get(&self.name).and_then(|c| c.found.clone());
        daemon.notifier.compare(&self.name, before.as_deref(), &found);
        daemon.board.ended(&self.name, found, record.clone());
        Some(record)
    }

    async fn execute(&self, process: &Process, planned: &mut Planned) {
        let daemon = &self.daemon;
        daemon.board.phase(&self.name, Phase::Executing);
        daemon.board.change(&self.name, |c| c.queued = planned.plan.actions.len());
        let reporter = Reporter {
            board: Arc::clone(&daemon.board),
            cluster: self.name.clone(),
            metrics: Arc::clone(&daemon.metrics),
        };
        // A cluster that leaves the tree finishes what it began: only the daemon's end cuts it short.
        process.execute(planned, Arc::new(reporter), daemon.stop.clone()).await;
    }
}

fn interval(process: &Process, cluster: &Cluster) -> Duration {
    let own = cluster.config.as_ref().map(|c| c.reconcile.poll_interval);
    own.unwrap_or(process.repository.settings.reconcile.poll_interval)
}

/// Doubles with every failure in a row, up to ten minutes or the interval if that is longer.
fn backed_off(interval: Duration, failures: u32) -> Duration {
    let doubled = interval.saturating_mul(1 << failures.clamp(1, 10));
    doubled.min(LONGEST.max(interval))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_cluster_is_asked_less_and_less_often_but_never_given_up() {
        let pause = |failures| backed_off(Duration::from_secs(30), failures).as_secs();
        assert_eq!(
            [pause(1), pause(2), pause(3), pause(4), pause(5), pause(60)],
            [60, 120, 240, 480, 600, 600]
        );
        assert_eq!(backed_off(Duration::from_secs(3600), 9), Duration::from_secs(3600));
    }
}
