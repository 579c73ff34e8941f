//! The manifest's `spec` of a VM and of a TemplateVM.

use proxops_kind::{Scalar, Size, Words, choice};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::collections::BTreeMap;

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A virtual machine.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VmSpec {
    /// Node of the cluster on which it is created.
    pub node: String,
    /// Number of the guest, unique in the whole cluster.
    #[schemars(range(min = 100, max = 999_999_999), extend("x-pve-key" = "vmid"))]
    pub vmid: u32,
    /// Wanted power state. A TemplateVM is always stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "started"))]
    pub state: Option<State>,
    /// Name in PVE; the manifest's name if left out. "" leaves the name alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), extend("x-pve-key" = "name"))]
    pub pve_name: Option<String>,
    /// Notes of the guest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192), extend("x-pve-key" = "description"))]
    pub pve_description: Option<String>,
    /// Exactly these tags, plus the ownership tag. Left out: live tags stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "tags"))]
    pub tags: Option<Vec<String>>,
    /// Memory, in whole MiB.
    #[schemars(extend("x-pve-key" = "memory", "x-unit" = "MiB"))]
    pub memory: Size,
    /// Least memory when the host is short of it; 0 switches the balloon device off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "balloon", "x-unit" = "MiB"))]
    pub balloon: Option<Mebibytes>,
    /// Weight when memory is ballooned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 50_000), extend("x-pve-key" = "shares"))]
    pub shares: Option<u32>,
    /// Page size in MiB of memory in huge pages: any, 2 or 1024. Needs root@pam.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "hugepages"))]
    pub hugepages: Option<Scalar>,
    /// Keep huge pages after the guest stops. Needs root@pam.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "keephugepages"))]
    pub keep_hugepages: Option<bool>,
    /// Processor.
    pub cpu: Cpu,
    /// Name of the TemplateVM that it is made from, as a full clone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false))]
    pub clone: Option<String>,
    /// Storage of the clone's volumes; left out, each stays on its template's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false, "x-pve-key" = "storage"))]
    pub clone_storage: Option<String>,
    /// Image format of the clone's volumes, on storages with files.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false, "x-pve-key" = "format"))]
    pub clone_format: Option<Format>,
    /// Disks. With `clone` only slots of the template, with a `size` to grow to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Disk>,
    /// Network cards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<Nic>,
    /// Firmware, display, drives and devices.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hardware: Hardware,
    /// Start order, guest agent and other switches.
    #[serde(default, skip_serializing_if = "is_default")]
    pub options: Options,
    /// What cloud-init tells the guest.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cloud_init_data: CloudInitData,
    /// Operating system, as PVE names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "ostype"))]
    pub os_type: Option<OsType>,
    /// Pool that a new guest joins; not compared later.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false, "x-pve-key" = "pool"))]
    pub pool: Option<String>,
    /// PVE keys that no other field covers, verbatim.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Scalar>,
}

choice! {
    /// Wanted power state.
    State { Started = "started", Stopped = "stopped" }
}
choice! {
    /// Image format.
    Format { Raw = "raw", Qcow2 = "qcow2", Vmdk = "vmdk" }
}
choice! {
    /// Operating system, as PVE names it.
    OsType {
        Other = "other", Wxp = "wxp", W2k = "w2k", W2k3 = "w2k3", W2k8 = "w2k8", Wvista = "wvista",
        Win7 = "win7", Win8 = "win8", Win10 = "win10", Win11 = "win11", L24 = "l24", L26 = "l26",
        Solaris = "solaris",
    }
}

/// Whole MiB: a size such as 512MiB, or the number of MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mebibytes(
    /// MiB.
    pub u64,
);

impl<'de> Deserialize<'de> for Mebibytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Scalar::deserialize(deserializer)?;
        if let Ok(mib) = text.as_str().parse() {
            return Ok(Self(mib));
        }
        let size = Size::parse(text.as_str()).map_err(de::Error::custom)?;
        size.mib()
            .map(Self)
            .ok_or_else(|| de::Error::custom(format!("must be whole MiB, which {size} is not")))
    }
}

