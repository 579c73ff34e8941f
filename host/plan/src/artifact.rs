//! Artifacts: one download per copy that is absent; on a shared storage one in all. Never deleted.

use crate::guest::{ResourcePlan, made};
use crate::judge::{self, About};
use crate::planner::Stand;
use crate::{Mode, Planner, Resource, World};
use proxops_model::Severity;
use proxops_model::kind::{
    Context, Identity, KindApi, KindStep, Live, Placement, PlacementState, Presence, StorageUse,
};
use proxops_model::plan::{Action, Step, Subject, Verb};
use std::collections::BTreeSet;

impl Planner<'_> {
    pub(crate) fn artifact(
        &self,
        r: &Resource,
        kind: &dyn KindApi,
        content: &str,
        world: &World,
        context: &mut Context,
    ) -> ResourcePlan {
        let Identity::Artifact(placements) = &r.validated.identity else {
            return ResourcePlan::missing("the kind gave no placement".to_owned());
        };
        let first = placements.first().map(|p| p.node.clone());
        let about = About { resource: r, node: first, vmid: None };
        let mut plan = ResourcePlan::usable();
        let states = self.states(r, placements, content, world, &mut plan);
        let trouble = |plan: &mut ResourcePlan, why: String| plan.stand = Stand::Missing(why);
        if let Some(bad) = plan.anomalies.first().map(|a| a.message.clone()) {
            trouble(&mut plan, bad);
            return plan;
        }
        if let Some(unknown) = plan.unknown.first().map(|n| n.why.clone()) {
            trouble(&mut plan, unknown);
        }
        if states.iter().all(|s| s.presence != Presence::Absent) {
            return plan;
        }
        if r.mode == Mode::Suspended || r.mode == Mode::Observe {
            plan.skipped.push(about.noted("not downloaded: the annotation proxops/reconcile says so"));
            trouble(&mut plan, "it is not there and its mode forbids the download".to_owned());
            return plan;
        }
        for hole in &r.validated.incomplete {
            plan.anomalies.push(about.error_at(
                "incomplete",
                &hole.at,
                format!("can't be downloaded: {}", hole.why),
                "fill the field in",
            ));
        }
        if let Err((at, why)) = self.fill_context(r, world, context) {
            plan.anomalies.push(about.error_at("secret", &at, why, ""));
        }
        if plan.anomalies.is_empty() {
            match kind.drift(&r.manifest, &Live::Artifact(states.clone()), context) {
                Ok(report) => {
                    plan.anomalies.extend(report.anomalies.into_iter().map(|a| about.of_kind(a)));
                    self.downloads(r, content, report.steps, &states, &mut plan);
                }
                Err(refusal) => plan.anomalies.extend(about.of_refusal(refusal)),
            }
        }
        if let Some(error) =
            plan.anomalies.iter().find(|a| a.severity == Severity::Error).map(|a| a.message.clone())
        {
            plan.actions.clear();
            trouble(&mut plan, error);
        }
        plan
    }

    /// What is known of each copy. On a shared storage one copy stands for all.
    fn states(
        &self,
        r: &Resource,
        placements: &[Placement],
        content: &str,
        world: &World,
        plan: &mut ResourcePlan,
    ) -> Vec<PlacementState> {
        let mut states = Vec::new();
        let mut fetched: BTreeSet<(String, String)> = BTreeSet::new();
        let fact = |p: &Placement| world.artifacts.get(&(p.clone(), content.to_owned()));
        for p in placements {
            let about = About { resource: r, node: Some(p.node.clone()), vmid: None };
            let shared = world.storage_on(&p.storage, &p.node).is_some_and(|s| s.shared);
            let seen = shared.then(|| {
                placements
                    .iter()
                    .filter(|q| q.storage == p.storage)
                    .find_map(|q| fact(q).filter(|f| f.presence == Presence::Present))
            });
            let mut state = PlacementState { at: p.clone(), presence: Presence::Unknown, size: None };
            if let Some(Some(there)) = seen {
                state.presence = Presence::Present;
                state.size = there.size;
            } else if let Some(why) = world.node_trouble(&p.node) {
                if world.nodes.contains_key(&p.node) {
                    plan.unknown
                        .push(about.noted(format!("{why}; whether the file is there can not be told")));
                } else {
                    let at = crate::index::node_pointer(r, &p.node);
                    plan.anomalies.push(about.error_at("no-such-node", &at, why, ""));
                }
            } else if let Some((why, help)) = self.storage_of(p, content, world) {
                plan.anomalies.push(about.error_at("storage", "/spec/storage", why, help));
            } else {
                match fact(p) {
                    Some(f) if f.presence != Presence::Unknown => {
                        state.presence = f.presence;
                        state.size = f.size;
                        let key = (p.storage.clone(), p.filename.clone());
                        if shared && f.presence == Presence::Absent && !fetched.insert(key) {
                            // fetched once, by the first node: the kind is asked about that one only
                            state.presence = Presence::Unknown;
                        }
                    }
                    other => {
                        let why = other
                            .and_then(|f| f.why.clone())
                            .unwrap_or_else(|| "the storage was not listed".to_owned());
                        plan.unknown.push(about.noted(why));
                    }
                }
            }
            states.push(state);
        }
        states
    }

    fn storage_of(&self, p: &Placement, content: &str, world: &World) -> Option<(String, String)> {
        let wanted = StorageUse {
            storage: p.storage.clone(),
            node: Some(p.node.clone()),
            content: content.to_owned(),
            at: "/spec/storage".to_owned(),
        };
        judge::storage_trouble(world, &wanted, &p.node)
    }

    fn downloads(
        &self,
        r: &Resource,
        content: &str,
        steps: Vec<KindStep>,
        states: &[PlacementState],
        plan: &mut ResourcePlan,
    ) {
        let absent = |node: &str, storage: &str| {
            states
                .iter()
                .any(|s| s.at.node == node && s.at.storage == storage && s.presence == Presence::Absent)
        };
        let wanted: Vec<KindStep> = steps
            .into_iter()
            .filter(|s| matches!(s, KindStep::Download { node, storage, .. } if absent(node, storage)))
            .collect();
        let many = wanted.len() > 1;
        for step in wanted {
            let KindStep::Download { node, storage, filename, .. } = &step else { continue };
            let id = if many { format!("download:{}@{node}", r.id) } else { format!("download:{}", r.id) };
            plan.actions.push(Action {
                id,
                verb: Verb::Download,
                kind: r.id.kind.clone(),
                name: r.id.name.clone(),
                node: Some(node.clone()),
                vmid: None,
                level: 0,
                after: Vec::new(),
                disruptive: false,
                reason: format!("{filename} is not on storage {storage} of node {node}"),
                changes: made(&step),
                subject: Some(Subject::Artifact { content: content.to_owned() }),
                digest: None,
                steps: vec![Step::Kind(step)],
                ended: None,
            });
        }
    }
}
