//! What a plain YAML scalar means. The MAC covers the canonical form of plain values too, so the rules
//! must be those of the YAML reader behind the sops tool: YAML 1.2 with some of 1.1.

use base64::Engine as _;
use jiff::civil::Date;
use saphyr_parser::Tag;

use crate::value::{Kind, float_text};

/// A scalar resolved to its type, with the bytes that the MAC covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resolved {
    Null,
    /// Text, or the content of `!!binary`.
    Str(Vec<u8>),
    /// Any other type, in its canonical form.
    Other(Kind, String),
    /// An integer that the format can not hold.
    TooLarge,
}

/// Resolves a scalar as read: `plain` is false for quoted and block scalars.
pub(crate) fn resolve(text: &str, plain: bool, tag: Option<&Tag>) -> Resolved {
    let core = tag.and_then(|tag| (tag.handle == "tag:yaml.org,2002:").then_some(tag.suffix.as_str()));
    match (tag, core) {
        (None, _) if plain => untagged(text, true),
        (None, _) | (_, Some("str")) => Resolved::Str(text.as_bytes().to_vec()),
        (_, Some("binary")) => {
            let packed: String = text.split_whitespace().collect();
            let bytes = base64::engine::general_purpose::STANDARD.decode(packed);
            Resolved::Str(bytes.unwrap_or_else(|_| text.as_bytes().to_vec()))
        }
        (_, Some("int" | "float" | "bool" | "null")) => untagged(text, false),
        (_, Some("timestamp")) => untagged(text, true),
        _ => Resolved::Str(text.as_bytes().to_vec()),
    }
}

/// Whether text would be read as something else than text when written without quotes.
pub(crate) fn is_plain_text(text: &str) -> bool {
    matches!(untagged(text, true), Resolved::Str(_))
}

fn untagged(text: &str, times: bool) -> Resolved {
    let number = |value: f64| Resolved::Other(Kind::Float, float_text(value));
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Resolved::Null,
        "true" | "True" | "TRUE" => return Resolved::Other(Kind::Bool, "True".to_owned()),
        "false" | "False" | "FALSE" => return Resolved::Other(Kind::Bool, "False".to_owned()),
        ".nan" | ".NaN" | ".NAN" => return number(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return number(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return number(f64::NEG_INFINITY),
        _ => {}
    }
    let as_text = || Resolved::Str(text.as_bytes().to_vec());
    match text.as_bytes().first() {
        Some(b'.') => {
            let digits = text.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
            return text.parse().ok().filter(|_| digits).map_or_else(as_text, number);
        }
        Some(b'0'..=b'9' | b'+' | b'-') => {}
        _ => return as_text(),
    }
    if times && let Some(time) = timestamp(text) {
        return Resolved::Other(Kind::Time, time);
    }
    let bare = text.replace('_', "");
    match integer(&bare) {
        Some(Ok(value)) => return Resolved::Other(Kind::Int, value.to_string()),
        Some(Err(())) => return Resolved::TooLarge,
        None => {}
    }
    match bare.parse() {
        Ok(value) if is_decimal(&bare) => number(value),
        _ => as_text(),
    }
}

/// An integer in any accepted base: `Err` between 2^63 and 2^64, `None` beyond or if it is none.
fn integer(text: &str) -> Option<Result<i64, ()>> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, body) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, lower.get(2..)?),
        [b'0', b'o', ..] => (8, lower.get(2..)?),
        [b'0', b'b', ..] => (2, lower.get(2..)?),
        [b'0', _, ..] => (8, lower.get(1..)?),
        _ => (10, lower.as_str()),
    };
    if body.is_empty() || !body.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(body, radix).ok()?;
    if negative {
        return 0i64.checked_sub_unsigned(magnitude).map(Ok);
    }
    Some(i64::try_from(magnitude).map_err(|_| ()))
}

/// `[-+]?(.digits | digits[.digits])([eE][-+]?digits)?`
fn is_decimal(text: &str) -> bool {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (body, None),
    };
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['-', '+']).unwrap_or(e);
        !e.is_empty() && digits(e)
    });
    digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && exponent_fits
}

