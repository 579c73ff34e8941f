//! The state of a simulated cluster.
//!
//! Everything happens in [`World::call`]: no HTTP, no threads, a logical clock. Tasks end when the
//! clock has passed their time ([`World::advance`]) or at once with [`World::finish_tasks`].

pub mod access;
pub mod cluster;
pub mod storage;
pub mod task;
pub mod volume;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value};

pub use access::Caller;
pub use storage::Storage;

use crate::api;
use crate::faults::TaskRule;
use crate::guest::Guest;
use crate::refused::{Refused, Reply};

/// One GiB in bytes.
pub const GIB: u64 = 1 << 30;

/// Unix time at which a world's clock starts.
const EPOCH: u64 = 1_780_000_000;

/// A cluster member.
#[derive(Clone, Debug)]
pub struct Node {
    /// Whether it answers. A node that does not gives 595 (fact T23).
    pub online: bool,
    /// Processors; a VM with more does not start (fact R6).
    pub cpus: u32,
    /// Memory in bytes.
    pub memory: u64,
}

/// A pool of guests and storages (fact C10).
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// Free text.
    pub comment: String,
    /// Member guests.
    pub vms: BTreeSet<u32>,
    /// Member storages.
    pub storages: BTreeSet<String>,
}

/// A replication job (id `<vmid>-<n>`).
#[derive(Clone, Debug)]
pub struct Replication {
    /// `<vmid>-<number>`.
    pub id: String,
    /// The replicated guest.
    pub guest: u32,
    /// The node it is replicated to.
    pub target: String,
}

/// A security group of the cluster firewall.
#[derive(Clone, Debug, Default)]
pub struct SecurityGroup {
    /// Free text.
    pub comment: String,
    /// Rules, position 0 first.
    pub rules: Vec<BTreeMap<String, String>>,
}

/// A whole cluster. Cheap to clone for a handful of guests, so tests can branch from one state.
#[derive(Clone, Debug)]
pub struct World {
    /// Cluster name.
    pub name: String,
    /// Members by name.
    pub nodes: BTreeMap<String, Node>,
    /// Storages by name.
    pub storages: BTreeMap<String, Storage>,
    /// Guests by id.
    pub guests: BTreeMap<u32, Guest>,
    /// Pools by id.
    pub pools: BTreeMap<String, Pool>,
    /// HA resources by `vm:<id>` or `ct:<id>`: their settings.
    pub ha: BTreeMap<String, BTreeMap<String, String>>,
    /// Replication jobs.
    pub replication: Vec<Replication>,
    /// Backup jobs as they are listed.
    pub backup_jobs: Vec<Value>,
    /// Datacenter options as texts.
    pub options: BTreeMap<String, String>,
    /// Security groups by name.
    pub groups: BTreeMap<String, SecurityGroup>,
    /// How long a task takes. Zero: done at the next look at the cluster.
    pub task_duration: Duration,
    /// Age that name, power and template mark in `/cluster/resources` may have (fact C2).
    pub lag: Duration,
    /// Without quorum every write on guests fails (fact C13).
    pub quorate: bool,
    /// Guests whose config file is locked by another process: so many more writes fail (E, busy).
    pub busy: BTreeMap<u32, u32>,
    /// Keys whose hot-plug fails on a running guest, with the reason (fact Q32).
    pub hotplug_errors: BTreeMap<u32, BTreeMap<String, String>>,
    /// How coming tasks end other than well.
    pub task_rules: Vec<TaskRule>,
    pub(crate) access: access::Access,
    pub(crate) volumes: volume::Volumes,
    pub(crate) tasks: task::Tasks,
    pub(crate) seen: cluster::Broadcast,
    now: Duration,
    seed: u64,
}

impl World {
    /// A cluster without nodes. `seed` makes MACs, uuids and serials reproducible.
    pub fn new(name: &str, seed: u64) -> Self {
        Self {
            name: name.to_owned(),
            nodes: BTreeMap::new(),
            storages: BTreeMap::new(),
            guests: BTreeMap::new(),
            pools: BTreeMap::new(),
            ha: BTreeMap::new(),
            replication: Vec::new(),
            backup_jobs: Vec::new(),
            options: BTreeMap::from([("keyboard".to_owned(), "en-us".to_owned())]),
            groups: BTreeMap::new(),
            task_duration: Duration::ZERO,
            lag: Duration::ZERO,
            quorate: true,
            busy: BTreeMap::new(),
            hotplug_errors: BTreeMap::new(),
            task_rules: Vec::new(),
            access: access::Access::default(),
            volumes: volume::Volumes::default(),
            tasks: task::Tasks::default(),
            seen: cluster::Broadcast::default(),
            now: Duration::ZERO,
            seed,
        }
    }

