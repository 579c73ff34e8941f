//! Changing a secrets file on disk: the old file or the new one, never something between.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use proxops_model::file;

use crate::decrypted::Decrypted;
use crate::document::Document;
use crate::error::SopsError;
use crate::identity::IdentitySources;
use crate::replace::{Replaced, replace};

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
        let text = file::text(&path, file::SMALL).map_err(named)?;
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
        match replace(&self.path, self.text.as_bytes(), text.as_bytes()).map_err(failed)? {
            Replaced::Yes => Ok(true),
            Replaced::Changed { beside: None } => Err(SopsError::Changed { file }),
            Replaced::Changed { beside: Some(beside) } => {
                let reason = format!(
                    "it was changed by somebody else twice in the same instant; {} holds the other version: compare \
                     the two, and run again",
                    beside.display()
                );
                Err(SopsError::Io { file, reason })
            }
        }
    }
}

fn io(path: &Path, what: &str, error: &std::io::Error) -> SopsError {
    SopsError::Io { file: path.display().to_string(), reason: format!("{what}: {error}") }
}
