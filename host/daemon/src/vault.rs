//! The secrets of one cluster, as planner (names and public keys) and executor (values) ask for them.

use proxops_exec::SecretSource;
use proxops_plan::SecretNames;
use proxops_secrets::{Decrypted, Secret};
use std::sync::Arc;

/// One cluster's secrets document, or why there is none.
#[derive(Clone)]
pub struct Vault {
    cluster: String,
    document: Option<Arc<Decrypted>>,
}

impl Vault {
    /// From the decrypted document; `None` = the cluster has no secrets-file.
    pub fn new(cluster: &str, document: Option<Arc<Decrypted>>) -> Self {
        Self { cluster: cluster.to_owned(), document }
    }

    /// Every public SSH key with its full name, such as `cloud-init.ssh-keys.ops`; none without a document.
    pub fn public_keys(&self) -> Vec<(String, String)> {
        self.document.as_ref().map(|document| document.public_keys()).unwrap_or_default()
    }

    fn get(&self, name: &str) -> Result<Secret, String> {
        let Some(document) = &self.document else {
            return Err(format!(
                "the secret {name} is needed, but cluster {} has no secrets-file in its config.yaml",
                self.cluster
            ));
        };
        document.get(name).map_err(|error| error.to_string())
    }
}

impl SecretNames for Vault {
    fn check(&self, name: &str) -> Result<(), String> {
        self.get(name).map(|_| ())
    }

    fn public_key(&self, name: &str) -> Result<String, String> {
        self.get(name).map(|secret| secret.expose().to_owned())
    }
}

impl SecretSource for Vault {
    fn secret(&self, name: &str) -> Result<Secret, String> {
        self.get(name)
    }
}
