//! The trait that a kind implements, and the way from the contract's calls to it.

use crate::{
    API_VERSION, AdoptOptions, Adopted, Context, Creation, DriftReport, Info, Live, Manifest, Refusal,
    Report, Target, Validated, Validation, carry, check, schema, sound,
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

/// What a kind is, without its schema.
#[derive(Debug, Clone)]
pub struct About {
    /// The manifest's `kind`.
    pub kind: String,
    /// Version of the component, for people: `env!("CARGO_PKG_VERSION")`.
    pub version: String,
    /// Accepted values of `apiVersion`.
    pub api_versions: Vec<String>,
    /// Folder of its manifests in a repository.
    pub root: String,
    /// One line for lists.
    pub summary: String,
    /// What it manages.
    pub target: Target,
    /// Whole manifests: at least a minimal and a full one.
    pub examples: Vec<serde_json::Value>,
}

impl About {
    /// A kind of this name, whose manifests lie in `root`; `apiVersion` as the built-in kinds have it.
    pub fn new(kind: &str, version: &str, root: &str, summary: &str, target: Target) -> Self {
        Self {
            kind: kind.to_owned(),
            version: version.to_owned(),
            api_versions: vec![API_VERSION.to_owned()],
            root: root.to_owned(),
            summary: summary.to_owned(),
            target,
            examples: Vec::new(),
        }
    }
}

/// A manifest with its spec as the kind's own type.
#[derive(Debug, Clone)]
pub struct Resource<S> {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.labels`.
    pub labels: Vec<(String, String)>,
    /// `metadata.annotations`.
    pub annotations: Vec<(String, String)>,
    /// The spec.
    pub spec: S,
}

impl<S> Resource<S> {
    fn of(manifest: &Manifest, spec: S) -> Self {
        let (labels, annotations) = (manifest.labels.clone(), manifest.annotations.clone());
        Self { name: manifest.name.clone(), labels, annotations, spec }
    }
}

/// A resource kind. All functions are pure: the same arguments give the same answer.
pub trait Kind: 'static {
    /// The manifest's `spec`. Its JSON Schema drives the checks, so every struct denies unknown fields
    /// and every field has a doc comment.
    type Spec: DeserializeOwned + Serialize + JsonSchema + 'static;

    /// What the kind is.
    fn about() -> About;

    /// Checks what the type can't, and says what the host needs to know. Fields that could not be read
    /// hold stand-ins; remarks about them are dropped. `None` when the identity itself is broken (see
    /// [`Report::is_broken`]).
    fn validate(manifest: &Resource<Self::Spec>, report: &mut Report) -> Option<Validated>;

    /// Steps that make the object.
    fn create(manifest: &Resource<Self::Spec>, context: &Context) -> Result<Creation, Refusal>;

    /// Compares the object with its manifest.
    fn drift(manifest: &Resource<Self::Spec>, live: &Live, context: &Context)
    -> Result<DriftReport, Refusal>;

    /// A manifest for an object that exists. Fields that [`Kind::validate`] refuses are left out afterwards, as gaps.
    fn adopt(name: &str, live: &Live, context: &Context, options: &AdoptOptions) -> Result<Adopted, Refusal>;
}

/// Contract function `describe`.
pub fn describe<K: Kind>() -> Info {
    install_panic_hook();
    let about = K::about();
    Info {
        kind: about.kind,
        version: about.version,
        api_versions: about.api_versions,
        root: about.root,
        summary: about.summary,
        target: about.target,
        schema: schema::of::<K::Spec>().to_string(),
        examples: about.examples.iter().map(ToString::to_string).collect(),
        ext: Vec::new(),
    }
}

/// Contract function `validate`.
pub fn validate<K: Kind>(manifest: &Manifest) -> Validation {
    install_panic_hook();
    let mut report = Report::new();
    let mut validated = check::read::<K::Spec>(&manifest.spec, &mut report)
        .and_then(|spec| K::validate(&Resource::of(manifest, spec), &mut report));
    if let Some(validated) = &mut validated {
        validated.references.retain(|r| !report.is_broken(&r.at));
        validated.secrets.retain(|s| !report.is_broken(&s.at));
        validated.storages.retain(|s| !report.is_broken(&s.at));
        validated.incomplete.retain(|h| !report.is_broken(&h.at));
    }
    let validated = carry::validated(validated, &mut report);
    Validation { validated, diagnostics: report.into_diagnostics(), ext: Vec::new() }
}

/// Contract function `create-params`.
pub fn create_params<K: Kind>(manifest: &Manifest, context: &Context) -> Result<Creation, Refusal> {
    install_panic_hook();
    K::create(&read::<K>(manifest)?, context).map_err(carry::refusal)
}

/// Contract function `drift`.
pub fn drift<K: Kind>(manifest: &Manifest, live: &Live, context: &Context) -> Result<DriftReport, Refusal> {
    install_panic_hook();
    let mut report = K::drift(&read::<K>(manifest)?, live, context).map_err(carry::refusal)?;
    carry::report(&mut report);
    Ok(report)
}

/// Contract function `adopt`.
pub fn adopt<K: Kind>(
    name: &str,
    live: &Live,
    context: &Context,
    options: &AdoptOptions,
) -> Result<Adopted, Refusal> {
    install_panic_hook();
    let mut adopted = K::adopt(name, live, context, options).map_err(carry::refusal)?;
    sound::hold::<K>(name, live, &mut adopted);
    carry::adopted(&mut adopted);
    Ok(adopted)
}

/// The manifest typed, or everything that is wrong with it.
fn read<K: Kind>(manifest: &Manifest) -> Result<Resource<K::Spec>, Refusal> {
    // The usual way: the manifest was validated before.
    if let Ok(spec) = serde_json::from_str(&manifest.spec) {
        return Ok(Resource::of(manifest, spec));
    }
    let mut report = Report::new();
    let spec = check::read::<K::Spec>(&manifest.spec, &mut report);
    match spec {
        Some(spec) if !report.has_errors() => Ok(Resource::of(manifest, spec)),
        _ => Err(report.into_diagnostics()),
    }
}

/// Panics become a line of the host's log; the trap that follows says no more than "unreachable".
fn install_panic_hook() {
    #[cfg(target_family = "wasm")]
    {
        use crate::bindings::proxops::kind::log;
        static HOOK: std::sync::Once = std::sync::Once::new();
        HOOK.call_once(|| {
            std::panic::set_hook(Box::new(|info| log::emit(log::Level::Panic, &info.to_string())));
        });
    }
}

/// Writes a line to the host's debug log; natively to stderr.
pub fn log(message: &str) {
    #[cfg(target_family = "wasm")]
    crate::bindings::proxops::kind::log::emit(crate::bindings::proxops::kind::log::Level::Debug, message);
    #[cfg(not(target_family = "wasm"))]
    eprintln!("{message}");
}
