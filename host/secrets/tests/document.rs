//! Documents without the tool: errors, tampering, edits, reloading, and input that is no document.

// Helpers of tests are not in test functions, where clippy.toml already allows it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};

use common::{AgeKey, cluster_document, map, now, sources, sources_at, text, tree};
use proptest::prelude::*;
use proxops_secrets::{
    ClusterSecrets, Decrypted, Document, IdentitySources, Reload, Secret, SecretStore, SopsError, Value,
};

const FILE: &str = "clusters/lab/secrets.sops.yaml";

fn decrypt(text: &str, sources: &IdentitySources) -> Result<Decrypted, SopsError> {
    Document::decrypt(text, FILE, sources)
}

fn line<'a>(text: &'a str, key: &str) -> &'a str {
    text.lines().find(|line| line.trim_start().starts_with(key)).unwrap()
}

#[test]
fn the_shared_fixture_of_the_real_tool_opens_with_its_key() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/acceptance/base.toml");
    let Ok(base) = std::fs::read_to_string(&path) else {
        println!("skipped: no {}", path.display());
        return;
    };
    let part = base.split("[part.sops]").nth(1).unwrap();
    let key = part.split("SOPS_AGE_KEY = \"").nth(1).unwrap().split('"').next().unwrap();
    let text = part.split("'''\n").nth(1).unwrap();
    let ours = decrypt(text, &sources(&[("SOPS_AGE_KEY", key)])).unwrap();
    assert_eq!(ours.names("secrets"), ["pve-user", "pve-token-id", "pve-token", "pve-password"]);
    assert!(!ours.credential("pve-token").unwrap().is_empty());
    assert_eq!(ours.get("cloud-init.passwords.ops").unwrap().expose(), "Rabbit-fixture-7-moon");
    assert!(ours.ssh_keys()[0].1.starts_with("ssh-ed25519 "));
}

#[test]
fn values_are_found_by_dot_path() {
    let key = AgeKey::new();
    let ours = decrypt(&cluster_document(&key), &key.sources()).unwrap();
    assert_eq!(ours.get("cloud-init.passwords.ops").unwrap().expose(), "correct horse");
    assert_eq!(ours.get("cloud-init.passwords.pin").unwrap().expose(), "1234");
    assert_eq!(ours.credential("pve-token").unwrap().expose(), "tok-3f1c");
    assert_eq!(ours.names("cloud-init.passwords"), ["ops", "pin"]);
    assert_eq!(ours.names("nowhere"), Vec::<String>::new());
    assert_eq!(ours.ssh_keys(), [("ops".to_owned(), "ssh-ed25519 AAAAC3Nz ops@example".to_owned())]);
}

#[test]
fn a_name_may_contain_dots() {
    let key = AgeKey::new();
    let tree = map(&[(
        "passwords",
        map(&[("web", map(&[("x", Value::str("1"))])), ("web.example.org", Value::str("2"))]),
    )]);
    let text = Document::create(FILE, std::slice::from_ref(&key.public), &tree, now()).unwrap();
    let ours = decrypt(&text, &key.sources()).unwrap();
    assert_eq!(ours.get("passwords.web.example.org").unwrap().expose(), "2");
    assert_eq!(ours.get("passwords.web.x").unwrap().expose(), "1");
}

