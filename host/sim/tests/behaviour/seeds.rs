//! The ready-made worlds.

use proxops_sim::{Caller, GuestKind, seed};

use crate::json;

#[test]
fn the_same_seed_gives_the_same_world() {
    let make = || {
        let mut world = seed::demo();
        let sent = json!({"vmid": 500, "memory": "1024", "net0": "virtio,bridge=vmbr0"});
        let upid = world.call(&Caller::root(), "POST", "/nodes/pve01/qemu", sent).unwrap();
        world.finish_tasks();
        (upid, world.guests[&500].config.clone())
    };
    assert_eq!(make(), make());
}

#[test]
fn the_demo_can_be_worked_with_by_its_token() {
    let mut world = seed::demo();
    let token = Caller::token("gitops@pve", "proxops");
    let clone = world.call(
        &token,
        "POST",
        "/nodes/pve01/qemu/9000/clone",
        json!({"newid": 501, "full": "1", "storage": "local-lvm"}),
    );
    world.finish_tasks();
    assert_eq!(world.exit_status(&clone.unwrap()).as_deref(), Some("OK"));
    assert!(world.guests[&501].config["scsi0"].starts_with("local-lvm:vm-501-disk-0,"));
    let image =
        json!({"vmid": 502, "scsi0": "local-lvm:0,import-from=nfs:import/debian-13-generic-amd64.qcow2"});
    let create = world.call(&token, "POST", "/nodes/pve02/qemu", image);
    world.finish_tasks();
    assert_eq!(world.exit_status(&create.unwrap()).as_deref(), Some("OK"));
    assert!(world.guests.values().any(|guest| guest.kind == GuestKind::Lxc));
}

#[test]
fn a_fleet_of_ten_thousand_is_whole_and_unique() {
    let (mut world, manifests) = seed::fleet(10_000);
    assert_eq!((world.guests.len(), manifests.len()), (10_000, 10_000));
    let rows = world.call(&Caller::root(), "GET", "/cluster/resources", json!({"type": "vm"})).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 10_000);
    let macs: std::collections::BTreeSet<_> =
        world.guests.values().map(|guest| guest.config["net0"].clone()).collect();
    assert_eq!(macs.len(), 10_000);
    let last = &manifests[9_999]["spec"];
    let config = format!("/nodes/{}/qemu/{}/config", last["node"].as_str().unwrap(), last["vmid"]);
    assert_eq!(world.call(&Caller::root(), "GET", &config, json!({})).unwrap()["memory"], "2048");
    let disks = world
        .call(&Caller::root(), "GET", "/nodes/pve01/storage/local-lvm/content", json!({"content": "images"}))
        .unwrap();
    assert_eq!(disks.as_array().unwrap().len(), 3334);
}
