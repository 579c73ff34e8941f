//! Manifests as texts: reading an example, changing one place of a spec.

use proxops_model::kind::{Manifest, Pairs};
use serde_json::{Map, Value};

/// A whole manifest, as kinds give examples, without its envelope.
pub(crate) fn read(text: &str) -> Option<Manifest> {
    let whole: Value = serde_json::from_str(text).ok()?;
    let pairs = |pointer: &str| -> Pairs {
        let map = whole.pointer(pointer).and_then(Value::as_object);
        map.into_iter().flatten().filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect()
    };
    Some(Manifest {
        name: whole.pointer("/metadata/name")?.as_str()?.to_owned(),
        labels: pairs("/metadata/labels"),
        annotations: pairs("/metadata/annotations"),
        spec: whole.get("spec")?.to_string(),
    })
}

/// The spec as a value.
pub(crate) fn spec(manifest: &Manifest) -> Value {
    serde_json::from_str(&manifest.spec).unwrap_or(Value::Null)
}

/// The same with one value put in; parents that are missing are made. `None` where a parent is no mapping
/// and no list that long.
pub(crate) fn with(manifest: &Manifest, pointer: &str, value: Value) -> Option<Manifest> {
    let mut spec = spec(manifest);
    put(&mut spec, pointer, value)?;
    Some(Manifest { spec: spec.to_string(), ..manifest.clone() })
}

fn put(at: &mut Value, pointer: &str, value: Value) -> Option<()> {
    let Some(rest) = pointer.strip_prefix('/') else {
        *at = value;
        return Some(());
    };
    let (step, rest) = match rest.find('/') {
        Some(end) => rest.split_at(end),
        None => (rest, ""),
    };
    let step = step.replace("~1", "/").replace("~0", "~");
    match at {
        Value::Object(map) => put(map.entry(step).or_insert_with(|| Value::Object(Map::new())), rest, value),
        Value::Array(list) => put(list.get_mut(step.parse::<usize>().ok()?)?, rest, value),
        _ => None,
    }
}

/// A pointer's further step.
pub(crate) fn child(pointer: &str, step: &str) -> String {
    format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"))
}
