//! Which steps a kind may ask for: by its target, by the function it answers, key by key.
//!
//! The host derives every URL from the planned resource, so a step cannot name another guest; what is
//! left to refuse are parameters that would reach past it.

use crate::check::{Checked, Violation, key, no_nul, quote, refuse, segment};
use proxops_model::{
    kind::{Identity, KindStep, ObjectTarget, Param, ParamValue, Target, Validated},
    text::has_tag,
};
use std::collections::BTreeSet;

/// Parameters of guests that only the host sends.
const HOST_KEYS: &[&str] = &[
    "vmid", "node", "newid", "target", "skiplock", "force", "purge", "digest", "lock", "delete", "revert",
    "template", "start", "unique",
];

/// Parameters of a download that the host takes from the placement.
const DOWNLOAD_KEYS: &[&str] = &["node", "storage", "content", "filename"];

/// Keys that bear secrets: PVE never reads them back.
const SECRET_KEYS: &[&str] = &["cipassword", "password"];

/// Which function returned the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Create,
    Drift,
}

/// Whether the steps can only be judged beside what `validate` said about the manifest.
pub(crate) fn need_validated(steps: &[KindStep]) -> bool {
    steps.iter().any(|step| match step {
        KindStep::Download { .. } => true,
        KindStep::Create { params }
        | KindStep::Restore { params }
        | KindStep::Clone { params, .. }
        | KindStep::Configure { set: params, .. }
        | KindStep::Call { set: params, .. } => {
            params.iter().any(|p| matches!(p.value, ParamValue::Secret(_)))
        }
        _ => false,
    })
}

/// Checks all steps of one answer. `validated` is there whenever [`need_validated`] says so.
pub(crate) fn check(
    steps: &[KindStep],
    target: &Target,
    origin: Origin,
    owner_tag: &str,
    validated: Option<&Validated>,
) -> Checked {
    for (index, step) in steps.iter().enumerate() {
        match target {
            Target::Guest { template, .. } => guest_step(step, *template, origin, index, owner_tag)?,
            Target::Artifact { .. } => artifact_step(step, validated)?,
            Target::Object(object) => object_step(step, object)?,
        }
        for param in params(step) {
            key(&param.key)?;
            value(param, validated)?;
        }
    }
    if origin == Origin::Create && matches!(target, Target::Guest { .. }) {
        let makers = steps.iter().filter(|s| makes(s)).count();
        if !steps.is_empty() && (makers != 1 || !makes(&steps[0])) {
            refuse!("its steps do not begin with exactly one create, restore or clone");
        }
    }
    Ok(())
}

fn makes(step: &KindStep) -> bool {
    matches!(step, KindStep::Create { .. } | KindStep::Restore { .. } | KindStep::Clone { .. })
}

fn params(step: &KindStep) -> &[Param] {
    match step {
        KindStep::Create { params }
        | KindStep::Restore { params }
        | KindStep::Clone { params, .. }
        | KindStep::Download { params, .. }
        | KindStep::Configure { set: params, .. }
        | KindStep::Call { set: params, .. } => params,
        KindStep::Resize { .. } | KindStep::RebuildCloudInit | KindStep::MarkTemplate => &[],
    }
}

