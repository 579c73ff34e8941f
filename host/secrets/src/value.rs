//! Decrypted values: every plaintext lives in memory that is wiped when dropped.

use std::fmt;

use zeroize::Zeroizing;

use crate::secret::MASK;

/// The type of a scalar, as the format knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`: never encrypted, not part of the MAC.
    Null,
    /// Text.
    Str,
    /// A whole number of 64 bits.
    Int,
    /// A floating-point number.
    Float,
    /// `True` or `False`.
    Bool,
    /// Bytes that need not be text.
    Bytes,
    /// A time stamp in RFC 3339 form.
    Time,
    /// A comment that stands in the place of a list item, as some versions of the tool write them; it is
    /// dropped when a document is decrypted.
    Comment,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Null | Kind::Str => "str",
            Kind::Int => "int",
            Kind::Float => "float",
            Kind::Bool => "bool",
            Kind::Bytes => "bytes",
            Kind::Time => "time",
            Kind::Comment => "comment",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "str" => Kind::Str,
            "int" | "int64" => Kind::Int,
            "float" => Kind::Float,
            "bool" => Kind::Bool,
            "bytes" => Kind::Bytes,
            "time" => Kind::Time,
            "comment" => Kind::Comment,
            _ => return None,
        })
    }
}

/// A decrypted tree. Maps keep the order of the file.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// One value: its type and the bytes that the format hashes and encrypts.
    Scalar(Kind, Zeroizing<Vec<u8>>),
    /// A list.
    List(Vec<Value>),
    /// A map with unique keys.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// Text.
    pub fn str(text: impl Into<String>) -> Self {
        Value::Scalar(Kind::Str, Zeroizing::new(text.into().into_bytes()))
    }

    /// A whole number.
    pub fn int(number: i64) -> Self {
        Value::Scalar(Kind::Int, Zeroizing::new(number.to_string().into_bytes()))
    }

    /// A floating-point number, in its shortest form without an exponent.
    pub fn float(number: f64) -> Self {
        Value::Scalar(Kind::Float, Zeroizing::new(float_text(number).into_bytes()))
    }

    /// A truth value.
    pub fn bool(flag: bool) -> Self {
        let text = if flag { "True" } else { "False" };
        Value::Scalar(Kind::Bool, Zeroizing::new(text.as_bytes().to_vec()))
    }

    /// Null.
    pub fn null() -> Self {
        Value::Scalar(Kind::Null, Zeroizing::default())
    }

    /// The entry of a map.
    pub fn entry(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Map(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }
}

impl From<&crate::Secret> for Value {
    fn from(secret: &crate::Secret) -> Self {
        Value::str(secret.expose())
    }
}

/// Shows the shape of a tree, never a value.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Scalar(kind, _) => write!(f, "{}({MASK})", kind.name()),
            Value::List(items) => f.debug_list().entries(items).finish(),
            Value::Map(entries) => f.debug_map().entries(entries.iter().map(|(k, v)| (k, v))).finish(),
        }
    }
}

/// The shortest decimal form that reads back as the same number, never with an exponent.
pub(crate) fn float_text(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        format!("{number}")
    }
}
