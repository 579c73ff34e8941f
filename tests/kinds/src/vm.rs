//! Random specs of VM and TemplateVM.

use crate::draw::{Draw, Fields};
use crate::lab::{KEY_A, KEY_B, NODE, VMID};
use proxops_kind::Size;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

const FLAGS: [&str; 13] = [
    "aes",
    "amd-no-ssb",
    "amd-ssbd",
    "hv-evmcs",
    "hv-tlbflush",
    "ibpb",
    "md-clear",
    "nested-virt",
    "pcid",
    "pdpe1gb",
    "spec-ctrl",
    "ssbd",
    "virt-ssbd",
];
const MODELS: [&str; 14] = [
    "virtio",
    "e1000",
    "e1000-82540em",
    "e1000-82544gc",
    "e1000-82545em",
    "e1000e",
    "i82551",
    "i82557b",
    "i82559er",
    "ne2k_isa",
    "ne2k_pci",
    "pcnet",
    "rtl8139",
    "vmxnet3",
];
const OS: [&str; 13] = [
    "other", "wxp", "w2k", "w2k3", "w2k8", "wvista", "win7", "win8", "win10", "win11", "l24", "l26",
    "solaris",
];
const DISPLAYS: [&str; 14] = [
    "std",
    "cirrus",
    "qxl",
    "qxl2",
    "qxl3",
    "qxl4",
    "none",
    "serial0",
    "serial1",
    "serial2",
    "serial3",
    "virtio",
    "virtio-gl",
    "vmware",
];
const KEYBOARDS: [&str; 25] = [
    "de", "de-ch", "da", "en-gb", "en-us", "es", "fi", "fr", "fr-be", "fr-ca", "fr-ch", "hu", "is", "it",
    "ja", "lt", "mk", "nl", "no", "pl", "pt", "pt-br", "sv", "sl", "tr",
];
/// Slots of the disks; CD and cloud-init drives have others.
const DISK_SLOTS: [&str; 12] = [
    "scsi0", "scsi1", "scsi2", "scsi5", "scsi30", "virtio0", "virtio1", "virtio15", "sata0", "sata2", "ide0",
    "scsi3",
];

/// A VM.
pub fn spec(d: &mut Draw) -> Json {
    let mut f = common(d);
    f.may(d, "state", |d| d.word(&["started", "stopped"]));
    let mut spec = f.done();
    fix(&mut spec);
    spec
}

/// A TemplateVM.
pub fn template(d: &mut Draw) -> Json {
    let mut f = common(d);
    f.may(d, "state", |_| json!("stopped"));
    let mut spec = f.done();
    fix(&mut spec);
    spec
}

fn common(d: &mut Draw) -> Fields {
    let mut f = Fields::default();
    let clone = d.chance(20);
    let mib = memory(d);
    f.must("node", NODE).must("vmid", VMID).must("memory", d.size(mib)).must("cpu", cpu(d));
    f.may(d, "pve-name", |d| d.word(&["", "app", "web-01.example.org", "a"]));
    f.may(d, "pve-description", description);
    f.may(d, "tags", tags);
    f.may(d, "balloon", |d| {
        let mib = memory(d);
        match d.below(4) {
            0 => json!(0),
            1 => json!(mib),
            _ => d.size(mib),
        }
    });
    f.may(d, "shares", |d| json!(d.range(0, 50_000)));
    f.may(d, "hugepages", |d| d.pick(&[json!("any"), json!(2), json!("1024")]));
    f.may(d, "keep-hugepages", Draw::flag);
    if clone {
        f.must("clone", "tpl");
        f.may(d, "clone-storage", |d| d.word(&["local-lvm", "nfs", "tank"]));
        f.may(d, "clone-format", |d| d.word(&["raw", "qcow2", "vmdk"]));
    }
    f.may(d, "disks", |d| disks(d, clone));
    f.may(d, "networks", networks);
    f.may(d, "hardware", |d| hardware(d, clone));
    f.may(d, "options", options);
    f.may(d, "cloud-init-data", cloud_init_data);
    f.may(d, "os-type", |d| d.word(&OS));
    f.may(d, "pool", |_| json!("web"));
    f.may(d, "extra", extra);
    f
}

fn memory(d: &mut Draw) -> u64 {
    d.pick(&[16, 17, 512, 1000, 1024, 1536, 2048, 4096, 8192, 262_144])
}

