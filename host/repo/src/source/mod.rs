//! `git.url`: a tree that is fetched from elsewhere into the data directory.
//!
//! A tree is fetched into a folder of its own, at depth 1 where the server can, and moved to its final name when
//! every file of it is on the disk: a tree that can be seen is whole (docs/decisions/0006). What was fetched last is
//! remembered, so that a source that is out of reach later leaves the last good tree, marked stale.

mod address;
mod fetch;
mod store;
mod transport;
mod tree;

pub(crate) use address::Address;

use proxops_secrets::Secret;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use store::Store;
use thiserror::Error;

/// Where the tree comes from.
#[derive(Debug, Clone)]
pub struct Source {
    /// As configured: `https://`, `ssh://`, `user@host:path` or `file://`.
    pub url: String,
    /// A branch, a tag, or a commit's 40 hex digits; `None` = what the remote's `HEAD` names.
    pub revision: Option<String>,
    /// Certificate authorities beside the system's, PEM.
    pub ca_file: Option<PathBuf>,
    /// For HTTPS.
    pub token: Option<Secret>,
}

/// A whole tree on the disk. It stays there for as long as this value or a clone of it lives.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Absolute.
    pub root: PathBuf,
    /// 40 hex digits.
    pub commit: String,
    /// Why this is not what the source holds now, if the source could not be asked.
    pub stale: Option<String>,
    _in_use: std::sync::Arc<std::fs::File>,
}

/// The source can't be fetched, and there is no earlier tree to go on with.
#[derive(Debug, Error)]
#[error("git source {url} can't be fetched: {why}; {help}")]
pub struct SourceError {
    /// The address without user and password.
    pub url: String,
    /// What happened.
    pub why: String,
    /// What to do.
    pub help: String,
}

/// What happened and what to do.
pub(crate) struct Trouble {
    pub why: String,
    pub help: String,
}

impl Trouble {
    fn new(why: impl Into<String>, help: impl Into<String>) -> Self {
        Self { why: why.into(), help: help.into() }
    }

    /// Of the data directory.
    fn disk(what: &str, path: &Path, error: &std::io::Error) -> Self {
        let why = format!("{} can't be {what}: {error}", path.display());
        Self::new(why, "see to the data-dir: it must be writable and have room")
    }
}

impl Source {
    /// The newest tree: fetched if the source holds another one than the last time.
    ///
    /// A source that can't be reached or no longer holds the revision gives the last good tree with `stale` set.
    /// Blocks; `stop` ends a transfer early, as an error.
    ///
    /// # Errors
    /// There is no earlier tree.
    pub fn refresh(&self, data_dir: &Path, stop: &AtomicBool) -> Result<Snapshot, SourceError> {
        let failed =
            |trouble: Trouble| SourceError { url: self.shown(), why: trouble.why, help: trouble.help };
        let store = Store::open(data_dir, &self.key()).map_err(failed)?;
        let newest = fetch::newest(self, &store, stop).and_then(|commit| store.keep(&commit));
        match newest {
            Ok(snapshot) => Ok(snapshot),
            Err(trouble) => match store.current() {
                Some(last) => Ok(Snapshot { stale: Some(failed(trouble).to_string()), ..last }),
                None => Err(failed(trouble)),
            },
        }
    }

    /// The address for messages: a user may be a token in disguise.
    pub fn shown(&self) -> String {
        Address::parse(&self.url).map_or_else(|_| "git.url".to_owned(), |address| address.shown())
    }

    /// Names the folder of this address and revision.
    fn key(&self) -> String {
        use sha2::Digest as _;
        let text = format!("{}\n{}", self.url, self.revision.as_deref().unwrap_or_default());
        hex::encode(&sha2::Sha256::digest(text)[..8])
    }
}
