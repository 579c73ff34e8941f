//! Drives of a VM: reading, printing and allocating them (facts Q6 to Q12, Q19, Q35, Q36).

use super::{GuestKind, format_size, parse_size};
use crate::grammar::drive;
use crate::grammar::property::{self, Props};
use crate::refused::{Refused, Reply};
use crate::world::volume::{self, Purpose};
use crate::world::{Caller, GIB, World};

/// A parsed drive.
#[derive(Clone, Debug)]
pub struct Drive {
    /// The slot, such as `scsi0`.
    pub slot: String,
    /// Volume id, create form, `none`, `cdrom` or a path.
    pub file: String,
    /// Everything else.
    pub props: Props,
}

/// How the parts of a drive that allocate are written.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// `<storage>:<GiB>`; bytes.
    New(String, u64),
    /// `<storage>:cloudinit`.
    CloudInit(String),
    /// No medium: `none`.
    Empty,
    /// The node's own drive: `cdrom`.
    Physical,
    /// An absolute path.
    Path,
    /// A volume id.
    Volume,
}

impl Drive {
    /// Reads a drive; `None` when PVE could not parse it (fact Q9).
    pub fn read(slot: &str, text: &str) -> Option<Self> {
        let table = drive::table(slot)?;
        let mut props = property::parse(table, text, slot).ok()?;
        let file = props.remove("file")?;
        let has = |key: &str| props.contains_key(key);
        if props.get("media").is_some_and(|media| media == "cdrom")
            && (slot.starts_with("virtio") || has("snapshot") || has("format"))
        {
            return None;
        }
        for (bytes, mega) in [("bps", "mbps"), ("bps_rd", "mbps_rd"), ("bps_wr", "mbps_wr")] {
            if let Some(value) = props.remove(bytes) {
                if props.contains_key(mega) {
                    return None;
                }
                let value: f64 = value.parse().ok()?;
                props.insert(mega, format!("{}", value / 1_000_000.0));
            }
        }
        if !throttles_fit(&props) {
            return None;
        }
        Some(Self { slot: slot.to_owned(), file, props })
    }

    /// What its `file` says.
    pub fn form(&self) -> Form {
        match self.file.as_str() {
            "none" => return Form::Empty,
            "cdrom" => return Form::Physical,
            file if file.starts_with('/') => return Form::Path,
            _ => {}
        }
        let Some((storage, name)) = volume::split(&self.file) else { return Form::Volume };
        if name == "cloudinit" {
            return Form::CloudInit(storage.to_owned());
        }
        let number = !name.is_empty() && name.chars().all(|c| c.is_ascii_digit() || c == '.');
        match name.parse::<f64>() {
            Ok(gib) if number && name.starts_with(|c: char| c.is_ascii_digit()) && !name.ends_with('.') => {
                // PVE allocates whole KiB
                let kib = (gib * (GIB >> 10) as f64) as u64;
                Form::New(storage.to_owned(), kib << 10)
            }
            _ => Form::Volume,
        }
    }

    /// Whether it is a CD drive, cloud-init included.
    pub fn is_cdrom(&self) -> bool {
        self.props.get("media").is_some_and(|media| media == "cdrom")
    }

    /// Whether it is the cloud-init drive, as sent or as stored (fact Q19).
    pub fn is_cloudinit(&self) -> bool {
        let name = self.file.split_once(':').map_or("", |(_, name)| name);
        name == "cloudinit"
            || name.rsplit('/').next().is_some_and(|n| n.starts_with("vm-") && n.contains("-cloudinit"))
    }

    /// The text PVE writes: volume first, the rest by alphabet (fact Q35).
    pub fn print(&self) -> String {
        let Some(table) = drive::table(&self.slot) else { return self.file.clone() };
        let mut props = self.props.clone();
        props.insert("file", self.file.clone());
        property::print(table, &props)
    }
}

/// A total excludes a split one, and a burst needs its base.
fn throttles_fit(props: &Props) -> bool {
    let has = |key: &str| props.contains_key(key);
    [
        ["mbps", "mbps_rd", "mbps_wr", "mbps_max", "mbps_rd_max", "mbps_wr_max"],
        ["iops", "iops_rd", "iops_wr", "iops_max", "iops_rd_max", "iops_wr_max"],
    ]
    .iter()
    .all(|[all, read, write, all_max, read_max, write_max]| {
        !(has(all) && (has(read) || has(write)))
            && (has(all) || !has(all_max))
            && (has(read) || !has(read_max))
            && (has(write) || !has(write_max))
    })
}

