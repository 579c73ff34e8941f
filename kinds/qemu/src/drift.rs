//! Compares a live guest with its manifest.
//!
//! A live volume is never made anew, moved or shrunk, and nothing that only PVE has is removed: what a
//! write can't put right is an anomaly.

use crate::create::{is_empty, name_pointer, root_anomaly, wanted};
use crate::drives::{Drive, LiveDrive};
use crate::spec::*;
use crate::validate::pve_name;
use crate::wanted::{Hotplug, Want, Wanted, When};
use crate::{cloudinit, devices, drives, nics};
use proxops_kind::{
    Anomaly, Change, Changes, Context, Diagnostic, DriftReport, Field, Live, LiveView, Param, Props, Refusal,
    Resource, Severity, Size, Step, Value, tags,
};

/// The report of a VM or TemplateVM.
pub fn drift(
    m: &Resource<VmSpec>,
    template: bool,
    live: &Live,
    context: &Context,
) -> Result<DriftReport, Refusal> {
    let live = LiveView::of(live)?;
    if live.guest.template && !template {
        let message = format!("VM {} is a template in PVE, and the manifest wants a VM", live.guest.vmid);
        let anomaly = Anomaly::new(Severity::Error, "kind-flip", message)
            .at("")
            .key("template")
            .help("make the manifest a TemplateVM, or give it another vmid: PVE can't turn a template back");
        return Ok(DriftReport { anomalies: vec![anomaly], ..DriftReport::default() });
    }
    let hotplug = Hotplug::of(&live);
    let drives = drives::live(&live);
    let fresh = live.guest.fresh_clone_of.is_some();
    let mut run = Run {
        m,
        spec: &m.spec,
        context,
        live,
        drives,
        hotplug,
        fresh,
        found: Changes::new(),
        growing: Vec::new(),
        errors: Vec::new(),
    };
    run.general();
    for wanted in wanted(run.spec, Some(&run.live)) {
        run.key(wanted);
    }
    run.disks();
    run.firmware();
    run.cloud_init_drive();
    run.cd_drive();
    run.networks();
    run.cloud_init_data();
    run.live_only();
    run.boot_devices_exist();
    run.settle_template(template);
    if !run.errors.is_empty() {
        return Err(run.errors);
    }
    let mut report = run.found.into_report();
    report.steps.splice(0..0, run.growing);
    Ok(report)
}

struct Run<'a> {
    m: &'a Resource<VmSpec>,
    spec: &'a VmSpec,
    context: &'a Context,
    live: LiveView<'a>,
    drives: Vec<LiveDrive<'a>>,
    hotplug: Hotplug,
    fresh: bool,
    found: Changes,
    /// Disks that grow and change as well: first grown, so that the write carries the new size.
    growing: Vec<Step>,
    errors: Vec<Diagnostic>,
}

