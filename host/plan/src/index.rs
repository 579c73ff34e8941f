//! The composition of one cluster as the planner sees it, and the checks that need no live cluster.

use proxops_model::kind::{Identity, Manifest, Pairs, Reference, Target, Validated};
use proxops_model::{Diagnostic, Location, ResourceId, object};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The annotation `proxops/reconcile`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Create and converge.
    #[default]
    Reconcile,
    /// Show drift, never write.
    Observe,
    /// Create, never update.
    EnsureExists,
    /// Ignored, and protected from prune.
    Suspended,
}

/// One valid manifest.
#[derive(Clone)]
pub struct Resource {
    /// Kind and name.
    pub id: ResourceId,
    /// What the kind's functions get.
    pub manifest: Manifest,
    /// What the kind said of it.
    pub validated: Validated,
    /// What the kind manages.
    pub target: Target,
    /// `proxops/reconcile`.
    pub mode: Mode,
    /// `proxops/restart: allow`.
    pub restart_allowed: bool,
    /// `proxops/ignore`: PVE keys whose anomalies are only worth saying.
    pub ignore: BTreeSet<String>,
    /// `proxops/depends-on`.
    pub depends_on: Vec<Reference>,
    /// From a pointer to the place in the file.
    pub locate: Arc<dyn Fn(&str) -> Location + Send + Sync>,
}

impl Resource {
    /// Everything that must be there first: the kind's references and the annotation's.
    pub fn prerequisites(&self) -> impl Iterator<Item = &Reference> {
        self.validated.references.iter().chain(&self.depends_on)
    }

    /// The guest's node and vmid; `None` for other targets.
    pub fn guest_id(&self) -> Option<&proxops_model::kind::GuestId> {
        match &self.validated.identity {
            Identity::Guest(id) => Some(id),
            _ => None,
        }
    }
}

/// A manifest whose kind could not be asked; nothing is known about it but its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedResource {
    /// Kind and name.
    pub id: ResourceId,
    /// Why, the kind named.
    pub why: String,
    /// Where the manifest is.
    pub location: Location,
}

/// The composition of one cluster, sorted by kind and name.
#[derive(Clone, Default)]
pub struct Index {
    /// Name of the cluster.
    pub cluster: String,
    /// Node allowlist; empty = every node.
    pub nodes: BTreeSet<String>,
    /// By kind and name.
    pub resources: BTreeMap<ResourceId, Resource>,
    /// Manifests of broken kinds.
    pub failed: BTreeMap<ResourceId, FailedResource>,
    /// vmid to the resource that claims it.
    pub vmids: BTreeMap<u32, ResourceId>,
}

impl Index {
    /// Builds the index and reports every offline mistake of the composition.
    pub fn build(
        cluster: &str,
        nodes: &[String],
        resources: Vec<Resource>,
        failed: Vec<FailedResource>,
    ) -> (Self, Vec<Diagnostic>) {
        let mut index =
            Self { cluster: cluster.to_owned(), nodes: nodes.iter().cloned().collect(), ..Self::default() };
        let mut found = Vec::new();
        let mut resources = resources;
        resources.sort_by(|a, b| (&a.id, (a.locate)("")).cmp(&(&b.id, (b.locate)(""))));
        for f in failed {
            index.failed.insert(f.id.clone(), f);
        }
        let mut artifacts: BTreeMap<(String, String, String, String), ResourceId> = BTreeMap::new();
        let mut objects: BTreeMap<(String, Pairs, String), ResourceId> = BTreeMap::new();
        for r in resources {
            if let Some(first) = index.resources.get(&r.id) {
                let message =
                    format!("{} is defined twice; it is also at {}", r.id, (first.locate)("/metadata/name"));
                found.push(index.error(
                    &r,
                    "/metadata/name",
                    "duplicate-name",
                    message,
                    "rename one of the two",
                ));
                continue;
            }
            match &r.validated.identity {
                Identity::Guest(guest) => {
                    index.check_node(&r, &guest.node, &mut found);
                    match index.vmids.get(&guest.vmid).and_then(|id| index.resources.get(id)) {
                        Some(first) => {
                            let message = format!(
                                "vmid {} is already used by {} at {}; vmids are unique in a whole PVE cluster, whatever the node or kind",
                                guest.vmid,
                                first.id,
                                (first.locate)("/spec/vmid")
                            );
                            found.push(index.error(
                                &r,
                                "/spec/vmid",
                                "duplicate-vmid",
                                message,
                                "give one of the two another vmid",
                            ));
                        }
                        None => {
                            index.vmids.insert(guest.vmid, r.id.clone());
                        }
                    }
                }
                Identity::Artifact(placements) => {
                    let content = match &r.target {
                        Target::Artifact { content, .. } => content.clone(),
                        _ => String::new(),
                    };
                    for p in placements {
                        index.check_node(&r, &p.node, &mut found);
                        let key = (p.node.clone(), p.storage.clone(), content.clone(), p.filename.clone());
                        if let Some(other) = artifacts.get(&key).filter(|o| **o != r.id) {
                            let message = format!(
                                "{} on storage {} of node {} is already managed by {other}",
                                p.filename, p.storage, p.node
                            );
                            found.push(index.error(
                                &r,
                                "/spec/filename",
                                "duplicate-artifact",
                                message,
                                "keep one manifest for each file",
                            ));
                        }
                        artifacts.insert(key, r.id.clone());
                    }
                }
                Identity::Object(id) => {
                    if let Some((_, node)) = id.vars.iter().find(|(name, _)| name == "node") {
                        index.check_node(&r, node, &mut found);
                    }
                    // two kinds that list the same path have the same objects
                    let list = match &r.target {
                        Target::Object(target) => {
                            (target.list.path.clone(), object::list_vars(target, id), id.id.clone())
                        }
                        _ => Default::default(),
                    };
                    if let Some(other) = objects.get(&list) {
                        let message =
                            format!("the object \"{}\" of {} is already managed by {other}", id.id, list.0);
                        found.push(index.error(
                            &r,
                            "/spec",
                            "duplicate-object",
                            message,
                            "keep one manifest for each object",
                        ));
                    }
                    objects.insert(list, r.id.clone());
                }
            }
            index.resources.insert(r.id.clone(), r);
        }
        index.check_references(&mut found);
        index.check_cycles(&mut found);
        (index, found)
    }

