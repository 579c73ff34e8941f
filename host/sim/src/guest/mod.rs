//! A guest: its configuration file and what is reported of it.

pub mod ct;
pub mod ct_create;
pub mod ct_update;
pub mod drive;
pub mod jobs;
pub mod power;
pub mod rights;
pub mod template;
pub mod values;
pub mod vm_clone;
pub mod vm_create;
pub mod vm_hotplug;
pub mod vm_update;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::grammar::{Kind, Table, ct as ct_grammar, lookup, vm as vm_grammar};

/// What a set password is reported as (fact Q23).
pub const MASK: &str = "**********";

/// VM or container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuestKind {
    /// A virtual machine.
    Qemu,
    /// A container.
    Lxc,
}

impl GuestKind {
    /// As in API paths: `qemu`, `lxc`.
    pub fn path(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Lxc => "lxc",
        }
    }

    /// As in messages: `VM`, `CT`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Qemu => "VM",
            Self::Lxc => "CT",
        }
    }

    /// `vm` or `ct`, as in HA resource ids.
    pub fn ha(self) -> &'static str {
        match self {
            Self::Qemu => "vm",
            Self::Lxc => "ct",
        }
    }

    /// Start of its task types: `qm`, `vz`.
    pub fn task(self) -> &'static str {
        match self {
            Self::Qemu => "qm",
            Self::Lxc => "vz",
        }
    }

    /// What is said when there is no such guest on the node (E, guest missing).
    pub fn missing(self, node: &str, vmid: u32) -> String {
        let folder = if self == Self::Qemu { "qemu-server" } else { "lxc" };
        format!("Configuration file 'nodes/{node}/{folder}/{vmid}.conf' does not exist")
    }

    /// The options its configuration may hold.
    pub fn table(self) -> Table {
        match self {
            Self::Qemu => vm_grammar::TABLE,
            Self::Lxc => ct_grammar::TABLE,
        }
    }
}

/// A snapshot; only its listing is simulated.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// Unix time.
    pub time: u64,
    /// Free text.
    pub description: String,
}

/// A guest.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Its id, unique in the cluster (fact Q1).
    pub vmid: u32,
    /// VM or container.
    pub kind: GuestKind,
    /// Where it is.
    pub node: String,
    /// The configuration as texts, `lock` and `template` included.
    pub config: BTreeMap<String, String>,
    /// Values that wait for a stop or start.
    pub pending: BTreeMap<String, String>,
    /// Keys that wait to be removed; `true`: with their volume.
    pub pending_delete: BTreeMap<String, bool>,
    /// Snapshots, oldest first.
    pub snapshots: Vec<Snapshot>,
    /// Raw `lxc.*` lines, containers only (fact L14).
    pub raw: Vec<(String, String)>,
    /// Whether it runs.
    pub running: bool,
    /// Whether it is paused while it runs (fact Q49).
    pub paused: bool,
    /// Unix time of its start.
    pub started: u64,
    /// The cloud-init values that are in the seed image (fact Q24).
    pub seeded: BTreeMap<String, String>,
}

impl Guest {
    /// A stopped guest.
    pub fn new(kind: GuestKind, vmid: u32, node: &str) -> Self {
        Self {
            vmid,
            kind,
            node: node.to_owned(),
            config: BTreeMap::new(),
            pending: BTreeMap::new(),
            pending_delete: BTreeMap::new(),
            snapshots: Vec::new(),
            raw: Vec::new(),
            running: false,
            paused: false,
            started: 0,
            seeded: BTreeMap::new(),
        }
    }

    /// The lock in its configuration.
    pub fn lock(&self) -> Option<&str> {
        self.config.get("lock").map(String::as_str)
    }

    /// Whether it is a template.
    pub fn is_template(&self) -> bool {
        self.config.get("template").is_some_and(|flag| flag == "1")
    }

    /// Whether it is protected from removal.
    pub fn protected(&self) -> bool {
        self.config.get("protection").is_some_and(|flag| flag == "1")
    }

