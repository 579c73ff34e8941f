//! A config write to a VM, from the checks to the pending values (facts Q20 to Q37, R2 to R5).

use super::drive::{self, Drive, Form};
use super::rights::Deed;
use super::{Guest, GuestKind, owned, values};
use crate::grammar::check::Args;
use crate::grammar::{lookup, split_list, vm};
use crate::refused::{Refused, Reply};
use crate::world::{Caller, World};

/// A config write after its checks.
#[derive(Clone, Debug)]
pub struct VmChange {
    pub(crate) set: Args,
    pub(crate) delete: Vec<String>,
    pub(crate) revert: Vec<String>,
    pub(crate) force: bool,
}

impl World {
    /// Everything that PVE checks before it answers a config write (facts Q27 to Q29, Q51).
    pub(crate) fn check_vm_change(
        &mut self,
        caller: &Caller,
        node: &str,
        vmid: u32,
        args: &Args,
    ) -> Reply<VmChange> {
        let mut set = args.clone();
        let mut take = |key: &str| set.remove(key);
        let digest = take("digest");
        let skiplock = take("skiplock").is_some_and(|flag| flag == "1");
        let force = take("force").is_some_and(|flag| flag == "1");
        let list = |text: Option<String>| -> Vec<String> {
            split_list(text.as_deref().unwrap_or_default())
                .map(|key| if key == "cdrom" { "ide2".to_owned() } else { key.to_owned() })
                .collect()
        };
        let delete = list(take("delete"));
        let revert = list(take("revert"));
        for key in ["node", "vmid", "background_delay", "import-working-storage"] {
            take(key);
        }
        if skiplock && !caller.is_root() {
            return Err(Refused::param("skiplock", "Only root may use this option."));
        }
        if set.is_empty() && delete.is_empty() && revert.is_empty() {
            return Err(Refused::die("no options specified"));
        }
        if let Some(keys) = set.get("sshkeys") {
            values::check_sshkeys(keys)?;
        }
        if let Some(cpu) = set.get("cpu") {
            values::check_cpu(cpu)?;
        }
        if let Some(value) = set.remove("cdrom") {
            set.insert("ide2".to_owned(), cdrom_value(&value));
        }
        for key in &delete {
            if set.contains_key(key) {
                return Err(Refused::param(
                    "delete",
                    format!("you can't use '-{key}' and -delete {key}' at the same time"),
                ));
            }
            if lookup(vm::TABLE, key).is_none() {
                return Err(Refused::param("delete", format!("unknown option '{key}'")));
            }
        }
        for key in &revert {
            if lookup(vm::TABLE, key).is_none() {
                return Err(Refused::param("revert", format!("unknown option '{key}'")));
            }
            if set.contains_key(key) {
                return Err(Refused::param(
                    "revert",
                    format!("you can't use '-{key}' and '-revert {key}' at the same time"),
                ));
            }
        }
        let guest = self.guest(node, GuestKind::Qemu, vmid)?.clone();
        for (key, text) in &set {
            if drive::slots().any(|slot| slot == key) {
                let drive = drive::check_param(key, text)?;
                check_tpm(&guest, &drive)?;
                self.check_storage_access(caller, node, vmid, &drive)?;
            }
        }
        if let Some(snippets) = set.get("cicustom") {
            self.check_snippets(caller, node, vmid, snippets)?;
        }
        for key in &delete {
            let old = guest.effective(key).unwrap_or_default();
            if key == "tags" {
                self.check_tags(caller, vmid, old, "")?;
            } else {
                self.check_option(caller, vmid, None, key, Deed::Delete(old))?;
            }
        }
        for (key, text) in &set {
            if key == "tags" {
                self.check_tags(caller, vmid, guest.effective("tags").unwrap_or_default(), text)?;
            } else {
                self.check_option(caller, vmid, None, key, Deed::Set(text))?;
                if key.starts_with("net")
                    && let Some(old) = guest.effective(key)
                {
                    self.check_bridge(caller, GuestKind::Qemu, old)?;
                }
            }
        }
        let windows = is_windows(set.get("ostype").map(String::as_str).or(guest.effective("ostype")));
        if let Some(password) = set.get("cipassword").cloned() {
            set.insert("cipassword".to_owned(), values::hashed_password(self, &password, windows));
        }
        if let Some(digest) = digest
            && digest != guest.digest()
        {
            return Err(Refused::die("checksum mismatch (file change by other user?)"));
        }
        if let Some(text) = guest.locked_text()
            && !skiplock
        {
            return Err(Refused::die(text));
        }
        Ok(VmChange { set, delete, revert, force })
    }

