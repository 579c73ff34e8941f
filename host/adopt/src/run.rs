//! One run over one cluster.

use crate::draft::{Draft, Trouble};
use crate::drafter::{AllFields, Drafter, Drawn, all_fields, processors};
use crate::existing::{Existing, Known, Texts, replaceable};
use crate::files::{self, Over, Wrote};
use crate::read::{self, File, Readings};
use crate::report::{GapNote, HoleNote, Noted, Report};
use crate::select::{Wanted, only};
use crate::tree::{Tree, steps};
use crate::{Progress, names, target, yaml};
use anyhow::{Context as _, bail};
use proxops_daemon::{Connected, Process, connect, load};
use proxops_model::kind::{Context, GuestType, KindApi, KindInfo, KindSet, Live, Resolved, Target};
use proxops_plan::{GuestFact, Index, World};
use proxops_pve::Mode;
use proxops_repo::Cluster;
use proxops_secrets::{IdentitySources, SecretsFile, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a run is done.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Kinds and vmids; empty = everything.
    pub only: Vec<String>,
    /// Public keys that the secrets document lacks may be added to it.
    pub secrets: bool,
    /// Files that are there may be written again.
    pub force: bool,
    /// Nothing is written.
    pub dry_run: bool,
}

/// Adopts what the cluster has.
///
/// # Errors
/// The configuration or the inventory can't be read, `--only` names what is not there, or a file can't be written.
pub async fn adopt(
    process: &Process,
    cluster: &Cluster,
    options: &Options,
    progress: &dyn Progress,
) -> anyhow::Result<Report> {
    let repository = &process.repository;
    let broken: Vec<String> = repository.global_errors().map(ToString::to_string).collect();
    if !broken.is_empty() {
        bail!("{}", broken.join("\n"));
    }
    let config = cluster.config.as_ref().with_context(|| {
        format!("cluster {} has no usable config.yaml; see `proxops validate`", cluster.name)
    })?;
    let mistakes = repository.errors_of(&cluster.name).count();
    if mistakes > 0 {
        tracing::warn!(
            cluster = cluster.name,
            "its files have {mistakes} errors; `proxops validate` shows them"
        );
    }
    // Read first: what changes between this moment and the write is somebody else's.
    let texts = if options.force { replaceable(repository, cluster) } else { Texts::new() };
    let document = match (&config.secrets_file, options.secrets) {
        (Some(path), true) => Some(SecretsFile::open(path, &IdentitySources::from_process())?),
        (None, true) => bail!(
            "--adopt-secrets needs a secrets document, and cluster {} has none: add secrets-file to its config.yaml \
             (`proxops init` makes one)",
            cluster.name
        ),
        (_, false) => None,
    };
    let Connected { client, vault, .. } = connect(config, &process.secrets, Mode::ReadOnly)?;
    let public_keys = document.as_ref().map_or_else(|| vault.public_keys(), |d| d.document.public_keys());
    let session: Arc<dyn KindSet> = Arc::new(process.kinds.session());
    let kinds: &dyn KindSet = &*session;
    let words = only(&options.only, kinds)?;
    let index = Index {
        cluster: cluster.name.clone(),
        nodes: config.nodes.iter().cloned().collect(),
        ..Index::default()
    };
    let mut world = load::survey(&client, &index, &config.reconcile.owner_tag)
        .await
        .with_context(|| format!("cluster {} can't be read", cluster.name))?;
    world.context.public_keys = public_keys;
    let mut wanted = Wanted::new(&words, &world, &index, kinds)?;
    compile(process, &wanted, &world, kinds);
    let existing = tokio::task::block_in_place(|| Existing::find(repository, cluster, kinds, &texts));
    let mut run = Run {
        kinds,
        fields: Arc::new(all_fields(kinds)),
        cluster: &cluster.name,
        options,
        existing,
        world,
        report: Report { cluster: cluster.name.clone(), dry_run: options.dry_run, ..Report::default() },
        pages: Vec::new(),
        new_keys: BTreeMap::new(),
        lines: BTreeSet::new(),
    };
    run.leave_described(&mut wanted, &index);
    let guests = run.world.guests.values().filter(|f| wanted.guests.contains(&f.vmid)).count();
    progress.begin(guests);
    let mut readings = Readings::default();
    read::files(&client, &run.world, &index, &wanted, kinds, &mut readings).await;
    let mut reach = run.known_references();
    reach.extend(tokio::task::block_in_place(|| run.draft_files(&session, &readings.files)));
    // Templates first: other guests may refer to them.
    let mut drawn = Drawn::new();
    for templates in [true, false] {
        let drafter = Arc::new(run.drafter(&session, &reach, run.guest_names(&Readings::default(), &index)));
        let all = run.world.guests.values().filter(|f| f.template == templates && index.allows(&f.node));
        let facts = all.filter(|f| wanted.guests.contains(&f.vmid)).collect();
        let (hand_on, drawing) = drafter.draw();
        read::guests(&client, &run.world, &index, facts, hand_on, progress, &mut readings).await;
        drawn.extend(drawing.finish().await?);
        if templates {
            reach.extend(drawn.values().filter_map(|d| Reach::anywhere(d.outcome.as_ref().ok()?)));
        }
    }
    read::strays(&client, &run.world, &index, &mut readings)
        .await
        .with_context(|| format!("cluster {} can't be read", cluster.name))?;
    tokio::task::block_in_place(|| run.draft_guests(&session, &reach, &readings, &index, drawn));
    run.report.skipped.extend(readings.skipped);
    run.report.noted.extend(readings.noted);
    if client.writes() != 0 {
        bail!(
            "{} writes were sent to PVE by a run that only reads: nothing is written here",
            client.writes()
        );
    }
    if !options.dry_run {
        run.save_keys(document)?;
        tokio::task::block_in_place(|| run.write(&repository.root))?;
    }
    Ok(run.finish())
}

