//! Creating a VM (facts Q1 to Q7, Q10, Q12, Q19, Q45).

use super::drive::{self, Drive, Form};
use super::vm_update::{cdrom_value, is_windows};
use super::{Guest, GuestKind, values};
use crate::grammar::check::Args;
use crate::grammar::property;
use crate::grammar::{split_index, vm};
use crate::refused::{Refused, Reply};
use crate::world::{Caller, World};

/// Parameters of create that are no options of the configuration.
const NOT_STORED: &[&str] = &[
    "node",
    "vmid",
    "archive",
    "bwlimit",
    "force",
    "ha-managed",
    "import-working-storage",
    "live-restore",
    "pool",
    "start",
    "storage",
    "unique",
];

impl World {
    /// Everything that PVE checks before it answers a create with a task; the empty locked config is
    /// there afterwards (fact Q2).
    pub(crate) fn begin_vm(&mut self, caller: &Caller, node: &str, vmid: u32, args: &Args) -> Reply<()> {
        let get = |key: &str| args.get(key).map(String::as_str);
        let options = options(args);
        if let Some(keys) = get("sshkeys") {
            values::check_sshkeys(keys)?;
        }
        if let Some(cpu) = options.get("cpu") {
            values::check_cpu(cpu)?;
        }
        let pool = get("pool");
        self.check_new_guest(caller, vmid, pool, get("start") == Some("1"))?;
        if get("ha-managed") == Some("1") {
            self.need(caller, "/", &["Sys.Console"])?;
        }
        if let Some(storage) = get("storage") {
            self.need(caller, &format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
        }
        if let Some(archive) = get("archive") {
            return Err(refuse_restore(archive, &options));
        }
        for slot in drive::slots() {
            if let Some(text) = options.get(slot) {
                let drive = drive::check_param(slot, text)?;
                self.check_storage_access(caller, node, vmid, &drive)?;
            }
        }
        if let Some(snippets) = options.get("cicustom") {
            self.check_snippets(caller, node, vmid, snippets)?;
        }
        self.check_create_rights(caller, vmid, pool, &options)?;
        if let Some(tags) = options.get("tags") {
            self.check_tags(caller, vmid, "", tags)?;
        }
        if let Some(taken) = self.taken(vmid) {
            return Err(Refused::die(format!("unable to create VM {vmid} - {taken}")));
        }
        let mut guest = Guest::new(GuestKind::Qemu, vmid, node);
        guest.config.insert("lock".to_owned(), "create".to_owned());
        self.guests.insert(vmid, guest);
        self.join_pool(vmid, pool);
        Ok(())
    }

    /// VM.Allocate on the guest or its pool, power, and the pool itself (facts P1, C10).
    pub(crate) fn check_new_guest(
        &self,
        caller: &Caller,
        vmid: u32,
        pool: Option<&str>,
        start: bool,
    ) -> Reply<()> {
        if let Some(pool) = pool
            && !self.pools.contains_key(pool)
        {
            return Err(Refused::denied(&format!("pool '{pool}' does not exist")));
        }
        let guest = format!("/vms/{vmid}");
        let may = |privilege: &str| {
            self.may(caller, &guest, privilege)
                || pool.is_some_and(|pool| self.may(caller, &format!("/pool/{pool}"), privilege))
        };
        if !may("VM.Allocate") {
            return Err(Refused::denied(""));
        }
        if start && !may("VM.PowerMgmt") {
            return Err(Refused::denied(&format!("{guest}, VM.PowerMgmt")));
        }
        Ok(())
    }

    pub(crate) fn join_pool(&mut self, vmid: u32, pool: Option<&str>) {
        if let Some(pool) = pool.and_then(|pool| self.pools.get_mut(pool)) {
            pool.vms.insert(vmid);
        }
    }

    /// The work of the create task: allocates, fills in and writes the configuration.
    pub(crate) fn create_vm(&mut self, node: &str, vmid: u32, args: &Args) -> Result<(), String> {
        let failed = |why: String| format!("unable to create VM {vmid} - {why}");
        let options = options(args);
        let mut guest = Guest::new(GuestKind::Qemu, vmid, node);
        for slot in drive::slots() {
            let Some(drive) = options.get(slot).and_then(|text| Drive::read(slot, text)) else { continue };
            if matches!(drive.form(), Form::CloudInit(_))
                && let Some(other) = super::vm_update::cloudinit_slot(&guest)
            {
                return Err(failed(format!("{slot} - cloud-init drive is already attached at '{other}'")));
            }
            let made = self.make_drive(node, vmid, drive).map_err(failed)?;
            guest.config.insert(slot.to_owned(), made.print());
        }
        for (key, text) in &options {
            if !guest.is_volume_key(key) {
                let value = self.vm_value(key, text);
                guest.set(key, value);
            }
        }
        if !guest.config.contains_key("boot") {
            let devices = default_boot(&guest);
            guest.config.insert("boot".to_owned(), values::print_boot(&devices));
        }
        if !guest.config.contains_key("smbios1") {
            let uuid = self.uuid();
            guest.config.insert("smbios1".to_owned(), format!("uuid={uuid}"));
        }
        if !guest.config.contains_key("vmgenid") {
            let uuid = self.uuid();
            guest.config.insert("vmgenid".to_owned(), uuid);
        }
        pin_windows_machine(&mut guest);
        guest.config.insert("meta".to_owned(), format!("creation-qemu=10.1.2,ctime={}", self.unix_time()));
        if guest.is_template() {
            self.make_bases(&mut guest);
        }
        super::vm_hotplug::seed_image(&mut guest);
        self.guests.insert(vmid, guest);
        if args.get("ha-managed").is_some_and(|flag| flag == "1") {
            self.manage_with_ha(&format!("vm:{vmid}"), args.get("start").is_some_and(|flag| flag == "1"));
        }
        Ok(())
    }

    /// Adds an HA resource with its defaults.
    pub(crate) fn manage_with_ha(&mut self, sid: &str, started: bool) {
        let state = if started { "started" } else { "stopped" };
        self.ha.entry(sid.to_owned()).or_default().insert("state".to_owned(), state.to_owned());
    }
}

fn options(args: &Args) -> Args {
    let mut options = args.clone();
    options.retain(|key, _| !NOT_STORED.contains(&key.as_str()));
    if let Some(value) = options.remove("cdrom") {
        options.insert("ide2".to_owned(), cdrom_value(&value));
    }
    options
}

/// Restores are not simulated beyond what is refused at once (fact Q4).
fn refuse_restore(archive: &str, options: &Args) -> Refused {
    if archive == "-" {
        return Refused::param("archive", "pipe requires cli environment");
    }
    if let Some(slot) = drive::slots().find(|slot| options.contains_key(*slot)) {
        return Refused::param(slot, "option conflicts with option 'archive'");
    }
    Refused::die(format!("volume '{archive}' does not exist"))
}

/// First disk (ide, scsi, virtio, sata), first CD drive, first card (fact Q5).
fn default_boot(guest: &Guest) -> Vec<String> {
    let drives: Vec<Drive> = drive::slots()
        .filter_map(|slot| Drive::read(slot, guest.config.get(slot)?))
        .filter(|d| !matches!(d.slot.as_str(), "efidisk0" | "tpmstate0"))
        .collect();
    let disk = drives.iter().find(|drive| !drive.is_cdrom());
    let cdrom = drives.iter().find(|drive| drive.is_cdrom());
    let net = guest
        .config
        .keys()
        .filter_map(|key| split_index(key).filter(|(stem, _)| *stem == "net"))
        .map(|(_, index)| index)
        .min();
    let mut devices: Vec<String> = disk.into_iter().chain(cdrom).map(|drive| drive.slot.clone()).collect();
    devices.extend(net.map(|index| format!("net{index}")));
    devices
}

/// Windows keeps the machine version it was made with (fact Q5).
fn pin_windows_machine(guest: &mut Guest) {
    if !is_windows(guest.config.get("ostype").map(String::as_str)) {
        return;
    }
    let text = guest.config.get("machine").cloned().unwrap_or_default();
    let mut props = property::parse(vm::MACHINE, &text, "machine").unwrap_or_default();
    let pinned = match props.get("type").map(String::as_str) {
        None | Some("pc") => "pc-i440fx-10.1",
        Some("q35") => "pc-q35-10.1",
        Some(_) => return,
    };
    props.insert("type", pinned.to_owned());
    guest.config.insert("machine".to_owned(), property::print(vm::MACHINE, &props));
}
