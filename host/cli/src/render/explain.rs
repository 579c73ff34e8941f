//! `explain`.

use super::Paint;
use super::status::table;
use crate::args::Color;
use crate::say;
use proxops_kit::schema::{Field, Node};
use proxops_model::kind::KindInfo;
use proxops_model::text::{printable, scalar};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;

/// `proxops.explain/v1`
pub fn json(kind: &str, path: &str, field: &Field<'_>) -> anyhow::Result<()> {
    super::json::print(&json!({
        "format": "proxops.explain/v1",
        "kind": kind,
        "path": path,
        "required": field.required,
        "schema": field.node.standalone(),
    }))
}

/// What it is, then its fields.
pub fn text(info: &KindInfo, path: &str, field: &Field<'_>, color: Color) -> anyhow::Result<()> {
    let paint = Paint::new(color);
    let mut out = String::new();
    let node = &field.node;
    if path == "spec" {
        writeln!(out, "{}  {}", paint.bold(&info.kind), printable(&info.summary))?;
        writeln!(
            out,
            "apiVersion {}, manifests in {}/, version {}",
            info.api_versions.join(" or "),
            info.root,
            info.version
        )?;
    } else {
        writeln!(out, "{}", paint.bold(&printable(&format!("{}.{path}", info.kind))))?;
        writeln!(out, "{}", printable(node.text("description").unwrap_or("(no description)")))?;
        writeln!(out)?;
        let mut row = |name: &str, value: Option<String>| match value {
            Some(value) => writeln!(out, "{name:<9} {}", printable(&value)),
            None => Ok(()),
        };
        row("type", Some(type_text(node)))?;
        row("required", Some(if field.required { "yes" } else { "no" }.to_owned()))?;
        row("default", node.keyword("default").map(Value::to_string))?;
        row("unit", node.text("x-unit").map(str::to_owned))?;
        row("allowed", allowed(node))?;
        row("PVE key", node.text("x-pve-key").map(str::to_owned))?;
        if node.keyword("x-compared").is_some_and(|c| c == false) {
            row(
                "compared",
                Some("no: it matters when the object is made, or says how to treat it".to_owned()),
            )?;
        }
        if node.keyword("deprecated").is_some_and(|d| d == true) {
            row("note", Some("deprecated".to_owned()))?;
        }
    }
    let fields = node.fields_within();
    if !fields.is_empty() {
        writeln!(out)?;
        let mut table = table(&["FIELD", "TYPE", "REQUIRED", "DEFAULT", "PVE KEY", "WHAT"]);
        for f in fields.iter().filter(|f| f.node.keyword("deprecated").is_none_or(|d| d != true)) {
            table.add_row(vec![
                printable(f.name),
                printable(&type_text(&f.node)),
                if f.required { "yes" } else { "" }.to_owned(),
                printable(&f.node.keyword("default").and_then(scalar_text).unwrap_or_default()),
                printable(f.node.text("x-pve-key").unwrap_or_default()),
                printable(f.node.text("description").unwrap_or_default()),
            ]);
        }
        writeln!(out, "{table}")?;
    }
    let mut stdout = say::Stdout;
    stdout.write_all(out.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::Bool(flag) => Some(flag.to_string()),
        other => scalar(other),
    }
}

/// Types in words: "text", "list of maps".
fn type_text(node: &Node<'_>) -> String {
    let mut words: Vec<String> = node.types().into_iter().map(|t| word(t, node)).collect();
    // a list of closed words is told by `allowed`
    if words.is_empty() {
        words.push(if node.choices().is_empty() { "anything" } else { "one of a set" }.to_owned());
    }
    words.dedup();
    words.join(" or ")
}

fn word(json_type: &str, node: &Node<'_>) -> String {
    match json_type {
        "string" => "text".to_owned(),
        "integer" => "whole number".to_owned(),
        "boolean" => "true/false".to_owned(),
        "object" => "map".to_owned(),
        "array" => match node.items().map(|items| items.types()) {
            Some(types) if types == ["object"] => "list of maps".to_owned(),
            Some(types) if types == ["string"] => "list of texts".to_owned(),
            _ => "list".to_owned(),
        },
        other => other.to_owned(),
    }
}

/// What values may be, as far as the schema knows it.
fn allowed(node: &Node<'_>) -> Option<String> {
    let mut rules = Vec::new();
    let choices = node.choices();
    if !choices.is_empty() {
        rules.push(choices.into_iter().filter_map(scalar_text).collect::<Vec<_>>().join(", "));
    } else if let Some(choices) = node.items().map(|items| items.choices()).filter(|c| !c.is_empty()) {
        rules.push(format!(
            "each of {}",
            choices.into_iter().filter_map(scalar_text).collect::<Vec<_>>().join(", ")
        ));
    }
    let number = |name: &str| node.keyword(name).and_then(scalar);
    match (number("minimum"), number("maximum")) {
        (Some(low), Some(high)) => rules.push(format!("{low} to {high}")),
        (Some(low), None) => rules.push(format!("{low} or more")),
        (None, Some(high)) => rules.push(format!("{high} at most")),
        (None, None) => {}
    }
    if let Some(most) = number("maxLength") {
        rules.push(format!("at most {most} characters"));
    }
    match (node.text("x-expect"), node.text("pattern")) {
        (Some(words), _) => rules.push(words.to_owned()),
        (None, Some(pattern)) => rules.push(format!("text that matches {pattern}")),
        (None, None) => {}
    }
    (!rules.is_empty()).then(|| rules.join("; "))
}
