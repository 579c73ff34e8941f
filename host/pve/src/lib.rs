//! The PVE API client: one cluster behind one endpoint, with its transport, tasks, errors and retries.
//!
//! Knows nothing of kinds or manifests. Facts cited as "fact T7" are numbered in the sheet of wire facts.
//!
//! A read may be repeated at will and is, a few times. A write is sent once: what comes back says whether
//! it was done, was not done, or may have been done ([`Class::UnknownOutcome`]), in which case only
//! reading the live state can tell.

mod answer;
mod auth;
mod class;
mod client;
mod config;
mod error;
mod lenient;
mod path;
mod probe;
mod read;
pub mod stats;
mod task;
mod tls;
mod wire;

pub use answer::Answer;
pub use class::Class;
pub use client::Client;
pub use config::{ClientConfig, Credential, Mode};
pub use error::PveError;
pub use path::{ParamText, path};
pub use probe::{Certificate, Probe, probe};
pub use proxops_model::kind::Method;
pub use read::{
    ClusterNode, ClusterStatus, GuestConfig, GuestEntry, GuestRow, GuestStatus, HaResource, Inventory, Node,
    ReplicationJob, StorageConfig, StorageRow, StorageStatus, TaskQuery, TaskRow, TokenInfo, Version, Volume,
};
pub use task::{TaskEnd, Upid};