/// Compiles the kinds that will be asked while PVE is read.
fn compile(process: &Process, wanted: &Wanted, world: &World, kinds: &dyn KindSet) {
    let guests = wanted.guests.iter().filter_map(|vmid| world.guests.get(vmid));
    let mut names: BTreeSet<String> = guests
        .filter_map(|g| Some(target::guest(kinds, g.guest_type, g.template)?.info().kind.clone()))
        .collect();
    let files = wanted.kinds.iter().filter(|name| {
        kinds.get(name).is_some_and(|kind| matches!(kind.info().target, Target::Artifact { .. }))
    });
    names.extend(files.cloned());
    let kinds = process.kinds.clone();
    tokio::task::spawn_blocking(move || kinds.prepare(names.iter().map(String::as_str)));
}

/// A manifest with its place.
struct Page {
    file: String,
    text: String,
    /// The text of a file that describes the same object, whose place it takes.
    replaces: Option<Arc<[u8]>>,
    about: Noted,
    draft: Draft,
}

struct Run<'a> {
    kinds: &'a dyn KindSet,
    fields: Arc<AllFields>,
    cluster: &'a str,
    options: &'a Options,
    existing: Existing,
    world: World,
    report: Report,
    pages: Vec<Page>,
    /// Full names and keys for the secrets document.
    new_keys: BTreeMap<String, String>,
    /// Files that the composition does not list yet.
    lines: BTreeSet<String>,
}

/// One object to draft.
struct Job<'a> {
    kind: &'a dyn KindApi,
    name: String,
    live: Live,
    about: Noted,
    known: Option<Known>,
}

/// An artifact or template that guests may refer to, and the nodes that reach it; empty = all.
struct Reach {
    resolved: Resolved,
    nodes: BTreeSet<String>,
}

impl Reach {
    /// What a template publishes: guests of every node may refer to it.
    fn anywhere((draft, _): &(Draft, String)) -> Option<Self> {
        let resolved = Resolved { to: draft.id.clone(), attributes: draft.attributes.clone() };
        Some(Self { resolved, nodes: BTreeSet::new() })
    }
}

impl<'a> Run<'a> {
    /// Whether a manifest that is there may be written again.
    fn may_replace(&self, known: &Known, kind: &str) -> bool {
        self.options.force && known.replaceable.is_some() && known.id.kind == kind
    }

    fn list(&mut self, file: &str) {
        if !self.existing.listed.contains(file) {
            self.lines.insert(file.to_owned());
        }
    }

