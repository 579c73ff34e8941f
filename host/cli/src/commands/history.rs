//! `history`: the audit trail of this data directory. Reads no repository and asks no cluster.

use super::OK;
use crate::args::{Global, HistoryArgs, Output};
use crate::{open, render};
use proxops_exec::{HistoryFilter, Journal};

pub fn run(global: &Global, args: &HistoryArgs) -> anyhow::Result<u8> {
    let settings = open::settings(global)?;
    let (kind, name) = match args.resource.as_deref().map(|text| text.split_once('/')) {
        None => (None, None),
        Some(Some((kind, name))) => (Some(kind.to_owned()), Some(name.to_owned())),
        Some(None) => (None, args.resource.clone()),
    };
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
            entries
        }
    };
    match global.output {
        Output::Json => render::history::json(&entries)?,
        Output::Text | Output::Markdown => render::history::text(&entries)?,
    }
    Ok(OK)
}
