//! A container's environment variables: one text on the wire, its variables separated by NUL (fact L12).

use proxops_kind::Scalar;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Environment variables by name. In manifests a map `NAME: value`, or a list of `NAME=value`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Env(
    /// Name to value.
    pub BTreeMap<String, String>,
);

impl Env {
    /// Reads PVE's form. A part without `=` is a variable without a value.
    pub fn parse(text: &str) -> Self {
        let pair = |part: &str| match part.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (part.to_owned(), String::new()),
        };
        Self(text.split('\0').filter(|part| !part.is_empty()).map(pair).collect())
    }

    /// PVE's form, sorted by name.
    pub fn wire(&self) -> String {
        self.joined("\0")
    }

    /// For people: NUL can't be shown.
    pub fn shown(&self) -> String {
        self.joined(" ")
    }

    fn joined(&self, separator: &str) -> String {
        let parts: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        parts.join(separator)
    }

    /// What PVE refuses: names that are not words, control characters in values. Each error completes the
    /// sentence "`env` ...".
    pub fn mistakes(&self) -> Vec<String> {
        let word =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let plain = |value: &str| !value.chars().any(|c| c != '\t' && c.is_ascii_control());
        let mut out = Vec::new();
        for (name, value) in &self.0 {
            if !word(name) {
                out.push(format!("must have names of letters, digits and '_', not {name:?}"));
            }
            if !plain(value) {
                out.push(format!(
                    "must not hold a line break or another control character in the value of {name:?}"
                ));
            }
        }
        out
    }
}

impl<'de> Deserialize<'de> for Env {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Env;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of variables or a list of NAME=value")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Env, E> {
                Ok(Env::parse(text))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Env, A::Error> {
                let mut out = BTreeMap::new();
                while let Some(item) = seq.next_element::<String>()? {
                    let (name, value) = item.split_once('=').ok_or_else(|| {
                        de::Error::custom(format!("must be written NAME=value, not {item:?}"))
                    })?;
                    if out.insert(name.to_owned(), value.to_owned()).is_some() {
                        return Err(de::Error::custom(format!("must not hold {name:?} twice")));
                    }
                }
                Ok(Env(out))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Env, A::Error> {
                let mut out = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, Scalar>()? {
                    out.insert(name, value.0);
                }
                Ok(Env(out))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Env {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Env".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } },
                { "type": "array", "items": { "type": "string", "pattern": "^[A-Za-z0-9_]+=" } },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn variables_are_separated_by_nul_on_the_wire() {
        let env: Env = serde_json::from_value(json!({ "B": "2 3", "A": 1 })).unwrap();
        assert_eq!(env.wire(), "A=1\0B=2 3");
        assert_eq!(Env::parse("B=2 3\0A=1"), env);
        assert_eq!(Env::parse("A=x=y").0["A"], "x=y");
    }

    #[test]
    fn a_list_means_the_same_as_a_map() {
        let list: Env = serde_json::from_value(json!(["A=1", "B=2 3"])).unwrap();
        assert_eq!(list.wire(), "A=1\0B=2 3");
        assert!(serde_json::from_value::<Env>(json!(["A"])).is_err());
        assert!(serde_json::from_value::<Env>(json!(["A=1", "A=2"])).is_err());
    }

    #[test]
    fn what_pve_refuses_is_found() {
        let env: Env = serde_json::from_value(json!({ "A-B": "x", "C": "a\nb", "D": "tab\tok" })).unwrap();
        let mistakes = env.mistakes();
        assert_eq!(mistakes.len(), 2, "{mistakes:?}");
        assert!(mistakes[0].contains("A-B") && mistakes[1].contains("\"C\""));
    }
}
