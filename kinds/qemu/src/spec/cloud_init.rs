//! What cloud-init tells the guest.

use proxops_kind::{Scalar, Words, choice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
