//! An answer that is not 200.

use std::collections::BTreeMap;

/// What PVE says when it refuses a call (facts T17, T19).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {message}")]
pub struct Refused {
    /// HTTP status; 595 and above come from the proxy between nodes and have no body.
    pub status: u16,
    /// The message; its first line is the reason phrase.
    pub message: String,
    /// Error texts by parameter, only on 400.
    pub errors: BTreeMap<String, String>,
}

/// The result of a call.
pub type Reply<T = serde_json::Value> = Result<T, Refused>;

impl Refused {
    /// Any status with a message.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), errors: BTreeMap::new() }
    }

    /// A plain failure of a handler: 500.
    pub fn die(message: impl Into<String>) -> Self {
        Self::new(500, message)
    }

    /// One refused parameter: 400.
    pub fn param(name: &str, text: impl Into<String>) -> Self {
        Self::params(BTreeMap::from([(name.to_owned(), text.into())]))
    }

    /// Several refused parameters: 400.
    pub fn params(errors: BTreeMap<String, String>) -> Self {
        Self { status: 400, message: "Parameter verification failed.".to_owned(), errors }
    }

    /// A missing privilege: 403 with the reason in brackets, or none.
    pub fn denied(reason: &str) -> Self {
        let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
        Self::new(403, format!("Permission check failed{reason}"))
    }

    /// The text a task would end with: the errors of a 400 are part of it.
    pub fn into_exit(self) -> String {
        let mut text = self.message;
        for (name, why) in self.errors {
            text.push_str(&format!(" {name}: {why}"));
        }
        text.replace('\n', " ").trim_end().to_owned()
    }
}