/// Notes with all that forms and config files trip over.
pub fn description(d: &mut Draw) -> Json {
    d.word(&[
        "",
        "note",
        "one\n\nthree\n",
        "a=b;c,d&e%20 +",
        "äöü ✓",
        "trailing  \n\n",
        "#hash: 1",
        " leading",
        "\n",
    ])
}

/// Tags in any case, repeated, the owner's among them.
pub fn tags(d: &mut Draw) -> Json {
    let mut all = d.some(&["web", "prod", "Web", "_x", "a+b", "1.2-3", "proxops", "PROXOPS", "backup01"], 5);
    if d.chance(10) {
        all.extend(all.clone());
    }
    json!(all)
}

fn cpu(d: &mut Draw) -> Json {
    let mut f = Fields::default();
    f.must(
        "type",
        d.word(&["host", "kvm64", "x86-64-v2-AES", "x86-64-v3", "max", "EPYC-Milan", "custom-web"]),
    );
    f.must("cores", d.range(1, 8));
    f.may(d, "sockets", |d| json!(d.range(1, 2)));
    f.may(d, "vcpus", |d| json!(d.range(1, 16)));
    f.may(d, "limit", |d| d.pick(&[json!(0), json!(1), json!(0.5), json!(1.25), json!(128)]));
    f.may(d, "units", |d| json!(d.pick(&[1u64, 100, 1024, 9999, 10_000, 10_001, 262_144])));
    f.may(d, "affinity", |d| d.pick(&[json!("0-3"), json!("0,2-5"), json!(5), json!("7")]));
    f.may(d, "numa", Draw::flag);
    f.may(d, "flags", |d| {
        let flags: Vec<String> = d
            .some(&FLAGS, 4)
            .into_iter()
            .map(|flag| format!("{}{flag}", if d.coin() { "+" } else { "-" }))
            .collect();
        if d.coin() { json!(flags) } else { json!(flags.join(";")) }
    });
    f.may(d, "hidden", Draw::flag);
    f.may(d, "nested-virt", Draw::flag);
    f.done()
}

fn disks(d: &mut Draw, clone: bool) -> Json {
    let controller =
        d.word(&["lsi", "lsi53c810", "virtio-scsi-pci", "virtio-scsi-single", "megasas", "pvscsi"]);
    if clone {
        let slots = d.some(&["scsi0", "virtio1"], 2);
        return slots.into_iter().map(|slot| clone_disk(d, slot, &controller)).collect();
    }
    let slots = d.some(&DISK_SLOTS, 4);
    let mut volumes = vec![70, 71, 72, 73];
    let mut out = Vec::new();
    for slot in slots {
        let mut f = Fields::default();
        if d.chance(85) {
            f.must("interface", slot);
        }
        match d.below(10) {
            0 | 1 => {
                f.must("storage", d.word(&["local-lvm", "nfs", "tank"])).must("image", "deb13");
                f.may(d, "size", disk_size);
            }
            2 => {
                let n = volumes.pop().unwrap_or_default();
                let path = d.chance(30);
                f.must(
                    "volume",
                    if path { format!("/dev/sd{n}") } else { format!("local-lvm:vm-{VMID}-disk-{n}") },
                );
            }
            _ => {
                f.must("storage", d.word(&["local-lvm", "nfs", "tank"])).must("size", disk_size(d));
            }
        }
        f.may(d, "controller", |_| controller.clone());
        f.may(d, "format", |d| d.word(&["raw", "qcow2", "vmdk"]));
        disk_options(d, &mut f);
        out.push(f.done());
    }
    json!(out)
}

fn clone_disk(d: &mut Draw, slot: &str, controller: &Json) -> Json {
    let mut f = Fields::default();
    f.must("interface", slot);
    f.may(d, "size", disk_size);
    f.may(d, "controller", |_| controller.clone());
    disk_options(d, &mut f);
    f.done()
}

fn disk_size(d: &mut Draw) -> Json {
    let mib = d.pick(&[4, 512, 1024, 1500, 3072, 3584, 4096, 9420, 32_768, 262_144]);
    d.size(mib)
}

