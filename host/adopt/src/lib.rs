//! From a living cluster to manifests that plan no change but the claim.
//!
//! One way: `existing` (what the repository describes already), `select` (what is wanted), `read` (what PVE has),
//! `names`, `draft` (one object as a manifest that was compared with it; `drafter` does it while others are read), `page` and `yaml` (its text), `files` (on
//! disk), `report`. `redact` and `tree` serve them. PVE is never written: the client of a run refuses it, and the run
//! ends in an error should the count of writes ever not be zero.

mod draft;
mod drafter;
mod existing;
mod files;
mod names;
mod page;
mod read;
mod redact;
mod report;
mod run;
mod schema;
mod select;
mod target;
mod tree;
mod yaml;

pub use page::{SCHEMAS, schema_file};
pub use report::{GapNote, HoleNote, Noted, Report};
pub use run::{Options, adopt};

/// Told while guests are read.
pub trait Progress: Sync {
    /// So many guests will be read.
    fn begin(&self, guests: usize);
    /// One more is read.
    fn read(&self);
}