    /// Why an object that a manifest describes is left alone.
    fn described(&self, known: &Known, kind: &str) -> String {
        if known.id.kind != kind {
            return format!(
                "its vmid is claimed by {} in {}, and it is a {kind}: take that manifest out first",
                known.id, known.file
            );
        }
        match (self.options.force, known.replaceable.is_some()) {
            (true, false) => {
                format!(
                    "{} holds more than this manifest, or is shared with other clusters; edit it by hand",
                    known.file
                )
            }
            _ => format!("{} describes it already", known.file),
        }
    }

    /// Guests that the repository describes are not even read.
    fn leave_described(&mut self, wanted: &mut Wanted, index: &Index) {
        let all = self.world.guests.values().filter(|f| wanted.guests.contains(&f.vmid));
        let guests: Vec<GuestFact> = all.filter(|f| index.allows(&f.node)).cloned().collect();
        for fact in &guests {
            let word = self.kind_of(fact.guest_type, fact.template);
            let Some(known) = self.existing.guests.get(&fact.vmid).cloned() else { continue };
            if self.may_replace(&known, &word) {
                continue;
            }
            wanted.guests.remove(&fact.vmid);
            if known.id.kind == word {
                self.list(&known.file);
            }
            self.report.skipped.push(Noted {
                kind: word.clone(),
                name: known.id.name.clone(),
                node: Some(fact.node.clone()),
                vmid: Some(fact.vmid),
                file: Some(known.file.clone()),
                why: self.described(&known, &word),
            });
        }
    }

    fn kind_of(&self, guest_type: GuestType, template: bool) -> String {
        target::guest(self.kinds, guest_type, template)
            .map_or_else(|| target::guest_word(guest_type, template).to_owned(), |k| k.info().kind.clone())
    }

    /// Asks kinds about objects, with what they may refer to.
    fn drafter(&self, kinds: &Arc<dyn KindSet>, reach: &[Reach], names: BTreeMap<u32, String>) -> Drafter {
        let mut contexts = BTreeMap::new();
        for node in self.world.nodes.keys() {
            let here = reach.iter().filter(|r| r.nodes.is_empty() || r.nodes.contains(node));
            let references = here.map(|r| r.resolved.clone()).collect();
            contexts.insert(node.clone(), Context { references, ..self.world.context.clone() });
        }
        let types = self.world.guests.values().map(|g| (g.vmid, g.guest_type)).collect();
        let (kinds, fields) = (Arc::clone(kinds), Arc::clone(&self.fields));
        Drafter { kinds, fields, contexts, names, types, secrets: self.options.secrets }
    }

    /// Manifests of files, and what guests may refer to.
    fn draft_files(&mut self, kinds: &Arc<dyn KindSet>, read: &[File]) -> Vec<Reach> {
        let jobs = self.file_jobs(read);
        let drafter = self.drafter(kinds, &[], BTreeMap::new());
        let outcomes = in_parallel(&jobs, |job| {
            drafter.draft(job.kind, &job.name, &job.live, job.about.node.as_deref().unwrap_or_default())
        });
        let mut reach = Vec::new();
        for (job, outcome) in jobs.into_iter().zip(outcomes) {
            if let Ok((draft, _)) = &outcome {
                let resolved = Resolved { to: draft.id.clone(), attributes: draft.attributes.clone() };
                reach.push(Reach { resolved, nodes: self.reached(&job.live) });
            }
            self.page(job, outcome);
        }
        reach
    }

    /// Manifests of guests: as drawn while others were read, or anew where name or guest changed since.
    fn draft_guests(
        &mut self,
        kinds: &Arc<dyn KindSet>,
        reach: &[Reach],
        readings: &Readings,
        index: &Index,
        mut drawn: Drawn,
    ) {
        let names = self.guest_names(readings, index);
        let drafter = self.drafter(kinds, reach, names.clone());
        let (jobs, outcomes): (Vec<_>, Vec<_>) = self
            .guest_jobs(readings, &names)
            .into_iter()
            .map(|job| {
                let same = job.about.vmid.and_then(|vmid| drawn.remove(&vmid)).filter(|drawn| {
                    drawn.name == job.name && drawn.kind == job.kind.info().kind && drawn.live == job.live
                });
                (job, same.map(|drawn| drawn.outcome))
            })
            .unzip();
        let anew = in_parallel(&jobs.iter().zip(&outcomes).collect::<Vec<_>>(), |(job, outcome)| {
            let node = job.about.node.as_deref().unwrap_or_default();
            outcome.is_none().then(|| drafter.draft(job.kind, &job.name, &job.live, node))
        });
        for ((job, outcome), anew) in jobs.into_iter().zip(outcomes).zip(anew) {
            if let Some(outcome) = outcome.or(anew) {
                self.page(job, outcome);
            }
        }
    }