fn disk_options(d: &mut Draw, f: &mut Fields) {
    f.may(d, "cache", |d| d.word(&["none", "writethrough", "writeback", "unsafe", "directsync"]));
    f.may(d, "discard", |d| d.pick(&[json!("on"), json!("ignore"), json!("off"), json!(true), json!(false)]));
    f.may(d, "ssd", Draw::flag);
    f.may(d, "aio", |d| d.word(&["native", "threads", "io_uring"]));
    f.may(d, "iothread", Draw::flag);
    f.may(d, "backup", Draw::flag);
    f.may(d, "replicate", Draw::flag);
    f.may(d, "read-only", Draw::flag);
    f.may(d, "serial", |d| {
        d.pick(&[json!("DATA01"), json!(12345), json!("01234567890123456789"), json!("A B/1=2")])
    });
    f.may(d, "limits", |d| {
        let mut l = Fields::default();
        for name in ["mbps-rd", "mbps-wr", "mbps-rd-max", "mbps-wr-max"] {
            l.may(d, name, |d| d.pick(&[json!(0), json!(100), json!(0.5), json!(33.25)]));
        }
        for name in ["iops-rd", "iops-wr", "iops-rd-max", "iops-wr-max"] {
            l.may(d, name, |d| json!(d.pick(&[0u64, 1, 4000])));
        }
        l.done()
    });
    f.may(d, "grow", Draw::flag);
}

fn networks(d: &mut Draw) -> Json {
    let slots = d.some(&["net0", "net1", "net2", "net31"], 3);
    let one = |slot: &str, d: &mut Draw| {
        let mut f = Fields::default();
        let named = d.chance(85);
        if named {
            f.must("slot", slot);
            if d.chance(8) {
                f.must("absent", true);
                return f.done();
            }
        }
        f.must("bridge", d.word(&["vmbr0", "vmbr1", "vnet-a"]));
        f.may(d, "model", |d| d.word(&MODELS));
        f.may(d, "mac", |d| d.word(&["BC:24:11:00:00:01", "bc:24:11:aa:bb:cc", "02:00:00:00:00:0F"]));
        f.may(d, "vlan", |d| json!(d.range(1, 4094)));
        f.may(d, "trunks", |d| d.pick(&[json!([10, "20-30"]), json!("5;7"), json!([4094]), json!(["1-3"])]));
        f.may(d, "rate-limit", |d| d.pick(&[json!(0), json!(12.5), json!(100)]));
        f.may(d, "firewall", Draw::flag);
        f.may(d, "link-down", Draw::flag);
        f.may(d, "mtu", |d| json!(d.pick(&[1u64, 576, 1500, 9000, 65_520])));
        f.may(d, "queues", |d| json!(d.range(0, 64)));
        if d.chance(10) {
            f.must("absent", false);
        }
        f.done()
    };
    slots.into_iter().map(|slot| one(slot, d)).collect()
}

