//! A manifest for a container that exists.

use crate::check::NO_TEMPLATE;
use crate::env::Env;
use crate::features;
use crate::fields::FIELDS;
use crate::network;
use crate::paths::{check_host_path, check_mount_point};
use crate::rows::read;
use crate::spec::{
    BindMount, ContainerSpec, Device, Dns, Features, MountPoint, Network, Options, Root, State,
};
use crate::volumes::{
    BIND_MOUNT, DEVICE, DEVICE_TABLE, Holds, MOUNT_POINT, ROOT, STRUCTURE, TABLE, holds, size,
};
use proxops_kind::names::is_secret_like;
use proxops_kind::text::{parse_bool, split_list};
use proxops_kind::{
    Adopted, Context, Diagnostic, Gap, Hole, LivePower, LiveValue, LiveView, Props, Refusal, live::slot_index,
};

/// PVE's own book-keeping, and what `state`, `tags` and the like stand for.
const BOOK_KEEPING: &[&str] =
    &["digest", "features", "hostname", "lock", "rootfs", "snaptime", "tags", "template", "unprivileged"];
const NO_FIELD: &str = "no field expresses it, and it stays as it is; `extra` can own it";

struct Adopt<'a> {
    live: LiveView<'a>,
    spec: ContainerSpec,
    gaps: Vec<Gap>,
}

pub(crate) fn adopt(
    template_kind: bool,
    name: &str,
    live: LiveView<'_>,
    context: &Context,
) -> Result<Adopted, Refusal> {
    let guest = live.guest;
    let masked = u32::try_from(guest.secrets_present.len()).unwrap_or(u32::MAX);
    let spec = ContainerSpec {
        node: guest.node.clone(),
        vmid: guest.vmid,
        state: (!template_kind && guest.power == LivePower::Stopped).then_some(State::Stopped),
        ..ContainerSpec::default()
    };
    let mut adopt = Adopt { live, spec, gaps: Vec::new() };
    adopt.tags(&context.owner_tag);
    adopt.fields();
    adopt.hostname(name);
    adopt.options();
    adopt.root();
    adopt.mounts();
    adopt.networks();
    adopt.devices();
    adopt.rest();
    adopt.finish(masked)
}

