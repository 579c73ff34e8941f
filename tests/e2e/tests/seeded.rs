//! A disk that is made from an image has the image's size at first. It grows to the declared one in the action that
//! made it, or as soon as a later run can, and never otherwise.

use crate::support::{manifest, vm};
use proxops_e2e::{Bench, CLUSTER};
use proxops_sim::{FaultAnswer, GuestKind, RequestFault, seed};
use serde_json::json;
use std::process::Stdio;

const RESIZE: &str = "/nodes/pve01/qemu/100/resize";

fn bench() -> Bench {
    let mut world = seed::empty();
    world.add_file("local", "pve01", "import/cloud.qcow2", 1 << 20).virtual_size = Some(3 << 30);
    let mut bench = Bench::new(world);
    let spec = json!({"node": "pve01", "storage": "local", "filename": "cloud.qcow2", "url": "https://example.org/c"});
    bench.documents(&format!("diskimage/{CLUSTER}/cloud.yaml"), &[manifest("DiskImage", "cloud", spec)]);
    declare(&mut bench, "8GiB");
    bench
}

fn declare(bench: &mut Bench, size: &str) {
    let disk = json!({"interface": "scsi0", "controller": "virtio-scsi-single", "storage": "local-lvm",
                      "image": "cloud", "size": size});
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({"disks": [disk]}))]);
}

fn size(bench: &Bench) -> String {
    let disk = bench.world().guests[&100].config["scsi0"].clone();
    disk.split("size=").nth(1).unwrap().split(',').next().unwrap().to_owned()
}

/// Kills the run at the first request of this sort, before its effect.
fn killed_before(bench: &Bench, method: &str, path: &str) {
    let hold = RequestFault { delay: 3600.0, ..RequestFault::once(method, path, FaultAnswer::DropBefore) };
    bench.sim().inject(hold);
    let mut child =
        bench.command(&["apply", "--yes"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while bench.sim().held() == 0 {
        assert!(child.try_wait().unwrap().is_none(), "apply ended before {method} {path}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    bench.sim().clear_request_faults();
}

#[test]
fn a_run_killed_between_creation_and_growth_owes_the_growth() {
    let bench = bench();
    killed_before(&bench, "PUT", RESIZE);
    assert_eq!(size(&bench), "3G");
    let run = bench.diff();
    assert_eq!(run.actions(), ["resize VM/web"]);
    let change = &run.list("actions")[0]["changes"][0];
    assert_eq!(
        (&change["key"], &change["from"], &change["to"]),
        (&json!("scsi0"), &json!("3G"), &json!("8G"))
    );
    bench.apply().exits(0);
    assert_eq!(size(&bench), "8G");
    bench.converged();
}

#[test]
fn what_is_owed_is_the_size_that_the_manifest_gives_today() {
    let mut bench = bench();
    killed_before(&bench, "PUT", RESIZE);
    declare(&mut bench, "5GiB");
    bench.apply().exits(0);
    assert_eq!(size(&bench), "5G");
    // and once paid it is paid: a larger size needs leave again
    declare(&mut bench, "9GiB");
    assert_eq!(bench.diff().actions(), [""; 0]);
}

#[test]
fn a_create_whose_answer_is_lost_still_grows_its_disk() {
    let bench = bench();
    bench.sim().inject(RequestFault::once("POST", "/nodes/pve01/qemu", FaultAnswer::DropAfter));
    bench.apply().exits(0);
    assert_eq!(size(&bench), "8G");
    bench.converged();
}

#[test]
fn a_guest_of_that_name_which_somebody_else_made_meanwhile_is_not_grown() {
    let bench = bench();
    // the listing of images is read after the guests: in that moment the other guest appears
    bench.sim().inject(RequestFault {
        delay: 1.0,
        answer: None,
        ..RequestFault::once("GET", "/nodes/pve01/storage/local/content", FaultAnswer::Html)
    });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while bench.sim().held() == 0 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let config = [("name", "web"), ("memory", "512"), ("scsi0", "local-lvm:vm-100-disk-0,size=3G")];
            bench.world().add_guest(GuestKind::Qemu, 100, "pve01", &config);
        });
        bench.apply();
    });
    assert!(
        bench.sim().write_log().iter().any(|w| w.path == "/nodes/pve01/qemu" && !w.done),
        "it was refused"
    );
    bench.apply();
    assert!(!bench.sim().write_log().iter().any(|w| w.path == RESIZE), "{:?}", bench.sim().write_log());
    assert_eq!(size(&bench), "3G");
}