fn hardware(d: &mut Draw, clone: bool) -> Json {
    let mut f = Fields::default();
    f.may(d, "machine", |d| {
        d.word(&[
            "i440fx",
            "q35",
            "pc",
            "pc-q35-9.2",
            "pc-i440fx-9.2+pve1",
            "pc-q35-8.1.pxe",
            "pc-i440fx-10.0",
        ])
    });
    f.may(d, "bios", |d| d.word(&["seabios", "ovmf"]));
    f.may(d, "display", |d| {
        if d.coin() {
            return d.word(&DISPLAYS);
        }
        let mut v = Fields::default();
        v.may(d, "type", |d| d.word(&DISPLAYS));
        v.may(d, "memory", |d| d.pick(&[json!(4), json!("32MiB"), json!(512), json!("64M")]));
        v.may(d, "clipboard", |_| json!("vnc"));
        v.done()
    });
    f.may(d, "efi-disk", |d| {
        let mut e = Fields::default();
        e.must("storage", d.word(&["local-lvm", "nfs"]));
        e.may(d, "type", |d| d.word(&["2m", "4m"]));
        e.may(d, "template", |d| d.word(&["2m", "4m"]));
        e.may(d, "size", |d| d.word(&["1MiB", "4M", "528K"]));
        e.may(d, "secure-boot", |d| d.word(&["enabled", "disabled"]));
        e.done()
    });
    f.may(d, "tpm", |d| {
        let mut t = Fields::default();
        t.may(d, "storage", |d| d.word(&["local-lvm", "nfs"]));
        t.may(d, "version", |d| d.word(&["v2.0", "v1.2"]));
        t.done()
    });
    f.may(d, "cdrom", |d| {
        let mut c = Fields::default();
        match d.below(4) {
            0 => c.must("media", d.word(&["local:iso/other.iso", "none", "cdrom"])),
            1 => c.must("iso", "none").must("media", "cdrom"),
            2 => c.must("iso", d.word(&["netinst", "other"])),
            _ => &mut c,
        };
        c.may(d, "slot", |d| d.word(&["ide1", "ide2", "ide3", "sata4", "scsi12"]));
        c.done()
    });
    f.may(d, "cloud-init", |d| {
        let mut c = Fields::default();
        if !clone || d.coin() {
            c.must("storage", d.word(&["local-lvm", "nfs"]));
        }
        c.may(d, "enabled", |d| json!(d.chance(80)));
        c.may(d, "slot", |d| d.word(&["ide2", "ide3", "sata5", "scsi13"]));
        c.done()
    });
    for name in ["serial0", "serial1", "serial2", "serial3"] {
        f.may(d, name, |d| d.word(&["socket", "/dev/ttyS0", "/dev/ttyUSB1"]));
    }
    f.may(d, "pci-devices", |d| {
        let slots = d.some(&["hostpci0", "hostpci1", "hostpci15"], 2);
        slots.into_iter().map(|slot| pci(d, slot)).collect()
    });
    f.may(d, "usb-devices", |d| {
        let slots = d.some(&["usb0", "usb1", "usb13"], 2);
        slots.into_iter().map(|slot| usb(d, slot)).collect()
    });
    f.may(d, "rng", |d| {
        let mut r = Fields::default();
        r.must("source", d.word(&["/dev/urandom", "/dev/random", "/dev/hwrng"]));
        r.may(d, "max-bytes", |d| json!(d.pick(&[0u64, 1024, 2048])));
        r.may(d, "period", |d| json!(d.pick(&[1u64, 1000, 5000])));
        r.done()
    });
    f.may(d, "watchdog", |d| {
        let mut w = Fields::default();
        w.may(d, "model", |d| d.word(&["i6300esb", "ib700"]));
        w.may(d, "action", |d| d.word(&["reset", "shutdown", "poweroff", "pause", "debug", "none"]));
        w.done()
    });
    f.may(d, "audio", |d| {
        let mut a = Fields::default();
        a.must("device", d.word(&["ich9-intel-hda", "intel-hda", "AC97"]));
        a.may(d, "driver", |d| d.word(&["spice", "none"]));
        a.done()
    });
    f.may(d, "virtiofs", |d| {
        let slots = d.some(&["virtiofs0", "virtiofs1", "virtiofs9"], 2);
        slots.into_iter().map(|slot| virtiofs(d, slot)).collect()
    });
    f.may(d, "sockets", |d| json!(d.range(1, 2)));
    f.may(d, "numa", Draw::flag);
    f.done()
}

fn slot(d: &mut Draw, slot: &str) -> Fields {
    let mut f = Fields::default();
    if d.chance(85) {
        f.must("slot", slot);
    }
    f
}

fn pci(d: &mut Draw, name: &str) -> Json {
    let mut f = slot(d, name);
    if d.coin() {
        let words = ["0000:01:00.0", "01:00.0", "01:00", "0000:0A:00.1", "0000:02:00;0000:03:00", "gpu"];
        f.must("device", d.word(&words));
    } else {
        f.must("mapping", d.word(&["gpu", "nic"]));
    }
    for name in ["pcie", "x-vga", "rom-bar"] {
        f.may(d, name, Draw::flag);
    }
    f.may(d, "mdev", |d| d.word(&["nvidia-63", "i915-GVTg_V5_4"]));
    f.done()
}

fn usb(d: &mut Draw, name: &str) -> Json {
    let mut f = slot(d, name);
    if d.coin() {
        f.must("host", d.word(&["1234:abcd", "0x1234:0xABCD", "1-2", "1-2.3", "spice", "SPICE"]));
    } else {
        f.must("mapping", d.word(&["dongle", "stick"]));
    }
    f.may(d, "usb3", Draw::flag);
    f.done()
}

fn virtiofs(d: &mut Draw, name: &str) -> Json {
    let mut f = slot(d, name);
    f.must("dirid", d.word(&["media", "share"]));
    f.may(d, "cache", |d| d.word(&["auto", "always", "metadata", "never"]));
    for name in ["direct-io", "expose-acl", "expose-xattr"] {
        f.may(d, name, Draw::flag);
    }
    f.done()
}

