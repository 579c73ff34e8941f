//! `history`: the audit trail of this data directory. Reads no repository and asks no cluster.

use super::OK;
use crate::args::{Global, HistoryArgs, Output};
use crate::{open, render};
use proxops_exec::{HistoryEntry, HistoryFilter, Journal};

/// Operations that are searched for a name that was meant.
const LOOKED_AT: u32 = 10_000;

pub fn run(global: &Global, args: &HistoryArgs) -> anyhow::Result<u8> {
    let settings = open::settings(global)?;
    let (kind, name) = match args.resource.as_deref().map(|text| text.split_once('/')) {
        None => (None, None),
        Some(Some((kind, name))) => (Some(kind.to_owned()), Some(name.to_owned())),
        Some(None) => (None, args.resource.clone()),
    };
    let mut nothing = "nothing was done yet".to_owned();
    let entries = match Journal::open_existing(&settings.data_dir)? {
        None => Vec::new(),
        Some(journal) => {
            let clusters: Vec<Option<String>> = match global.cluster.as_slice() {
                [] => vec![None],
                some => some.iter().cloned().map(Some).collect(),
            };
            let mut entries = Vec::new();
            for cluster in clusters {
                let filter =
                    HistoryFilter { cluster, kind: kind.clone(), name: name.clone(), vmid: args.vmid };
                entries.extend(journal.history(&filter, args.limit)?);
            }
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.id));
            entries.truncate(args.limit as usize);
            if entries.is_empty() {
                nothing = why_none(&journal.history(&HistoryFilter::default(), LOOKED_AT)?, global, args);
            }
            entries
        }
    };
    match global.output {
        Output::Json => render::history::json(&entries)?,
        Output::Text | Output::Markdown => render::history::text(&entries, &nothing)?,
    }
    Ok(OK)
}

/// Why no operation was found, and which name was meant.
fn why_none(all: &[HistoryEntry], global: &Global, args: &HistoryArgs) -> String {
    if all.is_empty() {
        return "nothing was done yet".to_owned();
    }
    let near = |asked: &str, known: Vec<String>| {
        if known.iter().any(|name| name == asked) {
            return None;
        }
        let near = proxops_repo::nearest(asked, known.iter().map(String::as_str));
        Some(near.map(|near| format!("; did you mean {near}?")).unwrap_or_default())
    };
    for cluster in &global.cluster {
        if let Some(hint) = near(cluster, all.iter().map(|e| e.cluster.clone()).collect()) {
            return format!("nothing was done in a cluster {cluster}{hint}");
        }
    }
    if let Some(resource) = &args.resource {
        let name = |e: &HistoryEntry| match resource.contains('/') {
            true => format!("{}/{}", e.kind, e.name),
            false => e.name.clone(),
        };
        if let Some(hint) = near(resource, all.iter().map(name).collect()) {
            return format!("nothing was done to {resource}{hint}");
        }
    }
    "nothing was done that fits".to_owned()
}
