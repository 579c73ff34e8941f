//! Which field of a kind's schema owns which PVE key.

use serde_json::Value;
use std::collections::BTreeMap;

/// How deep references may nest; a schema that refers to itself ends here.
const DEPTH: usize = 12;

/// Fields and keys of one kind.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// Path of field names, list items as `[]`, to PVE's key.
    keys: BTreeMap<Vec<String>, String>,
}

impl Fields {
    /// From the JSON Schema of a spec.
    pub fn of(schema: &str) -> Self {
        let root: Value = serde_json::from_str(schema).unwrap_or_default();
        let mut fields = Self::default();
        fields.walk(&root, &root, &mut Vec::new(), DEPTH);
        fields
    }

    fn walk(&mut self, root: &Value, schema: &Value, path: &mut Vec<String>, depth: usize) {
        if depth == 0 {
            return;
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str)
            && let Some(target) = target.strip_prefix('#').and_then(|at| root.pointer(at))
        {
            self.walk(root, target, path, depth - 1);
        }
        for word in ["anyOf", "oneOf", "allOf"] {
            for branch in schema.get(word).and_then(Value::as_array).into_iter().flatten() {
                self.walk(root, branch, path, depth - 1);
            }
        }
        if let Some(items) = schema.get("items") {
            path.push("[]".to_owned());
            self.walk(root, items, path, depth - 1);
            path.pop();
        }
        for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            path.push(name.clone());
            if let Some(key) = field.get("x-pve-key").and_then(Value::as_str) {
                self.keys.entry(path.clone()).or_insert_with(|| key.to_owned());
            }
            self.walk(root, field, path, depth - 1);
            path.pop();
        }
    }

    /// PVE's key of the field at a path of a spec, indices as they are, or of the nearest field around it.
    pub fn key(&self, steps: &[String]) -> Option<&str> {
        let name = |step: &String| if step.parse::<usize>().is_ok() { "[]".to_owned() } else { step.clone() };
        let path: Vec<String> = steps.iter().map(name).collect();
        (1..=path.len()).rev().find_map(|n| self.keys.get(path.get(..n)?)).map(String::as_str)
    }

    /// Paths outside of lists whose field is this key, shortest first.
    pub fn paths(&self, key: &str) -> Vec<&[String]> {
        let mut found: Vec<&[String]> = self
            .keys
            .iter()
            .filter(|(path, k)| *k == key && !path.iter().any(|p| p == "[]"))
            .map(|(path, _)| path.as_slice())
            .collect();
        found.sort_by_key(|path| path.len());
        found
    }
}