#[test]
fn each_way_to_fail_is_its_own_error_and_names_the_file() {
    let (key, other) = (AgeKey::new(), AgeKey::new());
    let text = cluster_document(&key);
    let fails = |text: &str, sources: &IdentitySources| {
        let error = decrypt(text, sources).unwrap_err();
        assert!(error.to_string().starts_with(FILE), "{error}");
        error
    };
    assert!(matches!(fails("a: b\n", &key.sources()), SopsError::NotEncrypted { .. }));
    assert!(matches!(fails("", &key.sources()), SopsError::NotEncrypted { .. }));
    for broken in
        ["a: [\n", "- a\n", "just text\n", "sops: {}\n", "a: 1\na: 2\n", "1: x\nsops: {}\n", "a: *b\n"]
    {
        assert!(matches!(fails(broken, &key.sources()), SopsError::Malformed { .. }), "{broken}");
    }
    for field in ["version: ", "mac: ", "lastmodified: "] {
        let cut: String =
            text.lines().filter(|l| !l.trim_start().starts_with(field)).map(|l| format!("{l}\n")).collect();
        assert!(matches!(fails(&cut, &key.sources()), SopsError::Malformed { .. }), "{field}");
    }
    assert!(matches!(fails(&text, &sources(&[])), SopsError::NoIdentity { .. }));
    assert!(matches!(fails(&text, &other.sources()), SopsError::NoMatchingIdentity { tried: 1, .. }));

    let ours = decrypt(&text, &key.sources()).unwrap();
    let missing = ours.get("cloud-init.passwords.opps").unwrap_err();
    assert!(
        matches!(&missing, SopsError::MissingKey { nearest: Some(n), .. } if n == "cloud-init.passwords.ops"),
        "{missing}"
    );
    assert!(matches!(ours.get("entirely.else").unwrap_err(), SopsError::MissingKey { nearest: None, .. }));
    assert!(
        matches!(ours.credential("blank").unwrap_err(), SopsError::EmptyKey { key, .. } if key == "secrets.blank")
    );
    assert!(matches!(ours.get("cloud-init.passwords").unwrap_err(), SopsError::WrongShape { .. }));
}

#[test]
fn the_error_without_an_identity_says_where_one_was_looked_for() {
    let key = AgeKey::new();
    let home = tempfile::tempdir().unwrap();
    let error = decrypt(
        &cluster_document(&key),
        &sources_at(&[("SOPS_AGE_KEY_FILE", "/nonexistent/keys.txt")], Some(home.path())),
    )
    .unwrap_err()
    .to_string();
    for place in
        ["~/.ssh/id_ed25519", "SOPS_AGE_KEY", ".config/sops/age/keys.txt", "SOPS_AGE_KEY_FILE: /nonexistent"]
    {
        assert!(error.contains(place), "{place} not in {error}");
    }
}

#[test]
fn identities_are_found_in_every_place() {
    let (key, other) = (AgeKey::new(), AgeKey::new());
    let text = cluster_document(&key);
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("my keys.txt");
    std::fs::write(&keys, format!("# created: today\n\n{}\n{}\n", other.secret, key.secret)).unwrap();
    let config = dir.path().join("config/sops/age");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::copy(&keys, config.join("keys.txt")).unwrap();
    let home = dir.path().join("home");
    std::fs::create_dir_all(home.join(".config/sops/age")).unwrap();
    std::fs::copy(&keys, home.join(".config/sops/age/keys.txt")).unwrap();

    let command = format!("cat '{}'", keys.display());
    let both = format!("{} {}", other.secret, key.secret);
    let xdg = dir.path().join("config");
    for (name, value) in [
        ("SOPS_AGE_KEY", both.as_str()),
        ("SOPS_AGE_KEY_FILE", keys.to_str().unwrap()),
        ("SOPS_AGE_KEY_CMD", &command),
        ("XDG_CONFIG_HOME", xdg.to_str().unwrap()),
    ] {
        assert!(decrypt(&text, &sources(&[(name, value)])).is_ok(), "{name}");
    }
    assert!(decrypt(&text, &sources_at(&[], Some(&home))).is_ok(), "~/.config");
    // A source that fails does not stop those after it, and is named only when nothing decrypts.
    let broken = [("SOPS_AGE_KEY", "nonsense"), ("SOPS_AGE_KEY_FILE", "/nonexistent")];
    assert!(decrypt(&text, &sources_at(&broken, Some(&home))).is_ok());
    let error =
        decrypt(&text, &sources(&[broken[0], ("SOPS_AGE_KEY_CMD", "false")])).unwrap_err().to_string();
    assert!(
        error.contains("SOPS_AGE_KEY: line 1") && error.contains("SOPS_AGE_KEY_CMD: false ended"),
        "{error}"
    );
    assert!(!error.contains("nonsense"), "{error}");
}

