//! What cloud-init tells the guest.

use crate::cloudinit;
use crate::spec::*;
use proxops_kind::{Report, names, text::quoted};

pub(super) fn check(spec: &VmSpec, report: &mut Report) {
    let data = &spec.cloud_init_data;
    let at = |field: &str| format!("/spec/cloud-init-data/{field}");
    if data.ssh_keys.is_some() && data.ssh_key_refs.is_some() {
        report
            .error(at("ssh-key-refs"), "contradiction", "`ssh-keys` and `ssh-key-refs` exclude each other")
            .help("keep one");
    }
    let keys = data.ssh_keys.as_deref().unwrap_or_default();
    for (i, key) in keys.iter().enumerate() {
        if key == "*" && keys.len() > 1 {
            report
                .error(
                    at(&format!("ssh-keys/{i}")),
                    "contradiction",
                    "\"*\" keeps the keys that PVE has and stands alone",
                )
                .help("remove it, or all others");
        } else if key != "*" && cloudinit::type_and_data(key).is_none() {
            report
                .error(at(&format!("ssh-keys/{i}")), "bad-key", "this is not a public SSH key")
                .help("such as ssh-ed25519 AAAA... name; secrets are named in `ssh-key-refs`");
        }
    }
    for (i, name) in data.ssh_key_refs.iter().flatten().enumerate() {
        if name.strip_prefix("cloud-init.ssh-keys.").is_none_or(str::is_empty) {
            report
                .error(
                    at(&format!("ssh-key-refs/{i}")),
                    "bad-reference",
                    "this does not name an SSH key of the secrets document",
                )
                .help("cloud-init.ssh-keys.<name>");
        }
    }
    if let Some(name) = &data.ci_password_ref
        && name.strip_prefix("cloud-init.passwords.").is_none_or(str::is_empty)
    {
        report
            .error(
                at("ci-password-ref"),
                "bad-reference",
                "this does not name a password of the secrets document",
            )
            .help("cloud-init.passwords.<name>; a manifest never holds the password itself");
    }
    let mut seen = Vec::new();
    for (i, (config, number)) in data.ipconfigs.iter().zip(cloudinit::numbers(&data.ipconfigs)).enumerate() {
        let here = |field: &str| at(&format!("ipconfigs/{i}/{field}"));
        match number {
            None => report
                .error(here("nic"), "bad-value", "`nic` must be a card's number")
                .help("0 or net0, at most 31"),
            Some(number) if seen.contains(&number) => {
                report
                    .error(here("nic"), "slot-taken", format!("card {number} is named twice"))
                    .help("one entry a card");
            }
            Some(number) => seen.push(number),
        }
        for (field, value, v6, words) in [
            ("ip", &config.ip, false, &["dhcp", "manual"][..]),
            ("ip6", &config.ip6, true, &["auto", "dhcp", "manual"][..]),
        ] {
            if let Some(value) = value.as_deref().filter(|v| !cloudinit::is_address(v, v6, words)) {
                let message = format!(
                    "`{field}` must be an address with prefix length or {}, not {}",
                    words.join(", "),
                    quoted(value)
                );
                report.error(here(field), "bad-address", message).help(if v6 {
                    "such as 2001:db8::2/64"
                } else {
                    "such as 192.0.2.10/24"
                });
            }
        }
        for (field, value, address, v6) in [
            ("gateway", &config.gateway, &config.ip, false),
            ("gateway6", &config.gateway6, &config.ip6, true),
        ] {
            let Some(value) = value else { continue };
            let good = value.parse::<std::net::IpAddr>().is_ok_and(|a| a.is_ipv6() == v6);
            if !good {
                report
                    .error(
                        here(field),
                        "bad-address",
                        format!("`{field}` must be an address, not {}", quoted(value)),
                    )
                    .help("without a prefix length");
            } else if address.as_deref().is_none_or(|a| !a.contains('/')) {
                let needed = if v6 { "ip6" } else { "ip" };
                report
                    .error(here(field), "gateway-without-address", format!("`{field}` needs a fixed `{needed}` with prefix length"))
                    .help("with dhcp the gateway comes from the server, and PVE gives the card no address at all");
            }
        }
    }
    for server in data.nameservers.iter().flat_map(|n| n.0.iter()) {
        if server.parse::<std::net::IpAddr>().is_ok() {
            continue;
        }
        let message = format!("{} is not an address", quoted(server));
        // PVE takes names as well; one of digits only is a mistyped address.
        let is_name =
            server.contains(|c: char| c.is_ascii_alphabetic()) && names::check_dns_name(server).is_ok();
        match is_name {
            true => report.warning(at("nameservers"), "bad-address", message),
            false => report.error(at("nameservers"), "bad-address", message),
        }
        .help("name servers are given by address, such as 192.0.2.53");
    }
    if let Some(custom) = &data.custom {
        for (field, value) in [
            ("user", &custom.user),
            ("meta", &custom.meta),
            ("network", &custom.network),
            ("vendor", &custom.vendor),
        ] {
            if let Some(value) = value.as_deref().filter(|v| !v.contains(":snippets/") || v.contains(',')) {
                let message = format!("`{field}` must be a snippets volume, not {}", quoted(value));
                report
                    .error(at(&format!("custom/{field}")), "bad-value", message)
                    .help("such as local:snippets/user.yaml");
            }
        }
    }
}
