//! What the tests run: the binary and the hostile kind, built once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// The top folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// `<target>/<profile>`, where the test executable's `deps` folder lies.
fn profile_dir() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}

/// Cargo's target folder.
pub(crate) fn target_dir() -> PathBuf {
    profile_dir().parent().unwrap().to_owned()
}

/// The real binary, of the tests' own profile and up to date. Cargo builds no binary of another package for a test,
/// and holds no lock while tests run: so it is asked once. `PROXOPS_E2E_BINARY` names another one, used as it is.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(given) = std::env::var_os("PROXOPS_E2E_BINARY") {
            return given.into();
        }
        let folder = profile_dir();
        let profile = match folder.file_name().unwrap().to_str().unwrap() {
            "debug" => "dev",
            name => name,
        };
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(root()).args([
            "build",
            "--quiet",
            "-p",
            "proxops",
            "--profile",
            profile,
            "--target-dir",
        ]);
        succeed(cargo.arg(target_dir()));
        folder.join("proxops")
    })
}

/// The kind that attacks its host, as a component that calls itself `kind` and has its manifests below `root`.
/// `describe` is an attack of `describe`, or `honest`; each manifest's `spec.attack` is one of the other functions.
pub fn hostile_kind(describe: &str, kind: &str, root_folder: &str) -> Vec<u8> {
    static COMPONENT: OnceLock<Vec<u8>> = OnceLock::new();
    let component = COMPONENT.get_or_init(|| component("proxops-hostile"));
    // Room for "<attack>;<kind>;<root>;" after a marker in the component's data.
    let marker = b"@hostile@";
    let at = component.windows(marker.len()).position(|w| w == marker).expect("the marker") + marker.len();
    let text = format!("{:<54}", format!("{describe};{kind};{root_folder};"));
    assert_eq!(text.len(), 54, "{text:?} does not fit");
    let mut bytes = component.clone();
    bytes[at..at + 54].copy_from_slice(text.as_bytes());
    bytes
}

/// A kind of `examples/kinds`, as a component, built as its author builds it.
pub fn example_kind(name: &str) -> Vec<u8> {
    static BUILT: Mutex<BTreeMap<String, Vec<u8>>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap();
    built.entry(name.to_owned()).or_insert_with(|| component(&format!("kind-example-{name}"))).clone()
}

/// One package of the workspace for `wasm32-wasip2`.
fn component(package: &str) -> Vec<u8> {
    let target = target_dir().join("kinds");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(root())
        .args([
            "build",
            "--locked",
            "--quiet",
            "--profile",
            "kind",
            "-p",
            package,
            "--target",
            "wasm32-wasip2",
        ])
        .arg("--target-dir")
        .arg(&target);
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR", "RUSTC_WRAPPER"] {
        cargo.env_remove(name);
    }
    succeed(&mut cargo);
    std::fs::read(target.join("wasm32-wasip2/kind").join(format!("{}.wasm", package.replace('-', "_"))))
        .unwrap()
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
}
