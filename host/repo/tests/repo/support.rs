//! A tree in a temporary directory.

use proxops_model::Diagnostic;
use proxops_repo::{KindTable, LoadOptions, Repository};
use std::{collections::BTreeMap, fs, path::PathBuf};
use tempfile::TempDir;

pub struct Tree {
    dir: TempDir,
    pub env: BTreeMap<&'static str, String>,
}

pub const CONFIG: &str = "pve:\n  clusters:\n    lab:\n      base-url: https://pve.lan\n";

impl Tree {
    /// A directory with a `.git` folder that holds nothing.
    pub fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".git")).unwrap();
        Self { dir, env: BTreeMap::new() }
    }

    /// One cluster `lab` with an empty composition.
    pub fn lab() -> Self {
        Self::empty()
            .with("clusters/lab/config.yaml", CONFIG)
            .with("clusters/lab/resources.yaml", "resources: []\n")
    }

    /// Cluster `lab` that lists these files.
    pub fn listing(paths: &[&str]) -> Self {
        let lines: String = paths.iter().map(|path| format!("  - ../../{path}\n")).collect();
        Self::lab().with("clusters/lab/resources.yaml", &format!("resources:\n{lines}"))
    }

    pub fn with(self, path: &str, text: &str) -> Self {
        self.with_bytes(path, text.as_bytes())
    }

    pub fn with_bytes(self, path: &str, bytes: &[u8]) -> Self {
        let file = self.path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
        self
    }

    pub fn var(mut self, name: &'static str, value: &str) -> Self {
        self.env.insert(name, value.to_owned());
        self
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub fn load(&self) -> Repository {
        self.load_with(|_| {})
    }

    pub fn load_with(&self, change: impl FnOnce(&mut LoadOptions<'_>)) -> Repository {
        let env = |name: &str| self.env.get(name).cloned();
        let mut options = LoadOptions::new(self.dir.path(), &env);
        change(&mut options);
        Repository::load(&options, &KindTable::builtin()).unwrap()
    }

    /// Every diagnostic as `file:line:column code`.
    pub fn places(&self) -> Vec<String> {
        self.load().diagnostics.iter().map(place).collect()
    }
}

pub fn place(diagnostic: &Diagnostic) -> String {
    format!("{} {}", diagnostic.location, diagnostic.code)
}

/// A small manifest of a kind.
pub fn manifest(kind: &str, name: &str) -> String {
    format!("apiVersion: proxops/v1alpha1\nkind: {kind}\nmetadata:\n  name: {name}\nspec:\n  node: pve01\n")
}
