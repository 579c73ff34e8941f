//! A simulated cluster, and a kind's steps as the requests that the host makes of them.

use crate::kinds::{Kind, What};
use proxops_kind::*;
use proxops_sim::{Caller, GuestKind, Storage, World, seed};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A public key of the secrets document.
pub const KEY_A: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZpeHR1cmUta2V5LWZvci10ZXN0cy1vbmx5LTAwMDAwMDAx ops@a";
/// Another one.
pub const KEY_B: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZpeHR1cmUta2V5LWZvci10ZXN0cy1vbmx5LTAwMDAwMDAy other";
/// The password behind every name.
pub const PASSWORD: &str = "Fixture-password-1";
/// Number of the guest that the manifests describe.
pub const VMID: u32 = 101;
/// Its node.
pub const NODE: &str = "pve01";
/// Where the templates are that a clone is made of.
const TEMPLATE: u32 = 9000;

/// A request as it goes to PVE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// POST, PUT or DELETE.
    pub method: &'static str,
    /// Below `/api2/json`.
    pub path: String,
    /// The form.
    pub params: BTreeMap<String, String>,
}

/// A cluster and what the host tells a kind about it.
#[derive(Clone)]
pub struct Lab {
    /// The cluster.
    pub world: World,
    /// What the kinds are told.
    pub context: Context,
    /// Who writes.
    pub caller: Caller,
    /// Every write, in order.
    pub requests: Vec<Request>,
}

static BASE: LazyLock<Lab> = LazyLock::new(Lab::make);

impl Lab {
    /// The usual cluster: files, a pool, volumes without a guest, and one template of either type.
    pub fn new() -> Self {
        BASE.clone()
    }

    fn make() -> Self {
        let mut world = seed::empty();
        world.add_storage("tank", Storage::new("zfspool", "images,rootdir", 20_000));
        for node in seed::NODES {
            for name in ["iso/netinst.iso", "iso/other.iso", "vztmpl/deb13.tar.zst", "vztmpl/alpine.tar.gz"] {
                world.add_file("local", node, name, 700 << 20);
            }
            for name in ["user.yaml", "meta.yaml", "net.yaml", "vendor.yaml", "hook.sh", "other.sh"] {
                world.add_file("local", node, &format!("snippets/{name}"), 100);
            }
            world.add_file("local", node, "import/deb13.qcow2", 400 << 20).virtual_size = Some(3 << 30);
        }
        world.pools.insert("web".to_owned(), Default::default());
        for n in 70..74 {
            // Detached volumes of the guest to be, for `volume`.
            let name = format!("local-lvm:vm-{VMID}-disk-{n}");
            world.add_guest(GuestKind::Qemu, VMID, NODE, &[("scsi0", &format!("{name},size=2G"))]);
            world.guests.remove(&VMID);
        }
        world.add_guest(
            GuestKind::Qemu,
            TEMPLATE,
            NODE,
            &[
                ("agent", "1"),
                ("boot", "order=scsi0;net0"),
                ("cipassword", "$5$salt$hash"),
                ("ciuser", "builder"),
                ("cores", "2"),
                ("cpu", "kvm64,flags=+aes"),
                ("description", "the template"),
                ("ide2", "nfs:9000/vm-9000-cloudinit.qcow2,media=cdrom,size=4M"),
                ("ipconfig0", "ip=192.0.2.99/24,gw=192.0.2.1"),
                ("memory", "1024"),
                ("meta", "creation-qemu=10.1.2,ctime=1770000000"),
                ("name", "tpl"),
                ("nameserver", "192.0.2.53"),
                ("net0", "virtio=BC:24:11:00:90:00,bridge=vmbr0"),
                ("onboot", "1"),
                ("ostype", "l26"),
                ("protection", "1"),
                ("scsi0", "nfs:9000/base-9000-disk-0.raw,discard=on,size=3G,ssd=1"),
                ("scsihw", "virtio-scsi-single"),
                ("smbios1", "uuid=90000000-0000-4000-8000-000000000000"),
                ("sshkeys", "ssh-ed25519%20AAAAC3NzaC1lZDI1NTE5AAAAIGZpeHR1cmU%20builder"),
                ("tags", "golden"),
                ("template", "1"),
                ("virtio1", "nfs:9000/base-9000-disk-1.raw,size=1G"),
                ("vmgenid", "90000000-0000-4000-8000-000000000001"),
            ],
        );
        world.add_guest(
            GuestKind::Lxc,
            TEMPLATE + 1,
            NODE,
            &[
                ("arch", "amd64"),
                ("cores", "1"),
                ("description", "the template\n"),
                ("features", "nesting=1"),
                ("hostname", "base"),
                ("memory", "512"),
                ("mp0", "nfs:9001/base-9001-disk-1.raw,mp=/data,size=1G"),
                ("nameserver", "192.0.2.53"),
                ("net0", "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:91:00,ip=dhcp,type=veth"),
                ("onboot", "1"),
                ("ostype", "debian"),
                ("protection", "1"),
                ("rootfs", "nfs:9001/base-9001-disk-0.raw,size=2G"),
                ("searchdomain", "example.org"),
                ("swap", "512"),
                ("tags", "golden"),
                ("template", "1"),
                ("unprivileged", "1"),
            ],
        );
        Self { context: context(&world), world, caller: Caller::root(), requests: vec![] }
    }