impl Run<'_> {
    fn is_clone(&self) -> bool {
        self.spec.clone.is_some()
    }

    /// Name, notes and tags.
    fn general(&mut self) {
        if let Some(name) = pve_name(self.m) {
            self.found.want(&self.live, Field::new(name_pointer(self.m), "name"), name);
        }
        match self.spec.pve_description.as_deref().map(str::trim_end) {
            Some("") => self.clear("/spec/pve-description", "description"),
            Some(text) => {
                let field =
                    Field::new("/spec/pve-description", "description").normal(proxops_kind::changes::trimmed);
                self.found.want(&self.live, field, text);
            }
            None => {}
        }
        // A fresh clone's tags are its template's, and give way.
        let none: &[String] = &[];
        let declared = self.spec.tags.as_deref().or(self.fresh.then_some(none));
        let live = self.live.text("tags");
        let want = tags::wanted(declared, live, &self.context.owner_tag, &self.context.tag_style);
        let write = Value::Text(want.clone().unwrap_or_default());
        self.found.settle(&self.live, Field::new("/spec/tags", "tags"), want.is_none(), want, write);
        if self.fresh {
            let options = &self.spec.options;
            for (key, declared) in [
                ("description", self.spec.pve_description.is_some()),
                ("onboot", options.onboot.is_some()),
                ("protection", options.protection.is_some()),
            ] {
                if !declared {
                    self.clear("/spec/clone", key);
                }
            }
        }
    }

    fn clear(&mut self, at: &str, key: &str) {
        self.found.want_absent(&self.live, Field::new(at, key));
    }

    fn needs_stop(&self, when: When, write: Option<&str>, key: &str) -> bool {
        match when {
            When::AtOnce => false,
            When::Hotplug(what) => {
                // Memory is plugged per NUMA node, so PVE needs both.
                let numa = what != "memory" || self.live.text("numa").is_some_and(|n| n != "0");
                !(self.hotplug.has(what) && numa)
            }
            When::Balloon => self.live.text(key).is_none_or(|t| t != "0") != write.is_none_or(|t| t != "0"),
            When::Stop => true,
        }
    }

    /// One described key.
    fn key(&mut self, wanted: Wanted) {
        if is_empty(&wanted) {
            return self.clear(&wanted.at, &wanted.key);
        }
        let write = wanted.write(self.live.text(&wanted.key));
        if write.is_some() && wanted.root && !self.context.root {
            let anomaly = root_anomaly(Severity::Warning, &wanted.key, &wanted.at);
            return self.found.anomalies.push(anomaly);
        }
        let stop = self.needs_stop(wanted.when, write.as_deref(), &wanted.key);
        let place = wanted.place(self.live.text(&wanted.key));
        let field = Field::new(place, &wanted.key).needs_stop(stop);
        let shown = match (&wanted.want, &write) {
            // Percent-encoded keys are hard to read.
            (Want::Text { value, .. }, Some(_)) if wanted.key == "sshkeys" => Some(value.clone()),
            _ => write.clone(),
        };
        let value = Value::Text(write.clone().unwrap_or_default());
        self.found.settle(&self.live, field, write.is_none(), shown, value);
    }

    fn write(&mut self, at: &str, key: &str, text: String, stop: bool) {
        let field = Field::new(at, key).needs_stop(stop);
        self.found.settle(&self.live, field, false, Some(text.clone()), Value::Text(text));
    }

    fn warn(&mut self, code: &str, at: &str, key: &str, message: String, help: &str) {
        let anomaly = Anomaly::new(Severity::Warning, code, message).at(at).key(key).help(help);
        self.found.anomalies.push(anomaly);
    }

    fn disks(&mut self) {
        let spec = self.spec;
        for (i, (disk, slot)) in spec.disks.iter().zip(drives::slots(&spec.disks)).enumerate() {
            let at = format!("/spec/disks/{i}");
            match self.live.text(&slot) {
                Some(text) => self.live_disk(disk, &slot, text, &at),
                None => self.new_disk(disk, &slot, &at),
            }
        }
    }

    fn new_disk(&mut self, disk: &Disk, slot: &str, at: &str) {
        if self.is_clone() {
            let message = format!("the manifest names disk {slot}, which the clone does not have");
            let help = "name a slot of the template, or remove the entry";
            return self.warn("no-such-disk", at, slot, message, help);
        }
        if disk.volume.as_deref().is_some_and(|v| v.starts_with('/')) && !self.context.root {
            let anomaly = root_anomaly(Severity::Warning, slot, &format!("{at}/volume"));
            return self.found.anomalies.push(anomaly);
        }
        match drives::create_disk(disk, at, self.context) {
            Ok(text) => {
                let plugged =
                    matches!(drives::bus(slot), Some("scsi" | "virtio")) && self.hotplug.has("disk");
                self.write(at, slot, text, !plugged);
                if let (Some(_), Some(size)) = (&disk.image, disk.size) {
                    self.found.later.push(Step::resize_to(slot, size.0, format!("{at}/size")));
                }
            }
            Err(error) => self.errors.push(error),
        }
    }

    fn live_disk(&mut self, disk: &Disk, slot: &str, text: &str, at: &str) {
        let live = Props::parse(text, &drives::DRIVE);
        let file = live.get("file").unwrap_or_default();
        if drives::kind_of(&live) != Drive::Disk {
            let message =
                format!("the manifest wants a disk in {slot}, which holds a CD or cloud-init drive");
            let help = "give the disk another `interface`, or remove the drive in PVE";
            return self.warn("slot-taken", at, slot, message, help);
        }
        if let Some(volume) = disk.volume.as_deref().filter(|v| !drives::same_volume(v, file)) {
            let message = format!("{slot} holds {file}, and the manifest names {volume}");
            let help = "a live volume is never replaced: detach it in PVE, or put it into the manifest";
            self.warn("volume-mismatch", &format!("{at}/volume"), slot, message, help);
        }
        if let Some(storage) = disk.storage.as_deref().filter(|s| drives::storage_of(file) != Some(s)) {
            let message = format!(
                "{slot} lies on {}, and the manifest says {storage}",
                drives::storage_of(file).unwrap_or(file)
            );
            let help =
                "a live volume is never moved: use PVE's \"move disk\", or put its storage into the manifest";
            self.warn("storage-mismatch", &format!("{at}/storage"), slot, message, help);
        }
        let grown = self.size(disk, slot, live.get("size"), at);
        let (mut props, changed) =
            crate::wanted::merge(Some(text), &drives::DRIVE, &drives::disk_tokens(disk));
        let waiting = self.live.pending(slot).is_some();
        if changed.is_empty() && !(waiting && grown.is_some()) {
            match grown {
                Some(size) => self.found.later.push(Step::resize_to(slot, size.0, format!("{at}/size"))),
                None => self.found.note_pending(&self.live, Field::new(at, slot)),
            }
            return;
        }
        if file.starts_with('/') && !self.context.root {
            let anomaly = root_anomaly(Severity::Warning, slot, at);
            return self.found.anomalies.push(anomaly);
        }
        // PVE does not tell a waiting text the new size, and would bring the old one back with it.
        if let Some(size) = grown {
            self.growing.push(Step::resize_to(slot, size.0, format!("{at}/size")));
            props.set("size", size.pve());
        }
        let at_once = matches!(drives::bus(slot), Some("scsi" | "virtio"))
            && !waiting
            && !changed.iter().any(|key| drives::WAITING.contains(key));
        self.write(at, slot, props.to_string(), !at_once);
    }

    /// The size that the disk grows to, if it does.
    fn size(&mut self, disk: &Disk, slot: &str, live: Option<&str>, at: &str) -> Option<Size> {
        let want = disk.size?;
        let now = live.and_then(Size::parse_pve)?;
        let at = format!("{at}/size");
        let at_least = disk.image.is_some() || self.is_clone();
        if want > now {
            // A clone that is not complete yet grows to its declared size.
            if disk.grow || (self.fresh && self.is_clone()) {
                let mut change = Change::new(at.as_str(), slot, Some(now.pve()), Some(want.pve()));
                change.needs_stop = false;
                self.found.changes.push(change);
                return Some(want);
            }
            // A seeded disk got its size when it was made; from then on only its storage counts.
            let severity = if disk.image.is_some() { Severity::Info } else { Severity::Warning };
            let message = format!("{slot} has {now}, and the manifest says {want}");
            let anomaly = Anomaly::new(severity, "size-mismatch", message)
                .at(at)
                .key(slot)
                .help("say `grow: true` on this disk to let proxops grow it");
            self.found.anomalies.push(anomaly);
        } else if want < now && !at_least {
            let message = format!("{slot} has {now}, and the manifest says {want}: a disk never shrinks");
            self.warn("size-mismatch", &at, slot, message, "put the live size into the manifest");
        }
        None
    }

    /// Firmware variables and the trusted platform module: made when absent, never rewritten.
    fn firmware(&mut self) {
        let hardware = &self.spec.hardware;
        if let Some(efi) = &hardware.efi_disk {
            let at = "/spec/hardware/efi-disk";
            match self.live.text("efidisk0") {
                None => self.write(at, "efidisk0", drives::create_efi(efi), true),
                Some(text) => {
                    let live = Props::parse(text, &drives::DRIVE);
                    self.same_storage(
                        &efi.storage,
                        live.get("file").unwrap_or_default(),
                        "efidisk0",
                        "/spec/hardware/efi-disk/storage",
                    );
                    let kind = live.get("efitype").unwrap_or("2m");
                    if let Some((want, at)) = drives::efi_type(efi).filter(|(want, _)| want.as_str() != kind)
                    {
                        let message = format!(
                            "the firmware volume has type {kind}, and the manifest says {}",
                            want.as_str()
                        );
                        let help = "the type is fixed once the volume exists: put it into the manifest, or make the volume anew in PVE";
                        self.warn("needs-recreate", at, "efidisk0", message, help);
                    }
                    let enrolled = live.get_bool("pre-enrolled-keys").unwrap_or(false);
                    if let Some(want) = efi.secure_boot.filter(|s| (*s == Switch::Enabled) != enrolled) {
                        let message = format!(
                            "Secure Boot keys {} enrolled when the firmware volume was made, and the manifest says {}",
                            if enrolled { "were" } else { "were not" },
                            want.as_str()
                        );
                        let help = "PVE reads this only when it makes the volume (fact Q11): put the live state into the manifest, or make the volume anew in PVE";
                        self.warn(
                            "needs-recreate",
                            "/spec/hardware/efi-disk/secure-boot",
                            "efidisk0",
                            message,
                            help,
                        );
                    }
                    self.found.note_pending(&self.live, Field::new(at, "efidisk0"));
                }
            }
        }
        if let Some(tpm) = &hardware.tpm {
            let at = "/spec/hardware/tpm";
            match self.live.text("tpmstate0") {
                None => {
                    if let Some(text) = drives::create_tpm(hardware) {
                        self.write(at, "tpmstate0", text, true);
                    }
                }
                Some(text) => {
                    let live = Props::parse(text, &drives::DRIVE);
                    if let Some(storage) = drives::tpm_storage(hardware) {
                        self.same_storage(storage, live.get("file").unwrap_or_default(), "tpmstate0", at);
                    }
                    let version = live.get("version").unwrap_or("v1.2");
                    if let Some(want) = tpm.version.filter(|v| v.as_str() != version) {
                        let message =
                            format!("the TPM has version {version}, and the manifest says {}", want.as_str());
                        let help = "the version is fixed once the TPM exists: put it into the manifest, or make the TPM anew in PVE";
                        self.warn("needs-recreate", "/spec/hardware/tpm/version", "tpmstate0", message, help);
                    }
                    self.found.note_pending(&self.live, Field::new(at, "tpmstate0"));
                }
            }
        }
    }

    fn same_storage(&mut self, want: &str, file: &str, key: &str, at: &str) {
        if drives::storage_of(file) != Some(want) && !self.is_clone() {
            let message = format!(
                "{key} lies on {}, and the manifest says {want}",
                drives::storage_of(file).unwrap_or(file)
            );
            let help =
                "a live volume is never moved: use PVE's \"move disk\", or put its storage into the manifest";
            self.warn("storage-mismatch", at, key, message, help);
        }
    }

    fn cloud_init_drive(&mut self) {
        let Some(ci) = &self.spec.hardware.cloud_init else { return };
        let at = "/spec/hardware/cloud-init";
        let there = drives::cloud_init(&self.drives).map(|d| (d.slot, d.file().to_owned()));
        match there {
            Some((slot, _)) if !ci.wanted() => {
                let message = format!("the manifest wants no cloud-init drive, and {slot} holds one");
                self.warn(
                    "cloud-init-drive",
                    at,
                    slot,
                    message,
                    "remove the drive in PVE; slots are never cleared by proxops",
                );
            }
            Some((slot, file)) => {
                if let Some(want) = ci.slot.as_deref().filter(|s| *s != slot) {
                    let message = format!("the cloud-init drive is in {slot}, and the manifest says {want}");
                    let help = "PVE allows one per VM: put the live slot into the manifest, or remove the drive in PVE";
                    self.warn("cloud-init-slot", "/spec/hardware/cloud-init/slot", slot, message, help);
                }
                if let Some(storage) = &ci.storage {
                    self.same_storage(storage, &file, slot, "/spec/hardware/cloud-init/storage");
                }
                self.found.note_pending(&self.live, Field::new(at, slot));
            }
            None if ci.wanted() => {
                let slot = ci.slot();
                if self.live.has(slot) {
                    let message = format!(
                        "the manifest wants the cloud-init drive in {slot}, which holds another drive"
                    );
                    return self.warn("slot-taken", at, slot, message, "give it another `slot`");
                }
                match &ci.storage {
                    Some(storage) => {
                        let stop = !(slot.starts_with("scsi") && self.hotplug.has("disk"));
                        self.write(at, slot, format!("{storage}:cloudinit"), stop);
                    }
                    None => self.warn(
                        "no-cloud-init-drive",
                        at,
                        slot,
                        "the template has no cloud-init drive, and the manifest gives no storage for one"
                            .to_owned(),
                        "give `cloud-init` a `storage`",
                    ),
                }
            }
            None => {}
        }
    }

    fn cd_drive(&mut self) {
        let hardware = &self.spec.hardware;
        let Some(cdrom) = &hardware.cdrom else { return };
        let at = "/spec/hardware/cdrom";
        let slot = drives::cd_slot(hardware, &self.drives);
        let medium = match drives::cd_medium(cdrom, self.context) {
            Ok(medium) => medium,
            Err(error) => return self.errors.push(error),
        };
        let Some(text) = self.live.text(&slot) else {
            let plugged = slot.starts_with("scsi") && self.hotplug.has("disk");
            self.write(at, &slot, format!("{medium},media=cdrom"), !plugged);
            return self.keep_boot_order(&slot);
        };
        let mut live = Props::parse(text, &drives::DRIVE);
        if drives::kind_of(&live) != Drive::Cd {
            let message = format!("the manifest wants a CD drive in {slot}, which holds another drive");
            return self.warn("slot-taken", at, &slot, message, "give the CD drive another `slot`");
        }
        if live.get("file") == Some(medium.as_str()) {
            return self.found.note_pending(&self.live, Field::new(at, &slot));
        }
        live.set("file", medium);
        // The size was the old medium's.
        live.remove("size");
        live.set("media", "cdrom");
        self.write(at, &slot, live.to_string(), !slot.starts_with("scsi"));
        self.keep_boot_order(&slot);
    }

    /// PVE refuses the whole write when the boot order names a device that the guest does not have (fact
    /// Q17): then everything else is written, and the order is told.
    fn boot_devices_exist(&mut self) {
        let (Some(order), Some(at)) =
            (&self.spec.options.boot_order, self.found.set.iter().position(|p| p.key == "boot"))
        else {
            return;
        };
        let found = &self.found;
        let there = |device: &str| {
            let set = found.set.iter().any(|p| p.key == device);
            set || (self.live.has(device) && !found.unset.iter().any(|p| p.key == device))
        };
        let missing: Vec<&str> =
            crate::options::boot_devices(order).into_iter().filter(|device| !there(device)).collect();
        if missing.is_empty() {
            return;
        }
        let message = format!("the boot order names {}, which the guest does not have", missing.join(", "));
        self.found.set.remove(at);
        self.found.changes.retain(|c| c.key != "boot");
        let help = "declare the device, or take it out of `boot-order`";
        self.warn("no-boot-device", "/spec/options/boot-order", "boot", message, help);
    }

    /// PVE appends a CD drive to the boot order whenever it is written (fact Q34): say the declared order
    /// again.
    fn keep_boot_order(&mut self, slot: &str) {
        if let Some(order) = self.spec.options.boot_order.as_ref()
            && !self.found.set.iter().any(|p| p.key == "boot")
            && !crate::options::boot_devices(order).contains(&slot)
        {
            let text = crate::options::boot_text(order);
            self.found.set.push(Param::text("boot", text).at("/spec/options/boot-order"));
        }
    }

    fn networks(&mut self) {
        let stop = !self.hotplug.has("network");
        for (i, (nic, slot)) in self.spec.networks.iter().zip(nics::slots(&self.spec.networks)).enumerate() {
            let at = format!("/spec/networks/{i}");
            let field = Field::new(&at, &slot).needs_stop(stop);
            if nic.absent {
                self.found.want_absent(&self.live, field);
                continue;
            }
            let write = nics::write(nic, self.live.text(&slot));
            let value = Value::Text(write.clone().unwrap_or_default());
            self.found.settle(&self.live, field, write.is_none(), write, value);
        }
    }

    fn cloud_init_data(&mut self) {
        let data = &self.spec.cloud_init_data;
        match cloudinit::wanted_keys(data, self.context) {
            Ok(Some(keys)) => self.key(keys),
            Ok(None) => {}
            Err(error) => self.errors.push(error),
        }
        self.password();
        if self.is_clone() || self.fresh {
            self.clear_inherited();
        }
        let touched = self.found.set.iter().map(|p| &p.key).chain(self.found.unset.iter().map(|p| &p.key));
        let changed = touched.into_iter().any(|key| cloudinit::is_data(key));
        if changed && drives::cloud_init(&self.drives).is_some() && !self.live.guest.template {
            self.found.later.push(Step::RebuildCloudInit);
        }
    }

    /// Written while PVE has none, and in the action that clones; PVE's mask is never written back
    /// (fact Q23).
    fn password(&mut self) {
        let at = "/spec/cloud-init-data/ci-password-ref";
        let there = self.live.has_secret("cipassword");
        let before = there.then(|| "set".to_owned());
        let (after, at) = match &self.spec.cloud_init_data.ci_password_ref {
            Some(name) if !there || self.fresh => {
                self.found.set.push(Param::secret("cipassword", name).at(at));
                (Some("set".to_owned()), at)
            }
            None if there && (self.is_clone() || self.fresh) => {
                self.found.unset.push(proxops_kind::ParamRef::new("cipassword").at("/spec/clone"));
                (None, "/spec/clone")
            }
            _ => return,
        };
        let mut change = Change::new(at, "cipassword", before, after);
        change.sensitive = true;
        self.found.changes.push(change);
    }

    /// A clone keeps no identity of its template that the manifest does not declare (fact Q39).
    fn clear_inherited(&mut self) {
        let data = &self.spec.cloud_init_data;
        let declared = |key: &str| match key {
            "ciuser" => data.ci_user.is_some(),
            "citype" => data.kind.is_some(),
            "ciupgrade" => data.upgrade.is_some(),
            "cicustom" => data.custom.is_some(),
            "nameserver" => data.nameservers.is_some(),
            "searchdomain" => data.search_domains.is_some(),
            "sshkeys" => data.ssh_keys.is_some() || data.ssh_key_refs.is_some(),
            // The password has its own rule.
            _ => true,
        };
        let mut inherited: Vec<&str> =
            cloudinit::IDENTITY.into_iter().filter(|key| self.live.has(key) && !declared(key)).collect();
        let numbers = cloudinit::numbers(&data.ipconfigs);
        for (n, key, _) in self.live.slots("ipconfig") {
            if !numbers.contains(&Some(n)) {
                inherited.push(key);
            }
        }
        for key in inherited {
            self.clear("/spec/clone", key);
        }
    }

    /// Whether a disk in this slot can be the template's. A template that does not say which disks it has can have
    /// any.
    fn inherits(&self, slot: &str) -> bool {
        self.spec.clone.as_deref().is_some_and(|template| {
            let disks = self.context.attribute("TemplateVM", template, "disks");
            disks.is_none_or(|disks| disks.split(',').any(|disk| disk == slot))
        })
    }

    /// What only PVE has: never removed, only told.
    fn live_only(&mut self) {
        let spec = self.spec;
        let disks = drives::slots(&spec.disks);
        let cd = spec.hardware.cdrom.as_ref().map(|_| drives::cd_slot(&spec.hardware, &self.drives));
        let mut found = Vec::new();
        for drive in &self.drives {
            let slot = drive.slot;
            if disks.iter().any(|d| d == slot) || cd.as_deref() == Some(slot) {
                continue;
            }
            let (severity, what) = match drive.kind {
                // A clone's disks are its template's; it declares only those that grow.
                Drive::Disk if self.inherits(slot) => continue,
                Drive::Disk => (Severity::Warning, "disk"),
                Drive::Cd => (Severity::Info, "CD drive"),
                Drive::CloudInit if spec.hardware.cloud_init.is_some() => continue,
                Drive::CloudInit => (Severity::Info, "cloud-init drive"),
            };
            found.push((severity, slot, format!("{what} {slot} ({})", drive.file())));
        }
        let hardware = &spec.hardware;
        for (prefix, declared, what) in [
            ("net", nics::slots(&spec.networks), "network card"),
            ("hostpci", devices::pci_slots(&hardware.pci_devices), "PCI device"),
            ("usb", devices::usb_slots(&hardware.usb_devices), "USB device"),
            ("virtiofs", devices::virtiofs_slots(&hardware.virtiofs), "shared folder"),
        ] {
            for (slot, _) in devices::undeclared(&self.live, prefix, &declared) {
                found.push((Severity::Warning, slot, format!("{what} {slot}")));
            }
        }
        for (severity, slot, what) in found {
            let remove = match slot.starts_with("net") {
                true => format!("remove it with {{slot: {slot}, absent: true}}"),
                false => "remove it in PVE".to_owned(),
            };
            let anomaly = Anomaly::new(severity, "undeclared", format!("{what} is not declared"))
                .key(slot)
                .help(format!("declare it, {remove}, or name it in the annotation proxops/ignore"));
            self.found.anomalies.push(anomaly);
        }
        for (_, key, text) in self.live.slots("unused") {
            let volume = Props::parse(text, &drives::DRIVE);
            let volume = volume.get("file").unwrap_or(text);
            let message = format!("detached volume {volume} is kept as {key}");
            let anomaly = Anomaly::new(Severity::Info, "detached-volume", message)
                .key(key)
                .help("attach or remove it in PVE");
            self.found.anomalies.push(anomaly);
        }
    }

    /// A plain guest becomes a template by the mark call, last of all (facts Q44, Q45).
    fn settle_template(&mut self, template: bool) {
        if !template || self.live.guest.template {
            return;
        }
        if self.live.is_running() {
            let message = format!("VM {} must become a template, and is running", self.live.guest.vmid);
            return self.warn(
                "template-is-running",
                "",
                "template",
                message,
                "shut it down; then it is marked",
            );
        }
        self.found.changes.push(Change::new("", "template", None, Some("1".to_owned())));
        self.found.later.push(Step::MarkTemplate);
    }
}
