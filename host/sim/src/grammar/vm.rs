//! Options of a VM: what create and both config writes accept, and their property strings.

use super::{Param, Table, alias, drive, flag, int, model, num, one_of, text};

/// Options that the config of a VM may hold.
pub const OPTIONS: &[Param] = &[
    flag("acpi"),
    text("affinity").of("pve-cpuset"),
    text("agent").props(AGENT),
    flag("allow-ksm"),
    text("amd-sev").props(SEV),
    one_of("arch", "x86_64 aarch64"),
    text("args"),
    text("audio0").props(AUDIO),
    flag("autostart"),
    int("balloon").min(0),
    one_of("bios", "seabios ovmf"),
    text("boot").props(BOOT),
    text("bootdisk").re(r"(ide|sata|scsi|virtio)\d+").of("pve-qm-bootdisk"),
    text("cdrom").props(drive::CDROM),
    text("cicustom").props(CICUSTOM),
    text("cipassword"),
    one_of("citype", "configdrive2 nocloud opennebula"),
    flag("ciupgrade"),
    text("ciuser"),
    int("cores").min(1),
    text("cpu").props(CPU),
    num("cpulimit").min(0).max(128),
    int("cpuunits").min(1).max(262144),
    text("description").max_len(8192),
    text("efidisk0").props(drive::EFIDISK),
    flag("freeze"),
    text("hookscript").of("pve-volume-id"),
    text("hostpci").family(0, 15).props(HOSTPCI),
    text("hotplug").of("pve-hotplug-features"),
    one_of("hugepages", "any 2 1024"),
    text("ide").family(0, 3).props(drive::IDE),
    text("intel-tdx").props(TDX),
    text("ipconfig").family(0, 31).props(IPCONFIG),
    text("ivshmem").props(IVSHMEM),
    flag("keephugepages"),
    one_of(
        "keyboard",
        "de de-ch da en-gb en-us es fi fr fr-be fr-ca fr-ch hu is it ja lt mk nl no pl pt pt-br sv sl tr",
    ),
    flag("kvm"),
    flag("localtime"),
    one_of("lock", "backup clone create migrate rollback snapshot snapshot-delete suspending suspended"),
    text("machine").props(MACHINE),
    text("memory").props(MEMORY),
    num("migrate_downtime").min(0),
    int("migrate_speed").min(0),
    text("name").of("dns-name"),
    text("nameserver").of("address-list"),
    text("net").family(0, 31).props(NET),
    flag("numa"),
    text("numa").family(0, 7).props(NUMA),
    flag("onboot"),
    one_of("ostype", "other wxp w2k w2k3 w2k8 wvista win7 win8 win10 win11 l24 l26 solaris"),
    text("parallel").family(0, 2).re(r"/dev/parport\d+|/dev/usb/lp\d+"),
    flag("protection"),
    flag("reboot"),
    text("rng0").props(RNG),
    text("sata").family(0, 5).props(drive::SATA),
    text("scsi").family(0, 30).props(drive::SCSI),
    one_of("scsihw", "lsi lsi53c810 virtio-scsi-pci virtio-scsi-single megasas pvscsi"),
    text("searchdomain"),
    text("serial").family(0, 3).re("(/dev/[^,]+|socket)"),
    int("shares").min(0).max(50000),
    text("smbios1").max_len(512).props(SMBIOS),
    int("smp").min(1),
    int("sockets").min(1),
    text("spice_enhancements").props(SPICE),
    text("sshkeys").of("urlencoded"),
    text("startdate").re(r"(now|\d{4}-\d{1,2}-\d{1,2}(T\d{1,2}:\d{1,2}:\d{1,2})?)"),
    text("startup").of("pve-startup-order"),
    flag("tablet"),
    text("tags").of("pve-tag-list"),
    flag("tdf"),
    flag("template"),
    text("tpmstate0").props(drive::TPMSTATE),
    text("unused").family(0, 255).props(UNUSED),
    text("usb").family(0, 13).props(USB),
    int("vcpus").min(1),
    text("vga").props(VGA),
    text("virtio").family(0, 15).props(drive::VIRTIO),
    text("virtiofs").family(0, 9).props(VIRTIOFS),
    text("vmgenid").re("(?:[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}|[01])"),
    text("vmstatestorage").of("pve-storage-id"),
    text("watchdog").props(WATCHDOG),
];
/// [`OPTIONS`] as a table, for look-ups of one key.
pub const TABLE: Table = &[OPTIONS];

