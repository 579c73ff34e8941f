//! `kinds list`, `kinds inspect`, `kinds test`.

use crate::say;
use proxops_kinds::KindListing;
use proxops_kit::schema::Node;
use proxops_kit::{Report, Tap};
use proxops_model::kind::{KindInfo, Operation, Ownership, Target};
use proxops_model::text::printable;
use proxops_repo::KindGrant;
use serde_json::json;
use std::io::Write as _;

fn grants<'g>(listed: &KindListing, all: &'g [KindGrant]) -> Vec<&'g str> {
    all.iter()
        .filter(|g| Some(&g.kind) == listed.kind.as_ref())
        .flat_map(|g| g.allow.iter().map(String::as_str))
        .collect()
}

/// `proxops.kinds/v1`
pub fn json(list: &[KindListing], all: &[KindGrant]) -> anyhow::Result<()> {
    let kinds: Vec<_> = list
        .iter()
        .map(|k| {
            let mut entry = serde_json::to_value(k)?;
            if let Some(entry) = entry.as_object_mut() {
                entry.insert("grants".to_owned(), json!(grants(k, all)));
            }
            Ok(entry)
        })
        .collect::<anyhow::Result<_>>()?;
    super::json::print(&json!({"format": "proxops.kinds/v1", "kinds": serde_json::Value::Array(kinds)}))
}

/// A table.
pub fn text(list: &[KindListing], all: &[KindGrant]) -> anyhow::Result<()> {
    let mut table =
        super::status::table(&["KIND", "ROOT", "VERSION", "ORIGIN", "SIZE", "SHA256", "IMPORTS", "GRANTS"]);
    for k in list {
        let text = |v: &Option<String>| printable(v.as_deref().unwrap_or("-"));
        let digest: String = k.digest.as_deref().unwrap_or("-").chars().take(12).collect();
        table.add_row(vec![
            text(&k.kind),
            text(&k.root),
            text(&k.version),
            printable(&k.origin),
            k.size.map_or_else(|| "-".to_owned(), |s| format!("{} kB", s.div_ceil(1000))),
            digest,
            if k.imports.is_empty() { "-".to_owned() } else { printable(&k.imports.join(" ")) },
            match &grants(k, all)[..] {
                [] => "-".to_owned(),
                some => printable(&some.join(" ")),
            },
        ]);
    }
    let mut out = say::Stdout;
    writeln!(out, "{table}")?;
    for k in list {
        if let Some(error) = &k.error {
            writeln!(out, "{}: {}", printable(&k.origin), printable(error))?;
        }
    }
    out.flush()?;
    Ok(())
}

/// `proxops.kind/v1`
pub fn inspect_json(listing: &KindListing, info: Option<&KindInfo>, all: &[KindGrant]) -> anyhow::Result<()> {
    let mut document = serde_json::to_value(listing)?;
    let info = info.map(|info| {
        let parsed = |text: &String| serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
        json!({
            "api-versions": info.api_versions,
            "target": info.target,
            "schema": parsed(&info.schema),
            "examples": info.examples.iter().map(parsed).collect::<Vec<_>>(),
        })
    });
    if let Some(document) = document.as_object_mut() {
        document.insert("format".to_owned(), json!("proxops.kind/v1"));
        document.insert("grants".to_owned(), json!(grants(listing, all)));
        document.extend(
            info.as_ref()
                .and_then(|i| i.as_object())
                .into_iter()
                .flatten()
                .map(|(k, v)| (k.clone(), v.clone())),
        );
    }
    super::json::print(&document)
}

/// One fact a line.
pub fn inspect_text(listing: &KindListing, info: Option<&KindInfo>, all: &[KindGrant]) -> anyhow::Result<()> {
    let mut rows: Vec<(&str, String)> = Vec::new();
    let known = |v: &Option<String>| v.clone().unwrap_or_else(|| "-".to_owned());
    rows.push(("kind", known(&listing.kind)));
    rows.push(("summary", known(&listing.summary)));
    rows.push(("version", known(&listing.version)));
    rows.push(("origin", listing.origin.clone()));
    rows.push(("sha256", known(&listing.digest)));
    rows.push(("size", listing.size.map_or_else(|| "-".to_owned(), |size| format!("{size} bytes"))));
    rows.push((
        "imports",
        if listing.imports.is_empty() { "nothing".to_owned() } else { listing.imports.join(" ") },
    ));
    if let Some(info) = info {
        rows.push(("apiVersion", info.api_versions.join(", ")));
        rows.push(("manifests in", format!("{}/", info.root)));
        rows.extend(target(&info.target));
        let schema: serde_json::Value = serde_json::from_str(&info.schema).unwrap_or_default();
        let fields: Vec<&str> = Node::root(&schema).fields().iter().map(|f| f.name).collect();
        rows.push(("fields", format!("{} (proxops explain {})", fields.join(" "), info.kind)));
        rows.push(("examples", info.examples.len().to_string()));
        if let Target::Object(_) = info.target {
            let granted = grants(listing, all);
            let none = format!(
                "none; to let it in, add to proxops.yaml: kinds: [{{kind: {}, allow: [/path]}}]",
                info.kind
            );
            rows.push(("grants", if granted.is_empty() { none } else { granted.join(" ") }));
        }
    }
    if let Some(error) = &listing.error {
        rows.push(("not used", error.clone()));
    }
    let mut out = say::Stdout;
    for (name, value) in rows {
        writeln!(out, "{name:<13} {}", printable(&value))?;
    }
    out.flush()?;
    Ok(())
}

fn target(target: &Target) -> Vec<(&'static str, String)> {
    match target {
        Target::Guest { guest_type, template } => {
            let what = if *template { "templates" } else { "guests" };
            vec![("manages", format!("{what} of type {guest_type}"))]
        }
        Target::Artifact { content, extensions } => {
            let endings =
                if extensions.is_empty() { String::new() } else { format!(" ({})", extensions.join(" ")) };
            vec![("manages", format!("files of content {content}{endings}"))]
        }
        Target::Object(object) => {
            let shown = |o: &Operation| format!("{} {}", format!("{:?}", o.method).to_uppercase(), o.path);
            let mut rows = vec![
                ("manages", "objects of PVE's API".to_owned()),
                ("lists", shown(&object.list)),
                ("reads", shown(&object.read)),
            ];
            rows.extend(object.writes.iter().map(|o| ("writes", format!("{}: {}", o.name, shown(o)))));
            rows.push((
                "ownership",
                match &object.ownership {
                    Ownership::None => "can't be proven: never deleted".to_owned(),
                    Ownership::Tags(field) => format!("the owner tag in {field}"),
                    Ownership::Marker { field, .. } => format!("the marker line in {field}"),
                },
            ));
            rows
        }
    }
}

/// `proxops.kinds-test/v1`
pub fn test_json(reports: &[Report]) -> anyhow::Result<()> {
    let passed = reports.iter().all(Report::passed);
    super::json::print(&json!({"format": "proxops.kinds-test/v1", "passed": passed, "kinds": reports}))
}

/// Lines in the manner of TAP.
pub fn test_text(reports: &[Report]) -> anyhow::Result<()> {
    let mut out = say::Stdout;
    write!(out, "{}", Tap(reports))?;
    out.flush()?;
    Ok(())
}
