//! A simulated cluster around one resource: what it needs is there, its steps can be run, and it can be read.
//!
//! Requests are built as the host's executor builds them, without its waiting, digests and retries.

use crate::manifest;
use proxops_model::ResourceId;
use proxops_model::kind::{
    Context, GuestType, Identity, KindApi, KindSet, KindStep, Live, LiveGuest, LiveObject, LivePower,
    LiveValue, Manifest, ObjectId, ObjectTarget, Param, ParamValue, PlacementState, Presence, Resolved,
    SecretClass, StorageInfo, Target, Validated,
};
use proxops_model::object;
use proxops_sim::{Caller, Storage, World, seed};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A public key for every name that asks for one.
const PUBLIC_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZpeHR1cmUta2V5LWZvci10ZXN0cy1vbmx5LTAwMDAw";
/// A password for every name that asks for one.
const PASSWORD: &str = "Kit-password-1";
/// How deep resources that others need may need resources themselves.
const DEPTH: u32 = 4;
/// Bytes of a file that is put on a storage.
const FILE: u64 = 512 << 20;
/// Bytes that a disk image unpacks to.
const IMAGE: u64 = 2 << 30;

/// The cluster, and what the host would tell a kind about it.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub world: World,
    pub context: Context,
    /// Where guests that others refer to are.
    sources: BTreeMap<ResourceId, (String, u32)>,
}

/// A resource in its cluster.
#[derive(Clone, Copy)]
pub(crate) struct Resource<'a> {
    pub target: &'a Target,
    pub identity: &'a Identity,
}

impl Cluster {
    pub fn new() -> Self {
        let mut cluster = Self {
            world: seed::empty(),
            context: Context {
                cluster: "kit".to_owned(),
                pve_version: "9.2.3".to_owned(),
                owner_tag: "proxops".to_owned(),
                root: true,
                ..Context::default()
            },
            sources: BTreeMap::new(),
        };
        cluster.tell_storages();
        cluster
    }

    /// Makes everything that a manifest needs: nodes, storages, keys, and the resources that it refers to.
    pub fn provide(&mut self, kinds: &dyn KindSet, validated: &Validated) -> Result<(), String> {
        self.provide_within(kinds, validated, 0)
    }

    fn provide_within(
        &mut self,
        kinds: &dyn KindSet,
        validated: &Validated,
        depth: u32,
    ) -> Result<(), String> {
        let nodes: Vec<String> = match &validated.identity {
            Identity::Guest(guest) => vec![guest.node.clone()],
            Identity::Artifact(placements) => placements.iter().map(|p| p.node.clone()).collect(),
            Identity::Object(object) => {
                object.vars.iter().filter(|(name, _)| name == "node").map(|(_, node)| node.clone()).collect()
            }
        };
        for node in nodes {
            if !self.world.nodes.contains_key(&node) {
                self.world.add_node(&node);
            }
        }
        for wanted in &validated.storages {
            if !self.world.storages.contains_key(&wanted.storage) {
                let kind =
                    if matches!(wanted.content.as_str(), "images" | "rootdir") { "lvmthin" } else { "dir" };
                self.world.add_storage(&wanted.storage, Storage::new(kind, &wanted.content, 2000));
            }
            if let Some(storage) = self.world.storages.get_mut(&wanted.storage)
                && !wanted.content.is_empty()
            {
                storage.content.insert(wanted.content.clone());
            }
        }
        self.tell_storages();
        for secret in validated.secrets.iter().filter(|s| s.class == SecretClass::PublicKey) {
            if !self.context.public_keys.iter().any(|(name, _)| *name == secret.name) {
                // Every name has a key of its own: the last three bytes are its number.
                let number = format!("{:03}", self.context.public_keys.len() % 1000);
                let text = format!("{PUBLIC_KEY}{} kit", base64_of_three(&number));
                self.context.public_keys.push((secret.name.clone(), text));
            }
        }
        for reference in &validated.references {
            if !self.context.references.iter().any(|known| known.to == reference.to) {
                self.provide_resource(kinds, &reference.to, depth)?;
            }
        }
        Ok(())
    }

