//! Rows of the table, and how time is taken.

use std::time::{Duration, Instant};

/// One line of the table.
pub struct Row {
    /// What was measured.
    pub what: String,
    /// Ours against the measure, or only ours.
    pub figures: String,
    /// The ratio or amount, and the most that it may be.
    pub bound: Option<(f64, f64, &'static str)>,
}

impl Row {
    /// Ours and the measure that it may be at most `bound` times.
    pub fn ratio(what: impl Into<String>, ours: Duration, measure: (&str, Duration), bound: f64) -> Self {
        let ratio = ours.as_secs_f64() / measure.1.as_secs_f64().max(1e-12);
        let figures = format!("{} against {} ({})", time(ours), time(measure.1), measure.0);
        Self { what: what.into(), figures, bound: Some((ratio, bound, "x")) }
    }

    /// An amount with a bound of its own.
    pub fn amount(
        what: impl Into<String>,
        figures: String,
        amount: f64,
        bound: f64,
        unit: &'static str,
    ) -> Self {
        Self { what: what.into(), figures, bound: Some((amount, bound, unit)) }
    }

    /// Worth knowing, without a bound.
    pub fn plain(what: impl Into<String>, figures: impl Into<String>) -> Self {
        Self { what: what.into(), figures: figures.into(), bound: None }
    }

    /// Prints the line; says whether the bound holds.
    pub fn print(&self) -> bool {
        match self.bound {
            None => println!("     {:<58} {}", self.what, self.figures),
            Some((is, most, unit)) => {
                let word = if is <= most { "PASS" } else { "MISS" };
                println!("{word} {:<58} {is:.2}{unit} (at most {most}{unit}): {}", self.what, self.figures);
                return is <= most;
            }
        }
        true
    }
}

/// A time with three digits.
pub fn time(t: Duration) -> String {
    let s = t.as_secs_f64();
    match s {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

/// Runs both alternately and gives the shortest time of each: what else runs on the machine disturbs both alike,
/// and the shortest time least.
pub fn alternate(rounds: usize, mut a: impl FnMut(), mut b: impl FnMut()) -> (Duration, Duration) {
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds {
        best.0 = best.0.min(once(&mut a));
        best.1 = best.1.min(once(&mut b));
    }
    best
}

/// The time of one run.
pub fn once(mut f: impl FnMut()) -> Duration {
    let started = Instant::now();
    f();
    started.elapsed()
}

/// The middle one: for times with threads of two processes in them, the shortest of which is a stroke of luck.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
