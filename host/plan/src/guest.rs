//! Guests: create or clone, compare, power.

use crate::judge::{self, About, MASK};
use crate::planner::Stand;
use crate::{GuestFact, GuestRead, Mode, Planner, Resource, World};
use proxops_model::kind::{
    Context, DriftReport, GuestId, GuestType, Identity, KindApi, KindStep, Live, LivePower, Param,
    ParamValue, Power, Target,
};
use proxops_model::plan::{Action, Anomaly, Change, Noted, Pending, Step, Subject, Verb};
use proxops_model::{ResourceId, Severity, text};
use std::sync::Arc;

/// What one resource adds to the plan.
pub(crate) struct ResourcePlan {
    pub actions: Vec<Action>,
    pub anomalies: Vec<Anomaly>,
    pub unknown: Vec<Noted>,
    pub deferred: Vec<Noted>,
    pub skipped: Vec<Noted>,
    pub pending: Vec<Pending>,
    pub stand: Stand,
}

impl ResourcePlan {
    pub fn usable() -> Self {
        Self {
            actions: Vec::new(),
            anomalies: Vec::new(),
            unknown: Vec::new(),
            deferred: Vec::new(),
            skipped: Vec::new(),
            pending: Vec::new(),
            stand: Stand::Usable,
        }
    }

    pub fn missing(why: String) -> Self {
        Self { stand: Stand::Missing(why), ..Self::usable() }
    }

    /// Takes the actions back: something they need can't be had. Those that need this one wait too, as they do where
    /// an action fails.
    pub fn defer(&mut self, r: &Resource, why: &str) {
        let Some(first) = self.actions.first() else { return };
        let about = About { resource: r, node: first.node.clone(), vmid: first.vmid };
        self.deferred.push(about.noted(why));
        self.actions.clear();
        self.stand = Stand::Missing(format!("deferred, {why}"));
    }
}

/// A fresh look at one guest or object in the middle of an action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Again {
    /// It is the one that the manifest means, and ours or claimable.
    pub matches: bool,
    /// Why nothing more may be written.
    pub blocked: Option<String>,
    /// What is left to do; power is not part of it.
    pub steps: Vec<Step>,
    /// The same, field by field.
    pub changes: Vec<Change>,
    /// Wanted values that wait for a restart.
    pub pending: Vec<Pending>,
}

