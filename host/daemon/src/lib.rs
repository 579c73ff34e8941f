//! One cycle of one cluster: compose, connect, load, plan, execute. The commands and the daemon's loop
//! are thin around it.

mod ahead;
mod client;
mod compose;
mod connect;
mod cycle;
mod doctor;
pub mod http;
pub mod load;
mod objects;
mod recall;
mod refresh;
mod replan;
pub mod run;
mod saved;
mod status;
mod tree;
mod vault;

pub use client::http_client;
pub use compose::{Composed, compose};
pub use connect::{Connected, connect};
pub use cycle::{Planned, Process, Wish, kind_sources};
pub use doctor::{Check, CheckState};
pub use refresh::Refreshed;
pub use saved::SavedPlan;
pub use status::{ClusterStatus, LastCycle, ObjectStatus};
pub use vault::Vault;
