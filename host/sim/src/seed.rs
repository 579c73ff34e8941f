//! Ready-made worlds.

use serde_json::{Value, json};

use crate::guest::GuestKind;
use crate::world::access::RECONCILER_ROLE;
use crate::world::{Storage, World};

/// Password of root@pam in every seeded world.
pub const ROOT_PASSWORD: &str = "proxops-demo";
/// Identity of the API token of every seeded world: it has the reconciler's role and the extras for
/// pools, artifacts and startup order on `/`, and is not root@pam (fact T26).
pub const TOKEN_ID: &str = "gitops@pve!proxops";
/// Its secret.
pub const TOKEN_SECRET: &str = "5ec7e700-0000-4000-8000-c0ffee000001";
/// Identity of a root@pam token without privilege separation.
pub const ROOT_TOKEN_ID: &str = "root@pam!proxops";

/// Names of the nodes.
pub const NODES: [&str; 3] = ["pve01", "pve02", "pve03"];

/// Three nodes, no guests: `local` (dir: iso, vztmpl, import, backup, snippets), `local-lvm` (lvmthin: images,
/// rootdir) and `nfs` (shared: images, rootdir, iso, vztmpl, import, snippets); a user with a token.
pub fn empty() -> World {
    let mut world = World::new("demo", 0x5eed);
    for name in NODES {
        world.add_node(name);
    }
    world.add_storage("local", Storage::new("dir", "iso,vztmpl,import,backup,snippets", 200));
    world.add_storage("local-lvm", Storage::new("lvmthin", "images,rootdir", 2000));
    world.add_storage("nfs", Storage::new("nfs", "images,rootdir,iso,vztmpl,import,snippets", 20_000));
    world.add_user("root@pam", ROOT_PASSWORD);
    world.add_token("root@pam", "proxops", TOKEN_SECRET, false);
    world.add_user("gitops@pve", "");
    world.add_token("gitops@pve", "proxops", TOKEN_SECRET, true);
    let mut role = RECONCILER_ROLE.to_vec();
    role.extend(["Datastore.Allocate", "Pool.Allocate", "Mapping.Use", "Sys.Modify", "Sys.Console"]);
    world.grant("gitops@pve", "/", &role, true);
    world.grant(TOKEN_ID, "/", &role, true);
    world
}

/// [`empty`] with a few guests that nobody declared, files on `local`, a template, and a pool.
pub fn demo() -> World {
    let mut world = empty();
    for node in NODES {
        world.add_file("local", node, "iso/debian-13.2.0-amd64-netinst.iso", 790_626_304);
        world.add_file("local", node, "vztmpl/debian-13-standard_13.1-2_amd64.tar.zst", 129_710_398);
        world.add_file("local", node, "snippets/base.yaml", 512);
    }
    world.add_file("nfs", "pve01", "import/debian-13-generic-amd64.qcow2", 412_614_656).virtual_size =
        Some(3 << 30);
    world.pools.insert("lab".to_owned(), Default::default());
    world.add_guest(
        GuestKind::Qemu,
        9000,
        "pve01",
        &[
            ("agent", "1"),
            ("boot", "order=scsi0"),
            ("cores", "2"),
            ("cpu", "host"),
            ("ide2", "nfs:9000/vm-9000-cloudinit.qcow2,media=cdrom,size=4M"),
            ("memory", "2048"),
            ("meta", "creation-qemu=10.1.2,ctime=1770000000"),
            ("name", "debian-13"),
            ("net0", "virtio=BC:24:11:00:90:00,bridge=vmbr0"),
            ("ostype", "l26"),
            ("scsi0", "nfs:9000/base-9000-disk-0.raw,discard=on,size=3G,ssd=1"),
            ("scsihw", "virtio-scsi-single"),
            ("smbios1", "uuid=90000000-0000-4000-8000-000000000000"),
            ("template", "1"),
            ("vmgenid", "90000000-0000-4000-8000-000000000001"),
        ],
    );
    world
        .add_guest(
            GuestKind::Qemu,
            100,
            "pve02",
            &[
                ("boot", "order=scsi0;net0"),
                ("cores", "4"),
                ("memory", "8192"),
                ("meta", "creation-qemu=10.1.2,ctime=1770000000"),
                ("name", "legacy-db"),
                ("net0", "virtio=BC:24:11:00:01:00,bridge=vmbr0"),
                ("onboot", "1"),
                ("scsi0", "local-lvm:vm-100-disk-0,iothread=1,size=64G"),
                ("scsihw", "virtio-scsi-single"),
                ("smbios1", "uuid=10000000-0000-4000-8000-000000000000"),
                ("vmgenid", "10000000-0000-4000-8000-000000000001"),
            ],
        )
        .running = true;
    world
        .add_guest(
            GuestKind::Lxc,
            101,
            "pve03",
            &[
                ("arch", "amd64"),
                ("cores", "1"),
                ("features", "nesting=1"),
                ("hostname", "dns"),
                ("memory", "512"),
                ("net0", "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:01:01,ip=dhcp,type=veth"),
                ("ostype", "debian"),
                ("rootfs", "local-lvm:vm-101-disk-0,size=8G"),
                ("swap", "512"),
                ("unprivileged", "1"),
            ],
        )
        .running = true;
    world
}