    /// Whether a node may be read and written.
    pub fn allows(&self, node: &str) -> bool {
        self.nodes.is_empty() || self.nodes.contains(node)
    }

    fn error(&self, r: &Resource, at: &str, code: &str, message: String, help: &str) -> Diagnostic {
        Diagnostic::error((r.locate)(at), code, message)
            .with_pointer(at)
            .with_help(help)
            .for_cluster(&self.cluster)
    }

    fn check_node(&self, r: &Resource, node: &str, found: &mut Vec<Diagnostic>) {
        if self.allows(node) {
            return;
        }
        let at = node_pointer(r, node);
        let known: Vec<&str> = self.nodes.iter().map(String::as_str).collect();
        let message = format!("node {node} is not in the allowlist of cluster {}", self.cluster);
        let help = format!(
            "allowed are {}; `nodes` in clusters/{}/config.yaml decides",
            known.join(", "),
            self.cluster
        );
        found.push(self.error(r, &at, "node-not-allowed", message, &help));
    }

    fn check_references(&self, found: &mut Vec<Diagnostic>) {
        for r in self.resources.values() {
            for reference in r.prerequisites() {
                if self.resources.contains_key(&reference.to) || self.failed.contains_key(&reference.to) {
                    continue;
                }
                let same_kind = self
                    .resources
                    .keys()
                    .filter(|id| id.kind == reference.to.kind)
                    .map(|id| id.name.as_str());
                let near = nearest(&reference.to.name, same_kind);
                let message = format!(
                    "{} refers to {}, which the composition of cluster {} does not list",
                    r.id, reference.to, self.cluster
                );
                let help = match near {
                    Some(name) => format!("did you mean {name}?"),
                    None => format!("add its manifest to clusters/{}/resources.yaml", self.cluster),
                };
                found.push(self.error(r, &reference.at, "unknown-reference", message, &help));
            }
        }
    }

    fn check_cycles(&self, found: &mut Vec<Diagnostic>) {
        for cycle in crate::graph::cycles(self) {
            let Some(first) = cycle.first().and_then(|id| self.resources.get(id)) else { continue };
            let names: Vec<String> = cycle.iter().chain(cycle.first()).map(ToString::to_string).collect();
            let at =
                first.prerequisites().find(|p| cycle.contains(&p.to)).map_or(String::new(), |p| p.at.clone());
            let message = format!("these resources wait for each other: {}", names.join(" -> "));
            found.push(self.error(
                first,
                &at,
                "reference-cycle",
                message,
                "take one of these references out",
            ));
        }
    }
}

/// Where the manifest names this node.
pub(crate) fn node_pointer(r: &Resource, node: &str) -> String {
    let spec: serde_json::Value = serde_json::from_str(&r.manifest.spec).unwrap_or_default();
    let listed = spec.get("nodes").and_then(|n| n.as_array());
    match listed.and_then(|nodes| nodes.iter().position(|n| n.as_str() == Some(node))) {
        Some(i) => format!("/spec/nodes/{i}"),
        None => "/spec/node".to_owned(),
    }
}

/// The name that a mistyped one most likely meant: at most a third of its letters differ.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (strsim::damerau_levenshtein(wanted, name), name))
        .filter(|(distance, _)| *distance <= (wanted.chars().count() / 3).max(1))
        .min()
        .map(|(_, name)| name)
}
