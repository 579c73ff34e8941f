//! The files of a commit, written out as they are: no filters, no line-end conversion, no hooks.

use super::Trouble;
use gix::bstr::ByteSlice as _;
use gix::objs::tree::EntryKind;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Component, Path};

/// Folders in folders.
const DEEPEST: usize = 100;
const REPORT: &str = "run `git fsck` on the source";

/// Writes the tree of `commit` into `folder`, which must not be there yet. Every file is on the disk when this returns.
pub(crate) fn write(commit: &gix::Commit<'_>, folder: &Path) -> Result<(), Trouble> {
    let tree = commit.tree().map_err(|error| broken("the commit has no tree", error))?;
    level(&tree, folder, 0)
}

fn broken(what: &str, error: impl std::fmt::Display) -> Trouble {
    Trouble::new(format!("{what}: {error}"), REPORT)
}

fn level(tree: &gix::Tree<'_>, folder: &Path, depth: usize) -> Result<(), Trouble> {
    if depth > DEEPEST {
        return Err(Trouble::new("folders lie too deep in each other", "flatten the repository"));
    }
    let disk = |path: &Path| {
        let path = path.to_path_buf();
        move |error: std::io::Error| Trouble::disk("written", &path, &error)
    };
    std::fs::create_dir(folder).map_err(disk(folder))?;
    for entry in tree.iter() {
        let entry = entry.map_err(|error| broken("a folder of the commit is unreadable", error))?;
        let name = entry.filename().to_str().map_err(|error| broken("a file's name is not UTF-8", error))?;
        if !plain(name) {
            return Err(Trouble::new(format!("the commit holds a file named {name:?}"), REPORT));
        }
        let path = folder.join(name);
        let object = || entry.object().map_err(|error| broken(&format!("{name} is missing"), error));
        match entry.kind() {
            EntryKind::Tree => level(&object()?.into_tree(), &path, depth + 1)?,
            EntryKind::Blob | EntryKind::BlobExecutable => {
                let mut options = File::options();
                options.write(true).create_new(true).mode(0o600);
                let written = options.open(&path).and_then(|mut file| {
                    file.write_all(&entry.object().map_err(std::io::Error::other)?.data)?;
                    file.sync_data()
                });
                written.map_err(disk(&path))?;
            }
            EntryKind::Link => link(&object()?.data, &path, depth)?,
            // As git does without --recurse-submodules; the composition says so where a manifest needs one.
            EntryKind::Commit => std::fs::create_dir(&path).map_err(disk(&path))?,
        }
    }
    if let Ok(dir) = File::open(folder) {
        let _ = dir.sync_all();
    }
    Ok(())
}

/// One path element that can't lead elsewhere.
fn plain(name: &str) -> bool {
    !name.contains(['/', '\\', '\0'])
        && !matches!(name, "" | "." | "..")
        && !name.eq_ignore_ascii_case(".git")
}

/// A link that stays inside the tree; others are left out: what they show would not come from the commit.
fn link(target: &[u8], path: &Path, depth: usize) -> Result<(), Trouble> {
    let inside = target.to_str().ok().map(Path::new).filter(|target| stays_inside(target, depth));
    match inside {
        Some(target) => symlink(target, path).map_err(|error| Trouble::disk("written", path, &error)),
        None => {
            tracing::warn!("{} links out of the repository: left out", path.display());
            Ok(())
        }
    }
}

fn stays_inside(target: &Path, depth: usize) -> bool {
    let mut below = Some(depth);
    for part in target.components() {
        below = match (part, below) {
            (Component::Normal(_), Some(below)) => Some(below + 1),
            (Component::CurDir, below) => below,
            (Component::ParentDir, Some(below)) => below.checked_sub(1),
            _ => None,
        };
        if below.is_none() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_lead_elsewhere_are_not_plain() {
        assert!(["a", ".gitignore", "..."].iter().all(|name| plain(name)));
        assert!(!["", ".", "..", ".git", ".GIT", "a/b", "a\\b"].iter().any(|name| plain(name)));
    }

    #[test]
    fn a_link_stays_inside_if_no_step_of_it_leaves_the_root() {
        let inside = |target: &str, depth| stays_inside(Path::new(target), depth);
        assert!(inside("b.yaml", 0) && inside("../base/b.yaml", 1) && inside("../../x", 2));
        assert!(!inside("../x", 0) && !inside("../../x", 1) && !inside("/etc/passwd", 3));
        assert!(!inside("a/../../x", 0));
    }
}
