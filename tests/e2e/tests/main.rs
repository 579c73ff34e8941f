//! End-to-end tests, one module a subject. See the bench in `src/`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod apis;
mod crash;
mod determinism;
mod documents;
mod gaps;
mod house;
mod inputs;
mod kinds;
mod matrix;
mod objects;
mod safety;
mod stranger;
mod support;
mod validate;
