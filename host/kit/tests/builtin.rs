//! The kit over the kinds inside the binary.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use proxops_kinds::{Kinds, Limits, Sources};
use proxops_kit::{Outcome, Tap, test};
use std::time::Duration;

/// Time is no measure on a busy machine; fuel is.
fn kinds() -> Kinds {
    let limits =
        Limits { deadline: Duration::from_secs(60), compile: Duration::from_secs(600), ..Limits::standard() };
    Kinds::load(&Sources::builtin(), limits, None).unwrap()
}

#[test]
fn every_built_in_kind_passes_every_check() {
    let kinds = kinds();
    let reports: Vec<_> = kinds.list().iter().map(|listing| test(&kinds, listing)).collect();
    println!("{}", Tap(&reports));
    assert_eq!(reports.len(), 7);
    for report in &reports {
        assert!(report.passed(), "\n{}", Tap(std::slice::from_ref(report)));
        let skipped: Vec<_> =
            report.checks.iter().filter(|c| c.outcome == Outcome::Skipped).map(|c| c.name).collect();
        let artifact = ["ISO", "CTTemplate", "DiskImage"].contains(&report.kind.as_deref().unwrap());
        assert_eq!(skipped, if artifact { vec!["keys"] } else { vec![] }, "{:?}", report.kind);
    }
}
