//! What the spec's type can't check, and what the host needs to know.

use crate::spec::*;
use crate::{cloudinit, cpu, devices, drives, keys, nics};
use proxops_kind::{
    Identity, Power, Reference, Report, Resource, SecretClass, SecretUse, StorageUse, Validated, names, tags,
    text::quoted,
};
use std::collections::BTreeMap;

/// Checks a manifest of a VM or TemplateVM.
pub fn validate(m: &Resource<VmSpec>, template: bool, report: &mut Report) -> Option<Validated> {
    let spec = &m.spec;
    general(m, template, report);
    processor(spec, report);
    disks(spec, report);
    networks(spec, report);
    hardware(spec, report);
    cloud_init(spec, report);
    for key in spec.extra.keys() {
        let at = proxops_kind::report::child("/spec/extra", key);
        if keys::is_modelled(key) {
            report
                .error(
                    at,
                    "modelled-key",
                    format!("{} in `extra` is covered by a field of its own", quoted(key)),
                )
                .help("use that field: `proxops explain VM` lists the PVE key of each");
        } else if keys::is_reserved(key) {
            report
                .error(at, "reserved-key", format!("{} is reserved and can't stand in `extra`", quoted(key)))
                .help("remove it");
        } else if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)) {
            report.error(at, "bad-key", format!("{} is not a PVE key", quoted(key)));
        }
    }
    if report.is_broken("/spec/node") || report.is_broken("/spec/vmid") {
        return None;
    }
    Some(validated(m, template))
}

/// The guest's name in PVE; `None` when the manifest leaves it alone.
pub fn pve_name(m: &Resource<VmSpec>) -> Option<&str> {
    match m.spec.pve_name.as_deref() {
        Some("") => None,
        Some(name) => Some(name),
        None => Some(&m.name),
    }
}

fn validated(m: &Resource<VmSpec>, template: bool) -> Validated {
    let spec = &m.spec;
    let mut out = Validated::new(Identity::guest_id(&spec.node, spec.vmid, pve_name(m)));
    out.power = Some(match spec.state {
        Some(State::Stopped) => Power::Stopped,
        _ if template => Power::Stopped,
        _ => Power::Running,
    });
    out.attributes = vec![
        ("name".to_owned(), m.name.clone()),
        ("node".to_owned(), spec.node.clone()),
        ("vmid".to_owned(), spec.vmid.to_string()),
    ];
    if let Some(clone) = &spec.clone {
        out.references.push(Reference::new("TemplateVM", clone, "/spec/clone"));
        if let Some(storage) = &spec.clone_storage {
            out.storages.push(StorageUse::new(storage, "images", "/spec/clone-storage"));
        }
    }
    for (i, disk) in spec.disks.iter().enumerate() {
        if let Some(image) = &disk.image {
            out.references.push(Reference::new("DiskImage", image, format!("/spec/disks/{i}/image")));
        }
        if let Some(storage) = &disk.storage {
            out.storages.push(StorageUse::new(storage, "images", format!("/spec/disks/{i}/storage")));
        }
    }
    let hardware = &spec.hardware;
    if let Some(efi) = &hardware.efi_disk {
        out.storages.push(StorageUse::new(&efi.storage, "images", "/spec/hardware/efi-disk/storage"));
    }
    if let Some(storage) = hardware.tpm.as_ref().and_then(|t| t.storage.as_deref()) {
        out.storages.push(StorageUse::new(storage, "images", "/spec/hardware/tpm/storage"));
    }
    if let Some(storage) =
        hardware.cloud_init.as_ref().filter(|c| c.wanted()).and_then(|c| c.storage.as_deref())
    {
        // PVE makes the drive anywhere and refuses to start the guest later (fact S15).
        out.storages.push(StorageUse::new(storage, "images", "/spec/hardware/cloud-init/storage"));
    }
    if let Some(cdrom) = &hardware.cdrom {
        if let Some(iso) = cdrom.iso.as_deref().filter(|i| *i != "none") {
            out.references.push(Reference::new("ISO", iso, "/spec/hardware/cdrom/iso"));
        } else if let Some((storage, _)) = cdrom.media.as_deref().and_then(|v| v.split_once(":iso/")) {
            out.storages.push(StorageUse::new(storage, "iso", "/spec/hardware/cdrom/media"));
        }
    }
    let data = &spec.cloud_init_data;
    if let Some(name) = &data.ci_password_ref {
        let at = "/spec/cloud-init-data/ci-password-ref";
        out.secrets.push(SecretUse::new(name, SecretClass::Password, at));
    }
    for (i, name) in data.ssh_key_refs.iter().flatten().enumerate() {
        let at = format!("/spec/cloud-init-data/ssh-key-refs/{i}");
        out.secrets.push(SecretUse::new(name, SecretClass::PublicKey, at));
    }
    out
}

