//! Compares a live container with its manifest.

mod volumes;

use crate::create::needs_root;
use crate::features;
use crate::fields::FIELDS;
use crate::layout::{Placed, devices, hostname, interface_names, networks, place};
use crate::network;
use crate::rows::merge;
use crate::spec::{ContainerSpec, Device, Network};
use crate::volumes::{DEVICE, DEVICE_TABLE};
use proxops_kind::report::child;
use proxops_kind::text::{bool_text, parse_bool};
use proxops_kind::{
    Anomaly, Change, Changes, Context, DriftReport, Field, LiveView, Param, Props, Resource, Severity, Step,
    Value, tags,
};

/// One comparison.
struct Drift<'a> {
    spec: &'a ContainerSpec,
    name: &'a str,
    live: LiveView<'a>,
    context: &'a Context,
    /// The action that cloned it is not complete.
    fresh: bool,
    /// PVE refuses writes of volume keys, and the manifest does not lift that (fact L23).
    locked: bool,
    changes: Changes,
    /// Volumes that grow; written before the configuration, which then carries the new size.
    growing: Vec<Step>,
}

/// Compares.
pub(crate) fn drift(
    template_kind: bool,
    manifest: &Resource<ContainerSpec>,
    live: LiveView<'_>,
    context: &Context,
) -> DriftReport {
    let spec = &manifest.spec;
    if live.guest.template && !template_kind {
        let message =
            format!("container {} is a template in PVE, and the manifest wants a container", live.guest.vmid);
        let anomaly = Anomaly::new(Severity::Error, "kind-flip", message)
            .at("")
            .key("template")
            .help("a template can't be turned back: use kind TemplateCT, or another vmid and `clone`");
        return DriftReport { anomalies: vec![anomaly], ..DriftReport::default() };
    }
    let fresh = live.guest.fresh_clone_of.is_some();
    let protection = spec.options.as_ref().and_then(|o| o.protection);
    let locked = is_protected(&live) && protection != Some(false) && !fresh;
    let (changes, growing) = (Changes::new(), Vec::new());
    let mut drift = Drift { spec, name: &manifest.name, live, context, fresh, locked, changes, growing };
    drift.fields();
    drift.limits();
    drift.tags();
    drift.unprivileged();
    drift.features();
    drift.root();
    drift.mounts();
    drift.networks();
    drift.devices();
    drift.detached();
    drift.inherited();
    drift.extra();
    if template_kind {
        drift.mark();
    }
    drift.report()
}

/// PVE does not show the key to this credential, so nothing about it is known (fact L12).
fn unreadable(at: &str, key: &str) -> Anomaly {
    let message = format!("PVE does not show `{key}` to this credential, so it is not compared");
    Anomaly::new(Severity::Info, "unreadable", message)
        .at(at)
        .key(key)
        .help("give the credential VM.Config.Options on this container")
}

fn is_protected(live: &LiveView<'_>) -> bool {
    live.text("protection").and_then(parse_bool) == Some(true)
}

