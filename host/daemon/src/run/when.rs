//! Times in JSON: RFC 3339, in UTC.

use jiff::Timestamp;
use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

/// For `#[serde(with = "when")]`.
pub(crate) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

/// For `#[serde(with = "when")]`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

/// For `#[serde(serialize_with = "when::maybe")]`.
pub(crate) fn maybe<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => serializer.collect_str(at),
        None => serializer.serialize_none(),
    }
}
