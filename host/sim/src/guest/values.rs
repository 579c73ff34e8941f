//! Plain values on their way into a configuration: tags, nets, boot order, descriptions.

use std::collections::BTreeSet;

use super::GuestKind;
use crate::grammar::property::{self, Props};
use crate::grammar::{ct, other, split_list, vm};
use crate::refused::{Refused, Reply};
use crate::world::{Caller, World};

/// A card of a VM as PVE prints it: `model=MAC` first, the rest by alphabet (fact Q35).
pub fn print_net(props: &Props) -> String {
    let model = props.get("model").map_or("virtio", String::as_str);
    let mac = props.get("macaddr").map_or("", String::as_str);
    let rest: String = props
        .iter()
        .filter(|(key, _)| !matches!(**key, "model" | "macaddr"))
        .map(|(key, value)| format!(",{key}={value}"))
        .collect();
    format!("{model}={mac}{rest}")
}

impl World {
    /// A card of a VM as it will be stored: without a MAC it gets a new one (fact Q13).
    pub(crate) fn vm_net(&mut self, text: &str) -> String {
        let mut props = property::parse(vm::NET, text, "net").unwrap_or_default();
        let mac = props.get("macaddr").map(|mac| mac.to_ascii_uppercase());
        let mac = mac.unwrap_or_else(|| self.mac());
        props.insert("macaddr", mac);
        print_net(&props)
    }

    /// A card of a container as it will be stored (fact L10).
    pub(crate) fn ct_net(&mut self, text: &str) -> String {
        let mut props = property::parse(ct::NET, text, "net").unwrap_or_default();
        let mac = props.get("hwaddr").map(|mac| mac.to_ascii_uppercase());
        let mac = mac.unwrap_or_else(|| self.mac());
        props.insert("hwaddr", mac);
        props.insert("type", "veth".to_owned());
        property::print(ct::NET, &props)
    }

