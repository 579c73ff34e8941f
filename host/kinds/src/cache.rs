//! Compiled code and descriptions of kinds on disk, so that a warm start compiles nothing.
//!
//! Compiled code runs outside the sandbox's checks, so an entry that somebody else wrote must never be
//! run. Each entry carries an HMAC-SHA256 under a key that lies beside it, readable by its owner only;
//! it names the component's digest and the engine it was compiled for. An entry is read into memory
//! whole, checked, and only then used; anything unexpected makes the entry absent.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

const MAGIC: &[u8; 20] = b"proxops-kind-cache 1";
const MAC_LENGTH: usize = 32;
const HEADER_LENGTH: usize = MAGIC.len() + 1 + 8 + 32;

/// What an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Machine code.
    Code,
    /// The answer of `describe` as JSON.
    Info,
}

impl What {
    fn extension(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Info => "info",
        }
    }

    fn byte(self) -> u8 {
        match self {
            Self::Code => b'c',
            Self::Info => b'i',
        }
    }
}

/// A folder of entries. Every failure to read or write means "not cached".
pub(crate) struct Cache {
    dir: PathBuf,
    key: [u8; 32],
    compatibility: u64,
}

impl Cache {
    /// Opens or makes the folder and its key; `None`, with a debug line, if it can't be used.
    pub(crate) fn open(dir: &Path, compatibility: u64) -> Option<Self> {
        match make_key(dir) {
            Ok(key) => Some(Self { dir: dir.to_owned(), key, compatibility }),
            Err(error) => {
                tracing::debug!(dir = %dir.display(), %error, "no cache for compiled kinds");
                None
            }
        }
    }

    fn path(&self, digest: &[u8; 32], what: What) -> PathBuf {
        self.dir.join(format!("{}.{}", hex::encode(digest), what.extension()))
    }

    /// The payload that was stored for this component, if it is there, whole and ours.
    pub(crate) fn get(&self, digest: &[u8; 32], what: What) -> Option<Vec<u8>> {
        let path = self.path(digest, what);
        let sealed = fs::read(&path).ok()?;
        let payload = self.open_seal(&sealed, digest, what);
        if payload.is_none() {
            tracing::debug!(entry = %path.display(), "a damaged or foreign cache entry is ignored");
        }
        payload
    }

    /// Stores a payload. A failure costs the next start some time and is a debug line.
    pub(crate) fn put(&self, digest: &[u8; 32], what: What, payload: &[u8]) {
        let path = self.path(digest, what);
        if let Err(error) = write_whole(&path, &self.seal(payload, digest, what)) {
            tracing::debug!(entry = %path.display(), %error, "a cache entry can't be written");
        }
    }

    fn header(&self, digest: &[u8; 32], what: What) -> [u8; HEADER_LENGTH] {
        let mut header = [0; HEADER_LENGTH];
        let parts: [&[u8]; 4] = [MAGIC, &[what.byte()], &self.compatibility.to_le_bytes(), digest];
        for (to, from) in header.iter_mut().zip(parts.concat()) {
            *to = from;
        }
        header
    }

    fn mac(&self) -> Option<Hmac<Sha256>> {
        Hmac::<Sha256>::new_from_slice(&self.key).ok()
    }

    /// magic, what, compatibility, digest, HMAC of all that and the payload, payload.
    fn seal(&self, payload: &[u8], digest: &[u8; 32], what: What) -> Vec<u8> {
        let header = self.header(digest, what);
        let Some(mut mac) = self.mac() else { return Vec::new() };
        mac.update(&header);
        mac.update(payload);
        [&header[..], &mac.finalize().into_bytes(), payload].concat()
    }

    fn open_seal(&self, sealed: &[u8], digest: &[u8; 32], what: What) -> Option<Vec<u8>> {
        let (header, rest) = sealed.split_at_checked(HEADER_LENGTH)?;
        let (tag, payload) = rest.split_at_checked(MAC_LENGTH)?;
        if header != self.header(digest, what) {
            return None;
        }
        let mut mac = self.mac()?;
        mac.update(header);
        mac.update(payload);
        // constant time
        mac.verify_slice(tag).ok()?;
        Some(payload.to_vec())
    }
}

