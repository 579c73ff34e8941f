//! Parameters of everything that is not a guest's configuration.

use super::{Param, Table, drive, flag, int, num, one_of, text, vm};

/// No parameters.
pub const NONE: Table = &[];
/// The node in the path.
pub const NODE: &[Param] = &[text("node").req().of("pve-node")];
/// Node and guest in the path.
pub const GUEST: &[Param] =
    &[text("node").req().of("pve-node"), int("vmid").req().min(100).max(999_999_999).of("pve-vmid")];
/// Node and storage in the path.
pub const STORAGE: &[Param] =
    &[text("node").req().of("pve-node"), text("storage").req().of("pve-storage-id")];
/// Node, storage and volume in the path.
pub const VOLUME: &[Param] =
    &[text("node").req().of("pve-node"), text("storage").of("pve-storage-id"), text("volume").req()];
/// Node and task in the path.
pub const TASK: &[Param] = &[text("node").req().of("pve-node"), text("upid").req()];

/// Login (fact T13).
pub const LOGIN: Table = &[&[
    flag("new-format"),
    text("otp"),
    text("password").req(),
    text("path").max_len(64).needs("privs"),
    text("privs").max_len(64).needs("path").of("pve-priv-list"),
    text("realm").max_len(32).of("pve-realm"),
    text("tfa-challenge"),
    text("username").req().max_len(64),
]];
/// Permissions of a caller (fact C9).
pub const PERMISSIONS: Table = &[&[
    text("path"),
    text("userid")
        .re(r"(?:^(?:[^\s:/]+)\@(?:[A-Za-z][A-Za-z0-9\.\-_]+)(?:!(?:[A-Za-z][A-Za-z0-9\.\-_]+))?$)"),
]];

/// One API token.
pub const TOKEN: Table = &[&[
    text("tokenid").req().re(r"(?:[A-Za-z][A-Za-z0-9\.\-_]+)"),
    text("userid").req().max_len(64).of("pve-userid"),
]];

