//! A decrypted document: looking values up by dot path.

use std::fmt;

use crate::cipher::DataKey;
use crate::document::Document;
use crate::error::SopsError;
use crate::secret::Secret;
use crate::value::{Kind, Value};

/// Where public SSH keys stand, by name.
pub const SSH_KEYS: &str = "cloud-init.ssh-keys";
/// Where passwords stand, by name.
pub const PASSWORDS: &str = "cloud-init.passwords";
/// Where the credentials of a cluster stand, by name.
pub const CREDENTIALS: &str = "secrets";

/// A document whose MAC was right. All plaintext in it is wiped from memory when it is dropped.
pub struct Decrypted {
    pub(crate) file: String,
    /// One tree per YAML document, without the `sops:` block.
    pub(crate) values: Vec<Value>,
    /// What writing needs; `None` if the document was decrypted by the `sops` program.
    pub(crate) sealed: Option<Sealed>,
}

/// The encrypted side of a decrypted document.
pub(crate) struct Sealed {
    pub(crate) document: Document,
    pub(crate) key: DataKey,
    /// Whether the text differs from what was read, so that its MAC is stale.
    pub(crate) changed: bool,
}

impl Decrypted {
    pub(crate) fn in_process(document: Document, key: DataKey, values: Vec<Value>) -> Self {
        let file = document.file.clone();
        Decrypted { file, values, sealed: Some(Sealed { document, key, changed: false }) }
    }

    pub(crate) fn through_program(file: String, value: Value) -> Self {
        Decrypted { file, values: vec![value], sealed: None }
    }

    /// The name of the file, as used in errors.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The decrypted trees, one per YAML document.
    pub fn documents(&self) -> &[Value] {
        &self.values
    }

    /// The value at a dot path such as `cloud-init.passwords.ops`. A key may itself contain dots, and a
    /// number counts into a list. Numbers and truth values come as text.
    ///
    /// # Errors
    /// [`SopsError::MissingKey`] with the nearest path, [`SopsError::EmptyKey`], [`SopsError::WrongShape`].
    pub fn get(&self, path: &str) -> Result<Secret, SopsError> {
        let (file, key) = (self.file.clone(), path.to_owned());
        let Some(value) = self.find(path) else {
            return Err(SopsError::MissingKey { file, key, nearest: self.nearest(path) });
        };
        match value {
            Value::Scalar(_, bytes) if bytes.is_empty() => Err(SopsError::EmptyKey { file, key }),
            Value::Scalar(Kind::Bool, bytes) => {
                Ok(Secret::new(if bytes[..] == *b"True" { "true" } else { "false" }))
            }
            Value::Scalar(_, bytes) => std::str::from_utf8(bytes)
                .map(Secret::new)
                .map_err(|_| SopsError::WrongShape { file, key, expected: "text" }),
            _ => Err(SopsError::WrongShape { file, key, expected: "a single value" }),
        }
    }

    /// A credential of the flat `secrets:` map.
    ///
    /// # Errors
    /// As [`Decrypted::get`]; the errors name `secrets.<name>`.
    pub fn credential(&self, name: &str) -> Result<Secret, SopsError> {
        self.get(&format!("{CREDENTIALS}.{name}"))
    }

    /// The keys right below a dot path, in file order; empty if it is no map.
    pub fn names(&self, prefix: &str) -> Vec<String> {
        match self.find(prefix) {
            Some(Value::Map(entries)) => entries.iter().map(|(key, _)| key.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// All public SSH keys as name and key, in file order. Public keys are no secrets.
    pub fn ssh_keys(&self) -> Vec<(String, String)> {
        let Some(Value::Map(entries)) = self.find(SSH_KEYS) else { return Vec::new() };
        entries
            .iter()
            .filter_map(|(name, value)| match value {
                Value::Scalar(_, bytes) => {
                    let key = std::str::from_utf8(bytes).ok()?.trim();
                    (!key.is_empty()).then(|| (name.clone(), key.to_owned()))
                }
                _ => None,
            })
            .collect()
    }

    /// The same keys by their full names, as manifests write them: `cloud-init.ssh-keys.<name>`.
    pub fn public_keys(&self) -> Vec<(String, String)> {
        self.ssh_keys().into_iter().map(|(name, key)| (format!("{SSH_KEYS}.{name}"), key)).collect()
    }

    fn find(&self, path: &str) -> Option<&Value> {
        self.values.iter().find_map(|value| descend(value, path))
    }

    /// The most similar path of the document, if one is similar enough to be a slip.
    fn nearest(&self, path: &str) -> Option<String> {
        let mut paths = Vec::new();
        for value in &self.values {
            leaves(value, &mut String::new(), &mut paths);
        }
        paths
            .into_iter()
            .map(|candidate| (strsim::damerau_levenshtein(path, &candidate), candidate))
            .filter(|(distance, _)| *distance <= (path.chars().count() / 4).clamp(1, 4))
            .min()
            .map(|(_, candidate)| candidate)
    }
}

/// Shows which keys there are, never a value.
impl fmt::Debug for Decrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decrypted")
            .field("file", &self.file)
            .field("values", &self.values)
            .finish_non_exhaustive()
    }
}

fn descend<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    match value {
        Value::Map(entries) => {
            entries.iter().find_map(|(key, value)| match path.strip_prefix(key.as_str())? {
                "" => Some(value),
                rest => descend(value, rest.strip_prefix('.')?),
            })
        }
        Value::List(items) => {
            let (index, rest) =
                path.split_once('.').map_or((path, None), |(index, rest)| (index, Some(rest)));
            let item = items.get(index.parse::<usize>().ok()?)?;
            rest.map_or(Some(item), |rest| descend(item, rest))
        }
        Value::Scalar(..) => None,
    }
}

fn leaves(value: &Value, prefix: &mut String, out: &mut Vec<String>) {
    let Value::Map(entries) = value else { return };
    for (key, value) in entries {
        let length = prefix.len();
        if length > 0 {
            prefix.push('.');
        }
        prefix.push_str(key);
        match value {
            Value::Map(_) => leaves(value, prefix, out),
            _ => out.push(prefix.clone()),
        }
        prefix.truncate(length);
    }
}
