//! The whole tree: every cluster with its manifests, and every mistake.

use crate::{
    cluster::{self, ClusterConfig},
    composition::{self, Listed},
    credentials::CredentialSource,
    files::{self, folder, repo_path, whole_file},
    git::{self, GitState},
    kinds::KindTable,
    manifest::{self, ManifestDoc},
    options::{LoadOptions, RepoError, discover_root},
    reader::{Reader, diagnose},
    settings::Settings,
    source::{Snapshot, Source},
    submodules,
    yaml::{Document, Stream},
};
use proxops_model::Diagnostic;
use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
};

/// A tree with its process settings, before the kinds are known.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Absolute, symlinks resolved.
    pub root: PathBuf,
    /// Process settings; what could not be read has its default.
    pub settings: Settings,
    /// What is wrong with the process settings.
    pub diagnostics: Vec<Diagnostic>,
    /// `--config` named one cluster's file: only that cluster is loaded.
    cluster_file: Option<PathBuf>,
    /// The tree was named by `--git-path`: it is used as it is, whatever `git.url` says.
    pinned: bool,
    /// There is no tree, only a process file that may name a source of one.
    treeless: bool,
    /// The commit, if the tree was fetched.
    fetched: Option<String>,
}

/// Everything a cycle needs from the tree.
#[derive(Debug, Clone)]
pub struct Repository {
    /// Absolute, symlinks resolved.
    pub root: PathBuf,
    /// Process settings.
    pub settings: Settings,
    /// In the order of their names.
    pub clusters: Vec<Cluster>,
    /// Sorted by place. `cluster` says which one an error stops; `None` = all.
    pub diagnostics: Vec<Diagnostic>,
    /// `HEAD`, 40 hex digits.
    pub commit: Option<String>,
    /// A tracked file differs from `HEAD`, or a file that was read is not tracked.
    pub dirty: bool,
}

/// One cluster of the tree.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// Its folder's name.
    pub name: String,
    /// `None` when the file is missing or wrong.
    pub config: Option<ClusterConfig>,
    /// In the order of the composition. With `ok` false some may be missing.
    pub manifests: Vec<Arc<ManifestDoc>>,
    /// No error stops this cluster.
    pub ok: bool,
}

impl Workspace {
    /// Finds the tree and reads the process settings.
    ///
    /// # Errors
    /// There is no tree. Mistakes in files are diagnostics.
    pub fn open(options: &LoadOptions<'_>) -> Result<Self, RepoError> {
        let error = match discover_root(options) {
            Ok(root) => {
                let pinned = options.pinned().is_some();
                return Ok(Self { pinned, ..Self::open_at(root, options) });
            }
            Err(error) => error,
        };
        // A process file that says where the tree comes from needs none around it.
        let folder = options.config_file().and_then(|file| file.parent().map(Path::to_path_buf));
        match (&error, folder) {
            (RepoError::NotFound { .. }, Some(folder)) => {
                let workspace = Self { treeless: true, ..Self::open_at(folder, options) };
                // What is wrong with the file may be why it names no source.
                let broken = workspace.diagnostics.iter().any(Diagnostic::is_error);
                if workspace.settings.git.url.is_some() || broken { Ok(workspace) } else { Err(error) }
            }
            _ => Err(error),
        }
    }

    /// The source that `git.url` names; `None` = the tree is used as it is. The token is the shared one.
    pub fn source(&self) -> Option<Source> {
        let git = &self.settings.git;
        let token = match &self.settings.credentials.git_token {
            Some(CredentialSource::Value { value, .. }) => Some(value.clone()),
            _ => None,
        };
        let url = git.url.clone().filter(|_| !self.pinned)?;
        Some(Source { url, revision: git.branch.clone(), ca_file: git.ca_file.clone(), token })
    }

    /// Whether there is a tree here to look at, fetched or not.
    pub fn has_tree(&self) -> bool {
        !self.treeless
    }

    /// The workspace of a fetched tree. Its own `proxops.yaml` counts unless `--config` names another process file,
    /// but for `git` and `data-dir`, which were needed to fetch it.
    #[must_use]
    pub fn fetched(&self, snapshot: &Snapshot, options: &LoadOptions<'_>) -> Self {
        let mut workspace = Self::open_at(snapshot.root.clone(), options);
        workspace.settings.git = self.settings.git.clone();
        workspace.settings.data_dir = self.settings.data_dir.clone();
        workspace.settings.credentials.git_token = self.settings.credentials.git_token.clone();
        workspace.fetched = Some(snapshot.commit.clone());
        workspace
    }

