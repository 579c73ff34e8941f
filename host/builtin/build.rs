//! Builds the built-in kinds for WebAssembly, wraps each as a component, compiles it for the machine that the
//! binary is for, and writes a table of them.
//!
//! One nested cargo run builds all seven. It has a target folder of its own beside the outer one, so
//! the two never wait for each other's lock, and all profiles of the outer build share it.

use proxops_kind::{GuestType, Info, Target, kind::describe};
use proxops_model::kind as model;
use sha2::{Digest, Sha256};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The kinds that travel inside the binary: packages in `kinds/`, each a `cdylib`, and how each describes
/// itself when it is compiled for this machine. The host keeps that answer beside the component, so that
/// a cold start knows all kinds without compiling one; a test compares it with the component's own.
const KINDS: &[(&str, fn() -> Info)] = &[
    ("vm", describe::<proxops_qemu::Vm>),
    ("templatevm", describe::<proxops_qemu::TemplateVm>),
    ("lxc", describe::<proxops_container::Lxc>),
    ("templatect", describe::<proxops_container::TemplateCt>),
    ("iso", describe::<proxops_artifact::Iso>),
    ("cttemplate", describe::<proxops_artifact::CtTemplate>),
    ("diskimage", describe::<proxops_artifact::DiskImage>),
];

const TARGET: &str = "wasm32-unknown-unknown";

/// What an outer build may set for itself and the nested one must not see: flags for another target,
/// wrappers that a linter or coverage tool put in, folders whose lock the outer cargo holds.
const FOREIGN: &[&str] = &[
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_BUILD_TARGET",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOCFLAGS",
    "CARGO_MAKEFLAGS",
    "MAKEFLAGS",
    "LLVM_PROFILE_FILE",
];

#[path = "src/settings.rs"]
#[allow(dead_code)]
mod settings;

fn main() {
    if let Err(error) = build() {
        // a build script speaks through its exit code and stderr
        eprintln!("error: the built-in kinds could not be built: {error}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), String> {
    let manifest_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out_dir = PathBuf::from(variable("OUT_DIR")?);
    let root = manifest_dir.ancestors().nth(2).ok_or("no workspace above host/builtin")?;
    for path in ["kinds", "wit", "Cargo.lock", "Cargo.toml"] {
        println!("cargo:rerun-if-changed={}", root.join(path).display());
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/settings.rs");

    target_is_installed()?;
    let target_dir = outer_target_dir(&out_dir)?.join("kinds");
    compile(root, &target_dir)?;

    let mut table = String::from("pub const BUILTIN: &[Builtin] = &[\n");
    for (kind, describe) in KINDS {
        let module = target_dir.join(TARGET).join("kind").join(format!("kind_{kind}.wasm"));
        let component = encode(&module)?;
        let file = out_dir.join(format!("{kind}.wasm"));
        fs::write(&file, &component).map_err(|e| format!("{}: {e}", file.display()))?;
        let digest = hex::encode(Sha256::digest(&component));
        let code = match machine_code(&component, &digest, &out_dir)? {
            Some(file) => format!("Some(include_bytes!({file:?}))"),
            None => "None".to_owned(),
        };
        let info = serde_json::to_string(&model_info(describe())?).map_err(|e| e.to_string())?;
        table.push_str(&format!(
            "    Builtin {{ name: {kind:?}, bytes: include_bytes!({file:?}), sha256: {digest:?}, code: {code}, info: {info:?} }},\n"
        ));
    }
    table.push_str("];\n");
    let file = out_dir.join("builtin.rs");
    fs::write(&file, table).map_err(|e| format!("{}: {e}", file.display()))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("cargo did not set {name}"))
}

/// `<target>/<profile>/build/<package>-<hash>/out`, with `<target>/<triple>/<profile>/...` when the outer
/// build names a target; both end at a folder that cargo marks with `CACHEDIR.TAG`.
fn outer_target_dir(out_dir: &Path) -> Result<&Path, String> {
    out_dir
        .ancestors()
        .find(|dir| dir.join("CACHEDIR.TAG").exists())
        .or_else(|| out_dir.ancestors().nth(4))
        .ok_or_else(|| format!("no target folder above {}", out_dir.display()))
}

fn compile(root: &Path, target_dir: &Path) -> Result<(), String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(root)
        .args(["build", "--locked", "--profile", "kind", "--target", TARGET])
        .arg("--target-dir")
        .arg(target_dir);
    for (kind, _) in KINDS {
        command.args(["-p", &format!("kind-{kind}")]);
    }
    for name in FOREIGN {
        command.env_remove(name);
    }
    // settings of the outer profile and target, such as CARGO_PROFILE_DEV_DEBUG
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PROFILE_")
            || name.starts_with("CARGO_TARGET_")
            || name.starts_with("CARGO_FEATURE_")
        {
            command.env_remove(&*name);
        }
    }
    let output = command.output().map_err(|e| format!("cargo can't be run: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo build for {TARGET} failed\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(())
}

/// Asks the compiler where the target's standard library is, and whether it is there.
fn target_is_installed() -> Result<(), String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .map_err(|e| format!("rustc can't be run: {e}"))?;
    let folder = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !Path::new(folder.trim()).is_dir() {
        return Err(format!("the Rust target {TARGET} is not installed; run: rustup target add {TARGET}"));
    }
    Ok(())
}

/// Wraps a core module as a component. It imports nothing but what its embedded world names: no WASI.
fn encode(module: &Path) -> Result<Vec<u8>, String> {
    let bytes = fs::read(module).map_err(|e| format!("{}: {e}", module.display()))?;
    wit_component::ComponentEncoder::default()
        .validate(true)
        .module(&bytes)
        .and_then(|encoder| encoder.encode())
        .map_err(|e| format!("{} is no component: {e:#}", module.display()))
}

/// Compiles a component for the target of the outer build, baseline processor; a file that is there already is
/// the same. `None` if this compiler does not know the target: the host then compiles when it runs.
fn machine_code(component: &[u8], digest: &str, out_dir: &Path) -> Result<Option<PathBuf>, String> {
    let file = out_dir.join(format!("{digest}.code"));
    if file.exists() {
        return Ok(Some(file));
    }
    let mut config = settings::trusted();
    // naming the target also keeps out what only this machine's processor can do
    let engine = config.target(&variable("TARGET")?).and_then(|config| wasmtime::Engine::new(config));
    let Ok(engine) = engine else { return Ok(None) };
    let code = engine
        .precompile_component(component)
        .map_err(|e| format!("a built-in kind can't be compiled: {e:#}"))?;
    fs::write(&file, code).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(Some(file))
}

/// The description in the host's own words.
fn model_info(info: Info) -> Result<model::KindInfo, String> {
    let target = match info.target {
        Target::Guest(guest) => model::Target::Guest {
            guest_type: match guest.guest_type {
                GuestType::Qemu => model::GuestType::Qemu,
                GuestType::Lxc => model::GuestType::Lxc,
            },
            template: guest.template,
        },
        Target::Artifact(artifact) => {
            model::Target::Artifact { content: artifact.content, extensions: artifact.extensions }
        }
        Target::Object(_) | Target::Other(_) => {
            return Err(format!("{}: only guests and artifacts are built in", info.kind));
        }
    };
    Ok(model::KindInfo {
        kind: info.kind,
        version: info.version,
        api_versions: info.api_versions,
        root: info.root,
        summary: info.summary,
        target,
        schema: info.schema,
        examples: info.examples,
    })
}