fn general(m: &Resource<VmSpec>, template: bool, report: &mut Report) {
    let spec = &m.spec;
    if template && spec.state == Some(State::Started) {
        report
            .error("/spec/state", "template-never-runs", "a TemplateVM is a template, which PVE never starts")
            .help("say `state: stopped`");
    }
    named("/spec/node", "node", names::check_node(&spec.node), report);
    if let Some(name) = spec.pve_name.as_deref().filter(|n| !n.is_empty()) {
        named("/spec/pve-name", "pve-name", names::check_dns_name(name), report);
    }
    if let Some(pool) = &spec.pool {
        named("/spec/pool", "pool", names::check_pool(pool), report);
    }
    if let Some(storage) = &spec.clone_storage {
        named("/spec/clone-storage", "clone-storage", names::check_storage(storage), report);
    }
    if spec.pve_description.as_ref().is_some_and(|d| d.chars().count() > 8192) {
        report.error(
            "/spec/pve-description",
            "too-long",
            "`pve-description` may have 8192 characters at most",
        );
    }
    for (i, tag) in spec.tags.iter().flatten().enumerate().filter(|(_, t)| !tags::is_valid(t)) {
        report
            .error(
                format!("/spec/tags/{i}"),
                "bad-tag",
                format!("{} is not a tag that PVE takes", quoted(tag)),
            )
            .help("letters, digits and _ + . -, not starting with + . or -");
    }
    match spec.memory.mib() {
        None => report
            .error(
                "/spec/memory",
                "not-whole-mib",
                format!("`memory` must be whole MiB, which {} is not", spec.memory),
            )
            .help("such as 2GiB or 1536MiB"),
        Some(mib) if mib < 16 => {
            report
                .error("/spec/memory", "out-of-range", "`memory` must be at least 16MiB")
                .help("such as 512MiB");
        }
        Some(mib) => {
            if spec.balloon.is_some_and(|b| b.0 > mib) && !report.is_broken("/spec/memory") {
                report.error("/spec/balloon", "out-of-range", "`balloon` can't be more than `memory`").help(
                    "it is the least that the guest keeps when the host is short of memory; 0 switches ballooning off",
                );
            }
        }
    }
    if let Some(pages) = spec.hugepages.as_ref().filter(|p| !["any", "2", "1024"].contains(&p.as_str())) {
        let message = format!("`hugepages` must be any, 2 or 1024, not {}", quoted(pages.as_str()));
        report.error("/spec/hugepages", "unknown-value", message);
    }
    if spec.clone.is_none() {
        for (at, set) in [
            ("/spec/clone-storage", spec.clone_storage.is_some()),
            ("/spec/clone-format", spec.clone_format.is_some()),
        ] {
            if set {
                let field = at.trim_start_matches("/spec/");
                report
                    .error(at, "needs-clone", format!("`{field}` has no meaning without `clone`"))
                    .help("remove it");
            }
        }
    }
}

/// Reports a name that PVE does not take.
fn named(at: &str, field: &str, checked: names::Checked, report: &mut Report) {
    if let Err(why) = checked {
        report.error(at, "bad-name", format!("`{field}` {why}"));
    }
}