    /// Makes a resource that another one refers to, after an example of its own kind.
    fn provide_resource(&mut self, kinds: &dyn KindSet, id: &ResourceId, depth: u32) -> Result<(), String> {
        let kind =
            kinds.get(&id.kind).ok_or_else(|| format!("it refers to {id}, a kind that is not loaded"))?;
        if depth >= DEPTH {
            return Err(format!("{id} needs resources that need resources without end"));
        }
        let info = kind.info();
        let example = info
            .examples
            .first()
            .and_then(|text| manifest::read(text))
            .ok_or_else(|| format!("{} has no example", id.kind))?;
        let mut manifest = Manifest { name: id.name.clone(), ..example };
        // examples of two kinds may share a number
        let free = (5000..6000).find(|vmid| !self.world.guests.contains_key(vmid)).unwrap_or_default();
        if matches!(info.target, Target::Guest { .. })
            && let Some(moved) = manifest::with(&manifest, "/vmid", json!(free))
        {
            manifest = moved;
        }
        // a file of its own, where the kind names its file so
        if matches!(info.target, Target::Artifact { .. })
            && let Some(name) = manifest::spec(&manifest)["filename"].as_str()
            && let Some(renamed) =
                manifest::with(&manifest, "/filename", json!(format!("{}-{name}", id.name)))
            && self.validated(kind, &renamed).is_ok()
        {
            manifest = renamed;
        }
        let validated = self.validated(kind, &manifest)?;
        self.provide_within(kinds, &validated, depth + 1)?;
        match (&validated.identity, &info.target) {
            (Identity::Artifact(placements), Target::Artifact { content, .. }) => {
                for p in placements {
                    self.put_file(&p.storage, &p.node, &format!("{content}/{}", p.filename));
                }
            }
            (Identity::Guest(guest), target) => {
                let resource = Resource { target, identity: &validated.identity };
                self.create(kind, &manifest, resource)
                    .map_err(|e| format!("{id}, made after an example: {e}"))?;
                self.sources.insert(id.clone(), (guest.node.clone(), guest.vmid));
            }
            _ => {
                let resource = Resource { target: &info.target, identity: &validated.identity };
                self.create(kind, &manifest, resource)
                    .map_err(|e| format!("{id}, made after an example: {e}"))?;
            }
        }
        self.context.references.push(Resolved { to: id.clone(), attributes: validated.attributes });
        Ok(())
    }

    fn validated(&self, kind: &dyn KindApi, manifest: &Manifest) -> Result<Validated, String> {
        let validation = kind.validate(manifest).map_err(|fault| fault.to_string())?;
        validation.validated.ok_or_else(|| format!("an example of {} does not validate", kind.info().kind))
    }

    fn tell_storages(&mut self) {
        let nodes: Vec<String> = self.world.nodes.keys().cloned().collect();
        self.context.storages = self
            .world
            .storages
            .iter()
            .map(|(name, storage)| StorageInfo {
                name: name.clone(),
                storage_type: storage.kind.clone(),
                shared: storage.shared,
                content: storage.content.iter().cloned().collect(),
                nodes: nodes.iter().filter(|node| storage.on(node)).cloned().collect(),
            })
            .collect();
    }

    fn put_file(&mut self, storage: &str, node: &str, name: &str) {
        let file = self.world.add_file(storage, node, name, FILE);
        if name.starts_with("import/") {
            file.virtual_size = Some(IMAGE);
        }
    }

    /// Makes a resource: its steps, then once more what `drift` still wants, as the host does after a create or
    /// clone. Tells how many steps that second part had.
    pub fn create(
        &mut self,
        kind: &dyn KindApi,
        manifest: &Manifest,
        resource: Resource<'_>,
    ) -> Result<usize, String> {
        let creation = kind.create_params(manifest, &self.context).map_err(refusal)?;
        if let Some(anomaly) =
            creation.anomalies.iter().find(|a| a.severity == proxops_model::Severity::Error)
        {
            return Err(format!("create-params: {}", anomaly.message));
        }
        self.run(resource, &creation.steps)?;
        let cloned = creation.steps.iter().find_map(|step| match step {
            KindStep::Clone { source, .. } => Some(source.clone()),
            _ => None,
        });
        let mut live = self.live(resource)?.ok_or("after its creation it is not there")?;
        if let Live::Guest(guest) = &mut live {
            Arc::make_mut(guest).fresh_clone_of = cloned;
        }
        let settle = kind.drift(manifest, &live, &self.context).map_err(refusal)?;
        self.run(resource, &settle.steps)?;
        Ok(settle.steps.len())
    }

