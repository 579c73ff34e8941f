//! From arguments to a loaded process; logging.

use crate::args::Global;
use crate::say;
use anyhow::bail;
use proxops_daemon::{Process, Refreshed, kind_sources};
use proxops_kinds::{Kinds, Limits};
use proxops_model::kind::KindInfo;
use proxops_repo::{Cluster, LoadOptions, RepoError, Settings, Workspace};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Log lines go to stderr. `PROXOPS_LOG` takes a filter; else -v and `log.level` decide.
pub fn logging(global: &Global, level: Option<&str>, json: bool) {
    const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];
    let configured = LEVELS.iter().position(|l| Some(*l) == level).unwrap_or(1);
    let asked = if global.verbose == 0 { 0 } else { 1 + usize::from(global.verbose) };
    let base = LEVELS[configured.max(asked).min(LEVELS.len() - 1)];
    // Only our own rooms: libraries print what they send at these levels.
    let filter = std::env::var("PROXOPS_LOG").unwrap_or_else(|_| {
        let rooms =
            ["proxops", "cli", "daemon", "adopt", "exec", "plan", "kinds", "pve", "repo", "secrets", "sim"];
        let mut filter = "warn".to_owned();
        for room in rooms {
            let name = if room == "proxops" { room.to_owned() } else { format!("proxops_{room}") };
            filter.push_str(&format!(",{name}={base}"));
        }
        filter
    });
    let builder = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(filter))
        .with_writer(|| say::Stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    if json {
        let _ = builder.json().try_init();
    } else {
        let _ = builder.without_time().with_target(false).try_init();
    }
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn options(global: &Global) -> anyhow::Result<LoadOptions<'static>> {
    Ok(Place { start: std::env::current_dir()?, found: None }.options(global))
}

/// Where a process that runs on began. Every later look starts from here: the working directory may be deleted, or
/// another folder may have its name by then.
pub struct Place {
    start: PathBuf,
    found: Option<PathBuf>,
}

impl Place {
    /// The working directory, and the repository around it if there is one.
    ///
    /// # Errors
    /// There is no working directory.
    pub fn here(global: &Global) -> anyhow::Result<Self> {
        let options = options(global)?;
        let found = proxops_repo::discover_root(&options).ok();
        Ok(Self { start: options.start, found })
    }

    fn options(&self, global: &Global) -> LoadOptions<'static> {
        LoadOptions {
            start: self.start.clone(),
            found: self.found.clone(),
            git_path: global.git_path.clone(),
            config: global.config.clone(),
            env: &environment,
            overrides: global.overrides(),
        }
    }
}

/// Kinds without the manifests of a repository.
pub struct Known {
    /// The kinds.
    pub kinds: Kinds,
    /// Of the repository, or what holds without one.
    pub settings: Settings,
}

/// Loads kinds, and `files` as further ones. Outside of a repository there are those of this machine.
pub fn kinds(global: &Global, files: &[PathBuf]) -> anyhow::Result<Known> {
    let options = options(global)?;
    let (root, settings) = match Workspace::open(&options) {
        Ok(workspace) => (Some(workspace.root), workspace.settings),
        Err(RepoError::NotFound { .. }) => (None, Settings::defaults(&options)),
        Err(error) => return Err(error.into()),
    };
    logging(global, Some(settings.log.level.as_str()), settings.log.format == proxops_repo::LogFormat::Json);
    let mut sources = kind_sources(root.as_deref(), &settings, global.kinds_dir.as_deref());
    sources.files.extend_from_slice(files);
    let kinds =
        Kinds::load(&sources, Limits::standard(), Some(&settings.data_dir.join("cache").join("kinds")))?;
    for problem in kinds.problems() {
        tracing::warn!("{problem}");
    }
    Ok(Known { kinds, settings })
}

/// Settings alone. Outside of a repository those that hold without one.
pub fn settings(global: &Global) -> anyhow::Result<Settings> {
    let options = options(global)?;
    let settings = match Workspace::open(&options) {
        Ok(workspace) => workspace.settings,
        Err(RepoError::NotFound { .. }) => Settings::defaults(&options),
        Err(error) => return Err(error.into()),
    };
    logging(global, Some(settings.log.level.as_str()), settings.log.format == proxops_repo::LogFormat::Json);
    Ok(settings)
}

