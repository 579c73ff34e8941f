//! Two values for every field, and what a change from one to the other must do.

use crate::kinds::Kind;
use crate::lab::{KEY_A, KEY_B, NODE, VMID};
use crate::schema::Field;
use proxops_sim::GuestKind;
use serde_json::{Map, Value as Json, json};

/// What follows when a field changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// One configuration write.
    Write,
    /// One resize; the way back is an anomaly of this code.
    Grow(&'static str),
    /// An anomaly of this code and no write: only creation can set it.
    Fixed(&'static str),
    /// Nothing: it is never compared.
    Nothing,
}

/// What follows when a field that was applied leaves the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// Nothing: PVE's value stays.
    Stays,
    /// A default that the specification gives takes its place.
    Default,
    /// It can't leave: the schema requires it.
    Required,
}

/// How one field is tried.
#[derive(Debug, Clone)]
pub struct Sample {
    /// What stands beside it.
    pub base: Json,
    /// First value.
    pub one: Json,
    /// Second value.
    pub two: Json,
    /// PVE key that carries it.
    pub key: String,
    /// Of a change.
    pub then: Then,
    /// Of a removal.
    pub gone: Gone,
}

/// Fields that only name an entry or say where a guest is, and those that the templates' own tests hold.
const IDENTITY: &[(&str, &str)] = &[
    ("node", "names the guest's place"),
    ("nodes", "names the file's places"),
    ("vmid", "names the guest"),
    ("storage", "names the file"),
    ("filename", "names the file"),
    ("clone", "decides how it is made; see golden and property tests"),
    ("clone-storage", "needs clone; see golden and property tests"),
    ("clone-format", "needs clone; see golden and property tests"),
    ("disks/[]/interface", "names the entry"),
    ("networks/[]/slot", "names the entry"),
    ("mount-points/[]/slot", "names the entry"),
    ("bind-mounts/[]/slot", "names the entry"),
    ("devices/[]/slot", "names the entry"),
    ("hardware/pci-devices/[]/slot", "names the entry"),
    ("hardware/usb-devices/[]/slot", "names the entry"),
    ("hardware/virtiofs/[]/slot", "names the entry"),
    ("hardware/cdrom/slot", "names the drive"),
    ("cloud-init-data/ipconfigs/[]/nic", "names the entry"),
    ("disks/[]/grow", "gives leave; see size"),
    ("root/grow", "gives leave; see size"),
    ("mount-points/[]/grow", "gives leave; see size"),
];

/// Why a field has no sample of its own.
pub fn left_out(kind: &Kind, path: &str) -> Option<&'static str> {
    // The storage of a guest's disk is compared, that of a file is its identity.
    let whole = kind.guest().is_none() || path != "storage";
    if kind.guest() == Some(GuestKind::Lxc) && path == "networks/[]/absent" {
        return Some("stands alone with its slot; see the property test");
    }
    IDENTITY.iter().find(|(p, _)| *p == path && whole).map(|(_, why)| *why)
}

fn merged(base: Json, over: Json) -> Json {
    match (base, over) {
        (Json::Object(mut base), Json::Object(over)) => {
            for (name, value) in over {
                let old = base.remove(&name).unwrap_or(Json::Null);
                base.insert(name, merged(old, value));
            }
            Json::Object(base)
        }
        (_, over) => over,
    }
}

/// The spec with a value at a path; list paths mean the first entry.
pub fn put(spec: &Json, path: &str, value: Option<&Json>) -> Json {
    fn go(here: &mut Json, steps: &[&str], value: Option<&Json>) {
        let [first, rest @ ..] = steps else {
            return;
        };
        if *first == "[]" {
            if !here.is_array() {
                *here = json!([{}]);
            }
            return go(&mut here[0], rest, value);
        }
        if !here.is_object() {
            *here = Json::Object(Map::new());
        }
        let map = here.as_object_mut().unwrap();
        match (rest, value) {
            ([], Some(value)) => {
                map.insert((*first).to_owned(), value.clone());
            }
            ([], None) => {
                map.remove(*first);
            }
            _ => go(map.entry(*first).or_insert(Json::Null), rest, value),
        }
    }
    let mut spec = spec.clone();
    go(&mut spec, &path.split('/').collect::<Vec<_>>(), value);
    spec
}

