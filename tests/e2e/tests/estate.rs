//! A repository of some thirty resources of every kind, and the cluster that it finds: clones, templates,
//! downloads, growing disks, updates, power, deletes. For tests that look at a whole run and not at one action.

use crate::support::{manifest, merge, vm};
use proxops_e2e::{Bench, CLUSTER};
use proxops_sim::{GuestKind, World, seed};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Guests that the plan deletes.
pub const PRUNED: [u32; 3] = [801, 802, 803];
/// Guests that are nobody's business.
pub const FOREIGN: [u32; 2] = [700, 701];
/// What a clone must not keep.
pub const IDENTITY: [&str; 6] =
    ["template-user", "golden", "10.9.9.9", "TEMPLATE-NOTES", "template.example.org", "ssh-ed25519%20AAAA"];

/// The cluster before the first run. Tasks take this long.
pub fn world(task: Duration) -> World {
    let mut world = seed::empty();
    let key = "ssh-ed25519%20AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f%20tpl";
    let mut qemu = |vmid: u32, node: &str, name: &str, more: &[(&str, &str)]| {
        let disk = format!("local-lvm:vm-{vmid}-disk-0,size=2G");
        let mac = format!("virtio=BC:24:11:99:{:02X}:{:02X},bridge=vmbr0", vmid >> 8 & 255, vmid & 255);
        let mut config = BTreeMap::from([
            ("name", name),
            ("memory", "512"),
            ("cores", "2"),
            ("cpu", "host"),
            ("scsihw", "virtio-scsi-single"),
            ("scsi0", &disk),
            ("net0", &mac),
            ("tags", "proxops"),
        ]);
        config.extend(more.iter().copied());
        let config: Vec<(&str, &str)> = config.into_iter().filter(|(_, v)| !v.is_empty()).collect();
        world.add_guest(GuestKind::Qemu, vmid, node, &config);
    };
    qemu(
        900,
        "pve01",
        "base",
        &[
            ("template", "1"),
            ("scsi0", "nfs:900/base-900-disk-0.raw,size=2G"),
            ("ide2", "nfs:900/vm-900-cloudinit.qcow2,media=cdrom,size=4M"),
            ("tags", "golden;proxops"),
            ("ciuser", "template-user"),
            ("cipassword", "$5$template"),
            ("sshkeys", key),
            ("ipconfig0", "ip=10.9.9.9/24"),
            ("searchdomain", "template.example.org"),
            ("description", "TEMPLATE-NOTES"),
            ("onboot", "1"),
            ("net0", ""),
        ],
    );
    qemu(901, "pve02", "to-mark", &[("scsi0", "nfs:901/vm-901-disk-0.raw,size=2G"), ("net0", "")]);
    qemu(120, "pve01", "updated", &[("memory", "256")]);
    qemu(121, "pve02", "grown", &[]);
    qemu(122, "pve03", "started", &[]);
    qemu(123, "pve03", "stopped", &[]);
    qemu(124, "pve01", "restarted", &[("cores", "1")]);
    qemu(125, "pve02", "claimed", &[("tags", "")]);
    for vmid in PRUNED {
        qemu(vmid, "pve02", &format!("old-{vmid}"), &[]);
    }
    qemu(700, "pve03", "foreign", &[("tags", "somebody")]);
    let ct = |vmid: u32, name: &'static str, tags: &'static str, volume: &'static str| {
        (
            vmid,
            vec![
                ("hostname", name),
                ("arch", "amd64"),
                ("ostype", "debian"),
                ("memory", "256"),
                ("swap", "512"),
                ("unprivileged", "1"),
                ("rootfs", volume),
                ("tags", tags),
            ],
        )
    };
    let (vmid, mut config) = ct(950, "ct-base", "golden;proxops", "nfs:950/base-950-disk-0.raw,size=1G");
    config.extend([("template", "1"), ("description", "TEMPLATE-NOTES\n"), ("onboot", "1")]);
    world.add_guest(GuestKind::Lxc, vmid, "pve01", &config);
    let (vmid, config) = ct(220, "ct-updated", "proxops", "local-lvm:vm-220-disk-0,size=1G");
    world.add_guest(GuestKind::Lxc, vmid, "pve02", &config);
    let (vmid, config) = ct(701, "ct-foreign", "somebody", "local-lvm:vm-701-disk-0,size=1G");
    world.add_guest(GuestKind::Lxc, vmid, "pve01", &config);
    for vmid in [123, 124, 802, 700] {
        world.guests.get_mut(&vmid).expect("a guest").running = true;
    }
    world.add_file("nfs", "pve01", "vztmpl/debian-13.tar.zst", 1 << 20);
    world.task_duration = task;
    world
}

