//! Firmware, drives, devices and switches.

use super::{both, disks, named, repeated, slot_of_family};
use crate::spec::*;
use crate::{devices, drives, nics};
use proxops_kind::{Report, names, text::quoted};

pub(super) fn check(spec: &VmSpec, report: &mut Report) {
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
    let memory = hardware.display.as_ref().and_then(|d| devices::display(d).memory);
    if memory.is_some_and(|memory| !(4..=512).contains(&memory.0)) {
        report
            .error(
                "/spec/hardware/display/memory",
                "out-of-range",
                "`memory` must be between 4MiB and 512MiB",
            )
            .help("such as 32MiB");
    }
    if hardware.tpm.is_some() && drives::tpm_storage(hardware).is_none() {
        report
            .error("/spec/hardware/tpm/storage", "missing-field", "`tpm` needs `storage`")
            .help("it may be left out only beside an `efi-disk`, whose storage it then takes");
    }
    if let Some(cdrom) = &hardware.cdrom {
        disks::cd_drive(cdrom, report);
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
    if let Some(hook) =
        spec.options.hookscript.as_ref().filter(|h| !h.is_empty() && !h.contains(":snippets/"))
    {
        let message = format!("`hookscript` must be a snippet on a storage, not {}", quoted(hook));
        report.error("/spec/options/hookscript", "bad-value", message).help("such as local:snippets/hook.sh");
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
        mapping(device.mapping.as_deref(), &format!("{at}/mapping"), report);
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
        mapping(device.mapping.as_deref(), &format!("{at}/mapping"), report);
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
        mapping(Some(&folder.dirid), &format!("{at}/dirid"), report);
    }
}

/// A resource mapping's name, as PVE's format `pve-configid` has it.
fn mapping(name: Option<&str>, at: &str, report: &mut Report) {
    let sound = |name: &str| {
        name.len() > 1
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    if let Some(name) = name.filter(|name| !sound(name)) {
        report
            .error(at, "bad-value", format!("{} is no name of a resource mapping", quoted(name)))
            .help("a letter, then letters, digits, - and _, at least two in all");
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
