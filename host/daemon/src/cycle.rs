//! A process over a repository, and the cycle of one cluster in two halves: plan, then execute.

use crate::connect::{Connected, connect};
use crate::recall::{Answered, Recall};
use crate::replan::ClusterReplanner;
use crate::status::status;
use crate::tree::{self, Tree};
use crate::{ClusterStatus, Composed, Vault, compose, load, objects};
use anyhow::Context as _;
use proxops_exec::{
    Cancel, ClusterLock, ExecEnv, Journal, Limits as Parallel, Progress, Timing, execute, resume,
};
use proxops_kinds::{Kinds, Limits, Session, Sources};
use proxops_model::Diagnostic;
use proxops_model::Severity;
use proxops_model::object::Grants;
use proxops_model::plan::{Anomaly, ClusterPlan};
use proxops_plan::{Index, Leftover, Options, Planner, World};
use proxops_pve::{Client, Mode};
use proxops_repo::{
    Cluster, KindLimits, KindTable, LoadOptions, Reconcile, Repository, Settings, Snapshot, Workspace,
};
use proxops_secrets::{ClusterSecrets, IdentitySources};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// Whether a cycle may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Plan only; the client refuses every write.
    Look,
    /// Plan, then execute.
    Change,
}

/// A loaded repository with its kinds. A clone shares kinds and secrets.
#[derive(Clone)]
pub struct Process {
    /// Files, settings, clusters.
    pub repository: Repository,
    /// Kinds of this run.
    pub kinds: Arc<Kinds>,
    /// Secret files of all clusters.
    pub secrets: Arc<ClusterSecrets>,
    /// The fetched tree, which must stay on the disk for as long as it is read.
    snapshot: Option<Snapshot>,
    /// Why the last refresh changed nothing.
    pub(crate) kept: Option<String>,
    /// What the kinds were loaded from.
    kinds_seen: Vec<String>,
    /// What the kinds said of each cluster's manifests. It depends on nothing but this tree and these kinds.
    composed: Arc<Mutex<BTreeMap<String, Arc<Composed>>>>,
    /// What these kinds said of each cluster's live objects in its last cycle.
    answered: Arc<Mutex<BTreeMap<String, Arc<Answered>>>>,
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
    let files = settings.kinds.iter().filter_map(|k| k.file.clone()).collect();
    let limits = settings.kinds.iter().filter(|k| k.limits != KindLimits::default());
    let limits = limits.map(|k| (k.kind.clone(), own_limits(&k.limits))).collect();
    Sources { builtin: true, folders, files, pins, limits }
}

/// The standard limits with what an entry of `kinds` says instead.
fn own_limits(own: &KindLimits) -> Limits {
    let all = Limits::standard();
    Limits {
        memory: own.memory.unwrap_or(all.memory),
        fuel: own.fuel.unwrap_or(all.fuel),
        deadline: own.deadline.unwrap_or(all.deadline),
        output_bytes: own.output_bytes.unwrap_or(all.output_bytes),
        output_items: own.output_items.unwrap_or(all.output_items),
        table_elements: own.table_elements.unwrap_or(all.table_elements),
        instances: own.instances.unwrap_or(all.instances),
        ..all
    }
}

impl Process {
    /// Finds or fetches the repository, loads the kinds, reads everything. Blocks on the network if `git.url` is set.
    ///
    /// # Errors
    /// No repository, a first fetch that failed, or an engine that can't start. Mistakes in files are in
    /// `repository.diagnostics`.
    pub fn open(options: &LoadOptions<'_>, kinds_dir: Option<&Path>) -> anyhow::Result<Self> {
        Self::build(options, kinds_dir, false, Self::fresh_secrets(), None, &AtomicBool::new(false))
    }

    /// The same without the network, if there is a tree here: whatever `git.url` says, that tree is read.
    ///
    /// # Errors
    /// As [`Process::open`].
    pub fn open_offline(options: &LoadOptions<'_>, kinds_dir: Option<&Path>) -> anyhow::Result<Self> {
        Self::build(options, kinds_dir, true, Self::fresh_secrets(), None, &AtomicBool::new(false))
    }

    fn fresh_secrets() -> Arc<ClusterSecrets> {
        Arc::new(ClusterSecrets::new(IdentitySources::from_process()))
    }

