//! The daemon's HTTP side: health, metrics, status, events, webhook, and the page.
//!
//! Everything but the webhook only reads, and the webhook can only ask for a cycle. Whatever a request carries is
//! bounded: connections, headers, bodies, and the time that each may take.

mod api;
mod events;
mod guard;
mod page;
mod patient;
mod router;
mod server;
mod tls;
mod webhook;

pub use api::{DiffDocument, StatusDocument};
pub use server::Server;
