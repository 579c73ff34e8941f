//! The `spec` of an artifact.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A file on a storage: downloaded where it is absent, never changed, never deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FileSpec {
    /// The node that needs the file. Give either `node` or `nodes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The nodes that need the file. On a storage that they share it is downloaded once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<String>>,
    /// The storage; it must carry the kind's content type.
    #[schemars(extend("x-pve-key" = "storage"))]
    pub storage: String,
    /// Name of the file on the storage. The extension must fit the kind, and only letters, digits and
    /// `_.-` survive in PVE.
    #[schemars(extend("x-pve-key" = "filename"))]
    pub filename: String,
    /// Where to download it from: https, or http with a checksum. Needed only while the file is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false, "x-pve-key" = "url"))]
    pub url: Option<String>,
    /// What the downloaded file must hash to; PVE refuses the file otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<Checksum>,
    /// How the download is compressed; PVE unpacks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false, "x-pve-key" = "compression"))]
    pub compression: Option<Compression>,
    /// Check the TLS certificate of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false, "x-pve-key" = "verify-certificates", "default" = true))]
    pub verify_certificates: Option<bool>,
}

/// A hash of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Checksum {
    /// The hash function.
    #[schemars(extend("x-compared" = false, "x-pve-key" = "checksum-algorithm"))]
    pub algorithm: Algorithm,
    /// The hash in hexadecimal digits.
    #[schemars(extend("x-compared" = false, "x-pve-key" = "checksum"))]
    pub value: String,
}

/// Hash functions that PVE knows (fact S4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[allow(missing_docs)]
pub enum Algorithm {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    /// PVE's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha224 => "sha224",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    /// Length of a hash in hexadecimal digits.
    pub fn digits(self) -> usize {
        match self {
            Self::Md5 => 32,
            Self::Sha1 => 40,
            Self::Sha224 => 56,
            Self::Sha256 => 64,
            Self::Sha384 => 96,
            Self::Sha512 => 128,
        }
    }
}

/// Compressions that PVE unpacks (fact S4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[allow(missing_docs)]
pub enum Compression {
    Gz,
    Lzo,
    Zst,
    Bz2,
}

impl Compression {
    /// PVE's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gz => "gz",
            Self::Lzo => "lzo",
            Self::Zst => "zst",
            Self::Bz2 => "bz2",
        }
    }
}

/// A spec without `compression`, which PVE takes for ISO images only (fact S4).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoredAsIs(
    /// The fields.
    pub FileSpec,
);

impl JsonSchema for StoredAsIs {
    fn schema_name() -> Cow<'static, str> {
        "FileSpec".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = FileSpec::json_schema(generator);
        if let Some(properties) = schema.get_mut("properties").and_then(|p| p.as_object_mut()) {
            properties.remove("compression");
        }
        schema
    }
}

impl AsRef<FileSpec> for FileSpec {
    fn as_ref(&self) -> &FileSpec {
        self
    }
}

impl AsRef<FileSpec> for StoredAsIs {
    fn as_ref(&self) -> &FileSpec {
        &self.0
    }
}

impl From<FileSpec> for StoredAsIs {
    fn from(spec: FileSpec) -> Self {
        Self(spec)
    }
}
