//! What the spec's type can't check.

mod networks;

use crate::features;
use crate::fields::FIELDS;
use crate::layout::{Placed, devices, hostname, mounts};
use crate::paths::{check_absolute, check_host_path, check_mount_point};
use crate::spec::{ContainerSpec, MOUNT_OPTIONS, Root, State};
use crate::startup::{self, Startup};
use proxops_kind::live::slot_index;
use proxops_kind::names::{self, Checked};
use proxops_kind::report::child;
use proxops_kind::size::MIB;
use proxops_kind::text::quoted;
use proxops_kind::{
    Hole, Identity, Power, Reference, Report, Resource, SecretClass, SecretUse, StorageUse, Validated, Words,
    tags,
};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Least memory in bytes (fact L11).
const LEAST_MEMORY: u64 = 16 * MIB;
/// Longest description in characters (fact Q37).
const LONGEST_DESCRIPTION: usize = 8192;
/// Where public keys and passwords stand in the secrets document.
const KEYS: &str = "cloud-init.ssh-keys.";
const PASSWORDS: &str = "cloud-init.passwords.";

/// Why a container without a template is incomplete.
pub(crate) const NO_TEMPLATE: &str =
    "the CTTemplate to create it from, or a TemplateCT to clone; PVE does not keep which one it was";
const NO_ROOT: &str = "storage and size of the root volume, needed to create it";
const NO_SIZE: &str = "the size of the volume, needed to create it";

/// PVE keys that no manifest sets verbatim, besides those that a field models: identity, create-only
/// switches and book-keeping.
const RESERVED: &[&str] = &[
    "arch",
    "bwlimit",
    "delete",
    "digest",
    "features",
    "force",
    "ha-managed",
    "hostname",
    "ignore-unpack-errors",
    "lock",
    "lxc",
    "newid",
    "node",
    "ostemplate",
    "parent",
    "password",
    "pool",
    "restore",
    "revert",
    "rootfs",
    "skiplock",
    "snapname",
    "snaptime",
    "ssh-public-keys",
    "start",
    "storage",
    "tags",
    "target",
    "template",
    "unique",
    "unprivileged",
    "vmid",
];

pub(crate) fn validate(
    template_kind: bool,
    manifest: &Resource<ContainerSpec>,
    report: &mut Report,
) -> Option<Validated> {
    let spec = &manifest.spec;
    identity(spec, template_kind, report);
    limits(spec, report);
    origin(spec, report);
    volumes(spec, report);
    networks::interfaces(spec, report);
    passed_devices(spec, report);
    system(spec, report);
    switches(spec, report);
    extra(spec, report);
    if report.is_broken("/spec/vmid") || report.is_broken("/spec/node") {
        return None;
    }
    Some(facts(template_kind, manifest))
}

/// The words of a list. They may stand in one text, so that they have no pointers of their own.
fn each(words: &Option<Words>) -> impl Iterator<Item = &str> {
    words.iter().flat_map(Words::iter)
}

/// Says `checked` about a field.
fn say(report: &mut Report, at: impl Into<String>, code: &str, checked: Checked) {
    if let Err(wrong) = checked {
        let at = at.into();
        let name = at.rsplit('/').find(|step| step.bytes().any(|b| !b.is_ascii_digit())).unwrap_or_default();
        let message = format!("`{name}` {wrong}");
        report.error(at, code, message);
    }
}

fn identity(spec: &ContainerSpec, template_kind: bool, report: &mut Report) {
    say(report, "/spec/node", "bad-node", names::check_node(&spec.node));
    if template_kind && spec.state == Some(State::Started) {
        report.error("/spec/state", "template-started", "a template can't run").help("leave `state` out");
    }
    for (i, tag) in spec.tags.iter().flatten().enumerate() {
        if !tags::is_valid(tag) {
            report
                .error(
                    format!("/spec/tags/{i}"),
                    "bad-tag",
                    format!("{} is not a tag that PVE takes", quoted(tag)),
                )
                .help("letters, digits and _ + . -, the first of them no hyphen");
        }
    }
    if spec.pve_description.as_ref().is_some_and(|d| d.chars().count() > LONGEST_DESCRIPTION) {
        let message = format!("`pve-description` must be at most {LONGEST_DESCRIPTION} characters long");
        report.error("/spec/pve-description", "too-long", message);
    }
    if let Some(pool) = &spec.pool {
        say(report, "/spec/pool", "bad-pool", names::check_pool(pool));
    }
}

