//! From a cluster's configuration to a client: credentials resolved, secrets document opened.

use crate::Vault;
use anyhow::{Context as _, anyhow};
use proxops_pve::{Client, ClientConfig, Credential, Mode};
use proxops_repo::{ClusterConfig, CredentialSource, Credentials, compose_token};
use proxops_secrets::{ClusterSecrets, Decrypted, Secret};
use std::sync::Arc;

/// A cluster that can be talked to.
pub struct Connected {
    /// The client.
    pub client: Client,
    /// The cluster's secrets.
    pub vault: Vault,
    /// Why the secrets file on the disk is not what is used, if it is not.
    pub kept: Option<String>,
}

/// Opens the cluster's secrets document, if it has one, and a client with the credential that the
/// configuration chose. One cluster's secret never leaves for another's endpoint: everything here
/// comes from this cluster's own configuration.
pub fn connect(config: &ClusterConfig, secrets: &ClusterSecrets, mode: Mode) -> anyhow::Result<Connected> {
    let mut kept = None;
    let document = match &config.secrets_file {
        Some(path) => {
            let loaded = secrets.load(&config.name, path)?;
            if let Some(stale) = &loaded.stale {
                tracing::warn!(cluster = config.name, "the last good secrets are kept: {stale}");
            }
            kept = loaded.stale.map(|stale| stale.to_string());
            Some(loaded.secrets)
        }
        None => None,
    };
    let credential = credential(config, document.as_ref())?;
    let client = Client::new(ClientConfig {
        ca_file: config.ca_file.clone(),
        fingerprint: config.fingerprint.clone(),
        task_timeout: config.reconcile.task_timeout,
        concurrency: 16,
        mode,
        ..ClientConfig::new(config.name.clone(), config.base_url.clone(), credential)
    })?;
    Ok(Connected { client, vault: Vault::new(&config.name, document), kept })
}

fn credential(config: &ClusterConfig, document: Option<&Arc<Decrypted>>) -> anyhow::Result<Credential> {
    let value = |source: &CredentialSource| -> anyhow::Result<Secret> {
        match source {
            CredentialSource::Value { value, .. } => Ok(value.clone()),
            CredentialSource::Document { key } => {
                let document = document.ok_or_else(|| anyhow!("the secret {key} needs a secrets-file"))?;
                document.credential(key).with_context(|| format!("credential of cluster {}", config.name))
            }
        }
    };
    Ok(match &config.credentials {
        Credentials::TokenValue(source) => Credential::Token(value(source)?),
        Credentials::Token { user, token_id, token } => {
            let user = user.as_ref().map(value).transpose()?;
            let whole = compose_token(user.as_ref(), &value(token_id)?, &value(token)?).ok_or_else(|| {
                anyhow!("cluster {}: the API token needs a user beside token-id and token", config.name)
            })?;
            Credential::Token(whole)
        }
        Credentials::Ticket { user, password } => {
            Credential::Ticket { user: value(user)?.expose().to_owned(), password: value(password)? }
        }
        Credentials::Missing { help } => {
            return Err(anyhow!("cluster {} has no PVE credential: {help}", config.name));
        }
    })
}
