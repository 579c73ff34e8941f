//! `kinds list`, `kinds inspect`, `kinds test`.

use super::{FAILED, OK};
use crate::args::{Global, Output, TestArgs};
use crate::{open, render};
use anyhow::bail;
use proxops_kinds::{KindListing, Kinds};
use std::path::{Path, PathBuf};

pub fn list(global: &Global) -> anyhow::Result<u8> {
    let known = open::kinds(global, &[])?;
    let listed = known.kinds.list();
    match global.output {
        Output::Json => render::kinds::json(&listed, &known.settings.kinds)?,
        _ => render::kinds::text(&listed, &known.settings.kinds)?,
    }
    Ok(if listed.iter().any(|k| k.error.is_some()) { FAILED } else { OK })
}

pub fn inspect(global: &Global, what: &str) -> anyhow::Result<u8> {
    let files: Vec<PathBuf> = file(what).into_iter().collect();
    let known = open::kinds(global, &files)?;
    let listing = find(&known.kinds, what)?;
    let info =
        known.kinds.infos().find(|i| listing.error.is_none() && Some(&i.kind) == listing.kind.as_ref());
    match global.output {
        Output::Json => render::kinds::inspect_json(&listing, info, &known.settings.kinds)?,
        _ => render::kinds::inspect_text(&listing, info, &known.settings.kinds)?,
    }
    Ok(if listing.error.is_some() { FAILED } else { OK })
}

pub fn test(global: &Global, args: &TestArgs) -> anyhow::Result<u8> {
    let files: Vec<PathBuf> = args.what.iter().filter_map(|what| file(what)).collect();
    let kinds = open::kinds(global, &files)?.kinds;
    let chosen: Vec<KindListing> = match args.all {
        true => kinds.list(),
        false => args.what.iter().map(|what| find(&kinds, what)).collect::<anyhow::Result<_>>()?,
    };
    let reports: Vec<_> = chosen.iter().map(|listing| proxops_kit::test(&kinds, listing)).collect();
    match global.output {
        Output::Json => render::kinds::test_json(&reports)?,
        _ => render::kinds::test_text(&reports)?,
    }
    Ok(if reports.iter().all(proxops_kit::Report::passed) { OK } else { FAILED })
}

/// A word that names a file and not a kind.
fn file(what: &str) -> Option<PathBuf> {
    let path = Path::new(what);
    (path.extension().is_some_and(|e| e == "wasm") || what.contains(std::path::MAIN_SEPARATOR))
        .then(|| path.to_path_buf())
}

fn find(kinds: &Kinds, what: &str) -> anyhow::Result<KindListing> {
    let list = kinds.list();
    if let Some(path) = file(what) {
        // a file that lies in one of the folders as well was read there, under that name
        let real = |path: &Path| path.canonicalize().ok();
        let same = |l: &&KindListing| {
            l.origin == path.display().to_string()
                || (real(&path).is_some() && real(Path::new(&l.origin)) == real(&path))
        };
        return list
            .iter()
            .find(same)
            .cloned()
            .ok_or_else(|| anyhow::anyhow!("{} was not read", path.display()));
    }
    let named = |l: &&KindListing| l.kind.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case(what));
    // of two with one name, the one that is used
    if let Some(found) = list.iter().filter(named).min_by_key(|l| l.error.is_some()) {
        return Ok(found.clone());
    }
    open::kind_info(kinds, what).map(|_| ())?;
    bail!("there is no kind `{what}`")
}
