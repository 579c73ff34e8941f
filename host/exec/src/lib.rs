//! Carries a plan out: a graph executor for one cluster's actions, and the journal that makes a kill at
//! any point harmless.
//!
//! [`execute`] starts an action the moment its prerequisites are done, never two on one guest, and fills
//! in how each ended. Each action is one journal operation: its steps are written down before anything is
//! sent, the intent before each request, the task id right after each answer. [`resume`] reads what an
//! earlier process left behind, waits for its tasks, and says what planning must know.
//!
//! This room knows no kinds: where the world is not as planned it asks a [`Replanner`].

mod artifact;
mod destroy;
mod env;
mod graph;
mod guest;
mod journal;
mod lock;
mod notes;
mod object;
mod params;
mod power;
mod resume;
mod run;
mod unknown;
mod wire;
mod write;

pub use env::{
    CallTarget, Cancel, ExecEnv, Limits, NoProgress, Progress, Replanned, Replanner, SecretSource, Timing,
};
pub use graph::execute;
pub use journal::{
    HistoryEntry, HistoryFilter, HistoryStep, InFlight, Journal, JournalError, Leftover, Owed, StepState,
};
pub use lock::{ClusterLock, LockError};
pub use resume::{Resumed, resume};
pub use wire::Wire;