fn options(d: &mut Draw) -> Json {
    let mut f = Fields::default();
    for name in ["onboot", "protection", "acpi", "tablet", "kvm", "localtime", "tdf", "hidden", "nested-virt"]
    {
        f.may(d, name, Draw::flag);
    }
    f.may(d, "startup", |d| {
        if d.coin() {
            return d.pick(&[
                json!(3),
                json!("order=1,up=30,down=60"),
                json!("2,up=5"),
                json!("up=7"),
                json!("9"),
            ]);
        }
        let mut s = Fields::default();
        s.must("order", d.below(9));
        s.may(d, "up", |d| json!(d.below(100)));
        s.may(d, "down", |d| json!(d.below(100)));
        s.done()
    });
    f.may(d, "agent", |d| {
        if d.coin() {
            return d.flag();
        }
        let mut a = Fields::default();
        a.may(d, "enabled", Draw::flag);
        a.may(d, "type", |d| d.word(&["virtio", "isa"]));
        a.may(d, "fstrim", Draw::flag);
        a.may(d, "freeze-fs", Draw::flag);
        a.done()
    });
    f.may(d, "hotplug", |d| {
        let list = d.some(&["network", "disk", "usb", "memory", "cpu", "cloudinit"], 6);
        match d.below(5) {
            0 => json!("0"),
            1 => json!("1"),
            2 => json!(list.join(",")),
            _ => json!(list),
        }
    });
    f.may(d, "boot-order", |d| {
        let mut all = d.some(&["scsi0", "net0", "virtio0", "scsi1", "sata0", "ide2", "usb0", "hostpci0"], 4);
        all.extend(d.some(&["net1", "scsi12"], 1));
        if d.coin() { json!(all) } else { json!(all.join(";")) }
    });
    f.may(d, "keyboard", |d| d.word(&KEYBOARDS));
    f.may(d, "hookscript", |d| d.word(&["local:snippets/hook.sh", "local:snippets/other.sh"]));
    f.done()
}

fn cloud_init_data(d: &mut Draw) -> Json {
    let mut f = Fields::default();
    f.may(d, "ci-user", |d| d.word(&["ops", "root"]));
    f.may(d, "ci-password-ref", |d| d.word(&["cloud-init.passwords.ops", "cloud-init.passwords.dev"]));
    if d.coin() {
        f.may(d, "ssh-keys", |d| {
            d.pick(&[
                json!([KEY_A]),
                json!([KEY_B, KEY_A]),
                json!(["*"]),
                json!([]),
                json!([format!("{KEY_A}\n")]),
            ])
        });
    } else {
        f.may(d, "ssh-key-refs", |d| {
            json!(d.some(&["cloud-init.ssh-keys.ops", "cloud-init.ssh-keys.dev"], 2))
        });
    }
    f.may(d, "nameservers", |d| {
        let list = d.some(&["192.0.2.53", "2001:db8::53", "9.9.9.9"], 3);
        if d.coin() { json!(list) } else { json!(list.join(" ")) }
    });
    f.may(d, "search-domains", |d| {
        let list = d.some(&["example.org", "lab.example.org"], 2);
        if d.coin() { json!(list) } else { json!(list.join(",")) }
    });
    f.may(d, "ipconfigs", |d| {
        let nics = d.some(&[json!(0), json!("net1"), json!("2"), json!("net31")], 3);
        nics.into_iter().map(|nic| ipconfig(d, nic)).collect()
    });
    f.may(d, "upgrade", Draw::flag);
    f.may(d, "type", |d| d.word(&["nocloud", "configdrive2", "opennebula"]));
    f.may(d, "custom", |d| {
        let mut c = Fields::default();
        for (name, file) in [("user", "user"), ("meta", "meta"), ("network", "net"), ("vendor", "vendor")] {
            c.may(d, name, |_| json!(format!("local:snippets/{file}.yaml")));
        }
        c.done()
    });
    f.done()
}

fn ipconfig(d: &mut Draw, nic: Json) -> Json {
    let mut f = Fields::default();
    if d.chance(85) {
        f.must("nic", nic);
    }
    f.may(d, "ip", |d| d.word(&["192.0.2.10/24", "192.0.2.11/25", "dhcp", "manual"]));
    f.may(d, "gateway", |d| d.word(&["192.0.2.1", "192.0.2.2"]));
    f.may(d, "ip6", |d| d.word(&["2001:db8::2/64", "auto", "dhcp", "manual"]));
    f.may(d, "gateway6", |d| d.word(&["2001:db8::1", "fe80::1"]));
    f.done()
}

