//! PVE sends the same value as number, numeric string, boolean or text, from call to call.

use proxops_model::kind::LiveValue;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Any scalar as text (true 1, false 0); lists, objects and null are nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Scalar(Option<String>);

impl Scalar {
    /// The text, unless absent or empty.
    pub(crate) fn filled(self) -> Option<String> {
        self.0.filter(|text| !text.is_empty())
    }

    /// The text, "" where absent.
    pub(crate) fn or_empty(self) -> String {
        self.0.unwrap_or_default()
    }

    /// A boolean in any spelling of PVE (fact T10).
    pub(crate) fn flag(&self) -> bool {
        let text = self.0.as_deref().unwrap_or("");
        ["1", "yes", "on", "true"].iter().any(|word| text.eq_ignore_ascii_case(word))
    }

    /// A whole number in any spelling.
    pub(crate) fn whole(&self) -> Option<u64> {
        proxops_model::text::whole(&Value::String(self.0.clone()?))
    }

    /// A vmid (fact Q1).
    pub(crate) fn vmid(&self) -> Option<u32> {
        self.whole().and_then(|number| u32::try_from(number).ok())
    }

    /// A list in PVE's format, sorted.
    pub(crate) fn list(&self) -> Vec<String> {
        let text = self.0.as_deref().unwrap_or("");
        let mut list: Vec<String> = proxops_model::text::split_list(text).map(str::to_owned).collect();
        list.sort();
        list.dedup();
        list
    }
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Self {
        Self(Some(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(Some(text.to_owned())))
            }
            fn visit_string<E>(self, text: String) -> Result<Scalar, E> {
                Ok(Scalar(Some(text)))
            }
            fn visit_bool<E>(self, flag: bool) -> Result<Scalar, E> {
                Ok(Scalar(proxops_model::text::scalar(&flag.into())))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(Some(number.to_string())))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar(Some(number.to_string())))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar(proxops_model::text::scalar(&number.into())))
            }
            fn visit_unit<E>(self) -> Result<Scalar, E> {
                Ok(Scalar(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar(None))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar(None))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// A value of a guest's configuration, as [`LiveValue::from_json`] has it.
#[derive(Debug)]
pub(crate) struct Live(pub LiveValue);

impl<'de> Deserialize<'de> for Live {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Value::deserialize(deserializer)? {
            Value::String(text) => LiveValue::Text(text),
            other => LiveValue::from_json(&other),
        }))
    }
}

/// A guest's whole configuration. The last of two equal keys holds, as in [`serde_json::Map`].
#[derive(Debug)]
pub(crate) struct LiveValues(pub BTreeMap<String, LiveValue>);

impl<'de> Deserialize<'de> for LiveValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = LiveValues;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LiveValues, A::Error> {
                let mut all = Vec::with_capacity(32);
                while let Some((key, Live(value))) = map.next_entry::<String, Live>()? {
                    all.push((key, value));
                }
                Ok(LiveValues(all.into_iter().collect()))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_value_is_read_as_from_json() {
        for text in
            ["1", "-1", "18446744073709551615", "1e30", "1.5", "2.0", "true", "null", "\"a\\n\"", "[1,\"a\"]"]
        {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::from_str::<Live>(text).unwrap().0, LiveValue::from_json(&value), "{text}");
        }
        let twice: LiveValues = serde_json::from_str(r#"{"b": 1, "a": {"x": [2]}, "b": "2"}"#).unwrap();
        let pairs: Vec<_> = twice.0.into_iter().collect();
        let want = [
            ("a".to_owned(), LiveValue::Json(r#"{"x":[2]}"#.to_owned())),
            ("b".to_owned(), LiveValue::Text("2".to_owned())),
        ];
        assert_eq!(pairs, want);
    }

    #[test]
    fn every_spelling_of_a_number_and_a_boolean_is_read() {
        for (text, number) in [("100", 100), ("\"100\"", 100), ("1e2", 100), ("100.0", 100), ("true", 1)] {
            let scalar: Scalar = serde_json::from_str(text).unwrap();
            assert_eq!(scalar.whole(), Some(number), "{text}");
        }
        for text in ["1", "\"1\"", "true", "\"yes\"", "1.0"] {
            assert!(serde_json::from_str::<Scalar>(text).unwrap().flag(), "{text}");
        }
        for text in ["0", "\"0\"", "false", "null", "\"\"", "[1]", "{\"a\":1}"] {
            assert!(!serde_json::from_str::<Scalar>(text).unwrap().flag(), "{text}");
        }
    }
}
