//! Mistakes in files, with the line they are on.

use super::{Paint, count};
use crate::args::Color;
use crate::say;
use proxops_model::text::printable;
use proxops_model::{Diagnostic, Severity};
use proxops_repo::Repository;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

/// `validate`
pub fn text(found: &[Diagnostic], repository: &Repository, color: Color) -> anyhow::Result<()> {
    let paint = Paint::new(color);
    let mut out = String::new();
    let mut files: BTreeMap<&str, Option<String>> = BTreeMap::new();
    for d in found {
        let word = match d.severity {
            Severity::Error => paint.red("error"),
            Severity::Warning => paint.yellow("warning"),
            Severity::Info => paint.dim("info"),
        };
        writeln!(
            out,
            "{}: {word}[{}]: {}",
            paint.bold(&printable(&d.location.to_string())),
            d.code,
            printable(&d.message)
        )?;
        let file = files.entry(&d.location.file).or_insert_with(|| repository.text(&d.location.file));
        let line = file.as_ref().and_then(|t| t.lines().nth(d.location.line.checked_sub(1)? as usize));
        let shown = |l: &&str| {
            !l.trim().is_empty() && l.len() <= 200 && !may_hold_secret(&d.location.file, l, repository)
        };
        if let Some(line) = line.filter(shown) {
            let number = d.location.line.to_string();
            let margin = " ".repeat(number.len());
            let caret = " ".repeat(d.location.column.saturating_sub(1) as usize);
            writeln!(out, "{} {}", paint.dim(&format!("{number} |")), printable(&line.replace('\t', " ")))?;
            writeln!(out, "{} {caret}{}", paint.dim(&format!("{margin} |")), paint.red("^"))?;
        }
        if let Some(help) = &d.help {
            writeln!(out, "  help: {}", printable(help))?;
        }
    }
    let (mut errors, mut warnings) = (0, 0);
    for d in found {
        match d.severity {
            Severity::Error => errors += 1,
            Severity::Warning => warnings += 1,
            Severity::Info => {}
        }
    }
    let manifests: usize = repository.clusters.iter().map(|c| c.manifests.len()).sum();
    let what = format!("{} in {}", count(manifests, "manifest"), count(repository.clusters.len(), "cluster"));
    if errors + warnings == 0 {
        writeln!(out, "{what}: all valid")?;
    } else {
        writeln!(out, "{what}: {}, {}", count(errors, "error"), count(warnings, "warning"))?;
    }
    let mut stdout = say::Stdout;
    stdout.write_all(out.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Settings may hold credentials, and people put passwords where they do not belong: such a line is not quoted.
fn may_hold_secret(file: &str, line: &str, repository: &Repository) -> bool {
    let settings = repository.settings.file.as_deref() == Some(file)
        || file == "proxops.yaml"
        || file.ends_with("config.yaml")
        || file.contains(".sops.");
    let lower = line.to_ascii_lowercase();
    settings || ["password", "token", "secret", "private"].iter().any(|word| lower.contains(word))
}
