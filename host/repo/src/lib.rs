//! The repository: discovery, settings in layers, compositions, manifests with positions, git.
//!
//! `Workspace::open` finds the tree and reads `proxops.yaml`; `Workspace::load` reads everything else
//! once the kinds are known. Both report every mistake as a [`proxops_model::Diagnostic`] with its
//! place; only a missing tree is an error value. The work tree is never written; a [`Source`] fetches trees into the
//! data directory.

mod cluster;
mod composition;
mod credentials;
mod endpoint;
mod files;
mod git;
mod kinds;
mod manifest;
mod options;
mod reader;
mod repository;
mod serve;
mod settings;
mod source;
mod submodules;
mod text;
pub mod yaml;

pub use cluster::ClusterConfig;
pub use credentials::{
    AuthMethod, CredentialSource, Credentials, SecretRefs, SharedCredentials, compose_token,
};
pub use endpoint::Endpoint;
pub use files::resolved;
pub use git::GitState;
pub use kinds::{KindEntry, KindTable};
pub use manifest::{DEPENDS_ON, IGNORE, ManifestDoc, Policy, RECONCILE, RESTART, ReconcileMode};
pub use options::{Env, LoadOptions, Overrides, RepoError, discover, discover_root};
pub use repository::{Cluster, Repository, Workspace};
pub use serve::{CommitStatus, Forge, SecretSetting, Serve, TlsFiles};
pub use settings::{Concurrency, Git, KindGrant, KindLimits, Log, LogFormat, LogLevel, Reconcile, Settings};
pub use source::{Snapshot, Source, SourceError};
pub use text::{duration, fingerprint, is_node_name, is_owner_tag, is_resource_name, nearest};

/// The API version of all built-in kinds.
pub const API_VERSION: &str = "proxops/v1alpha1";
