//! Asks a running daemon before a command works on its own: the daemon has the credentials, and has just looked.

use crate::say;
use anyhow::Context as _;
use proxops_daemon::Process;
use proxops_repo::{Settings, resolved};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// For the whole answer: a daemon on this machine is quick, and a port that something else holds must not delay.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a daemon must have in common with the command that asks it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Same {
    /// The data directory: it is this machine's daemon for this repository.
    DataDir,
    /// And the commit, with nothing changed on either side: it would plan what the command would plan.
    Commit,
}

/// The document at `path` of the daemon at `listen`, if one is there that fits. Anything else is no error: the
/// command goes on by itself.
pub async fn daemon(process: &Process, path: &str, same: Same) -> Option<Value> {
    let document = match fetch(&process.repository.settings, path).await {
        Ok(document) => document?,
        Err(error) => {
            tracing::debug!("no daemon answered: {error:#}");
            return None;
        }
    };
    let (about, repository) = (document.get("daemon")?, &process.repository);
    let tree = &about["tree"];
    let theirs = about["data_dir"].as_str().map(Path::new).map(resolved);
    let ours = theirs == Some(resolved(&repository.settings.data_dir));
    let unchanged = repository.commit.is_some()
        && tree["commit"].as_str() == repository.commit.as_deref()
        && tree["dirty"] == false
        && !repository.dirty
        && tree["stale"].is_null();
    if !ours || (same == Same::Commit && !unchanged) {
        tracing::info!("a daemon answers, and works on another tree or state of it");
        return None;
    }
    say::err!("as the running daemon found it; --no-daemon looks anew");
    Some(document)
}

async fn fetch(settings: &Settings, path: &str) -> anyhow::Result<Option<Value>> {
    let Some(port) = settings.listen.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok()) else {
        return Ok(None);
    };
    if port == 0 {
        return Ok(None);
    }
    // A daemon that listens everywhere listens here.
    let host = settings.listen.rsplit_once(':').map_or("127.0.0.1", |(host, _)| host);
    let host = if ["0.0.0.0", "[::]", ""].contains(&host) { "127.0.0.1" } else { host };
    // Most often nobody listens: find out before certificates are read.
    let open = tokio::time::timeout(
        Duration::from_millis(500),
        tokio::net::TcpStream::connect((host.trim_matches(['[', ']']), port)),
    );
    if !matches!(open.await, Ok(Ok(_))) {
        return Ok(None);
    }
    let tls = settings.serve.tls.as_ref();
    let http = proxops_daemon::http_client(tls.map(|files| files.cert.as_path()), PATIENCE)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut request = http.get(format!("{scheme}://{host}:{port}{path}"));
    if let Some(token) = &settings.serve.token {
        request = request.bearer_auth(token.read().map_err(anyhow::Error::msg)?.expose());
    }
    let answer = request.send().await?.error_for_status()?;
    let bytes = answer.bytes().await?;
    serde_json::from_slice(&bytes).map(Some).context("the answer is not a daemon's")
}

/// Keeps the clusters that `--cluster` names.
pub fn select(document: &mut Value, clusters: &[String]) {
    if let Some(list) = document["clusters"].as_array_mut()
        && !clusters.is_empty()
    {
        list.retain(|c| c["cluster"].as_str().is_some_and(|name| clusters.iter().any(|c| c == name)));
    }
}
