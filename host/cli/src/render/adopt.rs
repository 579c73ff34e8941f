//! What came of an adopt: a summary for people, one document for programs.

use super::{Paint, count};
use crate::args::Color;
use crate::say;
use proxops_adopt::{Noted, Report, SCHEMAS};
use proxops_model::text::printable;
use proxops_repo::Repository;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write as _;

/// `proxops.adopt/v1`
pub fn json(report: &Report) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        format: &'static str,
        #[serde(flatten)]
        report: &'a Report,
    }
    super::json::print(&Document { format: "proxops.adopt/v1", report })
}

/// Files, then what a person must know of each, then what to do next.
pub fn text(report: &Report, repository: &Repository, color: Color) -> anyhow::Result<()> {
    let paint = Paint::new(color);
    let mut out = String::new();
    let verb = if report.dry_run { "would be written" } else { "written" };
    for file in &report.written {
        writeln!(out, "{} {}", paint.green("+"), printable(file))?;
    }
    if !report.incomplete.is_empty() {
        writeln!(out, "\n{} (needed only to make the object anew):", paint.bold("INCOMPLETE, to fill in"))?;
        for hole in &report.incomplete {
            let field = hole.field.trim_start_matches('/').replace('/', ".");
            writeln!(out, "  {}: {}: {}", printable(&hole.file), paint.yellow(&field), printable(&hole.why))?;
        }
    }
    if !report.gaps.is_empty() {
        writeln!(out, "\n{} (PVE keeps them as they are):", paint.bold("Gaps, which no manifest describes"))?;
        for gap in &report.gaps {
            let value = gap.value.as_deref().map_or_else(|| "(redacted)".to_owned(), short);
            let key = paint.yellow(&printable(&gap.key));
            writeln!(
                out,
                "  {}: {key}: {} ({})",
                printable(&gap.file),
                printable(&value),
                printable(&gap.why)
            )?;
        }
    }
    noted(&mut out, paint, "Skipped", &report.skipped)?;
    noted(&mut out, paint, "To look at", &report.noted)?;
    for name in &report.new_keys {
        let verb = if report.dry_run { "would be added" } else { "added" };
        writeln!(out, "\n{verb} to the secrets document: {}", printable(name))?;
    }
    if report.masked_secrets > 0 {
        writeln!(
            out,
            "\n{}: PVE masks them, so no manifest holds them, and they stay as they are.",
            count(report.masked_secrets as usize, "password")
        )?;
    }
    if !report.resources.is_empty() {
        let file = format!("clusters/{}/resources.yaml", report.cluster);
        writeln!(out, "\nTo add to {}, below `resources:`", paint.bold(&printable(&file)))?;
        writeln!(out, "(in place of the `[]`, if it has one), then `proxops diff`:\n")?;
        for line in &report.resources {
            writeln!(out, "{}", printable(line))?;
        }
        writeln!(out)?;
    }
    if !report.written.is_empty() && !repository.root.join(SCHEMAS).is_dir() {
        writeln!(
            out,
            "hint: `proxops schema --all {SCHEMAS}` at the repository's root gives editors the fields."
        )?;
    }
    writeln!(
        out,
        "{}: {} {verb}, {}, {} incomplete, {} skipped. Nothing was written to PVE.",
        printable(&report.cluster),
        count(report.written.len(), "manifest"),
        count(report.gaps.len(), "gap"),
        report.incomplete.len(),
        report.skipped.len()
    )?;
    let mut stdout = say::Stdout;
    stdout.write_all(out.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

fn noted(out: &mut String, paint: Paint, title: &str, list: &[Noted]) -> anyhow::Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}:", paint.bold(title))?;
    for n in list {
        let place = match (&n.node, n.vmid) {
            (Some(node), Some(vmid)) => format!(" ({node}, {vmid})"),
            (Some(node), None) => format!(" ({node})"),
            _ => String::new(),
        };
        writeln!(
            out,
            "  {}{}: {}",
            printable(format!("{} {}", n.kind, n.name).trim_end()),
            printable(&place),
            printable(&n.why)
        )?;
    }
    Ok(())
}

/// Long and many-lined values on one line.
fn short(value: &str) -> String {
    let line = value.replace('\n', "\\n");
    match line.char_indices().nth(120) {
        Some((cut, _)) => format!("{}...", line.get(..cut).unwrap_or_default()),
        None => line,
    }
}