    pub(crate) fn build(
        options: &LoadOptions<'_>,
        kinds_dir: Option<&Path>,
        offline: bool,
        secrets: Arc<ClusterSecrets>,
        before: Option<&Self>,
        stop: &AtomicBool,
    ) -> anyhow::Result<Self> {
        let Tree { workspace, snapshot } =
            tree::find(Workspace::open(options)?, options, &secrets, offline, stop)?;
        let settings = &workspace.settings;
        let sources = kind_sources(Some(&workspace.root), settings, kinds_dir);
        let cache = settings.data_dir.join("cache").join("kinds");
        let kinds_seen = seen(&sources);
        let kinds = match before.filter(|before| before.kinds_seen == kinds_seen) {
            Some(before) => Arc::clone(&before.kinds),
            None => Arc::new(Kinds::load(&sources, Limits::standard(), Some(&cache))?),
        };
        let table = KindTable::from_infos(kinds.infos());
        let repository = workspace.load(&table, options);
        let used: std::collections::BTreeSet<&str> =
            repository.clusters.iter().flat_map(|c| &c.manifests).map(|m| m.id.kind.as_str()).collect();
        kinds.prepare(used);
        let (composed, answered) = Default::default();
        let mut next =
            Self { repository, kinds, secrets, snapshot, kept: None, kinds_seen, composed, answered };
        if let Some(before) = before.filter(|before| Arc::ptr_eq(&before.kinds, &next.kinds)) {
            next.inherit(before);
        }
        Ok(next)
    }

    /// Why the tree is not what its source holds, or the configuration not what the disk holds, if it is so.
    pub fn stale(&self) -> Option<&str> {
        let fetched = self.snapshot.as_ref().and_then(|snapshot| snapshot.stale.as_deref());
        self.kept.as_deref().or(fetched)
    }