    /// The clusters' configurations alone, as far as they can be read: what is needed to fetch a tree.
    pub fn cluster_configs(&self, options: &LoadOptions<'_>) -> Vec<ClusterConfig> {
        if self.treeless {
            return Vec::new();
        }
        let kinds = KindTable::default();
        let mut loader = Loader { kinds: &kinds, options, diagnostics: Vec::new(), read: Vec::new() };
        let names = match &self.cluster_file {
            Some(path) => vec![(path.clone(), None)],
            None => {
                let names = loader.cluster_names(&self.root).into_iter();
                names.map(|n| (self.root.join("clusters").join(&n).join("config.yaml"), Some(n))).collect()
            }
        };
        let configs = names.into_iter().filter(|(path, _)| path.exists());
        configs
            .filter_map(|(path, name)| loader.config(&self.root, &path, name.as_deref(), &self.settings))
            .collect()
    }

    /// The same for a tree that is known already, such as a clone.
    pub fn open_at(root: PathBuf, options: &LoadOptions<'_>) -> Self {
        let root = root.canonicalize().unwrap_or(root);
        let mut diagnostics = Vec::new();
        let mut process_file = root.join("proxops.yaml");
        let mut cluster_file = None;
        let mut document = None;
        match options.config_file() {
            Some(path) => {
                let name = display(&root, &path);
                let given = one_document(files::read(&path), &name, &mut diagnostics);
                if given.as_ref().is_some_and(|d| d.value.pointer("/pve/clusters").is_some()) {
                    cluster_file = Some(path);
                } else {
                    process_file = path;
                    document = given;
                }
            }
            None => misnamed(&root, "", "proxops.yaml", &mut diagnostics),
        }
        let name = display(&root, &process_file);
        if document.is_none() && diagnostics.is_empty() && process_file.symlink_metadata().is_ok() {
            document = one_document(files::read_inside(&root, &process_file), &name, &mut diagnostics);
        }
        let mut settings = match &document {
            Some(document) => {
                let mut reader = Reader::new(document, &name);
                let dir = process_file.parent().unwrap_or(&root);
                let settings = Settings::read(&mut reader, dir, options);
                diagnostics.append(&mut reader.found);
                settings
            }
            None => {
                // Named although it is broken: what it holds is not quoted.
                let file = process_file.symlink_metadata().is_ok().then(|| name.clone());
                Settings { file, ..Settings::defaults(options) }
            }
        };
        settings.credentials = std::mem::take(&mut settings.credentials).with_environment(options);
        settings.serve = std::mem::take(&mut settings.serve).with_environment(options);
        if let Some((token, value)) = settings.credentials.conflict() {
            let message =
                format!("`token` ({}) and `token-value` ({}) are both set", token.origin(), value.origin());
            // Without a file both are of the environment, and the message names the variables.
            let place = match settings.file.as_deref() {
                Some(file) => whole_file(file),
                None => files::folder("environment"),
            };
            let help = "token-value is the whole credential, token its secret part: set one of them";
            diagnostics.push(Diagnostic::error(place, "two-tokens", message).with_help(help));
        }
        Self { root, settings, diagnostics, cluster_file, pinned: false, treeless: false, fetched: None }
    }

    /// Reads every cluster of the tree. All mistakes of the whole tree are reported, not only the first.
    pub fn load(self, kinds: &KindTable, options: &LoadOptions<'_>) -> Repository {
        Loader { kinds, options, diagnostics: self.diagnostics.clone(), read: Vec::new() }.load(self)
    }
}

impl Repository {
    /// Finds and reads a tree.
    ///
    /// # Errors
    /// There is no tree. Mistakes in files are diagnostics.
    pub fn load(options: &LoadOptions<'_>, kinds: &KindTable) -> Result<Self, RepoError> {
        Ok(Workspace::open(options)?.load(kinds, options))
    }

    /// The text of a file that a diagnostic names, to quote from; `None` if it lies outside of the tree.
    pub fn text(&self, file: &str) -> Option<String> {
        files::quotable(&self.root, file)
    }

    /// One cluster.
    pub fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.name == name)
    }

    /// The errors that stop a cluster, those that stop all included.
    pub fn errors_of<'a>(&'a self, cluster: &'a str) -> impl Iterator<Item = &'a Diagnostic> {
        self.diagnostics
            .iter()
            .filter(move |d| d.is_error() && d.cluster.as_deref().is_none_or(|c| c == cluster))
    }

    /// The errors that stop all clusters.
    pub fn global_errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|d| d.is_error() && d.cluster.is_none())
    }
}

