//! Counts of the whole process for its metrics: calls into kinds.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Calls of one function of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// All.
    pub count: u64,
    /// Those that trapped, met a limit or answered nonsense.
    pub faults: u64,
    /// Wall clock of all.
    pub time: Duration,
}

static CALLS: Mutex<BTreeMap<(String, String), Calls>> = Mutex::new(BTreeMap::new());

/// Calls of this process so far, by kind and function.
pub fn calls() -> BTreeMap<(String, String), Calls> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

pub(crate) fn count(kind: &str, function: &str, fault: bool, took: Duration) {
    let mut all = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (kind.to_owned(), function.to_owned());
    let calls = all.entry(key).or_default();
    calls.count += 1;
    calls.faults += u64::from(fault);
    calls.time += took;
}
