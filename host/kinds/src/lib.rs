//! Running kinds: the only crate that knows WebAssembly.
//!
//! [`Kinds::load`] finds components (built-in and `*.wasm` files) and learns what each is;
//! [`Kinds::session`] gives fresh instances for one cluster and cycle, behind
//! [`proxops_model::kind::KindApi`]. A component is not trusted: each call has limits ([`Limits`]), and
//! everything it returns is checked before it leaves this crate. What goes wrong is a fault of that
//! kind alone.
//!
//! A call, from the outside in: `session` (pool, faults) -> `lower` (arguments) -> `store` (limits) ->
//! the component -> `lift`, `check`, `steps`, `calls` (answers). Around it: `files` and `shape` (what is a kind),
//! `kinds` (loading), `cache` (compiled code on disk), `engine` (settings, deadlines), `wasi` (the empty
//! world), `fault` (why there is no answer).

mod bindings;
mod cache;
mod calls;
mod check;
mod describe;
mod engine;
mod fault;
mod files;
#[cfg(test)]
mod fuzz;
mod kinds;
mod lift;
mod lift_steps;
mod limits;
mod log;
mod lower;
mod session;
mod shape;
pub mod stats;
mod steps;
mod store;
mod wasi;

pub use files::Sources;
pub use kinds::{EngineError, KindListing, KindProblem, Kinds};
pub use limits::Limits;
pub use session::{HighWater, Session};