/// A cluster before its manifests are read.
struct Found {
    name: String,
    config: Option<ClusterConfig>,
    listed: Vec<Listed>,
}

/// A manifest file, read.
#[derive(Default)]
struct Parsed {
    manifests: Vec<Arc<ManifestDoc>>,
    diagnostics: Vec<Diagnostic>,
}

struct Loader<'a> {
    kinds: &'a KindTable,
    options: &'a LoadOptions<'a>,
    diagnostics: Vec<Diagnostic>,
    /// Files that were read, relative to the root.
    read: Vec<String>,
}

impl Loader<'_> {
    fn load(mut self, workspace: Workspace) -> Repository {
        let Workspace { root, settings, cluster_file, treeless, fetched, .. } = workspace;
        self.read.extend(settings.file.clone().filter(|file| Path::new(file).is_relative()));
        let found = match &cluster_file {
            _ if treeless => Vec::new(),
            Some(path) => self.one_cluster(&root, path, &settings),
            None => self.all_clusters(&root, &settings),
        };
        self.shared_endpoints(&found);

        // Two clusters may list one file of base/: it is read once.
        let mut place: HashMap<&Path, usize> = HashMap::new();
        let mut work: Vec<&Listed> = Vec::new();
        for listed in found.iter().flat_map(|f| &f.listed) {
            place.entry(&listed.path).or_insert_with(|| {
                work.push(listed);
                work.len() - 1
            });
        }
        self.read.extend(work.iter().map(|listed| listed.file.clone()));
        let (parsed, git) = std::thread::scope(|scope| {
            let git = scope.spawn(|| match fetched {
                Some(commit) => GitState { commit: Some(commit), dirty: false },
                None => git::state(&root, &self.read),
            });
            (read_all(&work, self.kinds), git.join().unwrap_or_default())
        });
        let GitState { commit, dirty } = git;

        let mut clusters = Vec::new();
        for cluster in &found {
            let mut manifests = Vec::with_capacity(cluster.listed.len());
            let places = cluster.listed.iter().filter_map(|listed| place.get(listed.path.as_path()));
            for file in places.filter_map(|place| parsed.get(*place)) {
                manifests.extend(file.manifests.iter().cloned());
                let tagged = file.diagnostics.iter().map(|d| d.clone().for_cluster(&cluster.name));
                self.diagnostics.extend(tagged);
            }
            let (name, config) = (cluster.name.clone(), cluster.config.clone());
            clusters.push(Cluster { name, config, manifests, ok: true });
        }
        self.diagnostics.sort();
        self.diagnostics.dedup();
        let mut repository =
            Repository { root, settings, clusters, diagnostics: self.diagnostics, commit, dirty };
        let ok: Vec<bool> =
            repository.clusters.iter().map(|c| repository.errors_of(&c.name).next().is_none()).collect();
        for (cluster, ok) in repository.clusters.iter_mut().zip(ok) {
            cluster.ok = ok;
        }
        repository
    }

    /// Every folder of `clusters/` that holds a configuration or a composition.
    fn all_clusters(&mut self, root: &Path, settings: &Settings) -> Vec<Found> {
        let names = self.cluster_names(root);
        let mut found = Vec::new();
        for name in names {
            let folder = format!("clusters/{name}");
            for file in ["config.yaml", "resources.yaml"] {
                misnamed(root, &folder, file, &mut self.diagnostics);
            }
            let exists = |file: &str| root.join(&folder).join(file).symlink_metadata().is_ok();
            let config = match (exists("config.yaml"), exists("resources.yaml")) {
                (false, false) => {
                    if let Some(module) = submodules::around(root, &folder) {
                        let message =
                            format!("the folder lies in the submodule {module}, which is not there");
                        let place = files::folder(&folder);
                        let error = Diagnostic::error(place, "submodule", message);
                        self.diagnostics.push(error.with_help(submodules::HELP));
                    }
                    continue;
                }
                (true, _) => {
                    let path = root.join(&folder).join("config.yaml");
                    self.config(root, &path, Some(&name), settings)
                }
                (false, true) => {
                    let place = whole_file(&format!("{folder}/resources.yaml"));
                    let message = format!("cluster `{name}` has a composition but no config.yaml");
                    let help = format!("add {folder}/config.yaml, or remove the composition");
                    let error = Diagnostic::error(place, "no-cluster-config", message);
                    self.diagnostics.push(error.with_help(help).for_cluster(&name));
                    None
                }
            };
            let listed = self.composition(root, &name);
            found.push(Found { name, config, listed });
        }
        if found.is_empty() && !self.diagnostics.iter().any(Diagnostic::is_error) {
            let error = Diagnostic::error(folder("clusters"), "no-clusters", "no cluster is configured");
            self.diagnostics.push(error.with_help("add clusters/<name>/config.yaml and resources.yaml"));
        }
        found
    }

    /// The one cluster that `--config` names.
    fn one_cluster(&mut self, root: &Path, path: &Path, settings: &Settings) -> Vec<Found> {
        let folder = path.canonicalize().ok().and_then(|p| p.parent().map(Path::to_path_buf));
        let inside = folder.filter(|f| f.parent() == Some(&root.join("clusters")));
        let folder_name = inside.as_deref().and_then(Path::file_name).and_then(|n| n.to_str());
        let Some(config) = self.config(root, path, folder_name, settings) else { return Vec::new() };
        if !is_cluster_name(&config.name) {
            self.bad_cluster_name(&config.name, config.location.clone());
            return Vec::new();
        }
        let name = config.name.clone();
        let listed = self.composition(root, &name);
        vec![Found { name, config: Some(config), listed }]
    }

    fn cluster_names(&mut self, root: &Path) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let entries = match std::fs::read_dir(root.join("clusters")) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return names,
            Err(error) => {
                let message = format!("the folder cannot be read: {error}");
                let error = Diagnostic::error(folder("clusters"), "unreadable-file", message);
                let help = "it must be a folder that the user who runs proxops may read";
                self.diagnostics.push(error.with_help(help));
                return names;
            }
        };
        for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_name().to_str().is_some_and(is_cluster_name) {
                names.insert(name);
            } else if !name.starts_with('.') {
                self.bad_cluster_name(&name, folder(&format!("clusters/{name}")));
            }
        }
        names
    }

    fn bad_cluster_name(&mut self, name: &str, place: proxops_model::Location) {
        let message = format!("`{name}` cannot be a cluster's name");
        let help = "letters, digits, `-`, `_` and `.`; `base` is the folder of shared manifests";
        self.diagnostics.push(Diagnostic::error(place, "cluster-name", message).with_help(help));
    }

    /// A cluster's file. A mistake in it stops every cluster: nobody can say what it was meant to keep out.
    fn config(
        &mut self,
        root: &Path,
        path: &Path,
        folder_name: Option<&str>,
        settings: &Settings,
    ) -> Option<ClusterConfig> {
        let name = display(root, path);
        self.read.extend(Some(name.clone()).filter(|file| Path::new(file).is_relative()));
        // A file that was named may lie anywhere.
        let stream = match self.options.config_file() {
            Some(named) if named == path => files::read(path),
            _ => files::read_inside(root, path),
        };
        let document = one_document(stream, &name, &mut self.diagnostics)?;
        let mut reader = Reader::new(&document, &name);
        let dir = path.parent().unwrap_or(root);
        let config = cluster::read(&mut reader, folder_name, dir, settings, &self.options.overrides);
        self.diagnostics.append(&mut reader.found);
        config
    }

    fn composition(&mut self, root: &Path, cluster: &str) -> Vec<Listed> {
        let name = format!("clusters/{cluster}/resources.yaml");
        let path = root.join(&name);
        if path.symlink_metadata().is_err() {
            let message = format!("cluster `{cluster}` is configured but has no composition");
            let help = format!("add {name}; `resources: []` if it shall manage nothing yet");
            let place = whole_file(&format!("clusters/{cluster}/config.yaml"));
            let error = Diagnostic::error(place, "no-composition", message).with_help(help);
            self.diagnostics.push(error.for_cluster(cluster));
            return Vec::new();
        }
        self.read.push(name.clone());
        let mut found = Vec::new();
        let mut listed = Vec::new();
        if let Some(document) = one_document(files::read_inside(root, &path), &name, &mut found) {
            let mut reader = Reader::new(&document, &name);
            listed = composition::read(&mut reader, root, cluster, self.kinds);
            found.append(&mut reader.found);
        }
        self.diagnostics.extend(found.into_iter().map(|d| d.for_cluster(cluster)));
        listed
    }

    /// Two clusters at one address would each prune what the other owns.
    fn shared_endpoints(&mut self, found: &[Found]) {
        let configs: Vec<&ClusterConfig> = found.iter().filter_map(|f| f.config.as_ref()).collect();
        for config in &configs {
            for other in configs.iter().filter(|o| o.name != config.name && o.address == config.address) {
                let message = format!("clusters `{}` and `{}` share one endpoint", config.name, other.name);
                let error = Diagnostic::error(config.url_location.clone(), "shared-endpoint", message);
                let help = "one PVE cluster is one cluster here: merge the two compositions";
                self.diagnostics.push(error.with_help(help).for_cluster(&config.name));
            }
        }
    }
}

