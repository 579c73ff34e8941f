//! Volumes on storages: names, sizes, owners.

use std::collections::BTreeMap;

use super::{Storage, World};
use crate::guest::GuestKind;

/// One volume or file.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Bytes. Of a guest's disk its virtual size, of a file its length.
    pub size: u64,
    /// `iso`, `vztmpl`, `import`, `images`, `rootdir`, `backup` or `snippets`.
    pub content: String,
    /// `raw`, `qcow2`, `iso`, `tzst`, ...
    pub format: String,
    /// The guest it belongs to.
    pub vmid: Option<u32>,
    /// Unix time of creation.
    pub ctime: u64,
    /// The checksum it would have: algorithm is not told apart, the text is compared.
    pub checksum: Option<String>,
    /// Size of the disk inside an image file, bytes.
    pub virtual_size: Option<u64>,
    /// The base volume of a linked clone.
    pub parent: Option<String>,
}

/// Where a volume is: storage, node (empty on shared storages), name.
type Key = (String, String, String);

/// All volumes of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Volumes(BTreeMap<Key, Volume>);

impl Volumes {
    fn on<'a>(
        &'a self,
        storage: &str,
        site: &str,
        prefix: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Volume)> + use<'a> {
        let low = (storage.to_owned(), site.to_owned(), prefix.to_owned());
        let (storage, site, prefix) = low.clone();
        self.0
            .range(low..)
            .take_while(move |((s, n, name), _)| *s == storage && *n == site && name.starts_with(&prefix))
            .map(|((_, _, name), volume)| (name.as_str(), volume))
    }
}

/// What a new volume is for; it decides the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A disk with the next free number.
    Disk,
    /// The cloud-init drive, one name per VM (fact Q19).
    CloudInit,
}

/// `storage:name` split; `None` without a colon.
pub fn split(volid: &str) -> Option<(&str, &str)> {
    volid
        .split_once(':')
        .filter(|(storage, name)| !storage.is_empty() && !name.is_empty() && !storage.contains('/'))
}

impl World {
    fn site(&self, storage: &str, node: &str) -> String {
        match self.storages.get(storage) {
            Some(spec) if spec.shared => String::new(),
            _ => node.to_owned(),
        }
    }

    fn key(&self, volid: &str, node: &str) -> Option<Key> {
        let (storage, name) = split(volid)?;
        Some((storage.to_owned(), self.site(storage, node), name.to_owned()))
    }

    /// A volume as seen from a node.
    pub fn volume(&self, volid: &str, node: &str) -> Option<&Volume> {
        self.volumes.0.get(&self.key(volid, node)?)
    }

    /// Every volume and file: storage, node (empty on shared storages), name, volume.
    pub fn all_volumes(&self) -> impl Iterator<Item = (&str, &str, &str, &Volume)> {
        self.volumes.0.iter().map(|((storage, site, name), volume)| (&**storage, &**site, &**name, volume))
    }

    pub(crate) fn volume_mut(&mut self, volid: &str, node: &str) -> Option<&mut Volume> {
        let key = self.key(volid, node)?;
        self.volumes.0.get_mut(&key)
    }

    /// Puts a volume on a storage, replacing one of the same name.
    pub fn put_volume(&mut self, volid: &str, node: &str, volume: Volume) {
        if let Some(key) = self.key(volid, node) {
            self.volumes.0.insert(key, volume);
        }
    }

    /// Puts a file (`iso/x.iso`, `vztmpl/y.tar.zst`, `import/z.qcow2`, ...) on a storage; on a storage that is
    /// not shared only on this node.
    pub fn add_file(&mut self, storage: &str, node: &str, name: &str, size: u64) -> &mut Volume {
        let content = name.split('/').next().unwrap_or_default().to_owned();
        let volume = Volume {
            size,
            format: file_format(&content, name).to_owned(),
            content,
            vmid: None,
            ctime: self.unix_time(),
            checksum: None,
            virtual_size: None,
            parent: None,
        };
        let key = (storage.to_owned(), self.site(storage, node), name.to_owned());
        match self.volumes.0.entry(key) {
            std::collections::btree_map::Entry::Occupied(mut old) => {
                old.insert(volume);
                old.into_mut()
            }
            std::collections::btree_map::Entry::Vacant(place) => place.insert(volume),
        }
    }

    /// Removes a volume; whether there was one.
    pub fn remove_volume(&mut self, volid: &str, node: &str) -> bool {
        self.key(volid, node).is_some_and(|key| self.volumes.0.remove(&key).is_some())
    }

    /// Volumes on a storage as seen from a node, by name.
    pub(crate) fn volumes_on(&self, storage: &str, node: &str) -> impl Iterator<Item = (&str, &Volume)> {
        self.volumes.on(storage, &self.site(storage, node), "")
    }

