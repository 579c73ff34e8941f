//! Changing a document: only the lines concerned, the MAC and the time stamp change; every other byte stays.

use std::ops::Range;

use jiff::Timestamp;

use crate::cipher::DataKey;
use crate::decrypted::Decrypted;
use crate::document::Document;
use crate::emit::{self, Emitter, INDENT, TooLong};
use crate::error::SopsError;
use crate::keys;
use crate::metadata::{self, DEFAULT_UNENCRYPTED_SUFFIX, Rule, Seal};
use crate::value::Value;
use crate::yaml::{Content, Entry, Node};

/// The format version that new documents carry: that of the tool we are tested against.
const FORMAT_VERSION: &str = "3.11.0";

impl Document {
    /// The text of a new document for these recipients (age public keys, or SSH ones), with the default rule.
    ///
    /// # Errors
    /// [`SopsError::Malformed`] for a bad recipient, or a tree that is no map, repeats a key or has a
    /// top-level key `sops`.
    pub fn create(
        file: &str,
        recipients: &[String],
        tree: &Value,
        now: Timestamp,
    ) -> Result<String, SopsError> {
        let malformed =
            |reason: String| SopsError::Malformed { file: file.to_owned(), position: None, reason };
        let Value::Map(entries) = tree else {
            return Err(malformed("the document must be a map".to_owned()));
        };
        if entries.iter().any(|(key, _)| key == metadata::KEY) {
            return Err(malformed("the top-level key `sops` is reserved".to_owned()));
        }
        if recipients.is_empty() {
            return Err(malformed("a document needs at least one recipient".to_owned()));
        }
        let key = DataKey::random();
        let rule = Rule::UnencryptedSuffix(DEFAULT_UNENCRYPTED_SUFFIX.to_owned());
        let emitter = Emitter { key: &key, rule: &rule, comments: &[] };
        let mut text = emitter
            .entries(entries, 0, &mut Vec::new())
            .map_err(|TooLong| malformed("a value is too long".to_owned()))?;
        text.push_str("sops:\n    age:\n");
        for recipient in recipients {
            let wrapped = keys::wrap(&key, recipient).map_err(malformed)?;
            text.push_str(&format!("        - recipient: {}\n          enc: |\n", emit::text(recipient)));
            for line in wrapped.lines() {
                text.push_str(&format!("            {line}\n"));
            }
        }
        text.push_str(&format!(
            "    lastmodified: \"{}\"\n    mac: unsealed\n    unencrypted_suffix: {DEFAULT_UNENCRYPTED_SUFFIX}\n    version: {FORMAT_VERSION}\n",
            stamp(now)
        ));
        seal(&Document::parse(&text, file)?, &key, now)
    }
}

impl Decrypted {
    /// Sets one value; maps on the way are made. A value that is already there stays as it is. What is
    /// replaced must be a single value or empty.
    ///
    /// # Errors
    /// [`SopsError::WrongShape`] and [`SopsError::ReadOnly`].
    pub fn set(&mut self, path: &[&str], value: &Value) -> Result<(), SopsError> {
        let Some(sealed) = &mut self.sealed else {
            return Err(SopsError::ReadOnly {
                file: self.file.clone(),
                reason: "its keys are with a key service; use `sops edit`".to_owned(),
            });
        };
        if self.values.iter().any(|tree| at(tree, path) == Some(value)) {
            return Ok(());
        }
        let text = with_value(&sealed.document, &sealed.key, path, value)?;
        let document = Document::parse(&text, &self.file)?;
        self.values = document.values(&sealed.key)?.values;
        sealed.document = document;
        sealed.changed = true;
        Ok(())
    }

    /// Sets several texts by path, such as `["cloud-init", "ssh-keys", "ops"]`.
    ///
    /// # Errors
    /// As [`Decrypted::set`]; values before the one refused are set.
    pub fn add_values<'a>(
        &mut self,
        values: impl IntoIterator<Item = (Vec<&'a str>, crate::Secret)>,
    ) -> Result<(), SopsError> {
        values.into_iter().try_for_each(|(path, secret)| self.set(&path, &Value::from(&secret)))
    }