    /// Runs steps in their order.
    pub fn run(&mut self, resource: Resource<'_>, steps: &[KindStep]) -> Result<(), String> {
        steps.iter().try_for_each(|step| self.step(resource, step))
    }

    fn step(&mut self, resource: Resource<'_>, step: &KindStep) -> Result<(), String> {
        match (resource.target, resource.identity, step) {
            (_, _, KindStep::Download { node, storage, filename, params }) => {
                let Target::Artifact { content, .. } = resource.target else {
                    return Err("a download that is no artifact's".to_owned());
                };
                let mut form = self.form(node, params);
                form.insert("content".to_owned(), json!(content));
                form.insert("filename".to_owned(), json!(filename));
                self.send("POST", &format!("/nodes/{node}/storage/{storage}/download-url"), form)
            }
            (
                Target::Object(target),
                Identity::Object(id),
                KindStep::Call { operation, vars, set, unset },
            ) => {
                let operation = target
                    .writes
                    .iter()
                    .find(|w| w.name == *operation)
                    .ok_or("an operation that is not declared")?;
                let mut form = self.form("", set);
                if !unset.is_empty() {
                    form.insert("delete".to_owned(), json!(unset.join(",")));
                }
                if let Some(param) = &operation.id_param {
                    form.insert(param.clone(), json!(id.id));
                }
                if operation.digest
                    && let Some(digest) = self.object_digest(target, id)?
                {
                    form.insert("digest".to_owned(), json!(digest));
                }
                let method = format!("{:?}", operation.method).to_ascii_uppercase();
                self.send(&method, &object::path(operation, id, vars)?, form)
            }
            (Target::Guest { guest_type, .. }, Identity::Guest(id), step) => {
                self.guest_step(*guest_type, &id.node, id.vmid, step)
            }
            _ => Err(format!("a step that does not fit its target: {step:?}")),
        }
    }

    fn guest_step(
        &mut self,
        guest_type: GuestType,
        node: &str,
        vmid: u32,
        step: &KindStep,
    ) -> Result<(), String> {
        let all = format!("/nodes/{node}/{guest_type}");
        let own = |rest: &str| format!("{all}/{vmid}/{rest}");
        match step {
            KindStep::Create { params } | KindStep::Restore { params } => {
                let mut form = self.form(node, params);
                form.insert("vmid".to_owned(), json!(vmid));
                if matches!(step, KindStep::Restore { .. }) && guest_type == GuestType::Lxc {
                    form.insert("restore".to_owned(), json!("1"));
                }
                self.send("POST", &all, form)
            }
            KindStep::Clone { source, params } => {
                let (from, number) = self
                    .sources
                    .get(source)
                    .cloned()
                    .ok_or_else(|| format!("a clone of {source}, which it does not refer to"))?;
                let mut form = self.form(node, params);
                form.insert("newid".to_owned(), json!(vmid));
                form.entry("full").or_insert_with(|| json!("1"));
                if from != node {
                    form.entry("target").or_insert_with(|| json!(node));
                }
                self.send("POST", &format!("/nodes/{from}/{guest_type}/{number}/clone"), form)
            }
            KindStep::Configure { set, unset, revert } => {
                let mut form = self.form(node, set);
                for (key, list) in [("delete", unset), ("revert", revert)] {
                    if !list.is_empty() {
                        form.insert(key.to_owned(), json!(list.join(",")));
                    }
                }
                // the VM's POST is a task, which may allocate (fact T24)
                let method = if guest_type == GuestType::Qemu { "POST" } else { "PUT" };
                self.send(method, &own("config"), form)
            }
            KindStep::Resize { disk, bytes, .. } => {
                let form = Map::from_iter([
                    ("disk".to_owned(), json!(disk)),
                    ("size".to_owned(), json!(bytes.to_string())),
                ]);
                self.send("PUT", &own("resize"), form)
            }
            KindStep::RebuildCloudInit => self.send("PUT", &own("cloudinit"), Map::new()),
            KindStep::MarkTemplate => self.send("POST", &own("template"), Map::new()),
            KindStep::Download { .. } | KindStep::Call { .. } => Err("a step that no guest has".to_owned()),
        }
    }