/// A time stamp in one of the accepted forms, rewritten as RFC 3339: date alone, date and time with a
/// zone (`T` or `t` between them), or date and time with a space and no zone (meaning UTC).
pub(crate) fn timestamp(text: &str) -> Option<String> {
    let date_end = text.find(['T', 't', ' ']).unwrap_or(text.len());
    let (date, rest) = text.split_at(date_end);
    let mut fields = date.split('-');
    let (year, month, day) = (fields.next()?, fields.next()?, fields.next()?);
    if fields.next().is_some() || year.len() != 4 {
        return None;
    }
    let (month, day) = (small(month)?, small(day)?);
    let year: i16 = year.bytes().all(|b| b.is_ascii_digit()).then(|| year.parse().ok())??;
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let date = format!("{year:04}-{month:02}-{day:02}");
    let Some(separator) = rest.chars().next() else { return Some(format!("{date}T00:00:00Z")) };
    let rest = rest.get(1..)?;
    let (clock, zone) = match (separator, rest.find(['Z', '+', '-'])) {
        (' ', None) => (rest, "Z".to_owned()),
        ('T' | 't', Some(at)) => (rest.get(..at)?, zone(rest.get(at..)?)?),
        _ => return None,
    };
    let (clock, fraction) = match clock.split_once('.') {
        Some((clock, fraction)) => (clock, fraction),
        None => (clock, ""),
    };
    if fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) || rest.contains(". ") {
        return None;
    }
    let mut fields = clock.split(':');
    let (hour, minute, second) = (small(fields.next()?)?, small(fields.next()?)?, small(fields.next()?)?);
    if fields.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = match fraction.trim_end_matches('0') {
        "" => String::new(),
        digits => format!(".{digits}"),
    };
    Some(format!("{date}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}"))
}

fn zone(text: &str) -> Option<String> {
    if text == "Z" || text == "+00:00" || text == "-00:00" {
        return Some("Z".to_owned());
    }
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let two = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
    (two(hours) && two(minutes) && hours <= "24" && minutes <= "59").then(|| text.to_owned())
}

/// One or two digits.
fn small(text: &str) -> Option<u8> {
    ((1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        match untagged(text, true) {
            Resolved::Null => "null".to_owned(),
            Resolved::Str(bytes) => format!("str {}", String::from_utf8(bytes).unwrap()),
            Resolved::Other(kind, text) => format!("{} {text}", kind.name()),
            Resolved::TooLarge => "too large".to_owned(),
        }
    }

    /// Each pair was read off the plain part of a document that the real tool wrote.
    #[test]
    fn plain_scalars_mean_what_the_sops_tool_reads() {
        for (text, expected) in [
            ("12", "int 12"),
            ("+5", "int 5"),
            ("-5", "int -5"),
            ("0x1F", "int 31"),
            ("0o17", "int 15"),
            ("017", "int 15"),
            ("0b11", "int 3"),
            ("1_000", "int 1000"),
            ("08", "float 8"),
            ("9223372036854775807", "int 9223372036854775807"),
            ("9223372036854775808", "too large"),
            ("18446744073709551616", "float 18446744073709552000"),
            ("1.50", "float 1.5"),
            ("1e3", "float 1000"),
            ("1e-20", "float 0.00000000000000000001"),
            (".5", "float 0.5"),
            ("5.", "float 5"),
            (".inf", "float +Inf"),
            ("-.Inf", "float -Inf"),
            (".nan", "float NaN"),
            ("TRUE", "bool True"),
            ("false", "bool False"),
            ("yes", "str yes"),
            ("~", "null"),
            ("2024-01-02", "time 2024-01-02T00:00:00Z"),
            ("2024-1-2T3:4:5Z", "time 2024-01-02T03:04:05Z"),
            ("2024-01-02 03:04:05", "time 2024-01-02T03:04:05Z"),
            ("2024-01-02T03:04:05.50+02:00", "time 2024-01-02T03:04:05.5+02:00"),
            ("2024-02-30", "str 2024-02-30"),
            ("1.2.3", "str 1.2.3"),
            ("-", "str -"),
            ("10.0.0.0/8", "str 10.0.0.0/8"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }
}
