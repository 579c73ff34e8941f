//! Random specs of LXC and TemplateCT.

use crate::draw::{Draw, Fields};
use crate::lab::{NODE, VMID};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

const OPTIONS: [&str; 6] = ["discard", "lazytime", "noatime", "nodev", "noexec", "nosuid"];

/// A container.
pub fn spec(d: &mut Draw) -> Json {
    let mut f = common(d);
    f.may(d, "state", |d| d.word(&["started", "stopped"]));
    let mut spec = f.done();
    fix(&mut spec);
    spec
}

/// A TemplateCT.
pub fn template(d: &mut Draw) -> Json {
    let mut f = common(d);
    f.may(d, "state", |_| json!("stopped"));
    let mut spec = f.done();
    fix(&mut spec);
    spec
}

fn common(d: &mut Draw) -> Fields {
    let mut f = Fields::default();
    f.must("node", NODE).must("vmid", VMID);
    f.may(d, "tags", crate::vm::tags);
    f.may(d, "pve-description", crate::vm::description);
    f.may(d, "pool", |_| json!("web"));
    if d.chance(20) {
        f.must("clone", "base");
        f.may(d, "clone-storage", |d| d.word(&["local-lvm", "nfs", "tank"]));
        f.may(d, "root", |d| json!({ "size": size(d) }));
    } else {
        f.must("template", d.word(&["deb13", "alpine"]));
        f.must("root", root(d));
        f.may(d, "ssh-key-refs", |d| {
            json!(d.some(&["cloud-init.ssh-keys.ops", "cloud-init.ssh-keys.dev"], 2))
        });
        f.may(d, "password-ref", |_| json!("cloud-init.passwords.ops"));
    }
    f.may(d, "memory", |d| {
        let mib = d.pick(&[16, 17, 512, 1024, 1536, 8192]);
        d.size(mib)
    });
    f.may(d, "swap", |d| {
        let mib = d.pick(&[0, 1, 512, 2048]);
        d.size(mib)
    });
    f.may(d, "cpu", |d| {
        let mut c = Fields::default();
        c.may(d, "cores", |d| json!(d.range(1, 8192)));
        c.may(d, "limit", |d| d.pick(&[json!(0), json!(1.5), json!(2), json!(8192)]));
        c.may(d, "units", |d| json!(d.pick(&[0u64, 1, 100, 9999, 10_000, 50_000, 500_000])));
        c.done()
    });
    f.may(d, "mount-points", mount_points);
    f.may(d, "bind-mounts", |d| {
        let slots = d.some(&["mp4", "mp5", "mp255"], 2);
        let mut out = Vec::new();
        for name in slots {
            let mut b = slot(d, name);
            b.must("host-path", d.word(&["/srv/media", "/mnt/data/", "/dev/sdb1", "/var/lib/vz/share"]));
            b.must("mount-point", d.word(&["/media", "/b", "/b/c/", "//x"]));
            b.may(d, "read-only", Draw::flag);
            out.push(b.done());
        }
        json!(out)
    });
    f.may(d, "devices", |d| {
        let slots = d.some(&["dev0", "dev1", "dev255"], 2);
        let mut out = Vec::new();
        for name in slots {
            let mut v = slot(d, name);
            v.must("path", d.word(&["/dev/dri/renderD128", "/dev/fuse", "/dev/net//tun"]));
            v.may(d, "mode", |d| d.word(&["0660", "0666", "0000"]));
            v.may(d, "uid", |d| json!(d.pick(&[0u64, 1000])));
            v.may(d, "gid", |d| json!(d.pick(&[0u64, 44])));
            v.may(d, "deny-write", Draw::flag);
            out.push(v.done());
        }
        json!(out)
    });
    f.may(d, "networks", networks);
    f.may(d, "dns", |d| {
        let mut n = Fields::default();
        n.may(d, "hostname", |d| d.word(&["", "app", "cache.example.org"]));
        n.may(d, "nameservers", |d| {
            let list = d.some(&["192.0.2.53", "2001:db8::53", "fe80::1%eth0"], 3);
            if d.coin() { json!(list) } else { json!(list.join(" ")) }
        });
        n.may(d, "domain", |d| {
            let list = d.some(&["example.org", "Lab.example.org"], 2);
            if d.coin() { json!(list) } else { json!(list.join(" ")) }
        });
        n.done()
    });
    f.may(d, "arch", |d| d.word(&["amd64", "i386", "arm64", "armhf", "riscv32", "riscv64"]));
    f.may(d, "os-type", |d| {
        d.word(&[
            "debian",
            "devuan",
            "ubuntu",
            "centos",
            "fedora",
            "opensuse",
            "archlinux",
            "alpine",
            "gentoo",
            "nixos",
            "unmanaged",
        ])
    });
    f.may(d, "timezone", |d| d.word(&["host", "Europe/Vienna", "UTC"]));
    f.may(d, "entrypoint", |d| d.word(&["/sbin/init", "/bin/sh -c 'sleep 1; x=2, y'"]));
    f.may(d, "env", |d| {
        d.pick(&[
            json!({ "LANG": "C.UTF-8", "N": 1 }),
            json!(["A=x=y", "B="]),
            json!({}),
            json!({ "FLAG": true }),
        ])
    });
    f.may(d, "options", options);
    f.may(d, "extra", |d| json!({ "debug": d.coin() }));
    f
}

