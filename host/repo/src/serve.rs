//! What the daemon shows, hears and tells: `http`, `webhook`, `notify`, `commit-status` of the process file.

use crate::{options::LoadOptions, reader::Reader};
use proxops_model::file;
use proxops_secrets::Secret;
use std::path::{Path, PathBuf};

/// The daemon's HTTP server beside its address, the webhook that it hears, and the one that it calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Serve {
    /// `http.token`, `http.token-file`, `PROXOPS_HTTP_TOKEN`: what a reader must show.
    pub token: Option<SecretSetting>,
    /// `http.cert-file` and `http.key-file`, absolute: serve TLS.
    pub tls: Option<TlsFiles>,
    /// `webhook.secret`, `webhook.secret-file`, `PROXOPS_WEBHOOK_SECRET`: what signs a push.
    pub webhook_secret: Option<SecretSetting>,
    /// `notify.url`: told about failures, anomalies and convergence.
    pub notify_url: Option<String>,
    /// `notify.token`, `notify.token-file`, `PROXOPS_NOTIFY_TOKEN`: sent as a bearer token.
    pub notify_token: Option<SecretSetting>,
    /// `notify.ca-file`: authorities beside the system's, absolute.
    pub notify_ca: Option<PathBuf>,
    /// `commit-status`: the git server is told what became of a commit.
    pub commit_status: Option<CommitStatus>,
}

/// Where commits get their status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitStatus {
    /// `commit-status.server`: whose words are used.
    pub forge: Forge,
    /// `commit-status.url`: of the repository in the server's API, without a slash at its end.
    pub url: String,
    /// `commit-status.token`, `commit-status.token-file`, `PROXOPS_COMMIT_STATUS_TOKEN`: sent as a bearer token.
    pub token: Option<SecretSetting>,
    /// `commit-status.ca-file`: authorities beside the system's, absolute.
    pub ca_file: Option<PathBuf>,
}

/// A git server that shows the status of commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forge {
    /// GitHub.
    GitHub,
    /// GitLab.
    GitLab,
    /// Gitea and Forgejo.
    Gitea,
}

/// A secret of the daemon: given, or in a file that is read when it is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSetting {
    /// Given.
    Value(Secret),
    /// The first line of this file, absolute.
    File(PathBuf),
}

/// Certificate chain and private key, PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, then its issuers.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl SecretSetting {
    /// The value.
    ///
    /// # Errors
    /// The file can't be read or is empty; the text names it.
    pub fn read(&self) -> Result<Secret, String> {
        let path = match self {
            Self::Value(value) => return Ok(value.clone()),
            Self::File(path) => path,
        };
        let text = file::text(path, file::SMALL)
            .map_err(|error| format!("the secret file {} can't be read: {error}", path.display()))?;
        let text = Secret::new(text);
        let line = text.expose().lines().next().unwrap_or_default().trim();
        if line.is_empty() {
            return Err(format!("the secret file {} is empty", path.display()));
        }
        Ok(Secret::new(line))
    }
}

impl Serve {
    /// From the process file. Relative paths start at `dir`.
    pub(crate) fn read(r: &mut Reader<'_>, dir: &Path) -> Self {
        r.only("/http", &["token", "token-file", "cert-file", "key-file"]);
        r.only("/webhook", &["secret", "secret-file"]);
        r.only("/notify", &["url", "token", "token-file", "ca-file"]);
        let path = |r: &mut Reader<'_>, at: &str| r.text(at).map(|path| dir.join(path));
        let (cert, key) = (path(r, "/http/cert-file"), path(r, "/http/key-file"));
        let tls = match (cert, key) {
            (Some(cert), Some(key)) => Some(TlsFiles { cert, key }),
            (None, None) => None,
            _ => {
                let help = "set both to serve TLS, or none";
                r.error("/http", "missing-field", "`cert-file` and `key-file` belong together", help);
                None
            }
        };
        let notify_url = r.text("/notify/url").and_then(|url| address(r, "/notify/url", url, "NOTIFY"));
        Self {
            token: secret(r, dir, "/http/token"),
            tls,
            webhook_secret: secret(r, dir, "/webhook/secret"),
            notify_url,
            notify_token: secret(r, dir, "/notify/token"),
            notify_ca: path(r, "/notify/ca-file"),
            commit_status: commit_status(r, dir),
        }
    }

