//! Attacks that do not need an answer: they work in every export.

use std::hint::black_box;

pub fn anywhere(attack: &str) {
    match attack {
        "loop" => spin(),
        "allocate" => allocate(),
        "recurse" => {
            black_box(recurse(1));
        }
        "panic" => panic!("the sky is falling\u{1b}[31m"),
        "abort" => std::process::abort(),
        "log" => log(),
        #[cfg(target_os = "wasi")]
        attack => crate::snoop::wait(attack),
        #[cfg(not(target_os = "wasi"))]
        _ => {}
    }
}

fn spin() {
    let mut n = 0u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}

fn allocate() {
    let mut kept = Vec::new();
    loop {
        kept.push(black_box(vec![1u8; 1024 * 1024]));
    }
}

#[allow(unconditional_recursion)]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    recurse(depth + 1) + frame[3]
}

fn log() {
    let line = "x".repeat(1024 * 1024);
    for _ in 0..1000 {
        crate::proxops::kind::log::emit(crate::proxops::kind::log::Level::Info, &line);
    }
}
