//! An object kind over PVE's pools that attacks its host. `describe` is "object" (with a marker), "object-none"
//! (without a proof) or "object-wide" (it also wants to write HA resources).

use crate::proxops::kind::types::*;

fn operation(name: &str, method: Method, path: &str, id_param: Option<&str>) -> Operation {
    Operation {
        name: name.into(),
        method,
        path: path.into(),
        id_param: id_param.map(str::to_owned),
        digest: false,
        part: false,
        ext: vec![],
    }
}

pub fn target(attack: &str) -> Target {
    let mut writes = vec![
        operation("create", Method::Post, "/pools", Some("poolid")),
        operation("update", Method::Put, "/pools", Some("poolid")),
        operation("part", Method::Put, "/pools/{id}/{pos}", None),
        operation("delete", Method::Delete, "/pools", Some("poolid")),
    ];
    if attack == "object-wide" {
        writes.push(operation("ha", Method::Post, "/cluster/ha/resources", Some("sid")));
    }
    Target::Object(ObjectTarget {
        list: operation("list", Method::Get, "/pools", None),
        read: operation("read", Method::Get, "/pools", Some("poolid")),
        id_field: "poolid".into(),
        writes,
        ownership: match attack {
            "object-none" => Ownership::None,
            _ => Ownership::Marker(Marker { field: "comment".into(), in_list: true }),
        },
        ext: vec![],
    })
}

/// The object's id: "evil", or what follows "id:" in the attack.
pub fn validation(attack: &str) -> Validation {
    let id = attack.strip_prefix("id:").unwrap_or("evil").to_owned();
    let vars = match attack {
        "var-twice" => vec![("zone".into(), "a".into()), ("zone".into(), "b".into())],
        _ => vec![],
    };
    Validation {
        validated: Some(Validated {
            identity: Identity::Object(ObjectId { id, vars, ext: vec![] }),
            power: None,
            references: vec![],
            secrets: vec![],
            storages: vec![],
            attributes: vec![],
            incomplete: vec![],
            ext: vec![],
        }),
        diagnostics: vec![],
        ext: vec![],
    }
}

fn text(key: &str, value: &str) -> Param {
    Param { key: key.into(), value: Value::Text(value.into()), at: None, ext: vec![] }
}

fn call(operation: &str, vars: &[(&str, &str)], set: Vec<Param>, unset: &[&str]) -> Step {
    Step::Call(CallStep {
        operation: operation.into(),
        vars: vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        set,
        unset: unset.iter().map(|k| ParamRef { key: (*k).into(), at: None, ext: vec![] }).collect(),
        ext: vec![],
    })
}

/// What breaks the rules; `None` for an honest attack name.
fn attack(attack: &str, marker: &str) -> Option<Step> {
    let marked = || text("comment", marker);
    Some(match attack {
        "call-delete" => call("delete", &[], vec![], &[]),
        "call-undeclared" => call("purge", &[], vec![], &[]),
        "configure" => {
            Step::Configure(ConfigureStep { set: vec![], unset: vec![], revert: vec![], ext: vec![] })
        }
        "var-id" => call("part", &[("pos", "0"), ("id", "lab")], vec![], &[]),
        "var-node" => call("part", &[("pos", "0"), ("node", "pve02")], vec![], &[]),
        "set-id" => call("update", &[], vec![text("poolid", "lab")], &[]),
        "set-digest" => call("update", &[], vec![text("digest", "0")], &[]),
        "rename" => call("update", &[], vec![text("rename", "lab")], &[]),
        "foreign-marker" => call("update", &[], vec![text("comment", "proxops:proxops:Pool/web")], &[]),
        "drop-marker" => call("update", &[], vec![text("comment", "mine")], &[]),
        "unset-marker" => call("update", &[], vec![], &["comment"]),
        "delete-marker" => call("update", &[], vec![text("delete", "comment")], &[]),
        "ungranted" => call("ha", &[], vec![marked()], &[]),
        attack => call("part", &[("pos", attack.strip_prefix("var:")?)], vec![], &[]),
    })
}

pub fn creation(name: &str, marker: &str) -> Creation {
    let step = match name {
        "untagged" => call("create", &[], vec![text("comment", "mine")], &[]),
        _ => attack(name, marker).unwrap_or_else(|| call("create", &[], vec![text("comment", marker)], &[])),
    };
    Creation { steps: vec![step], warnings: vec![], anomalies: vec![], ext: vec![] }
}

pub fn report(name: &str, marker: &str) -> DriftReport {
    let steps = match name {
        // what it does to an object that is there
        "change" => vec![call("update", &[], vec![text("comment", &format!("changed\n{marker}"))], &[])],
        _ => attack(name, marker).into_iter().collect(),
    };
    DriftReport { changes: vec![], steps, pending: vec![], anomalies: vec![], ext: vec![] }
}