    /// Adds an online node with 16 processors and 128 GiB.
    pub fn add_node(&mut self, name: &str) {
        self.nodes.insert(name.to_owned(), Node { online: true, cpus: 16, memory: 128 * GIB });
    }

    /// Calls the API as `caller`: `method` GET, POST, PUT or DELETE, `path` below `/api2/json`, and all
    /// parameters that are not in the path.
    ///
    /// # Errors
    /// Every answer that is not 200.
    ///
    /// ```
    /// # use proxops_sim::{Caller, World};
    /// let mut world = World::new("lab", 1);
    /// world.add_node("pve01");
    /// let config = serde_json::json!({"vmid": 100, "memory": "2048", "name": "app"});
    /// let upid = world.call(&Caller::root(), "POST", "/nodes/pve01/qemu", config)?;
    /// world.finish_tasks();
    /// assert_eq!(world.exit_status(&upid).as_deref(), Some("OK"));
    /// # Ok::<(), proxops_sim::Refused>(())
    /// ```
    pub fn call(&mut self, caller: &Caller, method: &str, path: &str, params: Value) -> Reply {
        let params = match params {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        api::answer(self, caller, method, path, params).map(|answer| answer.data)
    }

    /// Unix time in seconds.
    pub fn unix_time(&self) -> u64 {
        EPOCH + self.now.as_secs()
    }

    /// Time since the world began.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Moves the clock and ends the tasks whose time has come.
    pub fn advance(&mut self, by: Duration) {
        self.advance_to(self.now + by);
    }

    /// Moves the clock to a point in time, never back, and ends the tasks whose time has come.
    pub fn advance_to(&mut self, now: Duration) {
        self.now = self.now.max(now);
        self.settle();
    }

    /// A reproducible random number (splitmix64).
    pub(crate) fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A fresh version 4 uuid.
    pub(crate) fn uuid(&mut self) -> String {
        let (a, b) = (self.random(), self.random());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            0x8000 | ((b >> 48) & 0x3fff),
            b & 0xffff_ffff_ffff
        )
    }

    /// A fresh MAC with the datacenter's prefix (fact Q13).
    pub(crate) fn mac(&mut self) -> String {
        let prefix = self.options.get("mac_prefix").map_or("BC:24:11", String::as_str).to_owned();
        let mut mac = prefix.trim_end_matches(':').to_owned();
        let random = self.random().to_be_bytes();
        for byte in random {
            if mac.len() >= 17 {
                break;
            }
            mac.push_str(&format!(":{byte:02X}"));
        }
        mac.to_ascii_uppercase()
    }

    /// The guest of a kind on a node, else 500 in the words of the config file (fact Q47).
    pub(crate) fn guest(&self, node: &str, kind: crate::guest::GuestKind, vmid: u32) -> Reply<&Guest> {
        self.guests
            .get(&vmid)
            .filter(|guest| guest.kind == kind && guest.node == node)
            .ok_or_else(|| Refused::die(kind.missing(node, vmid)))
    }

    /// The same to change.
    pub(crate) fn guest_mut(
        &mut self,
        node: &str,
        kind: crate::guest::GuestKind,
        vmid: u32,
    ) -> Reply<&mut Guest> {
        self.guests
            .get_mut(&vmid)
            .filter(|guest| guest.kind == kind && guest.node == node)
            .ok_or_else(|| Refused::die(kind.missing(node, vmid)))
    }

    /// `VM 100 already exists on node 'pve01'` when the id is taken (facts Q1, L3).
    pub(crate) fn taken(&self, vmid: u32) -> Option<String> {
        self.guests
            .get(&vmid)
            .map(|guest| format!("{} {vmid} already exists on node '{}'", guest.kind.word(), guest.node))
    }
}
