//! The words of proxops that every room shares: diagnostics, the kind contract in plain Rust, plans.
//!
//! No async, and no I/O but the bounded reading of a file. Rooms further down speak these types; no WIT, HTTP or YAML type crosses a
//! room's border.

pub mod diag;
pub mod file;
pub mod kind;
pub mod object;
pub mod plan;
pub mod text;

pub use diag::{Diagnostic, Location, Severity};
pub use plan::{Action, Anomaly, Change, ClusterPlan, Ended, Outcome, ResourceId, Step, Verb};