/// Reads manifest files, in parallel where there are many. The answer has the order of the files.
fn read_all(work: &[&Listed], kinds: &KindTable) -> Vec<Parsed> {
    const WORTH_A_THREAD: usize = 64;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = work.len().div_ceil(threads).max(WORTH_A_THREAD);
    std::thread::scope(|scope| {
        let workers: Vec<_> = work
            .chunks(share)
            .map(|files| scope.spawn(|| files.iter().map(|f| read_manifest(f, kinds)).collect::<Vec<_>>()))
            .collect();
        let lost = |files: &[&Listed]| files.iter().map(|f| Parsed::lost(&f.file)).collect();
        let results = workers.into_iter().zip(work.chunks(share));
        results.flat_map(|(worker, files)| worker.join().unwrap_or_else(|_| lost(files))).collect()
    })
}

impl Parsed {
    /// A reader broke down, which no input should manage; the files count as wrong, not as empty.
    fn lost(file: &str) -> Self {
        let error =
            Diagnostic::error(whole_file(file), "internal", "the reader failed on this file or a neighbour");
        Self { manifests: Vec::new(), diagnostics: vec![error.with_help("please report it with the file")] }
    }
}

fn read_manifest(listed: &Listed, kinds: &KindTable) -> Parsed {
    let Stream { documents, problems } = files::read(&listed.path);
    let mut parsed = Parsed { manifests: Vec::new(), diagnostics: diagnose(&problems, &listed.file) };
    // A value that could not be read would only cause follow-up errors; a second key does not.
    if problems.iter().any(|p| p.code != "duplicate-key") {
        return parsed;
    }
    if documents.iter().all(|d| d.value.is_null()) {
        let error = Diagnostic::error(whole_file(&listed.file), "empty-file", "the file holds no manifest");
        parsed.diagnostics.push(error.with_help("remove it from resources.yaml, or write the manifest"));
    }
    for (index, document) in documents.into_iter().enumerate() {
        // What stands between two `---` lines may be empty.
        if document.value.is_null() {
            continue;
        }
        let (manifest, mut found) = manifest::read(document, &listed.file, index, &listed.kind, kinds);
        parsed.manifests.extend(manifest.map(Arc::new));
        parsed.diagnostics.append(&mut found);
    }
    parsed
}

