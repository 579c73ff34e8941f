//! Objects of third-party kinds: create or compare, and prune, below what the operator granted.

use crate::guest::{Again, ResourcePlan, has_error, keys, made};
use crate::judge::{self, About};
use crate::planner::Stand;
use crate::{Mode, ObjectRead, Planner, Resource, World};
use proxops_model::kind::{Context, Identity, KindApi, KindStep, Live, ObjectId, ObjectTarget, Target};
use proxops_model::object::{self, Grants, Proof};
use proxops_model::plan::{Action, Anomaly, Change, ClusterPlan, Noted, Step, Subject, Verb};
use proxops_model::{ResourceId, Severity};
use std::collections::{BTreeMap, BTreeSet};

/// The node that an object lies on, if it lies on one.
fn node_of(id: &ObjectId) -> Option<String> {
    id.vars.iter().find(|(name, _)| name == "node").map(|(_, node)| node.clone())
}

impl Planner<'_> {
    pub(crate) fn object(
        &self,
        r: &Resource,
        kind: &dyn KindApi,
        target: &ObjectTarget,
        world: &World,
        context: &mut Context,
    ) -> ResourcePlan {
        let Identity::Object(id) = &r.validated.identity else {
            return ResourcePlan::missing("the kind gave no object id".to_owned());
        };
        let about = About { resource: r, node: node_of(id), vmid: None };
        if r.mode == Mode::Suspended {
            let mut plan = ResourcePlan::usable();
            plan.skipped.push(about.noted("suspended by the annotation proxops/reconcile"));
            return plan;
        }
        if !self.options.grants.allow_reads(&r.id.kind, target) {
            let message = format!(
                "kind {} may read nothing of this cluster: it was granted nothing below {}",
                r.id.kind, target.list.path
            );
            let mut plan = ResourcePlan::missing(message.clone());
            plan.anomalies.push(about.anomaly(
                Severity::Error,
                "not-granted",
                message,
                format!("if you trust it, add to proxops.yaml: {}", Grants::lines(&r.id.kind, target)),
            ));
            return plan;
        }
        let unknown = |why: String| {
            let mut plan = ResourcePlan::missing(why.clone());
            plan.unknown.push(about.noted(why));
            plan
        };
        if let Some(why) = about.node.as_deref().and_then(|node| world.node_trouble(node)) {
            return unknown(format!("{why}; whether the object is there can not be told"));
        }
        match world.objects.get(&(r.id.kind.clone(), object::list_vars(target, id))) {
            None => unknown(format!("{} was not listed", target.list.path)),
            Some(Err(why)) => unknown(format!("{} can't be listed: {why}", target.list.path)),
            Some(Ok(objects)) => match objects.get(&id.id) {
                None => self.new_object(r, kind, (target, id), world, context, &about),
                Some(Err(why)) => unknown(format!("\"{}\" can't be read: {why}", id.id)),
                Some(Ok(read)) => self.live_object(r, kind, (target, id), read, world, context, &about),
            },
        }
    }

    fn new_object(
        &self,
        r: &Resource,
        kind: &dyn KindApi,
        (target, id): (&ObjectTarget, &ObjectId),
        world: &World,
        context: &mut Context,
        about: &About,
    ) -> ResourcePlan {
        let mut plan = ResourcePlan::missing("it is not there".to_owned());
        if r.mode == Mode::Observe {
            self.observed(&mut plan, about, "it is not there");
            return plan;
        }
        for hole in &r.validated.incomplete {
            let message = format!("can't be created: {}", hole.why);
            plan.anomalies.push(about.error_at("incomplete", &hole.at, message, "fill the field in"));
        }
        for wanted in &r.validated.storages {
            let trouble = match wanted.node.as_deref().or(about.node.as_deref()) {
                Some(node) => judge::storage_trouble(world, wanted, node),
                None if world.context.storages.iter().any(|s| s.name == wanted.storage) => None,
                None => Some((format!("the cluster has no storage {}", wanted.storage), String::new())),
            };
            if let Some((why, help)) = trouble {
                plan.anomalies.push(about.error_at("storage", &wanted.at, why, help));
            }
        }
        if let Err((at, why)) = self.fill_context(r, world, context) {
            let help = "add it to the cluster's secrets document";
            plan.anomalies.push(about.error_at("secret", &at, why, help));
        }
        if has_error(&plan.anomalies) {
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
        plan.anomalies.extend(self.ungranted(target, id, &creation.steps, about));
        if creation.steps.is_empty() && !has_error(&plan.anomalies) {
            plan.anomalies.push(about.anomaly(
                Severity::Error,
                "no-creation",
                "the kind gives no step that would make it",
                "report it to the kind's author",
            ));
        }
        if has_error(&plan.anomalies) {
            return plan;
        }
        plan.stand = Stand::Usable;
        let changes = creation.steps.iter().flat_map(made).collect();
        let mut steps: Vec<Step> = creation.steps.into_iter().map(Step::Kind).collect();
        steps.push(Step::Settle);
        let reason = format!("\"{}\" is not in {}", id.id, target.list.path);
        plan.actions.push(Action { reason, changes, steps, ..action(&r.id, Verb::Create, id) });
        plan
    }

    #[allow(clippy::too_many_arguments)]
    fn live_object(
        &self,
        r: &Resource,
        kind: &dyn KindApi,
        (target, id): (&ObjectTarget, &ObjectId),
        read: &ObjectRead,
        world: &World,
        context: &mut Context,
        about: &About,
    ) -> ResourcePlan {
        if let Some(why) = self.not_ours(&r.id, target, read) {
            let mut plan = ResourcePlan::missing(why.clone());
            plan.anomalies.push(about.anomaly(Severity::Warning, "not-ours", why, self.claim(&r.id, target)));
            return plan;
        }
        let mut plan = ResourcePlan::usable();
        if let Err((at, why)) = self.fill_context(r, world, context) {
            let help = "add it to the cluster's secrets document";
            plan.anomalies.push(about.error_at("secret", &at, why, help));
            return plan;
        }
        let report = match kind.drift(&r.manifest, &Live::Object(read.live.clone()), context) {
            Ok(report) => report,
            Err(refusal) => {
                plan.anomalies.extend(about.of_refusal(refusal));
                return plan;
            }
        };
        plan.anomalies.extend(report.anomalies.into_iter().map(|a| about.of_kind(a)));
        plan.anomalies.extend(self.ungranted(target, id, &report.steps, about));
        plan.pending.extend(report.pending.into_iter().map(|c| about.pending(c)));
        if report.steps.is_empty() {
            return plan;
        }
        let changes: Vec<Change> = report.changes.into_iter().map(judge::change).collect();
        let reason = match &changes[..] {
            [] => "the live object differs".to_owned(),
            changes => format!("differs in {}", keys(changes)),
        };
        if r.mode != Mode::Reconcile {
            self.observed(&mut plan, about, &format!("{reason}; not done"));
            return plan;
        }
        if has_error(&plan.anomalies) {
            return plan;
        }
        let steps = report.steps.into_iter().map(Step::Kind).collect();
        let digest = read.digest.clone();
        plan.actions.push(Action { reason, changes, steps, digest, ..action(&r.id, Verb::Update, id) });
        plan
    }

    /// Why a live object must be left alone, or `None`.
    fn not_ours(&self, id: &ResourceId, target: &ObjectTarget, read: &ObjectRead) -> Option<String> {
        let there = &read.live.id.id;
        match self.proof(&id.kind, target, read) {
            Proof::Unprovable | Proof::Ours(None) => None,
            Proof::Ours(Some(name)) if name == id.name => None,
            Proof::Ours(Some(name)) => Some(format!("\"{there}\" belongs to {}/{name}", id.kind)),
            Proof::Foreign(marker) => Some(format!("\"{there}\" is marked as {marker}")),
            Proof::Unmarked => Some(format!("\"{there}\" is there already and is not marked as ours")),
        }
    }

    fn proof(&self, kind: &str, target: &ObjectTarget, read: &ObjectRead) -> Proof {
        let ObjectRead { live, .. } = read;
        object::proof(&target.ownership, kind, &self.options.owner_tag, &live.row, &live.values)
    }

    /// How a person hands an object over.
    fn claim(&self, id: &ResourceId, target: &ObjectTarget) -> String {
        use proxops_model::kind::Ownership;
        let tag = &self.options.owner_tag;
        match &target.ownership {
            Ownership::Marker { field, .. } => format!(
                "it is never touched; to hand it over, put {} at the end of its `{field}`, or choose another id",
                object::marker(tag, &id.kind, &id.name)
            ),
            Ownership::Tags(field) => {
                format!(
                    "it is never touched; to hand it over, add {tag} to its `{field}`, or choose another id"
                )
            }
            Ownership::None => String::new(),
        }
    }

    /// Steps whose path is not below a grant, or is no path.
    fn ungranted(
        &self,
        target: &ObjectTarget,
        id: &ObjectId,
        steps: &[KindStep],
        about: &About,
    ) -> Vec<Anomaly> {
        let kind = &about.resource.id.kind;
        let trouble = |step: &KindStep| {
            let KindStep::Call { operation, vars, .. } = step else { return None };
            match resolve(target, operation, id, vars) {
                Ok(path) if self.options.grants.allow(kind, &path) => None,
                Ok(path) => Some(about.anomaly(
                    Severity::Error,
                    "not-granted",
                    format!("it wants to write {path}, which kind {kind} was not granted"),
                    format!("if you trust it, add to proxops.yaml: {}", Grants::lines(kind, target)),
                )),
                Err(why) => Some(about.anomaly(
                    Severity::Error,
                    "kind-fault",
                    format!("kind {kind}: its {why}"),
                    "report it to the kind's author",
                )),
            }
        };
        steps.iter().find_map(trouble).into_iter().collect()
    }

    /// A fresh look at one object, for the executor.
    pub fn object_again(&self, id: &ResourceId, read: &ObjectRead, world: &World) -> Again {
        let blocked = |why: String| Again { blocked: Some(why), ..Again::default() };
        let (Some(r), Some(kind)) = (self.index.resources.get(id), self.kinds.get(&id.kind)) else {
            return blocked(format!("{id} is not in the composition"));
        };
        let (Identity::Object(object), Target::Object(target)) = (&r.validated.identity, &r.target) else {
            return blocked(format!("{id} is not an object"));
        };
        if let Some(why) = self.not_ours(id, target, read) {
            return blocked(format!("{why}; it is left as it is"));
        }
        let about = About { resource: r, node: node_of(object), vmid: None };
        let mut context = world.context.clone();
        if let Err((_, why)) = self.fill_context(r, world, &mut context) {
            return Again { matches: true, ..blocked(why) };
        }
        let report = match kind.drift(&r.manifest, &Live::Object(read.live.clone()), &context) {
            Ok(report) => report,
            Err(refusal) => {
                let why: Vec<String> = about.of_refusal(refusal).into_iter().map(|a| a.message).collect();
                return Again { matches: true, ..blocked(why.join("; ")) };
            }
        };
        let mut errors: Vec<Anomaly> = report.anomalies.into_iter().map(|a| about.of_kind(a)).collect();
        errors.extend(self.ungranted(target, object, &report.steps, &about));
        let errors: Vec<String> =
            errors.into_iter().filter(|a| a.severity == Severity::Error).map(|a| a.message).collect();
        Again {
            matches: true,
            blocked: (!errors.is_empty()).then(|| errors.join("; ")),
            steps: report.steps.into_iter().map(Step::Kind).collect(),
            changes: report.changes.into_iter().map(judge::change).collect(),
            pending: report.pending.into_iter().map(|c| about.pending(c)).collect(),
        }
    }

    /// Owned objects that no manifest claims: their deletes, within what `prune` left of the budget. Each
    /// waits for the deletes of guests in this plan: what holds them must be empty first.
    pub(crate) fn prune_objects(&self, world: &World, budget: usize, plan: &mut ClusterPlan) {
        let claimed = self.claimed();
        let mut groups: BTreeMap<&str, Vec<Old>> = BTreeMap::new();
        for ((kind, _), objects) in &world.objects {
            let Some(Target::Object(target)) = self.kinds.get(kind).map(|k| &k.info().target) else {
                continue;
            };
            if !target.writes.iter().any(|w| w.name == "delete") {
                continue;
            }
            for read in objects.iter().flat_map(|objects| objects.values()).flatten() {
                let key = (
                    target.list.path.as_str(),
                    object::list_vars(target, &read.live.id),
                    read.live.id.id.as_str(),
                );
                let Proof::Ours(name) = self.proof(kind, target, read) else { continue };
                if !claimed.contains(&key) {
                    let name = name.unwrap_or_else(|| read.live.id.id.clone());
                    groups.entry(kind).or_default().push(Old { kind, name, target, read });
                }
            }
        }
        let whole = self.partial(world);
        let guests: Vec<String> =
            plan.actions.iter().filter(|a| a.verb == Verb::Delete).map(|a| a.id.clone()).collect();
        let mut left = budget;
        for (kind, group) in groups {
            if let Some(why) = &whole {
                let why = format!("no manifest claims it, but nothing is deleted on a partial view: {why}");
                plan.deferred.extend(group.iter().map(|old| old.noted(why.clone())));
                continue;
            }
            let wanted = self.index.resources.keys().any(|id| id.kind == kind);
            if self.empty_desired(kind, kind, wanted, group.len(), plan) {
                continue;
            }
            for old in group {
                match self.delete_path(&old) {
                    Ok(()) => {}
                    Err(anomaly) => {
                        plan.anomalies.push(*anomaly);
                        continue;
                    }
                }
                if left == 0 {
                    let why = "no manifest claims it; the prune budget of this cycle is used up";
                    plan.deferred.push(old.noted(why));
                    continue;
                }
                left -= 1;
                plan.actions.push(old.delete(&guests));
            }
        }
    }

    /// Objects that manifests of any kind name: list, its variables, id.
    fn claimed(&self) -> BTreeSet<(&str, Vec<(String, String)>, &str)> {
        let resources = self.index.resources.values();
        resources
            .filter_map(|r| match (&r.target, &r.validated.identity) {
                (Target::Object(target), Identity::Object(id)) => {
                    Some((target.list.path.as_str(), object::list_vars(target, id), id.id.as_str()))
                }
                _ => None,
            })
            .collect()
    }

    fn delete_path(&self, old: &Old) -> Result<(), Box<Anomaly>> {
        let path = resolve(old.target, "delete", &old.read.live.id, &[]);
        let why = match path {
            Ok(path) if self.options.grants.allow(old.kind, &path) => return Ok(()),
            Ok(path) => format!("no manifest claims it, and kind {} was not granted {path}", old.kind),
            Err(why) => format!("no manifest claims it, and it can't be deleted: {why}"),
        };
        Err(Box::new(Anomaly {
            code: "not-granted".to_owned(),
            severity: Severity::Warning,
            kind: old.kind.to_owned(),
            name: old.name.clone(),
            node: node_of(&old.read.live.id),
            vmid: None,
            message: why,
            help: Some(format!(
                "if you trust it, add to proxops.yaml: {}",
                Grants::lines(old.kind, old.target)
            )),
        }))
    }
}

