//! The built-in kinds as WebAssembly components, built from `kinds/` by this crate's build script for
//! `wasm32-unknown-unknown`: no WASI import at all. Each is compiled ahead of time as well, so that no start
//! waits for a compiler.

pub mod settings;

/// One built-in kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// Its folder in `kinds/`, such as "vm".
    pub name: &'static str,
    /// The component.
    pub bytes: &'static [u8],
    /// SHA-256 of `bytes`, in lower-case hex.
    pub sha256: &'static str,
    /// `bytes` compiled for the target of this build, any model of processor, under [`settings::trusted`]; `None`
    /// where the compiler of the build has no such target.
    pub code: Option<&'static [u8]>,
    /// What `describe` answers, as the JSON form of the host's `KindInfo`: known when the component was
    /// built, so that nobody has to compile it to learn its name.
    pub info: &'static str,
}

#[allow(missing_docs)]
mod table {
    use super::Builtin;
    include!(concat!(env!("OUT_DIR"), "/builtin.rs"));
}

/// All built-in kinds.
pub const BUILTIN: &[Builtin] = table::BUILTIN;
