//! The encrypted form of one scalar: `ENC[AES256_GCM,data:..,iv:..,tag:..,type:..]`.

use aes_gcm::aead::consts::U32;
use aes_gcm::aead::{AeadInPlace, KeyInit};
use aes_gcm::aes::Aes256;
use aes_gcm::{AesGcm, Key, Nonce, Tag};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::RngCore as _;
use zeroize::Zeroizing;

use crate::value::Kind;

const PREFIX: &str = "ENC[AES256_GCM,data:";
const IV_LEN: usize = 32;
const TAG_LEN: usize = 16;

/// AES-256 in GCM with the nonce of 32 bytes that the format uses.
type Gcm = AesGcm<Aes256, U32>;

/// The key of one document: every value is encrypted with it, and it once per recipient.
#[derive(Clone)]
pub(crate) struct DataKey(Zeroizing<[u8; 32]>);

/// Why a scalar could not be decrypted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CipherError {
    /// Not the encrypted form at all.
    NotEncrypted,
    /// The encrypted form, broken.
    Malformed(&'static str),
    /// Wrong key, changed bytes, or a value that was moved to another path.
    Refused,
}

impl DataKey {
    pub(crate) fn random() -> Self {
        let mut key = Zeroizing::new([0; 32]);
        rand::rng().fill_bytes(&mut key[..]);
        DataKey(key)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut key = Zeroizing::new([0; 32]);
        if bytes.len() != key.len() {
            return None;
        }
        key.copy_from_slice(bytes);
        Some(DataKey(key))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0[..]
    }

    fn gcm(&self) -> Gcm {
        Gcm::new(Key::<Gcm>::from_slice(&self.0[..]))
    }

    /// Encrypts one value; `additional` is its path (see [`path_data`]). Empty text stays empty.
    pub(crate) fn encrypt(&self, kind: Kind, plain: &[u8], additional: &str) -> Option<String> {
        if plain.is_empty() {
            return Some(String::new());
        }
        let mut iv = [0; IV_LEN];
        rand::rng().fill_bytes(&mut iv);
        let mut data = Zeroizing::new(plain.to_vec());
        let tag = self
            .gcm()
            .encrypt_in_place_detached(Nonce::from_slice(&iv), additional.as_bytes(), &mut data)
            .ok()?;
        Some(format!(
            "{PREFIX}{},iv:{},tag:{},type:{}]",
            STANDARD.encode(&data),
            STANDARD.encode(iv),
            STANDARD.encode(tag),
            kind.name()
        ))
    }

    /// Decrypts one value that belongs at the path in `additional`.
    pub(crate) fn decrypt(
        &self,
        text: &str,
        additional: &str,
    ) -> Result<(Kind, Zeroizing<Vec<u8>>), CipherError> {
        let [data, iv, tag, kind] = parts(text).ok_or(CipherError::NotEncrypted)?;
        let decode = |part: &str| STANDARD.decode(part).map_err(|_| CipherError::Malformed("broken base64"));
        let mut data = Zeroizing::new(decode(data)?);
        let (iv, tag) = (decode(iv)?, decode(tag)?);
        if iv.len() != IV_LEN || tag.len() != TAG_LEN {
            return Err(CipherError::Malformed("an iv or tag of the wrong length"));
        }
        let kind = Kind::from_name(kind).ok_or(CipherError::Malformed("an unknown type"))?;
        self.gcm()
            .decrypt_in_place_detached(
                Nonce::from_slice(&iv),
                additional.as_bytes(),
                &mut data,
                Tag::<aes_gcm::aead::consts::U16>::from_slice(&tag),
            )
            .map_err(|_| CipherError::Refused)?;
        Ok((kind, data))
    }
}

/// Whether the text claims to be the encrypted form.
pub(crate) fn looks_encrypted(text: &str) -> bool {
    text.starts_with("ENC[")
}

/// The additional data of a value: its keys joined and ended by `:`. List positions are no part of it.
pub(crate) fn path_data(path: &[&str]) -> String {
    path.iter().fold(String::new(), |mut out, key| {
        out.push_str(key);
        out.push(':');
        out
    })
}

fn parts(text: &str) -> Option<[&str; 4]> {
    let inner = text.trim().strip_prefix(PREFIX)?.strip_suffix(']')?;
    let (data, rest) = inner.split_once(",iv:")?;
    let (iv, rest) = rest.split_once(",tag:")?;
    let (tag, kind) = rest.split_once(",type:")?;
    Some([data, iv, tag, kind])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_only_opens_at_its_own_path_and_unchanged() {
        let key = DataKey::random();
        let text = key.encrypt(Kind::Str, b"hunter2", "a:b:").unwrap();
        assert_eq!(key.decrypt(&text, "a:b:").unwrap(), (Kind::Str, Zeroizing::new(b"hunter2".to_vec())));
        assert_eq!(key.decrypt(&text, "a:c:").unwrap_err(), CipherError::Refused);
        assert_eq!(DataKey::random().decrypt(&text, "a:b:").unwrap_err(), CipherError::Refused);
        assert_eq!(key.decrypt("plain", "a:b:").unwrap_err(), CipherError::NotEncrypted);
        let short = "ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]";
        assert!(matches!(key.decrypt(short, "a:").unwrap_err(), CipherError::Malformed(_)));
    }

    #[test]
    fn empty_text_stays_empty() {
        assert_eq!(DataKey::random().encrypt(Kind::Str, b"", "a:").unwrap(), "");
    }
}