/// The path of an operation of a kind's own.
fn resolve(
    target: &ObjectTarget,
    operation: &str,
    id: &ObjectId,
    vars: &[(String, String)],
) -> Result<String, String> {
    let write = target.writes.iter().find(|w| w.name == operation);
    object::path(write.ok_or_else(|| format!("operation \"{operation}\" is not declared"))?, id, vars)
}

/// An object of ours without a manifest.
struct Old<'w> {
    kind: &'w str,
    name: String,
    target: &'w ObjectTarget,
    read: &'w ObjectRead,
}

impl Old<'_> {
    fn noted(&self, why: impl Into<String>) -> Noted {
        Noted {
            kind: self.kind.to_owned(),
            name: self.name.clone(),
            node: node_of(&self.read.live.id),
            vmid: None,
            why: why.into(),
        }
    }

    fn delete(&self, after: &[String]) -> Action {
        let id = &self.read.live.id;
        let resource = ResourceId::new(self.kind, &self.name);
        Action {
            id: format!("delete:{}#{}", self.kind, id.id),
            after: after.to_vec(),
            reason: format!("\"{}\" carries our marker and no manifest claims it", id.id),
            steps: vec![Step::Destroy],
            digest: self.read.digest.clone(),
            ..action(&resource, Verb::Delete, id)
        }
    }
}

fn action(resource: &ResourceId, verb: Verb, id: &ObjectId) -> Action {
    Action {
        id: format!("{verb}:{resource}"),
        verb,
        kind: resource.kind.clone(),
        name: resource.name.clone(),
        node: node_of(id),
        vmid: None,
        level: 0,
        after: Vec::new(),
        disruptive: false,
        reason: String::new(),
        changes: Vec::new(),
        subject: Some(Subject::Object { id: id.clone() }),
        steps: Vec::new(),
        digest: None,
        ended: None,
    }
}
