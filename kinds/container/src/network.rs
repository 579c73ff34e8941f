//! Network interfaces: `name=eth0,bridge=vmbr0,hwaddr=...,type=veth` (fact L10).

use crate::rows::{Row, flag, store, text};
use crate::spec::{Network, NetworkType};
use proxops_kind::text::{address, parse_bool, split_list};
use proxops_kind::{Props, Table, Words};
use std::net::{Ipv4Addr, Ipv6Addr};

/// No key may stand alone.
pub static TABLE: Table = Table { default_key: None, aliases: &[] };

/// The keys of a network interface. A live `hwaddr` that nothing pins is kept, as every token that is not
/// owned: PVE would draw a new address otherwise (fact L10).
pub static ROWS: &[Row<Network>] = &[
    Row::<Network>::new(
        "name",
        "/iface",
        |n| n.iface.clone(),
        |n, v| store(&mut n.iface, Some(v.to_owned())),
    ),
    Row::<Network>::new(
        "bridge",
        "/bridge",
        |n| n.bridge.clone(),
        |n, v| store(&mut n.bridge, Some(v.to_owned())),
    ),
    Row::<Network>::new(
        "hwaddr",
        "/hwaddr",
        |n| n.hwaddr.as_ref().map(|mac| mac.to_ascii_uppercase()),
        |n, v| store(&mut n.hwaddr, Some(v.to_owned())),
    )
    .normal(|mac| mac.to_ascii_uppercase()),
    Row::<Network>::new("ip", "/ip", |n| n.ip.clone(), |n, v| store(&mut n.ip, Some(v.to_owned())))
        .normal(address),
    Row::<Network>::new("gw", "/gw", |n| n.gw.clone(), |n, v| store(&mut n.gw, Some(v.to_owned())))
        .normal(address),
    Row::<Network>::new("ip6", "/ip6", |n| n.ip6.clone(), |n, v| store(&mut n.ip6, Some(v.to_owned())))
        .normal(address),
    Row::<Network>::new("gw6", "/gw6", |n| n.gw6.clone(), |n, v| store(&mut n.gw6, Some(v.to_owned())))
        .normal(address),
    Row::<Network>::new(
        "firewall",
        "/firewall",
        |n| flag(n.firewall),
        |n, v| store(&mut n.firewall, parse_bool(v)),
    )
    .boolean(Some(false)),
    Row::<Network>::new("tag", "/tag", |n| text(n.tag), |n, v| store(&mut n.tag, v.parse().ok())).number(),
    Row::<Network>::new(
        "trunks",
        "/trunks",
        |n| n.trunks.as_ref().map(|vlans| same_vlans(&vlans.join(";"))),
        |n, v| store(&mut n.trunks, Some(Words::parse(v))),
    )
    .normal(same_vlans),
    Row::<Network>::new("mtu", "/mtu", |n| text(n.mtu), |n, v| store(&mut n.mtu, v.parse().ok())).number(),
    Row::<Network>::new(
        "rate",
        "/rate-limit",
        |n| text(n.rate_limit),
        |n, v| store(&mut n.rate_limit, v.parse().ok()),
    )
    .number(),
    Row::<Network>::new(
        "link_down",
        "/link-down",
        |n| flag(n.link_down),
        |n, v| store(&mut n.link_down, parse_bool(v)),
    )
    .boolean(Some(false)),
    Row::<Network>::new(
        "type",
        "/type",
        |n| n.kind.map(|k| k.as_str().to_owned()),
        |n, v| store(&mut n.kind, NetworkType::parse(v)),
    )
    .default("veth"),
];

/// VLANs in one order, each once.
fn same_vlans(text: &str) -> String {
    let mut vlans: Vec<&str> = split_list(text).collect();
    vlans.sort_unstable_by_key(|vlan| (vlan.len(), *vlan));
    vlans.dedup();
    vlans.join(";")
}

/// A new interface in slot `number`. Its name, which PVE requires, is the manifest's, or else the first `ethN` from its
/// slot's number on that is not `taken`; then it is.
pub fn new(network: &Network, number: u32, taken: &mut Vec<String>) -> Props {
    let mut props = Props::new(&TABLE);
    if network.iface.is_none() {
        let mut names = (number..).map(|n| format!("eth{n}"));
        if let Some(name) = names.find(|name| !taken.contains(name)) {
            props.set("name", &name);
            taken.push(name);
        }
    }
    crate::rows::write_new(ROWS, network, &mut props);
    // PVE's only type; named as PVE does.
    props.set("type", "veth");
    props
}

/// Takes out what must not stand beside the declared address: the gateway of a static one that gives way, and after a
/// clone every part of the template's address that the manifest does not declare. `was` is the
/// interface as it is. Whether anything was taken out.
pub fn clear(network: &Network, was: &Props, fresh: bool, props: &mut Props) -> bool {
    let families = [("ip", &network.ip, "gw", &network.gw), ("ip6", &network.ip6, "gw6", &network.gw6)];
    let mut changed = false;
    for (ip_key, ip, gw_key, gw) in families {
        let is_static = |text: &str| text.contains('/');
        let gives_way =
            was.get(ip_key).is_some_and(is_static) && ip.as_deref().is_some_and(|ip| !is_static(ip));
        let drop_ip = fresh && ip.is_none();
        let drop_gw = gw.is_none() && (fresh || gives_way);
        for key in
            [(drop_ip, ip_key), (drop_gw, gw_key)].into_iter().filter_map(|(drop, key)| drop.then_some(key))
        {
            changed |= props.get(key).is_some();
            props.remove(key);
        }
    }
    changed
}

