//! YAML: the core schema, positions, and everything that is refused.

use proxops_repo::yaml::{MAX_BYTES, MAX_DEPTH, MAX_PROBLEMS, Problem, Stream, parse};
use serde_json::{Value, json};

fn value(text: &str) -> Value {
    let stream = parse(text.as_bytes());
    assert_eq!(stream.problems, [], "{text}");
    stream.documents[0].value.clone()
}

fn problems(text: &str) -> Vec<(u32, u32, &'static str)> {
    parse(text.as_bytes()).problems.iter().map(|p: &Problem| (p.at.line, p.at.column, p.code)).collect()
}

fn at(stream: &Stream, pointer: &str) -> (u32, u32) {
    let pos = stream.documents[0].positions.locate(pointer);
    (pos.line, pos.column)
}

#[test]
fn plain_scalars_mean_what_the_core_schema_of_yaml_1_2_says() {
    for (text, expected) in [
        ("yes", json!("yes")),
        ("on", json!("on")),
        ("No", json!("No")),
        ("true", json!(true)),
        ("False", json!(false)),
        ("tRue", json!("tRue")),
        ("~", json!(null)),
        ("null", json!(null)),
        ("12", json!(12)),
        ("-12", json!(-12)),
        ("+12", json!(12)),
        ("010", json!(10)),
        ("0o17", json!(15)),
        ("0xff", json!(255)),
        ("0o8", json!("0o8")),
        ("1_000", json!("1_000")),
        ("12:30:45", json!("12:30:45")),
        ("BC:24:11:00:00:01", json!("BC:24:11:00:00:01")),
        ("1.5", json!(1.5)),
        (".5", json!(0.5)),
        ("1e3", json!(1000.0)),
        ("1e", json!("1e")),
        ("1.2.3", json!("1.2.3")),
        ("-", json!(["-"])),
        (".", json!(".")),
        ("2GiB", json!("2GiB")),
        ("2026-01-01", json!("2026-01-01")),
        ("9223372036854775807", json!(i64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("\"12\"", json!("12")),
        ("'true'", json!("true")),
        ("!!str 12", json!("12")),
        ("!!int \"12\"", json!(12)),
        ("! 12", json!("12")),
        ("|\n  a\n  b\n", json!("a\nb\n")),
        (">-\n  a\n  b\n", json!("a b")),
    ] {
        let expected = if text == "-" { json!([null]) } else { expected };
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn keys_values_and_list_items_have_their_own_positions() {
    let text = "# head\nspec:\n  cpu: {type: host, cores: 2}\n  disks:\n    - storage: a\n      size: 8GiB\n    -   storage: ü\n";
    let stream = parse(text.as_bytes());
    assert_eq!(stream.problems, []);
    assert_eq!(at(&stream, "/spec"), (2, 1));
    assert_eq!(at(&stream, "/spec/cpu/cores"), (3, 21));
    assert_eq!(at(&stream, "/spec/disks/0"), (5, 7));
    assert_eq!(at(&stream, "/spec/disks/0/size"), (6, 7));
    assert_eq!(at(&stream, "/spec/disks/1/storage"), (7, 9));
    let value = stream.documents[0].positions.value("/spec/disks/1/storage");
    assert_eq!((value.line, value.column), (7, 18));
    // What is missing is reported at the part that exists.
    assert_eq!(at(&stream, "/spec/disks/1/size"), (7, 9));
    assert_eq!(at(&stream, "/spec/vmid"), (2, 1));
    assert_eq!(at(&stream, "/spec/disks/7/limits/x"), (4, 3));
    assert_eq!(at(&stream, "/nothing"), (2, 1));
    assert_eq!(at(&stream, ""), (2, 1));
}

#[test]
fn a_pointer_with_escapes_finds_its_key() {
    let stream = parse(b"annotations:\n  proxops/restart: allow\n  a~b: x\n");
    assert_eq!(at(&stream, "/annotations/proxops~1restart"), (2, 3));
    assert_eq!(at(&stream, "/annotations/a~0b"), (3, 3));
}

#[test]
fn columns_count_characters_and_line_ends_do_not_matter() {
    for text in ["ä: {b: 1, c: 2}\nd: 3\n", "ä: {b: 1, c: 2}\r\nd: 3\r\n", "\u{feff}ä: {b: 1, c: 2}\nd: 3\n"]
    {
        let stream = parse(text.as_bytes());
        assert_eq!(stream.problems, [], "{text:?}");
        assert_eq!(at(&stream, "/ä/c"), (1, 11), "{text:?}");
        assert_eq!(at(&stream, "/d"), (2, 1), "{text:?}");
    }
}

#[test]
fn a_file_may_hold_several_documents_each_with_its_positions() {
    let stream = parse(b"---\na: 1\n---\n# nothing\n---\nb:\n  c: 2\n...\n");
    assert_eq!(stream.problems, []);
    let values: Vec<_> = stream.documents.iter().map(|d| d.value.clone()).collect();
    assert_eq!(values, [json!({"a": 1}), json!(null), json!({"b": {"c": 2}})]);
    assert_eq!(stream.documents[2].positions.locate("/b/c").line, 7);
    assert_eq!(parse(b"").problems, []);
}

#[test]
fn every_duplicate_key_is_reported_and_reading_goes_on() {
    assert_eq!(
        problems("a: 1\nb: {x: 1, x: 2}\na: {y: 1,\n  y: 2}\n\"a\": 3\nc: [\n"),
        [
            (2, 11, "duplicate-key"),
            (3, 1, "duplicate-key"),
            (4, 3, "duplicate-key"),
            (5, 1, "duplicate-key"),
            (7, 1, "yaml-syntax")
        ]
    );
    let found = parse(b"a: 1\n\na: 2\n").problems.remove(0);
    assert!(found.message.contains("`a`") && found.message.contains("line 1"), "{}", found.message);
    // The first one stays, with its positions.
    let stream = parse(b"a: {x: 1}\na: {y: 2}\n");
    assert_eq!(stream.documents[0].value, json!({"a": {"x": 1}}));
    assert_eq!(at(&stream, "/a/y"), (1, 1));
}

#[test]
fn an_alias_stands_for_a_whole_value_and_points_to_where_it_was_written() {
    let stream = parse(b"base: &b\n  x: 1\n  l: [1, &s 2]\nuse: *b\nlist:\n  - *b\n  - *s\n");
    assert_eq!(stream.problems, []);
    let value = &stream.documents[0].value;
    assert_eq!(value["use"], value["base"]);
    assert_eq!(value["list"], json!([value["base"], 2]));
    assert_eq!(at(&stream, "/use"), (4, 1));
    assert_eq!(at(&stream, "/use/x"), (2, 3));
    assert_eq!(at(&stream, "/list/0"), (6, 5));
    assert_eq!(at(&stream, "/list/0/l/1"), (3, 10));
}

#[test]
fn aliases_can_not_expand_without_bound() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..10 {
        let prior = vec![format!("*a{}", i - 1); 10].join(", ");
        bomb.push_str(&format!("a{i}: &a{i} [{prior}]\n"));
    }
    // a0 has 11 nodes, each next one 10 times that: a4 would be past 100,000.
    let found = problems(&bomb);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].0, found[0].2), (5, "too-many-nodes"));

    let long = "x".repeat(500_000);
    let text = format!("a: &a {long}\nb: [{}]\n", vec!["*a"; 100].join(", "));
    assert_eq!(problems(&text).iter().map(|p| p.2).collect::<Vec<_>>(), ["too-many-nodes"]);

    let mut chain = String::from("- &a0 [x]\n");
    for i in 1..200 {
        chain.push_str(&format!("- &a{i} [*a{}]\n", i - 1));
    }
    assert_eq!(problems(&chain).iter().map(|p| p.2).collect::<Vec<_>>(), ["too-deep"]);

    let many = format!("[{}]", "1, ".repeat(150_000));
    assert_eq!(problems(&many).iter().map(|p| p.2).collect::<Vec<_>>(), ["too-many-nodes"]);
}

