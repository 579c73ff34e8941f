//! Faults that can be injected: single requests, tasks, and the state of the cluster.
//!
//! A fault file is YAML or JSON of [`Faults`]; programs call [`Faults::apply`] and keep `requests` for
//! the server.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::world::World;

/// Everything a fault file can say.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Faults {
    /// Faults of single requests, tried in order.
    pub requests: Vec<RequestFault>,
    /// Ends of tasks, tried in order.
    pub tasks: Vec<TaskRule>,
    /// Nodes that do not answer (fact T23).
    pub nodes_down: Vec<String>,
    /// Nodes that answer again.
    pub nodes_up: Vec<String>,
    /// No quorum: guest writes fail (fact C13). `false` brings it back.
    pub quorum_lost: Option<bool>,
    /// Storages without room: allocations and downloads fail (fact S14; not on `lvmthin`, which overcommits).
    pub storage_full: Vec<String>,
    /// Every ticket so far is refused with 401 (facts T13, T15).
    pub tickets_expired: bool,
    /// New connections get another certificate. HTTPS only.
    pub certificate_changed: Option<NewCertificate>,
    /// Storages whose listings fail, with the text.
    pub storage_errors: BTreeMap<String, String>,
    /// Guests whose config lock is held: so many writes time out.
    pub config_locks: BTreeMap<u32, u32>,
    /// Keys whose hot-plug fails on a running guest, with the reason (fact Q32).
    pub hotplug_errors: BTreeMap<u32, BTreeMap<String, String>>,
    /// Locks in the configuration of guests (`backup`, `clone`, ...).
    pub guest_locks: BTreeMap<u32, String>,
    /// Guests that moved to another node.
    pub moved: BTreeMap<u32, String>,
    /// Guests that are destroyed.
    pub gone: Vec<u32>,
    /// Values that somebody sets in the configuration of guests.
    pub values: BTreeMap<u32, BTreeMap<String, String>>,
    /// Age in seconds that the inventory may have (fact C2).
    pub inventory_lag: f64,
}

/// Who signed the new certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NewCertificate {
    /// The same CA as before.
    SameAuthority,
    /// A CA that no client knows.
    NewAuthority,
}

impl Faults {
    /// Puts all into a world but what concerns the server: request faults and the certificate.
    pub fn apply(&self, world: &mut World) {
        world.task_rules.extend(self.tasks.iter().cloned());
        for name in &self.nodes_down {
            world.set_node(name, false);
        }
        for name in &self.nodes_up {
            world.set_node(name, true);
        }
        if let Some(lost) = self.quorum_lost {
            world.quorate = !lost;
        }
        for name in &self.storage_full {
            if let Some(storage) = world.storages.get_mut(name) {
                storage.total = 0;
            }
        }
        if self.tickets_expired {
            world.expire_tickets();
        }
        for (name, text) in &self.storage_errors {
            if let Some(storage) = world.storages.get_mut(name) {
                storage.broken = Some(text.clone());
            }
        }
        world.busy.extend(&self.config_locks);
        world.hotplug_errors.extend(self.hotplug_errors.clone());
        for (vmid, lock) in &self.guest_locks {
            if let Some(guest) = world.guests.get_mut(vmid) {
                guest.config.insert("lock".to_owned(), lock.clone());
            }
        }
        for (vmid, node) in &self.moved {
            world.move_guest(*vmid, node);
        }
        for vmid in &self.gone {
            world.guests.remove(vmid);
        }
        for (vmid, values) in &self.values {
            if let Some(guest) = world.guests.get_mut(vmid) {
                guest.config.extend(values.clone());
            }
        }
        if self.inventory_lag > 0.0 {
            world.lag = seconds(self.inventory_lag);
        }
    }
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or_default()
}

/// What happens to matching requests instead of, or besides, the real answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RequestFault {
    /// `GET`, `PUT|POST`, or `*`.
    #[serde(default = "star")]
    pub method: String,
    /// Path below `/api2/json`: `*` is one element, `**` any number.
    pub path: String,
    /// Matching requests that pass unharmed first.
    #[serde(default)]
    pub skip: u32,
    /// How many requests are hit; 0 or left out: all.
    #[serde(default)]
    pub times: u32,
    /// Seconds to wait before the answer.
    #[serde(default)]
    pub delay: f64,
    /// What the client sees. Left out: only the delay.
    #[serde(default)]
    pub answer: Option<FaultAnswer>,
    /// What happens to the cluster when a request is hit, before it is handled.
    #[serde(default)]
    pub change: Option<Box<Faults>>,
    /// Matching requests so far.
    #[serde(skip)]
    pub matched: u32,
}

