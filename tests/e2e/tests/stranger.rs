//! A stranger's path: the commands of `docs/kinds.md`, one after the other, in a clean directory.

use proxops_e2e::{binary, root};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The `console` blocks of the guide: what a reader types, one script for each block.
fn scripts() -> Vec<String> {
    let guide = fs::read_to_string(root().join("docs/kinds.md")).unwrap();
    let mut scripts = Vec::new();
    for block in guide.split("```console\n").skip(1) {
        scripts.push(block.split("```").next().unwrap().to_owned());
    }
    scripts
}

#[test]
fn the_guide_read_from_top_to_bottom_ends_with_a_running_kind() {
    let scripts = scripts();
    assert!(scripts.len() >= 4, "the guide has its commands in console blocks");
    let folder = tempfile::tempdir().unwrap();
    let home = std::env::var_os("HOME").unwrap_or_default();
    let path =
        format!("{}:{}", binary().parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let mut whole = String::from("set -eu\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n");
    for script in &scripts {
        whole.push_str(script);
        whole.push('\n');
    }
    let mut shell = Command::new("bash");
    shell
        .arg("-c")
        .arg(&whole)
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", path)
        .env("HOME", &home)
        .env("NO_COLOR", "1")
        .env("XDG_STATE_HOME", folder.path().join("state"))
        // the registry's copies of what the lock file of this tree names are on this machine
        .env("CARGO_NET_OFFLINE", "true")
        .stdin(Stdio::null());
    for name in ["CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
        if let Some(value) = std::env::var_os(name) {
            shell.env(name, value);
        }
    }
    let output = shell.output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("create") || text.contains("download"), "{text}");
    assert!(Path::new(&folder.path().join("lab/kinds/kind_ova.wasm")).exists(), "{text}");
}

#[test]
fn a_python_kind_to_start_from_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let proxops = |words: &[&str]| {
        let state = folder.path().join("state");
        let output = Command::new(binary())
            .args(words)
            .current_dir(folder.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("XDG_STATE_HOME", state)
            .output()
            .unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {text}");
    };
    proxops(&["kinds", "new", "Ova", "--language", "python"]);
    let kind = folder.path().join("kind-ova");
    let file = kind.join("kind_ova.wasm");
    if crate::objects::python_kind(&kind, &kind.join("sdk/wit"), &file).is_some() {
        proxops(&["kinds", "test", "kind-ova/kind_ova.wasm"]);
    }
}

#[test]
fn a_folder_that_is_there_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("kind-ova")).unwrap();
    let output = Command::new(binary())
        .args(["kinds", "new", "Ova", "--dir"])
        .arg(folder.path())
        .current_dir(folder.path())
        .env_clear()
        .env("XDG_STATE_HOME", folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is there already"));
    assert_eq!(fs::read_dir(folder.path().join("kind-ova")).unwrap().count(), 0);
}
