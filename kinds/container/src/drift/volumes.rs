//! Volumes and bind mounts: options converge, what they hold never changes.

use super::Drift;
use crate::create::new_bind_mount;
use crate::layout::{Placed, mounts};
use crate::paths::normalised;
use crate::rows::{merge, write_new};
use crate::spec::{BindMount, MountPoint};
use crate::volumes::{BIND_MOUNT, Holds, MOUNT_POINT, ROOT, TABLE, allocation, holds, size};
use proxops_kind::{Anomaly, Change, Field, Props, Severity, Size, Step, Value};

/// What the manifest wants of a volume.
struct Volume<'a> {
    slot: &'a str,
    at: &'a str,
    storage: Option<&'a str>,
    size: Option<Size>,
    grow: bool,
}

impl Drift<'_> {
    pub(super) fn root(&mut self) {
        let (Some(root), Some(text)) = (&self.spec.root, self.live.text("rootfs")) else { return };
        let mut props = Props::parse(text, &TABLE);
        let wanted = Volume {
            slot: "rootfs",
            at: "/spec/root",
            storage: root.storage.as_deref(),
            size: root.size,
            grow: root.grow == Some(true),
        };
        self.volume(&wanted, &mut props, |props| merge(ROOT, root, props));
    }

    pub(super) fn mounts(&mut self) {
        let (mounts, binds) = mounts(self.spec);
        let declared: Vec<&str> =
            mounts.iter().map(|m| &*m.slot).chain(binds.iter().map(|b| &*b.slot)).collect();
        for entry in &mounts {
            match self.live.text(&entry.slot) {
                Some(text) => {
                    let mut props = Props::parse(text, &TABLE);
                    let wanted = Volume {
                        slot: &entry.slot,
                        at: &entry.at,
                        storage: Some(&entry.item.storage),
                        size: entry.item.size,
                        grow: entry.item.grow == Some(true),
                    };
                    self.volume(&wanted, &mut props, |props| merge(MOUNT_POINT, entry.item, props));
                }
                None => self.new_mount(entry, &declared),
            }
        }
        for entry in &binds {
            match self.live.text(&entry.slot) {
                Some(text) => self.bind(entry, text),
                None => {
                    let text = new_bind_mount(entry.item).to_string();
                    if self.is_allowed(&entry.at, &entry.slot, "bind mounts")
                        && self.is_free(&entry.at, &entry.slot)
                        && self.is_own_path(&entry.at, &entry.slot, &entry.item.mount_point, &declared)
                    {
                        self.write_volume(&entry.at, &entry.slot, text, false);
                    }
                }
            }
        }
        self.live_only("mp", "mount point", &declared);
    }

    /// The create form, which only an empty slot may get: over a filled one PVE makes another volume
    /// (fact L16).
    fn new_mount(&mut self, entry: &Placed<'_, MountPoint>, declared: &[&str]) {
        let Some(size) = entry.item.size else {
            self.changes.anomalies.push(
                Anomaly::new(
                    Severity::Warning,
                    "no-size",
                    format!("{} does not exist, and `size` is left out", entry.slot),
                )
                .at(format!("{}/size", entry.at))
                .key(&*entry.slot)
                .help("add `size` so that the volume can be made"),
            );
            return;
        };
        if !self.is_free(&entry.at, &entry.slot)
            || !self.is_own_path(&entry.at, &entry.slot, &entry.item.mount_point, declared)
        {
            return;
        }
        let mut props = allocation(&entry.item.storage, size);
        write_new(MOUNT_POINT, entry.item, &mut props);
        self.write_volume(&entry.at, &entry.slot, props.to_string(), false);
    }

    /// A volume that exists: storage and size are compared, never written; options converge in the live
    /// form, which keeps the volume id, the size and every token that is not owned (facts L16, R13).
    fn volume(&mut self, wanted: &Volume<'_>, props: &mut Props, merge: impl FnOnce(&mut Props) -> bool) {
        let Volume { slot, at, .. } = *wanted;
        let live_storage = match holds(props) {
            Holds::Volume { storage } => storage.to_owned(),
            Holds::HostPath(path) => {
                let message = format!("{slot} holds the host path {path}, and the manifest wants a volume");
                self.changes.anomalies.push(
                    Anomaly::new(Severity::Warning, "slot-taken", message)
                        .at(at)
                        .key(slot)
                        .help("give the entry another slot"),
                );
                return;
            }
        };
        if let Some(storage) = wanted.storage.filter(|s| *s != live_storage) {
            let message =
                format!("{slot} lies on storage {live_storage}, and the manifest wants storage {storage}");
            self.changes.anomalies.push(
                Anomaly::new(Severity::Warning, "storage-mismatch", message)
                    .at(format!("{at}/storage"))
                    .key(slot)
                    .help(format!("move the volume in PVE, or write `storage: {live_storage}`")),
            );
        }
        let grown = self.grow(wanted, size(props));
        if merge(props) {
            if let Some(size) = grown {
                props.set("size", size.pve());
            }
            self.write_volume(at, slot, props.to_string(), true);
        } else if grown.is_none() {
            self.changes.note_pending(&self.live, Field::new(at, slot));
        }
    }

    /// The size that the volume grows to, if it does. It never shrinks, and grows only with leave or in
    /// the action that cloned it.
    fn grow(&mut self, wanted: &Volume<'_>, live: Option<Size>) -> Option<Size> {
        let (want, live) = (wanted.size?, live?);
        let at = format!("{}/size", wanted.at);
        if want > live && (wanted.grow || self.fresh) {
            self.changes.changes.push(Change::new(&*at, wanted.slot, Some(live.pve()), Some(want.pve())));
            self.growing.push(Step::resize_to(wanted.slot, want.0, at));
            return Some(want);
        }
        if want != live {
            let (message, help) = if want > live {
                (
                    format!(
                        "{} has {live}, and the manifest wants {want} without leave to grow",
                        wanted.slot
                    ),
                    format!("add `grow: true`, or write `size: {live}`"),
                )
            } else {
                (
                    format!(
                        "{} has {live}, more than the {want} of the manifest: a live volume never shrinks",
                        wanted.slot
                    ),
                    format!("write `size: {live}`"),
                )
            };
            self.changes.anomalies.push(
                Anomaly::new(Severity::Warning, "size-mismatch", message).at(at).key(wanted.slot).help(help),
            );
        }
        None
    }

    /// A live bind mount: its options converge, its folder never changes.
    fn bind(&mut self, entry: &Placed<'_, BindMount>, text: &str) {
        let Placed { at, slot, item, .. } = entry;
        let mut props = Props::parse(text, &TABLE);
        let want = normalised(&item.host_path);
        match holds(&props) {
            Holds::HostPath(path) if normalised(path) == want => {}
            Holds::HostPath(path) => {
                let message = format!(
                    "{slot} mounts {path}, and the manifest wants {want}: a bind mount is never re-pointed"
                );
                self.changes.anomalies.push(
                    Anomaly::new(Severity::Warning, "volume-mismatch", message)
                        .at(format!("{at}/host-path"))
                        .key(&**slot)
                        .help(format!("write `host-path: {path}`, or remove {slot} in PVE and apply again")),
                );
                return;
            }
            Holds::Volume { .. } => {
                let message = format!("{slot} holds a volume, and the manifest wants a bind mount there");
                self.changes.anomalies.push(
                    Anomaly::new(Severity::Warning, "slot-taken", message)
                        .at(&**at)
                        .key(&**slot)
                        .help("give the entry another slot"),
                );
                return;
            }
        }
        if !merge(BIND_MOUNT, item, &mut props) {
            self.changes.note_pending(&self.live, Field::new(at, slot));
        } else if self.is_allowed(at, slot, "bind mounts") {
            self.write_volume(at, slot, props.to_string(), true);
        }
    }

    /// Whether the slot is free in the running container too; otherwise says so.
    fn is_free(&mut self, at: &str, slot: &str) -> bool {
        let leaving = self.live.pending(slot).is_some_and(|p| p.running.is_some());
        if leaving {
            self.changes.anomalies.push(
                Anomaly::new(
                    Severity::Warning,
                    "slot-leaving",
                    format!("what {slot} held is gone only after a restart"),
                )
                .at(at)
                .key(slot)
                .help("restart the container, then apply again"),
            );
        }
        !leaving
    }

    /// Whether nothing that the manifest does not name is mounted at the path already: an empty volume would hide what is
    /// there. Otherwise says so.
    fn is_own_path(&mut self, at: &str, slot: &str, path: &str, declared: &[&str]) -> bool {
        let path = normalised(path);
        let there =
            |text: &str| Props::parse(text, &TABLE).get("mp").is_some_and(|mp| normalised(mp) == path);
        let other =
            self.live.slots("mp").into_iter().find(|(_, key, text)| !declared.contains(key) && there(text));
        let Some((_, other, _)) = other else { return true };
        let message = format!("{other} is mounted at {path} already, so {slot} is not made");
        self.changes.anomalies.push(
            Anomaly::new(Severity::Warning, "slot-taken", message)
                .at(at)
                .key(slot)
                .help(format!("write `slot: {other}` if that is the one, or another mount-point")),
        );
        false
    }

    /// Writes a volume key, unless protection forbids it (fact L23).
    fn write_volume(&mut self, at: &str, slot: &str, text: String, needs_stop: bool) {
        if self.locked {
            self.changes.anomalies.push(
                Anomaly::new(
                    Severity::Warning,
                    "protected",
                    format!("{slot} differs, and protection mode forbids to change it"),
                )
                .at(at)
                .key(slot)
                .help("write `options.protection: false`, apply, and set it again afterwards"),
            );
            return;
        }
        let field = Field::new(at, slot).needs_stop(needs_stop);
        self.changes.settle(&self.live, field, false, Some(text.clone()), Value::Text(text));
    }
}
