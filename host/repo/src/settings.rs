//! Process-wide settings: defaults, `proxops.yaml`, the command line.

use crate::{
    credentials::{AuthMethod, SharedCredentials},
    options::{LoadOptions, Overrides},
    reader::Reader,
    serve::Serve,
    source::Address,
    text::is_owner_tag,
};
use proxops_model::Location;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Everything that does not belong to one cluster.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The file that was read, if there is one, as shown in messages.
    pub file: Option<String>,
    /// Logging.
    pub log: Log,
    /// How to log in where a cluster does not say: `pve.auth`.
    pub auth: Option<AuthMethod>,
    /// `pve.ca-file`, absolute.
    pub ca_file: Option<PathBuf>,
    /// Credentials that all clusters without a secrets file share.
    pub credentials: SharedCredentials,
    /// The git source.
    pub git: Git,
    /// The loop, where a cluster does not say otherwise.
    pub reconcile: Reconcile,
    /// Address of the daemon's HTTP server, `host:port`.
    pub listen: String,
    /// The daemon's HTTP server, webhook and notifications.
    pub serve: Serve,
    /// Journal, caches, clones; absolute.
    pub data_dir: PathBuf,
    /// Grants and pins of third-party kinds.
    pub kinds: Vec<KindGrant>,
}

/// `log`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Log {
    /// `log.level`
    pub level: LogLevel,
    /// `log.format`
    pub format: LogFormat,
}

/// `log.level`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Only what failed.
    Error,
    /// And what somebody should look at.
    Warn,
    /// And what was done.
    #[default]
    Info,
    /// And how.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// All words with their levels.
    pub const WORDS: &[(&str, Self)] = &[
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];

    /// As written in a file.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, level)| *level == self).map_or("info", |(word, _)| word)
    }
}

/// `log.format`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// `git`.
#[derive(Debug, Clone)]
pub struct Git {
    /// Where to clone from; `None` = the work tree as it is.
    pub url: Option<String>,
    /// A branch, a tag, or a commit's 40 hex digits; `None` = the remote's own default.
    pub branch: Option<String>,
    /// `git.ca-file`: authorities beside the system's, absolute.
    pub ca_file: Option<PathBuf>,
    /// How often to fetch; the cycle's own interval if not given.
    pub poll_interval: Option<Duration>,
}

/// `reconcile`, of the process or merged for one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconcile {
    /// Between two cycles.
    pub poll_interval: Duration,
    /// Of one PVE task.
    pub task_timeout: Duration,
    /// Most deletes in one cycle; 0 = no limit.
    pub prune_budget: u32,
    /// Most actions at once.
    pub concurrency: Concurrency,
    /// The tag that marks guests as this repository's own. Lower case.
    pub owner_tag: String,
}

impl Default for Reconcile {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(30),
            task_timeout: Duration::from_secs(30 * 60),
            prune_budget: 3,
            concurrency: Concurrency::default(),
            owner_tag: "proxops".to_owned(),
        }
    }
}

/// `reconcile.concurrency`: a number (per cluster) or `{cluster, node}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Most actions at once in a cluster. 1 = strictly one after the other, in the plan's order.
    pub cluster: u32,
    /// Most actions at once on a node.
    pub node: u32,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self { cluster: 8, node: 4 }
    }
}

/// One entry of `kinds`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindGrant {
    /// The kind's name.
    pub kind: String,
    /// API path prefixes that it may use.
    pub allow: Vec<String>,
    /// The only file content that may be loaded, 64 lower-case hex digits.
    pub sha256: Option<String>,
    /// The component's file, absolute, if it is in none of the usual folders.
    pub file: Option<PathBuf>,
    /// What it may use, where that differs from the standard.
    pub limits: KindLimits,
    /// Where the entry stands.
    pub location: Location,
}

/// `kinds[].limits`; what is left out is as for every kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindLimits {
    /// Bytes of memory of an instance.
    pub memory: Option<usize>,
    /// Work of one call, about one unit an instruction.
    pub fuel: Option<u64>,
    /// Wall clock of one call.
    pub deadline: Option<Duration>,
    /// Bytes of one answer.
    pub output_bytes: Option<usize>,
    /// List elements of one answer.
    pub output_items: Option<usize>,
    /// Elements of all tables of an instance.
    pub table_elements: Option<usize>,
    /// Core instances of the component.
    pub instances: Option<usize>,
}

impl KindLimits {
    fn read(r: &mut Reader<'_>, at: &str) -> Self {
        const KEYS: &[&str] =
            &["memory", "fuel", "deadline", "output-bytes", "output-items", "table-elements", "instances"];
        r.only(at, KEYS);
        let key = |name: &str| format!("{at}/{name}");
        let mut whole = |name: &str| r.whole(&key(name), 1);
        let (fuel, items) = (whole("fuel"), whole("output-items"));
        let (tables, instances) = (whole("table-elements"), whole("instances"));
        let (memory, output) = (r.size(&key("memory")), r.size(&key("output-bytes")));
        Self {
            memory,
            fuel: fuel.map(u64::from),
            deadline: r.duration(&key("deadline")),
            output_bytes: output,
            output_items: items.map(|n| n as usize),
            table_elements: tables.map(|n| n as usize),
            instances: instances.map(|n| n as usize),
        }
    }
}

