//! Reads the objects of third-party kinds: only paths that the operator granted, one list for each set of
//! variables, then the objects that a manifest names or that could be ours.

use futures::stream::{self, StreamExt as _};
use proxops_model::ResourceId;
use proxops_model::kind::{
    Identity, KindInfo, LiveObject, LiveValue, ObjectId, ObjectTarget, Operation, Ownership, Pairs, Target,
};
use proxops_model::object::{self, Grants, Proof};
use proxops_plan::{Index, NodeState, ObjectRead, Objects, World};
use proxops_pve::Client;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Reads at once; the client has a bound of its own.
const PARALLEL: usize = 16;

/// Most objects of one list; more is no list that a kind should manage.
const MOST: usize = 20_000;

/// Fills in the objects of every kind that is used and may be read. A file that was refused is not among
/// `infos`: what it says about itself must not reach the cluster.
pub(crate) async fn load<'k>(
    client: &Client,
    index: &Index,
    infos: impl Iterator<Item = &'k KindInfo>,
    grants: &Grants,
    owner_tag: &str,
    world: &mut World,
) {
    let mut wanted = Vec::new();
    for info in infos {
        let Target::Object(target) = &info.target else { continue };
        if grants.allow_reads(&info.kind, target) {
            wanted.extend(
                lists(index, info, target, world).into_iter().map(|(vars, ids)| (info, target, vars, ids)),
            );
        }
    }
    let found: Vec<_> = stream::iter(wanted)
        .map(|(info, target, vars, ids)| async move {
            let key = (info.kind.clone(), vars.clone());
            (key, one_list(client, grants, info, target, &vars, &ids, owner_tag).await)
        })
        .buffered(PARALLEL)
        .collect()
        .await;
    world.objects = found.into_iter().collect();
}

/// The lists of a kind: their variables, and the ids that manifests name in each. A list on nodes is looked
/// at on every node, since what no manifest names any more must be found too.
fn lists(
    index: &Index,
    info: &KindInfo,
    target: &ObjectTarget,
    world: &World,
) -> BTreeMap<Pairs, BTreeSet<ObjectId>> {
    let mut lists: BTreeMap<Pairs, BTreeSet<ObjectId>> = BTreeMap::new();
    let usable = |vars: &Pairs| {
        vars.iter()
            .filter(|(name, _)| name == "node")
            .all(|(_, node)| index.allows(node) && world.nodes.get(node) == Some(&NodeState::Online))
    };
    for r in index.resources.values().filter(|r| r.id.kind == info.kind) {
        let Identity::Object(id) = &r.validated.identity else { continue };
        let vars = object::list_vars(target, id);
        if usable(&vars) {
            lists.entry(vars).or_default().insert(id.clone());
        }
    }
    match object::variables(&target.list.path)[..] {
        [] => drop(lists.entry(Vec::new()).or_default()),
        ["node"] => {
            for node in world.nodes.keys() {
                let vars = vec![("node".to_owned(), node.clone())];
                if usable(&vars) {
                    lists.entry(vars).or_default();
                }
            }
        }
        _ => {}
    }
    lists
}

async fn one_list(
    client: &Client,
    grants: &Grants,
    info: &KindInfo,
    target: &ObjectTarget,
    vars: &Pairs,
    named: &BTreeSet<ObjectId>,
    owner_tag: &str,
) -> Result<Objects, String> {
    let rows = rows(client, grants, &info.kind, target, vars).await?;
    let ids = rows.into_iter().filter_map(|(id, row)| {
        let known = named.iter().find(|n| n.id == id).cloned();
        let desired = known.is_some();
        let id = known.unwrap_or_else(|| ObjectId { id, vars: vars.clone() });
        // the row alone says whether it could be ours, where the marker stands in it
        let possible = match &target.ownership {
            Ownership::None => false,
            Ownership::Marker { in_list: true, .. } => {
                let none = BTreeMap::new();
                matches!(object::proof(&target.ownership, &info.kind, owner_tag, &row, &none), Proof::Ours(_))
            }
            _ => true,
        };
        (desired || possible).then_some((id, row, desired))
    });
    let reads: Vec<(String, bool, Result<ObjectRead, String>)> = stream::iter(ids.collect::<Vec<_>>())
        .map(|(id, row, desired)| async move {
            (id.id.clone(), desired, read(client, grants, &info.kind, target, &id, row).await)
        })
        .buffered(PARALLEL)
        .collect()
        .await;
    Ok(reads
        .into_iter()
        // what nobody names and nobody can read can't be proven ours
        .filter(|(_, desired, read)| *desired || read.is_ok())
        .map(|(id, _, read)| (id, read))
        .collect())
}

