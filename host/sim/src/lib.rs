//! A strict, stateful simulator of the Proxmox VE 9.2 API.
//!
//! - [`World`] is a cluster as a state machine: [`World::call`] answers one API call, without HTTP and
//!   with a logical clock. Fast enough for property tests and for 10,000 guests.
//! - [`Sim`] serves a world on loopback as PVE serves its own, HTTP or HTTPS, with fault injection.
//! - [`seed`] has ready-made worlds, [`faults`] what can go wrong.
//!
//! Numbers such as "fact Q13" refer to the project's sheet of facts about PVE's behaviour on the wire.
//! A simulator that is easier than PVE makes every test a lie: in doubt this one is stricter.

pub mod api;
pub mod faults;
pub mod grammar;
pub mod guest;
pub mod refused;
pub mod seed;
pub mod server;
pub mod world;

pub use faults::{FaultAnswer, Faults, NewCertificate, RequestFault, TaskRule};
pub use guest::{Guest, GuestKind};
pub use refused::Refused;
pub use server::{LoggedRequest, Sim, SimHandle, SimOptions, Tls};
pub use world::{Caller, Node, Pool, Storage, World};