fn extra(d: &mut Draw) -> Json {
    let mut f = Fields::default();
    f.may(d, "vmstatestorage", |d| d.word(&["local-lvm", "nfs"]));
    f.may(d, "migrate_downtime", |d| d.pick(&[json!(0.5), json!("0.10"), json!(2)]));
    f.may(d, "migrate_speed", |d| json!(d.below(9)));
    f.may(d, "autostart", Draw::flag);
    f.may(d, "freeze", Draw::flag);
    f.may(d, "reboot", |d| d.pick(&[json!(true), json!("0"), json!(1)]));
    f.may(d, "args", |d| d.word(&["-vnc 0.0.0.0:1", "-no-hpet"]));
    f.may(d, "startdate", |d| d.word(&["now", "2026-01-01"]));
    f.may(d, "numa0", |_| json!("cpus=0-1,memory=512"));
    f.done()
}

// ---- repair ----------------------------------------------------------------------------------------

/// The slot of each entry of a list, left out ones filled with the next free `<prefix>N`.
pub fn slots(list: &Json, field: &str, prefix: &str) -> Vec<String> {
    let entries = list.as_array().cloned().unwrap_or_default();
    let named: Vec<Option<String>> = entries.iter().map(|e| e[field].as_str().map(str::to_owned)).collect();
    let mut next = 0;
    let mut out = Vec::new();
    for name in &named {
        match name {
            Some(name) => out.push(name.clone()),
            None => {
                let free =
                    (next..).find(|n| !named.contains(&Some(format!("{prefix}{n}")))).unwrap_or_default();
                next = free + 1;
                out.push(format!("{prefix}{free}"));
            }
        }
    }
    out
}

/// The slot of a cloud-init drive that the manifest wants.
pub fn ci_slot(spec: &Json) -> Option<String> {
    let ci = &spec["hardware"]["cloud-init"];
    (ci.is_object() && ci["enabled"] != json!(false))
        .then(|| ci["slot"].as_str().unwrap_or("ide2").to_owned())
}

fn list<'a>(spec: &'a mut Json, pointer: &str) -> Option<&'a mut Vec<Json>> {
    spec.pointer_mut(pointer)?.as_array_mut()
}

fn remove(spec: &mut Json, pointer: &str, name: &str) {
    if let Some(map) = spec.pointer_mut(pointer).and_then(Json::as_object_mut) {
        map.remove(name);
    }
}

/// Drops list entries whose slot another one has.
fn unique(spec: &mut Json, pointer: &str, field: &str, prefix: &str, taken: &[String]) {
    let Some(entries) = list(spec, pointer) else { return };
    let mut taken: BTreeSet<String> = taken.iter().cloned().collect();
    loop {
        let all = slots(&json!(entries), field, prefix);
        let mut seen = taken.clone();
        let Some(at) = all.iter().position(|slot| !seen.insert(slot.clone())) else { break };
        entries.remove(at);
    }
    taken.clear();
}

