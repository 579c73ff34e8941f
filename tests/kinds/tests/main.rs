//! The built-in kinds against the simulator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod adopt;
mod complete;
mod golden;
mod matrix;
mod property;
mod pve;
mod root;