    /// Whether a value was set that was not there.
    pub fn is_changed(&self) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| sealed.changed)
    }

    /// The text of the document with a new MAC and `lastmodified`; the text as read if nothing changed.
    ///
    /// # Errors
    /// [`SopsError::ReadOnly`] for a document decrypted by the `sops` program.
    pub fn encrypt_to_string(&self, now: Timestamp) -> Result<String, SopsError> {
        match &self.sealed {
            Some(sealed) if sealed.changed => seal(&sealed.document, &sealed.key, now),
            Some(sealed) => Ok(sealed.document.text.clone()),
            None => Err(SopsError::ReadOnly {
                file: self.file.clone(),
                reason: "its keys are with a key service; use `sops edit`".to_owned(),
            }),
        }
    }
}

fn at<'a>(tree: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(tree, |value, key| value.entry(key))
}

/// Writes the MAC and the time of every `sops:` block anew.
fn seal(document: &Document, key: &DataKey, now: Timestamp) -> Result<String, SopsError> {
    let opened = document.values(key)?;
    let stamp = stamp(now);
    let mac = key
        .encrypt(crate::value::Kind::Str, opened.mac.as_bytes(), &stamp)
        .ok_or_else(|| document.malformed(0, "the MAC can not be encrypted".to_owned()))?;
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for seal in document.roots.iter().filter_map(Seal::find) {
        edits.push((seal.mac, mac.clone()));
        edits.push((seal.last_modified, format!("\"{stamp}\"")));
    }
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut text = document.text.clone();
    for (range, replacement) in edits {
        text = spliced(document, &text, range, &replacement)?;
    }
    Ok(text)
}

/// The text with other content in this range.
fn spliced(
    document: &Document,
    text: &str,
    range: Range<usize>,
    replacement: &str,
) -> Result<String, SopsError> {
    match (text.get(..range.start), text.get(range.end..)) {
        (Some(before), Some(after)) => Ok([before, replacement, after].concat()),
        _ => Err(document.malformed(0, "a value does not stand where it was read".to_owned())),
    }
}

fn stamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The text with one value added or replaced, not yet sealed.
fn with_value(document: &Document, key: &DataKey, path: &[&str], value: &Value) -> Result<String, SopsError> {
    let dotted = |depth: usize| path.iter().take(depth).copied().collect::<Vec<_>>().join(".");
    let wrong = |depth: usize, expected| SopsError::WrongShape {
        file: document.file.clone(),
        key: dotted(depth),
        expected,
    };
    let Some(first) = path.first().filter(|first| **first != metadata::KEY) else {
        return Err(wrong(1, "a key of the document"));
    };
    let holder = document.roots.iter().find(|root| root.entry(first).is_some()).or(document.roots.first());
    let Some(mut node) = holder else { return Err(wrong(0, "a map")) };
    let mut comments: Vec<&str> = Vec::new();
    for (depth, segment) in path.iter().enumerate() {
        let Some(entry) = node.entry(segment) else {
            let rest = path.get(depth..).unwrap_or_default();
            return insert(
                document,
                node,
                depth == 0,
                &Addition { key, comments: &comments, path, depth, rest, value },
            );
        };
        comments.extend(entry.comments.iter().map(String::as_str));
        let rest = path.get(depth + 1..).unwrap_or_default();
        let empty =
            entry.value.is_null() || (entry.value.entries().is_empty() && entry.value.items().is_empty());
        match &entry.value.content {
            Content::Map { .. } if !empty && !rest.is_empty() => node = &entry.value,
            Content::Map { .. } | Content::List { .. } if !empty => {
                return Err(wrong(depth + 1, "a single value"));
            }
            Content::Scalar { .. } if !rest.is_empty() && !entry.value.is_null() => {
                return Err(wrong(depth + 1, "a map"));
            }
            _ => {
                let addition = Addition { key, comments: &comments, path, depth: depth + 1, rest, value };
                return replace(document, node, entry, &addition);
            }
        }
    }
    Err(wrong(path.len(), "a single value"))
}

