//! `clusters/<cluster>/resources.yaml`: the explicit list of a cluster's manifest files.

use crate::{files::repo_path, kinds::KindTable, reader::Reader, submodules, text::suggest};
use serde_json::Value;
use std::{
    collections::HashMap,
    path::{Component, Path, PathBuf},
};

/// One accepted entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// As listed, normalised: relative to the root, forward slashes.
    pub file: String,
    /// The file itself, symlinks resolved.
    pub path: PathBuf,
    /// The kind whose folder it lies in.
    pub kind: String,
}

/// Reads a composition. `root` is the repository's root with symlinks resolved. Everything wrong is
/// noted in the reader.
pub(crate) fn read(r: &mut Reader<'_>, root: &Path, cluster: &str, kinds: &KindTable) -> Vec<Listed> {
    if !r.document.value.is_object() {
        let help = "resources: [\"../../vm/base/web.yaml\"], or resources: [] for none";
        r.error("", "missing-field", "a composition holds one key, `resources`", help);
        return Vec::new();
    }
    r.only("", &["resources"]);
    let items = match r.document.value.get("resources") {
        Some(Value::Array(_)) => r.texts("/resources"),
        _ => {
            let help = "write resources: [] if the cluster shall have none";
            r.error("/resources", "missing-field", "`resources` must be a list of manifest files", help);
            return Vec::new();
        }
    };
    let mut resolver = Resolver { root, cluster, kinds, folders: HashMap::new() };
    let mut listed: Vec<Listed> = Vec::new();
    let mut seen: HashMap<PathBuf, String> = HashMap::new();
    for (at, text) in items {
        let found = match resolver.resolve(text) {
            Ok(found) => found,
            Err(Refusal { code, message, help }) => {
                r.error(&at, code, format!("{text}: {message}"), help);
                continue;
            }
        };
        if let Some(before) = seen.get(&found.path) {
            let line = r.location(before).line;
            let message = format!("{text}: the file is already listed in line {line}");
            r.error(&at, "listed-twice", message, "remove one of the two");
            continue;
        }
        seen.insert(found.path.clone(), at);
        listed.push(found);
    }
    listed
}

/// Why an entry is not accepted.
struct Refusal {
    code: &'static str,
    message: String,
    help: String,
}

fn refuse<T>(code: &'static str, message: impl Into<String>, help: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { code, message: message.into(), help: help.into() })
}

/// Resolves the entries of one composition. Remembers folders: thousands of files lie in a few.
struct Resolver<'a> {
    root: &'a Path,
    cluster: &'a str,
    kinds: &'a KindTable,
    /// Folders below the root with symlinks resolved.
    folders: HashMap<PathBuf, PathBuf>,
}

