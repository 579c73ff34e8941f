//! Diagnostics: what is wrong in a file, where, and what to do about it.

use serde::{Deserialize, Serialize};

/// How bad it is. Errors stop the resource or cluster concerned; `info` never makes anything unclean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is done for the resource or cluster concerned.
    Error,
    /// Works, but somebody should look.
    Warning,
    /// Worth saying.
    Info,
}

/// A place in a file. Lines and columns count from 1; 0 = a folder, which has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Location {
    /// Relative to the repository's root, with forward slashes.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.line, self.column) {
            (0, _) => write!(f, "{}", self.file),
            (line, 0) => write!(f, "{}:{line}", self.file),
            (line, column) => write!(f, "{}:{line}:{column}", self.file),
        }
    }
}

/// One finding about one place in the repository.
///
/// Serialises as an entry of `validate -o json` (`proxops.validate/v1`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Diagnostic {
    /// Where.
    #[serde(flatten)]
    pub location: Location,
    /// How bad.
    pub severity: Severity,
    /// Stable and kebab-case.
    pub code: String,
    /// RFC 6901 pointer into the document, "" for the whole of it.
    pub pointer: String,
    /// One sentence: what is wrong and why.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// The cluster whose cycle it stops; `None` = every cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(location: Location, code: &str, message: impl Into<String>) -> Self {
        Self {
            location,
            severity: Severity::Error,
            code: code.to_owned(),
            pointer: String::new(),
            message: message.into(),
            help: None,
            cluster: None,
        }
    }

    /// The same with another severity.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the pointer.
    #[must_use]
    pub fn with_pointer(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = pointer.into();
        self
    }

    /// Says which cluster it stops.
    #[must_use]
    pub fn for_cluster(mut self, cluster: impl Into<String>) -> Self {
        self.cluster = Some(cluster.into());
        self
    }

    /// Whether it stops something.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        };
        write!(f, "{}: {word}[{}]: {}", self.location, self.code, self.message)?;
        if let Some(help) = &self.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}