fn vm_on(node: &str, name: &str, vmid: u32, over: Value) -> Value {
    let mut document = vm(name, vmid, over);
    document["spec"]["node"] = json!(node);
    document
}

fn ct(kind: &str, node: &str, name: &str, vmid: u32, over: Value) -> Value {
    let mut spec = json!({
        "node": node, "vmid": vmid, "memory": "256MiB", "state": "stopped",
        "template": "debian-13", "root": {"storage": "local-lvm", "size": "1GiB"},
        "networks": [{"slot": "net0", "bridge": "vmbr0", "ip": "dhcp"}],
    });
    merge(&mut spec, &over);
    manifest(kind, name, spec)
}

fn file(kind: &str, name: &str, spec: Value) -> Value {
    let mut whole = json!({"url": format!("https://images.example.org/{name}")});
    merge(&mut whole, &spec);
    manifest(kind, name, whole)
}

fn disk(over: Value) -> Value {
    let mut disk = json!({"interface": "scsi0", "controller": "virtio-scsi-single", "storage": "local-lvm"});
    merge(&mut disk, &over);
    json!([disk])
}

/// The manifests, by kind root.
pub fn manifests() -> Vec<(&'static str, Vec<Value>)> {
    let seeded = |size: &str| disk(json!({"image": "cloud", "size": size}));
    let cloud_init = json!({"ci-user": "ops", "ipconfigs": [{"nic": 0, "ip": "dhcp"}]});
    let drive = json!({"cloud-init": {"storage": "local-lvm"}});
    let restart = |mut document: Value| {
        document["metadata"]["annotations"] = json!({"proxops/restart": "allow"});
        document
    };
    let template = |node: &str, name: &str, vmid: u32, over: Value| {
        let mut document = vm_on(node, name, vmid, over);
        document["kind"] = json!("TemplateVM");
        document
    };
    let on_nfs = json!({"disks": disk(json!({"storage": "nfs", "size": "2GiB"})), "networks": null});
    let clone = |over: Value| {
        let mut spec = json!({"clone": "base", "disks": null, "cloud-init-data": cloud_init});
        merge(&mut spec, &over);
        spec
    };
    let started = json!({"state": "started"});
    vec![
        (
            "diskimage",
            vec![file(
                "DiskImage",
                "cloud",
                json!({"nodes": ["pve01", "pve02", "pve03"], "storage": "local", "filename": "cloud.qcow2"}),
            )],
        ),
        (
            "iso",
            vec![
                file("ISO", "rescue", json!({"node": "pve01", "storage": "nfs", "filename": "rescue.iso"})),
                file("ISO", "tools", json!({"node": "pve02", "storage": "local", "filename": "tools.iso"})),
            ],
        ),
        (
            "ctt",
            vec![
                file(
                    "CTTemplate",
                    "debian-13",
                    json!({
                        "node": "pve01", "storage": "nfs", "filename": "debian-13.tar.zst",
                    }),
                ),
                file(
                    "CTTemplate",
                    "alpine",
                    json!({
                        "nodes": ["pve03"], "storage": "local", "filename": "alpine.tar.xz",
                    }),
                ),
            ],
        ),
        (
            "templatevm",
            vec![
                template("pve01", "base", 900, on_nfs.clone()),
                template("pve02", "to-mark", 901, on_nfs),
                template(
                    "pve03",
                    "new-base",
                    902,
                    json!({
                        "networks": null,
                        "disks": disk(json!({"storage": "nfs", "image": "cloud", "size": "5GiB"})),
                    }),
                ),
            ],
        ),
        (
            "vm",
            vec![
                vm_on("pve01", "seeded-1", 100, json!({"disks": seeded("8GiB"), "state": "started"})),
                vm_on(
                    "pve02",
                    "seeded-2",
                    101,
                    json!({
                        "disks": seeded("6GiB"), "hardware": drive, "cloud-init-data": cloud_init, "state": "started",
                    }),
                ),
                vm_on("pve03", "seeded-3", 102, json!({"disks": seeded("4GiB")})),
                vm_on("pve01", "empty-1", 103, json!({"hardware": {"cdrom": {"iso": "rescue"}}})),
                vm_on("pve02", "empty-2", 104, started.clone()),
                vm_on("pve03", "empty-3", 105, json!({"tags": ["web"], "pve-description": "three"})),
                vm_on("pve01", "clone-1", 110, clone(json!({"state": "started"}))),
                vm_on(
                    "pve02",
                    "clone-2",
                    111,
                    clone(json!({
                        "disks": [{"interface": "scsi0", "size": "4GiB"}],
                    })),
                ),
                vm_on("pve03", "clone-3", 112, clone(json!({"tags": ["web"], "options": {"onboot": true}}))),
                vm_on(
                    "pve01",
                    "clone-of-new",
                    113,
                    clone(json!({"clone": "new-base", "cloud-init-data": null})),
                ),
                vm_on(
                    "pve01",
                    "updated",
                    120,
                    json!({"disks": disk(json!({"size": "2GiB"})), "tags": ["web"]}),
                ),
                vm_on("pve02", "grown", 121, json!({"disks": disk(json!({"size": "9GiB", "grow": true}))})),
                vm_on(
                    "pve03",
                    "started",
                    122,
                    json!({"disks": disk(json!({"size": "2GiB"})), "state": "started"}),
                ),
                vm_on("pve03", "stopped", 123, json!({"disks": disk(json!({"size": "2GiB"}))})),
                restart(vm_on(
                    "pve01",
                    "restarted",
                    124,
                    json!({
                        "disks": disk(json!({"size": "2GiB"})), "state": "started",
                    }),
                )),
                vm_on("pve02", "claimed", 125, json!({"disks": disk(json!({"size": "2GiB"}))})),
            ],
        ),
        (
            "templatect",
            vec![
                ct(
                    "TemplateCT",
                    "pve01",
                    "ct-base",
                    950,
                    json!({
                        "root": {"storage": "nfs"}, "networks": null, "state": null,
                    }),
                ),
                ct(
                    "TemplateCT",
                    "pve02",
                    "ct-new-base",
                    951,
                    json!({
                        "root": {"storage": "nfs"}, "networks": null, "state": null,
                    }),
                ),
            ],
        ),
        (
            "lxc",
            vec![
                ct("LXC", "pve01", "ct-1", 200, started.clone()),
                ct(
                    "LXC",
                    "pve02",
                    "ct-2",
                    201,
                    json!({
                        "mount-points": [{"slot": "mp0", "storage": "local-lvm", "size": "1GiB", "mount-point": "/data"}],
                    }),
                ),
                ct(
                    "LXC",
                    "pve01",
                    "ct-clone-1",
                    210,
                    json!({
                        "clone": "ct-base", "template": null, "root": {"storage": null, "size": "2GiB"},
                        "state": "started",
                    }),
                ),
                ct(
                    "LXC",
                    "pve01",
                    "ct-clone-2",
                    211,
                    json!({
                        "clone": "ct-base", "template": null, "root": null, "tags": ["db"],
                    }),
                ),
                ct(
                    "LXC",
                    "pve02",
                    "ct-updated",
                    220,
                    json!({
                        "memory": "512MiB", "networks": null, "root": {"size": "3GiB", "grow": true},
                    }),
                ),
            ],
        ),
    ]
}

