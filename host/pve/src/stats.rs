//! Counts of the whole process for its metrics: how long requests took, and how they ended.

use crate::class::Class;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the buckets, in seconds.
pub const BOUNDS: [f64; 10] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// A distribution of durations. `buckets[i]` counts those of at most `BOUNDS[i]`, not cumulated.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Histogram {
    /// One for each bound.
    pub buckets: [u64; BOUNDS.len()],
    /// All, those above the last bound too.
    pub count: u64,
    /// In seconds.
    pub sum: f64,
}

impl Histogram {
    /// Counts one.
    pub fn add(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        if let Some(bucket) = self.buckets.iter_mut().zip(BOUNDS).find(|(_, bound)| seconds <= *bound) {
            *bucket.0 += 1;
        }
        self.count += 1;
        self.sum += seconds;
    }
}

/// What is told apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKey {
    /// The cluster's name.
    pub cluster: String,
    /// `GET`, `POST`, `PUT`, `DELETE`.
    pub method: &'static str,
    /// `ok`, or the class of the failure.
    pub class: &'static str,
}

static REQUESTS: Mutex<BTreeMap<RequestKey, Histogram>> = Mutex::new(BTreeMap::new());

/// Requests of this process so far, repetitions included.
pub fn requests() -> BTreeMap<RequestKey, Histogram> {
    REQUESTS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

pub(crate) fn count(cluster: &str, method: &'static str, failure: Option<&Class>, took: Duration) {
    let key = RequestKey { cluster: cluster.to_owned(), method, class: failure.map_or("ok", word) };
    REQUESTS.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().add(took);
}

/// The class as a label. The name of a lock is left out: labels must be few.
fn word(class: &Class) -> &'static str {
    match class {
        Class::Invalid => "invalid",
        Class::Auth => "auth",
        Class::Forbidden => "forbidden",
        Class::NotFound => "not-found",
        Class::Taken => "taken",
        Class::Locked(_) => "locked",
        Class::Busy => "busy",
        Class::Conflict => "conflict",
        Class::Protected => "protected",
        Class::PowerState => "power-state",
        Class::Template => "template",
        Class::Storage => "storage",
        Class::NoSpace => "no-space",
        Class::NoQuorum => "no-quorum",
        Class::HaManaged => "ha-managed",
        Class::NodeUnreachable => "node-unreachable",
        Class::Unsupported => "unsupported",
        Class::NotJson => "not-json",
        Class::UnknownOutcome => "unknown-outcome",
        Class::Connect => "connect",
        Class::Tls => "tls",
        Class::Server => "server",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_first_bucket_that_holds_it() {
        let mut h = Histogram::default();
        for ms in [5, 10, 11, 70_000] {
            h.add(Duration::from_millis(ms));
        }
        assert_eq!((h.buckets[0], h.buckets[1], h.buckets.iter().sum::<u64>(), h.count), (2, 1, 3, 4));
        assert!((h.sum - 70.026).abs() < 1e-9);
    }
}