/// A world of `count` VMs that match their manifests, spread over the nodes, and the manifests: one JSON
/// document a VM (`kind`, `metadata`, `spec`), in the order of their ids. The first id is 1000.
pub fn fleet(count: u32) -> (World, Vec<Value>) {
    let mut world = empty();
    // room for ten thousand disks, and no overcommit warnings
    if let Some(storage) = world.storages.get_mut("local-lvm") {
        storage.total = u64::from(count + 1000) << 36;
    }
    let mut manifests = Vec::with_capacity(count as usize);
    for n in 0..count {
        let vmid = 1000 + n;
        let name = format!("vm-{vmid}");
        let node = NODES[n as usize % NODES.len()];
        let mac = format!("BC:24:11:{:02X}:{:02X}:{:02X}", n >> 16 & 255, n >> 8 & 255, n & 255);
        let guest = world.add_guest(
            GuestKind::Qemu,
            vmid,
            node,
            &[
                ("agent", "1"),
                ("boot", "order=scsi0;net0"),
                ("cores", "2"),
                ("cpu", "host"),
                ("memory", "2048"),
                ("meta", "creation-qemu=10.1.2,ctime=1770000000"),
                ("name", &name),
                ("net0", &format!("virtio={mac},bridge=vmbr0,tag={}", 10 + n % 10)),
                ("onboot", "1"),
                ("ostype", "l26"),
                ("scsi0", &format!("local-lvm:vm-{vmid}-disk-0,discard=on,iothread=1,size=16G,ssd=1")),
                ("scsihw", "virtio-scsi-single"),
                ("smbios1", &format!("uuid=00000000-0000-4000-8000-{vmid:012x}")),
                ("tags", "fleet;proxops"),
                ("vmgenid", &format!("00000000-0000-4000-9000-{vmid:012x}")),
            ],
        );
        guest.running = n % 2 == 0;
        manifests.push(json!({
            "kind": "VM",
            "metadata": {"name": name},
            "spec": {
                "node": node,
                "vmid": vmid,
                "state": if n % 2 == 0 { "started" } else { "stopped" },
                "memory": "2GiB",
                "cpu": {"type": "host", "cores": 2},
                "disks": [{
                    "storage": "local-lvm", "size": "16GiB", "interface": "scsi0", "controller": "virtio-scsi-single",
                    "discard": "on", "iothread": true, "ssd": true,
                }],
                "networks": [{"model": "virtio", "bridge": "vmbr0", "vlan": 10 + n % 10}],
            },
        }));
    }
    (world, manifests)
}
