//! The contract's types and functions, generated from `wit/kind.wit`, which documents each of them.

#![allow(unsafe_code, missing_docs, clippy::all, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "kind",
    pub_export_macro: true,
    export_macro_name: "__export_component",
    default_bindings_module: "proxops_kind::bindings",
    additional_derives: [PartialEq, Eq],
});
