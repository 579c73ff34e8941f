//! A draft as the text of its file: fields, and comments where they matter.

use crate::draft::Draft;
use crate::redact::REDACTED;
use crate::schema::Fields;
use crate::tree::Tree;
use crate::yaml::{self, Comments};
use proxops_model::kind::{Gap, KindInfo};

/// Folder of the JSON Schemas for editors, at the repository's root, as `proxops schema --all` fills it.
pub const SCHEMAS: &str = "schemas";

/// Name of a kind's JSON Schema in that folder.
pub fn schema_file(kind: &str) -> String {
    format!("{}.schema.json", kind.to_ascii_lowercase())
}

/// The whole file.
pub(crate) fn text(draft: &Draft, info: &KindInfo, fields: &Fields) -> String {
    let mut metadata = vec![("name".to_owned(), Tree::Text(draft.id.name.clone()))];
    for (key, pairs) in [("labels", &draft.labels), ("annotations", &draft.annotations)] {
        if !pairs.is_empty() {
            let entries = pairs.iter().map(|(k, v)| (k.clone(), Tree::Text(v.clone()))).collect();
            metadata.push((key.to_owned(), Tree::Map(entries)));
        }
    }
    let version = info.api_versions.first().map_or(proxops_repo::API_VERSION, String::as_str);
    let document = Tree::Map(vec![
        ("apiVersion".to_owned(), Tree::Text(version.to_owned())),
        ("kind".to_owned(), Tree::Text(draft.id.kind.clone())),
        ("metadata".to_owned(), Tree::Map(metadata)),
        ("spec".to_owned(), draft.spec.clone()),
    ]);
    let mut comments = Comments::new();
    for hole in &draft.holes {
        let (parent, field) = hole.at.rsplit_once('/').unwrap_or(("/spec", ""));
        let inside = matches!(document.at(parent), Some(Tree::Map(entries)) if !entries.is_empty());
        let at = if inside { format!("{parent}/") } else { "/spec/".to_owned() };
        let lines = comments.entry(at).or_default();
        lines.push(format!("INCOMPLETE: {}", hole.why));
        lines.push(format!("{field}: ..."));
    }
    let mut rest = Vec::new();
    for gap in &draft.gaps {
        match place(gap, &draft.spec, fields) {
            Some(at) => comments.entry(at).or_default().push(format!("not described here: {}", line(gap))),
            None => rest.push(line(gap)),
        }
    }
    if draft.masked > 0 {
        rest.push("cipassword: (masked by PVE)".to_owned());
    }
    // From <root>/<cluster>/<name>.yaml to the repository's root.
    let up = "../".repeat(info.root.split('/').count() + 1);
    let mut out = format!("# yaml-language-server: $schema={up}{SCHEMAS}/{}\n", schema_file(&info.kind));
    out.push_str(&yaml::write(&document, &comments));
    if !rest.is_empty() {
        out.push_str("# Not described here; PVE keeps it as it is:\n");
        for line in rest {
            out.push_str(&format!("#   {}\n", yaml::comment(&line)));
        }
    }
    out
}

fn line(gap: &Gap) -> String {
    let value = gap.value.as_deref().unwrap_or(REDACTED);
    format!("{}: {value} ({})", gap.key, gap.why)
}

/// What of the spec the gap is about: the item with this slot, or the field of this key.
fn place(gap: &Gap, spec: &Tree, fields: &Fields) -> Option<String> {
    let Tree::Map(entries) = spec else { return None };
    for (name, value) in entries {
        let lists: Vec<(String, &Tree)> = match value {
            Tree::List(_) => vec![(format!("/spec/{name}"), value)],
            Tree::Map(inner) => inner
                .iter()
                .filter(|(_, v)| matches!(v, Tree::List(_)))
                .map(|(k, v)| (format!("/spec/{name}/{k}"), v))
                .collect(),
            _ => Vec::new(),
        };
        for (at, list) in lists {
            let Tree::List(items) = list else { continue };
            let here = |item: &Tree| {
                let slot = item.get("interface").or_else(|| item.get("slot"));
                slot.and_then(Tree::text) == Some(&gap.key)
            };
            if let Some(index) = items.iter().position(here) {
                return Some(format!("{at}/{index}"));
            }
        }
    }
    let there = |path: &&[String]| path.iter().try_fold(spec, |tree, step| tree.get(step)).is_some();
    let path = fields.paths(&gap.key).into_iter().find(there)?;
    let mut at = String::from("/spec");
    path.iter().for_each(|step| proxops_repo::yaml::push_key(&mut at, step));
    Some(at)
}
