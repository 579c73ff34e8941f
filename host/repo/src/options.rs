//! How a run finds its repository and what it lays over the files.

use crate::settings::{Concurrency, LogFormat, LogLevel};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// Reads an environment variable. A parameter, so that tests need no process-wide state.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Where to look, and what the command line says.
pub struct LoadOptions<'a> {
    /// The working directory: discovery starts here.
    pub start: PathBuf,
    /// What discovery found when a process that runs on began: a later look goes there and nowhere else. The working
    /// directory may be gone by then, and without its `.git` a folder would belong to whatever lies around it.
    pub found: Option<PathBuf>,
    /// `--git-path`; without it `PROXOPS_GIT_PATH` counts.
    pub git_path: Option<PathBuf>,
    /// `--config`; without it `PROXOPS_CONFIG` counts. A process file or one cluster's file.
    pub config: Option<PathBuf>,
    /// The environment.
    pub env: Env<'a>,
    /// Flags that win over the files.
    pub overrides: Overrides,
}

impl<'a> LoadOptions<'a> {
    /// Discovery from a directory, nothing laid over.
    pub fn new(start: impl Into<PathBuf>, env: Env<'a>) -> Self {
        let overrides = Overrides::default();
        Self { start: start.into(), found: None, git_path: None, config: None, env, overrides }
    }

    /// A variable that is set and not empty.
    pub(crate) fn var(&self, name: &str) -> Option<String> {
        (self.env)(name).filter(|value| !value.is_empty())
    }

    /// The tree that `--git-path` or `PROXOPS_GIT_PATH` names.
    pub(crate) fn pinned(&self) -> Option<PathBuf> {
        self.git_path.clone().or_else(|| self.var("PROXOPS_GIT_PATH").map(PathBuf::from))
    }

    /// The file named by `--config` or `PROXOPS_CONFIG`, absolute if the start is.
    pub fn config_file(&self) -> Option<PathBuf> {
        let path = self.config.clone().or_else(|| self.var("PROXOPS_CONFIG").map(PathBuf::from))?;
        Some(self.start.join(path))
    }
}

/// Command-line values that win over `proxops.yaml` and over a cluster's own values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `log.level`
    pub log_level: Option<LogLevel>,
    /// `log.format`
    pub log_format: Option<LogFormat>,
    /// `listen`
    pub listen: Option<String>,
    /// `data-dir`, relative to the working directory.
    pub data_dir: Option<PathBuf>,
    /// `reconcile.poll-interval`
    pub poll_interval: Option<Duration>,
    /// `reconcile.task-timeout`
    pub task_timeout: Option<Duration>,
    /// `reconcile.prune-budget`
    pub prune_budget: Option<u32>,
    /// `reconcile.concurrency`
    pub concurrency: Option<Concurrency>,
}

/// Nothing can be loaded at all.
#[derive(Debug, Error)]
pub enum RepoError {
    /// No `.git` above the start.
    #[error(
        "no git repository: neither {start} nor a directory above it has a .git; run inside a repository or name one with --git-path"
    )]
    NotFound {
        /// Where the search began.
        start: String,
    },
    /// The repository that a process began with is there no more.
    #[error("the git repository {path} is gone: put it back there, or start again in another one")]
    Gone {
        /// Where it was.
        path: String,
    },
    /// `--git-path` or `PROXOPS_GIT_PATH` names something that is not a directory.
    #[error("--git-path {path}: {why}")]
    BadPath {
        /// As given.
        path: String,
        /// Why not.
        why: String,
    },
}

/// The root of the tree: the pinned path, else the one found before, else the nearest directory at or above the start
/// that has a `.git` (directory or file).
///
/// # Errors
/// Nothing found, what was found before is gone, or the pinned path is no directory.
pub fn discover_root(options: &LoadOptions<'_>) -> Result<PathBuf, RepoError> {
    let Some(pinned) = options.pinned() else {
        return match &options.found {
            Some(root) if root.join(".git").exists() => Ok(root.clone()),
            Some(root) => Err(RepoError::Gone { path: root.display().to_string() }),
            None => discover(&options.start),
        };
    };
    let path = options.start.join(&pinned);
    match path.canonicalize() {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => {
            Err(RepoError::BadPath { path: pinned.display().to_string(), why: "not a directory".into() })
        }
        Err(error) => Err(RepoError::BadPath { path: pinned.display().to_string(), why: error.to_string() }),
    }
}

/// The nearest directory at or above `start` that has a `.git`, as a directory or as a file (a
/// worktree or submodule). The result is absolute, with symlinks resolved.
///
/// # Errors
/// Nothing found.
pub fn discover(start: &Path) -> Result<PathBuf, RepoError> {
    let not_found = || RepoError::NotFound { start: start.display().to_string() };
    let absolute = start.canonicalize().map_err(|_| not_found())?;
    absolute.ancestors().find(|dir| dir.join(".git").exists()).map(Path::to_path_buf).ok_or_else(not_found)
}
