//! The one error of this crate: what failed, at which API path, in PVE's words, and what to do.

use crate::class::Class;
use proxops_model::text::printable;
use proxops_secrets::{MASK, Secret};
use std::collections::BTreeMap;
use std::fmt;

/// A request that failed. Never holds a credential or a secret parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PveError {
    /// What it means.
    pub class: Class,
    /// Verb of the request; "" where no request was made.
    pub method: &'static str,
    /// API path below `/api2/json`; "" where no request was made.
    pub path: String,
    /// HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// One line: the first line of PVE's message with the errors of single parameters.
    pub message: String,
    /// Errors by parameter (fact T17).
    pub errors: BTreeMap<String, String>,
}

impl PveError {
    /// An error outside of a request, such as a setting that can't be used.
    pub(crate) fn setup(class: Class, message: impl Into<String>) -> Self {
        Self::request(class, "", "", message)
    }

    pub(crate) fn request(
        class: Class,
        method: &'static str,
        path: &str,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        Self {
            class,
            method,
            path: path.to_owned(),
            status: None,
            message: one_line(&message),
            errors: BTreeMap::new(),
        }
    }

    #[must_use]
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Masks every occurrence of these secrets, as they are and percent-encoded: PVE, or a proxy before
    /// it, may quote what it was sent.
    #[must_use]
    pub(crate) fn scrubbed<'a>(mut self, secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        for secret in secrets {
            self.message = scrub(&self.message, secret);
            for text in self.errors.values_mut() {
                *text = scrub(text, secret);
            }
        }
        self
    }

    /// The same request may succeed in a moment, and repeating it is safe: a lock was not free, or PVE
    /// could not be reached. Never true for a write that may have had an effect.
    pub fn is_transient(&self) -> bool {
        match self.class {
            Class::Busy | Class::Connect => true,
            // a 500 about a node is a name that does not resolve (fact T25)
            Class::NodeUnreachable => self.status.is_some_and(crate::class::is_gateway),
            _ => false,
        }
    }

    /// A write that may have had its effect: re-read the live state before anything else.
    pub fn outcome_unknown(&self) -> bool {
        self.class == Class::UnknownOutcome
    }

    /// What to do, one or two sentences.
    pub fn help(&self) -> String {
        let text = match &self.class {
            // fact Q32
            Class::Invalid
                if self.message.contains("hotplug problem")
                    || self.message.contains("unable to apply pending change") =>
            {
                "PVE could not apply it to the running guest and keeps it pending: it takes effect when the guest is \
                 stopped and started"
            }
            Class::Invalid => "PVE will not accept this as it is: correct the value that it names",
            Class::Auth => {
                "check the credential: a token is user@realm!id=secret and must not be expired or disabled, a ticket \
                 needs user@realm and the password of that account. PVE says no more on purpose"
            }
            Class::Forbidden => return self.forbidden_help(),
            Class::NotFound => {
                "it is not on that node (any more): it was deleted or moved. Run again to re-read"
            }
            Class::Taken => "the id or name is in use: choose another, or adopt what is there",
            Class::Locked(lock) => {
                return format!(
                    "wait for the operation that holds the lock ({lock}); if none is running, an administrator can \
                     remove it on the node with `qm unlock` or `pct unlock`"
                );
            }
            Class::Busy => "another operation held the lock for too long: run again later",
            Class::Conflict => {
                "somebody else changed the configuration meanwhile: it is re-read in the next run"
            }
            Class::Protected => "set `protection: false` first if this is really wanted",
            Class::PowerState => "start, stop or resume the guest first, or look why it did not follow",
            Class::Template => {
                "templates can't be started or made twice; stop the guest before it is made a template"
            }
            Class::Storage => {
                "check that the storage is enabled and online on this node and holds the content or volume"
            }
            Class::NoSpace => "make room on the storage, or use another",
            Class::NoQuorum => {
                "bring back enough nodes for a quorum (`pvecm status`); nothing can be written before"
            }
            Class::HaManaged => {
                "HA or a replication job holds the guest: remove its HA resource or replication job first"
            }
            Class::NodeUnreachable => {
                "the node that PVE should ask is down, its name does not resolve, or the nodes do not trust each \
                 other's certificates: check `pvecm status` and pveproxy on that node"
            }
            Class::Unsupported => {
                "this PVE does not know the call: check its version (9.x is supported) and base-url"
            }
            Class::NotJson => {
                "something else than PVE answers at base-url: check host and port (8006) and any proxy in between"
            }
            Class::UnknownOutcome => {
                "nobody knows whether it happened: it is re-read before anything else is done"
            }
            Class::Connect => {
                "check base-url, name resolution, firewall, and that pveproxy runs (`systemctl status pveproxy`)"
            }
            Class::Tls => {
                "set ca-file to the cluster's /etc/pve/pve-root-ca.pem, or fingerprint to what the node shows under \
                 System > Certificates (`pvenode cert info`)"
            }
            Class::Server => "see the task log or the journal of pvedaemon on the node",
        };
        text.to_owned()
    }

    /// `(path, privilege)` in PVE's text names exactly what is missing (table E).
    fn forbidden_help(&self) -> String {
        if self.status.is_none() {
            return "use a command that may write".to_owned();
        }
        let inner = self
            .message
            .split_once("Permission check failed (")
            .and_then(|(_, rest)| rest.split_once(')'))
            .map_or("", |(inner, _)| inner);
        // fact C10: PVE refuses a pool that is not there as if it were forbidden
        if inner.starts_with("pool '") && inner.ends_with("does not exist") {
            return "make the pool first, or take it out of the manifest".to_owned();
        }
        match inner.split_once(", ") {
            Some((path, privilege)) if path.starts_with('/') => {
                format!("grant {} on {path} to the user or token", privilege.replace('|', " or "))
            }
            _ if self.message.contains("root") => {
                "PVE allows this to a root@pam ticket only (a token of root@pam is not enough, fact T26): use \
                 `auth: ticket`, or do it by hand"
                    .to_owned()
            }
            _ => "grant the missing privilege; a token with privilege separation needs its own".to_owned(),
        }
    }
}

