//! Two proxops processes on one cluster and data directory exclude each other.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// A lock on one cluster, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct ClusterLock {
    _file: File,
}

/// Why the lock was not given.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error(
        "cluster '{cluster}' is being worked on by another proxops process ({holder}), which holds {}; wait for it \
         or end it, then try again",
        path.display()
    )]
    Held {
        /// The cluster.
        cluster: String,
        /// Process id and start of the holder, as it wrote them.
        holder: String,
        /// The lock file.
        path: PathBuf,
    },
    /// The file can't be used.
    #[error("can't lock cluster '{cluster}' with {}: {source}; check owner, mode and space of data-dir", path.display())]
    Io {
        /// The cluster.
        cluster: String,
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl ClusterLock {
    /// Takes the lock of a cluster or says who has it. Never waits.
    pub fn acquire(data_dir: &Path, cluster: &str) -> Result<Self, LockError> {
        let folder = data_dir.join("locks");
        let path = folder.join(format!("{}.lock", file_name(cluster)));
        let io = |source| LockError::Io { cluster: cluster.to_owned(), path: path.clone(), source };
        crate::journal::private_dir(data_dir)
            .and_then(|()| crate::journal::private_dir(&folder))
            .map_err(io)?;
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // the holder may be just about to write its line
                let _ = file.read_to_string(&mut holder);
                let holder = match proxops_model::text::printable(holder.trim()) {
                    text if text.is_empty() => "unknown process".to_owned(),
                    text => text,
                };
                return Err(LockError::Held { cluster: cluster.to_owned(), holder, path });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        let line = format!("pid {} since {}\n", std::process::id(), crate::journal::now());
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(line.as_bytes()))
            .map_err(io)?;
        // The file stays when the lock goes: removing it would let two processes lock two files.
        Ok(Self { _file: file })
    }
}

/// A cluster's name as one file name: everything unusual becomes `%xx`.
fn file_name(cluster: &str) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    cluster.bytes().map(|b| if plain(&b) { char::from(b).to_string() } else { format!("%{b:02x}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_name_can_not_leave_the_folder() {
        assert_eq!(file_name("lab-1"), "lab-1");
        assert_eq!(file_name("../x"), "%2e%2e%2fx");
    }

    #[test]
    fn a_second_lock_on_one_cluster_names_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let first = ClusterLock::acquire(dir.path(), "lab").unwrap();
        ClusterLock::acquire(dir.path(), "other").unwrap();
        let error = ClusterLock::acquire(dir.path(), "lab").unwrap_err();
        assert!(matches!(error, LockError::Held { .. }), "{error}");
        assert!(error.to_string().contains(&format!("pid {}", std::process::id())), "{error}");
        drop(first);
        ClusterLock::acquire(dir.path(), "lab").unwrap();
    }
}
