//! What the host demands of anything that a kind returns: sizes, texts, names, pointers, JSON.
//!
//! Pure. Steps and their parameters are in [`crate::steps`], `describe` is in [`crate::describe`].

use crate::limits::{LimitHit, Limits};
use proxops_model::{kind::Manifest, text::printable};
use serde_json::Value;
use std::cell::OnceCell;

/// Deepest nesting of JSON that a kind may return.
const JSON_DEPTH: usize = 64;

/// Something that the contract forbids, in one sentence that starts with "it" or "its".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Violation(pub String);

impl From<LimitHit> for Violation {
    fn from(hit: LimitHit) -> Self {
        Self(hit.to_string())
    }
}

/// A `Result` with a [`Violation`].
pub(crate) type Checked<T = ()> = Result<T, Violation>;

/// `Err` with a formatted violation.
macro_rules! refuse {
    ($($arg:tt)*) => { return Err($crate::check::Violation(format!($($arg)*))) };
}
pub(crate) use refuse;

/// List elements that one answer may still hold.
pub(crate) struct Budget {
    left: usize,
    limit: usize,
}

impl Budget {
    /// For one answer.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { left: limits.output_items, limit: limits.output_items }
    }

    /// Takes a list's length out of the budget.
    pub(crate) fn list<T>(&mut self, items: &[T]) -> Checked {
        match self.left.checked_sub(items.len()) {
            Some(left) => self.left = left,
            None => return Err(LimitHit::Items { limit: self.limit }.into()),
        }
        Ok(())
    }
}

/// A quoted, printable and short form of something a kind sent, for messages.
pub(crate) fn quote(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    // `escape_debug` leaves no control character, not even a newline
    format!("{:?}", printable(&short))
}

/// Text that people read: no NUL, control characters as their escapes.
pub(crate) fn prose(what: &str, text: &str) -> Checked<String> {
    no_nul(what, text)?;
    Ok(printable(text))
}

/// PVE's values of a key, for people. A container's `env` is a list with NUL between its entries
/// (the only key that may hold one); everything is escaped.
pub(crate) fn value_prose(what: &str, key: &str, text: &str) -> Checked<String> {
    if key != "env" {
        no_nul(what, text)?;
    }
    Ok(printable(text))
}

/// Refuses NUL.
pub(crate) fn no_nul(what: &str, text: &str) -> Checked {
    if text.contains('\0') {
        refuse!("its {what} {} holds a NUL byte", quote(text));
    }
    Ok(())
}

/// A name or id: not empty, at most `max` bytes, no control character.
pub(crate) fn name(what: &str, text: &str, max: usize) -> Checked {
    if text.is_empty() {
        refuse!("its {what} is empty");
    }
    if text.len() > max {
        refuse!("its {what} {} is longer than {max} bytes", quote(text));
    }
    if printable(text) != text || text.contains(['\n', '\t']) {
        refuse!("its {what} {} holds control characters", quote(text));
    }
    Ok(())
}

/// A stable code: kebab-case.
pub(crate) fn code(text: &str) -> Checked {
    let good = !text.is_empty()
        && text.len() <= 80
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !good {
        refuse!("its code {} is not kebab-case", quote(text));
    }
    Ok(())
}

/// The name of a PVE parameter: `[a-zA-Z0-9_-]+`.
pub(crate) fn key(text: &str) -> Checked {
    let good = !text.is_empty()
        && text.len() <= 128
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !good {
        refuse!("its parameter {} is not a name that PVE could have ([a-zA-Z0-9_-]+)", quote(text));
    }
    Ok(())
}

/// Something that becomes one segment of an API path: nothing that could end or leave the segment.
pub(crate) fn segment(what: &str, text: &str) -> Checked {
    if !proxops_model::object::is_segment(text) {
        refuse!("its {what} {} can't stand in an API path", quote(text));
    }
    Ok(())
}