#[test]
fn an_alias_inside_its_own_anchor_or_in_another_document_is_refused() {
    for text in ["a: &a [1, *a]\n", "a: &a {b: *a}\n", "a: &a 1\n---\nb: *a\n", "a: *nowhere\n"] {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(found[0].2, "unknown-alias", "{found:?}");
    }
}

#[test]
fn deep_nesting_is_refused_in_every_form_without_using_the_stack() {
    for text in [
        "[".repeat(1_000_000),
        "{a: ".repeat(200_000),
        "- ".repeat(500_000),
        "? ".repeat(500_000),
        (0..1400).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect::<String>(),
        format!("{}{}", "[".repeat(100), "]".repeat(100)),
    ] {
        // A key that is a mapping is refused before its depth is known.
        let found: Vec<_> = problems(&text).into_iter().filter(|p| p.2 != "key-not-text").collect();
        assert_eq!(found.len(), 1, "{}", &text[..20]);
        assert_eq!(found[0].2, "too-deep", "{found:?}");
    }
    let fits = format!("{}1{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert_eq!(problems(&fits), []);
    assert_eq!(problems(&format!("[{fits}]"))[0].2, "too-deep");
}

#[test]
fn tags_of_other_programs_make_nothing() {
    assert_eq!(problems("a: !!python/object/apply:os.system [ls]\n"), [(1, 4, "unknown-tag")]);
    assert_eq!(problems("a: !vault x\nb: !include y.yaml\n"), [(1, 4, "unknown-tag"), (2, 4, "unknown-tag")]);
    assert_eq!(problems("a: !!int x\n"), [(1, 4, "tag-mismatch")]);
    assert_eq!(problems("a: !!binary AAAA\n"), [(1, 4, "unknown-tag")]);
    assert_eq!(problems("a: !!map {b: 1}\nc: !!seq [1]\n"), []);
    assert_eq!(problems("a: !!set {b}\n"), [(1, 4, "unknown-tag")]);
}

#[test]
fn keys_that_are_not_text_are_refused() {
    assert_eq!(
        problems("1: a\ntrue: b\n~: c\n? [x]\n: d\n? {y: 1}\n: e\n&k f: 1\n"),
        [
            (1, 1, "key-not-text"),
            (2, 1, "key-not-text"),
            (3, 1, "key-not-text"),
            (4, 3, "key-not-text"),
            (6, 3, "key-not-text"),
            (8, 1, "key-not-text"),
        ]
    );
    assert_eq!(value("\"1\": a\non: b\n"), json!({"1": "a", "on": "b"}));
}

#[test]
fn a_file_full_of_mistakes_is_not_searched_to_its_end() {
    let found = problems(&"a: 1\n".repeat(5000));
    assert_eq!(found.len(), MAX_PROBLEMS + 1);
    assert_eq!(found[MAX_PROBLEMS].2, "too-many-mistakes");
}

#[test]
fn a_tab_in_the_indentation_is_named_where_it_stands() {
    for (text, place) in
        [("a: 1\n\tb: 2\n", (2, 1)), ("a:\n  b: 1\n  \tc: 2\n", (3, 3)), ("a:\n\t- 1\n", (2, 1))]
    {
        let found = parse(text.as_bytes()).problems.remove(0);
        assert_eq!((found.at.line, found.at.column), place, "{text:?}");
        assert!(found.message.contains("tab"), "{}", found.message);
    }
}

#[test]
fn nothing_is_merged() {
    assert_eq!(problems("a: &a {x: 1}\nb:\n  <<: *a\n  y: 2\n"), [(3, 3, "merge-key")]);
    assert_eq!(problems("'<<': 1\n"), []);
}

#[test]
fn numbers_out_of_range_are_refused_and_never_repeated() {
    for text in [
        "9223372036854775808",
        "-9223372036854775809",
        "0xffffffffffffffff",
        ".inf",
        "-.INF",
        ".nan",
        "1e999",
    ] {
        let found = parse(format!("a: {text}\n").as_bytes()).problems;
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!((found[0].code, found[0].at.column), ("number-range", 4), "{text}");
        assert!(!found[0].message.contains(text), "{}", found[0].message);
    }
}

#[test]
fn what_is_no_text_file_is_refused_with_its_place() {
    let place = |bytes: &[u8]| {
        let stream = parse(bytes);
        assert!(stream.documents.is_empty());
        let p = &stream.problems[0];
        (p.at.line, p.at.column, p.code)
    };
    assert_eq!(place(b"a: 1\nb: \xff\n"), (2, 4, "not-utf8"));
    assert_eq!(place(b"a: 1\r\nb\x00c\n"), (2, 2, "control-character"));
    assert_eq!(place(b"a: \x1b[2J\n"), (1, 4, "control-character"));
    assert_eq!(place(b"\xff\xfea\x00"), (1, 1, "not-utf8"));
    assert_eq!(place(b"\x7fELF\x02\x01"), (1, 1, "control-character"));
    assert_eq!(place(&vec![b'a'; MAX_BYTES + 1]), (1, 1, "file-too-large"));
    let message = parse(&vec![b'a'; MAX_BYTES + 1]).problems.remove(0).message;
    assert!(message.contains("more than"), "no more than that was read, so no size is told: {message}");
    let long_line = format!("a: {}\n", "x".repeat(MAX_BYTES - 4));
    assert_eq!(problems(&long_line), []);
}

#[test]
fn broken_syntax_is_reported_with_its_place() {
    for (text, line) in [
        ("a: 1\n\tb: 2\n", 2),
        ("a: [1, 2\nb: 3\n", 2),
        ("a: 'x\n", 1),
        ("a: b: c\n", 1),
        ("a: 1\n b: 2\n", 2),
        ("a: @x\n", 1),
        ("- a\nb: 1\n", 2),
        ("a: \"\\q\"\n", 1),
    ] {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{text:?} {found:?}");
        assert_eq!((found[0].0, found[0].2), (line, "yaml-syntax"), "{text:?}");
    }
    // Documents before the mistake are kept.
    let stream = parse(b"a: 1\n---\nb: [\n");
    assert_eq!((stream.documents.len(), stream.problems.len()), (1, 1));
}
