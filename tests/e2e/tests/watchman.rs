//! Judges what a run did by the simulator's own record: the writes that were carried out, and the cluster
//! before and after. Shares no code with planner or executor.

use crate::estate::{FOREIGN, IDENTITY, PRUNED};
use proxops_sim::{LoggedRequest, World};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What no run may do, whatever happens to it. Returns the sins.
pub fn sins(before: &World, after: &World, log: &[LoggedRequest]) -> Vec<String> {
    let mut sins = sins_in_a_storm(before, after, log);
    sins.extend(made_twice(log));
    sins
}

/// The same where tasks may fail, so that a guest may rightly be made again.
pub fn sins_in_a_storm(before: &World, after: &World, log: &[LoggedRequest]) -> Vec<String> {
    let mut sins = writes(log);
    for vmid in FOREIGN {
        let (was, is) = (before.guests.get(&vmid), after.guests.get(&vmid));
        if was.map(|g| (&g.config, g.running)) != is.map(|g| (&g.config, g.running)) {
            sins.push(format!("foreign guest {vmid} was touched"));
        }
    }
    for vmid in before.guests.keys().filter(|vmid| !PRUNED.contains(vmid)) {
        if !after.guests.contains_key(vmid) {
            sins.push(format!("guest {vmid} is gone"));
        }
    }
    let declared = declared();
    for vmid in after.guests.keys() {
        if !before.guests.contains_key(vmid) && !declared.contains(vmid) {
            sins.push(format!("guest {vmid} is one that nobody asked for"));
        }
    }
    sins.extend(volumes(before, after));
    sins
}

fn declared() -> BTreeSet<u32> {
    let documents = crate::estate::manifests().into_iter().flat_map(|(_, list)| list);
    documents.filter_map(|document| whole(&document["spec"]["vmid"])).collect()
}

/// By the writes alone.
fn writes(log: &[LoggedRequest]) -> Vec<String> {
    let mut sins = Vec::new();
    for write in log {
        let (method, path) = (write.method.as_str(), write.path.as_str());
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let vmid = parts.get(3).and_then(|p| p.parse::<u32>().ok());
        let mut sin = |text: &str| sins.push(format!("{method} {path} {:?}: {text}", write.params));
        for key in ["skiplock", "lock", "purge", "destroy-unreferenced-disks"] {
            if write.params.contains_key(key) {
                sin("a parameter that is never sent");
            }
        }
        if vmid.is_some_and(|vmid| FOREIGN.contains(&vmid)) {
            sin("a foreign guest");
        }
        if method == "DELETE" && !vmid.is_some_and(|vmid| PRUNED.contains(&vmid) && parts.len() == 4) {
            sin("a delete that no plan holds");
        }
        if matches!(parts.get(4), Some(&"status"))
            && matches!(parts.get(5), Some(&("stop" | "shutdown")))
            && !vmid.is_some_and(|vmid| PRUNED.contains(&vmid) || [123, 124].contains(&vmid))
        {
            sin("a stop that no plan holds");
        }
        if matches!(parts.get(4), Some(&"config")) && !write.params.contains_key("digest") {
            sin("a configuration write without a digest");
        }
    }
    sins
}

/// Guests whose creation was carried out more than once.
fn made_twice(log: &[LoggedRequest]) -> Vec<String> {
    let mut made: BTreeMap<u32, u32> = BTreeMap::new();
    for write in log.iter().filter(|write| write.done && write.method == "POST") {
        let parts: Vec<&str> = write.path.trim_start_matches('/').split('/').collect();
        let number = |key: &str| write.params.get(key).and_then(whole);
        let new = match parts.as_slice() {
            ["nodes", _, "qemu" | "lxc"] => number("vmid"),
            ["nodes", _, "qemu" | "lxc", _, "clone"] => number("newid"),
            _ => None,
        };
        if let Some(new) = new {
            *made.entry(new).or_default() += 1;
        }
    }
    made.into_iter()
        .filter(|(_, count)| *count > 1)
        .map(|(vmid, count)| format!("guest {vmid} was made {count} times"))
        .collect()
}

/// Where two states differ.
pub fn differences(wanted: &BTreeMap<String, String>, found: &BTreeMap<String, String>) -> Vec<String> {
    let keys: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
    keys.into_iter()
        .filter(|key| wanted.get(*key) != found.get(*key))
        .map(|key| format!("{key}:\n  wanted {:?}\n  found  {:?}", wanted.get(key), found.get(key)))
        .collect()
}

fn whole(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|n| u32::try_from(n).ok()).or_else(|| value.as_str()?.parse().ok())
}

/// Every volume of a guest that stays is there, no smaller, and no guest has one too many.
fn volumes(before: &World, after: &World) -> Vec<String> {
    let mut sins = Vec::new();
    // a guest that somebody moved takes its volumes along: the node does not count
    let sizes = |world: &World| -> BTreeMap<(String, Option<u32>), u64> {
        world.all_volumes().map(|(s, _, name, v)| ((format!("{s}:{name}"), v.vmid), v.size)).collect()
    };
    let (was, is) = (sizes(before), sizes(after));
    for ((volid, owner), size) in &was {
        if owner.is_some_and(|vmid| PRUNED.contains(&vmid)) {
            continue;
        }
        // a mark turns vm-N-disk-M into base-N-disk-M (fact Q44)
        let base = volid.replace("/vm-", "/base-").replace(":vm-", ":base-");
        match is.get(&(volid.clone(), *owner)).or_else(|| is.get(&(base, *owner))) {
            None => sins.push(format!("volume {volid} is gone")),
            Some(now) if now < size => sins.push(format!("volume {volid} shrank")),
            Some(_) => {}
        }
    }
    for guest in after.guests.values().filter(|guest| guest.lock().is_none()) {
        let used: BTreeSet<String> =
            guest.config.values().map(|v| v.split(',').next().unwrap_or_default().to_owned()).collect();
        for (volid, _) in is.keys().filter(|(_, owner)| *owner == Some(guest.vmid)) {
            if !used.contains(volid) {
                sins.push(format!(
                    "guest {} owns {volid}, which its configuration does not name",
                    guest.vmid
                ));
            }
        }
        if guest.config.keys().any(|key| key.starts_with("unused")) {
            sins.push(format!("guest {} has a detached volume", guest.vmid));
        }
    }
    sins
}

/// Clones that are done keep nothing of their template.
pub fn leaked(after: &World) -> Vec<String> {
    let mut sins = Vec::new();
    for guest in after.guests.values().filter(|g| ![900, 950].contains(&g.vmid)) {
        for (key, value) in guest.config.iter().chain(&guest.seeded) {
            if IDENTITY.iter().any(|text| value.contains(text)) || key == "cipassword" {
                sins.push(format!("guest {} keeps {key}={value} of its template", guest.vmid));
            }
        }
    }
    sins
}
