//! Files: what a manifest may say, where a download is needed, and what a live file tells.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../../container/tests/pve_schema/mod.rs"]
mod pve_schema;

use proxops_artifact::{CtTemplate, DiskImage, Iso};
use proxops_kind::*;
use serde_json::{Value as Json, json};

const SHA256: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn spec() -> Json {
    json!({ "node": "pve01", "storage": "local", "filename": "deb13.qcow2", "url": "https://images.example.org/deb13.qcow2" })
}

fn spec_with(fields: Json) -> Json {
    let mut spec = spec();
    for (key, value) in fields.as_object().unwrap() {
        if value.is_null() {
            spec.as_object_mut().unwrap().remove(key);
        } else {
            spec[key] = value.clone();
        }
    }
    spec
}

fn manifest(spec: Json) -> Manifest {
    let (labels, annotations) = (vec![], vec![]);
    Manifest { name: "deb13".into(), labels, annotations, spec: spec.to_string(), ext: vec![] }
}

fn error(fields: Json) -> (String, String) {
    let validation = kind::validate::<DiskImage>(&manifest(spec_with(fields)));
    let [one] = &validation.diagnostics[..] else { panic!("{:?}", validation.diagnostics) };
    assert_eq!(one.severity, Severity::Error);
    (one.at.clone(), format!("{} {}", one.message, one.help.clone().unwrap_or_default()))
}

fn state(node: &str, presence: Presence) -> PlacementState {
    PlacementState { at: Placement::new(node, "local", "deb13.qcow2"), presence, size: None, ext: vec![] }
}

fn drift(spec: Json, states: Vec<PlacementState>, context: &Context) -> DriftReport {
    kind::drift::<DiskImage>(&manifest(spec), &Live::Artifact(states), context).unwrap()
}

fn downloads(steps: &[Step]) -> Vec<(String, Vec<(String, String)>)> {
    let pair = |p: &Param| match &p.value {
        Value::Text(text) => (p.key.clone(), text.clone()),
        other => panic!("{other:?}"),
    };
    let one = |step: &Step| match step {
        Step::Download(step) => (step.to.node.clone(), step.params.iter().map(pair).collect()),
        other => panic!("{other:?}"),
    };
    steps.iter().map(one).collect()
}

#[test]
fn a_manifest_publishes_its_volume() {
    let validated = kind::validate::<DiskImage>(&manifest(spec())).validated.unwrap();
    let attributes =
        [("volid", "local:import/deb13.qcow2"), ("storage", "local"), ("filename", "deb13.qcow2")];
    assert_eq!(validated.attributes, attributes.map(|(k, v)| (k.to_owned(), v.to_owned())));
    assert_eq!(validated.identity, Identity::Artifact(vec![Placement::new("pve01", "local", "deb13.qcow2")]));
    assert_eq!(validated.storages, [StorageUse::new("local", "import", "/spec/storage").on("pve01")]);
    assert!(validated.incomplete.is_empty());
}

#[test]
fn a_missing_url_is_a_hole_and_no_error() {
    let validation = kind::validate::<DiskImage>(&manifest(spec_with(json!({ "url": null }))));
    assert!(validation.diagnostics.is_empty());
    assert_eq!(validation.validated.unwrap().incomplete[0].at, "/spec/url");
    assert!(
        kind::create_params::<DiskImage>(&manifest(spec_with(json!({ "url": null }))), &Context::default())
            .is_err()
    );
    let report =
        drift(spec_with(json!({ "url": null })), vec![state("pve01", Presence::Absent)], &Context::default());
    assert!(report.steps.is_empty());
    assert_eq!(report.anomalies[0].severity, Severity::Error);
}

#[test]
fn every_mistake_is_found_at_its_place() {
    for (fields, at, says) in [
        (json!({ "node": null }), "/spec/node", "nodes"),
        (json!({ "nodes": ["pve02"] }), "/spec/nodes", "only one"),
        (json!({ "node": null, "nodes": [] }), "/spec/nodes", "at least one"),
        (json!({ "node": null, "nodes": ["pve01", "pve01"] }), "/spec/nodes/1", "twice"),
        (json!({ "node": "a b" }), "/spec/node", "node's name"),
        (json!({ "storage": "x" }), "/spec/storage", "storage"),
        (json!({ "filename": "deb13.img" }), "/spec/filename", ".qcow2"),
        (json!({ "filename": "Debian 13.qcow2" }), "/spec/filename", "Debian_13.qcow2"),
        (json!({ "url": "ftp://x/y" }), "/spec/url", "https://"),
        (json!({ "url": "https://" }), "/spec/url", "host"),
        (json!({ "url": "http://x/y" }), "/spec/url", "checksum"),
        (json!({ "checksum": { "algorithm": "sha256", "value": "abc" } }), "/spec/checksum/value", "64"),
        (json!({ "checksum": { "algorithm": "crc", "value": "abc" } }), "/spec/checksum/algorithm", "sha256"),
        (json!({ "compression": "gz" }), "/spec/compression", "not a field"),
        (json!({ "sha256": SHA256 }), "/spec/sha256", "not a field"),
    ] {
        let (place, text) = error(fields.clone());
        assert_eq!(place, at, "{fields}: {text}");
        assert!(text.contains(says), "{fields}: {text}");
    }
}