fn guest_step(step: &KindStep, template: bool, origin: Origin, index: usize, owner_tag: &str) -> Checked {
    match step {
        KindStep::Create { .. } | KindStep::Restore { .. } | KindStep::Clone { .. }
            if origin == Origin::Drift =>
        {
            refuse!("it wants to make a guest that exists (step {index} of drift)")
        }
        KindStep::Create { params } => {
            host_keys(params, HOST_KEYS)?;
            distinct(params.iter().map(|p| p.key.as_str()))?;
            if !params.iter().any(|p| p.key == "tags") {
                refuse!("it creates a guest without the owner tag \"{owner_tag}\"");
            }
            tags(params, owner_tag)
        }
        KindStep::Restore { params } | KindStep::Clone { params, .. } => {
            host_keys(params, HOST_KEYS)?;
            distinct(params.iter().map(|p| p.key.as_str()))?;
            tags(params, owner_tag)
        }
        KindStep::Configure { set, unset, revert } => {
            host_keys(set, HOST_KEYS)?;
            tags(set, owner_tag)?;
            let names = set.iter().map(|p| p.key.as_str());
            distinct(names.chain(unset.iter().map(String::as_str)).chain(revert.iter().map(String::as_str)))?;
            for name in unset.iter().chain(revert) {
                key(name)?;
                if HOST_KEYS.contains(&name.as_str()) {
                    refuse!("it removes \"{name}\", which only the host may touch");
                }
            }
            if unset.iter().any(|k| k == "tags") {
                refuse!("it removes \"tags\", and with it the owner tag \"{owner_tag}\"");
            }
            Ok(())
        }
        KindStep::Resize { disk, bytes, .. } => {
            key(disk)?;
            if *bytes == 0 {
                refuse!("it resizes {disk} to nothing");
            }
            Ok(())
        }
        KindStep::RebuildCloudInit => Ok(()),
        KindStep::MarkTemplate if template => Ok(()),
        KindStep::MarkTemplate => refuse!("it marks a template, and its target is not one"),
        KindStep::Download { .. } => refuse!("it downloads, and its target is a guest"),
        KindStep::Call { .. } => refuse!("it calls an operation, and its target is a guest"),
    }
}

/// The owner tag can't be dropped.
fn tags(params: &[Param], owner_tag: &str) -> Checked {
    for param in params.iter().filter(|p| p.key == "tags") {
        if !matches!(&param.value, ParamValue::Text(text) if has_tag(text, owner_tag)) {
            refuse!("it sets \"tags\" without the owner tag \"{owner_tag}\"");
        }
    }
    Ok(())
}

fn artifact_step(step: &KindStep, validated: Option<&Validated>) -> Checked {
    let KindStep::Download { node, storage, filename, params } = step else {
        refuse!("it returns a step other than a download, and its target is an artifact");
    };
    host_keys(params, DOWNLOAD_KEYS)?;
    distinct(params.iter().map(|p| p.key.as_str()))?;
    let own = match validated.map(|v| &v.identity) {
        Some(Identity::Artifact(placements)) => {
            placements.iter().any(|p| p.node == *node && p.storage == *storage && p.filename == *filename)
        }
        _ => false,
    };
    if !own {
        refuse!(
            "it downloads {}, which is no placement of this manifest",
            quote(&format!("{node}/{storage}/{filename}"))
        );
    }
    Ok(())
}

fn object_step(step: &KindStep, target: &ObjectTarget) -> Checked {
    let KindStep::Call { operation, vars, set, unset } = step else {
        refuse!("it returns a step other than a call, and its target is an object");
    };
    if operation == "delete" {
        refuse!("it calls \"delete\"; the host deletes, with a proof of ownership");
    }
    if !target.writes.iter().any(|w| w.name == *operation) {
        let known: Vec<&str> = target.writes.iter().map(|w| w.name.as_str()).collect();
        refuse!(
            "it calls the operation {}, which it does not declare ({})",
            quote(operation),
            known.join(", ")
        );
    }
    for (name, value) in vars {
        key(name)?;
        segment("path variable", value)?;
    }
    host_keys(set, &["digest"])?;
    // PVE has one `delete`: a list of fields, or a switch of the object's own (a pool's members).
    if !unset.is_empty() {
        host_keys(set, &["delete"])?;
    }
    for name in unset {
        key(name)?;
    }
    distinct(set.iter().map(|p| p.key.as_str()).chain(unset.iter().map(String::as_str)))
}

fn host_keys(params: &[Param], forbidden: &[&str]) -> Checked {
    match params.iter().find(|p| forbidden.contains(&p.key.as_str())) {
        Some(param) => refuse!("it sends \"{}\", which only the host may send", param.key),
        None => Ok(()),
    }
}

fn distinct<'a>(keys: impl Iterator<Item = &'a str>) -> Checked {
    let mut seen = BTreeSet::new();
    for name in keys {
        if !seen.insert(name) {
            refuse!("it names the parameter {} twice in one step", quote(name));
        }
    }
    Ok(())
}

