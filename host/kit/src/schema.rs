//! A kind's JSON Schema, read the way people and tests need it: references followed, alternatives laid
//! side by side, lists looked through.

use serde_json::{Map, Value, json};

/// How deep references may nest; a schema that refers to itself ends here.
const DEPTH: usize = 16;

/// One place of a schema.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    root: &'a Value,
    /// The schema itself, what it refers to, and its alternatives; `null` alternatives left out.
    parts: Vec<&'a Value>,
}

/// A named field of a mapping.
#[derive(Debug, Clone)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// A manifest must have it.
    pub required: bool,
    /// What may stand there.
    pub node: Node<'a>,
}

impl<'a> Node<'a> {
    /// The whole of a schema document.
    pub fn root(root: &'a Value) -> Self {
        Self::at(root, root)
    }

    fn at(root: &'a Value, schema: &'a Value) -> Self {
        let mut parts = Vec::new();
        collect(root, schema, 0, &mut parts);
        Self { root, parts }
    }

    /// A keyword, the nearest one where several parts have it.
    pub fn keyword(&self, name: &str) -> Option<&'a Value> {
        self.parts.iter().find_map(|part| part.get(name))
    }

    /// A keyword that is text.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.keyword(name)?.as_str()
    }

    /// JSON types that may stand here, without `null`.
    pub fn types(&self) -> Vec<&'a str> {
        let mut types = Vec::new();
        for declared in self.parts.iter().filter_map(|part| part.get("type")) {
            match declared {
                Value::String(one) => types.push(one.as_str()),
                Value::Array(many) => types.extend(many.iter().filter_map(Value::as_str)),
                _ => {}
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        types.retain(|t| *t != "null" && seen.insert(*t));
        types
    }

    /// The closed set of values, empty if there is none.
    pub fn choices(&self) -> Vec<&'a Value> {
        let mut all: Vec<&Value> = Vec::new();
        for part in &self.parts {
            all.extend(part.get("enum").and_then(Value::as_array).into_iter().flatten());
            all.extend(part.get("const"));
        }
        all.retain(|v| !v.is_null());
        all
    }

    /// What the elements of a list are.
    pub fn items(&self) -> Option<Node<'a>> {
        self.keyword("items").filter(|i| i.is_object()).map(|items| Self::at(self.root, items))
    }

    /// What values under free keys are.
    pub fn free_keys(&self) -> Option<Node<'a>> {
        self.keyword("additionalProperties").filter(|a| a.is_object()).map(|any| Self::at(self.root, any))
    }

    /// The fields of a mapping.
    pub fn fields(&self) -> Vec<Field<'a>> {
        let mut fields = Vec::new();
        for part in &self.parts {
            let required = |name: &str| {
                part.get("required")
                    .and_then(Value::as_array)
                    .is_some_and(|all| all.iter().any(|r| r == name))
            };
            for (name, schema) in part.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let node = Self::at(self.root, schema);
                fields.push(Field { name, required: required(name), node });
            }
        }
        fields
    }

    /// The fields of a mapping or of a list's elements.
    pub fn fields_within(&self) -> Vec<Field<'a>> {
        let own = self.fields();
        match self.items() {
            Some(items) if own.is_empty() => items.fields_within(),
            _ => own,
        }
    }

    /// A field by name; lists are looked through.
    pub fn field(&self, name: &str) -> Option<Field<'a>> {
        if let Some(found) = self.fields().into_iter().find(|f| f.name == name) {
            return Some(found);
        }
        self.items().and_then(|items| items.field(name))
    }

    /// The schema here as a document of its own: references replaced by what they name.
    pub fn standalone(&self) -> Value {
        self.parts.first().map_or(Value::Null, |part| inline(self.root, part, 0))
    }
}

fn collect<'a>(root: &'a Value, schema: &'a Value, depth: usize, parts: &mut Vec<&'a Value>) {
    if depth > DEPTH || schema.get("type").is_some_and(|t| t == "null") {
        return;
    }
    parts.push(schema);
    if let Some(target) = target(root, schema) {
        collect(root, target, depth + 1, parts);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for branch in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            collect(root, branch, depth + 1, parts);
        }
    }
}

/// What a `$ref` within the document names.
fn target<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
}

fn inline(root: &Value, schema: &Value, depth: usize) -> Value {
    match schema {
        Value::Object(map) => {
            let mut out = Map::new();
            if let Some(target) = target(root, schema).filter(|_| depth < DEPTH)
                && let Value::Object(target) = inline(root, target, depth + 1)
            {
                out = target;
                out.remove("$defs");
            }
            for (key, value) in map {
                let resolved = key == "$ref" && depth < DEPTH && target(root, schema).is_some();
                if !resolved && key != "$defs" && key != "$schema" {
                    out.insert(key.clone(), inline(root, value, depth + 1));
                }
            }
            Value::Object(out)
        }
        Value::Array(list) => Value::Array(list.iter().map(|v| inline(root, v, depth + 1)).collect()),
        other => other.clone(),
    }
}

