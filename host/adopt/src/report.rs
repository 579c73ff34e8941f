//! What came of a run (`proxops.adopt/v1`).

use serde::Serialize;

/// One run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The cluster's name.
    pub cluster: String,
    /// Nothing was written: `written` is what would be.
    #[serde(rename = "dry-run")]
    pub dry_run: bool,
    /// Manifest files, relative to the repository's root, sorted.
    pub written: Vec<String>,
    /// What manifests do not describe. It stays in PVE as it is.
    pub gaps: Vec<GapNote>,
    /// What a person must fill in before the object could be made anew.
    pub incomplete: Vec<HoleNote>,
    /// Objects without a new manifest, and why.
    pub skipped: Vec<Noted>,
    /// Objects that changed while they were read, and manifests that will not be clean, and why.
    pub noted: Vec<Noted>,
    /// Lines to add to `resources.yaml`, in its form.
    pub resources: Vec<String>,
    /// Names of public keys that were added to the secrets document.
    #[serde(rename = "new-keys")]
    pub new_keys: Vec<String>,
    /// Passwords that PVE masks; they stay as they are.
    #[serde(rename = "masked-secrets")]
    pub masked_secrets: u32,
    /// Something went wrong that is no property of the cluster: a kind is broken.
    #[serde(skip)]
    pub failed: bool,
}

/// A live key that a manifest does not describe.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GapNote {
    /// The manifest.
    pub file: String,
    /// PVE's key.
    pub key: String,
    /// Absent = not shown: it may be a secret.
    pub value: Option<String>,
    /// Why the manifest has no place for it.
    pub why: String,
}

/// Something that only a person knows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HoleNote {
    /// The manifest.
    pub file: String,
    /// RFC 6901 pointer of the field.
    pub field: String,
    /// PVE's key, if the field has one.
    pub key: Option<String>,
    /// What it is needed for.
    pub why: String,
}

/// One object and what is to be said about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Noted {
    /// Its kind.
    pub kind: String,
    /// Its name in PVE, or its manifest's; `*` = all of a storage.
    pub name: String,
    /// Where it is.
    pub node: Option<String>,
    /// Guests only.
    pub vmid: Option<u32>,
    /// The manifest that describes it, if one does.
    pub file: Option<String>,
    /// One sentence.
    pub why: String,
}