/// The kind of this name, in any case of letters.
pub fn kind_info<'k>(kinds: &'k Kinds, name: &str) -> anyhow::Result<&'k KindInfo> {
    if let Some(info) = kinds.infos().find(|i| i.kind.eq_ignore_ascii_case(name)) {
        return Ok(info);
    }
    if let Some(problem) =
        kinds.problems().iter().find(|p| p.kind.as_deref().is_some_and(|k| k.eq_ignore_ascii_case(name)))
    {
        bail!("{problem}");
    }
    match proxops_repo::nearest(name, kinds.infos().map(|i| i.kind.as_str())) {
        Some(near) => bail!("there is no kind `{name}`; did you mean {near}?"),
        None => bail!(
            "there is no kind `{name}`; there are {}",
            kinds.infos().map(|i| i.kind.as_str()).collect::<Vec<_>>().join(", ")
        ),
    }
}

/// Loads repository and kinds; fetches the repository if `git.url` is set.
pub fn process(global: &Global) -> anyhow::Result<Process> {
    // The settings are read to log their own reading, so the fetch logs as the command line says.
    early_logging(global)?;
    let options = options(global)?;
    logged(global, Process::open(&options, global.kinds_dir.as_deref())?)
}

/// The same, of the tree that is here, and without the network.
pub fn process_offline(global: &Global) -> anyhow::Result<Process> {
    let options = options(global)?;
    logged(global, Process::open_offline(&options, global.kinds_dir.as_deref())?)
}

fn early_logging(global: &Global) -> anyhow::Result<()> {
    let workspace = Workspace::open(&options(global)?)?;
    if workspace.source().is_some() {
        let log = workspace.settings.log;
        logging(global, Some(log.level.as_str()), log.format == proxops_repo::LogFormat::Json);
    }
    Ok(())
}

fn logged(global: &Global, process: Process) -> anyhow::Result<Process> {
    let log = &process.repository.settings.log;
    logging(global, Some(log.level.as_str()), log.format == proxops_repo::LogFormat::Json);
    for problem in process.kinds.problems() {
        tracing::warn!("{problem}");
    }
    Ok(process)
}

/// Looks at files and source again, for a process that runs on.
///
/// # Errors
/// Why everything stays as it was.
pub fn refresh(
    process: &mut Process,
    global: &Global,
    place: &Place,
    stop: &AtomicBool,
) -> Result<(), String> {
    // git can't be asked without one; with the folder back, paths of the environment lead where they did.
    if std::env::current_dir().is_err() {
        let _ = std::env::set_current_dir(&place.start).or_else(|_| std::env::set_current_dir("/"));
    }
    match process.refresh(&place.options(global), global.kinds_dir.as_deref(), stop) {
        Refreshed::Taken => Ok(()),
        Refreshed::Kept(why) => Err(why),
    }
}

/// The clusters to work on, of which there is at least one: a tree without any is a mistake, not converged.
///
/// # Errors
/// There is none; as [`clusters`].
pub fn some_clusters<'p>(process: &'p Process, global: &Global) -> anyhow::Result<Vec<&'p Cluster>> {
    if process.repository.clusters.is_empty() {
        let errors: Vec<String> = process.repository.global_errors().map(ToString::to_string).collect();
        bail!("{}", errors.join("\n"));
    }
    clusters(process, global)
}

/// The clusters that `--cluster` selects, all without it.
pub fn clusters<'p>(process: &'p Process, global: &Global) -> anyhow::Result<Vec<&'p Cluster>> {
    let all = &process.repository.clusters;
    for name in &global.cluster {
        if !all.iter().any(|c| c.name == *name) {
            let near = proxops_repo::nearest(name, all.iter().map(|c| c.name.as_str()));
            match near {
                Some(near) => bail!("the repository has no cluster {name}; did you mean {near}?"),
                None => bail!(
                    "the repository has no cluster {name}; it has {}",
                    all.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ")
                ),
            }
        }
    }
    Ok(all.iter().filter(|c| global.cluster.is_empty() || global.cluster.contains(&c.name)).collect())
}