impl Reconcile {
    const KEYS: &[&str] = &["poll-interval", "task-timeout", "prune-budget", "concurrency", "owner-tag"];

    /// Lays the mapping at a pointer over these values.
    pub(crate) fn read(mut self, r: &mut Reader<'_>, at: &str) -> Self {
        r.only(at, Self::KEYS);
        let key = |name: &str| format!("{at}/{name}");
        self.poll_interval = r.duration(&key("poll-interval")).unwrap_or(self.poll_interval);
        self.task_timeout = r.duration(&key("task-timeout")).unwrap_or(self.task_timeout);
        self.prune_budget = r.whole(&key("prune-budget"), 0).unwrap_or(self.prune_budget);
        self.concurrency = self.concurrency.read(r, &key("concurrency"));
        if let Some(tag) = r.text(&key("owner-tag")) {
            if is_owner_tag(tag) {
                self.owner_tag = tag.to_owned();
            } else {
                let help = "lower-case letters, digits and _ - + . (not - + . first)";
                r.error(&key("owner-tag"), "invalid-value", format!("`{tag}` is not a tag for PVE"), help);
            }
        }
        self
    }

    /// Lays the command line over these values.
    #[must_use]
    pub fn with(mut self, overrides: &Overrides) -> Self {
        self.poll_interval = overrides.poll_interval.unwrap_or(self.poll_interval);
        self.task_timeout = overrides.task_timeout.unwrap_or(self.task_timeout);
        self.prune_budget = overrides.prune_budget.unwrap_or(self.prune_budget);
        self.concurrency = overrides.concurrency.unwrap_or(self.concurrency);
        self
    }
}

impl Concurrency {
    fn read(mut self, r: &mut Reader<'_>, at: &str) -> Self {
        match r.get(at) {
            Some(value) if value.is_object() => {
                r.only(at, &["cluster", "node"]);
                self.cluster = r.whole(&format!("{at}/cluster"), 1).unwrap_or(self.cluster);
                self.node = r.whole(&format!("{at}/node"), 1).unwrap_or(self.node);
            }
            Some(value) if !value.is_number() => {
                let help = "a number from 1, or {cluster: 8, node: 4}";
                r.error(at, "wrong-type", "`concurrency` must be a whole number or a mapping", help);
            }
            _ => self.cluster = r.whole(at, 1).unwrap_or(self.cluster),
        }
        self
    }
}

impl Settings {
    /// What holds without any file.
    pub fn defaults(options: &LoadOptions<'_>) -> Self {
        let data_dir = match &options.overrides.data_dir {
            Some(dir) => options.start.join(dir),
            None => default_data_dir(options),
        };
        Self {
            file: None,
            log: Log {
                level: options.overrides.log_level.unwrap_or_default(),
                format: options.overrides.log_format.unwrap_or_default(),
            },
            auth: None,
            ca_file: None,
            credentials: SharedCredentials::default(),
            git: Git { url: None, branch: None, ca_file: None, poll_interval: None },
            reconcile: Reconcile::default().with(&options.overrides),
            listen: options.overrides.listen.clone().unwrap_or_else(|| "127.0.0.1:9494".to_owned()),
            serve: Serve::default(),
            data_dir,
            kinds: Vec::new(),
        }
    }

    /// Reads a process file. `file` is its name in messages, `dir` the folder that relative paths
    /// start from.
    pub(crate) fn read(r: &mut Reader<'_>, dir: &Path, options: &LoadOptions<'_>) -> Self {
        let mut s = Self::defaults(options);
        let over = &options.overrides;
        s.file = Some(r.file.to_owned());
        r.only(
            "",
            &[
                "log",
                "pve",
                "git",
                "reconcile",
                "listen",
                "http",
                "webhook",
                "notify",
                "commit-status",
                "data-dir",
                "kinds",
            ],
        );

        r.only("/log", &["level", "format"]);
        let level = r.choice("/log/level", LogLevel::WORDS);
        let format = r.choice("/log/format", &[("text", LogFormat::Text), ("json", LogFormat::Json)]);
        s.log.level = over.log_level.or(level).unwrap_or_default();
        s.log.format = over.log_format.or(format).unwrap_or_default();

        r.only("/pve", &["auth", "user", "token-id", "token", "token-value", "password", "ca-file"]);
        s.auth = r.choice("/pve/auth", AuthMethod::WORDS);
        s.ca_file = r.text("/pve/ca-file").map(|path| dir.join(path));

        r.only("/git", &["url", "branch", "token", "ca-file", "poll-interval"]);
        s.git.url = r.text("/git/url").and_then(|url| git_url(r, url));
        s.git.branch = r.text("/git/branch").map(str::to_owned);
        s.git.ca_file = r.text("/git/ca-file").map(|path| dir.join(path));
        s.git.poll_interval = r.duration("/git/poll-interval");
        s.credentials = SharedCredentials::read(r);

        s.reconcile = Reconcile::default().read(r, "/reconcile").with(over);
        if let Some(listen) = r.text("/listen")
            && let Some(listen) = listen_address(r, listen)
            && over.listen.is_none()
        {
            s.listen = listen;
        }
        s.serve = Serve::read(r, dir);
        if let Some(path) = r.text("/data-dir")
            && over.data_dir.is_none()
        {
            s.data_dir = dir.join(path);
        }
        s.kinds = kind_grants(r, dir);
        s
    }
}

