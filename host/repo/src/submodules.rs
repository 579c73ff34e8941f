//! Submodules are other repositories: they are not fetched, and whoever needs a file of one is told so.

use std::path::Path;

/// The submodule that a path of the tree lies in, relative to the root, as `.gitmodules` names it.
pub(crate) fn around(root: &Path, file: &str) -> Option<String> {
    let text = proxops_model::file::text(&root.join(".gitmodules"), crate::yaml::MAX_BYTES).ok()?;
    let paths = text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "path").then(|| value.trim().trim_matches('"').trim_end_matches('/'))
    });
    let inside = |path: &&str| {
        !path.is_empty()
            && file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    paths.into_iter().find(inside).map(str::to_owned)
}

/// What to do about it.
pub(crate) const HELP: &str = "submodules are not fetched: keep what a cluster needs in this repository";