/// Makes a spec valid again: what PVE or the manifest's own rules forbid is taken out.
pub fn fix(spec: &mut Json) {
    let clone = spec["clone"].is_string();
    if !clone {
        remove(spec, "", "clone-storage");
        remove(spec, "", "clone-format");
    }
    let mib = |v: &Json| match v {
        Json::Number(n) => n.as_u64().unwrap_or(0),
        other => Size::parse(other.as_str().unwrap_or_default()).map_or(0, |s| s.0 >> 20),
    };
    if mib(&spec["balloon"]) > mib(&spec["memory"]) {
        remove(spec, "", "balloon");
    }
    processor(spec);
    firmware(spec);
    let mut taken: Vec<String> = ci_slot(spec).into_iter().collect();
    if spec["hardware"]["cdrom"].is_object() {
        let own = spec["hardware"]["cdrom"]["slot"].as_str().map(str::to_owned);
        if own.as_ref().is_some_and(|slot| taken.contains(slot)) {
            remove(spec, "/hardware/cdrom", "slot");
        }
        let default = if taken.contains(&"ide2".to_owned()) { "ide3" } else { "ide2" };
        taken.push(spec["hardware"]["cdrom"]["slot"].as_str().unwrap_or(default).to_owned());
    }
    unique(spec, "/disks", "interface", "scsi", &taken);
    unique(spec, "/networks", "slot", "net", &[]);
    unique(spec, "/hardware/pci-devices", "slot", "hostpci", &[]);
    unique(spec, "/hardware/usb-devices", "slot", "usb", &[]);
    unique(spec, "/hardware/virtiofs", "slot", "virtiofs", &[]);
    disks_fit(spec, clone);
    for device in list(spec, "/hardware/pci-devices").into_iter().flatten() {
        one_of(device, "device", "mapping", json!("gpu"));
    }
    for device in list(spec, "/hardware/usb-devices").into_iter().flatten() {
        one_of(device, "host", "mapping", json!("dongle"));
    }
    for nic in list(spec, "/networks").into_iter().flatten() {
        if nic["absent"] == json!(true) && !nic["slot"].is_string() {
            remove(nic, "", "absent");
        }
        if nic["absent"] != json!(true) && !nic["bridge"].is_string() {
            nic["bridge"] = json!("vmbr0");
        }
    }
    cloud_init_fits(spec);
    boot_fits(spec);
    // PVE does not start a guest that may plug memory and has no NUMA.
    let plugs = spec["options"]["hotplug"].to_string().contains("memory");
    if plugs && (spec["cpu"]["numa"] != json!(true) || spec["hardware"]["numa"] == json!(false)) {
        spec["cpu"]["numa"] = json!(true);
        remove(spec, "/hardware", "numa");
    }
}

fn one_of(entry: &mut Json, a: &str, b: &str, default: Json) {
    if entry[a].is_string() {
        remove(entry, "", b);
    } else if !entry[b].is_string() {
        entry[b] = default;
    }
}

fn processor(spec: &mut Json) {
    for (new, at, name) in [
        ("/cpu/sockets", "/hardware", "sockets"),
        ("/cpu/numa", "/hardware", "numa"),
        ("/cpu/hidden", "/options", "hidden"),
        ("/cpu/nested-virt", "/options", "nested-virt"),
    ] {
        let new = spec.pointer(new).cloned();
        let old = spec.pointer(&format!("{at}/{name}")).cloned();
        if new.is_some() && old.is_some() && new != old {
            remove(spec, at, name);
        }
    }
    let sockets = spec["cpu"]["sockets"].as_u64().or(spec["hardware"]["sockets"].as_u64()).unwrap_or(1);
    let most = spec["cpu"]["cores"].as_u64().unwrap_or(1) * sockets;
    if spec["cpu"]["vcpus"].as_u64().is_some_and(|v| v > most) {
        spec["cpu"]["vcpus"] = json!(most);
    }
}

fn firmware(spec: &mut Json) {
    let efi = spec["hardware"]["efi-disk"].clone();
    if efi["type"].is_string() && efi["template"].is_string() && efi["type"] != efi["template"] {
        remove(spec, "/hardware/efi-disk", "template");
    }
    if spec["hardware"]["tpm"].is_object()
        && !spec["hardware"]["tpm"]["storage"].is_string()
        && !efi.is_object()
    {
        spec["hardware"]["tpm"]["storage"] = json!("nfs");
    }
    let cdrom = &spec["hardware"]["cdrom"];
    if cdrom["iso"].is_string() && cdrom["media"].is_string() && cdrom["media"] != json!("cdrom") {
        remove(spec, "/hardware/cdrom", "media");
    }
    let clone = spec["clone"].is_string();
    if ci_slot(spec).is_some() && !clone && !spec["hardware"]["cloud-init"]["storage"].is_string() {
        spec["hardware"]["cloud-init"]["storage"] = json!("local-lvm");
    }
}

