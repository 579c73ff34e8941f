//! `explain`: what a field of a manifest means.

use super::OK;
use crate::args::{Global, Output};
use crate::{open, render};
use anyhow::bail;
use proxops_kit::schema::{Field, Node, manifest};
use proxops_repo::nearest;

/// Fields of a manifest beside those of `spec`.
const ENVELOPE: &[&str] = &["apiVersion", "kind", "metadata", "spec"];

pub fn run(global: &Global, what: &str) -> anyhow::Result<u8> {
    let kinds = open::kinds(global, &[])?.kinds;
    let (kind, path) = what.split_once('.').unwrap_or((what, ""));
    let info = open::kind_info(&kinds, kind)?;
    let schema = manifest(info);
    let (path, field) = find(&info.kind, &Node::root(&schema), path)?;
    match global.output {
        Output::Json => render::explain::json(&info.kind, &path, &field)?,
        _ => render::explain::text(info, &path, &field, global.color)?,
    }
    Ok(OK)
}

/// The field, and its path in full. `spec.` may be left out; list positions are no part of a path.
fn find<'a>(kind: &str, manifest: &Node<'a>, path: &str) -> anyhow::Result<(String, Field<'a>)> {
    let plain = path.replace("[]", "");
    let mut steps: Vec<&str> = plain.split('.').filter(|s| !s.is_empty()).collect();
    if !steps.first().is_some_and(|first| ENVELOPE.contains(first)) {
        steps.insert(0, "spec");
    }
    let mut walked: Vec<&str> = Vec::new();
    let mut here: Option<Field<'a>> = None;
    for step in steps {
        let node = here.as_ref().map_or(manifest, |field| &field.node);
        let next = node.field(step).or_else(|| {
            let node = node.free_keys()?;
            Some(Field { name: "", required: false, node })
        });
        let Some(next) = next else {
            let place = [&[kind], walked.as_slice()].concat().join(".");
            let names: Vec<&str> = node.fields_within().iter().map(|f| f.name).collect();
            match nearest(step, names.iter().copied()) {
                _ if names.is_empty() => bail!("{place} has no fields, so no `{step}`"),
                Some(near) => bail!("{place} has no field `{step}`; did you mean {place}.{near}?"),
                None => bail!("{place} has no field `{step}`; it has {}", names.join(", ")),
            }
        };
        walked.push(step);
        here = Some(next);
    }
    match here {
        Some(field) => Ok((walked.join("."), field)),
        None => bail!("name a kind, such as `proxops explain VM`"),
    }
}
