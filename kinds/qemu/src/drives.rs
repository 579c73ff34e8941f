//! Disks, firmware volumes, CD and cloud-init drives: slots, wire forms and their rows.

use crate::spec::*;
use crate::wanted::{Row, Token, amount, encoded, exact, flag, tokens, word};
use proxops_kind::text::percent_encode;
use proxops_kind::{Context, Diagnostic, LiveView, Props, Scalar, Table, live::slot_index};

/// PVE's drive grammar (facts Q6, Q8).
pub static DRIVE: Table = Table { default_key: Some("file"), aliases: &[("volume", "file")] };

/// Options of a disk, in PVE's words.
pub static DISK: &[Row<Disk>] = &[
    word!("aio", None, Aio, aio),
    flag!("backup", Some("1"), backup),
    word!("cache", Some("none"), Cache, cache),
    Row {
        key: "discard",
        get: |d| d.discard.map(|v| v.as_str().to_owned()),
        put: |d, t| {
            d.discard = Some(Discard(t == "on"));
            t == "on" || t == "ignore"
        },
        default: Some("ignore"),
        same: exact,
    },
    flag!("iothread", Some("0"), iothread),
    amount!("iops_rd", Some("0"), limits.iops_rd),
    amount!("iops_rd_max", Some("0"), limits.iops_rd_max),
    amount!("iops_wr", Some("0"), limits.iops_wr),
    amount!("iops_wr_max", Some("0"), limits.iops_wr_max),
    amount!("mbps_rd", Some("0"), limits.mbps_rd),
    amount!("mbps_rd_max", Some("0"), limits.mbps_rd_max),
    amount!("mbps_wr", Some("0"), limits.mbps_wr),
    amount!("mbps_wr_max", Some("0"), limits.mbps_wr_max),
    flag!("replicate", Some("1"), replicate),
    flag!("ro", Some("0"), read_only),
    Row {
        key: "serial",
        get: |d| d.serial.as_ref().map(|serial| wire_serial(serial.as_str())),
        put: |d, t| {
            d.serial = Some(Scalar(t.to_owned()));
            true
        },
        default: None,
        same: encoded,
    },
    flag!("ssd", Some("0"), ssd),
];

/// PVE wants a serial number percent-encoded (schema: format urlencoded); one that can be read so stays.
fn wire_serial(serial: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-%_.!~*'()".contains(&b);
    if serial.bytes().all(plain) { serial.to_owned() } else { percent_encode(serial) }
}

/// The owned options of a disk. PVE can't read a drive that limits reads or writes by themselves and both
/// together, so that a limit of one kind takes a live one of the other away.
pub fn disk_tokens(disk: &Disk) -> Vec<Token> {
    let mut out = tokens(DISK, disk);
    let l = &disk.limits;
    if [l.mbps_rd, l.mbps_wr].into_iter().flatten().any(|limit| limit > 0.0) {
        out.extend(["mbps", "mbps_max", "bps", "bps_max_length"].map(Token::gone));
    }
    if [l.iops_rd, l.iops_wr].into_iter().flatten().any(|limit| limit > 0) {
        out.extend(["iops", "iops_max", "iops_max_length"].map(Token::gone));
    }
    out
}

/// Options that wait for a power cycle on an attached disk (fact Q31). `serial` names the device anew.
pub const WAITING: [&str; 7] = ["aio", "cache", "discard", "iothread", "ro", "serial", "ssd"];

/// The buses and the number of their last slot.
pub const BUSES: [(&str, u32); 4] = [("ide", 3), ("sata", 5), ("scsi", 30), ("virtio", 15)];

/// The bus of a drive slot such as `scsi0`.
pub fn bus(slot: &str) -> Option<&'static str> {
    BUSES.iter().find(|(bus, last)| slot_index(slot, bus).is_some_and(|n| n <= *last)).map(|(bus, _)| *bus)
}

/// The slot of every disk: the declared one, or the next free scsiN in list order.
pub fn slots(disks: &[Disk]) -> Vec<String> {
    fill(disks.iter().map(|d| d.interface.as_deref()), "scsi")
}

/// Fills slots that were left out with the next free `<prefix>N`.
pub fn fill<'a>(declared: impl Iterator<Item = Option<&'a str>> + Clone, prefix: &str) -> Vec<String> {
    let taken: Vec<&str> = declared.clone().flatten().collect();
    let mut next = 0u32;
    declared
        .map(|slot| match slot {
            Some(slot) => slot.to_owned(),
            None => loop {
                let slot = format!("{prefix}{next}");
                next += 1;
                if !taken.contains(&slot.as_str()) {
                    break slot;
                }
            },
        })
        .collect()
}

/// A drive of a live guest.
#[derive(Debug)]
pub struct LiveDrive<'a> {
    /// Its slot.
    pub slot: &'a str,
    /// As PVE reports it.
    pub text: &'a str,
    /// The same, parsed.
    pub props: Props,
    /// What it is.
    pub kind: Drive,
}

impl LiveDrive<'_> {
    /// Its volume, path or medium.
    pub fn file(&self) -> &str {
        self.props.get("file").unwrap_or_default()
    }
}

/// The live drives, by bus and slot.
pub fn live<'a>(view: &LiveView<'a>) -> Vec<LiveDrive<'a>> {
    BUSES
        .iter()
        .flat_map(|(bus, _)| view.slots(bus))
        .map(|(_, slot, text)| {
            let props = Props::parse(text, &DRIVE);
            LiveDrive { slot, text, kind: kind_of(&props), props }
        })
        .collect()
}

