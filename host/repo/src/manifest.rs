//! Manifests: the envelope that all kinds share.

use crate::{
    kinds::KindTable,
    reader::{Reader, type_name},
    text::{is_resource_name, suggest},
    yaml::{Document, Positions, child},
};
use proxops_model::{Diagnostic, Location, ResourceId, kind::Manifest};
use serde_json::Value;
use std::collections::BTreeMap;

/// One manifest whose envelope is right.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestDoc {
    /// Kind and name.
    pub id: ResourceId,
    /// `apiVersion`
    pub api_version: String,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`
    pub annotations: BTreeMap<String, String>,
    /// What the annotations of proxops say.
    pub policy: Policy,
    /// `spec`, a mapping.
    pub spec: Value,
    /// The same as JSON text with sorted keys.
    pub spec_json: String,
    /// Relative to the repository's root, forward slashes.
    pub file: String,
    /// Place in a file with several documents, from 0. Empty documents count.
    pub doc_index: usize,
    /// Of the whole document: pointers begin at its root (`/spec/node`).
    pub positions: Positions,
}

/// The annotations `proxops/...`, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// `proxops/reconcile`
    pub reconcile: ReconcileMode,
    /// `proxops/restart: allow`
    pub restart: bool,
    /// `proxops/ignore`: slots whose live-only devices are no anomaly.
    pub ignore: Vec<String>,
    /// `proxops/depends-on`
    pub depends_on: Vec<ResourceId>,
}

/// `proxops/reconcile`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReconcileMode {
    /// Converge.
    #[default]
    Reconcile,
    /// Show drift, never write.
    Observe,
    /// Create, never update.
    EnsureExists,
    /// Ignored, and protected from prune.
    Suspended,
}

impl ReconcileMode {
    /// All words with their modes.
    pub const WORDS: &[(&str, Self)] = &[
        ("reconcile", Self::Reconcile),
        ("observe", Self::Observe),
        ("ensure-exists", Self::EnsureExists),
        ("suspended", Self::Suspended),
    ];
}

/// Annotation: more prerequisites, `Kind:name,...`.
pub const DEPENDS_ON: &str = "proxops/depends-on";
/// Annotation: the mode.
pub const RECONCILE: &str = "proxops/reconcile";
/// Annotation: `allow` lets a running guest be restarted for a change.
pub const RESTART: &str = "proxops/restart";
/// Annotation: slots that are left alone.
pub const IGNORE: &str = "proxops/ignore";

impl ManifestDoc {
    /// Where a field stands: at its key, or at the nearest part that exists.
    pub fn locate(&self, pointer: &str) -> Location {
        let at = self.positions.locate(pointer);
        Location { file: self.file.clone(), line: at.line, column: at.column }
    }

    /// Where one of its annotations stands.
    pub fn locate_annotation(&self, annotation: &str) -> Location {
        self.locate(&child("/metadata/annotations", annotation))
    }

    /// What the kind gets to see.
    pub fn to_kind(&self) -> Manifest {
        let pairs =
            |map: &BTreeMap<String, String>| map.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        Manifest {
            name: self.id.name.clone(),
            labels: pairs(&self.labels),
            annotations: pairs(&self.annotations),
            spec: self.spec_json.clone(),
        }
    }
}

/// Checks the envelope of one document. `folder_kind` is the kind whose folder the file lies in.
///
/// With mistakes that leave no doubt about the kind there is a manifest all the same, so that the kind
/// can report what is wrong with the spec in the same run.
pub(crate) fn read(
    document: Document,
    file: &str,
    doc_index: usize,
    folder_kind: &str,
    kinds: &KindTable,
) -> (Option<ManifestDoc>, Vec<Diagnostic>) {
    let mut r = Reader::new(&document, file);
    if !document.value.is_object() {
        let message = format!("a manifest is a mapping, not {}", type_name(&document.value));
        r.error("", "wrong-type", message, "it begins with apiVersion, kind, metadata and spec");
        return (None, r.found);
    }
    r.only("", &["apiVersion", "kind", "metadata", "spec"]);
    let kind = kind(&mut r, folder_kind, kinds);
    let api_version = api_version(&mut r, kind.as_deref(), kinds);
    let name = metadata(&mut r);
    let labels = text_map(&mut r, "/metadata/labels");
    let annotations = text_map(&mut r, "/metadata/annotations");
    let policy = policy(&mut r, &annotations, kinds);
    let has_spec = match document.value.get("spec") {
        Some(Value::Object(_)) => true,
        None => {
            r.error(
                "",
                "missing-field",
                "the manifest has no `spec`",
                "`proxops explain KIND` shows its fields",
            );
            false
        }
        Some(other) => {
            r.error(
                "/spec",
                "wrong-type",
                format!("`spec` must be a mapping, not {}", type_name(other)),
                "`proxops explain KIND` shows its fields",
            );
            false
        }
    };
    let found = std::mem::take(&mut r.found);
    let (Some(kind), Some(name), Some(api_version), true) = (kind, name, api_version, has_spec) else {
        return (None, found);
    };
    let Document { mut value, positions } = document;
    let spec = value.get_mut("spec").map(Value::take).unwrap_or_default();
    let manifest = ManifestDoc {
        id: ResourceId { kind, name },
        api_version,
        labels,
        annotations,
        policy,
        spec_json: spec.to_string(),
        spec,
        file: file.to_owned(),
        doc_index,
        positions,
    };
    (Some(manifest), found)
}

/// A text that must be there.
fn required<'a>(r: &mut Reader<'a>, pointer: &str, help: &str) -> Option<&'a str> {
    if r.get(pointer).is_none() {
        let (parent, name) = pointer.rsplit_once('/').unwrap_or(("", pointer));
        let whole = parent.strip_prefix('/').unwrap_or("manifest");
        let at = if r.document.value.pointer(pointer).is_some() { pointer } else { parent };
        r.error(at, "missing-field", format!("the {whole} has no `{name}`"), help);
        return None;
    }
    r.text(pointer)
}

fn kind(r: &mut Reader<'_>, folder_kind: &str, kinds: &KindTable) -> Option<String> {
    let kind = required(r, "/kind", &format!("in this folder: kind: {folder_kind}"))?;
    let Some(entry) = kinds.get(kind) else {
        r.error("/kind", "unknown-kind", format!("unknown kind `{kind}`"), suggest(kind, kinds.names()));
        return None;
    };
    if kind != folder_kind {
        let folder = kinds.get(folder_kind).map_or("", |entry| entry.root.as_str());
        let message = format!("a manifest of kind `{kind}` does not belong into `{folder}/`");
        r.error("/kind", "wrong-folder", message, format!("move it to {}/", entry.root));
        return None;
    }
    Some(kind.to_owned())
}

fn api_version(r: &mut Reader<'_>, kind: Option<&str>, kinds: &KindTable) -> Option<String> {
    let version = required(r, "/apiVersion", &format!("apiVersion: {}", crate::API_VERSION))?;
    let known = match kind.and_then(|kind| kinds.get(kind)) {
        Some(entry) if !entry.api_versions.is_empty() => entry.api_versions.clone(),
        _ => vec![crate::API_VERSION.to_owned()],
    };
    if !known.iter().any(|v| v == version) {
        let help = suggest(version, known.iter().map(String::as_str));
        r.error("/apiVersion", "unknown-version", format!("unknown apiVersion `{version}`"), help);
        return None;
    }
    Some(version.to_owned())
}

fn metadata(r: &mut Reader<'_>) -> Option<String> {
    r.only("/metadata", &["name", "labels", "annotations"]);
    if matches!(r.get("/metadata"), Some(other) if !other.is_object()) {
        return None;
    }
    const HELP: &str = "lower-case letters, digits and hyphens, at most 63, such as web-01";
    let name = required(r, "/metadata/name", HELP)?;
    if !is_resource_name(name) {
        r.error("/metadata/name", "invalid-name", format!("`{name}` cannot be a resource's name"), HELP);
    }
    Some(name.to_owned())
}

fn text_map(r: &mut Reader<'_>, pointer: &str) -> BTreeMap<String, String> {
    let mut map = BTreeMap::new();
    for key in r.keys(pointer) {
        let at = child(pointer, key);
        match r.document.value.pointer(&at) {
            Some(Value::String(text)) => {
                map.insert(key.to_owned(), text.clone());
            }
            Some(other) => {
                let message = format!("`{key}` must be text, not {}", type_name(other));
                r.error(&at, "wrong-type", message, "put it in quotes");
            }
            None => {}
        }
    }
    map
}

fn policy(r: &mut Reader<'_>, annotations: &BTreeMap<String, String>, kinds: &KindTable) -> Policy {
    let mut policy = Policy::default();
    for (key, text) in annotations {
        let at = child("/metadata/annotations", key);
        match key.as_str() {
            DEPENDS_ON => policy.depends_on = depends_on(r, &at, text, kinds),
            RECONCILE => policy.reconcile = r.choice(&at, ReconcileMode::WORDS).unwrap_or_default(),
            RESTART => policy.restart = r.choice(&at, &[("allow", true)]).unwrap_or_default(),
            IGNORE => policy.ignore = slots(r, &at, text),
            _ if key.starts_with("proxops/") => {
                let help = suggest(key, [DEPENDS_ON, RECONCILE, RESTART, IGNORE]);
                r.error(&at, "unknown-annotation", format!("unknown annotation `{key}`"), help);
            }
            _ => {}
        }
    }
    policy
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn depends_on(r: &mut Reader<'_>, at: &str, text: &str, kinds: &KindTable) -> Vec<ResourceId> {
    let mut found: Vec<ResourceId> = Vec::new();
    for item in items(text) {
        let Some((kind, name)) = item.split_once(':').map(|(kind, name)| (kind.trim(), name.trim())) else {
            let message = format!("`{item}` is not of the form Kind:name");
            r.error(at, "invalid-reference", message, "such as \"ISO:debian,VM:db-01\"");
            continue;
        };
        if kinds.get(kind).is_none() {
            r.error(at, "unknown-kind", format!("unknown kind `{kind}`"), suggest(kind, kinds.names()));
        } else if !is_resource_name(name) {
            r.error(
                at,
                "invalid-reference",
                format!("`{name}` cannot be a resource's name"),
                "a-z, 0-9 and `-`, at most 63 characters",
            );
        } else if !found.iter().any(|id| id.kind == kind && id.name == name) {
            found.push(ResourceId::new(kind, name));
        }
    }
    found
}

fn slots(r: &mut Reader<'_>, at: &str, text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for item in items(text) {
        let letters = item.trim_end_matches(|c: char| c.is_ascii_digit());
        if letters.is_empty() || !letters.chars().all(|c| c.is_ascii_lowercase()) {
            let message = format!("`{item}` is not a slot");
            r.error(at, "invalid-value", message, "slots as PVE names them: \"scsi3,hostpci0\"");
        } else if !found.iter().any(|slot| slot == item) {
            found.push(item.to_owned());
        }
    }
    found
}
