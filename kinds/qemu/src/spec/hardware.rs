//! Firmware, display, CD and cloud-init drives.

use super::{Audio, Mebibytes, PciDevice, Rng, UsbDevice, VirtioFs, Watchdog};
use proxops_kind::{Size, choice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
