//! Steps that make a guest.

use crate::spec::*;
use crate::validate::pve_name;
use crate::wanted::Wanted;
use crate::{cloudinit, cpu, devices, drives, keys, nics, options};
use proxops_kind::{
    Anomaly, Context, Creation, Diagnostic, LiveView, Param, Refusal, Resource, ResourceRef, Severity, Step,
    tags,
};

/// Every wanted key that needs no knowledge of the guest's volumes and cards. `live` is the guest when
/// it exists.
pub fn wanted(spec: &VmSpec, live: Option<&LiveView<'_>>) -> Vec<Wanted> {
    let mut out = Vec::with_capacity(48);
    options::wanted(spec, &mut out);
    cpu::wanted(spec, live, &mut out);
    devices::wanted(spec, live, &mut out);
    cloudinit::wanted(spec, &mut out);
    if let Some((i, controller)) =
        spec.disks.iter().enumerate().find_map(|(i, d)| d.controller.map(|c| (i, c.as_str())))
    {
        let at = format!("/spec/disks/{i}/controller");
        let mut wanted =
            Wanted::text(at, "scsihw", controller, crate::wanted::exact, crate::wanted::When::Stop);
        if let crate::wanted::Want::Text { default, .. } = &mut wanted.want {
            *default = Some("lsi");
        }
        out.push(wanted);
    }
    for (key, value) in &spec.extra {
        let at = proxops_kind::report::child("/spec/extra", key);
        let same = if key == "vmgenid" { same_generation } else { same_extra };
        let wanted = Wanted::text(at, key.clone(), value.as_str(), same, keys::when(key))
            .root(keys::is_root_only(key));
        out.push(wanted);
    }
    out
}

/// Unmodelled values are compared as text; numbers in any form are equal.
fn same_extra(live: &str, want: &str) -> bool {
    crate::wanted::number(live, want)
}

/// `1` asks PVE for a new uuid, which any uuid fulfils (fact Q35).
fn same_generation(live: &str, want: &str) -> bool {
    live.eq_ignore_ascii_case(want) || (want == "1" && live != "0")
}

/// The steps of a new guest.
pub fn create(m: &Resource<VmSpec>, context: &Context) -> Result<Creation, Refusal> {
    if let Some(source) = &m.spec.clone {
        return Ok(clone(m, source, context));
    }
    let spec = &m.spec;
    let mut errors = Vec::new();
    let mut params = Vec::new();
    if let Some(name) = pve_name(m) {
        params.push(Param::text("name", name).at(name_pointer(m)));
    }
    if let Some(text) = spec.pve_description.as_deref().map(str::trim_end).filter(|t| !t.is_empty()) {
        params.push(Param::text("description", text).at("/spec/pve-description"));
    }
    let tags = tags::canonical(
        spec.tags.iter().flatten().map(String::as_str).chain([context.owner_tag.as_str()]),
        &context.tag_style,
    );
    params.push(Param::text("tags", tags.join(";")).at("/spec/tags"));
    let wanted = wanted(spec, None);
    params.extend(wanted.iter().filter(|w| !is_empty(w)).filter_map(Wanted::param));
    keep(drive_params(spec, context, &mut params), &mut errors);
    for (i, (nic, slot)) in spec.networks.iter().zip(nics::slots(&spec.networks)).enumerate() {
        if !nic.absent
            && let Some(text) = nics::write(nic, None)
        {
            params.push(Param::text(slot, text).at(format!("/spec/networks/{i}")));
        }
    }
    match cloudinit::wanted_keys(&spec.cloud_init_data, context) {
        Ok(keys) => params.extend(keys.filter(|k| !is_empty(k)).as_ref().and_then(Wanted::param)),
        Err(error) => errors.push(error),
    }
    if let Some(name) = &spec.cloud_init_data.ci_password_ref {
        params.push(Param::secret("cipassword", name).at("/spec/cloud-init-data/ci-password-ref"));
    }
    if let Some(pool) = &spec.pool {
        params.push(Param::text("pool", pool).at("/spec/pool"));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut creation = Creation::new(vec![Step::Create(params)]);
    creation.steps.extend(grow_seeded(spec));
    creation.anomalies = needs_root(spec, &wanted, context);
    Ok(creation)
}

/// An empty text is PVE's "not set".
pub fn is_empty(wanted: &Wanted) -> bool {
    matches!(&wanted.want, crate::wanted::Want::Text { value, .. } if value.is_empty())
}

/// Where the manifest gives the guest's name.
pub fn name_pointer(m: &Resource<VmSpec>) -> &'static str {
    if m.spec.pve_name.is_some() { "/spec/pve-name" } else { "/metadata/name" }
}

