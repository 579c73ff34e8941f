//! Guest tags as PVE stores and compares them (facts C3, C4).

use crate::{TagStyle, text::split_list};

/// Whether PVE accepts this tag: `[a-z0-9_][a-z0-9_+.-]*`, any case (fact C3).
pub fn is_valid(tag: &str) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.starts_with(first) && tag.chars().all(|c| first(c) || matches!(c, '+' | '.' | '-'))
}

/// The tags as PVE stores them: folded to lower case unless the datacenter is case-sensitive, each once,
/// sorted unless it keeps their order (fact C4).
pub fn canonical<'a>(tags: impl IntoIterator<Item = &'a str>, style: &TagStyle) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for tag in tags {
        let tag = if style.case_sensitive { tag.to_owned() } else { tag.to_ascii_lowercase() };
        if !out.contains(&tag) {
            out.push(tag);
        }
    }
    if !style.keep_order {
        out.sort();
    }
    out
}

/// Reads a live list, whatever separates it, into PVE's canonical form.
pub fn parse(text: &str, style: &TagStyle) -> Vec<String> {
    canonical(split_list(text), style)
}

/// What `tags` should be: the declared ones (or, when none are declared, the live ones) plus the owner
/// tag. `None` when the live list already says so. Tags are a set: order alone is never a difference.
pub fn wanted(
    declared: Option<&[String]>,
    live: Option<&str>,
    owner: &str,
    style: &TagStyle,
) -> Option<String> {
    let live = parse(live.unwrap_or_default(), style);
    let mut want = match declared {
        Some(tags) => canonical(tags.iter().map(String::as_str), style),
        None => live.clone(),
    };
    if !want.iter().any(|t| t == owner) {
        want.push(owner.to_owned());
        want = canonical(want.iter().map(String::as_str), style);
    }
    let sorted = |tags: &[String]| {
        let mut tags = tags.to_vec();
        tags.sort();
        tags
    };
    (sorted(&want) != sorted(&live)).then(|| want.join(";"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(case_sensitive: bool, keep_order: bool) -> TagStyle {
        TagStyle { case_sensitive, keep_order, ext: Vec::new() }
    }

    #[test]
    fn order_case_and_separator_do_not_matter() {
        let declared = ["Web".to_owned(), "prod".to_owned(), "prod".to_owned()];
        for live in ["prod;proxops;web", "prod,proxops,web", "prod proxops web", "web;proxops;prod"] {
            assert_eq!(wanted(Some(&declared), Some(live), "proxops", &style(false, false)), None, "{live}");
        }
        assert_eq!(
            wanted(Some(&declared), Some("prod;proxops;web"), "proxops", &style(true, false)).as_deref(),
            Some("Web;prod;proxops")
        );
    }

    #[test]
    fn left_out_keeps_the_live_tags_and_claims() {
        let s = style(false, false);
        assert_eq!(wanted(None, Some("backup01;proxops"), "proxops", &s), None);
        assert_eq!(wanted(None, Some("backup01"), "proxops", &s).as_deref(), Some("backup01;proxops"));
        assert_eq!(wanted(None, None, "proxops", &s).as_deref(), Some("proxops"));
        let sensitive = style(true, false);
        let both = wanted(None, Some("ProxOps"), "proxops", &sensitive);
        assert_eq!(both.as_deref(), Some("ProxOps;proxops"), "there it is another tag (fact C4)");
        assert_eq!(wanted(Some(&[]), Some("a;proxops"), "proxops", &s).as_deref(), Some("proxops"));
    }

    #[test]
    fn kept_order_is_the_manifests() {
        let declared = ["z".to_owned(), "a".to_owned()];
        assert_eq!(
            wanted(Some(&declared), Some("q"), "proxops", &style(false, true)).as_deref(),
            Some("z;a;proxops")
        );
    }

    #[test]
    fn a_hyphen_may_not_come_first() {
        assert!(is_valid("a-b") && is_valid("_x") && is_valid("1.2+3"));
        assert!(!is_valid("-a") && !is_valid("") && !is_valid("a b") && !is_valid("ä"));
    }
}
