//! What a plain scalar means in the core schema of YAML 1.2 (section 10.3.2).

use serde_json::{Number, Value};

/// Why a scalar has no value. The texts never repeat the scalar: it may be a secret.
pub(super) type Reason = (&'static str, &'static str);

const TOO_LARGE: Reason =
    ("number-range", "this whole number does not fit into 64 bits; quote it if it is meant as text");
const NOT_FINITE: Reason = ("number-range", "infinity and not-a-number have no meaning here");
const FLOAT_RANGE: Reason = ("number-range", "this number is too large; quote it if it is meant as text");

/// A plain scalar without a tag.
pub(super) fn resolve(text: &str) -> Result<Value, Reason> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    // Most scalars are words: one look at the first character decides.
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Ok(Value::String(text.to_owned()));
    }
    if let Some(number) = whole(text) {
        return number.map(Value::from);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(NOT_FINITE);
    }
    if is_float(unsigned) {
        let number = text.parse::<f64>().ok().and_then(Number::from_f64);
        return number.map(Value::Number).ok_or(FLOAT_RANGE);
    }
    Ok(Value::String(text.to_owned()))
}

/// `None` = not a whole number.
fn whole(text: &str) -> Option<Result<i64, Reason>> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => match text.strip_prefix("0o") {
            Some(digits) => (digits, 8),
            None => (text.strip_prefix(['-', '+']).unwrap_or(text), 10),
        },
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let digits = if radix == 10 { text } else { digits };
    Some(i64::from_str_radix(digits, radix).map_err(|_| TOO_LARGE))
}

/// `( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_float(unsigned: &str) -> bool {
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    if let Some(exponent) = exponent {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if exponent.is_empty() || !digits(exponent) {
            return false;
        }
    }
    match mantissa.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part) && !(whole.is_empty() && part.is_empty()),
        None => !mantissa.is_empty() && digits(mantissa),
    }
}

/// A scalar that carries a tag of the core schema (`!!str`, ...); the suffix alone.
pub(super) fn tagged(text: &str, suffix: &str) -> Result<Value, Reason> {
    const MISMATCH: Reason = ("tag-mismatch", "the value does not fit its tag");
    let value = match suffix {
        "str" => return Ok(Value::String(text.to_owned())),
        _ => resolve(text)?,
    };
    let fits = match suffix {
        "null" => value.is_null(),
        "bool" => value.is_boolean(),
        "int" => value.is_i64(),
        "float" => value.is_number(),
        _ => {
            return Err((
                "unknown-tag",
                "tags other than !!str, !!int, !!float, !!bool and !!null are not read",
            ));
        }
    };
    if fits { Ok(value) } else { Err(MISMATCH) }
}
