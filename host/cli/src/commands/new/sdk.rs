//! What a kind is built against: the contract and the library, as they were when this binary was built.

/// The contract.
pub const CONTRACT: &[(&str, &str)] = &[("wit/kind.wit", include_str!("../../../../../wit/kind.wit"))];

/// The contract and the Rust library.
pub const FILES: &[(&str, &str)] = &[
    ("wit/kind.wit", include_str!("../../../../../wit/kind.wit")),
    ("kinds/sdk/Cargo.toml", include_str!("templates/sdk.toml.txt")),
    ("kinds/sdk/src/bindings.rs", include_str!("../../../../../kinds/sdk/src/bindings.rs")),
    ("kinds/sdk/src/carry.rs", include_str!("../../../../../kinds/sdk/src/carry.rs")),
    ("kinds/sdk/src/changes.rs", include_str!("../../../../../kinds/sdk/src/changes.rs")),
    ("kinds/sdk/src/check.rs", include_str!("../../../../../kinds/sdk/src/check.rs")),
    ("kinds/sdk/src/kind.rs", include_str!("../../../../../kinds/sdk/src/kind.rs")),
    ("kinds/sdk/src/lib.rs", include_str!("../../../../../kinds/sdk/src/lib.rs")),
    ("kinds/sdk/src/live.rs", include_str!("../../../../../kinds/sdk/src/live.rs")),
    ("kinds/sdk/src/marker.rs", include_str!("../../../../../kinds/sdk/src/marker.rs")),
    ("kinds/sdk/src/memory.rs", include_str!("../../../../../kinds/sdk/src/memory.rs")),
    ("kinds/sdk/src/names.rs", include_str!("../../../../../kinds/sdk/src/names.rs")),
    ("kinds/sdk/src/object.rs", include_str!("../../../../../kinds/sdk/src/object.rs")),
    ("kinds/sdk/src/props.rs", include_str!("../../../../../kinds/sdk/src/props.rs")),
    ("kinds/sdk/src/records.rs", include_str!("../../../../../kinds/sdk/src/records.rs")),
    ("kinds/sdk/src/report.rs", include_str!("../../../../../kinds/sdk/src/report.rs")),
    ("kinds/sdk/src/schema.rs", include_str!("../../../../../kinds/sdk/src/schema.rs")),
    ("kinds/sdk/src/size.rs", include_str!("../../../../../kinds/sdk/src/size.rs")),
    ("kinds/sdk/src/sound.rs", include_str!("../../../../../kinds/sdk/src/sound.rs")),
    ("kinds/sdk/src/tags.rs", include_str!("../../../../../kinds/sdk/src/tags.rs")),
    ("kinds/sdk/src/text.rs", include_str!("../../../../../kinds/sdk/src/text.rs")),
];