#[test]
fn http_needs_a_checksum() {
    let checksum = json!({ "algorithm": "sha256", "value": SHA256 });
    let spec = spec_with(json!({ "url": "http://images.example.org/deb13.qcow2", "checksum": checksum }));
    assert!(kind::validate::<DiskImage>(&manifest(spec)).diagnostics.is_empty());
}

#[test]
fn a_download_has_pves_names() {
    // Fact S4: `checksum-algorithm`, never with an underscore.
    let checksum = json!({ "algorithm": "sha256", "value": SHA256.to_uppercase() });
    let spec = spec_with(json!({ "checksum": checksum, "verify-certificates": false }));
    let creation = kind::create_params::<DiskImage>(&manifest(spec), &Context::default()).unwrap();
    let wanted = [
        ("url", "https://images.example.org/deb13.qcow2"),
        ("checksum", SHA256),
        ("checksum-algorithm", "sha256"),
        ("verify-certificates", "0"),
    ];
    let pairs = wanted.map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(downloads(&creation.steps), [("pve01".to_owned(), pairs.to_vec())]);
}

#[test]
fn present_is_converged_and_unknown_is_nothing() {
    for presence in [Presence::Present, Presence::Unknown] {
        let report = drift(spec(), vec![state("pve01", presence)], &Context::default());
        assert_eq!(report, DriftReport::default());
    }
}

#[test]
fn each_node_that_lacks_the_file_gets_one() {
    let spec = spec_with(json!({ "node": null, "nodes": ["pve01", "pve02", "pve03"] }));
    let states = vec![
        state("pve01", Presence::Absent),
        state("pve02", Presence::Present),
        state("pve03", Presence::Absent),
    ];
    let report = drift(spec.clone(), states.clone(), &Context::default());
    let nodes: Vec<String> = downloads(&report.steps).into_iter().map(|(node, _)| node).collect();
    assert_eq!(nodes, ["pve01", "pve03"]);
    let places: Vec<&str> = report.changes.iter().map(|c| c.at.as_str()).collect();
    assert_eq!(places, ["/spec/nodes/0", "/spec/nodes/2"]);
    assert_eq!(
        kind::create_params::<DiskImage>(&manifest(spec), &Context::default()).unwrap().steps.len(),
        3
    );
}

#[test]
fn a_shared_storage_gets_one_in_all() {
    let spec = spec_with(json!({ "node": null, "nodes": ["pve01", "pve02"] }));
    let shared = StorageInfo {
        name: "local".into(),
        storage_type: "nfs".into(),
        shared: true,
        content: vec!["import".into()],
        nodes: vec![],
        ext: vec![],
    };
    let context = Context { storages: vec![shared], ..Context::default() };
    let absent = vec![state("pve01", Presence::Absent), state("pve02", Presence::Absent)];
    assert_eq!(drift(spec.clone(), absent, &context).steps.len(), 1);
    let one = vec![state("pve01", Presence::Absent), state("pve02", Presence::Present)];
    assert_eq!(drift(spec, one, &context), DriftReport::default());
}

#[test]
fn an_adopted_file_lacks_only_its_url() {
    let options = AdoptOptions { secrets: false, ext: vec![] };
    let adopt = |states: Vec<PlacementState>| {
        kind::adopt::<DiskImage>("deb13", &Live::Artifact(states), &Context::default(), &options)
    };
    let adopted = adopt(vec![state("pve01", Presence::Present)]).unwrap();
    assert_eq!(adopted.spec, r#"{"node":"pve01","storage":"local","filename":"deb13.qcow2"}"#);
    assert_eq!(adopted.incomplete[0].at, "/spec/url");
    let adopted = adopt(vec![state("pve02", Presence::Present), state("pve01", Presence::Present)]).unwrap();
    assert_eq!(adopted.spec, r#"{"nodes":["pve01","pve02"],"storage":"local","filename":"deb13.qcow2"}"#);
    let again = manifest(serde_json::from_str(&adopted.spec).unwrap());
    assert!(kind::validate::<DiskImage>(&again).diagnostics.is_empty());
    assert!(adopt(vec![state("pve01", Presence::Absent)]).is_err());
}

fn check_kind<K: Kind>(name: &str, root: &str, content: &str) {
    let info = kind::describe::<K>();
    assert_eq!((info.kind.as_str(), info.root.as_str()), (name, root));
    let Target::Artifact(target) = &info.target else { panic!("{:?}", info.target) };
    assert_eq!(target.content, content);
    assert_eq!(info.examples.len(), 2);
    let schema = pve_schema::method("/nodes/{node}/storage/{storage}/download-url POST");
    for text in &info.examples {
        let whole: Json = serde_json::from_str(text).unwrap();
        let manifest = manifest(whole["spec"].clone());
        assert_eq!(kind::validate::<K>(&manifest).diagnostics, []);
        let creation = kind::create_params::<K>(&manifest, &Context::default()).unwrap();
        for (_, params) in downloads(&creation.steps) {
            if let Some(schema) = &schema {
                assert_eq!(pve_schema::complaints(schema, &params), Vec::<String>::new());
            }
        }
    }
    let schema: Json = serde_json::from_str(&info.schema).unwrap();
    assert_eq!(schema["properties"]["compression"].is_null(), content != "iso");
}

#[test]
fn the_kinds_describe_themselves() {
    check_kind::<Iso>("ISO", "iso", "iso");
    check_kind::<CtTemplate>("CTTemplate", "ctt", "vztmpl");
    check_kind::<DiskImage>("DiskImage", "diskimage", "import");
}
