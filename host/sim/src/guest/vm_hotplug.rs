//! What of the pending values of a VM takes effect at once (facts Q11, Q30 to Q33).

use std::collections::BTreeMap;

use super::Guest;
use super::drive::Drive;
use super::owned;
use super::vm_update::cloudinit_slot;
use crate::grammar::property;
use crate::grammar::{split_index, split_list, vm};
use crate::world::World;

/// Applied on a running VM without any device change (fact Q30).
const AT_ONCE: &[&str] = &[
    "description",
    "hookscript",
    "lock",
    "migrate_downtime",
    "migrate_speed",
    "name",
    "onboot",
    "protection",
    "shares",
    "startup",
    "tags",
    "template",
    "vmstatestorage",
    "nameserver",
    "searchdomain",
    "sshkeys",
    "cpulimit",
    "cpuunits",
];

/// Options of an attached disk that wait for a power cycle (fact Q31).
const DISK_WAITS: &[&str] =
    &["aio", "discard", "iothread", "queues", "cache", "ssd", "ro", "product", "vendor"];

/// Parts of a card that change without plugging it anew.
const NET_LIVE: &[&str] = &["bridge", "tag", "trunks", "firewall", "rate", "link_down", "host-tunnel"];

impl World {
    /// Applies pending values: all of them on a stopped VM, else those that a running one takes. Returns
    /// the errors by key (fact Q32).
    pub(crate) fn apply_vm(&mut self, guest: &mut Guest) -> BTreeMap<String, String> {
        let mut errors = BTreeMap::new();
        let failing =
            self.hotplug_errors.get(&guest.vmid).cloned().filter(|_| guest.running).unwrap_or_default();
        let mut fails = |key: &String| {
            failing
                .get(key)
                .map(|why| errors.insert(key.clone(), format!("hotplug problem - {why}")))
                .is_some()
        };
        for (key, force) in guest.pending_delete.clone() {
            if guest.running && (fails(&key) || !may_delete_live(guest, &key)) {
                continue;
            }
            guest.pending_delete.remove(&key);
            if let Some(old) = guest.config.remove(&key)
                && guest.is_volume_key(&key)
            {
                self.release(guest, &key, &old, force);
            }
        }
        for (key, value) in guest.pending.clone() {
            if guest.running && (fails(&key) || !may_set_live(guest, &key, &value)) {
                continue;
            }
            guest.pending.remove(&key);
            let seed = Drive::read(&key, &value).is_some_and(|drive| drive.is_cloudinit());
            let old = guest.config.get(&key).cloned();
            guest.set(&key, value.clone());
            if let Some(old) = old
                && guest.is_volume_key(&key)
                && guest.volume_of(&key, &old) != guest.volume_of(&key, &value)
            {
                self.release(guest, &key, &old, false);
            }
            if seed && !guest.running {
                seed_image(guest);
            }
        }
        errors
    }

    /// Forgets a pending value; a volume that only it names is released.
    pub(crate) fn drop_pending(&mut self, guest: &mut Guest, key: &str, force: bool) {
        let Some(waiting) = guest.pending.remove(key) else { return };
        let Some(drive) = Drive::read(key, &waiting) else { return };
        if guest.volumes().iter().all(|(_, volume)| *volume != drive.file) {
            self.release(guest, key, &waiting, force);
        }
    }

    /// A volume that loses its slot: kept as unused, or freed (fact Q33).
    pub(crate) fn release(&mut self, guest: &mut Guest, key: &str, text: &str, force: bool) {
        let Some(drive) = Drive::read(key, text) else { return };
        if !owned(&drive.file, guest.vmid) {
            return;
        }
        if drive.is_cloudinit() || (force && !drive.is_cdrom()) {
            self.remove_volume(&drive.file, &guest.node);
        } else if !drive.is_cdrom() {
            guest.keep_unused(&drive.file);
        }
    }
}

/// Writes the cloud-init values into the seed image (fact Q24).
pub(crate) fn seed_image(guest: &mut Guest) {
    if cloudinit_slot(guest).is_some() {
        guest.seeded = guest
            .config
            .iter()
            .filter(|(key, _)| is_cloudinit_key(key))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
    }
}

/// Whether an option is part of the seed image.
pub(crate) fn is_cloudinit_key(key: &str) -> bool {
    matches!(
        key,
        "ciuser"
            | "cipassword"
            | "citype"
            | "ciupgrade"
            | "cicustom"
            | "nameserver"
            | "searchdomain"
            | "sshkeys"
    ) || key.starts_with("ipconfig")
        || key == "name"
}

fn hotplug(guest: &Guest, feature: &str) -> bool {
    match guest.config.get("hotplug").map(String::as_str) {
        None | Some("1") => matches!(feature, "network" | "disk" | "usb"),
        Some("0") => false,
        Some(list) => split_list(list).any(|item| item == feature),
    }
}

fn at_once(key: &str) -> bool {
    AT_ONCE.contains(&key)
        || key.starts_with("ci")
        || key.starts_with("ipconfig")
        || key.starts_with("unused")
}

fn may_delete_live(guest: &Guest, key: &str) -> bool {
    let stem = split_index(key).map_or(key, |(stem, _)| stem);
    match stem {
        "net" => hotplug(guest, "network"),
        "usb" => hotplug(guest, "usb"),
        "scsi" | "virtio" => hotplug(guest, "disk"),
        "tablet" => hotplug(guest, "usb"),
        "vcpus" => hotplug(guest, "cpu"),
        "memory" => hotplug(guest, "memory"),
        // the device itself cannot be taken away
        "balloon" => guest.config.get("balloon").is_none_or(|size| size != "0"),
        _ => at_once(key),
    }
}

fn may_set_live(guest: &Guest, key: &str, value: &str) -> bool {
    let stem = split_index(key).map_or(key, |(stem, _)| stem);
    match stem {
        "net" => hotplug(guest, "network") || net_changes_live(guest.config.get(key), value),
        "usb" => hotplug(guest, "usb"),
        "tablet" => hotplug(guest, "usb"),
        "vcpus" => hotplug(guest, "cpu"),
        "memory" => hotplug(guest, "memory"),
        "balloon" => (value == "0") == guest.config.get("balloon").is_some_and(|size| size == "0"),
        "efidisk" | "tpmstate" => false,
        _ if guest.is_volume_key(key) => drive_changes_live(guest, key, value),
        _ => at_once(key),
    }
}

fn net_changes_live(old: Option<&String>, new: &str) -> bool {
    let parse = |text: &str| property::parse(vm::NET, text, "net").unwrap_or_default();
    let (Some(old), new) = (old.map(|text| parse(text)), parse(new)) else { return false };
    old.keys().chain(new.keys()).all(|key| NET_LIVE.contains(key) || old.get(key) == new.get(key))
}

fn drive_changes_live(guest: &Guest, slot: &str, value: &str) -> bool {
    let Some(new) = Drive::read(slot, value) else { return false };
    let fixed_bus = slot.starts_with("ide") || slot.starts_with("sata");
    let Some(old) = guest.config.get(slot).and_then(|text| Drive::read(slot, text)) else {
        return hotplug(guest, "disk") && !fixed_bus;
    };
    if old.is_cdrom() != new.is_cdrom() {
        return false;
    }
    if old.is_cdrom() {
        return true; // another medium in the same drive
    }
    if old.file != new.file {
        return hotplug(guest, "disk") && !fixed_bus;
    }
    DISK_WAITS.iter().all(|key| old.props.get(key) == new.props.get(key))
}