/// Whether this is an IPv4 address with a prefix length of 8 to 32, as PVE takes it.
pub fn is_cidr4(text: &str) -> bool {
    let parts = text.split_once('/').map(|(a, l)| (a.parse::<Ipv4Addr>(), l.parse::<u8>()));
    matches!(parts, Some((Ok(_), Ok(8..=32))))
}

/// Whether this is an IPv6 address with a prefix length of 8 to 128, as PVE takes it.
pub fn is_cidr6(text: &str) -> bool {
    let parts = text.split_once('/').map(|(a, l)| (a.parse::<Ipv6Addr>(), l.parse::<u8>()));
    matches!(parts, Some((Ok(_), Ok(8..=128))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{merge, read};

    #[test]
    fn a_live_address_survives_another_change() {
        let mut live =
            Props::parse("name=eth0,bridge=vmbr0,host-managed=1,hwaddr=BC:24:11:00:00:02,type=veth", &TABLE);
        let wanted = Network { bridge: Some("vmbr0".into()), tag: Some(5), ..Network::default() };
        assert!(merge(ROWS, &wanted, &mut live));
        assert_eq!(
            live.to_string(),
            "name=eth0,bridge=vmbr0,host-managed=1,hwaddr=BC:24:11:00:00:02,type=veth,tag=5"
        );
        assert!(!merge(ROWS, &wanted, &mut live), "what is written is what is wanted");
    }

    #[test]
    fn spellings_are_equal() {
        let mut live = Props::parse(
            "name=eth0,bridge=vmbr0,firewall=yes,hwaddr=BC:24:11:00:00:02,ip6=FE80::1/64,trunks=7;3,rate=2.0",
            &TABLE,
        );
        let wanted = Network {
            bridge: Some("vmbr0".into()),
            firewall: Some(true),
            link_down: Some(false),
            hwaddr: Some("bc:24:11:00:00:02".into()),
            ip6: Some("fe80:0::1/64".into()),
            trunks: Some(Words::parse("3;7")),
            rate_limit: Some(2.0),
            ..Network::default()
        };
        assert!(!merge(ROWS, &wanted, &mut live));
    }

    #[test]
    fn a_gateway_goes_with_its_static_address() {
        let dhcp = Network { ip: Some("dhcp".into()), ..Network::default() };
        let was = Props::parse("name=eth0,ip=10.0.0.9/24,gw=10.0.0.1,gw6=fd00::1", &TABLE);
        let mut props = was.clone();
        assert!(merge(ROWS, &dhcp, &mut props) && clear(&dhcp, &was, false, &mut props));
        assert_eq!(props.to_string(), "name=eth0,ip=dhcp,gw6=fd00::1");
        // one that somebody put beside dhcp is not ours
        let was = Props::parse("name=eth0,ip=dhcp,gw=10.0.0.1", &TABLE);
        assert!(!clear(&dhcp, &was, false, &mut was.clone()));
    }

    #[test]
    fn a_clone_keeps_of_an_address_what_is_declared() {
        let was = Props::parse("name=eth0,ip=10.0.0.9/24,gw=10.0.0.1,ip6=auto,tag=5", &TABLE);
        let mut props = was.clone();
        assert!(clear(&Network::default(), &was, true, &mut props));
        assert_eq!(props.to_string(), "name=eth0,tag=5");
        let own =
            Network { ip: Some("10.0.0.9/24".into()), gw: Some("10.0.0.1".into()), ..Network::default() };
        let mut props = was.clone();
        assert!(clear(&own, &was, true, &mut props));
        assert_eq!(props.to_string(), "name=eth0,ip=10.0.0.9/24,gw=10.0.0.1,tag=5");
        assert!(
            !clear(&own, &was, false, &mut was.clone()),
            "after that, what is not declared is left alone"
        );
    }

    #[test]
    fn a_new_interface_has_a_name() {
        let wanted = Network { bridge: Some("vmbr0".into()), ip: Some("dhcp".into()), ..Network::default() };
        assert_eq!(new(&wanted, 1, &mut vec![]).to_string(), "name=eth1,bridge=vmbr0,ip=dhcp,type=veth");
    }

    #[test]
    fn a_new_interface_takes_the_next_free_name() {
        let mut taken = vec!["eth1".to_owned(), "eth2".to_owned()];
        let mut name = |network: Network, number| {
            new(&network, number, &mut taken).get("name").unwrap_or_default().to_owned()
        };
        assert_eq!(name(Network::default(), 1), "eth3");
        assert_eq!(name(Network::default(), 3), "eth4", "each name once");
        assert_eq!(name(Network::default(), 0), "eth0");
        let named = Network { iface: Some("wan0".into()), ..Network::default() };
        assert_eq!(name(named, 5), "wan0");
    }

    #[test]
    fn unknown_tokens_are_left_over() {
        let mut network = Network::default();
        let live = Props::parse("name=eth0,bridge=vmbr0,host-managed=1,type=veth,firewall=0", &TABLE);
        assert_eq!(read(ROWS, &live, &[], &mut network), ["host-managed=1"]);
        assert_eq!((network.firewall, network.kind), (None, None), "defaults are left out");
    }
}
