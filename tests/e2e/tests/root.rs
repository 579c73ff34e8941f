//! What a credential may not set or see.
//!
//! What PVE lets only root@pam set, with a ticket (facts Q51, L7, L8, T26), is named before anything is sent when the
//! credential is a token, and converges with root's ticket.

use crate::support::{manifest, vm};
use proxops_e2e::{Bench, CLUSTER};
use proxops_sim::seed;
use serde_json::json;

/// One VM and one container that need root@pam, and an honest VM beside them.
fn declare(bench: &mut Bench) {
    bench.documents(&format!("vm/{CLUSTER}/plain.yaml"), &[vm("plain", 100, json!({}))]);
    let needs = json!({
        "hugepages": "any",
        "cpu": { "affinity": "0-1" },
        "hardware": { "pci-devices": [{ "device": "0000:01:00.0" }], "serial0": "/dev/ttyS0" },
    });
    bench.documents(&format!("vm/{CLUSTER}/gpu.yaml"), &[vm("gpu", 101, needs)]);
    let file = json!({
        "node": "pve01", "storage": "local", "filename": "deb13.tar.zst", "url": "https://images.example.org/deb13.tar.zst",
    });
    bench.documents(&format!("ctt/{CLUSTER}/deb13.yaml"), &[manifest("CTTemplate", "deb13", file)]);
    let container = json!({
        "node": "pve01", "vmid": 102, "state": "stopped", "template": "deb13",
        "root": { "storage": "local-lvm", "size": "1GiB" },
        "bind-mounts": [{ "slot": "mp0", "host-path": "/srv/media", "mount-point": "/media" }],
        "devices": [{ "slot": "dev0", "path": "/dev/dri/renderD128" }],
        "options": { "features": { "keyctl": true, "nesting": true } },
    });
    bench.documents(&format!("lxc/{CLUSTER}/media.yaml"), &[manifest("LXC", "media", container)]);
}

#[test]
fn a_token_is_told_every_key_with_what_to_do_and_nothing_of_it_is_sent() {
    let mut bench = Bench::new(seed::empty());
    declare(&mut bench);
    let run = bench.apply().exits(1);
    let mut told: Vec<String> = run
        .list("anomalies")
        .iter()
        .map(|a| {
            let help = a["help"].as_str().unwrap();
            assert_eq!((&a["code"], &a["severity"]), (&json!("needs-root-ticket"), &json!("error")), "{run}");
            assert!(help.contains("auth: ticket") && help.contains("root@pam"), "{help}");
            let key = ["hugepages", "affinity", "hostpci0", "serial0", "mp0", "dev0", "features"]
                .into_iter()
                .find(|key| a["message"].as_str().unwrap().contains(key));
            format!("{} {}", a["name"].as_str().unwrap(), key.unwrap_or_default())
        })
        .collect();
    told.sort();
    let expected = [
        "gpu affinity",
        "gpu hostpci0",
        "gpu hugepages",
        "gpu serial0",
        "media dev0",
        "media features",
        "media mp0",
    ];
    assert_eq!(told, expected, "{run}");
    assert_eq!(run.actions(), ["download CTTemplate/deb13", "create VM/plain"], "{run}");
    assert_eq!(bench.world().guests.keys().copied().collect::<Vec<_>>(), [100]);
}

#[test]
fn a_ticket_of_root_converges() {
    let mut bench = Bench::new(seed::empty()).as_root();
    declare(&mut bench);
    bench.apply().exits(0);
    let world = bench.world();
    let config = |vmid: u32, key: &str| world.guests[&vmid].config.get(key).cloned().unwrap_or_default();
    assert_eq!(config(101, "hugepages"), "any");
    assert_eq!(config(101, "affinity"), "0-1");
    assert_eq!(config(101, "hostpci0"), "0000:01:00.0");
    assert_eq!(config(101, "serial0"), "/dev/ttyS0");
    assert!(config(102, "mp0").starts_with("/srv/media,mp=/media"));
    assert_eq!(config(102, "features"), "nesting=1,keyctl=1");
    drop(world);
    bench.converged();
}

#[test]
fn a_reader_that_pve_hides_variables_from_sees_no_difference() {
    // Fact L12: without VM.Config.Options a container's report has no variables.
    let mut bench = Bench::new(seed::empty());
    declare_variables(&mut bench);
    bench.apply().exits(0);
    bench.converged();
    {
        let mut world = bench.world();
        world.add_user("ci@pve", "Fixture-password-2");
        world.add_token("ci@pve", "diff", "11111111-2222-3333-4444-555555555555", false);
        world.grant("ci@pve", "/", &["VM.Audit", "Sys.Audit", "Datastore.Audit", "Pool.Audit"], true);
    }
    bench.set("PROXOPS_PVE_TOKEN_VALUE", "ci@pve!diff=11111111-2222-3333-4444-555555555555");
    let run = bench.run(&["diff", "-o", "json", "--exit-code"]).exits(0);
    let told: Vec<_> =
        run.list("anomalies").iter().map(|a| (a["code"].clone(), a["severity"].clone())).collect();
    assert_eq!(told, [(json!("unreadable"), json!("info"))], "{run}");
}

fn declare_variables(bench: &mut Bench) {
    let file = json!({
        "node": "pve01", "storage": "local", "filename": "deb13.tar.zst", "url": "https://images.example.org/deb13.tar.zst",
    });
    bench.documents(&format!("ctt/{CLUSTER}/deb13.yaml"), &[manifest("CTTemplate", "deb13", file)]);
    let container = json!({
        "node": "pve01", "vmid": 103, "state": "stopped", "template": "deb13", "env": { "LANG": "C.UTF-8" },
        "root": { "storage": "local-lvm", "size": "1GiB" },
    });
    bench.documents(&format!("lxc/{CLUSTER}/app.yaml"), &[manifest("LXC", "app", container)]);
}
