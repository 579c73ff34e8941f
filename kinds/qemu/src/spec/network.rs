//! Network cards.

use super::is_default;
use proxops_kind::{Words, choice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
