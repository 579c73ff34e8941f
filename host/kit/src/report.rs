//! What the kit found, for people (lines in the manner of TAP) and as JSON.

use proxops_model::text::printable;
use serde::Serialize;
use std::fmt;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// As it should be.
    Ok,
    /// The kind breaks a rule.
    Failed,
    /// Could not be tried.
    Skipped,
}

/// One check of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Short name, stable.
    pub name: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// What was done, in a few words with numbers.
    pub summary: String,
    /// What is wrong, one sentence each.
    pub problems: Vec<String>,
    /// What a person should know: parts that could not be tried.
    pub notes: Vec<String>,
}

impl Check {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, outcome: Outcome::Ok, summary: String::new(), problems: Vec::new(), notes: Vec::new() }
    }

    pub(crate) fn problem(&mut self, text: impl Into<String>) {
        self.outcome = Outcome::Failed;
        self.problems.push(text.into());
    }

    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub(crate) fn done(mut self, summary: impl Into<String>) -> Self {
        self.summary = summary.into();
        self
    }

    pub(crate) fn skipped(name: &'static str, why: impl Into<String>) -> Self {
        Self { outcome: Outcome::Skipped, ..Self::new(name) }.done(why)
    }
}

/// All checks of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The kind, unless the component could not say it.
    pub kind: Option<String>,
    /// The component's version.
    pub version: Option<String>,
    /// "built-in" or the file.
    pub origin: String,
    /// In the order in which they ran.
    pub checks: Vec<Check>,
    /// Fuel of the heaviest call.
    pub fuel_high_water: u64,
    /// Milliseconds of the longest call. Not the same in every run.
    pub ms_high_water: u64,
}

impl Report {
    /// No check failed.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.outcome != Outcome::Failed)
    }
}

/// TAP: a plan, then one line a check and a diagnostic line for each problem and note.
pub struct Tap<'a>(
    /// The reports.
    pub &'a [Report],
);

impl fmt::Display for Tap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "TAP version 14")?;
        writeln!(f, "1..{}", self.0.iter().map(|r| r.checks.len()).sum::<usize>())?;
        let mut number = 0;
        for report in self.0 {
            let kind = report.kind.as_deref().unwrap_or("unknown kind");
            let version = report.version.as_deref().unwrap_or("-");
            writeln!(f, "# {} {} ({})", printable(kind), printable(version), printable(&report.origin))?;
            for check in &report.checks {
                number += 1;
                let (word, skip) = match check.outcome {
                    Outcome::Ok => ("ok", ""),
                    Outcome::Failed => ("not ok", ""),
                    Outcome::Skipped => ("ok", "# SKIP "),
                };
                writeln!(f, "{word} {number} - {kind} {}: {skip}{}", check.name, line(&check.summary))?;
                for problem in &check.problems {
                    writeln!(f, "#   {}", line(problem))?;
                }
                for note in &check.notes {
                    writeln!(f, "#   note: {}", line(note))?;
                }
            }
            if report.fuel_high_water > 0 {
                writeln!(
                    f,
                    "# heaviest call: fuel {}, longest call: {} ms",
                    report.fuel_high_water, report.ms_high_water
                )?;
            }
        }
        Ok(())
    }
}

/// One line, whatever the text holds.
fn line(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}
