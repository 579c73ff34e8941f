//! API paths and parameters on the wire.

use crate::class::Class;
use crate::error::PveError;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use proxops_secrets::Secret;

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParamText {
    /// One value; booleans are "1" and "0" (fact T10).
    Text(String),
    /// The key repeated, once per value (fact T9).
    Many(Vec<String>),
    /// A value that appears nowhere but on the wire.
    Secret(Secret),
}

impl From<&str> for ParamText {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for ParamText {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const SEGMENT: &AsciiSet = &UNRESERVED.remove(b':').remove(b'@').remove(b'!');
/// What a cookie can't hold as it is (RFC 6265), and the escape sign.
const COOKIE: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%').add(b',').add(b';').add(b'\\');

/// Builds an API path such as `/nodes/pve1/qemu/100/config` from its segments, each checked and
/// percent-encoded.
///
/// PVE decodes the whole path before it splits it, so a segment with a slash in it would address
/// something else: refused, as are empty segments, `.` and `..`. A volume id such as
/// `local:iso/x.iso` is therefore given as its two parts (fact S8).
pub fn path(segments: &[&str]) -> Result<String, PveError> {
    let mut out = String::new();
    for segment in segments {
        if !is_segment(segment) {
            return Err(PveError::setup(
                Class::Invalid,
                format!(
                    "{segment:?} can't be part of a PVE path (empty, a dot segment, a slash or a control character)"
                ),
            ));
        }
        out.push('/');
        out.extend(utf8_percent_encode(segment, SEGMENT));
    }
    Ok(out)
}

fn is_segment(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains(|c: char| c == '/' || c == '\\' || c.is_control())
}

/// Refuses a ready-made path that could address anything but what it spells.
pub(crate) fn check(method: &'static str, path: &str) -> Result<(), PveError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:@!$&'()*+,;=%/".contains(c);
    let sound = path.strip_prefix('/').is_some_and(|rest| {
        rest.chars().all(plain)
            && rest.split('/').all(|s| percent_decode_str(s).decode_utf8().is_ok_and(|s| is_segment(&s)))
    });
    match sound {
        true => Ok(()),
        false => Err(PveError::request(
            Class::Invalid,
            method,
            path,
            "not a PVE path: it must start with / and hold encoded, non-empty segments",
        )),
    }
}

/// A cookie's value. PVE unescapes it (fact T13), other servers of its API don't, so nothing is escaped that a
/// ticket holds and a cookie may hold.
pub(crate) fn cookie_text(text: &str) -> String {
    utf8_percent_encode(text, COOKIE).to_string()
}

/// One name or value for a form or a query: everything but unreserved characters is encoded, above
/// all `;` and `=` (fact T7).
pub(crate) fn form_text(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

fn push_pair(out: &mut String, key: &str, value: &str) {
    if !out.is_empty() {
        out.push('&');
    }
    out.extend(utf8_percent_encode(key, UNRESERVED));
    out.push('=');
    out.extend(utf8_percent_encode(value, UNRESERVED));
}

/// A query of plain pairs.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (key, value) in pairs {
        push_pair(&mut out, key, value);
    }
    out
}

/// Parameters as a form, which is also how a query looks.
pub(crate) fn form(params: &[(String, ParamText)]) -> String {
    let mut out = String::new();
    for (key, value) in params {
        match value {
            ParamText::Text(text) => push_pair(&mut out, key, text),
            ParamText::Many(texts) => texts.iter().for_each(|text| push_pair(&mut out, key, text)),
            ParamText::Secret(secret) => push_pair(&mut out, key, secret.expose()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_encoded() {
        assert_eq!(path(&["nodes", "pve1", "qemu", "100"]).unwrap(), "/nodes/pve1/qemu/100");
        let upid = "UPID:pve1:0000AAAA:00BBBBBB:66666666:qmstart:100:root@pam!ci:";
        assert_eq!(path(&["tasks", upid]).unwrap(), format!("/tasks/{upid}"));
        assert_eq!(path(&["a b?c#d%2e"]).unwrap(), "/a%20b%3Fc%23d%252e");
    }

    #[test]
    fn segments_that_would_address_something_else_are_refused() {
        for bad in ["", ".", "..", "a/b", "a\\b", "a\nb", "a\0"] {
            assert!(path(&["nodes", bad]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn ready_made_paths_are_checked() {
        for good in ["/version", "/nodes/a/storage/b/content/local:iso/x.iso", "/a%20b"] {
            assert!(check("GET", good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "version",
            "/",
            "/a//b",
            "/a/../b",
            "/a/%2e%2e/b",
            "/a/%2fb",
            "/a?b=c",
            "/a#b",
            "/a b",
            "/a/",
        ] {
            assert!(check("GET", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn separators_inside_values_are_encoded() {
        let params = [
            ("tags".to_owned(), ParamText::from("a;b")),
            ("scsi0".to_owned(), ParamText::from("local:1,ssd=1")),
            ("description".to_owned(), ParamText::from("")),
            ("env".to_owned(), ParamText::from("A=1\0B=2")),
        ];
        assert_eq!(form(&params), "tags=a%3Bb&scsi0=local%3A1%2Cssd%3D1&description=&env=A%3D1%00B%3D2");
    }

    #[test]
    fn lists_repeat_their_key() {
        let params = [("vms".to_owned(), ParamText::Many(vec!["1".into(), "2".into()]))];
        assert_eq!(form(&params), "vms=1&vms=2");
    }
}
