//! The convergence table.

use super::Paint;
use crate::args::Color;
use crate::say;
use comfy_table::{ContentArrangement, Table, presets};
use proxops_daemon::ClusterStatus;
use proxops_model::plan::ClusterState;
use proxops_model::text::printable;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write as _;

/// `proxops.status/v1`
pub fn json(clusters: &[ClusterStatus]) -> anyhow::Result<()> {
    super::json::print(&json!({"format": "proxops.status/v1", "clusters": clusters}))
}

/// One table a cluster; `paused` says of clusters that they are suspended.
pub fn text(
    clusters: &[ClusterStatus],
    paused: &BTreeMap<String, String>,
    color: Color,
) -> anyhow::Result<()> {
    let paint = Paint::new(color);
    let mut out = say::Stdout;
    for c in clusters {
        let commit: String = c.commit.as_deref().unwrap_or("no commit").chars().take(10).collect();
        let word = match (c.last_cycle.state, c.last_cycle.clean) {
            (ClusterState::Aborted, _) => paint.red("aborted"),
            (_, true) => paint.green("converged"),
            (_, false) => paint.yellow("not converged"),
        };
        let name = paint.bold(&format!("cluster {}", printable(&c.cluster)));
        let paused = paused.get(&c.cluster).map(|why| format!("{}; ", paint.yellow(&printable(why))));
        writeln!(out, "{name} ({commit}): {}{word}", paused.unwrap_or_default())?;
        if let Some(error) = &c.last_cycle.error {
            writeln!(out, "{}", printable(error))?;
        }
        if !c.objects.is_empty() {
            let mut table = table(&["KIND", "NAME", "NODE", "VMID", "STATE", "LAST ACTION", "WHEN", "WHY"]);
            for o in &c.objects {
                table.add_row(vec![
                    printable(&o.kind),
                    printable(&o.name),
                    printable(o.node.as_deref().unwrap_or("-")),
                    o.vmid.map_or_else(|| "-".to_owned(), |v| v.to_string()),
                    printable(&o.state),
                    printable(o.last_action.as_deref().unwrap_or("-")),
                    printable(o.updated_at.as_deref().unwrap_or("-")),
                    printable(o.reason.as_deref().or(o.last_error.as_deref()).unwrap_or("")),
                ]);
            }
            writeln!(out, "{table}")?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Plain columns that fit the terminal.
pub fn table(heads: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(heads);
    table
}
