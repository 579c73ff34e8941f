//! What a hostile kind must not be able to do (spec 03 §5): each attack ends in a fault that names the
//! limit, and the other kinds go on.

use crate::components::*;
use proxops_kinds::Limits;
use proxops_model::kind::{KindSet as _, KindStep, ParamValue, Refusal};
use std::time::Duration;

fn message(refusal: Refusal) -> String {
    match refusal {
        Refusal::Fault(fault) => fault.message,
        Refusal::Diagnostics(list) => panic!("diagnostics, not a fault: {list:?}"),
    }
}

/// The same message from every function.
fn everywhere(attack: &str, expected: &str) {
    let session = evil(plain());
    for (function, message) in faults(&session, attack) {
        assert_eq!(message, expected, "{attack} in {function}");
    }
    assert_others_work(&session);
}

#[test]
fn a_loop_without_end_meets_the_fuel_limit() {
    let over = "it did more work than one call may do (limit fuel = 400000000)";
    let fault = |refusal| match refusal {
        Refusal::Fault(fault) => fault,
        Refusal::Diagnostics(list) => panic!("diagnostics, not a fault: {list:?}"),
    };
    for call in 0..4 {
        let session = evil(plain());
        let found = match call {
            0 => validate(&session, "loop").map(|_| ()).unwrap_err(),
            1 => fault(create(&session, "loop").map(|_| ()).unwrap_err()),
            2 => fault(drift(&session, "loop").map(|_| ()).unwrap_err()),
            _ => fault(adopt(&session, "loop").map(|_| ()).unwrap_err()),
        };
        assert_eq!((found.message.as_str(), found.kind.as_str()), (over, "Evil"));
    }
}

#[test]
fn a_kind_that_spins_costs_its_time_limit_once_in_a_session_and_others_go_on() {
    let folder = Folder::new();
    folder.file("evil.wasm", &patched(plain(), "honest", "Evil", "evil"));
    folder.file("good.wasm", &patched(plain(), "honest", "Good", "good"));
    let kinds = folder.load();
    let session = kinds.session();
    assert!(validate(&session, "loop").is_err());
    for _ in 0..1000 {
        let again = validate(&session, "loop").unwrap_err();
        assert_eq!(
            again.message,
            "it is not asked again in this cycle: in validate it did more work than one call may do (limit fuel = 400000000)"
        );
        assert!(session.get("Good").unwrap().validate(&manifest("honest")).is_ok());
    }
    // the next cycle asks again
    assert!(validate(&kinds.session(), "honest").is_ok());
}

#[test]
fn a_kind_that_crashes_again_and_again_is_given_up_when_that_cost_its_time_limit() {
    let folder = Folder::new();
    folder.file("evil.wasm", &patched(plain(), "honest", "Evil", "evil"));
    folder.file("good.wasm", &patched(plain(), "honest", "Good", "good"));
    // any time is over a limit of none
    let own = Limits { deadline: Duration::ZERO, ..limits() };
    let sources = proxops_kinds::Sources { limits: [("Evil".to_owned(), own)].into(), ..folder.sources() };
    let session = proxops_kinds::Kinds::load(&sources, limits(), None).unwrap().session();
    assert!(validate(&session, "abort").is_err());
    let again = validate(&session, "honest").unwrap_err();
    assert!(again.message.starts_with("it is not asked again in this cycle: in validate"), "{again}");
    assert!(session.get("Good").unwrap().validate(&manifest("honest")).is_ok());
}

#[test]
fn limits_of_one_kind_are_no_other_kinds() {
    let folder = Folder::new();
    folder.file("evil.wasm", &patched(plain(), "honest", "Evil", "evil"));
    folder.file("good.wasm", &patched(plain(), "honest", "Good", "good"));
    let own = Limits { output_items: 40_000, ..limits() };
    let sources = proxops_kinds::Sources { limits: [("Evil".to_owned(), own)].into(), ..folder.sources() };
    let session = proxops_kinds::Kinds::load(&sources, limits(), None).unwrap().session();
    assert!(validate(&session, "items").is_ok());
    let good = session.get("Good").unwrap().validate(&manifest("items")).unwrap_err();
    assert!(good.message.contains("limit output-items = 20000"), "{good}");
}

