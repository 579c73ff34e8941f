//! Order and delays at boot and shutdown of the node: `order=2,up=30,down=60`, each part optional.

use proxops_kind::Scalar;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;

/// PVE's text. In manifests that text, the order alone, or a map of the parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Startup(
    /// As PVE has it.
    pub String,
);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    order: Option<u32>,
    up: Option<u32>,
    down: Option<u32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Text(Scalar),
    Map(Parts),
}

impl<'de> Deserialize<'de> for Startup {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parts = match Form::deserialize(deserializer)? {
            Form::Text(text) => return Ok(Self(text.0)),
            Form::Map(parts) => parts,
        };
        let all = [("order", parts.order), ("up", parts.up), ("down", parts.down)];
        let given = all.into_iter().filter_map(|(key, number)| Some(format!("{key}={}", number?)));
        Ok(Self(given.collect::<Vec<_>>().join(",")))
    }
}

impl JsonSchema for Startup {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Startup".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let number = |text: &str| json_schema!({ "type": "integer", "minimum": 0, "description": text });
        json_schema!({
            "anyOf": [
                { "type": ["string", "integer"] },
                {
                    "type": "object",
                    "additionalProperties": false,
                    "properties": {
                        "order": number("Place in the order; lower starts first."),
                        "up": number("Seconds to wait after its start."),
                        "down": number("Seconds to wait for its shutdown."),
                    },
                },
            ],
        })
    }
}

/// Whether PVE takes this: `[order=]N,up=N,down=N` (fact Q17).
pub fn is_valid(text: &str) -> bool {
    !text.is_empty()
        && text.split(',').all(|part| {
            let number = ["order=", "up=", "down="].iter().find_map(|p| part.strip_prefix(p)).unwrap_or(part);
            !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
        })
}

/// One spelling: `1,up=30` is `order=1,up=30`, in any order.
pub fn canonical(text: &str) -> String {
    let full = |part: &str| if part.contains('=') { part.to_owned() } else { format!("order={part}") };
    let mut parts: Vec<String> = text.split(',').map(|part| full(part.trim())).collect();
    parts.sort_unstable();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_number_and_map_mean_the_same() {
        for value in [json!("order=2"), json!(2), json!({ "order": 2 })] {
            let startup: Startup = serde_json::from_value(value).unwrap();
            assert_eq!(canonical(&startup.0), "order=2");
        }
        let full: Startup = serde_json::from_value(json!({ "down": 60, "order": 2, "up": 30 })).unwrap();
        assert_eq!(full.0, "order=2,up=30,down=60");
        assert!(serde_json::from_value::<Startup>(json!({ "after": 1 })).is_err());
    }

    #[test]
    fn only_pves_form_is_valid() {
        assert!(is_valid("order=1,up=30,down=60") && is_valid("3"));
        assert!(!is_valid("") && !is_valid("order=") && !is_valid("soon"));
    }
}