/// How a field is tried; `None` when nobody thought of it yet.
pub fn sample(kind: &Kind, path: &str, field: &Field) -> Option<Sample> {
    let vm = kind.guest() == Some(GuestKind::Qemu);
    let special = match kind.guest() {
        Some(GuestKind::Qemu) => vm_special(path),
        Some(GuestKind::Lxc) => ct_special(path),
        None => None,
    };
    let (one, two) = match special.as_ref().and_then(|s| s.values.clone()) {
        Some(values) => values,
        None => usual(field)?,
    };
    let base = match kind.guest() {
        Some(GuestKind::Qemu) => vm_base(path),
        _ => ct_base(path),
    };
    let base = merged(base, special.as_ref().map_or(json!({}), |s| s.base.clone()));
    let carried = if vm { vm_key(path) } else { ct_key(path) };
    let key = carried.map(str::to_owned).or_else(|| field.pve_key.clone()).unwrap_or_default();
    let gone = match path {
        "pve-name" | "dns/hostname" | "networks/[]/model" => Gone::Default,
        // The whole text is owned.
        _ if !vm && path.starts_with("options/startup/") => Gone::Default,
        _ if field.required => Gone::Required,
        _ => special.as_ref().map_or(Gone::Stays, |s| s.gone),
    };
    Some(Sample { base, one, two, key, then: special.map_or(Then::Write, |s| s.then), gone })
}

/// Values that follow from the schema alone: the ends of its range, two of its choices.
fn usual(field: &Field) -> Option<(Json, Json)> {
    if let [one, two, ..] = &field.choices[..] {
        return Some((one.clone(), two.clone()));
    }
    if let [only] = &field.choices[..] {
        return Some((only.clone(), only.clone()));
    }
    match field.types.first().map(String::as_str) {
        Some("boolean") if field.types.len() == 1 => Some((json!(true), json!(false))),
        Some("integer") => {
            let low = field.range.0.unwrap_or(0.0).max(1.0);
            let high = field.range.1.unwrap_or(low + 6.0);
            Some((json!(high as u64), json!(low as u64)))
        }
        Some("number") => Some((json!(field.range.1.unwrap_or(100.0)), json!(0.5))),
        _ => None,
    }
}

struct Special {
    values: Option<(Json, Json)>,
    base: Json,
    then: Then,
    gone: Gone,
}

fn values(one: Json, two: Json) -> Option<Special> {
    Some(Special { values: Some((one, two)), base: json!({}), then: Then::Write, gone: Gone::Stays })
}

fn with(base: Json, one: Json, two: Json) -> Option<Special> {
    Some(Special { base, ..values(one, two)? })
}

fn then(then: Then, base: Json, one: Json, two: Json) -> Option<Special> {
    Some(Special { then, base, ..values(one, two)? })
}

fn required(special: Option<Special>) -> Option<Special> {
    Some(Special { gone: Gone::Required, ..special? })
}

fn vm_base(path: &str) -> Json {
    let base = json!({ "node": NODE, "vmid": VMID, "memory": "4GiB", "cpu": { "type": "host", "cores": 4 } });
    let part = |prefix: &str| path.starts_with(prefix);
    let more = if part("disks/") {
        json!({ "disks": [{ "interface": "scsi0", "storage": "local-lvm", "size": "8GiB" }] })
    } else if part("networks/") {
        json!({ "networks": [{ "slot": "net0", "bridge": "vmbr0", "mac": "BC:24:11:00:00:01" }] })
    } else if part("hardware/efi-disk/") {
        json!({ "hardware": { "bios": "ovmf", "efi-disk": { "storage": "local-lvm" } } })
    } else if part("hardware/tpm/") {
        json!({ "hardware": { "tpm": { "storage": "local-lvm" } } })
    } else if part("hardware/cloud-init/") {
        json!({ "hardware": { "cloud-init": { "storage": "local-lvm" } } })
    } else if part("hardware/rng/") {
        json!({ "hardware": { "rng": { "source": "/dev/urandom" } } })
    } else if part("hardware/audio/") {
        json!({ "hardware": { "audio": { "device": "AC97" } } })
    } else if part("hardware/pci-devices/") {
        json!({ "hardware": { "machine": "q35", "pci-devices": [{ "slot": "hostpci0", "mapping": "gpu" }] } })
    } else if part("hardware/usb-devices/") {
        json!({ "hardware": { "usb-devices": [{ "slot": "usb0", "mapping": "dongle" }] } })
    } else if part("hardware/virtiofs/") {
        json!({ "hardware": { "virtiofs": [{ "slot": "virtiofs0", "dirid": "media" }] } })
    } else if part("hardware/display/") {
        json!({ "hardware": { "display": { "type": "qxl" } } })
    } else if part("options/agent/") {
        json!({ "options": { "agent": { "enabled": true } } })
    } else if part("cloud-init-data/ipconfigs/") {
        json!({ "cloud-init-data": { "ipconfigs": [{ "nic": 0, "ip": "192.0.2.9/24", "ip6": "2001:db8::9/64" }] } })
    } else {
        json!({})
    };
    merged(base, more)
}

