//! A new file in the place of one that was read, and of no other.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// What became of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replaced {
    /// It holds the new text.
    Yes,
    /// It is not the one that was read: somebody changed or removed it. It is left as that somebody left it. `beside`
    /// holds a further version, if two were written in the same instant.
    Changed {
        /// In the same folder.
        beside: Option<PathBuf>,
    },
}

/// Writes `text` beside the file and puts it in the file's place if that still holds `old`. Mode and owner stay.
///
/// Killed at any moment, the file is the old or the new one. The two change places in one step, and only then is the
/// old one looked at: an edit in the last instant is in hand, and is put back. A file system that can't exchange
/// files leaves that instant open.
///
/// # Errors
/// The file can't be written; it is as it was.
pub fn replace(path: &Path, old: &[u8], text: &[u8]) -> io::Result<Replaced> {
    replace_and(path, old, text, || ())
}

/// `meanwhile` runs while the new file is in place and nobody has looked at the old one.
fn replace_and(path: &Path, old: &[u8], text: &[u8], meanwhile: impl FnOnce()) -> io::Result<Replaced> {
    let changed = Ok(Replaced::Changed { beside: None });
    let sidecar = match sidecar(path, text) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return changed,
        sidecar => sidecar?,
    };
    if fs::read(path)? != old {
        return changed;
    }
    match exchange(&sidecar, path) {
        Ok(()) => {}
        Err(Errno::NOENT) => return changed,
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            sidecar.persist(path).map_err(|error| error.error)?;
            sync(path);
            return Ok(Replaced::Yes);
        }
        Err(error) => return Err(error.into()),
    }
    // From here on the name of the sidecar may lead to somebody's work: nothing removes it unseen.
    let sidecar = sidecar.keep().map_err(|error| error.error)?;
    meanwhile();
    let displaced = fs::read(&sidecar);
    if displaced.as_ref().is_ok_and(|displaced| displaced == old) {
        fs::remove_file(&sidecar)?;
        sync(path);
        return Ok(Replaced::Yes);
    }
    exchange(&sidecar, path)?;
    let ours = fs::read(&sidecar).is_ok_and(|back| back == text);
    if ours {
        fs::remove_file(&sidecar)?;
    }
    sync(path);
    displaced.map(|_| Replaced::Changed { beside: (!ours).then_some(sidecar) })
}

/// The new file under a name of its own, on the disk, with mode and owner of the file.
fn sidecar(path: &Path, text: &[u8]) -> io::Result<TempPath> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let about = fs::metadata(path)?;
    let mut sidecar =
        tempfile::Builder::new().prefix(&format!(".{name}.")).suffix(".new").tempfile_in(folder(path))?;
    sidecar.write_all(text)?;
    sidecar.as_file().set_permissions(fs::Permissions::from_mode(about.permissions().mode()))?;
    // Only root may give a file away; for everybody else it is theirs already.
    let _ = std::os::unix::fs::chown(sidecar.path(), Some(about.uid()), Some(about.gid()));
    sidecar.as_file().sync_all()?;
    Ok(sidecar.into_temp_path())
}

fn exchange(a: &Path, b: &Path) -> Result<(), Errno> {
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The change of names must survive a power cut; a file system that can't do that is no reason to fail.
fn sync(path: &Path) {
    let _ = fs::File::open(folder(path)).and_then(|folder| folder.sync_all());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.sops.yaml");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    /// Names beside the file.
    fn others(path: &Path) -> Vec<PathBuf> {
        let all = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|other| other.extension().is_some_and(|e| e == "new")).collect()
    }

    #[test]
    fn the_file_that_was_read_is_replaced_and_keeps_its_mode() {
        let (_folder, path) = file("old");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(replace(&path, b"old", b"new").unwrap(), Replaced::Yes);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
        assert_eq!(others(&path), [""; 0].map(PathBuf::from));
    }

    #[test]
    fn another_file_than_the_one_that_was_read_stays() {
        let (_folder, path) = file("theirs");
        assert_eq!(replace(&path, b"old", b"new").unwrap(), Replaced::Changed { beside: None });
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        fs::remove_file(&path).unwrap();
        assert_eq!(replace(&path, b"old", b"new").unwrap(), Replaced::Changed { beside: None });
        assert!(!path.exists() && others(&path).is_empty());
    }

    #[test]
    fn an_edit_of_the_file_that_was_just_displaced_is_put_back() {
        let (_folder, path) = file("old");
        // An editor that had the file open writes into what is now the sidecar.
        let edit = || fs::write(&others(&path)[0], "theirs").unwrap();
        assert_eq!(replace_and(&path, b"old", b"new", edit).unwrap(), Replaced::Changed { beside: None });
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert!(others(&path).is_empty());
    }

    #[test]
    fn of_two_edits_in_one_instant_both_are_kept_and_the_second_is_named() {
        let (_folder, path) = file("old");
        let edits = || {
            fs::write(&others(&path)[0], "first").unwrap();
            fs::write(&path, "second").unwrap();
        };
        let Replaced::Changed { beside: Some(beside) } = replace_and(&path, b"old", b"new", edits).unwrap()
        else {
            panic!("two versions");
        };
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(fs::read_to_string(beside).unwrap(), "second");
    }

    #[test]
    fn what_an_operator_writes_in_a_race_is_never_lost() {
        let (_folder, path) = file("0");
        let done = std::sync::atomic::AtomicBool::new(false);
        let written = std::thread::scope(|scope| {
            // Whenever a sidecar shows up the operator writes the next version over whatever is there, as editors do,
            // a little later each time.
            let operator = scope.spawn(|| {
                let mut n = 0_u32;
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    if others(&path).is_empty() {
                        continue;
                    }
                    n += 1;
                    std::thread::sleep(std::time::Duration::from_micros(u64::from(n % 40) * 25));
                    let new = path.with_extension("editor");
                    fs::write(&new, n.to_string()).unwrap();
                    fs::rename(&new, &path).unwrap();
                }
                n
            });
            for _ in 0..300 {
                let old = fs::read_to_string(&path).unwrap();
                // Ours says which version it was made from.
                let new = format!("made from {}", old.trim_start_matches("made from "));
                replace(&path, old.as_bytes(), new.as_bytes()).unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            operator.join().unwrap()
        });
        // The last version is the operator's last, or made from it, or lies beside.
        let holds = |path: &Path| {
            fs::read_to_string(path).unwrap().trim_start_matches("made from ") == written.to_string()
        };
        assert!(
            holds(&path) || others(&path).iter().any(|other| holds(other)),
            "version {written} is lost: {:?}",
            fs::read_to_string(&path)
        );
    }
}