fn limits(spec: &ContainerSpec, report: &mut Report) {
    for (name, size, least) in [("memory", spec.memory, LEAST_MEMORY), ("swap", spec.swap, 0)] {
        let Some(size) = size else { continue };
        if size.mib().is_none() {
            let message = format!("`{name}` must be whole MiB, which {size} is not");
            report.error(format!("/spec/{name}"), "size-not-whole-mib", message);
        } else if size.0 < least {
            report.error(
                format!("/spec/{name}"),
                "out-of-range",
                format!("`{name}` must be at least 16MiB, not {size}"),
            );
        }
    }
}

fn origin(spec: &ContainerSpec, report: &mut Report) {
    if spec.template.is_some() && spec.clone.is_some() {
        report
            .error("/spec/clone", "template-and-clone", "`template` and `clone` exclude each other")
            .help("keep the one from which the container is made");
    }
    if let (Some(storage), clone) = (&spec.clone_storage, &spec.clone) {
        say(report, "/spec/clone-storage", "bad-storage", names::check_storage(storage));
        if clone.is_none() && !report.is_broken("/spec/clone") {
            report.error("/spec/clone-storage", "no-clone", "`clone-storage` has no meaning without `clone`");
        }
    }
    for (i, name) in spec.ssh_key_refs.iter().flatten().enumerate() {
        say(report, format!("/spec/ssh-key-refs/{i}"), "bad-secret", names::check_secret(name, KEYS));
    }
    if let Some(name) = &spec.password_ref {
        say(report, "/spec/password-ref", "bad-secret", names::check_secret(name, PASSWORDS));
    }
    if spec.clone.is_some() {
        for (name, there) in
            [("ssh-key-refs", spec.ssh_key_refs.is_some()), ("password-ref", spec.password_ref.is_some())]
        {
            if there {
                report
                    .error(
                        format!("/spec/{name}"),
                        "not-with-clone",
                        format!("`{name}` has no effect on a clone: PVE takes it only when it unpacks a template file"),
                    )
                    .help("set it in the TemplateCT");
            }
        }
    }
}

fn volumes(spec: &ContainerSpec, report: &mut Report) {
    if let Some(root) = &spec.root {
        if let Some(storage) = &root.storage {
            say(report, "/spec/root/storage", "bad-storage", names::check_storage(storage));
        }
        if spec.clone.is_some() {
            for name in beside_size(root) {
                report
                    .error(
                        format!("/spec/root/{name}"),
                        "not-with-clone",
                        format!("`{name}` can't stand beside `clone`: the root volume is the template's"),
                    )
                    .help("keep only `size`, and `clone-storage` for another storage");
            }
        }
        whole_size(report, "/spec/root/size", root.size.map(|s| s.0));
    }
    mount_options(
        report,
        "/spec/root/mount-options",
        spec.root.as_ref().and_then(|r| r.mount_options.as_ref()),
    );
    let (mounts, binds) = mounts(spec);
    for mount in &mounts {
        let words = mount.item.options.as_ref().and_then(|o| o.mount_options.as_ref());
        mount_options(report, &format!("{}/options/mount-options", mount.at), words);
        say(
            report,
            format!("{}/storage", mount.at),
            "bad-storage",
            names::check_storage(&mount.item.storage),
        );
        whole_size(report, &format!("{}/size", mount.at), mount.item.size.map(|s| s.0));
    }
    for bind in &binds {
        let checked = check_host_path(&bind.item.host_path);
        say(report, format!("{}/host-path", bind.at), "bad-host-path", checked);
    }
    let paths = mounts.iter().map(|m| (&m.at, &m.item.mount_point));
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (at, path) in paths.chain(binds.iter().map(|b| (&b.at, &b.item.mount_point))) {
        let at = format!("{at}/mount-point");
        say(report, at.as_str(), "bad-mount-point", check_mount_point(path));
        if seen.insert(crate::paths::normalised(path), path).is_some() {
            report.error(at, "mount-point-twice", format!("{} is mounted twice", quoted(path)));
        }
    }
    let mut slots: Vec<Slot<'_>> = mounts.iter().map(|m| (&m.at, m.number, m.item.slot.as_deref())).collect();
    slots.extend(binds.iter().map(|b| (&b.at, b.number, b.item.slot.as_deref())));
    numbered("mp", 255, "/spec/mount-points", &slots, report);
}

