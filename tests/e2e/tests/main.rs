//! End-to-end tests, one module a subject. See the bench in `src/`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod adopt;
mod adopt_writes;
mod apis;
mod clones;
mod crash;
mod daemon;
mod determinism;
mod doctor;
mod documents;
mod estate;
mod failures;
mod gaps;
mod git_source;
mod history;
mod house;
mod init;
mod inputs;
mod kill_matrix;
mod kinds;
mod leaks;
mod matrix;
mod objects;
mod packaging;
mod readers;
mod refresh;
mod rehearsal;
mod root;
mod running;
mod safety;
mod saved_plans;
mod secrets;
mod seeded;
mod storms;
mod stranger;
mod support;
mod validate;
mod watchman;
