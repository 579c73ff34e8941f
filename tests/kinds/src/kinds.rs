//! The seven built-in kinds, natively.

use crate::draw::Draw;
use crate::{ct, file, vm};
use proxops_artifact::{CtTemplate, DiskImage, Iso};
use proxops_container::{Lxc, TemplateCt};
use proxops_kind::*;
use proxops_qemu::{TemplateVm, Vm};
use proxops_sim::GuestKind;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// What a kind manages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A guest.
    Guest(GuestKind),
    /// A file of this content type.
    File(&'static str),
}

/// A kind's calls, its generator and what repairs a mixed manifest.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What it manages.
    pub what: What,
    /// It makes templates.
    pub template: bool,
    /// Contract function.
    pub describe: fn() -> Info,
    /// Contract function.
    pub validate: fn(&Manifest) -> Validation,
    /// Contract function.
    pub create: fn(&Manifest, &Context) -> Result<Creation, Refusal>,
    /// Contract function.
    pub drift: fn(&Manifest, &Live, &Context) -> Result<DriftReport, Refusal>,
    /// A random spec.
    pub spec: fn(&mut Draw) -> Json,
    /// Makes a spec valid again after fields of two were mixed.
    pub fix: fn(&mut Json),
}

macro_rules! calls {
    ($name:literal, $type:ty, $what:expr, $template:expr, $spec:expr, $fix:expr) => {
        Kind {
            name: $name,
            what: $what,
            template: $template,
            describe: kind::describe::<$type>,
            validate: kind::validate::<$type>,
            create: kind::create_params::<$type>,
            drift: kind::drift::<$type>,
            spec: $spec,
            fix: $fix,
        }
    };
}

/// A virtual machine.
pub const VM: Kind = calls!("VM", Vm, What::Guest(GuestKind::Qemu), false, vm::spec, vm::fix);
/// Its template.
pub const TEMPLATE_VM: Kind =
    calls!("TemplateVM", TemplateVm, What::Guest(GuestKind::Qemu), true, vm::template, vm::fix);
/// A container.
pub const LXC: Kind = calls!("LXC", Lxc, What::Guest(GuestKind::Lxc), false, ct::spec, ct::fix);
/// Its template.
pub const TEMPLATE_CT: Kind =
    calls!("TemplateCT", TemplateCt, What::Guest(GuestKind::Lxc), true, ct::template, ct::fix);
/// Installation media.
pub const ISO: Kind = calls!("ISO", Iso, What::File("iso"), false, file::iso, file::fix);
/// Container templates.
pub const CT_TEMPLATE: Kind =
    calls!("CTTemplate", CtTemplate, What::File("vztmpl"), false, file::ct, file::fix);
/// Disk images.
pub const DISK_IMAGE: Kind =
    calls!("DiskImage", DiskImage, What::File("import"), false, file::image, file::fix);

/// All of them.
pub const ALL: [Kind; 7] = [VM, TEMPLATE_VM, LXC, TEMPLATE_CT, ISO, CT_TEMPLATE, DISK_IMAGE];

impl Kind {
    /// Its guest type; files have none.
    pub fn guest(&self) -> Option<GuestKind> {
        match self.what {
            What::Guest(kind) => Some(kind),
            What::File(_) => None,
        }
    }

    /// A manifest named `app` with this spec.
    pub fn manifest(&self, spec: &Json) -> Manifest {
        Manifest {
            name: "app".into(),
            labels: vec![],
            annotations: vec![],
            spec: spec.to_string(),
            ext: vec![],
        }
    }

    /// What is wrong with a spec.
    pub fn errors(&self, spec: &Json) -> Vec<String> {
        let validation = (self.validate)(&self.manifest(spec));
        let errors = validation.diagnostics.iter().filter(|d| d.severity == Severity::Error);
        errors.map(|d| format!("{} {}", d.at, d.message)).collect()
    }

    /// The fields of its schema.
    pub fn fields(&self) -> BTreeMap<String, crate::schema::Field> {
        crate::schema::fields(&(self.describe)().schema)
    }
}
