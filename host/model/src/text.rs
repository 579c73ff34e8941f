//! Small text rules that several rooms need.

/// A JSON scalar as PVE means it: true 1, false 0, whole numbers without fraction or exponent
/// whatever form they came in (`1.0`, `3.5e16`). `None` for null, lists and objects.
pub fn scalar(value: &serde_json::Value) -> Option<String> {
    use serde_json::Value;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(if *flag { "1" } else { "0" }.to_owned()),
        Value::Number(number) => Some(match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(n), _, _) => n.to_string(),
            (_, Some(n), _) => n.to_string(),
            (_, _, Some(f)) if f.fract() == 0.0 && f.abs() < 1e18 => format!("{f:.0}"),
            (_, _, Some(f)) => f.to_string(),
            _ => number.to_string(),
        }),
        _ => None,
    }
}

/// A whole number in any form PVE uses: number, numeric string, exponent, boolean.
pub fn whole(value: &serde_json::Value) -> Option<u64> {
    let text = scalar(value)?;
    text.parse::<u64>().ok().or_else(|| {
        let float: f64 = text.parse().ok()?;
        (float.fract() == 0.0 && (0.0..1e18).contains(&float)).then_some(float as u64)
    })
}

/// PVE's list formats split on comma, semicolon and white space (fact T11).
pub fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == ',' || c == ';' || c.is_whitespace() || c == '\0').filter(|t| !t.is_empty())
}

/// Whether a tag list holds exactly this tag. The owner tag is always lower case, and so is every tag of PVE unless
/// the datacenter tells case apart: then one in upper case is another tag (fact C4).
pub fn has_tag(tags: &str, tag: &str) -> bool {
    split_list(tags).any(|t| t == tag)
}

/// Text from outside, made safe for a terminal: control characters become their escapes.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let bidi = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
        if (c.is_control() && c != '\n' && c != '\t') || bidi {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

const UNITS: [(char, u32); 4] = [('T', 40), ('G', 30), ('M', 20), ('K', 10)];

/// Bytes in the largest binary unit that divides them, as PVE writes sizes (fact Q36).
pub fn size(bytes: u64) -> String {
    UNITS
        .iter()
        .find(|(_, bits)| bytes > 0 && bytes.is_multiple_of(1 << bits))
        .map_or_else(|| bytes.to_string(), |(unit, bits)| format!("{}{unit}", bytes >> bits))
}

/// The bytes that a drive's live value names: `local-lvm:vm-1-disk-0,size=32G` (fact Q36).
pub fn drive_size(value: &str) -> Option<u64> {
    let text = value.split(',').find_map(|part| part.strip_prefix("size="))?;
    let (number, bits) = match UNITS.iter().find(|(unit, _)| text.ends_with(*unit)) {
        Some((unit, bits)) => (text.trim_end_matches(*unit), *bits),
        None => (text, 0),
    };
    number.parse::<u64>().ok()?.checked_mul(1 << bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sizes_are_written_and_read_as_pve_prints_them() {
        let cases =
            [(528 << 10, "528K"), (1536 << 20, "1536M"), (32 << 30, "32G"), (2 << 40, "2T"), (1000, "1000")];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
            assert_eq!(drive_size(&format!("local-lvm:vm-1-disk-0,size={text},ssd=1")), Some(bytes));
        }
        assert_eq!(drive_size("local:cloudinit,media=cdrom"), None);
    }

    #[test]
    fn numbers_read_the_same_in_every_form() {
        for value in [json!(2048), json!("2048"), json!(2048.0), json!("2.048e3")] {
            assert_eq!(whole(&value), Some(2048), "{value}");
        }
        assert_eq!(whole(&json!(true)), Some(1));
        assert_eq!(whole(&json!(3.5e16)), Some(35_000_000_000_000_000));
        assert_eq!(whole(&json!(-1)), None);
        assert_eq!(scalar(&json!(0.5)).as_deref(), Some("0.5"));
    }

    #[test]
    fn control_characters_can_not_repaint_a_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\u{202e}"), "a\\u{1b}[2Jb\\u{202e}");
    }
}
