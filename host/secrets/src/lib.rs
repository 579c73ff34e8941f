//! Secrets: the wrapper type every secret travels in, and SOPS documents read and written in process.
//!
//! A document is read in one line of rooms: `yaml` (text to positioned tree), `metadata` (the `sops:`
//! block), `identity` and `keys` (private keys to data key), `cipher` (one value), `document` (the walk that
//! decrypts and computes the MAC), `decrypted` (look-ups). `edit` and `emit` write, `save` puts a changed document
//! in the file's place, `keygen` makes keys, `store` keeps files fresh, `program` hands documents for key services to the `sops` program.

mod child;
mod cipher;
mod decrypted;
mod document;
mod edit;
mod emit;
mod error;
mod identity;
mod keygen;
mod keys;
mod metadata;
mod program;
mod replace;
mod save;
mod scalar;
mod secret;
mod shamir;
mod store;
mod value;
mod yaml;

pub use child::without_secrets;
pub use decrypted::{CREDENTIALS, Decrypted, PASSWORDS, SSH_KEYS};
pub use document::Document;
pub use error::SopsError;
pub use identity::IdentitySources;
pub use keygen::{cluster_document, create_age_key};
pub use replace::{Replaced, replace};
pub use save::SecretsFile;
pub use secret::{MASK, Secret};
pub use store::{ClusterSecrets, Loaded, Reload, SecretStore};
pub use value::{Kind, Value};
