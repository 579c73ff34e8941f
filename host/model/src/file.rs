//! Reading files that somebody else may have put there: a name can lead to a pipe, a device, or more than memory holds.

use std::fs::File;
use std::io::{Error, Read as _, Result};
use std::path::Path;

/// Most bytes of a certificate, key, token or secrets document: far more than any has.
pub const SMALL: usize = 16 << 20;

/// The beginning of a regular file, symlinks followed, at most this many bytes.
///
/// # Errors
/// It can't be read, or is no regular file.
pub fn head(path: &Path, most: usize) -> Result<Vec<u8>> {
    // Before opening: that waits for a writer of a named pipe, and may do things to a device.
    let meta = std::fs::metadata(path)?;
    if !meta.is_file() {
        return Err(Error::other("not a regular file"));
    }
    let size = usize::try_from(meta.len()).unwrap_or(most);
    let mut bytes = Vec::with_capacity(size.min(most).saturating_add(1));
    // Bounded although the size is known: files grow, and those of /proc say 0.
    File::open(path)?.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A regular file of at most this many bytes.
///
/// # Errors
/// As [`head`], and when it is larger.
pub fn whole(path: &Path, most: usize) -> Result<Vec<u8>> {
    let bytes = head(path, most.saturating_add(1))?;
    if bytes.len() > most {
        return Err(Error::other(format!("larger than {} MiB", most >> 20)));
    }
    Ok(bytes)
}

/// The same as text.
///
/// # Errors
/// As [`whole`], and when it is not UTF-8.
pub fn text(path: &Path, most: usize) -> Result<String> {
    String::from_utf8(whole(path, most)?)
        .map_err(|_| Error::new(std::io::ErrorKind::InvalidData, "not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_folders_and_what_is_too_large_are_refused_and_nothing_more_than_the_bound_is_read() {
        let why = |path: &str, most| whole(Path::new(path), most).unwrap_err().to_string();
        assert_eq!(why("/dev/zero", SMALL), "not a regular file");
        assert_eq!(why("/", SMALL), "not a regular file");
        let own = std::env::current_exe().unwrap();
        assert_eq!(whole(&own, 1 << 10).unwrap_err().to_string(), "larger than 0 MiB");
        assert_eq!(head(&own, 4).unwrap(), b"\x7fELF");
        assert!(text(&own, 1 << 30).unwrap_err().to_string().contains("UTF-8"));
        // Its size is said to be 0.
        assert!(!whole(Path::new("/proc/self/status"), SMALL).unwrap().is_empty());
    }
}
