//! Cloning a VM (facts Q38 to Q41, P5).

use super::drive::Drive;
use super::{Guest, GuestKind, format_size, values};
use crate::grammar::check::Args;
use crate::grammar::property;
use crate::grammar::vm;
use crate::refused::{Refused, Reply};
use crate::world::volume::{self, Purpose};
use crate::world::{Caller, World};

/// A clone that has passed its checks.
#[derive(Clone, Debug)]
pub struct CloneJob {
    pub(crate) kind: GuestKind,
    pub(crate) source: u32,
    pub(crate) newid: u32,
    pub(crate) target: String,
    pub(crate) full: bool,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) storage: Option<String>,
    pub(crate) format: Option<String>,
    /// The new id was taken elsewhere: the task will fail on it (fact Q40).
    pub(crate) collides: bool,
}

impl World {
    /// Everything that is checked before the task; the new, locked config is there afterwards.
    pub(crate) fn begin_vm_clone(
        &mut self,
        caller: &Caller,
        node: &str,
        vmid: u32,
        args: &Args,
    ) -> Reply<CloneJob> {
        let get = |key: &str| args.get(key).map(String::as_str);
        let newid: u32 = get("newid").and_then(|id| id.parse().ok()).unwrap_or_default();
        let target = get("target").unwrap_or(node).to_owned();
        let source = self
            .guests
            .get(&vmid)
            .filter(|guest| guest.kind == GuestKind::Qemu && guest.node == node)
            .ok_or_else(|| {
                Refused::die(format!("unable to find configuration file for VM {vmid} on node '{node}'"))
            })?
            .clone();
        self.check_clone_target(&target)?;
        if let Some(pool) = get("pool")
            && !self.pools.contains_key(pool)
        {
            return Err(Refused::denied(&format!("pool '{pool}' does not exist")));
        }
        if let Some(text) = source.locked_text() {
            return Err(Refused::die(text));
        }
        if let Some(snapshot) = get("snapname")
            && !source.snapshots.iter().any(|s| s.name == snapshot)
        {
            return Err(Refused::die(format!("snapshot '{snapshot}' does not exist")));
        }
        let full = get("full").map_or(!source.is_template(), |flag| flag == "1");
        if !full {
            if !source.is_template() && get("snapname").is_none() {
                return Err(Refused::die(
                    "Linked clone feature for non-template VM is not supported. full clone required",
                ));
            }
            for key in ["storage", "format"] {
                if args.contains_key(key) {
                    return Err(Refused::die(format!("parameter '{key}' not allowed for linked clones")));
                }
            }
        }
        self.check_clone_storages(caller, &source, node, &target, get("storage"))?;
        for (key, value) in &source.config {
            if key.starts_with("net") {
                self.check_bridge(caller, GuestKind::Qemu, value)?;
            }
            let raw_device =
                (key.starts_with("hostpci") || key.starts_with("usb")) && !value.contains("mapping=");
            if raw_device && !caller.is_root() {
                return Err(Refused::denied("user != root@pam"));
            }
        }
        if full && source.running && source.config.contains_key("tpmstate0") {
            return Err(Refused::die("cannot clone TPM state while VM is running"));
        }
        let other = self.guests.get(&newid).map(|guest| (guest.kind, guest.node.clone()));
        if other.as_ref().is_some_and(|(kind, at)| *kind == GuestKind::Qemu && at == node) {
            return Err(Refused::die(format!("unable to create VM {newid}: config file already exists")));
        }
        let owned = |key: &str| args.get(key).cloned();
        let job = CloneJob {
            kind: GuestKind::Qemu,
            source: vmid,
            newid,
            target,
            full,
            name: owned("name"),
            description: owned("description"),
            storage: owned("storage"),
            format: owned("format"),
            collides: other.is_some(),
        };
        if !job.collides {
            let mut guest = Guest::new(GuestKind::Qemu, newid, node);
            guest.config.insert("lock".to_owned(), "clone".to_owned());
            self.guests.insert(newid, guest);
            self.join_pool(newid, get("pool"));
        }
        Ok(job)
    }

    pub(crate) fn check_clone_target(&self, target: &str) -> Reply<()> {
        match self.nodes.get(target) {
            Some(node) if node.online => Ok(()),
            Some(_) => Err(Refused::die(format!("node '{target}' is not online"))),
            None => Err(Refused::die(format!("no such cluster node '{target}'"))),
        }
    }

    /// Space on each target storage, and shared storage for another node (facts P5, Q38).
    pub(crate) fn check_clone_storages(
        &self,
        caller: &Caller,
        source: &Guest,
        node: &str,
        target: &str,
        storage: Option<&str>,
    ) -> Reply<()> {
        let word = source.kind.word();
        for (_, volume) in source.volumes() {
            let from = volume::split(&volume).map_or("", |(storage, _)| storage);
            let to = storage.unwrap_or(from);
            self.usable_storage(to, target)?;
            self.need(caller, &format!("/storage/{to}"), &["Datastore.AllocateSpace"])?;
            let shared = |name: &str| self.storages.get(name).is_some_and(|spec| spec.shared);
            if target != node && !(shared(from) && shared(to)) {
                return Err(Refused::die(format!(
                    "can't clone {word} to node '{target}' ({word} uses local storage)"
                )));
            }
        }
        Ok(())
    }

