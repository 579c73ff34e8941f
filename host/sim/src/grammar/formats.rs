//! The named formats of PVE's schema.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::check::matches;
use super::split_list;

const STORAGE: &str = r"(?i:[a-z][a-z0-9\-_.]*[a-z0-9])";
const DNS_NAME: &str =
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?\.)*[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?";

/// Checks a text against a format; a name ending in `-list` checks each item (fact T11).
///
/// # Errors
/// The text behind `invalid format - `.
pub fn check(name: &str, text: &str) -> Result<(), String> {
    if let Some(item) = name.strip_suffix("-list") {
        return split_list(text).try_for_each(|part| check(item, part));
    }
    if let Some(inner) = name.strip_suffix("-opt") {
        return if text.is_empty() { Ok(()) } else { check(inner, text) };
    }
    let (good, why) = match name {
        "pve-node" => (
            matches(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?", text),
            "value does not look like a valid node name".to_owned(),
        ),
        "pve-userid" => (
            matches(r"[^\s:/]+@[A-Za-z][A-Za-z0-9.\-_]+", text),
            format!("value '{text}' does not look like a valid user name"),
        ),
        "pve-vmid" => (matches("[1-9][0-9]{2,8}", text), "value does not look like a valid VM ID".to_owned()),
        "pve-storage-id" => (
            text.len() > 1 && matches(STORAGE, text),
            format!("storage ID '{text}' contains illegal characters"),
        ),
        "pve-configid" => {
            (matches("(?i:[a-z][a-z0-9_-]+)", text), format!("invalid configuration ID '{text}'"))
        }
        "pve-poolid" => (
            matches(r"[A-Za-z0-9.\-_]+(?:/[A-Za-z0-9.\-_]+){0,2}", text),
            format!("pool name '{text}' contains invalid characters"),
        ),
        "pve-realm" => {
            (matches(r"[A-Za-z][A-Za-z0-9.\-_]+", text), "value does not look like a valid realm".to_owned())
        }
        "pve-tag" => {
            (matches(r"(?i:[a-z0-9_][a-z0-9_\-+.]*)", text), format!("invalid characters in tag '{text}'"))
        }
        "pve-volume-id" => (is_volume_id(text), format!("unable to parse volume ID '{text}'")),
        "pve-volume-id-or-absolute-path" => {
            (text.starts_with('/') || is_volume_id(text), format!("unable to parse volume ID '{text}'"))
        }
        "pve-volume-id-or-qm-path" => (
            matches("none|cdrom|/.*", text) || is_volume_id(text),
            format!("unable to parse volume ID '{text}'"),
        ),
        "pve-storage-content" => (
            "images rootdir vztmpl iso backup snippets none import".split(' ').any(|c| c == text),
            format!("invalid content type '{text}'"),
        ),
        "pve-bridge-id" => (matches(r"[-_.\w\d]+", text), "invalid bridge identifier".to_owned()),
        "pve-iface" => (
            matches(r"(?i:[a-z][a-z0-9_]{1,20}(?:[:.]\d+)?)", text),
            format!("invalid network interface name '{text}'"),
        ),
        "mac-addr" => (
            matches("(?i:[a-f0-9][02468ace](?::[a-f0-9]{2}){5})", text),
            "value does not look like a valid unicast MAC address".to_owned(),
        ),
        "mac-prefix" => (
            matches("(?i:[a-f0-9][02468ace](?::[a-f0-9]{2}){0,2}(?::[a-f0-9]?)?)", text),
            "value is not a valid unicast MAC address prefix".to_owned(),
        ),
        "dns-name" => (matches(DNS_NAME, text), "value does not look like a valid DNS name".to_owned()),
        "ipv4" => (is_ipv4(text), "value does not look like a valid ipv4 address".to_owned()),
        "ipv6" => (is_ipv6(text), "value does not look like a valid ipv6 address".to_owned()),
        "ip" => (is_ipv4(text) || is_ipv6(text), "value does not look like a valid IP address".to_owned()),
        "lxc-ip-with-ll-iface" => (
            is_ipv4(text) || is_ipv6(text) || is_link_local(text),
            "value does not look like a valid IP address".to_owned(),
        ),
        "address" => (
            is_ipv4(text) || is_ipv6(text) || matches(DNS_NAME, text),
            "value does not look like a valid address".to_owned(),
        ),
        "CIDR" => {
            (is_cidr4(text) || is_cidr6(text), "value does not look like a valid CIDR network".to_owned())
        }
        "pve-ipv4-config" => (
            matches("dhcp|manual", text) || is_cidr4(text),
            "value does not look like a valid ipv4 network configuration".to_owned(),
        ),
        "pve-ipv6-config" => (
            matches("auto|dhcp|manual", text) || is_cidr6(text),
            "value does not look like a valid ipv6 network configuration".to_owned(),
        ),
        "disk-size" => (
            matches(r"\d+(?:\.\d+)?(?:[KMGT](?:iB)?)?", text),
            format!("value does not look like a valid disk size: {text}"),
        ),
        "urlencoded" => {
            (matches("[-%a-zA-Z0-9_.!~*'()]*", text), format!("invalid urlencoded string: {text}"))
        }
        "pve-startup-order" => (is_startup(text), "unable to parse startup options".to_owned()),
        "pve-cpuset" => {
            (matches(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*", text), "unable to parse cpuset".to_owned())
        }
        "pve-hotplug-features" => (is_hotplug(text), "unable to parse hotplug option".to_owned()),
        "pve-qm-bootdev" => (is_boot_device(text), format!("invalid boot device '{text}'")),
        "pve-qm-bootdisk" => (is_boot_disk(text), format!("invalid boot disk '{text}'")),
        "pve-phys-bits" => (
            matches("host|[89]|[1-5][0-9]|6[0-4]", text),
            "value must be an integer between 8 and 64 or 'host'".to_owned(),
        ),
        "pve-lxc-mp-string" => (is_mount_path(text), "invalid mount point".to_owned()),
        "pve-lxc-dev-string" => (
            text.starts_with("/dev/") && !text.contains("/./") && !text.contains("/.."),
            format!("'{text}' is not a valid device path"),
        ),
        "pve-ct-timezone" => (
            matches(r"host|UTC|[A-Za-z_]+(?:/[A-Za-z0-9_+\-]+)*", text),
            format!("invalid time zone '{text}'"),
        ),
        "pve-task-status-type" => {
            (matches("(?i:ok|error|warning|unknown)", text), format!("invalid task status '{text}'"))
        }
        "pve-ha-resource-or-vm-id" => (
            matches(r"(?:(?:vm|ct):)?[1-9][0-9]{2,8}", text),
            format!("value does not look like a valid ha resource id: {text}"),
        ),
        "storage-pair" => {
            (matches(r"1|[^:\s]+(?::[^:\s]+)?", text), format!("invalid storage mapping '{text}'"))
        }
        "email" => {
            (matches(r"[^@\s]+@[^@\s]+", text), "value does not look like a valid email address".to_owned())
        }
        "pve-fw-addr-spec" => (matches(r"[+a-zA-Z0-9_.:/,\-!]+", text), format!("invalid address '{text}'")),
        "pve-fw-dport-spec" | "pve-fw-sport-spec" => (is_ports(text), format!("invalid port '{text}'")),
        "pve-fw-protocol-spec" => (matches(r"[a-z0-9\-]+", text), format!("unknown protocol '{text}'")),
        "pve-fw-icmp-type-spec" => (matches(r"[a-z0-9\-/]+", text), format!("invalid icmp-type '{text}'")),
        // privileges, locations and the like: any text
        _ => (true, String::new()),
    };
    if good { Ok(()) } else { Err(why) }
}

fn is_volume_id(text: &str) -> bool {
    text.split_once(':').is_some_and(|(storage, rest)| matches(STORAGE, storage) && !rest.is_empty())
}

fn is_ipv4(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok()
}

fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

fn is_link_local(text: &str) -> bool {
    text.split_once('%').is_some_and(|(ip, iface)| {
        ip.to_ascii_lowercase().starts_with("fe80") && is_ipv6(ip) && !iface.is_empty()
    })
}

/// The prefix length is mandatory, 8..32.
fn is_cidr4(text: &str) -> bool {
    text.split_once('/').is_some_and(|(ip, len)| {
        is_ipv4(ip) && matches("[0-9]{1,2}", len) && len.parse().is_ok_and(|l: u8| (8..=32).contains(&l))
    })
}

/// The prefix length is mandatory, 8..128.
fn is_cidr6(text: &str) -> bool {
    text.split_once('/').is_some_and(|(ip, len)| {
        is_ipv6(ip) && matches("[0-9]{1,3}", len) && len.parse().is_ok_and(|l: u8| (8..=128).contains(&l))
    })
}

/// `[order=]N,up=N,down=N` in any order (fact Q17).
fn is_startup(text: &str) -> bool {
    text.split(',').all(|part| matches(r"(?:order=)?\d+|up=\d+|down=\d+", part))
}

fn is_hotplug(text: &str) -> bool {
    matches("0|1", text) || split_list(text).all(|f| matches("network|disk|cpu|memory|usb|cloudinit", f))
}

/// The slot must exist in the VM's grammar; EFI and TPM state are not boot devices (fact Q17).
fn is_boot_device(text: &str) -> bool {
    matches(r"(?:ide|sata|scsi|virtio|net|usb|hostpci)\d+", text)
        && super::lookup(super::vm::TABLE, text).is_some()
}

fn is_boot_disk(text: &str) -> bool {
    matches(r"(?:ide|sata|scsi|virtio)\d+", text) && super::lookup(super::vm::TABLE, text).is_some()
}

fn is_mount_path(text: &str) -> bool {
    !(text.contains("/./")
        || text.contains("/../")
        || text.ends_with("/.")
        || text.ends_with("/..")
        || text.starts_with("../"))
}

fn is_ports(text: &str) -> bool {
    text.split(',').all(|part| matches(r"\d{1,5}(?::\d{1,5})?|[a-z0-9\-]+", part))
}
