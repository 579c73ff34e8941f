//! Two small kinds and a bench that builds compositions and live facts.

use proxops_model::kind::*;
use proxops_model::plan::ClusterPlan;
use proxops_model::{Diagnostic, Location, ResourceId};
use proxops_plan::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A guest kind whose spec is `{"memory": text}`; memory "needs-stop" marks the change as such.
struct GuestKind(KindInfo);
/// An artifact kind that downloads what is absent.
struct FileKind(KindInfo);

fn memory(m: &Manifest) -> String {
    let spec: serde_json::Value = serde_json::from_str(&m.spec).unwrap();
    spec["memory"].as_str().unwrap_or_default().to_owned()
}

impl KindApi for GuestKind {
    fn info(&self) -> &KindInfo {
        &self.0
    }
    fn validate(&self, _: &Manifest) -> Result<Validation, KindFault> {
        unreachable!("the bench builds resources itself")
    }
    fn create_params(&self, m: &Manifest, c: &Context) -> Result<Creation, Refusal> {
        let mut params = vec![text("memory", &memory(m))];
        params.extend(
            c.references
                .iter()
                .flat_map(|r| &r.attributes)
                .filter(|(k, _)| k == "volid")
                .map(|(_, v)| text("ide2", v)),
        );
        Ok(Creation { steps: vec![KindStep::Create { params }], ..Creation::default() })
    }
    fn drift(&self, m: &Manifest, live: &Live, _: &Context) -> Result<DriftReport, Refusal> {
        let Live::Guest(live) = live else { unreachable!() };
        let (wanted, is) = (memory(m), live.values["memory"].text().unwrap().to_owned());
        let change = FieldChange {
            at: "/spec/memory".into(),
            key: "memory".into(),
            before: Some(is.clone()),
            after: Some(wanted.clone()),
            sensitive: false,
            needs_stop: wanted == "needs-stop",
        };
        let mut report = DriftReport::default();
        if live.pending.iter().any(|p| p.configured.as_deref() == Some(&wanted)) {
            report.pending.push(change.clone());
        }
        if wanted != is {
            report.changes.push(change);
            report.steps.push(KindStep::Configure {
                set: vec![text("memory", &wanted)],
                unset: vec![],
                revert: vec![],
            });
        }
        Ok(report)
    }
    fn adopt(&self, _: &str, _: &Live, _: &Context, _: bool) -> Result<Adopted, Refusal> {
        unreachable!()
    }
}

impl KindApi for FileKind {
    fn info(&self) -> &KindInfo {
        &self.0
    }
    fn validate(&self, _: &Manifest) -> Result<Validation, KindFault> {
        unreachable!()
    }
    fn create_params(&self, _: &Manifest, _: &Context) -> Result<Creation, Refusal> {
        Ok(Creation::default())
    }
    fn drift(&self, _: &Manifest, live: &Live, _: &Context) -> Result<DriftReport, Refusal> {
        let Live::Artifact(states) = live else { unreachable!() };
        let steps = states.iter().filter(|s| s.presence == Presence::Absent).map(|s| KindStep::Download {
            node: s.at.node.clone(),
            storage: s.at.storage.clone(),
            filename: s.at.filename.clone(),
            params: vec![text("url", "https://example.org/x.iso")],
        });
        Ok(DriftReport { steps: steps.collect(), ..DriftReport::default() })
    }
    fn adopt(&self, _: &str, _: &Live, _: &Context, _: bool) -> Result<Adopted, Refusal> {
        unreachable!()
    }
}

fn text(key: &str, value: &str) -> Param {
    Param { key: key.into(), value: ParamValue::Text(value.into()), at: None }
}

fn info(kind: &str, target: Target) -> KindInfo {
    KindInfo {
        kind: kind.into(),
        version: "1".into(),
        api_versions: vec![],
        root: kind.to_lowercase(),
        summary: String::new(),
        target,
        schema: "{}".into(),
        examples: vec![],
    }
}