    /// A manifest with its place, or why there is none.
    fn page(&mut self, job: Job<'a>, outcome: Result<(Draft, String), Trouble>) {
        let mut about = job.about;
        match outcome {
            Ok((draft, text)) => {
                let file = match &job.known {
                    Some(known) => known.file.clone(),
                    None => format!("{}/{}/{}.yaml", job.kind.info().root, self.cluster, draft.id.name),
                };
                let replaces = job.known.and_then(|known| known.replaceable);
                self.pages.push(Page { file, text, replaces, about, draft });
            }
            Err(trouble) => {
                self.report.failed |= matches!(trouble, Trouble::Fault(_));
                about.why = match trouble {
                    Trouble::Fault(why) => format!("its kind is broken: {why}"),
                    Trouble::Refused(why) => why,
                };
                self.report.skipped.push(about);
            }
        }
    }

    /// Nodes that can use a file: those that have a copy, or all where the storage is shared.
    fn reached(&self, live: &Live) -> BTreeSet<String> {
        let Live::Artifact(copies) = live else { return BTreeSet::new() };
        let shared = |name: &str| self.world.context.storages.iter().any(|s| s.name == name && s.shared);
        if copies.iter().any(|copy| shared(&copy.at.storage)) {
            return BTreeSet::new();
        }
        copies.iter().map(|copy| copy.at.node.clone()).collect()
    }

    /// What manifests that are there already publish.
    fn known_references(&self) -> Vec<Reach> {
        let mut found: BTreeMap<String, Reach> = BTreeMap::new();
        let shared = |name: &str| self.world.context.storages.iter().any(|s| s.name == name && s.shared);
        for known in self.existing.files.values() {
            let nodes = match known.placements.iter().any(|p| shared(&p.storage)) {
                true => BTreeSet::new(),
                false => known.placements.iter().map(|p| p.node.clone()).collect(),
            };
            let resolved = Resolved { to: known.id.clone(), attributes: known.attributes.clone() };
            found.entry(known.id.to_string()).or_insert(Reach { resolved, nodes });
        }
        found.into_values().collect()
    }

