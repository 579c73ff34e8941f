//! Small rules about texts: names, durations, the nearest known word.

use std::time::Duration;

/// The known word that somebody probably meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_ascii_lowercase();
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&lower, &k.to_ascii_lowercase()), k))
        .filter(|(distance, k)| *distance <= (k.chars().count().max(lower.chars().count()) / 3).max(1))
        .min()
        .map(|(_, k)| k)
}

/// "did you mean `x`?", or the list of what is known.
pub(crate) fn suggest<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}", known.into_iter().collect::<Vec<_>>().join(", ")),
    }
}

/// `30s`, `5m`, `1h`, `1h30m`, `500ms`: whole or decimal numbers with a unit (ms, s, m, h, d), largest
/// first or not. `None` for anything else, and for zero.
pub fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = tail;
    }
    (!total.is_zero()).then_some(total)
}

/// `metadata.name`: `[a-z0-9]([a-z0-9-]*[a-z0-9])?`, at most 63 characters.
pub fn is_resource_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=63).contains(&name.len())
        && name.chars().all(|c| inner(c) || c == '-')
        && name.starts_with(inner)
        && name.ends_with(inner)
}

/// A SHA-256 fingerprint as PVE shows it: 32 upper-case hex pairs joined by colons. `None` = it is none.
pub fn fingerprint(text: &str) -> Option<String> {
    let digits: Vec<char> = text.chars().filter(|c| *c != ':').collect();
    let right = digits.len() == 64 && digits.iter().all(char::is_ascii_hexdigit);
    let pair = |pair: &[char]| pair.iter().collect::<String>().to_ascii_uppercase();
    right.then(|| digits.chunks(2).map(pair).collect::<Vec<_>>().join(":"))
}

/// A node's name as PVE takes it: a DNS label.
pub fn is_node_name(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// A lower-case tag that PVE accepts (fact C3).
pub fn is_owner_tag(tag: &str) -> bool {
    let first = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    tag.starts_with(first) && tag.chars().all(|c| first(c) || matches!(c, '-' | '+' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_in_every_usual_form() {
        for (text, seconds) in
            [("30s", 30.0), ("5m", 300.0), ("1h", 3600.0), ("1h30m", 5400.0), ("500ms", 0.5), ("1.5m", 90.0)]
        {
            assert_eq!(duration(text), Some(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "30", "s", "0s", "-1s", "1 s", "5 minutes", "1x", "1..5s", "999999999999999999999d"]
        {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn a_word_far_from_everything_gets_no_suggestion() {
        assert_eq!(nearest("promps-budget", ["prune-budget", "owner-tag"]), Some("prune-budget"));
        assert_eq!(nearest("vm", ["VM", "LXC"]), Some("VM"));
        assert_eq!(nearest("banana", ["VM", "LXC"]), None);
    }

    #[test]
    fn names_follow_their_patterns() {
        for good in ["a", "web-01", "0", &"x".repeat(63)] {
            assert!(is_resource_name(good), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "ä", &"x".repeat(64)] {
            assert!(!is_resource_name(bad), "{bad}");
        }
        assert!(is_owner_tag("proxops") && is_owner_tag("_a-b+c.d"));
        assert!(!is_owner_tag("-a") && !is_owner_tag("A") && !is_owner_tag("") && !is_owner_tag("a;b"));
    }
}
