//! Mount points of a container (facts L8, L9, L16, R13).

use super::{GuestKind, format_size};
use crate::grammar::property::{self, Props};
use crate::grammar::{Table, ct, split_index};
use crate::refused::{Refused, Reply};
use crate::world::volume::{self, Purpose};
use crate::world::{Caller, GIB, World};

/// The grammar of `rootfs` or `mp[n]`; `None` for anything else.
pub fn table(key: &str) -> Option<Table> {
    if key == "rootfs" {
        return Some(ct::ROOTFS);
    }
    split_index(key).filter(|(stem, index)| *stem == "mp" && *index < 256).map(|_| ct::MP)
}

/// A parsed `rootfs` or `mp[n]`.
#[derive(Clone, Debug)]
pub struct Mount {
    /// `rootfs` or `mp<n>`.
    pub slot: String,
    /// Volume id, create form, or a path.
    pub volume: String,
    /// Everything else.
    pub props: Props,
}

impl Mount {
    /// Reads a mount point.
    pub fn read(slot: &str, text: &str) -> Option<Self> {
        let mut props = property::parse(table(slot)?, text, slot).ok()?;
        let volume = props.remove("volume")?;
        Some(Self { slot: slot.to_owned(), volume, props })
    }

    /// `volume`, `device` or `bind` (fact L9).
    pub fn kind(&self) -> &'static str {
        if self.volume.starts_with("/dev/") {
            "device"
        } else if self.volume.starts_with('/') {
            "bind"
        } else {
            "volume"
        }
    }

    /// Volume first, then `mp`, then the rest by alphabet (fact R13).
    pub fn print(&self) -> String {
        let Some(table) = table(&self.slot) else { return self.volume.clone() };
        let mut props = self.props.clone();
        props.insert("volume", self.volume.clone());
        property::print(table, &props)
    }

    /// `<storage>:<GiB>`: storage and bytes. A bare number stands on `default` (fact L2).
    pub fn new_volume(&self, default: Option<&str>) -> Option<(String, u64)> {
        let (storage, size) = match self.volume.split_once(':') {
            Some((storage, size)) => (storage.to_owned(), size),
            None => (default?.to_owned(), self.volume.as_str()),
        };
        if !crate::grammar::check::matches(r"\d+(\.\d+)?", size) {
            return None;
        }
        let gib: f64 = size.parse().ok()?;
        Some((storage, ((gib * (GIB >> 10) as f64) as u64) << 10))
    }
}

impl World {
    /// Bind mounts, devices and some options are for root@pam only (fact L8), new volumes need space.
    pub(crate) fn check_mount_access(
        &self,
        caller: &Caller,
        node: &str,
        vmid: u32,
        mount: &Mount,
        default: Option<&str>,
    ) -> Reply<()> {
        if mount.kind() != "volume" {
            if caller.is_root() {
                return Ok(());
            }
            return Err(Refused::denied(&format!(
                "mount point type {} is only allowed for root@pam",
                mount.kind()
            )));
        }
        if let Some((storage, _)) = mount.new_volume(default) {
            self.need(caller, &format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
            let spec = self.usable_storage(&storage, node)?;
            if !spec.content.contains("rootdir") {
                return Err(Refused::die(format!(
                    "storage '{storage}' does not support container directories"
                )));
            }
            return Ok(());
        }
        self.check_volume_access(caller, node, vmid, &mount.volume)
    }

    /// Allocates or looks up what a mount point names.
    pub(crate) fn make_mount(
        &mut self,
        node: &str,
        vmid: u32,
        mut mount: Mount,
        default: Option<&str>,
    ) -> Result<Mount, String> {
        if mount.kind() != "volume" {
            return Ok(mount);
        }
        if let Some((storage, size)) = mount.new_volume(default) {
            self.usable_storage(&storage, node).map_err(|refused| refused.message)?;
            mount.volume =
                self.allocate(&storage, node, (GuestKind::Lxc, vmid), Purpose::Disk, None, size)?;
            mount.props.insert("size", format_size(size));
            return Ok(mount);
        }
        let (storage, _) = volume::split(&mount.volume)
            .ok_or_else(|| format!("unable to parse volume ID '{}'", mount.volume))?;
        self.usable_storage(storage, node).map_err(|refused| refused.message)?;
        let size = self
            .volume(&mount.volume, node)
            .map(|volume| volume.size)
            .ok_or_else(|| format!("volume '{}' does not exist", mount.volume))?;
        mount.props.insert("size", format_size(size));
        Ok(mount)
    }
}
