//! What an object kind's call may say: its own operations on its own object, and never without the proof of
//! ownership. The host fills in the path; what is left to refuse are parameters that would reach past it.

use crate::check::{Checked, key, quote, refuse, segment};
use crate::steps::{Owner, distinct, host_keys};
use proxops_model::{
    kind::{Identity, KindStep, ObjectTarget, Ownership, Param, ParamValue, Validated},
    object,
    text::{has_tag, split_list},
};

/// One step of an object kind.
pub(crate) fn check(
    step: &KindStep,
    target: &ObjectTarget,
    owner: Owner<'_>,
    validated: Option<&Validated>,
) -> Checked {
    let KindStep::Call { operation, vars, set, unset } = step else {
        refuse!("it returns a step other than a call, and its target is an object");
    };
    if operation == "delete" {
        refuse!("it calls \"delete\"; the host deletes, with a proof of ownership");
    }
    let Some(write) = target.writes.iter().find(|w| w.name == *operation) else {
        let known: Vec<&str> = target.writes.iter().map(|w| w.name.as_str()).collect();
        refuse!(
            "it calls the operation {}, which it does not declare ({})",
            quote(operation),
            known.join(", ")
        );
    };
    for (name, value) in vars {
        key(name)?;
        segment("path variable", value)?;
    }
    let Some(Identity::Object(id)) = validated.map(|v| &v.identity) else {
        refuse!("it calls {}, and says no object id", quote(operation));
    };
    // no variable can lead to another object or node
    if let Err(why) = object::path(write, id, vars) {
        refuse!("its {why}");
    }
    host_keys(set, &["digest"])?;
    if let Some(param) = &write.id_param {
        host_keys(set, &[param.as_str()])?;
        if unset.contains(param) {
            refuse!("it removes {}, which carries the object's id", quote(param));
        }
    }
    // PVE renames with a parameter of the new name's call: the old name must be this object's own
    if let Some(param) = set.iter().find(|p| p.key == "rename")
        && param.value != ParamValue::Text(id.id.clone())
    {
        refuse!("it sends \"rename\" with another object's id");
    }
    if !unset.is_empty() {
        host_keys(set, &["delete"])?;
    }
    for name in unset {
        key(name)?;
    }
    let own = object::marker(owner.tag, owner.kind, owner.name);
    for param in set {
        let texts = match &param.value {
            ParamValue::Text(text) => std::slice::from_ref(text),
            ParamValue::Many(texts) => texts.as_slice(),
            ParamValue::Secret(_) => &[],
        };
        if texts.iter().any(|text| object::markers(text).iter().any(|marker| *marker != own)) {
            refuse!("it writes the marker of another resource into \"{}\"", param.key);
        }
    }
    if !write.part {
        proof_is_kept(operation, target, set, unset, owner)?;
    }
    distinct(set.iter().map(|p| p.key.as_str()).chain(unset.iter().map(String::as_str)))
}

