//! The built-in kinds against the simulator: natively, in one process, with a logical clock.
//!
//! Rooms: [`draw`] random choices from a seed; [`vm`], [`ct`] and `file` random manifests; [`lab`] a
//! cluster and a kind's steps as requests; [`oracle`] what a manifest can't change; [`converge`] the
//! properties; [`mix`] mixed manifests and small counterexamples; [`schema`] the fields of a kind.

// Tests only: nothing here runs on input of others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod converge;
pub mod ct;
pub mod draw;
pub mod file;
pub mod kinds;
pub mod lab;
pub mod living;
pub mod mix;
pub mod oracle;
pub mod samples;
pub mod schema;
pub mod vm;
