//! What a manifest can't change on a guest that is there: the anomalies that must remain, derived from the
//! specification and not from the kinds.

use crate::kinds::Kind;
use crate::lab::size_of;
use crate::{ct, vm};
use proxops_kind::Size;
use proxops_sim::GuestKind;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

/// A guest's configuration.
pub type Config = BTreeMap<String, String>;

/// Codes with the PVE keys that they are about.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// These are told.
    pub must: BTreeSet<(String, String)>,
    /// These may be told.
    pub may: BTreeSet<(String, String)>,
}

impl Expected {
    fn add(&mut self, code: &str, key: &str) {
        self.must.insert((code.to_owned(), key.to_owned()));
    }
}

/// What remains when this manifest was applied to a guest with this configuration; `fresh`: it was just
/// cloned, so that its disks grow without leave.
pub fn expected(kind: &Kind, before: &Config, spec: &Json, fresh: bool) -> Expected {
    match kind.guest() {
        Some(GuestKind::Qemu) => of_vm(before, spec, fresh),
        Some(GuestKind::Lxc) => of_ct(before, spec, fresh),
        None => Expected::default(),
    }
}

/// The live keys `<prefix>N`.
fn family<'a>(live: &'a Config, prefix: &str) -> Vec<(&'a str, &'a str)> {
    let number = |key: &str| key.strip_prefix(prefix).is_some_and(|n| n.parse::<u32>().is_ok());
    live.iter().filter(|(key, _)| number(key)).map(|(k, v)| (k.as_str(), v.as_str())).collect()
}

fn token<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split(',').find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
}

fn file(text: &str) -> &str {
    text.split(',').next().unwrap_or_default()
}

fn storage(text: &str) -> Option<&str> {
    let file = file(text);
    if file.starts_with('/') { None } else { file.split_once(':').map(|(storage, _)| storage) }
}

fn bytes(size: &Json) -> Option<u64> {
    Size::parse(size.as_str()?).ok().map(|s| s.0)
}

fn is_cloud_init(text: &str) -> bool {
    file(text).contains("-cloudinit")
}

fn is_cd(text: &str) -> bool {
    token(text, "media") == Some("cdrom") && !is_cloud_init(text)
}

