//! The folder of one source in the data directory.
//!
//! ```text
//! git/<key>/lock                one process at a time fetches
//!           current             commit of the last good tree
//!           trees/<commit>/     whole trees
//!           trees/<commit>.use  locked (shared) by whoever reads that tree
//!           tmp-*/              a fetch under way, or left by one that was killed
//! ```

use super::{Snapshot, Trouble};
use std::fs::{DirBuilder, File};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Held while a source is fetched.
pub(crate) struct Store {
    folder: PathBuf,
    _lock: File,
}

/// A folder that goes away with this value.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn disk<'a>(what: &'a str, path: &'a Path) -> impl Fn(std::io::Error) -> Trouble + 'a {
    move |error| Trouble::disk(what, path, &error)
}

impl Store {
    /// Makes the folder if need be, waits for its lock, and clears what a killed run left.
    pub fn open(data_dir: &Path, key: &str) -> Result<Self, Trouble> {
        let folder = data_dir.join("git").join(key);
        let trees = folder.join("trees");
        // A repository may hold a plain-text token in proxops.yaml: for nobody else to read.
        DirBuilder::new().recursive(true).mode(0o700).create(&trees).map_err(disk("made", &trees))?;
        let lock_file = folder.join("lock");
        let lock = open_lock(&lock_file).map_err(disk("opened", &lock_file))?;
        lock.lock().map_err(disk("locked", &lock_file))?;
        let store = Self { folder, _lock: lock };
        for path in entries(&store.folder) {
            if name(&path).starts_with("tmp-") {
                let _ = std::fs::remove_dir_all(&path);
            }
        }
        Ok(store)
    }

    /// A folder for a fetch, on the same file system as the trees.
    pub fn scratch(&self) -> Result<Scratch, Trouble> {
        let path = self.folder.join(format!("tmp-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path).map_err(disk("made", &path))?;
        Ok(Scratch(path))
    }

    /// Whether this tree is there, whole.
    pub fn has(&self, commit: &str) -> bool {
        self.tree(commit).is_dir()
    }

    /// Takes a finished tree in. It appears at once or not at all.
    pub fn adopt(&self, commit: &str, finished: &Path) -> Result<(), Trouble> {
        let tree = self.tree(commit);
        std::fs::rename(finished, &tree).map_err(disk("made", &tree))?;
        sync_dir(&self.folder.join("trees"));
        Ok(())
    }

    /// Remembers this tree as the last good one and removes all others that nobody reads.
    pub fn keep(&self, commit: &str) -> Result<Snapshot, Trouble> {
        let snapshot = self.take(commit)?;
        let current = self.folder.join("current");
        if std::fs::read_to_string(&current).ok().as_deref() != Some(commit) {
            let new = self.folder.join("current.new");
            let written = File::create(&new).and_then(|mut file| {
                file.write_all(commit.as_bytes())?;
                file.sync_all()
            });
            written.and_then(|()| std::fs::rename(&new, &current)).map_err(disk("written", &current))?;
            sync_dir(&self.folder);
        }
        self.forget_all_but(commit);
        Ok(snapshot)
    }

    /// The last good tree, if there is one.
    pub fn current(&self) -> Option<Snapshot> {
        let commit = std::fs::read_to_string(self.folder.join("current")).ok()?;
        self.has(&commit).then(|| self.take(&commit).ok()).flatten()
    }

    fn take(&self, commit: &str) -> Result<Snapshot, Trouble> {
        let path = self.in_use(commit);
        let file = open_lock(&path).map_err(disk("opened", &path))?;
        file.lock_shared().map_err(disk("locked", &path))?;
        let root = self.tree(commit);
        let root = root.canonicalize().map_err(disk("read", &root))?;
        Ok(Snapshot { root, commit: commit.to_owned(), stale: None, _in_use: std::sync::Arc::new(file) })
    }

    fn forget_all_but(&self, commit: &str) {
        for tree in entries(&self.folder.join("trees")) {
            let other = name(&tree);
            if other == commit || other.ends_with(".use") {
                continue;
            }
            let in_use = self.in_use(other);
            let Ok(file) = open_lock(&in_use) else { continue };
            if file.try_lock().is_err() {
                continue;
            }
            // Never half a tree under a tree's name.
            let grave = self.folder.join(format!("tmp-old-{other}"));
            if std::fs::rename(&tree, &grave).is_ok() {
                let _ = std::fs::remove_dir_all(&grave);
                let _ = std::fs::remove_file(&in_use);
            }
        }
    }

    fn tree(&self, commit: &str) -> PathBuf {
        self.folder.join("trees").join(commit)
    }

    fn in_use(&self, commit: &str) -> PathBuf {
        self.folder.join("trees").join(format!("{commit}.use"))
    }
}

fn open_lock(path: &Path) -> std::io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(path)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).map(|all| all.flatten().map(|e| e.path()).collect()).unwrap_or_default()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Makes a rename last. Not every file system can; then a lost rename costs one more fetch.
fn sync_dir(folder: &Path) {
    if let Ok(dir) = File::open(folder) {
        let _ = dir.sync_all();
    }
}
