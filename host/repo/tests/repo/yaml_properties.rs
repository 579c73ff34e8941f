//! YAML under random input.

use proptest::{collection, prelude::*};
use proxops_repo::yaml::{MAX_BYTES, child, parse};
use serde_json::{Map, Value};

/// A tree that can be written in block style.
fn tree() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        // What JSON escapes the same way as YAML does.
        "[ -~äöü\u{4e00}]{0,8}".prop_map(Value::from),
    ];
    scalar.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            collection::btree_map("[a-z/~ ä]{1,6}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Writes block YAML and notes where each key or item begins.
struct Writer {
    text: String,
    line: u32,
    column: u32,
    places: Vec<(String, u32, u32)>,
}

impl Writer {
    fn put(&mut self, text: &str) {
        for c in text.chars() {
            self.text.push(c);
            (self.line, self.column) =
                if c == '\n' { (self.line + 1, 1) } else { (self.line, self.column + 1) };
        }
    }

    fn note(&mut self, pointer: &str) {
        self.places.push((pointer.to_owned(), self.line, self.column));
    }

    /// Writes a value behind a key or a dash; ends the line.
    fn value(&mut self, value: &Value, pointer: &str, indent: usize, item: bool) {
        let pad = " ".repeat(indent);
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (index, (key, inner)) in map.iter().enumerate() {
                    match (index, item) {
                        (0, true) => self.put(" "),
                        (0, false) => self.put(&format!("\n{pad}")),
                        _ => self.put(&pad),
                    }
                    if index == 0 && item {
                        self.note(pointer);
                    }
                    let at = child(pointer, key);
                    self.note(&at);
                    self.put(&format!("{}:", Value::from(key.as_str())));
                    self.value(inner, &at, indent + 2, false);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                if item {
                    // The position of a nested block list is that of its first dash.
                    self.put("\n");
                    self.places.push((pointer.to_owned(), self.line, self.column + indent as u32));
                } else {
                    self.put("\n");
                }
                for (index, inner) in items.iter().enumerate() {
                    self.put(&format!("{pad}-"));
                    let at = format!("{pointer}/{index}");
                    self.value(inner, &at, indent + 2, true);
                }
            }
            scalar => {
                self.put(" ");
                if item {
                    self.note(pointer);
                }
                self.put(&format!("{scalar}\n"));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_and_every_part_is_found_where_it_was_written(tree in tree()) {
        let mut writer = Writer { text: String::new(), line: 1, column: 1, places: Vec::new() };
        writer.put("root:");
        writer.places.push(("/root".into(), 1, 1));
        writer.value(&tree, "/root", 2, false);
        let stream = parse(writer.text.as_bytes());
        prop_assert_eq!(&stream.problems, &[], "{}", writer.text);
        prop_assert_eq!(&stream.documents[0].value["root"], &tree, "{}", writer.text);
        for (pointer, line, column) in &writer.places {
            let pos = stream.documents[0].positions.locate(pointer);
            prop_assert_eq!((pos.line, pos.column), (*line, *column), "{} in\n{}", pointer, writer.text);
        }
        // Every node has a position, and nothing else has.
        prop_assert_eq!(stream.documents[0].positions.iter().count(), writer.places.len() + 1);
        for (pointer, _) in stream.documents[0].positions.iter() {
            prop_assert!(stream.documents[0].value.pointer(pointer).is_some(), "{}", pointer);
        }
    }

    #[test]
    fn random_bytes_give_documents_or_problems_and_never_a_panic(bytes in collection::vec(any::<u8>(), 0..400)) {
        parse(&bytes);
    }

    #[test]
    fn text_made_of_yaml_s_own_signs_never_panics(
        parts in collection::vec(prop::sample::select(&[
            "a", "b: ", "- ", "? ", ": ", "[", "]", "{", "}", ", ", "&a ", "*a", "!!str ", "!x ", "! ", "|\n", ">-\n", "'", "\"",
            "\n", "  ", "\t", "#", "---\n", "...\n", "%YAML 1.2\n", "%TAG ! x\n", "<<", "\\x", "\r", "\u{feff}", "~", "1", ".inf", "\u{85}", "\u{2028}",
        ][..]), 0..80)
    ) {
        let text = parts.concat();
        let stream = parse(text.as_bytes());
        let lines = text.lines().count() as u32 + text.matches('\r').count() as u32 + 2;
        for problem in &stream.problems {
            prop_assert!(problem.at.line >= 1 && problem.at.column >= 1 && problem.at.line <= lines, "{:?}", problem);
        }
    }

    #[test]
    fn a_cut_manifest_never_panics(cut in 0usize..260) {
        let text = "apiVersion: proxops/v1alpha1\nkind: VM\nmetadata: {name: &n 'web', labels: {a: *n}}\nspec:\n  disks:\n    - {storage: \"l\\u00fc\", size: 8GiB}\n  note: |\n    ü\n";
        let cut = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        parse(&text.as_bytes()[..cut]);
        prop_assert!(text.len() < MAX_BYTES);
    }
}