impl Serialize for Mebibytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 == 0 { serializer.serialize_u64(0) } else { Size::from_mib(self.0).serialize(serializer) }
    }
}

impl JsonSchema for Mebibytes {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Mebibytes".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"], "minimum": 0, "x-expect": "a size such as 512MiB, or 0" })
    }
}

/// Processor.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cpu {
    /// Model, such as host or x86-64-v2-AES.
    #[serde(rename = "type")]
    #[schemars(extend("x-pve-key" = "cpu", "x-placeholder" = "host"))]
    pub model: String,
    /// Cores of each socket.
    #[schemars(range(min = 1), extend("x-pve-key" = "cores"))]
    pub cores: u32,
    /// Sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("x-pve-key" = "sockets"))]
    pub sockets: Option<u32>,
    /// Virtual processors plugged in at start; at most cores times sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("x-pve-key" = "vcpus"))]
    pub vcpus: Option<u32>,
    /// Most processor time, in processors; 0 = no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 128), extend("x-pve-key" = "cpulimit"))]
    pub limit: Option<f64>,
    /// Weight against other guests.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 262_144), extend("x-pve-key" = "cpuunits"))]
    pub units: Option<u32>,
    /// Host processors that it may use, such as 0,2-5. Needs root@pam.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "affinity"))]
    pub affinity: Option<Scalar>,
    /// Show the guest memory per socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "numa"))]
    pub numa: Option<bool>,
    /// Processor flags to add and take away, such as +aes and -pcid.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "cpu"))]
    pub flags: Option<Words>,
    /// Hide from the guest that it is virtual.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "cpu"))]
    pub hidden: Option<bool>,
    /// Let the guest run virtual machines itself (the flag nested-virt).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "cpu"))]
    pub nested_virt: Option<bool>,
}

/// One disk: a new one (`storage` and `size`), one seeded from an image, or an existing `volume`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Disk {
    /// Slot, such as scsi0, virtio1, sata0 or ide1. Left out: scsi0, scsi1, ... in list order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Storage of the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// Size. With `image` or `clone`: at least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "bytes"))]
    pub size: Option<Size>,
    /// Name of the DiskImage whose content it gets when it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false))]
    pub image: Option<String>,
    /// Existing volume or path, kept as it is. Paths need root@pam.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// SCSI controller; one value per VM.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "scsihw"))]
    pub controller: Option<Controller>,
    /// Image format of a new volume, on storages with files.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false))]
    pub format: Option<Format>,
    /// Write cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// Pass discarded blocks on to the storage: on or ignore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<Discard>,
    /// Show it as a solid-state disk; not on virtio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssd: Option<bool>,
    /// How the host does its I/O.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aio: Option<Aio>,
    /// A thread of its own; scsi and virtio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iothread: Option<bool>,
    /// Part of backups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<bool>,
    /// Part of replication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicate: Option<bool>,
    /// The guest can't write; scsi and virtio.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "ro"))]
    pub read_only: Option<bool>,
    /// Serial number that the guest sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<Scalar>,
    /// Speed limits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// Allow growing the live volume to `size`.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("x-compared" = false))]
    pub grow: bool,
}

choice! {
    /// SCSI controller.
    Controller {
        Lsi = "lsi", Lsi53c810 = "lsi53c810", VirtioScsiPci = "virtio-scsi-pci",
        VirtioScsiSingle = "virtio-scsi-single", Megasas = "megasas", Pvscsi = "pvscsi",
    }
}
choice! {
    /// Write cache of a disk.
    Cache {
        Off = "none", Writethrough = "writethrough", Writeback = "writeback", Unsafe = "unsafe",
        Directsync = "directsync",
    }
}
choice! {
    /// How the host does a disk's I/O.
    Aio { Native = "native", Threads = "threads", IoUring = "io_uring" }
}

/// Whether discarded blocks are passed on: `on` or `ignore`; true and false mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discard(
    /// Passed on.
    pub bool,
);

impl Discard {
    /// PVE's word.
    pub fn as_str(self) -> &'static str {
        if self.0 { "on" } else { "ignore" }
    }
}

