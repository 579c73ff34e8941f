//! Clones onto other nodes: what PVE would refuse is explained before anything is sent (fact Q38).

use crate::documents::{PASSWORD, SECRETS_LINES, age_key, secrets_document};
use crate::support::{iso, manifest, vm};
use proxops_e2e::{Bench, CLUSTER};
use proxops_sim::{FaultAnswer, Faults, RequestFault};
use proxops_sim::{World, seed};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A template on pve01, and `web`, a clone of it.
fn bench(template_storage: &str, web: Value) -> Bench {
    let mut bench = Bench::new(world());
    let disks = json!([{"interface": "scsi0", "controller": "virtio-scsi-single", "storage": template_storage, "size": "1GiB"}]);
    let template = vm("tpl", 900, json!({ "disks": disks }));
    let template = manifest("TemplateVM", "tpl", template["spec"].clone());
    bench.documents(&format!("templatevm/{CLUSTER}/tpl.yaml"), &[template]);
    bench.apply().exits(0);
    let mut spec = json!({ "clone": "tpl", "disks": null });
    crate::support::merge(&mut spec, &web);
    let mut clone = vm("web", 100, spec);
    clone["spec"].as_object_mut().unwrap().remove("disks");
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[clone]);
    bench
}

fn world() -> World {
    seed::empty()
}

/// The plan has an error with these words, and applying it sends nothing.
fn refused(bench: &Bench, code: &str, words: &[&str]) {
    bench.writes();
    let run = bench.apply().exits(1);
    let anomalies = run.list("anomalies");
    let [one] = &anomalies[..] else { panic!("{run}") };
    assert_eq!((&one["code"], &one["severity"]), (&json!(code), &json!("error")), "{run}");
    let text = format!("{} {}", one["message"], one["help"]);
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
    assert!(run.actions().is_empty(), "{run}");
    assert!(bench.writes().is_empty(), "{run}");
}

#[test]
fn a_template_on_local_storage_is_not_cloned_onto_another_node() {
    let bench = bench("local-lvm", json!({ "node": "pve02" }));
    refused(&bench, "clone-source", &["pve01", "pve02", "local-lvm", "shared"]);
}

#[test]
fn a_clone_on_another_node_does_not_go_to_a_local_storage() {
    let bench = bench("nfs", json!({ "node": "pve02", "clone-storage": "local-lvm" }));
    refused(&bench, "clone-storage", &["pve01", "pve02", "local-lvm", "shared"]);
}

#[test]
fn a_clone_goes_to_another_node_over_shared_storage() {
    let bench = bench("nfs", json!({ "node": "pve02" }));
    let run = bench.apply().exits(0);
    assert_eq!(run.actions(), ["clone VM/web"], "{run}");
    assert_eq!(bench.world().guests[&100].node, "pve02");
    bench.converged();
}

#[test]
fn a_clone_beside_its_template_may_go_to_a_local_storage() {
    let bench = bench("nfs", json!({ "clone-storage": "local-lvm" }));
    let run = bench.apply().exits(0);
    assert_eq!(run.actions(), ["clone VM/web"], "{run}");
    assert!(bench.world().guests[&100].config["scsi0"].starts_with("local-lvm:"));
    bench.converged();
}

#[test]
fn a_declared_password_is_written_once_by_the_action_that_clones() {
    for inherited in [false, true] {
        let data = json!({"ci-user": "ops", "ci-password-ref": "cloud-init.passwords.one"});
        let mut bench = bench("nfs", json!({ "cloud-init-data": data }));
        bench.configure(&SECRETS_LINES);
        bench.write(&format!("clusters/{CLUSTER}/secrets.sops.yaml"), secrets_document());
        bench.set("SOPS_AGE_KEY", &age_key().0);
        if inherited {
            let hash = ("cipassword".to_owned(), "$5$template".to_owned());
            bench.world().guests.get_mut(&900).unwrap().config.extend([hash]);
        }
        bench.writes();
        let run = bench.apply().exits(0);
        assert_eq!(run.actions(), ["clone VM/web"], "{run}");
        let passwords = bench.writes().iter().filter(|w| w.params.contains_key("cipassword")).count();
        assert_eq!(passwords, 1, "{run}");
        assert!(!run.stdout.contains(PASSWORD) && !run.stderr.contains(PASSWORD));
        bench.converged();
    }
}

#[test]
fn a_clone_that_must_only_exist_is_made_to_its_end_and_then_left_alone() {
    let mut bench = bench("local-lvm", json!({ "memory": "2GiB" }));
    let mut web = vm("web", 100, json!({ "clone": "tpl", "memory": "2GiB" }));
    web["spec"].as_object_mut().unwrap().remove("disks");
    web["metadata"]["annotations"] = json!({ "proxops/reconcile": "ensure-exists" });
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[web]);
    let broken = FaultAnswer::Status {
        status: 500,
        message: "Input/output error".to_owned(),
        errors: BTreeMap::new(),
        effect: false,
    };
    bench.sim().inject(RequestFault::once("PUT|POST", "/nodes/pve01/qemu/100/config", broken));
    bench.apply().exits(1);
    let memory = |bench: &Bench| bench.world().guests[&100].config.get("memory").cloned();
    assert_ne!(memory(&bench).as_deref(), Some("2048"));
    bench.run(&["diff", "--exit-code"]).exits(2);
    bench.apply().exits(0);
    assert_eq!(memory(&bench).as_deref(), Some("2048"));
    let values = [(100, [("memory".to_owned(), "4096".to_owned())].into())].into();
    bench.sim().apply(Faults { values, ..Faults::default() });
    bench.writes();
    bench.apply().exits(0);
    assert!(bench.writes().is_empty());
    assert_eq!(memory(&bench).as_deref(), Some("4096"));
}

#[test]
fn a_file_on_a_shared_storage_is_fetched_once_for_all_its_nodes() {
    let mut bench = Bench::new(world());
    let mut file = iso("netinst");
    let spec = file["spec"].as_object_mut().unwrap();
    spec.remove("node");
    spec.extend([("nodes".to_owned(), json!(["pve01", "pve02"])), ("storage".to_owned(), json!("nfs"))]);
    bench.documents(&format!("iso/{CLUSTER}/netinst.yaml"), &[file]);
    let run = bench.apply().exits(0);
    assert_eq!(run.actions(), ["download ISO/netinst"], "{run}");
    bench.converged();
}