    fn file_jobs(&mut self, read: &[File]) -> Vec<Job<'a>> {
        let kinds = self.kinds;
        let mut jobs = Vec::new();
        let mut wishes: BTreeMap<String, Vec<(usize, String, String)>> = BTreeMap::new();
        for (number, file) in read.iter().enumerate() {
            let Some(kind) = target::file(kinds, &file.content) else { continue };
            let key = (file.content.clone(), file.storage.clone(), file.filename.clone());
            let known = self.existing.files.get(&key).cloned();
            let mut about = Noted {
                kind: kind.info().kind.clone(),
                name: format!("{}:{}/{}", file.storage, file.content, file.filename),
                node: file.copies.first().map(|copy| copy.at.node.clone()),
                vmid: None,
                file: None,
                why: String::new(),
            };
            match &known {
                Some(known) if !self.may_replace(known, &kind.info().kind) => {
                    about.file = Some(known.file.clone());
                    about.why = self.described(known, &kind.info().kind);
                    self.list(&known.file);
                    self.report.skipped.push(about);
                    continue;
                }
                Some(_) => {}
                None => wishes.entry(kind.info().kind.clone()).or_default().push((
                    number,
                    stem(kind.info(), &file.filename),
                    file.storage.clone(),
                )),
            }
            let name = known.as_ref().map(|known| known.id.name.clone()).unwrap_or_default();
            jobs.push((number, Job { kind, name, live: Live::Artifact(file.copies.clone()), about, known }));
        }
        let mut names: BTreeMap<usize, String> = BTreeMap::new();
        for (kind, wishes) in &wishes {
            names.extend(names::assign(wishes, self.existing.names.get(kind).unwrap_or(&BTreeSet::new())));
        }
        jobs.into_iter()
            .map(|(number, job)| match names.remove(&number) {
                Some(name) => Job { name, ..job },
                None => job,
            })
            .collect()
    }

    /// A name for every guest of the cluster, wanted now or not, so that names do not depend on what is wanted.
    fn guest_names(&self, readings: &Readings, index: &Index) -> BTreeMap<u32, String> {
        let mut wishes: BTreeMap<String, Vec<(u32, String, String)>> = BTreeMap::new();
        let mut names = BTreeMap::new();
        for fact in self.world.guests.values().filter(|fact| index.allows(&fact.node)) {
            let read = readings.guests.get(&fact.vmid);
            let template = read.map_or(fact.template, |read| read.live.template);
            let kind = self.kind_of(fact.guest_type, template);
            if let Some(known) = self.existing.guests.get(&fact.vmid).filter(|known| known.id.kind == kind) {
                names.insert(fact.vmid, known.id.name.clone());
                continue;
            }
            // A guest without a name is listed under one that PVE makes up.
            let made_up = [format!("VM {}", fact.vmid), format!("CT{}", fact.vmid)];
            let listed = fact.name.as_ref().filter(|name| !made_up.contains(name));
            let live = read.map_or(listed, |read| read.live.name.as_ref());
            let mut name = live.map(|name| names::valid(name)).unwrap_or_default();
            if name.is_empty() {
                let root = self.kinds.get(&kind).map_or("guest", |kind| kind.info().root.as_str());
                name = names::valid(&format!("{root}-{}", fact.vmid));
            }
            wishes.entry(kind).or_default().push((fact.vmid, name, fact.vmid.to_string()));
        }
        for (kind, wishes) in &wishes {
            names.extend(names::assign(wishes, self.existing.names.get(kind).unwrap_or(&BTreeSet::new())));
        }
        names
    }

    fn guest_jobs(&mut self, readings: &Readings, names: &BTreeMap<u32, String>) -> Vec<Job<'a>> {
        let kinds = self.kinds;
        let mut jobs = Vec::new();
        for (vmid, read) in &readings.guests {
            let Some(fact) = self.world.guests.get(vmid) else { continue };
            let templates = read.live.template;
            let mut about = Noted {
                kind: target::guest_word(fact.guest_type, templates).to_owned(),
                name: read.live.name.clone().unwrap_or_default(),
                node: Some(read.live.node.clone()),
                vmid: Some(*vmid),
                file: None,
                why: String::new(),
            };
            let kind = target::guest(kinds, fact.guest_type, templates);
            let (Some(kind), Some(name)) = (kind, names.get(vmid)) else {
                about.why = "no kind describes such guests".to_owned();
                self.report.skipped.push(about);
                continue;
            };
            let known = self.existing.guests.get(vmid).cloned();
            if let Some(known) = known.as_ref().filter(|known| !self.may_replace(known, &kind.info().kind)) {
                about.why = self.described(known, &kind.info().kind);
                self.report.skipped.push(about);
                continue;
            }
            let live = Live::Guest(read.live.clone());
            jobs.push(Job { kind, name: name.clone(), live, about, known });
        }
        jobs
    }

    /// Adds the new public keys to the secrets document, before any manifest refers to them.
    fn save_keys(&mut self, document: Option<SecretsFile>) -> anyhow::Result<()> {
        let Some(mut file) = document else { return Ok(()) };
        for page in &self.pages {
            self.new_keys.extend(page.draft.new_keys.iter().cloned());
        }
        let prefix = format!("{}.", proxops_secrets::SSH_KEYS);
        for (name, key) in &self.new_keys {
            let Some(short) = name.strip_prefix(&prefix).filter(|short| !short.contains('.')) else {
                bail!("a kind wants to write the secret {name}: only names below {prefix} can be added");
            };
            if file.document.get(name).is_ok() {
                bail!(
                    "{}: {name} is there with another value; rename it, and run again",
                    file.document.file()
                );
            }
            let path: Vec<&str> =
                proxops_secrets::SSH_KEYS.split('.').chain(std::iter::once(short)).collect();
            file.document.set(&path, &Value::str(key.trim()))?;
        }
        file.save(jiff::Timestamp::now()).context("no key and no manifest was written")?;
        Ok(())
    }

    fn write(&mut self, root: &Path) -> anyhow::Result<()> {
        let mut folders: BTreeMap<String, PathBuf> = BTreeMap::new();
        let mut taken = BTreeSet::new();
        let (mut jobs, mut kept) = (Vec::new(), Vec::new());
        for page in std::mem::take(&mut self.pages) {
            let (folder, name) = page.file.rsplit_once('/').unwrap_or(("", &page.file));
            let real = match folders.get(folder) {
                Some(real) => real.clone(),
                None => folders.entry(folder.to_owned()).or_insert(files::folder(root, &page.file)?).clone(),
            };
            let name = name.to_owned();
            if taken.insert(page.file.clone()) {
                jobs.push((page, real, name));
            } else {
                let why = format!("{} is the manifest of another object of this run", page.file);
                self.report.skipped.push(Noted { why, file: Some(page.file), ..page.about });
            }
        }
        let force = self.options.force;
        let outcomes = in_parallel(&jobs, |(page, folder, name)| {
            let over = match (&page.replaces, force) {
                (Some(text), _) => Over::This(text),
                (None, true) => Over::Anything,
                (None, false) => Over::Nothing,
            };
            files::write(folder, name, &page.text, over)
        });
        for ((mut page, ..), outcome) in jobs.into_iter().zip(outcomes) {
            page.about.why = match outcome? {
                Wrote::Yes => {
                    kept.push(page);
                    continue;
                }
                Wrote::Exists => {
                    format!("{} is there already, and is no manifest of it; see --force", page.file)
                }
                Wrote::Changed(why) => format!("{}: {why}; look at it, and run again", page.file),
            };
            page.about.file = Some(page.file);
            self.report.skipped.push(page.about);
        }
        self.pages = kept;
        Ok(())
    }

    fn finish(mut self) -> Report {
        for page in std::mem::take(&mut self.pages) {
            let (file, draft) = (&page.file, &page.draft);
            self.list(file);
            let fields = self.fields.get(&draft.id.kind);
            let report = &mut self.report;
            report.written.push(file.clone());
            report.masked_secrets += draft.masked;
            report.new_keys.extend(draft.new_keys.iter().map(|(name, _)| name.clone()));
            report.gaps.extend(draft.gaps.iter().map(|gap| GapNote {
                file: file.clone(),
                key: gap.key.clone(),
                value: gap.value.clone(),
                why: gap.why.clone(),
            }));
            report.incomplete.extend(draft.holes.iter().map(|hole| {
                HoleNote {
                    file: file.clone(),
                    field: hole.at.clone(),
                    key: fields
                        .and_then(|f| f.key(&steps(hole.at.strip_prefix("/spec").unwrap_or_default())))
                        .map(str::to_owned),
                    why: hole.why.clone(),
                }
            }));
            report.noted.extend(draft.notes.iter().map(|why| Noted {
                file: Some(file.clone()),
                why: why.clone(),
                ..page.about.clone()
            }));
        }
        let report = &mut self.report;
        report.resources = self
            .lines
            .iter()
            .map(|file| {
                format!(
                    "  - {}",
                    yaml::write(&Tree::Text(format!("../../{file}")), &BTreeMap::new()).trim_end()
                )
            })
            .collect();
        report.written.sort();
        report.gaps.sort();
        report.incomplete.sort();
        report.skipped.sort();
        report.noted.sort();
        report.new_keys.sort();
        report.new_keys.dedup();
        self.report
    }
}

/// A file's name without the ending that its kind knows.
fn stem(info: &KindInfo, filename: &str) -> String {
    let Target::Artifact { extensions, .. } = &info.target else { return names::valid(filename) };
    let lower = filename.to_ascii_lowercase();
    let ending = extensions.iter().filter(|e| lower.ends_with(e.as_str())).max_by_key(|e| e.len());
    let bare = ending.and_then(|e| filename.get(..filename.len() - e.len())).unwrap_or(filename);
    match names::valid(bare) {
        name if name.is_empty() => names::valid(&info.root),
        name => name,
    }
}

/// The results in the order of the items, whatever the number of threads.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let share = items.len().div_ceil(processors()).max(8);
    if items.len() <= share {
        return items.iter().map(work).collect();
    }
    std::thread::scope(|scope| {
        let parts: Vec<_> = items
            .chunks(share)
            .map(|part| scope.spawn(|| part.iter().map(&work).collect::<Vec<R>>()))
            .collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