impl Planner<'_> {
    pub(crate) fn guest(
        &self,
        r: &Resource,
        kind: &dyn KindApi,
        guest_type: GuestType,
        template: bool,
        world: &World,
        context: &mut Context,
    ) -> ResourcePlan {
        let Some(id) = r.guest_id() else {
            return ResourcePlan::missing("the kind gave no vmid".to_owned());
        };
        let fact = world.guests.get(&id.vmid);
        let node = fact.map_or(&id.node, |f| &f.node).clone();
        let about = About { resource: r, node: Some(node), vmid: Some(id.vmid) };
        if r.mode == Mode::Suspended {
            let mut plan = match fact {
                Some(fact) if self.may_be(id, fact, guest_type, template) => ResourcePlan::usable(),
                Some(_) => ResourcePlan::missing(format!(
                    "it is suspended, and vmid {} holds another guest",
                    id.vmid
                )),
                None => ResourcePlan::missing("it is suspended and not there".to_owned()),
            };
            plan.skipped.push(about.noted("suspended by the annotation proxops/reconcile"));
            return plan;
        }
        if let Some(why) = world.busy.get(&id.vmid).cloned().or_else(|| world.shell(id.vmid)) {
            let mut plan = ResourcePlan::missing(why.clone());
            plan.deferred.push(about.noted(format!("an earlier run is not done with it: {why}")));
            return plan;
        }
        match fact {
            None => self.new_guest(r, id, kind, guest_type, template, world, context, &about),
            Some(fact) => match self.trusted_read(r, id, fact, guest_type, template, world, &about) {
                Ok(read) => {
                    let mut plan = self.live_guest(r, id, kind, fact, read, world, context, &about);
                    let marks = plan.actions.iter().any(|action| action.verb == Verb::MarkTemplate);
                    if template && !read.live.template && !marks && plan.stand == Stand::Usable {
                        plan.stand = Stand::Missing("it is no template yet".to_owned());
                    }
                    let lock = read.live.lock.as_ref().or(fact.lock.as_ref());
                    if let Some(lock) = lock.filter(|lock| matches!(lock.as_str(), "create" | "clone")) {
                        plan.stand = Stand::Missing(format!("it is still being made (lock {lock})"));
                    }
                    plan
                }
                Err(plan) => *plan,
            },
        }
    }

    /// Whether the lists, which is all that is known of a suspended guest, don't say that it is another one.
    fn may_be(&self, id: &GuestId, fact: &GuestFact, guest_type: GuestType, template: bool) -> bool {
        let ours = text::has_tag(&fact.tags, &self.options.owner_tag) || fact.name == id.name;
        ours && fact.guest_type == guest_type && fact.template == template
    }

    #[allow(clippy::too_many_arguments)]
    fn new_guest(
        &self,
        r: &Resource,
        id: &GuestId,
        kind: &dyn KindApi,
        guest_type: GuestType,
        template: bool,
        world: &World,
        context: &mut Context,
        about: &About,
    ) -> ResourcePlan {
        let mut plan = ResourcePlan::missing("it is not there".to_owned());
        if let Some(why) = world.node_trouble(&id.node) {
            if world.nodes.contains_key(&id.node) {
                plan.unknown.push(about.noted(format!("{why}; whether the guest is there can not be told")));
            } else {
                let known: Vec<&str> = world.nodes.keys().map(String::as_str).collect();
                plan.anomalies.push(about.error_at(
                    "no-such-node",
                    "/spec/node",
                    why,
                    format!("its nodes are {}", known.join(", ")),
                ));
            }
            return plan;
        }
        if r.mode == Mode::Observe {
            self.observed(&mut plan, about, "it is not there");
            return plan;
        }
        for hole in &r.validated.incomplete {
            plan.anomalies.push(about.error_at(
                "incomplete",
                &hole.at,
                format!("can't be created: {}", hole.why),
                "fill the field in",
            ));
        }
        if let Err((at, why)) = self.fill_context(r, world, context) {
            plan.anomalies.push(about.error_at(
                "secret",
                &at,
                why,
                "add it to the cluster's secrets document",
            ));
        }
        if !plan.anomalies.is_empty() {
            return plan;
        }
        let creation = match kind.create_params(&r.manifest, context) {
            Ok(creation) => creation,
            Err(refusal) => {
                plan.anomalies.extend(about.of_refusal(refusal));
                return plan;
            }
        };
        plan.anomalies.extend(creation.warnings.into_iter().map(|w| about.of_diagnostic(w)));
        plan.anomalies.extend(creation.anomalies.into_iter().map(|a| about.of_kind(a)));
        self.check_needs(r, &creation.steps, true, &id.node, world, about, &mut plan);
        let verb = judge::verb(&creation.steps).unwrap_or(Verb::Create);
        let changes = creation.steps.iter().flat_map(made).collect();
        let mut steps = Vec::new();
        for step in creation.steps {
            match self.resolve_clone(step, id, guest_type, world, about) {
                Ok(step) => steps.push(step),
                Err(anomaly) => plan.anomalies.push(*anomaly),
            }
        }
        if has_error(&plan.anomalies) {
            return plan;
        }
        steps.push(Step::Settle);
        if r.validated.power == Some(Power::Running) && !template {
            steps.push(Step::Start);
        }
        plan.stand = Stand::Usable;
        plan.actions.push(Action {
            reason: format!("vmid {} is not there", id.vmid),
            changes,
            steps,
            ..action(r, verb, &id.node, id.vmid, guest_type)
        });
        plan
    }

    /// The guest's configuration, if it is one that the manifest may manage.
    #[allow(clippy::too_many_arguments)]
    fn trusted_read<'w>(
        &self,
        r: &Resource,
        id: &GuestId,
        fact: &GuestFact,
        guest_type: GuestType,
        template: bool,
        world: &'w World,
        about: &About,
    ) -> Result<&'w GuestRead, Box<ResourcePlan>> {
        let refuse = |code: &str, message: String, help: &str| {
            let mut plan = ResourcePlan::missing(message.clone());
            plan.anomalies.push(about.anomaly(Severity::Warning, code, message, help));
            Err(Box::new(plan))
        };
        let unknown = |why: String| {
            let mut plan = ResourcePlan::missing(why.clone());
            plan.unknown.push(about.noted(why));
            Err(Box::new(plan))
        };
        if !self.index.allows(&fact.node) {
            return refuse(
                "outside-allowlist",
                format!(
                    "vmid {} is held by a guest on node {}, which is outside the cluster's node allowlist",
                    id.vmid, fact.node
                ),
                "it is never read or written; move the guest, add the node to `nodes`, or choose another vmid",
            );
        }
        if fact.guest_type != guest_type {
            let word = |t: GuestType| if t == GuestType::Qemu { "VM" } else { "container" };
            return refuse(
                "other-guest-type",
                format!(
                    "vmid {} holds a {} on node {}, the manifest wants a {}",
                    id.vmid,
                    word(fact.guest_type),
                    fact.node,
                    word(guest_type)
                ),
                "a guest never changes its type; choose another vmid, or remove the live guest yourself",
            );
        }
        if let Some(why) = world.node_trouble(&fact.node) {
            return unknown(why);
        }
        let read = match world.reads.get(&id.vmid) {
            Some(Ok(read)) => read,
            Some(Err(why)) => return unknown(format!("its configuration can't be read: {why}")),
            None => return unknown("its configuration was not read".to_owned()),
        };
        let live_name = read.live.name.as_deref().unwrap_or_default();
        if !text::has_tag(read.tags(), &self.options.owner_tag)
            && !live_name.is_empty()
            && Some(live_name) != id.name.as_deref()
        {
            return refuse(
                "not-ours",
                format!(
                    "vmid {} is held by the guest \"{live_name}\" on node {}, which does not carry the tag {}",
                    id.vmid, fact.node, self.options.owner_tag
                ),
                "if it is this one, give it the manifest's name or the tag; else choose another vmid",
            );
        }
        if read.live.template && !template {
            return refuse(
                "kind-flip",
                format!("vmid {} is a template, the manifest wants a {}", id.vmid, r.id.kind),
                "PVE can't turn a template back; choose another vmid, or the template kind",
            );
        }
        if template && !read.live.template && read.live.power != LivePower::Stopped {
            return refuse(
                "template-is-running",
                format!(
                    "vmid {} is a plain guest that runs; only a stopped one can become a template",
                    id.vmid
                ),
                "stop it; it can't be turned back afterwards",
            );
        }
        Ok(read)
    }

    #[allow(clippy::too_many_arguments)]
    fn live_guest(
        &self,
        r: &Resource,
        id: &GuestId,
        kind: &dyn KindApi,
        fact: &GuestFact,
        read: &GuestRead,
        world: &World,
        context: &mut Context,
        about: &About,
    ) -> ResourcePlan {
        let mut plan = ResourcePlan::usable();
        if fact.node != id.node {
            plan.anomalies.push(about.anomaly(
                Severity::Warning,
                "placement",
                format!(
                    "it is on node {}, the manifest says {}; it is managed where it is",
                    fact.node, id.node
                ),
                "change `node` in the manifest, or migrate the guest back",
            ));
        }
        let report = match self.drift(r, kind, read, world, context, about) {
            Ok(report) => report,
            Err(anomalies) => {
                plan.anomalies.extend(anomalies);
                return plan;
            }
        };
        let needs_stop = report.changes.iter().any(|c| c.needs_stop);
        plan.anomalies.extend(report.anomalies.into_iter().map(|a| about.of_kind(a)));
        self.check_needs(r, &report.steps, false, &fact.node, world, about, &mut plan);
        let blocked = has_error(&plan.anomalies);
        let mut steps = report.steps;
        let (owed_steps, owed_changes) = self.owed_growth(r, kind, read, &steps, world, context);
        steps.extend(owed_steps);
        let seed_owed = world.leftovers.get(&id.vmid).is_some_and(|l| l.rebuild_seed);
        if seed_owed && !steps.contains(&KindStep::RebuildCloudInit) && fact.guest_type == GuestType::Qemu {
            steps.push(KindStep::RebuildCloudInit);
        }
        let running = matches!(read.live.power, LivePower::Running | LivePower::Paused);
        let wanted = r.validated.power;
        let restart = running
            && r.restart_allowed
            && wanted != Some(Power::Stopped)
            && (needs_stop || !report.pending.is_empty());
        // A guest that was stopped for a change which then failed is not stopped for it again before PVE takes it.
        let in_vain = restart && !steps.is_empty() && world.stopped_in_vain.contains(&id.vmid);
        let restart = restart && !in_vain;
        let verb = judge::verb(&steps).or(restart.then_some(Verb::Update));
        let mut changes: Vec<Change> = report.changes.into_iter().map(judge::change).collect();
        changes.extend(owed_changes);
        if restart {
            changes.extend(report.pending.into_iter().map(judge::change));
        } else {
            plan.pending.extend(report.pending.into_iter().map(|c| about.pending(c)));
        }
        let reason = match (&changes[..], seed_owed) {
            ([], true) => "the cloud-init seed image of an earlier change was not rebuilt".to_owned(),
            ([], false) => "the live guest differs".to_owned(),
            (changes, _) if in_vain => {
                format!(
                    "differs in {}; it was stopped for this in vain, so it is written first",
                    keys(changes)
                )
            }
            (changes, _) => format!("differs in {}", keys(changes)),
        };
        let mut todo: Vec<Step> = steps.into_iter().map(Step::Kind).collect();
        if restart {
            todo.insert(0, Step::Stop { hard: false });
            todo.push(Step::Start);
        }
        let power = match (wanted, read.live.power) {
            (Some(Power::Running), LivePower::Stopped) => Some(Verb::Start),
            (Some(Power::Stopped), LivePower::Running) => Some(Verb::Stop),
            (Some(_), LivePower::Paused) => {
                plan.anomalies.push(about.anomaly(
                    Severity::Warning,
                    "paused",
                    "the guest is paused",
                    "resume or stop it in PVE",
                ));
                None
            }
            _ => None,
        };
        // What began to be made is made to its end.
        let making = world.leftovers.get(&id.vmid).is_some_and(|l| l.making);
        if r.mode != Mode::Reconcile && !(r.mode == Mode::EnsureExists && making) {
            let mut differs: Vec<String> = changes.iter().map(|c| c.key.clone()).collect();
            differs.extend(power.map(|v| v.to_string()));
            if verb.is_some() || power.is_some() {
                self.observed(&mut plan, about, &format!("{reason}; not done: {}", differs.join(", ")));
            }
            return plan;
        }
        if blocked || (verb.is_none() && power.is_none()) {
            return plan;
        }
        if let Some(lock) = read.live.lock.as_ref().or(fact.lock.as_ref()) {
            plan.stand = Stand::Missing(format!("deferred, it is locked ({lock})"));
            plan.deferred.push(about.noted(format!(
                "{} {} is locked ({lock}); it is tried again when the lock is gone, which `{} unlock {}` on {} does if \
                 no task holds it any more",
                fact.guest_type.noun(),
                id.vmid,
                fact.guest_type.tool(),
                id.vmid,
                fact.node
            )));
            return plan;
        }
        let base = |verb| Action {
            digest: read.digest.clone(),
            ..action(r, verb, &fact.node, id.vmid, fact.guest_type)
        };
        let mut update =
            verb.map(|verb| Action { disruptive: restart, reason, changes, steps: todo, ..base(verb) });
        let power = power.map(|verb| match verb {
            Verb::Stop => Action {
                disruptive: true,
                reason: "it runs, the manifest says stopped".to_owned(),
                steps: vec![Step::Stop { hard: false }],
                ..base(Verb::Stop)
            },
            _ => Action {
                reason: "it is stopped, the manifest says started".to_owned(),
                steps: vec![Step::Start],
                ..base(Verb::Start)
            },
        });
        let mut power = power;
        match (&mut update, &mut power) {
            // Stopped first, so that nothing is left pending; started last, with the new values.
            (Some(update), Some(stop)) if stop.verb == Verb::Stop => update.after.push(stop.id.clone()),
            (Some(update), Some(start)) => start.after.push(update.id.clone()),
            _ => {}
        }
        plan.actions.extend(update);
        plan.actions.extend(power);
        plan
    }

    /// The growth that an unfinished creation still owes: of a disk seeded from an image `drift` can't tell
    /// whether it is small by wish. The size is the manifest's of today.
    fn owed_growth(
        &self,
        r: &Resource,
        kind: &dyn KindApi,
        read: &GuestRead,
        planned: &[KindStep],
        world: &World,
        context: &Context,
    ) -> (Vec<KindStep>, Vec<Change>) {
        let owed = world.leftovers.get(&read.live.vmid).map(|l| l.grow.as_slice()).unwrap_or_default();
        if owed.is_empty() {
            return Default::default();
        }
        let Ok(creation) = kind.create_params(&r.manifest, context) else { return Default::default() };
        creation
            .steps
            .into_iter()
            .filter_map(|step| {
                let KindStep::Resize { disk, bytes, at } = &step else { return None };
                let is_planned = planned
                    .iter()
                    .any(|p| matches!(p, KindStep::Resize { disk: other, .. } if other == disk));
                let live = text::drive_size(read.value(disk)?)?;
                let due = owed.contains(disk) && !is_planned && live < *bytes;
                let change = Change {
                    field: at.clone(),
                    key: disk.clone(),
                    from: Some(text::size(live)),
                    to: Some(text::size(*bytes)),
                    sensitive: false,
                };
                due.then_some((step, change))
            })
            .unzip()
    }

    fn drift(
        &self,
        r: &Resource,
        kind: &dyn KindApi,
        read: &GuestRead,
        world: &World,
        context: &mut Context,
        about: &About,
    ) -> Result<DriftReport, Vec<Anomaly>> {
        if let Err((at, why)) = self.fill_context(r, world, context) {
            return Err(vec![about.error_at("secret", &at, why, "add it to the cluster's secrets document")]);
        }
        let mut live = Arc::clone(&read.live);
        let leftover = world.leftovers.get(&live.vmid).and_then(|l| l.fresh_clone_of.as_ref());
        if live.fresh_clone_of.is_none() && leftover.is_some() {
            Arc::make_mut(&mut live).fresh_clone_of = leftover.cloned();
        }
        kind.drift(&r.manifest, &Live::Guest(live), context).map_err(|refusal| about.of_refusal(refusal))
    }

    /// A fresh look at one guest, for the executor: after a create or clone, after a conflict, after an
    /// answer that was lost, and to prove that a write took effect.
    pub fn guest_again(&self, id: &ResourceId, fact: &GuestFact, read: &GuestRead, world: &World) -> Again {
        let (Some(r), Some(kind)) = (self.index.resources.get(id), self.kinds.get(&id.kind)) else {
            return Again { blocked: Some(format!("{id} is not in the composition")), ..Again::default() };
        };
        let (Some(guest), Target::Guest { guest_type, template }) = (r.guest_id(), &r.target) else {
            return Again { blocked: Some(format!("{id} is not a guest")), ..Again::default() };
        };
        let about = About { resource: r, node: Some(fact.node.clone()), vmid: Some(fact.vmid) };
        let mut one = World { reads: [(fact.vmid, Ok(read.clone()))].into(), ..world.without_guests() };
        one.guests = world.guests.clone();
        one.guests.insert(fact.vmid, fact.clone());
        if read.live.fresh_clone_of.is_none()
            && let Err(plan) = self.trusted_read(r, guest, fact, *guest_type, *template, &one, &about)
        {
            let why = plan
                .anomalies
                .first()
                .map(|a| a.message.clone())
                .or(plan.unknown.first().map(|n| n.why.clone()));
            return Again { blocked: why, ..Again::default() };
        }
        let mut context = world.context.clone();
        let report = match self.drift(r, kind, read, &one, &mut context, &about) {
            Ok(report) => report,
            Err(anomalies) => {
                let why: Vec<String> = anomalies.into_iter().map(|a| a.message).collect();
                return Again { matches: true, blocked: Some(why.join("; ")), ..Again::default() };
            }
        };
        let errors: Vec<String> = report
            .anomalies
            .iter()
            .filter(|a| a.severity == Severity::Error)
            .map(|a| a.message.clone())
            .collect();
        Again {
            matches: true,
            blocked: (!errors.is_empty()).then(|| errors.join("; ")),
            steps: report.steps.into_iter().map(Step::Kind).collect(),
            changes: report.changes.into_iter().map(judge::change).collect(),
            pending: report.pending.into_iter().map(|c| about.pending(c)).collect(),
        }
    }

    pub(crate) fn observed(&self, plan: &mut ResourcePlan, about: &About, what: &str) {
        let mode = match about.resource.mode {
            Mode::Observe => "observe",
            Mode::EnsureExists => "ensure-exists",
            _ => "suspended",
        };
        plan.skipped.push(about.noted(format!("mode {mode}: {what}")));
        plan.anomalies.push(about.anomaly(
            Severity::Info,
            "not-written",
            format!("mode {mode}: {what}"),
            "the annotation proxops/reconcile decides",
        ));
    }

    /// Storages and files that the steps need, on this node.
    #[allow(clippy::too_many_arguments)]
    fn check_needs(
        &self,
        r: &Resource,
        steps: &[KindStep],
        creating: bool,
        node: &str,
        world: &World,
        about: &About,
        plan: &mut ResourcePlan,
    ) {
        for wanted in &r.validated.storages {
            if !creating && !judge::allocates_on(steps, &wanted.storage) {
                continue;
            }
            let on = wanted.node.as_deref().unwrap_or(node);
            if let Some((why, help)) = judge::storage_trouble(world, wanted, on) {
                plan.anomalies.push(about.error_at("storage", &wanted.at, why, help));
            }
        }
        for reference in &r.validated.references {
            let Some(other) = self.index.resources.get(&reference.to) else { continue };
            let Identity::Artifact(copies) = &other.validated.identity else { continue };
            let volid =
                other.validated.attributes.iter().find(|(k, _)| k == "volid").map(|(_, v)| v.as_str());
            if !volid.is_some_and(|v| judge::texts(steps).any(|t| t.contains(v))) {
                continue;
            }
            let reachable = copies.iter().any(|c| {
                world.storage_on(&c.storage, &c.node).map_or(c.node == node, |s| {
                    c.node == node || (s.shared && world.storage_on(&c.storage, node).is_some())
                })
            });
            if !reachable {
                let where_it_is: Vec<String> =
                    copies.iter().map(|c| format!("{} on {}", c.storage, c.node)).collect();
                plan.anomalies.push(about.error_at(
                    "artifact-elsewhere",
                    &reference.at,
                    format!(
                        "{} is on {}, which node {node} can't reach",
                        reference.to,
                        where_it_is.join(", ")
                    ),
                    format!("add {node} to its `nodes`, or keep it on a shared storage"),
                ));
            }
        }
    }

    /// A clone step with its source where it is now.
    fn resolve_clone(
        &self,
        step: KindStep,
        id: &GuestId,
        guest_type: GuestType,
        world: &World,
        about: &About,
    ) -> Result<Step, Box<Anomaly>> {
        let KindStep::Clone { source, params } = step else { return Ok(Step::Kind(step)) };
        let at = about
            .resource
            .validated
            .references
            .iter()
            .find(|x| x.to == source)
            .map_or("/spec/clone", |x| x.at.as_str());
        let refuse = |why: String, help: String| Err(Box::new(about.error_at("clone-source", at, why, help)));
        let Some(template) = self.index.resources.get(&source) else {
            return refuse(format!("the template {source} is not in the composition"), String::new());
        };
        let Some(from) = template.guest_id() else {
            return refuse(format!("{source} is not a guest"), String::new());
        };
        if !matches!(&template.target, Target::Guest { guest_type: t, .. } if *t == guest_type) {
            return refuse(format!("{source} is of another guest type"), String::new());
        }
        let node = self.node_of(world, from);
        if node != id.node {
            let local = self.local_storages(template, from.vmid, world, [&node, &id.node]);
            if !local.is_empty() {
                return refuse(
                    format!(
                        "the template {source} is on node {node} and its volumes lie on storage {}, which node {} does not share",
                        local.join(", "),
                        id.node
                    ),
                    format!(
                        "put the guest on {node}, keep a copy of the template on {}, or use a shared storage",
                        id.node
                    ),
                );
            }
        }
        if let Some(storage) = params.iter().find(|p| p.key == "storage")
            && let ParamValue::Text(name) = &storage.value
            && let Some((why, help)) = clone_storage_trouble(world, name, &node, &id.node)
        {
            let at = storage.at.as_deref().unwrap_or(at);
            return Err(Box::new(about.error_at("clone-storage", at, why, help)));
        }
        Ok(Step::CloneFrom { source_node: node, source_vmid: from.vmid, source, params })
    }

    /// Storages of a template's volumes that are not shared by both nodes.
    fn local_storages(
        &self,
        template: &Resource,
        vmid: u32,
        world: &World,
        nodes: [&String; 2],
    ) -> Vec<String> {
        let names: Vec<String> = match world.reads.get(&vmid) {
            Some(Ok(read)) => read
                .live
                .values
                .iter()
                .filter(|(key, _)| is_volume_key(key))
                .filter_map(|(_, v)| {
                    v.text().and_then(|t| t.split(',').next()).and_then(|t| t.split_once(':'))
                })
                .filter(|(_, volume)| !volume.starts_with("iso/"))
                .map(|(storage, _)| storage.to_owned())
                .collect(),
            _ => template
                .validated
                .storages
                .iter()
                .filter(|s| matches!(s.content.as_str(), "images" | "rootdir"))
                .map(|s| s.storage.clone())
                .collect(),
        };
        let mut local: Vec<String> =
            names.into_iter().filter(|s| !nodes.iter().all(|node| is_shared(world, s, node))).collect();
        local.sort();
        local.dedup();
        local
    }
}

