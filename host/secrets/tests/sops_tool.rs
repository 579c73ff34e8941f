//! Both ways with the real sops tool. Skipped with a note where it is not installed.

// Helpers of tests are not in test functions, where clippy.toml already allows it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::{AgeKey, Tool, cluster_document, cluster_tree, json, map, now, sources, sources_at};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use proxops_secrets::{Decrypted, Document, Kind, Secret, SopsError, Value};

/// Every shape and scalar form that the format can hold, plain and encrypted.
const ALL_SHAPES: &str = r##"# top comment
a: str
b: 12   # line comment
c: 1.50
d: true
t: 2024-01-02T03:04:05.5Z
t2: 2024-01-02
e: ""
n: null
l: []
m: {}
list:
  # in list
  - one
  - 2
  - x: y
    # foot in item
  - [1, 2]
  - null
  - ""
multi: |
  line1
  line2 # not comment

unicode: "héllo ☃ 𝄞"
folded: >-
  one
  two
hex: 0x1F
big: 123456789012345678901234567890.5
"quoted key: x": "'"
text_number: "12"
u_unencrypted:
  # comment in unencrypted
  a: 1_0
  b: 0x1F
  c: 017
  d: 1.50
  t: 2024-01-02T03:04:05.5+02:00
  t2: 2024-01-02
  t3: 2024-01-02 03:04:05
  bin: !!binary aGVsbG8=
  s: "quoted"
  y: yes
  e: 1e3
  tiny: 1e-20
  sx: !!str 12
  ff: !!float 3
  nn: ~
  tt: TRUE
  neg: -5
  multi: |
    a
      b
  list:
  # c
  - 1
  - {a: b}
# end comment
"##;

fn read(text: &str, key: &AgeKey) -> Decrypted {
    Document::decrypt(text, "x.sops.yaml", &key.sources()).unwrap()
}

#[test]
fn a_document_of_the_tool_is_read_with_every_type_and_shape() {
    let Some(tool) = Tool::find() else { return };
    let key = AgeKey::new();
    let text = tool.encrypt(ALL_SHAPES, &key.public, &[]);
    let ours = read(&text, &key);
    let get = |path: &str| ours.get(path).unwrap().expose().to_owned();
    assert_eq!(get("multi"), "line1\nline2 # not comment\n");
    assert_eq!(get("folded"), "one two");
    assert_eq!(get("unicode"), "héllo ☃ 𝄞");
    assert_eq!(get("d"), "true");
    assert_eq!(get("hex"), "31");
    assert_eq!(get("t"), "2024-01-02T03:04:05.5Z");
    assert_eq!(get("list.0"), "one");
    assert_eq!(get("list.2.x"), "y");
    assert_eq!(get("list.3.1"), "2");
    assert_eq!(get("quoted key: x"), "'");
    assert_eq!(get("u_unencrypted.c"), "15");
    assert_eq!(json(&read(&text, &key).documents()[0]), tool.decrypt(&text, &key));
}

/// JSON has no form for these, so they have a test of their own.
#[test]
fn infinities_and_nan_are_read() {
    let Some(tool) = Tool::find() else { return };
    let key = AgeKey::new();
    let text =
        tool.encrypt("a: .inf\nb: -.Inf\nc: .nan\nu_unencrypted: [.inf, -.INF, .NaN]\n", &key.public, &[]);
    let ours = read(&text, &key);
    assert_eq!(ours.get("a").unwrap().expose(), "+Inf");
    assert_eq!(ours.get("u_unencrypted.1").unwrap().expose(), "-Inf");
}

