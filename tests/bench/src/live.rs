//! Live facts, taken from a simulated cluster in this process.

use anyhow::{Context as _, Result};
use proxops_model::kind::{Context, GuestType, LiveGuest, LivePower, LiveValue, StorageInfo};
use proxops_plan::{GuestFact, GuestRead, NodeState, World};
use proxops_sim::{Caller, World as Sim};
use serde_json::{Value, json};
use std::sync::Arc;

/// What a kind learns of the simulated cluster.
pub fn context(sim: &Sim) -> Context {
    let storages = sim.storages.iter().map(|(name, s)| StorageInfo {
        name: name.clone(),
        storage_type: s.kind.clone(),
        shared: s.shared,
        content: s.content.iter().cloned().collect(),
        nodes: sim.nodes.keys().filter(|node| s.on(node)).cloned().collect(),
    });
    Context {
        cluster: "fleet".to_owned(),
        pve_version: "9.2.3".to_owned(),
        owner_tag: "proxops".to_owned(),
        storages: storages.collect(),
        ..Context::default()
    }
}

/// One VM as the host reads it.
pub fn guest(sim: &mut Sim, node: &str, vmid: u32) -> Result<LiveGuest> {
    let path = format!("/nodes/{node}/qemu/{vmid}/config");
    let config =
        sim.call(&Caller::root(), "GET", &path, json!({})).map_err(|r| anyhow::anyhow!("{path}: {r}"))?;
    let config: &serde_json::Map<String, Value> = config.as_object().context("no configuration")?;
    let masked = config.contains_key("cipassword");
    let values: std::collections::BTreeMap<String, LiveValue> = config
        .iter()
        .filter(|(key, _)| !matches!(key.as_str(), "digest" | "lock" | "cipassword"))
        .map(|(key, value)| (key.clone(), LiveValue::from_json(value)))
        .collect();
    let running = sim.guests.get(&vmid).is_some_and(|guest| guest.running);
    Ok(LiveGuest {
        node: node.to_owned(),
        vmid,
        name: values.get("name").and_then(LiveValue::text).map(str::to_owned),
        power: if running { LivePower::Running } else { LivePower::Stopped },
        template: false,
        lock: None,
        values,
        secrets_present: if masked { vec!["cipassword".to_owned()] } else { Vec::new() },
        pending: Vec::new(),
        hidden: vec![],
        fresh_clone_of: None,
    })
}

/// All facts that a cycle would load.
pub fn world(sim: &mut Sim) -> Result<World> {
    let mut world = World { context: context(sim), ..World::default() };
    world.nodes = sim.nodes.keys().map(|node| (node.clone(), NodeState::Online)).collect();
    let all: Vec<(u32, String)> = sim.guests.values().map(|g| (g.vmid, g.node.clone())).collect();
    for (vmid, node) in all {
        let live = guest(sim, &node, vmid)?;
        let fact = GuestFact {
            vmid,
            guest_type: GuestType::Qemu,
            node,
            name: live.name.clone(),
            power: live.power,
            template: false,
            lock: None,
            tags: live.values.get("tags").and_then(LiveValue::text).unwrap_or_default().to_owned(),
            ha: false,
        };
        world.guests.insert(vmid, fact);
        world.reads.insert(vmid, Ok(GuestRead { live: Arc::new(live), digest: Some("0".repeat(40)) }));
    }
    Ok(world)
}