    /// Parameters with secrets put in. Files and pools that they name come to be.
    fn form(&mut self, node: &str, params: &[Param]) -> Map<String, Value> {
        let mut form = Map::new();
        for param in params {
            let value = match &param.value {
                ParamValue::Text(text) => {
                    self.provide_named(node, &param.key, text);
                    json!(text)
                }
                ParamValue::Many(list) => json!(list),
                ParamValue::Secret(_) => json!(PASSWORD),
            };
            form.insert(param.key.clone(), value);
        }
        form
    }

    /// What no kind describes: pools, and files such as `local:snippets/hook.sh`.
    fn provide_named(&mut self, node: &str, key: &str, text: &str) {
        if key == "pool" {
            self.world.pools.entry(text.to_owned()).or_default();
        }
        for part in text.split(',').map(|part| part.rsplit_once('=').map_or(part, |(_, value)| value)) {
            let Some((storage, name)) = part.split_once(':') else { continue };
            let Some((content, _)) = name.split_once('/') else { continue };
            let known = matches!(content, "iso" | "vztmpl" | "import" | "snippets")
                && self.world.nodes.contains_key(node);
            if known && self.world.storages.contains_key(storage) && !self.has_file(node, storage, name) {
                self.put_file(storage, node, name);
            }
        }
    }

    fn has_file(&mut self, node: &str, storage: &str, name: &str) -> bool {
        self.listing(node, storage).is_ok_and(|rows| rows.contains_key(&format!("{storage}:{name}")))
    }

    /// Volume ids and sizes.
    fn listing(&mut self, node: &str, storage: &str) -> Result<BTreeMap<String, Option<u64>>, String> {
        let rows = self.get(&format!("/nodes/{node}/storage/{storage}/content"))?;
        let rows = rows.as_array().cloned().unwrap_or_default();
        Ok(rows
            .iter()
            .filter_map(|row| {
                Some((row.get("volid")?.as_str()?.to_owned(), row.get("size").and_then(Value::as_u64)))
            })
            .collect())
    }

    fn get(&mut self, path: &str) -> Result<Value, String> {
        self.world
            .call(&Caller::root(), "GET", path, json!({}))
            .map_err(|refused| format!("GET {path}: {refused}"))
    }

    fn send(&mut self, method: &str, path: &str, form: Map<String, Value>) -> Result<(), String> {
        let answer = self.world.call(&Caller::root(), method, path, Value::Object(form));
        let answer =
            answer.map_err(|refused| format!("PVE refuses {method} {path}: {}", refused.into_exit()))?;
        self.world.finish_tasks();
        match self.world.exit_status(&answer) {
            Some(exit) if exit != "OK" && !exit.starts_with("WARNINGS") => {
                Err(format!("the task of {method} {path} ends with: {exit}"))
            }
            _ => Ok(()),
        }
    }

    /// The resource as the host reads it; `None` = it is not there.
    pub fn live(&mut self, resource: Resource<'_>) -> Result<Option<Live>, String> {
        match (resource.target, resource.identity) {
            (Target::Guest { guest_type, .. }, Identity::Guest(id)) => {
                if !self.world.guests.contains_key(&id.vmid) {
                    return Ok(None);
                }
                self.guest(*guest_type, &id.node, id.vmid).map(|guest| Some(Live::Guest(Arc::new(guest))))
            }
            (Target::Artifact { content, .. }, Identity::Artifact(placements)) => {
                let mut states = Vec::new();
                for at in placements {
                    let files = self.listing(&at.node, &at.storage)?;
                    let found = files.get(&format!("{}:{content}/{}", at.storage, at.filename));
                    states.push(PlacementState {
                        at: at.clone(),
                        presence: if found.is_some() { Presence::Present } else { Presence::Absent },
                        size: found.copied().flatten(),
                    });
                }
                Ok(Some(Live::Artifact(states)))
            }
            (Target::Object(target), Identity::Object(id)) => self.object(target, id),
            _ => Err("its identity is not of its target's form".to_owned()),
        }
    }