fn processor(spec: &VmSpec, report: &mut Report) {
    let model = &spec.cpu.model;
    if model.is_empty() || !model.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
        report
            .error(
                "/spec/cpu/type",
                "bad-value",
                format!("`type` must be a processor model, not {}", quoted(model)),
            )
            .help("such as host or x86-64-v2-AES; flags have a field of their own");
    }
    for flag in spec.cpu.flags.iter().flat_map(|f| f.0.iter()) {
        if !cpu::is_flag(flag) {
            report
                .error(
                    "/spec/cpu/flags",
                    "unknown-flag",
                    format!("{} is not a flag that PVE lets a VM set", quoted(flag)),
                )
                .help(format!("+ or - and one of {}", cpu::FLAGS.join(", ")));
        }
    }
    both(spec.cpu.sockets, spec.hardware.sockets, "/spec/hardware/sockets", "cpu.sockets", report);
    both(spec.cpu.numa, spec.hardware.numa, "/spec/hardware/numa", "cpu.numa", report);
    both(spec.cpu.hidden, spec.options.hidden, "/spec/options/hidden", "cpu.hidden", report);
    both(
        spec.cpu.nested_virt,
        spec.options.nested_virt,
        "/spec/options/nested-virt",
        "cpu.nested-virt",
        report,
    );
    let sockets = spec.cpu.sockets.or(spec.hardware.sockets).unwrap_or(1);
    let most = u64::from(spec.cpu.cores) * u64::from(sockets);
    if spec.cpu.vcpus.is_some_and(|v| u64::from(v) > most) && report.is_whole("/spec/cpu") {
        let message = format!("`vcpus` can't be more than cores times sockets, which is {most}");
        report.error("/spec/cpu/vcpus", "out-of-range", message).help("raise `cores`, or lower `vcpus`");
    }
}

/// An old and a new spelling may stand together only if they agree.
fn both<T: PartialEq>(new: Option<T>, old: Option<T>, at: &str, name: &str, report: &mut Report) {
    if new.is_some() && old.is_some() && new != old {
        let message = format!("this is the old spelling of `{name}`, and the two differ");
        report.error(at, "contradiction", message).help(format!("keep `{name}` only"));
    }
}

fn disks(spec: &VmSpec, report: &mut Report) {
    let slots = drives::slots(&spec.disks);
    let left_out = spec.disks.iter().filter(|d| d.interface.is_none()).count();
    if left_out >= 2 {
        report
            .warning(
                "/spec/disks",
                "slots-by-order",
                "two or more disks leave `interface` out, so their slots depend on the order of the list",
            )
            .help("give each disk its `interface`");
    }
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    if let Some(ci) = spec.hardware.cloud_init.as_ref().filter(|c| c.wanted()) {
        seen.insert(ci.slot().to_owned(), "the cloud-init drive".to_owned());
    }
    if spec.hardware.cdrom.is_some() {
        let slot = drives::cd_slot(&spec.hardware, &[]);
        if let Some(other) = seen.insert(slot.clone(), "the CD drive".to_owned()) {
            report
                .error("/spec/hardware/cdrom", "slot-taken", format!("slot {slot} already holds {other}"))
                .help("give one of them another `slot`");
        }
    }
    let mut controller: Option<Controller> = None;
    for (i, (disk, slot)) in spec.disks.iter().zip(&slots).enumerate() {
        let at = format!("/spec/disks/{i}");
        let here = |field: &str| format!("{at}/{field}");
        let Some(bus) = drives::bus(slot) else {
            report
                .error(here("interface"), "bad-slot", format!("{} is not a drive slot", quoted(slot)))
                .help("scsi0 to scsi30, virtio0 to virtio15, sata0 to sata5, or ide0 to ide3");
            continue;
        };
        if let Some(other) = seen.insert(slot.clone(), format!("disks[{i}]")) {
            let field = if disk.interface.is_some() { here("interface") } else { at.clone() };
            report
                .error(field, "slot-taken", format!("slot {slot} already holds {other}"))
                .help("give each drive a slot of its own");
        }
        source(spec, disk, &at, report);
        if disk.ssd.is_some() && bus == "virtio" {
            report
                .error(here("ssd"), "wrong-bus", "`ssd` does not exist on virtio")
                .help("use scsi, sata or ide, or remove `ssd`");
        }
        let l = &disk.limits;
        for (burst, has_burst, base, has_base) in [
            ("mbps-rd-max", l.mbps_rd_max.is_some(), "mbps-rd", l.mbps_rd.is_some_and(|v| v > 0.0)),
            ("mbps-wr-max", l.mbps_wr_max.is_some(), "mbps-wr", l.mbps_wr.is_some_and(|v| v > 0.0)),
            ("iops-rd-max", l.iops_rd_max.is_some(), "iops-rd", l.iops_rd.is_some_and(|v| v > 0)),
            ("iops-wr-max", l.iops_wr_max.is_some(), "iops-wr", l.iops_wr.is_some_and(|v| v > 0)),
        ] {
            if has_burst && !has_base {
                report
                    .error(
                        here(&format!("limits/{burst}")),
                        "burst-without-limit",
                        format!("`{burst}` needs a `{base}` above 0"),
                    )
                    .help(format!("set `{base}` as well: a burst goes beyond a limit"));
            }
        }
        for (field, set) in [("iothread", disk.iothread.is_some()), ("read-only", disk.read_only.is_some())] {
            if set && !matches!(bus, "scsi" | "virtio") {
                report
                    .error(here(field), "wrong-bus", format!("`{field}` exists on scsi and virtio only"))
                    .help(format!("use one of these buses, or remove `{field}`"));
            }
        }
        if let Some(own) = disk.controller {
            if controller.is_some_and(|c| c != own) {
                report
                    .error(
                        here("controller"),
                        "contradiction",
                        "a VM has one SCSI controller, and another disk names a different one",
                    )
                    .help("give all disks the same `controller`");
            }
            controller = controller.or(Some(own));
        }
        if let Some(serial) =
            disk.serial.as_ref().filter(|s| s.as_str().len() > 20 || s.as_str().contains([',', '=']))
        {
            let message = format!(
                "`serial` must have at most 20 characters and no comma, not {}",
                quoted(serial.as_str())
            );
            report.error(here("serial"), "bad-value", message);
        }
    }
}

