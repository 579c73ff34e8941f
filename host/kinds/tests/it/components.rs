//! Components for the tests: the hostile kind, built once for each target and patched per attack.

use proxops_kinds::{Kinds, Limits, Session, Sources};
use proxops_model::kind::{
    Adopted, Context, Creation, DriftReport, KindApi, KindFault, KindSet, Live, LiveGuest, LivePower,
    Manifest, Refusal, Validation,
};
use std::sync::Arc;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};
use tempfile::TempDir;

/// The hostile kind for `wasm32-unknown-unknown`, without WASI.
pub fn plain() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let module = build("wasm32-unknown-unknown");
        wit_component::ComponentEncoder::default().validate(true).module(&module).unwrap().encode().unwrap()
    })
}

/// The hostile kind for `wasm32-wasip2`, as third-party authors build theirs.
pub fn wasip2() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| build("wasm32-wasip2"))
}

/// The hostile kind as a preview 1 module with the adapter around it, which is what `cargo component build` makes.
pub fn wasip1() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let adapter = wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER;
        wit_component::ComponentEncoder::default()
            .validate(true)
            .module(&build("wasm32-wasip1"))
            .unwrap()
            .adapter("wasi_snapshot_preview1", adapter)
            .unwrap()
            .encode()
            .unwrap()
    })
}

/// One nested cargo run in the target folder that the built-in kinds use too.
fn build(target: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("kinds");
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(root)
        .args([
            "build",
            "--locked",
            "--quiet",
            "--profile",
            "kind",
            "-p",
            "proxops-hostile",
            "--target",
            target,
        ])
        .arg("--target-dir")
        .arg(&target_dir);
    for name in
        ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR", "RUSTC_WRAPPER", "CARGO_MAKEFLAGS"]
    {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read(target_dir.join(target).join("kind/proxops_hostile.wasm")).unwrap()
}

/// The hostile kind with what `describe` does, its kind and its root written into it.
pub fn patched(component: &[u8], attack: &str, kind: &str, root: &str) -> Vec<u8> {
    let marker = b"@hostile@";
    let at = component.windows(marker.len()).position(|w| w == marker).unwrap() + marker.len();
    let text = format!("{:<54}", format!("{attack};{kind};{root};"));
    assert_eq!(text.len(), 54);
    let mut bytes = component.to_vec();
    bytes[at..at + 54].copy_from_slice(text.as_bytes());
    bytes
}

/// A folder of kinds.
pub struct Folder(pub TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    pub fn sources(&self) -> Sources {
        Sources { folders: vec![self.0.path().to_owned()], ..Sources::default() }
    }

    /// Without a cache, so that every load asks the component.
    pub fn load(&self) -> Kinds {
        Kinds::load(&self.sources(), limits(), None).unwrap()
    }
}

/// The standard limits, with a deadline that a busy test machine can't meet by accident: fuel, which is
/// deterministic, comes first.
pub fn limits() -> Limits {
    Limits { deadline: Duration::from_secs(60), ..Limits::standard() }
}

/// A session over one honest-looking hostile kind `Evil` and one `Good`.
pub fn evil(component: &[u8]) -> Session {
    evil_within(component, limits())
}

pub fn evil_within(component: &[u8], limits: Limits) -> Session {
    let folder = Folder::new();
    folder.file("evil.wasm", &patched(component, "honest", "Evil", "evil"));
    folder.file("good.wasm", &patched(component, "honest", "Good", "good"));
    let kinds = Kinds::load(&folder.sources(), limits, None).unwrap();
    assert_eq!(kinds.problems(), []);
    kinds.session()
}

pub fn manifest(attack: &str) -> Manifest {
    Manifest {
        name: "web".into(),
        spec: format!(r#"{{"attack":"{attack}","list":[1],"password-ref":"ops"}}"#),
        ..Manifest::default()
    }
}

pub fn context() -> Context {
    Context { owner_tag: "proxops".into(), ..Context::default() }
}

pub fn live() -> Live {
    Live::Guest(Arc::new(LiveGuest {
        node: "n1".into(),
        vmid: 100,
        name: None,
        power: LivePower::Stopped,
        template: false,
        lock: None,
        values: BTreeMap::new(),
        secrets_present: vec![],
        pending: vec![],
        hidden: vec![],
        fresh_clone_of: None,
    }))
}

pub fn validate(session: &Session, attack: &str) -> Result<Validation, KindFault> {
    kind(session).validate(&manifest(attack))
}

pub fn create(session: &Session, attack: &str) -> Result<Creation, Refusal> {
    kind(session).create_params(&manifest(attack), &context())
}

pub fn drift(session: &Session, attack: &str) -> Result<DriftReport, Refusal> {
    kind(session).drift(&manifest(attack), &live(), &context())
}

pub fn adopt(session: &Session, attack: &str) -> Result<Adopted, Refusal> {
    kind(session).adopt(attack, &live(), &context(), false)
}

fn kind(session: &Session) -> &dyn KindApi {
    session.get("Evil").unwrap()
}

/// The fault's message of each function, for one attack.
pub fn faults(session: &Session, attack: &str) -> [(&'static str, String); 4] {
    let fault = |refusal: Refusal| match refusal {
        Refusal::Fault(fault) => fault,
        Refusal::Diagnostics(list) => panic!("diagnostics, not a fault: {list:?}"),
    };
    let all = [
        ("validate", validate(session, attack).map(|_| ()).unwrap_err()),
        ("create-params", fault(create(session, attack).map(|_| ()).unwrap_err())),
        ("drift", fault(drift(session, attack).map(|_| ()).unwrap_err())),
        ("adopt", fault(adopt(session, attack).map(|_| ()).unwrap_err())),
    ];
    all.map(|(function, fault)| {
        assert_eq!(fault.kind, "Evil");
        assert_eq!(fault.function, function);
        assert!(fault.origin.ends_with("evil.wasm"), "{}", fault.origin);
        (function, fault.message)
    })
}

/// The other kind, and this one with an honest manifest, still answer.
pub fn assert_others_work(session: &Session) {
    assert!(session.get("Good").unwrap().validate(&manifest("honest")).is_ok());
    assert!(validate(session, "honest").is_ok());
    assert!(drift(session, "honest").is_ok());
}