    /// Does a checked config write: everything becomes pending, then what can be applied is applied.
    pub(crate) fn change_vm(&mut self, node: &str, vmid: u32, change: &VmChange) -> Reply<()> {
        let mut guest = self.guest(node, GuestKind::Qemu, vmid)?.clone();
        if let Some(text) = guest.locked_text().filter(|_| !change.delete.iter().any(|key| key == "lock")) {
            return Err(Refused::die(text));
        }
        for key in &change.revert {
            self.drop_pending(&mut guest, key, false);
            guest.pending_delete.remove(key);
        }
        let mut boot = guest.effective("boot").and_then(values::boot_devices);
        for key in &change.delete {
            self.delete_vm_key(&mut guest, key, change.force, &mut boot)?;
        }
        let slots = drive::slots().filter_map(|slot| change.set.get_key_value(slot));
        let others = change.set.iter().filter(|(key, _)| lookup_drive(key).is_none());
        for (key, text) in slots.chain(others) {
            if let Err(refused) = self.set_vm_key(&mut guest, key, text, change, &mut boot) {
                // what was written before stays pending, as in PVE's own loop
                guest.tidy_pending();
                self.guests.insert(vmid, guest);
                return Err(refused);
            }
        }
        guest.tidy_pending();
        let errors = self.apply_vm(&mut guest);
        guest.tidy_unused();
        self.guests.insert(vmid, guest);
        if errors.is_empty() { Ok(()) } else { Err(Refused::params(errors)) }
    }

    fn delete_vm_key(
        &mut self,
        guest: &mut Guest,
        key: &str,
        force: bool,
        boot: &mut Option<Vec<String>>,
    ) -> Reply<()> {
        // a known key that is not set is only a line in the log (fact Q28)
        if guest.effective(key).is_none() && !guest.config.contains_key(key) {
            return Ok(());
        }
        if let Some(devices) = boot
            && devices.iter().any(|device| device == key)
        {
            devices.retain(|device| device != key);
            guest.pending.insert("boot".to_owned(), values::print_boot(devices));
            guest.pending_delete.remove("boot");
        }
        if key.starts_with("unused") {
            let volume = guest.config.get(key).cloned().unwrap_or_default();
            if guest.protected() {
                return Err(Refused::die(format!(
                    "can't remove unused disk '{volume}' - protection mode enabled"
                )));
            }
            if owned(&volume, guest.vmid) {
                self.remove_volume(&volume, &guest.node);
            }
            guest.config.remove(key);
            return Ok(());
        }
        if guest.is_volume_key(key) {
            if guest.protected() {
                return Err(Refused::die(format!("can't remove drive '{key}' - protection mode enabled")));
            }
            self.drop_pending(guest, key, force);
        }
        if key == "tags" || key == "lock" {
            guest.config.remove(key);
            guest.pending.remove(key);
            return Ok(());
        }
        guest.pending.remove(key);
        guest.pending_delete.insert(key.to_owned(), force);
        Ok(())
    }

    fn set_vm_key(
        &mut self,
        guest: &mut Guest,
        key: &str,
        text: &str,
        change: &VmChange,
        boot: &mut Option<Vec<String>>,
    ) -> Reply<()> {
        if guest.pending.get(key).is_some_and(|waiting| waiting == text) {
            return Ok(());
        }
        let value = if let Some(drive) = Drive::read(key, text) {
            self.set_drive(guest, key, drive, boot)?
        } else if key == "boot" {
            check_boot(guest, text, change)?;
            *boot = values::boot_devices(text);
            if boot.is_some() && guest.config.contains_key("bootdisk") {
                guest.pending_delete.insert("bootdisk".to_owned(), false);
            }
            values::stored_boot(text)
        } else {
            self.vm_value(key, text)
        };
        guest.pending_delete.remove(key);
        guest.pending.insert(key.to_owned(), value);
        // a password never waits (fact Q23)
        if key == "cipassword"
            && let Some(hash) = guest.pending.remove(key)
        {
            guest.set(key, hash);
        }
        Ok(())
    }

