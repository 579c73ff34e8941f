//! What the spec's type can't check, by subject, and what the host needs to know.

mod cloud_init;
mod disks;
mod hardware;
mod networks;

use crate::spec::*;
use crate::{cpu, keys};
use proxops_kind::{
    Identity, Power, Reference, Report, Resource, SecretClass, SecretUse, StorageUse, Validated, names, tags,
    text::quoted,
};

/// Checks a manifest of a VM or TemplateVM.
pub fn validate(m: &Resource<VmSpec>, template: bool, report: &mut Report) -> Option<Validated> {
    let spec = &m.spec;
    general(m, template, report);
    processor(spec, report);
    disks::check(spec, report);
    networks::check(spec, report);
    hardware::check(spec, report);
    cloud_init::check(spec, report);
    for key in spec.extra.keys() {
        let at = proxops_kind::report::child("/spec/extra", key);
        if keys::is_modelled(key) {
            report
                .error(
                    at,
                    "modelled-key",
                    format!("{} in `extra` is covered by a field of its own", quoted(key)),
                )
                .help("use that field: `proxops explain VM` lists the PVE key of each");
        } else if keys::is_reserved(key) {
            report
                .error(at, "reserved-key", format!("{} is reserved and can't stand in `extra`", quoted(key)))
                .help("remove it");
        } else if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)) {
            report.error(at, "bad-key", format!("{} is not a PVE key", quoted(key)));
        }
    }
    if report.is_broken("/spec/node") || report.is_broken("/spec/vmid") {
        return None;
    }
    Some(validated(m, template))
}

/// The guest's name in PVE; `None` when the manifest leaves it alone.
pub fn pve_name(m: &Resource<VmSpec>) -> Option<&str> {
    match m.spec.pve_name.as_deref() {
        Some("") => None,
        Some(name) => Some(name),
        None => Some(&m.name),
    }
}

fn validated(m: &Resource<VmSpec>, template: bool) -> Validated {
    let spec = &m.spec;
    let mut out = Validated::new(Identity::guest_id(&spec.node, spec.vmid, pve_name(m)));
    out.power = Some(match spec.state {
        Some(State::Stopped) => Power::Stopped,
        _ if template => Power::Stopped,
        _ => Power::Running,
    });
    out.attributes = vec![
        ("name".to_owned(), m.name.clone()),
        ("node".to_owned(), spec.node.clone()),
        ("vmid".to_owned(), spec.vmid.to_string()),
    ];
    let disks = crate::drives::slots(&spec.disks);
    if template && spec.clone.is_none() && !disks.is_empty() {
        // What its clones inherit; a template that is a clone itself need not declare its disks.
        out.attributes.push(("disks".to_owned(), disks.join(",")));
    }
    if let Some(clone) = &spec.clone {
        out.references.push(Reference::new("TemplateVM", clone, "/spec/clone"));
        if let Some(storage) = &spec.clone_storage {
            out.storages.push(StorageUse::new(storage, "images", "/spec/clone-storage"));
        }
    }
    for (i, disk) in spec.disks.iter().enumerate() {
        if let Some(image) = &disk.image {
            out.references.push(Reference::new("DiskImage", image, format!("/spec/disks/{i}/image")));
        }
        if let Some(storage) = &disk.storage {
            out.storages.push(StorageUse::new(storage, "images", format!("/spec/disks/{i}/storage")));
        }
    }
    let hardware = &spec.hardware;
    if let Some(efi) = &hardware.efi_disk {
        out.storages.push(StorageUse::new(&efi.storage, "images", "/spec/hardware/efi-disk/storage"));
    }
    if let Some(storage) = hardware.tpm.as_ref().and_then(|t| t.storage.as_deref()) {
        out.storages.push(StorageUse::new(storage, "images", "/spec/hardware/tpm/storage"));
    }
    if let Some(storage) =
        hardware.cloud_init.as_ref().filter(|c| c.wanted()).and_then(|c| c.storage.as_deref())
    {
        // PVE makes the drive anywhere and refuses to start the guest later (fact S15).
        out.storages.push(StorageUse::new(storage, "images", "/spec/hardware/cloud-init/storage"));
    }
    if let Some(cdrom) = &hardware.cdrom {
        if let Some(iso) = cdrom.iso.as_deref().filter(|i| *i != "none") {
            out.references.push(Reference::new("ISO", iso, "/spec/hardware/cdrom/iso"));
        } else if let Some((storage, _)) = cdrom.media.as_deref().and_then(|v| v.split_once(":iso/")) {
            out.storages.push(StorageUse::new(storage, "iso", "/spec/hardware/cdrom/media"));
        }
    }
    let data = &spec.cloud_init_data;
    if let Some(name) = &data.ci_password_ref {
        let at = "/spec/cloud-init-data/ci-password-ref";
        out.secrets.push(SecretUse::new(name, SecretClass::Password, at));
    }
    for (i, name) in data.ssh_key_refs.iter().flatten().enumerate() {
        let at = format!("/spec/cloud-init-data/ssh-key-refs/{i}");
        out.secrets.push(SecretUse::new(name, SecretClass::PublicKey, at));
    }
    out
}