/// The rows of a list by id.
async fn rows(
    client: &Client,
    grants: &Grants,
    kind: &str,
    target: &ObjectTarget,
    vars: &Pairs,
) -> Result<BTreeMap<String, BTreeMap<String, LiveValue>>, String> {
    let place = ObjectId { id: "-".to_owned(), vars: vars.clone() };
    let answer = get(client, grants, kind, &target.list, &place, false).await?;
    let Value::Array(list) = answer else {
        return Err("PVE's answer is not a list".to_owned());
    };
    if list.len() > MOST {
        return Err(format!("the list has more than {MOST} entries"));
    }
    let mut rows = BTreeMap::new();
    for row in list {
        let Some(id) = row.get(&target.id_field).and_then(proxops_model::text::scalar) else {
            return Err(format!("an entry of the list has no `{}`", target.id_field));
        };
        if rows.insert(id.clone(), values(&row)).is_some() {
            return Err(format!("the list has \"{}\" twice", proxops_model::text::printable(&id)));
        }
    }
    Ok(rows)
}

async fn read(
    client: &Client,
    grants: &Grants,
    kind: &str,
    target: &ObjectTarget,
    id: &ObjectId,
    mut row: BTreeMap<String, LiveValue>,
) -> Result<ObjectRead, String> {
    let answer = get(client, grants, kind, &target.read, id, true).await?;
    Ok(object_read(id, &mut row, answer))
}

/// What a kind gets, the digest taken out.
fn object_read(id: &ObjectId, row: &mut BTreeMap<String, LiveValue>, mut answer: Value) -> ObjectRead {
    let mut digest = None;
    let mut take = |value: &mut Value| {
        let found = value.as_object_mut().and_then(|map| map.remove("digest"));
        if let Some(text) = found.as_ref().and_then(Value::as_str) {
            digest.get_or_insert_with(|| text.to_owned());
        }
    };
    let values = match &mut answer {
        Value::Array(list) => {
            list.iter_mut().for_each(&mut take);
            BTreeMap::from([(String::new(), LiveValue::Json(answer.to_string()))])
        }
        _ => {
            take(&mut answer);
            values(&answer)
        }
    };
    if let Some(LiveValue::Text(text)) = row.remove("digest") {
        digest.get_or_insert(text);
    }
    ObjectRead { live: LiveObject { id: id.clone(), values, row: std::mem::take(row) }, digest }
}

fn values(value: &Value) -> BTreeMap<String, LiveValue> {
    let fields = value.as_object().into_iter().flatten();
    fields.map(|(key, value)| (key.clone(), LiveValue::from_json(value))).collect()
}

/// One GET, if it is granted.
async fn get(
    client: &Client,
    grants: &Grants,
    kind: &str,
    operation: &Operation,
    id: &ObjectId,
    with_id: bool,
) -> Result<Value, String> {
    let path = object::path(operation, id, &[])?;
    if !grants.allow(kind, &path) {
        return Err(format!("kind {kind} was not granted {path}"));
    }
    let query: Vec<(&str, &str)> =
        operation.id_param.iter().filter(|_| with_id).map(|param| (param.as_str(), id.id.as_str())).collect();
    client.get(&path, &query).await.map(|answer| answer.data).map_err(|error| error.to_string())
}

/// One object as it is now; `Ok(None)` = it is not in its list.
pub(crate) async fn find(
    client: &Client,
    grants: &Grants,
    resource: &ResourceId,
    target: &ObjectTarget,
    id: &ObjectId,
) -> Result<Option<ObjectRead>, String> {
    let vars = object::list_vars(target, id);
    let mut rows = rows(client, grants, &resource.kind, target, &vars).await?;
    match rows.remove(&id.id) {
        None => Ok(None),
        Some(row) => read(client, grants, &resource.kind, target, id, row).await.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(row: Value, answer: Value) -> ObjectRead {
        let id = ObjectId { id: "a".into(), vars: Vec::new() };
        object_read(&id, &mut values(&row), answer)
    }

    #[test]
    fn the_digest_is_taken_out_wherever_pve_gives_it() {
        let of_answer = of(json!({"id": "a", "digest": "row"}), json!({"state": "started", "digest": "own"}));
        assert_eq!(of_answer.digest.as_deref(), Some("own"));
        assert!(!of_answer.live.values.contains_key("digest") && !of_answer.live.row.contains_key("digest"));
        let of_list = of(json!({}), json!([{"pos": 0, "digest": "list"}, {"pos": 1, "digest": "list"}]));
        assert_eq!(of_list.digest.as_deref(), Some("list"));
        assert_eq!(of_list.live.values[""], LiveValue::Json("[{\"pos\":0},{\"pos\":1}]".into()));
        let of_row = of(json!({"digest": "row"}), json!([]));
        assert_eq!(of_row.digest.as_deref(), Some("row"));
        assert_eq!(of(json!({}), json!({})).digest, None);
    }
}