/// The cluster's inventory (fact C1).
pub const RESOURCES: Table = &[&[one_of("type", "vm storage node sdn")]];
/// The next free id (fact C6).
pub const NEXTID: Table = &[&[int("vmid").min(100).max(999_999_999).of("pve-vmid")]];
/// Datacenter options.
pub const OPTIONS: Table = &[&[
    text("bwlimit").props(BWLIMIT),
    text("consent-text").max_len(65536),
    one_of("console", "applet vv html5 xtermjs"),
    text("crs").props(CRS),
    text("delete").of("pve-configid-list"),
    text("description").max_len(65536),
    text("email_from").of("email-opt"),
    one_of("fencing", "watchdog hardware both"),
    text("ha").props(HA),
    text("http_proxy").re("http://.*"),
    one_of(
        "keyboard",
        "de de-ch da en-gb en-us es fi fr fr-be fr-ca fr-ch hu is it ja lt mk nl no pl pt pt-br sv sl tr",
    ),
    one_of(
        "language",
        "ar ca da de en es eu fa fr hr he it ja ka kr nb nl nn pl pt_BR ru sl sv tr ukr zh_CN zh_TW",
    ),
    text("location").props(LOCATION),
    text("mac_prefix").of("mac-prefix"),
    int("max_workers").min(1),
    text("migration").props(TRANSFER),
    flag("migration_unsecure"),
    text("next-id").props(NEXT_ID),
    text("notify").props(NOTIFY),
    text("registered-tags").re(r"(?:(?i:[a-z0-9_][a-z0-9_\-\+\.]*);)*(?i:[a-z0-9_][a-z0-9_\-\+\.]*)"),
    text("replication").props(TRANSFER),
    text("tag-style").props(TAG_STYLE),
    text("u2f").props(U2F),
    text("user-tag-access").props(TAG_ACCESS),
    text("webauthn").props(WEBAUTHN),
]];
const BWLIMIT: Table = &[&[
    num("clone").min(0),
    num("default").min(0),
    num("migration").min(0),
    num("move").min(0),
    num("restore").min(0),
]];
const CRS: Table = &[&[
    one_of("ha", "basic static dynamic"),
    flag("ha-auto-rebalance"),
    num("ha-auto-rebalance-hold-duration").min(0).needs("ha-auto-rebalance"),
    num("ha-auto-rebalance-margin").min(0).max(100).needs("ha-auto-rebalance"),
    one_of("ha-auto-rebalance-method", "bruteforce topsis").needs("ha-auto-rebalance"),
    num("ha-auto-rebalance-threshold").min(0).max(100).needs("ha-auto-rebalance"),
    flag("ha-rebalance-on-start"),
]];
const HA: Table = &[&[one_of("shutdown_policy", "freeze failover conditional migrate").req()]];
const LOCATION: Table = &[&[
    num("latitude").req().min(-90).max(90),
    num("longitude").req().min(-180).max(180),
    text("name").max_len(128),
]];
const TRANSFER: Table = &[&[text("network").of("CIDR"), one_of("type", "secure insecure").req().bare()]];
/// Range of automatic ids.
pub const NEXT_ID: Table = &[&[int("lower"), int("upper")]];
const NOTIFY: Table = &[&[
    one_of("fencing", "always never"),
    one_of("package-updates", "auto always never"),
    one_of("replication", "always never"),
    text("target-fencing"),
    text("target-package-updates"),
    text("target-replication"),
]];
/// How tags are stored and shown (fact C4).
pub const TAG_STYLE: Table = &[&[
    flag("case-sensitive"),
    text("color-map").re(r"(?:(?i:[a-z0-9_][a-z0-9_\-\+\.]*):[0-9a-fA-F]{6}(?::[0-9a-fA-F]{6})?)(?:;(?:(?i:[a-z0-9_][a-z0-9_\-\+\.]*):[0-9a-fA-F]{6}(?::[0-9a-fA-F]{6})?))*"),
    one_of("ordering", "config alphabetical"),
    one_of("shape", "full circle dense none"),
]];
/// Who may set which tags (fact C5).
pub const TAG_ACCESS: Table = &[&[
    one_of("user-allow", "none list existing free"),
    text("user-allow-list").re(r"(?i:[a-z0-9_][a-z0-9_\-\+\.]*)(?:;(?i:[a-z0-9_][a-z0-9_\-\+\.]*))*"),
]];
const U2F: Table = &[&[text("appid"), text("origin")]];
const WEBAUTHN: Table = &[&[flag("allow-subdomains"), text("id"), text("origin"), text("rp")]];

/// Filter of HA resources.
pub const HA_LIST: Table = &[&[one_of("type", "ct vm")]];
/// The HA resource in the path.
pub const HA_SID: &[Param] = &[text("sid").req().of("pve-ha-resource-or-vm-id")];
/// Settings of an HA resource (fact C11).
pub const HA_SETTINGS: &[Param] = &[
    flag("auto-rebalance"),
    text("comment").max_len(4096),
    flag("failback"),
    text("group").of("pve-configid"),
    int("max_relocate").min(0),
    int("max_restart").min(0),
    one_of("state", "started stopped enabled disabled ignored"),
];
/// Kind of a new HA resource.
pub const HA_TYPE: &[Param] = &[one_of("type", "ct vm")];
/// Further parameters of a change.
pub const HA_CHANGE: &[Param] =
    &[text("delete").max_len(4096).of("pve-configid-list"), text("digest").max_len(64)];
/// Further parameter of a removal.
pub const HA_DELETE: &[Param] = &[flag("purge")];
/// Filter of HA rules.
pub const HA_RULES: Table = &[&[text("resource"), one_of("type", "node-affinity resource-affinity")]];

