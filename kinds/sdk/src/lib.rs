//! `proxops-kind`: everything that a resource kind needs, and nothing of the host.
//!
//! A kind is a type that implements [`Kind`], plus one line in a `cdylib` crate:
//!
//! ```ignore
//! proxops_kind::export_kind!(MyKind);
//! ```
//!
//! On WebAssembly that line makes the crate a component of the world `kind` (`wit/kind.wit`).
//! Natively it is nothing, so a kind's tests run with plain `cargo test`.
//!
//! Rooms of this crate, each with one subject:
//! - [`kind`]: the trait, and how a call becomes a typed call;
//! - [`bindings`] and [`records`]: the contract's types and short constructors for them;
//! - [`report`], [`check`] and [`schema`]: finding every mistake of a manifest;
//! - [`size`], [`props`], [`text`], [`tags`]: PVE's text forms;
//! - [`live`] and [`changes`]: comparing a manifest with what PVE reports of a guest;
//! - [`object`] and [`marker`]: the same for any other object, and the proof that it is ours;
//! - [`memory`]: how a component compares and allocates.

pub mod bindings;
mod carry;
pub mod changes;
pub mod check;
pub mod kind;
pub mod live;
pub mod marker;
pub mod memory;
pub mod names;
pub mod object;
pub mod props;
pub mod records;
pub mod report;
pub mod schema;
pub mod size;
mod sound;
pub mod tags;
pub mod text;

pub use bindings::proxops::kind::types;
pub use changes::{Changes, Field};
pub use kind::{About, Kind, Resource};
pub use live::LiveView;
pub use object::ObjectView;
pub use props::{Props, Table};
pub use report::Report;
pub use size::Size;
pub use text::{Scalar, Words};
pub use types::*;

/// What every kind's crate may want without a dependency of its own.
pub use {schemars, serde, serde_json};

/// The manifests' `apiVersion` of the built-in kinds.
pub const API_VERSION: &str = "proxops/v1alpha1";

/// A list of diagnostics in place of an answer.
pub type Refusal = Vec<Diagnostic>;

/// Makes the crate a component that exports this [`Kind`]. Natively it expands to nothing.
#[macro_export]
macro_rules! export_kind {
    ($kind:ty) => {
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, missing_docs)]
        const _: () = {
            use $crate::types::*;

            struct Component;

            impl $crate::bindings::exports::proxops::kind::api::Guest for Component {
                fn describe() -> Info {
                    $crate::kind::describe::<$kind>()
                }
                fn validate(manifest: Manifest) -> Validation {
                    $crate::kind::validate::<$kind>(&manifest)
                }
                fn create_params(
                    manifest: Manifest,
                    context: Context,
                ) -> Result<Creation, ::std::vec::Vec<Diagnostic>> {
                    $crate::kind::create_params::<$kind>(&manifest, &context)
                }
                fn drift(
                    manifest: Manifest,
                    live: Live,
                    context: Context,
                ) -> Result<DriftReport, ::std::vec::Vec<Diagnostic>> {
                    $crate::kind::drift::<$kind>(&manifest, &live, &context)
                }
                fn adopt(
                    name: ::std::string::String,
                    live: Live,
                    context: Context,
                    options: AdoptOptions,
                ) -> Result<Adopted, ::std::vec::Vec<Diagnostic>> {
                    $crate::kind::adopt::<$kind>(&name, &live, &context, &options)
                }
            }

    $crate::bindings::__export_component!(Component with_types_in $crate::bindings);
        };
    };
}

/// Gives a component for `wasm32-unknown-unknown` the allocator [`memory::Blocks`].
#[macro_export]
macro_rules! small_blocks {
    () => {
        #[cfg(all(target_family = "wasm", target_os = "unknown"))]
        #[global_allocator]
        static BLOCKS: $crate::memory::Blocks = $crate::memory::Blocks::new();
    };
}

/// Declares a closed choice of words: an enum that reads and writes them, with `as_str` and `parse`.
/// Every variant takes doc comments, which become the schema's.
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[allow(missing_docs)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)+
        }
        impl $name {
            /// The word, as manifests have it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
            /// From the word.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}
