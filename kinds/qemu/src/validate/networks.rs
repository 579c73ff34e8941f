//! Network cards.

use super::{named, slot_of_family};
use crate::nics;
use crate::spec::*;
use proxops_kind::{Report, names, text::quoted};
use std::collections::BTreeMap;

pub(super) fn check(spec: &VmSpec, report: &mut Report) {
    if spec.networks.iter().filter(|n| n.slot.is_none()).count() >= 2 {
        report
            .warning(
                "/spec/networks",
                "slots-by-order",
                "two or more network cards leave `slot` out, so their slots depend on the order of the list",
            )
            .help("give each card its `slot`");
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (i, (nic, slot)) in spec.networks.iter().zip(nics::slots(&spec.networks)).enumerate() {
        let at = format!("/spec/networks/{i}");
        let here = |field: &str| format!("{at}/{field}");
        slot_of_family(&slot, "net", 31, &here("slot"), report);
        if let Some(other) = seen.insert(slot.clone(), i) {
            report
                .error(here("slot"), "slot-taken", format!("{slot} is also networks[{other}]"))
                .help("use another slot");
        }
        if nic.absent {
            if nic.slot.is_none() {
                report
                    .error(here("slot"), "missing-field", "a card to remove needs `slot`")
                    .help("such as {slot: net1, absent: true}");
            }
            continue;
        }
        match nic.bridge.as_deref() {
            None => report
                .error(here("bridge"), "missing-field", "a network card needs `bridge`")
                .help("such as vmbr0"),
            Some(bridge) => named(&here("bridge"), "bridge", names::check_bridge(bridge), report),
        }
        if let Some(mac) = nic.mac.as_deref().filter(|m| !nics::is_mac(m)) {
            report
                .error(
                    here("mac"),
                    "bad-mac",
                    format!("`mac` must be a hardware address of one card, not {}", quoted(mac)),
                )
                .help("such as BC:24:11:00:00:01");
        }
        for trunk in nic.trunks.iter().flat_map(|t| t.0.iter()) {
            let id = |t: &str| t.parse::<u32>().is_ok_and(|n| (1..=4094).contains(&n));
            let good = trunk.split_once('-').map_or_else(|| id(trunk), |(a, b)| id(a) && id(b));
            if !good {
                let message = format!("{} is not a VLAN number or range", quoted(trunk));
                report.error(here("trunks"), "bad-value", message).help("such as 10 or 20-30");
            }
        }
    }
}
