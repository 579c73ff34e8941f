//! The planner: asks the kinds about every resource, ties the answers together.

use crate::guest::ResourcePlan;
use crate::judge::About;
use crate::{Index, Resource, World, graph};
use proxops_model::kind::{Context, KindSet, Resolved, Target};
use proxops_model::object::Grants;
use proxops_model::plan::{Anomaly, ClusterPlan, Noted, Verb};
use proxops_model::{ResourceId, Severity};
use std::collections::BTreeMap;

/// Settings of the plan.
#[derive(Debug, Clone)]
pub struct Options {
    /// Deletes per cycle; 0 = unlimited.
    pub prune_budget: u32,
    /// Marks our guests.
    pub owner_tag: String,
    /// API paths that object kinds may use.
    pub grants: Grants,
    /// Threads that call kinds.
    pub threads: usize,
}

/// What the cluster's secrets document holds. No values but public keys.
pub trait SecretNames: Send + Sync {
    /// Whether a password of this name is there; else why not and what to do.
    fn check(&self, name: &str) -> Result<(), String>;
    /// The public key of this name.
    fn public_key(&self, name: &str) -> Result<String, String>;
}

/// Plans one cluster.
pub struct Planner<'a> {
    /// What is wanted.
    pub index: &'a Index,
    /// Who knows how to compare.
    pub kinds: &'a dyn KindSet,
    /// Names of secrets.
    pub secrets: &'a dyn SecretNames,
    /// Settings.
    pub options: &'a Options,
}

/// How a resource stands for those that need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stand {
    /// There, or its actions make it so.
    Usable,
    /// Can't be had in this cycle.
    Missing(String),
}

