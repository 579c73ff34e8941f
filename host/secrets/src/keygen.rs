//! Making an age key where there is none, and the public halves of those that are there.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use age::secrecy::ExposeSecret as _;
use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::document::Document;
use crate::error::SopsError;
use crate::identity::IdentitySources;
use crate::value::Value;

impl IdentitySources {
    /// Where `sops` looks for age keys by default: `$XDG_CONFIG_HOME/sops/age/keys.txt`, else below `~/.config`.
    /// `None` without a home directory.
    pub fn default_key_file(&self) -> Option<PathBuf> {
        Some(self.config_folder()?.join("sops/age/keys.txt"))
    }

    /// Public age keys of what `SOPS_AGE_KEY`, `SOPS_AGE_KEY_FILE` and the default key file hold, in this order and
    /// each once. SSH keys and key commands are not asked: they are somebody's choice, not a default.
    ///
    /// # Errors
    /// [`SopsError::Io`]: a variable is set and gives no key. Another key in its place would be a surprise.
    pub fn age_recipients(&self) -> Result<Vec<String>, SopsError> {
        let file = |path: PathBuf| std::fs::read_to_string(path).ok().map(Zeroizing::new);
        let set = |name: &'static str| self.env(name).filter(|value| !value.trim().is_empty());
        let mut found: Vec<String> = Vec::new();
        for (name, text) in [
            ("SOPS_AGE_KEY", set("SOPS_AGE_KEY").map(Zeroizing::new).map(Some)),
            ("SOPS_AGE_KEY_FILE", set("SOPS_AGE_KEY_FILE").map(|path| file(PathBuf::from(path)))),
            ("", self.default_key_file().and_then(file).map(Some)),
        ] {
            let Some(text) = text else { continue };
            let text = text.unwrap_or_default();
            let mut some = false;
            let keys = text.lines().filter(|line| !line.trim_start().starts_with('#'));
            for word in keys.flat_map(str::split_whitespace) {
                let Ok(identity) = age::x25519::Identity::from_str(word) else { continue };
                some = true;
                let public = identity.to_public().to_string();
                if !found.contains(&public) {
                    found.push(public);
                }
            }
            if !some && !name.is_empty() {
                let reason = "it is set and gives no age key (AGE-SECRET-KEY-1...): mend it, or unset it";
                return Err(SopsError::Io { file: name.to_owned(), reason: reason.to_owned() });
            }
        }
        Ok(found)
    }
}

/// Makes a new age key in a new file that only its owner can read, as `age-keygen` writes it. The result is the
/// public key. A file that is there is never touched.
///
/// # Errors
/// [`SopsError::Io`].
pub fn create_age_key(path: &Path, now: Timestamp) -> Result<String, SopsError> {
    let failed = |error: std::io::Error| SopsError::Io {
        file: path.display().to_string(),
        reason: format!("can't be made: {error}"),
    };
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let identity = age::x25519::Identity::generate();
    let public = identity.to_public().to_string();
    let secret = identity.to_string();
    let stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ");
    let text =
        Zeroizing::new(format!("# created: {stamp}\n# public key: {public}\n{}\n", secret.expose_secret()));
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    Ok(public)
}

/// The text of a new secrets document of a cluster: credentials under `secrets:`, and room for keys and passwords.
///
/// # Errors
/// As [`Document::create`].
pub fn cluster_document(
    file: &str,
    recipients: &[String],
    credentials: &[(&str, crate::Secret)],
    now: Timestamp,
) -> Result<String, SopsError> {
    let credentials =
        credentials.iter().map(|(name, secret)| ((*name).to_owned(), Value::from(secret))).collect();
    let empty = |name: &str| (name.to_owned(), Value::Map(Vec::new()));
    let tree = Value::Map(vec![
        ("secrets".to_owned(), Value::Map(credentials)),
        ("cloud-init".to_owned(), Value::Map(vec![empty("ssh-keys"), empty("passwords")])),
    ]);
    Document::create(file, recipients, &tree, now)
}
