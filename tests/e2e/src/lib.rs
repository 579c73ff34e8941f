//! The bench of the end-to-end tests: a repository in a temporary folder, the PVE simulator on loopback, and the
//! real `proxops` binary between them, in an environment of its own.
//!
//! Every run is checked for two things that must never happen: a panic, and a secret in the output.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench;
mod browser;
mod build;
mod daemon;
mod git;
mod run;
mod schema;
mod tap;

pub use bench::{Bench, CLUSTER};
pub use browser::Browser;
pub use build::{binary, example_kind, hostile_kind, root};
pub use daemon::{Answer, Daemon};
pub use git::{GIT_TOKEN, GitServer, Manners, Upstream};
pub use run::Run;
pub use schema::{builtin_kinds, field_paths};
pub use tap::Tap;