fn star() -> String {
    "*".to_owned()
}

/// What the client sees instead of the real answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultAnswer {
    /// The connection closes and nothing was done.
    DropBefore,
    /// The call is done, then the connection closes.
    DropAfter,
    /// The call is done, but its body ends half way.
    Truncated,
    /// The call is done, but the answer is an HTML page with status 200.
    Html,
    /// A status and message instead of the call.
    #[serde(rename_all = "kebab-case")]
    Status {
        /// HTTP status.
        status: u16,
        /// Reason and message.
        message: String,
        /// Error texts by parameter.
        #[serde(default)]
        errors: BTreeMap<String, String>,
        /// Whether the call is done all the same.
        #[serde(default)]
        effect: bool,
    },
}

impl RequestFault {
    /// A fault of the next request that matches.
    pub fn once(method: &str, path: &str, answer: FaultAnswer) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            skip: 0,
            times: 1,
            delay: 0.0,
            answer: Some(answer),
            change: None,
            matched: 0,
        }
    }

    /// Counts a request: `true` when this fault hits it.
    pub(crate) fn hits(&mut self, method: &str, path: &str) -> bool {
        let verb = self.method == "*" || self.method.split('|').any(|m| m == method);
        if !verb || !glob(&self.path, path) {
            return false;
        }
        self.matched = self.matched.saturating_add(1);
        self.matched > self.skip && (self.times == 0 || self.matched - self.skip <= self.times)
    }

    pub(crate) fn wait(&self) -> Duration {
        seconds(self.delay)
    }
}

/// How matching tasks run and end.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TaskRule {
    /// Task type, `*` for any.
    #[serde(rename = "type")]
    pub kind: String,
    /// Task id (a vmid, a file name); left out: any.
    pub id: Option<String>,
    /// How many tasks; 0 or left out: all.
    pub times: u32,
    /// Never ends.
    pub hang: bool,
    /// Seconds it takes.
    pub seconds: Option<f64>,
    /// Exit status other than `OK`: `WARNINGS: 1` or an error.
    pub exit: Option<String>,
    /// Whether the work is done although the exit status is an error; and with `false` that it is not
    /// done although the exit status is good.
    pub effect: Option<bool>,
    /// Log lines.
    pub log: Vec<String>,
    /// Matching tasks so far.
    #[serde(skip)]
    pub used: u32,
}

impl TaskRule {
    /// The next task of a type fails with a text.
    pub fn fail(kind: &str, text: &str) -> Self {
        Self { kind: kind.to_owned(), times: 1, exit: Some(text.to_owned()), ..Self::default() }
    }

    pub(crate) fn applies(&self, kind: &str, id: &str) -> bool {
        glob(&self.kind, kind)
            && self.id.as_deref().is_none_or(|wanted| wanted == id)
            && (self.times == 0 || self.used < self.times)
    }

    pub(crate) fn take(&mut self) -> Self {
        self.used += 1;
        self.clone()
    }

    pub(crate) fn duration(&self) -> Option<Duration> {
        self.seconds.map(seconds)
    }

    pub(crate) fn has_effect(&self) -> bool {
        let good = self.exit.as_deref().is_none_or(|exit| exit == "OK" || exit.starts_with("WARNINGS"));
        self.effect.unwrap_or(good)
    }
}

/// `*` stands for one path element, `**` for any text.
fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, rest)) => {
            let Some(tail) = text.strip_prefix(before) else { return false };
            let (rest, deep) = match rest.strip_prefix('*') {
                Some(rest) => (rest, true),
                None => (rest, false),
            };
            let reach = if deep { tail.len() } else { tail.find('/').unwrap_or(tail.len()) };
            (0..=reach).filter(|n| tail.is_char_boundary(*n)).any(|n| glob(rest, &tail[n..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_star_stays_within_a_path_element_two_do_not() {
        assert!(glob("/nodes/*/qemu/100/config", "/nodes/pve01/qemu/100/config"));
        assert!(!glob("/nodes/*/config", "/nodes/pve01/qemu/100/config"));
        assert!(glob("/nodes/**/config", "/nodes/pve01/qemu/100/config"));
        assert!(glob("**", "/version"));
        assert!(!glob("/version", "/versions"));
    }

    #[test]
    fn a_request_fault_hits_as_often_as_it_says() {
        let mut fault =
            RequestFault { skip: 1, times: 2, ..RequestFault::once("GET", "/version", FaultAnswer::Html) };
        let hits: Vec<bool> = (0..5).map(|_| fault.hits("GET", "/version")).collect();
        assert_eq!(hits, [false, true, true, false, false]);
        assert!(!fault.hits("PUT", "/version"));
    }
}