impl Planner<'_> {
    /// The plan of the cluster.
    pub fn plan(&self, world: &World) -> ClusterPlan {
        let resources: Vec<&Resource> = self.index.resources.values().collect();
        let mut plans: BTreeMap<&ResourceId, ResourcePlan> = self.ask_all(&resources, world);
        self.tie(world, &mut plans);
        let mut plan = ClusterPlan::new(&self.index.cluster);
        for failed in self.index.failed.values() {
            plan.anomalies.push(Anomaly {
                code: "kind-fault".to_owned(),
                severity: Severity::Error,
                kind: failed.id.kind.clone(),
                name: failed.id.name.clone(),
                node: None,
                vmid: None,
                message: format!("{} ({})", failed.why, failed.location),
                help: Some("the kind's component is broken; other kinds go on".to_owned()),
            });
        }
        for one in plans.into_values() {
            plan.actions.extend(one.actions);
            plan.anomalies.extend(one.anomalies);
            plan.unknown.extend(one.unknown);
            plan.deferred.extend(one.deferred);
            plan.skipped.extend(one.skipped);
            plan.pending.extend(one.pending);
        }
        self.prune(world, &mut plan);
        graph::level(&mut plan.actions);
        let noted = |n: &Noted| (n.kind.clone(), n.name.clone(), n.vmid, n.why.clone());
        plan.anomalies.sort_by(|a, b| {
            (&a.kind, &a.name, a.vmid, &a.code, &a.message)
                .cmp(&(&b.kind, &b.name, b.vmid, &b.code, &b.message))
        });
        plan.unknown.sort_by_key(noted);
        plan.deferred.sort_by_key(noted);
        plan.skipped.sort_by_key(noted);
        plan.pending.sort_by(|a, b| (&a.kind, &a.name, &a.key).cmp(&(&b.kind, &b.name, &b.key)));
        plan
    }

    /// Asks the kinds, in parallel; the result does not depend on the number of threads.
    fn ask_all<'r>(
        &self,
        resources: &[&'r Resource],
        world: &World,
    ) -> BTreeMap<&'r ResourceId, ResourcePlan> {
        let threads = self.options.threads.clamp(1, resources.len().max(1));
        let share = resources.len().div_ceil(threads).max(1);
        let work = |part: &[&'r Resource]| -> Vec<(&'r ResourceId, ResourcePlan)> {
            let mut context = world.context.clone();
            part.iter().map(|r| (&r.id, self.ask(r, world, &mut context))).collect()
        };
        if threads == 1 {
            return work(resources).into_iter().collect();
        }
        std::thread::scope(|scope| {
            let running: Vec<_> =
                resources.chunks(share).map(|part| scope.spawn(move || work(part))).collect();
            running.into_iter().flat_map(|handle| handle.join().unwrap_or_default()).collect()
        })
    }

    fn ask(&self, r: &Resource, world: &World, context: &mut Context) -> ResourcePlan {
        let Some(kind) = self.kinds.get(&r.id.kind) else {
            return ResourcePlan::missing(format!("no kind {}", r.id.kind));
        };
        if let Some(why) = world.busy_resources.get(&r.id) {
            let mut plan = ResourcePlan::missing(why.clone());
            let about = About { resource: r, node: None, vmid: None };
            plan.deferred.push(about.noted(format!("an earlier run is not done with it: {why}")));
            return plan;
        }
        match &r.target {
            Target::Guest { guest_type, template } => {
                self.guest(r, kind, *guest_type, *template, world, context)
            }
            Target::Artifact { content, .. } => self.artifact(r, kind, content, world, context),
            Target::Object(target) => self.object(r, kind, target, world, context),
        }
    }

    /// Fills what differs per resource: attributes of references, public keys. `Err` = a secret that
    /// is not there.
    pub(crate) fn fill_context(
        &self,
        r: &Resource,
        world: &World,
        context: &mut Context,
    ) -> Result<(), (String, String)> {
        context.references.clear();
        context.public_keys.clear();
        for reference in &r.validated.references {
            let Some(other) = self.index.resources.get(&reference.to) else { continue };
            let mut attributes = other.validated.attributes.clone();
            if let Some(fact) = other.guest_id().and_then(|g| world.guests.get(&g.vmid)) {
                attributes.retain(|(k, _)| k != "node");
                attributes.push(("node".to_owned(), fact.node.clone()));
            }
            context.references.push(Resolved { to: reference.to.clone(), attributes });
        }
        for secret in &r.validated.secrets {
            match secret.class {
                proxops_model::kind::SecretClass::Password => {
                    self.secrets.check(&secret.name).map_err(|why| (secret.at.clone(), why))?;
                }
                proxops_model::kind::SecretClass::PublicKey => {
                    let key =
                        self.secrets.public_key(&secret.name).map_err(|why| (secret.at.clone(), why))?;
                    context.public_keys.push((secret.name.clone(), key));
                }
            }
        }
        Ok(())
    }

    /// Prerequisites: an action waits for the actions of what it refers to; where that can't be had in
    /// this cycle, it is deferred.
    fn tie(&self, world: &World, plans: &mut BTreeMap<&ResourceId, ResourcePlan>) {
        for id in self.in_order() {
            let Some(r) = self.index.resources.get(id) else { continue };
            if plans.get(id).is_none_or(|p| p.actions.is_empty()) {
                continue;
            }
            let mut after = Vec::new();
            let mut missing = None;
            for p in r.prerequisites() {
                if let Some(failed) = self.index.failed.get(&p.to) {
                    missing.get_or_insert(format!("{} can't be used: {}", p.to, failed.why));
                    continue;
                }
                let Some(other) = plans.get(&p.to) else { continue };
                if let Stand::Missing(why) = &other.stand {
                    missing.get_or_insert(format!("waits for {}: {why}", p.to));
                    continue;
                }
                let wanted = self.index.resources.get(&p.to);
                let node = r.guest_id().map(|g| self.node_of(world, g));
                for action in &other.actions {
                    // Of an artifact on several nodes, only the copy that this guest can reach.
                    let elsewhere = action.verb == Verb::Download
                        && node.is_some()
                        && action.node != node
                        && !wanted.is_some_and(|w| self.is_shared(w, world));
                    if !elsewhere {
                        after.push(action.id.clone());
                    }
                }
            }
            let Some(plan) = plans.get_mut(id) else { continue };
            match missing {
                Some(why) => plan.defer(r, &why),
                None => {
                    for action in &mut plan.actions {
                        action.after.extend(after.iter().cloned());
                    }
                }
            }
        }
    }

    fn is_shared(&self, r: &Resource, world: &World) -> bool {
        match &r.validated.identity {
            proxops_model::kind::Identity::Artifact(placements) => {
                placements.iter().any(|p| world.storage_on(&p.storage, &p.node).is_some_and(|s| s.shared))
            }
            _ => false,
        }
    }

    pub(crate) fn node_of(&self, world: &World, guest: &proxops_model::kind::GuestId) -> String {
        world.guests.get(&guest.vmid).map_or_else(|| guest.node.clone(), |fact| fact.node.clone())
    }

    /// Prerequisites before dependants.
    fn in_order(&self) -> Vec<&ResourceId> {
        let mut graph: petgraph::graphmap::DiGraphMap<&ResourceId, ()> =
            petgraph::graphmap::DiGraphMap::new();
        for r in self.index.resources.values() {
            graph.add_node(&r.id);
            for p in r.prerequisites() {
                if let Some((to, _)) = self.index.resources.get_key_value(&p.to) {
                    graph.add_edge(to, &r.id, ());
                }
            }
        }
        // Cycles are refused by `Index::build`; if one is left, its members keep their order by name.
        petgraph::algo::toposort(&graph, None).unwrap_or_else(|_| self.index.resources.keys().collect())
    }
}