#[test]
fn a_command_for_keys_is_not_given_to_a_shell() {
    let key = AgeKey::new();
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("mark");
    let command = format!("echo {} ; touch {}", key.secret, mark.display());
    assert!(decrypt(&cluster_document(&key), &sources(&[("SOPS_AGE_KEY_CMD", &command)])).is_err());
    assert!(!mark.exists());
}

#[test]
fn a_value_moved_to_another_key_is_a_mac_mismatch_at_that_key() {
    let key = AgeKey::new();
    let text = cluster_document(&key);
    let token = line(&text, "pve-token:");
    let moved = text.replace(line(&text, "ops: ENC"), &token.replace("pve-token", "    ops"));
    let error = decrypt(&moved, &key.sources()).unwrap_err();
    assert!(matches!(&error, SopsError::MacMismatch { key: Some(k), .. } if k.ends_with(".ops")), "{error}");
}

#[test]
fn a_document_tampered_with_in_any_of_its_parts_is_refused_and_shows_no_value() {
    let key = AgeKey::new();
    let text = cluster_document(&key);
    // Another character in the middle of a base64 text.
    let flip = |line: &str, after: &str| {
        let at = line.find(after).unwrap() + after.len() + 3;
        let other = if &line[at..=at] == "A" { "B" } else { "A" };
        text.replace(line, &format!("{}{other}{}", &line[..at], &line[at + 1..]))
    };
    let (token, password) = (line(&text, "pve-token:").to_owned(), line(&text, "ops: ENC").to_owned());
    let sealed = |line: &str| line.split_once(": ").unwrap().1.to_owned();
    let swapped = text
        .replace(&sealed(&token), "@")
        .replace(&sealed(&password), &sealed(&token))
        .replace('@', &sealed(&password));
    let armour = text.lines().position(|l| l.contains("BEGIN AGE")).unwrap();
    let recipient = text.lines().nth(armour + 2).unwrap().to_owned();
    let at = recipient.len() - 8;
    let other = if &recipient[at..=at] == "A" { "B" } else { "A" };
    let recipient = text.replace(&recipient, &format!("{}{other}{}", &recipient[..at], &recipient[at + 1..]));
    let without =
        |field: &str| text.lines().filter(|l| !l.contains(field)).map(|l| format!("{l}\n")).collect();
    for (what, changed, mac) in [
        ("a value", flip(&token, "data:"), true),
        ("a value's IV", flip(&token, "iv:"), true),
        ("a value's tag", flip(&token, "tag:"), true),
        ("the MAC", flip(line(&text, "mac: "), "data:"), true),
        ("the MAC's tag", flip(line(&text, "mac: "), "tag:"), true),
        ("values swapped between keys", swapped, true),
        ("a recipient's data key", recipient, false),
        ("no version", without("version: "), false),
        ("no MAC", without("mac: "), false),
    ] {
        assert_ne!(changed, text, "{what}");
        let error = decrypt(&changed, &key.sources()).expect_err(what);
        assert!(!mac || matches!(error, SopsError::MacMismatch { .. }), "{what}: {error}");
        let shown = format!("{error} {error:?}");
        assert!(shown.contains(FILE), "{what}: {shown}");
        assert!(!["tok-3f1c", "correct horse"].iter().any(|s| shown.contains(s)), "{what}: {shown}");
    }
}

#[test]
fn editing_a_plain_value_or_reordering_keys_is_a_mac_mismatch() {
    let key = AgeKey::new();
    let text = cluster_document(&key);
    let (first, second) = (text.find("        passwords:").unwrap_or(0), line(&text, "note_unencrypted"));
    assert_eq!(first, 0, "layout: keys of the second level are indented by four");
    let edited = text.replace("note_unencrypted: free", "note_unencrypted: fre");
    assert_ne!(edited, text);
    let reordered = format!("{second}\n{}", text.replace(&format!("{second}\n"), ""));
    let removed = text.replace(&format!("{second}\n"), "");
    let stamp = text.replace("2026-11-29T12:00:00Z", "2026-11-29T12:00:01Z");
    for changed in [&edited, &reordered, &removed, &stamp] {
        let error = decrypt(changed, &key.sources()).unwrap_err();
        assert!(matches!(error, SopsError::MacMismatch { key: None, .. }), "{error}");
    }
    let commented = text.replace("note_unencrypted", "# a comment is free\nnote_unencrypted");
    assert!(decrypt(&commented, &key.sources()).is_ok());
}