    /// The same cluster, asked with the seeded API token.
    #[must_use]
    pub fn with_token(mut self) -> Self {
        self.caller = Caller::token("gitops@pve", "proxops");
        self.context.root = false;
        self
    }

    /// The guest's configuration as PVE stores it.
    pub fn config(&self) -> BTreeMap<String, String> {
        self.world.guests.get(&VMID).map(|guest| guest.merged()).unwrap_or_default()
    }

    /// Sends a write, waits for its task, and notes it.
    pub fn send(
        &mut self,
        method: &'static str,
        path: String,
        params: BTreeMap<String, String>,
    ) -> Result<(), String> {
        self.requests.push(Request { method, path: path.clone(), params: params.clone() });
        let body = Json::Object(params.into_iter().map(|(k, v)| (k, json!(v))).collect());
        let told = |why: String| format!("{method} {path} {body}: {why}");
        let answer = self.world.call(&self.caller, method, &path, body.clone());
        let upid = answer.map_err(|r| told(format!("{} {} {:?}", r.status, r.message, r.errors)))?;
        self.world.finish_tasks();
        match self.world.exit_status(&upid) {
            Some(exit) if exit != "OK" => Err(told(exit)),
            _ => Ok(()),
        }
    }

    /// Runs steps in order.
    pub fn run(&mut self, kind: &Kind, steps: &[Step]) -> Result<(), String> {
        steps.iter().try_for_each(|step| self.step(kind, step))
    }

    fn step(&mut self, kind: &Kind, step: &Step) -> Result<(), String> {
        if let (What::File(content), Step::Download(download)) = (kind.what, step) {
            let mut form = form(&download.params)?;
            form.insert("content".into(), content.into());
            form.insert("filename".into(), download.to.filename.clone());
            let path = format!("/nodes/{}/storage/{}/download-url", download.to.node, download.to.storage);
            return self.send("POST", path, form);
        }
        let guest = kind.guest().ok_or_else(|| format!("{step:?} for a file"))?;
        let all = format!("/nodes/{NODE}/{}", guest.path());
        let own = |rest: &str| format!("{all}/{VMID}/{rest}");
        match step {
            Step::Create(params) => {
                let mut form = form(params)?;
                form.insert("vmid".into(), VMID.to_string());
                self.send("POST", all, form)
            }
            Step::Clone(clone) => {
                let source = if guest == GuestKind::Qemu { TEMPLATE } else { TEMPLATE + 1 };
                let mut form = form(&clone.params)?;
                form.insert("newid".into(), VMID.to_string());
                form.entry("full".into()).or_insert_with(|| "1".into());
                self.send("POST", format!("{all}/{source}/clone"), form)
            }
            Step::Configure(write) => {
                let mut params = form(&write.set)?;
                let names =
                    |list: &[ParamRef]| list.iter().map(|p| p.key.as_str()).collect::<Vec<_>>().join(",");
                for (key, list) in [("delete", &write.unset), ("revert", &write.revert)] {
                    if !list.is_empty() {
                        params.insert(key.into(), names(list));
                    }
                }
                // As the host does: the VM's POST is the same in a task (facts Q26, T24).
                let slow = guest == GuestKind::Qemu && params.iter().any(|(k, v)| allocates(k, v));
                self.send(if slow { "POST" } else { "PUT" }, own("config"), params)
            }
            Step::Resize(resize) => {
                let live = self.config().get(&resize.disk).and_then(|text| size_of(text));
                if live.is_some_and(|live| live >= resize.bytes) {
                    return Ok(());
                }
                let form = [("disk", resize.disk.clone()), ("size", Size(resize.bytes).pve())];
                self.send("PUT", own("resize"), form.map(|(k, v)| (k.to_owned(), v)).into())
            }
            Step::RebuildCloudInit => self.send("PUT", own("cloudinit"), BTreeMap::new()),
            Step::MarkTemplate => self.send("POST", own("template"), BTreeMap::new()),
            other => Err(format!("{other:?} for a guest")),
        }
    }