fn is_shared(world: &World, storage: &str, node: &str) -> bool {
    world.storage_on(storage, node).is_some_and(|s| s.shared)
}

/// PVE copies on the template's node and hands over only what lies on a storage that both nodes share (fact
/// Q38). That the guest's node has the storage is checked for every storage of a manifest.
fn clone_storage_trouble(world: &World, storage: &str, from: &str, to: &str) -> Option<(String, String)> {
    if world.storage_on(storage, from).is_none() {
        return Some((
            format!("the template is on node {from}, which has no storage {storage}"),
            format!("name a storage of {from}, or put a copy of the template where {storage} is"),
        ));
    }
    (from != to && !is_shared(world, storage, from)).then(|| {
        (
            format!("the template is on node {from}, and storage {storage} is not shared with node {to}"),
            format!("name a shared storage, leave it out, or put the guest on {from}"),
        )
    })
}

/// Keys that hold a volume.
fn is_volume_key(key: &str) -> bool {
    let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
    stem == "rootfs"
        || (stem.len() < key.len()
            && matches!(stem, "scsi" | "virtio" | "sata" | "ide" | "mp" | "efidisk" | "tpmstate"))
}

pub(crate) fn has_error(anomalies: &[Anomaly]) -> bool {
    anomalies.iter().any(|a| a.severity == Severity::Error)
}

