//! Where kinds come from: the binary itself, and `*.wasm` files in folders.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What to load.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The built-in kinds.
    pub builtin: bool,
    /// Folders whose `*.wasm` files are kinds. One that does not exist is empty.
    pub folders: Vec<PathBuf>,
    /// Single files.
    pub files: Vec<PathBuf>,
    /// Kind name to the SHA-256 (hex) that its file must have.
    pub pins: BTreeMap<String, String>,
    /// Kind name to limits of its own; all others have those of the run.
    pub limits: BTreeMap<String, crate::Limits>,
}

impl Sources {
    /// The built-in kinds and nothing else.
    pub fn builtin() -> Self {
        Self { builtin: true, ..Self::default() }
    }
}

/// Bytes of a component, in the binary or in memory.
pub(crate) type Bytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A file before anything is known about it.
pub(crate) struct Found {
    /// The file, as people write it.
    pub origin: String,
    /// The bytes, or why there are none.
    pub bytes: Result<Bytes, String>,
}

/// Reads all files of the sources, in order of folder and name. Built-in kinds are not among them.
pub(crate) fn find(sources: &Sources, max_bytes: usize) -> Vec<Found> {
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut found = Vec::new();
    for folder in &sources.folders {
        match list(folder) {
            Ok(files) => paths.extend(files),
            Err(error) => found.push(Found {
                origin: folder.display().to_string(),
                bytes: Err(format!("the folder can't be read: {error}")),
            }),
        }
    }
    paths.extend(sources.files.iter().cloned());
    // one folder given twice, or by two names, is one folder
    let mut seen = std::collections::BTreeSet::new();
    for path in paths {
        if seen.insert(fs::canonicalize(&path).unwrap_or_else(|_| path.clone())) {
            let bytes = read(&path, max_bytes);
            found.push(Found { origin: path.display().to_string(), bytes });
        }
    }
    found
}

fn list(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "wasm") && !path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path, max_bytes: usize) -> Result<Bytes, String> {
    let about = fs::metadata(path).map_err(|e| format!("it can't be read: {e}"))?;
    if !about.is_file() {
        return Err("it is not a file".to_owned());
    }
    if about.len() > max_bytes as u64 {
        return Err(format!("it is larger than {} (limit component-bytes)", crate::limits::size(max_bytes)));
    }
    let bytes = fs::read(path).map_err(|e| format!("it can't be read: {e}"))?;
    Ok(Arc::new(bytes))
}
