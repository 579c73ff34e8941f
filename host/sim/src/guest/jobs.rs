//! The work of tasks: what happens when one ends well, and what is undone when it does not.

use super::ct::Mount;
use super::drive::Drive;
use super::power::Power;
use super::vm_clone::CloneJob;
use super::vm_update::VmChange;
use super::{GuestKind, format_size, parse_size};
use crate::grammar::check::Args;
use crate::world::{Caller, World, volume};

/// Work that is done at the end of a task.
#[derive(Clone, Debug)]
pub enum Job {
    /// Nothing.
    Done,
    /// Create a VM or container.
    Create(GuestKind, u32, Args),
    /// Write the configuration of a VM.
    Change(u32, VmChange),
    /// Clone a guest.
    Clone(CloneJob),
    /// Make a template of a guest.
    Template(GuestKind, u32),
    /// Remove a guest, with its entries elsewhere when purging.
    Destroy(GuestKind, u32, bool),
    /// Change the power of a guest; the flag ignores a lock.
    Power(GuestKind, u32, Power, bool),
    /// Resize a volume: slot and size as sent.
    Resize(GuestKind, u32, String, String),
    /// Download a file.
    Download(Download),
    /// Remove a volume.
    RemoveVolume(String),
}

/// A download that was accepted (facts S4, S5).
#[derive(Clone, Debug)]
pub struct Download {
    pub(crate) storage: String,
    pub(crate) name: String,
    pub(crate) checksum: Option<String>,
}

/// Does the work; returns the number of warnings.
///
/// # Errors
/// The exit status.
pub(crate) fn run(
    world: &mut World,
    caller: &Caller,
    node: &str,
    job: &Job,
    log: &mut Vec<String>,
) -> Result<u32, String> {
    match job {
        Job::Done => {}
        Job::Create(kind, vmid, args) => {
            match kind {
                GuestKind::Qemu => world.create_vm(node, *vmid, args)?,
                GuestKind::Lxc => world.create_ct(node, *vmid, args)?,
            }
            // a second task, whose failure does not touch the first (fact Q3)
            if args.get("start").is_some_and(|flag| flag == "1") {
                let kind_text = world.power_task(*kind, *vmid, Power::Start);
                world.spawn(caller, node, &kind_text, vmid, Job::Power(*kind, *vmid, Power::Start, false));
            }
        }
        Job::Change(vmid, change) => {
            world.change_vm(node, *vmid, change).map_err(|refused| refused.into_exit())?
        }
        Job::Clone(job) if job.kind == GuestKind::Qemu => world.clone_vm(node, job)?,
        Job::Clone(job) => world.clone_ct(node, job)?,
        Job::Template(kind, vmid) => world.make_template(node, *kind, *vmid)?,
        Job::Destroy(kind, vmid, purge) => destroy(world, node, *kind, *vmid, *purge)?,
        Job::Power(kind, vmid, power, skiplock) => {
            return world.power_guest(node, *kind, *vmid, *power, *skiplock);
        }
        Job::Resize(kind, vmid, slot, size) => {
            if let Some(text) =
                world.guest(node, *kind, *vmid).map_err(|refused| refused.message)?.locked_text()
            {
                return Err(text);
            }
            resize(world, node, *kind, *vmid, slot, size)?;
        }
        Job::Download(download) => fetch(world, node, download, log)?,
        Job::RemoveVolume(volid) => {
            // a missing file is only a line in the log (fact S9)
            if !world.remove_volume(volid, node) {
                log.push(format!("disk image '{volid}' does not exist"));
            }
        }
    }
    Ok(0)
}

/// Removes what a task had prepared, after it failed (facts Q2, Q41).
pub(crate) fn undo(world: &mut World, job: &Job) {
    let lost = match job {
        Job::Create(_, vmid, _) => *vmid,
        Job::Clone(job) if !job.collides => {
            if job.kind == GuestKind::Lxc
                && let Some(source) = world.guests.get_mut(&job.source)
                && source.lock() == Some("disk")
            {
                source.config.remove("lock");
            }
            job.newid
        }
        _ => return,
    };
    let Some(guest) = world.guests.get(&lost) else { return };
    // a finished guest is not undone
    if !matches!(guest.lock(), Some("create" | "clone")) {
        return;
    }
    world.guests.remove(&lost);
    for pool in world.pools.values_mut() {
        pool.vms.remove(&lost);
    }
    world.free_all(lost);
}

fn destroy(world: &mut World, node: &str, kind: GuestKind, vmid: u32, purge: bool) -> Result<(), String> {
    let guest = world.guest(node, kind, vmid).map_err(|refused| refused.message)?.clone();
    if let Some(text) = guest.locked_text() {
        return Err(text);
    }
    for (_, base) in guest.volumes() {
        let storage = base.split(':').next().unwrap_or_default();
        let counted = world
            .storages
            .get(storage)
            .is_some_and(|s| s.file_based() || matches!(s.kind.as_str(), "zfspool" | "rbd"));
        if counted && world.has_linked_clones(&base, node) {
            return Err(format!("base volume '{base}' is still in use by linked cloned"));
        }
    }
    let unused = guest.config.iter().filter(|(key, _)| key.starts_with("unused")).map(|(_, v)| v.clone());
    for volid in guest.volumes().into_iter().map(|(_, volume)| volume).chain(unused) {
        world.remove_volume(&volid, node);
    }
    world.guests.remove(&vmid);
    for pool in world.pools.values_mut() {
        pool.vms.remove(&vmid);
    }
    if purge {
        world.ha.remove(&guest.sid());
        world.replication.retain(|job| job.guest != vmid);
    }
    Ok(())
}