fn keep(result: Result<(), Vec<Diagnostic>>, errors: &mut Vec<Diagnostic>) {
    if let Err(more) = result {
        errors.extend(more);
    }
}

fn drive_params(spec: &VmSpec, context: &Context, params: &mut Vec<Param>) -> Result<(), Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let hardware = &spec.hardware;
    for (i, (disk, slot)) in spec.disks.iter().zip(drives::slots(&spec.disks)).enumerate() {
        let at = format!("/spec/disks/{i}");
        match drives::create_disk(disk, &at, context) {
            Ok(text) => params.push(Param::text(slot, text).at(at)),
            Err(error) => errors.push(error),
        }
    }
    if let Some(efi) = &hardware.efi_disk {
        params.push(Param::text("efidisk0", drives::create_efi(efi)).at("/spec/hardware/efi-disk"));
    }
    if let Some(text) = drives::create_tpm(hardware) {
        params.push(Param::text("tpmstate0", text).at("/spec/hardware/tpm"));
    }
    if let Some(cdrom) = &hardware.cdrom {
        match drives::cd_medium(cdrom, context) {
            Ok(medium) => {
                let text = format!("{medium},media=cdrom");
                params.push(Param::text(drives::cd_slot(hardware, &[]), text).at("/spec/hardware/cdrom"));
            }
            Err(error) => errors.push(error),
        }
    }
    if let Some(ci) = hardware.cloud_init.as_ref().filter(|c| c.wanted())
        && let Some(storage) = &ci.storage
    {
        params.push(Param::text(ci.slot(), format!("{storage}:cloudinit")).at("/spec/hardware/cloud-init"));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// A seeded disk has its image's size at first; the host skips a step that finds the disk large enough.
fn grow_seeded(spec: &VmSpec) -> Vec<Step> {
    let slots = drives::slots(&spec.disks);
    spec.disks
        .iter()
        .zip(&slots)
        .enumerate()
        .filter(|(_, (disk, _))| disk.image.is_some())
        .filter_map(|(i, (disk, slot))| {
            Some(Step::resize_to(slot, disk.size?.0, format!("/spec/disks/{i}/size")))
        })
        .collect()
}

/// A full clone; the rest follows from `drift` in the same action (fact Q38).
fn clone(m: &Resource<VmSpec>, source: &str, context: &Context) -> Creation {
    let spec = &m.spec;
    let mut params = vec![Param::text("full", "1")];
    if let Some(name) = pve_name(m) {
        params.push(Param::text("name", name).at(name_pointer(m)));
    }
    if let Some(storage) = &spec.clone_storage {
        params.push(Param::text("storage", storage).at("/spec/clone-storage"));
    }
    if let Some(format) = spec.clone_format {
        params.push(Param::text("format", format.as_str()).at("/spec/clone-format"));
    }
    if let Some(pool) = &spec.pool {
        params.push(Param::text("pool", pool).at("/spec/pool"));
    }
    let mut creation = Creation::new(vec![Step::clone_of(ResourceRef::new("TemplateVM", source), params)]);
    creation.anomalies = needs_root(spec, &wanted(spec, None), context);
    creation
}

/// What PVE would refuse because the credential is not a root@pam ticket (fact Q51).
fn needs_root(spec: &VmSpec, wanted: &[Wanted], context: &Context) -> Vec<Anomaly> {
    if context.root {
        return Vec::new();
    }
    let mut out: Vec<Anomaly> =
        wanted.iter().filter(|w| w.root).map(|w| root_anomaly(Severity::Error, &w.key, &w.at)).collect();
    for (i, (disk, slot)) in spec.disks.iter().zip(drives::slots(&spec.disks)).enumerate() {
        if disk.volume.as_deref().is_some_and(|v| v.starts_with('/')) {
            out.push(root_anomaly(Severity::Error, &slot, &format!("/spec/disks/{i}/volume")));
        }
    }
    out
}

/// PVE lets nobody but root@pam with a ticket set this key; an API token of root is not root (fact T26).
pub fn root_anomaly(severity: Severity, key: &str, at: &str) -> Anomaly {
    let message =
        format!("PVE lets only root@pam set {key}, with a ticket; an API token is refused, even root's");
    Anomaly::new(severity, "needs-root-ticket", message).at(at).key(key).help(format!(
        "set {key} by hand in PVE, give this cluster `auth: ticket` with user root@pam, or remove the field"
    ))
}