/// The PVE key that carries a field inside a property string.
fn vm_key(path: &str) -> Option<&'static str> {
    const CARRIERS: &[(&str, &str)] = &[
        ("disks/[]/controller", "scsihw"),
        ("disks/", "scsi0"),
        ("networks/", "net0"),
        ("hardware/efi-disk/", "efidisk0"),
        ("hardware/tpm/", "tpmstate0"),
        ("hardware/cdrom/", "ide2"),
        ("hardware/cloud-init/", "ide2"),
        ("hardware/rng/", "rng0"),
        ("hardware/watchdog/", "watchdog"),
        ("hardware/audio/", "audio0"),
        ("hardware/pci-devices/", "hostpci0"),
        ("hardware/usb-devices/", "usb0"),
        ("hardware/virtiofs/", "virtiofs0"),
        ("hardware/display/", "vga"),
        ("options/agent/", "agent"),
        ("options/startup/", "startup"),
        ("cloud-init-data/ipconfigs/", "ipconfig0"),
        ("cloud-init-data/custom/", "cicustom"),
        ("extra", "migrate_downtime"),
    ];
    CARRIERS.iter().find(|(prefix, _)| path.starts_with(prefix)).map(|(_, key)| *key)
}

fn vm_special(path: &str) -> Option<Special> {
    let disk = |over: Json| json!({ "disks": [merged(json!({ "interface": "scsi0", "storage": "local-lvm", "size": "8GiB" }), over)] });
    match path {
        "state" => then(Then::Nothing, json!({}), json!("stopped"), json!("stopped")),
        "pve-name" => values(json!("web-01"), json!("web-02.example.org")),
        "pve-description" => values(json!("one"), json!("two\n\n three; a=b, c")),
        "tags" => values(json!(["a"]), json!(["B", "c"])),
        "memory" => values(json!("2GiB"), json!("1536MiB")),
        "balloon" => values(json!("1GiB"), json!(512)),
        "hugepages" => values(json!("any"), json!(1024)),
        "pool" => then(Then::Nothing, json!({}), json!("web"), json!("web")),
        "extra" => values(json!({ "migrate_downtime": 0.5 }), json!({ "migrate_downtime": 2 })),
        "cpu/type" => values(json!("host"), json!("x86-64-v2-AES")),
        "cpu/cores" => values(json!(2), json!(3)),
        "cpu/vcpus" => values(json!(1), json!(4)),
        "cpu/affinity" => values(json!("0-3"), json!(5)),
        "cpu/flags" => values(json!(["+aes", "-pcid"]), json!("+ssbd")),
        "disks/[]/storage" => {
            then(Then::Fixed("storage-mismatch"), json!({}), json!("local-lvm"), json!("nfs"))
        }
        "disks/[]/size" => {
            then(Then::Grow("size-mismatch"), disk(json!({ "grow": true })), json!("8GiB"), json!("9420MiB"))
        }
        "disks/[]/image" => then(Then::Nothing, json!({}), json!("deb13"), json!("deb13")),
        "disks/[]/volume" => required(then(
            Then::Fixed("volume-mismatch"),
            json!({ "disks": [{ "interface": "scsi0" }] }),
            json!("local-lvm:vm-101-disk-70"),
            json!("local-lvm:vm-101-disk-71"),
        )),
        "disks/[]/format" => {
            then(Then::Nothing, disk(json!({ "storage": "nfs" })), json!("qcow2"), json!("raw"))
        }
        // PVE takes it percent-encoded.
        "disks/[]/serial" => values(json!("DATA/01, a=b"), json!(77)),
        "disks/[]/limits/mbps-rd-max" => {
            with(disk(json!({ "limits": { "mbps-rd": 10 } })), json!(100.5), json!(50))
        }
        "disks/[]/limits/mbps-wr-max" => {
            with(disk(json!({ "limits": { "mbps-wr": 10 } })), json!(100.5), json!(50))
        }
        "disks/[]/limits/iops-rd-max" => {
            with(disk(json!({ "limits": { "iops-rd": 10 } })), json!(100), json!(50))
        }
        "disks/[]/limits/iops-wr-max" => {
            with(disk(json!({ "limits": { "iops-wr": 10 } })), json!(100), json!(50))
        }
        "disks/[]/limits/iops-rd" | "disks/[]/limits/iops-wr" => values(json!(100), json!(0)),
        "networks/[]/bridge" => required(values(json!("vmbr0"), json!("vnet-a"))),
        "networks/[]/mac" => values(json!("BC:24:11:00:00:01"), json!("bc:24:11:00:00:ff")),
        "networks/[]/trunks" => values(json!([10, "20-30"]), json!("5;6")),
        "networks/[]/model" => values(json!("e1000"), json!("vmxnet3")),
        "networks/[]/absent" => with(json!({}), json!(false), json!(true)),
        "hardware/machine" => values(json!("q35"), json!("pc-i440fx-9.2+pve1")),
        "hardware/display" => values(json!("qxl"), json!("serial0")),
        "hardware/display/type" => values(json!("qxl"), json!("serial1")),
        "hardware/display/memory" => values(json!(512), json!("4MiB")),
        "hardware/efi-disk/storage" => {
            then(Then::Fixed("storage-mismatch"), json!({}), json!("local-lvm"), json!("nfs"))
        }
        "hardware/efi-disk/type" | "hardware/efi-disk/template" => {
            then(Then::Fixed("needs-recreate"), json!({}), json!("4m"), json!("2m"))
        }
        "hardware/efi-disk/size" => then(Then::Nothing, json!({}), json!("1MiB"), json!("4MiB")),
        "hardware/efi-disk/secure-boot" => {
            then(Then::Fixed("needs-recreate"), json!({}), json!("enabled"), json!("disabled"))
        }
        // Without its storage it takes the efi-disk's, so that it can't just leave.
        "hardware/tpm/storage" => {
            required(then(Then::Fixed("storage-mismatch"), json!({}), json!("local-lvm"), json!("nfs")))
        }
        "hardware/tpm/version" => {
            then(Then::Fixed("needs-recreate"), json!({}), json!("v2.0"), json!("v1.2"))
        }
        // An empty drive is what a drive without a medium means.
        "hardware/cdrom/iso" => {
            Some(Special { gone: Gone::Default, ..values(json!("netinst"), json!("other"))? })
        }
        "hardware/cdrom/media" => {
            Some(Special { gone: Gone::Default, ..values(json!("local:iso/other.iso"), json!("cdrom"))? })
        }
        "hardware/cloud-init/enabled" => {
            then(Then::Fixed("cloud-init-drive"), json!({}), json!(true), json!(false))
        }
        "hardware/cloud-init/storage" => {
            required(then(Then::Fixed("storage-mismatch"), json!({}), json!("local-lvm"), json!("nfs")))
        }
        "hardware/cloud-init/slot" => {
            then(Then::Fixed("cloud-init-slot"), json!({}), json!("ide2"), json!("sata5"))
        }
        "hardware/serial0" | "hardware/serial1" | "hardware/serial2" | "hardware/serial3" => {
            values(json!("socket"), json!("/dev/ttyS0"))
        }
        "hardware/pci-devices/[]/device" => required(Some(Special {
            base: json!({ "hardware": { "pci-devices": [{ "slot": "hostpci0" }] } }),
            ..values(json!("0000:01:00.0"), json!("0000:0A:00"))?
        })),
        "hardware/pci-devices/[]/mapping" => required(values(json!("gpu"), json!("nic"))),
        "hardware/pci-devices/[]/mdev" => values(json!("nvidia-63"), json!("nvidia-64")),
        "hardware/usb-devices/[]/host" => required(Some(Special {
            base: json!({ "hardware": { "usb-devices": [{ "slot": "usb0" }] } }),
            ..values(json!("1234:abcd"), json!("spice"))?
        })),
        "hardware/usb-devices/[]/mapping" => required(values(json!("dongle"), json!("stick"))),
        "hardware/virtiofs/[]/dirid" => values(json!("media"), json!("share")),
        "options/startup" => values(json!(3), json!("order=2,up=30,down=60")),
        "options/startup/order" => with(json!({ "options": { "startup": { "up": 3 } } }), json!(1), json!(2)),
        "options/startup/up" | "options/startup/down" => {
            with(json!({ "options": { "startup": { "order": 3 } } }), json!(1), json!(2))
        }
        "options/agent" => values(json!(true), json!(false)),
        "options/hotplug" => values(json!(["network"]), json!([])),
        "options/boot-order" => with(
            json!({ "disks": [{ "interface": "scsi0", "storage": "nfs", "size": "1GiB" }], "networks": [{ "slot": "net0", "bridge": "vmbr0" }] }),
            json!(["net0", "scsi0"]),
            json!("scsi0"),
        ),
        "options/hookscript" => values(json!("local:snippets/hook.sh"), json!("local:snippets/other.sh")),
        "cloud-init-data/ci-user" => values(json!("ops"), json!("root")),
        "cloud-init-data/ci-password-ref" => then(
            Then::Nothing,
            json!({}),
            json!("cloud-init.passwords.ops"),
            json!("cloud-init.passwords.dev"),
        ),
        "cloud-init-data/ssh-keys" => values(json!([KEY_A]), json!([KEY_B])),
        "cloud-init-data/ssh-key-refs" => {
            values(json!(["cloud-init.ssh-keys.ops"]), json!(["cloud-init.ssh-keys.dev"]))
        }
        "cloud-init-data/nameservers" => values(json!(["192.0.2.53"]), json!("192.0.2.54 2001:db8::53")),
        "cloud-init-data/search-domains" => values(json!(["example.org"]), json!("lab.example.org")),
        "cloud-init-data/ipconfigs/[]/ip" => values(json!("192.0.2.9/24"), json!("192.0.2.8/25")),
        "cloud-init-data/ipconfigs/[]/gateway" => values(json!("192.0.2.1"), json!("192.0.2.2")),
        "cloud-init-data/ipconfigs/[]/ip6" => values(json!("2001:db8::9/64"), json!("auto")),
        "cloud-init-data/ipconfigs/[]/gateway6" => values(json!("2001:db8::1"), json!("fe80::1")),
        "cloud-init-data/custom/user" | "cloud-init-data/custom/meta" => {
            values(json!("local:snippets/user.yaml"), json!("local:snippets/meta.yaml"))
        }
        "cloud-init-data/custom/network" | "cloud-init-data/custom/vendor" => {
            values(json!("local:snippets/net.yaml"), json!("local:snippets/vendor.yaml"))
        }
        _ => None,
    }
}

