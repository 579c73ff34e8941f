//! Creating and cloning containers (facts L1 to L4, L18).

use super::ct::{self, Mount};
use super::vm_clone::CloneJob;
use super::{Guest, GuestKind, format_size, values};
use crate::grammar::check::Args;
use crate::grammar::property;
use crate::grammar::{self};
use crate::refused::{Refused, Reply};
use crate::world::volume::{self, Purpose};
use crate::world::{Caller, World};

/// Parameters of create that are no options of the configuration (fact L1).
const NOT_STORED: &[&str] = &[
    "node",
    "vmid",
    "bwlimit",
    "force",
    "ha-managed",
    "ignore-unpack-errors",
    "ostemplate",
    "password",
    "pool",
    "restore",
    "ssh-public-keys",
    "start",
    "storage",
    "unique",
];

impl World {
    /// Everything that PVE checks before it answers a create with a task.
    pub(crate) fn begin_ct(&mut self, caller: &Caller, node: &str, vmid: u32, args: &Args) -> Reply<()> {
        let get = |key: &str| args.get(key).map(String::as_str);
        let options = options(args);
        if let Some(taken) = self.taken(vmid) {
            return Err(Refused::die(taken));
        }
        let pool = get("pool");
        self.check_new_guest(caller, vmid, pool, get("start") == Some("1"))?;
        if get("ha-managed") == Some("1") {
            self.need(caller, "/", &["Sys.Console"])?;
        }
        if options.get("unprivileged").is_some_and(|flag| flag == "0") {
            self.need(caller, "/", &["Sys.Modify"])?;
        }
        if get("restore") == Some("1") {
            let archive = get("ostemplate").unwrap_or_default();
            return Err(Refused::die(format!("volume '{archive}' does not exist")));
        }
        let template = get("ostemplate").unwrap_or_default();
        if !template.contains(":vztmpl/") {
            return Err(Refused::die(format!("unable to parse volume ID '{template}'")));
        }
        self.check_volume_access(caller, node, vmid, template)?;
        if let Some(keys) = get("ssh-public-keys")
            && !keys.lines().filter(|line| !line.trim().is_empty()).all(values::is_public_key)
        {
            return Err(Refused::die("SSH public key validation error"));
        }
        let default = get("storage").unwrap_or("local");
        for (key, text) in &options {
            if let Some(mount) = Mount::read(key, text) {
                self.check_mount_access(caller, node, vmid, &mount, Some(default))?;
            }
        }
        if !options.contains_key("rootfs") {
            if let Some(key) = options.keys().find(|key| ct::table(key).is_some()) {
                tracing::debug!(key, "mount point without rootfs");
                return Err(Refused::die("mount points configured, but 'rootfs' not set - aborting"));
            }
            let root = Mount {
                slot: "rootfs".to_owned(),
                volume: format!("{default}:4"),
                props: Default::default(),
            };
            self.check_mount_access(caller, node, vmid, &root, None)?;
        }
        self.check_ct_rights(caller, vmid, pool, None, &options, &[])?;
        let mut guest = Guest::new(GuestKind::Lxc, vmid, node);
        guest.config.insert("lock".to_owned(), "create".to_owned());
        self.guests.insert(vmid, guest);
        self.join_pool(vmid, pool);
        Ok(())
    }

    /// The work of the create task.
    pub(crate) fn create_ct(&mut self, node: &str, vmid: u32, args: &Args) -> Result<(), String> {
        let failed = |why: String| format!("unable to create CT {vmid} - {why}");
        let mut options = options(args);
        let template = args.get("ostemplate").cloned().unwrap_or_default();
        let storage = volume::split(&template).map_or("", |(storage, _)| storage);
        self.usable_storage(storage, node).map_err(|refused| failed(refused.message))?;
        if self.volume(&template, node).is_none() {
            return Err(failed(format!("volume '{template}' does not exist")));
        }
        let default = args.get("storage").map_or("local", String::as_str).to_owned();
        options.entry("rootfs".to_owned()).or_insert_with(|| format!("{default}:4"));
        let mut guest = Guest::new(GuestKind::Lxc, vmid, node);
        // rootfs first, then mp0, mp1, ...: they share one counter (fact L16)
        let mut mounts: Vec<Mount> =
            options.iter().filter_map(|(key, text)| Mount::read(key, text)).collect();
        mounts.sort_by_key(|mount| {
            grammar::split_index(&mount.slot).map_or(0, |(_, index)| 1 + u32::from(index))
        });
        for mount in mounts {
            let made = self.make_mount(node, vmid, mount, Some(&default)).map_err(failed)?;
            guest.config.insert(made.slot.clone(), made.print());
        }
        for (key, text) in &options {
            if !guest.is_volume_key(key) {
                let value = self.ct_value(key, text);
                guest.set(key, value);
            }
        }
        let ostype =
            ["ubuntu", "alpine", "fedora", "archlinux", "centos", "opensuse", "gentoo", "devuan", "nixos"]
                .into_iter()
                .find(|os| template.to_lowercase().contains(os))
                .unwrap_or("debian");
        let defaults = [
            ("arch", "amd64".to_owned()),
            ("ostype", ostype.to_owned()),
            ("hostname", format!("CT{vmid}")),
            ("memory", "512".to_owned()),
            ("swap", "512".to_owned()),
            ("unprivileged", "1".to_owned()),
        ];
        for (key, value) in defaults {
            guest.config.entry(key.to_owned()).or_insert(value);
        }
        if guest.config.get("unprivileged").is_some_and(|flag| flag == "0") {
            guest.config.remove("unprivileged");
        }
        if guest.is_template() {
            self.make_bases(&mut guest);
        }
        self.guests.insert(vmid, guest);
        if args.get("ha-managed").is_some_and(|flag| flag == "1") {
            self.manage_with_ha(&format!("ct:{vmid}"), args.get("start").is_some_and(|flag| flag == "1"));
        }
        Ok(())
    }

