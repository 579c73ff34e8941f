//! Objects of PVE's API: what a target says, and a live object looked up by key.

use crate::{
    CallStep, Diagnostic, Identity, Live, LiveObject, LiveValue, Marker, Method, ObjectId, ObjectTarget,
    Operation, Ownership, Param, ParamRef, Refusal, Step, Target,
};
use serde_json::Value;

impl Operation {
    /// One request, such as `Operation::new("update", Method::Put, "/pools")`.
    pub fn new(name: &str, method: Method, path: &str) -> Self {
        let (name, path) = (name.to_owned(), path.to_owned());
        Self { name, method, path, id_param: None, digest: false, part: false, ext: Vec::new() }
    }
    /// The parameter that carries the id, where the path does not.
    #[must_use]
    pub fn id_in(mut self, param: &str) -> Self {
        self.id_param = Some(param.to_owned());
        self
    }
    /// PVE takes a digest with it.
    #[must_use]
    pub fn with_digest(mut self) -> Self {
        self.digest = true;
        self
    }
    /// It writes a part of the object, such as a rule.
    #[must_use]
    pub fn of_part(mut self) -> Self {
        self.part = true;
        self
    }
}

impl Ownership {
    /// The marker in a text field of the answer to `read`.
    pub fn marker_in(field: &str) -> Self {
        Self::Marker(Marker { field: field.to_owned(), in_list: false })
    }
    /// The marker in a text field of the list's row.
    pub fn marker_in_row(field: &str) -> Self {
        Self::Marker(Marker { field: field.to_owned(), in_list: true })
    }
}

impl Target {
    /// An object: how it is listed and read, the row's field that holds its id, what may be written, and
    /// how the host proves that one is ours.
    pub fn object_of(
        list: Operation,
        read: Operation,
        id_field: &str,
        writes: Vec<Operation>,
        ownership: Ownership,
    ) -> Self {
        let id_field = id_field.to_owned();
        Self::Object(ObjectTarget { list, read, id_field, writes, ownership, ext: Vec::new() })
    }
}

impl Identity {
    /// An object that its id alone names.
    pub fn object_id(id: &str) -> Self {
        Self::Object(ObjectId { id: id.to_owned(), vars: Vec::new(), ext: Vec::new() })
    }
}

impl Step {
    /// One of the kind's own writes.
    pub fn call_of(operation: &str, set: Vec<Param>, unset: Vec<ParamRef>) -> Self {
        Self::Call(CallStep {
            operation: operation.to_owned(),
            vars: Vec::new(),
            set,
            unset,
            ext: Vec::new(),
        })
    }
    /// The same with path segments of its own, such as a rule's position.
    pub fn call_at(operation: &str, vars: &[(&str, &str)], set: Vec<Param>, unset: Vec<ParamRef>) -> Self {
        let vars = vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Self::Call(CallStep { operation: operation.to_owned(), vars, set, unset, ext: Vec::new() })
    }
}

/// An object as PVE reports it.
#[derive(Debug)]
pub struct ObjectView<'a> {
    /// The contract's record.
    pub object: &'a LiveObject,
}

impl<'a> ObjectView<'a> {
    /// The object of a live report; anything else is not for an object kind.
    pub fn of(live: &'a Live) -> Result<Self, Refusal> {
        match live {
            Live::Object(object) => Ok(Self { object }),
            _ => Err(vec![Diagnostic::error("not-an-object", "", "the live object is not one of the API")]),
        }
    }

    /// The text of a key of the answer to `read`; `None` when it is not set (or not a scalar).
    pub fn text(&self, key: &str) -> Option<&'a str> {
        text(&self.object.values, key)
    }

    /// The text of a key of the list's row.
    pub fn row(&self, key: &str) -> Option<&'a str> {
        text(&self.object.row, key)
    }

    /// A key that is no scalar, such as a list of members.
    pub fn json(&self, key: &str) -> Value {
        let found = self.object.values.iter().find(|(k, _)| k == key);
        match found {
            Some((_, LiveValue::Json(json))) => serde_json::from_str(json).unwrap_or_default(),
            _ => Value::Null,
        }
    }

    /// The elements, where the answer to `read` is a list.
    pub fn list(&self) -> Vec<Value> {
        match self.json("") {
            Value::Array(list) => list,
            _ => Vec::new(),
        }
    }
}

fn text<'a>(values: &'a [(String, LiveValue)], key: &str) -> Option<&'a str> {
    match values.iter().find(|(k, _)| k == key) {
        Some((_, LiveValue::Text(text))) => Some(text),
        _ => None,
    }
}
