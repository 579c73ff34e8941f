//! Objects of third-party kinds: their API paths, what the operator granted, and the proof of ownership.
//! Pure rules that reading, planning, executing and the conformance kit share.

use crate::kind::{LiveValue, ObjectId, ObjectTarget, Operation, Ownership, Pairs};
use crate::text::has_tag;
use std::collections::BTreeMap;

/// The name of an operation's variable, if this part of its path is one.
fn variable(part: &str) -> Option<&str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

/// The parts of a path pattern.
fn parts(pattern: &str) -> impl Iterator<Item = &str> {
    pattern.split('/').skip(1)
}

/// Whether a text may stand in an API path as one segment and mean nothing but itself: letters, digits and
/// `-._~:@!+`, and no dot segment.
pub fn is_segment(text: &str) -> bool {
    !matches!(text, "" | "." | "..")
        && text.len() <= 255
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:@!+".contains(&b))
}

/// The path of one request: the pattern with its variables filled in. `vars` are those of a call; they can't
/// name what the object's identity fixes, so no call reaches another object or node.
///
/// # Errors
/// A sentence: a variable without a value, or a value that can't stand in a path.
pub fn path(operation: &Operation, id: &ObjectId, vars: &[(String, String)]) -> Result<String, String> {
    if let Some((name, _)) =
        vars.iter().find(|(name, _)| name == "id" || name == "node" || id.vars.iter().any(|(k, _)| k == name))
    {
        return Err(format!(
            "operation \"{}\" sets {{{name}}}, which the object's identity fixes",
            operation.name
        ));
    }
    let mut out = String::new();
    for part in parts(&operation.path) {
        let value = match variable(part) {
            None => part,
            Some("id") => &id.id,
            Some(name) => {
                let found = id.vars.iter().chain(vars).find(|(known, _)| known == name);
                let found = found.ok_or_else(|| {
                    format!(
                        "operation \"{}\": {} has no value for {{{name}}}",
                        operation.name, operation.path
                    )
                })?;
                &found.1
            }
        };
        if !is_segment(value) {
            return Err(format!(
                "operation \"{}\": {:?} can't stand in the path {}",
                operation.name,
                crate::text::printable(value),
                operation.path
            ));
        }
        out.push('/');
        out.push_str(value);
    }
    Ok(out)
}

/// The variables of a list's path, out of those of an identity: which list the object stands in.
pub fn list_vars(target: &ObjectTarget, id: &ObjectId) -> Pairs {
    let wanted = |name: &str| parts(&target.list.path).any(|part| variable(part) == Some(name));
    id.vars.iter().filter(|(name, _)| wanted(name)).cloned().collect()
}

/// Names of the variables of a path.
pub fn variables(pattern: &str) -> Vec<&str> {
    parts(pattern).filter_map(variable).collect()
}

/// What each kind may reach: prefixes of API paths, whole segments, `*` for any one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants(BTreeMap<String, Vec<String>>);

impl Grants {
    /// Kinds with their prefixes.
    pub fn new(entries: impl IntoIterator<Item = (String, Vec<String>)>) -> Self {
        Self(entries.into_iter().collect())
    }

    /// Whether a kind may use this path, a concrete one or a pattern with `{names}`.
    pub fn allow(&self, kind: &str, path: &str) -> bool {
        let covers = |prefix: &String| {
            let mut have = parts(path);
            parts(prefix).all(|want| have.next().is_some_and(|have| want == "*" || want == have))
        };
        self.0.get(kind).is_some_and(|prefixes| prefixes.iter().any(covers))
    }

    /// Whether a kind may list and read its objects.
    pub fn allow_reads(&self, kind: &str, target: &ObjectTarget) -> bool {
        self.allow(kind, &target.list.path) && self.allow(kind, &target.read.path)
    }

    /// The lines of `proxops.yaml` that let a kind in.
    pub fn lines(kind: &str, target: &ObjectTarget) -> String {
        format!("kinds: [{{kind: {kind}, allow: [{}]}}]", needed(target).join(", "))
    }
}

/// Whether a text may be a grant: it starts with `/`, and every segment is a plain one or `*`.
pub fn is_grant(text: &str) -> bool {
    text.strip_prefix('/').is_some_and(|rest| rest.split('/').all(|part| part == "*" || is_segment(part)))
        && text != "/*"
}