struct Kinds(BTreeMap<String, Box<dyn KindApi>>);

impl KindSet for Kinds {
    fn get(&self, kind: &str) -> Option<&dyn KindApi> {
        self.0.get(kind).map(|k| &**k)
    }
    fn all(&self) -> Vec<&dyn KindApi> {
        self.0.values().map(|k| &**k).collect()
    }
}

struct NoSecrets;
impl SecretNames for NoSecrets {
    fn check(&self, name: &str) -> Result<(), String> {
        Err(name.into())
    }
    fn public_key(&self, name: &str) -> Result<String, String> {
        Err(name.into())
    }
}

/// A live guest; see [`guest`] and [`owned`].
pub struct LiveSpec {
    fact: GuestFact,
    values: BTreeMap<String, LiveValue>,
    pending: Vec<PendingValue>,
    readable: bool,
}

/// A running VM on pve01.
pub fn guest(vmid: u32, name: &str, tags: &str, memory: &str) -> LiveSpec {
    let values = [("tags", tags), ("memory", memory), ("name", name)];
    LiveSpec {
        fact: GuestFact {
            vmid,
            guest_type: GuestType::Qemu,
            node: "pve01".into(),
            name: (!name.is_empty()).then(|| name.into()),
            power: LivePower::Running,
            template: false,
            lock: None,
            tags: tags.into(),
            ha: false,
        },
        values: values
            .into_iter()
            .filter(|(_, v)| !v.is_empty())
            .map(|(k, v)| (k.into(), LiveValue::Text(v.into())))
            .collect(),
        pending: vec![],
        readable: true,
    }
}

/// The same with the owner tag.
pub fn owned(vmid: u32, name: &str, memory: &str) -> LiveSpec {
    guest(vmid, name, "prod;proxops", memory)
}

impl LiveSpec {
    pub fn on(mut self, node: &str) -> Self {
        self.fact.node = node.into();
        self
    }
    pub fn power(mut self, power: LivePower) -> Self {
        self.fact.power = power;
        self
    }
    pub fn container(mut self) -> Self {
        self.fact.guest_type = GuestType::Lxc;
        self
    }
    pub fn template(mut self) -> Self {
        self.fact.template = true;
        self.fact.power = LivePower::Stopped;
        self
    }
    pub fn lock(mut self, lock: &str) -> Self {
        self.fact.lock = Some(lock.into());
        self
    }
    pub fn value(mut self, key: &str, value: &str) -> Self {
        self.values.insert(key.into(), LiveValue::Text(value.into()));
        self
    }
    pub fn pending(mut self, pending: PendingValue) -> Self {
        self.pending.push(pending);
        self
    }
    /// Nothing is configured but this key.
    pub fn only(mut self, key: &str) -> Self {
        self.values = BTreeMap::from([(key.into(), LiveValue::Text("".into()))]);
        self
    }
    pub fn unreadable(mut self) -> Self {
        self.readable = false;
        self
    }
}

/// Composition, live facts, settings.
pub struct Bench {
    nodes: Vec<String>,
    resources: Vec<Resource>,
    failed: Vec<FailedResource>,
    world: World,
    options: Options,
    shared: bool,
}

