//! Secret files of clusters: loaded when needed, read again when they change, last good value kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use proxops_model::file;
use sha2::{Digest as _, Sha256};

use crate::decrypted::Decrypted;
use crate::document::Document;
use crate::error::SopsError;
use crate::identity::IdentitySources;

/// One secret file with its last good content.
#[derive(Debug)]
pub struct SecretStore {
    path: PathBuf,
    identities: IdentitySources,
    current: Arc<Decrypted>,
    /// SHA-256 of the file that `current` was read from.
    digest: [u8; 32],
}

/// What [`SecretStore::reload_if_changed`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    /// The file is as it was.
    Unchanged,
    /// The file changed and was read.
    Reloaded,
    /// The file changed, or went away, and can not be used: the last good content stays.
    Kept(SopsError),
}

impl SecretStore {
    /// Reads and decrypts the file.
    ///
    /// # Errors
    /// [`SopsError::Io`], or as [`Document::decrypt`].
    pub fn load(path: &Path, identities: &IdentitySources) -> Result<Self, SopsError> {
        let (text, digest) = read(path)?;
        let current = Document::decrypt(&text, &path.display().to_string(), identities)?;
        Ok(SecretStore {
            path: path.to_owned(),
            identities: identities.clone(),
            current: Arc::new(current),
            digest,
        })
    }

    /// The last good content.
    pub fn current(&self) -> Arc<Decrypted> {
        Arc::clone(&self.current)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file again if its bytes changed. The bytes are compared, not the time stamp, which is too
    /// coarse to notice two writes in a row; such files are small. A broken file is tried again each time.
    pub fn reload_if_changed(&mut self) -> Reload {
        let (text, digest) = match read(&self.path) {
            Ok(read) => read,
            Err(error) => return Reload::Kept(error),
        };
        if digest == self.digest {
            return Reload::Unchanged;
        }
        match Document::decrypt(&text, &self.path.display().to_string(), &self.identities) {
            Ok(decrypted) => {
                self.current = Arc::new(decrypted);
                self.digest = digest;
                Reload::Reloaded
            }
            Err(error) => Reload::Kept(error),
        }
    }
}

fn read(path: &Path) -> Result<(String, [u8; 32]), SopsError> {
    let text = file::text(path, file::SMALL)
        .map_err(|error| SopsError::Io { file: path.display().to_string(), reason: error.to_string() })?;
    let digest = Sha256::digest(text.as_bytes()).into();
    Ok((text, digest))
}

/// The secret files of all clusters. A cluster's file is loaded when it is first asked for; clusters do not
/// wait for each other.
#[derive(Debug)]
pub struct ClusterSecrets {
    identities: IdentitySources,
    stores: Mutex<BTreeMap<String, Arc<Mutex<Option<SecretStore>>>>>,
}

/// The secrets of one cluster as they are now.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The last good content.
    pub secrets: Arc<Decrypted>,
    /// Why the file on disk is not what `secrets` holds, if it is not.
    pub stale: Option<SopsError>,
}

impl ClusterSecrets {
    /// No files yet; they will be decrypted with these identities.
    pub fn new(identities: IdentitySources) -> Self {
        ClusterSecrets { identities, stores: Mutex::default() }
    }

    /// The secrets of a cluster: loaded the first time, read again when the file changed. A file that broke
    /// after it was good is reported in [`Loaded::stale`].
    ///
    /// # Errors
    /// As [`SecretStore::load`], when there is no good content to fall back to.
    pub fn load(&self, cluster: &str, path: &Path) -> Result<Loaded, SopsError> {
        let slot = {
            let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(stores.entry(cluster.to_owned()).or_default())
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = slot.as_mut().filter(|store| store.path == path) {
            let stale = match store.reload_if_changed() {
                Reload::Kept(error) => Some(error),
                Reload::Unchanged | Reload::Reloaded => None,
            };
            return Ok(Loaded { secrets: store.current(), stale });
        }
        // A fetched tree has another folder for every commit: the last good content counts there too.
        match (SecretStore::load(path, &self.identities), slot.as_ref()) {
            (Ok(store), _) => {
                let secrets = store.current();
                *slot = Some(store);
                Ok(Loaded { secrets, stale: None })
            }
            (Err(error), Some(last)) => Ok(Loaded { secrets: last.current(), stale: Some(error) }),
            (Err(error), None) => Err(error),
        }
    }
}
