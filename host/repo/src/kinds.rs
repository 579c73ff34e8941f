//! What this crate must know of the kinds: their names, folders and API versions.

use proxops_model::kind::{KindInfo, KindSet};
use std::collections::BTreeMap;

/// Kinds by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindTable {
    kinds: BTreeMap<String, KindEntry>,
}

/// One kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindEntry {
    /// Folder of its manifests below the repository's root.
    pub root: String,
    /// API versions that it reads.
    pub api_versions: Vec<String>,
}

impl KindTable {
    /// From what the kinds say about themselves.
    pub fn from_infos<'a>(infos: impl IntoIterator<Item = &'a KindInfo>) -> Self {
        let entry = |info: &KindInfo| KindEntry {
            root: info.root.trim_matches('/').to_owned(),
            api_versions: info.api_versions.clone(),
        };
        Self { kinds: infos.into_iter().map(|info| (info.kind.clone(), entry(info))).collect() }
    }

    /// Of all kinds of a run.
    pub fn from_set(set: &dyn KindSet) -> Self {
        Self::from_infos(set.all().into_iter().map(|kind| kind.info()))
    }

    /// From names and folders, with the first API version.
    pub fn from_roots<'a>(roots: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let entry = |root: &str| KindEntry {
            root: root.to_owned(),
            api_versions: vec![crate::API_VERSION.to_owned()],
        };
        Self { kinds: roots.into_iter().map(|(kind, root)| (kind.to_owned(), entry(root))).collect() }
    }

    /// The seven built-in kinds.
    pub fn builtin() -> Self {
        Self::from_roots([
            ("VM", "vm"),
            ("TemplateVM", "templatevm"),
            ("LXC", "lxc"),
            ("TemplateCT", "templatect"),
            ("ISO", "iso"),
            ("CTTemplate", "ctt"),
            ("DiskImage", "diskimage"),
        ])
    }

    /// One kind.
    pub fn get(&self, kind: &str) -> Option<&KindEntry> {
        self.kinds.get(kind)
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.kinds.keys().map(String::as_str)
    }

    /// All folders with their kinds.
    pub fn roots(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.kinds.iter().map(|(kind, entry)| (kind.as_str(), entry.root.as_str()))
    }
}
