//! Counters of each kind over the life of the process, for metrics and `status`.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// What one kind was asked and what it took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Meter {
    /// Calls of the contract's functions; those that were refused unasked are not among them.
    pub calls: u64,
    /// Calls that ended in a fault: a trap, a limit, or an answer that breaks the contract.
    pub faults: u64,
    /// Calls that were not made, since the kind had used up its time in that cycle.
    pub refused: u64,
    /// Wall clock of all calls.
    pub time: Duration,
    /// Of the longest call.
    pub longest: Duration,
    /// Work of all calls in fuel, see [`crate::Limits::fuel`].
    pub fuel: u64,
}

/// How compiled code was come by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compilations {
    /// Components that were compiled.
    pub compiled: u64,
    /// Components whose code came from the cache.
    pub cached: u64,
    /// Wall clock of compiling.
    pub time: Duration,
}

/// The meters of all kinds.
#[derive(Default)]
pub(crate) struct Meters {
    kinds: Mutex<BTreeMap<String, Meter>>,
    compilations: Mutex<Compilations>,
}

impl Meters {
    /// A call that was made.
    pub(crate) fn call(&self, kind: &str, time: Duration, fuel: u64, fault: bool) {
        self.with(kind, |meter| {
            meter.calls += 1;
            meter.faults += u64::from(fault);
            meter.time += time;
            meter.longest = meter.longest.max(time);
            meter.fuel = meter.fuel.saturating_add(fuel);
        });
    }

    /// A call that was not made.
    pub(crate) fn refused(&self, kind: &str) {
        self.with(kind, |meter| meter.refused += 1);
    }

    fn with(&self, kind: &str, change: impl FnOnce(&mut Meter)) {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        change(kinds.entry(kind.to_owned()).or_default());
    }

    /// Code was compiled in this time, or came from the cache.
    pub(crate) fn compiled(&self, time: Option<Duration>) {
        let mut all = self.compilations.lock().unwrap_or_else(PoisonError::into_inner);
        match time {
            Some(time) => {
                all.compiled += 1;
                all.time += time;
            }
            None => all.cached += 1,
        }
    }

    pub(crate) fn all(&self) -> Vec<(String, Meter)> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.iter().map(|(kind, meter)| (kind.clone(), *meter)).collect()
    }

    pub(crate) fn compilations(&self) -> Compilations {
        *self.compilations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
