//! What Prometheus reads. Counters live here; gauges are read off the board when they are asked for, so that a
//! cluster or kind that is gone leaves no line behind.

use super::board::{Board, ClusterBoard, CycleRecord, Phase};
use jiff::Timestamp;
use proxops_model::Severity;
use proxops_model::plan::ClusterState;
use proxops_pve::stats::{BOUNDS, Histogram};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Counters of the daemon.
#[derive(Debug, Default)]
pub struct Metrics {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// By cluster and result.
    cycles: BTreeMap<(String, &'static str), u64>,
    /// Whole cycles, by cluster.
    durations: BTreeMap<String, Histogram>,
    /// Reading and planning alone, by cluster.
    planning: BTreeMap<String, Histogram>,
    /// By cluster, verb and result.
    actions: BTreeMap<(String, &'static str, &'static str), u64>,
    /// By what became of them.
    webhooks: BTreeMap<&'static str, u64>,
    /// By status code.
    http: BTreeMap<u16, u64>,
    /// By event and result.
    notified: BTreeMap<(&'static str, &'static str), u64>,
}

impl Metrics {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cycle ended.
    pub(crate) fn cycle(&self, cluster: &str, record: &CycleRecord, planning: Duration) {
        let result = match (record.state, record.failed) {
            (ClusterState::Aborted, _) => "aborted",
            (ClusterState::Ok, 0) => "ok",
            (ClusterState::Ok, _) => "failed",
        };
        let mut counts = self.lock();
        // A rate needs a counter's zero before its first one.
        for known in ["ok", "failed", "aborted"] {
            counts.cycles.entry((cluster.to_owned(), known)).or_default();
        }
        *counts.cycles.entry((cluster.to_owned(), result)).or_default() += 1;
        let took = Duration::from_millis(record.duration_ms);
        counts.durations.entry(cluster.to_owned()).or_default().add(took);
        counts.planning.entry(cluster.to_owned()).or_default().add(planning);
    }

    /// An action ended.
    pub(crate) fn action(&self, cluster: &str, verb: &'static str, result: &'static str) {
        *self.lock().actions.entry((cluster.to_owned(), verb, result)).or_default() += 1;
    }

    /// Somebody called the webhook.
    pub(crate) fn webhook(&self, result: &'static str) {
        *self.lock().webhooks.entry(result).or_default() += 1;
    }

    /// A request was answered.
    pub(crate) fn http(&self, status: u16) {
        *self.lock().http.entry(status).or_default() += 1;
    }

    /// The operator's webhook or the git server was called.
    pub(crate) fn notified(&self, event: &'static str, result: &'static str) {
        *self.lock().notified.entry((event, result)).or_default() += 1;
    }