impl<'de> Deserialize<'de> for Discard {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Scalar::deserialize(deserializer)?.as_str() {
            "on" | "1" => Ok(Self(true)),
            "ignore" | "off" | "0" => Ok(Self(false)),
            other => Err(de::Error::custom(format!("must be on or ignore, not {other:?}"))),
        }
    }
}

impl Serialize for Discard {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl JsonSchema for Discard {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Discard".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": ["on", "ignore", "off", true, false], "x-expect": "on or ignore" })
    }
}

/// Speed limits of a disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limits {
    /// Reads, MB a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("x-pve-key" = "mbps_rd", "x-unit" = "MB/s"))]
    pub mbps_rd: Option<f64>,
    /// Writes, MB a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("x-pve-key" = "mbps_wr", "x-unit" = "MB/s"))]
    pub mbps_wr: Option<f64>,
    /// Reads in a burst, MB a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("x-pve-key" = "mbps_rd_max", "x-unit" = "MB/s"))]
    pub mbps_rd_max: Option<f64>,
    /// Writes in a burst, MB a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("x-pve-key" = "mbps_wr_max", "x-unit" = "MB/s"))]
    pub mbps_wr_max: Option<f64>,
    /// Reads, operations a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "iops_rd", "x-unit" = "operations/s"))]
    pub iops_rd: Option<u32>,
    /// Writes, operations a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "iops_wr", "x-unit" = "operations/s"))]
    pub iops_wr: Option<u32>,
    /// Reads in a burst, operations a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "iops_rd_max", "x-unit" = "operations/s"))]
    pub iops_rd_max: Option<u32>,
    /// Writes in a burst, operations a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "iops_wr_max", "x-unit" = "operations/s"))]
    pub iops_wr_max: Option<u32>,
}

/// One network card.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Nic {
    /// Slot, such as net0. Left out: net0, net1, ... in list order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// Card that the guest sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "virtio"))]
    pub model: Option<NicModel>,
    /// Bridge that it is plugged into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridge: Option<String>,
    /// Hardware address; left out, PVE's random one is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "macaddr"))]
    pub mac: Option<String>,
    /// VLAN number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4094), extend("x-pve-key" = "tag"))]
    pub vlan: Option<u32>,
    /// VLAN numbers let through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trunks: Option<Words>,
    /// Speed limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("x-pve-key" = "rate", "x-unit" = "MB/s"))]
    pub rate_limit: Option<f64>,
    /// Guarded by PVE's firewall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firewall: Option<bool>,
    /// Cable pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "link_down"))]
    pub link_down: Option<bool>,
    /// Largest packet; 1 = the bridge's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_520), extend("x-unit" = "bytes"))]
    pub mtu: Option<u32>,
    /// Packet queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 64))]
    pub queues: Option<u32>,
    /// Remove the card in `slot`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub absent: bool,
}

choice! {
    /// Network card that the guest sees.
    NicModel {
        Virtio = "virtio", E1000 = "e1000", E1000Em40 = "e1000-82540em", E1000Gc44 = "e1000-82544gc",
        E1000Em45 = "e1000-82545em", E1000e = "e1000e", I82551 = "i82551", I82557b = "i82557b",
        I82559er = "i82559er", Ne2kIsa = "ne2k_isa", Ne2kPci = "ne2k_pci", Pcnet = "pcnet",
        Rtl8139 = "rtl8139", Vmxnet3 = "vmxnet3",
    }
}