/// The shortest prefixes that cover all operations of a target.
pub fn needed(target: &ObjectTarget) -> Vec<String> {
    let mut prefixes: Vec<String> = [&target.list, &target.read]
        .into_iter()
        .chain(&target.writes)
        .map(|operation| {
            let mut segments: Vec<&str> = parts(&operation.path)
                .map(|part| if variable(part).is_some() { "*" } else { part })
                .collect();
            while segments.last() == Some(&"*") {
                segments.pop();
            }
            format!("/{}", segments.join("/"))
        })
        .collect();
    prefixes.sort();
    prefixes.dedup();
    let all = prefixes.clone();
    prefixes.retain(|p| !all.iter().any(|other| other != p && p.starts_with(&format!("{other}/"))));
    prefixes
}

/// The marker of a resource: `proxops:<owner-tag>:<kind>/<name>`.
pub fn marker(owner_tag: &str, kind: &str, name: &str) -> String {
    format!("proxops:{owner_tag}:{kind}/{name}")
}

/// The markers that a text carries: each a line of its own, or the last word where the text is one line.
pub fn markers(text: &str) -> Vec<&str> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next();
    let several = lines.next().is_some();
    let word = first.filter(|_| !several).and_then(|line| line.rsplit(char::is_whitespace).next());
    let candidates: Vec<&str> = match word {
        Some(word) => vec![word],
        None => text.lines().map(str::trim).collect(),
    };
    candidates.into_iter().filter(|candidate| parse(candidate).is_some()).collect()
}

/// Owner tag, kind and name of a marker.
fn parse(marker: &str) -> Option<(&str, &str, &str)> {
    let (tag, rest) = marker.strip_prefix("proxops:")?.split_once(':')?;
    let (kind, name) = rest.split_once('/')?;
    let plain =
        |text: &str| !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == ':' || c == '/');
    (plain(tag) && plain(kind) && plain(name)).then_some((tag, kind, name))
}

/// Whose an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// Ours, of this kind; the manifest's name where the proof holds it.
    Ours(Option<String>),
    /// Nobody's, as far as its field says.
    Unmarked,
    /// Marked for something else: what it says.
    Foreign(String),
    /// The kind has no way to tell.
    Unprovable,
}