impl fmt::Display for PveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.method.is_empty() {
            write!(f, "{} {}: ", self.method, self.path)?;
        }
        f.write_str(&self.message)?;
        match self.status {
            Some(status) if status >= 400 => write!(f, " (HTTP {status})"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for PveError {}

/// The longest message that is kept, in characters.
const LONGEST: usize = 2000;

/// The first line of a text, safe to print.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or("").trim_end();
    printable(&line.chars().take(LONGEST).collect::<String>())
}

/// Every line of a text on one, safe to print: errors of one parameter are joined by newlines (fact T22).
pub(crate) fn joined(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    printable(&lines.join("; ").chars().take(LONGEST).collect::<String>())
}

fn scrub(text: &str, secret: &Secret) -> String {
    let value = secret.expose();
    // masking one or two letters would make holes that give them away
    if value.len() < 3 {
        return text.to_owned();
    }
    let encoded = crate::path::form_text(value);
    text.replace(value, MASK).replace(&encoded, MASK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_privilege_is_named_in_the_help() {
        let error = PveError::request(
            Class::Forbidden,
            "POST",
            "/nodes/a/qemu",
            "Permission check failed (/vms/101, VM.Allocate|VM.Clone)",
        )
        .with_status(403);
        assert_eq!(error.help(), "grant VM.Allocate or VM.Clone on /vms/101 to the user or token");
    }

    #[test]
    fn a_pool_that_is_not_there_is_not_taken_for_a_missing_privilege() {
        let text = "Permission check failed (pool 'prod' does not exist)";
        let error = PveError::request(Class::Forbidden, "POST", "/nodes/a/qemu", text).with_status(403);
        assert!(error.help().contains("make the pool"), "{}", error.help());
    }

    #[test]
    fn what_only_root_may_do_says_that_a_token_is_not_enough() {
        let error =
            PveError::request(Class::Forbidden, "PUT", "/x", "Permission check failed (user != root@pam)")
                .with_status(403);
        assert!(error.help().contains("root@pam ticket"), "{}", error.help());
    }

    #[test]
    fn a_secret_is_masked_raw_and_encoded() {
        let error =
            PveError::request(Class::Invalid, "PUT", "/x", "bad value 'a=b;c' in cipassword=a%3Db%3Bc");
        let error = error.scrubbed([&Secret::new("a=b;c")]);
        assert_eq!(error.message, "bad value '***' in cipassword=***");
    }

    #[test]
    fn a_message_is_one_printable_line() {
        assert_eq!(one_line("first\u{1b}[2J\nsecond\n"), "first\\u{1b}[2J");
        assert_eq!(joined("a\nb\n"), "a; b");
    }
}
