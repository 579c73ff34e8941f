//! What can go wrong with a SOPS document. No variant ever carries a value of the document.

use std::fmt::Write as _;

/// An error about one SOPS document. Every text names the file and, where there is one, the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SopsError {
    /// The file could not be read.
    #[error("{file}: {reason}")]
    Io {
        /// The file as the caller named it.
        file: String,
        /// The system's text.
        reason: String,
    },
    /// The file is YAML without a `sops:` block.
    #[error(
        "{file}: not encrypted: there is no `sops:` block; encrypt it with `sops encrypt --in-place {file}`"
    )]
    NotEncrypted {
        /// The file as the caller named it.
        file: String,
    },
    /// The file is not a SOPS document that can be understood.
    #[error("{file}{}: malformed: {reason}", at(position))]
    Malformed {
        /// The file as the caller named it.
        file: String,
        /// Line and column, both from 1, where known.
        position: Option<(usize, usize)>,
        /// What is wrong, with the key concerned.
        reason: String,
    },
    /// No identity was found in any place where one may be.
    #[error("{file}: no identity to decrypt with; looked at {}{}", looked.join(", "), listed(failures))]
    NoIdentity {
        /// The file as the caller named it.
        file: String,
        /// Places that held no identity.
        looked: Vec<String>,
        /// Places that could not be used, and why.
        failures: Vec<String>,
    },
    /// There are identities, but the document is encrypted for others.
    #[error("{file}: none of the {tried} identities found can decrypt it; it is encrypted for {}{}", recipients.join(", "), listed(failures))]
    NoMatchingIdentity {
        /// The file as the caller named it.
        file: String,
        /// How many identities were tried.
        tried: usize,
        /// The recipients of the document (public keys).
        recipients: Vec<String>,
        /// Places that could not be used, and why.
        failures: Vec<String>,
    },
    /// The document was changed by something else than an editor of SOPS documents.
    #[error(
        "{file}: MAC mismatch{}: the file was changed outside of sops; restore it or edit it with `sops edit`",
        key.as_ref().map(|k| format!(" at {k}")).unwrap_or_default()
    )]
    MacMismatch {
        /// The file as the caller named it.
        file: String,
        /// The value that is not where it was encrypted, if it is a single one.
        key: Option<String>,
    },
    /// The document needs a key service that is only reached through the `sops` program.
    #[error("{file}: encrypted for {}: {reason}", services.join(", "))]
    KeyService {
        /// The file as the caller named it.
        file: String,
        /// The services named in the document: `pgp`, `kms`, ...
        services: Vec<String>,
        /// Why the program did not help, and what to do.
        reason: String,
    },
    /// The document does not hold this key.
    #[error("{file}: no key {key}{}", nearest.as_ref().map(|n| format!("; did you mean {n}?")).unwrap_or_default())]
    MissingKey {
        /// The file as the caller named it.
        file: String,
        /// The dot path asked for.
        key: String,
        /// The most similar path there is.
        nearest: Option<String>,
    },
    /// The key is there, without a value.
    #[error("{file}: key {key} is empty")]
    EmptyKey {
        /// The file as the caller named it.
        file: String,
        /// The dot path asked for.
        key: String,
    },
    /// The key is there, but what it holds is of another shape.
    #[error("{file}: key {key} is not {expected}")]
    WrongShape {
        /// The file as the caller named it.
        file: String,
        /// The dot path asked for.
        key: String,
        /// What was expected: `a single value`, `a map`, `text`.
        expected: &'static str,
    },
    /// The file is not the one that was read.
    #[error("{file}: was changed by somebody else meanwhile and is left as it is; run again")]
    Changed {
        /// The file as the caller named it.
        file: String,
    },
    /// The document can be read but not written by this program.
    #[error("{file}: can not be changed: {reason}")]
    ReadOnly {
        /// The file as the caller named it.
        file: String,
        /// Why, and what to do.
        reason: String,
    },
}

fn at(position: &Option<(usize, usize)>) -> String {
    position.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default()
}

fn listed(failures: &[String]) -> String {
    failures.iter().fold(String::new(), |mut out, failure| {
        let _ = write!(out, "; {failure}");
        out
    })
}