/// Further parameters of create.
pub const CREATE: &[Param] = &[
    text("archive").max_len(255),
    int("bwlimit").min(0),
    flag("force").needs("archive"),
    flag("ha-managed"),
    text("import-working-storage").of("pve-storage-id"),
    flag("live-restore"),
    text("pool").of("pve-poolid"),
    flag("start"),
    text("storage").of("pve-storage-id"),
    flag("unique").needs("archive"),
];
/// Further parameters of both config writes.
pub const CHANGE: &[Param] = &[
    text("delete").of("pve-configid-list"),
    text("digest").max_len(40),
    flag("force").needs("delete"),
    text("revert").of("pve-configid-list"),
    flag("skiplock"),
];
/// Further parameters of the config write that runs as a task.
pub const CHANGE_TASK: &[Param] =
    &[int("background_delay").min(1).max(30), text("import-working-storage").of("pve-storage-id")];

/// Guest agent (fact Q18).
pub const AGENT: Table = &[&[
    flag("enabled").req().bare(),
    flag("freeze-fs"),
    alias("freeze-fs-on-backup", "freeze-fs"),
    flag("fstrim_cloned_disks"),
    alias("guest-fsfreeze", "freeze-fs"),
    one_of("type", "virtio isa"),
]];

/// AMD memory encryption.
pub const SEV: Table = &[&[
    flag("allow-smt"),
    flag("kernel-hashes"),
    flag("no-debug"),
    flag("no-key-sharing"),
    one_of("type", "std es snp").req().bare().max_len(3),
]];

/// Audio device.
pub const AUDIO: Table =
    &[&[one_of("device", "ich9-intel-hda intel-hda AC97").req(), one_of("driver", "spice none")]];

/// Boot order (fact Q17).
pub const BOOT: Table =
    &[&[text("legacy").bare().re("[acdn]{1,4}"), text("order").of("pve-qm-bootdev-list")]];

/// Cloud-init snippets (fact Q21).
pub const CICUSTOM: Table = &[&[
    text("meta").of("pve-volume-id"),
    text("network").of("pve-volume-id"),
    text("user").of("pve-volume-id"),
    text("vendor").of("pve-volume-id"),
]];

/// CPU type and flags (fact Q14).
pub const CPU: Table = &[&[
    text("cputype").bare(),
    text("flags").re(r"(?:(?:([+-])([a-zA-Z0-9\-_\.]+))(;(?:([+-])([a-zA-Z0-9\-_\.]+)))*)"),
    int("guest-phys-bits").min(32).max(64),
    flag("hidden"),
    text("hv-vendor-id").re("(?:[a-zA-Z0-9]{1,12})"),
    int("level").min(0).max(4294967295),
    text("phys-bits").of("pve-phys-bits"),
    one_of("reported-model", CPU_MODELS),
]];

/// PCI passthrough (fact Q16).
pub const HOSTPCI: Table = &[&[
    text("device-id").re("(?:^0x[0-9a-fA-F]{4}$)"),
    one_of("driver", "vfio keep"),
    text("host").bare().re(r"(?:(?:(?:[a-f0-9]{4,}:)?[a-f0-9]{2}:[a-f0-9]{2}(?:\.[a-f0-9])?)(;(?:(?:[a-f0-9]{4,}:)?[a-f0-9]{2}:[a-f0-9]{2}(?:\.[a-f0-9])?))*)"),
    flag("legacy-igd"),
    text("mapping").of("pve-configid"),
    text("mdev").re(r"[^/\.:]+"),
    flag("pcie"),
    flag("rombar"),
    text("romfile").re("[^,;]+"),
    text("sub-device-id").re("(?:^0x[0-9a-fA-F]{4}$)"),
    text("sub-vendor-id").re("(?:^0x[0-9a-fA-F]{4}$)"),
    text("vendor-id").re("(?:^0x[0-9a-fA-F]{4}$)"),
    flag("x-vga"),
]];

