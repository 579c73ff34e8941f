//! Clusters that the daemon leaves alone on request: one file each in the data directory, so that it holds across
//! restarts and needs no daemon to be said.

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Why and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// RFC 3339.
    #[serde(with = "super::when")]
    pub since: Timestamp,
    /// As the operator gave it.
    pub reason: Option<String>,
}

fn file(data_dir: &Path, cluster: &str) -> PathBuf {
    data_dir.join("suspended").join(format!("{cluster}.json"))
}

/// Names of clusters are folders of the repository; anything else must not become a path here.
fn check(cluster: &str) -> anyhow::Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    ensure!(
        !cluster.is_empty() && !cluster.starts_with('.') && cluster.chars().all(plain),
        "{cluster:?} is no cluster"
    );
    Ok(())
}

/// The daemon starts no further cycle of this cluster.
///
/// # Errors
/// The data directory can't be written.
pub fn suspend(data_dir: &Path, cluster: &str, reason: Option<&str>) -> anyhow::Result<()> {
    check(cluster)?;
    let path = file(data_dir, cluster);
    let folder = data_dir.join("suspended");
    let suspension = Suspension { since: Timestamp::now(), reason: reason.map(str::to_owned) };
    let part = path.with_extension("part");
    let write = || -> std::io::Result<()> {
        // The data directory too, if this is the first to make it.
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.write_all(&serde_json::to_vec(&suspension)?)?;
        std::fs::rename(&part, &path)
    };
    write()
        .with_context(|| format!("cluster {cluster} can't be suspended: {} can't be written", path.display()))
}

/// The daemon goes on with this cluster. `false` = it was not suspended.
///
/// # Errors
/// The data directory can't be written.
pub fn resume(data_dir: &Path, cluster: &str) -> anyhow::Result<bool> {
    check(cluster)?;
    let path = file(data_dir, cluster);
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("{} can't be removed", path.display())),
    }
}

/// Whether a cluster is suspended. A file that can't be read counts: somebody wanted it.
pub fn suspension(data_dir: &Path, cluster: &str) -> Option<Suspension> {
    check(cluster).ok()?;
    match std::fs::read(file(data_dir, cluster)) {
        Ok(bytes) => Some(serde_json::from_slice(&bytes).unwrap_or(Suspension {
            since: Timestamp::UNIX_EPOCH,
            reason: Some("the file in data-dir/suspended can't be read".to_owned()),
        })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => Some(Suspension { since: Timestamp::UNIX_EPOCH, reason: Some(error.to_string()) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspension_holds_until_it_is_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(suspension(dir.path(), "lab"), None);
        suspend(dir.path(), "lab", Some("disk swap")).unwrap();
        assert_eq!(suspension(dir.path(), "lab").unwrap().reason.as_deref(), Some("disk swap"));
        assert_eq!(suspension(dir.path(), "other"), None);
        assert!(resume(dir.path(), "lab").unwrap());
        assert!(!resume(dir.path(), "lab").unwrap());
        assert_eq!(suspension(dir.path(), "lab"), None);
    }

    #[test]
    fn a_suspension_and_the_folders_made_for_it_are_their_owners() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        suspend(&data, "lab", Some("disk swap")).unwrap();
        let mode = |path: &str| std::fs::metadata(data.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(""), mode("suspended"), mode("suspended/lab.json")], [0o700, 0o700, 0o600]);
    }

    #[test]
    fn a_broken_file_still_suspends() {
        let dir = tempfile::tempdir().unwrap();
        suspend(dir.path(), "lab", None).unwrap();
        std::fs::write(dir.path().join("suspended/lab.json"), "{").unwrap();
        assert!(suspension(dir.path(), "lab").is_some());
    }

    #[test]
    fn a_name_can_not_leave_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["../x", "", ".", "..", "a/b"] {
            assert!(suspend(dir.path(), name, None).is_err(), "{name}");
        }
    }
}