/// Reads the key, or makes a new one where there is none that only we can read.
fn make_key(dir: &Path) -> io::Result<[u8; 32]> {
    // It lies in the data directory, which this may be the first to make: nobody else looks into either.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let path = dir.join("key");
    if let Some(key) = read_key(&path) {
        return Ok(key);
    }
    let key: [u8; 32] = rand::random();
    write_whole(&path, &key)?;
    // another process may have won the race: the file decides
    read_key(&path).ok_or_else(|| io::Error::other("the key can't be read back"))
}

fn read_key(path: &Path) -> Option<[u8; 32]> {
    let about = fs::symlink_metadata(path).ok()?;
    let ours = fs::metadata("/proc/self").map_or(true, |me| me.uid() == about.uid());
    if !about.is_file() || !ours || about.permissions().mode() & 0o077 != 0 {
        return None;
    }
    fs::read(path).ok()?.try_into().ok()
}

/// Writes a file with mode 0600 under a temporary name and renames it: readers see all or nothing.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension(format!("{:016x}.tmp", rand::random::<u64>()));
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: [u8; 32] = [7; 32];

    fn cache(dir: &Path) -> Cache {
        Cache::open(dir, 1).unwrap()
    }

    #[test]
    fn what_was_stored_comes_back_in_the_next_process() {
        let dir = tempfile::tempdir().unwrap();
        cache(dir.path()).put(&DIGEST, What::Code, b"code");
        assert_eq!(cache(dir.path()).get(&DIGEST, What::Code).as_deref(), Some(&b"code"[..]));
        assert_eq!(cache(dir.path()).get(&DIGEST, What::Info), None);
        assert_eq!(cache(dir.path()).get(&[8; 32], What::Code), None);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_makes_an_entry_absent() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache(dir.path());
        cache.put(&DIGEST, What::Code, b"code");
        let path = cache.path(&DIGEST, What::Code);
        let good = fs::read(&path).unwrap();
        for index in 0..good.len() {
            let mut bad = good.clone();
            bad[index] ^= 1;
            assert_eq!(cache.open_seal(&bad, &DIGEST, What::Code), None, "byte {index}");
            assert_eq!(cache.open_seal(&good[..index], &DIGEST, What::Code), None, "cut at {index}");
        }
        fs::write(&path, b"").unwrap();
        assert_eq!(cache.get(&DIGEST, What::Code), None);
    }

    #[test]
    fn an_entry_of_another_place_engine_or_kind_does_not_count() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (ours, theirs) = (cache(here.path()), cache(there.path()));
        theirs.put(&DIGEST, What::Code, b"evil");
        fs::copy(theirs.path(&DIGEST, What::Code), ours.path(&DIGEST, What::Code)).unwrap();
        assert_eq!(ours.get(&DIGEST, What::Code), None);

        let newer = Cache::open(there.path(), 2).unwrap();
        assert_eq!(newer.get(&DIGEST, What::Code), None);

        fs::copy(theirs.path(&DIGEST, What::Code), theirs.path(&[8; 32], What::Code)).unwrap();
        assert_eq!(theirs.get(&[8; 32], What::Code), None);
    }

    #[test]
    fn a_key_that_others_can_read_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let first = cache(dir.path());
        first.put(&DIGEST, What::Code, b"code");
        let path = dir.path().join("key");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let second = cache(dir.path());
        assert_ne!(first.key, second.key);
        assert_eq!(second.get(&DIGEST, What::Code), None);
    }

    #[test]
    fn an_unusable_folder_means_no_cache() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Cache::open(file.path(), 1).is_none());
        assert!(Cache::open(&file.path().join("below"), 1).is_none());
    }
}