/// Intel memory encryption.
pub const TDX: Table = &[&[
    flag("attestation").req(),
    one_of("type", "tdx").req().bare(),
    int("vsock-cid").min(2),
    int("vsock-port").min(0),
]];

/// Cloud-init addresses of one card (fact Q21).
pub const IPCONFIG: Table = &[&[
    text("gw").needs("ip").of("ipv4"),
    text("gw6").needs("ip6").of("ipv6"),
    text("ip").of("pve-ipv4-config"),
    text("ip6").of("pve-ipv6-config"),
]];

/// Shared memory device.
pub const IVSHMEM: Table = &[&[text("name").re(r"[a-zA-Z0-9\-]+"), int("size").req().min(1)]];

/// Machine type (fact Q18).
pub const MACHINE: Table = &[&[
    num("aw-bits").min(32).max(64),
    flag("enable-s3"),
    flag("enable-s4"),
    text("type").bare().max_len(40).re(r"(pc|pc(-i440fx)?-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|q35|pc-q35-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|virt(?:-\d+(\.\d+)+)?(\+pve\d+)?)"),
    one_of("viommu", "intel virtio"),
]];

/// Memory in MiB (fact Q18).
pub const MEMORY: Table = &[&[int("current").req().bare().min(16)]];

/// Network card (fact Q13).
pub const NET: Table = &[&[
    text("bridge").of("pve-bridge-id"),
    model("e1000"),
    model("e1000-82540em"),
    model("e1000-82544gc"),
    model("e1000-82545em"),
    model("e1000e"),
    flag("firewall"),
    model("i82551"),
    model("i82557b"),
    model("i82559er"),
    flag("link_down"),
    text("macaddr").of("mac-addr"),
    one_of("model", "e1000 e1000-82540em e1000-82544gc e1000-82545em e1000e i82551 i82557b i82559er ne2k_isa ne2k_pci pcnet rtl8139 virtio vmxnet3").req().bare(),
    int("mtu").min(1).max(65520),
    model("ne2k_isa"),
    model("ne2k_pci"),
    model("pcnet"),
    int("queues").min(0).max(64),
    num("rate").min(0),
    model("rtl8139"),
    int("tag").min(1).max(4094),
    text("trunks").re(r"(?:\d+(?:-\d+)?(?:;\d+(?:-\d+)?)*)"),
    model("virtio"),
    model("vmxnet3"),
]];

/// NUMA node.
pub const NUMA: Table = &[&[
    text("cpus").req().re(r"(?:\d+(?:-\d+)?(?:;\d+(?:-\d+)?)*)"),
    text("hostnodes").re(r"(?:\d+(?:-\d+)?(?:;\d+(?:-\d+)?)*)"),
    num("memory"),
    one_of("policy", "preferred bind interleave"),
]];

/// Random number source.
pub const RNG: Table = &[&[
    int("max_bytes"),
    int("period"),
    one_of("source", "/dev/urandom /dev/random /dev/hwrng").req().bare(),
]];

/// SMBIOS texts (fact Q18).
pub const SMBIOS: Table = &[&[
    flag("base64"),
    text("family").re(r"[A-Za-z0-9+\/]+={0,2}"),
    text("manufacturer").re(r"[A-Za-z0-9+\/]+={0,2}"),
    text("product").re(r"[A-Za-z0-9+\/]+={0,2}"),
    text("serial").re(r"[A-Za-z0-9+\/]+={0,2}"),
    text("sku").re(r"[A-Za-z0-9+\/]+={0,2}"),
    text("uuid").re("[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}"),
    text("version").re(r"[A-Za-z0-9+\/]+={0,2}"),
]];

/// SPICE extras.
pub const SPICE: Table = &[&[flag("foldersharing"), one_of("videostreaming", "off all filter")]];