/// A node, storage or DNS-like name: letters, digits, `.`, `_` and `-`, starting with a letter or digit.
pub(crate) fn word(what: &str, text: &str) -> Checked {
    let good = text.len() <= 100
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if !good {
        refuse!("its {what} {} is not a name", quote(text));
    }
    Ok(())
}

/// JSON text of bounded depth.
pub(crate) fn json(what: &str, text: &str) -> Checked<Value> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => refuse!("its {what} is not JSON: {error}"),
    };
    if !shallow(&value, JSON_DEPTH) {
        refuse!("its {what} nests deeper than {JSON_DEPTH} levels");
    }
    Ok(value)
}

/// A JSON object of bounded depth.
pub(crate) fn json_object(what: &str, text: &str) -> Checked<Value> {
    let value = json(what, text)?;
    if !value.is_object() {
        refuse!("its {what} is not a JSON object");
    }
    Ok(value)
}

fn shallow(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|v| shallow(v, depth - 1)),
        Value::Object(map) => depth > 0 && map.values().all(|v| shallow(v, depth - 1)),
        _ => true,
    }
}

/// The manifest that pointers point into; its spec is parsed when the first pointer asks.
pub(crate) struct Places<'a> {
    manifest: &'a Manifest,
    spec: OnceCell<Value>,
}

impl<'a> Places<'a> {
    /// Of this manifest.
    pub(crate) fn new(manifest: &'a Manifest) -> Self {
        Self { manifest, spec: OnceCell::new() }
    }

    fn spec(&self) -> &Value {
        self.spec.get_or_init(|| serde_json::from_str(&self.manifest.spec).unwrap_or(Value::Null))
    }

    /// The pointer resolves, or leads through objects to a field that is missing.
    pub(crate) fn pointer(&self, at: &str) -> Checked {
        if at.is_empty() {
            return Ok(());
        }
        let Some(rest) = at.strip_prefix('/') else {
            refuse!("its pointer {} does not start with \"/\"", quote(at));
        };
        let mut segments = Vec::new();
        for raw in rest.split('/') {
            match unescape(raw) {
                Some(segment) => segments.push(segment),
                None => refuse!("its pointer {} has a bad escape", quote(at)),
            }
        }
        name("pointer", at, 1000)?;
        let resolves = match segments.split_first() {
            Some((head, rest)) => match head.as_str() {
                "spec" => walk(self.spec(), rest),
                "metadata" => self.metadata(rest),
                "apiVersion" | "kind" => rest.is_empty(),
                _ => false,
            },
            None => true,
        };
        if !resolves {
            refuse!("its pointer {} does not resolve in the manifest", quote(at));
        }
        Ok(())
    }

    fn metadata(&self, segments: &[String]) -> bool {
        match segments {
            [] => true,
            [field] => matches!(field.as_str(), "name" | "labels" | "annotations"),
            [field, _key] => matches!(field.as_str(), "labels" | "annotations"),
            _ => false,
        }
    }

    /// The text at a pointer, if there is one.
    pub(crate) fn text(&self, at: &str) -> Option<&str> {
        self.spec().pointer(at.strip_prefix("/spec")?)?.as_str()
    }
}

/// Whether the way leads somewhere: list indices exist, scalars have no members; a missing field may
/// be named, and fields of it, since the way so far is an object.
fn walk(mut value: &Value, segments: &[String]) -> bool {
    for segment in segments {
        value = match value {
            Value::Object(map) => match map.get(segment) {
                Some(next) => next,
                None => return true,
            },
            Value::Array(items) => {
                let canonical = segment.bytes().all(|b| b.is_ascii_digit())
                    && (segment == "0" || !segment.starts_with('0'));
                match segment.parse::<usize>().ok().filter(|_| canonical).and_then(|i| items.get(i)) {
                    Some(next) => next,
                    None => return false,
                }
            }
            _ => return false,
        };
    }
    true
}

