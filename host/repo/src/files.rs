//! Reading files of the tree, bounded.

use crate::yaml::{self, Pos, Problem, Stream};
use proxops_model::Location;
use std::{
    fs::File,
    io::Read,
    path::{Component, Path},
};

/// How a pointer file of Git LFS begins.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

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
    match bytes(path) {
        Ok(bytes) if bytes.starts_with(LFS_POINTER) => {
            let at = Pos { line: 1, column: 1 };
            let message = "the file is a pointer of Git LFS, not what it points to".to_owned();
            let help =
                Some("keep it in git itself: take it out of .gitattributes and commit it anew".to_owned());
            let problem = Problem { at, code: "lfs-pointer", pointer: String::new(), message, help };
            Stream { documents: Vec::new(), problems: vec![problem] }
        }
        Ok(bytes) => yaml::parse(&bytes),
        Err(why) => {
            let at = Pos::default();
            let problem = Problem {
                at,
                code: "unreadable-file",
                pointer: String::new(),
                message: why,
                help: Some(READABLE.to_owned()),
            };
            Stream { documents: Vec::new(), problems: vec![problem] }
        }
    }
}

/// A file's bytes, at most one more than the largest file that is parsed.
fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    // Checked before opening: opening a named pipe would wait for ever.
    let meta = std::fs::metadata(path).map_err(failed)?;
    if !meta.is_file() {
        return Err("not a regular file".to_owned());
    }
    let most = yaml::MAX_BYTES + 1;
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(most).min(most) + 1);
    let file = File::open(path).map_err(failed)?;
    file.take(most as u64).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
