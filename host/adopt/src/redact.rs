//! What may be a secret, and what therefore reaches neither a manifest nor any output.
//!
//! Nobody can recognise every secret. The rule errs on the side of leaving a value where it is, in PVE: a field that is
//! left out is not owned, so nothing changes.

/// Stands in comments and text for a value that is not shown.
pub(crate) const REDACTED: &str = "(redacted)";

/// Words that announce a secret, wherever they stand.
const WORDS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "kennwort",
    "secret",
    "credential",
    "token",
    "apikey",
    "api-key",
    "api_key",
    "private key",
];
/// Words that do so only before `=` or `:`.
const NAMES: [&str; 7] = ["pass", "pwd", "pw", "key", "auth", "pin", "login"];

/// Whether a key's values are secrets more often than not.
pub(crate) fn is_secret_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["pass", "secret", "token", "key", "credential", "auth", "pwd"].iter().any(|word| key.contains(word))
}

/// Whether a text seems to hold a secret.
pub(crate) fn holds_secret(text: &str) -> bool {
    let lower = text.to_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
        || NAMES.iter().any(|name| announces(&lower, name))
        || lower.contains("-----begin")
        || has_userinfo(&lower)
        || text.split(|c: char| !is_token_char(c)).any(looks_random)
}

/// `name` as a word of its own, followed by `=` or `:` and something.
fn announces(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|t| t.chars().next_back());
        let after = text.get(at + name.len()..).unwrap_or_default().trim_start_matches(' ');
        let value = after.strip_prefix(['=', ':']).map(str::trim_start);
        before.is_none_or(|c| !c.is_alphanumeric()) && value.is_some_and(|value| !value.is_empty())
    })
}

/// `scheme://user:password@host`
fn has_userinfo(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', ' ', '\n', '?']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '_' | '-')
}

/// A long run of letters of both cases and digits, or of hexadecimal digits: nothing that people write.
fn looks_random(word: &str) -> bool {
    // A path or a name with several parts is read part by part.
    word.split(['/', '-', '_']).any(|part| {
        let count = |test: fn(&char) -> bool| part.chars().filter(test).count();
        let (upper, lower, digits) = (
            count(|c| c.is_ascii_uppercase()),
            count(|c| c.is_ascii_lowercase()),
            count(|c| c.is_ascii_digit()),
        );
        let mixed = part.len() >= 20 && upper >= 3 && lower >= 3 && digits >= 2;
        let hex = part.len() >= 32 && digits >= 4 && part.chars().all(|c| c.is_ascii_hexdigit());
        mixed || hex
    })
}

/// The value of a gap as it may be shown.
pub(crate) fn gap_value(key: &str, value: Option<String>) -> Option<String> {
    // Raw lines of a container can hold anything, its environment included, and PVE shows them only to the owner of
    // the file: their names are enough.
    let raw = key == "lxc" || key.starts_with("lxc.");
    value.filter(|value| !raw && !is_secret_key(key) && !holds_secret(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_announces_or_looks_like_a_secret_is_one() {
        for text in [
            "root password is hunter2",
            "DB_PASSWORD=hunter2",
            "pw: hunter2",
            "key = abc",
            "Token abc",
            "https://ops:hunter2@example.org/x",
            "see aGVsbG8gd29ybGQxMjM0NTY3ODkwQUJD",
            "0123456789abcdef0123456789abcdef",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
        ] {
            assert!(holds_secret(text), "{text}");
        }
    }

    #[test]
    fn what_people_write_is_none() {
        for text in [
            "",
            "web server of the shop",
            "keyboard and monkey business; compass",
            "https://wiki.example.org/vm/101 (see there)",
            "local-lvm:vm-101-disk-0,size=32G",
            "uuid=11111111-2222-3333-4444-555555555555",
            "local:snippets/user-data.yaml",
            "creation-qemu=10.1.2,ctime=1760000000",
            "virtio=BC:24:11:00:00:01,bridge=vmbr0",
        ] {
            assert!(!holds_secret(text), "{text}");
        }
    }

    #[test]
    fn raw_lines_show_their_names_only() {
        assert_eq!(gap_value("lxc.apparmor.profile", Some("unconfined".into())), None);
        assert_eq!(gap_value("args", Some("-device x".into())), Some("-device x".into()));
        assert_eq!(gap_value("args", Some("-fw_cfg string=password".into())), None);
    }
}