#[test]
fn a_value_written_in_plain_where_it_should_be_encrypted_is_refused_without_being_shown() {
    let key = AgeKey::new();
    let text = cluster_document(&key);
    let plain = text.replace(line(&text, "pve-token:"), "    pve-token: hunter2-plain");
    let error = decrypt(&plain, &key.sources()).unwrap_err();
    assert!(matches!(&error, SopsError::Malformed { position: Some((2, 16)), .. }), "{error:?}");
    assert!(
        error.to_string().contains("secrets.pve-token") && !error.to_string().contains("hunter2"),
        "{error}"
    );
}

#[test]
fn no_rendering_of_a_decrypted_document_shows_a_value() {
    let key = AgeKey::new();
    let ours = decrypt(&cluster_document(&key), &key.sources()).unwrap();
    let shown = format!("{ours:?} {:?} {:?}", ours.documents(), ours.get("cloud-init.passwords.ops"));
    for secret in ["tok-3f1c", "correct horse", "1234"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    assert!(shown.contains("passwords"), "{shown}");
}

#[test]
fn an_edit_changes_only_its_own_lines_the_mac_and_the_time() {
    let key = AgeKey::new();
    let text =
        cluster_document(&key).replace("cloud-init:", "\n# keys of the team\ncloud-init:   # odd spacing");
    let mut ours = decrypt(&text, &key.sources()).unwrap();
    ours.add_values([(vec!["cloud-init", "ssh-keys", "new"], Secret::new("ssh-ed25519 BBBB"))]).unwrap();
    let later = "2027-01-01T00:00:00Z".parse().unwrap();
    let after = ours.encrypt_to_string(later).unwrap();
    let mut lines: Vec<&str> = after.lines().collect();
    let added = lines.iter().position(|line| line.starts_with("        new: ENC[")).unwrap();
    lines.remove(added);
    let before: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), before.len());
    for (new, old) in lines.iter().zip(&before).filter(|(new, old)| new != old) {
        let field = old.trim_start().split(':').next().unwrap();
        assert!(["mac", "lastmodified"].contains(&field) && new.contains(field), "{old} became {new}");
    }
    assert!(after.contains("lastmodified: \"2027-01-01T00:00:00Z\""));
    assert_eq!(decrypt(&after, &key.sources()).unwrap().ssh_keys().len(), 2);
}

#[test]
fn nothing_new_means_not_one_byte_changes() {
    let key = AgeKey::new();
    let text = cluster_document(&key);
    let mut ours = decrypt(&text, &key.sources()).unwrap();
    ours.add_values([(vec!["secrets", "pve-token"], Secret::new("tok-3f1c"))]).unwrap();
    assert!(!ours.is_changed());
    assert_eq!(ours.encrypt_to_string(now()).unwrap(), text);
}

#[test]
fn an_edit_that_would_drop_values_is_refused() {
    let key = AgeKey::new();
    let mut ours = decrypt(&cluster_document(&key), &key.sources()).unwrap();
    for path in [&["secrets"][..], &["secrets", "pve-token", "x"], &["sops"], &["sops", "mac"], &[]] {
        let error = ours.set(path, &Value::str("x")).unwrap_err();
        assert!(matches!(error, SopsError::WrongShape { .. }), "{path:?}: {error}");
    }
    assert!(!ours.is_changed());
}

#[test]
fn a_document_without_a_last_line_break_or_with_foreign_line_ends_can_be_edited() {
    let key = AgeKey::new();
    let text = cluster_document(&key);
    let commented = text.replace("cloud-init:", "# caf\u{e9} \u{1F600}\ncloud-init:");
    for text in
        [text.trim_end().to_owned(), text.replace('\n', "\r\n"), format!("\u{feff}{commented}"), commented]
    {
        let mut ours = decrypt(&text, &key.sources()).unwrap();
        ours.add_values([(vec!["secrets", "new"], Secret::new("x")), (vec!["top"], Secret::new("y"))])
            .unwrap();
        let again = decrypt(&ours.encrypt_to_string(now()).unwrap(), &key.sources()).unwrap();
        assert_eq!(again.get("secrets.new").unwrap().expose(), "x");
        assert_eq!(again.get("top").unwrap().expose(), "y");
    }
}

