//! Property strings of one device or setting each: display, agent, start order, passed-through devices.

use crate::drives::fill;
use crate::spec::*;
use crate::wanted::{Row, Token, Wanted, When, amount, exact, flag, plain, tokens, word};
use proxops_kind::{LiveView, Props, Table};

/// PVE's `machine`.
pub static MACHINE: Table = Table::with_default("type");
/// PVE's `vga`.
pub static VGA: Table = Table::with_default("type");
/// PVE's `agent` (fact Q18), with its old spellings.
pub static AGENT: Table = Table {
    default_key: Some("enabled"),
    aliases: &[("freeze-fs-on-backup", "freeze-fs"), ("guest-fsfreeze", "freeze-fs")],
};
/// PVE's `startup`; the order's key may be left out.
pub static STARTUP: Table = Table { default_key: None, aliases: &[("", "order")] };
/// PVE's `rng0`.
pub static RNG: Table = Table::with_default("source");
/// PVE's `watchdog`.
pub static WATCHDOG: Table = Table::with_default("model");
/// PVE's `audio0`.
pub static AUDIO: Table = Table { default_key: None, aliases: &[] };
/// PVE's `hostpciN` (fact Q16).
pub static PCI: Table = Table::with_default("host");
/// PVE's `usbN`.
pub static USB: Table = Table::with_default("host");
/// PVE's `virtiofsN`.
pub static VIRTIOFS: Table = Table::with_default("dirid");

/// Rows of `vga`.
pub static VGA_ROWS: &[Row<DisplayFull>] = &[
    word!("type", Some("std"), DisplayType, kind),
    Row {
        key: "memory",
        get: |d| d.memory.map(|m| m.0.to_string()),
        put: |d, t| {
            d.memory = t.parse().ok().map(Mebibytes);
            d.memory.is_some()
        },
        default: None,
        same: crate::wanted::number,
    },
    word!("clipboard", None, Clipboard, clipboard),
];
/// Rows of `agent`.
pub static AGENT_ROWS: &[Row<AgentFull>] = &[
    flag!("enabled", Some("0"), enabled),
    word!("type", Some("virtio"), AgentType, kind),
    flag!("fstrim_cloned_disks", Some("0"), fstrim),
    flag!("freeze-fs", Some("1"), freeze_fs),
];
/// Rows of `startup`.
pub static STARTUP_ROWS: &[Row<StartupFull>] =
    &[amount!("order", None, order), amount!("up", None, up), amount!("down", None, down)];
/// Rows of `rng0`.
pub static RNG_ROWS: &[Row<Rng>] = &[
    Row {
        key: "source",
        get: |r| Some(r.source.as_str().to_owned()),
        put: |r, t| RngSource::parse(t).map(|s| r.source = s).is_some(),
        default: None,
        same: exact,
    },
    amount!("max_bytes", Some("1024"), max_bytes),
    amount!("period", Some("1000"), period),
];
/// Rows of `watchdog`.
pub static WATCHDOG_ROWS: &[Row<Watchdog>] =
    &[word!("model", Some("i6300esb"), WatchdogModel, model), word!("action", None, WatchdogAction, action)];
/// Rows of `audio0`.
pub static AUDIO_ROWS: &[Row<Audio>] = &[
    Row {
        key: "device",
        get: |a| Some(a.device.as_str().to_owned()),
        put: |a, t| AudioDevice::parse(t).map(|d| a.device = d).is_some(),
        default: None,
        same: exact,
    },
    word!("driver", Some("spice"), AudioDriver, driver),
];
/// Rows of `hostpciN`.
pub static PCI_ROWS: &[Row<PciDevice>] = &[
    Row {
        key: "host",
        get: |p| p.device.as_deref().filter(|d| is_bdf(d)).map(str::to_ascii_lowercase),
        put: |p, t| {
            p.device = Some(t.to_owned());
            true
        },
        default: None,
        same: same_bdf,
    },
    Row {
        key: "mapping",
        get: |p| p.mapping.clone().or_else(|| p.device.clone().filter(|d| !is_bdf(d))),
        put: |p, t| {
            p.mapping = Some(t.to_owned());
            true
        },
        default: None,
        same: exact,
    },
    flag!("pcie", Some("0"), pcie),
    flag!("x-vga", Some("0"), x_vga),
    flag!("rombar", Some("1"), rom_bar),
    plain!("mdev", None, mdev),
];
/// Rows of `usbN`.
pub static USB_ROWS: &[Row<UsbDevice>] = &[
    Row {
        key: "host",
        get: |u| u.host.clone(),
        put: |u, t| {
            u.host = Some(t.to_owned());
            true
        },
        default: None,
        same: same_usb,
    },
    plain!("mapping", None, mapping),
    flag!("usb3", Some("0"), usb3),
];
/// Rows of `virtiofsN`.
pub static VIRTIOFS_ROWS: &[Row<VirtioFs>] = &[
    Row {
        key: "dirid",
        get: |v| Some(v.dirid.clone()),
        put: |v, t| {
            v.dirid = t.to_owned();
            true
        },
        default: None,
        same: exact,
    },
    word!("cache", Some("auto"), VirtioFsCache, cache),
    flag!("direct-io", Some("0"), direct_io),
    flag!("expose-acl", Some("0"), expose_acl),
    flag!("expose-xattr", Some("0"), expose_xattr),
];

