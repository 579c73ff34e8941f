//! A SOPS document: parsed, decrypted and checked against its MAC.

use sha2::{Digest as _, Sha512};

use crate::cipher::{CipherError, DataKey, looks_encrypted, path_data};
use crate::decrypted::Decrypted;
use crate::error::SopsError;
use crate::identity::IdentitySources;
use crate::keys;
use crate::metadata::{self, Metadata};
use crate::program;
use crate::scalar::Resolved;
use crate::secret::constant_time_eq;
use crate::value::{Kind, Value};
use crate::yaml::{self, Content, Node};

/// What the MAC starts with when it covers encrypted values only: SHA-256 of `sops`.
const MAC_ONLY_ENCRYPTED_START: [u8; 32] = [
    0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b, 0x0b,
    0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
];

/// A parsed document, still encrypted. One file may hold several YAML documents; they share one data key
/// and one MAC, and the first one's `sops:` block counts.
#[derive(Debug)]
pub struct Document {
    pub(crate) file: String,
    pub(crate) text: String,
    pub(crate) roots: Vec<Node>,
    pub(crate) metadata: Metadata,
}

impl Document {
    /// Parses the text; `file` is the name used in errors.
    ///
    /// # Errors
    /// [`SopsError::NotEncrypted`] and [`SopsError::Malformed`].
    pub fn parse(text: &str, file: &str) -> Result<Document, SopsError> {
        if text.starts_with("version https://git-lfs.github.com/spec/") {
            return Err(SopsError::Malformed {
                file: file.to_owned(),
                position: None,
                reason: "it is a pointer of Git LFS; keep the document in git itself".to_owned(),
            });
        }
        let roots = yaml::parse(text).map_err(|refused| SopsError::Malformed {
            file: file.to_owned(),
            position: refused.position,
            reason: refused.reason,
        })?;
        let Some(first) = roots.first() else {
            return Err(SopsError::NotEncrypted { file: file.to_owned() });
        };
        let metadata = Metadata::read(first, file)?;
        Ok(Document { file: file.to_owned(), text: text.to_owned(), roots, metadata })
    }

    /// Parses, decrypts and verifies. Documents for key services alone go through the `sops` program.
    ///
    /// # Errors
    /// Every [`SopsError`] except those about single keys.
    pub fn decrypt(text: &str, file: &str, identities: &IdentitySources) -> Result<Decrypted, SopsError> {
        Document::parse(text, file)?.open(identities)
    }

    /// Decrypts and verifies a parsed document.
    ///
    /// # Errors
    /// As [`Document::decrypt`].
    pub fn open(self, identities: &IdentitySources) -> Result<Decrypted, SopsError> {
        let services = self.metadata.services();
        if !services.is_empty() && self.metadata.recipients().is_empty() {
            let value = program::decrypt(&self.text, &self.file, services, identities)?;
            return Ok(Decrypted::through_program(self.file, value));
        }
        let key = match keys::unwrap(&self.metadata, identities, &self.file) {
            Ok(key) => key,
            // The document names a key service besides age: the program may reach that one.
            Err(_) if !services.is_empty() && program::find(identities).is_some() => {
                let value = program::decrypt(&self.text, &self.file, services, identities)?;
                return Ok(Decrypted::through_program(self.file, value));
            }
            Err(error) => return Err(error),
        };
        let opened = self.values(&key)?;
        self.verify(&key, &opened.mac)?;
        Ok(Decrypted::in_process(self, key, opened.values))
    }

    /// The public names of all age recipients, in file order.
    pub fn recipients(&self) -> Vec<String> {
        self.metadata.recipients()
    }

    /// Decrypts every value, and computes the MAC without checking it.
    pub(crate) fn values(&self, key: &DataKey) -> Result<Opened, SopsError> {
        let mut hash = Sha512::new();
        if self.metadata.mac_only_encrypted {
            hash.update(MAC_ONLY_ENCRYPTED_START);
        }
        let mut walk = Walk { document: self, key, hash, path: Vec::new(), comments: Vec::new() };
        let values = self.roots.iter().map(|root| walk.root(root)).collect::<Result<_, _>>()?;
        let mac = walk.hash.finalize().iter().map(|byte| format!("{byte:02X}")).collect();
        Ok(Opened { values, mac })
    }

