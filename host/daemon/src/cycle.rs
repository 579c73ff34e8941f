//! A process over a repository, and the cycle of one cluster in two halves: plan, then execute.

use crate::replan::ClusterReplanner;
use crate::status::status;
use crate::{ClusterStatus, Vault, compose, connect, load};
use anyhow::Context as _;
use proxops_exec::{
    Cancel, ClusterLock, ExecEnv, HistoryFilter, Journal, Limits, Progress, Timing, execute, resume,
};
use proxops_kinds::{Kinds, Session, Sources};
use proxops_model::Diagnostic;
use proxops_model::plan::ClusterPlan;
use proxops_plan::{Index, Leftover, Options, Planner, World};
use proxops_pve::{Client, Mode};
use proxops_repo::{Cluster, KindTable, LoadOptions, Reconcile, Repository, Settings, Workspace};
use proxops_secrets::{ClusterSecrets, IdentitySources};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Operations that a status looks back on.
const HISTORY: u32 = 10_000;

/// Whether a cycle may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Plan only; the client refuses every write.
    Look,
    /// Plan, then execute.
    Change,
}

/// A loaded repository with its kinds.
pub struct Process {
    /// Files, settings, clusters.
    pub repository: Repository,
    /// Kinds of this run.
    pub kinds: Arc<Kinds>,
    /// Secret files of all clusters.
    pub secrets: Arc<ClusterSecrets>,
}

/// A planned cluster, ready to execute.
pub struct Planned {
    /// The plan.
    pub plan: ClusterPlan,
    /// What it was made from; absent if the cluster was aborted before.
    index: Option<Arc<Index>>,
    /// Absent if the cluster was aborted or only looked at.
    run: Option<Run>,
}

struct Run {
    client: Client,
    replanner: Arc<ClusterReplanner>,
    vault: Vault,
    journal: Arc<Journal>,
    reconcile: Reconcile,
    // Held for as long as the cycle lasts.
    _lock: ClusterLock,
}

/// Where kinds come from: the binary, the repository, the data directory, the machine, and `--kinds-dir`.
pub fn kind_sources(root: Option<&Path>, settings: &Settings, kinds_dir: Option<&Path>) -> Sources {
    let mut folders: Vec<PathBuf> = root.map(|root| root.join("kinds")).into_iter().collect();
    folders.extend([settings.data_dir.join("kinds"), PathBuf::from("/etc/proxops/kinds")]);
    folders.extend(kinds_dir.map(Path::to_path_buf));
    let pins = settings.kinds.iter().filter_map(|k| Some((k.kind.clone(), k.sha256.clone()?))).collect();
    Sources { builtin: true, folders, files: Vec::new(), pins }
}

impl Process {
    /// Finds the repository, loads the kinds, reads everything.
    ///
    /// # Errors
    /// No repository, or an engine that can't start. Mistakes in files are in `repository.diagnostics`.
    pub fn open(options: &LoadOptions<'_>, kinds_dir: Option<&Path>) -> anyhow::Result<Self> {
        let workspace = Workspace::open(options)?;
        if workspace.settings.git.url.is_some() {
            anyhow::bail!(
                "git.url is set in proxops.yaml, but this version reads only the tree that it runs in: take git.url out, \
                 or run proxops in a clone"
            );
        }
        let settings = &workspace.settings;
        let sources = kind_sources(Some(&workspace.root), settings, kinds_dir);
        let cache = settings.data_dir.join("cache").join("kinds");
        let kinds = Kinds::load(&sources, proxops_kinds::Limits::standard(), Some(&cache))?;
        let table = KindTable::from_infos(kinds.infos());
        let repository = workspace.load(&table, options);
        let used: std::collections::BTreeSet<&str> =
            repository.clusters.iter().flat_map(|c| &c.manifests).map(|m| m.id.kind.as_str()).collect();
        kinds.prepare(used);
        let secrets = Arc::new(ClusterSecrets::new(IdentitySources::from_process()));
        Ok(Self { repository, kinds: Arc::new(kinds), secrets })
    }