/// A new security group.
pub const GROUP_CREATE: Table = &[&[
    text("comment"),
    text("digest").max_len(64),
    text("group").req().min_len(2).max_len(18).re(r"[A-Za-z][A-Za-z0-9\-\_]+"),
    text("rename").min_len(2).max_len(18).re(r"[A-Za-z][A-Za-z0-9\-\_]+"),
]];
/// The security group in the path.
pub const GROUP: &[Param] = &[text("group").req().min_len(2).max_len(18).re(r"[A-Za-z][A-Za-z0-9\-\_]+")];
/// The position of a rule.
pub const RULE_POS: &[Param] = &[int("pos").min(0)];
/// Digest of the rule list.
pub const RULE_DIGEST: &[Param] = &[text("digest").max_len(64)];
/// What a rule says (fact C12), besides its required part.
pub const RULE: &[Param] = &[
    text("comment"),
    text("dest").max_len(512).of("pve-fw-addr-spec"),
    text("digest").max_len(64),
    text("dport").of("pve-fw-dport-spec"),
    int("enable").min(0),
    text("icmp-type").of("pve-fw-icmp-type-spec"),
    text("iface").min_len(2).max_len(20).of("pve-iface"),
    one_of("log", "emerg alert crit err warning notice info debug nolog"),
    text("macro").max_len(128),
    text("proto").of("pve-fw-protocol-spec"),
    text("source").max_len(512).of("pve-fw-addr-spec"),
    text("sport").of("pve-fw-sport-spec"),
];
/// The required part of a new rule.
pub const RULE_NEW: &[Param] = &[
    text("action").req().min_len(2).max_len(20).re(r"[A-Za-z][A-Za-z0-9\-\_]+"),
    one_of("type", "in out forward group").req(),
];
/// The same part of a change, optional there.
pub const RULE_CHANGE: &[Param] = &[
    text("action").min_len(2).max_len(20).re(r"[A-Za-z][A-Za-z0-9\-\_]+"),
    text("delete").of("pve-configid-list"),
    int("moveto").min(0),
    one_of("type", "in out forward group"),
];

/// Filter of network interfaces.
pub const NETWORK: &[Param] = &[one_of(
    "type",
    "bridge bond eth alias vlan fabric OVSBridge OVSBond OVSPort OVSIntPort vnet any_bridge any_local_bridge include_sdn",
)];
/// Filter of replication states.
pub const REPLICATION: &[Param] = &[int("guest").min(100).max(999_999_999).of("pve-vmid")];
/// Filter of a node's tasks (fact U6).
pub const TASKS: &[Param] = &[
    flag("errors"),
    int("limit").min(0),
    int("since"),
    one_of("source", "archive active all"),
    int("start").min(0),
    text("statusfilter").of("pve-task-status-type-list"),
    text("typefilter"),
    int("until"),
    text("userfilter"),
    int("vmid").min(100).max(999_999_999).of("pve-vmid"),
];
/// Window of a task log (fact U5).
pub const TASK_LOG: &[Param] = &[flag("download"), int("limit").min(0), int("start").min(0)];

/// Filter of a node's storages.
pub const STORAGES: &[Param] = &[
    text("content").of("pve-storage-content-list"),
    flag("enabled"),
    flag("format"),
    text("storage").of("pve-storage-id"),
    text("target").of("pve-node"),
];
/// Filter of a storage's volumes (fact S7).
pub const CONTENT: &[Param] =
    &[text("content").of("pve-storage-content"), int("vmid").min(100).max(999_999_999).of("pve-vmid")];
/// How long a removal may be waited for (fact S9).
pub const VOLUME_DELETE: &[Param] = &[int("delay").min(1).max(30)];
/// A download (fact S4).
pub const DOWNLOAD: &[Param] = &[
    text("checksum").needs("checksum-algorithm"),
    one_of("checksum-algorithm", "md5 sha1 sha224 sha256 sha384 sha512").needs("checksum"),
    text("compression"),
    one_of("content", "iso vztmpl import").req().of("pve-storage-content"),
    text("filename").req().max_len(255),
    text("url").req().re("https?://.*"),
    flag("verify-certificates"),
];
/// A look at a download before it is made (fact S12).
pub const URL_METADATA: &[Param] = &[text("url").req().re("https?://.*"), flag("verify-certificates")];
/// Filter of the configured storages.
pub const STORAGE_LIST: Table =
    &[&[one_of("type", "btrfs cephfs cifs dir esxi iscsi iscsidirect lvm lvmthin nfs pbs rbd zfs zfspool")]];
/// The storage in the path.
pub const STORAGE_ONE: Table = &[&[text("storage").req().of("pve-storage-id")]];

/// Filter of pools.
pub const POOL_LIST: Table =
    &[&[text("poolid").of("pve-poolid"), one_of("type", "qemu lxc storage").needs("poolid")]];