/// Slots of passed-through devices: the declared one or the next free in list order.
pub fn pci_slots(devices: &[PciDevice]) -> Vec<String> {
    fill(devices.iter().map(|d| d.slot.as_deref()), "hostpci")
}
/// Slots of USB devices.
pub fn usb_slots(devices: &[UsbDevice]) -> Vec<String> {
    fill(devices.iter().map(|d| d.slot.as_deref()), "usb")
}
/// Slots of shared folders.
pub fn virtiofs_slots(folders: &[VirtioFs]) -> Vec<String> {
    fill(folders.iter().map(|d| d.slot.as_deref()), "virtiofs")
}

/// A display in full.
pub fn display(display: &Display) -> DisplayFull {
    match display {
        Display::Type(kind) => DisplayFull { kind: Some(*kind), ..DisplayFull::default() },
        Display::Full(full) => full.clone(),
    }
}

/// The agent in full; a map without `enabled` switches it on.
pub fn agent(agent: &Agent) -> AgentFull {
    match agent {
        Agent::Switch(on) => AgentFull { enabled: Some(*on), ..AgentFull::default() },
        Agent::Full(full) => AgentFull { enabled: full.enabled.or(Some(true)), ..full.clone() },
    }
}

/// The start order in parts; `None` when the text is none.
pub fn startup(startup: &Startup) -> Option<StartupFull> {
    match startup {
        Startup::Full(full) => Some(full.clone()),
        Startup::Text(text) => {
            let mut full = StartupFull::default();
            let rest = crate::wanted::take(STARTUP_ROWS, &mut full, &Props::parse(text.as_str(), &STARTUP));
            (rest.is_empty() && full != StartupFull::default()).then_some(full)
        }
    }
}

/// The wanted keys of this subject.
pub fn wanted(spec: &VmSpec, live: Option<&LiveView<'_>>, out: &mut Vec<Wanted>) {
    let hardware = &spec.hardware;
    if let Some(machine) = &hardware.machine {
        let token =
            Token { key: "type", want: Some(wire_machine(machine)), default: Some("pc"), same: same_machine };
        out.push(Wanted::tokens("/spec/hardware/machine", "machine", &MACHINE, vec![token], When::Stop));
    }
    if let Some(d) = &hardware.display {
        let tokens = tokens(VGA_ROWS, &display(d));
        out.push(Wanted::tokens("/spec/hardware/display", "vga", &VGA, tokens, When::Stop));
    }
    if let Some(rng) = &hardware.rng {
        out.push(Wanted::tokens("/spec/hardware/rng", "rng0", &RNG, tokens(RNG_ROWS, rng), When::Stop));
    }
    if let Some(watchdog) = &hardware.watchdog {
        let mut tokens = tokens(WATCHDOG_ROWS, watchdog);
        // Without the key there is no device, also where all of it is PVE's default.
        if !live.is_some_and(|live| live.has("watchdog")) {
            if tokens.is_empty() {
                tokens.push(Token::is("model", "i6300esb"));
            }
            tokens.iter_mut().for_each(|token| token.default = None);
        }
        out.push(Wanted::tokens("/spec/hardware/watchdog", "watchdog", &WATCHDOG, tokens, When::Stop));
    }
    if let Some(audio) = &hardware.audio {
        let tokens = tokens(AUDIO_ROWS, audio);
        out.push(Wanted::tokens("/spec/hardware/audio", "audio0", &AUDIO, tokens, When::Stop));
    }
    if let Some(a) = &spec.options.agent {
        let tokens = tokens(AGENT_ROWS, &agent(a));
        out.push(Wanted::tokens("/spec/options/agent", "agent", &AGENT, tokens, When::Stop));
    }
    if let Some(full) = spec.options.startup.as_ref().and_then(startup) {
        let tokens = tokens(STARTUP_ROWS, &full);
        out.push(Wanted::tokens("/spec/options/startup", "startup", &STARTUP, tokens, When::AtOnce));
    }
    for (i, (device, slot)) in hardware.pci_devices.iter().zip(pci_slots(&hardware.pci_devices)).enumerate() {
        let mut tokens = tokens(PCI_ROWS, device);
        let by_address = tokens.iter().any(|t| t.key == "host");
        tokens.push(Token::gone(if by_address { "mapping" } else { "host" }));
        let at = format!("/spec/hardware/pci-devices/{i}");
        out.push(Wanted::tokens(at, slot, &PCI, tokens, When::Stop).root(by_address));
    }
    for (i, (device, slot)) in hardware.usb_devices.iter().zip(usb_slots(&hardware.usb_devices)).enumerate() {
        let mut tokens = tokens(USB_ROWS, device);
        tokens.push(Token::gone(if device.host.is_some() { "mapping" } else { "host" }));
        let real = device.host.as_deref().is_some_and(|h| !h.eq_ignore_ascii_case("spice"));
        let at = format!("/spec/hardware/usb-devices/{i}");
        out.push(Wanted::tokens(at, slot, &USB, tokens, When::Hotplug("usb")).root(real));
    }
    for (i, (folder, slot)) in hardware.virtiofs.iter().zip(virtiofs_slots(&hardware.virtiofs)).enumerate() {
        let at = format!("/spec/hardware/virtiofs/{i}");
        out.push(Wanted::tokens(at, slot, &VIRTIOFS, tokens(VIRTIOFS_ROWS, folder), When::Stop));
    }
}