/// What is written, and below which keys that are not there yet.
struct Addition<'a> {
    key: &'a DataKey,
    comments: &'a [&'a str],
    path: &'a [&'a str],
    /// How many keys of the path are there already.
    depth: usize,
    rest: &'a [&'a str],
    value: &'a Value,
}

impl Addition<'_> {
    /// The value inside maps for the keys that are missing.
    fn nested(&self, keys: &[&str]) -> Value {
        keys.iter().rev().fold(self.value.clone(), |inner, key| Value::Map(vec![((*key).to_owned(), inner)]))
    }

    fn emit(
        &self,
        document: &Document,
        below: &Value,
        indent: usize,
        entries: bool,
    ) -> Result<String, SopsError> {
        let emitter = Emitter { key: self.key, rule: &document.metadata.rule, comments: self.comments };
        let mut path: Vec<&str> = self.path.iter().take(self.depth).copied().collect();
        match (below, entries) {
            (Value::Map(list), true) => emitter.entries(list, indent, &mut path),
            _ => emitter.value(below, indent, &mut path),
        }
        .map_err(|TooLong| document.malformed(0, format!("the value of {} is too long", self.path.join("."))))
    }
}

/// New lines after the last entry of a map; before the `sops:` block at the top level.
fn insert(document: &Document, map: &Node, top: bool, addition: &Addition<'_>) -> Result<String, SopsError> {
    let Content::Map { entries, column, flow: false } = &map.content else {
        return Err(flow_style(document));
    };
    let last = entries.iter().rfind(|entry| !(top && entry.key == metadata::KEY));
    let at = match (last, entries.first()) {
        (Some(last), _) => line_end(&document.text, end_of(last)),
        (None, Some(first)) => first.key_span.start,
        (None, None) => map.span.start,
    };
    let below = addition.nested(addition.rest);
    let mut lines = addition.emit(document, &below, column - 1, true)?;
    let before = document.text.get(..at).unwrap_or_default();
    if !before.is_empty() && !before.ends_with('\n') {
        lines.insert(0, '\n');
    }
    spliced(document, &document.text, at..at, &lines)
}

/// The same entry with another value.
fn replace(
    document: &Document,
    map: &Node,
    entry: &Entry,
    addition: &Addition<'_>,
) -> Result<String, SopsError> {
    let Content::Map { column, flow: false, .. } = &map.content else { return Err(flow_style(document)) };
    let after_key = document.text.get(entry.key_span.end..).unwrap_or_default();
    let padding = after_key.len() - after_key.trim_start_matches(' ').len();
    if !after_key.trim_start_matches(' ').starts_with(':') {
        return Err(flow_style(document));
    }
    let start = entry.key_span.end + padding + 1;
    let old = document.text.get(start..end_of(entry)).unwrap_or_default();
    let range = start..start + old.trim_end().len();
    let below = addition.nested(addition.rest);
    let lines = addition.emit(document, &below, column - 1 + INDENT, false)?;
    spliced(document, &document.text, range, lines.trim_end_matches('\n'))
}

fn flow_style(document: &Document) -> SopsError {
    SopsError::ReadOnly {
        file: document.file.clone(),
        reason:
            "it is written in flow style or with explicit keys there; `sops edit` rewrites it in block style"
                .to_owned(),
    }
}

fn end_of(entry: &Entry) -> usize {
    entry.value.span.end.max(entry.key_span.end)
}

/// The start of the next line, unless the position already is the start of one.
fn line_end(text: &str, at: usize) -> usize {
    let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at..).unwrap_or_default());
    if before.ends_with('\n') {
        return at;
    }
    after.find('\n').map_or(text.len(), |found| at + found + 1)
}