/// What a live drive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drive {
    /// A disk.
    Disk,
    /// A CD drive.
    Cd,
    /// The cloud-init drive.
    CloudInit,
}

/// Tells by the volume and the medium (fact Q19).
pub fn kind_of(props: &Props) -> Drive {
    let file = props.get("file").unwrap_or_default();
    if file.contains("-cloudinit") || file.ends_with(":cloudinit") {
        Drive::CloudInit
    } else if props.get("media") == Some("cdrom") || file == "none" || file == "cdrom" {
        Drive::Cd
    } else {
        Drive::Disk
    }
}

/// The live cloud-init drive.
pub fn cloud_init<'d, 'a>(drives: &'d [LiveDrive<'a>]) -> Option<&'d LiveDrive<'a>> {
    drives.iter().find(|d| d.kind == Drive::CloudInit)
}

/// The storage of a volume id; `None` for a path or no volume.
pub fn storage_of(file: &str) -> Option<&str> {
    if file.starts_with('/') { None } else { file.split_once(':').map(|(storage, _)| storage) }
}

/// Whether a live volume is the one that the manifest names. Marking a template renames `vm-` to `base-` (fact
/// Q44), which is still the same volume.
pub fn same_volume(want: &str, live: &str) -> bool {
    let base = |volume: &str| volume.replacen("vm-", "base-", 1);
    want == live || (live.contains("base-") && base(want) == live)
}

/// The parameter that makes a disk (facts Q6, Q7).
pub fn create_disk(disk: &Disk, at: &str, context: &Context) -> Result<String, Diagnostic> {
    let mut props = Props::new(&DRIVE);
    let storage = disk.storage.as_deref().unwrap_or_default();
    if let Some(volume) = &disk.volume {
        props.set("file", volume.clone());
    } else if let Some(image) = &disk.image {
        let at = format!("{at}/image");
        props.set("file", format!("{storage}:0"));
        props.set("import-from", volume_of(context, "DiskImage", image, &at)?);
    } else {
        let size = disk.size.map(|s| s.gib()).unwrap_or_default();
        props.set("file", format!("{storage}:{size}"));
    }
    if let Some(format) = disk.format.filter(|_| disk.volume.is_none()) {
        props.set("format", format.as_str());
    }
    for token in disk_tokens(disk) {
        if let Some(want) = token.want {
            props.set(token.key, want);
        }
    }
    Ok(props.to_string())
}

/// The volume id that an artifact published.
pub fn volume_of(context: &Context, kind: &str, name: &str, at: &str) -> Result<String, Diagnostic> {
    context.attribute(kind, name, "volid").map(str::to_owned).ok_or_else(|| {
        Diagnostic::error("unknown-reference", at, format!("{kind}/{name} is not known in this cluster"))
            .help("declare it in this cluster's composition")
    })
}

/// The type of the firmware volume, and where the manifest says so.
pub fn efi_type(efi: &EfiDisk) -> Option<(EfiType, &'static str)> {
    let old = efi.template.map(|t| (t, "/spec/hardware/efi-disk/template"));
    efi.kind.map(|t| (t, "/spec/hardware/efi-disk/type")).or(old)
}

/// The parameter that makes the firmware volume; PVE decides its size (fact Q10).
pub fn create_efi(efi: &EfiDisk) -> String {
    let mut props = Props::new(&DRIVE);
    props.set("file", format!("{}:1", efi.storage));
    if let Some((kind, _)) = efi_type(efi) {
        props.set("efitype", kind.as_str());
    }
    if let Some(switch) = efi.secure_boot {
        props.set("pre-enrolled-keys", if switch == Switch::Enabled { "1" } else { "0" });
    }
    props.to_string()
}

/// Storage of the trusted platform module: its own or the firmware volume's.
pub fn tpm_storage(hardware: &Hardware) -> Option<&str> {
    let own = hardware.tpm.as_ref().and_then(|t| t.storage.as_deref());
    own.or_else(|| hardware.efi_disk.as_ref().map(|e| e.storage.as_str()))
}

/// The parameter that makes the trusted platform module; always 4 MiB (fact Q12).
pub fn create_tpm(hardware: &Hardware) -> Option<String> {
    let tpm = hardware.tpm.as_ref()?;
    let mut props = Props::new(&DRIVE);
    props.set("file", format!("{}:1", tpm_storage(hardware)?));
    if let Some(version) = tpm.version {
        props.set("version", version.as_str());
    }
    Some(props.to_string())
}

/// The slot of the CD drive, given the drives of a live guest: the declared one, else ide2, else ide3 where cloud-init has ide2.
pub fn cd_slot(hardware: &Hardware, live: &[LiveDrive<'_>]) -> String {
    if let Some(slot) = hardware.cdrom.as_ref().and_then(|c| c.slot.as_deref()) {
        return slot.to_owned();
    }
    let declared = hardware.cloud_init.as_ref().is_some_and(|c| c.wanted() && c.slot() == "ide2");
    let there = cloud_init(live).is_some_and(|d| d.slot == "ide2");
    if declared || there { "ide3".to_owned() } else { "ide2".to_owned() }
}

/// The medium that the CD drive should hold: a volume id, `none` or `cdrom`.
pub fn cd_medium(cdrom: &CdRom, context: &Context) -> Result<String, Diagnostic> {
    match (cdrom.iso.as_deref(), cdrom.media.as_deref()) {
        (Some("none"), _) | (None, None) => Ok("none".to_owned()),
        (Some(iso), _) => volume_of(context, "ISO", iso, "/spec/hardware/cdrom/iso"),
        (None, Some(media)) => Ok(media.to_owned()),
    }
}
