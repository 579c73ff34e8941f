//! Documents for key services (PGP, cloud KMS): decrypted by the `sops` program, through pipes only.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::child;
use crate::error::SopsError;
use crate::identity::IdentitySources;
use crate::value::Value;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// For how long the program is waited for: it asks services on the network.
const LIMIT: Duration = Duration::from_secs(60);

/// The `sops` program on `PATH`.
pub(crate) fn find(sources: &IdentitySources) -> Option<PathBuf> {
    let path = sources.env("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join("sops")).find(|program| program.is_file())
}

/// Decrypts through the program: the document goes in and the tree comes out by pipe.
pub(crate) fn decrypt(
    text: &str,
    file: &str,
    services: Vec<String>,
    sources: &IdentitySources,
) -> Result<Value, SopsError> {
    let fail =
        |reason: String| SopsError::KeyService { file: file.to_owned(), services: services.clone(), reason };
    let Some(program) = find(sources) else {
        return Err(fail(
            "that needs the `sops` program on PATH; install it, or add an age recipient with `sops rotate --add-age`"
                .to_owned(),
        ));
    };
    let mut command = Command::new(&program);
    command.args(["--decrypt", "--input-type", "yaml", "--output-type", "json", "/dev/stdin"]);
    let (status, stdout) = child::output(command, text, LIMIT)
        .map_err(|error| fail(format!("{}: {error}", program.display())))?;
    match status.code() {
        Some(0) => {}
        Some(51) => return Err(SopsError::MacMismatch { file: file.to_owned(), key: None }),
        _ => {
            return Err(fail(format!(
                "`sops` ended with {status}; `sops decrypt {file}` on this machine shows why"
            )));
        }
    }
    serde_json::from_slice::<Tree>(&stdout)
        .map(|tree| tree.0)
        .map_err(|_| fail("`sops` did not print one JSON document".to_owned()))
}

/// Builds the tree while reading, so that no other JSON value ever holds a secret.
struct Tree(Value);

impl<'de> serde::Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Tree)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a decrypted document")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or_else(|_| Value::str(number.to_string()), Value::int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::str(text))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::str(text))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::null())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Tree(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, Tree(value))) = map.next_entry::<String, Tree>()? {
            entries.push((key, value));
        }
        Ok(Value::Map(entries))
    }
}
