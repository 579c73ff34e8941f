//! Prune: owned guests that no manifest claims. At most the budget a cycle, and never on doubt.

use crate::{GuestFact, GuestRead, Planner, World};
use proxops_model::kind::{GuestType, LivePower, Target};
use proxops_model::plan::{Action, Anomaly, ClusterPlan, Noted, Step, Subject, Verb};
use proxops_model::{Severity, text};
use std::collections::BTreeMap;

/// What a guest without a manifest is called: the built-in kind of its type and mark.
pub(crate) fn kind_name(guest_type: GuestType, template: bool) -> &'static str {
    match (guest_type, template) {
        (GuestType::Qemu, false) => "VM",
        (GuestType::Qemu, true) => "TemplateVM",
        (GuestType::Lxc, false) => "LXC",
        (GuestType::Lxc, true) => "TemplateCT",
    }
}

struct Candidate<'w> {
    fact: &'w GuestFact,
    read: Option<&'w GuestRead>,
    trouble: Option<&'w str>,
    template: bool,
}

impl Candidate<'_> {
    fn name(&self) -> String {
        let name = match self.read {
            Some(read) => read.live.name.clone(),
            None => self.fact.name.clone(),
        };
        name.filter(|n| !n.is_empty()).unwrap_or_else(|| self.fact.vmid.to_string())
    }

    fn kind(&self) -> &'static str {
        kind_name(self.fact.guest_type, self.template)
    }

    fn noted(&self, why: impl Into<String>) -> Noted {
        Noted {
            kind: self.kind().to_owned(),
            name: self.name(),
            node: Some(self.fact.node.clone()),
            vmid: Some(self.fact.vmid),
            why: why.into(),
        }
    }

    fn anomaly(&self, code: &str, message: impl Into<String>, help: &str) -> Anomaly {
        Anomaly {
            code: code.to_owned(),
            severity: Severity::Warning,
            kind: self.kind().to_owned(),
            name: self.name(),
            node: Some(self.fact.node.clone()),
            vmid: Some(self.fact.vmid),
            message: message.into(),
            help: Some(help.to_owned()),
        }
    }
}

