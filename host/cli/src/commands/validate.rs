//! `validate`: the whole repository, offline.

use super::{FAILED, OK};
use crate::args::{Global, Output};
use crate::{open, render};

pub fn run(global: &Global) -> anyhow::Result<u8> {
    let process = open::process_offline(global)?;
    open::clusters(&process, global)?;
    let selected = &global.cluster;
    let found: Vec<_> = process
        .validate()
        .into_iter()
        .filter(|d| selected.is_empty() || d.cluster.as_ref().is_none_or(|c| selected.contains(c)))
        .collect();
    match global.output {
        Output::Json => render::json::validate(&found)?,
        _ => render::diagnostics::text(&found, &process.repository, global.color)?,
    }
    Ok(if found.iter().any(|d| d.is_error()) { FAILED } else { OK })
}
