//! The envelope of manifests.

use crate::support::{Tree, manifest, place};
use proxops_model::{Diagnostic, ResourceId};
use proxops_repo::{DEPENDS_ON, ManifestDoc, ReconcileMode};
use std::sync::Arc;

const FILE: &str = "vm/lab/web.yaml";

fn tree(text: &str) -> Tree {
    Tree::listing(&[FILE]).with(FILE, text)
}

fn read(text: &str) -> Arc<ManifestDoc> {
    let repo = tree(text).load();
    assert_eq!(repo.diagnostics, []);
    repo.clusters[0].manifests[0].clone()
}

fn errors(text: &str) -> Vec<Diagnostic> {
    tree(text).load().diagnostics
}

/// `line:column code` of every error of a manifest.
fn places(text: &str) -> Vec<String> {
    errors(text).iter().map(|d| place(d).replace(&format!("{FILE}:"), "")).collect()
}

fn annotated(lines: &str) -> String {
    manifest("VM", "web").replace("spec:", &format!("  annotations:\n    {lines}\nspec:"))
}

#[test]
fn a_manifest_carries_its_identity_its_spec_and_its_places() {
    let m = read(
        "# head\napiVersion: proxops/v1alpha1\nkind: VM\nmetadata:\n  name: web-01\n  labels: {role: web}\n  annotations:\n    note: x\n    proxops/depends-on: \"ISO:debian, VM:db-01\"\n    proxops/reconcile: ensure-exists\n    proxops/restart: allow\n    proxops/ignore: scsi3,hostpci0\nspec:\n  vmid: 101\n  cpu: {type: host, cores: 2}\n",
    );
    assert_eq!(m.id, ResourceId::new("VM", "web-01"));
    assert_eq!(m.labels["role"], "web");
    assert_eq!(m.annotations["note"], "x");
    assert_eq!(m.spec_json, r#"{"cpu":{"cores":2,"type":"host"},"vmid":101}"#);
    assert_eq!(m.spec["vmid"], 101);
    assert_eq!(m.policy.reconcile, ReconcileMode::EnsureExists);
    assert!(m.policy.restart);
    assert_eq!(m.policy.ignore, ["scsi3", "hostpci0"]);
    assert_eq!(m.policy.depends_on, [ResourceId::new("ISO", "debian"), ResourceId::new("VM", "db-01")]);
    assert_eq!(m.locate("/spec/cpu/cores").to_string(), "vm/lab/web.yaml:15:21");
    assert_eq!(m.locate("/spec/memory").to_string(), "vm/lab/web.yaml:13:1");
    assert_eq!(m.locate_annotation(DEPENDS_ON).to_string(), "vm/lab/web.yaml:9:5");
    let kind = m.to_kind();
    assert_eq!((kind.name.as_str(), kind.spec.as_str()), ("web-01", m.spec_json.as_str()));
    assert_eq!(kind.labels, [("role".to_owned(), "web".to_owned())]);
}

#[test]
fn without_annotations_a_resource_is_reconciled_and_never_restarted() {
    let m = read(&manifest("VM", "web"));
    assert_eq!(m.policy, proxops_repo::Policy::default());
    assert_eq!(m.policy.reconcile, ReconcileMode::Reconcile);
    assert!(!m.policy.restart);
}

#[test]
fn every_part_of_the_envelope_is_checked_in_one_run() {
    let text = "apiVersion: proxops/v1
kind: VM
metadata:
  name: Web_01
  label: {a: b}
  labels: {version: 1.2, ok: 'yes'}
  annotations:
    proxops/restrat: allow
    proxops/restart: always
    proxops/reconcile: off
    proxops/depends-on: \"db, Disk:x, VM:No\"
    proxops/ignore: \"scsi3 hostpci0\"
    mine: true
spec: [1]
status: {}
";
    assert_eq!(
        places(text),
        [
            "1:1 unknown-version",
            "4:3 invalid-name",
            "5:3 unknown-field",
            "6:12 wrong-type",
            "8:5 unknown-annotation",
            "9:5 invalid-value",
            "10:5 invalid-value",
            "11:5 invalid-reference",
            "11:5 invalid-reference",
            "11:5 unknown-kind",
            "12:5 invalid-value",
            "13:5 wrong-type",
            "14:1 wrong-type",
            "15:1 unknown-field",
        ]
    );
}

#[test]
fn an_annotation_is_named_as_it_is_written() {
    let error = errors(&annotated("proxops/restart: always")).remove(0);
    assert_eq!(error.message, "`proxops/restart` cannot be `always`");
    assert_eq!(error.pointer, "/metadata/annotations/proxops~1restart");
    assert_eq!(error.help.as_deref(), Some("one of allow"));
}

#[test]
fn near_words_are_suggested() {
    let help = |text: &str| errors(text).into_iter().filter_map(|d| d.help).collect::<Vec<_>>().join("\n");
    assert!(help(&annotated("proxops/dependson: 'VM:a'")).contains("`proxops/depends-on`"));
    assert!(help(&annotated("proxops/depends-on: 'Vm:a'")).contains("`VM`"));
    assert!(help(&manifest("vm", "web")).contains("`VM`"));
    assert!(help(&manifest("VM", "web").replace("v1alpha1", "v1alpha")).contains("`proxops/v1alpha1`"));
    assert!(help(&manifest("VM", "web").replace("spec:", "sepc:")).contains("`spec`"));
}

#[test]
fn what_is_missing_is_reported_where_it_belongs() {
    let all = manifest("VM", "web");
    let without = |line: &str| places(&all.replace(line, ""));
    assert_eq!(without("apiVersion: proxops/v1alpha1\n"), ["1:1 missing-field"]);
    assert_eq!(without("kind: VM\n"), ["1:1 missing-field"]);
    assert_eq!(without("  name: web\n"), ["3:1 missing-field"]);
    assert_eq!(without("metadata:\n  name: web\n"), ["1:1 missing-field"]);
    assert_eq!(without("spec:\n  node: pve01\n"), ["1:1 missing-field"]);
    assert_eq!(without("  node: pve01\n"), ["5:1 wrong-type"]);
    assert_eq!(places("metadata: x\nspec: {}\nkind: VM\napiVersion: proxops/v1alpha1\n"), ["1:1 wrong-type"]);
}

#[test]
fn a_name_has_at_most_63_letters_digits_and_hyphens() {
    for name in ["a", "0a", "web-01", &"x".repeat(63)] {
        assert_eq!(places(&manifest("VM", &format!("\"{name}\""))), Vec::<String>::new(), "{name}");
    }
    for name in ["A", "-a", "a-", "a_b", "a.b", "a/b", "ä", &"x".repeat(64)] {
        assert_eq!(places(&manifest("VM", &format!("\"{name}\""))), ["4:3 invalid-name"], "{name}");
    }
    assert_eq!(places(&manifest("VM", "12")), ["4:3 wrong-type"]);
    assert_eq!(places(&manifest("VM", "\"\"")), ["4:3 missing-field"]);
}

#[test]
fn a_manifest_lies_in_the_folder_of_its_kind() {
    assert_eq!(places(&manifest("LXC", "web")), ["2:1 wrong-folder"]);
    assert!(errors(&manifest("LXC", "web"))[0].help.as_deref().unwrap().contains("lxc/"));
    assert_eq!(places(&manifest("Pod", "web")), ["2:1 unknown-kind"]);
}

#[test]
fn one_file_may_hold_several_manifests_and_empty_documents() {
    let text = format!("---\n{}---\n# nothing\n---\n{}---\n", manifest("VM", "a"), manifest("VM", "b"));
    let repo = tree(&text).load();
    assert_eq!(repo.diagnostics, []);
    let found: Vec<_> =
        repo.clusters[0].manifests.iter().map(|m| (m.id.name.as_str(), m.doc_index)).collect();
    assert_eq!(found, [("a", 0), ("b", 2)]);
    assert_eq!(repo.clusters[0].manifests[1].locate("/spec/node").line, 16);
}

#[test]
fn a_file_without_a_manifest_is_an_error() {
    for text in ["", "---\n---\n", "# nothing\n"] {
        assert_eq!(tree(text).places(), ["vm/lab/web.yaml:1:1 empty-file"], "{text:?}");
    }
    assert_eq!(places("[]\n"), ["1:1 wrong-type"]);
    assert_eq!(places("just text\n"), ["1:1 wrong-type"]);
}

#[test]
fn a_mistake_in_the_envelope_leaves_the_manifest_for_its_kind_to_check() {
    let repo = tree(&annotated("proxops/restart: maybe")).load();
    assert_eq!(repo.diagnostics.len(), 1);
    assert!(!repo.clusters[0].ok);
    assert_eq!(repo.clusters[0].manifests.len(), 1);
    let repo = tree(&(manifest("VM", "web") + "  node: pve02\n")).load();
    assert_eq!(repo.diagnostics[0].code, "duplicate-key");
    assert_eq!(repo.clusters[0].manifests.len(), 1);
}

#[test]
fn aliases_work_within_a_manifest() {
    let m = read(
        "apiVersion: proxops/v1alpha1\nkind: VM\nmetadata: {name: web}\nspec:\n  disks:\n    - &d {storage: a, size: 8GiB}\n    - *d\n",
    );
    assert_eq!(m.spec["disks"][0], m.spec["disks"][1]);
    assert_eq!(m.locate("/spec/disks/1/size").to_string(), "vm/lab/web.yaml:6:23");
}
