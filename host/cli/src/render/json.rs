//! The JSON documents of spec: one on stdout, stable within its version.

use crate::say;
use proxops_model::Diagnostic;
use proxops_model::plan::{ClusterPlan, Summary};
use serde::Serialize;
use std::io::Write as _;

#[derive(Serialize)]
struct PlanDocument<'a> {
    format: &'static str,
    clusters: &'a [ClusterPlan],
    summary: Summary,
}

/// `proxops.diff/v1`
pub fn diff(plans: &[ClusterPlan]) -> anyhow::Result<()> {
    print(&PlanDocument { format: "proxops.diff/v1", clusters: plans, summary: Summary::of(plans) })
}

/// `proxops.apply/v1`
pub fn apply(plans: &[ClusterPlan]) -> anyhow::Result<()> {
    print(&PlanDocument { format: "proxops.apply/v1", clusters: plans, summary: Summary::of(plans) })
}

/// `proxops.validate/v1`
pub fn validate(diagnostics: &[Diagnostic]) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        format: &'static str,
        diagnostics: &'a [Diagnostic],
    }
    print(&Document { format: "proxops.validate/v1", diagnostics })
}

/// Pretty, with a newline at the end.
pub fn print(document: &impl Serialize) -> anyhow::Result<()> {
    let mut out = say::Stdout;
    let mut text = serde_json::to_vec_pretty(document)?;
    text.push(b'\n');
    out.write_all(&text)?;
    out.flush()?;
    Ok(())
}
