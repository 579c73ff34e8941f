//! Cloud-init data (facts Q21 to Q24).

use crate::spec::*;
use crate::wanted::{Row, Token, Wanted, When, address, plain, tokens};
use proxops_kind::{Context, Diagnostic, Table, text};
use std::collections::BTreeSet;

/// PVE's `ipconfigN`.
pub static IPCONFIG: Table = Table { default_key: None, aliases: &[] };
/// PVE's `cicustom`.
pub static CUSTOM: Table = Table { default_key: None, aliases: &[] };

/// Rows of `ipconfigN`.
pub static IP_ROWS: &[Row<IpConfig>] = &[
    Row { same: address, ..plain!("ip", None, ip) },
    Row { same: address, ..plain!("gw", None, gateway) },
    Row { same: address, ..plain!("ip6", None, ip6) },
    Row { same: address, ..plain!("gw6", None, gateway6) },
];
/// Rows of `cicustom`.
pub static CUSTOM_ROWS: &[Row<Custom>] = &[
    plain!("user", None, user),
    plain!("meta", None, meta),
    plain!("network", None, network),
    plain!("vendor", None, vendor),
];

/// Keys that give a guest its identity, besides `ipconfigN`. A clone inherits them (fact Q39).
pub const IDENTITY: [&str; 8] =
    ["cicustom", "cipassword", "citype", "ciupgrade", "ciuser", "nameserver", "searchdomain", "sshkeys"];

/// Whether a key belongs to cloud-init's data.
pub fn is_data(key: &str) -> bool {
    IDENTITY.contains(&key) || key.starts_with("ipconfig")
}

/// The number of each entry's network card; `None` where `nic` is no such number.
pub fn numbers(configs: &[IpConfig]) -> Vec<Option<u32>> {
    let parse = |nic: &str| nic.trim_start_matches("net").parse::<u32>().ok().filter(|n| *n < 32);
    let taken: Vec<u32> = configs.iter().filter_map(|c| parse(c.nic.as_ref()?.as_str())).collect();
    let mut next = 0;
    configs
        .iter()
        .map(|config| match &config.nic {
            Some(nic) => parse(nic.as_str()),
            None => {
                while taken.contains(&next) {
                    next += 1;
                }
                next += 1;
                Some(next - 1)
            }
        })
        .collect()
}

/// The wanted addresses and snippets. In a clone nothing of an inherited address stays.
pub fn wanted(spec: &VmSpec, out: &mut Vec<Wanted>) {
    let data = &spec.cloud_init_data;
    for (i, (config, number)) in data.ipconfigs.iter().zip(numbers(&data.ipconfigs)).enumerate() {
        let Some(number) = number else { continue };
        let mut tokens = tokens(IP_ROWS, config);
        for (address, gateway) in [("ip", "gw"), ("ip6", "gw6")] {
            let has = |key: &str| tokens.iter().find(|t| t.key == key).and_then(|t| t.want.as_deref());
            // A gateway without a fixed address leaves the card without any (fact Q21).
            let no_gateway = has(address).is_some_and(|a| !a.contains('/')) && has(gateway).is_none();
            let inherited_address = spec.clone.is_some() && has(address).is_none();
            let inherited_gateway = spec.clone.is_some() && has(gateway).is_none();
            if inherited_address {
                tokens.push(Token::gone(address));
            }
            if no_gateway || inherited_gateway {
                tokens.push(Token::gone(gateway));
            }
        }
        let at = format!("/spec/cloud-init-data/ipconfigs/{i}");
        out.push(Wanted::tokens(at, format!("ipconfig{number}"), &IPCONFIG, tokens, When::AtOnce));
    }
    if let Some(custom) = &data.custom {
        let tokens = tokens(CUSTOM_ROWS, custom);
        out.push(Wanted::tokens("/spec/cloud-init-data/custom", "cicustom", &CUSTOM, tokens, When::AtOnce));
    }
}

/// The wanted `sshkeys`, percent-encoded; `None` when the manifest leaves them alone.
pub fn wanted_keys(data: &CloudInitData, context: &Context) -> Result<Option<Wanted>, Diagnostic> {
    let (at, keys) = match (&data.ssh_keys, &data.ssh_key_refs) {
        (Some(keys), _) if keys.iter().any(|k| k == "*") => return Ok(None),
        (Some(keys), _) => ("/spec/cloud-init-data/ssh-keys", keys.clone()),
        (None, Some(refs)) => {
            let mut keys = Vec::new();
            for (i, name) in refs.iter().enumerate() {
                let text = proxops_kind::records::pair(&context.public_keys, name).ok_or_else(|| {
                    let at = format!("/spec/cloud-init-data/ssh-key-refs/{i}");
                    Diagnostic::error("unknown-secret", at, format!("the secrets document has no {name}"))
                })?;
                keys.push(text.to_owned());
            }
            ("/spec/cloud-init-data/ssh-key-refs", keys)
        }
        (None, None) => return Ok(None),
    };
    let lines: Vec<&str> =
        keys.iter().flat_map(|k| k.lines()).map(str::trim).filter(|l| !l.is_empty()).collect();
    let value = text::percent_encode(&lines.join("\n"));
    Ok(Some(Wanted::text(at, "sshkeys", value, same_keys, When::AtOnce)))
}

/// The keys of a percent-encoded list.
pub fn key_lines(encoded: &str) -> Vec<String> {
    let decoded = text::percent_decode(encoded);
    decoded.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned).collect()
}

/// What makes a public key itself: options, type and data, without the comment.
pub fn identity(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_type = |w: &&str| w.starts_with("ssh-") || w.starts_with("ecdsa-") || w.starts_with("sk-");
    let end = words.iter().position(is_type).map_or(words.len(), |i| i + 2);
    words.get(..end.min(words.len())).unwrap_or_default().join(" ")
}

/// Type and data of a public key.
pub fn type_and_data(line: &str) -> Option<(String, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words
        .iter()
        .position(|w| w.starts_with("ssh-") || w.starts_with("ecdsa-") || w.starts_with("sk-"))?;
    Some((words.get(at)?.to_string(), words.get(at + 1)?.to_string()))
}

fn same_keys(live: &str, want: &str) -> bool {
    let set = |t: &str| key_lines(t).iter().map(String::as_str).map(identity).collect::<BTreeSet<_>>();
    set(live) == set(want)
}

/// An address as cloud-init takes it: CIDR, or one of these words.
pub fn is_address(text: &str, v6: bool, words: &[&str]) -> bool {
    if words.contains(&text) {
        return true;
    }
    let Some((address, len)) = text.split_once('/') else { return false };
    let Ok(len) = len.parse::<u8>() else { return false };
    match (address.parse::<std::net::IpAddr>(), v6) {
        (Ok(std::net::IpAddr::V4(_)), false) => (8..=32).contains(&len),
        (Ok(std::net::IpAddr::V6(_)), true) => (8..=128).contains(&len),
        _ => false,
    }
}
