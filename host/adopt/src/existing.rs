//! What the repository describes already: manifests of the composition, and those that lie in the cluster's folders
//! without being listed, such as those of an earlier adopt.

use proxops_model::ResourceId;
use proxops_model::kind::{Identity, KindSet, Manifest, Pairs, Placement, Target};
use proxops_repo::{Cluster, Repository};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Deepest folder below a cluster's folder that is looked into.
const DEPTH: usize = 8;

/// One manifest of the repository.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub id: ResourceId,
    /// Relative to the repository's root.
    pub file: String,
    /// The file's text, where it holds nothing else and belongs to this cluster alone: it may be written again.
    pub replaceable: Option<Arc<[u8]>>,
    pub attributes: Pairs,
    pub placements: Vec<Placement>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Existing {
    pub guests: BTreeMap<u32, Known>,
    /// By content, storage and name of the file.
    pub files: BTreeMap<(String, String, String), Known>,
    /// Names by kind.
    pub names: BTreeMap<String, BTreeSet<String>>,
    /// Files of the composition.
    pub listed: BTreeSet<String>,
}

/// Texts of files, by path.
pub(crate) type Texts = BTreeMap<String, Arc<[u8]>>;

/// The files of the composition that hold one manifest of this cluster alone, as they are now: what changes from here
/// to the write is somebody else's.
pub(crate) fn replaceable(repository: &Repository, cluster: &Cluster) -> Texts {
    let mut documents: BTreeMap<&str, usize> = BTreeMap::new();
    for doc in &cluster.manifests {
        *documents.entry(&doc.file).or_default() += 1;
    }
    let own = |file: &str| file.split('/').any(|part| part == cluster.name) && !file.contains("/base/");
    let alone = documents.into_iter().filter(|(file, count)| *count == 1 && own(file));
    alone.filter_map(|(file, _)| Some((file.to_owned(), read(repository, file)?.into()))).collect()
}

impl Existing {
    /// `texts` are those of [`replaceable`].
    pub fn find(repository: &Repository, cluster: &Cluster, kinds: &dyn KindSet, texts: &Texts) -> Self {
        let mut existing = Self::default();
        for doc in &cluster.manifests {
            existing.listed.insert(doc.file.clone());
            let text = texts.get(&doc.file).cloned();
            existing.add(kinds, doc.id.clone(), &doc.to_kind(), &doc.file, text);
        }
        for kind in kinds.all() {
            let folder = format!("{}/{}", kind.info().root, cluster.name);
            let mut files = Vec::new();
            collect(&repository.root, &folder, DEPTH, &mut files);
            files.retain(|file| !existing.listed.contains(file));
            for file in files {
                let bytes = read(repository, &file).unwrap_or_default();
                let stream = proxops_repo::yaml::parse(&bytes);
                let alone = stream.documents.iter().filter(|d| !d.value.is_null()).count() == 1;
                let text: Option<Arc<[u8]>> = alone.then(|| bytes.into());
                for document in &stream.documents {
                    if let Some((id, manifest)) = manifest(&document.value) {
                        existing.add(kinds, id, &manifest, &file, text.clone());
                    }
                }
            }
        }
        existing
    }

    fn add(
        &mut self,
        kinds: &dyn KindSet,
        id: ResourceId,
        manifest: &Manifest,
        file: &str,
        replaceable: Option<Arc<[u8]>>,
    ) {
        self.names.entry(id.kind.clone()).or_default().insert(id.name.clone());
        let Some(kind) = kinds.get(&id.kind) else { return };
        let Some(validated) = kind.validate(manifest).ok().and_then(|v| v.validated) else { return };
        let mut known = Known {
            id,
            file: file.to_owned(),
            replaceable,
            attributes: validated.attributes,
            placements: Vec::new(),
        };
        match (validated.identity, &kind.info().target) {
            (Identity::Guest(guest), _) => {
                self.guests.entry(guest.vmid).or_insert(known);
            }
            (Identity::Artifact(placements), Target::Artifact { content, .. }) => {
                known.placements.clone_from(&placements);
                for p in placements {
                    self.files
                        .entry((content.clone(), p.storage, p.filename))
                        .or_insert_with(|| known.clone());
                }
            }
            _ => {}
        }
    }
}

/// A file of the tree, if it is one that a manifest may be in.
fn read(repository: &Repository, file: &str) -> Option<Vec<u8>> {
    proxops_model::file::whole(&repository.root.join(file), proxops_repo::yaml::MAX_BYTES).ok()
}

/// YAML files below a folder, sorted. Links to folders are not followed: they could lead anywhere.
fn collect(root: &Path, folder: &str, depth: usize, out: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return };
    let mut names: Vec<(String, bool)> = entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.file_type().ok()?.is_dir())))
        .collect();
    names.sort();
    for (name, is_folder) in names {
        let path = format!("{folder}/{name}");
        if is_folder && depth > 0 {
            collect(root, &path, depth - 1, out);
        } else if name.ends_with(".yaml") || name.ends_with(".yml") {
            out.push(path);
        }
    }
}

/// A document's identity and what its kind gets to see, as far as both can be told.
fn manifest(value: &Value) -> Option<(ResourceId, Manifest)> {
    let text = |pointer: &str| value.pointer(pointer)?.as_str().map(str::to_owned);
    let id = ResourceId::new(text("/kind")?, text("/metadata/name")?);
    let spec = value.get("spec").filter(|spec| spec.is_object())?.to_string();
    let manifest = Manifest { name: id.name.clone(), spec, ..Manifest::default() };
    Some((id, manifest))
}