pub(crate) fn keys(changes: &[Change]) -> String {
    let mut keys: Vec<&str> = changes.iter().map(|c| c.key.as_str()).collect();
    keys.dedup();
    keys.join(", ")
}

/// The parameters of a step that makes something, as changes from nothing.
pub(crate) fn made(step: &KindStep) -> Vec<Change> {
    let (KindStep::Create { params }
    | KindStep::Restore { params }
    | KindStep::Clone { params, .. }
    | KindStep::Download { params, .. }
    | KindStep::Call { set: params, .. }) = step
    else {
        return Vec::new();
    };
    params.iter().map(from_nothing).collect()
}

fn from_nothing(p: &Param) -> Change {
    let (to, sensitive) = match &p.value {
        ParamValue::Text(text) => (text.clone(), false),
        ParamValue::Many(list) => (list.join(", "), false),
        ParamValue::Secret(_) => (MASK.to_owned(), true),
    };
    Change {
        field: p.at.clone().unwrap_or_default(),
        key: p.key.clone(),
        from: None,
        to: Some(to),
        sensitive,
    }
}

fn action(r: &Resource, verb: Verb, node: &str, vmid: u32, guest_type: GuestType) -> Action {
    Action {
        id: format!("{verb}:{}", r.id),
        verb,
        kind: r.id.kind.clone(),
        name: r.id.name.clone(),
        node: Some(node.to_owned()),
        vmid: Some(vmid),
        level: 0,
        after: Vec::new(),
        disruptive: false,
        reason: String::new(),
        changes: Vec::new(),
        subject: Some(Subject::Guest { guest_type: guest_type.as_str().to_owned() }),
        steps: Vec::new(),
        digest: None,
        ended: None,
    }
}
