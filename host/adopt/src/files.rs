//! Writing manifest files: whole or not at all, inside the repository, and never over a file that is not meant.

use anyhow::{Context as _, bail};
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// What became of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrote {
    /// It holds the text now.
    Yes,
    /// There is one already.
    Exists,
}

/// Writes one file below the root. Without `force` an existing file stays.
///
/// # Errors
/// The folder leads out of the repository, or the file can't be written.
pub(crate) fn write(root: &Path, file: &str, text: &str, force: bool) -> anyhow::Result<Wrote> {
    let path = root.join(file);
    let folder = path.parent().unwrap_or(root);
    fs::create_dir_all(folder).with_context(|| format!("can't make the folder {}", folder.display()))?;
    let real = folder.canonicalize().with_context(|| format!("can't resolve {}", folder.display()))?;
    if !real.starts_with(root) {
        bail!(
            "{}: the folder leads out of the repository, to {}; nothing was written there",
            file,
            real.display()
        );
    }
    if force && fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(Wrote::Yes);
    }
    let failed = || format!("can't write {}", path.display());
    let mut new = tempfile::Builder::new()
        .prefix(".proxops-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(&real)
        .with_context(failed)?;
    new.write_all(text.as_bytes()).with_context(failed)?;
    if force {
        new.persist(&path).map_err(|e| e.error).with_context(failed)?;
        return Ok(Wrote::Yes);
    }
    match new.persist_noclobber(&path) {
        Ok(_) => Ok(Wrote::Yes),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Ok(Wrote::Exists),
        Err(error) => Err(error.error).with_context(failed),
    }
}
