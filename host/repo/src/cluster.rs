//! `clusters/<name>/config.yaml`: one cluster's endpoint, boundary, credentials and overrides.

use crate::{
    credentials::{AuthMethod, CredentialSource, Credentials, SecretRefs, decide},
    endpoint::Endpoint,
    options::Overrides,
    reader::Reader,
    settings::{Reconcile, Settings},
    text::is_node_name,
    yaml::child,
};
use proxops_model::Location;
use std::path::{Path, PathBuf};

/// One cluster as configured, process settings merged in.
#[derive(Debug, Clone)]
pub struct ClusterConfig {
    /// The cluster's name: its folder, and its key in the file.
    pub name: String,
    /// `scheme://host[:port]`, no trailing slash, no API path.
    pub base_url: String,
    /// Nodes that may be read, written and pruned; empty = all. Order of the file.
    pub nodes: Vec<String>,
    /// Certificate authority for this endpoint, absolute.
    pub ca_file: Option<PathBuf>,
    /// SHA-256 of the server's certificate as PVE shows it: 32 upper-case hex pairs joined by colons.
    pub fingerprint: Option<String>,
    /// How to log in.
    pub credentials: Credentials,
    /// The cluster's secrets document, absolute.
    pub secrets_file: Option<PathBuf>,
    /// Which credentials come from that document.
    pub secrets: SecretRefs,
    /// The git token that this cluster brings along, if it refers to one.
    pub git_token: Option<CredentialSource>,
    /// Process values with this cluster's own and the command line laid over.
    pub reconcile: Reconcile,
    /// Where the cluster's entry stands.
    pub location: Location,
    /// Host and port, normalised: no other cluster may have the same.
    pub(crate) address: (String, u16),
    /// Where `base-url` stands.
    pub(crate) url_location: Location,
}

impl ClusterConfig {
    /// Whether this node lies within the boundary.
    pub fn allows_node(&self, node: &str) -> bool {
        self.nodes.is_empty() || self.nodes.iter().any(|allowed| allowed == node)
    }
}

/// Reads a cluster's file. `name` is its folder's name, if the file lies in the repository's `clusters/`;
/// `dir` is the folder that relative paths start from. Everything wrong is noted in the reader.
pub(crate) fn read(
    r: &mut Reader<'_>,
    name: Option<&str>,
    dir: &Path,
    settings: &Settings,
    overrides: &Overrides,
) -> Option<ClusterConfig> {
    r.only("", &["pve", "reconcile"]);
    r.only("/pve", &["clusters", "auth", "ca-file"]);
    let keys = r.keys("/pve/clusters");
    let [key] = keys.as_slice() else {
        let wanted = name.unwrap_or("<cluster>");
        let help = format!("the entry is pve: {{clusters: {{{wanted}: {{base-url: ...}}}}}}");
        let message = format!("`pve.clusters` must hold exactly one cluster, not {}", keys.len());
        r.error("/pve/clusters", "one-cluster", message, help);
        return None;
    };
    let at = child("/pve/clusters", key);
    if let Some(name) = name
        && name != *key
    {
        let message = format!("the cluster is called `{key}` but its folder is called `{name}`");
        r.error(&at, "cluster-name", message, "give both the same name");
    }
    let field = |name: &str| format!("{at}/{name}");
    let known =
        ["base-url", "nodes", "ca-file", "fingerprint", "auth", "secrets-file", "secrets", "reconcile"];
    r.only(&at, &known);

    let endpoint = base_url(r, &at);
    let nodes = nodes(r, &field("nodes"));
    let own_auth = r.choice(&field("auth"), AuthMethod::WORDS);
    let auth = own_auth.or(r.choice("/pve/auth", AuthMethod::WORDS)).or(settings.auth);
    let own_ca = r.text(&field("ca-file")).or(r.text("/pve/ca-file"));
    let ca_file = own_ca.map(|path| dir.join(path)).or_else(|| settings.ca_file.clone());
    let fingerprint =
        r.text(&field("fingerprint")).and_then(|text| fingerprint(r, &field("fingerprint"), text));
    let secrets_file = r.text(&field("secrets-file")).map(|path| dir.join(path));
    let secrets = secret_refs(r, &field("secrets"));
    if !secrets.is_empty() && secrets_file.is_none() {
        let help = "add secrets-file: secrets.sops.yaml";
        r.error(
            &field("secrets"),
            "no-secrets-file",
            "`secrets` names keys of a document, but there is no `secrets-file`",
            help,
        );
    }
    // Beside `pve` as well as in the entry; the entry is nearer to the cluster and wins.
    let reconcile =
        settings.reconcile.clone().read(r, "/reconcile").read(r, &field("reconcile")).with(overrides);
    let endpoint = endpoint?;
    Some(ClusterConfig {
        name: (*key).to_owned(),
        base_url: endpoint.url,
        nodes,
        ca_file,
        fingerprint,
        credentials: decide(&settings.credentials, &secrets, auth),
        secrets_file,
        git_token: secrets.git_token.clone().map(|key| CredentialSource::Document { key }),
        secrets,
        reconcile,
        location: r.location(&at),
        address: endpoint.address,
        url_location: r.location(&field("base-url")),
    })
}

fn base_url(r: &mut Reader<'_>, at: &str) -> Option<Endpoint> {
    let field = format!("{at}/base-url");
    if r.get(&field).is_none() {
        r.error(at, "missing-field", "the cluster has no `base-url`", "such as https://pve.example.org:8006");
        return None;
    }
    match Endpoint::parse(r.text(&field)?) {
        Ok(endpoint) => Some(endpoint),
        Err((message, help)) => {
            r.error(&field, "base-url", message, help);
            None
        }
    }
}

fn nodes(r: &mut Reader<'_>, at: &str) -> Vec<String> {
    let mut nodes: Vec<String> = Vec::new();
    for (item, node) in r.texts(at) {
        if !is_node_name(node) {
            r.error(
                &item,
                "invalid-value",
                format!("`{node}` is not a node's name"),
                "as `pvecm nodes` shows it",
            );
        } else if nodes.iter().any(|known| known == node) {
            r.error(&item, "duplicate-entry", format!("node `{node}` is listed twice"), "remove one");
        }
        // Kept even if wrong: an allowlist must never become empty, which would mean all nodes.
        nodes.push(node.to_owned());
    }
    nodes
}

fn fingerprint(r: &mut Reader<'_>, at: &str, text: &str) -> Option<String> {
    let normal = crate::text::fingerprint(text);
    if normal.is_none() {
        let help = "32 hex pairs joined by colons, from the node's System > Certificates";
        r.error(at, "invalid-value", "`fingerprint` is not a SHA-256 fingerprint", help);
    }
    normal
}

fn secret_refs(r: &mut Reader<'_>, at: &str) -> SecretRefs {
    r.only(at, &["pve", "git"]);
    r.only(&format!("{at}/pve"), &["user", "token-id", "token", "password"]);
    r.only(&format!("{at}/git"), &["token"]);
    let mut key = |name: &str| r.text(&format!("{at}/{name}")).map(str::to_owned);
    SecretRefs {
        user: key("pve/user"),
        token_id: key("pve/token-id"),
        token: key("pve/token"),
        password: key("pve/password"),
        git_token: key("git/token"),
    }
}
