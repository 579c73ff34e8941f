//! Why a call gave no answer, told with the limit or trap by name.

use crate::{
    check::Violation,
    limits::{LimitHit, Limits, size},
    store::Stopped,
    wasi::Denied,
};
use proxops_model::text::printable;
use wasmtime::Trap;
use wasmtime_wasi::I32Exit;

/// One sentence that starts with "it" or "its".
pub(crate) fn explain(stopped: &Stopped, limits: &Limits) -> String {
    let error = &stopped.error;
    if let Some(hit) = error.downcast_ref::<LimitHit>() {
        return hit.to_string();
    }
    if let Some(denied) = error.downcast_ref::<Denied>() {
        return denied.to_string();
    }
    if let Some(violation) = error.downcast_ref::<Violation>() {
        return violation.to_string();
    }
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return format!("it called exit({}){}", exit.0, words(stopped));
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return match trap {
            Trap::OutOfFuel => {
                format!("it did more work than one call may do (limit fuel = {})", limits.fuel)
            }
            Trap::Interrupt => {
                format!("it ran longer than {} ms (limit deadline)", limits.deadline.as_millis())
            }
            Trap::StackOverflow => format!("it used up its stack (limit stack = {})", size(limits.stack)),
            Trap::UnreachableCodeReached if stopped.words.is_some() => {
                format!("it panicked{}", words(stopped))
            }
            trap => format!("it trapped: {trap}{}", words(stopped)),
        };
    }
    // wasmtime keeps this error's type to itself; its name is the only identity that it has
    if error.chain().any(|cause| format!("{cause:?}") == "HostcallFuelExhausted") {
        return format!("its answer is larger than {} (limit output-bytes)", size(limits.output_bytes));
    }
    format!("it broke the component ABI: {}{}", printable(&chain(error)), words(stopped))
}

/// Whether it is one of the limits of time.
pub(crate) fn is_time(stopped: &Stopped) -> bool {
    matches!(stopped.error.downcast_ref::<Trap>(), Some(Trap::OutOfFuel | Trap::Interrupt))
}

/// The causes of an error, without the WebAssembly backtrace that stands above them.
fn chain(error: &wasmtime::Error) -> String {
    let mut causes: Vec<String> = error
        .chain()
        .map(ToString::to_string)
        .filter(|text| !text.starts_with("error while executing at wasm backtrace"))
        .collect();
    causes.dedup();
    causes.join(": ")
}

fn words(stopped: &Stopped) -> String {
    stopped.words.as_ref().map(|w| format!(": {w}")).unwrap_or_default()
}