    /// The text format, version 0.0.4.
    pub fn render(&self, board: &Board) -> String {
        let mut page = Page::default();
        page.family("proxops_build_info", "gauge", "The version that runs.");
        page.line("proxops_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        page.family("proxops_start_time_seconds", "gauge", "When the daemon started, Unix time.");
        page.line("proxops_start_time_seconds", &[], seconds(board.started));
        tree(&mut page, board);
        clusters(&mut page, &board.clusters());
        self.counters(&mut page);
        requests(&mut page);
        kinds(&mut page);
        process(&mut page);
        page.0
    }

    fn counters(&self, page: &mut Page) {
        let counts = self.lock();
        page.family(
            "proxops_cycles_total",
            "counter",
            "Cycles that ended, by result: ok, failed (an action failed), aborted.",
        );
        for ((cluster, result), n) in &counts.cycles {
            page.line("proxops_cycles_total", &[("cluster", cluster), ("result", result)], *n as f64);
        }
        page.family("proxops_cycle_duration_seconds", "histogram", "Whole cycles.");
        for (cluster, histogram) in &counts.durations {
            page.histogram("proxops_cycle_duration_seconds", &[("cluster", cluster)], histogram);
        }
        page.family("proxops_plan_duration_seconds", "histogram", "Reading and planning, without execution.");
        for (cluster, histogram) in &counts.planning {
            page.histogram("proxops_plan_duration_seconds", &[("cluster", cluster)], histogram);
        }
        page.family("proxops_actions_total", "counter", "Actions that ended, by verb and result.");
        for ((cluster, verb, result), n) in &counts.actions {
            let labels = [("cluster", cluster.as_str()), ("verb", *verb), ("result", *result)];
            page.line("proxops_actions_total", &labels, *n as f64);
        }
        page.family(
            "proxops_webhook_requests_total",
            "counter",
            "Calls of /webhook, by what became of them.",
        );
        for (result, n) in &counts.webhooks {
            page.line("proxops_webhook_requests_total", &[("result", result)], *n as f64);
        }
        page.family("proxops_http_responses_total", "counter", "Answers of the HTTP server, by status.");
        for (status, n) in &counts.http {
            page.line("proxops_http_responses_total", &[("code", &status.to_string())], *n as f64);
        }
        page.family(
            "proxops_notifications_total",
            "counter",
            "Calls of notify.url and commit-status.url, by event and result.",
        );
        for ((event, result), n) in &counts.notified {
            page.line("proxops_notifications_total", &[("event", event), ("result", result)], *n as f64);
        }
    }
}

fn tree(page: &mut Page, board: &Board) {
    let Some(tree) = board.tree() else { return };
    page.family("proxops_tree_stale", "gauge", "1 while the tree or configuration is older than its source.");
    page.line("proxops_tree_stale", &[], f64::from(u8::from(tree.stale.is_some())));
    page.family("proxops_tree_stale_seconds", "gauge", "For how long it has been so.");
    let age = tree.stale_since.map_or(0.0, |since| (seconds(Timestamp::now()) - seconds(since)).max(0.0));
    page.line("proxops_tree_stale_seconds", &[], age);
    page.family(
        "proxops_tree_read_timestamp_seconds",
        "gauge",
        "When files or source were last read, Unix time.",
    );
    page.line("proxops_tree_read_timestamp_seconds", &[], seconds(tree.read_at));
}

fn clusters(page: &mut Page, clusters: &BTreeMap<String, ClusterBoard>) {
    type Gauge = (&'static str, &'static str, fn(&ClusterBoard) -> Option<f64>);
    const GAUGES: &[Gauge] = &[
        ("proxops_cluster_up", "1 if the last cycle could be planned.", |c| {
            Some(f64::from(u8::from(c.cycles.front()?.state == ClusterState::Ok)))
        }),
        (
            "proxops_cluster_converged",
            "1 if the last cycle found nothing to do and nothing to look at.",
            |c| Some(f64::from(u8::from(c.found.as_ref()?.status.last_cycle.clean))),
        ),
        ("proxops_cluster_suspended", "1 while the cluster is suspended.", |c| {
            Some(f64::from(u8::from(c.phase == Phase::Suspended)))
        }),
        ("proxops_cluster_failures", "Cycles in a row that could not be planned.", |c| {
            Some(f64::from(c.failures))
        }),
        ("proxops_last_cycle_timestamp_seconds", "When the last cycle ended, Unix time.", |c| {
            Some(seconds(c.cycles.front()?.ended_at))
        }),
        ("proxops_actions_running", "Actions that run.", |c| Some(c.running.len() as f64)),
        ("proxops_actions_queued", "Actions that wait for their turn.", |c| Some(c.queued as f64)),
        ("proxops_pending_changes", "Values that PVE holds back until a guest restarts.", |c| {
            Some(c.found.as_ref()?.plan.pending.len() as f64)
        }),
    ];
    for (name, help, value) in GAUGES {
        page.family(name, "gauge", help);
        for (cluster, board) in clusters {
            if let Some(value) = value(board) {
                page.line(name, &[("cluster", cluster)], value);
            }
        }
    }
    page.family("proxops_objects", "gauge", "Objects, by state.");
    for (cluster, board) in clusters {
        let mut by: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for o in board.found.iter().flat_map(|f| &f.status.objects) {
            *by.entry((&o.kind, &o.state)).or_default() += 1;
        }
        for ((kind, state), n) in by {
            page.line("proxops_objects", &[("cluster", cluster), ("kind", kind), ("state", state)], n as f64);
        }
    }
    page.family(
        "proxops_drift",
        "gauge",
        "Objects that the last cycle found different from their manifests.",
    );
    for (cluster, board) in clusters {
        let mut by: BTreeMap<&str, u64> = BTreeMap::new();
        for a in board.found.iter().flat_map(|f| &f.plan.actions) {
            *by.entry(&a.kind).or_default() += 1;
        }
        for (kind, n) in by {
            page.line("proxops_drift", &[("cluster", cluster), ("kind", kind)], n as f64);
        }
    }
    page.family("proxops_anomalies", "gauge", "What a person must look at, without those of severity info.");
    for (cluster, board) in clusters {
        let mut by: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        let anomalies = board.found.iter().flat_map(|f| &f.plan.anomalies);
        for a in anomalies.filter(|a| a.severity != Severity::Info) {
            *by.entry((&a.kind, &a.code)).or_default() += 1;
        }
        for ((kind, code), n) in by {
            page.line("proxops_anomalies", &[("cluster", cluster), ("kind", kind), ("code", code)], n as f64);
        }
    }
}

fn requests(page: &mut Page) {
    const NAME: &str = "proxops_pve_request_duration_seconds";
    page.family(NAME, "histogram", "Requests to PVE, by method and class: ok, or the class of the failure.");
    for (key, histogram) in proxops_pve::stats::requests() {
        let labels = [("cluster", key.cluster.as_str()), ("method", key.method), ("class", key.class)];
        page.histogram(NAME, &labels, &histogram);
    }
}

fn kinds(page: &mut Page) {
    let calls = proxops_kinds::stats::calls();
    page.family("proxops_kind_calls_total", "counter", "Calls into kinds, by function and result.");
    for ((kind, function), calls) in &calls {
        for (result, n) in [("ok", calls.count - calls.faults), ("fault", calls.faults)] {
            let labels = [("kind", kind.as_str()), ("function", function.as_str()), ("result", result)];
            page.line("proxops_kind_calls_total", &labels, n as f64);
        }
    }
    page.family("proxops_kind_call_seconds_total", "counter", "Time spent in kinds.");
    for ((kind, function), calls) in &calls {
        let labels = [("kind", kind.as_str()), ("function", function.as_str())];
        page.line("proxops_kind_call_seconds_total", &labels, calls.time.as_secs_f64());
    }
}

/// What every process shows of itself, under the usual names.
fn process(page: &mut Page) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse::<f64>().ok()
    };
    if let Some(kib) = field("VmRSS") {
        page.family("process_resident_memory_bytes", "gauge", "Resident memory.");
        page.line("process_resident_memory_bytes", &[], kib * 1024.0);
    }
    if let Some(threads) = field("Threads") {
        page.family("process_threads", "gauge", "Threads.");
        page.line("process_threads", &[], threads);
    }
    // Fields 14 and 15, in ticks of 1/100 s, after the name in parentheses.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    let ticks: Vec<f64> = after.split_whitespace().skip(11).take(2).filter_map(|f| f.parse().ok()).collect();
    if let [user, system] = ticks.as_slice() {
        page.family("process_cpu_seconds_total", "counter", "Processor time.");
        page.line("process_cpu_seconds_total", &[], (user + system) / 100.0);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        page.family("process_open_fds", "gauge", "Open files.");
        page.line("process_open_fds", &[], open.count() as f64);
    }
}