/// Firmware, display, drives and devices.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Hardware {
    /// Chip set: i440fx, q35, or a versioned machine type.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "machine"))]
    pub machine: Option<String>,
    /// Firmware.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "bios"))]
    pub bios: Option<Bios>,
    /// Graphics card: a type such as std or serial0, or a map.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "vga"))]
    pub display: Option<Display>,
    /// Where UEFI firmware keeps its variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "efidisk0"))]
    pub efi_disk: Option<EfiDisk>,
    /// Trusted platform module.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "tpmstate0"))]
    pub tpm: Option<Tpm>,
    /// CD drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cdrom: Option<CdRom>,
    /// Drive that carries cloud-init's data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud_init: Option<CloudInit>,
    /// First serial port: socket, or a device of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "serial0"))]
    pub serial0: Option<String>,
    /// Second serial port.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "serial1"))]
    pub serial1: Option<String>,
    /// Third serial port.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "serial2"))]
    pub serial2: Option<String>,
    /// Fourth serial port.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "serial3"))]
    pub serial3: Option<String>,
    /// PCI devices of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pci_devices: Vec<PciDevice>,
    /// USB devices of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usb_devices: Vec<UsbDevice>,
    /// Random numbers from the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "rng0"))]
    pub rng: Option<Rng>,
    /// Watchdog device.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "watchdog"))]
    pub watchdog: Option<Watchdog>,
    /// Sound card.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "audio0"))]
    pub audio: Option<Audio>,
    /// Folders of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub virtiofs: Vec<VirtioFs>,
    /// Old place of `cpu.sockets`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("x-pve-key" = "sockets", "deprecated" = true))]
    pub sockets: Option<u32>,
    /// Old place of `cpu.numa`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "numa", "deprecated" = true))]
    pub numa: Option<bool>,
}

choice! {
    /// Firmware.
    Bios { Seabios = "seabios", Ovmf = "ovmf" }
}
choice! {
    /// Graphics card.
    DisplayType {
        Std = "std", Cirrus = "cirrus", Qxl = "qxl", Qxl2 = "qxl2", Qxl3 = "qxl3", Qxl4 = "qxl4",
        Off = "none", Serial0 = "serial0", Serial1 = "serial1", Serial2 = "serial2", Serial3 = "serial3",
        Virtio = "virtio", VirtioGl = "virtio-gl", Vmware = "vmware",
    }
}

/// Graphics card: a type, or a map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Display {
    /// The type alone.
    Type(DisplayType),
    /// With details.
    Full(DisplayFull),
}

/// Graphics card.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DisplayFull {
    /// Type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<DisplayType>,
    /// Its memory, MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "MiB"))]
    pub memory: Option<Mebibytes>,
    /// Shared clipboard: vnc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clipboard: Option<Clipboard>,
}

choice! {
    /// Shared clipboard.
    Clipboard { Vnc = "vnc" }
}

/// Where UEFI firmware keeps its variables.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EfiDisk {
    /// Storage.
    pub storage: String,
    /// Size of the firmware image; 4m for Secure Boot.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "efitype"))]
    pub kind: Option<EfiType>,
    /// Old name of `type`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "efitype", "deprecated" = true))]
    pub template: Option<EfiType>,
    /// Accepted and ignored: PVE decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-compared" = false))]
    pub size: Option<Size>,
    /// Secure Boot keys enrolled when the volume is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "pre-enrolled-keys"))]
    pub secure_boot: Option<Switch>,
}

choice! {
    /// Size of the firmware image.
    EfiType { Small = "2m", Large = "4m" }
}
choice! {
    /// enabled or disabled.
    Switch { Enabled = "enabled", Disabled = "disabled" }
}

/// Trusted platform module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tpm {
    /// Storage; left out, the efi-disk's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// Version; fixed once it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<TpmVersion>,
}

choice! {
    /// Version of the trusted platform module.
    TpmVersion { V20 = "v2.0", V12 = "v1.2" }
}

/// CD drive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CdRom {
    /// Name of an ISO, or none for an empty drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iso: Option<String>,
    /// In place of `iso`: a volume id such as local:iso/x.iso, or cdrom for the host's drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<String>,
    /// Slot; ide2, or ide3 where cloud-init has ide2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
}

/// Drive that carries cloud-init's data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CloudInit {
    /// Whether there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub enabled: Option<bool>,
    /// Its storage, which must carry images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// Slot, on ide, sata or scsi.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ide2"))]
    pub slot: Option<String>,
}

impl CloudInit {
    /// Whether the manifest wants one.
    pub fn wanted(&self) -> bool {
        self.enabled != Some(false)
    }
    /// The slot, or the default.
    pub fn slot(&self) -> &str {
        self.slot.as_deref().unwrap_or("ide2")
    }
}

