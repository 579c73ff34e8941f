//! The container kinds: `LXC` and `TemplateCT`.
//!
//! Each PVE key is described once, in a field table ([`fields`], [`features`], [`volumes`], [`network`]),
//! from which creation, comparison and adoption follow. What a table does not know stays as PVE has it.

mod adopt;
mod check;
mod create;
mod drift;
pub mod env;
mod examples;
pub mod features;
pub mod fields;
mod layout;
pub mod network;
pub mod paths;
pub mod rows;
pub mod spec;
pub mod startup;
pub mod volumes;

use proxops_kind::{
    About, AdoptOptions, Adopted, Context, Creation, DriftReport, Kind, Live, LiveView, Refusal, Report,
    Resource, Target, Validated,
};
use spec::ContainerSpec;

/// A container, or a container template.
#[derive(Debug)]
pub struct Container<const TEMPLATE: bool>;

/// Containers.
pub type Lxc = Container<false>;
/// Containers marked as templates: stopped, and the source of clones.
pub type TemplateCt = Container<true>;

impl<const TEMPLATE: bool> Kind for Container<TEMPLATE> {
    type Spec = ContainerSpec;

    fn about() -> About {
        let (kind, root, summary) = if TEMPLATE {
            ("TemplateCT", "templatect", "A container template, the source of clones")
        } else {
            ("LXC", "lxc", "A Linux container")
        };
        let mut about = About::new(kind, env!("CARGO_PKG_VERSION"), root, summary, Target::lxc(TEMPLATE));
        about.examples = examples::all(kind, TEMPLATE);
        about
    }

    fn validate(manifest: &Resource<ContainerSpec>, report: &mut Report) -> Option<Validated> {
        check::validate(TEMPLATE, manifest, report)
    }

    fn create(manifest: &Resource<ContainerSpec>, context: &Context) -> Result<Creation, Refusal> {
        create::create(manifest, context)
    }

    fn drift(
        manifest: &Resource<ContainerSpec>,
        live: &Live,
        context: &Context,
    ) -> Result<DriftReport, Refusal> {
        Ok(drift::drift(TEMPLATE, manifest, LiveView::of(live)?, context))
    }

    fn adopt(name: &str, live: &Live, context: &Context, _: &AdoptOptions) -> Result<Adopted, Refusal> {
        adopt::adopt(TEMPLATE, name, LiveView::of(live)?, context)
    }
}