#[test]
fn a_new_document_refuses_what_the_format_can_not_hold() {
    let key = AgeKey::new();
    let create = |recipients: &[String], tree: &Value| Document::create(FILE, recipients, tree, now());
    let good = [key.public.clone()];
    for (recipients, tree) in [
        (&good[..], Value::str("x")),
        (&good[..], map(&[("sops", Value::str("x"))])),
        (&good[..], map(&[("a", Value::str("x")), ("a", Value::str("y"))])),
        (&[][..], map(&[("a", Value::str("x"))])),
        (&["age1nonsense".to_owned()][..], map(&[("a", Value::str("x"))])),
        (&["ssh-dss AAAA".to_owned()][..], map(&[("a", Value::str("x"))])),
    ] {
        assert!(
            matches!(create(recipients, &tree), Err(SopsError::Malformed { .. })),
            "{recipients:?} {tree:?}"
        );
    }
    let empty = create(&good, &map(&[])).unwrap();
    let mut ours = decrypt(&empty, &key.sources()).unwrap();
    ours.add_values([(vec!["a"], Secret::new("first"))]).unwrap();
    let again = decrypt(&ours.encrypt_to_string(now()).unwrap(), &key.sources()).unwrap();
    assert_eq!(again.get("a").unwrap().expose(), "first");
}

struct Files {
    dir: tempfile::TempDir,
    key: AgeKey,
}

impl Files {
    fn new() -> Self {
        Files { dir: tempfile::tempdir().unwrap(), key: AgeKey::new() }
    }

    fn write(&self, token: &str) -> PathBuf {
        let tree = map(&[("secrets", map(&[("pve-token", Value::str(token))]))]);
        let text = Document::create(FILE, std::slice::from_ref(&self.key.public), &tree, now()).unwrap();
        let path = self.dir.path().join("secrets.sops.yaml");
        std::fs::write(&path, text).unwrap();
        path
    }
}

#[test]
fn a_changed_file_is_read_again_and_a_broken_one_keeps_the_last_good_value() {
    let files = Files::new();
    let path = files.write("one");
    let mut store = SecretStore::load(&path, &files.key.sources()).unwrap();
    assert_eq!(store.reload_if_changed(), Reload::Unchanged);
    let held = store.current();
    files.write("two");
    assert_eq!(store.reload_if_changed(), Reload::Reloaded);
    assert_eq!(store.current().credential("pve-token").unwrap().expose(), "two");
    assert_eq!(held.credential("pve-token").unwrap().expose(), "one", "a running cycle keeps what it has");

    std::fs::write(&path, "secrets: {pve-token: plain}\n").unwrap();
    for _ in 0..2 {
        assert!(matches!(store.reload_if_changed(), Reload::Kept(SopsError::NotEncrypted { .. })));
        assert_eq!(store.current().credential("pve-token").unwrap().expose(), "two");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(store.reload_if_changed(), Reload::Kept(SopsError::Io { .. })));
    files.write("three");
    assert_eq!(store.reload_if_changed(), Reload::Reloaded);
    assert_eq!(store.current().credential("pve-token").unwrap().expose(), "three");
}

