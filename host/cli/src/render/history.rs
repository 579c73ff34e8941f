//! The audit trail.

use super::status::table;
use crate::say;
use proxops_exec::HistoryEntry;
use proxops_model::text::printable;
use serde_json::json;
use std::io::Write as _;

/// `proxops.history/v1`
pub fn json(entries: &[HistoryEntry]) -> anyhow::Result<()> {
    let operations: Vec<_> = entries
        .iter()
        .map(|entry| {
            let upids: Vec<&str> = entry.steps.iter().filter_map(|step| step.upid.as_deref()).collect();
            json!({
                "id": entry.id, "cluster": entry.cluster, "commit": entry.commit, "who": entry.actor,
                "action": entry.action, "verb": entry.verb, "kind": entry.kind, "name": entry.name,
                "node": entry.node, "vmid": entry.vmid, "started": entry.started, "finished": entry.finished,
                "result": entry.result, "error": entry.error, "upids": upids,
            })
        })
        .collect();
    super::json::print(&json!({"format": "proxops.history/v1", "operations": operations}))
}

/// One table, newest first; `nothing` is said in place of an empty one.
pub fn text(entries: &[HistoryEntry], nothing: &str) -> anyhow::Result<()> {
    let mut out = say::Stdout;
    if entries.is_empty() {
        writeln!(out, "{}", printable(nothing))?;
        return Ok(());
    }
    let mut table =
        table(&["STARTED", "CLUSTER", "WHO", "COMMIT", "WHAT", "NODE", "VMID", "RESULT", "ERROR"]);
    for entry in entries {
        let commit: String = entry.commit.as_deref().unwrap_or("-").chars().take(10).collect();
        table.add_row(vec![
            printable(&entry.started),
            printable(&entry.cluster),
            printable(entry.actor.as_deref().unwrap_or("-")),
            printable(&commit),
            printable(&format!("{} {}/{}", entry.verb, entry.kind, entry.name)),
            printable(entry.node.as_deref().unwrap_or("-")),
            entry.vmid.map_or_else(|| "-".to_owned(), |vmid| vmid.to_string()),
            printable(entry.result.as_deref().unwrap_or("open")),
            printable(entry.error.as_deref().unwrap_or("")),
        ]);
    }
    writeln!(out, "{table}")?;
    out.flush()?;
    Ok(())
}
