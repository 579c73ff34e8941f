//! Changing a secrets file on disk: the old file or the new one, never something between.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::decrypted::Decrypted;
use crate::document::Document;
use crate::error::SopsError;
use crate::identity::IdentitySources;

/// A secrets file that is open to be changed.
#[derive(Debug)]
pub struct SecretsFile {
    /// Symlinks resolved: a rename must replace the file, not a link to it.
    path: PathBuf,
    /// As it was read. Encrypted text, no secret.
    text: String,
    identities: IdentitySources,
    /// What it holds; change it with [`Decrypted::set`], then [`SecretsFile::save`].
    pub document: Decrypted,
}

impl SecretsFile {
    /// Reads and decrypts the file.
    ///
    /// # Errors
    /// [`SopsError::Io`], or as [`Document::decrypt`].
    pub fn open(path: &Path, identities: &IdentitySources) -> Result<Self, SopsError> {
        let named = |error: std::io::Error| io(path, "can't be read", &error);
        let path = path.canonicalize().map_err(named)?;
        let text = std::fs::read_to_string(&path).map_err(named)?;
        let document = Document::decrypt(&text, &path.display().to_string(), identities)?;
        Ok(Self { path, text, identities: identities.clone(), document })
    }

    /// Writes the changed document beside the file and renames it over the file; its mode stays. Does nothing, and
    /// says `false`, if nothing was set that was not there.
    ///
    /// Killed at any moment, the file is the old or the new one. A file that changed since it was opened is left
    /// as it is.
    ///
    /// # Errors
    /// [`SopsError::Changed`], [`SopsError::Io`], [`SopsError::ReadOnly`].
    pub fn save(self, now: Timestamp) -> Result<bool, SopsError> {
        if !self.document.is_changed() {
            return Ok(false);
        }
        let text = self.document.encrypt_to_string(now)?;
        let file = self.path.display().to_string();
        // What can't be read back must not replace what can.
        let again = Document::decrypt(&text, &file, &self.identities)?;
        if again.documents() != self.document.documents() {
            let reason = "the new text does not read back as what was meant; nothing was written".to_owned();
            return Err(SopsError::Io { file, reason });
        }
        let failed = |error: std::io::Error| io(&self.path, "can't be written", &error);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut sidecar = tempfile::Builder::new()
            .prefix(&format!(".{name}."))
            .suffix(".new")
            .tempfile_in(folder)
            .map_err(failed)?;
        sidecar.write_all(text.as_bytes()).map_err(failed)?;
        let about = std::fs::metadata(&self.path).map_err(failed)?;
        let mode = std::fs::Permissions::from_mode(about.permissions().mode());
        sidecar.as_file().set_permissions(mode).map_err(failed)?;
        // Only root may give a file away; for everybody else it is theirs already.
        let _ = std::os::unix::fs::chown(sidecar.path(), Some(about.uid()), Some(about.gid()));
        sidecar.as_file().sync_all().map_err(failed)?;
        // As late as can be: what somebody wrote meanwhile is not ours to replace.
        if std::fs::read(&self.path).map_err(failed)? != self.text.as_bytes() {
            return Err(SopsError::Changed { file });
        }
        sidecar.persist(&self.path).map_err(|error| failed(error.error))?;
        // The rename itself must survive a power cut; a file system that can't do that is no reason to fail.
        let _ = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
        Ok(true)
    }
}

fn io(path: &Path, what: &str, error: &std::io::Error) -> SopsError {
    SopsError::Io { file: path.display().to_string(), reason: format!("{what}: {error}") }
}
