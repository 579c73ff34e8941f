//! The `spec` of a container.
//!
//! What is left out is not owned: PVE's value stays. The field tables in [`crate::fields`] say which PVE
//! key a field has and what PVE means when the key is absent.

use crate::env::Env;
use crate::startup::Startup;
use proxops_kind::{Scalar, Size, Words, choice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// A container, or a container template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ContainerSpec {
    /// The node on which it is made. A container that was migrated is managed where it is.
    pub node: String,
    /// Its number, unique in the whole PVE cluster over VMs and containers.
    #[schemars(range(min = 100, max = 999_999_999), extend("x-pve-key" = "vmid"))]
    pub vmid: u32,
    /// Whether it runs. A template is always stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "started"))]
    pub state: Option<State>,
    /// Tags: exactly these, and the ownership tag. Left out, the live tags stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "tags"))]
    pub tags: Option<Vec<String>>,
    /// Notes shown in PVE.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "description"))]
    pub pve_description: Option<String>,
    /// Resource pool that the container joins when it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false, "x-pve-key" = "pool"))]
    pub pool: Option<String>,
    /// The name of the `CTTemplate` from which it is made. Needed to create, never compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false, "x-pve-key" = "ostemplate"))]
    pub template: Option<String>,
    /// The name of the `TemplateCT` of which it is a full clone, instead of `template`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false))]
    pub clone: Option<String>,
    /// The storage for the clone's volumes; left out: the template's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false, "x-pve-key" = "storage"))]
    pub clone_storage: Option<String>,
    /// Memory limit, whole MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "memory", "x-unit" = "MiB", "default" = "512MiB"))]
    pub memory: Option<Size>,
    /// Swap limit, whole MiB; `0MiB` for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "swap", "x-unit" = "MiB", "default" = "512MiB"))]
    pub swap: Option<Size>,
    /// Processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// The root volume. With `clone` only its `size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "rootfs"))]
    pub root: Option<Root>,
    /// Further volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "mp[n]"))]
    pub mount_points: Option<Vec<MountPoint>>,
    /// Folders of the node that are mounted into the container. Setting them needs a root@pam ticket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "mp[n]"))]
    pub bind_mounts: Option<Vec<BindMount>>,
    /// Devices of the node that are passed through. Setting them needs a root@pam ticket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "dev[n]"))]
    pub devices: Option<Vec<Device>>,
    /// Network interfaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "net[n]"))]
    pub networks: Option<Vec<Network>>,
    /// Host name and resolver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns: Option<Dns>,
    /// Processor architecture.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "arch", "default" = "amd64"))]
    pub arch: Option<Arch>,
    /// The system inside, which decides how PVE configures it; left out, PVE detects it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "ostype"))]
    pub os_type: Option<OsType>,
    /// Time zone such as `Europe/Vienna`, or `host` for the node's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "timezone"))]
    pub timezone: Option<String>,
    /// The command that starts as the first process.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "entrypoint", "default" = "/sbin/init"))]
    pub entrypoint: Option<String>,
    /// Environment variables of the first process: exactly these. A map, or a list of `NAME=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "env"))]
    pub env: Option<Env>,
    /// Switches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Options>,
    /// Public keys for root, as names in the cluster's secrets document such as
    /// `cloud-init.ssh-keys.ops`. Used once, at creation, and never compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false, "x-pve-key" = "ssh-public-keys"))]
    pub ssh_key_refs: Option<Vec<String>>,
    /// Password of root, as a name in the cluster's secrets document such as `cloud-init.passwords.ops`.
    /// Used once, at creation, and never compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false, "x-pve-key" = "password"))]
    pub password_ref: Option<String>,
    /// PVE keys that no field models, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<BTreeMap<String, Scalar>>,
}

choice! {
    /// The wanted power state.
    State { Started = "started", Stopped = "stopped" }
}
choice! {
    /// Processor architectures of PVE.
    Arch {
        Amd64 = "amd64", I386 = "i386", Arm64 = "arm64", Armhf = "armhf", Riscv32 = "riscv32", Riscv64 = "riscv64",
    }
}
choice! {
    /// Systems that PVE knows how to configure.
    OsType {
        Debian = "debian", Devuan = "devuan", Ubuntu = "ubuntu", Centos = "centos", Fedora = "fedora",
        Opensuse = "opensuse", Archlinux = "archlinux", Alpine = "alpine", Gentoo = "gentoo", Nixos = "nixos",
        Unmanaged = "unmanaged",
    }
}
choice! {
    /// What the console attaches to.
    ConsoleMode { Tty = "tty", Console = "console", Shell = "shell" }
}
/// Mount options of a volume that PVE takes (fact L9).
pub const MOUNT_OPTIONS: &[&str] = &["discard", "lazytime", "noatime", "nodev", "noexec", "nosuid"];