#[test]
fn where_fuel_is_plenty_a_loop_meets_the_deadline() {
    let limits = Limits { fuel: u64::MAX / 4, deadline: Duration::from_millis(100), ..Limits::standard() };
    let session = evil_within(plain(), limits);
    assert_eq!(validate(&session, "loop").unwrap_err().message, "it ran longer than 100 ms (limit deadline)");
}

#[test]
fn allocating_without_end_meets_the_memory_limit() {
    let session = evil(plain());
    for (function, message) in faults(&session, "allocate") {
        assert!(message.starts_with("it asked for "), "{function}: {message}");
        assert!(message.ends_with(" of memory (limit memory = 64 MiB)"), "{function}: {message}");
    }
    assert_others_work(&session);
}

#[test]
fn recursing_without_end_meets_the_stack_limit() {
    // a component's own stack lies in its memory, and Rust's ends with a trap before the host's does
    let session = evil(plain());
    for (function, message) in faults(&session, "recurse") {
        assert!(
            message == "it used up its stack (limit stack = 512 KiB)"
                || message.starts_with("it trapped: wasm trap: out of bounds memory access"),
            "{function}: {message}"
        );
    }
    assert_others_work(&session);
}

#[test]
fn an_answer_of_gigabytes_meets_the_output_limit() {
    everywhere("gigabytes", "its answer is larger than 4 MiB (limit output-bytes)");
}

#[test]
fn one_large_text_meets_the_output_limit() {
    everywhere("large", "its answer is larger than 4 MiB (limit output-bytes)");
}

#[test]
fn too_many_items_meet_the_item_limit() {
    everywhere("items", "its answer has more than 20000 list elements (limit output-items = 20000)");
}

#[test]
fn a_panic_is_told_with_its_text_made_printable() {
    let session = evil(plain());
    for (function, message) in faults(&session, "panic") {
        assert!(
            message.starts_with("it trapped: ") || message.starts_with("it panicked"),
            "{function}: {message}"
        );
        assert!(!message.contains('\u{1b}'), "{function}: {message}");
    }
    assert_others_work(&session);
}

#[test]
fn texts_that_break_the_component_abi_are_refused() {
    let session = evil(plain());
    for attack in ["outside", "utf8"] {
        for (function, message) in faults(&session, attack) {
            assert!(message.starts_with("it broke the component ABI: "), "{attack} in {function}: {message}");
        }
    }
    assert_others_work(&session);
}

#[test]
fn a_nul_byte_is_refused() {
    let session = evil(plain());
    for (function, message) in faults(&session, "nul") {
        assert!(message.ends_with("holds a NUL byte"), "{function}: {message}");
    }
}

#[test]
fn control_characters_arrive_as_escapes() {
    let session = evil(plain());
    let shown = "\\u{1b}[2J\\u{202e}gone";
    assert_eq!(validate(&session, "control").unwrap().diagnostics[0].message, shown);
    assert_eq!(create(&session, "control").unwrap().warnings[0].message, shown);
    assert_eq!(drift(&session, "control").unwrap().changes[0].after.as_deref(), Some(shown));
    assert_eq!(adopt(&session, "control").unwrap().gaps[0].value.as_deref(), Some(shown));
}

#[test]
fn an_unknown_extension_is_refused() {
    everywhere("ext", "it sent the extension \"repaint\", which this host does not know");
}

#[test]
fn pointers_that_lead_nowhere_are_refused() {
    let session = evil(plain());
    for (function, message) in faults(&session, "pointer") {
        assert!(message.starts_with("its pointer "), "{function}: {message}");
    }
    for attack in ["pointer-escape", "pointer-index"] {
        let message = validate(&session, attack).unwrap_err().message;
        assert!(message.starts_with("its pointer "), "{attack}: {message}");
    }
}