/// The schema of a whole manifest around a kind's schema of `spec`: what an editor needs.
pub fn manifest(info: &proxops_model::kind::KindInfo) -> Value {
    let mut spec: Value = serde_json::from_str(&info.schema).unwrap_or_else(|_| json!({"type": "object"}));
    rebase(&mut spec);
    let mut definitions = Value::Object(Map::new());
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("$schema");
        definitions = spec.remove("$defs").unwrap_or(definitions);
    }
    let texts = |what: &str| json!({"type": "object", "description": what, "additionalProperties": {"type": "string"}});
    let mut annotations = texts("Free texts; those of proxops steer how the resource is treated.");
    annotations["properties"] = json!({
        "proxops/depends-on": {"type": "string", "description": "More prerequisites, such as \"ISO:debian,VM:db-01\"."},
        "proxops/reconcile": {
            "enum": ["reconcile", "observe", "ensure-exists", "suspended"],
            "default": "reconcile",
            "description": "reconcile: converge. observe: show drift, never write. ensure-exists: create, never update. \
                            suspended: ignore, and protect from prune.",
        },
        "proxops/restart": {"enum": ["allow"], "description": "Let a running guest be restarted for a change that needs it."},
        "proxops/ignore": {"type": "string", "description": "Slots that are left alone, such as \"scsi3,hostpci0\"."},
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": info.kind,
        "description": info.summary,
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": false,
        "properties": {
            "apiVersion": {"enum": info.api_versions, "description": "Version of the manifest's form."},
            "kind": {"const": info.kind, "description": info.summary},
            "metadata": {
                "type": "object",
                "description": "Name, labels and annotations.",
                "required": ["name"],
                "additionalProperties": false,
                "properties": {
                    "name": {
                        "type": "string",
                        "pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
                        "maxLength": 63,
                        "description": "Name of the resource, unique within its kind.",
                    },
                    "labels": texts("Free texts."),
                    "annotations": annotations,
                },
            },
            "spec": spec,
        },
        "$defs": definitions,
    })
}

/// Definitions stay at the root of the document, everything else moves below the field `spec`.
fn rebase(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                match inner {
                    Value::String(to) if key == "$ref" => {
                        if let Some(rest) = to.strip_prefix('#').filter(|rest| !rest.starts_with("/$defs/")) {
                            *to = format!("#/properties/spec{rest}");
                        }
                    }
                    inner => rebase(inner),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(rebase),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Value {
        json!({
            "type": "object",
            "required": ["node"],
            "properties": {
                "node": {"type": "string", "description": "Where."},
                "disks": {"description": "Disks.", "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Disk"}}, {"type": "null"}]},
                "child": {"$ref": "#"},
            },
            "$defs": {"Disk": {"type": "object", "description": "One disk.", "properties": {"size": {"type": ["string", "null"]}}}},
        })
    }

    #[test]
    fn references_alternatives_and_lists_are_looked_through() {
        let spec = spec();
        let root = Node::root(&spec);
        let disks = root.field("disks").unwrap();
        assert_eq!(disks.node.text("description"), Some("Disks."));
        assert!(!disks.required && root.field("node").unwrap().required);
        assert_eq!(disks.node.field("size").unwrap().node.types(), ["string"]);
        assert!(disks.node.field("node").is_none());
    }

    #[test]
    fn a_fragment_stands_alone_even_if_the_schema_refers_to_itself() {
        let spec = spec();
        let disks = Node::root(&spec).field("disks").unwrap().node.standalone();
        assert_eq!(disks["anyOf"][0]["items"]["properties"]["size"]["type"], json!(["string", "null"]));
        assert!(!disks.to_string().contains("$ref"));
        assert!(Node::root(&spec).field("child").unwrap().node.standalone().is_object());
    }

    #[test]
    fn references_still_lead_somewhere_in_a_manifests_schema() {
        let info = proxops_model::kind::KindInfo {
            kind: "Pool".into(),
            version: "1".into(),
            api_versions: vec!["example.org/v1".into()],
            root: "pool".into(),
            summary: "A pool".into(),
            target: proxops_model::kind::Target::Artifact { content: "iso".into(), extensions: vec![] },
            schema: spec().to_string(),
            examples: vec![],
        };
        let whole = manifest(&info);
        let root = Node::root(&whole);
        let spec = root.field("spec").unwrap().node;
        assert!(spec.field("disks").unwrap().node.field("size").is_some());
        assert!(spec.field("child").unwrap().node.field("disks").is_some());
        assert_eq!(whole["properties"]["kind"]["const"], "Pool");
    }
}
