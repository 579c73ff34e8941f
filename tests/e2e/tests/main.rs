//! End-to-end tests, one module a subject. See the bench in `src/`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod apis;
mod crash;
mod determinism;
mod documents;
mod estate;
mod gaps;
mod house;
mod inputs;
mod kill_matrix;
mod kinds;
mod matrix;
mod safety;
mod support;
mod validate;
mod watchman;
