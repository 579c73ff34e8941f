//! Writing values as block YAML in the layout of the sops tool: four spaces, one key a line.

use std::fmt::Write as _;

use base64::Engine as _;

use crate::cipher::{DataKey, path_data};
use crate::metadata::Rule;
use crate::scalar;
use crate::value::{Kind, Value};

/// Indentation of one level.
pub(crate) const INDENT: usize = 4;

/// Writes trees, encrypting what the document's rule says.
pub(crate) struct Emitter<'a> {
    pub(crate) key: &'a DataKey,
    pub(crate) rule: &'a Rule,
    /// Comments above the place that is written to.
    pub(crate) comments: &'a [&'a str],
}

/// A value that can not be written: longer than the cipher allows.
#[derive(Debug)]
pub(crate) struct TooLong;

impl Emitter<'_> {
    /// The lines of a map at this indentation, each ended by a line break. `path` leads to the map.
    pub(crate) fn entries<'v>(
        &self,
        entries: &'v [(String, Value)],
        indent: usize,
        path: &mut Vec<&'v str>,
    ) -> Result<String, TooLong> {
        let mut out = String::new();
        for (key, value) in entries {
            path.push(key);
            let _ = write!(out, "{:indent$}{}:", "", text(key));
            out.push_str(&self.value(value, indent + INDENT, path)?);
            path.pop();
        }
        Ok(out)
    }

    /// What follows the colon of a key: a scalar on the same line, or the lines below at `indent`.
    pub(crate) fn value<'v>(
        &self,
        value: &'v Value,
        indent: usize,
        path: &mut Vec<&'v str>,
    ) -> Result<String, TooLong> {
        Ok(match value {
            Value::Map(entries) if entries.is_empty() => " {}\n".to_owned(),
            Value::List(items) if items.is_empty() => " []\n".to_owned(),
            Value::Map(entries) => format!("\n{}", self.entries(entries, indent, path)?),
            Value::List(items) => format!("\n{}", self.items(items, indent, path)?),
            Value::Scalar(kind, bytes) => format!(" {}\n", self.scalar(*kind, bytes, path)?),
        })
    }

    fn items<'v>(
        &self,
        items: &'v [Value],
        indent: usize,
        path: &mut Vec<&'v str>,
    ) -> Result<String, TooLong> {
        let mut out = String::new();
        for item in items {
            let _ = write!(out, "{:indent$}-", "");
            let inner = match item {
                Value::Map(entries) if !entries.is_empty() => self.entries(entries, indent + 2, path)?,
                Value::List(items) if !items.is_empty() => self.items(items, indent + 2, path)?,
                other => self.value(other, indent + 2, path)?,
            };
            // The first line of a nested collection shares the line of its dash.
            let _ = write!(out, " {}", inner.trim_start_matches(' '));
        }
        Ok(out)
    }

    fn scalar(&self, kind: Kind, bytes: &[u8], path: &[&str]) -> Result<String, TooLong> {
        if kind == Kind::Null {
            return Ok("null".to_owned());
        }
        if bytes.is_empty() {
            return Ok("\"\"".to_owned());
        }
        if self.rule.encrypts(path, self.comments) {
            return self.key.encrypt(kind, bytes, &path_data(path)).ok_or(TooLong);
        }
        Ok(plain(kind, bytes))
    }
}

fn plain(kind: Kind, bytes: &[u8]) -> String {
    let Ok(content) = std::str::from_utf8(bytes) else {
        return format!("!!binary {}", base64::engine::general_purpose::STANDARD.encode(bytes));
    };
    match (kind, content) {
        (Kind::Bool, "True") => "true".to_owned(),
        (Kind::Bool, _) => "false".to_owned(),
        (Kind::Float, "+Inf") => ".inf".to_owned(),
        (Kind::Float, "-Inf") => "-.inf".to_owned(),
        (Kind::Float, "NaN") => ".nan".to_owned(),
        // A whole number stays a float, and one beyond 63 bits stays readable at all.
        (Kind::Float, number) if !number.contains('.') => format!("{number}.0"),
        (Kind::Int | Kind::Float | Kind::Time, number) => number.to_owned(),
        _ => text(content),
    }
}

/// Text as a YAML scalar: bare where it is safe, else in double quotes.
pub(crate) fn text(text: &str) -> String {
    let bare = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./@+".contains(c))
        && scalar::is_plain_text(text)
        && !matches!(text.to_ascii_lowercase().as_str(), "y" | "n" | "yes" | "no" | "on" | "off");
    if bare {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control()
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') =>
            {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
