//! `kinds new`: a kind to start from, with everything that building it needs beside it.

mod sdk;

use super::OK;
use crate::args::{Global, Language};
use crate::{open, say};
use anyhow::{Context as _, bail};
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// Files of a Rust kind that are its author's own.
const RUST: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("templates/Cargo.toml.txt")),
    ("src/lib.rs", include_str!("templates/lib.rs.txt")),
    ("README.md", include_str!("templates/rust.md")),
    (".gitignore", "/target\n"),
];

/// The same of a Python kind.
const PYTHON: &[(&str, &str)] = &[
    ("app.py", include_str!("templates/app.py.txt")),
    ("README.md", include_str!("templates/python.md")),
    (".gitignore", "/*.wasm\n__pycache__\n"),
];

/// Writes the folder `<parent>/kind-<name>`.
pub fn run(global: &Global, name: &str, language: Language, parent: &Path) -> anyhow::Result<u8> {
    open::logging(global, None, false);
    let lower = check(name)?;
    let folder = parent.join(format!("kind-{lower}"));
    if folder.exists() {
        bail!("{} is there already; nothing was written", folder.display());
    }
    let (own, library) = match language {
        Language::Rust => (RUST, sdk::FILES),
        Language::Python => (PYTHON, sdk::CONTRACT),
    };
    for (path, text) in own {
        write(&folder.join(path), &text.replace("@Kind@", name).replace("@kind@", &lower))?;
    }
    for (path, text) in library {
        write(&folder.join("sdk").join(path), text)?;
    }
    let mut out = say::Stdout;
    writeln!(
        out,
        "{} is written; {} says how to build and test it",
        folder.display(),
        folder.join("README.md").display()
    )?;
    Ok(OK)
}

/// The name in lower case, if a kind can be called that.
fn check(name: &str) -> anyhow::Result<String> {
    let good = name.len() <= 40
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric());
    if !good {
        bail!("`{name}` can't be a kind's name: a letter, then letters and digits, at most 40, such as Ova");
    }
    let lower = name.to_ascii_lowercase();
    let taken = proxops_repo::KindTable::builtin();
    if taken.names().any(|kind| kind.eq_ignore_ascii_case(name))
        || taken.roots().any(|(_, root)| root == lower)
        || matches!(lower.as_str(), "clusters" | "kinds")
    {
        bail!("`{name}` is taken: a built-in kind or a folder of proxops has that name");
    }
    Ok(lower)
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    let why = || format!("{} can't be written", file.display());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(why)?;
    }
    fs::write(file, text).with_context(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_that_is_written_is_all_of_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kinds/sdk/src");
        let mut there: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| format!("kinds/sdk/src/{}", entry.unwrap().file_name().to_string_lossy()))
            .chain(["kinds/sdk/Cargo.toml".to_owned(), "wit/kind.wit".to_owned()])
            .collect();
        there.sort();
        let mut written: Vec<&str> = sdk::FILES.iter().map(|(path, _)| *path).collect();
        written.sort_unstable();
        assert_eq!(written, there);
    }

    #[test]
    fn the_authors_own_part_is_short() {
        let lines: usize = RUST
            .iter()
            .filter(|(path, _)| path.ends_with(".rs") || path.ends_with(".toml"))
            .map(|(_, text)| text.lines().count())
            .sum();
        assert!(lines < 100, "{lines} lines");
    }

    #[test]
    fn a_name_that_no_kind_can_have_is_refused() {
        for bad in ["", "1a", "a-b", "../x", "VM", "vm", "Iso", "Clusters", "ctt"] {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert_eq!(check("Ova").unwrap(), "ova");
    }
}
