//! Every field of the schema, changed: the change is seen, and one update converges it.

use crate::cluster::{Resource, refusal};
use crate::life::{Made, left};
use crate::manifest::{self, child};
use crate::mutate::{candidates, shown};
use crate::report::Check;
use crate::schema::Node;
use proxops_model::Severity;
use proxops_model::kind::{Identity, KindApi, KindSet, Manifest};
use serde_json::Value;

/// Most valid values that are tried where none is seen.
const PATIENCE: usize = 4;

/// What became of one changed value.
enum Tried {
    /// Seen, and converged in one update.
    Converged,
    /// Seen, and a person is told why it stays.
    Told,
    /// It means another object, or another power state: no drift.
    Elsewhere,
    /// Not seen.
    Unseen,
    /// No valid manifest, or one that needs what can't be made.
    Unfit,
    /// PVE refuses what the kind sends.
    Refused(String),
    /// Against the rules.
    Wrong(String),
}

/// Two identities of the same object; a guest's name is no part of it.
pub(crate) fn same_object(a: &Identity, b: &Identity) -> bool {
    match (a, b) {
        (Identity::Guest(a), Identity::Guest(b)) => a.vmid == b.vmid && a.node == b.node,
        (a, b) => a == b,
    }
}

/// A field of the schema: names, with "*" for the elements of a list.
struct Leaf<'a> {
    path: Vec<String>,
    node: Node<'a>,
}

pub(crate) fn check(kinds: &dyn KindSet, kind: &dyn KindApi, made: &[Made<'_>]) -> Check {
    if made.is_empty() {
        return Check::skipped("mutation", "there is no object");
    }
    let mut check = Check::new("mutation");
    let schema: Value = serde_json::from_str(&kind.info().schema).unwrap_or_default();
    let mut leaves = Vec::new();
    collect(&Node::root(&schema), &mut Vec::new(), &mut leaves);
    let (mut converged, mut told, mut other, mut uncompared) = (0, 0, 0, 0);
    for leaf in &leaves {
        let name = leaf.path.join(".").replace(".*", "");
        match one(kinds, kind, made, leaf) {
            Ok(Tried::Converged) => converged += 1,
            Ok(Tried::Told) => told += 1,
            Ok(Tried::Elsewhere) => other += 1,
            _ if leaf.node.keyword("x-compared").is_some_and(|c| c == false) => uncompared += 1,
            Ok(Tried::Unfit) => check.note(format!("{name}: no other valid value found")),
            Ok(Tried::Refused(why)) => {
                check.note(format!("{name}: every valid value found is refused: {why}"))
            }
            Ok(Tried::Unseen) => check.problem(format!("{name}: no change is seen")),
            Ok(Tried::Wrong(why)) | Err(why) => check.problem(format!("{name}: {why}")),
        }
    }
    check.done(format!(
        "{} fields: {converged} converge in one update, {told} are told, {other} mean another object or power, \
         {uncompared} are not compared",
        leaves.len()
    ))
}

fn collect<'a>(node: &Node<'a>, path: &mut Vec<String>, out: &mut Vec<Leaf<'a>>) {
    if path.len() > 12 {
        return;
    }
    let own = node.fields();
    if let Some(items) = node.items().filter(|_| own.is_empty())
        && !items.fields_within().is_empty()
    {
        path.push("*".to_owned());
        collect(&items, path, out);
        path.pop();
        return;
    }
    let has_scalar = node.types().iter().any(|t| *t != "object") || !node.choices().is_empty();
    if !path.is_empty()
        && (own.is_empty() || has_scalar)
        && node.keyword("deprecated").is_none_or(|d| d != true)
    {
        out.push(Leaf { path: path.clone(), node: node.clone() });
    }
    for field in own {
        path.push(field.name.to_owned());
        collect(&field.node, path, out);
        path.pop();
    }
}

/// Where a field stands in a spec: pointers to it, or to where it can be put in.
fn places(spec: &Value, path: &[String], pointer: &str, out: &mut Vec<(String, Option<Value>)>) {
    let Some((step, rest)) = path.split_first() else {
        out.push((pointer.to_owned(), Some(spec.clone()).filter(|v| !v.is_null())));
        return;
    };
    match (step.as_str(), spec) {
        ("*", Value::Array(list)) => {
            for (index, item) in list.iter().enumerate() {
                places(item, rest, &child(pointer, &index.to_string()), out);
            }
        }
        ("*", _) => {}
        (name, Value::Object(map)) => {
            places(map.get(name).unwrap_or(&Value::Null), rest, &child(pointer, name), out)
        }
        (name, Value::Null) => places(&Value::Null, rest, &child(pointer, name), out),
        _ => {}
    }
}

