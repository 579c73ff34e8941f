//! Disks and how they behave.

use super::{Format, is_default};
use proxops_kind::{Scalar, Size, choice};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;

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