fn disks_fit(spec: &mut Json, clone: bool) {
    let names = slots(&spec["disks"], "interface", "scsi");
    let mut controller = None;
    let mut volumes = BTreeSet::new();
    let Some(disks) = list(spec, "/disks") else { return };
    for (disk, slot) in disks.iter_mut().zip(names) {
        let bus = slot.trim_end_matches(|c: char| c.is_ascii_digit());
        if bus == "virtio" {
            remove(disk, "", "ssd");
        }
        if !matches!(bus, "scsi" | "virtio") {
            remove(disk, "", "iothread");
            remove(disk, "", "read-only");
        }
        if clone {
            for name in ["storage", "image", "volume", "format"] {
                remove(disk, "", name);
            }
        } else {
            if disk["image"].is_string() || disk["storage"].is_string() {
                remove(disk, "", "volume");
            }
            let volume = disk["volume"].as_str().map(str::to_owned);
            if volume.is_some_and(|v| !volumes.insert(v)) {
                remove(disk, "", "volume");
            }
            if disk["volume"].is_string() {
                // It has the size it has.
                remove(disk, "", "size");
            } else {
                if !disk["storage"].is_string() {
                    disk["storage"] = json!("local-lvm");
                }
                if !disk["image"].is_string() && !disk["size"].is_string() {
                    disk["size"] = json!("1GiB");
                }
            }
            // Only files have a format.
            if disk["storage"] != json!("nfs") && disk["format"].is_string() {
                disk["format"] = json!("raw");
            }
        }
        match (&controller, disk["controller"].as_str()) {
            (None, Some(own)) => controller = Some(own.to_owned()),
            (Some(first), Some(_)) => disk["controller"] = json!(first),
            _ => {}
        }
        for way in ["rd", "wr"] {
            for unit in ["mbps", "iops"] {
                // A burst needs a base.
                if !disk["limits"][format!("{unit}-{way}")].as_f64().is_some_and(|v| v > 0.0) {
                    remove(disk, "/limits", &format!("{unit}-{way}-max"));
                }
            }
        }
    }
}

fn cloud_init_fits(spec: &mut Json) {
    if spec["cloud-init-data"]["ssh-keys"].is_array() {
        remove(spec, "/cloud-init-data", "ssh-key-refs");
    }
    let Some(configs) = list(spec, "/cloud-init-data/ipconfigs") else { return };
    loop {
        let taken: Vec<Option<u64>> = configs.iter().map(nic_number).collect();
        let mut next = 0;
        let mut seen = BTreeSet::new();
        let mut twice = None;
        for (i, number) in taken.iter().enumerate() {
            let number = number.unwrap_or_else(|| {
                let free = (next..).find(|n| !taken.contains(&Some(*n))).unwrap_or_default();
                next = free + 1;
                free
            });
            if !seen.insert(number) {
                twice = Some(i);
            }
        }
        match twice {
            Some(i) => configs.remove(i),
            None => break,
        };
    }
    for config in configs {
        for (address, gateway) in [("ip", "gateway"), ("ip6", "gateway6")] {
            if !config[address].as_str().is_some_and(|a| a.contains('/')) {
                remove(config, "", gateway);
            }
        }
    }
}

fn nic_number(config: &Json) -> Option<u64> {
    match &config["nic"] {
        Json::Number(n) => n.as_u64(),
        Json::String(text) => text.trim_start_matches("net").parse().ok(),
        _ => None,
    }
}

/// A boot order names devices that are declared; a clone's also those of its template.
fn boot_fits(spec: &mut Json) {
    let mut there = slots(&spec["disks"], "interface", "scsi");
    let nics = slots(&spec["networks"], "slot", "net");
    let absent: Vec<bool> =
        spec["networks"].as_array().into_iter().flatten().map(|n| n["absent"] == json!(true)).collect();
    there.extend(nics.into_iter().zip(absent).filter(|(_, gone)| !gone).map(|(slot, _)| slot));
    there.extend(slots(&spec["hardware"]["pci-devices"], "slot", "hostpci"));
    there.extend(slots(&spec["hardware"]["usb-devices"], "slot", "usb"));
    if spec["hardware"]["cdrom"].is_object() {
        let default = if ci_slot(spec).as_deref() == Some("ide2") { "ide3" } else { "ide2" };
        there.push(spec["hardware"]["cdrom"]["slot"].as_str().unwrap_or(default).to_owned());
    }
    if spec["clone"].is_string() {
        there.extend(["scsi0".to_owned(), "virtio1".to_owned()]);
    }
    let Some(order) = spec.pointer_mut("/options/boot-order") else { return };
    let keep = |all: Vec<String>| all.into_iter().filter(|d| there.contains(d)).collect::<Vec<_>>();
    let strings = |list: &[Json]| list.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect();
    *order = match &*order {
        Json::Array(all) => json!(keep(strings(all))),
        Json::String(text) => json!(keep(text.split(';').map(str::to_owned).collect()).join(";")),
        other => other.clone(),
    };
}
