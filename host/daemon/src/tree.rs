//! Which tree a run works on: the one around the working directory, or the one that `git.url` names.

use anyhow::Context as _;
use proxops_repo::{ClusterConfig, CredentialSource, LoadOptions, SharedCredentials, Snapshot, Workspace};
use proxops_secrets::{ClusterSecrets, Secret};
use std::sync::atomic::AtomicBool;

/// A workspace with the fetched tree that it lies in.
pub(crate) struct Tree {
    pub workspace: Workspace,
    pub snapshot: Option<Snapshot>,
}

/// Fetches the tree if `git.url` says so. `offline` takes the tree that is here, if there is one: `validate` judges
/// what somebody is about to push, not what the source holds. Blocks on the network.
pub(crate) fn find(
    workspace: Workspace,
    options: &LoadOptions<'_>,
    secrets: &ClusterSecrets,
    offline: bool,
    stop: &AtomicBool,
) -> anyhow::Result<Tree> {
    if offline && workspace.has_tree() {
        return Ok(Tree { workspace, snapshot: None });
    }
    let Some(mut source) = workspace.source() else { return Ok(Tree { workspace, snapshot: None }) };
    // What is wrong with these settings must not be hidden behind a failed fetch.
    if let Some(error) = workspace.diagnostics.iter().find(|d| d.is_error()) {
        anyhow::bail!("{error}");
    }
    let configs = workspace.cluster_configs(options);
    let own = configs.iter().any(|config| config.git_token.is_some());
    source.token = git_token(&configs, &workspace.settings.credentials, secrets)?.or(source.token);
    if own && source.token.is_none() {
        tracing::warn!("no cluster's git token can be read: the source is asked without one");
    }
    let snapshot = source.refresh(&workspace.settings.data_dir, stop)?;
    if let Some(why) = &snapshot.stale {
        tracing::warn!(commit = snapshot.commit, "the last good tree is used: {why}");
    }
    tracing::debug!(commit = snapshot.commit, root = %snapshot.root.display(), "fetched tree");
    Ok(Tree { workspace: workspace.fetched(&snapshot, options), snapshot: Some(snapshot) })
}

/// The one git token of all clusters: a cluster's own out of its document, else the shared one. A document that
/// can't be read stops its own cluster later, and counts for nothing here.
///
/// # Errors
/// Two clusters resolve to different tokens: one source can't be asked with both.
pub(crate) fn git_token(
    configs: &[ClusterConfig],
    shared: &SharedCredentials,
    secrets: &ClusterSecrets,
) -> anyhow::Result<Option<Secret>> {
    let shared = match &shared.git_token {
        Some(CredentialSource::Value { value, origin }) => Some((value.clone(), origin.clone())),
        _ => None,
    };
    if configs.iter().all(|config| config.git_token.is_none()) {
        return Ok(shared.map(|(token, _)| token));
    }
    let mut found: Option<(Secret, String)> = None;
    for config in configs {
        let resolved = match &config.git_token {
            None => shared.clone(),
            Some(CredentialSource::Value { value, origin }) => Some((value.clone(), origin.clone())),
            Some(CredentialSource::Document { key }) => from_document(config, key, secrets)
                .inspect_err(|error| tracing::debug!(cluster = config.name, "no git token: {error:#}"))
                .ok(),
        };
        let Some((token, origin)) = resolved else { continue };
        let here = format!("cluster {} ({origin})", config.name);
        match &found {
            None => found = Some((token, here)),
            Some((first, _)) if *first == token => {}
            Some((_, there)) => anyhow::bail!(
                "{there} and {here} resolve to different git tokens; there is one repository: give all clusters the \
                 same token"
            ),
        }
    }
    Ok(found.map(|(token, _)| token).or(shared.map(|(token, _)| token)))
}

fn from_document(
    config: &ClusterConfig,
    key: &str,
    secrets: &ClusterSecrets,
) -> anyhow::Result<(Secret, String)> {
    let path = config.secrets_file.as_ref().context("there is no secrets-file")?;
    let token = secrets.load(&config.name, path)?.secrets.credential(key)?;
    Ok((token, format!("secrets.{key}")))
}