/// A detached disk (fact Q33).
pub const UNUSED: Table = &[&[text("file").req().bare().of("pve-volume-id"), alias("volume", "file")]];

/// USB passthrough.
pub const USB: Table = &[&[
    text("host").bare().re(r"(?:(?:(?:(?:(0x)?([0-9A-Fa-f]{4}):(0x)?([0-9A-Fa-f]{4})))|(?:(?:(\d+)\-(\d+(\.\d+)*)))|[Ss][Pp][Ii][Cc][Ee]))"),
    text("mapping").of("pve-configid"),
    flag("usb3"),
]];

/// Display (fact Q18).
pub const VGA: Table = &[&[
    one_of("clipboard", "vnc"),
    int("memory").min(4).max(512),
    one_of(
        "type",
        "cirrus qxl qxl2 qxl3 qxl4 none serial0 serial1 serial2 serial3 std virtio virtio-gl vmware",
    )
    .bare(),
]];

/// Shared directory.
pub const VIRTIOFS: Table = &[&[
    one_of("cache", "auto always metadata never"),
    flag("direct-io"),
    text("dirid").req().bare().of("pve-configid"),
    flag("expose-acl"),
    flag("expose-xattr"),
]];

/// Watchdog device.
pub const WATCHDOG: Table = &[&[
    one_of("action", "reset shutdown poweroff pause debug none"),
    one_of("model", "i6300esb ib700").bare(),
]];

/// Built-in CPU models.
pub const CPU_MODELS: &str = "486 a64fx athlon Broadwell Broadwell-IBRS Broadwell-noTSX Broadwell-noTSX-IBRS \
    Cascadelake-Server Cascadelake-Server-noTSX Cascadelake-Server-v2 Cascadelake-Server-v4 \
    Cascadelake-Server-v5 ClearwaterForest Conroe Cooperlake Cooperlake-v2 core2duo coreduo \
    cortex-a35 cortex-a53 cortex-a55 cortex-a57 cortex-a710 cortex-a72 cortex-a76 EPYC EPYC-Genoa \
    EPYC-Genoa-v2 EPYC-IBPB EPYC-Milan EPYC-Milan-v2 EPYC-Milan-v3 EPYC-Rome EPYC-Rome-v2 \
    EPYC-Rome-v3 EPYC-Rome-v4 EPYC-Rome-v5 EPYC-Turin EPYC-v3 EPYC-v4 EPYC-v5 GraniteRapids \
    GraniteRapids-v2 GraniteRapids-v3 Haswell Haswell-IBRS Haswell-noTSX Haswell-noTSX-IBRS host \
    Icelake-Client Icelake-Client-noTSX Icelake-Server Icelake-Server-noTSX Icelake-Server-v3 \
    Icelake-Server-v4 Icelake-Server-v5 Icelake-Server-v6 Icelake-Server-v7 IvyBridge \
    IvyBridge-IBRS KnightsMill kvm32 kvm64 max Nehalem Nehalem-IBRS neoverse-n1 neoverse-n2 \
    neoverse-v1 Opteron_G1 Opteron_G2 Opteron_G3 Opteron_G4 Opteron_G5 Penryn pentium pentium2 \
    pentium3 phenom qemu32 qemu64 SandyBridge SandyBridge-IBRS SapphireRapids SapphireRapids-v2 \
    SapphireRapids-v3 SapphireRapids-v4 SierraForest SierraForest-v2 SierraForest-v3 Skylake-Client \
    Skylake-Client-IBRS Skylake-Client-noTSX-IBRS Skylake-Client-v4 Skylake-Server \
    Skylake-Server-IBRS Skylake-Server-noTSX-IBRS Skylake-Server-v4 Skylake-Server-v5 Westmere \
    Westmere-IBRS";

/// CPU flags that a VM may switch (fact Q14).
pub const CPU_FLAGS: &str = "aes amd-no-ssb amd-ssbd hv-evmcs hv-tlbflush ibpb md-clear nested-virt pcid pdpe1gb spec-ctrl ssbd \
    virt-ssbd";