    /// Lays the environment over.
    pub(crate) fn with_environment(mut self, options: &LoadOptions<'_>) -> Self {
        for (slot, name) in [
            (&mut self.token, "PROXOPS_HTTP_TOKEN"),
            (&mut self.webhook_secret, "PROXOPS_WEBHOOK_SECRET"),
            (&mut self.notify_token, "PROXOPS_NOTIFY_TOKEN"),
        ] {
            if let Some(value) = options.var(name) {
                *slot = Some(SecretSetting::Value(Secret::new(value)));
            }
        }
        if let (Some(status), Some(value)) =
            (&mut self.commit_status, options.var("PROXOPS_COMMIT_STATUS_TOKEN"))
        {
            status.token = Some(SecretSetting::Value(Secret::new(value)));
        }
        self
    }
}

/// The value at a pointer, or the file that `<pointer>-file` names.
fn secret(r: &mut Reader<'_>, dir: &Path, at: &str) -> Option<SecretSetting> {
    let file_at = format!("{at}-file");
    match (r.text(at), r.text(&file_at)) {
        (Some(_), Some(_)) => {
            let name = at.rsplit('/').next().unwrap_or_default();
            let message = format!("`{name}` and `{name}-file` are two spellings of one thing");
            r.error(&file_at, "conflict", message, "keep one of them");
            None
        }
        (Some(value), None) => Some(SecretSetting::Value(Secret::new(value))),
        (None, Some(path)) => Some(SecretSetting::File(dir.join(path))),
        (None, None) => None,
    }
}

fn commit_status(r: &mut Reader<'_>, dir: &Path) -> Option<CommitStatus> {
    const AT: &str = "/commit-status";
    const FORGES: &[(&str, Forge)] = &[
        ("github", Forge::GitHub),
        ("gitlab", Forge::GitLab),
        ("gitea", Forge::Gitea),
        ("forgejo", Forge::Gitea),
    ];
    r.get(AT)?;
    r.only(AT, &["server", "url", "token", "token-file", "ca-file"]);
    let forge = r.choice("/commit-status/server", FORGES);
    let url = r
        .text("/commit-status/url")
        .and_then(|url| address(r, "/commit-status/url", url, "COMMIT_STATUS"))
        .map(|url| url.trim_end_matches('/').to_owned());
    let token = secret(r, dir, "/commit-status/token");
    let ca_file = r.text("/commit-status/ca-file").map(|path| dir.join(path));
    if ["server", "url"].iter().any(|name| r.get(&format!("{AT}/{name}")).is_none()) {
        let help = "such as server: github and url: https://api.github.com/repos/acme/estate";
        r.error(AT, "missing-field", "`server` and `url` belong together", help);
    }
    Some(CommitStatus { forge: forge?, url: url?, token, ca_file })
}

/// `https://...`, or `http://` to this machine; a password in it would show in logs. `variable` is the middle of the
/// name of the one that takes the token.
fn address(r: &mut Reader<'_>, at: &str, url: &str, variable: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        let help =
            format!("leave it out of the address and set `token` beside it, or PROXOPS_{variable}_TOKEN");
        r.error(
            at,
            "secret-in-url",
            "the address carries a user or password, which would show in logs",
            help,
        );
        return None;
    }
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let here = ["localhost", "127.0.0.1", "[::1]"].contains(&host);
    if authority.is_empty() || !(scheme == "https" || (scheme == "http" && here)) {
        let help = "such as https://chat.example.org/hooks/1; http only to this machine";
        r.error(at, "invalid-value", "`url` is not an address to call", help);
        return None;
    }
    Some(url.to_owned())
}
