//! Network cards (facts Q13, Q35, R2).

use crate::drives::fill;
use crate::spec::{Nic, NicModel};
use crate::wanted::{Row, amount, flag, plain, set, tokens, words};
use proxops_kind::{Props, Table};

/// PVE's network grammar.
pub static NET: Table = Table::with_default("model");

/// Options of a card besides model and address, in PVE's words.
pub static NIC: &[Row<Nic>] = &[
    plain!("bridge", None, bridge),
    flag!("firewall", Some("0"), firewall),
    flag!("link_down", Some("0"), link_down),
    amount!("mtu", None, mtu),
    amount!("queues", None, queues),
    amount!("rate", None, rate_limit),
    amount!("tag", None, vlan),
    words!("trunks", None, ";", set, trunks),
];

/// The slot of every card: the declared one, or the next free netN in list order.
pub fn slots(nics: &[Nic]) -> Vec<String> {
    fill(nics.iter().map(|n| n.slot.as_deref()), "net")
}

/// Model and hardware address of a live card: `virtio=<MAC>` or `model=virtio,macaddr=<MAC>`.
pub fn model_and_mac(live: &Props) -> (Option<NicModel>, Option<String>) {
    let named = live.get("model").and_then(NicModel::parse);
    if named.is_some() {
        return (named, live.get("macaddr").map(str::to_owned));
    }
    live.iter()
        .find_map(|(key, value)| NicModel::parse(key).map(|m| (Some(m), Some(value.to_owned()))))
        .unwrap_or((None, None))
}

/// The text to write for a card, given the live one; `None` when nothing differs. A live address is
/// carried along unless the manifest pins another one: PVE makes a new one for a text without.
pub fn write(nic: &Nic, live: Option<&str>) -> Option<String> {
    let model = nic.model.unwrap_or(NicModel::Virtio);
    let Some(text) = live else {
        let mut props = Props::new(&NET);
        match &nic.mac {
            Some(mac) => props.set(model.as_str(), mac.to_ascii_uppercase()),
            None => props.set("model", model.as_str()),
        }
        for token in tokens(NIC, nic) {
            if let Some(want) = token.want {
                props.set(token.key, want);
            }
        }
        return Some(props.to_string());
    };
    let live = Props::parse(text, &NET);
    let (live_model, live_mac) = model_and_mac(&live);
    let mac = nic.mac.as_ref().or(live_mac.as_ref());
    let same_mac = match (mac, &live_mac) {
        (Some(a), Some(b)) => a.eq_ignore_ascii_case(b),
        (None, None) => true,
        _ => false,
    };
    let (mut props, changed) = crate::wanted::merge(Some(text), &NET, &tokens(NIC, nic));
    if changed.is_empty() && same_mac && live_model == Some(model) {
        return None;
    }
    if !same_mac || live_model != Some(model) {
        for key in ["model", "macaddr"].into_iter().chain(live_model.map(NicModel::as_str)) {
            props.remove(key);
        }
        let mut new = Props::new(&NET);
        match mac {
            Some(mac) => new.set(model.as_str(), mac.to_ascii_uppercase()),
            None => new.set("model", model.as_str()),
        }
        for (key, value) in props.iter() {
            new.set(key, value);
        }
        props = new;
    }
    Some(props.to_string())
}

/// A hardware address: six pairs of hex digits, the first one even (not a group address).
pub fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == 6
        && parts.iter().all(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()))
        && parts.first().and_then(|p| u8::from_str_radix(p, 16).ok()).is_some_and(|b| b & 1 == 0)
}

/// Takes a live card over; returns what the manifest has no word for.
pub fn adopt(slot: &str, text: &str) -> (Nic, Vec<String>) {
    let mut props = Props::parse(text, &NET);
    let (model, mac) = model_and_mac(&props);
    for key in ["model", "macaddr"].into_iter().chain(model.map(NicModel::as_str)) {
        props.remove(key);
    }
    let mut nic = Nic {
        slot: Some(slot.to_owned()),
        model: model.filter(|m| *m != NicModel::Virtio),
        mac,
        ..Nic::default()
    };
    let rest = crate::wanted::take(NIC, &mut nic, &props);
    (nic, rest)
}