fn seconds(at: Timestamp) -> f64 {
    at.as_millisecond() as f64 / 1000.0
}

/// The text as it grows.
#[derive(Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        if !labels.is_empty() {
            self.0.push('{');
            for (i, (key, value)) in labels.iter().enumerate() {
                let comma = if i == 0 { "" } else { "," };
                let _ = write!(self.0, "{comma}{key}=\"{}\"", escape(value));
            }
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let mut below = 0;
        let bucket = format!("{name}_bucket");
        let bounds = BOUNDS.iter().zip(histogram.buckets).map(|(bound, n)| (bound.to_string(), n));
        for (bound, n) in bounds {
            below += n;
            let with: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.line(&bucket, &with, below as f64);
        }
        let with: Vec<(&str, &str)> = labels.iter().copied().chain([("le", "+Inf")]).collect();
        self.line(&bucket, &with, histogram.count as f64);
        self.line(&format!("{name}_sum"), labels, histogram.sum);
        self.line(&format!("{name}_count"), labels, histogram.count as f64);
    }
}

/// A label's value: names come from files of the repository.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_cumulated_and_ends_with_everything() {
        let mut histogram = Histogram::default();
        for ms in [1, 300, 90_000] {
            histogram.add(Duration::from_millis(ms));
        }
        let mut page = Page::default();
        page.histogram("x", &[("c", "a")], &histogram);
        assert!(page.0.contains("x_bucket{c=\"a\",le=\"0.01\"} 1\n"), "{}", page.0);
        assert!(page.0.contains("x_bucket{c=\"a\",le=\"0.5\"} 2\n"), "{}", page.0);
        assert!(page.0.contains("x_bucket{c=\"a\",le=\"60\"} 2\n"), "{}", page.0);
        assert!(
            page.0.contains("x_bucket{c=\"a\",le=\"+Inf\"} 3\nx_sum{c=\"a\"} 90.301\nx_count{c=\"a\"} 3\n")
        );
    }

    #[test]
    fn a_label_can_not_start_a_line_of_its_own() {
        let mut page = Page::default();
        page.line("x", &[("name", "a\"} 1\ny{z=\"\\")], 2.0);
        assert_eq!(page.0, "x{name=\"a\\\"} 1\\ny{z=\\\"\\\\\"} 2\n");
    }
}
