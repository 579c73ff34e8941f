//! What the built-in components weigh: size, compiling, reading the compiled code.

use crate::report::{Row, once, time};
use anyhow::Result;
use proxops_kinds::{Kinds, Limits, Sources};
use std::time::Duration;

/// One row for each component, and one for all.
pub fn rows() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let sources = Sources { builtin: true, ..Sources::default() };
    let load = || Kinds::load(&sources, Limits::standard(), Some(folder.path()));
    let mut rows = Vec::new();
    let (mut all_cold, mut all_warm) = (Duration::ZERO, Duration::ZERO);
    for listing in load()?.list() {
        let (Some(kind), Some(size), Some(digest)) = (listing.kind, listing.size, listing.digest) else {
            continue;
        };
        let cold = load()?;
        let cold = once(|| cold.prepare([kind.as_str()]));
        let mut warm = Duration::MAX;
        for _ in 0..5 {
            let kinds = load()?;
            warm = warm.min(once(|| kinds.prepare([kind.as_str()])));
        }
        let code = std::fs::metadata(folder.path().join(format!("{digest}.code"))).map_or(0, |m| m.len());
        let figures = format!(
            "{} KB, compiled in {}; {} KB of machine code, read in {}",
            size / 1024,
            time(cold),
            code / 1024,
            time(warm)
        );
        rows.push(Row::plain(format!("built-in kind {kind}"), figures));
        (all_cold, all_warm) = (all_cold + cold, all_warm + warm);
    }
    let mut start = Duration::MAX;
    for _ in 0..5 {
        start = start.min(once(|| drop(load())));
    }
    rows.push(Row::plain(
        "all built-in kinds, one after the other",
        format!("compiled in {}, read in {}", time(all_cold), time(all_warm)),
    ));
    rows.push(Row::plain("engine and descriptions of all built-in kinds", time(start)));
    Ok(rows)
}