#[test]
fn an_edited_document_is_read_by_the_tool_with_old_values_and_comments_intact() {
    let Some(tool) = Tool::find() else { return };
    let key = AgeKey::new();
    let before = tool.encrypt(ALL_SHAPES, &key.public, &[]);
    let mut expected = tool.decrypt(&before, &key);
    let mut ours = read(&before, &key);
    ours.add_values([
        (vec!["cloud-init", "ssh-keys", "adopted-01"], Secret::new("ssh-ed25519 AAAA x@y")),
        (vec!["cloud-init", "ssh-keys", "adopted-02"], Secret::new("ssh-ed25519 BBBB x@y")),
        (vec!["list_unencrypted", "plain text"], Secret::new("yes: #no \u{1F600}\u{85}\t\"q\"\\")),
        (vec!["u_unencrypted", "new"], Secret::new("12")),
        (vec!["m", "filled"], Secret::new("multi\nline\n")),
        (vec!["n"], Secret::new("was null")),
        (vec!["a"], Secret::new("replaced")),
        (vec!["u_unencrypted", "multi"], Secret::new("was a block")),
    ])
    .unwrap();
    ours.set(
        &["tree"],
        &map(&[("list", Value::List(vec![Value::int(1), map(&[("x", Value::List(vec![]))])]))]),
    )
    .unwrap();
    let after = ours.encrypt_to_string(now()).unwrap();

    expected["cloud-init"] = serde_json::json!({"ssh-keys": {"adopted-01": "ssh-ed25519 AAAA x@y", "adopted-02": "ssh-ed25519 BBBB x@y"}});
    expected["list_unencrypted"] = serde_json::json!({"plain text": "yes: #no \u{1F600}\u{85}\t\"q\"\\"});
    expected["u_unencrypted"]["new"] = "12".into();
    expected["m"] = serde_json::json!({"filled": "multi\nline\n"});
    expected["n"] = "was null".into();
    expected["a"] = "replaced".into();
    expected["u_unencrypted"]["multi"] = "was a block".into();
    expected["tree"] = serde_json::json!({"list": [1, {"x": []}]});
    assert_eq!(tool.decrypt(&after, &key), expected);
    assert_eq!(json(&read(&after, &key).documents()[0]), expected);

    let yaml = tool.decrypt_yaml(&after, &key);
    for comment in
        ["top comment", "line comment", "in list", "foot in item", "end comment", "comment in unencrypted"]
    {
        assert!(yaml.contains(&format!("# {comment}\n")), "{comment} is gone:\n{yaml}");
    }
    let kept = before.lines().filter(|line| after.lines().any(|other| other == *line)).count();
    // Of the old lines only these go: a, n, m, the block of three lines, lastmodified, mac.
    assert_eq!(before.lines().count() - kept, 8, "{after}");
}