/// One pool.
pub const POOL: &[Param] = &[text("poolid").req().of("pve-poolid")];
/// Filter of a pool's members.
pub const POOL_TYPE: &[Param] = &[one_of("type", "qemu lxc storage")];
/// Comment of a pool.
pub const POOL_COMMENT: &[Param] = &[text("comment")];
/// Members of a pool (fact C10).
pub const POOL_MEMBERS: &[Param] = &[
    flag("allow-move"),
    flag("delete"),
    text("storage").of("pve-storage-id-list"),
    text("vms").of("pve-vmid-list"),
];

/// Whether a guest list shows everything.
pub const FULL: &[Param] = &[flag("full")];
/// Which view of a config is asked for (fact Q25).
pub const CONFIG_GET: &[Param] = &[flag("current"), text("snapshot").max_len(40).of("pve-configid")];
/// Removal of a guest (fact Q46).
pub const DELETE: &[Param] = &[flag("destroy-unreferenced-disks"), flag("purge")];
/// Ignoring a lock, for root@pam.
pub const SKIPLOCK: &[Param] = &[flag("skiplock")];
/// Stopping a container before its removal (fact L20).
pub const FORCE: &[Param] = &[flag("force")];
/// Start of a VM.
pub const VM_START: &[Param] = &[
    text("force-cpu"),
    text("machine").props(vm::MACHINE),
    text("migratedfrom").of("pve-node"),
    text("migration_network").of("CIDR"),
    one_of("migration_type", "secure insecure"),
    text("nets-host-mtu").re(r"net\d+=\d+(,net\d+=\d+)*"),
    flag("skiplock"),
    text("stateuri").max_len(128),
    text("targetstorage").of("storage-pair-list"),
    int("timeout").min(0),
    flag("with-conntrack-state"),
];
/// Stop of a VM.
pub const VM_STOP: &[Param] = &[
    flag("keepActive"),
    text("migratedfrom").of("pve-node"),
    flag("overrule-shutdown"),
    flag("skiplock"),
    int("timeout").min(0),
];
/// Shutdown of a VM.
pub const VM_SHUTDOWN: &[Param] =
    &[flag("forceStop"), flag("keepActive"), flag("skiplock"), int("timeout").min(0)];
/// Reboot of a guest.
pub const REBOOT: &[Param] = &[int("timeout").min(0)];
/// Suspend of a VM.
pub const VM_SUSPEND: &[Param] =
    &[flag("skiplock"), text("statestorage").needs("todisk").of("pve-storage-id"), flag("todisk")];
/// Resume of a VM.
pub const VM_RESUME: &[Param] = &[flag("nocheck"), flag("skiplock")];
/// Start of a container.
pub const CT_START: &[Param] = &[flag("debug"), flag("skiplock")];
/// Stop of a container.
pub const CT_STOP: &[Param] = &[flag("overrule-shutdown"), flag("skiplock")];
/// Shutdown of a container.
pub const CT_SHUTDOWN: &[Param] = &[flag("forceStop"), int("timeout").min(0)];

/// Resize (facts Q42, L19).
pub const RESIZE: &[Param] = &[text("digest").max_len(40), text("size").req().re(r"\+?\d+(\.\d+)?[KMGT]?")];
/// The disk of a VM to resize.
pub const VM_DISK: &[Param] = &[one_of("disk", drive::SLOTS).req()];
/// The disk of a VM to make a base of.
pub const VM_TEMPLATE: &[Param] = &[one_of("disk", drive::SLOTS)];
/// The volume of a container to resize: `rootfs` or `mp0`..`mp255`.
pub const CT_DISK: &[Param] = &[text("disk").req().re(r"rootfs|mp(\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])")];

/// Clone, common part (facts Q38, L18).
pub const CLONE: &[Param] = &[
    text("description"),
    flag("full"),
    int("newid").req().min(100).max(999_999_999).of("pve-vmid"),
    text("pool").of("pve-poolid"),
    text("snapname").max_len(40).of("pve-configid"),
    text("storage").of("pve-storage-id"),
    text("target").of("pve-node"),
];
/// Clone of a VM.
pub const VM_CLONE: &[Param] =
    &[int("bwlimit").min(0), one_of("format", "raw qcow2 vmdk"), text("name").of("dns-name")];
/// Clone of a container.
pub const CT_CLONE: &[Param] = &[num("bwlimit").min(0), text("hostname").of("dns-name")];