fn size(d: &mut Draw) -> Json {
    let mib = d.pick(&[4, 1024, 1500, 2048, 4608, 8192, 262_144]);
    d.size(mib)
}

fn slot(d: &mut Draw, slot: &str) -> Fields {
    let mut f = Fields::default();
    if d.chance(85) {
        f.must("slot", slot);
    }
    f
}

fn mount_options(d: &mut Draw) -> Json {
    let list = d.some(&OPTIONS, 6);
    if d.coin() { json!(list) } else { json!(list.join(";")) }
}

fn root(d: &mut Draw) -> Json {
    let mut f = Fields::default();
    f.must("storage", d.word(&["local-lvm", "nfs", "tank"])).must("size", size(d));
    f.may(d, "grow", Draw::flag);
    f.may(d, "mount-options", mount_options);
    f.may(d, "acl", Draw::flag);
    f.may(d, "quota", Draw::flag);
    f.may(d, "replicate", Draw::flag);
    f.done()
}

fn mount_points(d: &mut Draw) -> Json {
    let slots = d.some(&["mp0", "mp1", "mp7", "mp200"], 3);
    let mut out = Vec::new();
    for name in slots {
        let mut f = slot(d, name);
        f.must("storage", d.word(&["local-lvm", "nfs", "tank"])).must("size", size(d));
        f.must("mount-point", d.word(&["/data", "/srv/", "/a//b", "/var/lib/x", "/with space"]));
        f.may(d, "grow", Draw::flag);
        f.may(d, "options", |d| {
            let mut o = Fields::default();
            for name in ["read-only", "backup", "acl", "quota", "shared", "replicate"] {
                o.may(d, name, Draw::flag);
            }
            o.may(d, "mount-options", mount_options);
            o.done()
        });
        out.push(f.done());
    }
    json!(out)
}

fn networks(d: &mut Draw) -> Json {
    let slots = d.some(&["net0", "net1", "net2", "net31"], 3);
    let mut out = Vec::new();
    for name in slots {
        let mut f = slot(d, name);
        if f.0.contains_key("slot") && d.chance(8) {
            f.must("absent", true);
            out.push(f.done());
            continue;
        }
        f.must("bridge", d.word(&["vmbr0", "vmbr1", "vnet-a"]));
        f.may(d, "iface", |d| d.word(&["eth0", "lan0", "wan.1", "eth1"]));
        f.may(d, "type", |_| json!("veth"));
        f.may(d, "tag", |d| json!(d.range(1, 4094)));
        f.may(d, "trunks", |d| d.pick(&[json!([30, 7]), json!("5;7"), json!([4094]), json!([9, 10, 9])]));
        f.may(d, "hwaddr", |d| d.word(&["BC:24:11:00:00:01", "bc:24:11:aa:bb:cc"]));
        f.may(d, "rate-limit", |d| d.pick(&[json!(0), json!(12.5), json!(50)]));
        f.may(d, "firewall", Draw::flag);
        f.may(d, "link-down", Draw::flag);
        f.may(d, "mtu", |d| json!(d.range(64, 65_535)));
        f.may(d, "ip", |d| d.word(&["10.0.20.5/24", "dhcp", "manual"]));
        f.may(d, "gw", |d| d.word(&["10.0.20.1", "10.0.20.2"]));
        f.may(d, "ip6", |d| d.word(&["2001:db8:20::5/64", "FE80::5/64", "auto", "dhcp", "manual"]));
        f.may(d, "gw6", |d| d.word(&["2001:db8:20::1", "fe80::1"]));
        if d.chance(10) {
            f.must("absent", false);
        }
        out.push(f.done());
    }
    json!(out)
}