    /// Every offline mistake of the repository, in order.
    pub fn validate(&self) -> Vec<Diagnostic> {
        let mut found = self.repository.diagnostics.clone();
        for cluster in &self.repository.clusters {
            let session = self.kinds.session();
            let composed = compose(cluster, &session);
            found.extend(composed.diagnostics);
            for failed in composed.index.failed.values() {
                let d = Diagnostic::error(failed.location.clone(), "kind-fault", failed.why.clone())
                    .with_pointer("/kind")
                    .with_help("the kind's component is broken; other kinds go on")
                    .for_cluster(&cluster.name);
                found.push(d);
            }
        }
        found.sort();
        // A manifest that two clusters share is reported once.
        found.dedup_by(|a, b| {
            let same = a.location == b.location
                && a.code == b.code
                && a.message == b.message
                && a.pointer == b.pointer;
            if same && a.cluster != b.cluster {
                b.cluster = None;
            }
            same
        });
        found
    }

    /// Plans one cluster. Never fails as a whole: an aborted cluster says why in its plan.
    pub async fn plan(&self, cluster: &Cluster, wish: Wish, cancel: &Cancel) -> Planned {
        let mut planned = match self.try_plan(cluster, wish, cancel).await {
            Ok(planned) => planned,
            Err(error) => Planned {
                plan: ClusterPlan::aborted(&cluster.name, format!("{error:#}")),
                index: None,
                run: None,
            },
        };
        planned.plan.commit.clone_from(&self.repository.commit);
        planned.plan.dirty = self.repository.dirty;
        planned
    }