    /// Every offline mistake of the repository, in order.
    pub fn validate(&self) -> Vec<Diagnostic> {
        let mut found = self.repository.diagnostics.clone();
        for cluster in &self.repository.clusters {
            let composed = self.composition(cluster, &self.kinds.session());
            found.extend(composed.diagnostics.iter().cloned());
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
        planned.plan.stale = self.stale().is_some();
        planned
    }

    async fn try_plan(&self, cluster: &Cluster, wish: Wish, cancel: &Cancel) -> anyhow::Result<Planned> {
        let session = Arc::new(self.kinds.session());
        let index = self.composed(cluster, &session)?;
        self.one_git_token()?;
        let config = cluster.config.as_ref().context("the cluster has no configuration")?;
        let mode = if wish == Wish::Change { Mode::ReadWrite } else { Mode::ReadOnly };
        let Connected { client, vault, kept } = connect(config, &self.secrets, mode)?;
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
        let settings = &self.repository.settings;
        let grants = Grants::new(settings.kinds.iter().map(|k| (k.kind.clone(), k.allow.clone())));
        let mut world = load::load(&client, &index, owner_tag).await?;
        objects::load(&client, &index, self.kinds.infos(), &grants, owner_tag, &mut world).await;
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
                        making: owed.making,
                    },
                )
            })
            .collect();
        world.busy.clone_from(&resumed.busy);
        world.busy_resources.clone_from(&resumed.busy_resources);
        world.stopped_in_vain.clone_from(&resumed.stopped_in_vain);
        for note in &resumed.notes {
            tracing::info!(cluster = cluster.name, "{note}");
        }
        let options = Options {
            prune_budget: config.reconcile.prune_budget,
            owner_tag: owner_tag.clone(),
            grants,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        };
        let world = Arc::new(world);
        let mut plan = self.planned(&index, &session, &vault, &options, &world).await?;
        plan.anomalies.extend(kept.map(|why| secrets_kept(&why)));
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

    /// The plan, off the threads that answer.
    async fn planned(
        &self,
        index: &Arc<Index>,
        session: &Arc<Session>,
        vault: &Vault,
        options: &Options,
        world: &Arc<World>,
    ) -> anyhow::Result<ClusterPlan> {
        let known = || self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known().get(&index.cluster).cloned().unwrap_or_default();
        let kinds = Recall::new(session, &before);
        let (on, world, vault, options) =
            (Arc::clone(index), Arc::clone(world), vault.clone(), options.clone());
        let work = move || {
            let plan = Planner { index: &on, kinds: &kinds, secrets: &vault, options: &options }.plan(&world);
            (plan, kinds.answered())
        };
        let (plan, answered) = tokio::task::spawn_blocking(work).await?;
        known().insert(index.cluster.clone(), Arc::new(answered));
        Ok(plan)
    }

    /// Two clusters with different git tokens stop all: there is one repository.
    fn one_git_token(&self) -> anyhow::Result<()> {
        let configs: Vec<_> = self.repository.clusters.iter().filter_map(|c| c.config.clone()).collect();
        tree::git_token(&configs, &self.repository.settings.credentials, &self.secrets).map(|_| ())
    }

    /// Takes over what kinds answered, and the compositions of clusters that are the same in both trees.
    fn inherit(&mut self, before: &Self) {
        self.answered = Arc::clone(&before.answered);
        let here = |name: &String| self.repository.clusters.iter().any(|cluster| cluster.name == *name);
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).retain(|name, _| here(name));
        let known = before.composed.lock().unwrap_or_else(PoisonError::into_inner);
        let nodes = |cluster: &Cluster| cluster.config.as_ref().map(|config| config.nodes.clone());
        for now in &self.repository.clusters {
            let then = before.repository.clusters.iter().find(|then| then.name == now.name);
            let same = then.is_some_and(|then| then.manifests == now.manifests && nodes(then) == nodes(now));
            if let Some(composed) = known.get(&now.name).filter(|_| same) {
                let mut ours = self.composed.lock().unwrap_or_else(PoisonError::into_inner);
                ours.insert(now.name.clone(), Arc::clone(composed));
            }
        }
    }

    /// The cluster's composition, worked out once. Where a kind failed, it is asked again the next time.
    pub(crate) fn composition(&self, cluster: &Cluster, session: &Session) -> Arc<Composed> {
        let known = || self.composed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(composed) = known().get(&cluster.name) {
            return Arc::clone(composed);
        }
        let composed = Arc::new(compose(cluster, session));
        if composed.index.failed.is_empty() {
            known().insert(cluster.name.clone(), Arc::clone(&composed));
        }
        composed
    }

    /// The cluster's index, or its mistakes as one error.
    fn composed(&self, cluster: &Cluster, session: &Session) -> anyhow::Result<Arc<Index>> {
        let composed = self.composition(cluster, session);
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
        Ok(Arc::clone(&composed.index))
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
            limits: Parallel {
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
        let history = match Journal::open_existing(data_dir) {
            Ok(Some(journal)) => journal.latest(&self.plan.cluster).unwrap_or_default(),
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

/// Name, size and time of every component's file, and the pins: what decides which kinds there are.
fn seen(sources: &Sources) -> Vec<String> {
    let in_folder = |folder: &PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let files = sources.folders.iter().flat_map(in_folder).chain(sources.files.iter().cloned());
    let mut seen: Vec<String> = files
        .filter(|file| file.extension().is_some_and(|e| e == "wasm"))
        .map(|file| match std::fs::metadata(&file) {
            Ok(meta) => format!("{} {} {:?}", file.display(), meta.len(), meta.modified().ok()),
            Err(error) => format!("{} {error}", file.display()),
        })
        .chain(sources.pins.iter().map(|(kind, pin)| format!("{kind} {pin}")))
        .chain(sources.limits.iter().map(|(kind, limits)| format!("{kind} {limits:?}")))
        .collect();
    seen.sort();
    seen
}

/// The secrets file broke while the process runs.
fn secrets_kept(why: &str) -> Anomaly {
    Anomaly {
        code: "secrets-kept".to_owned(),
        severity: Severity::Warning,
        kind: "*".to_owned(),
        name: "*".to_owned(),
        node: None,
        vmid: None,
        message: format!("the last good secrets are used: {why}"),
        help: Some("mend the secrets file; it is read again at the next cycle".to_owned()),
    }
}

/// What earlier runs owe, without touching the data directory.
fn looked_up(data_dir: &Path, cluster: &str) -> proxops_exec::Resumed {
    let mut resumed = proxops_exec::Resumed::default();
    // A plan that is only looked at must not fail on a journal that can't be opened for writing.
    let known = Journal::open_existing(data_dir).and_then(|journal| match journal {
        Some(journal) => Ok((journal.owed(cluster)?, journal.stopped_in_vain(cluster)?)),
        None => Ok(Default::default()),
    });
    match known {
        Ok((owed, stopped)) => (resumed.owed, resumed.stopped_in_vain) = (owed, stopped),
        Err(error) => tracing::warn!(cluster, "what an unfinished run left to do is not known: {error}"),
    }
    resumed
}