impl Resolver<'_> {
    /// The file with all symlinks resolved.
    fn real_path(&mut self, file: &str) -> std::io::Result<PathBuf> {
        let path = self.root.join(file);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return path.canonicalize();
        };
        if path.symlink_metadata()?.is_symlink() {
            return path.canonicalize();
        }
        if let Some(folder) = self.folders.get(parent) {
            return Ok(folder.join(name));
        }
        let folder = parent.canonicalize()?;
        let real = folder.join(name);
        self.folders.insert(parent.to_path_buf(), folder);
        Ok(real)
    }

    fn resolve(&mut self, text: &str) -> Result<Listed, Refusal> {
        let (root, cluster, kinds) = (self.root, self.cluster, self.kinds);
        let outside = |what: &str| {
            refuse(
                "outside-repository",
                what,
                "a manifest must stay inside the repository, symlinks resolved",
            )
        };
        let Some(file) = normalise(&["clusters", cluster], text) else {
            return outside(if Path::new(text).is_absolute() {
                "the path is absolute; paths are relative to resources.yaml"
            } else {
                "the path leads out of the repository"
            });
        };
        if text.ends_with('/') || !(file.ends_with(".yaml") || file.ends_with(".yml")) {
            return refuse(
                "not-yaml",
                "a manifest's name ends in .yaml or .yml",
                "list a file, and name it so",
            );
        }
        let path = match self.real_path(&file) {
            Ok(path) => path,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if let Some(module) = submodules::around(root, &file) {
                    let message = format!("the file lies in the submodule {module}, which is not there");
                    return refuse("submodule", message, submodules::HELP);
                }
                if root.join(&file).symlink_metadata().is_ok_and(|at| at.is_symlink()) {
                    let help = "let it point at a file of the repository, or put the manifest itself there";
                    return refuse("no-such-file", "the symbolic link leads nowhere", help);
                }
                let help = if text.contains(['*', '?', '[']) {
                    "patterns are not expanded: list each file".to_owned()
                } else {
                    near_file(root, &file)
                };
                return refuse("no-such-file", "no such file", help);
            }
            Err(error) => {
                let help = "it must be a file that the user who runs proxops may read";
                return refuse("unreadable-file", format!("cannot be resolved: {error}"), help);
            }
        };
        let Some(real) = path.strip_prefix(root).ok().and_then(repo_path) else {
            return outside("the file lies outside the repository");
        };
        if !path.is_file() {
            return refuse("not-a-file", "not a regular file", "list each file of a folder by itself");
        }
        let kind = placed(&file, cluster, kinds)?;
        if real != file {
            // A link must not reach what its target's place forbids.
            match placed(&real, cluster, kinds) {
                Ok(real_kind) if real_kind == kind => {}
                Ok(_) => {
                    let help = "list the file itself";
                    return refuse("wrong-folder", format!("links to another kind's folder ({real})"), help);
                }
                Err(refusal) => {
                    return refuse(
                        refusal.code,
                        format!("links to {real}: {}", refusal.message),
                        refusal.help,
                    );
                }
            }
        }
        Ok(Listed { file, path, kind })
    }
}

/// Joins a relative path to a folder of the repository; `None` if it is absolute or leads out.
fn normalise(folder: &[&str], text: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.to_vec();
    for component in Path::new(text).components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// The kind in whose `base/` or cluster folder a file lies.
fn placed(file: &str, cluster: &str, kinds: &KindTable) -> Result<String, Refusal> {
    let below = |root: &str| file.strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
    // The longest root wins, should one lie below another.
    let found = kinds.roots().filter_map(|(kind, root)| Some((root.len(), kind, root, below(root)?))).max();
    let Some((_, kind, root, rest)) = found else {
        let folder = file.split('/').next().unwrap_or_default();
        let roots = kinds.roots().map(|(_, root)| root);
        return refuse("wrong-folder", format!("`{folder}` is no kind's folder"), suggest(folder, roots));
    };
    match rest.split_once('/') {
        Some((folder, _)) if folder == "base" || folder == cluster => Ok(kind.to_owned()),
        Some((folder, _)) => refuse(
            "wrong-folder",
            format!("`{root}/{folder}/` is not a folder of cluster `{cluster}`"),
            format!("move it to {root}/base/ to share it, or to {root}/{cluster}/"),
        ),
        None => refuse(
            "wrong-folder",
            format!("a manifest does not lie directly under `{root}/`"),
            format!("move it to {root}/base/ or {root}/{cluster}/"),
        ),
    }
}

/// The other extension or a near name in the same folder.
fn near_file(root: &Path, file: &str) -> String {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let names: Vec<String> = std::fs::read_dir(root.join(folder))
        .map(|entries| {
            entries.flatten().take(10_000).filter_map(|e| e.file_name().into_string().ok()).collect()
        })
        .unwrap_or_default();
    match crate::text::nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean {folder}/{near}?"),
        None => {
            "paths are relative to the folder of resources.yaml, such as ../../vm/base/web.yaml".to_owned()
        }
    }
}