/// Puts the manifests into a bench.
pub fn declare(bench: &mut Bench) {
    for (root, documents) in manifests() {
        bench.documents(&format!("{root}/{CLUSTER}/all.yaml"), &documents);
    }
}

/// Every guest and volume as text, without what PVE draws at random or by the clock.
pub fn state(world: &World) -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    for guest in world.guests.values() {
        let mut lines: Vec<String> = guest
            .config
            .iter()
            .filter(|(key, _)| !["meta", "smbios1", "vmgenid"].contains(&key.as_str()))
            .map(|(key, value)| format!("{key}={}", without_mac(value)))
            .collect();
        lines.extend(guest.pending.iter().map(|(key, value)| format!("pending {key}={value}")));
        lines.extend(guest.pending_delete.keys().map(|key| format!("pending delete {key}")));
        lines.extend(guest.seeded.iter().map(|(key, value)| format!("seed {key}={value}")));
        let power = if guest.running { "runs" } else { "off" };
        let head = format!("{} {:?} on {} {power}", guest.vmid, guest.kind, guest.node);
        state.insert(head, lines.join("\n  "));
    }
    for (storage, site, name, volume) in world.all_volumes() {
        state
            .insert(format!("volume {storage}:{name} {site}"), format!("{} {}", volume.size, volume.content));
    }
    state
}

/// MAC addresses are PVE's draw.
fn without_mac(value: &str) -> String {
    let parts: Vec<&str> =
        value.split(',').map(|part| if part.matches(':').count() == 5 { "MAC" } else { part }).collect();
    parts.join(",")
}