/// `$XDG_STATE_HOME/proxops`, else `~/.local/state/proxops`. A service gets its own folder from systemd.
fn default_data_dir(options: &LoadOptions<'_>) -> PathBuf {
    let absolute = |name: &str| options.var(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let service = options.var("STATE_DIRECTORY").and_then(|dirs| dirs.split(':').next().map(PathBuf::from));
    service
        .or_else(|| absolute("XDG_STATE_HOME").map(|dir| dir.join("proxops")))
        .or_else(|| absolute("HOME").map(|dir| dir.join(".local/state/proxops")))
        .unwrap_or_else(|| PathBuf::from("/var/lib/proxops"))
}

fn git_url(r: &mut Reader<'_>, url: &str) -> Option<String> {
    match Address::parse(url) {
        Ok(_) => Some(url.to_owned()),
        Err((message, help)) => {
            let code = if message.contains("password") { "secret-in-url" } else { "git-url" };
            r.error("/git/url", code, message, help);
            None
        }
    }
}

/// `host:port`; `:9494` means all addresses.
fn listen_address(r: &mut Reader<'_>, listen: &str) -> Option<String> {
    let parts = listen.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    match parts {
        Some(("", port)) => Some(format!("0.0.0.0:{port}")),
        Some((host, _))
            if host.starts_with('[') == host.contains(':') && !host.contains(char::is_whitespace) =>
        {
            Some(listen.to_owned())
        }
        _ => {
            r.error(
                "/listen",
                "invalid-value",
                "`listen` is not an address with a port",
                "such as 127.0.0.1:9494",
            );
            None
        }
    }
}

fn kind_grants(r: &mut Reader<'_>, dir: &Path) -> Vec<KindGrant> {
    let count = match r.get("/kinds") {
        Some(serde_json::Value::Array(items)) => items.len(),
        Some(_) => {
            r.error(
                "/kinds",
                "wrong-type",
                "`kinds` must be a list",
                "such as [{kind: Pool, allow: [/pools]}]",
            );
            0
        }
        None => 0,
    };
    let mut grants: Vec<KindGrant> = Vec::new();
    for index in 0..count {
        let at = format!("/kinds/{index}");
        if !matches!(r.get(&at), Some(serde_json::Value::Object(_))) {
            let help = "such as {kind: Pool, allow: [/pools]}";
            r.error(&at, "wrong-type", "an entry of `kinds` must be a mapping", help);
            continue;
        }
        r.only(&at, &["kind", "allow", "sha256", "file", "limits"]);
        let Some(kind) = r.text(&format!("{at}/kind")) else {
            r.error(
                &at,
                "missing-field",
                "an entry of `kinds` needs `kind`",
                "such as {kind: Pool, allow: [/pools]}",
            );
            continue;
        };
        if grants.iter().any(|grant| grant.kind == kind) {
            r.error(&at, "duplicate-entry", format!("`{kind}` is listed twice"), "merge the two entries");
        }
        let allow_at = format!("{at}/allow");
        let mut allow = Vec::new();
        for (item, path) in r.texts(&allow_at) {
            if proxops_model::object::is_grant(path) {
                allow.push(path.to_owned());
            } else {
                let help = "such as /pools or /nodes/*/network: plain segments, no slash at the end";
                r.error(&item, "invalid-value", format!("`{path}` is not an API path"), help);
            }
        }
        let sha256 = r
            .text(&format!("{at}/sha256"))
            .map(|text| text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase());
        if let Some(digest) = &sha256
            && (digest.len() != 64 || !digest.chars().all(|c| c.is_ascii_hexdigit()))
        {
            let help = "64 hex digits, as `proxops kinds list` prints them";
            r.error(&format!("{at}/sha256"), "invalid-value", "`sha256` is not a SHA-256 digest", help);
        }
        let file = r.text(&format!("{at}/file")).map(|path| dir.join(path));
        let limits = KindLimits::read(r, &format!("{at}/limits"));
        let location = r.location(&at);
        grants.push(KindGrant { kind: kind.to_owned(), allow, sha256, file, limits, location });
    }
    grants
}