#[test]
fn what_validate_says_must_fit_the_target() {
    let session = evil(plain());
    for (attack, expected) in [
        ("identity", "its identity is not of its target's sort"),
        ("identity-other", "its identity is the extension \"x\", which this host does not know"),
        ("vmid", "its vmid 1 is not between 100 and 999999999"),
        ("node", "its node \"n1/../n2\" is not a name"),
        ("code", "its code \"Not Kebab\" is not kebab-case"),
        ("nothing", "it found no error and says nothing about the resource"),
        (
            "secret-invented",
            "it uses the secret \"root.password\", which does not stand in the manifest at \"/spec/password-ref\"",
        ),
    ] {
        assert_eq!(validate(&session, attack).unwrap_err().message, expected, "{attack}");
    }
}

#[test]
fn steps_stay_within_the_target() {
    let session = evil(plain());
    for (attack, expected) in [
        ("vmid", "it sends \"vmid\", which only the host may send"),
        ("skiplock", "it sends \"skiplock\", which only the host may send"),
        ("drop-tag", "it sets \"tags\" without the owner tag \"proxops\""),
        ("unset-tag", "it removes \"tags\", and with it the owner tag \"proxops\""),
        ("step-nul", "its parameter \"description\" \"a\\\\u{0}b\" holds a NUL byte"),
        ("step-other", "its step is the extension \"reboot-node\", which this host does not know"),
        ("value-other", "its parameter value is the extension \"x\", which this host does not know"),
        ("call", "it calls an operation, and its target is a guest"),
        ("secret-unlisted", "it uses the secret \"root.password\", which the manifest does not list"),
        (
            "secret-readable",
            "it puts a secret into \"description\"; secrets go into cipassword and password only",
        ),
    ] {
        assert_eq!(message(drift(&session, attack).unwrap_err()), expected, "{attack}");
    }
    let report = drift(&session, "secret-listed").unwrap();
    let KindStep::Configure { set, .. } = &report.steps[0] else { panic!("{:?}", report.steps) };
    assert_eq!(set[0].value, ParamValue::Secret("ops".into()));
    assert!(drift(&session, "step-env").is_ok());
    let untagged = message(create(&session, "untagged").unwrap_err());
    assert_eq!(untagged, "it creates a guest without the owner tag \"proxops\"");
}

#[test]
fn no_answer_without_a_reason() {
    let session = evil(plain());
    for refusal in [
        create(&session, "refuse-silently").map(|_| ()).unwrap_err(),
        drift(&session, "refuse-silently").map(|_| ()).unwrap_err(),
        adopt(&session, "refuse-silently").map(|_| ()).unwrap_err(),
    ] {
        assert_eq!(message(refusal), "it gave no answer and no reason");
    }
}

#[test]
fn an_adopted_spec_is_shallow_json() {
    let session = evil(plain());
    assert!(message(adopt(&session, "json").unwrap_err()).starts_with("its spec is not JSON"));
    assert_eq!(message(adopt(&session, "deep").unwrap_err()), "its spec nests deeper than 64 levels");
}

#[test]
fn a_flood_of_log_lines_is_cut() {
    let session = evil(plain());
    assert!(validate(&session, "log").is_ok());
}

#[test]
fn instances_and_tables_are_bounded() {
    for (limits, expected) in [
        (Limits { table_elements: 1, ..limits() }, "table elements (limit table-elements = 1)"),
        (Limits { instances: 1, ..limits() }, "instance count too high"),
        (Limits { memory: 65536, ..limits() }, "of memory (limit memory = 64 KiB)"),
    ] {
        let folder = Folder::new();
        folder.file("evil.wasm", &patched(plain(), "honest", "Evil", "evil"));
        let kinds = proxops_kinds::Kinds::load(&folder.sources(), limits, None).unwrap();
        let [problem] = kinds.problems() else { panic!("{:?}", kinds.problems()) };
        assert!(problem.message.contains(expected), "{}", problem.message);
    }
}

#[test]
fn after_a_trap_the_next_call_has_a_fresh_instance() {
    let session = evil(plain());
    for _ in 0..3 {
        assert!(drift(&session, "abort").is_err());
        assert!(drift(&session, "honest").is_ok());
    }
}

#[test]
fn several_threads_call_one_kind() {
    let session = evil(plain());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| assert!(drift(&session, "honest").is_ok())));
        }
        scope.spawn(|| (0..3).for_each(|_| assert!(drift(&session, "panic").is_err())));
    });
}