    fn guest(&mut self, guest_type: GuestType, node: &str, vmid: u32) -> Result<LiveGuest, String> {
        let config = self.get(&format!("/nodes/{node}/{guest_type}/{vmid}/config"))?;
        let mut values = values(&config);
        for key in ["digest", "lock"] {
            values.remove(key);
        }
        let masked = values.remove("cipassword").is_some();
        let running = self.world.guests.get(&vmid).is_some_and(|guest| guest.running);
        Ok(LiveGuest {
            node: node.to_owned(),
            vmid,
            name: values.get(guest_type.name_key()).and_then(LiveValue::text).map(str::to_owned),
            power: if running { LivePower::Running } else { LivePower::Stopped },
            template: values.get("template").and_then(LiveValue::text) == Some("1"),
            lock: None,
            values,
            secrets_present: if masked { vec!["cipassword".to_owned()] } else { Vec::new() },
            pending: Vec::new(),
            hidden: vec![],
            fresh_clone_of: None,
        })
    }

    fn object(&mut self, target: &ObjectTarget, id: &ObjectId) -> Result<Option<Live>, String> {
        let Some((mut row, mut answer)) = self.object_report(target, id)? else { return Ok(None) };
        drop_digest(&mut row);
        drop_digest(&mut answer);
        if let Value::Array(list) = &mut answer {
            list.iter_mut().for_each(drop_digest);
        }
        let values = match &answer {
            Value::Object(_) => values(&answer),
            other => BTreeMap::from([(String::new(), LiveValue::Json(other.to_string()))]),
        };
        let row = self::values(&row);
        Ok(Some(Live::Object(LiveObject { id: id.clone(), values, row })))
    }

    /// The row of an object's list, and the answer to `read`.
    fn object_report(
        &mut self,
        target: &ObjectTarget,
        id: &ObjectId,
    ) -> Result<Option<(Value, Value)>, String> {
        let rows = self.get(&object::path(&target.list, id, &[])?)?;
        let row = rows.as_array().into_iter().flatten().find(|row| {
            row.get(&target.id_field).and_then(proxops_model::text::scalar).as_deref() == Some(&id.id)
        });
        let Some(row) = row.cloned() else { return Ok(None) };
        let path = object::path(&target.read, id, &[])?;
        let params = match &target.read.id_param {
            Some(param) => json!({ param: id.id }),
            None => json!({}),
        };
        let answer = self.world.call(&Caller::root(), "GET", &path, params);
        Ok(Some((row, answer.map_err(|refused| format!("GET {path}: {refused}"))?)))
    }

    /// The digest that the host would send.
    fn object_digest(&mut self, target: &ObjectTarget, id: &ObjectId) -> Result<Option<String>, String> {
        let Some((row, answer)) = self.object_report(target, id)? else { return Ok(None) };
        let first = answer.as_array().and_then(|list| list.first());
        let found = [Some(&answer), first, Some(&row)].into_iter().flatten().find_map(|v| v.get("digest"));
        Ok(found.and_then(Value::as_str).map(str::to_owned))
    }
}

fn drop_digest(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        map.remove("digest");
    }
}

fn values(answer: &Value) -> BTreeMap<String, LiveValue> {
    answer
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), LiveValue::from_json(value)))
        .collect()
}

/// Why a call gave no answer.
pub(crate) fn refusal(refusal: proxops_model::kind::Refusal) -> String {
    match refusal {
        proxops_model::kind::Refusal::Fault(fault) => fault.to_string(),
        proxops_model::kind::Refusal::Diagnostics(list) => {
            list.iter().map(|d| format!("{}: {}", d.at, d.message)).collect::<Vec<_>>().join("; ")
        }
    }
}

/// Three ASCII digits in base64.
fn base64_of_three(digits: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = digits.bytes().fold(0u32, |bits, byte| (bits << 8) | u32::from(byte));
    [18, 12, 6, 0]
        .into_iter()
        .filter_map(|shift| ALPHABET.get(usize::try_from((bits >> shift) & 63).ok()?))
        .map(|letter| char::from(*letter))
        .collect()
}
