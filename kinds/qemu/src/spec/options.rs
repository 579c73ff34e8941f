//! Start order, guest agent and other switches.

use proxops_kind::{Scalar, Words, choice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
