//! How kinds are compiled: one place for the build script, which compiles the built-in ones ahead of time,
//! and for the host, which must be able to load that code.

use wasmtime::{Config, OptLevel};

/// Settings for code that comes with proxops itself. Its calls are bounded by memory and a deadline.
#[must_use]
pub fn trusted() -> Config {
    let mut config = common();
    // nobody waits for the compiler here
    config.cranelift_opt_level(OptLevel::Speed);
    config
}

/// Settings for other people's components: their work is counted too, so that a kind which does too much
/// stops at the same place each time.
#[must_use]
pub fn strangers() -> Config {
    let mut config = common();
    // The author's compiler has optimised the code already: more of it costs a quarter more compile time and
    // runs no faster (measured with `cargo run -p proxops-kinds --example kind_cost`).
    config.consume_fuel(true).cranelift_opt_level(OptLevel::None);
    config
}

fn common() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .epoch_interruption(true)
        // Only a backtrace would need it, and a fault shows none: an eighth less code to carry and to load.
        .generate_address_map(false)
        // the same answer on every machine
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .wasm_relaxed_simd(false);
    config
}
