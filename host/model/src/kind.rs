//! The kind contract (`wit/kind.wit`) in plain Rust, as the host sees it after its checks.
//!
//! Field by field the same as the WIT package, which documents each item; here only what differs.
//! `ext` and `other` are gone: the checker refuses what 1.0 does not define.

// Each item is documented once, in wit/kind.wit.
#![allow(missing_docs)]

use crate::Severity;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Ordered key and value texts.
pub type Pairs = Vec<(String, String)>;

/// A diagnostic of a kind: a pointer into the manifest, no file yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindDiagnostic {
    pub severity: Severity,
    pub code: String,
    pub at: String,
    pub message: String,
    pub help: Option<String>,
}

/// A manifest without its envelope. `spec` is JSON text with sorted keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Manifest {
    pub name: String,
    pub labels: Pairs,
    pub annotations: Pairs,
    pub spec: String,
}

/// `qemu` or `lxc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestType {
    Qemu,
    Lxc,
}

impl GuestType {
    /// The path element in PVE's API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Lxc => "lxc",
        }
    }
    /// PVE's command line tool for it.
    pub fn tool(self) -> &'static str {
        match self {
            Self::Qemu => "qm",
            Self::Lxc => "pct",
        }
    }

    /// PVE's word in messages.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Qemu => "VM",
            Self::Lxc => "CT",
        }
    }
    /// The configuration key that holds the guest's name.
    pub fn name_key(self) -> &'static str {
        match self {
            Self::Qemu => "name",
            Self::Lxc => "hostname",
        }
    }
}