    /// Power of the guest.
    pub fn power(&mut self, kind: &Kind, what: &'static str) -> Result<(), String> {
        let guest = kind.guest().ok_or("a file has no power")?;
        self.send("POST", format!("/nodes/{NODE}/{}/{VMID}/status/{what}", guest.path()), BTreeMap::new())
    }

    /// The guest as the host reports it to a kind.
    pub fn live(&mut self, kind: &Kind, fresh: Option<ResourceRef>) -> Result<Live, String> {
        let guest = kind.guest().ok_or("not a guest")?;
        let path = format!("/nodes/{NODE}/{}/{VMID}", guest.path());
        let mut get = |rest: &str| {
            let answer = self.world.call(&self.caller, "GET", &format!("{path}/{rest}"), json!({}));
            answer.map_err(|r| format!("GET {path}/{rest}: {}", r.message))
        };
        let (config, pending) = (get("config")?, get("pending")?);
        let running = self.world.guests.get(&VMID).is_some_and(|g| g.running);
        let mut values: Vec<(String, LiveValue)> = Vec::new();
        let mut secrets = Vec::new();
        for (key, value) in config.as_object().into_iter().flatten() {
            match key.as_str() {
                "digest" | "lock" => {}
                "cipassword" => secrets.push(key.clone()),
                _ => values.push((key.clone(), live_value(value))),
            }
        }
        let text = |value: Option<&Json>| match value.map(live_value) {
            Some(LiveValue::Text(text)) => Some(text),
            _ => None,
        };
        let waiting = pending
            .as_array()
            .into_iter()
            .flatten()
            .filter(|row| row.get("pending").is_some() || row.get("delete").is_some());
        let pending = waiting.map(|row| Pending {
            key: text(row.get("key")).unwrap_or_default(),
            running: text(row.get("value")),
            configured: text(row.get("pending")),
            ext: vec![],
        });
        let name = if guest == GuestKind::Qemu { "name" } else { "hostname" };
        Ok(Live::Guest(LiveGuest {
            node: NODE.into(),
            vmid: VMID,
            name: text(config.get(name)),
            power: if running { LivePower::Running } else { LivePower::Stopped },
            template: config.get("template").is_some_and(|t| t == 1 || t == "1"),
            lock: None,
            pending: pending.collect(),
            values,
            secrets_present: secrets,
            hidden: vec![],
            fresh_clone_of: fresh,
            ext: vec![],
        }))
    }

    /// Where the copies of a file are.
    pub fn copies(&self, placements: &[Placement], content: &str) -> Live {
        let state = |at: &Placement| {
            let volid = format!("{}:{content}/{}", at.storage, at.filename);
            let found = self.world.volume(&volid, &at.node);
            PlacementState {
                at: at.clone(),
                presence: if found.is_some() { Presence::Present } else { Presence::Absent },
                size: found.map(|v| v.size),
                ext: vec![],
            }
        };
        Live::Artifact(placements.iter().map(state).collect())
    }

    /// Compares without writing.
    pub fn drift(&mut self, kind: &Kind, spec: &Json) -> Result<DriftReport, String> {
        let live = self.live(kind, None)?;
        (kind.drift)(&kind.manifest(spec), &live, &self.context).map_err(|r| format!("drift refused: {r:?}"))
    }

    /// The creation's own steps; tells what it was cloned from.
    pub fn begin(&mut self, kind: &Kind, spec: &Json) -> Result<Option<ResourceRef>, String> {
        let creation = (kind.create)(&kind.manifest(spec), &self.context);
        let creation = creation.map_err(|r| format!("create refused: {r:?}"))?;
        if let Some(a) = creation.anomalies.iter().find(|a| a.severity == Severity::Error) {
            return Err(format!("create: {a:?}"));
        }
        self.run(kind, &creation.steps)?;
        Ok(creation.steps.iter().find_map(|step| match step {
            Step::Clone(clone) => Some(clone.source.clone()),
            _ => None,
        }))
    }

