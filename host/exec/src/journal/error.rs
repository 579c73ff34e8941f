//! Why the journal can't be used, and what to do.

use rusqlite::ErrorCode;
use std::path::{Path, PathBuf};

/// The journal can't be used. Nothing is sent to PVE without it.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The folder or file can't be made or opened.
    #[error("can't use {} for the operation journal: {source}; check owner, mode and space of data-dir", path.display())]
    Folder {
        /// Folder or file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Readable, not writable.
    #[error(
        "the operation journal {} can't be written: it, its folder or its file system is read-only; make data-dir \
         writable or name another",
        path.display()
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// No room.
    #[error(
        "the operation journal {} can't be written: the disk is full; make room, nothing was lost",
        path.display()
    )]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// Not a journal, or damaged.
    #[error(
        "the operation journal {} is damaged ({detail}); nothing was deleted. Keep a copy, look in PVE whether a task \
         of proxops still runs, then move the file away: the next run starts a new one",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        detail: String,
    },
    /// Written by a later proxops.
    #[error(
        "the operation journal {} has version {found}, this proxops knows {known}: use the newer proxops or another \
         data-dir",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: i64,
        /// Version that this program writes.
        known: i64,
    },
    /// Another process holds it for too long.
    #[error("the operation journal {} is in use by another process; try again", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Anything else.
    #[error("the operation journal {} failed: {source}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        source: rusqlite::Error,
    },
}

impl JournalError {
    pub(super) fn of(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::ReadOnly { path }
            }
            Some(ErrorCode::DiskFull) => Self::DiskFull { path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Corrupt { path, detail: source.to_string() }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            _ => Self::Other { path, source },
        }
    }
}