    /// Everything that is checked before a clone task; source and clone are locked afterwards (fact L18).
    pub(crate) fn begin_ct_clone(
        &mut self,
        caller: &Caller,
        node: &str,
        vmid: u32,
        args: &Args,
    ) -> Reply<CloneJob> {
        let get = |key: &str| args.get(key).map(String::as_str);
        let newid: u32 = get("newid").and_then(|id| id.parse().ok()).unwrap_or_default();
        let target = get("target").unwrap_or(node).to_owned();
        if let Some(taken) = self.taken(newid) {
            return Err(Refused::die(taken));
        }
        self.check_clone_target(&target)?;
        let source = self.guest(node, GuestKind::Lxc, vmid)?.clone();
        if let Some(pool) = get("pool")
            && !self.pools.contains_key(pool)
        {
            return Err(Refused::denied(&format!("pool '{pool}' does not exist")));
        }
        if let Some(text) = source.locked_text() {
            return Err(Refused::die(text));
        }
        let full = get("full").map_or(!source.is_template(), |flag| flag == "1");
        if !full && args.contains_key("storage") {
            return Err(Refused::die("parameter 'storage' not allowed for linked clones"));
        }
        if !full && !source.is_template() {
            return Err(Refused::die(
                "Linked clone feature for non-template CT is not supported. full clone required",
            ));
        }
        if full && source.running && get("snapname").is_none() {
            return Err(Refused::die("Full clone of a running container is only possible from a snapshot"));
        }
        for (key, text) in &source.config {
            if let Some(mount) = Mount::read(key, text).filter(|mount| mount.kind() != "volume") {
                return Err(Refused::die(format!(
                    "unable to clone mountpoint '{key}' (type {})",
                    mount.kind()
                )));
            }
            if key.starts_with("net") {
                self.check_bridge(caller, GuestKind::Lxc, text)?;
            }
        }
        self.check_clone_storages(caller, &source, node, &target, get("storage"))?;
        let owned = |key: &str| args.get(key).cloned();
        let job = CloneJob {
            kind: GuestKind::Lxc,
            source: vmid,
            newid,
            target,
            full,
            name: owned("hostname"),
            description: owned("description"),
            storage: owned("storage"),
            format: None,
            collides: false,
        };
        let mut guest = Guest::new(GuestKind::Lxc, newid, node);
        guest.config.insert("lock".to_owned(), "create".to_owned());
        self.guests.insert(newid, guest);
        self.guest_mut(node, GuestKind::Lxc, vmid)?.config.insert("lock".to_owned(), "disk".to_owned());
        self.join_pool(newid, get("pool"));
        Ok(job)
    }

    /// The work of the clone task.
    pub(crate) fn clone_ct(&mut self, node: &str, job: &CloneJob) -> Result<(), String> {
        let failed = |why: String| format!("clone failed: {why}");
        let mut source =
            self.guest(node, GuestKind::Lxc, job.source).map_err(|refused| failed(refused.message))?.clone();
        source.config.remove("lock");
        let mut new = Guest::new(GuestKind::Lxc, job.newid, &job.target);
        let mut mounts = Vec::new();
        for (key, value) in &source.config {
            if key.starts_with("unused") || matches!(key.as_str(), "template" | "parent" | "lock") {
                continue;
            }
            if let Some(mount) = Mount::read(key, value) {
                mounts.push(mount);
                continue;
            }
            let value = if key.starts_with("net") { self.new_hwaddr(value) } else { value.clone() };
            new.config.insert(key.clone(), value);
        }
        mounts.sort_by_key(|mount| {
            grammar::split_index(&mount.slot).map_or(0, |(_, index)| 1 + u32::from(index))
        });
        for mut mount in mounts {
            let Some((from, _)) = volume::split(&mount.volume) else { continue };
            let size = self
                .volume(&mount.volume, node)
                .map(|volume| volume.size)
                .ok_or_else(|| failed(format!("volume '{}' does not exist", mount.volume)))?;
            let storage = job.storage.clone().unwrap_or_else(|| from.to_owned());
            let owner = (GuestKind::Lxc, job.newid);
            let base = mount.volume.clone();
            mount.volume =
                self.allocate(&storage, &job.target, owner, Purpose::Disk, None, size).map_err(failed)?;
            if !job.full
                && let Some(made) = self.volume_mut(&mount.volume, &job.target)
            {
                made.parent = Some(base);
            }
            mount.props.insert("size", format_size(size));
            new.config.insert(mount.slot.clone(), mount.print());
        }
        if let Some(name) = &job.name {
            new.config.insert("hostname".to_owned(), name.clone());
        }
        if let Some(text) = &job.description {
            new.set("description", values::stored_description(GuestKind::Lxc, text));
        }
        self.guests.insert(job.newid, new);
        self.guests.insert(job.source, source);
        Ok(())
    }

    fn new_hwaddr(&mut self, text: &str) -> String {
        let mut props = property::parse(grammar::ct::NET, text, "net").unwrap_or_default();
        let mac = self.mac();
        props.insert("hwaddr", mac);
        property::print(grammar::ct::NET, &props)
    }
}

fn options(args: &Args) -> Args {
    let mut options = args.clone();
    options.retain(|key, _| !NOT_STORED.contains(&key.as_str()));
    options
}
