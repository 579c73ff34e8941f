//! End-to-end tests, one module a subject. See the bench in `src/`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod apis;
mod crash;
mod determinism;
mod doctor;
mod documents;
mod gaps;
mod git_source;
mod house;
mod inputs;
mod kinds;
mod leaks;
mod matrix;
mod refresh;
mod safety;
mod secrets;
mod support;
mod validate;