    /// What a comparison still finds after a creation, in the same action.
    pub fn settle(&mut self, kind: &Kind, spec: &Json, fresh: Option<ResourceRef>) -> Result<(), String> {
        let live = self.live(kind, fresh)?;
        let report = (kind.drift)(&kind.manifest(spec), &live, &self.context);
        let report = report.map_err(|r| format!("drift refused: {r:?}"))?;
        self.run(kind, &report.steps)
    }

    /// Makes the guest as the host does: the creation, then what a comparison still finds.
    pub fn create(&mut self, kind: &Kind, spec: &Json) -> Result<(), String> {
        let fresh = self.begin(kind, spec)?;
        self.settle(kind, spec, fresh)
    }
}

impl Default for Lab {
    fn default() -> Self {
        Self::new()
    }
}

fn context(world: &World) -> Context {
    let resolved = |kind: &str, name: &str, attributes: &[(&str, &str)]| Resolved {
        to: ResourceRef::new(kind, name),
        attributes: attributes.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        ext: vec![],
    };
    let storage = |(name, s): (&String, &Storage)| StorageInfo {
        name: name.clone(),
        storage_type: s.kind.clone(),
        shared: s.shared,
        content: s.content.iter().cloned().collect(),
        nodes: seed::NODES.map(str::to_owned).to_vec(),
        ext: vec![],
    };
    Context {
        cluster: "lab".into(),
        pve_version: "9.2.3".into(),
        owner_tag: "proxops".into(),
        root: true,
        storages: world.storages.iter().map(storage).collect(),
        references: vec![
            resolved("ISO", "netinst", &[("volid", "local:iso/netinst.iso")]),
            resolved("ISO", "other", &[("volid", "local:iso/other.iso")]),
            resolved("DiskImage", "deb13", &[("volid", "local:import/deb13.qcow2")]),
            resolved("CTTemplate", "deb13", &[("volid", "local:vztmpl/deb13.tar.zst")]),
            resolved("CTTemplate", "alpine", &[("volid", "local:vztmpl/alpine.tar.gz")]),
            resolved("TemplateVM", "tpl", &[("vmid", "9000"), ("node", NODE)]),
            resolved("TemplateCT", "base", &[("vmid", "9001"), ("node", NODE)]),
        ],
        public_keys: vec![
            ("cloud-init.ssh-keys.ops".into(), KEY_A.into()),
            ("cloud-init.ssh-keys.dev".into(), KEY_B.into()),
        ],
        ..Context::default()
    }
}

fn live_value(value: &Json) -> LiveValue {
    match value {
        Json::String(text) => LiveValue::Text(text.clone()),
        Json::Bool(flag) => LiveValue::Text(if *flag { "1" } else { "0" }.to_owned()),
        Json::Number(number) => LiveValue::Text(number.to_string()),
        other => LiveValue::Json(other.to_string()),
    }
}

fn form(params: &[Param]) -> Result<BTreeMap<String, String>, String> {
    let mut out = BTreeMap::new();
    for param in params {
        let value = match &param.value {
            Value::Text(text) => text.clone(),
            Value::Secret(_) => PASSWORD.to_owned(),
            other => return Err(format!("{}: {other:?}", param.key)),
        };
        if out.insert(param.key.clone(), value).is_some() {
            return Err(format!("{} is sent twice", param.key));
        }
    }
    Ok(out)
}

/// Whether PVE makes or imports a volume for this value.
fn allocates(key: &str, value: &str) -> bool {
    let bus = key.trim_end_matches(|c: char| c.is_ascii_digit());
    let volume = value.split(',').next().and_then(|v| v.split_once(':')).map_or("", |(_, name)| name);
    ["ide", "sata", "scsi", "virtio", "efidisk", "tpmstate"].contains(&bus)
        && (volume == "cloudinit"
            || value.contains("import-from=")
            || (volume.starts_with(|c: char| c.is_ascii_digit()) && volume.parse::<f64>().is_ok()))
}

/// Bytes that a live drive or mount point names.
pub fn size_of(text: &str) -> Option<u64> {
    text.split(',').find_map(|part| part.strip_prefix("size=")).and_then(Size::parse_pve).map(|s| s.0)
}