    fn set_drive(
        &mut self,
        guest: &mut Guest,
        key: &str,
        drive: Drive,
        boot: &mut Option<Vec<String>>,
    ) -> Reply<String> {
        if matches!(drive.form(), Form::CloudInit(_))
            && let Some(other) = cloudinit_slot(guest).filter(|other| other != key)
        {
            return Err(Refused::die(format!("{key} - cloud-init drive is already attached at '{other}'")));
        }
        let same = guest
            .pending
            .get(key)
            .and_then(|text| Drive::read(key, text))
            .is_some_and(|d| d.file == drive.file);
        if !same {
            self.drop_pending(guest, key, false);
        }
        let made = self.make_drive(&guest.node.clone(), guest.vmid, drive).map_err(Refused::die)?;
        // a CD drive joins a boot order, the cloud-init drive does not (fact Q34)
        if let Some(devices) = boot
            && made.is_cdrom()
            && !made.is_cloudinit()
            && !devices.iter().any(|device| device == key)
        {
            devices.push(key.to_owned());
            guest.pending.insert("boot".to_owned(), values::print_boot(devices));
            guest.pending_delete.remove("boot");
        }
        Ok(made.print())
    }

    /// A plain value as it is stored (fact Q35).
    pub(crate) fn vm_value(&mut self, key: &str, text: &str) -> String {
        match key {
            "tags" => self.stored_tags(text),
            "description" => values::stored_description(GuestKind::Qemu, text),
            "cpuunits" => values::clamp_cpuunits(text),
            "vmgenid" if text == "1" => self.uuid(),
            "boot" => values::stored_boot(text),
            _ if key.starts_with("net") && lookup(vm::TABLE, key).is_some() => self.vm_net(text),
            _ => text.to_owned(),
        }
    }
}

fn lookup_drive(key: &str) -> Option<crate::grammar::Table> {
    crate::grammar::drive::table(key)
}

/// `cdrom` is ide2, always a CD drive (fact Q35).
pub(crate) fn cdrom_value(text: &str) -> String {
    if text.contains("media=") { text.to_owned() } else { format!("{text},media=cdrom") }
}

/// The slot of the cloud-init drive.
pub(crate) fn cloudinit_slot(guest: &Guest) -> Option<String> {
    drive::slots()
        .find(|slot| {
            guest.effective(slot).and_then(|text| Drive::read(slot, text)).is_some_and(|d| d.is_cloudinit())
        })
        .map(str::to_owned)
}

pub(crate) fn is_windows(ostype: Option<&str>) -> bool {
    ostype.is_some_and(|os| os.starts_with('w'))
}

/// The version of a TPM is fixed (fact Q12).
fn check_tpm(guest: &Guest, new: &Drive) -> Reply<()> {
    if new.slot != "tpmstate0" {
        return Ok(());
    }
    let Some(old) = guest.effective("tpmstate0").and_then(|text| Drive::read("tpmstate0", text)) else {
        return Ok(());
    };
    let version = |drive: &Drive| drive.props.get("version").cloned().unwrap_or_else(|| "v1.2".to_owned());
    if version(&old) == version(new) {
        return Ok(());
    }
    Err(Refused::param("tpmstate0", "cannot change TPM state version after creation"))
}

/// Every device of a boot order must exist after the write (fact Q17).
fn check_boot(guest: &Guest, text: &str, change: &VmChange) -> Reply<()> {
    for device in values::boot_devices(text).unwrap_or_default() {
        let there = guest.effective(&device).is_some() || change.set.contains_key(&device);
        if !there || change.delete.contains(&device) {
            return Err(Refused::die(format!("invalid bootorder: device '{device}' does not exist'")));
        }
    }
    Ok(())
}
