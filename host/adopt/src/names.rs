//! Names of manifests: the name in PVE, made valid, and the same at every run.

use proxops_repo::is_resource_name;
use std::collections::{BTreeMap, BTreeSet};

/// Longest name (`[a-z0-9]([a-z0-9-]*[a-z0-9])?`, at most 63).
const LONGEST: usize = 63;

/// The name that is nearest to a text: lower case, everything else a hyphen. Empty if nothing is left.
pub(crate) fn valid(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars().map(|c| c.to_ascii_lowercase()) {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    name.truncate(LONGEST);
    name.trim_end_matches('-').to_owned()
}

/// A name with a suffix, cut so that both fit.
fn with(name: &str, suffix: &str) -> String {
    let room = LONGEST.saturating_sub(suffix.len() + 1);
    let head: String = name.chars().take(room).collect();
    let head = head.trim_end_matches('-');
    if head.is_empty() { valid(suffix) } else { format!("{head}-{suffix}") }
}

/// Gives each object a name: the wanted one if nobody else wants it or has it, else the wanted one with the suffix.
/// `wanted` is (key, wanted name, suffix); `taken` are names that stay with others. The result depends on neither
/// order nor on what else is adopted with it.
pub(crate) fn assign<K: Ord + Clone>(
    wanted: &[(K, String, String)],
    taken: &BTreeSet<String>,
) -> BTreeMap<K, String> {
    let mut wishes: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, name, _) in wanted {
        *wishes.entry(name).or_default() += 1;
    }
    let mut used = taken.clone();
    let mut names = BTreeMap::new();
    let free = |name: &str| is_resource_name(name) && wishes.get(name) == Some(&1) && !taken.contains(name);
    for (key, name, _) in wanted.iter().filter(|(_, name, _)| free(name)) {
        used.insert(name.clone());
        names.insert(key.clone(), name.clone());
    }
    let mut rest: Vec<&(K, String, String)> =
        wanted.iter().filter(|(key, ..)| !names.contains_key(key)).collect();
    rest.sort();
    for (key, name, suffix) in rest {
        let first = with(name, &valid(suffix));
        let mut tries =
            std::iter::once(first.clone()).chain((2..).map(|n: u32| with(&first, &n.to_string())));
        let Some(chosen) = tries.find(|t| !used.contains(t)) else { continue };
        used.insert(chosen.clone());
        names.insert(key.clone(), chosen);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each as "id name", in the order of ids.
    fn of(wanted: &[(u32, &str)], taken: &[&str]) -> Vec<String> {
        let wanted: Vec<_> = wanted.iter().map(|(id, name)| (*id, valid(name), id.to_string())).collect();
        let taken = taken.iter().map(|t| (*t).to_owned()).collect();
        assign(&wanted, &taken).into_iter().map(|(id, name)| format!("{id} {name}")).collect()
    }

    #[test]
    fn a_name_of_pve_becomes_a_valid_one() {
        for (name, wanted) in [
            ("web-01", "web-01"),
            ("Web_01.example.ORG", "web-01-example-org"),
            ("--a--", "a"),
            ("ä", ""),
            ("", ""),
        ] {
            assert_eq!(valid(name), wanted, "{name}");
        }
        assert_eq!(valid(&"x".repeat(70)).len(), 63);
        assert_eq!(valid(&format!("{}-b", "x".repeat(62))), "x".repeat(62));
    }

    #[test]
    fn whoever_shares_a_name_gets_its_vmid() {
        assert_eq!(of(&[(101, "web"), (102, "db")], &[]), ["101 web", "102 db"]);
        assert_eq!(of(&[(101, "web"), (102, "Web")], &[]), ["101 web-101", "102 web-102"]);
        assert_eq!(of(&[(102, "Web"), (101, "web")], &[]), ["101 web-101", "102 web-102"], "in any order");
        assert_eq!(of(&[(101, "web")], &["web"]), ["101 web-101"]);
        assert_eq!(of(&[(101, "")], &[]), ["101 101"]);
    }

    #[test]
    fn a_suffix_never_takes_a_name_that_somebody_has() {
        let names = of(&[(101, "web"), (102, "web"), (103, "web-101")], &[]);
        assert_eq!(names, ["101 web-101-2", "102 web-102", "103 web-101"]);
        let long = "x".repeat(63);
        for text in of(&[(101, &long), (999_999_999, &long)], &[]) {
            let name = text.split(' ').nth(1).unwrap();
            assert!(is_resource_name(name) && name.len() <= 63, "{name}");
        }
    }
}
