//! The fields that a kind's schema knows, as paths such as `disks/[]/cache`.

use serde_json::Value;
use std::collections::BTreeMap;

/// One field.
#[derive(Debug, Clone, Default)]
pub struct Field {
    /// Its closed set of values, empty if there is none.
    pub choices: Vec<Value>,
    /// JSON types.
    pub types: Vec<String>,
    /// Smallest and largest number.
    pub range: (Option<f64>, Option<f64>),
    /// PVE's key.
    pub pve_key: Option<String>,
    /// It holds fields, or a list of things with fields.
    pub has_fields: bool,
    /// Its mapping can't be without it.
    pub required: bool,
}

/// Every field, by path.
pub fn fields(schema: &str) -> BTreeMap<String, Field> {
    let root: Value = serde_json::from_str(schema).unwrap_or_default();
    let mut out = BTreeMap::new();
    walk(&root, &root, "", &mut out);
    out
}

fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str).and_then(|r| root.pointer(r.strip_prefix('#')?)) {
        Some(target) => resolve(root, target),
        None => schema,
    }
}

/// The schema itself and its alternatives.
fn parts<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let mut out = vec![schema];
    let target = resolve(root, schema);
    if !std::ptr::eq(target, schema) {
        out.extend(parts(root, target));
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        for branch in schema.get(word).and_then(Value::as_array).into_iter().flatten() {
            out.extend(parts(root, branch));
        }
    }
    out
}

fn walk(root: &Value, schema: &Value, path: &str, out: &mut BTreeMap<String, Field>) {
    for part in parts(root, schema) {
        if let Some(items) = part.get("items").filter(|i| i.is_object()) {
            walk(root, items, &join(path, "[]"), out);
        }
        let required = part.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        for (name, inner) in part.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let at = join(path, name);
            let mut field = describe(root, inner);
            field.required = required.iter().any(|r| r == name);
            out.insert(at.clone(), field);
            walk(root, inner, &at, out);
        }
    }
}

fn describe(root: &Value, schema: &Value) -> Field {
    let mut field = Field::default();
    for part in parts(root, schema) {
        match part.get("type") {
            Some(Value::String(one)) => field.types.push(one.clone()),
            Some(Value::Array(many)) => {
                field.types.extend(many.iter().filter_map(|t| t.as_str().map(str::to_owned)));
            }
            _ => {}
        }
        field.choices.extend(part.get("enum").and_then(Value::as_array).into_iter().flatten().cloned());
        field.choices.extend(part.get("const").cloned());
        field.range.0 = field.range.0.or(part.get("minimum").and_then(Value::as_f64));
        field.range.1 = field.range.1.or(part.get("maximum").and_then(Value::as_f64));
        let key = part.get("x-pve-key").and_then(Value::as_str).map(str::to_owned);
        field.pve_key = field.pve_key.or(key);
        let within = part.get("items").map(|items| parts(root, items)).unwrap_or_default();
        field.has_fields |= std::iter::once(part).chain(within).any(|p| p.get("properties").is_some());
    }
    field.choices.retain(|choice| !choice.is_null());
    field.types.retain(|word| word != "null");
    field
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

/// Every field of a manifest with each value it has there.
pub fn produced(known: &BTreeMap<String, Field>, value: &Value, seen: &mut dyn FnMut(&str, &Value)) {
    fn go(known: &BTreeMap<String, Field>, path: &str, value: &Value, seen: &mut dyn FnMut(&str, &Value)) {
        match value {
            Value::Object(map) => {
                for (name, inner) in map {
                    let at = join(path, name);
                    if known.contains_key(&at) {
                        seen(&at, inner);
                        go(known, &at, inner, seen);
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|item| go(known, &join(path, "[]"), item, seen)),
            _ => {}
        }
    }
    go(known, "", value, seen);
}
