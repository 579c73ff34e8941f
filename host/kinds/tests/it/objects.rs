//! A hostile object kind (spec 03 §5): it can't leave its object, its paths or its own marker.

use crate::components::*;
use proxops_kinds::Session;
use proxops_model::kind::{KindSet as _, Live, LiveObject, ObjectId, Refusal};
use std::collections::BTreeMap;

fn session() -> Session {
    let folder = Folder::new();
    folder.file("evil.wasm", &patched(plain(), "object", "Evil", "evil"));
    let kinds = folder.load();
    assert_eq!(kinds.problems(), []);
    kinds.session()
}

fn fault<T>(answer: Result<T, Refusal>) -> Option<String> {
    match answer {
        Ok(_) => None,
        Err(Refusal::Fault(fault)) => Some(fault.message),
        Err(Refusal::Diagnostics(list)) => panic!("diagnostics, not a fault: {list:?}"),
    }
}

/// What the host says to the steps of `drift`.
fn drifts(session: &Session, attack: &str) -> Option<String> {
    let id = ObjectId { id: "evil".into(), vars: vec![] };
    let live = Live::Object(LiveObject { id, values: BTreeMap::new(), row: BTreeMap::new() });
    fault(session.get("Evil").unwrap().drift(&manifest(attack), &live, &context()))
}

#[test]
fn an_id_can_not_leave_its_segment() {
    let session = session();
    for id in ["..", ".", "a/../b", "../access", "a//b", "%2e%2e", "a?delete=1", "a#b", "a b", "a;b"] {
        let fault = validate(&session, &format!("id:{id}")).unwrap_err();
        assert_eq!(fault.message, format!("its object id \"{id}\" can't stand in an API path"));
    }
    assert!(validate(&session, "id:").is_err());
    assert!(validate(&session, "var-twice").is_err());
    assert!(validate(&session, "id:web.a_b-1").is_ok());
}

#[test]
fn a_part_of_an_object_can_not_leave_its_segment() {
    let session = session();
    for part in ["..", ".", "", "0/1", "0//1", "%2e%2e", "0?delete=1", "0#x", "0 1"] {
        let message = drifts(&session, &format!("var:{part}")).unwrap_or_default();
        assert_eq!(message, format!("its path variable \"{part}\" can't stand in an API path"));
    }
    assert_eq!(drifts(&session, "var:0"), None);
}

#[test]
fn a_call_stays_with_its_own_object_and_operations() {
    let session = session();
    for (attack, expected) in [
        ("call-delete", "it calls \"delete\"; the host deletes, with a proof of ownership"),
        (
            "call-undeclared",
            "it calls the operation \"purge\", which it does not declare (create, update, part, delete)",
        ),
        ("configure", "it returns a step other than a call, and its target is an object"),
        ("var-id", "its operation \"part\" sets {id}, which the object's identity fixes"),
        ("var-node", "its operation \"part\" sets {node}, which the object's identity fixes"),
        ("set-id", "it sends \"poolid\", which only the host may send"),
        ("set-digest", "it sends \"digest\", which only the host may send"),
        ("rename", "it sends \"rename\" with another object's id"),
    ] {
        assert_eq!(drifts(&session, attack).as_deref(), Some(expected), "{attack}");
    }
}

#[test]
fn the_marker_is_set_and_can_not_be_dropped_or_forged() {
    let session = session();
    let proof = "the marker proxops:proxops:Evil/web";
    assert_eq!(
        drifts(&session, "foreign-marker").as_deref(),
        Some("it writes the marker of another resource into \"comment\"")
    );
    assert_eq!(drifts(&session, "drop-marker"), Some(format!("it sets \"comment\" without {proof}")));
    for attack in ["unset-marker", "delete-marker"] {
        let expected = format!("it removes \"comment\", and with it {proof}");
        assert_eq!(drifts(&session, attack), Some(expected), "{attack}");
    }
    assert_eq!(fault(create(&session, "untagged")), Some(format!("it sets \"comment\" without {proof}")));
    assert_eq!(fault(create(&session, "honest")), None);
    assert_eq!(drifts(&session, "change"), None);
}