/// The slots of a VM's drives in the order in which PVE walks them.
pub fn slots() -> impl Iterator<Item = &'static str> {
    drive::SLOTS.split_ascii_whitespace()
}

/// Checks every drive among the parameters before anything is done (facts Q6, Q7, Q9).
pub(crate) fn check_param(slot: &str, text: &str) -> Reply<Drive> {
    let drive =
        Drive::read(slot, text).ok_or_else(|| Refused::param(slot, "unable to parse drive options"))?;
    if drive.props.contains_key("import-from") {
        if !matches!(drive.form(), Form::New(_, 0)) {
            return Err(Refused::param(
                slot,
                "'import-from' requires special syntax - use <storage ID>:0,import-from=<source>",
            ));
        }
        let needed: &[&str] = match slot {
            "efidisk0" => &["efitype", "pre-enrolled-keys"],
            "tpmstate0" => &["version"],
            _ => &[],
        };
        if let Some(missing) = needed.iter().find(|key| !drive.props.contains_key(*key)) {
            return Err(Refused::param(
                slot,
                format!("need to specify '{missing}' when using 'import-from'"),
            ));
        }
    }
    if drive.file.contains(":iso/") && !drive.is_cdrom() {
        return Err(Refused::param(slot, "explicit 'media=cdrom' is required for iso images"));
    }
    Ok(drive)
}

