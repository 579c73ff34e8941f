//! What `describe` must say before a kind is accepted.

use crate::check::{Checked, json_object, quote, refuse, segment, word};
use proxops_model::kind::{KindInfo, Method, ObjectTarget, Operation, Ownership, Target};

/// Folders of a repository that are no kind's root.
const RESERVED_ROOTS: &[&str] = &["clusters", "kinds"];

/// API paths that no object kind may touch, whatever it was granted: accounts and permissions, guests
/// (they have kinds of their own), and everything that runs commands. `*` is any segment.
const FORBIDDEN_PATHS: &[&[&str]] = &[
    &["access"],
    &["nodes", "*", "qemu"],
    &["nodes", "*", "lxc"],
    &["nodes", "*", "execute"],
    &["nodes", "*", "termproxy"],
    &["nodes", "*", "vncshell"],
    &["nodes", "*", "spiceshell"],
    &["nodes", "*", "status"],
    &["nodes", "*", "stopall"],
    &["nodes", "*", "startall"],
];

/// Checks a kind's description of itself.
pub(crate) fn check(info: &KindInfo) -> Checked {
    let kind_ok = info.kind.len() <= 40
        && info.kind.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && info.kind.bytes().all(|b| b.is_ascii_alphanumeric());
    if !kind_ok {
        refuse!("its kind {} is not a letter followed by letters and digits (at most 40)", quote(&info.kind));
    }
    let root_ok = info.root.len() <= 40
        && info.root.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
        && info.root.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !root_ok {
        refuse!("its root {} does not match [a-z][a-z0-9-]* (at most 40)", quote(&info.root));
    }
    if RESERVED_ROOTS.contains(&info.root.as_str()) {
        refuse!("its root \"{}\" is a folder that proxops uses itself", info.root);
    }
    if info.version.is_empty() || info.version.len() > 40 {
        refuse!("its version is empty or longer than 40 bytes");
    }
    if info.api_versions.is_empty() {
        refuse!("it names no apiVersion");
    }
    for version in &info.api_versions {
        let good = !version.is_empty()
            && version.len() <= 100
            && version.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'/' | b'-'));
        if !good {
            refuse!("its apiVersion {} is not a name", quote(version));
        }
    }
    match &info.target {
        Target::Guest { .. } => {}
        Target::Artifact { content, extensions } => artifact(content, extensions)?,
        Target::Object(object) => object_target(object)?,
    }
    json_object("schema", &info.schema)?;
    if info.examples.is_empty() {
        refuse!("it has no example");
    }
    for (index, example) in info.examples.iter().enumerate() {
        let value = json_object(&format!("example {index}"), example)?;
        if value.get("kind").and_then(|k| k.as_str()) != Some(&info.kind) {
            refuse!("its example {index} is not a manifest of kind {}", info.kind);
        }
    }
    Ok(())
}

fn artifact(content: &str, extensions: &[String]) -> Checked {
    if !["iso", "vztmpl", "import"].contains(&content) {
        refuse!("its content {} is not iso, vztmpl or import", quote(content));
    }
    for extension in extensions {
        match extension.strip_prefix('.') {
            Some(rest) => word("file name ending", rest)?,
            None => refuse!("its file name ending {} does not start with a dot", quote(extension)),
        }
    }
    Ok(())
}

fn object_target(target: &ObjectTarget) -> Checked {
    for (what, operation) in [("list", &target.list), ("read", &target.read)] {
        if operation.method != Method::Get {
            refuse!("its operation \"{what}\" is not a GET");
        }
    }
    for operation in target.operations() {
        self::operation(operation)?;
    }
    for (index, write) in target.writes.iter().enumerate() {
        if write.method == Method::Get {
            refuse!("its operation {} writes and is a GET", quote(&write.name));
        }
        if target.writes.iter().take(index).any(|w| w.name == write.name) {
            refuse!("its operation {} is declared twice", quote(&write.name));
        }
        // a write that does not carry the id could reach any object
        if !write.path.contains("{id}") && write.id_param.is_none() {
            refuse!(
                "its operation {} carries the object's id neither in its path nor as id-param",
                quote(&write.name)
            );
        }
        if write.part && matches!(write.name.as_str(), "create" | "delete") {
            refuse!("its operation {} is of the object, and says that it is of a part", quote(&write.name));
        }
        if write.name == "delete" && write.method != Method::Delete {
            refuse!("its operation \"delete\" is not a DELETE");
        }
        // only the host deletes the object itself; a kind may delete parts that lie below it
        let below = write.path.strip_prefix(&target.read.path).is_some_and(|rest| rest.starts_with('/'));
        let confined = below && target.read.path.contains("{id}");
        if write.method == Method::Delete && write.name != "delete" && !confined {
            refuse!(
                "its operation {} deletes what does not lie below {}; only \"delete\" may, which the host calls with a proof of ownership",
                quote(&write.name),
                target.read.path
            );
        }
    }
    if target.list.path.contains("{id}") {
        refuse!("its list {} needs the id of one object", quote(&target.list.path));
    }
    crate::check::key(&target.id_field)?;
    match &target.ownership {
        Ownership::None => Ok(()),
        Ownership::Tags(field) | Ownership::Marker { field, .. } => crate::check::key(field),
    }
}

