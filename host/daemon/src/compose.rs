//! Manifests through their kinds' `validate` into the index of one cluster.

use proxops_model::kind::{KindSet, Reference};
use proxops_model::{Diagnostic, ResourceId};
use proxops_plan::{FailedResource, Index, Mode, Resource};
use proxops_repo::{Cluster, ManifestDoc, ReconcileMode};
use std::sync::Arc;

/// What came of a cluster's manifests.
pub struct Composed {
    /// What is wanted.
    pub index: Arc<Index>,
    /// Every mistake that kinds and cross-checks found, each tagged with the cluster.
    pub diagnostics: Vec<Diagnostic>,
}

/// Validates every manifest of the cluster and builds its index. No network, no secrets.
pub fn compose(cluster: &Cluster, kinds: &dyn KindSet) -> Composed {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = cluster.manifests.len().div_ceil(threads).max(16);
    let one =
        |docs: &[Arc<ManifestDoc>]| -> Vec<One> { docs.iter().map(|doc| validate(doc, kinds)).collect() };
    let all: Vec<One> = std::thread::scope(|scope| {
        let running: Vec<_> =
            cluster.manifests.chunks(share).map(|part| scope.spawn(move || one(part))).collect();
        running.into_iter().flat_map(|handle| handle.join().unwrap_or_default()).collect()
    });
    let (mut resources, mut failed, mut diagnostics) = (Vec::new(), Vec::new(), Vec::new());
    for one in all {
        diagnostics.extend(one.diagnostics);
        resources.extend(one.resource);
        failed.extend(one.failed);
    }
    let nodes = cluster.config.as_ref().map(|c| c.nodes.clone()).unwrap_or_default();
    let (index, found) = Index::build(&cluster.name, &nodes, resources, failed);
    diagnostics.extend(found);
    for d in &mut diagnostics {
        d.cluster = Some(cluster.name.clone());
    }
    diagnostics.sort();
    diagnostics.dedup();
    Composed { index: Arc::new(index), diagnostics }
}

#[derive(Default)]
struct One {
    resource: Option<Resource>,
    failed: Option<FailedResource>,
    diagnostics: Vec<Diagnostic>,
}

fn validate(doc: &Arc<ManifestDoc>, kinds: &dyn KindSet) -> One {
    let mut one = One::default();
    let Some(kind) = kinds.get(&doc.id.kind) else {
        let message = format!("no kind {} is loaded", doc.id.kind);
        one.diagnostics
            .push(Diagnostic::error(doc.locate("/kind"), "unknown-kind", message).with_pointer("/kind"));
        return one;
    };
    let manifest = doc.to_kind();
    let validation = match kind.validate(&manifest) {
        Ok(validation) => validation,
        Err(fault) => {
            one.failed = Some(FailedResource {
                id: doc.id.clone(),
                why: fault.to_string(),
                location: doc.locate("/kind"),
            });
            return one;
        }
    };
    for d in validation.diagnostics {
        let mut found = Diagnostic::error(doc.locate(&d.at), &d.code, d.message)
            .with_severity(d.severity)
            .with_pointer(d.at);
        found.help = Some(d.help.unwrap_or_else(|| explained(&doc.id.kind, &found.pointer)));
        one.diagnostics.push(found);
    }
    let locate = {
        let doc = Arc::clone(doc);
        Arc::new(move |pointer: &str| doc.locate(pointer))
    };
    let depends_at = format!("/metadata/annotations/{}", proxops_repo::DEPENDS_ON.replace('/', "~1"));
    one.resource = validation.validated.map(|validated| Resource {
        id: doc.id.clone(),
        manifest,
        validated,
        target: kind.info().target.clone(),
        mode: mode(doc.policy.reconcile),
        restart_allowed: doc.policy.restart,
        ignore: doc.policy.ignore.iter().cloned().collect(),
        depends_on: doc
            .policy
            .depends_on
            .iter()
            .map(|to: &ResourceId| Reference { to: to.clone(), at: depends_at.clone() })
            .collect(),
        locate,
    });
    one
}

/// What to do where the kind gave no advice of its own: ask for the field's description.
fn explained(kind: &str, pointer: &str) -> String {
    let names = pointer.split('/').filter(|part| !part.is_empty() && part.parse::<u32>().is_err());
    let field = std::iter::once(kind).chain(names).collect::<Vec<_>>().join(".");
    format!("`proxops explain {field}` shows what is expected")
}

fn mode(mode: ReconcileMode) -> Mode {
    match mode {
        ReconcileMode::Reconcile => Mode::Reconcile,
        ReconcileMode::Observe => Mode::Observe,
        ReconcileMode::EnsureExists => Mode::EnsureExists,
        ReconcileMode::Suspended => Mode::Suspended,
    }
}