fn ct_base(path: &str) -> Json {
    let base = json!({
        "node": NODE, "vmid": VMID, "template": "deb13", "root": { "storage": "local-lvm", "size": "8GiB" },
    });
    let part = |prefix: &str| path.starts_with(prefix);
    let more = if part("mount-points/") {
        json!({ "mount-points": [{ "slot": "mp0", "storage": "local-lvm", "size": "4GiB", "mount-point": "/data" }] })
    } else if part("bind-mounts/") {
        json!({ "bind-mounts": [{ "slot": "mp0", "host-path": "/srv/media", "mount-point": "/media" }] })
    } else if part("devices/") {
        json!({ "devices": [{ "slot": "dev0", "path": "/dev/fuse" }] })
    } else if part("networks/") {
        json!({ "networks": [{ "slot": "net0", "bridge": "vmbr0", "ip": "10.0.0.5/24", "ip6": "2001:db8::5/64" }] })
    } else {
        json!({})
    };
    merged(base, more)
}

fn ct_key(path: &str) -> Option<&'static str> {
    const CARRIERS: &[(&str, &str)] = &[
        ("root/", "rootfs"),
        ("mount-points/", "mp0"),
        ("bind-mounts/", "mp0"),
        ("devices/", "dev0"),
        ("networks/", "net0"),
        ("options/features/", "features"),
        ("options/nesting", "features"),
        ("options/keyctl", "features"),
        ("options/fuse", "features"),
        ("options/startup/", "startup"),
        ("extra", "debug"),
    ];
    CARRIERS.iter().find(|(prefix, _)| path.starts_with(prefix)).map(|(_, key)| *key)
}