fn value(param: &Param, validated: Option<&Validated>) -> Checked {
    match &param.value {
        ParamValue::Text(text) if param.key == "env" => {
            // PVE separates the entries of a container's environment with NUL
            let _ = text;
            Ok(())
        }
        ParamValue::Text(text) => no_nul(&format!("parameter \"{}\"", param.key), text),
        ParamValue::Many(texts) => {
            texts.iter().try_for_each(|t| no_nul(&format!("parameter \"{}\"", param.key), t))
        }
        ParamValue::Secret(name) => {
            if !SECRET_KEYS.contains(&param.key.as_str()) {
                refuse!(
                    "it puts a secret into \"{}\"; secrets go into {} only",
                    param.key,
                    SECRET_KEYS.join(" and ")
                );
            }
            let listed = validated.is_some_and(|v| v.secrets.iter().any(|s| s.name == *name));
            if !listed {
                return Err(Violation(format!(
                    "it uses the secret {}, which the manifest does not list",
                    quote(name)
                )));
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxops_model::{
        ResourceId,
        kind::{GuestId, GuestType, Method, Operation, Ownership, Placement, SecretClass, SecretUse},
    };

    fn text(key: &str, value: &str) -> Param {
        Param { key: key.into(), value: ParamValue::Text(value.into()), at: None }
    }

    fn guest() -> Target {
        Target::Guest { guest_type: GuestType::Qemu, template: false }
    }

    fn configure(set: Vec<Param>, unset: &[&str]) -> Vec<KindStep> {
        vec![KindStep::Configure {
            set,
            unset: unset.iter().map(|s| (*s).to_owned()).collect(),
            revert: vec![],
        }]
    }

    fn validated(identity: Identity) -> Validated {
        Validated {
            identity,
            power: None,
            references: vec![],
            secrets: vec![SecretUse {
                name: "ops".into(),
                class: SecretClass::Password,
                at: "/spec/ci-password-ref".into(),
            }],
            storages: vec![],
            attributes: vec![],
            incomplete: vec![],
        }
    }

    fn drift(steps: &[KindStep]) -> Checked {
        let validated = validated(Identity::Guest(GuestId { node: "n".into(), vmid: 100, name: None }));
        check(steps, &guest(), Origin::Drift, "proxops", Some(&validated))
    }

    #[test]
    fn a_guest_kind_can_not_send_what_the_host_owns() {
        for key in HOST_KEYS {
            assert!(drift(&configure(vec![text(key, "1")], &[])).is_err(), "set {key}");
            assert!(drift(&configure(vec![], &[key])).is_err(), "unset {key}");
        }
        assert_eq!(drift(&configure(vec![text("memory", "2048")], &["balloon"])), Ok(()));
    }

    #[test]
    fn the_owner_tag_can_not_be_dropped() {
        assert!(drift(&configure(vec![text("tags", "web")], &[])).is_err());
        assert!(drift(&configure(vec![], &["tags"])).is_err());
        assert_eq!(drift(&configure(vec![text("tags", "web;proxops")], &[])), Ok(()));
        let create =
            |params| check(&[KindStep::Create { params }], &guest(), Origin::Create, "proxops", None);
        assert!(create(vec![text("memory", "512")]).is_err());
        assert_eq!(create(vec![text("memory", "512"), text("tags", "proxops")]), Ok(()));
    }

    #[test]
    fn a_secret_goes_only_where_it_can_not_be_read_and_only_if_the_manifest_lists_it() {
        let secret = |key: &str, name: &str| {
            configure(vec![Param { key: key.into(), value: ParamValue::Secret(name.into()), at: None }], &[])
        };
        assert_eq!(drift(&secret("cipassword", "ops")), Ok(()));
        assert!(drift(&secret("description", "ops")).is_err());
        assert!(drift(&secret("cipassword", "root")).is_err());
        assert!(need_validated(&secret("cipassword", "ops")));
    }

    #[test]
    fn a_key_stands_in_one_list_only() {
        assert!(drift(&configure(vec![text("balloon", "0")], &["balloon"])).is_err());
        assert!(drift(&configure(vec![text("balloon", "0"), text("balloon", "1")], &[])).is_err());
    }

    #[test]
    fn drift_does_not_make_guests_and_creation_begins_with_one() {
        let clone = KindStep::Clone {
            source: ResourceId::new("TemplateVM", "base"),
            params: vec![text("full", "1")],
        };
        assert!(drift(std::slice::from_ref(&clone)).is_err());
        let create = |steps: &[KindStep]| check(steps, &guest(), Origin::Create, "proxops", None);
        assert_eq!(create(std::slice::from_ref(&clone)), Ok(()));
        assert!(create(&[clone.clone(), clone.clone()]).is_err());
        assert!(create(&[KindStep::RebuildCloudInit, clone]).is_err());
        assert!(create(&[KindStep::MarkTemplate]).is_err());
    }

    #[test]
    fn nul_is_for_the_environment_of_a_container_only() {
        assert_eq!(drift(&configure(vec![text("env", "A=1\0B=2")], &[])), Ok(()));
        assert!(drift(&configure(vec![text("description", "a\0b")], &[])).is_err());
        assert!(drift(&configure(vec![text("mem ory", "1")], &[])).is_err());
    }

    #[test]
    fn an_artifact_kind_downloads_its_own_placements() {
        let own = Placement { node: "n1".into(), storage: "local".into(), filename: "a.iso".into() };
        let known = validated(Identity::Artifact(vec![own]));
        let target = Target::Artifact { content: "iso".into(), extensions: vec![".iso".into()] };
        let run = |step: KindStep| check(&[step], &target, Origin::Drift, "proxops", Some(&known));
        let download = |node: &str, filename: &str, params| KindStep::Download {
            node: node.into(),
            storage: "local".into(),
            filename: filename.into(),
            params,
        };
        assert_eq!(run(download("n1", "a.iso", vec![text("url", "https://x/a.iso")])), Ok(()));
        assert!(run(download("n2", "a.iso", vec![])).is_err());
        assert!(run(download("n1", "../a.iso", vec![])).is_err());
        assert!(run(download("n1", "a.iso", vec![text("filename", "b.iso")])).is_err());
        assert!(run(KindStep::Create { params: vec![] }).is_err());
    }

    #[test]
    fn an_object_kind_calls_its_own_operations_and_never_delete() {
        let operation = |name: &str, method| Operation {
            name: name.into(),
            method,
            path: "/pools/{id}".into(),
            id_param: None,
            digest: false,
        };
        let target = Target::Object(Box::new(ObjectTarget {
            list: operation("list", Method::Get),
            read: operation("read", Method::Get),
            id_field: "poolid".into(),
            writes: vec![operation("update", Method::Put), operation("delete", Method::Delete)],
            ownership: Ownership::None,
        }));
        let run = |name: &str, var: &str| {
            let step = KindStep::Call {
                operation: name.into(),
                vars: vec![("pos".into(), var.into())],
                set: vec![text("comment", "x")],
                unset: vec![],
            };
            check(&[step], &target, Origin::Drift, "proxops", None)
        };
        assert_eq!(run("update", "0"), Ok(()));
        assert!(run("delete", "0").is_err());
        assert!(run("purge", "0").is_err());
        assert!(run("update", "../x").is_err());
        let call = |key: &str, unset: &[&str]| {
            let step = KindStep::Call {
                operation: "update".into(),
                vars: vec![],
                set: vec![text(key, "1")],
                unset: unset.iter().map(|k| (*k).to_owned()).collect(),
            };
            check(&[step], &target, Origin::Drift, "proxops", None)
        };
        assert_eq!(call("delete", &[]), Ok(()), "a pool's switch");
        assert_eq!(call("state", &["comment"]), Ok(()));
        assert!(call("delete", &["comment"]).is_err(), "PVE has one");
        assert!(call("digest", &[]).is_err(), "the host sends it");
    }
}
