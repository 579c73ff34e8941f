//! Whether a component is a good kind: the conformance kit (`proxops kinds test`).
//!
//! [`test()`] takes what is known of a file and asks the kind itself: its description, its examples, every
//! field of its schema, and much that no honest host would send. Objects are made in the simulator, in
//! this process, without HTTP. Same component, same report, but for the time of the longest call.
//!
//! A schema keyword is for the kit alone: `"x-compared": false` on a field that `drift` does not compare,
//! because it matters only when the object is made, or steers the host.

mod cluster;
mod determinism;
mod hostile;
mod keys;
mod life;
mod manifest;
mod mutate;
mod mutation;
mod report;
pub mod schema;
mod shape;
#[cfg(test)]
mod tests;

pub use report::{Check, Outcome, Report, Tap};

use crate::determinism::Recorder;
use crate::life::Made;
use proxops_kinds::{KindListing, Kinds};
use proxops_model::kind::KindSet;

/// Runs all checks on one component. Kinds that its examples refer to must be loaded too.
pub fn test(kinds: &Kinds, listing: &KindListing) -> Report {
    let mut report = Report {
        kind: listing.kind.clone(),
        version: listing.version.clone(),
        origin: listing.origin.clone(),
        checks: vec![shape::component(listing)],
        fuel_high_water: 0,
        ms_high_water: 0,
    };
    let session = kinds.session();
    let Some(kind) =
        listing.kind.as_deref().filter(|_| listing.error.is_none()).and_then(|name| session.get(name))
    else {
        return report;
    };
    let info = kind.info();
    report.checks.push(shape::describe(kinds, info));
    report.checks.push(shape::schema(info));
    let recorder = Recorder::new(kind);
    let (examples, valid) = life::examples(&recorder);
    report.checks.push(examples);
    let (created, made): (Check, Vec<Made>) = life::create(&session, &recorder, &valid);
    report.checks.push(created);
    report.checks.push(life::adopt(&recorder, &made));
    report.checks.push(mutation::check(&session, &recorder, &made));
    report.checks.push(keys::check(&recorder, &made));
    report.checks.push(determinism::check(kinds, &recorder));
    report.checks.push(hostile::check(kind, &valid, &made));
    let most = session.high_water(&info.kind);
    report.fuel_high_water = most.fuel;
    report.ms_high_water = u64::try_from(most.time.as_millis()).unwrap_or(u64::MAX);
    report
}
