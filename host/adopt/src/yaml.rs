//! Writing manifests as a careful person would: block style, short lists of words on one line, comments where they
//! matter, and nothing that a YAML reader of any version could take for something else.

use crate::tree::Tree;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Widest list on one line.
const LINE: usize = 90;

/// Comment lines by the pointer of what they stand above.
pub(crate) type Comments = BTreeMap<String, Vec<String>>;

/// The tree as a YAML document, each line ended. Comments whose pointer leads nowhere are not written.
pub(crate) fn write(tree: &Tree, comments: &Comments) -> String {
    let mut writer = Writer { out: String::new(), comments };
    match tree {
        Tree::Map(entries) if !entries.is_empty() => writer.entries(entries, 0, ""),
        other => {
            let text = inline(other);
            let _ = writeln!(writer.out, "{text}");
        }
    }
    writer.out
}

/// One comment line: no line break, no control character, not longer than a screen or two.
pub(crate) fn comment(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars().take(400) {
        match c {
            '\n' => line.push_str("\\n"),
            '\t' => line.push(' '),
            c if plain_char(c) => line.push(c),
            c => line.extend(c.escape_unicode()),
        }
    }
    if text.chars().nth(400).is_some() {
        line.push_str("...");
    }
    line
}

struct Writer<'a> {
    out: String,
    comments: &'a Comments,
}

impl Writer<'_> {
    fn comments(&mut self, at: &str, indent: usize) {
        for line in self.comments.get(at).into_iter().flatten() {
            let _ = writeln!(self.out, "{:indent$}# {}", "", comment(line));
        }
    }

    fn entries(&mut self, entries: &[(String, Tree)], indent: usize, at: &str) {
        for (i, (key, value)) in entries.iter().enumerate() {
            let here = proxops_repo::yaml::child(at, key);
            // The first key of a list's item stands behind the dash: its comments were written above that.
            let behind_dash = i == 0 && self.out.ends_with("- ");
            if !behind_dash {
                self.comments(&here, indent);
                let _ = write!(self.out, "{:indent$}", "");
            }
            let _ = write!(self.out, "{}:", scalar(key));
            self.value(value, indent, &here);
        }
    }

    /// What follows a key's colon.
    fn value(&mut self, value: &Tree, indent: usize, at: &str) {
        match value {
            Tree::Map(entries) if !entries.is_empty() => {
                self.out.push('\n');
                // Comments about the inside of a map, such as a field that is missing in it.
                self.comments(&format!("{at}/"), indent + 2);
                self.entries(entries, indent + 2, at);
            }
            Tree::List(items) if !items.is_empty() && !fits(items, indent) => {
                self.out.push('\n');
                self.items(items, indent + 2, at);
            }
            Tree::Text(text) if is_block(text) => self.block(text, indent + 2),
            other => {
                let text = inline(other);
                let _ = writeln!(self.out, " {text}");
            }
        }
    }

    fn items(&mut self, items: &[Tree], indent: usize, at: &str) {
        for (i, item) in items.iter().enumerate() {
            let here = format!("{at}/{i}");
            self.comments(&here, indent);
            if let Tree::Map(entries) = item
                && let Some((first, _)) = entries.first()
            {
                self.comments(&proxops_repo::yaml::child(&here, first), indent);
            }
            let _ = write!(self.out, "{:indent$}- ", "");
            match item {
                Tree::Map(entries) if !entries.is_empty() => self.entries(entries, indent + 2, &here),
                other => {
                    let text = inline(other);
                    let _ = writeln!(self.out, "{text}");
                }
            }
        }
    }

    /// Literal text, line by line as it is.
    fn block(&mut self, text: &str, indent: usize) {
        let keep = if text.ends_with('\n') { "" } else { "-" };
        let _ = writeln!(self.out, " |{keep}");
        for line in text.lines() {
            let indent = if line.is_empty() { 0 } else { indent };
            let _ = writeln!(self.out, "{:indent$}{line}", "");
        }
    }
}

/// Whether a list can stand on one line: words and numbers only, and not too many.
fn fits(items: &[Tree], indent: usize) -> bool {
    let scalars = items.iter().all(|item| !matches!(item, Tree::Map(_) | Tree::List(_)));
    scalars && indent + items.iter().map(|item| inline(item).len() + 2).sum::<usize>() <= LINE
}

