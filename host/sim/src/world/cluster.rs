//! The cluster as a whole: inventory, membership, guests put there by a test or a seed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::volume::{self, Volume};
use super::{Caller, GIB, World};
use crate::grammar::property;
use crate::grammar::{Kind, Table, check::parse_flag, other, split_list};
use crate::guest::{Guest, GuestKind, drive, owned};

/// What the status daemon said last (fact C2).
#[derive(Clone, Debug, Default)]
pub struct Broadcast {
    at: Option<Duration>,
    guests: BTreeMap<u32, Seen>,
}

#[derive(Clone, Debug)]
struct Seen {
    name: String,
    status: &'static str,
    template: bool,
}

/// A row of a list, built at once: lists have thousands.
pub(crate) fn row(entries: Vec<(&'static str, Value)>) -> Value {
    Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

impl World {
    /// Puts a stopped guest into the cluster as if it had always been there: the volumes of its
    /// configuration come to be, with the sizes it claims.
    pub fn add_guest(
        &mut self,
        kind: GuestKind,
        vmid: u32,
        node: &str,
        config: &[(&str, &str)],
    ) -> &mut Guest {
        let mut guest = Guest::new(kind, vmid, node);
        for (key, value) in config {
            guest.config.insert((*key).to_owned(), (*value).to_owned());
        }
        let slots =
            guest.config.iter().filter(|(key, _)| guest.is_volume_key(key) || key.starts_with("unused"));
        let volumes: Vec<(String, Option<u64>)> = slots
            .filter_map(|(key, text)| {
                let volume =
                    if key.starts_with("unused") { Some(text.clone()) } else { guest.volume_of(key, text) };
                Some((volume?, drive::claimed_size(text)))
            })
            .collect();
        for (volid, size) in volumes {
            if !owned(&volid, vmid) || self.volume(&volid, node).is_some() {
                continue;
            }
            let format = match volid.rsplit_once('.') {
                Some((_, end)) if volid.contains('/') => end,
                _ => "raw",
            };
            let content = if kind == GuestKind::Qemu { "images" } else { "rootdir" };
            let made = Volume {
                size: size.unwrap_or(4 << 20),
                content: content.to_owned(),
                format: format.to_owned(),
                vmid: Some(vmid),
                ctime: self.unix_time(),
                checksum: None,
                virtual_size: None,
                parent: None,
            };
            self.put_volume(&volid, node, made);
        }
        crate::guest::vm_hotplug::seed_image(&mut guest);
        self.guests.entry(vmid).insert_entry(guest).into_mut()
    }

    /// Switches a node on or off.
    pub fn set_node(&mut self, name: &str, online: bool) {
        if let Some(node) = self.nodes.get_mut(name) {
            node.online = online;
        }
        if !online {
            self.cut_tasks(name);
        }
    }

    /// Moves a guest to another node, as a migration by someone else would; its local volumes go along.
    pub fn move_guest(&mut self, vmid: u32, node: &str) {
        let Some(guest) = self.guests.get(&vmid) else { return };
        let (from, volumes) = (guest.node.clone(), guest.volumes());
        for (_, volid) in volumes {
            if let Some(volume) = self.volume(&volid, &from).cloned() {
                self.remove_volume(&volid, &from);
                self.put_volume(&volid, node, volume);
            }
        }
        if let Some(guest) = self.guests.get_mut(&vmid) {
            guest.node = node.to_owned();
        }
    }

    fn refresh_broadcast(&mut self) {
        let fresh = self.seen.at.is_some_and(|at| self.now().saturating_sub(at) < self.lag);
        if self.lag.is_zero() || fresh {
            return;
        }
        self.seen.at = Some(self.now());
        self.seen.guests = self
            .guests
            .values()
            .map(|guest| {
                let status = if guest.running { "running" } else { "stopped" };
                (guest.vmid, Seen { name: guest.name(), status, template: guest.is_template() })
            })
            .collect();
    }

    /// GET /cluster/resources (facts C1, C2).
    pub(crate) fn resources(&mut self, caller: &Caller, only: Option<&str>) -> Vec<Value> {
        self.refresh_broadcast();
        let mut rows = Vec::new();
        let wants = |kind: &str| only.is_none_or(|only| only == kind);
        if only.is_none() {
            for name in self.pools.keys() {
                if self.may(caller, &format!("/pool/{name}"), "Pool.Audit") {
                    rows.push(json!({"id": format!("/pool/{name}"), "type": "pool", "pool": name}));
                }
            }
        }
        if wants("vm") {
            let pool_of: BTreeMap<u32, &str> = self
                .pools
                .iter()
                .flat_map(|(name, pool)| pool.vms.iter().map(move |id| (*id, name.as_str())))
                .collect();
            for guest in self.guests.values() {
                if self.may(caller, &format!("/vms/{}", guest.vmid), "VM.Audit") {
                    rows.push(self.inventory_row(guest, pool_of.get(&guest.vmid).copied()));
                }
            }
        }
        if wants("node") {
            let audit = |name: &str| self.may(caller, &format!("/nodes/{name}"), "Sys.Audit");
            rows.extend(
                self.nodes.keys().map(|name| self.node_row(name, audit(name), &format!("node/{name}"))),
            );
        }
        if wants("storage") {
            for (node, state) in &self.nodes {
                for (name, spec) in self.storages.iter().filter(|(_, spec)| spec.on(node) && !spec.disabled) {
                    let path = format!("/storage/{name}");
                    if !["Datastore.Audit", "Datastore.AllocateSpace"]
                        .iter()
                        .any(|p| self.may(caller, &path, p))
                    {
                        continue;
                    }
                    let mut row = json!({
                        "id": format!("storage/{node}/{name}"), "type": "storage", "storage": name, "node": node,
                        "plugintype": spec.kind, "content": spec.contents(), "shared": u8::from(spec.shared),
                        "status": if state.online { "available" } else { "unknown" },
                    });
                    if state.online {
                        row["disk"] = json!(self.used(name, node));
                        row["maxdisk"] = json!(spec.total);
                    }
                    rows.push(row);
                }
            }
        }
        rows
    }

    fn inventory_row(&self, guest: &Guest, pool: Option<&str>) -> Value {
        let kind = guest.kind.path();
        let mut row = vec![
            ("id", Value::String(format!("{kind}/{}", guest.vmid))),
            ("type", json!(kind)),
            ("vmid", json!(guest.vmid)),
            ("node", json!(guest.node)),
        ];
        let online = self.nodes.get(&guest.node).is_some_and(|node| node.online);
        let seen = if self.lag.is_zero() {
            let status = if guest.running { "running" } else { "stopped" };
            Some(Seen { name: guest.name(), status, template: guest.is_template() })
        } else {
            self.seen.guests.get(&guest.vmid).cloned()
        };
        match seen.filter(|_| online) {
            Some(seen) => {
                row.extend(self.counters(guest));
                row.push(("name", Value::String(seen.name)));
                row.push(("status", json!(seen.status)));
                row.push(("template", json!(u8::from(seen.template))));
            }
            None => row.push(("status", json!("unknown"))),
        }
        row.extend(guest.effective("tags").map(|tags| ("tags", json!(tags))));
        row.extend(guest.lock().map(|lock| ("lock", json!(lock))));
        row.extend(pool.map(|pool| ("pool", json!(pool))));
        if let Some(resource) = self.ha.get(&guest.sid()) {
            row.push(("hastate", json!(resource.get("state").map_or("started", String::as_str))));
        }
        self::row(row)
    }

    /// Sizes and counters of a guest, as in lists and in status/current.
    pub(crate) fn counters(&self, guest: &Guest) -> [(&'static str, Value); 11] {
        let number =
            |key: &str, default: u64| guest.config.get(key).and_then(|n| n.parse().ok()).unwrap_or(default);
        // `2048` or `current=2048`; nothing else passes the grammar
        let memory = guest.config.get("memory").map_or("512", String::as_str);
        let megabytes: u64 = memory.trim_start_matches("current=").parse().unwrap_or(512);
        let uptime = if guest.running { self.unix_time().saturating_sub(guest.started) + 1 } else { 0 };
        let disk = disk_size(guest);
        [
            ("maxcpu", json!(number("cores", 1) * number("sockets", 1))),
            ("maxmem", json!(megabytes << 20)),
            ("maxdisk", json!(disk)),
            ("uptime", json!(uptime)),
            ("cpu", json!(0)),
            ("mem", json!(0)),
            ("disk", json!(0)),
            ("netin", json!(0)),
            ("netout", json!(0)),
            ("diskread", json!(0)),
            ("diskwrite", json!(0)),
        ]
    }

    /// A row of the node list (facts C1, C8).
    pub(crate) fn node_row(&self, name: &str, audit: bool, id: &str) -> Value {
        let Some(node) = self.nodes.get(name) else { return Value::Null };
        let status = if node.online { "online" } else { "offline" };
        let mut row = json!({"id": id, "type": "node", "node": name, "status": status, "level": ""});
        if node.online && audit {
            row["maxcpu"] = json!(node.cpus);
            row["cpu"] = json!(0.05);
            row["maxmem"] = json!(node.memory);
            row["mem"] = json!(4 * GIB);
            row["maxdisk"] = json!(100 * GIB);
            row["disk"] = json!(8 * GIB);
            row["uptime"] = json!(self.now().as_secs() + 3600);
        }
        row
    }

    /// GET /cluster/status (fact C7).
    pub(crate) fn cluster_status(&self) -> Vec<Value> {
        let mut rows: Vec<Value> = self
            .nodes
            .iter()
            .zip(1u32..)
            .map(|((name, node), id)| {
                json!({
                    "type": "node", "id": format!("node/{name}"), "name": name, "nodeid": id, "level": "",
                    "ip": format!("192.0.2.{id}"), "local": u8::from(id == 1), "online": u8::from(node.online),
                })
            })
            .collect();
        if self.nodes.len() > 1 {
            let quorate = u8::from(self.quorate);
            rows.insert(0, json!({
                "type": "cluster", "id": "cluster", "name": self.name, "nodes": self.nodes.len(), "version": 3,
                "quorate": quorate,
            }));
        }
        rows
    }

    /// GET /cluster/options: some of them as objects and lists (fact R12).
    pub(crate) fn datacenter_options(&self) -> Value {
        let mut report = Map::new();
        for (key, text) in &self.options {
            let value = match key.as_str() {
                "tag-style" => object(other::TAG_STYLE, text),
                "next-id" => object(other::NEXT_ID, text),
                "user-tag-access" => {
                    let mut value = object(other::TAG_ACCESS, text);
                    if let Some(list) = value.get("user-allow-list").and_then(Value::as_str) {
                        value["user-allow-list"] = json!(split_list(list).collect::<Vec<_>>());
                    }
                    value
                }
                "registered-tags" => json!(split_list(text).collect::<Vec<_>>()),
                _ => json!(text),
            };
            report.insert(key.clone(), value);
        }
        let mut tags: Vec<&str> = self
            .guests
            .values()
            .filter_map(|guest| guest.config.get("tags"))
            .flat_map(|tags| split_list(tags))
            .chain(self.options.get("registered-tags").into_iter().flat_map(|tags| split_list(tags)))
            .collect();
        tags.sort_unstable();
        tags.dedup();
        report.insert("allowed-tags".to_owned(), json!(tags));
        report.entry("mac_prefix").or_insert_with(|| json!("BC:24:11"));
        Value::Object(report)
    }

    /// The lowest free id in the datacenter's range (fact C6).
    pub(crate) fn next_id(&self) -> Option<u32> {
        let range = self.options.get("next-id").map_or("", String::as_str);
        let range = property::parse(other::NEXT_ID, range, "next-id").unwrap_or_default();
        let bound = |key: &str, default: u32| range.get(key).and_then(|n| n.parse().ok()).unwrap_or(default);
        (bound("lower", 100)..bound("upper", 1_000_000)).find(|id| !self.guests.contains_key(id))
    }

    /// Who holds a volume, for listings: `rootdir` or `images` by the owner's type (fact S7).
    pub(crate) fn listed_content<'a>(&self, volume: &'a Volume) -> &'a str {
        match volume.vmid.and_then(|id| self.guests.get(&id)) {
            Some(guest) if volume.content == "images" && guest.kind == GuestKind::Lxc => "rootdir",
            _ => volume.content.as_str(),
        }
    }

    /// Whether a volume is one of a guest's; used before a content delete.
    pub(crate) fn in_use_by(&self, volid: &str) -> Option<u32> {
        let name = volume::split(volid).map(|(_, name)| name)?;
        let file = name.rsplit('/').next()?;
        let vmid: u32 = file.split('-').nth(1)?.parse().ok()?;
        self.guests.get(&vmid)?.volumes().iter().any(|(_, v)| v == volid).then_some(vmid)
    }
}

/// Size of the first disk, as its configuration says: thousands of rows need it, so nothing is parsed.
fn disk_size(guest: &Guest) -> u64 {
    let is_disk = |key: &str| match guest.kind {
        GuestKind::Lxc => key == "rootfs",
        GuestKind::Qemu => ["scsi", "virtio", "sata", "ide"].iter().any(|bus| {
            key.strip_prefix(bus).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        }),
    };
    guest
        .config
        .iter()
        .filter(|(key, text)| is_disk(key) && !text.contains("media=cdrom"))
        .find_map(|(_, text)| drive::claimed_size(text))
        .unwrap_or(0)
}

fn object(table: Table, text: &str) -> Value {
    let props = property::parse(table, text, "").unwrap_or_default();
    let kind =
        |name: &str| table.iter().flat_map(|group| group.iter()).find(|p| p.name == name).map(|p| p.kind);
    let typed = |name: &str, value: &str| match kind(name) {
        Some(Kind::Flag) => json!(u8::from(parse_flag(value) == Some(true))),
        Some(Kind::Integer) => value.parse::<i64>().map_or_else(|_| json!(value), |n| json!(n)),
        _ => json!(value),
    };
    Value::Object(props.iter().map(|(name, value)| ((*name).to_owned(), typed(name, value))).collect())
}
