//! `schema`: JSON Schemas of manifests, for editors.

use super::OK;
use crate::args::{Global, SchemaArgs};
use crate::{open, render, say};
use anyhow::Context as _;
use proxops_kinds::Kinds;
use proxops_kit::schema::manifest;
use proxops_model::kind::KindInfo;
use proxops_model::text::printable;
use serde_json::{Value, json};
use std::path::Path;

/// The file that knows every kind.
const ANY: &str = "manifest.schema.json";

pub fn run(global: &Global, args: &SchemaArgs) -> anyhow::Result<u8> {
    let kinds = open::kinds(global, &[])?.kinds;
    match (&args.kind, &args.all) {
        (Some(kind), _) => {
            let info = open::kind_info(&kinds, kind)?;
            render::json::print(&manifest(info))?;
            say::err!("hint: written to {}, the first line of a manifest can be", file(info));
            say::err!("# yaml-language-server: $schema={}", file(info));
        }
        (None, Some(dir)) => all(&kinds, dir)?,
        (None, None) => anyhow::bail!("name a kind, or a folder with --all"),
    }
    Ok(OK)
}

fn file(info: &KindInfo) -> String {
    proxops_adopt::schema_file(&info.kind)
}

/// One file a kind, and one that chooses by `kind`.
fn all(kinds: &Kinds, dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("can't make the folder {}", dir.display()))?;
    let infos: Vec<&KindInfo> = kinds.infos().collect();
    let choices: Vec<Value> = infos.iter().map(|info| json!({"$ref": file(info)})).collect();
    let names: Vec<&str> = infos.iter().map(|info| info.kind.as_str()).collect();
    let any = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Manifest",
        "description": "A manifest of any kind.",
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"enum": names}},
        "oneOf": choices,
    });
    for info in &infos {
        write(dir, &file(info), &manifest(info))?;
    }
    write(dir, ANY, &any)?;
    say::out!("hint: the first line of a manifest can be, with the path from that manifest");
    say::out!("# yaml-language-server: $schema={}", printable(&dir.join(ANY).display().to_string()));
    Ok(())
}

fn write(dir: &Path, name: &str, schema: &Value) -> anyhow::Result<()> {
    let path = dir.join(name);
    let mut text = serde_json::to_vec_pretty(schema)?;
    text.push(b'\n');
    std::fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))?;
    say::out!("{}", printable(&path.display().to_string()));
    Ok(())
}