/// The address of a PCI device on the host, or several joined by `;` (fact Q16).
pub fn is_bdf(text: &str) -> bool {
    let hex = |t: &str, len: usize| t.len() == len && t.bytes().all(|b| b.is_ascii_hexdigit());
    !text.is_empty()
        && text.split(';').all(|one| {
            let (one, function) = one.split_once('.').map_or((one, None), |(a, f)| (a, Some(f)));
            let parts: Vec<&str> = one.split(':').collect();
            let (domain, bus, device) = match parts.as_slice() {
                [bus, device] => (None, *bus, *device),
                [domain, bus, device] => (Some(*domain), *bus, *device),
                _ => return false,
            };
            domain.is_none_or(|d| d.len() >= 4 && hex(d, d.len()))
                && hex(bus, 2)
                && hex(device, 2)
                && function.is_none_or(|f| hex(f, 1))
        })
}

/// Two addresses name the same devices; domain 0000 may be left out.
fn same_bdf(live: &str, want: &str) -> bool {
    let full = |t: &str| {
        let full = |one: &str| {
            let one = one.to_ascii_lowercase();
            if one.matches(':').count() == 1 { format!("0000:{one}") } else { one }
        };
        t.split(';').map(full).collect::<Vec<_>>()
    };
    full(live) == full(want)
}

/// Two texts name the same USB device: 0x before its numbers and letter case do not matter.
fn same_usb(live: &str, want: &str) -> bool {
    let plain = |text: &str| {
        let lower = text.to_ascii_lowercase();
        lower.split(':').map(|number| number.trim_start_matches("0x").to_owned()).collect::<Vec<_>>()
    };
    plain(live) == plain(want)
}

/// PVE's word for a machine type.
fn wire_machine(machine: &str) -> String {
    if machine == "i440fx" { "pc".to_owned() } else { machine.to_owned() }
}

/// A machine type as PVE's schema has it: pc, q35, or a versioned one.
pub fn is_machine(machine: &str) -> bool {
    let version = |v: &str| {
        let v = v.trim_end_matches(".pxe");
        let (number, pve) = v.split_once("+pve").map_or((v, None), |(n, p)| (n, Some(p)));
        let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        number.contains('.') && number.split('.').all(digits) && pve.is_none_or(digits)
    };
    matches!(machine, "i440fx" | "pc" | "q35" | "virt")
        || ["pc-i440fx-", "pc-q35-", "virt-", "pc-"]
            .iter()
            .any(|p| machine.strip_prefix(p).is_some_and(version))
}

/// Whether a live machine type is the wanted one. PVE pins a version for Windows guests (fact Q5), so a
/// type without a version means its family.
pub fn same_machine(live: &str, want: &str) -> bool {
    let family = |t: &str| {
        if t == "q35" || t.starts_with("pc-q35") {
            "q35"
        } else if t.starts_with("virt") {
            "virt"
        } else {
            "pc"
        }
    };
    live == want || (matches!(want, "pc" | "q35" | "virt") && family(live) == want)
}

/// Takes a live machine type over; returns what the manifest has no word for.
pub fn adopt_machine(spec: &mut VmSpec, live: &str) -> Vec<String> {
    let mut rest = Vec::new();
    for (key, value) in Props::parse(live, &MACHINE).iter() {
        match (key, value) {
            ("type", "pc") => {}
            ("type", value) if is_machine(value) => spec.hardware.machine = Some(value.to_owned()),
            _ => rest.push(format!("{key}={value}")),
        }
    }
    rest
}

/// Whether a live slot holds a device of the host that no manifest declares.
pub fn undeclared<'a>(live: &LiveView<'a>, prefix: &str, declared: &[String]) -> Vec<(&'a str, &'a str)> {
    live.slots(prefix)
        .into_iter()
        .filter(|(_, slot, _)| !declared.iter().any(|d| d == slot))
        .map(|(_, slot, text)| (slot, text))
        .collect()
}
