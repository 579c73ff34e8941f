//! Network interfaces and their addresses.

use super::{Slot, each, numbered, say};
use crate::layout::{Placed, networks};
use crate::network::{is_cidr4, is_cidr6};
use crate::spec::{ContainerSpec, Network};
use proxops_kind::text::quoted;
use proxops_kind::{Report, names};
use std::net::{Ipv4Addr, Ipv6Addr};

pub(super) fn interfaces(spec: &ContainerSpec, report: &mut Report) {
    let all = networks(spec);
    for network in &all {
        if network.item.absent == Some(true) {
            removed(network, report);
        } else {
            interface(network, report);
        }
    }
    let mut names: Vec<&str> = Vec::new();
    for (at, iface) in all.iter().filter_map(|n| Some((&n.at, n.item.iface.as_deref()?))) {
        if names.contains(&iface) {
            let message = format!("another interface is called {} too", quoted(iface));
            report.error(format!("{at}/iface"), "iface-twice", message);
        }
        names.push(iface);
    }
    let slots: Vec<Slot<'_>> = all.iter().map(|n| (&n.at, n.number, n.item.slot.as_deref())).collect();
    numbered("net", 31, "/spec/networks", &slots, report);
}

fn removed(network: &Placed<'_, Network>, report: &mut Report) {
    let Placed { at, item, .. } = network;
    if item.slot.is_none() {
        report
            .error(
                format!("{at}/slot"),
                "missing-field",
                "an interface that is to be removed must name its `slot`",
            )
            .help("such as `{slot: net1, absent: true}`");
    }
    let rest = Network { slot: None, absent: None, ..(*item).clone() };
    if rest != Network::default() {
        report.error(at.as_str(), "absent-and-more", "beside `absent: true` only `slot` may stand");
    }
}

fn interface(network: &Placed<'_, Network>, report: &mut Report) {
    let Placed { at, item, .. } = network;
    let in_list = |name: &str| format!("{at}/{name}");
    match &item.bridge {
        Some(bridge) => say(report, in_list("bridge"), "bad-bridge", names::check_bridge(bridge)),
        None => {
            report
                .error(in_list("bridge"), "missing-field", "a network interface needs `bridge`")
                .help("such as vmbr0");
        }
    }
    if let Some(iface) = &item.iface {
        let good = !iface.is_empty() && iface.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        let checked =
            if good && iface.len() < 16 { Ok(()) } else { Err("must be a name such as eth0".to_owned()) };
        say(report, in_list("iface"), "bad-iface", checked);
    }
    if let Some(mac) = &item.hwaddr {
        let pairs: Vec<&str> = mac.split(':').collect();
        let good = pairs.len() == 6
            && pairs.iter().all(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()));
        let checked =
            if good { Ok(()) } else { Err("must be a MAC address such as BC:24:11:00:00:01".to_owned()) };
        say(report, in_list("hwaddr"), "bad-mac", checked);
    }
    for vlan in each(&item.trunks) {
        if !vlan.parse::<u32>().is_ok_and(|n| (1..=4094).contains(&n)) {
            report.error(
                format!("{at}/trunks"),
                "out-of-range",
                format!("a VLAN must be between 1 and 4094, not {vlan}"),
            );
        }
    }
    addresses(network, report);
}

fn addresses(network: &Placed<'_, Network>, report: &mut Report) {
    let Placed { at, item, .. } = network;
    let ip = item.ip.as_deref();
    if ip.is_some_and(|ip| !["dhcp", "manual"].contains(&ip) && !is_cidr4(ip)) {
        let checked =
            Err("must be an IPv4 address with its prefix length such as 10.0.0.5/24, dhcp or manual"
                .to_owned());
        say(report, format!("{at}/ip"), "bad-address", checked);
    }
    let ip6 = item.ip6.as_deref();
    if ip6.is_some_and(|ip| !["auto", "dhcp", "manual"].contains(&ip) && !is_cidr6(ip)) {
        let checked = Err(
            "must be an IPv6 address with its prefix length such as 2001:db8::5/64, auto, dhcp or manual"
                .to_owned(),
        );
        say(report, format!("{at}/ip6"), "bad-address", checked);
    }
    let gateways = [
        ("gw", "ip", &item.gw, item.gw.as_ref().is_some_and(|g| g.parse::<Ipv4Addr>().is_ok()), ip),
        ("gw6", "ip6", &item.gw6, item.gw6.as_ref().is_some_and(|g| g.parse::<Ipv6Addr>().is_ok()), ip6),
    ];
    for (name, beside, gateway, good, address) in gateways {
        if gateway.is_none() {
            continue;
        }
        if !good {
            say(
                report,
                format!("{at}/{name}"),
                "bad-address",
                Err("must be an address without a prefix length".to_owned()),
            );
        } else if address.is_some_and(|a| !a.contains('/')) {
            report
                .warning(
                    format!("{at}/{name}"),
                    "gateway-without-address",
                    format!("`{name}` has no use without a static `{beside}`"),
                )
                .help(format!("remove `{name}`, or write `{beside}` as an address with its prefix length"));
        }
    }
}