choice! {
    /// Types of a network interface.
    NetworkType { Veth = "veth" }
}

/// Processors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cpu {
    /// Cores that the container sees; left out, all of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8192), extend("x-pve-key" = "cores"))]
    pub cores: Option<u32>,
    /// Processor time in units of one core, such as 1.5; 0 = no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 8192), extend("x-pve-key" = "cpulimit", "x-unit" = "cores", "default" = 0))]
    pub limit: Option<f64>,
    /// Share of processor time against other guests; PVE keeps at most 10000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 500_000), extend("x-pve-key" = "cpuunits", "default" = 100))]
    pub units: Option<u32>,
}

/// The root volume.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Root {
    /// The storage on which it is made; it must carry `rootdir` content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// Its size. It grows only with `grow`, and never shrinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "size"))]
    pub size: Option<Size>,
    /// Lets the live volume grow to `size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false, "default" = false))]
    pub grow: Option<bool>,
    /// Mount options: exactly these.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "mountoptions", "items" = json!({ "enum": MOUNT_OPTIONS })))]
    pub mount_options: Option<Words>,
    /// Access control lists; left out, the file system's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "acl"))]
    pub acl: Option<bool>,
    /// User quotas inside the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "quota", "default" = false))]
    pub quota: Option<bool>,
    /// Include the volume in storage replication.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "replicate", "default" = true))]
    pub replicate: Option<bool>,
}

/// A further volume.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MountPoint {
    /// Its slot, `mp0` to `mp255`; left out: the lowest free one, in list order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^mp(0|[1-9][0-9]{0,2})$"), extend("x-expect" = "a slot such as mp0"))]
    pub slot: Option<String>,
    /// The storage on which it is made; it must carry `rootdir` content.
    #[schemars(extend("x-pve-key" = "volume"))]
    pub storage: String,
    /// Its size. It grows only with `grow`, and never shrinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "size"))]
    pub size: Option<Size>,
    /// Lets the live volume grow to `size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false, "default" = false))]
    pub grow: Option<bool>,
    /// Path inside the container.
    #[schemars(extend("x-pve-key" = "mp"))]
    pub mount_point: String,
    /// How it is mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<MountPointOptions>,
}

/// How a volume is mounted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MountPointOptions {
    /// Mount it read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "ro", "default" = false))]
    pub read_only: Option<bool>,
    /// Include the volume in backups.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "backup", "default" = false))]
    pub backup: Option<bool>,
    /// Access control lists; left out, the file system's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "acl"))]
    pub acl: Option<bool>,
    /// User quotas inside the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "quota", "default" = false))]
    pub quota: Option<bool>,
    /// The volume is available on every node, so that it never hinders a migration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "shared", "default" = false))]
    pub shared: Option<bool>,
    /// Include the volume in storage replication.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "replicate", "default" = true))]
    pub replicate: Option<bool>,
    /// Mount options: exactly these.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "mountoptions", "items" = json!({ "enum": MOUNT_OPTIONS })))]
    pub mount_options: Option<Words>,
}

/// A folder of the node that is mounted into the container.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BindMount {
    /// Its slot, `mp0` to `mp255`; left out: the lowest free one, after those of the mount points.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^mp(0|[1-9][0-9]{0,2})$"), extend("x-expect" = "a slot such as mp0"))]
    pub slot: Option<String>,
    /// The folder on the node, or a block device below /dev. Folders of the node's own system are refused,
    /// and a live bind mount is never pointed elsewhere.
    #[schemars(extend("x-pve-key" = "volume"))]
    pub host_path: String,
    /// Path inside the container.
    #[schemars(extend("x-pve-key" = "mp"))]
    pub mount_point: String,
    /// Mount it read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "ro", "default" = false))]
    pub read_only: Option<bool>,
}