fn general(m: &Resource<VmSpec>, template: bool, report: &mut Report) {
    let spec = &m.spec;
    if template && spec.state == Some(State::Started) {
        report
            .error("/spec/state", "template-never-runs", "a TemplateVM is a template, which PVE never starts")
            .help("say `state: stopped`");
    }
    named("/spec/node", "node", names::check_node(&spec.node), report);
    if let Some(name) = spec.pve_name.as_deref().filter(|n| !n.is_empty()) {
        named("/spec/pve-name", "pve-name", names::check_dns_name(name), report);
    }
    if let Some(pool) = &spec.pool {
        named("/spec/pool", "pool", names::check_pool(pool), report);
    }
    if let Some(storage) = &spec.clone_storage {
        named("/spec/clone-storage", "clone-storage", names::check_storage(storage), report);
    }
    if spec.pve_description.as_ref().is_some_and(|d| d.chars().count() > 8192) {
        report.error(
            "/spec/pve-description",
            "too-long",
            "`pve-description` may have 8192 characters at most",
        );
    }
    for (i, tag) in spec.tags.iter().flatten().enumerate().filter(|(_, t)| !tags::is_valid(t)) {
        report
            .error(
                format!("/spec/tags/{i}"),
                "bad-tag",
                format!("{} is not a tag that PVE takes", quoted(tag)),
            )
            .help("letters, digits and _ + . -, not starting with + . or -");
    }
    match spec.memory.mib() {
        None => report
            .error(
                "/spec/memory",
                "not-whole-mib",
                format!("`memory` must be whole MiB, which {} is not", spec.memory),
            )
            .help("such as 2GiB or 1536MiB"),
        Some(mib) if mib < 16 => {
            report
                .error("/spec/memory", "out-of-range", "`memory` must be at least 16MiB")
                .help("such as 512MiB");
        }
        Some(mib) => {
            if spec.balloon.is_some_and(|b| b.0 > mib) && !report.is_broken("/spec/memory") {
                report.error("/spec/balloon", "out-of-range", "`balloon` can't be more than `memory`").help(
                    "it is the least that the guest keeps when the host is short of memory; 0 switches ballooning off",
                );
            }
        }
    }
    if let Some(pages) = spec.hugepages.as_ref().filter(|p| !["any", "2", "1024"].contains(&p.as_str())) {
        let message = format!("`hugepages` must be any, 2 or 1024, not {}", quoted(pages.as_str()));
        report.error("/spec/hugepages", "unknown-value", message);
    }
    if spec.clone.is_none() {
        for (at, set) in [
            ("/spec/clone-storage", spec.clone_storage.is_some()),
            ("/spec/clone-format", spec.clone_format.is_some()),
        ] {
            if set {
                let field = at.trim_start_matches("/spec/");
                report
                    .error(at, "needs-clone", format!("`{field}` has no meaning without `clone`"))
                    .help("remove it");
            }
        }
    }
}

/// Reports a name that PVE does not take.
fn named(at: &str, field: &str, checked: names::Checked, report: &mut Report) {
    if let Err(why) = checked {
        report.error(at, "bad-name", format!("`{field}` {why}"));
    }
}

fn processor(spec: &VmSpec, report: &mut Report) {
    let model = &spec.cpu.model;
    if model.is_empty() || !model.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
        report
            .error(
                "/spec/cpu/type",
                "bad-value",
                format!("`type` must be a processor model, not {}", quoted(model)),
            )
            .help("such as host or x86-64-v2-AES; flags have a field of their own");
    }
    for flag in spec.cpu.flags.iter().flat_map(|f| f.0.iter()) {
        if !cpu::is_flag(flag) {
            report
                .error(
                    "/spec/cpu/flags",
                    "unknown-flag",
                    format!("{} is not a flag that PVE lets a VM set", quoted(flag)),
                )
                .help(format!("+ or - and one of {}", cpu::FLAGS.join(", ")));
        }
    }
    both(spec.cpu.sockets, spec.hardware.sockets, "/spec/hardware/sockets", "cpu.sockets", report);
    both(spec.cpu.numa, spec.hardware.numa, "/spec/hardware/numa", "cpu.numa", report);
    both(spec.cpu.hidden, spec.options.hidden, "/spec/options/hidden", "cpu.hidden", report);
    both(
        spec.cpu.nested_virt,
        spec.options.nested_virt,
        "/spec/options/nested-virt",
        "cpu.nested-virt",
        report,
    );
    let sockets = spec.cpu.sockets.or(spec.hardware.sockets).unwrap_or(1);
    let most = u64::from(spec.cpu.cores) * u64::from(sockets);
    if spec.cpu.vcpus.is_some_and(|v| u64::from(v) > most) && report.is_whole("/spec/cpu") {
        let message = format!("`vcpus` can't be more than cores times sockets, which is {most}");
        report.error("/spec/cpu/vcpus", "out-of-range", message).help("raise `cores`, or lower `vcpus`");
    }
}

/// An old and a new spelling may stand together only if they agree.
fn both<T: PartialEq>(new: Option<T>, old: Option<T>, at: &str, name: &str, report: &mut Report) {
    if new.is_some() && old.is_some() && new != old {
        let message = format!("this is the old spelling of `{name}`, and the two differ");
        report.error(at, "contradiction", message).help(format!("keep `{name}` only"));
    }
}

fn slot_of_family(slot: &str, family: &str, last: u32, at: &str, report: &mut Report) {
    if proxops_kind::live::slot_index(slot, family).is_none_or(|n| n > last) {
        report
            .error(at, "bad-slot", format!("{} is not a slot of this kind", quoted(slot)))
            .help(format!("{family}0 to {family}{last}"));
    }
}

fn repeated(slot: &str, all: Vec<String>, i: usize, at: &str, report: &mut Report) {
    if all.iter().take(i).any(|other| other == slot) {
        report.error(at, "slot-taken", format!("slot {slot} is named twice")).help("use another slot");
    }
}
