//! Keys with one plain value each: one table for create, drift and adopt.

use crate::spec::*;
use crate::wanted::{
    Row, Wanted, When, address_set, amount, exact, flag, plain, same_hotplug, set, word, words,
};
use proxops_kind::{Props, Scalar, Table, Words, text};

/// A key of the whole spec.
pub struct Key {
    /// Pointer into the manifest.
    pub at: &'static str,
    /// How it is read and written.
    pub row: Row<VmSpec>,
    /// When a change applies.
    pub when: When,
    /// Only a root@pam ticket may set it (fact Q51).
    pub root: bool,
}

const fn key(at: &'static str, when: When, row: Row<VmSpec>) -> Key {
    Key { at, row, when, root: false }
}
const fn root_key(at: &'static str, when: When, row: Row<VmSpec>) -> Key {
    Key { at, row, when, root: true }
}

/// A row for an optional [`Scalar`].
macro_rules! scalar {
    ($key:literal, $($field:ident).+) => {
        Row {
            key: $key,
            get: |s| s.$($field).+.as_ref().map(ToString::to_string),
            put: |s, t| { s.$($field).+ = Some(Scalar(t.to_owned())); true },
            default: None,
            same: exact,
        }
    };
}

use When::{AtOnce, Balloon, Hotplug, Stop};

/// All plain keys. Old spellings follow the row of the new one, which adopt uses.
pub static KEYS: &[Key] = &[
    key(
        "/spec/balloon",
        Balloon,
        Row {
            key: "balloon",
            get: |s| s.balloon.map(|m| m.0.to_string()),
            put: |s, t| {
                s.balloon = text::number(t).parse().ok().map(Mebibytes);
                s.balloon.is_some()
            },
            default: None,
            same: crate::wanted::number,
        },
    ),
    key("/spec/shares", AtOnce, amount!("shares", Some("1000"), shares)),
    root_key("/spec/hugepages", Stop, scalar!("hugepages", hugepages)),
    root_key("/spec/keep-hugepages", Stop, flag!("keephugepages", Some("0"), keep_hugepages)),
    key(
        "/spec/cpu/cores",
        Stop,
        Row {
            key: "cores",
            get: |s| Some(s.cpu.cores.to_string()),
            put: |s, t| text::number(t).parse().map(|n| s.cpu.cores = n).is_ok(),
            default: Some("1"),
            same: crate::wanted::number,
        },
    ),
    key("/spec/cpu/sockets", Stop, amount!("sockets", Some("1"), cpu.sockets)),
    key(
        "/spec/hardware/sockets",
        Stop,
        Row {
            key: "sockets",
            get: |s| s.hardware.sockets.filter(|_| s.cpu.sockets.is_none()).map(|n| n.to_string()),
            put: |_, _| false,
            default: Some("1"),
            same: crate::wanted::number,
        },
    ),
    key("/spec/cpu/vcpus", Hotplug("cpu"), amount!("vcpus", None, cpu.vcpus)),
    key("/spec/cpu/limit", AtOnce, amount!("cpulimit", Some("0"), cpu.limit)),
    key(
        "/spec/cpu/units",
        AtOnce,
        Row {
            key: "cpuunits",
            // PVE clamps on cgroup v2, which all of PVE 9 uses (fact Q35).
            get: |s| s.cpu.units.map(|n| n.min(10_000).to_string()),
            put: |s, t| {
                s.cpu.units = text::number(t).parse().ok();
                s.cpu.units.is_some()
            },
            default: Some("100"),
            same: crate::wanted::number,
        },
    ),
    root_key("/spec/cpu/affinity", Stop, scalar!("affinity", cpu.affinity)),
    key("/spec/cpu/numa", Stop, flag!("numa", Some("0"), cpu.numa)),
    key(
        "/spec/hardware/numa",
        Stop,
        Row {
            key: "numa",
            get: |s| s.hardware.numa.filter(|_| s.cpu.numa.is_none()).map(|b| text::bool_text(b).to_owned()),
            put: |_, _| false,
            default: Some("0"),
            same: crate::wanted::boolean,
        },
    ),
    key("/spec/os-type", Stop, word!("ostype", Some("other"), OsType, os_type)),
    key("/spec/hardware/bios", Stop, word!("bios", Some("seabios"), Bios, hardware.bios)),
    key("/spec/hardware/serial0", Stop, plain!("serial0", None, hardware.serial0)),
    key("/spec/hardware/serial1", Stop, plain!("serial1", None, hardware.serial1)),
    key("/spec/hardware/serial2", Stop, plain!("serial2", None, hardware.serial2)),
    key("/spec/hardware/serial3", Stop, plain!("serial3", None, hardware.serial3)),
    key("/spec/options/onboot", AtOnce, flag!("onboot", Some("0"), options.onboot)),
    key("/spec/options/protection", AtOnce, flag!("protection", Some("0"), options.protection)),
    key("/spec/options/acpi", Stop, flag!("acpi", Some("1"), options.acpi)),
    key("/spec/options/tablet", Hotplug("usb"), flag!("tablet", Some("1"), options.tablet)),
    key("/spec/options/kvm", Stop, flag!("kvm", Some("1"), options.kvm)),
    key(
        "/spec/options/hotplug",
        Stop,
        Row {
            key: "hotplug",
            get: |s| {
                // An empty list switches it off.
                let text = s.options.hotplug.as_ref()?.join(",");
                Some(if text.is_empty() { "0".to_owned() } else { text })
            },
            put: |s, t| {
                s.options.hotplug = Some(Words::parse(t));
                true
            },
            default: Some("network,disk,usb"),
            same: same_hotplug,
        },
    ),
    key(
        "/spec/options/boot-order",
        Stop,
        Row {
            key: "boot",
            get: |s| s.options.boot_order.as_ref().map(boot_text),
            put: |s, t| {
                let order = live_boot(t);
                // A guest without devices reports an empty order (fact R3): nothing to declare.
                s.options.boot_order = order.clone().filter(|order| !order.0.is_empty());
                order.is_some()
            },
            default: None,
            same: |live, want| live_boot(live).is_some_and(|order| live_boot(want) == Some(order)),
        },
    ),
    key("/spec/options/localtime", Stop, flag!("localtime", None, options.localtime)),
    key("/spec/options/keyboard", Stop, word!("keyboard", None, Keyboard, options.keyboard)),
    root_key("/spec/options/hookscript", AtOnce, plain!("hookscript", None, options.hookscript)),
    key("/spec/options/tdf", Stop, flag!("tdf", Some("0"), options.tdf)),
    key("/spec/cloud-init-data/ci-user", AtOnce, plain!("ciuser", None, cloud_init_data.ci_user)),
    key(
        "/spec/cloud-init-data/nameservers",
        AtOnce,
        words!("nameserver", None, " ", address_set, cloud_init_data.nameservers),
    ),
    key(
        "/spec/cloud-init-data/search-domains",
        AtOnce,
        words!("searchdomain", None, " ", set, cloud_init_data.search_domains),
    ),
    key("/spec/cloud-init-data/upgrade", AtOnce, flag!("ciupgrade", Some("1"), cloud_init_data.upgrade)),
    key("/spec/cloud-init-data/type", AtOnce, word!("citype", None, CiType, cloud_init_data.kind)),
];