#[test]
fn secrets_of_clusters_load_when_asked_for_and_report_a_stale_file() {
    let files = Files::new();
    let all = ClusterSecrets::new(files.key.sources());
    let path = files.dir.path().join("secrets.sops.yaml");
    assert!(matches!(all.load("lab", &path), Err(SopsError::Io { .. })));
    files.write("one");
    assert_eq!(all.load("lab", &path).unwrap().stale, None);
    std::fs::write(&path, "broken: [").unwrap();
    let kept = all.load("lab", &path).unwrap();
    assert!(matches!(kept.stale, Some(SopsError::Malformed { .. })));
    assert_eq!(kept.secrets.credential("pve-token").unwrap().expose(), "one");
    assert!(all.load("other", &path).is_err(), "one cluster's good value never serves another");

    // The next commit's tree has another folder.
    let moved = files.dir.path().join("next.sops.yaml");
    let kept = all.load("lab", &moved).unwrap();
    assert!(matches!(kept.stale, Some(SopsError::Io { .. })));
    assert_eq!(kept.secrets.credential("pve-token").unwrap().expose(), "one");
    files.write("two");
    std::fs::rename(&path, &moved).unwrap();
    let fresh = all.load("lab", &moved).unwrap();
    assert_eq!((fresh.stale, fresh.secrets.credential("pve-token").unwrap().expose()), (None, "two"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn any_tree_survives_encryption(tree in tree()) {
        let key = AgeKey::new();
        let text = Document::create(FILE, std::slice::from_ref(&key.public), &tree, now()).unwrap();
        let ours = decrypt(&text, &key.sources()).unwrap();
        prop_assert!(ours.documents() == [tree]);
    }

    #[test]
    fn any_edit_of_any_tree_keeps_the_rest(tree in tree(), path in proptest::collection::vec(text(), 1..4), value in text()) {
        let key = AgeKey::new();
        let text = Document::create(FILE, std::slice::from_ref(&key.public), &tree, now()).unwrap();
        let mut ours = decrypt(&text, &key.sources()).unwrap();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let before = ours.documents()[0].clone();
        match ours.set(&path, &Value::str(value.as_str())) {
            Err(SopsError::WrongShape { .. }) => prop_assert!(ours.documents()[0] == before),
            Err(error) => prop_assert!(false, "{}", error),
            Ok(()) => {
                let after = ours.encrypt_to_string(now()).unwrap();
                let again = decrypt(&after, &key.sources()).unwrap();
                let found = path.iter().try_fold(&again.documents()[0], |tree, key| tree.entry(key));
                prop_assert!(found == Some(&Value::str(value.as_str())));
                let (Value::Map(old), Value::Map(new)) = (&before, &again.documents()[0]) else { panic!("no map") };
                for (old, new) in old.iter().zip(new).filter(|(old, _)| old.0 != path[0]) {
                    prop_assert!(old == new);
                }
            }
        }
    }

    #[test]
    fn random_text_never_panics(text in any::<String>(), yaml in "[a-z:\\-\\[\\]{}#|>&*!\"'%@ \n\t0-9.]{0,80}") {
        let none = sources(&[]);
        prop_assert!(decrypt(&text, &none).is_err());
        prop_assert!(decrypt(&yaml, &none).is_err());
        let _ = decrypt(&format!("{yaml}\nsops:\n  mac: x\n  version: x\n  lastmodified: 2024-01-01\n  age:\n    - {{recipient: x, enc: \"{text}\"}}\n"), &none);
    }

    /// One byte of the document changes: either it is refused, or every value is what it was.
    #[test]
    fn a_changed_byte_never_changes_a_value(at in any::<prop::sample::Index>(), to in "[ -~\n]") {
        let (key, text) = fixed();
        let mut bytes = text.clone().into_bytes();
        let at = at.index(bytes.len());
        bytes.splice(at..=at, to.bytes());
        let changed = String::from_utf8(bytes).unwrap();
        if let Ok(ours) = decrypt(&changed, &key.sources()) {
            let original = decrypt(text, &key.sources()).unwrap();
            prop_assert_eq!(ours.documents().len(), 1);
            // Keys above a value without encrypted content are not covered by the format.
            prop_assert!(ours.get("cloud-init.passwords.ops").ok() == original.get("cloud-init.passwords.ops").ok());
            prop_assert!(ours.credential("pve-token").ok() == original.credential("pve-token").ok());
        }
    }
}

fn fixed() -> &'static (AgeKey, String) {
    static FIXED: std::sync::OnceLock<(AgeKey, String)> = std::sync::OnceLock::new();
    FIXED.get_or_init(|| {
        let key = AgeKey::new();
        let text = cluster_document(&key);
        (key, text)
    })
}