impl std::fmt::Display for GuestType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Verb of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Operation {
    pub name: String,
    pub method: Method,
    pub path: String,
    pub id_param: Option<String>,
    pub digest: bool,
    pub part: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ownership {
    None,
    Tags(String),
    Marker { field: String, in_list: bool },
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ObjectTarget {
    pub list: Operation,
    pub read: Operation,
    pub id_field: String,
    pub writes: Vec<Operation>,
    pub ownership: Ownership,
}

impl ObjectTarget {
    /// Everything that it may ask for.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        [&self.list, &self.read].into_iter().chain(&self.writes)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    Guest { guest_type: GuestType, template: bool },
    Artifact { content: String, extensions: Vec<String> },
    Object(Box<ObjectTarget>),
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct KindInfo {
    pub kind: String,
    pub version: String,
    pub api_versions: Vec<String>,
    pub root: String,
    pub summary: String,
    pub target: Target,
    /// JSON text.
    pub schema: String,
    /// JSON texts.
    pub examples: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    pub to: crate::ResourceId,
    pub at: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestId {
    pub node: String,
    pub vmid: u32,
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Placement {
    pub node: String,
    pub storage: String,
    pub filename: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct ObjectId {
    pub id: String,
    pub vars: Pairs,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    Guest(GuestId),
    Artifact(Vec<Placement>),
    Object(ObjectId),
}

/// The wanted power state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    Running,
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretClass {
    Password,
    PublicKey,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretUse {
    pub name: String,
    pub class: SecretClass,
    pub at: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageUse {
    pub storage: String,
    pub node: Option<String>,
    pub content: String,
    pub at: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    pub at: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validated {
    pub identity: Identity,
    pub power: Option<Power>,
    pub references: Vec<Reference>,
    pub secrets: Vec<SecretUse>,
    pub storages: Vec<StorageUse>,
    pub attributes: Pairs,
    pub incomplete: Vec<Hole>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validation {
    pub validated: Option<Validated>,
    pub diagnostics: Vec<KindDiagnostic>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resolved {
    pub to: crate::ResourceId,
    pub attributes: Pairs,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct StorageInfo {
    pub name: String,
    pub storage_type: String,
    pub shared: bool,
    pub content: Vec<String>,
    pub nodes: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TagStyle {
    pub case_sensitive: bool,
    pub keep_order: bool,
}

/// What the host knows when it asks. The same for all resources of a cluster but for `references`
/// and `public_keys`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Context {
    pub cluster: String,
    pub pve_version: String,
    pub owner_tag: String,
    pub root: bool,
    pub tag_style: TagStyle,
    pub storages: Vec<StorageInfo>,
    pub references: Vec<Resolved>,
    pub public_keys: Pairs,
}

/// A value of PVE's report; booleans arrive as "1" and "0".
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LiveValue {
    Text(String),
    /// JSON text, for values that are not scalars.
    Json(String),
}

impl LiveValue {
    /// From PVE's JSON: scalars become text (true 1, false 0; a whole number never has a fraction or
    /// an exponent), everything else stays JSON.
    pub fn from_json(value: &serde_json::Value) -> Self {
        match crate::text::scalar(value) {
            Some(text) => Self::Text(text),
            None => Self::Json(value.to_string()),
        }
    }
    /// The text of a scalar.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Json(_) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PendingValue {
    pub key: String,
    pub running: Option<String>,
    pub configured: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LivePower {
    Running,
    Stopped,
    Paused,
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LiveGuest {
    pub node: String,
    pub vmid: u32,
    pub name: Option<String>,
    pub power: LivePower,
    pub template: bool,
    pub lock: Option<String>,
    /// Sorted by key.
    pub values: BTreeMap<String, LiveValue>,
    pub secrets_present: Vec<String>,
    /// Keys that PVE hides from this credential.
    pub hidden: Vec<String>,
    pub pending: Vec<PendingValue>,
    pub fresh_clone_of: Option<crate::ResourceId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Presence {
    Present,
    Absent,
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlacementState {
    pub at: Placement,
    pub presence: Presence,
    pub size: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LiveObject {
    pub id: ObjectId,
    pub values: BTreeMap<String, LiveValue>,
    pub row: BTreeMap<String, LiveValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Live {
    /// Shared with what was read.
    Guest(Arc<LiveGuest>),
    Artifact(Vec<PlacementState>),
    Object(LiveObject),
}

/// `Secret` names an entry of the cluster's secrets document.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParamValue {
    Text(String),
    Many(Vec<String>),
    Secret(String),
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Param {
    pub key: String,
    pub value: ParamValue,
    pub at: Option<String>,
}

/// What a kind wants done; list order is execution order.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KindStep {
    Create { params: Vec<Param> },
    Restore { params: Vec<Param> },
    Clone { source: crate::ResourceId, params: Vec<Param> },
    Configure { set: Vec<Param>, unset: Vec<String>, revert: Vec<String> },
    Resize { disk: String, bytes: u64, at: String },
    RebuildCloudInit,
    MarkTemplate,
    Download { node: String, storage: String, filename: String, params: Vec<Param> },
    Call { operation: String, vars: Pairs, set: Vec<Param>, unset: Vec<String> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindAnomaly {
    pub severity: Severity,
    pub code: String,
    pub at: Option<String>,
    pub key: Option<String>,
    pub message: String,
    pub help: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Creation {
    pub steps: Vec<KindStep>,
    pub warnings: Vec<KindDiagnostic>,
    pub anomalies: Vec<KindAnomaly>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    pub at: String,
    pub key: String,
    pub before: Option<String>,
    pub after: Option<String>,
    pub sensitive: bool,
    pub needs_stop: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriftReport {
    pub changes: Vec<FieldChange>,
    pub steps: Vec<KindStep>,
    pub pending: Vec<FieldChange>,
    pub anomalies: Vec<KindAnomaly>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub key: String,
    pub value: Option<String>,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopted {
    pub labels: Pairs,
    pub annotations: Pairs,
    /// JSON text, keys in the order of the documentation.
    pub spec: String,
    pub gaps: Vec<Gap>,
    pub incomplete: Vec<Hole>,
    pub new_public_keys: Pairs,
    pub masked_secrets: u32,
}

/// A kind that misbehaved: it trapped, ran over a limit, or returned what the contract forbids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("kind {kind} ({origin}), {function}: {message}")]
pub struct KindFault {
    pub kind: String,
    /// "built-in" or the file.
    pub origin: String,
    /// The contract function.
    pub function: String,
    /// What happened, the limit or trap named.
    pub message: String,
}

/// Why a call gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The component is broken.
    Fault(KindFault),
    /// The kind says that the manifest can't be used that way.
    Diagnostics(Vec<KindDiagnostic>),
}

/// A kind, ready to be asked. Calls are pure and may come from several threads.
pub trait KindApi: Send + Sync {
    /// What the kind is.
    fn info(&self) -> &KindInfo;
    /// Offline check of one manifest.
    fn validate(&self, manifest: &Manifest) -> Result<Validation, KindFault>;
    /// Steps that make the object.
    fn create_params(&self, manifest: &Manifest, context: &Context) -> Result<Creation, Refusal>;
    /// Compare with what is there.
    fn drift(&self, manifest: &Manifest, live: &Live, context: &Context) -> Result<DriftReport, Refusal>;
    /// A manifest for what is there.
    fn adopt(&self, name: &str, live: &Live, context: &Context, secrets: bool) -> Result<Adopted, Refusal>;
}

/// The kinds of one run.
pub trait KindSet: Send + Sync {
    /// The kind of this name.
    fn get(&self, kind: &str) -> Option<&dyn KindApi>;
    /// All, sorted by name.
    fn all(&self) -> Vec<&dyn KindApi>;
}