    /// `VM is locked (backup)`.
    pub fn locked_text(&self) -> Option<String> {
        self.lock().map(|lock| format!("{} is locked ({lock})", self.kind.word()))
    }

    /// Its name or host name, or what PVE shows instead.
    pub fn name(&self) -> String {
        let key = if self.kind == GuestKind::Qemu { "name" } else { "hostname" };
        match self.config.get(key) {
            Some(name) => name.clone(),
            None if self.kind == GuestKind::Qemu => format!("VM {}", self.vmid),
            None => format!("CT{}", self.vmid),
        }
    }

    /// Its HA resource id.
    pub fn sid(&self) -> String {
        format!("{}:{}", self.kind.ha(), self.vmid)
    }

    /// The configuration with pending values merged in.
    pub fn merged(&self) -> BTreeMap<String, String> {
        let mut merged = self.config.clone();
        merged.retain(|key, _| !self.pending_delete.contains_key(key));
        merged.extend(self.pending.iter().map(|(key, value)| (key.clone(), value.clone())));
        merged
    }

    /// A value with pending changes merged in.
    pub fn effective(&self, key: &str) -> Option<&str> {
        self.pending
            .get(key)
            .or_else(|| self.config.get(key).filter(|_| !self.pending_delete.contains_key(key)))
            .map(String::as_str)
    }

