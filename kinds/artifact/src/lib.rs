//! The artifact kinds: `ISO`, `CTTemplate` and `DiskImage`.
//!
//! An artifact is a file on a storage. It is downloaded where it is absent, and being there is all there
//! is to converge: PVE keeps neither the URL nor the checksum of a file (fact S7), so nothing else can
//! differ, and nothing is ever deleted.

mod check;
pub mod content;
pub mod spec;
mod wire;

use content::Content;
use proxops_kind::{
    About, AdoptOptions, Adopted, Context, Creation, Diagnostic, DriftReport, Kind, Live, Refusal, Report,
    Resource, Target, Validated,
};
use serde_json::{Value, json};
use spec::{FileSpec, StoredAsIs};
use std::marker::PhantomData;

/// What tells the artifact kinds apart.
pub trait Flavour: 'static {
    /// The manifest's `spec`.
    type Spec: serde::de::DeserializeOwned
        + serde::Serialize
        + schemars::JsonSchema
        + AsRef<FileSpec>
        + From<FileSpec>
        + 'static;
    /// The manifest's `kind`.
    const KIND: &'static str;
    /// Folder of its manifests.
    const ROOT: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// PVE's content type.
    const CONTENT: Content;
    /// File name and URL of the examples.
    const EXAMPLE: (&'static str, &'static str);
}

/// A kind of file on a storage.
#[derive(Debug)]
pub struct Artifact<F>(PhantomData<F>);

/// Installation media: content type `iso`.
pub type Iso = Artifact<IsoFlavour>;
/// Container templates: content type `vztmpl`.
pub type CtTemplate = Artifact<CtTemplateFlavour>;
/// Disk images to import: content type `import`.
pub type DiskImage = Artifact<DiskImageFlavour>;

/// Of [`Iso`].
#[derive(Debug)]
pub struct IsoFlavour;
impl Flavour for IsoFlavour {
    type Spec = FileSpec;
    const KIND: &'static str = "ISO";
    const ROOT: &'static str = "iso";
    const SUMMARY: &'static str = "An ISO image on a storage, downloaded where it is absent";
    const CONTENT: Content = Content::Iso;
    const EXAMPLE: (&'static str, &'static str) =
        ("debian-13-netinst.iso", "https://images.example.org/debian-13-netinst.iso.gz");
}

/// Of [`CtTemplate`].
#[derive(Debug)]
pub struct CtTemplateFlavour;
impl Flavour for CtTemplateFlavour {
    type Spec = StoredAsIs;
    const KIND: &'static str = "CTTemplate";
    const ROOT: &'static str = "ctt";
    const SUMMARY: &'static str = "A container template on a storage, downloaded where it is absent";
    const CONTENT: Content = Content::Template;
    const EXAMPLE: (&'static str, &'static str) =
        ("debian-13-standard.tar.zst", "https://images.example.org/debian-13-standard.tar.zst");
}

/// Of [`DiskImage`].
#[derive(Debug)]
pub struct DiskImageFlavour;
impl Flavour for DiskImageFlavour {
    type Spec = StoredAsIs;
    const KIND: &'static str = "DiskImage";
    const ROOT: &'static str = "diskimage";
    const SUMMARY: &'static str = "A disk image to import on a storage, downloaded where it is absent";
    const CONTENT: Content = Content::Import;
    const EXAMPLE: (&'static str, &'static str) =
        ("debian-13-cloud.qcow2", "https://images.example.org/debian-13-cloud.qcow2");
}

impl<F: Flavour> Kind for Artifact<F> {
    type Spec = F::Spec;

    fn about() -> About {
        let target = Target::artifact_of(F::CONTENT.as_str(), F::CONTENT.extensions());
        let mut about = About::new(F::KIND, env!("CARGO_PKG_VERSION"), F::ROOT, F::SUMMARY, target);
        about.examples = examples::<F>();
        about
    }

    fn validate(manifest: &Resource<F::Spec>, report: &mut Report) -> Option<Validated> {
        check::validate(F::CONTENT, manifest.spec.as_ref(), report)
    }

    fn create(manifest: &Resource<F::Spec>, _: &Context) -> Result<Creation, Refusal> {
        wire::create(manifest.spec.as_ref())
    }

    fn drift(manifest: &Resource<F::Spec>, live: &Live, context: &Context) -> Result<DriftReport, Refusal> {
        match live {
            Live::Artifact(states) => Ok(wire::drift(F::CONTENT, manifest.spec.as_ref(), states, context)),
            _ => Err(not_a_file()),
        }
    }

    fn adopt(_: &str, live: &Live, _: &Context, _: &AdoptOptions) -> Result<Adopted, Refusal> {
        match live {
            Live::Artifact(states) => wire::adopt(F::CONTENT, states),
            _ => Err(not_a_file()),
        }
    }
}

fn not_a_file() -> Refusal {
    vec![Diagnostic::error("not-a-file", "", "the live object is not a file on a storage")]
}

fn examples<F: Flavour>() -> Vec<Value> {
    let (filename, url) = F::EXAMPLE;
    let manifest = |name: &str, spec: Value| {
        json!({
            "apiVersion": proxops_kind::API_VERSION,
            "kind": F::KIND,
            "metadata": { "name": name },
            "spec": spec,
        })
    };
    let minimal = json!({ "node": "pve01", "storage": "local", "filename": filename, "url": url.trim_end_matches(".gz") });
    let mut full = json!({
        "nodes": ["pve01", "pve02"],
        "storage": "local",
        "filename": filename,
        "url": url,
        "checksum": {
            "algorithm": "sha256",
            "value": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        },
        "verify-certificates": true,
    });
    if F::CONTENT == Content::Iso
        && let Some(full) = full.as_object_mut()
    {
        full.insert("compression".to_owned(), json!("gz"));
    }
    vec![manifest("debian-13", minimal), manifest("debian-13-everywhere", full)]
}