fn mount_options(report: &mut Report, at: &str, words: Option<&Words>) {
    // What is wrong in a list was said when the list was read.
    if let Some(word) = words.and_then(|w| w.iter().find(|word| !MOUNT_OPTIONS.contains(word)))
        && report.is_whole(at)
    {
        let message = format!("`mount-options` takes {}, not {}", MOUNT_OPTIONS.join(", "), quoted(word));
        report.error(at, "unknown-value", message);
    }
}

fn beside_size(root: &Root) -> Vec<&'static str> {
    [
        ("storage", root.storage.is_some()),
        ("mount-options", root.mount_options.is_some()),
        ("acl", root.acl.is_some()),
        ("quota", root.quota.is_some()),
        ("replicate", root.replicate.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, there)| there.then_some(name))
    .collect()
}

fn whole_size(report: &mut Report, at: &str, bytes: Option<u64>) {
    if bytes.is_some_and(|b| b == 0 || b % 1024 != 0) {
        report.error(at, "bad-size", "`size` must be more than 0 and whole KiB");
    }
}

/// Place of an entry, the number of its slot, and the slot as it is written.
type Slot<'a> = (&'a String, u32, Option<&'a str>);

/// Slots that are out of range or taken twice, and a warning about slots that follow from list order.
fn numbered(prefix: &str, most: u32, list: &str, slots: &[Slot<'_>], report: &mut Report) {
    let mut seen: Vec<u32> = Vec::new();
    for (at, number, named) in slots {
        let at = format!("{at}/slot");
        if *number > most || named.is_some_and(|slot| slot_index(slot, prefix).is_none()) {
            report.error(at, "bad-slot", format!("`slot` must be {prefix}0 to {prefix}{most}"));
        } else if seen.contains(number) && named.is_some() {
            report.error(at, "slot-twice", format!("slot {prefix}{number} is taken by another entry"));
        } else {
            seen.push(*number);
        }
    }
    if slots.iter().filter(|(_, _, named)| named.is_none()).count() > 1 {
        report
            .warning(
                list_of(list, slots),
                "slots-by-order",
                format!("the {prefix}N slots follow from the order of the entries, so that removing or adding one shifts the others"),
            )
            .help(format!("write `slot: {prefix}0` and so on"));
    }
}

/// The list of the first entry without a slot.
fn list_of(list: &str, slots: &[Slot<'_>]) -> String {
    let first = slots.iter().find(|(_, _, named)| named.is_none());
    first.and_then(|(at, ..)| at.rsplit_once('/')).map_or(list, |(list, _)| list).to_owned()
}

fn passed_devices(spec: &ContainerSpec, report: &mut Report) {
    let all = devices(spec);
    for Placed { at, item, .. } in &all {
        let checked = check_absolute(&item.path).and_then(|()| match item.path.strip_prefix("/dev/") {
            Some(rest) if !rest.is_empty() && !rest.contains('=') => Ok(()),
            _ => Err("must be a device below /dev, such as /dev/dri/renderD128".to_owned()),
        });
        say(report, format!("{at}/path"), "bad-device", checked);
        let octal =
            |m: &String| m.len() == 4 && m.starts_with('0') && m.bytes().all(|b| (b'0'..=b'7').contains(&b));
        if item.mode.as_ref().is_some_and(|m| !octal(m)) {
            let checked =
                Err("must be four octal digits in quotes that start with 0, such as \"0660\"".to_owned());
            say(report, format!("{at}/mode"), "bad-mode", checked);
        }
    }
    let slots: Vec<Slot<'_>> = all.iter().map(|d| (&d.at, d.number, d.item.slot.as_deref())).collect();
    numbered("dev", 255, "/spec/devices", &slots, report);
}

fn system(spec: &ContainerSpec, report: &mut Report) {
    if let Some(dns) = &spec.dns {
        if let Some(hostname) = dns.hostname.as_deref().filter(|h| !h.is_empty()) {
            say(report, "/spec/dns/hostname", "bad-hostname", names::check_dns_name(hostname));
        }
        for server in each(&dns.nameservers) {
            // A link-local address may carry its interface.
            let address = server.split_once('%').map_or(server, |(address, _)| address);
            if address.parse::<IpAddr>().is_err() {
                let message = format!("a name server must be an IP address, not {}", quoted(server));
                report.error("/spec/dns/nameservers", "bad-address", message);
            }
        }
        for domain in each(&dns.domain) {
            say(report, "/spec/dns/domain", "bad-domain", names::check_dns_name(domain));
        }
    }
    let control = |text: &str| text.chars().any(|c| c != '\t' && c.is_ascii_control());
    if spec.entrypoint.as_ref().is_some_and(|e| e.is_empty() || control(e)) {
        let checked = Err("must be a command on one line".to_owned());
        say(report, "/spec/entrypoint", "bad-entrypoint", checked);
    }
    let zone = |c: char| c.is_ascii_alphanumeric() || "/_+-".contains(c);
    if spec.timezone.as_ref().is_some_and(|z| !z.chars().all(zone)) {
        let checked = Err("must be `host` or a time zone such as Europe/Vienna".to_owned());
        say(report, "/spec/timezone", "bad-timezone", checked);
    }
    for wrong in spec.env.iter().flat_map(|env| env.mistakes()) {
        report.error("/spec/env", "bad-env", format!("`env` {wrong}"));
    }
}

fn switches(spec: &ContainerSpec, report: &mut Report) {
    let Some(options) = &spec.options else { return };
    if options.startup.as_ref().is_some_and(|Startup(text)| !text.is_empty() && !startup::is_valid(text)) {
        let checked = Err("must be such as order=2,up=30,down=60".to_owned());
        say(report, "/spec/options/startup", "bad-startup", checked);
    }
    if options.hookscript.as_ref().is_some_and(|h| !h.is_empty() && !h.contains(":snippets/")) {
        let checked = Err("must be a volume id such as local:snippets/hook.sh".to_owned());
        say(report, "/spec/options/hookscript", "bad-hookscript", checked);
    }
    if let (Some(a), Some(b)) = (options.ttys, options.tty)
        && a != b
    {
        report
            .error("/spec/options/tty", "said-twice", "`tty` and `ttys` are the same and disagree")
            .help("keep `ttys`");
    }
    let inside = options.features.clone().unwrap_or_default();
    for (name, above, below) in [
        ("nesting", options.nesting, inside.nesting),
        ("keyctl", options.keyctl, inside.keyctl),
        ("fuse", options.fuse, inside.fuse),
    ] {
        if let (Some(above), Some(below)) = (above, below)
            && above != below
        {
            let message = format!("`{name}` stands here and in `features`, and they disagree");
            report
                .error(format!("/spec/options/{name}"), "said-twice", message)
                .help("keep it in `features`");
        }
    }
    for fs in each(&inside.mount) {
        let good = !fs.is_empty() && fs.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !good {
            let message = format!("a file system type must be such as nfs, not {}", quoted(fs));
            report.error("/spec/options/features/mount", "bad-file-system", message);
        }
    }
}

fn extra(spec: &ContainerSpec, report: &mut Report) {
    for key in spec.extra.iter().flat_map(|extra| extra.keys()) {
        let at = child("/spec/extra", key);
        let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
        let family = stem != key && ["mp", "net", "dev", "unused"].contains(&stem);
        let plain = key.starts_with(|c: char| c.is_ascii_alphabetic())
            && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        if !plain {
            report
                .error(at, "bad-key", format!("{} is not a PVE key", quoted(key)))
                .help("raw lxc lines can't be set through PVE's API");
        } else if let Some(row) = FIELDS.iter().find(|row| row.key == *key) {
            report
                .error(at, "modelled-key", format!("`{key}` has a field of its own"))
                .help(format!("use `{}`", row.at.trim_start_matches('/').replace('/', ".")));
        } else if family || RESERVED.contains(&key.as_str()) {
            report.error(
                at,
                "reserved-key",
                format!("`{key}` can't be set verbatim: a field or proxops itself owns it"),
            );
        }
    }
}

/// What the host needs to know.
fn facts(template_kind: bool, manifest: &Resource<ContainerSpec>) -> Validated {
    let spec = &manifest.spec;
    let name = hostname(&manifest.name, spec);
    let mut out = Validated::new(Identity::guest_id(&spec.node, spec.vmid, name));
    out.power = Some(match spec.state {
        Some(State::Stopped) => Power::Stopped,
        _ if template_kind => Power::Stopped,
        _ => Power::Running,
    });
    out.references.extend(spec.template.iter().map(|t| Reference::new("CTTemplate", t, "/spec/template")));
    out.references.extend(spec.clone.iter().map(|c| Reference::new("TemplateCT", c, "/spec/clone")));
    let key = |(i, name): (usize, &String)| {
        SecretUse::new(name, SecretClass::PublicKey, format!("/spec/ssh-key-refs/{i}"))
    };
    out.secrets.extend(spec.ssh_key_refs.iter().flatten().enumerate().map(key));
    let password = spec.password_ref.iter();
    out.secrets
        .extend(password.map(|name| SecretUse::new(name, SecretClass::Password, "/spec/password-ref")));

    let storage = |name: &str, at: String| StorageUse::new(name, "rootdir", at);
    let root = spec.root.as_ref().and_then(|root| root.storage.as_ref());
    out.storages.extend(root.map(|name| storage(name, "/spec/root/storage".to_owned())));
    out.storages
        .extend(spec.clone_storage.as_ref().map(|name| storage(name, "/spec/clone-storage".to_owned())));
    let (mounts, _) = mounts(spec);
    out.storages.extend(mounts.iter().map(|m| storage(&m.item.storage, format!("{}/storage", m.at))));

    out.attributes = vec![("vmid".to_owned(), spec.vmid.to_string()), ("node".to_owned(), spec.node.clone())];
    out.attributes.extend(name.map(|name| ("name".to_owned(), name.to_owned())));
    if spec.clone.is_none() {
        if spec.template.is_none() {
            out.incomplete.push(Hole::new("/spec/template", NO_TEMPLATE));
        }
        match &spec.root {
            None => out.incomplete.push(Hole::new("/spec/root", NO_ROOT)),
            Some(root) => {
                for (name, missing) in [("storage", root.storage.is_none()), ("size", root.size.is_none())] {
                    if missing {
                        out.incomplete.push(Hole::new(format!("/spec/root/{name}"), NO_ROOT));
                    }
                }
            }
        }
    }
    for mount in mounts.iter().filter(|m| m.item.size.is_none()) {
        out.incomplete.push(Hole::new(format!("{}/size", mount.at), NO_SIZE));
    }
    out
}

/// Declared things that PVE lets only root@pam itself set: pointer, PVE key, words (facts L7, L8).
pub(crate) fn root_only(spec: &ContainerSpec) -> Vec<(String, String, &'static str)> {
    let mut out = Vec::new();
    let (_, binds) = mounts(spec);
    out.extend(binds.into_iter().map(|b| (b.at, b.slot, "bind mounts")));
    out.extend(devices(spec).into_iter().map(|d| (d.at, d.slot, "passed-through devices")));
    for row in FIELDS.iter().filter(|row| row.root_only) {
        if (row.get)(spec).is_some_and(|want| !row.same(None, &want)) {
            out.push((crate::layout::place(spec, row.at), row.key.to_owned(), "a hook script"));
        }
    }
    let unprivileged = spec.options.as_ref().and_then(|o| o.unprivileged).unwrap_or(true);
    let declared = features::declared(spec);
    for row in features::ROWS {
        if let Some(what) = features::needs_root(row, unprivileged)
            && (row.get)(&declared).is_some_and(|want| !row.same(None, &want))
        {
            out.push((features::place(spec, row), "features".to_owned(), what));
        }
    }
    out
}
