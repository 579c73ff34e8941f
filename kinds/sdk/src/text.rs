//! PVE's scalars, lists and booleans, and percent-encoding.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

/// PVE's list formats split on comma, semicolon and white space (fact T11).
pub fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == ',' || c == ';' || c.is_whitespace() || c == '\0').filter(|t| !t.is_empty())
}

/// A boolean inside a property string: `1 on yes true` and `0 off no false`, any case (fact T10).
pub fn parse_bool(text: &str) -> Option<bool> {
    if ["1", "on", "yes", "true"].iter().any(|t| text.eq_ignore_ascii_case(t)) {
        Some(true)
    } else if ["0", "off", "no", "false"].iter().any(|t| text.eq_ignore_ascii_case(t)) {
        Some(false)
    } else {
        None
    }
}

/// A boolean on the wire: `1` or `0`.
pub fn bool_text(value: bool) -> &'static str {
    if value { "1" } else { "0" }
}

/// A number's text in one form: no leading zeros, no `.0`, no exponent. Other text stays as it is.
pub fn number(text: &str) -> Cow<'_, str> {
    let trimmed = text.trim();
    match trimmed.parse::<f64>() {
        Ok(n) if n.is_finite() => {
            let plain = n.to_string();
            if plain == trimmed { Cow::Borrowed(trimmed) } else { Cow::Owned(plain) }
        }
        _ => Cow::Borrowed(trimmed),
    }
}

/// One form of an IP address, with or without its prefix length; other words in lower case.
pub fn address(text: &str) -> String {
    let (ip, length) = text.split_once('/').map_or((text, None), |(ip, length)| (ip, Some(length)));
    match (ip.parse::<IpAddr>(), length) {
        (Ok(ip), Some(length)) => format!("{ip}/{length}"),
        (Ok(ip), None) => ip.to_string(),
        (Err(_), _) => text.to_ascii_lowercase(),
    }
}

/// Encodes as PVE's `sshkeys` wants it: everything but letters, digits and `-_.!~*'()` (fact Q22).
pub fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
            out.push(char::from(byte));
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            out.push('%');
            for nibble in [byte >> 4, byte & 15] {
                out.push(char::from(HEX.get(usize::from(nibble)).copied().unwrap_or(b'0')));
            }
        }
    }
    out
}

/// Decodes percent-encoding; a `%` without two hex digits stays, bytes that are not UTF-8 are replaced.
pub fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let hex = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16));
    let mut i = 0;
    while let Some(&byte) = bytes.get(i) {
        match (byte, hex(i + 1), hex(i + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                i += 3;
            }
            _ => {
                out.push(byte);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Text for a message: in quotes, cut to 60 characters, control characters escaped.
pub fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(60).collect();
    let dots = if cut.len() < text.len() { "..." } else { "" };
    format!("{cut:?}{dots}")
}

/// The name of these nearest to `wanted`, if it is near enough to be a slip of the keyboard.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (wanted.chars().count() / 3).clamp(1, 3);
    names
        .into_iter()
        .map(|name| (distance(wanted, name), name))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, name)| name)
}

/// Edits (insert, delete, replace, swap of neighbours) between two words, bounded by their first 64
/// characters.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).flat_map(char::to_lowercase).collect();
    let b: Vec<char> = b.chars().take(64).flat_map(char::to_lowercase).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |r: &[usize], k: usize| r.get(k).copied().unwrap_or(usize::MAX - 1);
            let mut best = (at(&row, j) + usize::from(x != y)).min(at(&row, j + 1) + 1).min(at(&next, j) + 1);
            if i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x) {
                best = best.min(at(&before, j - 1) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(0)
}

/// A value that may be written as text, number or boolean and means its text; true is `1`, false `0`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scalar(
    /// As PVE would write it.
    pub String,
);

impl Scalar {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, a number or a boolean")
            }
            fn visit_bool<E>(self, v: bool) -> Result<Scalar, E> {
                Ok(Scalar(bool_text(v).to_owned()))
            }
            fn visit_i64<E>(self, v: i64) -> Result<Scalar, E> {
                Ok(Scalar(v.to_string()))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Scalar, E> {
                Ok(Scalar(v.to_string()))
            }
            fn visit_f64<E>(self, v: f64) -> Result<Scalar, E> {
                Ok(Scalar(v.to_string()))
            }
            fn visit_str<E>(self, v: &str) -> Result<Scalar, E> {
                Ok(Scalar(v.to_owned()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl JsonSchema for Scalar {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Scalar".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

/// A list of words: a list, or one text in PVE's own form (`a;b;c`, commas and blanks too, fact T11).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words(
    /// The words in their order.
    pub Vec<String>,
);

impl Words {
    /// The words joined by a separator.
    pub fn join(&self, separator: &str) -> String {
        self.0.join(separator)
    }

    /// The words of PVE's text.
    pub fn parse(text: &str) -> Self {
        Self(split_list(text).map(str::to_owned).collect())
    }

    /// The words, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            One(Scalar),
            Many(Vec<Scalar>),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::One(text) => Self::parse(text.as_str()),
            Form::Many(words) => Self(words.into_iter().map(|w| w.0).collect()),
        })
    }
}

impl Serialize for Words {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl JsonSchema for Words {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Words".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["array", "string", "number", "boolean"],
            "items": { "type": ["string", "number", "boolean"] },
            "x-expect": "a list of words",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn booleans_inside_property_strings_have_eight_spellings() {
        for text in ["1", "on", "Yes", "TRUE"] {
            assert_eq!(parse_bool(text), Some(true));
        }
        for text in ["0", "Off", "no", "false"] {
            assert_eq!(parse_bool(text), Some(false));
        }
        assert_eq!(parse_bool("2"), None);
    }

    #[test]
    fn numbers_have_one_form() {
        for (from, to) in
            [("2", "2"), ("2.0", "2"), ("02", "2"), ("1.50", "1.5"), ("0", "0"), ("x", "x"), ("3e2", "300")]
        {
            assert_eq!(number(from), to);
        }
    }

    #[test]
    fn addresses_have_one_form() {
        for (from, to) in [
            ("FE80:0:0::1/64", "fe80::1/64"),
            ("192.0.2.1", "192.0.2.1"),
            ("DHCP", "dhcp"),
            ("fe80::1%eth0", "fe80::1%eth0"),
        ] {
            assert_eq!(address(from), to);
        }
    }

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let names = ["cores", "sockets", "type"];
        assert_eq!(nearest("coress", names), Some("cores"));
        assert_eq!(nearest("socekts", names), Some("sockets"));
        assert_eq!(nearest("memory", names), None);
    }

    proptest! {
        #[test]
        fn percent_encoding_reads_back(text in "\\PC*") {
            let encoded = percent_encode(&text);
            prop_assert!(encoded.bytes().all(|b| b.is_ascii_alphanumeric() || b"%-_.!~*'()".contains(&b)));
            prop_assert_eq!(percent_decode(&encoded), text);
        }
    }
}
