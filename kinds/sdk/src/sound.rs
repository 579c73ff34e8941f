//! What a kind adopts is a manifest that it accepts. PVE holds values that no manifest takes (more virtual processors
//! than there are, a path that is mounted twice): such a field is left to PVE, and told under PVE's own key with PVE's
//! own text.

use crate::kind::{Kind, validate};
use crate::report::steps;
use crate::{Adopted, Gap, Live, LiveView, Manifest, Severity, names, schema};
use serde_json::Value;

/// Most fields that are left out of one manifest; what then is wrong is told by whoever validates it next.
const MOST: usize = 64;

/// Leaves out what [`Kind::validate`] refuses.
pub(crate) fn hold<K: Kind>(name: &str, live: &Live, adopted: &mut Adopted) {
    for _ in 0..MOST {
        let manifest = Manifest {
            name: name.to_owned(),
            labels: adopted.labels.clone(),
            annotations: adopted.annotations.clone(),
            spec: adopted.spec.clone(),
            ext: Vec::new(),
        };
        let found = validate::<K>(&manifest).diagnostics;
        let errors = found.iter().filter(|d| d.severity == Severity::Error);
        // The most exact place first.
        let Some(error) = errors.max_by_key(|d| d.at.len()) else { return };
        let Some((spec, path, taken)) = without::<K>(&adopted.spec, &error.at) else { return };
        let (key, whole) = key_of::<K>(&adopted.spec, &path);
        let text = LiveView::of(live).ok().and_then(|live| live.text(&key).map(str::to_owned));
        let own = taken.as_str().map_or_else(|| taken.to_string(), str::to_owned);
        let value = text.filter(|_| whole).unwrap_or(own);
        let value = (!names::is_secret_like(&key) && !names::is_secret_like(&value)).then_some(value);
        adopted.gaps.push(Gap::new(key, value, format!("no manifest can say this: {}", error.message)));
        let at = format!("/spec/{}", path.join("/"));
        adopted.incomplete.retain(|hole| !hole.at.starts_with(&at));
        adopted.spec = spec;
    }
}

/// The spec without the nearest part around a pointer that it can do without: its text, where that part stood, and
/// what it was.
fn without<K: Kind>(spec: &str, at: &str) -> Option<(String, Vec<String>, Value)> {
    let whole: Value = serde_json::from_str(spec).ok()?;
    let mut path: Vec<String> = steps(at.strip_prefix("/spec")?).collect();
    while !path.is_empty() {
        let mut rest = whole.clone();
        if let Some(taken) = take(&mut rest, &path)
            && let Ok(typed) = serde_json::from_value::<K::Spec>(rest)
        {
            return Some((serde_json::to_string(&typed).ok()?, path, taken));
        }
        path.pop();
    }
    None
}

/// Takes out what stands at a path, and the maps and lists that are empty without it.
fn take(tree: &mut Value, path: &[String]) -> Option<Value> {
    let (step, rest) = path.split_first()?;
    let index = || step.parse::<usize>().ok();
    if rest.is_empty() {
        return match tree {
            Value::Object(fields) => fields.remove(step),
            Value::Array(items) => index().filter(|i| *i < items.len()).map(|i| items.remove(i)),
            _ => None,
        };
    }
    let inner = match tree {
        Value::Object(fields) => fields.get_mut(step)?,
        Value::Array(items) => items.get_mut(index()?)?,
        _ => return None,
    };
    let taken = take(inner, rest)?;
    let empty = match inner {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if empty {
        take(tree, std::slice::from_ref(step));
    }
    Some(taken)
}

/// PVE's key of the field at a path, and whether the field is all of it: the slot of a list's item, else what the
/// schema says of the field or of the nearest one around it, else the field's own name.
fn key_of<K: Kind>(spec: &str, path: &[String]) -> (String, bool) {
    let spec: Value = serde_json::from_str(spec).unwrap_or_default();
    let root = schema::of::<K::Spec>();
    let (mut at, mut field) = (&spec, Some(&*root));
    let mut found = (path.last().cloned().unwrap_or_default(), true);
    for (n, step) in path.iter().enumerate() {
        let last = n + 1 == path.len();
        at = match at {
            Value::Array(items) => {
                step.parse::<usize>().ok().and_then(|i| items.get(i)).unwrap_or(&Value::Null)
            }
            other => other.get(step).unwrap_or(&Value::Null),
        };
        field = field.and_then(|schema| schema::member(&root, schema, step)).map(|(schema, _)| schema);
        let slot = ["slot", "interface"].iter().find_map(|name| at.get(name)?.as_str());
        let known = field.and_then(|schema| schema.get("x-pve-key")).and_then(Value::as_str);
        if let Some(key) = slot.or(known) {
            found = (key.to_owned(), last);
        } else if found.0 != *step {
            found.1 = false;
        }
    }
    found
}
