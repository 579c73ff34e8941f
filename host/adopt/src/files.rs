//! Writing manifest files: whole or not at all, inside the repository, and never over a file that is not meant.

use anyhow::{Context as _, bail};
use proxops_model::file;
use proxops_secrets::{Replaced, replace};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// What may be written over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over<'a> {
    /// Nothing: a file that is there stays.
    Nothing,
    /// Whatever is there.
    Anything,
    /// The file with this content, and no other.
    This(&'a [u8]),
}

/// What became of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wrote {
    /// It holds the text now.
    Yes,
    /// There is one already.
    Exists,
    /// It was changed or removed by somebody else, and is left so; why, in words.
    Changed(String),
}

/// Makes the folder of a file below the root; the result is where it really is.
///
/// # Errors
/// The folder leads out of the repository, or can't be made.
pub(crate) fn folder(root: &Path, file: &str) -> anyhow::Result<PathBuf> {
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
    Ok(real)
}

/// Writes one file in a [`folder`].
///
/// # Errors
/// The file can't be written.
pub(crate) fn write(folder: &Path, name: &str, text: &str, over: Over<'_>) -> anyhow::Result<Wrote> {
    let path = folder.join(name);
    let failed = || format!("can't write {}", path.display());
    if over == Over::Nothing {
        return match path.symlink_metadata() {
            Ok(_) => Ok(Wrote::Exists),
            Err(_) => create(folder, &path, text).with_context(failed),
        };
    }
    let there = match file::whole(&path, file::SMALL) {
        Ok(there) => Some(there),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(failed),
    };
    match (over, there) {
        (_, Some(there)) if there == text.as_bytes() => Ok(Wrote::Yes),
        (Over::This(old), Some(_)) => replaced(&path, old, text).with_context(failed),
        (_, Some(there)) => replaced(&path, &there, text).with_context(failed),
        (Over::This(_), None) => Ok(Wrote::Changed("it was removed by somebody else meanwhile".to_owned())),
        (_, None) => create(folder, &path, text).with_context(failed),
    }
}

fn replaced(path: &Path, old: &[u8], text: &str) -> std::io::Result<Wrote> {
    Ok(match replace(path, old, text.as_bytes())? {
        Replaced::Yes => Wrote::Yes,
        Replaced::Changed { beside: None } => {
            Wrote::Changed("it was changed by somebody else meanwhile and is left as it is".to_owned())
        }
        Replaced::Changed { beside: Some(beside) } => Wrote::Changed(format!(
            "it was changed by somebody else twice in the same instant; {} holds the other version",
            beside.display()
        )),
    })
}

fn create(folder: &Path, path: &Path, text: &str) -> std::io::Result<Wrote> {
    let mut new = tempfile::Builder::new()
        .prefix(".proxops-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder)?;
    new.write_all(text.as_bytes())?;
    match new.persist_noclobber(path) {
        Ok(_) => Ok(Wrote::Yes),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(Wrote::Exists),
        Err(error) => Err(error.error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_meant_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let read = || fs::read_to_string(root.join("vm/a.yaml")).unwrap();
        let vm = super::folder(&root, "vm/a.yaml").unwrap();
        let write = |text: &str, over| write(&vm, "a.yaml", text, over).unwrap();
        assert_eq!(write("1", Over::Nothing), Wrote::Yes);
        assert_eq!((write("2", Over::Nothing), read()), (Wrote::Exists, "1".to_owned()));
        assert_eq!((write("2", Over::This(b"1")), read()), (Wrote::Yes, "2".to_owned()));
        assert!(matches!(write("3", Over::This(b"1")), Wrote::Changed(_)));
        assert_eq!(read(), "2");
        assert_eq!((write("3", Over::Anything), read()), (Wrote::Yes, "3".to_owned()));
        fs::remove_file(root.join("vm/a.yaml")).unwrap();
        assert!(matches!(write("4", Over::This(b"3")), Wrote::Changed(_)));
        assert!(!root.join("vm/a.yaml").exists());
        assert_eq!(fs::read_dir(root.join("vm")).unwrap().count(), 0, "nothing lies about");
    }
}
