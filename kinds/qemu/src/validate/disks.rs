//! Disks and the CD drive.

use super::named;
use crate::drives;
use crate::spec::*;
use proxops_kind::text::{percent_decode, quoted};
use proxops_kind::{Report, names};
use std::collections::BTreeMap;

pub(super) fn check(spec: &VmSpec, report: &mut Report) {
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
            if !has_burst || has_base {
                continue;
            }
            let (at, message) =
                (here(&format!("limits/{burst}")), format!("`{burst}` needs a `{base}` above 0"));
            // PVE's own reader of drives refuses the first two; of the others only the guest's start does.
            match burst.starts_with("mbps") {
                true => report.error(at, "burst-without-limit", message),
                false => report.warning(at, "burst-without-limit", message),
            }
            .help(format!("set `{base}` as well: a burst goes beyond a limit"));
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
        if let Some(serial) = disk.serial.as_ref().filter(|s| percent_decode(s.as_str()).len() > 20) {
            let message = format!("`serial` must have at most 20 bytes, not {}", quoted(serial.as_str()));
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

pub(super) fn cd_drive(cdrom: &CdRom, report: &mut Report) {
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
