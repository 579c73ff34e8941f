//! The executor against the simulator, over real HTTP with the real client.

// helpers of tests are tests
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod changes;
mod classes;
mod create;
mod deletes;
mod downloads;
mod graph;
mod kill;
mod objects;
mod power;
mod support;