/// PVE's `boot` (fact Q17).
pub static BOOT: Table = Table::with_default("legacy");

/// The devices of a boot order, in whichever way it was written.
pub fn boot_devices(order: &Words) -> Vec<&str> {
    order.iter().map(|d| d.trim_start_matches("order=")).filter(|d| !d.is_empty()).collect()
}

/// A boot order as PVE takes it. No device at all is a list without entries: PVE refuses the bare `order=`,
/// and by the letter of the schema `pve-qm-boot` a blank is a value of `legacy`, whose pattern it breaks.
pub fn boot_text(order: &Words) -> String {
    let devices = boot_devices(order);
    if devices.is_empty() { "order=;".to_owned() } else { format!("order={}", devices.join(";")) }
}

/// A boot order as PVE reports it, where a blank (fact R3), `order=` and `order=;` all are the empty one;
/// `None` = the legacy letters (fact Q17).
fn live_boot(text: &str) -> Option<Words> {
    let live = Props::parse(text, &BOOT);
    let letters = live.get("legacy").is_some_and(|letters| !letters.trim().is_empty());
    (!letters).then(|| live.get("order").map(Words::parse).unwrap_or_default())
}

/// The wanted plain keys.
pub fn wanted(spec: &VmSpec, out: &mut Vec<Wanted>) {
    for key in KEYS {
        let Some(value) = (key.row.get)(spec) else { continue };
        let root = key.root || (key.row.key.starts_with("serial") && value != "socket");
        let mut wanted = Wanted::text(key.at, key.row.key, value, key.row.same, key.when).root(root);
        if let crate::wanted::Want::Text { default, value, .. } = &mut wanted.want {
            *default = key.row.default;
            match key.row.key {
                // An empty list means none, which PVE says by absence.
                "nameserver" | "searchdomain" if value.is_empty() => *default = Some(""),
                // Windows guests keep local time unless told otherwise.
                "localtime" if !is_windows(spec) => *default = Some("0"),
                _ => {}
            }
        }
        out.push(wanted);
    }
}

fn is_windows(spec: &VmSpec) -> bool {
    spec.os_type.is_some_and(|os| os.as_str().starts_with('w'))
}
