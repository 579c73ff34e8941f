//! YAML as this program reads it: one JSON value and one table of positions per document.
//!
//! The core schema of YAML 1.2 holds (`yes`, `on` and `0x` look-alikes stay what that schema says), keys
//! are texts, nothing is merged, no tag makes objects. Everything a file can do to a reader is bounded:
//! its size, its depth, the nodes and the text that its aliases expand to. See `docs/decisions/0001-yaml.md`.

mod build;
mod positions;
mod scalar;
mod text;

pub use positions::{Pos, Positions, Spot};

use serde_json::Value;

/// Largest file in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Deepest nesting, aliases expanded.
pub const MAX_DEPTH: usize = 64;
/// Most nodes in one file, aliases expanded.
pub const MAX_NODES: usize = 100_000;
/// Most bytes of text in one file, aliases expanded.
pub const MAX_TEXT: usize = 4 << 20;

/// Most mistakes that one file is searched for.
pub const MAX_PROBLEMS: usize = 100;

/// One document of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its content. Mappings have their keys in sorted order.
    pub value: Value,
    /// Where each part of it stands.
    pub positions: Positions,
}

impl Document {
    /// What an empty file holds.
    pub fn empty() -> Self {
        Self { value: Value::Null, positions: Positions::default() }
    }
}

/// What is wrong in a file, before anybody asks what the file means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub at: Pos,
    /// Stable and kebab-case.
    pub code: &'static str,
    /// RFC 6901 pointer of the place, as far as it is known.
    pub pointer: String,
    /// What and why. Never holds a value from the file.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// Everything a file holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stream {
    /// Documents up to the first syntax error, empty ones included.
    pub documents: Vec<Document>,
    /// In the order of the file. The documents can be used only if there are none.
    pub problems: Vec<Problem>,
}

/// Reads a file's bytes. Never fails as a whole: what can't be read is a problem.
pub fn parse(bytes: &[u8]) -> Stream {
    match text::decode(bytes) {
        Ok(text) => build::build(text),
        Err(problem) => Stream { documents: Vec::new(), problems: vec![problem] },
    }
}

/// Appends a key to an RFC 6901 pointer.
pub fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    for c in key.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// The pointer of an entry below another one.
pub fn child(pointer: &str, key: &str) -> String {
    let mut out = String::with_capacity(pointer.len() + key.len() + 1);
    out.push_str(pointer);
    push_key(&mut out, key);
    out
}