/// PCI device of the host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PciDevice {
    /// Slot, such as hostpci0. Left out: hostpci0, hostpci1, ... in list order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// Address on the host, such as 0000:01:00.0. Needs root@pam.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "host"))]
    pub device: Option<String>,
    /// Name of a resource mapping of the datacenter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping: Option<String>,
    /// Show it on PCI Express; q35 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie: Option<bool>,
    /// Make it the guest's main graphics card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x_vga: Option<bool>,
    /// Show its firmware to the guest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "rombar"))]
    pub rom_bar: Option<bool>,
    /// Type of mediated device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mdev: Option<String>,
}

/// USB device of the host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UsbDevice {
    /// Slot, such as usb0. Left out: usb0, usb1, ... in list order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// Vendor and product (1234:abcd), port (1-2), or spice. All but spice need root@pam.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Name of a resource mapping of the datacenter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping: Option<String>,
    /// USB 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usb3: Option<bool>,
}

/// Random numbers from the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rng {
    /// Device of the host.
    pub source: RngSource,
    /// Most bytes in a period.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "max_bytes"))]
    pub max_bytes: Option<u32>,
    /// Length of a period.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "ms"))]
    pub period: Option<u32>,
}

choice! {
    /// Source of random numbers.
    RngSource { Urandom = "/dev/urandom", Random = "/dev/random", Hwrng = "/dev/hwrng" }
}

/// Watchdog device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Watchdog {
    /// Model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "i6300esb"))]
    pub model: Option<WatchdogModel>,
    /// What happens when the guest does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<WatchdogAction>,
}

choice! {
    /// Watchdog model.
    WatchdogModel { I6300esb = "i6300esb", Ib700 = "ib700" }
}
choice! {
    /// What a watchdog does.
    WatchdogAction {
        Reset = "reset", Shutdown = "shutdown", Poweroff = "poweroff", Pause = "pause", Debug = "debug",
        Nothing = "none",
    }
}

/// Sound card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Audio {
    /// Card that the guest sees.
    pub device: AudioDevice,
    /// Where the sound goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<AudioDriver>,
}

choice! {
    /// Sound card.
    AudioDevice { Ich9 = "ich9-intel-hda", IntelHda = "intel-hda", Ac97 = "AC97" }
}
choice! {
    /// Where sound goes.
    AudioDriver { Spice = "spice", Nowhere = "none" }
}

/// Folder of the host, by directory mapping.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VirtioFs {
    /// Slot, such as virtiofs0. Left out: virtiofs0, virtiofs1, ... in list order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// Directory mapping of the datacenter.
    pub dirid: String,
    /// Cache policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<VirtioFsCache>,
    /// Honour the guest's wish to bypass caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct_io: Option<bool>,
    /// Pass access control lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expose_acl: Option<bool>,
    /// Pass extended attributes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expose_xattr: Option<bool>,
}

choice! {
    /// Cache policy of a shared folder.
    VirtioFsCache { Auto = "auto", Always = "always", Metadata = "metadata", Never = "never" }
}

/// Start order, guest agent and other switches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Options {
    /// Start with the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "onboot"))]
    pub onboot: Option<bool>,
    /// Order and delays at start of the node: a number, `order=1,up=30,down=60`, or a map.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "startup"))]
    pub startup: Option<Startup>,
    /// PVE refuses to remove the guest and its disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "protection"))]
    pub protection: Option<bool>,
    /// Talk to the agent in the guest: true, false, or a map.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "agent"))]
    pub agent: Option<Agent>,
    /// Advanced configuration and power interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "acpi"))]
    pub acpi: Option<bool>,
    /// USB tablet, for an exact mouse.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "tablet"))]
    pub tablet: Option<bool>,
    /// Hardware virtualisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "kvm"))]
    pub kvm: Option<bool>,
    /// What may be plugged while it runs: network, disk, usb, memory, cpu, cloudinit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "hotplug"))]
    pub hotplug: Option<Words>,
    /// Boot devices, first one first: a list, or `scsi0;net0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "boot"))]
    pub boot_order: Option<Words>,
    /// The clock shows local time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "localtime"))]
    pub localtime: Option<bool>,
    /// Keyboard layout of the console.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "keyboard"))]
    pub keyboard: Option<Keyboard>,
    /// Script that PVE runs at start and stop, a snippets volume. Needs root@pam.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "hookscript"))]
    pub hookscript: Option<String>,
    /// Time drift fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "tdf"))]
    pub tdf: Option<bool>,
    /// Old place of `cpu.hidden`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "cpu", "deprecated" = true))]
    pub hidden: Option<bool>,
    /// Old place of `cpu.nested-virt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "cpu", "deprecated" = true))]
    pub nested_virt: Option<bool>,
}

