//! Names as PVE accepts them, and the slots of numbered keys. Each error completes the sentence
//! "`field` ...".

use crate::live::slot_index;
use crate::text::quoted;

/// What a check says.
pub type Checked = Result<(), String>;

fn all(text: &str, also: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
}

fn alphanumeric_ends(text: &str) -> bool {
    let ends = [text.chars().next(), text.chars().last()];
    ends.iter().all(|c| c.is_some_and(|c| c.is_ascii_alphanumeric()))
}

/// A node: letters, digits and inner hyphens.
pub fn check_node(text: &str) -> Checked {
    let good = all(text, "-") && alphanumeric_ends(text);
    if good { Ok(()) } else { Err(format!("must be a node's name such as pve01, not {}", quoted(text))) }
}

/// A storage: a letter first, then letters, digits and `-_.`, a letter or digit last.
pub fn check_storage(text: &str) -> Checked {
    let good = all(text, "-_.") && alphanumeric_ends(text) && text.len() > 1;
    let letter = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if good && letter {
        Ok(())
    } else {
        Err(format!("must be a storage's name such as local-lvm, not {}", quoted(text)))
    }
}

/// A DNS name of at most 255 characters, its labels separated by dots.
pub fn check_dns_name(text: &str) -> Checked {
    let label = |label: &str| all(label, "-") && alphanumeric_ends(label);
    let good = text.len() <= 255 && text.split('.').all(label);
    if good {
        Ok(())
    } else {
        Err(format!("must be a DNS name such as web-01.example.org, not {}", quoted(text)))
    }
}

/// A resource pool: letters, digits and `-_.`, nested ones with `/` between.
pub fn check_pool(text: &str) -> Checked {
    let part = |part: &str| !part.is_empty() && all(part, "-_.");
    let good = text.split('/').all(part);
    if good { Ok(()) } else { Err(format!("must be a pool's name such as web, not {}", quoted(text))) }
}

/// A bridge or virtual network.
pub fn check_bridge(text: &str) -> Checked {
    let good = !text.is_empty() && all(text, "-_.");
    if good { Ok(()) } else { Err(format!("must be a bridge such as vmbr0, not {}", quoted(text))) }
}

/// A name in the cluster's secrets document below `prefix`, such as `cloud-init.passwords.`.
pub fn check_secret(text: &str, prefix: &str) -> Checked {
    match text.strip_prefix(prefix) {
        Some(name) if !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control()) => {
            Ok(())
        }
        _ => Err(format!("must be a name in the cluster's secrets document such as {prefix}ops")),
    }
}

/// The numbers of the slots `<prefix>N`: an entry that names its slot has it, the others get the lowest
/// free numbers in list order.
pub fn slots<'a>(prefix: &str, entries: impl IntoIterator<Item = Option<&'a str>>) -> Vec<u32> {
    let named: Vec<Option<u32>> =
        entries.into_iter().map(|slot| slot.and_then(|text| slot_index(text, prefix))).collect();
    let mut free = (0..).filter(|n| !named.contains(&Some(*n)));
    named.iter().map(|slot| slot.or_else(|| free.next()).unwrap_or_default()).collect()
}

/// Whether a key looks as if its value were a secret.
pub fn is_secret_like(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["pass", "secret", "token", "key", "credential", "auth"].iter().any(|word| key.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_pve() {
        assert!(check_node("pve-01").is_ok() && check_node("-x").is_err() && check_node("a.b").is_err());
        assert!(
            check_storage("local-lvm").is_ok()
                && check_storage("1x").is_err()
                && check_storage("a:b").is_err()
        );
        assert!(check_dns_name("web-01.example.org").is_ok());
        assert!(["", "a_b", "-a", "a-", "a..b", "ä"].iter().all(|t| check_dns_name(t).is_err()));
        assert!(check_pool("a/b").is_ok() && check_pool("a//b").is_err());
        assert!(check_secret("cloud-init.passwords.ops", "cloud-init.passwords.").is_ok());
        assert!(check_secret("cloud-init.passwords.", "cloud-init.passwords.").is_err());
    }

    #[test]
    fn entries_without_a_slot_get_the_lowest_free_one() {
        assert_eq!(slots("mp", [None, Some("mp0"), None, Some("mp5")]), [1, 0, 2, 5]);
        assert_eq!(slots("net", [None, None]), [0, 1]);
    }

    #[test]
    fn secrets_are_known_by_their_keys() {
        assert!(["DB_PASSWORD", "api-token", "lxc.environment.SECRET"].iter().all(|k| is_secret_like(k)));
        assert!(!is_secret_like("lxc.apparmor.profile"));
    }
}
