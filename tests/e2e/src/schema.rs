//! What the built-in kinds say of themselves.

use proxops_model::kind::KindInfo;
use serde_json::Value;
use std::collections::BTreeSet;

/// The answers to `describe`.
pub fn builtin_kinds() -> Vec<KindInfo> {
    proxops_builtin::BUILTIN.iter().map(|b| serde_json::from_str(b.info).unwrap()).collect()
}

/// Every field of a kind's spec, as a path such as `cpu.limit` or `disks[].cache`. A field that may be a scalar or a
/// map is there once for the scalar and once for each field of the map.
pub fn field_paths(kind: &str) -> BTreeSet<String> {
    let info = builtin_kinds().into_iter().find(|i| i.kind == kind).expect("a built-in kind");
    let schema: Value = serde_json::from_str(&info.schema).unwrap();
    let mut found = BTreeSet::new();
    walk(&schema, &schema, "", &mut found);
    found
}

/// Adds the fields below `at`.
fn walk(schema: &Value, node: &Value, at: &str, found: &mut BTreeSet<String>) {
    if let Some(name) = node["$ref"].as_str() {
        let target = schema.pointer(name.trim_start_matches('#')).expect("a reference within the schema");
        return walk(schema, target, at, found);
    }
    for list in ["anyOf", "oneOf", "allOf"] {
        if let Some(options) = node[list].as_array() {
            for option in options.iter().filter(|o| o["type"] != "null") {
                walk(schema, option, at, found);
            }
            return;
        }
    }
    if let Some(properties) = node["properties"].as_object() {
        for (name, property) in properties {
            let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
            walk(schema, property, &path, found);
        }
    } else if let Some(items) = node.get("items") {
        let mut inside = BTreeSet::new();
        walk(schema, items, &format!("{at}[]"), &mut inside);
        // A list of scalars is one field.
        let scalars = inside.iter().all(|path| path.ends_with("[]"));
        found.extend(if scalars { BTreeSet::from([at.to_owned()]) } else { inside });
    } else {
        found.insert(at.to_owned());
    }
}
