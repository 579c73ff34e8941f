//! Reading settings from a positioned document: by pointer, with every mistake noted at its place.

use crate::{
    text::{duration, suggest},
    yaml::{Document, Problem},
};
use proxops_model::{Diagnostic, Location, text::printable};
use serde_json::Value;
use std::time::Duration;

/// Turns what is wrong with a file's YAML into diagnostics.
pub(crate) fn diagnose(problems: &[Problem], file: &str) -> Vec<Diagnostic> {
    problems
        .iter()
        .map(|p| {
            let at = Location { file: file.to_owned(), line: p.at.line, column: p.at.column };
            let mut diagnostic =
                Diagnostic::error(at, p.code, printable(&p.message)).with_pointer(&p.pointer);
            diagnostic.help.clone_from(&p.help);
            diagnostic
        })
        .collect()
}

/// A value left out, null, an empty text or an empty mapping: all mean "not given" in settings.
fn is_left_out(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// What a value is, in words; never the value itself.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// The last key of a pointer, as it is written in the file.
fn last(pointer: &str) -> String {
    pointer.rsplit('/').next().unwrap_or_default().replace("~1", "/").replace("~0", "~")
}

/// One document and the diagnostics found in it so far.
pub(crate) struct Reader<'a> {
    pub document: &'a Document,
    /// As shown in diagnostics.
    pub file: &'a str,
    pub found: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    pub fn new(document: &'a Document, file: &'a str) -> Self {
        Self { document, file, found: Vec::new() }
    }

    /// Where an entry stands.
    pub fn location(&self, pointer: &str) -> Location {
        let at = self.document.positions.locate(pointer);
        Location { file: self.file.to_owned(), line: at.line, column: at.column }
    }

    /// Notes an error at an entry.
    pub fn error(&mut self, pointer: &str, code: &str, message: impl Into<String>, help: impl Into<String>) {
        // What a file says may hold escapes that would repaint a terminal.
        let (help, message) = (printable(&help.into()), printable(&message.into()));
        let mut diagnostic = Diagnostic::error(self.location(pointer), code, message).with_pointer(pointer);
        diagnostic.help = (!help.is_empty()).then_some(help);
        self.found.push(diagnostic);
    }

    fn wrong_type(&mut self, pointer: &str, wanted: &str, value: &Value) {
        let name = last(pointer);
        let help = match value {
            Value::Number(_) | Value::Bool(_) if wanted == "text" => "put it in quotes".to_owned(),
            _ => format!("write {wanted}, or leave the key out"),
        };
        self.error(
            pointer,
            "wrong-type",
            format!("`{name}` must be {wanted}, not {}", type_name(value)),
            help,
        );
    }

    /// The value, unless it counts as left out.
    pub fn get(&self, pointer: &str) -> Option<&'a Value> {
        self.document.value.pointer(pointer).filter(|value| !is_left_out(value))
    }

    /// The keys of a mapping; anything but a mapping is noted.
    pub fn keys(&mut self, pointer: &str) -> Vec<&'a str> {
        match self.get(pointer) {
            Some(Value::Object(map)) => map.keys().map(String::as_str).collect(),
            Some(other) if pointer.is_empty() => {
                let message = format!("the file must hold a mapping, not {}", type_name(other));
                self.error("", "wrong-type", message, "write `key: value` lines");
                Vec::new()
            }
            Some(other) => {
                self.wrong_type(pointer, "a mapping", other);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Notes every key of a mapping that is not known.
    pub fn only(&mut self, pointer: &str, known: &[&str]) {
        for key in self.keys(pointer) {
            if !known.contains(&key) {
                let at = crate::yaml::child(pointer, key);
                let help = suggest(key, known.iter().copied());
                self.error(&at, "unknown-field", format!("unknown field `{key}`"), help);
            }
        }
    }

    /// A text.
    pub fn text(&mut self, pointer: &str) -> Option<&'a str> {
        match self.get(pointer)? {
            Value::String(text) => Some(text),
            other => {
                self.wrong_type(pointer, "text", other);
                None
            }
        }
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&mut self, pointer: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(pointer)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let name = last(pointer);
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let message = format!("`{name}` cannot be `{text}`");
            self.error(pointer, "invalid-value", message, format!("one of {}", known.join(", ")));
        }
        found
    }

    /// A whole number from `least` on.
    pub fn whole(&mut self, pointer: &str, least: u32) -> Option<u32> {
        let value = self.get(pointer)?;
        match value {
            Value::Number(number) => {
                let found = number.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| *n >= least);
                if found.is_none() {
                    let name = last(pointer);
                    let message = format!("`{name}` must be a whole number from {least} to {}", u32::MAX);
                    self.error(pointer, "invalid-value", message, format!("such as {}", least.max(1)));
                }
                found
            }
            other => {
                self.wrong_type(pointer, "a whole number", other);
                None
            }
        }
    }

    /// A time span with its unit.
    pub fn duration(&mut self, pointer: &str) -> Option<Duration> {
        const HELP: &str = "a number with a unit: 30s, 5m, 1h30m";
        let name = last(pointer);
        match self.get(pointer)? {
            Value::String(text) => {
                let found = duration(text);
                if found.is_none() {
                    self.error(
                        pointer,
                        "invalid-value",
                        format!("`{name}` is not a time span above zero"),
                        HELP,
                    );
                }
                found
            }
            _ => {
                self.error(
                    pointer,
                    "wrong-type",
                    format!("`{name}` must be a time span with its unit"),
                    HELP,
                );
                None
            }
        }
    }

    /// A number of bytes with its unit: KiB, MiB or GiB.
    pub fn size(&mut self, pointer: &str) -> Option<usize> {
        let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
        let found = match self.get(pointer)? {
            Value::String(text) => units.iter().find_map(|(unit, bits)| {
                let number = text.strip_suffix(unit)?.trim_end().parse::<usize>().ok()?;
                number.checked_mul(1 << bits).filter(|bytes| *bytes > 0)
            }),
            _ => None,
        };
        if found.is_none() {
            let message = format!("`{}` is not a size with its unit", last(pointer));
            self.error(pointer, "invalid-value", message, "such as 512KiB or 128MiB");
        }
        found
    }

    /// A list of texts, each with its pointer. Items that are not texts are noted and left out.
    pub fn texts(&mut self, pointer: &str) -> Vec<(String, &'a str)> {
        let items = match self.get(pointer) {
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.wrong_type(pointer, "a list of texts", other);
                return Vec::new();
            }
            None => return Vec::new(),
        };
        let mut texts = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let at = format!("{pointer}/{index}");
            match item {
                Value::String(text) => texts.push((at, text.as_str())),
                other => {
                    let message = format!("entry {} must be text, not {}", index + 1, type_name(other));
                    self.error(&at, "wrong-type", message, "put it in quotes, or take it out");
                }
            }
        }
        texts
    }
}
