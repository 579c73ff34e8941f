//! Sizes: `<number><unit>` in manifests, PVE's shorter forms on the wire.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Bytes in one KiB, MiB, GiB, TiB.
pub const KIB: u64 = 1 << 10;
/// Bytes in one MiB.
pub const MIB: u64 = 1 << 20;
/// Bytes in one GiB.
pub const GIB: u64 = 1 << 30;
/// Bytes in one TiB.
pub const TIB: u64 = 1 << 40;

/// A size in bytes. In manifests `2GiB`, `3.5GiB`, `512M`: KiB MiB GiB TiB and K M G T, all binary;
/// a fraction is allowed when it is a whole number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(
    /// Bytes.
    pub u64,
);

impl Size {
    /// Reads the manifest's form. The error completes the sentence "`field` ...".
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("must be a size such as 2GiB, not {}", crate::text::quoted(text));
        let trimmed = text.trim();
        let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let unit = match unit.trim_start() {
            "KiB" | "K" => KIB,
            "MiB" | "M" => MIB,
            "GiB" | "G" => GIB,
            "TiB" | "T" => TIB,
            _ => return Err(wrong()),
        };
        decimal_bytes(number, unit).map(Self).ok_or_else(|| {
            if number.split_once('.').is_some_and(|(whole, part)| !whole.is_empty() && !part.is_empty())
                && number.parse::<f64>().is_ok()
            {
                format!("must be a whole number of bytes, which {} is not", crate::text::quoted(text))
            } else {
                wrong()
            }
        })
    }

    /// Reads PVE's form: `528K`, `3584M`, `32G`, `1T`, `3.5G`, or bytes without a unit (fact Q36).
    pub fn parse_pve(text: &str) -> Option<Self> {
        let text = text.trim();
        let last = text.chars().last()?;
        let unit = match last.to_ascii_uppercase() {
            'K' => KIB,
            'M' => MIB,
            'G' => GIB,
            'T' => TIB,
            '0'..='9' => return decimal_bytes(text, 1).map(Self),
            _ => return None,
        };
        decimal_bytes(text.get(..text.len() - 1)?, unit).map(Self)
    }

    /// PVE's form: the largest of K M G T that divides evenly, else bytes (fact Q36).
    pub fn pve(self) -> String {
        match self.largest_unit() {
            Some((count, unit)) => format!("{count}{unit}"),
            None => self.0.to_string(),
        }
    }

    /// GiB for `<storage>:<GiB>`: a whole number or a fraction that is exact (fact Q6).
    pub fn gib(self) -> String {
        let whole = self.0 / GIB;
        let mut rest = self.0 % GIB;
        let mut out = whole.to_string();
        if rest > 0 {
            out.push('.');
            // A binary fraction of 30 places ends after at most 30 decimals.
            while rest > 0 {
                rest *= 10;
                out.push(char::from(b'0' + u8::try_from(rest / GIB).unwrap_or(0)));
                rest %= GIB;
            }
        }
        out
    }

    /// Whole MiB, if it is one.
    pub fn mib(self) -> Option<u64> {
        self.0.is_multiple_of(MIB).then_some(self.0 / MIB)
    }

    /// From whole MiB.
    pub fn from_mib(mib: u64) -> Self {
        Self(mib.saturating_mul(MIB))
    }

    fn largest_unit(self) -> Option<(u64, char)> {
        [(TIB, 'T'), (GIB, 'G'), (MIB, 'M'), (KIB, 'K')]
            .into_iter()
            .find(|(unit, _)| self.0 > 0 && self.0.is_multiple_of(*unit))
            .map(|(unit, name)| (self.0 / unit, name))
    }
}

/// `number` (digits, at most one dot) times `unit`, when that is a whole number that fits.
fn decimal_bytes(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || number.ends_with('.') {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let mut bytes = whole.checked_mul(unit)?;
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        // fraction * 2^k / 10^n, with the common factors of two taken out first: 30 decimals fit.
        let places = u32::try_from(fraction.len()).ok()?;
        let common = unit.trailing_zeros().min(places);
        let scale = 5u128.checked_pow(places)?.checked_mul(1u128.checked_shl(places - common)?)?;
        let part = fraction.parse::<u128>().ok()?.checked_mul(u128::from(unit >> common))?;
        if part % scale != 0 {
            return None;
        }
        bytes = bytes.checked_add(u64::try_from(part / scale).ok()?)?;
    }
    Some(bytes)
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.largest_unit() {
            Some((count, unit)) => write!(f, "{count}{unit}iB"),
            // Not reachable from a manifest; 0 and odd bytes still print as something that reads back.
            None => write!(f, "{}KiB", decimal_kib(self.0)),
        }
    }
}

fn decimal_kib(bytes: u64) -> String {
    let whole = bytes / KIB;
    let mut rest = bytes % KIB;
    let mut out = whole.to_string();
    if rest > 0 {
        out.push('.');
        while rest > 0 {
            rest *= 10;
            out.push(char::from(b'0' + u8::try_from(rest / KIB).unwrap_or(0)));
            rest %= KIB;
        }
    }
    out
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Size {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9]+(\\.[0-9]+)?\\s*(KiB|MiB|GiB|TiB|K|M|G|T)$",
            "x-expect": "a size such as 2GiB",
            "x-placeholder": "1GiB",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_unit_families_are_binary() {
        for (text, bytes) in [
            ("2GiB", 2 * GIB),
            ("2G", 2 * GIB),
            ("512MiB", 512 * MIB),
            ("512 M", 512 * MIB),
            ("3.5GiB", 3584 * MIB),
            ("1TiB", TIB),
            ("1024GiB", TIB),
            ("0.5K", 512),
        ] {
            assert_eq!(Size::parse(text), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_size_says_what_is() {
        for text in ["", "12", "GiB", "1.GiB", ".5GiB", "2GB", "2gib", "-1GiB", "1e3M", "9999999999999T"] {
            let error = Size::parse(text).unwrap_err();
            assert!(error.contains("a size such as 2GiB"), "{text}: {error}");
        }
        assert!(Size::parse("0.1K").unwrap_err().contains("whole number of bytes"));
    }

    #[test]
    fn pve_sizes_are_exact() {
        for (text, bytes) in
            [("528K", 528 * KIB), ("4M", 4 * MIB), ("3584M", 3584 * MIB), ("1T", TIB), ("1000", 1000)]
        {
            assert_eq!(Size::parse_pve(text), Some(Size(bytes)));
            assert_eq!(Size(bytes).pve(), text);
        }
        assert_eq!(Size(3584 * MIB).gib(), "3.5");
        assert_eq!(Size(32 * GIB).gib(), "32");
        assert_eq!(Size(GIB + MIB).gib(), "1.0009765625");
    }

    proptest! {
        #[test]
        fn a_size_reads_back_as_itself(bytes in any::<u64>()) {
            let size = Size(bytes);
            prop_assert_eq!(Size::parse(&size.to_string()), Ok(size));
            prop_assert_eq!(Size::parse_pve(&size.pve()), Some(size));
            prop_assert_eq!(Size::parse_pve(&format!("{}G", size.gib())), Some(size));
        }

        #[test]
        fn no_text_breaks_the_parsers(text in "\\PC*") {
            let _ = Size::parse(&text);
            let _ = Size::parse_pve(&text);
        }
    }
}
