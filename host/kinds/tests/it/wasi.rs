//! A component that imports WASI finds an empty world: nothing to read, nothing to reach, no time.

use crate::components::*;
use proxops_kinds::Session;
use proxops_model::kind::{KindSet, Refusal};
use std::time::Instant;

fn seen(session: &Session, what: &str) -> String {
    validate(session, what).unwrap().diagnostics[0].message.clone()
}

#[test]
fn there_is_nothing_to_see() {
    let session = evil(wasip2());
    assert_eq!(seen(&session, "environment"), "[] []");
    for what in ["file", "folder", "write"] {
        assert_eq!(seen(&session, what), "false", "{what}");
    }
    assert_eq!(seen(&session, "input"), "Ok(0) \"\"");
    assert_eq!(seen(&session, "clock"), "Ok(1577836800) 0");
}

#[test]
fn randomness_is_the_same_in_every_instance() {
    assert_eq!(seen(&evil(wasip2()), "random"), seen(&evil(wasip2()), "random"));
}

#[test]
fn no_socket_connects() {
    let session = evil(wasip2());
    let message = validate(&session, "socket").unwrap_err().message;
    assert!(
        message.starts_with("it called wasi:sockets/") && message.ends_with("which a kind does not have"),
        "{message}"
    );
    assert_others_work(&session);
}

#[test]
fn a_sleep_ends_at_once_with_a_fault() {
    let session = evil(wasip2());
    let started = Instant::now();
    let message = validate(&session, "sleep").unwrap_err().message;
    assert_eq!(message, "it tried to wait for a time (wasi:clocks subscribe-duration); a kind has no time");
    // it asked for 20 s: whatever this machine does, it did not wait for them
    assert!(started.elapsed().as_secs() < 19);
    assert_others_work(&session);
}

#[test]
fn leaving_is_a_fault() {
    let session = evil(wasip2());
    // the standard library's exit has no way to tell a code other than success and failure
    assert_eq!(validate(&session, "exit").unwrap_err().message, "it called exit(1)");
    assert_others_work(&session);
}

#[test]
fn output_is_cut_and_never_a_fault() {
    assert!(validate(&evil(wasip2()), "stdout").is_ok());
}

#[test]
fn the_words_of_a_panic_are_told() {
    let message = validate(&evil(wasip2()), "panic").unwrap_err().message;
    assert!(message.contains("the sky is falling\\u{1b}[31m"), "{message}");
}

#[test]
fn limits_hold_as_for_other_components() {
    let loops = validate(&evil(wasip2()), "loop").unwrap_err().message;
    assert_eq!(loops, "it did more work than one call may do (limit fuel = 400000000)");
    let session = evil(wasip2());
    for (function, message) in faults(&session, "gigabytes") {
        assert_eq!(message, "its answer is larger than 4 MiB (limit output-bytes)", "{function}");
    }
    assert_others_work(&session);
}

#[test]
fn calls_work_on_a_thread_of_an_async_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let session = evil(wasip2());
        assert!(validate(&session, "stdout").is_ok());
        assert!(matches!(drift(&session, "panic"), Err(Refusal::Fault(_))));
        assert!(session.get("Good").unwrap().validate(&manifest("honest")).is_ok());
    });
}

#[test]
fn a_component_without_wasi_gets_none() {
    let folder = Folder::new();
    folder.file("plain.wasm", &patched(plain(), "honest", "Plain", "plain"));
    folder.file("wasi.wasm", &patched(wasip2(), "honest", "Wasi", "wasi"));
    let listing = folder.load().list();
    assert_eq!(listing[0].imports, ["proxops:kind/log@1.0.0", "proxops:kind/types@1.0.0"]);
    assert!(listing[1].imports.iter().any(|i| i.starts_with("wasi:")));
}

#[test]
fn a_preview_1_module_with_its_adapter_is_a_kind_with_an_empty_world_too() {
    let session = evil(wasip1());
    assert!(validate(&session, "stdout").is_ok());
    assert!(drift(&session, "honest").is_ok());
    let message = validate(&session, "panic").unwrap_err().message;
    assert!(message.contains("the sky is falling"), "{message}");
    assert_others_work(&session);
}
