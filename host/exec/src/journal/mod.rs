//! The operation journal: what was begun, so that a kill at any point is found again.
//!
//! One SQLite file in the data directory, in write-ahead mode. An intent is on the disk before its request
//! leaves; everything else survives the death of the process and, at worst, not that of the machine,
//! which costs nothing but a second look. Steps name secrets and never hold one.
//!
//! Apart from operations there is a small table of what guests are still *owed*: a clone whose inherited
//! identity may still be there, a seed image that was to be rebuilt. It outlives the operation, so that a
//! failed action forgets as little as a killed one.

mod error;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use error::JournalError;
pub use read::{HistoryEntry, HistoryFilter, HistoryStep, InFlight, Leftover, Owed};
pub(crate) use write::{Debt, OperationStart};

use rusqlite::{Connection, OpenFlags};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Version of the tables, kept in the file.
const SCHEMA: i64 = 3;

/// Finished operations of one cluster that are kept for the audit trail; older ones go.
pub(crate) const KEPT: u32 = 10_000;

/// State of one step of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// Not begun.
    Planned,
    /// Its request may have been sent.
    Intent,
    /// PVE answered with a task that is not known to have ended.
    Sent,
    /// Done.
    Done,
    /// PVE refused it, or its task failed.
    Failed,
    /// Not needed any more.
    Dropped,
}

impl StepState {
    const ALL: [Self; 6] = [Self::Planned, Self::Intent, Self::Sent, Self::Done, Self::Failed, Self::Dropped];

    fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Intent => "intent",
            Self::Sent => "sent",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// The journal of one data directory. Safe to share between clusters and threads; other processes on
/// other clusters may use the same file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl Journal {
    /// Opens `<dir>/journal.sqlite3`, making folder (mode 0700) and file where they are missing.
    ///
    /// A file that can't be read, written or understood is an error that says what to do; nothing in it is
    /// ever deleted to get on.
    pub fn open(dir: &Path) -> Result<Self, JournalError> {
        let path = dir.join("journal.sqlite3");
        private_dir(dir).map_err(|source| JournalError::Folder { path: dir.to_owned(), source })?;
        let fault = |source| JournalError::of(&path, source);
        private_file(&path).map_err(|source| JournalError::Folder { path: path.clone(), source })?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(fault)?;
        connection.busy_timeout(Duration::from_secs(10)).map_err(fault)?;
        let version: i64 =
            connection.query_row("pragma user_version", [], |row| row.get(0)).map_err(fault)?;
        if version > SCHEMA {
            return Err(JournalError::Newer { path, found: version, known: SCHEMA });
        }
        connection.pragma_update(None, "journal_mode", "wal").map_err(fault)?;
        connection.pragma_update(None, "foreign_keys", true).map_err(fault)?;
        let check: String =
            connection.query_row("pragma quick_check(1)", [], |row| row.get(0)).map_err(fault)?;
        if check != "ok" {
            return Err(JournalError::Corrupt { path, detail: check });
        }
        let journal = Self { path, connection: Mutex::new(connection) };
        if version < SCHEMA {
            journal.create_tables()?;
        }
        Ok(journal)
    }

    /// The journal of a data directory if it has one. Nothing is made.
    pub fn open_existing(dir: &Path) -> Result<Option<Self>, JournalError> {
        if dir.join("journal.sqlite3").exists() { Self::open(dir).map(Some) } else { Ok(None) }
    }

    fn create_tables(&self) -> Result<(), JournalError> {
        self.write(true, |tx| {
            // another process may have been quicker
            let version: i64 = tx.query_row("pragma user_version", [], |row| row.get(0))?;
            if version == 0 {
                tx.execute_batch(include_str!("schema.sql"))?;
            }
            if version == 1 {
                tx.execute_batch(
                    "alter table operations add column actor text;
                     alter table owed add column grow text not null default '';",
                )?;
            }
            if (1..SCHEMA).contains(&version) {
                tx.execute_batch("alter table owed add column making integer not null default 0;")?;
            }
            if version >= SCHEMA {
                return Ok(());
            }
            tx.pragma_update(None, "user_version", SCHEMA)
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // a panic elsewhere leaves no half transaction: it was rolled back
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One transaction. `durable` = on the disk before this returns.
    fn write<T>(
        &self,
        durable: bool,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, JournalError> {
        let mut connection = self.connection();
        let level = if durable { "full" } else { "normal" };
        let run = || {
            connection.pragma_update(None, "synchronous", level)?;
            let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let out = work(&tx)?;
            tx.commit()?;
            Ok(out)
        };
        run().map_err(|source| JournalError::of(&self.path, source))
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, JournalError> {
        work(&self.connection()).map_err(|source| JournalError::of(&self.path, source))
    }
}

/// Now, as it is written down: UTC, whole seconds.
pub(crate) fn now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// Makes a folder that only its owner can enter; one that is there stays as it is.
pub(crate) fn private_dir(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes an empty file that only its owner can read; one that is there stays as it is.
fn private_file(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}