/// Exactly one way to get the disk's content.
fn source(spec: &VmSpec, disk: &Disk, at: &str, report: &mut Report) {
    let here = |field: &str| format!("{at}/{field}");
    if disk.size.is_some_and(|s| s.0 == 0) {
        report.error(here("size"), "out-of-range", "`size` must be more than nothing");
    }
    if spec.clone.is_some() {
        for (field, set) in [
            ("storage", disk.storage.is_some()),
            ("image", disk.image.is_some()),
            ("volume", disk.volume.is_some()),
            ("format", disk.format.is_some()),
        ] {
            if set {
                let message = format!("a clone's disks come from its template, so `{field}` can't be given");
                report.error(here(field), "clone-disk", message).help(
                    "name the template's slot in `interface`, with a `size` to grow to; `clone-storage` moves the whole clone",
                );
            }
        }
        return;
    }
    match (&disk.volume, &disk.image) {
        (Some(_), Some(_)) => {
            report
                .error(here("image"), "contradiction", "`image` and `volume` exclude each other")
                .help("keep one");
        }
        (Some(volume), None) => {
            if disk.storage.is_some() {
                let message = "`volume` names its storage itself";
                report.error(here("storage"), "contradiction", message).help("remove `storage`");
            }
            if volume.is_empty()
                || volume.contains(',')
                || (!volume.starts_with('/') && !volume.contains(':'))
            {
                let message = format!("`volume` must be a volume id or a path, not {}", quoted(volume));
                report.error(here("volume"), "bad-value", message).help("such as local-lvm:vm-101-disk-3");
            }
        }
        (None, image) => {
            if disk.storage.is_none() {
                report
                    .error(here("storage"), "missing-field", "a disk needs `storage`")
                    .help("the PVE storage that holds its volume; or name an existing `volume`");
            }
            if image.is_none() && disk.size.is_none() {
                let message = "a new disk needs `size`";
                report
                    .error(here("size"), "missing-field", message)
                    .help("such as 32GiB; or seed it from an `image`");
            }
        }
    }
    if let Some(storage) = &disk.storage {
        named(&here("storage"), "storage", names::check_storage(storage), report);
    }
}