/// "create" sets the proof of ownership, and no call takes it away.
fn proof_is_kept(
    operation: &str,
    target: &ObjectTarget,
    set: &[Param],
    unset: &[String],
    owner: Owner<'_>,
) -> Checked {
    let (field, proof) = match &target.ownership {
        Ownership::None => return Ok(()),
        Ownership::Tags(field) => (field, format!("the owner tag \"{}\"", owner.tag)),
        Ownership::Marker { field, .. } => {
            (field, format!("the marker {}", object::marker(owner.tag, owner.kind, owner.name)))
        }
    };
    // as a parameter `delete` is PVE's list of keys to remove
    let removed = set.iter().filter(|p| p.key == "delete").flat_map(|p| match &p.value {
        ParamValue::Text(text) => split_list(text).collect(),
        ParamValue::Many(texts) => texts.iter().map(String::as_str).collect(),
        ParamValue::Secret(_) => Vec::new(),
    });
    if unset.iter().map(String::as_str).chain(removed).any(|name| name == field) {
        refuse!("it removes \"{field}\", and with it {proof}");
    }
    let kept = |value: &ParamValue| match (value, &target.ownership) {
        (ParamValue::Text(text), Ownership::Tags(_)) => has_tag(text, owner.tag),
        (ParamValue::Text(text), _) => {
            object::markers(text) == [object::marker(owner.tag, owner.kind, owner.name)]
        }
        _ => false,
    };
    match set.iter().find(|p| p.key == *field) {
        Some(param) if !kept(&param.value) => refuse!("it sets \"{field}\" without {proof}"),
        None if operation == "create" => refuse!("it creates an object without {proof} in \"{field}\""),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxops_model::kind::{Method, ObjectId, Operation};

    const OWNER: Owner<'static> = Owner { kind: "Pool", name: "web", tag: "proxops" };

    fn text(key: &str, value: &str) -> Param {
        Param { key: key.into(), value: ParamValue::Text(value.into()), at: None }
    }

    /// A call of a pool-like kind, whose object is "a".
    fn call(name: &str, vars: &[(&str, &str)], set: Vec<Param>, unset: &[&str]) -> Checked {
        let operation = |name: &str, method, path: &str, id_param: Option<&str>| Operation {
            name: name.into(),
            method,
            path: path.into(),
            id_param: id_param.map(str::to_owned),
            digest: false,
            part: false,
        };
        let target = ObjectTarget {
            list: operation("list", Method::Get, "/pools", None),
            read: operation("read", Method::Get, "/pools/{id}", None),
            id_field: "poolid".into(),
            writes: vec![
                operation("create", Method::Post, "/pools", Some("poolid")),
                operation("update", Method::Put, "/pools/{id}", None),
                Operation { part: true, ..operation("change-part", Method::Put, "/pools/{id}/{pos}", None) },
                operation("delete", Method::Delete, "/pools/{id}", None),
            ],
            ownership: Ownership::Marker { field: "comment".into(), in_list: true },
        };
        let id = ObjectId { id: "a".into(), vars: vec![("node".into(), "n1".into())] };
        let validated = Validated {
            identity: Identity::Object(id),
            power: None,
            references: vec![],
            secrets: vec![],
            storages: vec![],
            attributes: vec![],
            incomplete: vec![],
        };
        let step = KindStep::Call {
            operation: name.into(),
            vars: vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            set,
            unset: unset.iter().map(|k| (*k).to_owned()).collect(),
        };
        check(&step, &target, OWNER, Some(&validated))
    }

    #[test]
    fn an_object_kind_calls_its_own_operations_and_never_delete() {
        assert_eq!(call("update", &[], vec![text("vms", "100")], &[]), Ok(()));
        assert_eq!(call("change-part", &[("pos", "0")], vec![], &["dport"]), Ok(()));
        for name in ["delete", "purge", "list"] {
            assert!(call(name, &[], vec![], &[]).is_err(), "{name}");
        }
    }

    #[test]
    fn a_call_can_not_reach_another_object_or_node() {
        for bad in ["../b", "..", "%2e%2e", "0/1", "0?x", "0#x", "", "0//1"] {
            assert!(call("change-part", &[("pos", bad)], vec![], &[]).is_err(), "{bad:?}");
        }
        for name in ["id", "node"] {
            assert!(call("update", &[(name, "b")], vec![], &[]).is_err(), "{name}");
        }
        let comment = || text("comment", "proxops:proxops:Pool/web");
        assert_eq!(call("create", &[], vec![comment()], &[]), Ok(()));
        assert!(call("create", &[], vec![comment(), text("poolid", "b")], &[]).is_err());
        assert!(call("create", &[], vec![comment(), text("rename", "b")], &[]).is_err());
        assert_eq!(call("create", &[], vec![comment(), text("rename", "a")], &[]), Ok(()));
        assert!(call("update", &[], vec![text("digest", "0")], &[]).is_err());
    }

    #[test]
    fn the_proof_of_ownership_is_set_and_can_not_be_dropped() {
        assert_eq!(call("update", &[], vec![text("comment", "Web\nproxops:proxops:Pool/web")], &[]), Ok(()));
        for comment in
            ["Web", "", "proxops:proxops:Pool/other", "proxops:other:Pool/web", "proxops:proxops:Team/web"]
        {
            assert!(call("update", &[], vec![text("comment", comment)], &[]).is_err(), "{comment:?}");
        }
        assert!(call("create", &[], vec![], &[]).is_err());
        assert!(call("update", &[], vec![], &["comment"]).is_err());
        assert!(call("update", &[], vec![text("delete", "vms,comment")], &[]).is_err());
        // PVE's pools take members away with a flag of that name
        assert_eq!(call("update", &[], vec![text("vms", "100"), text("delete", "1")], &[]), Ok(()));
        assert!(call("update", &[], vec![text("delete", "1")], &["vms"]).is_err());
    }

    #[test]
    fn a_field_of_a_part_may_be_called_as_the_proofs_and_can_not_forge_one() {
        let part = |comment: &str| call("change-part", &[("pos", "0")], vec![text("comment", comment)], &[]);
        assert_eq!(part("HTTP"), Ok(()));
        assert_eq!(call("change-part", &[("pos", "0")], vec![], &["comment"]), Ok(()));
        assert!(part("proxops:proxops:Pool/other").is_err());
        assert!(call("update", &[], vec![text("vms", "proxops:proxops:Pool/other")], &[]).is_err());
    }
}
