//! Kinds as the host runs them: real components, real limits.

// Helpers of tests are not in test functions, where clippy.toml already allows it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod builtin;
mod components;
mod contract;
mod hostile;
mod loading;
mod objects;
mod wasi;