fn of_vm(live: &Config, spec: &Json, fresh: bool) -> Expected {
    let mut out = Expected::default();
    let clone = spec["clone"].is_string();
    let hardware = &spec["hardware"];
    let drives: Vec<(&str, &str)> =
        ["ide", "sata", "scsi", "virtio"].iter().flat_map(|bus| family(live, bus)).collect();
    let there = drives.iter().find(|(_, text)| is_cloud_init(text)).copied();
    let ci = vm::ci_slot(spec);

    let disks = vm::slots(&spec["disks"], "interface", "scsi");
    for (disk, slot) in spec["disks"].as_array().into_iter().flatten().zip(&disks) {
        vm_disk(&mut out, disk, slot, live.get(slot).map(String::as_str), clone, fresh);
    }
    let cd = hardware["cdrom"].is_object().then(|| {
        let moved = ci.as_deref() == Some("ide2") || there.is_some_and(|(slot, _)| slot == "ide2");
        hardware["cdrom"]["slot"].as_str().unwrap_or(if moved { "ide3" } else { "ide2" }).to_owned()
    });
    if let Some(slot) = &cd
        && live.get(slot).is_some_and(|text| !is_cd(text))
    {
        out.add("slot-taken", slot);
    }
    if hardware["cloud-init"].is_object() {
        let own = hardware["cloud-init"]["storage"].as_str();
        match (there, &ci) {
            (Some((slot, _)), None) => out.add("cloud-init-drive", slot),
            (Some((slot, text)), Some(_)) => {
                if hardware["cloud-init"]["slot"].as_str().is_some_and(|s| s != slot) {
                    out.add("cloud-init-slot", slot);
                }
                if own.is_some() && own != storage(text) && !clone {
                    out.add("storage-mismatch", slot);
                }
            }
            (None, Some(slot)) if live.contains_key(slot) => out.add("slot-taken", slot),
            (None, Some(slot)) if own.is_none() => out.add("no-cloud-init-drive", slot),
            _ => {}
        }
    }
    for (slot, text) in drives {
        let declared = disks.iter().any(|d| d == slot) || cd.as_deref() == Some(slot);
        if !declared && !clone && !is_cd(text) && !is_cloud_init(text) {
            out.add("undeclared", slot);
        }
    }
    for (prefix, list) in [
        ("net", &spec["networks"]),
        ("hostpci", &hardware["pci-devices"]),
        ("usb", &hardware["usb-devices"]),
        ("virtiofs", &hardware["virtiofs"]),
    ] {
        let declared = vm::slots(list, "slot", prefix);
        for (slot, _) in family(live, prefix) {
            if !declared.iter().any(|d| d == slot) {
                out.add("undeclared", slot);
            }
        }
    }
    let boot = match &spec["options"]["boot-order"] {
        Json::Array(list) => list.iter().filter_map(|d| d.as_str()).map(str::to_owned).collect(),
        Json::String(text) => text.split(';').filter(|d| !d.is_empty()).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let nics = spec["networks"].as_array().cloned().unwrap_or_default();
    let gone = |slot: &str| nics.iter().any(|n| n["slot"] == json!(slot) && n["absent"] == json!(true));
    let mut comes = if clone { vec![] } else { disks.clone() };
    comes.extend(cd);
    comes.extend(vm::slots(&spec["networks"], "slot", "net"));
    comes.extend(vm::slots(&hardware["pci-devices"], "slot", "hostpci"));
    comes.extend(vm::slots(&hardware["usb-devices"], "slot", "usb"));
    if boot.iter().any(|d: &String| gone(d) || !(live.contains_key(d) || comes.contains(d))) {
        out.add("no-boot-device", "boot");
    }
    if let (Some(text), true) = (live.get("efidisk0"), hardware["efi-disk"].is_object()) {
        let efi = &hardware["efi-disk"];
        if efi["storage"].as_str() != storage(text) && !clone {
            out.add("storage-mismatch", "efidisk0");
        }
        let want = efi["type"].as_str().or(efi["template"].as_str());
        if want.is_some_and(|want| want != token(text, "efitype").unwrap_or("2m")) {
            out.add("needs-recreate", "efidisk0");
        }
        let enrolled = token(text, "pre-enrolled-keys") == Some("1");
        if efi["secure-boot"].as_str().is_some_and(|want| (want == "enabled") != enrolled) {
            out.add("needs-recreate", "efidisk0");
        }
    }
    if let (Some(text), true) = (live.get("tpmstate0"), hardware["tpm"].is_object()) {
        let tpm = &hardware["tpm"];
        let want = tpm["storage"].as_str().or(hardware["efi-disk"]["storage"].as_str());
        if want != storage(text) && !clone {
            out.add("storage-mismatch", "tpmstate0");
        }
        if tpm["version"].as_str().is_some_and(|want| want != token(text, "version").unwrap_or("v1.2")) {
            out.add("needs-recreate", "tpmstate0");
        }
    }
    out
}

fn vm_disk(out: &mut Expected, disk: &Json, slot: &str, live: Option<&str>, clone: bool, fresh: bool) {
    let Some(text) = live else {
        if clone {
            out.add("no-such-disk", slot);
        }
        return;
    };
    if is_cd(text) || is_cloud_init(text) {
        return out.add("slot-taken", slot);
    }
    // A template's volumes have another name, and are the same volumes.
    let plain = |name: &str| name.replace("base-", "vm-");
    if disk["volume"].as_str().is_some_and(|want| plain(want) != plain(file(text))) {
        out.add("volume-mismatch", slot);
    }
    if disk["storage"].is_string() && disk["storage"].as_str() != storage(text) {
        out.add("storage-mismatch", slot);
    }
    let (Some(want), Some(now)) = (bytes(&disk["size"]), size_of(text)) else { return };
    let seeded = disk["image"].is_string();
    let may_grow = disk["grow"] == json!(true) || (fresh && clone);
    if want > now && !may_grow && !seeded {
        out.add("size-mismatch", slot);
    }
    if want < now && !seeded && !clone {
        out.add("size-mismatch", slot);
    }
}

fn of_ct(live: &Config, spec: &Json, fresh: bool) -> Expected {
    let mut out = Expected::default();
    let normal = |path: &str| path.split('/').filter(|p| !p.is_empty()).collect::<Vec<_>>().join("/");
    let volume = |out: &mut Expected, slot: &str, text: &str, item: &Json| {
        if text.starts_with('/') {
            return out.add("slot-taken", slot);
        }
        if item["storage"].is_string() && item["storage"].as_str() != storage(text) {
            out.add("storage-mismatch", slot);
        }
        if let (Some(want), Some(now)) = (bytes(&item["size"]), size_of(text)) {
            let may_grow = item["grow"] == json!(true) || fresh;
            if want < now || (want > now && !may_grow) {
                out.add("size-mismatch", slot);
            }
        }
    };
    if let (Some(text), true) = (live.get("rootfs"), spec["root"].is_object()) {
        volume(&mut out, "rootfs", text, &spec["root"]);
    }
    let (mounts, binds) = ct::mount_slots(spec);
    // What the manifest does not name is mounted there: a new volume would hide it.
    let hides = |item: &Json| {
        let path = normal(item["mount-point"].as_str().unwrap_or_default());
        family(live, "mp").iter().any(|(other, text)| {
            let declared = mounts.iter().chain(&binds).any(|slot| slot == other);
            !declared && token(text, "mp").is_some_and(|mp| normal(mp) == path)
        })
    };
    for (item, slot) in spec["mount-points"].as_array().into_iter().flatten().zip(&mounts) {
        match live.get(slot) {
            Some(text) => volume(&mut out, slot, text, item),
            None if !item["size"].is_string() => out.add("no-size", slot),
            None if hides(item) => out.add("slot-taken", slot),
            None => {}
        }
    }
    for (item, slot) in spec["bind-mounts"].as_array().into_iter().flatten().zip(&binds) {
        let want = normal(item["host-path"].as_str().unwrap_or_default());
        match live.get(slot) {
            Some(text) if !text.starts_with('/') => out.add("slot-taken", slot),
            Some(text) if normal(file(text)) != want => out.add("volume-mismatch", slot),
            // A token is told that it may not bind at all.
            None if hides(item) => drop(out.may.insert(("slot-taken".to_owned(), slot.clone()))),
            _ => {}
        }
    }
    let nets = vm::slots(&spec["networks"], "slot", "net");
    let devices = vm::slots(&spec["devices"], "slot", "dev");
    let mounted: Vec<String> = mounts.into_iter().chain(binds).collect();
    for (prefix, declared) in [("mp", &mounted), ("net", &nets), ("dev", &devices)] {
        for (slot, _) in family(live, prefix) {
            if !declared.iter().any(|d| d == slot) {
                out.add("undeclared", slot);
            }
        }
    }
    let unprivileged = live.get("unprivileged").is_some_and(|flag| flag == "1");
    if spec["options"]["unprivileged"].as_bool().is_some_and(|want| want != unprivileged) {
        out.add("needs-recreate", "unprivileged");
    }
    // Fact L23: which volumes differ is the kind's business.
    let protected = live.get("protection").is_some_and(|flag| flag == "1");
    if protected && spec["options"]["protection"] != json!(false) && !fresh {
        let all = mounted.iter().map(String::as_str).chain(["rootfs"]);
        out.may.extend(all.map(|slot| ("protected".to_owned(), slot.to_owned())));
    }
    out
}

/// Checks that no volume was lost, replaced, moved or shrunk, and none fell out of its slot.
pub fn kept(kind: &Kind, before: &Config, now: &Config) -> Result<(), String> {
    let families: &[&str] = match kind.guest() {
        Some(GuestKind::Qemu) => &["ide", "sata", "scsi", "virtio", "efidisk", "tpmstate"],
        _ => &["mp"],
    };
    let mut volumes: Vec<(&str, &str)> = families.iter().flat_map(|f| family(before, f)).collect();
    volumes.extend(before.get_key_value("rootfs").map(|(k, v)| (k.as_str(), v.as_str())));
    for (slot, old) in volumes.into_iter().filter(|(_, text)| !is_cd(text)) {
        let new = now.get(slot).ok_or_else(|| format!("{slot} is gone, it held {old}"))?;
        if file(old) != file(new) {
            return Err(format!("{slot} held {old} and holds {new}"));
        }
        if size_of(new) < size_of(old) {
            return Err(format!("{slot} shrank from {old} to {new}"));
        }
    }
    match now.keys().find(|key| key.starts_with("unused") && !before.contains_key(*key)) {
        Some(key) => Err(format!("{key} = {} fell out of its slot", now[key])),
        None => Ok(()),
    }
}
