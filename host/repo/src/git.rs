//! What git says about the work tree. Read only, without a `git` process, and never a reason to fail.

use std::path::Path;

/// Commit and cleanliness of a work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitState {
    /// `HEAD`, 40 hex digits; `None` without a commit or a readable repository.
    pub commit: Option<String>,
    /// A tracked file differs from `HEAD`, or a file that was read is not tracked.
    pub dirty: bool,
}

/// Asks the repository that `root` lies in. `read` are the files that were read, relative to `root`.
pub(crate) fn state(root: &Path, read: &[String]) -> GitState {
    match ask(root, read) {
        Ok(state) => state,
        Err(error) => {
            tracing::debug!(%error, "git cannot tell the commit");
            GitState::default()
        }
    }
}

fn ask(root: &Path, read: &[String]) -> anyhow::Result<GitState> {
    let repo = gix::discover(root).map_err(|error| anyhow::anyhow!("{error}"))?;
    let Ok(commit) = repo.head_id() else { return Ok(GitState::default()) };
    let commit = Some(commit.to_hex().to_string());
    let Some(work_tree) = repo.workdir() else { return Ok(GitState { commit, dirty: false }) };
    let work_tree = work_tree.canonicalize()?;
    let prefix = root.strip_prefix(&work_tree).ok().and_then(crate::files::repo_path).unwrap_or_default();
    let index = repo.index_or_empty().map_err(|error| anyhow::anyhow!("{error}"))?;
    let untracked = read.iter().any(|file| {
        let path = if prefix.is_empty() { file.clone() } else { format!("{prefix}/{file}") };
        index.entry_by_path(path.as_str().into()).is_none()
    });
    let dirty = untracked || repo.is_dirty().unwrap_or(true);
    Ok(GitState { commit, dirty })
}
