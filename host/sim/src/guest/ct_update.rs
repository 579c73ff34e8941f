//! A config write to a container and who may do it (facts L5 to L8, L15, L16, L23, R13).

use super::ct::{self, Mount};
use super::{Guest, GuestKind, owned, values};
use crate::grammar::check::Args;
use crate::grammar::property;
use crate::grammar::{self, lookup, split_index, split_list};
use crate::refused::{Refused, Reply};
use crate::world::{Caller, World};

/// Applied on a running container (fact L15).
const AT_ONCE: &[&str] = &[
    "description",
    "onboot",
    "startup",
    "protection",
    "hostname",
    "hookscript",
    "cores",
    "tags",
    "lock",
    "template",
    "cpulimit",
    "cpuunits",
    "memory",
    "swap",
];

impl World {
    /// The whole of PUT config: checks, pending values, what applies at once.
    pub(crate) fn change_ct(&mut self, caller: &Caller, node: &str, vmid: u32, args: &Args) -> Reply<()> {
        let mut set = args.clone();
        let digest = set.remove("digest");
        let mut list = |key: &str| -> Vec<String> {
            let text = set.remove(key).unwrap_or_default();
            split_list(&text).map(str::to_owned).collect()
        };
        let (delete, revert) = (list("delete"), list("revert"));
        set.retain(|key, _| !matches!(key.as_str(), "node" | "vmid"));
        if set.is_empty() && delete.is_empty() && revert.is_empty() {
            return Err(Refused::die("no options specified"));
        }
        for key in &delete {
            if set.contains_key(key) {
                return Err(Refused::param(
                    "delete",
                    format!("you can't use '-{key}' and -delete {key}' at the same time"),
                ));
            }
            if lookup(grammar::ct::TABLE, key).is_none() {
                return Err(Refused::param("delete", format!("unknown option '{key}'")));
            }
        }
        let guest = self.guest(node, GuestKind::Lxc, vmid)?.clone();
        self.check_ct_rights(caller, vmid, None, Some(&guest), &set, &delete)?;
        for (key, text) in &set {
            if let Some(mount) = Mount::read(key, text) {
                self.check_mount_access(caller, node, vmid, &mount, None)?;
            }
        }
        if let Some(text) = guest.locked_text() {
            return Err(Refused::die(text));
        }
        if digest.is_some_and(|digest| digest != guest.digest()) {
            return Err(Refused::die(
                "detected modified configuration - file changed by other user? Try again.",
            ));
        }
        let mut guest = guest;
        for key in &revert {
            if let Some(waiting) = guest.pending.remove(key) {
                self.release_mount(&mut guest, key, &waiting);
            }
            guest.pending_delete.remove(key);
        }
        for key in &delete {
            self.delete_ct_key(&mut guest, key)?;
        }
        for (key, text) in &set {
            self.set_ct_key(&mut guest, key, text)?;
        }
        guest.tidy_pending();
        let errors = self.apply_ct(&mut guest);
        guest.tidy_unused();
        self.guests.insert(vmid, guest);
        if errors.is_empty() { Ok(()) } else { Err(Refused::params(errors)) }
    }

    fn delete_ct_key(&mut self, guest: &mut Guest, key: &str) -> Reply<()> {
        match key {
            "unprivileged" => {
                return Err(Refused::die("unable to delete read-only option: 'unprivileged'"));
            }
            "memory" | "rootfs" | "ostype" => {
                return Err(Refused::die(format!("unable to delete required option '{key}'")));
            }
            _ => {}
        }
        if guest.protected() && (ct::table(key).is_some() || key.starts_with("unused")) {
            return Err(Refused::die(protected_text(guest, key)));
        }
        if key.starts_with("unused") {
            if let Some(volume) = guest.config.remove(key).filter(|volume| owned(volume, guest.vmid)) {
                self.remove_volume(&volume, &guest.node);
            }
            return Ok(());
        }
        if let Some(waiting) = guest.pending.remove(key) {
            self.release_mount(guest, key, &waiting);
        }
        if guest.config.contains_key(key) {
            guest.pending_delete.insert(key.to_owned(), false);
        }
        Ok(())
    }

    fn set_ct_key(&mut self, guest: &mut Guest, key: &str, text: &str) -> Reply<()> {
        if key == "unprivileged" {
            return Err(Refused::die("unable to modify read-only option: 'unprivileged'"));
        }
        let value = match Mount::read(key, text) {
            Some(_) if guest.protected() => return Err(Refused::die(protected_text(guest, key))),
            // rootfs is stored as sent and never allocated (fact R13)
            Some(_) if key == "rootfs" => text.to_owned(),
            Some(mount) => {
                if let Some(waiting) = guest.pending.remove(key) {
                    self.release_mount(guest, key, &waiting);
                }
                let node = guest.node.clone();
                self.make_mount(&node, guest.vmid, mount, None).map_err(Refused::die)?.print()
            }
            None => self.ct_value(key, text),
        };
        guest.pending_delete.remove(key);
        guest.pending.insert(key.to_owned(), value);
        Ok(())
    }