impl Bench {
    pub fn new() -> Self {
        let mut world = World::default();
        for node in ["pve01", "pve02"] {
            world.nodes.insert(node.into(), NodeState::Online);
        }
        world.ha = Some(Ok(BTreeSet::new()));
        world.replicated = Some(Ok(BTreeSet::new()));
        let options =
            Options { prune_budget: 3, owner_tag: "proxops".into(), grants: Default::default(), threads: 1 };
        Self { nodes: vec![], resources: vec![], failed: vec![], world, options, shared: false }
    }
    pub fn allow(mut self, nodes: &[&str]) -> Self {
        self.nodes = nodes.iter().map(|n| (*n).into()).collect();
        self
    }
    pub fn budget(mut self, budget: u32) -> Self {
        self.options.prune_budget = budget;
        self
    }
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = threads;
        self
    }
    pub fn shared_files(mut self) -> Self {
        self.shared = true;
        self
    }
    pub fn node(mut self, node: &str, state: NodeState) -> Self {
        if let NodeState::Unreachable(why) = &state {
            self.world.partial = Some(why.clone());
        }
        self.world.nodes.insert(node.into(), state);
        self
    }
    pub fn vm(self, name: &str, vmid: u32, memory: &str) -> Self {
        self.resource(name, vmid, "pve01", memory)
    }
    pub fn vm_on(self, name: &str, vmid: u32, node: &str) -> Self {
        self.resource(name, vmid, node, "1")
    }
    fn resource(mut self, name: &str, vmid: u32, node: &str, memory: &str) -> Self {
        let id = ResourceId::new("VM", name);
        let identity = Identity::Guest(GuestId { node: node.into(), vmid, name: Some(name.into()) });
        let target = Target::Guest { guest_type: GuestType::Qemu, template: false };
        let spec = serde_json::json!({"memory": memory}).to_string();
        self.resources.push(resource(id, identity, target, spec, vec![]));
        self
    }
    pub fn template_vm(mut self, name: &str, vmid: u32) -> Self {
        self = self.vm(name, vmid, "1");
        self.edit(name, |r| {
            r.id = ResourceId::new("TemplateVM", name);
            r.target = Target::Guest { guest_type: GuestType::Qemu, template: true };
            r.validated.power = None;
        })
    }
    pub fn iso(mut self, name: &str, nodes: &[&str]) -> Self {
        let place = |node: &&str| Placement {
            node: (*node).into(),
            storage: "local".into(),
            filename: format!("{name}.iso"),
        };
        let identity = Identity::Artifact(nodes.iter().map(place).collect());
        let target = Target::Artifact { content: "iso".into(), extensions: vec![] };
        let volid = vec![("volid".to_owned(), format!("local:iso/{name}.iso"))];
        self.resources.push(resource(ResourceId::new("ISO", name), identity, target, "{}".into(), volid));
        self
    }
    pub fn file(mut self, name: &str, node: &str, presence: Presence) -> Self {
        let at = Placement { node: node.into(), storage: "local".into(), filename: format!("{name}.iso") };
        self.world.artifacts.insert((at, "iso".into()), ArtifactFact { presence, size: None, why: None });
        self
    }
    fn edit(mut self, name: &str, change: impl Fn(&mut Resource)) -> Self {
        self.resources.iter_mut().filter(|r| r.id.name == name).for_each(change);
        self
    }
    pub fn refers(self, name: &str, kind: &str, to: &str) -> Self {
        let to = Reference { to: ResourceId::new(kind, to), at: "/spec/ref".into() };
        self.edit(name, |r| r.validated.references.push(to.clone()))
    }
    pub fn mode(self, name: &str, mode: Mode) -> Self {
        self.edit(name, |r| r.mode = mode)
    }
    pub fn restart(self, name: &str) -> Self {
        self.edit(name, |r| r.restart_allowed = true)
    }
    pub fn stopped(self, name: &str) -> Self {
        self.edit(name, |r| r.validated.power = Some(Power::Stopped))
    }
    pub fn broken(mut self, kind: &str, name: &str) -> Self {
        let location = Location { file: "x.yaml".into(), line: 1, column: 1 };
        self.failed.push(FailedResource { id: ResourceId::new(kind, name), why: "trap".into(), location });
        self
    }
    pub fn busy(mut self, vmid: u32) -> Self {
        self.world.busy.insert(vmid, "task qmcreate".into());
        self
    }
    pub fn busy_resource(mut self, kind: &str, name: &str) -> Self {
        self.world.busy_resources.insert(ResourceId::new(kind, name), "task download still runs".into());
        self
    }
    pub fn stopped_in_vain(mut self, vmid: u32) -> Self {
        self.world.stopped_in_vain.insert(vmid);
        self
    }
    pub fn half_made(mut self, vmid: u32) -> Self {
        self.world.leftovers.insert(vmid, Leftover { making: true, ..Leftover::default() });
        self
    }
    pub fn fresh_clone(mut self, vmid: u32, template: &str) -> Self {
        let fresh_clone_of = Some(ResourceId::new("TemplateVM", template));
        self.world.leftovers.insert(vmid, Leftover { fresh_clone_of, ..Leftover::default() });
        self
    }
    pub fn ha(mut self, vmid: u32) -> Self {
        self.world.ha = Some(Ok([vmid].into()));
        self
    }
    pub fn no_ha_list(mut self) -> Self {
        self.world.ha = Some(Err("403".into()));
        self
    }
    pub fn replicated(mut self, vmid: u32) -> Self {
        self.world.replicated = Some(Ok([vmid].into()));
        self
    }
    pub fn live(mut self, spec: LiveSpec) -> Self {
        let fact = spec.fact;
        let live = LiveGuest {
            node: fact.node.clone(),
            vmid: fact.vmid,
            name: fact.name.clone(),
            power: fact.power,
            template: fact.template,
            lock: fact.lock.clone(),
            values: spec.values,
            secrets_present: vec![],
            pending: spec.pending,
            hidden: vec![],
            fresh_clone_of: None,
        };
        let read = GuestRead { live: Arc::new(live), digest: Some(format!("d{}", fact.vmid)) };
        self.world.reads.insert(fact.vmid, if spec.readable { Ok(read) } else { Err("500".into()) });
        self.world.guests.insert(fact.vmid, fact);
        self
    }
    pub fn index(&self) -> (Index, Vec<Diagnostic>) {
        Index::build("lab", &self.nodes, self.resources.clone(), self.failed.clone())
    }
    pub fn plan(mut self) -> ClusterPlan {
        self.world.context.storages = vec![StorageInfo {
            name: "local".into(),
            storage_type: "dir".into(),
            shared: self.shared,
            content: vec!["iso".into()],
            nodes: vec!["pve01".into(), "pve02".into()],
        }];
        let (index, found) = self.index();
        assert_eq!(found, []);
        let guest = |kind: &str, template| -> (String, Box<dyn KindApi>) {
            let target = Target::Guest { guest_type: GuestType::Qemu, template };
            (kind.into(), Box::new(GuestKind(info(kind, target))))
        };
        let iso = Target::Artifact { content: "iso".into(), extensions: vec![] };
        let iso: (String, Box<dyn KindApi>) = ("ISO".into(), Box::new(FileKind(info("ISO", iso))));
        let kinds = Kinds([guest("VM", false), guest("TemplateVM", true), iso].into_iter().collect());
        Planner { index: &index, kinds: &kinds, secrets: &NoSecrets, options: &self.options }
            .plan(&self.world)
    }
}

fn resource(id: ResourceId, identity: Identity, target: Target, spec: String, attributes: Pairs) -> Resource {
    let power = matches!(identity, Identity::Guest(_)).then_some(Power::Running);
    let name = id.name.clone();
    Resource {
        manifest: Manifest { name: id.name.clone(), spec, ..Manifest::default() },
        id,
        validated: Validated {
            identity,
            power,
            references: vec![],
            secrets: vec![],
            storages: vec![],
            attributes,
            incomplete: vec![],
        },
        target,
        mode: Mode::Reconcile,
        restart_allowed: false,
        ignore: BTreeSet::new(),
        depends_on: vec![],
        locate: Arc::new(move |_| Location { file: format!("vm/lab/{name}.yaml"), line: 1, column: 1 }),
    }
}
