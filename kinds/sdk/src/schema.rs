//! The JSON Schema of a spec type, made once.
//!
//! Attributes that proxops reads, set with `#[schemars(extend("x-unit" = "MiB"))]`:
//! - `x-unit`, `x-pve-key`: shown by `explain` and in editors;
//! - `x-expect`: the words of an error message, such as "a size such as 2GiB";
//! - `x-placeholder`: what stands in for a required field that can't be read;
//! - `x-sensitive`: never show the value in a message;
//! - `x-compared = false`: `drift` does not look at the field, it matters when the object is made or steers
//!   the host.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;
use std::any::TypeId;
use std::sync::{Arc, Mutex, PoisonError};

type Cache = Mutex<Vec<(TypeId, Arc<Value>)>>;

/// The schema (2020-12) of a type. Made at the first call; later calls share it.
pub fn of<S: JsonSchema + 'static>() -> Arc<Value> {
    static CACHE: Cache = Mutex::new(Vec::new());
    let id = TypeId::of::<S>();
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, schema)) = cache.iter().find(|(known, _)| *known == id) {
        return Arc::clone(schema);
    }
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<S>();
    let schema = Arc::new(schema.to_value());
    cache.push((id, Arc::clone(&schema)));
    schema
}

/// Follows `$ref`s to the schema they name.
pub(crate) fn resolve<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..16 {
        let Some(target) = schema.get("$ref").and_then(Value::as_str) else { return schema };
        let definition = target.strip_prefix("#/$defs/").and_then(|name| root.get("$defs")?.get(name));
        let Some(next) = definition else { return schema };
        schema = next;
    }
    schema
}

/// The branches of `anyOf` or `oneOf`.
pub(crate) fn branches(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
}

/// The schema of a member of an object or list, and whether the object requires it. Looks through
/// references and alternatives.
pub(crate) fn member<'a>(root: &'a Value, schema: &'a Value, step: &str) -> Option<(&'a Value, bool)> {
    let schema = resolve(root, schema);
    if let Some(property) = schema.get("properties").and_then(|p| p.get(step)) {
        let required = schema.get("required").and_then(Value::as_array);
        return Some((property, required.is_some_and(|names| names.iter().any(|n| n == step))));
    }
    if let Some(items) = schema.get("items").filter(|_| step.bytes().all(|b| b.is_ascii_digit())) {
        return Some((items, false));
    }
    if let Some(found) =
        branches(schema).and_then(|all| all.iter().find_map(|branch| member(root, branch, step)))
    {
        return Some(found);
    }
    schema.get("additionalProperties").filter(|a| a.is_object()).map(|a| (a, false))
}

/// A value that stands in for one that can't be read.
pub(crate) fn placeholder(root: &Value, schema: &Value, depth: usize) -> Value {
    for key in ["x-placeholder", "default", "const"] {
        if let Some(value) = schema.get(key) {
            return value.clone();
        }
    }
    let schema = resolve(root, schema);
    for key in ["x-placeholder", "default", "const"] {
        if let Some(value) = schema.get(key) {
            return value.clone();
        }
    }
    if let Some(first) = schema.get("enum").and_then(|e| e.get(0)) {
        return first.clone();
    }
    if let Some(first) = branches(schema).and_then(|b| b.first()).filter(|_| depth < 16) {
        return placeholder(root, first, depth + 1);
    }
    let kind = schema.get("type").and_then(|t| t.as_str().or_else(|| t.get(0).and_then(Value::as_str)));
    match kind {
        Some("string") => Value::String(String::new()),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(Value::from(0)),
        Some("boolean") => Value::Bool(false),
        Some("array") => Value::Array(Vec::new()),
        Some("object") if depth < 16 => {
            let mut object = serde_json::Map::new();
            for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
                if let Some((name, property)) =
                    name.as_str().and_then(|n| Some((n, schema.get("properties")?.get(n)?)))
                {
                    object.insert(name.to_owned(), placeholder(root, property, depth + 1));
                }
            }
            Value::Object(object)
        }
        _ => Value::Null,
    }
}
