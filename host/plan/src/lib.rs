//! From manifests and live facts to a plan. Pure and deterministic: no I/O, no clock, no async; the
//! same input gives the same plan whatever order it came in.
//!
//! [`Index::build`] checks what can be told offline. [`Planner`] compares with a [`World`], the live
//! facts of one cluster, and builds the actions; [`Planner::guest_again`] answers the executor when it
//! needs a fresh plan for one guest, [`Planner::object_again`] for one object.

mod artifact;
mod graph;
mod guest;
mod index;
mod judge;
mod object;
mod planner;
mod prune;
mod world;

pub use guest::Again;
pub use index::{FailedResource, Index, Mode, Resource};
pub use planner::{Options, Planner, SecretNames};
pub use world::{ArtifactFact, GuestFact, GuestRead, Leftover, NodeState, ObjectRead, Objects, World};