/// A device of the node that is passed through.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Device {
    /// Its slot, `dev0` to `dev255`; left out: the lowest free one, in list order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^dev(0|[1-9][0-9]{0,2})$"), extend("x-expect" = "a slot such as dev0"))]
    pub slot: Option<String>,
    /// Path of the device on the node, below /dev.
    #[schemars(extend("x-pve-key" = "path"))]
    pub path: String,
    /// Access mode in octal digits, in quotes, such as "0660".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = "^0[0-7]{3}$"),
        extend("x-pve-key" = "mode", "x-expect" = "an octal mode in quotes such as \"0660\"")
    )]
    pub mode: Option<String>,
    /// User id inside the container that owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "uid", "default" = 0))]
    pub uid: Option<u32>,
    /// Group id inside the container that owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "gid", "default" = 0))]
    pub gid: Option<u32>,
    /// Forbid the container to write to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "deny-write", "default" = false))]
    pub deny_write: Option<bool>,
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Network {
    /// Its slot, `net0` to `net31`; left out: the lowest free one, in list order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^net(0|[1-9][0-9]?)$"), extend("x-expect" = "a slot such as net0"))]
    pub slot: Option<String>,
    /// Remove the interface in this slot; only `slot` stands beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub absent: Option<bool>,
    /// The bridge or virtual network. Needed unless `absent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "bridge"))]
    pub bridge: Option<String>,
    /// Name of the interface in the container; left out: `eth0` for `net0` and so on at creation, or the next
    /// one that is free, then not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "name"))]
    pub iface: Option<String>,
    /// Type of the interface.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "type", "default" = "veth"))]
    pub kind: Option<NetworkType>,
    /// VLAN tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4094), extend("x-pve-key" = "tag"))]
    pub tag: Option<u32>,
    /// VLANs that pass through: exactly these.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "trunks"))]
    pub trunks: Option<Words>,
    /// MAC address; left out, PVE draws one and it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$"),
        extend("x-pve-key" = "hwaddr", "x-expect" = "a MAC address such as BC:24:11:00:00:01")
    )]
    pub hwaddr: Option<String>,
    /// Most traffic, in MB/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("x-pve-key" = "rate", "x-unit" = "MB/s"))]
    pub rate_limit: Option<f64>,
    /// Filter the interface with PVE's firewall.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "firewall", "default" = false))]
    pub firewall: Option<bool>,
    /// Keep the link down.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "link_down", "default" = false))]
    pub link_down: Option<bool>,
    /// Largest packet, in bytes; left out, the bridge's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 64, max = 65535), extend("x-pve-key" = "mtu", "x-unit" = "bytes"))]
    pub mtu: Option<u32>,
    /// IPv4: an address with prefix length, `dhcp` or `manual`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "ip"))]
    pub ip: Option<String>,
    /// IPv4 gateway, beside a static `ip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "gw"))]
    pub gw: Option<String>,
    /// IPv6: an address with prefix length, `auto`, `dhcp` or `manual`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "ip6"))]
    pub ip6: Option<String>,
    /// IPv6 gateway, beside a static `ip6`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "gw6"))]
    pub gw6: Option<String>,
}

/// Host name and resolver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Dns {
    /// Host name, a DNS name; left out: `metadata.name`; `""`: not owned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "hostname"))]
    pub hostname: Option<String>,
    /// Addresses of name servers: exactly these. Left out, the node's at creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "nameserver"))]
    pub nameservers: Option<Words>,
    /// Search domain, or a list of them: exactly these. Left out, the node's at creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "searchdomain"))]
    pub domain: Option<Words>,
}

/// Switches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Options {
    /// Start it when the node boots.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "onboot", "default" = false))]
    pub onboot: Option<bool>,
    /// Order and delays at boot and shutdown of the node, such as `order=2,up=30,down=60`,
    /// or a map `{order: 2, up: 30, down: 60}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "startup"))]
    pub startup: Option<Startup>,
    /// Refuse to remove the container and to change its volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "protection", "default" = false))]
    pub protection: Option<bool>,
    /// Run without the node's root privileges. Decided at creation: later a difference needs a recreate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "unprivileged", "default" = true))]
    pub unprivileged: Option<bool>,
    /// Attach a console device.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "console", "default" = true))]
    pub console: Option<bool>,
    /// Number of terminals.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 6), extend("x-pve-key" = "tty", "default" = 2))]
    pub ttys: Option<u32>,
    /// PVE's own spelling of `ttys`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 6), extend("x-pve-key" = "tty", "deprecated" = true))]
    pub tty: Option<u32>,
    /// What the console attaches to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "cmode", "default" = "tty"))]
    pub cmode: Option<ConsoleMode>,
    /// Volume id of a script that PVE runs at start and stop. Setting it needs a root@pam ticket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "hookscript"))]
    pub hookscript: Option<String>,
    /// What the container may do. Anything but `nesting`, and anything at all in a privileged container,
    /// needs a root@pam ticket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "features"))]
    pub features: Option<Features>,
    /// The same as `features.nesting`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "features"))]
    pub nesting: Option<bool>,
    /// The same as `features.keyctl`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "features"))]
    pub keyctl: Option<bool>,
    /// The same as `features.fuse`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "features"))]
    pub fuse: Option<bool>,
}

/// What a container may do. Live features that no field owns are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Features {
    /// Containers inside the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "nesting", "default" = false))]
    pub nesting: Option<bool>,
    /// The keyctl system call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "keyctl", "default" = false))]
    pub keyctl: Option<bool>,
    /// FUSE file systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "fuse", "default" = false))]
    pub fuse: Option<bool>,
    /// Some device nodes with mknod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "mknod", "default" = false))]
    pub mknod: Option<bool>,
    /// File systems that may be mounted, such as nfs: exactly these.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "mount"))]
    pub mount: Option<Words>,
    /// Mount /sys writable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "force_rw_sys", "default" = false))]
    pub force_rw_sys: Option<bool>,
}