#[test]
fn what_the_tool_makes_of_our_edit_is_read_again() {
    let Some(tool) = Tool::find() else { return };
    let key = AgeKey::new();
    let mut ours = read(&tool.encrypt("a: x # note\n", &key.public, &[]), &key);
    ours.add_values([(vec!["b", "c"], Secret::new("y"))]).unwrap();
    let file = tool.write("edit.yaml", &ours.encrypt_to_string(now()).unwrap());
    tool.run(&[("SOPS_AGE_KEY", &key.secret)], &["set", "edit.yaml", r#"["b"]["d"]"#, "\"z\""]);
    let again = read(&std::fs::read_to_string(file).unwrap(), &key);
    assert_eq!(json(&again.documents()[0]), serde_json::json!({"a": "x", "b": {"c": "y", "d": "z"}}));
}

#[test]
fn a_new_document_is_read_by_the_tool() {
    let Some(tool) = Tool::find() else { return };
    let key = AgeKey::new();
    assert_eq!(tool.decrypt(&cluster_document(&key), &key), json(&cluster_tree()));
    let tree = map(&[
        ("no", Value::bool(false)),
        ("12", Value::float(1e300)),
        ("tiny", Value::float(5e-324)),
        ("min", Value::int(i64::MIN)),
        ("null", Value::null()),
        (
            "a: b #c",
            Value::List(vec![Value::List(vec![Value::str("~"), Value::Map(vec![])]), Value::bool(true)]),
        ),
        (
            "é\n",
            map(&[(
                "",
                map(&[("deep", Value::List(vec![map(&[("k", Value::str(" ")), ("l", Value::null())])]))]),
            )]),
        ),
        (
            "p_unencrypted",
            Value::List(vec![
                Value::str("null"),
                Value::str("- x"),
                Value::str("2024-01-01"),
                Value::int(-1),
            ]),
        ),
    ]);
    let text = Document::create("x.yaml", std::slice::from_ref(&key.public), &tree, now()).unwrap();
    assert_eq!(tool.decrypt(&text, &key), json(&tree));
    assert_eq!(read(&text, &key).documents(), [tree]);
}

/// JSON on one line that is YAML too, where these would end the line.
fn json_in_yaml(value: &serde_json::Value) -> String {
    let breaks = [("\u{85}", "\\u0085"), ("\u{2028}", "\\u2028"), ("\u{2029}", "\\u2029")];
    breaks.iter().fold(value.to_string(), |text, (raw, escaped)| text.replace(raw, escaped))
}

/// Fewer cases than elsewhere: each starts the tool twice.
#[test]
fn any_tree_means_the_same_to_the_tool() {
    let Some(tool) = Tool::find() else { return };
    let key = AgeKey::new();
    let config = Config { failure_persistence: None, ..Config::with_cases(24) };
    let finite = common::tree().prop_filter("no form in JSON", |tree| !has_infinity(tree));
    TestRunner::new(config)
        .run(&finite, |tree| {
            let ours = Document::create("x.yaml", std::slice::from_ref(&key.public), &tree, now()).unwrap();
            let theirs = tool.decrypt(&ours, &key);
            prop_assert!(common::same(&theirs, &json(&tree)), "{theirs}");
            let text = tool.encrypt(&json_in_yaml(&theirs), &key.public, &[]);
            if tool.reads(&text, &key) {
                let again = json(&read(&text, &key).documents()[0]);
                prop_assert!(common::same(&again, &tool.decrypt(&text, &key)), "{again}");
            } else {
                let refused = Document::decrypt(&text, "x.sops.yaml", &key.sources());
                let as_the_tool = matches!(refused, Err(SopsError::MacMismatch { .. }));
                prop_assert!(as_the_tool, "the tool can't read it, and {:?}", refused.map(|_| "we do"));
            }
            Ok(())
        })
        .unwrap();
}

/// It writes `-0`, which is the whole number 0 when it is read: neither reads it, and ours fails in the same way.
#[test]
fn a_negative_zero_that_the_tool_writes_in_plain_is_refused_as_the_tool_refuses_it() {
    let Some(tool) = Tool::find() else { return };
    let key = AgeKey::new();
    let text = tool.encrypt(r#"{"_unencrypted": [-0.0]}"#, &key.public, &[]);
    assert!(!tool.reads(&text, &key));
    let refused = Document::decrypt(&text, "x.sops.yaml", &key.sources());
    assert!(matches!(refused, Err(SopsError::MacMismatch { .. })));
}

fn has_infinity(value: &Value) -> bool {
    match value {
        Value::Map(entries) => entries.iter().any(|(_, value)| has_infinity(value)),
        Value::List(items) => items.iter().any(has_infinity),
        Value::Scalar(kind, bytes) => *kind == Kind::Float && bytes.ends_with(b"Inf"),
    }
}

#[test]
fn every_recipient_still_opens_the_document_after_an_edit() {
    let Some(tool) = Tool::find() else { return };
    let keys = [AgeKey::new(), AgeKey::new(), AgeKey::new()];
    let all = keys.iter().map(|key| key.public.as_str()).collect::<Vec<_>>().join(",");
    let before = tool.encrypt("a: 1\n", &all, &[]);
    let mut ours = read(&before, &keys[2]);
    ours.add_values([(vec!["b"], Secret::new("2"))]).unwrap();
    let after = ours.encrypt_to_string(now()).unwrap();
    for key in &keys {
        assert_eq!(tool.decrypt(&after, key), serde_json::json!({"a": 1, "b": "2"}));
        assert_eq!(read(&after, key).get("b").unwrap().expose(), "2");
    }
}

fn ssh_keygen(path: &Path, kind: &[&str], passphrase: &str) -> Option<String> {
    let status = Command::new("ssh-keygen")
        .args(["-q", "-C", "test", "-N", passphrase, "-f"])
        .arg(path)
        .args(kind)
        .stdin(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => {
            Some(std::fs::read_to_string(path.with_extension("pub")).unwrap().trim().to_owned())
        }
        _ => {
            println!("skipped: no ssh-keygen");
            None
        }
    }
}

#[test]
fn ssh_recipients_work_from_the_named_file_and_from_the_home_directory() {
    let Some(tool) = Tool::find() else { return };
    let other = AgeKey::new();
    for (name, kind) in [("id_ed25519", &["-t", "ed25519"][..]), ("id_rsa", &["-t", "rsa", "-b", "2048"])] {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".ssh")).unwrap();
        let private = home.path().join(".ssh").join(name);
        let Some(public) = ssh_keygen(&private, kind, "") else { return };
        let text = tool.encrypt("a: secret\n", &public, &[]);

        let named = sources(&[("SOPS_AGE_SSH_PRIVATE_KEY_FILE", private.to_str().unwrap())]);
        let mut ours = Document::decrypt(&text, "x", &named).unwrap();
        // A key that does not fit and a source that fails do not stop the one that fits.
        let home_only = sources_at(
            &[("SOPS_AGE_KEY", &other.secret), ("SOPS_AGE_SSH_PRIVATE_KEY_FILE", "/nonexistent/key")],
            Some(home.path()),
        );
        assert_eq!(Document::decrypt(&text, "x", &home_only).unwrap().get("a").unwrap().expose(), "secret");

        ours.add_values([(vec!["b"], Secret::new("new"))]).unwrap();
        tool.write("ssh.yaml", &ours.encrypt_to_string(now()).unwrap());
        let env = [("SOPS_AGE_SSH_PRIVATE_KEY_FILE", private.to_str().unwrap())];
        assert_eq!(tool.run(&env, &["decrypt", "ssh.yaml"]), "a: secret\nb: new\n");

        let created = Document::create("x", &[public], &map(&[("c", Value::str("ours"))]), now()).unwrap();
        tool.write("ours.yaml", &created);
        assert_eq!(tool.run(&env, &["decrypt", "ours.yaml"]), "c: ours\n");
    }
}

#[test]
fn an_ssh_key_with_a_passphrase_is_refused_by_name_and_reason() {
    let Some(tool) = Tool::find() else { return };
    let private = tool.path("locked");
    let Some(public) = ssh_keygen(&private, &["-t", "ed25519"], "sesame-7") else { return };
    let text = tool.encrypt("a: secret\n", &public, &[]);
    let named = sources(&[("SOPS_AGE_SSH_PRIVATE_KEY_FILE", private.to_str().unwrap())]);
    let error = Document::decrypt(&text, "x.sops.yaml", &named).unwrap_err();
    assert!(matches!(error, SopsError::NoIdentity { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("protected by a passphrase") && message.contains("locked"), "{message}");
    let other = AgeKey::new();
    let both = sources(&[
        ("SOPS_AGE_SSH_PRIVATE_KEY_FILE", private.to_str().unwrap()),
        ("SOPS_AGE_KEY", &other.secret),
    ]);
    let error = Document::decrypt(&text, "x.sops.yaml", &both).unwrap_err();
    assert!(matches!(&error, SopsError::NoMatchingIdentity { tried: 1, .. }), "{error}");
    assert!(error.to_string().contains("protected by a passphrase"), "{error}");
}

const RULED: &str = "user: root\npassword: p1\nnested:\n    password:\n        deep: p2\n    list:\n        - l1\nx_secret: p3\n";

#[test]
fn the_rules_for_what_is_encrypted_hold_in_both_directions() {
    let Some(tool) = Tool::find() else { return };
    let key = AgeKey::new();
    // The option, a path that it leaves plain, one that it encrypts.
    for (options, plain, secret) in [
        (&["--encrypted-regex", "^pass"][..], vec!["user2"], vec!["nested", "password", "deep2"]),
        (&["--unencrypted-regex", "^(user|list)"], vec!["user2"], vec!["password2"]),
        (&["--encrypted-suffix", "_secret"], vec!["nested", "password", "deep2"], vec!["y_secret", "z"]),
        (&["--unencrypted-suffix", "_plain"], vec!["a_plain", "b"], vec!["nested", "c_unencrypted"]),
    ] {
        let text = tool.encrypt(RULED, &key.public, options);
        let mut ours = read(&text, &key);
        assert_eq!(json(&ours.documents()[0]), tool.decrypt(&text, &key), "{options:?}");
        ours.add_values([
            (plain.clone(), Secret::new("visible-1")),
            (secret.clone(), Secret::new("hidden-2")),
        ])
        .unwrap();
        let after = ours.encrypt_to_string(now()).unwrap();
        assert!(after.contains("visible-1") && !after.contains("hidden-2"), "{options:?}\n{after}");
        let back = tool.decrypt(&after, &key);
        assert_eq!(back.pointer(&format!("/{}", plain.join("/"))).unwrap(), "visible-1", "{options:?}");
        assert_eq!(back.pointer(&format!("/{}", secret.join("/"))).unwrap(), "hidden-2", "{options:?}");
    }
}

fn with_config(tool: &Tool, config: &str, plain: &str) -> String {
    tool.write("config.yaml", config);
    tool.write("plain.yaml", plain);
    tool.run(&[], &["--config", "config.yaml", "encrypt", "plain.yaml"])
}

#[test]
fn comments_can_choose_what_is_encrypted() {
    let Some(tool) = Tool::find() else { return };
    let key = AgeKey::new();
    let plain = "# mark\na: 1\nb: x\n# mark\n# other\nc:\n    d: 1\n    # inner\n    e: x\nf: 3 # mark\ng:\n    - h\n    # mark\n    - i\n    - k: l\n      # mark\n      m: n\n    - j\n";
    for rule in ["encrypted_comment_regex", "unencrypted_comment_regex"] {
        let config = format!("creation_rules:\n  - age: {}\n    {rule}: mark\n", key.public);
        let text = with_config(&tool, &config, plain);
        let mut ours = read(&text, &key);
        assert_eq!(json(&ours.documents()[0]), tool.decrypt(&text, &key), "{rule}\n{text}");
        ours.add_values([
            (vec!["c", "added"], Secret::new("below-mark")),
            (vec!["z"], Secret::new("no-mark")),
        ])
        .unwrap();
        let after = ours.encrypt_to_string(now()).unwrap();
        assert_eq!(after.contains("below-mark"), rule == "unencrypted_comment_regex", "{after}");
        assert_eq!(after.contains("no-mark"), rule == "encrypted_comment_regex", "{after}");
        assert_eq!(tool.decrypt(&after, &key)["c"]["added"], "below-mark");
    }
}

#[test]
fn with_mac_only_encrypted_plain_values_are_free_to_change() {
    let Some(tool) = Tool::find() else { return };
    let key = AgeKey::new();
    let config = format!("creation_rules:\n  - age: {}\n    mac_only_encrypted: true\n", key.public);
    let text = with_config(&tool, &config, "a: s\nb_unencrypted: free\n");
    let edited = text.replace("b_unencrypted: free", "b_unencrypted: changed");
    let mut ours = read(&edited, &key);
    assert_eq!(ours.get("b_unencrypted").unwrap().expose(), "changed");
    ours.add_values([(vec!["c"], Secret::new("x")), (vec!["d_unencrypted"], Secret::new("y"))]).unwrap();
    let back = tool.decrypt(&ours.encrypt_to_string(now()).unwrap(), &key);
    assert_eq!(
        back,
        serde_json::json!({"a": "s", "b_unencrypted": "changed", "c": "x", "d_unencrypted": "y"})
    );
}

#[test]
fn several_yaml_documents_in_one_file_share_one_mac() {
    let Some(tool) = Tool::find() else { return };
    let key = AgeKey::new();
    let text = tool.encrypt("a: 1\n---\nb:\n  c: two\n---\nd:\n  - 3\n", &key.public, &[]);
    let mut ours = read(&text, &key);
    assert_eq!(ours.documents().len(), 3);
    assert_eq!(ours.get("b.c").unwrap().expose(), "two");
    ours.add_values([(vec!["b", "e"], Secret::new("four"))]).unwrap();
    let after = ours.encrypt_to_string(now()).unwrap();
    assert_eq!(tool.decrypt_yaml(&after, &key), "a: 1\n---\nb:\n    c: two\n    e: four\n---\nd:\n    - 3\n");
    let swapped = {
        let mut parts: Vec<&str> = text.split("\n---\n").collect();
        parts.swap(0, 1);
        parts.join("\n---\n")
    };
    let error = Document::decrypt(&swapped, "x", &key.sources()).unwrap_err();
    assert!(matches!(error, SopsError::MacMismatch { .. }), "{error}");
}

#[test]
fn a_document_in_flow_style_is_read_and_not_edited() {
    let Some(tool) = Tool::find() else { return };
    let key = AgeKey::new();
    tool.write("plain.yaml", "a:\n  b: s\n  c: [1]\n");
    let text = tool.run(&[], &["encrypt", "--age", &key.public, "--output-type", "json", "plain.yaml"]);
    let mut ours = read(&text, &key);
    assert_eq!(json(&ours.documents()[0]), serde_json::json!({"a": {"b": "s", "c": [1]}}));
    for path in [&["a", "new"][..], &["a", "b"], &["new"]] {
        let error = ours.set(path, &Value::str("x")).unwrap_err();
        assert!(matches!(error, SopsError::ReadOnly { .. }), "{path:?}: {error}");
    }
}

#[test]
fn a_key_split_over_groups_is_joined_when_enough_groups_open() {
    let Some(tool) = Tool::find() else { return };
    let keys = [AgeKey::new(), AgeKey::new(), AgeKey::new()];
    let groups: String = keys.iter().map(|key| format!("      - age: [{}]\n", key.public)).collect();
    let config = format!("creation_rules:\n  - shamir_threshold: 2\n    key_groups:\n{groups}");
    let text = with_config(&tool, &config, "a: split\n");
    let two = sources(&[("SOPS_AGE_KEY", &format!("{}\n{}", keys[2].secret, keys[0].secret))]);
    let mut ours = Document::decrypt(&text, "x", &two).unwrap();
    assert_eq!(ours.get("a").unwrap().expose(), "split");
    ours.add_values([(vec!["b"], Secret::new("c"))]).unwrap();
    tool.write("split.yaml", &ours.encrypt_to_string(now()).unwrap());
    let env = [("SOPS_AGE_KEY", format!("{}\n{}", keys[1].secret, keys[0].secret))];
    assert_eq!(tool.run(&[(env[0].0, &env[0].1)], &["decrypt", "split.yaml"]), "a: split\nb: c\n");
    let error = Document::decrypt(&text, "x", &keys[1].sources()).unwrap_err();
    assert!(matches!(error, SopsError::NoMatchingIdentity { .. }), "{error}");
    assert!(error.to_string().contains("1 of the 2 key groups"), "{error}");
}

/// A `sops` on `PATH` that sees the keyring of the test.
fn wrapper(tool: &Tool, gnupg: &Path) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let bin = tool.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\nGNUPGHOME='{}' SOPS_DISABLE_VERSION_CHECK=1 exec '{}' \"$@\"\n",
        gnupg.display(),
        tool.program.display()
    );
    std::fs::write(bin.join("sops"), script).unwrap();
    std::fs::set_permissions(bin.join("sops"), std::fs::Permissions::from_mode(0o755)).unwrap();
    bin
}

#[test]
fn a_document_for_pgp_goes_through_the_program_and_says_so_without_it() {
    let Some(tool) = Tool::find() else { return };
    // The socket of gpg's agent needs a short path.
    let gnupg = tempfile::Builder::new().prefix("gpg").tempdir_in("/tmp").unwrap();
    let gpg = |arguments: &[&str]| {
        Command::new("gpg").args(arguments).env("GNUPGHOME", gnupg.path()).stderr(Stdio::null()).output()
    };
    let made = gpg(&[
        "--batch",
        "--passphrase",
        "",
        "--quick-generate-key",
        "t@example.org",
        "default",
        "default",
        "never",
    ]);
    if !made.is_ok_and(|output| output.status.success()) {
        println!("skipped: no gpg");
        return;
    }
    let listing = String::from_utf8(gpg(&["--list-keys", "--with-colons"]).unwrap().stdout).unwrap();
    let fingerprint = listing.lines().find_map(|line| line.strip_prefix("fpr:")).unwrap().trim_matches(':');
    tool.write("plain.yaml", "secrets:\n    pve-token: via-pgp\n    n: 5\n");
    let home = gnupg.path().to_str().unwrap();
    let text = tool.run(&[("GNUPGHOME", home)], &["encrypt", "--pgp", fingerprint, "plain.yaml"]);
    let bin = wrapper(&tool, gnupg.path());

    let mut ours =
        Document::decrypt(&text, "x.sops.yaml", &sources(&[("PATH", bin.to_str().unwrap())])).unwrap();
    assert_eq!(ours.credential("pve-token").unwrap().expose(), "via-pgp");
    assert_eq!(ours.credential("n").unwrap().expose(), "5");
    let error = ours.add_values([(vec!["a"], Secret::new("b"))]).unwrap_err();
    assert!(matches!(error, SopsError::ReadOnly { .. }), "{error}");

    let tampered = text.replace("pve-token:", "pve-tokem:");
    let error = Document::decrypt(&tampered, "x.sops.yaml", &sources(&[("PATH", bin.to_str().unwrap())]))
        .unwrap_err();
    assert!(matches!(error, SopsError::KeyService { .. } | SopsError::MacMismatch { .. }), "{error}");

    let error = Document::decrypt(&text, "x.sops.yaml", &sources(&[("PATH", "/nonexistent")])).unwrap_err();
    assert!(matches!(&error, SopsError::KeyService { services, .. } if services == &["pgp"]), "{error}");
    assert!(error.to_string().contains("`sops` program on PATH"), "{error}");
    let _ = Command::new("gpgconf").args(["--kill", "all"]).env("GNUPGHOME", gnupg.path()).status();
}
