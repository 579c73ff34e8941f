//! Options of a container: what create and the config write accept, and their property strings.

use super::{Param, Table, flag, int, num, one_of, text};

/// Options that the config of a container may hold.
pub const OPTIONS: &[Param] = &[
    one_of("arch", "amd64 i386 arm64 armhf riscv32 riscv64"),
    one_of("cmode", "shell console tty"),
    flag("console"),
    int("cores").min(1).max(8192),
    num("cpulimit").min(0).max(8192),
    int("cpuunits").min(0).max(500000),
    flag("debug"),
    text("description").max_len(8192),
    text("dev").family(0, 255).props(DEV),
    text("entrypoint").re(r"(?:[^\x00-\x08\x0a-\x1F\x7F]+)"),
    text("env").re(r"(?:(?:\w+=[^\x00-\x08\x0a-\x1F\x7F]*)(?:\x00\w+=[^\x00-\x08\x0a-\x1F\x7F]*)*)"),
    text("features").props(FEATURES),
    text("hookscript").of("pve-volume-id"),
    text("hostname").max_len(255).of("dns-name"),
    one_of("lock", "backup create destroyed disk fstrim migrate mounted rollback snapshot snapshot-delete"),
    int("memory").min(16),
    text("mp").family(0, 255).props(MP),
    text("nameserver").of("lxc-ip-with-ll-iface-list"),
    text("net").family(0, 31).props(NET),
    flag("onboot"),
    one_of("ostype", "debian devuan ubuntu centos fedora opensuse archlinux alpine gentoo nixos unmanaged"),
    flag("protection"),
    text("rootfs").props(ROOTFS),
    text("searchdomain").of("dns-name-list"),
    text("startup").of("pve-startup-order"),
    int("swap").min(0),
    text("tags").of("pve-tag-list"),
    flag("template"),
    text("timezone").of("pve-ct-timezone"),
    int("tty").min(0).max(6),
    flag("unprivileged"),
    text("unused").family(0, 255).props(UNUSED),
];
/// [`OPTIONS`] as a table, for look-ups of one key.
pub const TABLE: Table = &[OPTIONS];

/// Further parameters of create.
pub const CREATE: &[Param] = &[
    num("bwlimit").min(0),
    flag("force"),
    flag("ha-managed"),
    flag("ignore-unpack-errors"),
    text("ostemplate").req().max_len(255),
    text("password").min_len(5),
    text("pool").of("pve-poolid"),
    flag("restore"),
    text("ssh-public-keys"),
    flag("start"),
    text("storage").of("pve-storage-id"),
    flag("unique").needs("restore"),
];
/// Further parameters of the config write.
pub const CHANGE: &[Param] = &[
    text("delete").of("pve-configid-list"),
    text("digest").max_len(40),
    text("revert").of("pve-configid-list"),
];

const VOLUME: &[Param] = &[
    flag("acl"),
    text("idmap").re("(?:^(?:passthrough|[ug]:[0-9]+:[0-9]+:[1-9][0-9]*(?:;[ug]:[0-9]+:[0-9]+:[1-9][0-9]*)*)$)"),
    text("mountoptions").re("(?:(?:(discard|lazytime|noatime|nodev|noexec|nosuid))(;(?:(discard|lazytime|noatime|nodev|noexec|nosuid)))*)"),
    flag("quota"),
    flag("replicate"),
    flag("ro"),
    flag("shared"),
    text("size").of("disk-size"),
    text("volume").req().bare().of("pve-lxc-mp-string"),
];
/// `rootfs` (fact L9).
pub const ROOTFS: Table = &[VOLUME];
/// `mp[n]` (fact L9).
pub const MP: Table =
    &[VOLUME, &[flag("backup"), flag("keepattrs"), text("mp").req().of("pve-lxc-mp-string")]];
/// Network card (fact L10).
pub const NET: Table = &[&[
    text("bridge").re(r"[-_.\w\d]+"),
    flag("firewall"),
    text("gw").of("ipv4"),
    text("gw6").of("ipv6"),
    flag("host-managed"),
    text("hwaddr").of("mac-addr"),
    text("ip").of("pve-ipv4-config"),
    text("ip6").of("pve-ipv6-config"),
    flag("link_down"),
    int("mtu").min(64).max(65535),
    text("name").req().re(r"[-_.\w\d]+"),
    num("rate"),
    int("tag").min(1).max(4094),
    text("trunks").re(r"(?:\d+(?:;\d+)*)"),
    one_of("type", "veth"),
]];
/// Kernel features (fact L6).
pub const FEATURES: Table = &[&[
    flag("force_rw_sys"),
    flag("fuse"),
    flag("keyctl"),
    flag("mknod"),
    text("mount").re("(?:[a-zA-Z0-9_; ]+)"),
    flag("nesting"),
]];
/// Device passthrough (fact L8).
pub const DEV: Table = &[&[
    flag("deny-write"),
    int("gid").min(0),
    text("mode").re("0[0-7]{3}"),
    text("path").bare().of("pve-lxc-dev-string"),
    int("uid").min(0),
]];
/// A detached volume.
pub const UNUSED: Table = &[&[text("volume").req().bare().of("pve-volume-id")]];