choice! {
    /// Keyboard layout.
    Keyboard {
        De = "de", DeCh = "de-ch", Da = "da", EnGb = "en-gb", EnUs = "en-us", Es = "es", Fi = "fi", Fr = "fr",
        FrBe = "fr-be", FrCa = "fr-ca", FrCh = "fr-ch", Hu = "hu", Is = "is", It = "it", Ja = "ja", Lt = "lt",
        Mk = "mk", Nl = "nl", No = "no", Pl = "pl", Pt = "pt", PtBr = "pt-br", Sv = "sv", Sl = "sl", Tr = "tr",
    }
}

/// Start order: PVE's text, or a map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Startup {
    /// PVE's text, or the order alone.
    Text(Scalar),
    /// In parts.
    Full(StartupFull),
}

/// Start order in parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StartupFull {
    /// Place in the order; lower starts first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<u32>,
    /// Wait after its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "s"))]
    pub up: Option<u32>,
    /// Wait for its shutdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "s"))]
    pub down: Option<u32>,
}

/// Guest agent: on, off, or a map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Agent {
    /// On or off.
    Switch(bool),
    /// With details.
    Full(AgentFull),
}

/// Guest agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AgentFull {
    /// On or off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub enabled: Option<bool>,
    /// Kind of channel.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<AgentType>,
    /// Trim file systems after a disk was moved or cloned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "fstrim_cloned_disks"))]
    pub fstrim: Option<bool>,
    /// Freeze file systems for a backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "freeze-fs"))]
    pub freeze_fs: Option<bool>,
}

choice! {
    /// Channel of the guest agent.
    AgentType { Virtio = "virtio", Isa = "isa" }
}

/// What cloud-init tells the guest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CloudInitData {
    /// User.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "ciuser"))]
    pub ci_user: Option<String>,
    /// Name of the password in the secrets document, `cloud-init.passwords.<name>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "cipassword", "x-sensitive" = true))]
    pub ci_password_ref: Option<String>,
    /// Public SSH keys, or exactly "*" to keep those that PVE has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "sshkeys"))]
    pub ssh_keys: Option<Vec<String>>,
    /// Names of SSH keys in the secrets document, `cloud-init.ssh-keys.<name>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "sshkeys"))]
    pub ssh_key_refs: Option<Vec<String>>,
    /// Name servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "nameserver"))]
    pub nameservers: Option<Words>,
    /// Search domains.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "searchdomain"))]
    pub search_domains: Option<Words>,
    /// Addresses, one entry a network card.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipconfigs: Vec<IpConfig>,
    /// Upgrade packages at first boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "ciupgrade"))]
    pub upgrade: Option<bool>,
    /// Data source.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "citype"))]
    pub kind: Option<CiType>,
    /// Own snippets in place of generated data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "cicustom"))]
    pub custom: Option<Custom>,
}

choice! {
    /// Data source of cloud-init.
    CiType { NoCloud = "nocloud", ConfigDrive2 = "configdrive2", OpenNebula = "opennebula" }
}

/// Address of one network card.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct IpConfig {
    /// Network card: 0 or net0. Left out: 0, 1, ... in list order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic: Option<Scalar>,
    /// IPv4 address with prefix length, or dhcp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// IPv4 gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "gw"))]
    pub gateway: Option<String>,
    /// IPv6 address with prefix length, dhcp or auto.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip6: Option<String>,
    /// IPv6 gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "gw6"))]
    pub gateway6: Option<String>,
}

/// Snippets volumes in place of generated cloud-init data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Custom {
    /// User data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Meta data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<String>,
    /// Network data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Vendor data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
}
