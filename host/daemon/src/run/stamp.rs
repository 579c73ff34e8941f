//! Whether the files of a tree are as they were when it was read: reading thousands of manifests again every few
//! seconds would be most of an idle daemon's work.

use crate::Process;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// File systems tell times no finer than this, some of them: a file that was written so shortly before the look may be
/// written again without a trace.
const COARSE: Duration = Duration::from_secs(2);

/// The files as they were just before they were read the last time.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<Option<u64>>);

impl Seen {
    /// Whether anything may have changed, and what to [`Seen::keep`] if it is read now. Taken before the reading, so
    /// that a change in between is not missed. A tree that is fetched is always worth asking for.
    pub(super) fn look(&self, process: &Process) -> (bool, Option<u64>) {
        if process.repository.settings.git.url.is_some() {
            return (true, None);
        }
        let now = stamp(process);
        let seen = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (now.is_none() || seen != now, now)
    }

    /// The files were read, and are as they should be.
    pub(super) fn keep(&self, stamp: Option<u64>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stamp;
    }
}

/// A hash over name, size, times and inode of everything that a tree is read from. `None` = something is too fresh to
/// tell.
fn stamp(process: &Process) -> Option<u64> {
    let root = &process.repository.root;
    let mut hash = DefaultHasher::new();
    let mut newest = SystemTime::UNIX_EPOCH;
    let roots = process.kinds.infos().map(|info| info.root.as_str());
    let folders = ["clusters", "kinds"].into_iter().chain(roots).map(|folder| root.join(folder));
    let data_kinds = process.repository.settings.data_dir.join("kinds");
    let git = [".git", ".git/HEAD", ".git/index", ".git/logs/HEAD"].map(|file| root.join(file));
    let process_file = process.repository.settings.file.as_ref().map(|file| root.join(file));
    for path in folders.chain([data_kinds]) {
        walk(&path, &mut hash, &mut newest, 0);
    }
    for path in git.into_iter().chain([root.join("proxops.yaml")]).chain(process_file) {
        note(&path, &mut hash, &mut newest);
    }
    let age = SystemTime::now().duration_since(newest).unwrap_or_default();
    (age > COARSE).then(|| hash.finish())
}

fn note(path: &Path, hash: &mut DefaultHasher, newest: &mut SystemTime) {
    path.hash(hash);
    if let Ok(meta) = std::fs::metadata(path) {
        (meta.len(), meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()).hash(hash);
        let at =
            |seconds: i64| SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        *newest = (*newest).max(at(meta.ctime())).max(at(meta.mtime()));
    }
}

fn walk(folder: &Path, hash: &mut DefaultHasher, newest: &mut SystemTime, depth: u32) {
    note(folder, hash, newest);
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        // A link may lead in a circle.
        let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if is_folder && depth < 32 {
            walk(&path, hash, newest, depth + 1);
        } else {
            note(&path, hash, newest);
        }
    }
}
