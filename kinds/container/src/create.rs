//! Steps that make a container.

use crate::check::root_only;
use crate::features;
use crate::fields::FIELDS;
use crate::layout::{devices, hostname, interface_names, mounts, networks, place};
use crate::rows::write_new;
use crate::spec::ContainerSpec;
use crate::volumes::{BIND_MOUNT, DEVICE, DEVICE_TABLE, MOUNT_POINT, ROOT, TABLE, allocation};
use crate::{network, spec::BindMount};
use proxops_kind::text::bool_text;
use proxops_kind::{
    Anomaly, Context, Creation, Diagnostic, Param, Props, Refusal, Resource, ResourceRef, Severity, Step,
    records, tags,
};

/// A new container: unpacked from a template file with everything that the manifest declares, or cloned,
/// where the comparison that follows writes the rest.
pub(crate) fn create(manifest: &Resource<ContainerSpec>, context: &Context) -> Result<Creation, Refusal> {
    let step = match &manifest.spec.clone {
        Some(source) => Step::clone_of(ResourceRef::new("TemplateCT", source), clone_params(manifest)),
        None => Step::Create(create_params(manifest, context)?),
    };
    let mut creation = Creation::new(vec![step]);
    if !context.root {
        creation.anomalies = root_only(&manifest.spec)
            .into_iter()
            .map(|(at, key, what)| needs_root(Severity::Error, &at, &key, what))
            .collect();
    }
    Ok(creation)
}

/// What PVE lets only root@pam itself set; a token of root@pam is not enough (fact T26).
pub(crate) fn needs_root(severity: Severity, at: &str, key: &str, what: &str) -> Anomaly {
    Anomaly::new(
        severity,
        "needs-root-ticket",
        format!(
            "{key}: PVE lets only root@pam set {what}, with a ticket; an API token is refused, even root's"
        ),
    )
    .at(at)
    .key(key)
    .help("set it by hand in PVE, give this cluster `auth: ticket` with user root@pam, or remove the field")
}

/// Clone parameters; the host adds newid and target (fact L18). A template is cloned as a link unless
/// `full` says otherwise, and the name is copied when it is not given.
fn clone_params(manifest: &Resource<ContainerSpec>) -> Vec<Param> {
    let spec = &manifest.spec;
    let mut params = vec![Param::text("full", "1").at("/spec/clone")];
    params.extend(
        hostname(&manifest.name, spec)
            .map(|name| Param::text("hostname", name).at(place(spec, "/dns/hostname"))),
    );
    params.extend(spec.clone_storage.iter().map(|s| Param::text("storage", s).at("/spec/clone-storage")));
    params.extend(spec.pool.iter().map(|p| Param::text("pool", p).at("/spec/pool")));
    params
}