    /// Applies pending values; returns errors by key.
    pub(crate) fn apply_ct(&mut self, guest: &mut Guest) -> std::collections::BTreeMap<String, String> {
        let mut errors = std::collections::BTreeMap::new();
        let failing =
            self.hotplug_errors.get(&guest.vmid).cloned().filter(|_| guest.running).unwrap_or_default();
        let mut fails = |key: &String| {
            failing
                .get(key)
                .map(|why| errors.insert(key.clone(), format!("hotplug problem - {why}")))
                .is_some()
        };
        for key in guest.pending_delete.keys().cloned().collect::<Vec<_>>() {
            if guest.running && (fails(&key) || !live(guest, &key)) {
                continue;
            }
            guest.pending_delete.remove(&key);
            if let Some(old) = guest.config.remove(&key)
                && guest.is_volume_key(&key)
            {
                self.release_mount(guest, &key, &old);
            }
        }
        for (key, value) in guest.pending.clone() {
            if guest.running && (fails(&key) || !live(guest, &key)) {
                continue;
            }
            guest.pending.remove(&key);
            let old = guest.config.get(&key).cloned();
            guest.set(&key, value.clone());
            if let Some(old) = old
                && guest.is_volume_key(&key)
                && guest.volume_of(&key, &old) != guest.volume_of(&key, &value)
            {
                self.release_mount(guest, &key, &old);
            }
        }
        errors
    }

    /// A volume that loses its slot is kept as unused (fact L16).
    fn release_mount(&mut self, guest: &mut Guest, key: &str, text: &str) {
        if let Some(mount) = Mount::read(key, text)
            && owned(&mount.volume, guest.vmid)
        {
            guest.keep_unused(&mount.volume);
        }
    }

    /// A plain value as it is stored.
    pub(crate) fn ct_value(&mut self, key: &str, text: &str) -> String {
        match key {
            "tags" => self.stored_tags(text),
            "description" => values::stored_description(GuestKind::Lxc, text),
            "cpuunits" => values::clamp_cpuunits(text),
            _ if key.starts_with("net") => self.ct_net(text),
            _ => text.to_owned(),
        }
    }

    /// Who may set and remove which option (facts L7, L8, L19). `old` is `None` on create.
    pub(crate) fn check_ct_rights(
        &self,
        caller: &Caller,
        vmid: u32,
        pool: Option<&str>,
        old: Option<&Guest>,
        set: &Args,
        delete: &[String],
    ) -> Reply<()> {
        if caller.is_root() {
            return Ok(());
        }
        let path = format!("/vms/{vmid}");
        let need = |privilege: &str| {
            let by_pool = pool.is_some_and(|pool| self.may(caller, &format!("/pool/{pool}"), privilege));
            if by_pool { Ok(()) } else { self.need(caller, &path, &[privilege]) }
        };
        let value = |key: &str| old.and_then(|guest| guest.effective(key)).unwrap_or_default();
        let sets = set.iter().map(|(key, text)| (key.as_str(), Some(text.as_str())));
        let deletes = delete.iter().map(|key| (key.as_str(), None));
        for (key, text) in sets.chain(deletes) {
            let stem = split_index(key).map_or(key, |(stem, _)| stem);
            match (stem, key) {
                ("rootfs" | "mp" | "unused", _) => need("VM.Config.Disk")?,
                ("dev", _) => {
                    return Err(Refused::denied(
                        "configuring device passthrough is only allowed for root@pam",
                    ));
                }
                ("net", _) => {
                    need("VM.Config.Network")?;
                    for card in [Some(value(key)), text].into_iter().flatten().filter(|card| !card.is_empty())
                    {
                        self.check_bridge(caller, GuestKind::Lxc, card)?;
                    }
                }
                (_, "nameserver" | "searchdomain" | "hostname") => need("VM.Config.Network")?,
                (_, "cores" | "cpulimit" | "cpuunits") => need("VM.Config.CPU")?,
                (_, "memory" | "swap") => need("VM.Config.Memory")?,
                (_, "hookscript") => {
                    return Err(Refused::denied("changing the hookscript is only allowed for root@pam"));
                }
                (_, "features") => self.check_features(caller, vmid, old, set, text.unwrap_or_default())?,
                (_, "tags") => self.check_tags(caller, vmid, value("tags"), text.unwrap_or_default())?,
                _ => need("VM.Config.Options")?,
            }
        }
        Ok(())
    }

    /// Only nesting, only on unprivileged containers, with VM.Allocate (fact L7).
    fn check_features(
        &self,
        caller: &Caller,
        vmid: u32,
        old: Option<&Guest>,
        set: &Args,
        text: &str,
    ) -> Reply<()> {
        let unprivileged = match old {
            Some(guest) => guest.config.get("unprivileged").is_some_and(|flag| flag == "1"),
            None => set.get("unprivileged").is_none_or(|flag| flag == "1"),
        };
        if !unprivileged {
            return Err(Refused::denied(
                "changing feature flags for privileged container is only allowed for root@pam",
            ));
        }
        let parse = |text: &str| property::parse(grammar::ct::FEATURES, text, "features").unwrap_or_default();
        let before = parse(old.and_then(|guest| guest.effective("features")).unwrap_or_default());
        let after = parse(text);
        let changed = |key: &&str| match (before.get(*key), after.get(*key)) {
            (None, Some(value)) if old.is_some() => value != "0",
            (Some(value), None) => value != "0",
            (a, b) => a != b,
        };
        if before.keys().chain(after.keys()).any(|key| *key != "nesting" && changed(key)) {
            return Err(Refused::denied(
                "changing feature flags (except nesting) is only allowed for root@pam",
            ));
        }
        self.need(caller, &format!("/vms/{vmid}"), &["VM.Allocate"])
    }
}

fn protected_text(guest: &Guest, key: &str) -> String {
    format!("can't update CT {} drive '{key}' - protection mode enabled", guest.vmid)
}

fn live(guest: &Guest, key: &str) -> bool {
    let stem = split_index(key).map_or(key, |(stem, _)| stem);
    match stem {
        "net" | "unused" => true,
        "mp" | "dev" => !guest.config.contains_key(key) && !guest.pending_delete.contains_key(key),
        _ => AT_ONCE.contains(&key),
    }
}
