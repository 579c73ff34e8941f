//! Parameters on their way to PVE: secrets put in, sizes written and read, allocating values recognised.

use crate::SecretSource;
use proxops_model::kind::{GuestType, KindStep, Param, ParamValue};
use proxops_model::{Step, text};
use proxops_pve::ParamText;
use proxops_secrets::Secret;

/// Parameters of one request.
pub(crate) type Form = Vec<(String, ParamText)>;

/// The host's own keys of guests; a kind's value for one of them never reaches the wire.
pub(crate) const GUEST_RESERVED: &[&str] =
    &["vmid", "newid", "node", "digest", "lock", "skiplock", "force", "delete", "revert"];

/// A kind's parameters but the reserved ones, with secrets looked up; each secret is also put into `used`.
pub(crate) fn form(
    params: &[Param],
    reserved: &[&str],
    secrets: &dyn SecretSource,
    used: &mut Vec<Secret>,
) -> Result<Form, String> {
    let mut form = Form::with_capacity(params.len() + 2);
    for param in params.iter().filter(|param| !reserved.contains(&param.key.as_str())) {
        let value = match &param.value {
            ParamValue::Text(text) => ParamText::Text(text.clone()),
            ParamValue::Many(list) => ParamText::Many(list.clone()),
            ParamValue::Secret(name) => {
                let secret = secrets.secret(name)?;
                used.push(secret.clone());
                ParamText::Secret(secret)
            }
        };
        form.push((param.key.clone(), value));
    }
    Ok(form)
}

/// Adds a plain parameter.
pub(crate) fn push(form: &mut Form, key: &str, value: impl Into<String>) {
    form.push((key.to_owned(), ParamText::Text(value.into())));
}

/// Whether the form has this key.
pub(crate) fn has(form: &Form, key: &str) -> bool {
    form.iter().any(|(name, _)| name == key)
}

/// Whether writing this value makes PVE allocate or import a volume, which may take longer than the 30 s
/// of a synchronous call (fact T24): `<storage>:<GiB>`, `import-from=`, `<storage>:cloudinit`.
pub(crate) fn allocates(param: &Param) -> bool {
    let ParamValue::Text(value) = &param.value else { return false };
    let bus = param.key.trim_end_matches(|c: char| c.is_ascii_digit());
    if !matches!(bus, "ide" | "sata" | "scsi" | "virtio" | "efidisk" | "tpmstate") {
        return false;
    }
    let volume = value.split(',').find_map(|part| match part.split_once('=') {
        Some(("file", volume)) => Some(volume),
        Some(_) => None,
        None => Some(part),
    });
    let makes_volume = volume.and_then(|volume| volume.split_once(':')).is_some_and(|(_, name)| {
        name == "cloudinit"
            || (name.starts_with(|c: char| c.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_digit() || c == '.'))
    });
    makes_volume || value.split(',').any(|part| part.starts_with("import-from="))
}

/// The type of this name.
pub(crate) fn guest_type(text: &str) -> Option<GuestType> {
    [GuestType::Qemu, GuestType::Lxc].into_iter().find(|guest_type| guest_type.as_str() == text)
}

/// What a step does, in a few words for progress and errors.
pub(crate) fn words(step: &Step) -> String {
    match step {
        Step::Kind(KindStep::Create { .. }) => "create".to_owned(),
        Step::Kind(KindStep::Restore { .. }) => "restore".to_owned(),
        Step::Kind(KindStep::Clone { source, .. }) | Step::CloneFrom { source, .. } => {
            format!("clone {source}")
        }
        Step::Kind(KindStep::Configure { .. }) => "write configuration".to_owned(),
        Step::Kind(KindStep::Resize { disk, bytes, .. }) => format!("grow {disk} to {}", text::size(*bytes)),
        Step::Kind(KindStep::RebuildCloudInit) => "rebuild the seed image".to_owned(),
        Step::Kind(KindStep::MarkTemplate) => "mark as template".to_owned(),
        Step::Kind(KindStep::Download { node, storage, filename, .. }) => {
            format!("download {filename} to {storage} on {node}")
        }
        Step::Kind(KindStep::Call { operation, .. }) => operation.clone(),
        Step::Settle => "read back".to_owned(),
        Step::Stop { .. } => "shut down".to_owned(),
        Step::Start => "start".to_owned(),
        Step::Destroy => "destroy".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(key: &str, value: &str) -> Param {
        Param { key: key.to_owned(), value: ParamValue::Text(value.to_owned()), at: None }
    }

    #[test]
    fn only_values_that_make_a_volume_need_a_task() {
        for (key, value) in [
            ("scsi0", "local-lvm:32"),
            ("scsi0", "file=local-lvm:0.5,ssd=1"),
            ("virtio1", "local-lvm:0,import-from=local:import/x.qcow2"),
            ("ide2", "local-lvm:cloudinit"),
            ("efidisk0", "local-lvm:1,efitype=4m"),
        ] {
            assert!(allocates(&text(key, value)), "{key}={value}");
        }
        for (key, value) in [
            ("scsi0", "local-lvm:vm-101-disk-0,size=32G"),
            ("scsi0", "local:101/vm-101-disk-0.qcow2"),
            ("ide2", "local:iso/x.iso,media=cdrom"),
            ("ide2", "none,media=cdrom"),
            ("net0", "virtio=BC:24:11:00:00:01,bridge=vmbr0"),
            ("description", "see nas:32"),
        ] {
            assert!(!allocates(&text(key, value)), "{key}={value}");
        }
    }

    #[test]
    fn a_kind_can_not_set_what_is_the_hosts() {
        struct None;
        impl SecretSource for None {
            fn secret(&self, name: &str) -> Result<Secret, String> {
                Err(format!("no {name}"))
            }
        }
        let params = [text("vmid", "9"), text("skiplock", "1"), text("memory", "512")];
        let form = form(&params, GUEST_RESERVED, &None, &mut Vec::new()).unwrap();
        assert_eq!(form.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["memory"]);
    }
}