    /// Tags as they are stored: no duplicates, by the datacenter's style (fact C4).
    pub(crate) fn stored_tags(&self, text: &str) -> String {
        let style = self.options.get("tag-style").map_or("", String::as_str);
        let style = property::parse(other::TAG_STYLE, style, "tag-style").unwrap_or_default();
        let keep_case = style.get("case-sensitive").is_some_and(|flag| flag == "1");
        let keep_order = style.get("ordering").is_some_and(|order| order == "config");
        let mut tags: Vec<String> = Vec::new();
        for tag in split_list(text) {
            let tag = if keep_case { tag.to_owned() } else { tag.to_lowercase() };
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        if !keep_order {
            tags.sort();
        }
        tags.join(";")
    }

    /// May the caller make this change of tags (fact C5)?
    pub(crate) fn check_tags(&self, caller: &Caller, vmid: u32, old: &str, new: &str) -> Reply<()> {
        if caller.is_root() {
            return Ok(());
        }
        self.need(caller, &format!("/vms/{vmid}"), &["VM.Config.Options"])?;
        if self.may(caller, "/", "Sys.Modify") {
            return Ok(());
        }
        let set = |text: &str| {
            self.stored_tags(text)
                .split(';')
                .filter(|t| !t.is_empty())
                .map(str::to_owned)
                .collect::<BTreeSet<_>>()
        };
        let registered = set(self.options.get("registered-tags").map_or("", String::as_str));
        let access = self.options.get("user-tag-access").map_or("", String::as_str);
        let access = property::parse(other::TAG_ACCESS, access, "user-tag-access").unwrap_or_default();
        let listed = set(access.get("user-allow-list").map_or("", String::as_str));
        let (old, new) = (set(old), set(new));
        for tag in old.symmetric_difference(&new) {
            let allowed = match access.get("user-allow").map_or("free", String::as_str) {
                "none" => false,
                "list" => listed.contains(tag),
                "existing" => listed.contains(tag) || self.tag_in_use(tag),
                _ => true,
            };
            if registered.contains(tag) || !allowed {
                return Err(Refused::denied(&format!("/, Sys.Modify for modifying tag '{tag}'")));
            }
        }
        Ok(())
    }

    fn tag_in_use(&self, tag: &str) -> bool {
        self.guests
            .values()
            .any(|guest| guest.config.get("tags").is_some_and(|tags| split_list(tags).any(|t| t == tag)))
    }

    /// Cloud-init snippets must be readable (facts Q21, P7).
    pub(crate) fn check_snippets(&self, caller: &Caller, node: &str, vmid: u32, text: &str) -> Reply<()> {
        let props = property::parse(vm::CICUSTOM, text, "cicustom").unwrap_or_default();
        props.values().try_for_each(|volid| self.check_volume_access(caller, node, vmid, volid))
    }

    /// SDN.Use on the bridge of a card (fact P4).
    pub(crate) fn check_bridge(&self, caller: &Caller, kind: GuestKind, text: &str) -> Reply<()> {
        let table = if kind == GuestKind::Qemu { vm::NET } else { ct::NET };
        let props = property::parse(table, text, "net").unwrap_or_default();
        let Some(bridge) = props.get("bridge") else { return Ok(()) };
        let mut path = format!("/sdn/zones/localnetwork/{bridge}");
        if let Some(tag) = props.get("tag") {
            path.push_str(&format!("/{tag}"));
        }
        self.need(caller, &path, &["SDN.Use"])
    }
}

/// Descriptions lose trailing white space on VMs and end with a newline on containers (fact Q37).
pub fn stored_description(kind: GuestKind, text: &str) -> String {
    match kind {
        GuestKind::Qemu => text.trim_end().to_owned(),
        GuestKind::Lxc if text.is_empty() => String::new(),
        GuestKind::Lxc if text.ends_with('\n') => text.to_owned(),
        GuestKind::Lxc => format!("{text}\n"),
    }
}

/// cgroup v2 knows no more than 10000 (facts Q35, L11).
pub fn clamp_cpuunits(text: &str) -> String {
    text.parse::<u64>().map_or_else(|_| text.to_owned(), |n| n.min(10_000).to_string())
}

/// `order=a;b` as PVE reprints it; the legacy letters stay (fact Q17).
pub fn stored_boot(text: &str) -> String {
    match boot_devices(text) {
        Some(devices) => print_boot(&devices),
        None => text.to_owned(),
    }
}

/// The devices of an `order=` boot line; `None` for the legacy form.
pub fn boot_devices(text: &str) -> Option<Vec<String>> {
    let props = property::parse(vm::BOOT, text, "boot").ok()?;
    props.get("order").map(|order| split_list(order).map(str::to_owned).collect())
}

/// Prints a boot order; an empty one is a single space (fact R3).
pub fn print_boot(devices: &[String]) -> String {
    if devices.is_empty() { " ".to_owned() } else { format!("order={}", devices.join(";")) }
}

/// PVE's own models, which no other model can be reported as.
const CPU_LEVELS: [&str; 4] = ["x86-64-v2", "x86-64-v2-AES", "x86-64-v3", "x86-64-v4"];

/// A CPU must be built in or custom, and its flags those that a VM may switch (fact Q14).
pub(crate) fn check_cpu(text: &str) -> Reply<()> {
    let refuse = |why: String| Err(Refused::param("cpu", format!("invalid format - {why}\n")));
    let props = property::parse(vm::CPU, text, "cpu").unwrap_or_default();
    if let Some(model) = props.get("cputype")
        && !model.starts_with("custom-")
        && !vm::CPU_MODELS.split_ascii_whitespace().chain(CPU_LEVELS).any(|known| known == model)
    {
        return refuse(format!("Built-in cputype '{model}' is not defined (missing 'custom-' prefix?)"));
    }
    if props.contains_key("reported-model") {
        return refuse("cannot use 'reported-model' in a VM's cpu option".to_owned());
    }
    let allowed = |flag: &str| {
        vm::CPU_FLAGS.split_ascii_whitespace().any(|known| known == flag.trim_start_matches(['+', '-']))
    };
    match props.get("flags") {
        Some(flags) if !flags.split(';').all(allowed) => {
            let all = vm::CPU_FLAGS.split_ascii_whitespace().collect::<Vec<_>>().join(", ");
            refuse(format!("VM-specific CPU flags must be a subset of: {all}"))
        }
        _ => Ok(()),
    }
}

/// SSH keys: percent-encoded text of one key a line, each of which must look like one (fact Q22).
pub(crate) fn check_sshkeys(text: &str) -> Reply<()> {
    let keys = percent_encoding::percent_decode_str(text).decode_utf8_lossy();
    if keys.lines().filter(|line| !line.trim().is_empty()).all(is_public_key) {
        return Ok(());
    }
    Err(Refused::die("SSH public key validation error"))
}

/// `[options] type base64 [comment]`, where the key itself repeats its type.
pub(crate) fn is_public_key(line: &str) -> bool {
    const TYPES: [&str; 6] = [
        "ssh-ed25519",
        "ssh-rsa",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "ssh-dss",
    ];
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let Some(at) = words.iter().position(|word| TYPES.contains(word) || word.starts_with("sk-")) else {
        return false;
    };
    words.get(at + 1).is_some_and(|key| {
        key.len() >= 16
            && key.starts_with("AAAA")
            && key.chars().all(|c| c.is_ascii_alphanumeric() || "+/=".contains(c))
    })
}

/// A password as PVE stores it on a config write: a crypt text stays, anything else is hashed (fact Q23).
pub(crate) fn hashed_password(world: &mut World, text: &str, windows: bool) -> String {
    if windows || crate::grammar::check::matches(r"\$[0-9a-z]{1,2}\$.+\$.+", text) {
        return text.to_owned();
    }
    use sha2::Digest;
    let salt = world.random();
    let hash = sha2::Sha256::digest(format!("{salt:016x}{text}"));
    format!("$5${salt:016x}${}", hex::encode(hash))
}