fn ct_special(path: &str) -> Option<Special> {
    match path {
        "state" => then(Then::Nothing, json!({}), json!("stopped"), json!("stopped")),
        "tags" => values(json!(["a"]), json!(["B", "c"])),
        "pve-description" => values(json!("one"), json!("two\n\n three; a=b, c")),
        "pool" => then(Then::Nothing, json!({}), json!("web"), json!("web")),
        "template" => then(Then::Nothing, json!({}), json!("deb13"), json!("alpine")),
        "ssh-key-refs" => then(
            Then::Nothing,
            json!({}),
            json!(["cloud-init.ssh-keys.ops"]),
            json!(["cloud-init.ssh-keys.dev"]),
        ),
        "password-ref" => then(
            Then::Nothing,
            json!({}),
            json!("cloud-init.passwords.ops"),
            json!("cloud-init.passwords.dev"),
        ),
        "memory" => values(json!("1GiB"), json!("1536MiB")),
        "swap" => values(json!("1GiB"), json!("0MiB")),
        "cpu/units" => values(json!(9_999), json!(1)),
        "root/storage" => then(Then::Fixed("storage-mismatch"), json!({}), json!("local-lvm"), json!("nfs")),
        "root/size" => {
            let base = json!({ "root": { "grow": true } });
            then(Then::Grow("size-mismatch"), base, json!("8GiB"), json!("9420MiB"))
        }
        "root/mount-options" => values(json!(["noatime", "discard"]), json!("nosuid")),
        "mount-points/[]/storage" => {
            then(Then::Fixed("storage-mismatch"), json!({}), json!("local-lvm"), json!("nfs"))
        }
        "mount-points/[]/size" => {
            let mount =
                json!({ "slot": "mp0", "storage": "local-lvm", "mount-point": "/data", "grow": true });
            then(
                Then::Grow("size-mismatch"),
                json!({ "mount-points": [mount] }),
                json!("4GiB"),
                json!("9420MiB"),
            )
        }
        "mount-points/[]/mount-point" => values(json!("/data"), json!("/srv/x/")),
        "mount-points/[]/options/mount-options" => values(json!(["noatime"]), json!("discard;nodev")),
        "bind-mounts/[]/host-path" => {
            then(Then::Fixed("volume-mismatch"), json!({}), json!("/srv/media"), json!("/srv/other"))
        }
        "bind-mounts/[]/mount-point" => values(json!("/media"), json!("/other")),
        "devices/[]/path" => values(json!("/dev/fuse"), json!("/dev/kvm")),
        "devices/[]/mode" => values(json!("0660"), json!("0644")),
        "networks/[]/bridge" => required(values(json!("vmbr0"), json!("vnet-a"))),
        "networks/[]/absent" => {
            with(json!({ "networks": [{ "slot": "net0", "bridge": "vmbr0" }] }), json!(false), json!(true))
        }
        "networks/[]/iface" => values(json!("lan0"), json!("wan0")),
        "networks/[]/trunks" => values(json!([7, 30]), json!("5;6")),
        "networks/[]/hwaddr" => values(json!("BC:24:11:00:00:01"), json!("bc:24:11:00:00:ff")),
        "networks/[]/ip" => values(json!("10.0.0.5/24"), json!("dhcp")),
        "networks/[]/gw" => values(json!("10.0.0.1"), json!("10.0.0.2")),
        "networks/[]/ip6" => values(json!("2001:db8::5/64"), json!("auto")),
        "networks/[]/gw6" => values(json!("2001:db8::1"), json!("fe80::1")),
        "dns/hostname" => values(json!("web-01"), json!("web-02.example.org")),
        "dns/nameservers" => values(json!(["192.0.2.53"]), json!("192.0.2.54 2001:db8::53")),
        "dns/domain" => values(json!("example.org"), json!(["lab.example.org", "example.net"])),
        "timezone" => values(json!("host"), json!("Europe/Vienna")),
        "entrypoint" => values(json!("/bin/sh -c 'x; y=1, z'"), json!("/sbin/init")),
        "env" => values(json!({ "LANG": "C", "N": 1 }), json!(["A=b=c"])),
        "extra" => values(json!({ "debug": true }), json!({ "debug": false })),
        "options/startup" => values(json!(3), json!("order=2,up=30,down=60")),
        "options/startup/order" => with(json!({ "options": { "startup": { "up": 3 } } }), json!(1), json!(2)),
        "options/startup/up" | "options/startup/down" => {
            with(json!({ "options": { "startup": { "order": 3 } } }), json!(1), json!(2))
        }
        "options/unprivileged" => then(Then::Fixed("needs-recreate"), json!({}), json!(true), json!(false)),
        "options/hookscript" => values(json!("local:snippets/hook.sh"), json!("local:snippets/other.sh")),
        "options/features/mount" => values(json!(["nfs", "cifs"]), json!("ext4")),
        _ => None,
    }
}
