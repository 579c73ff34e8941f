//! Which PVE keys a field models, which are book-keeping, and which `extra` may not name.

use crate::options::KEYS;
use crate::wanted::When;
use proxops_kind::live::slot_index;

/// Families of numbered keys that fields model.
const FAMILIES: [&str; 11] =
    ["scsi", "virtio", "sata", "ide", "net", "hostpci", "usb", "virtiofs", "ipconfig", "unused", "serial"];

/// Modelled keys that are not in the table of plain keys.
const MODELLED: [&str; 24] = [
    "name",
    "description",
    "tags",
    "memory",
    "cpu",
    "scsihw",
    "machine",
    "vga",
    "agent",
    "startup",
    "rng0",
    "watchdog",
    "audio0",
    "efidisk0",
    "tpmstate0",
    "cipassword",
    "sshkeys",
    "cicustom",
    "cdrom",
    "bootdisk",
    "smp",
    "vmid",
    "node",
    "pool",
];

/// Keys that belong to the host or to PVE itself.
const RESERVED: [&str; 30] = [
    "archive",
    "background_delay",
    "bwlimit",
    "current",
    "delete",
    "digest",
    "force",
    "format",
    "full",
    "ha-managed",
    "import-working-storage",
    "live-restore",
    "lock",
    "meta",
    "newid",
    "parent",
    "revert",
    "runningcpu",
    "runningmachine",
    "skiplock",
    "snapname",
    "snapshots",
    "snaptime",
    "start",
    "storage",
    "target",
    "template",
    "unique",
    "vmstate",
    "running-nets-host-mtu",
];

/// Keys that PVE writes for itself; never a gap on adopt.
const BOOK_KEEPING: [&str; 12] = [
    "digest",
    "lock",
    "meta",
    "parent",
    "runningcpu",
    "runningmachine",
    "running-nets-host-mtu",
    "snapshots",
    "snaptime",
    "template",
    "vmgenid",
    "vmstate",
];

/// Unmodelled keys that only a root@pam ticket may set (fact Q51).
const ROOT_ONLY: [&str; 9] = [
    "args",
    "arch",
    "ivshmem",
    "spice_enhancements",
    "vmgenid",
    "amd-sev",
    "intel-tdx",
    "parallel0",
    "parallel1",
];

/// Unmodelled keys that PVE applies to a running guest at once (fact Q30).
const AT_ONCE: [&str; 3] = ["migrate_downtime", "migrate_speed", "vmstatestorage"];

/// Whether a field of the manifest models this key.
pub fn is_modelled(key: &str) -> bool {
    MODELLED.contains(&key)
        || KEYS.iter().any(|k| k.row.key == key)
        || FAMILIES.iter().any(|family| slot_index(key, family).is_some())
}

/// Whether only the host may use this key.
pub fn is_reserved(key: &str) -> bool {
    RESERVED.contains(&key)
}

/// Whether PVE writes this key for itself.
pub fn is_book_keeping(key: &str) -> bool {
    BOOK_KEEPING.contains(&key)
}

/// Whether an unmodelled key needs a root@pam ticket.
pub fn is_root_only(key: &str) -> bool {
    ROOT_ONLY.contains(&key) || key == "parallel2"
}

/// When an unmodelled key applies.
pub fn when(key: &str) -> When {
    if AT_ONCE.contains(&key) { When::AtOnce } else { When::Stop }
}