/// Sets a volume's new size (facts Q42, L19).
pub(crate) fn resize(
    world: &mut World,
    node: &str,
    kind: GuestKind,
    vmid: u32,
    slot: &str,
    size: &str,
) -> Result<(), String> {
    let (volume, old, new) = resize_plan(world, node, kind, vmid, slot, size)?;
    if let Some(found) = world.volume_mut(&volume, node) {
        found.size = new;
    }
    let guest = world.guest_mut(node, kind, vmid).map_err(|refused| refused.message)?;
    let Some(text) = guest.config.get(slot).cloned() else { return Ok(()) };
    let text = match (Drive::read(slot, &text), Mount::read(slot, &text)) {
        (Some(mut drive), _) if kind == GuestKind::Qemu => {
            drive.props.insert("size", format_size(new));
            drive.print()
        }
        (_, Some(mut mount)) => {
            mount.props.insert("size", format_size(new));
            mount.print()
        }
        _ => text,
    };
    tracing::debug!(vmid, slot, old, new, "resized");
    guest.config.insert(slot.to_owned(), text);
    Ok(())
}

/// The volume of a slot, its size and the wanted one, in bytes.
pub(crate) fn resize_plan(
    world: &World,
    node: &str,
    kind: GuestKind,
    vmid: u32,
    slot: &str,
    size: &str,
) -> Result<(String, u64, u64), String> {
    let guest = world.guest(node, kind, vmid).map_err(|refused| refused.message)?;
    let text = guest.config.get(slot).ok_or_else(|| format!("disk '{slot}' does not exist"))?;
    if kind == GuestKind::Qemu && Drive::read(slot, text).is_some_and(|drive| drive.is_cdrom()) {
        return Err("you can't resize a cdrom".to_owned());
    }
    let volume = guest.volume_of(slot, text).unwrap_or_default();
    let old = world
        .volume(&volume, node)
        .map(|found| found.size)
        .ok_or_else(|| format!("volume '{volume}' does not exist"))?;
    let (grow, digits) = match size.strip_prefix('+') {
        Some(digits) => (true, digits),
        None => (false, size),
    };
    let asked = parse_size(digits).unwrap_or_default();
    let new = if grow { old + asked } else { asked };
    match kind {
        GuestKind::Qemu if new < old => Err("shrinking disks is not supported".to_owned()),
        GuestKind::Lxc if new < old => Err("unable to shrink disk size".to_owned()),
        GuestKind::Lxc if new == old => Err("disk is already at specified size".to_owned()),
        _ => Ok((volume, old, new)),
    }
}

/// Any URL gives a file whose checksum is the one that was asked for (fact S5 for files that are there).
fn fetch(world: &mut World, node: &str, download: &Download, log: &mut Vec<String>) -> Result<(), String> {
    let volid = format!("{}:{}", download.storage, download.name);
    let path = world.storages.get(&download.storage).map_or("", |spec| spec.path.as_str()).to_owned();
    if let Some(old) = world.volume(&volid, node) {
        return match (&download.checksum, &old.checksum) {
            (None, _) => {
                Err(format!("refusing to override existing file '{path}/{}'", file_path(&download.name)))
            }
            (Some(want), Some(have)) if want.eq_ignore_ascii_case(have) => {
                log.push("file already exists, no need to download".to_owned());
                Ok(())
            }
            (Some(want), have) => {
                let have = have.as_deref().unwrap_or("0000000000000000000000000000000000000000");
                Err(format!("checksum mismatch: got '{have}' != expect '{want}', aborting"))
            }
        };
    }
    let size = 256 << 20;
    let total = world.storages.get(&download.storage).map_or(0, |spec| spec.total);
    if world.used(&download.storage, node) + size > total {
        return Err(format!("{path}/{}: No space left on device", file_path(&download.name)));
    }
    log.push(format!("downloading to {path}/{}", file_path(&download.name)));
    let file = world.add_file(&download.storage, node, &download.name, size);
    file.checksum = download.checksum.clone();
    if file.content == "import" {
        file.virtual_size = Some(3 << 30);
    }
    log.push("download finished".to_owned());
    Ok(())
}

fn file_path(name: &str) -> String {
    match name.split_once('/') {
        Some(("iso", file)) => format!("template/iso/{file}"),
        Some(("vztmpl", file)) => format!("template/cache/{file}"),
        _ => name.to_owned(),
    }
}

impl World {
    /// Frees every volume of a guest, wherever it is.
    fn free_all(&mut self, vmid: u32) {
        let places: Vec<(String, String)> = self
            .storages
            .keys()
            .flat_map(|storage| self.nodes.keys().map(move |node| (storage.clone(), node.clone())))
            .collect();
        for (storage, node) in places {
            let lost: Vec<String> = self
                .volumes_on(&storage, &node)
                .filter(|(_, volume)| volume.vmid == Some(vmid))
                .map(|(name, _)| format!("{storage}:{name}"))
                .collect();
            for volid in lost {
                self.remove_volume(&volid, &node);
            }
        }
    }

    fn has_linked_clones(&self, base: &str, node: &str) -> bool {
        let storage = volume::split(base).map_or("", |(storage, _)| storage);
        self.volumes_on(storage, node).any(|(_, volume)| volume.parent.as_deref() == Some(base))
    }
}