    async fn try_plan(&self, cluster: &Cluster, wish: Wish, cancel: &Cancel) -> anyhow::Result<Planned> {
        let session = Arc::new(self.kinds.session());
        let index = self.composed(cluster, &session)?;
        let config = cluster.config.as_ref().context("the cluster has no configuration")?;
        let mode = if wish == Wish::Change { Mode::ReadWrite } else { Mode::ReadOnly };
        let (client, vault) = connect(config, &self.secrets, mode)?;
        let data_dir = &self.repository.settings.data_dir;
        let timing = Timing { task: config.reconcile.task_timeout, ..Timing::default() };
        let (lock, journal, resumed) = match wish {
            Wish::Change => {
                let lock = ClusterLock::acquire(data_dir, &cluster.name)?;
                let journal = Arc::new(Journal::open(data_dir)?);
                let resumed = resume(&client, &journal, &cluster.name, &timing, cancel).await?;
                (Some(lock), Some(journal), resumed)
            }
            Wish::Look => (None, None, looked_up(data_dir, &cluster.name)),
        };
        let owner_tag = &config.reconcile.owner_tag;
        let mut world = load::load(&client, &index, owner_tag).await?;
        world.leftovers = resumed
            .owed
            .iter()
            .map(|(vmid, owed)| {
                (
                    *vmid,
                    Leftover {
                        fresh_clone_of: owed.fresh_clone_of.clone(),
                        rebuild_seed: owed.rebuild_seed,
                        grow: owed.grow.clone(),
                    },
                )
            })
            .collect();
        world.busy.clone_from(&resumed.busy);
        for note in &resumed.notes {
            tracing::info!(cluster = cluster.name, "{note}");
        }
        let options = Options {
            prune_budget: config.reconcile.prune_budget,
            owner_tag: owner_tag.clone(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        };
        let world = Arc::new(world);
        let plan = plan_blocking(&index, &session, &vault, &options, &world).await?;
        let kept = Some(Arc::clone(&index));
        let run = lock.zip(journal).map(|(lock, journal)| Run {
            replanner: Arc::new(ClusterReplanner {
                client: client.clone(),
                index,
                kinds: session,
                vault: vault.clone(),
                options,
                world,
            }),
            client,
            vault,
            journal,
            reconcile: config.reconcile.clone(),
            _lock: lock,
        });
        Ok(Planned { plan, index: kept, run })
    }

    /// The cluster's index, or its mistakes as one error.
    fn composed(&self, cluster: &Cluster, session: &Session) -> anyhow::Result<Arc<Index>> {
        let composed = compose(cluster, session);
        let mut errors: Vec<String> = self
            .repository
            .errors_of(&cluster.name)
            .chain(composed.diagnostics.iter().filter(|d| d.is_error()))
            .map(ToString::to_string)
            .collect();
        errors.sort();
        errors.dedup();
        if !errors.is_empty() {
            anyhow::bail!("{}", errors.join("\n"));
        }
        Ok(Arc::new(composed.index))
    }

    /// Executes a planned cluster; fills each action's end.
    pub async fn execute(&self, planned: &mut Planned, progress: Arc<dyn Progress>, cancel: Cancel) {
        let Some(run) = &planned.run else { return };
        let env = ExecEnv {
            cluster: planned.plan.cluster.clone(),
            commit: planned.plan.commit.clone(),
            actor: actor(),
            client: Arc::new(run.client.clone()),
            journal: Arc::clone(&run.journal),
            replanner: Arc::clone(&run.replanner) as Arc<dyn proxops_exec::Replanner>,
            secrets: Arc::new(run.vault.clone()),
            progress,
            limits: Limits {
                cluster: run.reconcile.concurrency.cluster as usize,
                node: run.reconcile.concurrency.node as usize,
            },
            timing: Timing { task: run.reconcile.task_timeout, ..Timing::default() },
            owner_tag: run.reconcile.owner_tag.clone(),
            cancel,
        };
        execute(&mut planned.plan, &env).await;
    }
}

impl Planned {
    /// The state of every resource, with what the journal knows of it.
    pub fn status(&self, process: &Process) -> ClusterStatus {
        let data_dir = &process.repository.settings.data_dir;
        let filter = HistoryFilter { cluster: Some(self.plan.cluster.clone()), ..HistoryFilter::default() };
        let history = match Journal::open_existing(data_dir) {
            Ok(Some(journal)) => journal.history(&filter, HISTORY).unwrap_or_default(),
            Err(error) => {
                tracing::warn!("the operation journal can't be read: {error}");
                Vec::new()
            }
            Ok(None) => Vec::new(),
        };
        status(&self.plan, self.index.as_deref(), &history)
    }
}

/// Who runs this process, as `user@machine`, for the audit trail.
fn actor() -> Option<String> {
    let user = ["SUDO_USER", "USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()))
        .or_else(|| {
            let uid = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").ok()?);
            Some(format!("uid {uid}"))
        })?;
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match machine.trim() {
        "" => Some(user),
        machine => Some(format!("{user}@{machine}")),
    }
}

/// What earlier runs owe, without touching the data directory.
fn looked_up(data_dir: &Path, cluster: &str) -> proxops_exec::Resumed {
    let mut resumed = proxops_exec::Resumed::default();
    // A plan that is only looked at must not fail on a journal that can't be opened for writing.
    match Journal::open_existing(data_dir)
        .and_then(|journal| journal.map_or(Ok(Default::default()), |journal| journal.owed(cluster)))
    {
        Ok(owed) => resumed.owed = owed,
        Err(error) => tracing::warn!(cluster, "what an unfinished run left to do is not known: {error}"),
    }
    resumed
}

async fn plan_blocking(
    index: &Arc<Index>,
    session: &Arc<Session>,
    vault: &Vault,
    options: &Options,
    world: &Arc<World>,
) -> anyhow::Result<ClusterPlan> {
    let (index, session, world) = (Arc::clone(index), Arc::clone(session), Arc::clone(world));
    let (vault, options) = (vault.clone(), options.clone());
    Ok(tokio::task::spawn_blocking(move || {
        Planner { index: &index, kinds: &*session, secrets: &vault, options: &options }.plan(&world)
    })
    .await?)
}