fn inline(value: &Tree) -> String {
    match value {
        Tree::Null => "null".to_owned(),
        Tree::Flag(flag) => flag.to_string(),
        Tree::Number(number) => number.to_string(),
        Tree::Text(text) => scalar(text),
        Tree::List(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Tree::Map(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(k, v)| format!("{}: {}", scalar(k), inline(v))).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// Whether text of several lines can be written line by line without changing: YAML gives a meaning to leading
/// spaces of the first line and to more than one line break at the end.
fn is_block(text: &str) -> bool {
    let trimmed = text.strip_suffix('\n').unwrap_or(text);
    trimmed.contains('\n')
        && !trimmed.ends_with('\n')
        && !text.starts_with([' ', '\n'])
        && text.chars().all(|c| c == '\n' || plain_char(c))
        && text.lines().all(|line| !line.ends_with(' '))
}

/// Characters that can stand in a file as they are: no controls, no other line breaks, no direction marks.
fn plain_char(c: char) -> bool {
    let strange = matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}');
    !c.is_control() && !strange
}

/// Text as it can stand behind a colon or in a list: plain where nothing else could be meant.
fn scalar(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if plain_char(c) => out.push(c),
            c if u32::from(c) <= 0xffff => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}

fn is_plain(text: &str) -> bool {
    // Booleans and nulls of YAML 1.1 and 1.2; other readers than ours may know the older ones.
    const WORDS: [&str; 10] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null", "~"];
    let Some(first) = text.chars().next() else { return false };
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | '_' | '-' | '/' | '+' | '=');
    // Numbers and dates of either version have no other letter than these.
    let number_like = text
        .chars()
        .all(|c| c.is_ascii_hexdigit() || matches!(c, '.' | '_' | '-' | '+' | 'x' | 'o' | 'X' | 'O'))
        && (first.is_ascii_digit() || matches!(first, '.' | '-' | '+'));
    (first.is_ascii_alphanumeric() || matches!(first, '/' | '_') || text.starts_with("../"))
        && text.chars().all(inner)
        && !text.ends_with(' ')
        && !number_like
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn read(text: &str) -> Value {
        let stream = proxops_repo::yaml::parse(text.as_bytes());
        assert!(stream.problems.is_empty(), "{:?}\n{text}", stream.problems);
        stream.documents.into_iter().next().map(|d| d.value).unwrap_or_default()
    }

    #[test]
    fn words_stay_bare_and_what_could_be_meant_otherwise_is_quoted() {
        for bare in [
            "web-01",
            "32GiB",
            "host",
            "192.0.2.1/24",
            "local-lvm",
            "x86-64-v2-AES",
            "1 GiB",
            "../../vm/a.yaml",
        ] {
            assert_eq!(scalar(bare), bare);
        }
        for quoted in [
            "",
            "no",
            "On",
            "~",
            "null",
            "123",
            "1e3",
            "0x1F",
            "1_000",
            "2026-01-01",
            "a: b",
            "#x",
            "-",
            "a ",
            "BC:24:11:00:00:01",
            "*",
            "&a",
            "!x",
            "0o17",
            ".5",
            "é",
        ] {
            assert!(scalar(quoted).starts_with('"'), "{quoted}");
        }
    }

    #[test]
    fn a_manifest_reads_like_one() {
        let tree = Tree::parse(
            r#"{"spec":{"node":"pve01","tags":["a","b"],"disks":[{"interface":"scsi0","size":"32GiB"}],"pve-description":"one\ntwo\n","extra":{}}}"#,
        )
        .unwrap();
        let mut comments = Comments::new();
        comments.insert("/spec/".into(), vec!["missing: x".into()]);
        comments.insert("/spec/disks/0".into(), vec!["kept: iops=100".into()]);
        comments.insert("/spec/tags".into(), vec!["a\nb".into()]);
        let wanted = "spec:\n  # missing: x\n  node: pve01\n  # a\\nb\n  tags: [a, b]\n  disks:\n    # kept: iops=100\n    - interface: scsi0\n      size: 32GiB\n  pve-description: |\n    one\n    two\n  extra: {}\n";
        assert_eq!(write(&tree, &comments), wanted);
        assert_eq!(read(wanted), tree.to_value());
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[ \\n\\ta-z#:\"'|>-]{0,30}",
            "[0-9a-fxoe._+:-]{1,8}",
            prop::sample::select(vec![
                "yes", "null", "- a", "? b", "%x", "@", "`", "a #b", "---", "...", "<<", "a\n\n"
            ])
            .prop_map(str::to_owned),
        ]
    }

    fn tree() -> impl Strategy<Value = Tree> {
        let leaf = prop_oneof![
            Just(Tree::Null),
            any::<bool>().prop_map(Tree::Flag),
            any::<i32>().prop_map(|n| Tree::Number(n.into())),
            text().prop_map(Tree::Text),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Tree::List),
                prop::collection::btree_map(text(), inner, 0..5)
                    .prop_map(|m| Tree::Map(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_as_it_was(tree in tree(), note in text()) {
            let whole = Tree::Map(vec![("spec".into(), tree)]);
            let mut comments = Comments::new();
            for (at, _) in whole.leaves() {
                comments.insert(at, vec![note.clone()]);
            }
            let text = write(&whole, &comments);
            prop_assert_eq!(read(&text), whole.to_value(), "{}", text);
        }
    }
}
