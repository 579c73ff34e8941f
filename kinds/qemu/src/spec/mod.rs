//! The manifest's `spec` of a VM and of a TemplateVM, by subject.

mod cloud_init;
mod devices;
mod disk;
mod hardware;
mod network;
mod options;

pub use cloud_init::*;
pub use devices::*;
pub use disk::*;
pub use hardware::*;
pub use network::*;
pub use options::*;

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
