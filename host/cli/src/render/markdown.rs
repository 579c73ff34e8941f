//! A plan for a pull request.

use crate::say;
use proxops_model::Severity;
use proxops_model::plan::{ClusterPlan, Summary, Verb};
use proxops_model::text::printable;
use std::fmt::Write as _;
use std::io::Write as _;

/// `diff -o markdown`
pub fn diff(plans: &[ClusterPlan]) -> anyhow::Result<()> {
    let mut out = String::new();
    for plan in plans {
        writeln!(out, "### Cluster {}\n", cell(&plan.cluster))?;
        if let Some(error) = &plan.error {
            writeln!(out, "**Aborted**\n\n```\n{}\n```\n", printable(error).replace("```", "'''"))?;
            continue;
        }
        if plan.is_clean() {
            writeln!(out, "Converged, nothing to do.\n")?;
            continue;
        }
        if !plan.actions.is_empty() {
            writeln!(out, "| action | resource | where | changes |\n|---|---|---|---|")?;
        }
        for a in &plan.actions {
            let place = [a.node.clone(), a.vmid.map(|v| v.to_string())]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" ");
            let show = |v: &Option<String>| v.as_ref().map_or_else(|| "(not set)".to_owned(), |v| cell(v));
            let changes: Vec<String> = a
                .changes
                .iter()
                .map(|c| match &c.from {
                    None => format!("`{}`: {}", cell(&c.key), show(&c.to)),
                    from => format!("`{}`: {} → {}", cell(&c.key), show(from), show(&c.to)),
                })
                .collect();
            let verb = match (a.verb, a.disruptive) {
                (Verb::Delete, _) => ":warning: **DELETE**".to_owned(),
                (verb, true) => format!("**{verb}** (disruptive)"),
                (verb, false) => verb.to_string(),
            };
            writeln!(
                out,
                "| {verb} | {}/{} | {} | {} |",
                cell(&a.kind),
                cell(&a.name),
                cell(&place),
                changes.join("<br>")
            )?;
        }
        if !plan.actions.is_empty() {
            writeln!(out)?;
        }
        for a in plan.anomalies.iter().filter(|a| a.severity != Severity::Info) {
            writeln!(
                out,
                "- anomaly `{}` {}/{}: {}",
                cell(&a.code),
                cell(&a.kind),
                cell(&a.name),
                cell(&a.message)
            )?;
        }
        for (word, list) in
            [("unknown", &plan.unknown), ("deferred", &plan.deferred), ("skipped", &plan.skipped)]
        {
            for n in list {
                writeln!(out, "- {word} {}/{}: {}", cell(&n.kind), cell(&n.name), cell(&n.why))?;
            }
        }
        for p in &plan.pending {
            writeln!(
                out,
                "- pending {}/{}: `{}` waits for a restart",
                cell(&p.kind),
                cell(&p.name),
                cell(&p.key)
            )?;
        }
        writeln!(out)?;
    }
    let s = Summary::of(plans);
    writeln!(
        out,
        "{} to create, {} to update, {} to delete, {} to download, {} anomalies.",
        s.create, s.update, s.delete, s.download, s.anomalies
    )?;
    let mut stdout = say::Stdout;
    stdout.write_all(out.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Text that can't leave its table cell.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in printable(text).chars() {
        match c {
            '\n' => out.push_str("<br>"),
            '|' | '<' | '>' | '`' | '*' | '_' | '[' | ']' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
