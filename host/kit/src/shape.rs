//! What a component is before anything is made: its surface, its description, its schema.

use crate::report::Check;
use crate::schema::Node;
use proxops_kinds::{KindListing, Kinds};
use proxops_model::kind::KindInfo;
use serde_json::Value;

/// The file is a component of this contract and imports nothing foreign. The host found that out already.
pub(crate) fn component(listing: &KindListing) -> Check {
    let mut check = Check::new("component");
    if let Some(error) = &listing.error {
        check.problem(error.clone());
        return check.done("it can't be used");
    }
    if listing.imports.iter().any(|import| import.starts_with("wasi:")) {
        check.note("it imports WASI, which is empty: no files, no clock, no network");
    }
    let size = listing.size.unwrap_or_default().div_ceil(1000);
    let imports = if listing.imports.is_empty() { "nothing".to_owned() } else { listing.imports.join(" ") };
    check.done(format!("{size} kB, imports {imports}"))
}

/// The same description from fresh instances, and as the host knows it.
pub(crate) fn describe(kinds: &Kinds, info: &KindInfo) -> Check {
    let mut check = Check::new("describe");
    match kinds.describe(&info.kind) {
        Ok(again) if again == *info => {}
        Ok(_) => check.problem("its description is not the one that the host was given before"),
        Err(message) => check.problem(message),
    }
    if info.summary.is_empty() {
        check.problem("it has no summary");
    }
    check.done("the same in three calls and two instances")
}

/// Every property is described, and the schema knows every field of the examples.
pub(crate) fn schema(info: &KindInfo) -> Check {
    let mut check = Check::new("schema");
    let schema: Value = serde_json::from_str(&info.schema).unwrap_or_default();
    let root = Node::root(&schema);
    let mut fields = 0;
    described(&root, "", 0, &mut fields, &mut check);
    for (number, example) in info.examples.iter().enumerate() {
        let example: Value = serde_json::from_str(example).unwrap_or_default();
        let spec = example.get("spec").cloned().unwrap_or_default();
        fits(&root, &spec, &format!("example {number}, spec"), &mut check);
        let version = example.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        if !info.api_versions.iter().any(|known| known == version) {
            check.problem(format!(
                "example {number} has the apiVersion \"{version}\", which is none of the kind's"
            ));
        }
    }
    check.done(format!("{fields} fields described, accepts {} examples", info.examples.len()))
}

fn described(node: &Node<'_>, path: &str, depth: usize, count: &mut usize, check: &mut Check) {
    for field in node.fields_within().into_iter().filter(|_| depth < 8) {
        let path = format!("{path}/{}", field.name);
        *count += 1;
        if field.node.text("description").is_none_or(|text| text.trim().is_empty()) {
            check.problem(format!("the schema does not describe {path}"));
        }
        described(&field.node, &path, depth + 1, count, check);
    }
}

/// A small part of JSON Schema's rules, those that kinds use: types, closed sets, ranges, required and
/// unknown fields. Texts that must match a pattern are left to the kind.
fn fits(node: &Node<'_>, value: &Value, place: &str, check: &mut Check) {
    let types = node.types();
    let of_type = |name: &str| match name {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    if !types.is_empty() && !types.iter().any(|t| of_type(t)) {
        check.problem(format!("{place}: the schema wants {}, the example has {value}", types.join(" or ")));
        return;
    }
    let choices = node.choices();
    if !choices.is_empty() && !value.is_object() && !value.is_array() && !choices.contains(&value) {
        check.problem(format!("{place}: {value} is none of the schema's values"));
    }
    if let Some(number) = value.as_f64() {
        let bound = |name: &str| node.keyword(name).and_then(Value::as_f64);
        if bound("minimum").is_some_and(|low| number < low)
            || bound("maximum").is_some_and(|high| number > high)
        {
            check.problem(format!("{place}: {value} is outside of the schema's range"));
        }
    }
    match value {
        Value::Array(list) => {
            if let Some(items) = node.items() {
                for (index, item) in list.iter().enumerate() {
                    fits(&items, item, &format!("{place}/{index}"), check);
                }
            }
        }
        Value::Object(map) => {
            let fields = node.fields();
            for field in fields.iter().filter(|f| f.required && !map.contains_key(f.name)) {
                check.problem(format!("{place}: the schema requires \"{}\"", field.name));
            }
            for (name, inner) in map {
                let place = format!("{place}/{name}");
                match (fields.iter().find(|f| f.name == name), node.free_keys()) {
                    (Some(field), _) => fits(&field.node, inner, &place, check),
                    (None, Some(free)) => fits(&free, inner, &place, check),
                    (None, None) => check.problem(format!("{place}: the schema has no such field")),
                }
            }
        }
        _ => {}
    }
}
