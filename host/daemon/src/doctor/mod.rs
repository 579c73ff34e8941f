//! `doctor`: everything between this machine and a cluster's guests, looked at once and written nowhere
//! (`proxops.doctor/v1`).

mod privileges;
mod state;

use crate::Process;
use crate::connect::{Connected, connect};
use proxops_plan::Index;
use proxops_pve::{Class, Client, Mode, probe};
use proxops_repo::{Cluster, ClusterConfig, Credentials};
use serde::Serialize;

/// Certificates and tokens that end this soon are worth a warning.
const SOON: i64 = 30 * 24 * 3600;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    /// As it should be.
    Ok,
    /// Works, but somebody should look.
    Warn,
    /// Stands in the way of an apply.
    Fail,
}

/// One finding about one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Whose.
    pub cluster: String,
    /// What was looked at: composition, git, dns, tcp, tls, credential, version, nodes, quorum, privileges, storage,
    /// tasks, locks or journal.
    pub check: String,
    /// How it went.
    pub state: CheckState,
    /// What was found.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// The findings of one cluster, in the order of the way to it.
struct Report {
    cluster: String,
    checks: Vec<Check>,
}

impl Report {
    fn add(&mut self, check: &str, state: CheckState, message: impl Into<String>, help: Option<String>) {
        let (cluster, check, message) = (self.cluster.clone(), check.to_owned(), message.into());
        self.checks.push(Check { cluster, check, state, message, help });
    }

    fn ok(&mut self, check: &str, message: impl Into<String>) {
        self.add(check, CheckState::Ok, message, None);
    }

    fn warn(&mut self, check: &str, message: impl Into<String>, help: impl Into<String>) {
        self.add(check, CheckState::Warn, message, Some(help.into()));
    }

    fn fail(&mut self, check: &str, message: impl Into<String>, help: impl Into<String>) {
        self.add(check, CheckState::Fail, message, Some(help.into()));
    }
}

impl Report {
    /// Whether a certificate is trusted shows at the first call: what was found of it before is not the last word.
    fn untrusted(&mut self, why: String) {
        let said = |c: &Check| c.check == "tls" && c.state == CheckState::Fail;
        if self.checks.iter().any(said) {
            return;
        }
        self.checks.retain(|c| c.check != "tls");
        self.fail("tls", why, "nothing else could be looked at");
    }
}

impl Process {
    /// Looks at everything that an apply of this cluster needs. Reads only.
    pub async fn doctor(&self, cluster: &Cluster) -> Vec<Check> {
        let mut report = Report { cluster: cluster.name.clone(), checks: Vec::new() };
        if let Some(why) = self.stale() {
            report.warn(
                "git",
                format!("the tree is stale: {why}"),
                "see to the source; the last good tree is used",
            );
        }
        let composed = self.composition(cluster, &self.kinds.session());
        let errors: Vec<_> = self
            .repository
            .errors_of(&cluster.name)
            .chain(composed.diagnostics.iter().filter(|d| d.is_error()))
            .map(ToString::to_string)
            .collect();
        match errors.first() {
            None => report.ok("composition", format!("{} manifests, all valid", cluster.manifests.len())),
            Some(first) => report.fail(
                "composition",
                format!("{} errors in files, the first: {first}", errors.len()),
                "`proxops validate` shows them all",
            ),
        }
        let Some(config) = &cluster.config else { return report.checks };
        reached(&mut report, config).await;
        match connect(config, &self.secrets, Mode::ReadOnly) {
            Ok(Connected { client, kept, .. }) => {
                if let Some(why) = kept {
                    report.warn(
                        "credential",
                        format!("the last good secrets are used: {why}"),
                        "mend the file",
                    );
                }
                if logged_in(&mut report, config, &client).await {
                    looked(&mut report, config, &client, &composed.index).await;
                }
            }
            Err(error) => report.fail(
                "credential",
                format!("{error:#}"),
                "see the chapter on credentials in docs/operators.md",
            ),
        }
        state::journal(&mut report, &self.repository.settings.data_dir);
        report.checks
    }
}

