//! Reading files of the tree, bounded.

use crate::yaml::{self, Pos, Problem, Stream};
use proxops_model::{Location, file};
use std::path::{Component, Path, PathBuf};

/// How a pointer file of Git LFS begins.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

const INSIDE: &str = "keep it in the repository, symlinks resolved, or name it with --config";

const READABLE: &str = "it must be a plain file that the user who runs proxops may read";

/// A relative path as diagnostics show it: forward slashes. `None` if it is not UTF-8.
pub(crate) fn repo_path(path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path
        .components()
        .map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    parts.map(|parts| parts.join("/"))
}

/// Absolute and with symlinks resolved, as far as it is there: two names of one folder are one path.
pub fn resolved(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => resolved(parent).join(name),
        _ => path.to_path_buf(),
    }
}

/// The file as a whole: its start, so that an editor can jump there.
pub(crate) fn whole_file(file: &str) -> Location {
    Location { file: file.to_owned(), line: 1, column: 1 }
}

/// A folder, which has no lines.
pub(crate) fn folder(path: &str) -> Location {
    Location { file: path.to_owned(), line: 0, column: 0 }
}

/// Reads and parses a file. One that cannot be read is a stream with that problem.
pub(crate) fn read(path: &Path) -> Stream {
    match file::head(path, yaml::MAX_BYTES + 1) {
        Ok(bytes) if bytes.starts_with(LFS_POINTER) => {
            let at = Pos { line: 1, column: 1 };
            let message = "the file is a pointer of Git LFS, not what it points to".to_owned();
            let help =
                Some("keep it in git itself: take it out of .gitattributes and commit it anew".to_owned());
            let problem = Problem { at, code: "lfs-pointer", pointer: String::new(), message, help };
            Stream { documents: Vec::new(), problems: vec![problem] }
        }
        Ok(bytes) => yaml::parse(&bytes),
        Err(error) => refused("unreadable-file", format!("cannot be read: {error}"), READABLE),
    }
}

/// The same for a file that must lie below `root`, symlinks resolved: a link in a tree must not make a run read, and
/// quote, what else its machine holds.
pub(crate) fn read_inside(root: &Path, path: &Path) -> Stream {
    match path.canonicalize() {
        Ok(real) if !real.starts_with(root) => {
            refused("outside-repository", "the file lies outside the repository".to_owned(), INSIDE)
        }
        Ok(real) => read(&real),
        Err(error) => refused("unreadable-file", format!("cannot be read: {error}"), READABLE),
    }
}

/// The text of a file as messages name it, to be quoted; `None` if it does not lie below `root` or is nothing to quote.
pub(crate) fn quotable(root: &Path, file: &str) -> Option<String> {
    let real = root.join(file).canonicalize().ok()?;
    real.starts_with(root).then(|| file::text(&real, yaml::MAX_BYTES).ok())?
}

fn refused(code: &'static str, message: String, help: &str) -> Stream {
    let (at, pointer) = (Pos::default(), String::new());
    let problem = Problem { at, code, pointer, message, help: Some(help.to_owned()) };
    Stream { documents: Vec::new(), problems: vec![problem] }
}