    /// The work of the clone task.
    pub(crate) fn clone_vm(&mut self, node: &str, job: &CloneJob) -> Result<(), String> {
        if job.collides {
            return Err(format!(
                "close (rename) atomic file '/etc/pve/nodes/{node}/qemu-server/{}.conf' failed: File exists",
                job.newid
            ));
        }
        let failed = |why: String| format!("clone failed: {why}");
        let source =
            self.guest(node, GuestKind::Qemu, job.source).map_err(|refused| failed(refused.message))?.clone();
        let mut new = Guest::new(GuestKind::Qemu, job.newid, &job.target);
        for (key, value) in &source.config {
            if key.starts_with("unused") || matches!(key.as_str(), "template" | "parent" | "lock" | "vmstate")
            {
                continue;
            }
            let value = match key.as_str() {
                "vmgenid" => self.uuid(),
                "smbios1" => self.new_smbios(value),
                _ if key.starts_with("net") => self.new_mac(value),
                _ => value.clone(),
            };
            new.config.insert(key.clone(), value);
        }
        for slot in super::drive::slots() {
            let Some(drive) = source.config.get(slot).and_then(|text| Drive::read(slot, text)) else {
                continue;
            };
            if drive.is_cdrom() && !drive.is_cloudinit() {
                continue;
            }
            let copied = self.copy_drive(node, job, &drive).map_err(failed)?;
            new.config.insert(slot.to_owned(), copied.print());
        }
        let name = job.name.clone().unwrap_or_else(|| {
            let of = source.config.get("name").cloned().unwrap_or_else(|| source.vmid.to_string());
            format!("Copy-of-VM-{of}")
        });
        new.config.insert("name".to_owned(), name);
        if let Some(text) = &job.description {
            new.set("description", values::stored_description(GuestKind::Qemu, text));
        }
        super::vm_hotplug::seed_image(&mut new);
        self.guests.insert(job.newid, new);
        Ok(())
    }

    fn copy_drive(&mut self, node: &str, job: &CloneJob, old: &Drive) -> Result<Drive, String> {
        let Some((from, name)) = volume::split(&old.file) else { return Ok(old.clone()) };
        let source = self
            .volume(&old.file, node)
            .cloned()
            .ok_or_else(|| format!("volume '{}' does not exist", old.file))?;
        let storage = job.storage.as_deref().unwrap_or(from);
        let always_full = old.is_cloudinit() || old.slot == "tpmstate0";
        let purpose = if old.is_cloudinit() { Purpose::CloudInit } else { Purpose::Disk };
        let file_based = |name: &str| self.storages.get(name).is_some_and(|spec| spec.file_based());
        let (from_file, to_file) = (file_based(from), file_based(storage));
        let format = match &job.format {
            Some(format) if !always_full && to_file => Some(format.clone()),
            _ if to_file && from_file => Some(source.format.clone()),
            _ => None,
        };
        let linked = !job.full && !always_full;
        let format = if linked && from_file { Some("qcow2".to_owned()) } else { format };
        let owner = (GuestKind::Qemu, job.newid);
        let mut volid =
            self.allocate(storage, &job.target, owner, purpose, format.as_deref(), source.size)?;
        if linked {
            volid = self.link(&volid, &job.target, &old.file, name, from_file);
        }
        let mut drive = old.clone();
        drive.file = volid;
        drive.props.insert("size", format_size(source.size));
        Ok(drive)
    }

    /// Gives a fresh volume its base; on file storage the base's path is part of its name (fact S13).
    fn link(&mut self, volid: &str, node: &str, base: &str, base_name: &str, file_based: bool) -> String {
        let Some(mut made) = self.volume(volid, node).cloned() else { return volid.to_owned() };
        self.remove_volume(volid, node);
        made.parent = Some(base.to_owned());
        let linked = match volume::split(volid) {
            Some((storage, name)) if file_based => format!("{storage}:{base_name}/{name}"),
            _ => volid.to_owned(),
        };
        self.put_volume(&linked, node, made);
        linked
    }

    /// The same fields with a new uuid (fact Q39).
    fn new_smbios(&mut self, text: &str) -> String {
        let uuid = format!("uuid={}", self.uuid());
        let mut parts: Vec<&str> = text.split(',').collect();
        match parts.iter_mut().find(|part| part.starts_with("uuid=")) {
            Some(part) => *part = &uuid,
            None => parts.push(&uuid),
        }
        parts.join(",")
    }

    fn new_mac(&mut self, text: &str) -> String {
        let mut props = property::parse(vm::NET, text, "net").unwrap_or_default();
        let mac = self.mac();
        props.insert("macaddr", mac);
        values::print_net(&props)
    }
}