impl World {
    /// May the caller use what a drive names (facts P1, P7, S15)?
    pub(crate) fn check_storage_access(
        &self,
        caller: &Caller,
        node: &str,
        vmid: u32,
        drive: &Drive,
    ) -> Reply<()> {
        match drive.form() {
            Form::Empty | Form::CloudInit(_) => {}
            Form::Physical => self.need(caller, "/", &["Sys.Console"])?,
            Form::Path => check_path(caller)?,
            Form::New(storage, _) => {
                self.need(caller, &format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
                let spec = self
                    .storages
                    .get(&storage)
                    .ok_or_else(|| Refused::die(format!("storage '{storage}' does not exist")))?;
                if !spec.content.contains("images") {
                    let text = format!("storage '{storage}' does not support vm images");
                    return Err(Refused::param("storage", text));
                }
            }
            Form::Volume => {
                self.check_volume_access(caller, node, vmid, &drive.file)?;
                let kind = volume_content(&drive.file);
                if !matches!(kind, "images" | "iso") {
                    return Err(Refused::param(&drive.slot, "content type needs to be 'images' or 'iso'"));
                }
            }
        }
        let Some(source) = drive.props.get("import-from") else { return Ok(()) };
        if source.starts_with('/') {
            return check_path(caller);
        }
        self.check_volume_access(caller, node, vmid, source)?;
        let kind = volume_content(source);
        if !matches!(kind, "images" | "import") {
            let text = format!("{source} has wrong type '{kind}' - needs to be 'images' or 'import'");
            return Err(Refused::param(&drive.slot, text));
        }
        Ok(())
    }

    /// Reading a file needs Audit or AllocateSpace on its storage, a foreign disk more (fact P7).
    pub(crate) fn check_volume_access(
        &self,
        caller: &Caller,
        _node: &str,
        vmid: u32,
        volid: &str,
    ) -> Reply<()> {
        let (storage, _) = volume::split(volid)
            .ok_or_else(|| Refused::die(format!("unable to parse volume ID '{volid}'")))?;
        if !self.storages.contains_key(storage) {
            return Err(Refused::die(format!("storage '{storage}' does not exist")));
        }
        let path = format!("/storage/{storage}");
        match volume_content(volid) {
            "images" if owned_by_another(volid, vmid).is_none() => Ok(()),
            "images" => {
                self.need(caller, &path, &["Datastore.Audit"])?;
                let owner = owned_by_another(volid, vmid).unwrap_or_default();
                self.need(caller, &format!("/vms/{owner}"), &["VM.Config.Disk"])
            }
            _ => self.need_any(caller, &path, &["Datastore.AllocateSpace", "Datastore.Audit"]),
        }
    }

    /// Allocates or looks up what a drive names and returns the drive as it will be stored (facts Q10, Q12,
    /// Q19, Q20, Q35, Q36).
    ///
    /// # Errors
    /// The text of the storage, as 500 or as a task's exit status.
    pub(crate) fn make_drive(&mut self, node: &str, vmid: u32, mut drive: Drive) -> Result<Drive, String> {
        let source = drive.props.remove("import-from");
        let format = drive.props.remove("format");
        match drive.form() {
            Form::Empty | Form::Physical => {
                drive.props.remove("size");
            }
            Form::Path => {}
            Form::CloudInit(storage) => {
                self.usable_storage(&storage, node).map_err(|refused| refused.message)?;
                let owner = (GuestKind::Qemu, vmid);
                drive.file =
                    self.allocate(&storage, node, owner, Purpose::CloudInit, format.as_deref(), 4 << 20)?;
                drive.props.remove("size");
                drive.props.insert("media", "cdrom".to_owned());
            }
            Form::New(storage, size) => {
                let spec = self.usable_storage(&storage, node).map_err(|refused| refused.message)?;
                let file_based = spec.file_based();
                let mut size = size;
                let mut format = format;
                match drive.slot.as_str() {
                    "efidisk0" => {
                        let small = drive.props.get("efitype").is_none_or(|t| t == "2m");
                        size = match (file_based, small) {
                            (true, true) => 128 << 10,
                            (true, false) => 528 << 10,
                            (false, _) => 4 << 20,
                        };
                        if drive.props.get("pre-enrolled-keys").is_some_and(|v| v == "1") && source.is_none()
                        {
                            drive.props.insert("ms-cert", "2023k".to_owned());
                        }
                    }
                    "tpmstate0" => {
                        size = 4 << 20;
                        format = None;
                    }
                    _ => {}
                }
                if let Some(source) = &source {
                    size = self.source_size(node, source)?;
                }
                let owner = (GuestKind::Qemu, vmid);
                drive.file = self.allocate(&storage, node, owner, Purpose::Disk, format.as_deref(), size)?;
                drive.props.insert("size", format_size(size));
            }
            Form::Volume => {
                let (storage, _) = volume::split(&drive.file)
                    .ok_or_else(|| format!("unable to parse volume ID '{}'", drive.file))?;
                self.usable_storage(storage, node).map_err(|refused| refused.message)?;
                let size = self
                    .volume(&drive.file, node)
                    .map(|volume| volume.size)
                    .ok_or_else(|| format!("volume '{}' does not exist", drive.file))?;
                drive.props.insert("size", format_size(size));
            }
        }
        Ok(drive)
    }

    /// Bytes of the disk inside an import source.
    fn source_size(&self, node: &str, source: &str) -> Result<u64, String> {
        if source.starts_with('/') {
            return Err(format!("import source '{source}' does not exist"));
        }
        let found = self.volume(source, node).ok_or_else(|| format!("volume '{source}' does not exist"))?;
        Ok(found.virtual_size.unwrap_or(found.size.next_multiple_of(GIB)))
    }
}

fn check_path(caller: &Caller) -> Reply<()> {
    if caller.is_root() {
        return Ok(());
    }
    Err(Refused::die(
        "Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line 569.",
    ))
}

/// What kind of volume a volume id names, from its path.
pub(crate) fn volume_content(volid: &str) -> &str {
    let name = volid.split_once(':').map_or("", |(_, name)| name);
    match name.split_once('/') {
        Some((folder @ ("iso" | "vztmpl" | "import" | "snippets" | "backup"), _)) => folder,
        _ => "images",
    }
}

/// The owner in a volume's name when it is another guest.
fn owned_by_another(volid: &str, vmid: u32) -> Option<u32> {
    let name = volid.rsplit(['/', ':']).next()?;
    let owner: u32 = name.split('-').nth(1)?.parse().ok()?;
    (owner != vmid).then_some(owner)
}

/// The size a stored drive text claims; used when a world is seeded.
pub(crate) fn claimed_size(text: &str) -> Option<u64> {
    text.split(',').find_map(|part| part.strip_prefix("size=")).and_then(parse_size)
}
