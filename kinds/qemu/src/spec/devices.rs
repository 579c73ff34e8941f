//! Devices of the host and the smaller devices of a guest.

use proxops_kind::choice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
