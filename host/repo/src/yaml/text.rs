//! From bytes to text: size, encoding, characters that no manifest needs.

use super::{MAX_BYTES, Pos, Problem};

/// The text without a byte order mark.
pub(super) fn decode(bytes: &[u8]) -> Result<&str, Problem> {
    let problem = |at, code, message: String, help: &str| Problem {
        at,
        code,
        pointer: String::new(),
        message,
        help: Some(help.to_owned()),
    };
    let start = Pos { line: 1, column: 1 };
    if bytes.len() > MAX_BYTES {
        // It is read no further, so its size is not known here.
        let message = format!("the file has more than {MAX_BYTES} bytes, which is the most that is read");
        return Err(problem(start, "file-too-large", message, "split it into several files"));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(problem(start, "not-utf8", "the file is UTF-16".into(), "save it as UTF-8"));
    }
    let bytes = bytes.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let (good, rest) = bytes.split_at(error.valid_up_to());
        let at = position(&String::from_utf8_lossy(good));
        let byte = rest.first().copied().unwrap_or_default();
        problem(at, "not-utf8", format!("byte 0x{byte:02x} is not UTF-8 text"), "save the file as UTF-8")
    })?;
    if let Some((offset, c)) = text.char_indices().find(|(_, c)| !is_allowed(*c)) {
        let at = position(text.get(..offset).unwrap_or_default());
        let message = format!("control character U+{:04X}: this is not a text file", u32::from(c));
        return Err(problem(
            at,
            "control-character",
            message,
            "remove it, or write it as an escape in double quotes",
        ));
    }
    Ok(text)
}

/// What YAML calls printable. NUL in particular would end the text unseen.
fn is_allowed(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' | '\u{85}' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        c => !c.is_control(),
    }
}

/// The position behind this text.
fn position(text: &str) -> Pos {
    let text = text.replace("\r\n", "\n");
    let mut pos = Pos { line: 1, column: 1 };
    for c in text.chars() {
        if c == '\n' || c == '\r' {
            pos = Pos { line: pos.line.saturating_add(1), column: 1 };
        } else {
            pos.column = pos.column.saturating_add(1);
        }
    }
    pos
}
