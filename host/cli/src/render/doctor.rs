//! What `doctor` found.

use super::Paint;
use crate::args::Color;
use crate::say;
use proxops_daemon::{Check, CheckState};
use proxops_model::Diagnostic;
use proxops_model::text::printable;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;

/// `proxops.doctor/v1`
pub fn json(checks: &[Check]) -> anyhow::Result<()> {
    super::json::print(&json!({"format": "proxops.doctor/v1", "checks": checks}))
}

/// One line a check, what to do below it; then the errors that concern every cluster, if no cluster could be looked at.
pub fn text<'a>(
    checks: &[Check],
    errors: impl Iterator<Item = &'a Diagnostic>,
    color: Color,
) -> anyhow::Result<()> {
    let paint = Paint::new(color);
    let mut out = String::new();
    let mut cluster = "";
    for check in checks {
        if check.cluster != cluster {
            cluster = &check.cluster;
            writeln!(out, "{}", paint.bold(&format!("cluster {}", printable(cluster))))?;
        }
        let word = match check.state {
            CheckState::Ok => paint.green("ok  "),
            CheckState::Warn => paint.yellow("warn"),
            CheckState::Fail => paint.red("fail"),
        };
        writeln!(out, "  {word} {:<11} {}", check.check, printable(&check.message))?;
        if let Some(help) = &check.help {
            writeln!(out, "                   {}", paint.dim(&format!("help: {}", printable(help))))?;
        }
    }
    if checks.is_empty() {
        for error in errors {
            writeln!(out, "{}", printable(&error.to_string()))?;
        }
    }
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    writeln!(
        out,
        "{} ok, {} to look at, {} in the way",
        count(CheckState::Ok),
        count(CheckState::Warn),
        count(CheckState::Fail)
    )?;
    let mut stdout = say::Stdout;
    stdout.write_all(out.as_bytes())?;
    stdout.flush()?;
    Ok(())
}