    /// Allocates a volume of a guest and returns its id (facts S13, L16, Q19).
    ///
    /// # Errors
    /// The text of the storage: wrong format, no space, name taken.
    pub(crate) fn allocate(
        &mut self,
        storage: &str,
        node: &str,
        (kind, vmid): (GuestKind, u32),
        purpose: Purpose,
        format: Option<&str>,
        size: u64,
    ) -> Result<String, String> {
        let spec = self.storages.get(storage).ok_or_else(|| format!("storage '{storage}' does not exist"))?;
        let file_based = spec.file_based();
        let subvolume = kind == GuestKind::Lxc && matches!(spec.kind.as_str(), "zfspool" | "btrfs");
        let format = match (format, purpose) {
            (Some(format), _) => format,
            (None, Purpose::CloudInit) if file_based => "qcow2",
            _ if subvolume => "subvol",
            _ => "raw",
        };
        let allowed = match spec.kind.as_str() {
            "dir" | "nfs" | "cifs" => &["raw", "qcow2", "vmdk"][..],
            "btrfs" | "zfspool" => &["raw", "subvol"][..],
            _ => &["raw"][..],
        };
        if !allowed.contains(&format) {
            return Err(format!("unsupported format '{format}'"));
        }
        // LVM-thin overcommits (fact S14)
        let used = if spec.kind == "lvmthin" { 0 } else { self.used(storage, node) };
        if spec.kind != "lvmthin" && used + size > spec.total {
            let (want, free) = (size >> 10, spec.total.saturating_sub(used) >> 10);
            return Err(match spec.kind.as_str() {
                "lvm" => format!("not enough free space ({free} < {want})"),
                "zfspool" => "zfs error: cannot create volume: out of space".to_owned(),
                _ => "unable to create image: No space left on device".to_owned(),
            });
        }
        let name = match purpose {
            Purpose::Disk => {
                self.free_name(storage, node, vmid, if subvolume { "subvol" } else { "vm" }, format)
            }
            Purpose::CloudInit if file_based => format!("{vmid}/vm-{vmid}-cloudinit.{format}"),
            Purpose::CloudInit => format!("vm-{vmid}-cloudinit"),
        };
        let volid = format!("{storage}:{name}");
        if self.volume(&volid, node).is_some() {
            let spec = self.storages.get(storage);
            return Err(match spec {
                Some(spec) if file_based => {
                    format!("disk image '{}/images/{name}' already exists", spec.path)
                }
                _ => format!(
                    "lvcreate 'pve/{name}' error:   Logical Volume \"{name}\" already exists in volume group \"pve\""
                ),
            });
        }
        let content = if kind == GuestKind::Qemu { "images" } else { "rootdir" };
        let volume = Volume {
            size,
            content: content.to_owned(),
            format: format.to_owned(),
            vmid: Some(vmid),
            ctime: self.unix_time(),
            checksum: None,
            virtual_size: None,
            parent: None,
        };
        self.put_volume(&volid, node, volume);
        Ok(volid)
    }

    /// The lowest free disk number of a guest on one storage; bases and subvolumes count too.
    fn free_name(&self, storage: &str, node: &str, vmid: u32, stem: &str, format: &str) -> String {
        let site = self.site(storage, node);
        let file_based = self.storages.get(storage).is_some_and(Storage::file_based);
        let folder = if file_based { format!("{vmid}/") } else { String::new() };
        let mut used = std::collections::BTreeSet::new();
        // a linked clone on file storage has its base's folder in front of its own
        let linked = self.volumes.on(storage, &site, "").filter(|(name, volume)| {
            file_based && volume.vmid == Some(vmid) && name.matches('/').count() > 1
        });
        for prefix in ["vm", "base", "subvol", "basevol"] {
            let prefix = format!("{folder}{prefix}-{vmid}-disk-");
            for (name, _) in self.volumes.on(storage, &site, &prefix) {
                used.extend(number(&name[prefix.len()..]));
            }
        }
        if file_based {
            used.extend(linked.filter_map(|(name, _)| number(name.rsplit("-disk-").next()?)));
        }
        let free = (0..u32::MAX).find(|n| !used.contains(n)).unwrap_or_default();
        let suffix = if file_based { format!(".{format}") } else { String::new() };
        format!("{folder}{stem}-{vmid}-disk-{free}{suffix}")
    }

    /// Bytes in use on a storage.
    pub(crate) fn used(&self, storage: &str, node: &str) -> u64 {
        self.volumes_on(storage, node).map(|(_, volume)| volume.size).sum()
    }
}

fn number(text: &str) -> Option<u32> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The `format` of a file in a content listing (fact S7).
pub fn file_format(content: &str, name: &str) -> &'static str {
    match content {
        "iso" => "iso",
        "snippets" => "snippet",
        _ if name.ends_with(".tar.gz") => "tgz",
        _ if name.ends_with(".tar.xz") => "txz",
        _ if name.ends_with(".tar.zst") => "tzst",
        _ if name.ends_with(".tar.bz2") => "tbz2",
        _ if name.ends_with(".tar") => "tar",
        _ if name.ends_with(".qcow2") => "qcow2",
        _ if name.ends_with(".vmdk") => "vmdk",
        _ if name.ends_with(".ova") => "ova",
        _ => "raw",
    }
}