/// The one document of a settings file. An empty file is an empty document.
fn one_document(stream: Stream, file: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<Document> {
    let Stream { documents, problems } = stream;
    let broken = problems.iter().any(|p| p.code != "duplicate-key");
    diagnostics.extend(diagnose(&problems, file));
    if broken {
        return None;
    }
    let mut documents = documents.into_iter();
    let first = documents.next().unwrap_or_else(Document::empty);
    if let Some(second) = documents.next() {
        let at = second.positions.locate("");
        let place = proxops_model::Location { file: file.to_owned(), line: at.line, column: at.column };
        let message = "the file must hold one YAML document";
        diagnostics
            .push(Diagnostic::error(place, "several-documents", message).with_help("remove the `---` line"));
    }
    Some(first)
}

/// Says so when a file is there under the other usual ending, where it would silently not be read.
fn misnamed(root: &Path, folder: &str, file: &str, diagnostics: &mut Vec<Diagnostic>) {
    let other = file.replace(".yaml", ".yml");
    let dir = root.join(folder);
    if dir.join(&other).exists() && !dir.join(file).exists() {
        let place = if folder.is_empty() { other } else { format!("{folder}/{other}") };
        let error = Diagnostic::error(whole_file(&place), "misnamed-file", "a file of this name is not read");
        diagnostics.push(error.with_help(format!("rename it to {file}")));
    }
}

fn is_cluster_name(name: &str) -> bool {
    name != "base"
        && !name.is_empty()
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// A path as messages show it: relative to the root where it lies below, else as it is.
fn display(root: &Path, path: &Path) -> String {
    let real = path.canonicalize();
    let below = |path: &Path| path.strip_prefix(root).ok().and_then(repo_path);
    below(path)
        .or_else(|| real.ok().and_then(|real| below(&real)))
        .unwrap_or_else(|| path.to_string_lossy().into_owned())
}