/// Reads the proof out of what PVE reports. Two different markers prove nothing.
pub fn proof(
    ownership: &Ownership,
    kind: &str,
    owner_tag: &str,
    row: &BTreeMap<String, LiveValue>,
    values: &BTreeMap<String, LiveValue>,
) -> Proof {
    let text = |from: &BTreeMap<String, LiveValue>, field: &str| {
        from.get(field).and_then(LiveValue::text).unwrap_or_default().to_owned()
    };
    match ownership {
        Ownership::None => Proof::Unprovable,
        Ownership::Tags(field) => {
            let tags = if values.contains_key(field) { text(values, field) } else { text(row, field) };
            if has_tag(&tags, owner_tag) { Proof::Ours(None) } else { Proof::Unmarked }
        }
        Ownership::Marker { field, in_list } => {
            let text = if *in_list { text(row, field) } else { text(values, field) };
            let mut found = markers(&text);
            found.dedup();
            match found[..] {
                [] => Proof::Unmarked,
                [one] => match parse(one) {
                    Some((tag, of, name)) if tag == owner_tag && of == kind => {
                        Proof::Ours(Some(name.to_owned()))
                    }
                    _ => Proof::Foreign(one.to_owned()),
                },
                _ => Proof::Foreign(found.join(" and ")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Method;

    fn operation(path: &str) -> Operation {
        Operation {
            name: "op".into(),
            method: Method::Put,
            path: path.into(),
            id_param: None,
            digest: false,
            part: false,
        }
    }

    fn id(id: &str, vars: &[(&str, &str)]) -> ObjectId {
        ObjectId { id: id.into(), vars: pairs(vars) }
    }

    fn pairs(vars: &[(&str, &str)]) -> Pairs {
        vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn a_path_is_its_pattern_with_every_variable_filled() {
        let rule = operation("/nodes/{node}/things/{id}/{pos}");
        let object = id("vm:100", &[("node", "pve01")]);
        assert_eq!(path(&rule, &object, &pairs(&[("pos", "3")])).unwrap(), "/nodes/pve01/things/vm:100/3");
        assert!(path(&rule, &object, &[]).unwrap_err().contains("{pos}"));
    }

    #[test]
    fn a_value_can_not_leave_its_segment() {
        for bad in
            ["", ".", "..", "a/b", "%2e%2e", "a//b", "a?b=c", "a#b", "a b", "ä", "a\\b", "a\0", "a;b", "{id}"]
        {
            assert!(path(&operation("/things/{id}"), &id(bad, &[]), &[]).is_err(), "{bad:?}");
            assert!(
                path(&operation("/things/{id}/{pos}"), &id("a", &[]), &pairs(&[("pos", bad)])).is_err(),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn a_call_can_not_change_what_the_identity_fixes() {
        let object = id("a", &[("zone", "z1")]);
        for name in ["id", "node", "zone"] {
            assert!(path(&operation("/things/{id}"), &object, &pairs(&[(name, "other")])).is_err(), "{name}");
        }
    }

    #[test]
    fn a_grant_covers_whole_segments_of_one_kind_and_nothing_else() {
        let grants =
            Grants::new([("Pool".to_owned(), vec!["/pools".to_owned(), "/nodes/*/network".to_owned()])]);
        for path in ["/pools", "/pools/a", "/pools/{id}", "/nodes/pve01/network/vmbr0"] {
            assert!(grants.allow("Pool", path), "{path}");
        }
        for path in ["/", "/poolsx", "/pool", "/access", "/nodes/pve01/qemu", "/nodes", ""] {
            assert!(!grants.allow("Pool", path), "{path}");
        }
        assert!(!grants.allow("Other", "/pools"));
        assert!(!Grants::default().allow("Pool", "/pools"));
    }

    #[test]
    fn what_could_address_something_else_is_no_grant() {
        for bad in [
            "",
            "/",
            "pools",
            "/pools/",
            "/pools//a",
            "/../access",
            "/pools/..",
            "/%2e%2e",
            "/a?b",
            "/a#b",
            "/*",
        ] {
            assert!(!is_grant(bad), "{bad:?}");
        }
        for good in ["/pools", "/cluster/firewall/groups", "/nodes/*/network"] {
            assert!(is_grant(good), "{good:?}");
        }
    }

    #[test]
    fn the_lines_to_add_name_the_shortest_prefixes() {
        let target = ObjectTarget {
            list: operation("/cluster/firewall/groups"),
            read: operation("/cluster/firewall/groups/{id}"),
            id_field: "group".into(),
            writes: vec![
                operation("/cluster/firewall/groups/{id}/{pos}"),
                operation("/nodes/{node}/network/{id}"),
            ],
            ownership: Ownership::None,
        };
        assert_eq!(
            Grants::lines("Group", &target),
            "kinds: [{kind: Group, allow: [/cluster/firewall/groups, /nodes/*/network]}]"
        );
    }

    fn says(comment: &str) -> Proof {
        let row = BTreeMap::from([("comment".to_owned(), LiveValue::Text(comment.to_owned()))]);
        let ownership = Ownership::Marker { field: "comment".into(), in_list: true };
        proof(&ownership, "Pool", "proxops", &row, &BTreeMap::new())
    }

    #[test]
    fn a_marker_is_a_line_of_its_own_or_the_last_word_of_one_line() {
        let ours = Proof::Ours(Some("web".into()));
        for text in [
            "proxops:proxops:Pool/web",
            "Web servers\nproxops:proxops:Pool/web\n",
            "Web proxops:proxops:Pool/web",
        ] {
            assert_eq!(says(text), ours, "{text:?}");
        }
        for text in [
            "",
            "Web",
            "see proxops:proxops:Pool/web for more",
            "a\nsee proxops:proxops:Pool/web",
            "proxops:proxops:Pool/",
        ] {
            assert_eq!(says(text), Proof::Unmarked, "{text:?}");
        }
    }

    #[test]
    fn another_tag_another_kind_and_two_markers_prove_nothing() {
        for text in [
            "proxops:other:Pool/web",
            "proxops:proxops:Team/web",
            "proxops:proxops:Pool/a\nproxops:proxops:Pool/b",
        ] {
            assert!(matches!(says(text), Proof::Foreign(_)), "{text:?}");
        }
    }
}