impl Adopt<'_> {
    fn gap(&mut self, key: &str, value: &str, why: &str) {
        let value = (!is_secret_like(key) && !is_secret_like(value)).then(|| value.to_owned());
        self.gaps.push(Gap::new(key, value, why));
    }

    /// Tokens of a property string that no field expresses.
    fn left_over(&mut self, key: &str, tokens: &[String]) {
        if !tokens.is_empty() {
            self.gap(key, &tokens.join(","), "no field expresses these options; they are kept");
        }
    }

    fn tags(&mut self, owner: &str) {
        let all = split_list(self.live.text("tags").unwrap_or_default());
        let tags: Vec<String> = all.filter(|t| !t.eq_ignore_ascii_case(owner)).map(str::to_owned).collect();
        self.spec.tags = (!tags.is_empty()).then_some(tags);
    }

    fn fields(&mut self) {
        for row in FIELDS {
            let Some(value) = self.live.text(row.key).filter(|v| !v.trim_end().is_empty()) else { continue };
            if row.default.is_some_and(|default| row.same(Some(value), default)) {
                continue;
            }
            if row.key == "env" && Env::parse(value).0.keys().any(|name| is_secret_like(name)) {
                let why = "a variable looks like a secret; not owned until it stands in the manifest";
                self.gaps.push(Gap::new("env", None, why));
            } else if !(row.put)(&mut self.spec, value) {
                self.gap(row.key, value, "its field does not know this value; it stays as it is");
            }
        }
    }

    fn hostname(&mut self, name: &str) {
        let live = self.live.text("hostname");
        if live != Some(name) {
            let dns: &mut Dns = self.spec.dns.get_or_insert_default();
            dns.hostname = Some(live.unwrap_or_default().to_owned());
        }
    }

    fn options(&mut self) {
        // Unprivileged is what PVE makes of a container that says nothing.
        if self.live.text("unprivileged").and_then(parse_bool) != Some(true) {
            self.options_mut().unprivileged = Some(false);
        }
        let props = Props::parse(self.live.text("features").unwrap_or_default(), &features::TABLE);
        let mut found = Features::default();
        let rest = read(features::ROWS, &props, &[], &mut found);
        self.left_over("features", &rest);
        if found != Features::default() {
            self.options_mut().features = Some(found);
        }
    }

    fn options_mut(&mut self) -> &mut Options {
        self.spec.options.get_or_insert_default()
    }

    fn root(&mut self) {
        let Some(text) = self.live.text("rootfs") else { return };
        let props = Props::parse(text, &TABLE);
        let Holds::Volume { storage } = holds(&props) else {
            self.gap("rootfs", text, "the root file system is no volume of a storage");
            return;
        };
        let mut root = Root { storage: Some(storage.to_owned()), size: size(&props), ..Root::default() };
        let rest = read(ROOT, &props, STRUCTURE, &mut root);
        self.left_over("rootfs", &rest);
        self.spec.root = Some(root);
    }

    fn mounts(&mut self) {
        for (_, key, text) in self.live.slots("mp") {
            let props = Props::parse(text, &TABLE);
            if let Err(wrong) = check_mount_point(props.get("mp").unwrap_or_default()) {
                self.gap(key, text, &format!("its path {wrong}"));
                continue;
            }
            match holds(&props) {
                Holds::Volume { storage } => {
                    let (slot, storage) = (Some(key.to_owned()), storage.to_owned());
                    let mut mount = MountPoint { slot, storage, size: size(&props), ..MountPoint::default() };
                    let rest = read(MOUNT_POINT, &props, STRUCTURE, &mut mount);
                    mount.options = mount.options.filter(|options| *options != Default::default());
                    self.left_over(key, &rest);
                    self.spec.mount_points.get_or_insert_default().push(mount);
                }
                Holds::HostPath(path) => {
                    if let Err(wrong) = check_host_path(path) {
                        self.gap(key, text, &format!("its host path {wrong}"));
                        continue;
                    }
                    let mut bind = BindMount {
                        slot: Some(key.to_owned()),
                        host_path: path.to_owned(),
                        ..BindMount::default()
                    };
                    let rest = read(BIND_MOUNT, &props, STRUCTURE, &mut bind);
                    self.left_over(key, &rest);
                    self.spec.bind_mounts.get_or_insert_default().push(bind);
                }
            }
        }
    }

    fn networks(&mut self) {
        for (number, key, text) in self.live.slots("net") {
            let props = Props::parse(text, &network::TABLE);
            if props.get("bridge").is_none() {
                self.gap(key, text, "an interface without a bridge can't be declared");
                continue;
            }
            let mut found = Network { slot: Some(key.to_owned()), ..Network::default() };
            let rest = read(network::ROWS, &props, &[], &mut found);
            self.left_over(key, &rest);
            // What a new container gets anyway; the address is PVE's own.
            found.iface = found.iface.filter(|iface| *iface != format!("eth{number}"));
            found.hwaddr = None;
            self.spec.networks.get_or_insert_default().push(found);
        }
    }

    fn devices(&mut self) {
        for (_, key, text) in self.live.slots("dev") {
            let props = Props::parse(text, &DEVICE_TABLE);
            if !props.get("path").is_some_and(|path| path.starts_with("/dev/") && !path.contains("/../")) {
                self.gap(key, text, "its path is not below /dev");
                continue;
            }
            let mut device = Device { slot: Some(key.to_owned()), ..Device::default() };
            let rest = read(DEVICE, &props, &[], &mut device);
            self.left_over(key, &rest);
            self.spec.devices.get_or_insert_default().push(device);
        }
    }

    /// Keys that nothing above has read.
    fn rest(&mut self) {
        let live = LiveView::new(self.live.guest);
        for (key, value) in live.iter() {
            let numbered = ["mp", "net", "dev"].iter().any(|prefix| slot_index(key, prefix).is_some());
            let known = numbered || BOOK_KEEPING.contains(&key) || FIELDS.iter().any(|row| row.key == key);
            match value {
                LiveValue::Text(_) if known => {}
                LiveValue::Text(text) if key == "parent" => {
                    self.gap(key, text, "snapshots are kept and not managed");
                }
                LiveValue::Text(text) if slot_index(key, "unused").is_some() => {
                    self.gap(key, text, "a detached volume; it is kept");
                }
                LiveValue::Text(text) => self.gap(key, text, NO_FIELD),
                LiveValue::Json(json) if key == "lxc" => self.raw_lines(json),
                LiveValue::Json(json) => self.gap(key, json, NO_FIELD),
            }
        }
    }

    /// Raw `lxc.*` lines, which PVE's API reports and can't set (fact L14).
    fn raw_lines(&mut self, json: &str) {
        let why = "a raw line of the configuration file, which PVE's API can't set; it is kept";
        let Ok(lines) = serde_json::from_str::<Vec<(String, serde_json::Value)>>(json) else {
            self.gap("lxc", json, why);
            return;
        };
        for (key, value) in lines {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.gap(&key, &value, why);
        }
    }

    fn finish(mut self, masked: u32) -> Result<Adopted, Refusal> {
        self.spec.cpu = self.spec.cpu.filter(|cpu| *cpu != Default::default());
        self.spec.dns = self.spec.dns.filter(|dns| *dns != Default::default());
        self.spec.options = self.spec.options.filter(|options| *options != Default::default());
        let text = serde_json::to_string(&self.spec).map_err(|error| {
            vec![Diagnostic::error("not-json", "", format!("the spec can't be written: {error}"))]
        })?;
        let mut adopted = Adopted::new(text);
        adopted.gaps = self.gaps;
        adopted.incomplete = vec![Hole::new("/spec/template", NO_TEMPLATE)];
        adopted.masked_secrets = masked;
        Ok(adopted)
    }
}