/// Name, port and certificate, without a credential.
async fn reached(report: &mut Report, config: &ClusterConfig) {
    let found = probe(&config.base_url).await;
    match &found.resolved {
        Some(Ok(addresses)) => {
            let list: Vec<String> = addresses.iter().map(|a| a.ip().to_string()).collect();
            report.ok("dns", format!("{} is {}", found.address, list.join(", ")));
        }
        Some(Err(why)) => {
            report.fail(
                "dns",
                format!("{}: {why}", found.address),
                "check base-url and this machine's resolver",
            );
        }
        None => {}
    }
    match &found.connected {
        Some(Ok(address)) => report.ok("tcp", format!("{address} takes connections")),
        Some(Err(why)) => report.fail(
            "tcp",
            format!("{}: {why}", found.address),
            "check the port of base-url, firewalls, and that pveproxy runs",
        ),
        None => {}
    }
    match &found.certificate {
        Some(Ok(certificate)) => certificate_check(report, config, certificate),
        Some(Err(why)) => {
            report.fail("tls", format!("{}: {why}", found.address), "check that the port speaks TLS");
        }
        None if found.connected.as_ref().is_some_and(Result::is_ok) => {
            report.warn("tls", "plain http: nothing is encrypted", "use https for anything but a test");
        }
        None => {}
    }
}

fn certificate_check(report: &mut Report, config: &ClusterConfig, certificate: &proxops_pve::Certificate) {
    let seen = &certificate.fingerprint;
    if let Some(pinned) = config.fingerprint.as_ref().filter(|pinned| *pinned != seen) {
        report.fail(
            "tls",
            format!("the certificate is another than the pinned one: expected {pinned}, seen {seen}"),
            "compare with `pvenode cert info` on the node; set fingerprint anew if the certificate was renewed",
        );
        return;
    }
    let how = match (&config.fingerprint, &config.ca_file) {
        (Some(_), _) => "pinned",
        (None, Some(_)) => "ca-file and the system's authorities",
        (None, None) => "the system's authorities",
    };
    let Some(end) = certificate.not_after else {
        report.ok("tls", format!("{how}; fingerprint {seen}; the end of its validity can't be read"));
        return;
    };
    let message = format!("{how}; fingerprint {seen}; valid until {}", date(end));
    let left = end - now();
    if left < 0 {
        let help = "renew it with `pvenode cert` on the node; a pinned certificate is used all the same";
        if config.fingerprint.is_some() {
            report.warn("tls", message, help)
        } else {
            report.fail("tls", message, help)
        }
    } else if left < SOON {
        report.warn("tls", message, "it ends soon: PVE renews its own, others need `pvenode cert`");
    } else {
        report.ok("tls", message);
    }
}

/// The first call with the credential. `false` = it was refused, or nobody was there.
async fn logged_in(report: &mut Report, config: &ClusterConfig, client: &Client) -> bool {
    let kind = match &config.credentials {
        Credentials::Ticket { .. } => "user and password",
        _ => "API token",
    };
    let who = format!("{kind} of {}", client.identity());
    let version = match client.version().await {
        Ok(version) => version,
        Err(error) if error.class == Class::Tls => {
            report.untrusted(error.message);
            return false;
        }
        Err(error) => {
            report.fail("credential", format!("{who}: {error}"), "nothing else could be looked at");
            return false;
        }
    };
    match client.token_info().await {
        Ok(None) if client.is_root() => report.ok("credential", format!("{who}: may do everything")),
        Ok(None) => report.ok("credential", format!("{who}: a ticket for two hours, renewed by itself")),
        Ok(Some(info)) => {
            let separated = if info.separated { ", with privilege separation" } else { "" };
            match info.expires.and_then(|end| i64::try_from(end).ok()) {
                None => report.ok("credential", format!("{who}{separated}: never expires")),
                Some(end) if end - now() < SOON => report.warn(
                    "credential",
                    format!("{who}{separated}: expires {}", date(end)),
                    "it ends soon: make a new one in Datacenter > Permissions > API Tokens",
                ),
                Some(end) => report.ok("credential", format!("{who}{separated}: expires {}", date(end))),
            }
        }
        Err(error) => report.ok("credential", format!("{who}: works; its end is not known ({error})")),
    }
    let message = format!("PVE {}", version.version);
    if version.version.split('.').next() == Some("9") {
        report.ok("version", message);
    } else {
        report.warn("version", message, "proxops is made for PVE 9");
    }
    true
}

/// Everything that takes a login.
async fn looked(report: &mut Report, config: &ClusterConfig, client: &Client, index: &Index) {
    let (status, nodes, inventory) =
        futures::join!(client.cluster_status(), client.nodes(), client.inventory());
    state::quorum(report, status);
    let online = state::nodes(report, config, nodes);
    privileges::check(report, client, index, &online).await;
    state::storages(report, client, index, &online).await;
    state::leftovers(report, config, client, index, &online, inventory).await;
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

fn date(second: i64) -> String {
    jiff::Timestamp::from_second(second)
        .map_or_else(|_| second.to_string(), |t| t.strftime("%Y-%m-%d").to_string())
}