impl Drift<'_> {
    fn fields(&mut self) {
        if let Some(want) = hostname(self.name, self.spec) {
            let at = place(self.spec, "/dns/hostname");
            self.changes.want(&self.live, Field::new(&at, "hostname"), want);
        }
        for row in FIELDS {
            let Some(want) = (row.get)(self.spec) else { continue };
            let at = place(self.spec, row.at);
            if self.live.is_hidden(row.key) {
                self.changes.anomalies.push(unreadable(&at, row.key));
                continue;
            }
            let same = row.same(self.live.text(row.key), &want);
            if !same && row.root_only && !self.context.root {
                self.changes.anomalies.push(needs_root(Severity::Warning, &at, row.key, "a hook script"));
                continue;
            }
            let mut field = Field::new(&at, row.key).needs_stop(!row.at_once);
            field.sensitive = row.sensitive;
            if want.is_empty() {
                self.changes.want_absent(&self.live, field);
            } else {
                self.changes.settle(&self.live, field, same, Some(want.clone()), Value::Text(want));
            }
        }
    }

    /// Memory and swap share one limit: who writes one writes both (fact L15).
    fn limits(&mut self) {
        for (key, other) in [("memory", "swap"), ("swap", "memory")] {
            let set = &mut self.changes.set;
            let written =
                set.iter().position(|p| p.key == key).filter(|_| set.iter().all(|p| p.key != other));
            if let (Some(written), Some(kept)) = (written, self.live.text(other)) {
                let mut param = Param::text(other, kept);
                param.at = set.get(written).and_then(|p| p.at.clone());
                set.insert(written + 1, param);
                return;
            }
        }
    }

    /// Tags that a clone inherits give way; later the live ones stay unless the manifest lists its own.
    fn tags(&mut self) {
        let declared = self.spec.tags.as_deref().or(if self.fresh { Some(&[]) } else { None });
        let live = self.live.text("tags");
        let want = tags::wanted(declared, live, &self.context.owner_tag, &self.context.tag_style);
        if let Some(want) = want {
            let field = Field::new("/spec/tags", "tags");
            self.changes.settle(&self.live, field, false, Some(want.clone()), Value::Text(want));
        }
    }

    /// PVE refuses to write this key, even unchanged (fact L5). What it does not report is off.
    fn unprivileged(&mut self) {
        let Some(want) = self.spec.options.as_ref().and_then(|o| o.unprivileged) else { return };
        let now = self.live.text("unprivileged").and_then(parse_bool).unwrap_or(false);
        if now != want {
            let words = |flag| if flag { "unprivileged" } else { "privileged" };
            let message = format!(
                "the container is {} and the manifest wants it {}: PVE decides that at creation, so it needs a recreate",
                words(now),
                words(want)
            );
            self.changes.anomalies.push(
                Anomaly::new(Severity::Warning, "needs-recreate", message)
                    .at("/spec/options/unprivileged")
                    .key("unprivileged")
                    .help(format!(
                        "write `unprivileged: {now}`, or back it up, remove it and let it be created anew"
                    )),
            );
        }
    }

    fn features(&mut self) {
        let wanted = features::declared(self.spec);
        let text = self.live.text("features").unwrap_or_default();
        let unprivileged = self.live.text("unprivileged").and_then(parse_bool).unwrap_or(false);
        let mut props = Props::parse(text, &features::TABLE);
        let mut changed = false;
        for row in features::ROWS {
            let Some(want) = (row.get)(&wanted).filter(|want| !row.same(props.get(row.key), want)) else {
                continue;
            };
            if let Some(what) = features::needs_root(row, unprivileged).filter(|_| !self.context.root) {
                let at = features::place(self.spec, row);
                self.changes.anomalies.push(needs_root(Severity::Warning, &at, "features", what));
                continue;
            }
            changed = true;
            if want.is_empty() {
                props.remove(row.key);
            } else {
                props.set(row.key, want);
            }
        }
        let field = Field::new("/spec/options", "features").needs_stop(true);
        if !changed {
            self.changes.note_pending(&self.live, field);
        } else if props.is_empty() {
            self.changes.want_absent(&self.live, field);
        } else {
            let text = props.to_string();
            self.changes.settle(&self.live, field, false, Some(text.clone()), Value::Text(text));
        }
    }

    /// Whether root@pam asks; otherwise says so.
    fn is_allowed(&mut self, at: &str, key: &str, what: &str) -> bool {
        if !self.context.root {
            self.changes.anomalies.push(needs_root(Severity::Warning, at, key, what));
        }
        self.context.root
    }

    fn networks(&mut self) {
        let all = networks(self.spec);
        let mut names = interface_names(self.spec);
        names.extend(
            self.live.slots("net").into_iter().filter_map(|(_, _, text)| {
                Props::parse(text, &network::TABLE).get("name").map(str::to_owned)
            }),
        );
        for entry in &all {
            self.network(entry, &mut names);
        }
        let declared: Vec<&str> = all.iter().map(|n| &*n.slot).collect();
        for (_, key, text) in self.live.slots("net") {
            if !declared.contains(&key) {
                self.inherited_address(key, text);
                self.changes.anomalies.push(
                    Anomaly::new(
                        Severity::Warning,
                        "undeclared",
                        format!("network interface {key} ({text}) is not in the manifest"),
                    )
                    .key(key)
                    .help(format!(
                        "declare it, or remove it with `{{slot: {key}, absent: true}}` under `networks`"
                    )),
                );
            }
        }
    }

    /// Two containers with one address disturb each other: what a clone inherits of it goes, even where the manifest
    /// does not name the interface.
    fn inherited_address(&mut self, key: &str, text: &str) {
        let was = Props::parse(text, &network::TABLE);
        let mut props = was.clone();
        if self.fresh && network::clear(&Network::default(), &was, true, &mut props) {
            let text = props.to_string();
            let field = Field::new("/spec/clone", key);
            self.changes.settle(&self.live, field, false, Some(text.clone()), Value::Text(text));
        }
    }

    /// `names` are those that interfaces have, live or declared.
    fn network(&mut self, entry: &Placed<'_, Network>, names: &mut Vec<String>) {
        let Placed { at, slot, item, .. } = entry;
        let field = Field::new(at, slot);
        if item.absent == Some(true) {
            self.changes.want_absent(&self.live, field);
            return;
        }
        let (same, text) = match self.live.text(slot) {
            Some(text) => {
                let was = Props::parse(text, &network::TABLE);
                let mut props = was.clone();
                let merged = merge(network::ROWS, item, &mut props);
                let cleared = network::clear(item, &was, self.fresh, &mut props);
                (!merged && !cleared, props.to_string())
            }
            None => (false, network::new(item, entry.number, names).to_string()),
        };
        self.changes.settle(&self.live, field, same, Some(text.clone()), Value::Text(text));
    }

    fn devices(&mut self) {
        let all = devices(self.spec);
        for entry in &all {
            self.device(entry);
        }
        let declared: Vec<&str> = all.iter().map(|d| &*d.slot).collect();
        self.live_only("dev", "passed-through device", &declared);
    }

    fn device(&mut self, entry: &Placed<'_, Device>) {
        let Placed { at, slot, item, .. } = entry;
        let live = self.live.text(slot);
        let mut props = Props::parse(live.unwrap_or_default(), &DEVICE_TABLE);
        let same = !merge(DEVICE, item, &mut props);
        let field = Field::new(at, slot).needs_stop(live.is_some());
        if same || self.is_allowed(at, slot, "passed-through devices") {
            let text = props.to_string();
            self.changes.settle(&self.live, field, same, Some(text.clone()), Value::Text(text));
        }
    }

    /// Slots that exist only live are never removed.
    fn live_only(&mut self, prefix: &str, what: &str, declared: &[&str]) {
        for (_, key, text) in self.live.slots(prefix) {
            if !declared.contains(&key) {
                self.changes.anomalies.push(
                    Anomaly::new(
                        Severity::Warning,
                        "undeclared",
                        format!("{what} {key} ({text}) is not in the manifest"),
                    )
                    .key(key)
                    .help(format!(
                        "declare it, remove it in PVE, or name {key} in the annotation `proxops/ignore`"
                    )),
                );
            }
        }
    }

    /// Volumes that no slot holds any more.
    fn detached(&mut self) {
        for (_, key, text) in self.live.slots("unused") {
            self.changes.anomalies.push(
                Anomaly::new(
                    Severity::Info,
                    "detached-volume",
                    format!("{key} holds the detached volume {text}"),
                )
                .key(key)
                .help("remove it in PVE if nobody needs it"),
            );
        }
    }

    /// A clone does not keep its template's identity: the resolver settings whenever they are there, the
    /// rest in the action that clones.
    fn inherited(&mut self) {
        if self.spec.clone.is_none() && !self.fresh {
            return;
        }
        let always = ["nameserver", "searchdomain"];
        let once = ["description", "onboot", "protection"];
        for row in FIELDS {
            let cleared = always.contains(&row.key) || (self.fresh && once.contains(&row.key));
            let live = self.live.text(row.key);
            let at_default = row.default.is_some_and(|d| row.same(live, d));
            if cleared && !at_default && (row.get)(self.spec).is_none() {
                let at = place(self.spec, row.at);
                self.changes.want_absent(&self.live, Field::new(&at, row.key).needs_stop(!row.at_once));
            }
        }
    }

    fn extra(&mut self) {
        for (key, value) in self.spec.extra.iter().flatten() {
            let at = child("/spec/extra", key);
            let field = Field::new(&at, key).needs_stop(true);
            if value.as_str().is_empty() {
                self.changes.want_absent(&self.live, field);
            } else {
                self.changes.want(&self.live, field, value.as_str());
            }
        }
    }

    /// Marks the container as a template, which PVE does for a stopped one only (fact L17).
    fn mark(&mut self) {
        if self.live.guest.template {
            return;
        }
        if self.live.is_running() {
            self.changes.anomalies.push(
                Anomaly::new(
                    Severity::Warning,
                    "template-is-running",
                    "the container must become a template, and is running",
                )
                .at("")
                .key("template")
                .help("shut it down; then it is marked"),
            );
            return;
        }
        self.changes.changes.push(Change::new("", "template", None, Some("1".to_owned())));
        self.changes.later.push(Step::MarkTemplate);
    }

    /// The configuration, then growth, then the template mark. A write of a volume key carries its new size (fact R13),
    /// so growth comes before that one. PVE reads protection as it was before a write (fact L23), so volume keys never
    /// share their write with a lifted protection.
    fn report(self) -> DriftReport {
        let protected = is_protected(&self.live);
        let mut report = self.changes.into_report();
        let mut growing = self.growing;
        let mut steps = Vec::new();
        for step in std::mem::take(&mut report.steps) {
            match step {
                Step::Configure(write) if !protected && write.set.iter().any(|p| is_volume_key(&p.key)) => {
                    steps.append(&mut growing);
                    steps.push(Step::Configure(write));
                }
                Step::MarkTemplate => {
                    steps.append(&mut growing);
                    steps.push(Step::MarkTemplate);
                }
                Step::Configure(mut write)
                    if protected && write.set.iter().any(|p| is_volume_key(&p.key)) =>
                {
                    let lifted: Vec<Param> = write.set.extract_if(.., |p| p.key == "protection").collect();
                    let removed = write.unset.extract_if(.., |p| p.key == "protection").collect::<Vec<_>>();
                    // Neither: a clone whose manifest keeps the inherited protection.
                    let keeps = lifted.is_empty() && removed.is_empty();
                    let switch =
                        |on| Step::configure_with(vec![Param::text("protection", bool_text(on))], Vec::new());
                    steps.push(if keeps { switch(false) } else { Step::configure_with(lifted, removed) });
                    steps.append(&mut growing);
                    steps.push(Step::Configure(write));
                    if keeps {
                        steps.push(switch(true));
                    }
                }
                step => steps.push(step),
            }
        }
        steps.append(&mut growing);
        report.steps = steps;
        report
    }
}

fn is_volume_key(key: &str) -> bool {
    key == "rootfs" || proxops_kind::live::slot_index(key, "mp").is_some()
}
