//! Random living clusters: whatever PVE accepts, by proxops or by hand, modelled or not.

use crate::draw::Draw;
use crate::kinds::{Kind, LXC, TEMPLATE_CT, TEMPLATE_VM, VM};
use crate::lab::{Lab, VMID};
use proxops_sim::grammar::{self, Format, Param, Table};
use proxops_sim::{Caller, GuestKind, World, seed};
use serde_json::json;
use std::collections::BTreeMap;

/// Guests of one cluster.
pub const GUESTS: u32 = 24;

/// The cluster of a case: templates, files, and guests of all four kinds, many with one name, few of them ours.
pub fn cluster(case: u64) -> World {
    let mut d = Draw::new(case);
    let mut world = Lab::new().world;
    for n in 0..GUESTS {
        d.vary();
        let kind = d.pick(&[VM, VM, TEMPLATE_VM, LXC, LXC, TEMPLATE_CT]);
        let spec = (kind.spec)(&mut d);
        let mut lab = Lab::new();
        // What a manifest can't make is no guest; the other tests say why.
        if lab.create(&kind, &spec).is_err() {
            continue;
        }
        let vmid = 200 + n;
        let node = d.pick(&seed::NODES);
        settle(&mut world, &mut d, &kind, vmid, node, lab.config());
    }
    world
}

/// Puts a guest of another cluster into this one, under another vmid, and lets people and time work on it.
fn settle(
    world: &mut World,
    d: &mut Draw,
    kind: &Kind,
    vmid: u32,
    node: &str,
    config: BTreeMap<String, String>,
) {
    let guest = kind.guest().expect("a guest kind");
    let mut config: BTreeMap<String, String> = config
        .into_iter()
        .map(|(key, value)| {
            let value = value.replace(&format!("-{VMID}-"), &format!("-{vmid}-"));
            (key, value.replace(&format!(":{VMID}/"), &format!(":{vmid}/")))
        })
        .collect();
    if d.chance(80) {
        let tags = config.get("tags").cloned().unwrap_or_default();
        let left: Vec<&str> = tags.split(';').filter(|t| !t.is_empty() && *t != "proxops").collect();
        match left.join(";") {
            none if none.is_empty() => config.remove("tags"),
            some => config.insert("tags".into(), some),
        };
    }
    let pairs: Vec<(&str, &str)> = config.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    world.add_guest(guest, vmid, node, &pairs);
    // By hand, as root@pam, whatever PVE takes.
    for param in table(guest).iter().flat_map(|group| group.iter()) {
        if d.chance(5) && !LEFT.contains(&param.name) {
            let body = json!({(key(param, d)): value(param, d)});
            let path = format!("/nodes/{node}/{}/{vmid}/config", guest.path());
            let _ = world.call(&Caller::root(), "PUT", &path, body);
            world.finish_tasks();
        }
    }
    let raw = d.chance(30) && guest == GuestKind::Lxc;
    if let Some(made) = world.guests.get_mut(&vmid) {
        if raw {
            made.raw.push(("lxc.cap.drop".into(), "sys_nice".into()));
        }
        made.running = !kind.template && d.coin();
    }
}

/// Keys that are no configuration of a guest that stays.
const LEFT: [&str; 4] = ["lock", "template", "unused", "rootfs"];

/// Every option of a guest type.
pub fn table(guest: GuestKind) -> Table {
    match guest {
        GuestKind::Qemu => grammar::vm::TABLE,
        GuestKind::Lxc => grammar::ct::TABLE,
    }
}

/// The name of a parameter; of a family one of its first.
pub fn key(param: &Param, d: &mut Draw) -> String {
    match param.index {
        Some((low, high)) => {
            let last = u64::from(high.min(low + 5));
            format!("{}{}", param.name, d.range(u64::from(low), last))
        }
        None => param.name.to_owned(),
    }
}

/// A value that fits the grammar, as far as that can be told.
pub fn value(param: &Param, d: &mut Draw) -> String {
    if !param.values.is_empty() {
        let words: Vec<&str> = param.values.split(' ').collect();
        return d.pick(&words).to_owned();
    }
    match (param.kind, param.format) {
        (grammar::Kind::Flag, _) => d.pick(&["0", "1"]).to_owned(),
        (grammar::Kind::Integer | grammar::Kind::Number, _) => {
            let low = param.min.unwrap_or(1).max(0) as u64;
            let high = param.max.map_or(low + 1000, |high| high.max(0) as u64).min(low + 1000);
            d.range(low, high).to_string()
        }
        (_, Format::Props(table)) => props(table, d),
        (_, Format::Named(name)) => named(name, d),
        _ => word(param.name, d),
    }
}

fn props(table: Table, d: &mut Draw) -> String {
    let mut parts = Vec::new();
    for param in table.iter().flat_map(|group| group.iter()) {
        if param.kind != grammar::Kind::Alias && (param.required || d.chance(30)) {
            parts.push(format!("{}={}", param.name, value(param, d)));
        }
    }
    parts.join(",")
}

fn named(format: &str, d: &mut Draw) -> String {
    let known: &[&str] = match format {
        "pve-volume-id" | "pve-volume-id-or-qm-path" => {
            &["local:snippets/hook.sh", "none", "local:iso/netinst.iso", "cdrom", "local-lvm:2"]
        }
        "dns-name" => &["a", "web.example.org"],
        "pve-tag-list" => &["x;y", "Z"],
        "pve-startup-order" => &["order=3", "order=1,up=30,down=20"],
        "pve-ct-timezone" => &["host", "Europe/Berlin"],
        _ => &["1", "a", "local", "192.0.2.7", "order=net0", "x86-64-v3"],
    };
    d.pick(known).to_owned()
}

fn word(name: &str, d: &mut Draw) -> String {
    let known: &[&str] = match name {
        "bridge" => &["vmbr0", "vmbr1"],
        "macaddr" | "hwaddr" => &["BC:24:11:AA:BB:01", "BC:24:11:AA:BB:02"],
        "args" => &["-device virtio-rng-pci"],
        "smbios1" => &["uuid=00000000-0000-4000-8000-00000000000a,serial=MTIz,base64=1"],
        "description" => &["by hand", "two\nlines"],
        "mp" => &["/srv", "/data"],
        "path" => &["/dev/ttyUSB0"],
        "startdate" => &["now", "2026-01-02"],
        "boot" => &["order=net0", "cdn"],
        "env" => &["A=1\0B=2"],
        _ => &["1", "x", "local:snippets/hook.sh", "1-2", "/dev/parport0"],
    };
    d.pick(known).to_owned()
}