fn create_params(manifest: &Resource<ContainerSpec>, context: &Context) -> Result<Vec<Param>, Refusal> {
    let spec = &manifest.spec;
    let mut wrong = Vec::new();
    let mut params = Vec::new();
    match spec.template.as_deref().map(|name| (name, context.attribute("CTTemplate", name, "volid"))) {
        Some((_, Some(volid))) => params.push(Param::text("ostemplate", volid).at("/spec/template")),
        Some((name, None)) => wrong.push(Diagnostic::error(
            "unknown-template",
            "/spec/template",
            format!("the file of CTTemplate {name} is not known"),
        )),
        None => wrong.push(
            Diagnostic::error(
                "no-template",
                "/spec/template",
                "`template` is left out, and the container does not exist",
            )
            .help("name a CTTemplate, or clone a TemplateCT"),
        ),
    }
    params.extend(
        hostname(&manifest.name, spec)
            .map(|name| Param::text("hostname", name).at(place(spec, "/dns/hostname"))),
    );
    for row in FIELDS {
        if let Some(want) = (row.get)(spec).filter(|want| !want.is_empty()) {
            params.push(Param::text(row.key, want).at(place(spec, row.at)));
        }
    }
    // A new container has no tags: what is wanted is the whole list.
    let style = &context.tag_style;
    let all = tags::wanted(spec.tags.as_deref(), None, &context.owner_tag, style);
    params.extend(all.map(|all| Param::text("tags", all).at("/spec/tags")));
    params.extend(spec.pool.iter().map(|pool| Param::text("pool", pool).at("/spec/pool")));
    if let Some(unprivileged) = spec.options.as_ref().and_then(|o| o.unprivileged) {
        params.push(Param::text("unprivileged", bool_text(unprivileged)).at("/spec/options/unprivileged"));
    }
    let features = features::new(&features::declared(spec));
    if !features.is_empty() {
        params.push(Param::text("features", features.to_string()).at("/spec/options"));
    }
    volumes(spec, &mut params, &mut wrong);
    let mut names = interface_names(spec);
    for entry in networks(spec).iter().filter(|n| n.item.absent != Some(true)) {
        let props = network::new(entry.item, entry.number, &mut names);
        params.push(Param::text(&*entry.slot, props.to_string()).at(&*entry.at));
    }
    for entry in devices(spec) {
        let mut props = Props::new(&DEVICE_TABLE);
        write_new(DEVICE, entry.item, &mut props);
        params.push(Param::text(entry.slot, props.to_string()).at(entry.at));
    }
    access(spec, context, &mut params, &mut wrong);
    for (key, value) in spec.extra.iter().flatten().filter(|(_, value)| !value.as_str().is_empty()) {
        params.push(Param::text(key, value.as_str()).at(proxops_kind::report::child("/spec/extra", key)));
    }
    if wrong.is_empty() { Ok(params) } else { Err(wrong) }
}

fn volumes(spec: &ContainerSpec, params: &mut Vec<Param>, wrong: &mut Vec<Diagnostic>) {
    match spec.root.as_ref().map(|root| (root, root.storage.as_deref(), root.size)) {
        Some((root, Some(storage), Some(size))) => {
            let mut props = allocation(storage, size);
            write_new(ROOT, root, &mut props);
            params.push(Param::text("rootfs", props.to_string()).at("/spec/root"));
        }
        _ => wrong.push(
            Diagnostic::error(
                "no-root",
                "/spec/root",
                "the root volume needs `storage` and `size`, and the container does not exist",
            )
            .help("such as `root: {storage: local-lvm, size: 8GiB}`"),
        ),
    }
    let (mounts, binds) = mounts(spec);
    for entry in mounts {
        let Some(size) = entry.item.size else {
            let message = "the volume needs `size`, and it does not exist";
            wrong.push(Diagnostic::error("no-size", format!("{}/size", entry.at), message));
            continue;
        };
        let mut props = allocation(&entry.item.storage, size);
        write_new(MOUNT_POINT, entry.item, &mut props);
        params.push(Param::text(entry.slot, props.to_string()).at(entry.at));
    }
    for entry in binds {
        params.push(Param::text(entry.slot, new_bind_mount(entry.item).to_string()).at(entry.at));
    }
}

/// A folder of the node, mounted into the container.
pub(crate) fn new_bind_mount(bind: &BindMount) -> Props {
    let mut props = Props::new(&TABLE);
    props.set("volume", crate::paths::normalised(&bind.host_path));
    write_new(BIND_MOUNT, bind, &mut props);
    props
}

/// Keys and password of root: used once, never reported (fact L1). The keys are plain text, one a line.
fn access(spec: &ContainerSpec, context: &Context, params: &mut Vec<Param>, wrong: &mut Vec<Diagnostic>) {
    let mut keys: Vec<&str> = Vec::new();
    for (i, name) in spec.ssh_key_refs.iter().flatten().enumerate() {
        match records::pair(&context.public_keys, name) {
            Some(key) => keys.push(key.trim()),
            None => wrong.push(Diagnostic::error(
                "unknown-key",
                format!("/spec/ssh-key-refs/{i}"),
                format!("the cluster's secrets document has no public key {name}"),
            )),
        }
    }
    if !keys.is_empty() {
        params.push(Param::text("ssh-public-keys", keys.join("\n")).at("/spec/ssh-key-refs"));
    }
    params.extend(
        spec.password_ref.iter().map(|name| Param::secret("password", name).at("/spec/password-ref")),
    );
}
