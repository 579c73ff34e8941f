//! What the tests of this crate share: throw-away keys, identities by hand, the real tool.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use age::secrecy::ExposeSecret as _;
use jiff::Timestamp;
use proptest::prelude::*;
use proxops_secrets::{Document, IdentitySources, Value};

/// A fresh age key.
pub struct AgeKey {
    pub secret: String,
    pub public: String,
}

impl AgeKey {
    pub fn new() -> Self {
        let identity = age::x25519::Identity::generate();
        AgeKey {
            secret: identity.to_string().expose_secret().to_owned(),
            public: identity.to_public().to_string(),
        }
    }

    pub fn sources(&self) -> IdentitySources {
        sources(&[("SOPS_AGE_KEY", &self.secret)])
    }
}

/// Exactly these variables, and no home directory.
pub fn sources(env: &[(&str, &str)]) -> IdentitySources {
    sources_at(env, None)
}

pub fn sources_at(env: &[(&str, &str)], home: Option<&Path>) -> IdentitySources {
    let env: Vec<(String, String)> = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    IdentitySources::new(
        move |name| env.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()),
        home.map(Path::to_owned),
    )
}

pub fn now() -> Timestamp {
    "2026-11-29T12:00:00.75Z".parse().unwrap()
}

pub fn map(entries: &[(&str, Value)]) -> Value {
    Value::Map(entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
}

/// A small document as a cluster has it.
pub fn cluster_tree() -> Value {
    map(&[
        ("secrets", map(&[("pve-token", Value::str("tok-3f1c")), ("blank", Value::str(""))])),
        (
            "cloud-init",
            map(&[
                ("ssh-keys", map(&[("ops", Value::str("ssh-ed25519 AAAAC3Nz ops@example\n"))])),
                ("passwords", map(&[("ops", Value::str("correct horse")), ("pin", Value::int(1234))])),
            ]),
        ),
        ("note_unencrypted", Value::str("free")),
    ])
}

pub fn cluster_document(key: &AgeKey) -> String {
    Document::create("secrets.sops.yaml", std::slice::from_ref(&key.public), &cluster_tree(), now()).unwrap()
}

/// The real tool with a home of its own.
pub struct Tool {
    pub program: PathBuf,
    pub dir: tempfile::TempDir,
}

impl Tool {
    /// From `PROXOPS_TEST_SOPS`, else from `PATH`; prints that the test is skipped if it is nowhere.
    pub fn find() -> Option<Tool> {
        let named = std::env::var_os("PROXOPS_TEST_SOPS").map(PathBuf::from);
        let on_path = || {
            std::env::split_paths(&std::env::var_os("PATH")?)
                .map(|d| d.join("sops"))
                .find(|program| program.is_file())
        };
        match named.or_else(on_path) {
            Some(program) => Some(Tool { program, dir: tempfile::tempdir().unwrap() }),
            None => {
                println!("skipped: no `sops` on PATH or in PROXOPS_TEST_SOPS");
                None
            }
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn command(&self, env: &[(&str, &str)], arguments: &[&str]) -> Output {
        Command::new(&self.program)
            .args(arguments)
            .current_dir(self.dir.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("SOPS_DISABLE_VERSION_CHECK", "1")
            .envs(env.iter().copied())
            .output()
            .unwrap()
    }

    pub fn run(&self, env: &[(&str, &str)], arguments: &[&str]) -> String {
        let output = self.command(env, arguments);
        assert!(output.status.success(), "sops {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Encrypts a plain YAML text for one recipient.
    pub fn encrypt(&self, plain: &str, recipients: &str, options: &[&str]) -> String {
        self.write("plain.yaml", plain);
        self.run(&[], &[&["encrypt", "--age", recipients][..], options, &["plain.yaml"]].concat())
    }

    /// Decrypts an encrypted text as JSON: values with their types, without layout.
    pub fn decrypt(&self, encrypted: &str, key: &AgeKey) -> serde_json::Value {
        self.write("back.yaml", encrypted);
        let json =
            self.run(&[("SOPS_AGE_KEY", &key.secret)], &["decrypt", "--output-type", "json", "back.yaml"]);
        serde_json::from_str(&json).unwrap()
    }

    /// Whether the tool can read an encrypted text.
    pub fn reads(&self, encrypted: &str, key: &AgeKey) -> bool {
        self.write("back.yaml", encrypted);
        self.command(&[("SOPS_AGE_KEY", &key.secret)], &["decrypt", "back.yaml"]).status.success()
    }

    /// Decrypts an encrypted text as YAML, comments included.
    pub fn decrypt_yaml(&self, encrypted: &str, key: &AgeKey) -> String {
        self.write("back.yaml", encrypted);
        self.run(&[("SOPS_AGE_KEY", &key.secret)], &["decrypt", "back.yaml"])
    }
}

/// A decrypted tree as JSON, to compare with the tool's.
pub fn json(value: &Value) -> serde_json::Value {
    use proxops_secrets::Kind;
    match value {
        Value::Map(entries) => {
            entries.iter().map(|(k, v)| (k.clone(), json(v))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::List(items) => items.iter().map(json).collect::<Vec<_>>().into(),
        Value::Scalar(kind, bytes) => {
            let text = std::str::from_utf8(bytes).unwrap();
            match kind {
                Kind::Null => serde_json::Value::Null,
                Kind::Bool => (text == "True").into(),
                Kind::Int => text.parse::<i64>().unwrap().into(),
                Kind::Float => text.parse::<f64>().unwrap().into(),
                _ => text.into(),
            }
        }
    }
}

/// JSON equality that does not tell `1.0` from `1`, as the tool prints the first as the second.
pub fn same(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    use serde_json::Value as Json;
    match (a, b) {
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Json::Number(a), Json::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a == b,
            // The JSON reader of these tests is not exact in the last bit.
            _ => a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| (a - b).abs() <= a.abs() * 1e-14),
        },
        _ => a == b,
    }
}

/// Text, with a liking for what YAML could take for something else.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~]{0,12}",
        "(null|true|yes|~|1|0x1|1e3|2024-01-01|\\.inf|- a|a: b|#c|'|\"|\\||>|ENC\\[x\\]|sops|\\{\\}|\\[\\]|%|&a|\\*a|!t|---|\\.\\.\\.|a\n\nb\n)",
    ]
    .prop_map(|text| text.replace('\u{0}', ""))
}

/// A document.
pub fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        text().prop_map(Value::str),
        any::<i64>().prop_map(Value::int),
        any::<f64>().prop_filter("NaN is not equal to itself", |f| !f.is_nan()).prop_map(Value::float),
        any::<bool>().prop_map(Value::bool),
        Just(Value::null()),
    ];
    let entries = |inner: BoxedStrategy<Value>| {
        let key = (text(), any::<bool>())
            .prop_map(|(key, plain)| if plain { format!("{key}_unencrypted") } else { key })
            .prop_filter("reserved", |key| key != "sops");
        proptest::collection::vec((key, inner), 0..5).prop_map(|mut entries| {
            let mut seen = std::collections::BTreeSet::new();
            entries.retain(|(key, _)| seen.insert(key.clone()));
            Value::Map(entries)
        })
    };
    let any = leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            entries(inner.boxed())
        ]
    });
    entries(any.boxed())
}
