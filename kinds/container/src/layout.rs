//! Which numbered slot each entry of a list has, and which host name a manifest means.

use crate::spec::{BindMount, ContainerSpec, Device, MountPoint, Network};
use proxops_kind::names::slots;

/// An entry of a list with its slot and its place in the manifest.
pub struct Placed<'s, T> {
    /// N of the slot.
    pub number: u32,
    /// PVE's key, such as `mp0`.
    pub slot: String,
    /// Pointer of the entry.
    pub at: String,
    /// The entry.
    pub item: &'s T,
}

fn placed<'s, T>(prefix: &str, list: &str, items: &'s [T], numbers: &[u32]) -> Vec<Placed<'s, T>> {
    let entry = |(i, (item, number)): (usize, (&'s T, &u32))| Placed {
        number: *number,
        slot: format!("{prefix}{number}"),
        at: format!("/spec/{list}/{i}"),
        item,
    };
    items.iter().zip(numbers).enumerate().map(entry).collect()
}

/// The volumes beside the root volume, and the bind mounts, which share their slots: mount points that
/// leave theirs out come first.
pub fn mounts(spec: &ContainerSpec) -> (Vec<Placed<'_, MountPoint>>, Vec<Placed<'_, BindMount>>) {
    let volumes = spec.mount_points.as_deref().unwrap_or_default();
    let binds = spec.bind_mounts.as_deref().unwrap_or_default();
    let named = volumes.iter().map(|m| m.slot.as_deref()).chain(binds.iter().map(|b| b.slot.as_deref()));
    let numbers = slots("mp", named);
    let (first, second) = numbers.split_at(volumes.len().min(numbers.len()));
    (placed("mp", "mount-points", volumes, first), placed("mp", "bind-mounts", binds, second))
}

/// The network interfaces.
pub fn networks(spec: &ContainerSpec) -> Vec<Placed<'_, Network>> {
    let items = spec.networks.as_deref().unwrap_or_default();
    placed("net", "networks", items, &slots("net", items.iter().map(|n| n.slot.as_deref())))
}

/// The names that the manifest gives to its interfaces.
pub fn interface_names(spec: &ContainerSpec) -> Vec<String> {
    spec.networks.iter().flatten().filter_map(|network| network.iface.clone()).collect()
}

/// The passed-through devices.
pub fn devices(spec: &ContainerSpec) -> Vec<Placed<'_, Device>> {
    let items = spec.devices.as_deref().unwrap_or_default();
    placed("dev", "devices", items, &slots("dev", items.iter().map(|d| d.slot.as_deref())))
}

/// The host name that the manifest wants; `None` = not owned.
pub fn hostname<'a>(name: &'a str, spec: &'a ContainerSpec) -> Option<&'a str> {
    match spec.dns.as_ref().and_then(|dns| dns.hostname.as_deref()) {
        None => Some(name),
        Some("") => None,
        Some(hostname) => Some(hostname),
    }
}

/// A pointer that resolves: where a whole section is left out, the section itself.
pub fn place(spec: &ContainerSpec, at: &str) -> String {
    let missing = |section: &str| match section {
        "dns" => spec.dns.is_none(),
        "cpu" => spec.cpu.is_none(),
        "options" => spec.options.is_none(),
        "root" => spec.root.is_none(),
        _ => false,
    };
    match at.split('/').nth(1) {
        Some(section) if missing(section) => format!("/spec/{section}"),
        _ => format!("/spec{at}"),
    }
}
