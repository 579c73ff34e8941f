//! Behaviour of the repository room, seen from outside. One binary: linking is what takes time.

// Helpers outside test functions may fail a test too.
#![allow(clippy::unwrap_used, clippy::panic)]

mod clusters;
mod composition;
mod discovery;
mod git;
mod manifests;
mod settings;
mod speed;
mod support;
mod whole_tree;
mod yaml;
mod yaml_properties;