fn operation(operation: &Operation) -> Checked {
    word("operation name", &operation.name)?;
    if let Some(param) = &operation.id_param {
        crate::check::key(param)?;
    }
    let Some(path) = operation.path.strip_prefix('/') else {
        refuse!("its path {} does not start with \"/\"", quote(&operation.path));
    };
    let segments: Vec<&str> = path.split('/').collect();
    for part in &segments {
        match part.strip_prefix('{').and_then(|p| p.strip_suffix('}')) {
            Some(variable) => word("path variable", variable)?,
            None => {
                segment("path", part)?;
                word("path", part)?;
            }
        }
    }
    // a variable could become any word, so it counts as all of them
    let matches = |pattern: &&&[&str]| {
        segments.len() >= pattern.len()
            && pattern
                .iter()
                .zip(&segments)
                .all(|(want, have)| *want == "*" || want == have || have.starts_with('{'))
    };
    if let Some(pattern) = FORBIDDEN_PATHS.iter().find(matches) {
        refuse!(
            "its path {} reaches into /{}, which no object kind may",
            quote(&operation.path),
            pattern.join("/")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxops_model::kind::GuestType;

    fn info() -> KindInfo {
        KindInfo {
            kind: "Pool".into(),
            version: "1.0".into(),
            api_versions: vec!["example.org/v1".into()],
            root: "pool".into(),
            summary: String::new(),
            target: Target::Guest { guest_type: GuestType::Qemu, template: false },
            schema: r#"{"type":"object"}"#.into(),
            examples: vec![r#"{"kind":"Pool"}"#.into()],
        }
    }

    fn object(path: &str) -> KindInfo {
        let operation = |name: &str, method, path: &str| Operation {
            name: name.into(),
            method,
            path: path.into(),
            id_param: Some("id".into()),
            digest: false,
            part: false,
        };
        let target = ObjectTarget {
            list: operation("list", Method::Get, "/cluster/things"),
            read: operation("read", Method::Get, "/cluster/things/{id}"),
            id_field: "id".into(),
            writes: vec![operation("update", Method::Put, path)],
            ownership: Ownership::None,
        };
        KindInfo { target: Target::Object(Box::new(target)), ..info() }
    }

    #[test]
    fn a_good_description_is_accepted() {
        assert_eq!(check(&info()), Ok(()));
        for path in ["/cluster/things/{id}", "/pools", "/nodes/{node}/network/{iface}"] {
            assert_eq!(check(&object(path)), Ok(()), "{path}");
        }
    }

    #[test]
    fn names_follow_the_contract() {
        assert!(check(&KindInfo { kind: "1Pool".into(), ..info() }).is_err());
        assert!(check(&KindInfo { kind: "Po ol".into(), ..info() }).is_err());
        assert!(check(&KindInfo { kind: "a".repeat(41), ..info() }).is_err());
        for root in ["", "Pool", "po/ol", "..", "clusters", "kinds"] {
            assert!(check(&KindInfo { root: root.into(), ..info() }).is_err(), "{root}");
        }
        assert!(check(&KindInfo { api_versions: vec![], ..info() }).is_err());
        assert!(check(&KindInfo { schema: "[]".into(), ..info() }).is_err());
        assert!(check(&KindInfo { examples: vec![r#"{"kind":"VM"}"#.into()], ..info() }).is_err());
    }

    #[test]
    fn an_object_kind_can_not_reach_accounts_guests_or_commands() {
        for path in [
            "/access/users/{id}",
            "/nodes/{node}/qemu/{id}/config",
            "/nodes/n1/lxc",
            "/nodes/{node}/{what}/{id}",
            "/{what}/users",
            "/nodes/{node}/execute",
            "/cluster/../access",
            "/cluster/%2e%2e/access",
            "/cluster//things",
            "/cluster/things?x=1",
            "/cluster/things#x",
            "cluster/things",
        ] {
            assert!(check(&object(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn every_write_carries_the_objects_id() {
        let with = |id_param: Option<&str>, path: &str| {
            let mut info = object(path);
            if let Target::Object(target) = &mut info.target {
                target.writes[0].id_param = id_param.map(str::to_owned);
            }
            check(&info)
        };
        assert!(with(None, "/cluster/things").is_err());
        assert_eq!(with(Some("thing"), "/cluster/things"), Ok(()));
        assert_eq!(with(None, "/cluster/things/{id}"), Ok(()));
    }

    #[test]
    fn only_the_host_deletes_objects() {
        let with = |name: &str, path: &str| {
            let mut info = object("/cluster/things/{id}");
            if let Target::Object(target) = &mut info.target {
                target.writes.push(Operation {
                    name: name.into(),
                    method: Method::Delete,
                    path: path.into(),
                    id_param: Some("id".into()),
                    digest: false,
                    part: false,
                });
            }
            check(&info)
        };
        assert_eq!(with("delete", "/cluster/things/{id}"), Ok(()));
        assert_eq!(with("delete-rule", "/cluster/things/{id}/{pos}"), Ok(()));
        assert!(with("drop", "/cluster/things/{id}").is_err());
        assert!(with("drop", "/cluster/things/{other}").is_err());
    }
}
