//! Example manifests, shown by `explain` and used by the conformance kit.

use serde_json::{Value, json};

pub(crate) fn all(kind: &str, template: bool) -> Vec<Value> {
    let manifest = |name: &str, mut spec: Value| {
        if template && let Some(spec) = spec.as_object_mut() {
            spec.insert("state".to_owned(), json!("stopped"));
        }
        json!({
            "apiVersion": proxops_kind::API_VERSION,
            "kind": kind,
            "metadata": { "name": name },
            "spec": spec,
        })
    };
    vec![manifest("cache-01", minimal()), manifest("cache-02", full()), manifest("cache-03", clone())]
}

fn minimal() -> Value {
    json!({
        "node": "pve01",
        "vmid": 201,
        "template": "debian-13",
        "root": { "storage": "local-lvm", "size": "8GiB" },
        "networks": [{ "bridge": "vmbr0", "ip": "dhcp" }],
    })
}

fn full() -> Value {
    json!({
        "node": "pve01",
        "vmid": 202,
        "state": "started",
        "tags": ["cache", "prod"],
        "pve-description": "Cache of the web tier",
        "pool": "web",
        "template": "debian-13",
        "memory": "1GiB",
        "swap": "512MiB",
        "cpu": { "cores": 2, "limit": 1.5, "units": 200 },
        "root": {
            "storage": "local-lvm",
            "size": "8GiB",
            "grow": true,
            "mount-options": ["noatime"],
            "acl": true,
            "quota": false,
            "replicate": true,
        },
        "mount-points": [{
            "slot": "mp0",
            "storage": "local-lvm",
            "size": "32GiB",
            "grow": true,
            "mount-point": "/var/cache/data",
            "options": {
                "read-only": false,
                "backup": true,
                "acl": true,
                "quota": false,
                "shared": false,
                "replicate": true,
                "mount-options": ["noatime", "nosuid"],
            },
        }],
        "bind-mounts": [{ "slot": "mp1", "host-path": "/srv/media", "mount-point": "/media", "read-only": true }],
        "devices": [{
            "slot": "dev0",
            "path": "/dev/dri/renderD128",
            "mode": "0660",
            "uid": 0,
            "gid": 44,
            "deny-write": false,
        }],
        "networks": [{
            "slot": "net0",
            "bridge": "vmbr0",
            "iface": "eth0",
            "type": "veth",
            "tag": 20,
            "trunks": [30, 31],
            "hwaddr": "BC:24:11:00:00:02",
            "rate-limit": 50,
            "firewall": true,
            "link-down": false,
            "mtu": 1500,
            "ip": "10.0.20.5/24",
            "gw": "10.0.20.1",
            "ip6": "2001:db8:20::5/64",
            "gw6": "2001:db8:20::1",
        }],
        "dns": { "hostname": "cache-02", "nameservers": ["10.0.0.53", "2001:db8::53"], "domain": "example.org" },
        "arch": "amd64",
        "os-type": "debian",
        "timezone": "host",
        "entrypoint": "/sbin/init",
        "env": { "LANG": "C.UTF-8" },
        "options": {
            "onboot": true,
            "startup": "order=2,up=30,down=60",
            "protection": false,
            "unprivileged": true,
            "console": true,
            "ttys": 2,
            "cmode": "tty",
            "hookscript": "local:snippets/hook.sh",
            "features": {
                "nesting": true,
                "keyctl": true,
                "fuse": true,
                "mknod": false,
                "mount": ["nfs"],
                "force-rw-sys": false,
            },
        },
        "ssh-key-refs": ["cloud-init.ssh-keys.ops"],
        "password-ref": "cloud-init.passwords.ops",
    })
}

fn clone() -> Value {
    json!({
        "node": "pve01",
        "vmid": 203,
        "clone": "debian-13-base",
        "clone-storage": "local-lvm",
        "root": { "size": "16GiB" },
        "memory": "1GiB",
        "networks": [{ "slot": "net0", "bridge": "vmbr0", "ip": "dhcp" }],
    })
}
