//! Collects what is wrong with a manifest.

use crate::{Diagnostic, Severity, carry};

/// The diagnostics of one manifest, and which of its fields could not be read.
///
/// A kind's own checks run even when some fields are broken: those hold a stand-in value, and what is
/// said about them is dropped here, so nothing false is reported.
#[derive(Debug, Default)]
pub struct Report {
    diagnostics: Vec<Diagnostic>,
    broken: Vec<String>,
}

impl Report {
    /// Nothing found, everything readable.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an error at a pointer such as `/spec/memory`; `message` is one sentence.
    pub fn error(&mut self, at: impl Into<String>, code: &str, message: impl Into<String>) -> Entry<'_> {
        self.add(Severity::Error, at.into(), code, message.into())
    }

    /// Adds a warning.
    pub fn warning(&mut self, at: impl Into<String>, code: &str, message: impl Into<String>) -> Entry<'_> {
        self.add(Severity::Warning, at.into(), code, message.into())
    }

    /// Adds something worth saying.
    pub fn info(&mut self, at: impl Into<String>, code: &str, message: impl Into<String>) -> Entry<'_> {
        self.add(Severity::Info, at.into(), code, message.into())
    }

    fn add(&mut self, severity: Severity, at: String, code: &str, message: String) -> Entry<'_> {
        if self.is_broken(&at) {
            return Entry(None);
        }
        self.diagnostics.push(Diagnostic::new(severity, code, at, message));
        Entry(self.diagnostics.last_mut())
    }

    /// Says that the field at this pointer holds a stand-in.
    pub(crate) fn break_at(&mut self, at: String) {
        if !self.broken.contains(&at) {
            self.broken.push(at);
        }
    }

    /// Whether the field at this pointer, or one above it, could not be read.
    pub fn is_broken(&self, at: &str) -> bool {
        self.broken
            .iter()
            .any(|b| at.strip_prefix(b.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    }

    /// Whether the field at this pointer and everything below it could be read.
    pub fn is_whole(&self, at: &str) -> bool {
        !self.is_broken(at)
            && !self.broken.iter().any(|b| b.strip_prefix(at).is_some_and(|rest| rest.starts_with('/')))
    }

    /// Whether there is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }

    /// What was found.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// What was found, ordered by place.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        let mut found: Vec<Diagnostic> = self.diagnostics.into_iter().map(carry::diagnostic).collect();
        found.sort_by(|a, b| a.at.cmp(&b.at));
        found.dedup();
        found
    }
}

/// One diagnostic that was just added; nothing when its field is broken anyway.
#[derive(Debug)]
pub struct Entry<'a>(Option<&'a mut Diagnostic>);

impl Entry<'_> {
    /// Says what to do about it.
    pub fn help(self, help: impl Into<String>) {
        if let Some(diagnostic) = self.0 {
            diagnostic.help = Some(help.into());
        }
    }
}

/// A pointer one step down; `name` is escaped (RFC 6901).
pub fn child(at: &str, name: &str) -> String {
    if name.contains(['~', '/']) {
        format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
    } else {
        format!("{at}/{name}")
    }
}

/// The steps of a pointer, unescaped.
pub(crate) fn steps(at: &str) -> impl Iterator<Item = String> {
    at.split('/').skip(1).map(|t| t.replace("~1", "/").replace("~0", "~"))
}

/// The field that a pointer names, as people write it: `memory`, `disks[0].size`'s `size`, `disks[0]`.
pub(crate) fn name_of(at: &str) -> String {
    let mut name = String::new();
    for step in steps(at) {
        if step.bytes().all(|b| b.is_ascii_digit()) {
            name.push_str(&format!("[{step}]"));
        } else {
            name = step;
        }
    }
    if name.is_empty() { "the manifest".to_owned() } else { format!("`{name}`") }
}

impl Report {
    /// Adds an error even though its place is marked as broken: it is what broke it.
    pub(crate) fn push(&mut self, at: String, code: &str, message: String, help: Option<String>) {
        let mut diagnostic = Diagnostic::new(Severity::Error, code, at, message);
        diagnostic.help = help;
        self.diagnostics.push(diagnostic);
    }
}