    fn verify(&self, key: &DataKey, computed: &str) -> Result<(), SopsError> {
        let stored = key.decrypt(&self.metadata.mac, &self.metadata.last_modified);
        match stored {
            Ok((_, stored)) if constant_time_eq(&stored, computed.as_bytes()) => Ok(()),
            Ok(_) | Err(CipherError::Refused) => {
                Err(SopsError::MacMismatch { file: self.file.clone(), key: None })
            }
            Err(_) => Err(self.malformed(0, "sops.mac is not an encrypted value".to_owned())),
        }
    }

    pub(crate) fn malformed(&self, byte: usize, reason: String) -> SopsError {
        let position = (byte > 0).then(|| {
            let before = self.text.get(..byte).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            (line, column)
        });
        SopsError::Malformed { file: self.file.clone(), position, reason }
    }
}

/// The decrypted tree of every YAML document, and the MAC over them.
pub(crate) struct Opened {
    pub(crate) values: Vec<Value>,
    pub(crate) mac: String,
}

/// One pass in file order, which is the order of the MAC.
struct Walk<'a> {
    document: &'a Document,
    key: &'a DataKey,
    hash: Sha512,
    path: Vec<&'a str>,
    comments: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn root(&mut self, root: &'a Node) -> Result<Value, SopsError> {
        self.map(root, |entry| entry != metadata::KEY)
    }

    fn map(&mut self, node: &'a Node, wanted: impl Fn(&str) -> bool) -> Result<Value, SopsError> {
        let mut entries = Vec::new();
        for entry in node.entries().iter().filter(|entry| wanted(&entry.key)) {
            self.path.push(&entry.key);
            let outer = self.comments.len();
            self.comments.extend(entry.comments.iter().map(String::as_str));
            let value = self.node(&entry.value)?;
            self.comments.truncate(outer);
            self.path.pop();
            entries.extend(value.map(|value| (entry.key.clone(), value)));
        }
        Ok(Value::Map(entries))
    }

    /// `None` for a comment that stands in the place of a list item.
    fn node(&mut self, node: &'a Node) -> Result<Option<Value>, SopsError> {
        match &node.content {
            Content::Map { .. } => self.map(node, |_| true).map(Some),
            Content::List { items } => {
                let mut values = Vec::new();
                for item in items {
                    let outer = self.comments.len();
                    self.comments.extend(item.comments.iter().map(String::as_str));
                    values.extend(self.node(&item.value)?);
                    self.comments.truncate(outer);
                }
                Ok(Some(Value::List(values)))
            }
            Content::Scalar { text, resolved } => self.scalar(node.span.start, text, resolved),
        }
    }

    fn scalar(&mut self, at: usize, text: &str, resolved: &Resolved) -> Result<Option<Value>, SopsError> {
        let encrypted = self.document.metadata.rule.encrypts(&self.path, &self.comments);
        let (kind, plain) = match resolved {
            Resolved::Null => return Ok(Some(Value::null())),
            Resolved::Str(bytes) if !encrypted || bytes.is_empty() => (Kind::Str, bytes.clone().into()),
            Resolved::Other(kind, text) if !encrypted => (*kind, text.clone().into_bytes().into()),
            _ => self
                .key
                .decrypt(text, &path_data(&self.path))
                .map_err(|error| self.refused(at, text, &error))?,
        };
        if kind == Kind::Comment {
            return Ok(None);
        }
        if encrypted || !self.document.metadata.mac_only_encrypted {
            self.hash.update(&plain[..]);
        }
        let kind = if kind == Kind::Str && std::str::from_utf8(&plain).is_err() { Kind::Bytes } else { kind };
        Ok(Some(Value::Scalar(kind, plain)))
    }

    fn refused(&self, at: usize, text: &str, error: &CipherError) -> SopsError {
        let key = self.path.join(".");
        match error {
            CipherError::Refused => {
                SopsError::MacMismatch { file: self.document.file.clone(), key: Some(key) }
            }
            CipherError::Malformed(what) => {
                self.document.malformed(at, format!("the value of {key} has {what}"))
            }
            CipherError::NotEncrypted if looks_encrypted(text) => {
                self.document.malformed(at, format!("the value of {key} is cut off or damaged"))
            }
            CipherError::NotEncrypted => self.document.malformed(
                at,
                format!("the value of {key} should be encrypted and is plain; write it with `sops edit`"),
            ),
        }
    }
}
