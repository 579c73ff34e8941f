//! End-to-end tests, one module a subject. See the bench in `src/`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod apis;
mod crash;
mod determinism;
mod documents;
mod estate;
mod gaps;
mod history;
mod house;
mod inputs;
mod kill_matrix;
mod kinds;
mod matrix;
mod running;
mod safety;
mod saved_plans;
mod seeded;
mod storms;
mod support;
mod validate;
mod watchman;
