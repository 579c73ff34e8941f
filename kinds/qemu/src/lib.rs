//! `proxops-qemu`: the kinds VM and TemplateVM.
//!
//! One spec type serves both. Subjects, each in its file: [`spec`] the manifest; [`wanted`] how one
//! PVE key is described once for create, drift and adopt; [`cpu`], [`drives`], [`nics`], [`devices`],
//! [`options`] and [`cloudinit`] those descriptions; [`validate`], [`create`], [`drift`] and [`adopt`]
//! the calls; [`about`] what the kinds say of themselves.

// A refusal is rare, and the contract's record.
#![allow(clippy::result_large_err)]

pub mod about;
pub mod adopt;
pub mod cloudinit;
pub mod cpu;
pub mod create;
pub mod devices;
pub mod drift;
pub mod drives;
pub mod keys;
pub mod nics;
pub mod options;
pub mod spec;
pub mod validate;
pub mod wanted;

use proxops_kind::{
    About, AdoptOptions, Adopted, Context, Creation, DriftReport, Kind, Live, Refusal, Report, Resource,
    Validated,
};
use spec::VmSpec;

/// A virtual machine, or its template.
#[derive(Debug)]
pub struct Guest<const TEMPLATE: bool>;

/// The kind VM.
pub type Vm = Guest<false>;
/// The kind TemplateVM.
pub type TemplateVm = Guest<true>;

impl<const TEMPLATE: bool> Kind for Guest<TEMPLATE> {
    type Spec = VmSpec;

    fn about() -> About {
        about::about(TEMPLATE)
    }

    fn validate(manifest: &Resource<VmSpec>, report: &mut Report) -> Option<Validated> {
        validate::validate(manifest, TEMPLATE, report)
    }

    fn create(manifest: &Resource<VmSpec>, context: &Context) -> Result<Creation, Refusal> {
        create::create(manifest, context)
    }

    fn drift(manifest: &Resource<VmSpec>, live: &Live, context: &Context) -> Result<DriftReport, Refusal> {
        drift::drift(manifest, TEMPLATE, live, context)
    }

    fn adopt(name: &str, live: &Live, context: &Context, options: &AdoptOptions) -> Result<Adopted, Refusal> {
        adopt::adopt(name, TEMPLATE, live, context, options)
    }
}