impl Planner<'_> {
    /// Adds deletes, deferrals and anomalies of owned guests and objects without a manifest.
    pub(crate) fn prune(&self, world: &World, plan: &mut ClusterPlan) {
        let budget = match self.options.prune_budget {
            0 => usize::MAX,
            n => n as usize,
        };
        let before = plan.actions.len();
        self.prune_guests(world, budget, plan);
        let used = plan.actions.len() - before;
        self.prune_objects(world, budget.saturating_sub(used), plan);
    }

    /// Why nothing at all may be deleted in this cycle.
    pub(crate) fn partial(&self, world: &World) -> Option<String> {
        world.partial.clone().or_else(|| {
            let broken = self.index.failed.values().next()?;
            Some(format!("{} can't be read, so its vmid is not known ({})", broken.id, broken.why))
        })
    }

    fn prune_guests(&self, world: &World, budget: usize, plan: &mut ClusterPlan) {
        let found = self.candidates(world);
        if found.is_empty() {
            return;
        }
        if let Some(why) = self.partial(world) {
            let why = format!("no manifest claims it, but nothing is deleted on a partial view: {why}");
            plan.deferred.extend(found.iter().map(|c| c.noted(why.clone())));
            return;
        }
        let mut groups: BTreeMap<(GuestType, bool), Vec<Candidate>> = BTreeMap::new();
        for c in found {
            groups.entry((c.fact.guest_type, c.template)).or_default().push(c);
        }
        for guest_type in [GuestType::Qemu, GuestType::Lxc] {
            // Guests and templates count as one where neither has a manifest.
            let live = |template| groups.get(&(guest_type, template)).map_or(0, Vec::len);
            let (guests, templates) = (live(false), live(true));
            let both = guests > 0 && templates > 0;
            if both && self.guarded(guest_type, &[false, true], guests + templates, plan) {
                groups.retain(|(of, _), _| *of != guest_type);
            }
        }
        let mut ready: Vec<Candidate> = Vec::new();
        // Guests that have to stay for now, by type: any may be a clone of a template.
        let mut stay: BTreeMap<GuestType, String> = BTreeMap::new();
        for ((guest_type, template), group) in groups {
            if self.guarded(guest_type, &[template], group.len(), plan) {
                continue;
            }
            for c in group {
                let obstacle = self.obstacle(&c, world);
                if obstacle.is_some() && !c.template {
                    stay.entry(guest_type).or_insert_with(|| c.name());
                }
                match obstacle {
                    None => ready.push(c),
                    Some(Obstacle::Unknown(why)) => plan.unknown.push(c.noted(why)),
                    Some(Obstacle::Anomaly(anomaly)) => plan.anomalies.push(*anomaly),
                }
            }
        }
        // Clones before templates: a template can't go while linked clones need its volumes.
        ready.sort_by_key(|c| (c.template, c.fact.vmid));
        let mut guests: Vec<String> = Vec::new();
        ready.retain(|c| match stay.get(&c.fact.guest_type).filter(|_| c.template) {
            None => true,
            Some(guest) => {
                let why = format!(
                    "no manifest claims it; it goes after {guest}, which may be its clone and has to stay"
                );
                plan.deferred.push(c.noted(why));
                false
            }
        });
        for (i, c) in ready.iter().enumerate() {
            if i >= budget {
                plan.deferred.push(c.noted(format!(
                    "no manifest claims it; the prune budget of {budget} for this cycle is used up"
                )));
                continue;
            }
            let mut action = delete(c, &self.options.owner_tag);
            if c.template {
                action.after.clone_from(&guests);
            } else {
                guests.push(action.id.clone());
            }
            plan.actions.push(action);
        }
    }

    fn candidates<'w>(&self, world: &'w World) -> Vec<Candidate<'w>> {
        world
            .guests
            .values()
            .filter(|fact| text::has_tag(&fact.tags, &self.options.owner_tag))
            .filter(|fact| self.index.allows(&fact.node) && !self.index.vmids.contains_key(&fact.vmid))
            .filter(|fact| !world.busy.contains_key(&fact.vmid))
            .map(|fact| {
                let (read, trouble) = match world.reads.get(&fact.vmid) {
                    Some(Ok(read)) => (Some(read), None),
                    Some(Err(why)) => (None, Some(why.as_str())),
                    None => (None, Some("its configuration was not read")),
                };
                Candidate { fact, read, trouble, template: read.map_or(fact.template, |r| r.live.template) }
            })
            .collect()
    }

    /// The empty-desired guard: a kind without any manifest is more likely a mistake in the repository
    /// than the wish to delete everything.
    fn guarded(
        &self,
        guest_type: GuestType,
        templates: &[bool],
        live: usize,
        plan: &mut ClusterPlan,
    ) -> bool {
        let wanted = |t: &Target| matches!(t, Target::Guest { guest_type: g, template } if *g == guest_type && templates.contains(template));
        let any = self.index.resources.values().any(|r| wanted(&r.target));
        let kinds: Vec<&str> = templates.iter().map(|template| kind_name(guest_type, *template)).collect();
        let first = kinds.first().copied().unwrap_or_default();
        self.empty_desired(first, &kinds.join(" or "), any, live, plan)
    }

    /// The guard itself: whether nothing of this kind, or of `what`, may be deleted.
    pub(crate) fn empty_desired(
        &self,
        kind: &str,
        what: &str,
        wanted: bool,
        live: usize,
        plan: &mut ClusterPlan,
    ) -> bool {
        let budget = self.options.prune_budget as usize;
        if budget == 0 || live <= budget || wanted {
            return false;
        }
        plan.anomalies.push(Anomaly {
            code: "empty-desired".to_owned(),
            severity: Severity::Warning,
            kind: kind.to_owned(),
            name: "*".to_owned(),
            node: None,
            vmid: None,
            message: format!(
                "the composition lists no {what}, but {live} live ones carry the tag {}; none is deleted, since reconcile.prune-budget is {budget}",
                self.options.owner_tag
            ),
            help: Some(format!(
                "if they really are to go, set reconcile.prune-budget to {live} or more (0 = unlimited) for this cluster"
            )),
        });
        true
    }

    fn obstacle(&self, c: &Candidate, world: &World) -> Option<Obstacle> {
        if let Some(why) = world.node_trouble(&c.fact.node) {
            return Some(Obstacle::Unknown(why));
        }
        let Some(read) = c.read else {
            return Some(Obstacle::Unknown(c.trouble.unwrap_or("its configuration was not read").to_owned()));
        };
        let vmid = c.fact.vmid;
        let stop = |code: &str, why: String, help: &str| {
            Some(Obstacle::Anomaly(Box::new(c.anomaly(
                code,
                format!("no manifest claims it, but {why}; it is left as it is"),
                help,
            ))))
        };
        if !text::has_tag(read.tags(), &self.options.owner_tag) {
            return stop(
                "not-ours",
                "its configuration does not carry the owner tag".to_owned(),
                "look at the guest's tags",
            );
        }
        if read.value("protection") == Some("1") {
            return stop(
                "protected",
                "it is protected".to_owned(),
                "take the protection off in PVE, or take the owner tag off to keep the guest",
            );
        }
        if let Some(lock) = read.live.lock.as_ref().or(c.fact.lock.as_ref()) {
            return stop(
                "locked",
                format!("it is locked ({lock})"),
                "it is tried again when the lock is gone",
            );
        }
        let listed = |list: &Option<Result<std::collections::BTreeSet<u32>, String>>| match list {
            Some(Ok(vmids)) => Ok(vmids.contains(&vmid)),
            Some(Err(why)) => Err(why.clone()),
            None => Err("the list was not read".to_owned()),
        };
        match listed(&world.ha) {
            Ok(false) if !c.fact.ha => {}
            Ok(_) => return stop("ha-managed", "HA manages it".to_owned(), "remove the guest from HA first"),
            Err(why) => {
                return stop(
                    "ha-unknown",
                    format!("whether HA manages it can't be told: {why}"),
                    "the credential needs Sys.Audit on /",
                );
            }
        }
        match listed(&world.replicated) {
            Ok(false) => {}
            Ok(true) => {
                return stop(
                    "replicated",
                    "it has a replication job".to_owned(),
                    "remove the replication job first",
                );
            }
            Err(why) => {
                return stop(
                    "replication-unknown",
                    format!("whether it is replicated can't be told: {why}"),
                    "check the credential's privileges on the guest",
                );
            }
        }
        if read.live.power == LivePower::Unknown {
            return Some(Obstacle::Unknown("whether it runs can't be told".to_owned()));
        }
        None
    }
}

enum Obstacle {
    Unknown(String),
    Anomaly(Box<Anomaly>),
}

fn delete(c: &Candidate, owner_tag: &str) -> Action {
    let running = c.read.is_none_or(|r| r.live.power != LivePower::Stopped);
    let mut steps = vec![Step::Destroy];
    if running {
        steps.insert(0, Step::Stop { hard: true });
    }
    Action {
        id: format!("delete:{}/{}", c.fact.guest_type, c.fact.vmid),
        verb: Verb::Delete,
        kind: c.kind().to_owned(),
        name: c.name(),
        node: Some(c.fact.node.clone()),
        vmid: Some(c.fact.vmid),
        level: 0,
        after: Vec::new(),
        disruptive: running,
        reason: format!("it carries the tag {owner_tag} and no manifest claims it"),
        changes: Vec::new(),
        subject: Some(Subject::Guest { guest_type: c.fact.guest_type.as_str().to_owned() }),
        steps,
        digest: c.read.and_then(|r| r.digest.clone()),
        ended: None,
    }
}
