//! Progress on stderr: moving lines on a terminal, plain ones elsewhere.

use crate::say;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use proxops_exec::Progress;
use proxops_model::text::printable;
use proxops_model::{Action, Ended, Outcome};
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Progress of one cluster.
pub struct Lines {
    cluster: String,
    bars: Option<MultiProgress>,
    running: Mutex<BTreeMap<String, ProgressBar>>,
}

impl Lines {
    /// `shared` is `Some` on a terminal; see [`terminal`].
    pub fn new(cluster: &str, shared: Option<MultiProgress>) -> Arc<Self> {
        Arc::new(Self { cluster: cluster.to_owned(), bars: shared, running: Mutex::default() })
    }

    fn say(&self, line: &str) {
        let line = printable(line);
        match &self.bars {
            Some(bars) => {
                let _ = bars.println(line);
            }
            None => say::err!("{line}"),
        }
    }

    fn label(&self, action: &Action) -> String {
        let place = match (&action.node, action.vmid) {
            (Some(node), Some(vmid)) => format!(" ({node}, {vmid})"),
            (Some(node), None) => format!(" ({node})"),
            _ => String::new(),
        };
        format!("{}: {} {}/{}{place}", self.cluster, action.verb, action.kind, action.name)
    }
}

/// Bars for all clusters, if stderr is a terminal.
pub fn terminal() -> Option<MultiProgress> {
    std::io::stderr().is_terminal().then(MultiProgress::new)
}

impl Progress for Lines {
    fn started(&self, action: &Action) {
        let label = printable(&self.label(action));
        let Some(bars) = &self.bars else { return };
        let bar = bars.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(label);
        bar.enable_steady_tick(Duration::from_millis(120));
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(action.id.clone(), bar);
    }

    fn step(&self, action: &Action, text: &str, _upid: Option<&str>) {
        let line = printable(&format!("{}: {text}", self.label(action)));
        match self.running.lock().unwrap_or_else(PoisonError::into_inner).get(&action.id) {
            Some(bar) => bar.set_message(line),
            None => tracing::debug!("{line}"),
        }
    }

    fn finished(&self, action: &Action, ended: &Ended) {
        if let Some(bar) = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&action.id) {
            bar.finish_and_clear();
        }
        let word = match ended.result {
            Outcome::Ok => format!("ok ({:.1} s)", ended.duration_ms as f64 / 1000.0),
            Outcome::Failed => "failed".to_owned(),
            Outcome::Deferred => "deferred".to_owned(),
            Outcome::NotStarted => "not started".to_owned(),
        };
        let why = ended.error.as_ref().map(|e| format!(": {e}")).unwrap_or_default();
        self.say(&format!("{}: {word}{why}", self.label(action)));
        for warning in &ended.warnings {
            self.say(&format!("    warning: {warning}"));
        }
    }
}

/// Progress of an adopt: how much of a cluster is read.
pub struct Reading {
    cluster: String,
    bar: ProgressBar,
    /// Without a terminal there are plain lines, for what takes long only.
    plain: bool,
}

impl Reading {
    /// A bar on a terminal, lines elsewhere.
    pub fn new(cluster: &str) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let bar = if plain { ProgressBar::hidden() } else { ProgressBar::new(0) };
        Self { cluster: cluster.to_owned(), bar, plain }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl proxops_adopt::Progress for Reading {
    fn begin(&self, guests: usize) {
        let what = printable(&format!("{}: reading {guests} guests", self.cluster));
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {elapsed}") {
            self.bar.set_style(style);
        }
        self.bar.set_length(guests as u64);
        self.bar.set_message(what.clone());
        if self.plain {
            say::err!("{what}");
        }
    }

    fn read(&self) {
        self.bar.inc(1);
        let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
        if self.plain && all >= 500 && done.is_multiple_of((all / 10).max(1)) {
            say::err!("{}", printable(&format!("{}: {done} of {all} read", self.cluster)));
        }
    }
}
