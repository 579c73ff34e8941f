//! What the simulator does, fact by fact, through `World::call` and over real connections.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod cluster;
mod containers;
mod faults;
mod grammar;
mod http;
mod properties;
mod seeds;
mod storage;
mod tasks;
mod vm_clone;
mod vm_config;
mod vm_create;
mod vm_life;

use proxops_sim::{Caller, GuestKind, Refused, World, seed};
use serde_json::Value;
pub(crate) use serde_json::json;

/// An empty cluster and the shortest ways to ask it.
pub(crate) struct Lab(pub World);

impl Lab {
    pub fn new() -> Self {
        let mut world = seed::empty();
        world.add_file("local", "pve01", "iso/x.iso", 700 << 20);
        world.add_file("local", "pve01", "vztmpl/debian-13.tar.zst", 120 << 20);
        world.add_file("local", "pve01", "import/deb.qcow2", 400 << 20).virtual_size = Some(3 << 30);
        Self(world)
    }

    /// The same with a stopped VM 101 of one disk and one card.
    pub fn with_vm() -> Self {
        let mut lab = Self::new();
        lab.0.add_guest(
            GuestKind::Qemu,
            101,
            "pve01",
            &[
                ("boot", "order=scsi0;net0"),
                ("cores", "2"),
                ("memory", "2048"),
                ("meta", "creation-qemu=10.1.2,ctime=1760000000"),
                ("name", "app"),
                ("net0", "virtio=BC:24:11:00:00:01,bridge=vmbr0"),
                ("scsi0", "local-lvm:vm-101-disk-0,size=32G"),
                ("scsihw", "virtio-scsi-single"),
                ("smbios1", "uuid=11111111-2222-3333-4444-555555555555"),
                ("vmgenid", "66666666-7777-8888-9999-000000000000"),
            ],
        );
        lab
    }

    /// The same with a stopped container 201.
    pub fn with_ct() -> Self {
        let mut lab = Self::new();
        lab.0.add_guest(
            GuestKind::Lxc,
            201,
            "pve01",
            &[
                ("arch", "amd64"),
                ("cores", "1"),
                ("hostname", "cache"),
                ("memory", "512"),
                ("net0", "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,type=veth"),
                ("ostype", "debian"),
                ("rootfs", "local-lvm:vm-201-disk-0,size=8G"),
                ("swap", "512"),
                ("unprivileged", "1"),
            ],
        );
        lab
    }

    pub fn running(mut self, vmid: u32) -> Self {
        self.0.guests.get_mut(&vmid).unwrap().running = true;
        self
    }

    /// A call as root@pam that must succeed.
    pub fn ok(&mut self, method: &str, path: &str, params: Value) -> Value {
        self.0
            .call(&Caller::root(), method, path, params)
            .unwrap_or_else(|refused| panic!("{refused} {:?}", refused.errors))
    }

    /// A call as root@pam that must be refused.
    pub fn refused(&mut self, method: &str, path: &str, params: Value) -> Refused {
        self.0.call(&Caller::root(), method, path, params).expect_err("the call was accepted")
    }

    /// Status and message of a refusal.
    pub fn error(&mut self, method: &str, path: &str, params: Value) -> (u16, String) {
        let refused = self.refused(method, path, params);
        (refused.status, refused.message)
    }

    /// The text about one parameter of a 400.
    pub fn param_error(&mut self, method: &str, path: &str, params: Value, key: &str) -> String {
        let refused = self.refused(method, path, params);
        assert_eq!((refused.status, refused.message.as_str()), (400, "Parameter verification failed."));
        refused.errors.get(key).cloned().unwrap_or_else(|| panic!("no error on {key}: {:?}", refused.errors))
    }

    /// A call that gives a task; its exit status.
    pub fn task(&mut self, method: &str, path: &str, params: Value) -> String {
        let upid = self.ok(method, path, params);
        assert!(upid.as_str().unwrap().starts_with("UPID:"), "{upid}");
        self.0.finish_tasks();
        self.0.exit_status(&upid).unwrap()
    }

    pub fn vm(&mut self, vmid: u32) -> Value {
        self.ok("GET", &format!("/nodes/pve01/qemu/{vmid}/config"), json!({}))
    }

    pub fn ct(&mut self, vmid: u32) -> Value {
        self.ok("GET", &format!("/nodes/pve01/lxc/{vmid}/config"), json!({}))
    }

    pub fn put(&mut self, params: Value) {
        assert_eq!(self.ok("PUT", VM, params), Value::Null);
    }
}

pub(crate) const VM: &str = "/nodes/pve01/qemu/101/config";
pub(crate) const CT: &str = "/nodes/pve01/lxc/201/config";