fn one(kinds: &dyn KindSet, kind: &dyn KindApi, made: &[Made<'_>], leaf: &Leaf<'_>) -> Result<Tried, String> {
    let mut all = Vec::new();
    for one in made {
        let mut found = Vec::new();
        places(&manifest::spec(&one.example.manifest), &leaf.path, "", &mut found);
        all.extend(found.into_iter().map(|(pointer, current)| (one, pointer, current)));
    }
    // where an example has the field, first
    all.sort_by_key(|(_, _, current)| current.is_none());
    let mut best = Tried::Unfit;
    let mut patience = PATIENCE;
    for (one, pointer, current) in all {
        for value in candidates(&leaf.node, current.as_ref()) {
            let Some(changed) = manifest::with(&one.example.manifest, &pointer, value.clone()) else {
                continue;
            };
            match attempt(kinds, kind, one, &changed)? {
                Tried::Unfit => {}
                Tried::Wrong(why) => {
                    let example = &one.example.manifest.name;
                    return Ok(Tried::Wrong(format!("{example}{pointer} set to {}: {why}", shown(&value))));
                }
                Tried::Refused(why) => {
                    if matches!(best, Tried::Unfit) {
                        best = Tried::Refused(format!("{} to {}: {why}", pointer, shown(&value)));
                    }
                }
                // a field that says what holds without it changes nothing
                Tried::Unseen if current.is_none() && is_default(&leaf.node, &value) => {}
                Tried::Unseen => {
                    best = Tried::Unseen;
                    patience -= 1;
                    if patience == 0 {
                        return Ok(best);
                    }
                }
                seen => return Ok(seen),
            }
        }
    }
    Ok(best)
}

/// What most fields mean when they are left out.
fn is_default(node: &Node<'_>, value: &Value) -> bool {
    let empty = match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    };
    empty || node.keyword("default") == Some(value)
}

fn attempt(
    kinds: &dyn KindSet,
    kind: &dyn KindApi,
    made: &Made<'_>,
    changed: &Manifest,
) -> Result<Tried, String> {
    let validation = kind.validate(changed).map_err(|fault| fault.to_string())?;
    let errors = validation.diagnostics.iter().any(|d| d.severity == Severity::Error);
    let Some(validated) = validation.validated.filter(|_| !errors) else { return Ok(Tried::Unfit) };
    let before = &made.example.validated;
    if !same_object(&validated.identity, &before.identity) || validated.power != before.power {
        return Ok(Tried::Elsewhere);
    }
    let mut cluster = made.cluster.clone();
    if cluster.provide(kinds, &validated).is_err() {
        return Ok(Tried::Unfit);
    }
    let report = kind.drift(changed, &made.live, &cluster.context).map_err(refusal)?;
    let told = report.anomalies.iter().any(|a| !made.anomalies.contains(a));
    let stopped = report.anomalies.iter().any(|a| a.severity == Severity::Error);
    if stopped || (report.changes.is_empty() && report.steps.is_empty()) {
        return Ok(if told { Tried::Told } else { Tried::Unseen });
    }
    if report.changes.is_empty() {
        return Ok(Tried::Wrong("steps without a change that a person could see".to_owned()));
    }
    if report.steps.is_empty() {
        return Ok(Tried::Wrong(format!(
            "seen, but nothing would converge it: {}",
            left(&report).unwrap_or_default()
        )));
    }
    let resource = Resource { target: &kind.info().target, identity: &before.identity };
    if let Err(why) = cluster.run(resource, &report.steps) {
        return Ok(Tried::Refused(why));
    }
    let live = cluster.live(resource)?.ok_or("after the update it is not there")?;
    let after = kind.drift(changed, &live, &cluster.context).map_err(refusal)?;
    Ok(match left(&after) {
        None => Tried::Converged,
        Some(left) => Tried::Wrong(format!("after one update, still a {left}")),
    })
}