fn networks(spec: &VmSpec, report: &mut Report) {
    if spec.networks.iter().filter(|n| n.slot.is_none()).count() >= 2 {
        report
            .warning(
                "/spec/networks",
                "slots-by-order",
                "two or more network cards leave `slot` out, so their slots depend on the order of the list",
            )
            .help("give each card its `slot`");
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (i, (nic, slot)) in spec.networks.iter().zip(nics::slots(&spec.networks)).enumerate() {
        let at = format!("/spec/networks/{i}");
        let here = |field: &str| format!("{at}/{field}");
        slot_of_family(&slot, "net", 31, &here("slot"), report);
        if let Some(other) = seen.insert(slot.clone(), i) {
            report
                .error(here("slot"), "slot-taken", format!("{slot} is also networks[{other}]"))
                .help("use another slot");
        }
        if nic.absent {
            if nic.slot.is_none() {
                report
                    .error(here("slot"), "missing-field", "a card to remove needs `slot`")
                    .help("such as {slot: net1, absent: true}");
            }
            continue;
        }
        match nic.bridge.as_deref() {
            None => report
                .error(here("bridge"), "missing-field", "a network card needs `bridge`")
                .help("such as vmbr0"),
            Some(bridge) => named(&here("bridge"), "bridge", names::check_bridge(bridge), report),
        }
        if let Some(mac) = nic.mac.as_deref().filter(|m| !nics::is_mac(m)) {
            report
                .error(
                    here("mac"),
                    "bad-mac",
                    format!("`mac` must be a hardware address of one card, not {}", quoted(mac)),
                )
                .help("such as BC:24:11:00:00:01");
        }
        for trunk in nic.trunks.iter().flat_map(|t| t.0.iter()) {
            let id = |t: &str| t.parse::<u32>().is_ok_and(|n| (1..=4094).contains(&n));
            let good = trunk.split_once('-').map_or_else(|| id(trunk), |(a, b)| id(a) && id(b));
            if !good {
                let message = format!("{} is not a VLAN number or range", quoted(trunk));
                report.error(here("trunks"), "bad-value", message).help("such as 10 or 20-30");
            }
        }
    }
}

fn slot_of_family(slot: &str, family: &str, last: u32, at: &str, report: &mut Report) {
    if proxops_kind::live::slot_index(slot, family).is_none_or(|n| n > last) {
        report
            .error(at, "bad-slot", format!("{} is not a slot of this kind", quoted(slot)))
            .help(format!("{family}0 to {family}{last}"));
    }
}

fn hardware(spec: &VmSpec, report: &mut Report) {
    let hardware = &spec.hardware;
    if let Some(machine) = hardware.machine.as_deref().filter(|m| !devices::is_machine(m)) {
        report
            .error(
                "/spec/hardware/machine",
                "bad-value",
                format!("{} is not a machine type", quoted(machine)),
            )
            .help("i440fx, q35, or with a version such as pc-q35-9.2");
    }
    if let Some(efi) = &hardware.efi_disk {
        both(efi.kind, efi.template, "/spec/hardware/efi-disk/template", "efi-disk.type", report);
        if hardware.bios.is_some_and(|b| b != Bios::Ovmf) {
            report
                .warning(
                    "/spec/hardware/efi-disk",
                    "efi-without-ovmf",
                    "`efi-disk` is used by `bios: ovmf` only",
                )
                .help("say `bios: ovmf`, or remove `efi-disk`");
        }
        named("/spec/hardware/efi-disk/storage", "storage", names::check_storage(&efi.storage), report);
    }
    if hardware.tpm.is_some() && drives::tpm_storage(hardware).is_none() {
        report
            .error("/spec/hardware/tpm/storage", "missing-field", "`tpm` needs `storage`")
            .help("it may be left out only beside an `efi-disk`, whose storage it then takes");
    }
    if let Some(cdrom) = &hardware.cdrom {
        cd_drive(cdrom, report);
    }
    if let Some(ci) = &hardware.cloud_init {
        let at = "/spec/hardware/cloud-init/slot";
        if drives::bus(ci.slot()).is_none_or(|bus| bus == "virtio") {
            report
                .error(at, "bad-slot", format!("{} can't hold a cloud-init drive", quoted(ci.slot())))
                .help("use an ide, sata or scsi slot");
        }
        if ci.wanted() && ci.storage.is_none() && spec.clone.is_none() {
            report
                .error("/spec/hardware/cloud-init/storage", "missing-field", "`cloud-init` needs `storage`")
                .help("a PVE storage that carries images");
        }
    }
    for (i, serial) in
        [&hardware.serial0, &hardware.serial1, &hardware.serial2, &hardware.serial3].iter().enumerate()
    {
        if let Some(text) =
            serial.as_deref().filter(|t| *t != "socket" && (!t.starts_with("/dev/") || t.contains(',')))
        {
            let message = format!("`serial{i}` must be socket or a device of the host, not {}", quoted(text));
            report
                .error(format!("/spec/hardware/serial{i}"), "bad-value", message)
                .help("socket, or such as /dev/ttyS0");
        }
    }
    pass_through(hardware, report);
    if let Some(startup) = &spec.options.startup
        && devices::startup(startup).is_none()
    {
        report
            .error(
                "/spec/options/startup",
                "bad-value",
                "`startup` must be a number or such as order=1,up=30,down=60",
            )
            .help("or a map with order, up and down");
    }
    for what in spec.options.hotplug.iter().flat_map(|h| h.0.iter()) {
        if !["network", "disk", "usb", "memory", "cpu", "cloudinit", "0", "1"].contains(&what.as_str()) {
            let message = format!("{} is nothing that PVE can plug", quoted(what));
            report
                .error("/spec/options/hotplug", "unknown-value", message)
                .help("network, disk, usb, memory, cpu, cloudinit");
        }
    }
    boot_order(spec, report);
}

fn boot_order(spec: &VmSpec, report: &mut Report) {
    let Some(order) = &spec.options.boot_order else { return };
    let mut there = drives::slots(&spec.disks);
    there.extend(nics::slots(&spec.networks));
    there.extend(devices::pci_slots(&spec.hardware.pci_devices));
    there.extend(devices::usb_slots(&spec.hardware.usb_devices));
    if spec.hardware.cdrom.is_some() {
        there.push(drives::cd_slot(&spec.hardware, &[]));
    }
    if let Some(ci) = spec.hardware.cloud_init.as_ref().filter(|c| c.wanted()) {
        there.push(ci.slot().to_owned());
    }
    // The order may be one text, so the pointer is the field's.
    let at = "/spec/options/boot-order";
    for device in crate::options::boot_devices(order) {
        let known =
            ["net", "hostpci", "usb"].iter().any(|f| proxops_kind::live::slot_index(device, f).is_some());
        if drives::bus(device).is_none() && !known {
            report
                .error(at, "bad-slot", format!("{} is not a boot device", quoted(device)))
                .help("a slot such as scsi0 or net0");
        } else if spec.clone.is_none() && !there.iter().any(|t| t == device) {
            report
                .warning(
                    at,
                    "undeclared-boot-device",
                    format!("boot device {device} is not declared in this manifest"),
                )
                .help("PVE refuses a boot order with a device that the guest does not have");
        }
    }
}

fn cd_drive(cdrom: &CdRom, report: &mut Report) {
    let at = "/spec/hardware/cdrom";
    if let Some(slot) = cdrom.slot.as_deref().filter(|s| drives::bus(s).is_none_or(|bus| bus == "virtio")) {
        report
            .error(format!("{at}/slot"), "bad-slot", format!("{} can't hold a CD drive", quoted(slot)))
            .help("use an ide, sata or scsi slot");
    }
    let Some(media) = &cdrom.media else { return };
    // Beside `iso` it may only repeat what kind of medium that is.
    if cdrom.iso.is_some() && media != "cdrom" {
        report
            .error(format!("{at}/media"), "contradiction", "`iso` and `media` exclude each other")
            .help("keep `iso`");
    } else if media != "none" && media != "cdrom" && (!media.contains(':') || media.contains(',')) {
        let message = format!("`media` must be a volume id, none or cdrom, not {}", quoted(media));
        report.error(format!("{at}/media"), "bad-value", message).help("such as local:iso/x.iso");
    }
}

fn pass_through(hardware: &Hardware, report: &mut Report) {
    for (i, (device, slot)) in
        hardware.pci_devices.iter().zip(devices::pci_slots(&hardware.pci_devices)).enumerate()
    {
        let at = format!("/spec/hardware/pci-devices/{i}");
        slot_of_family(&slot, "hostpci", 15, &format!("{at}/slot"), report);
        repeated(&slot, devices::pci_slots(&hardware.pci_devices), i, &format!("{at}/slot"), report);
        match (&device.device, &device.mapping) {
            (Some(_), Some(_)) => report
                .error(format!("{at}/mapping"), "contradiction", "`device` and `mapping` exclude each other")
                .help("keep one"),
            (None, None) => report
                .error(format!("{at}/device"), "missing-field", "a PCI device needs `device` or `mapping`")
                .help("its address on the host, such as 0000:01:00.0, or a resource mapping"),
            (Some(text), None) if !devices::is_bdf(text) && text.contains([':', '.', ',', ' ']) => {
                report
                    .error(
                        format!("{at}/device"),
                        "bad-value",
                        format!("{} is not a PCI address", quoted(text)),
                    )
                    .help("such as 0000:01:00.0");
            }
            _ => {}
        }
        if let Some(mdev) =
            device.mdev.as_deref().filter(|m| m.is_empty() || m.contains(['/', '.', ':', ',']))
        {
            let message = format!("`mdev` must be a type's bare name, not {}", quoted(mdev));
            report.error(format!("{at}/mdev"), "bad-value", message).help("such as nvidia-63");
        }
        if device.pcie == Some(true) && hardware.machine.as_deref().is_none_or(|m| !m.contains("q35")) {
            report
                .warning(format!("{at}/pcie"), "pcie-needs-q35", "`pcie` works on machine q35 only")
                .help("say `machine: q35`");
        }
    }
    for (i, (device, slot)) in
        hardware.usb_devices.iter().zip(devices::usb_slots(&hardware.usb_devices)).enumerate()
    {
        let at = format!("/spec/hardware/usb-devices/{i}");
        slot_of_family(&slot, "usb", 13, &format!("{at}/slot"), report);
        repeated(&slot, devices::usb_slots(&hardware.usb_devices), i, &format!("{at}/slot"), report);
        match (&device.host, &device.mapping) {
            (Some(_), Some(_)) => report
                .error(format!("{at}/mapping"), "contradiction", "`host` and `mapping` exclude each other")
                .help("keep one"),
            (None, None) => report
                .error(format!("{at}/host"), "missing-field", "a USB device needs `host` or `mapping`")
                .help(
                    "vendor and product such as 1234:abcd, a port such as 1-2, spice, or a resource mapping",
                ),
            (Some(host), None) if !is_usb_host(host) => report
                .error(format!("{at}/host"), "bad-value", format!("{} is not a USB device", quoted(host)))
                .help("vendor and product such as 1234:abcd, a port such as 1-2, or spice"),
            _ => {}
        }
    }
    for (i, (folder, slot)) in
        hardware.virtiofs.iter().zip(devices::virtiofs_slots(&hardware.virtiofs)).enumerate()
    {
        let at = format!("/spec/hardware/virtiofs/{i}");
        slot_of_family(&slot, "virtiofs", 9, &format!("{at}/slot"), report);
        repeated(&slot, devices::virtiofs_slots(&hardware.virtiofs), i, &format!("{at}/slot"), report);
        if folder.dirid.is_empty() || folder.dirid.contains([',', '=']) {
            report.error(format!("{at}/dirid"), "bad-value", "`dirid` must be a directory mapping's name");
        }
    }
}

fn repeated(slot: &str, all: Vec<String>, i: usize, at: &str, report: &mut Report) {
    if all.iter().take(i).any(|other| other == slot) {
        report.error(at, "slot-taken", format!("slot {slot} is named twice")).help("use another slot");
    }
}

fn is_usb_host(text: &str) -> bool {
    if text.eq_ignore_ascii_case("spice") {
        return true;
    }
    let hex = |t: &str| {
        let t = t.trim_start_matches("0x");
        t.len() == 4 && t.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    text.split_once(':').is_some_and(|(v, p)| hex(v) && hex(p))
        || text.split_once('-').is_some_and(|(bus, port)| digits(bus) && port.split('.').all(digits))
}

fn cloud_init(spec: &VmSpec, report: &mut Report) {
    let data = &spec.cloud_init_data;
    let at = |field: &str| format!("/spec/cloud-init-data/{field}");
    if data.ssh_keys.is_some() && data.ssh_key_refs.is_some() {
        report
            .error(at("ssh-key-refs"), "contradiction", "`ssh-keys` and `ssh-key-refs` exclude each other")
            .help("keep one");
    }
    let keys = data.ssh_keys.as_deref().unwrap_or_default();
    for (i, key) in keys.iter().enumerate() {
        if key == "*" && keys.len() > 1 {
            report
                .error(
                    at(&format!("ssh-keys/{i}")),
                    "contradiction",
                    "\"*\" keeps the keys that PVE has and stands alone",
                )
                .help("remove it, or all others");
        } else if key != "*" && cloudinit::type_and_data(key).is_none() {
            report
                .error(at(&format!("ssh-keys/{i}")), "bad-key", "this is not a public SSH key")
                .help("such as ssh-ed25519 AAAA... name; secrets are named in `ssh-key-refs`");
        }
    }
    for (i, name) in data.ssh_key_refs.iter().flatten().enumerate() {
        if name.strip_prefix("cloud-init.ssh-keys.").is_none_or(str::is_empty) {
            report
                .error(
                    at(&format!("ssh-key-refs/{i}")),
                    "bad-reference",
                    "this does not name an SSH key of the secrets document",
                )
                .help("cloud-init.ssh-keys.<name>");
        }
    }
    if let Some(name) = &data.ci_password_ref
        && name.strip_prefix("cloud-init.passwords.").is_none_or(str::is_empty)
    {
        report
            .error(
                at("ci-password-ref"),
                "bad-reference",
                "this does not name a password of the secrets document",
            )
            .help("cloud-init.passwords.<name>; a manifest never holds the password itself");
    }
    let mut seen = Vec::new();
    for (i, (config, number)) in data.ipconfigs.iter().zip(cloudinit::numbers(&data.ipconfigs)).enumerate() {
        let here = |field: &str| at(&format!("ipconfigs/{i}/{field}"));
        match number {
            None => report
                .error(here("nic"), "bad-value", "`nic` must be a card's number")
                .help("0 or net0, at most 31"),
            Some(number) if seen.contains(&number) => {
                report
                    .error(here("nic"), "slot-taken", format!("card {number} is named twice"))
                    .help("one entry a card");
            }
            Some(number) => seen.push(number),
        }
        for (field, value, v6, words) in [
            ("ip", &config.ip, false, &["dhcp", "manual"][..]),
            ("ip6", &config.ip6, true, &["auto", "dhcp", "manual"][..]),
        ] {
            if let Some(value) = value.as_deref().filter(|v| !cloudinit::is_address(v, v6, words)) {
                let message = format!(
                    "`{field}` must be an address with prefix length or {}, not {}",
                    words.join(", "),
                    quoted(value)
                );
                report.error(here(field), "bad-address", message).help(if v6 {
                    "such as 2001:db8::2/64"
                } else {
                    "such as 192.0.2.10/24"
                });
            }
        }
        for (field, value, address, v6) in [
            ("gateway", &config.gateway, &config.ip, false),
            ("gateway6", &config.gateway6, &config.ip6, true),
        ] {
            let Some(value) = value else { continue };
            let good = value.parse::<std::net::IpAddr>().is_ok_and(|a| a.is_ipv6() == v6);
            if !good {
                report
                    .error(
                        here(field),
                        "bad-address",
                        format!("`{field}` must be an address, not {}", quoted(value)),
                    )
                    .help("without a prefix length");
            } else if address.as_deref().is_none_or(|a| !a.contains('/')) {
                let needed = if v6 { "ip6" } else { "ip" };
                report
                    .error(here(field), "gateway-without-address", format!("`{field}` needs a fixed `{needed}` with prefix length"))
                    .help("with dhcp the gateway comes from the server, and PVE gives the card no address at all");
            }
        }
    }
    for server in data.nameservers.iter().flat_map(|n| n.0.iter()) {
        if server.parse::<std::net::IpAddr>().is_err() {
            let message = format!("{} is not an address", quoted(server));
            report.error(at("nameservers"), "bad-address", message).help("name servers are given by address");
        }
    }
    if let Some(custom) = &data.custom {
        for (field, value) in [
            ("user", &custom.user),
            ("meta", &custom.meta),
            ("network", &custom.network),
            ("vendor", &custom.vendor),
        ] {
            if let Some(value) = value.as_deref().filter(|v| !v.contains(":snippets/") || v.contains(',')) {
                let message = format!("`{field}` must be a snippets volume, not {}", quoted(value));
                report
                    .error(at(&format!("custom/{field}")), "bad-value", message)
                    .help("such as local:snippets/user.yaml");
            }
        }
    }
}