fn options(d: &mut Draw) -> Json {
    let mut f = Fields::default();
    for name in ["onboot", "protection", "unprivileged", "console", "nesting", "keyctl", "fuse"] {
        f.may(d, name, Draw::flag);
    }
    f.may(d, "startup", |d| {
        d.pick(&[
            json!("order=2,up=30,down=60"),
            json!(3),
            json!("1,up=5"),
            json!({ "order": 1 }),
            json!({ "order": 4, "up": 1, "down": 2 }),
            json!("down=60,order=2"),
        ])
    });
    f.may(d, "ttys", |d| json!(d.range(0, 6)));
    f.may(d, "tty", |d| json!(d.range(0, 6)));
    f.may(d, "cmode", |d| d.word(&["tty", "console", "shell"]));
    f.may(d, "hookscript", |d| d.word(&["local:snippets/hook.sh", "local:snippets/other.sh"]));
    f.may(d, "features", |d| {
        let mut v = Fields::default();
        for name in ["nesting", "keyctl", "fuse", "mknod", "force-rw-sys"] {
            v.may(d, name, Draw::flag);
        }
        v.may(d, "mount", |d| {
            let list = d.some(&["nfs", "cifs", "ext4"], 3);
            if d.coin() { json!(list) } else { json!(list.join(";")) }
        });
        v.done()
    });
    f.done()
}

// ---- repair ----------------------------------------------------------------------------------------

fn remove(spec: &mut Json, pointer: &str, name: &str) {
    if let Some(map) = spec.pointer_mut(pointer).and_then(Json::as_object_mut) {
        map.remove(name);
    }
}

fn normal(path: &Json) -> String {
    let parts: Vec<&str> = path.as_str().unwrap_or_default().split('/').filter(|p| !p.is_empty()).collect();
    parts.join("/")
}

/// Slots of mount points and bind mounts, which share `mpN`: declared ones first, then the lowest free.
pub fn mount_slots(spec: &Json) -> (Vec<String>, Vec<String>) {
    let entries = |name: &str| spec[name].as_array().cloned().unwrap_or_default();
    let (mounts, binds) = (entries("mount-points"), entries("bind-mounts"));
    let all: Vec<Json> = mounts.iter().chain(&binds).cloned().collect();
    let mut slots = crate::vm::slots(&json!(all), "slot", "mp");
    let rest = slots.split_off(mounts.len());
    (slots, rest)
}

/// Makes a spec valid again.
pub fn fix(spec: &mut Json) {
    if spec["clone"].is_string() {
        for name in ["template", "ssh-key-refs", "password-ref"] {
            remove(spec, "", name);
        }
        for name in ["storage", "mount-options", "acl", "quota", "replicate", "grow"] {
            remove(spec, "/root", name);
        }
    } else {
        remove(spec, "", "clone-storage");
        if !spec["template"].is_string() {
            spec["template"] = json!("deb13");
        }
        for (name, value) in [("storage", "local-lvm"), ("size", "4GiB")] {
            if !spec["root"][name].is_string() {
                spec["root"][name] = json!(value);
            }
        }
    }
    paths_differ(spec);
    for (name, prefix) in [("networks", "net"), ("devices", "dev")] {
        loop {
            let slots = crate::vm::slots(&spec[name], "slot", prefix);
            let mut seen = BTreeSet::new();
            let Some(at) = slots.iter().position(|s| !seen.insert(s.clone())) else { break };
            if let Some(list) = spec[name].as_array_mut() {
                list.remove(at);
            }
        }
    }
    networks_fit(spec);
    let options = spec["options"].clone();
    if options["ttys"].is_number() && options["tty"].is_number() && options["ttys"] != options["tty"] {
        remove(spec, "/options", "tty");
    }
    for name in ["nesting", "keyctl", "fuse"] {
        let (above, below) = (&options[name], &options["features"][name]);
        if above.is_boolean() && below.is_boolean() && above != below {
            remove(spec, "/options", name);
        }
    }
}

fn paths_differ(spec: &mut Json) {
    let mut seen = BTreeSet::new();
    // A clone has its template's mount point in mp0.
    for name in ["mount-points", "bind-mounts"] {
        if let Some(list) = spec[name].as_array_mut() {
            list.retain(|entry| seen.insert(normal(&entry["mount-point"])));
        }
    }
    loop {
        let (mounts, binds) = mount_slots(spec);
        let mut seen = BTreeSet::new();
        let all: Vec<String> = mounts.iter().chain(&binds).cloned().collect();
        let Some(at) = all.iter().position(|s| !seen.insert(s.clone())) else { break };
        let (name, at) =
            if at < mounts.len() { ("mount-points", at) } else { ("bind-mounts", at - mounts.len()) };
        if let Some(list) = spec[name].as_array_mut() {
            list.remove(at);
        }
    }
}

fn networks_fit(spec: &mut Json) {
    let slots = crate::vm::slots(&spec["networks"], "slot", "net");
    let mut names = BTreeSet::new();
    let Some(list) = spec["networks"].as_array_mut() else { return };
    for (network, slot) in list.iter_mut().zip(slots) {
        if network["absent"] == json!(true) {
            *network = json!({ "slot": slot, "absent": true });
            continue;
        }
        if !network["bridge"].is_string() {
            network["bridge"] = json!("vmbr0");
        }
        if network["iface"].as_str().is_some_and(|name| !names.insert(name.to_owned())) {
            remove(network, "", "iface");
        }
    }
}
