//! What a request says: path, credentials, parameters (facts T1, T5 to T9, T12, T13).

use hyper::header;
use hyper::http::request::Parts;
use percent_encoding::percent_decode;
use serde_json::{Map, Value};

/// A decoded request.
pub(super) struct Sent {
    pub method: String,
    /// Below `/api2/<format>`.
    pub path: String,
    pub format: String,
    pub params: Map<String, Value>,
}

/// Format and path of `/api2/<format>/...`; `None` for any other address (fact T1).
pub(super) fn split_path(path: &str) -> Option<(String, String)> {
    let rest = path.strip_prefix("/api2/")?;
    let (format, rest) = rest.split_once('/').unwrap_or((rest, ""));
    if !matches!(format, "json" | "extjs") {
        return None;
    }
    let decoded = percent_decode(rest.as_bytes()).decode_utf8_lossy();
    let parts: Vec<&str> = decoded.split('/').filter(|part| !part.is_empty()).collect();
    Some((format.to_owned(), format!("/{}", parts.join("/"))))
}

fn text<'a>(head: &'a Parts, name: &str) -> Option<&'a str> {
    head.headers.get(name).and_then(|value| value.to_str().ok())
}

/// The ticket in a cookie or in the header; it wins over a token (fact T12).
pub(super) fn ticket(head: &Parts) -> Option<String> {
    let cookies = text(head, "cookie").unwrap_or_default();
    let header = text(head, "authorization").unwrap_or_default();
    let value = cookies
        .split(';')
        .map(str::trim)
        .chain(std::iter::once(header))
        .find_map(|part| part.strip_prefix("PVEAuthCookie="))?;
    Some(percent_decode(value.as_bytes()).decode_utf8_lossy().into_owned())
}

/// `user@realm!id=secret` of `PVEAPIToken=...` or `PVEAPIToken ...`, up to a semicolon (fact T12).
pub(super) fn token(head: &Parts) -> Option<String> {
    let value = text(head, "authorization")?.strip_prefix("PVEAPIToken")?;
    let value = value.strip_prefix(['=', ' '])?.split(';').next()?;
    Some(percent_decode(value.as_bytes()).decode_utf8_lossy().into_owned())
}

/// Parameters of body and query; the query wins (fact T8).
///
/// # Errors
/// Status and reason of a body that cannot be read (fact T6).
pub(super) fn params(head: &Parts, body: &[u8]) -> Result<Map<String, Value>, (u16, String)> {
    let mut params = Map::new();
    if !body.is_empty() {
        let kind = head.headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        match kind.split(';').next().unwrap_or_default().trim() {
            "application/x-www-form-urlencoded" => params = form(body),
            "application/json" => match serde_json::from_slice(body) {
                Ok(Value::Object(object)) => params = object,
                Ok(_) => return Err((500, "malformed JSON string, neither tag, array, object".to_owned())),
                Err(why) => return Err((500, format!("malformed JSON string: {why}"))),
            },
            other => return Err((506, format!("upload '{other}' not supported"))),
        }
    }
    if let Some(query) = head.uri.query() {
        params.extend(form(query.as_bytes()));
    }
    params.remove("_dc");
    Ok(params)
}

/// Splits on `&` and `;` and keeps only what stands between the first and the second `=`: raw separators
/// in values lose data, as they do with PVE (fact T7). Repeated keys become an array (fact T9).
fn form(text: &[u8]) -> Map<String, Value> {
    let mut params = Map::new();
    for part in text.split(|byte| matches!(byte, b'&' | b';')).filter(|part| !part.is_empty()) {
        let mut pieces = part.split(|byte| *byte == b'=');
        let name = decode(pieces.next().unwrap_or_default());
        let value = pieces.next().map_or(Value::Null, |piece| Value::String(decode(piece)));
        match params.get_mut(&name) {
            None => {
                params.insert(name, value);
            }
            Some(Value::Array(all)) => all.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    params
}

fn decode(piece: &[u8]) -> String {
    let spaces: Vec<u8> = piece.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    percent_decode(&spaces).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn raw_separators_in_a_form_lose_data_t7() {
        assert_eq!(Value::Object(form(b"tags=a;b")), json!({"tags": "a", "b": null}));
        assert_eq!(Value::Object(form(b"scsi0=local:1,ssd=1")), json!({"scsi0": "local:1,ssd"}));
        assert_eq!(Value::Object(form(b"tags=a%3Bb&name=")), json!({"tags": "a;b", "name": ""}));
    }

    #[test]
    fn repeated_keys_become_an_array_t9() {
        assert_eq!(Value::Object(form(b"vms=1&vms=2&vms=3")), json!({"vms": ["1", "2", "3"]}));
    }

    #[test]
    fn a_path_needs_a_format_t1() {
        assert_eq!(
            split_path("/api2/json/nodes//pve01/"),
            Some(("json".to_owned(), "/nodes/pve01".to_owned()))
        );
        assert_eq!(
            split_path("/api2/json/nodes/a/storage/l/content/l%3Aiso%2Fx.iso").map(|(_, path)| path),
            Some("/nodes/a/storage/l/content/l:iso/x.iso".to_owned())
        );
        assert_eq!(split_path("/api2"), None);
        assert_eq!(split_path("/nodes"), None);
    }
}