    /// Digest of the whole configuration file, snapshots and pending part included (fact Q27): 40 hex digits.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        let mut line = |key: &str, value: &str| {
            hash.update(key);
            hash.update([0]);
            hash.update(value);
            hash.update([1]);
        };
        self.config.iter().for_each(|(key, value)| line(key, value));
        line("[PENDING]", "");
        self.pending.iter().for_each(|(key, value)| line(key, value));
        self.pending_delete
            .iter()
            .for_each(|(key, force)| line(key, if *force { "delete!" } else { "delete" }));
        self.raw.iter().for_each(|(key, value)| line(key, value));
        self.snapshots.iter().for_each(|snapshot| line("snapshot", &snapshot.name));
        let mut digest = hex::encode(hash.finalize());
        digest.truncate(40);
        digest
    }

    /// The answer to GET config (facts Q25, R4).
    pub fn report(&self, current: bool) -> Value {
        let mut report = Map::new();
        if current {
            self.config.iter().for_each(|(key, value)| self.put(&mut report, key, value));
        } else {
            self.merged().iter().for_each(|(key, value)| self.put(&mut report, key, value));
        }
        if !self.raw.is_empty() {
            report.insert("lxc".to_owned(), json!(self.raw));
        }
        report.insert("digest".to_owned(), json!(self.digest()));
        Value::Object(report)
    }

    fn put(&self, report: &mut Map<String, Value>, key: &str, value: &str) {
        report.insert(key.to_owned(), self.typed(key, value));
    }

    /// Booleans and integers are numbers, everything else is text; passwords are masked (facts Q23, Q25).
    fn typed(&self, key: &str, value: &str) -> Value {
        if key == "cipassword" {
            return json!(MASK);
        }
        let kind = lookup(self.kind.table(), key).map(|param| param.kind);
        match kind {
            Some(Kind::Integer | Kind::Flag) => {
                value.parse::<i64>().map_or_else(|_| json!(value), |n| json!(n))
            }
            _ => json!(value),
        }
    }

    /// The answer to GET pending: one row a key, and one for the digest (facts Q25, R14).
    pub fn pending_report(&self) -> Vec<Value> {
        let mut keys: Vec<&String> = self.config.keys().chain(self.pending.keys()).collect();
        keys.sort();
        keys.dedup();
        let mut rows: Vec<Value> = keys
            .into_iter()
            .map(|key| {
                let mut row = json!({"key": key});
                if let Some(value) = self.config.get(key) {
                    row["value"] = self.typed(key, value);
                }
                if let Some(value) = self.pending.get(key) {
                    row["pending"] = self.typed(key, value);
                }
                if let Some(force) = self.pending_delete.get(key) {
                    row["delete"] = json!(if *force { 2 } else { 1 });
                }
                row
            })
            .collect();
        rows.push(json!({"key": "digest", "value": self.digest()}));
        rows
    }

    /// Removes pending values that equal the current ones, and pending removals of absent keys.
    pub(crate) fn tidy_pending(&mut self) {
        self.pending.retain(|key, value| self.config.get(key) != Some(value));
        self.pending_delete.retain(|key, _| self.config.contains_key(key));
    }

    /// Stores a value; an empty one is no line of the file and so no value.
    pub(crate) fn set(&mut self, key: &str, value: String) {
        if value.is_empty() {
            self.config.remove(key);
        } else {
            self.config.insert(key.to_owned(), value);
        }
    }

    /// Keeps a volume as the first free `unused[n]`, unless it is kept already (fact Q33).
    pub(crate) fn keep_unused(&mut self, volid: &str) {
        let known = (0..256).any(|n| self.config.get(&format!("unused{n}")).is_some_and(|v| v == volid));
        if known {
            return;
        }
        if let Some(key) = (0..256).map(|n| format!("unused{n}")).find(|key| !self.config.contains_key(key)) {
            self.config.insert(key, volid.to_owned());
        }
    }

    /// Forgets `unused[n]` entries of volumes that are in use again, pending values included.
    pub(crate) fn tidy_unused(&mut self) {
        let used: Vec<String> = self
            .config
            .iter()
            .chain(&self.pending)
            .filter(|(key, _)| self.is_volume_key(key))
            .filter_map(|(key, value)| self.volume_of(key, value))
            .collect();
        self.config.retain(|key, value| !(key.starts_with("unused") && used.contains(value)));
    }

    /// Whether a key holds a drive or mount point.
    pub fn is_volume_key(&self, key: &str) -> bool {
        match self.kind {
            GuestKind::Qemu => crate::grammar::drive::table(key).is_some(),
            GuestKind::Lxc => ct::table(key).is_some(),
        }
    }

    /// The volume a drive or mount point names.
    pub(crate) fn volume_of(&self, key: &str, value: &str) -> Option<String> {
        match self.kind {
            GuestKind::Qemu => drive::Drive::read(key, value).map(|drive| drive.file),
            GuestKind::Lxc => ct::Mount::read(key, value).map(|mount| mount.volume),
        }
    }

    /// Its own volumes in use, by slot.
    pub(crate) fn volumes(&self) -> Vec<(String, String)> {
        self.config
            .iter()
            .filter(|(key, _)| self.is_volume_key(key))
            .filter_map(|(key, value)| Some((key.clone(), self.volume_of(key, value)?)))
            .filter(|(_, volume)| owned(volume, self.vmid))
            .collect()
    }
}

/// Whether a volume id names a volume of this guest (`vm-100-`, `base-100-`, `subvol-100-`, ...).
pub fn owned(volid: &str, vmid: u32) -> bool {
    let name = volid.split_once(':').map_or("", |(_, name)| name);
    let name = name.rsplit('/').next().unwrap_or(name);
    ["vm", "base", "subvol", "basevol"].iter().any(|stem| name.starts_with(&format!("{stem}-{vmid}-")))
}

/// A size in the largest unit that divides it (fact Q36).
pub fn format_size(bytes: u64) -> String {
    for (shift, unit) in [(40, "T"), (30, "G"), (20, "M"), (10, "K")] {
        if bytes > 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// Reads a size such as `32G`, `1.5T`, `4096`; bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim_end_matches("iB");
    let (digits, shift) = match text.chars().last()? {
        'K' => (&text[..text.len() - 1], 10),
        'M' => (&text[..text.len() - 1], 20),
        'G' => (&text[..text.len() - 1], 30),
        'T' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number: f64 = digits.parse().ok()?;
    (number >= 0.0 && number.is_finite()).then(|| (number * (1u64 << shift) as f64) as u64)
}