/// RFC 6901: `~1` is "/", `~0` is "~", any other "~" is an error.
fn unescape(raw: &str) -> Option<String> {
    let mut out = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '~' => match chars.next()? {
                '0' => out.push('~'),
                '1' => out.push('/'),
                _ => return None,
            },
            c => out.push(c),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            name: "web".into(),
            labels: vec![("role".into(), "web".into())],
            annotations: vec![],
            spec: r#"{"cpu":{"cores":2},"disks":[{"size":"8GiB"}],"a/b":{"~":1}}"#.into(),
        }
    }

    #[test]
    fn pointers_that_resolve_or_name_a_missing_field_are_accepted() {
        let manifest = manifest();
        let places = Places::new(&manifest);
        for at in [
            "",
            "/spec",
            "/spec/cpu/cores",
            "/spec/disks/0/size",
            "/spec/disks/0/cache",
            "/spec/options",
            "/spec/options/onboot",
            "/spec/a~1b/~0",
            "/metadata/name",
            "/metadata/labels/role",
            "/kind",
        ] {
            assert_eq!(places.pointer(at), Ok(()), "{at}");
        }
    }

    #[test]
    fn pointers_that_lead_nowhere_are_refused() {
        let manifest = manifest();
        let places = Places::new(&manifest);
        for at in [
            "spec",
            "/",
            "/status",
            "/spec/cpu/cores/0",
            "/spec/disks/1",
            "/spec/disks/-",
            "/spec/disks/00",
            "/spec/disks/+0",
            "/spec/~2",
            "/spec/~",
            "/metadata/uid",
            "/metadata/name/x",
            "/kind/x",
            "/spec/\u{1b}[2J",
            "/spec/a\0",
        ] {
            assert!(places.pointer(at).is_err(), "{at:?}");
        }
    }

    #[test]
    fn a_nul_byte_is_refused_everywhere_but_in_the_environment_of_a_container() {
        assert!(prose("message", "a\0b").is_err());
        assert!(value_prose("value", "description", "a\0b").is_err());
        assert_eq!(value_prose("value", "env", "A=1\0B=2"), Ok("A=1\\u{0}B=2".into()));
    }

    #[test]
    fn control_characters_reach_people_as_escapes() {
        assert_eq!(prose("message", "\u{1b}[2Jgone\u{202e}"), Ok("\\u{1b}[2Jgone\\u{202e}".into()));
        assert!(name("version", "1\u{7}", 40).is_err());
        assert!(!quote("\u{1b}[31m\n").contains(['\u{1b}', '\n']));
    }

    #[test]
    fn a_path_segment_can_not_leave_its_place() {
        for bad in ["", ".", "..", "a/b", "%2e", "a?b", "a#b", "a;b", "ä", "a\\b", "a\0"] {
            assert!(segment("id", bad).is_err(), "{bad:?}");
        }
        for good in ["pool-1", "vm:100", "a.b", "x_y"] {
            assert!(segment("id", good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn json_is_bounded_in_depth() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(json("schema", &nested(64)).is_ok());
        assert!(json("schema", &nested(65)).is_err());
        assert!(json("schema", &nested(100_000)).is_err());
        assert!(json_object("schema", "[]").is_err());
        assert!(json_object("schema", "{").is_err());
    }

    #[test]
    fn the_budget_counts_all_lists_of_an_answer() {
        let mut budget = Budget { left: 5, limit: 5 };
        assert!(budget.list(&[1, 2, 3]).is_ok());
        assert_eq!(
            budget.list(&[1, 2, 3]),
            Err(Violation("its answer has more than 5 list elements (limit output-items = 5)".into()))
        );
    }

    #[test]
    fn codes_and_keys_have_their_grammar() {
        assert!(code("size-not-whole-mib").is_ok());
        assert!(code("Size").is_err());
        assert!(key("mp0").is_ok() && key("checksum-algorithm").is_ok() && key("import_x").is_ok());
        for bad in ["", "a b", "a=b", "a&delete", "ä", "a\0"] {
            assert!(key(bad).is_err(), "{bad:?}");
        }
    }
}
