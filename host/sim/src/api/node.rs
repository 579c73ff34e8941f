//! Nodes and their tasks.

use serde_json::{Value, json};

use super::Access::{All, Need, Or};
use super::{Access, Answer, Call, Endpoint, on};
use crate::grammar::other as p;
use crate::grammar::split_list;
use crate::refused::{Refused, Reply};
use crate::world::task::{Task, owns};
use crate::world::{GIB, World};

/// Either both on the root or network access on the node (fact P8).
pub(super) const NETWORK: Access =
    Or(&Need("/", &["Sys.Audit", "Sys.Modify"]), &Need("/nodes/{node}", &["Sys.AccessNetwork"]));

/// Nodes and their tasks.
pub const ENDPOINTS: &[Endpoint] = &[
    on("GET", "/nodes", All, p::NONE, list),
    on("GET", "/nodes/{node}/status", Need("/nodes/{node}", &["Sys.Audit"]), &[p::NODE], status),
    on("GET", "/nodes/{node}/version", All, &[p::NODE], super::cluster::version),
    on("GET", "/nodes/{node}/network", All, &[p::NODE, p::NETWORK], network),
    on("GET", "/nodes/{node}/replication", All, &[p::NODE, p::REPLICATION], replication),
    on("GET", "/nodes/{node}/query-url-metadata", NETWORK, &[p::NODE, p::URL_METADATA], url_metadata),
    on("GET", "/nodes/{node}/tasks", All, &[p::NODE, p::TASKS], tasks),
    on("DELETE", "/nodes/{node}/tasks/{upid}", All, &[p::TASK], stop_task),
    on("GET", "/nodes/{node}/tasks/{upid}/status", All, &[p::TASK], task_status),
    on("GET", "/nodes/{node}/tasks/{upid}/log", All, &[p::TASK, p::TASK_LOG], task_log),
];

fn list(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let rows: Vec<Value> = world
        .nodes
        .keys()
        .map(|name| {
            let audit = world.may(call.caller, &format!("/nodes/{name}"), "Sys.Audit");
            let mut row = world.node_row(name, audit, &format!("node/{name}"));
            row["ssl_fingerprint"] = json!(fingerprint(name));
            row
        })
        .collect();
    Ok(json!(rows).into())
}

fn fingerprint(name: &str) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(name).iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

fn status(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let (cpus, memory) = world.nodes.get(call.node()).map_or((0, 0), |node| (node.cpus, node.memory));
    Ok(json!({
        "uptime": world.now().as_secs() + 3600,
        "cpuinfo": {"cpus": cpus, "cores": cpus / 2, "sockets": 1, "model": "simulated", "mhz": "3000.000"},
        "memory": {"total": memory, "used": 4 * GIB, "free": memory.saturating_sub(4 * GIB)},
        "rootfs": {"total": 100 * GIB, "used": 8 * GIB, "free": 92 * GIB, "avail": 92 * GIB},
        "pveversion": "pve-manager/9.2.3/5ce0516a73d2b4f1", "kversion": "Linux 6.17.2-1-pve #1 SMP",
        "loadavg": ["0.10", "0.10", "0.10"], "cpu": 0.05, "wait": 0, "idle": 0,
    })
    .into())
}

fn network(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let bridge = json!({
        "iface": "vmbr0", "type": "bridge", "active": 1, "autostart": 1, "method": "static", "families": ["inet"],
        "bridge_ports": "nic0", "bridge_vlan_aware": 1,
    });
    let card = json!({"iface": "nic0", "type": "eth", "active": 1, "exists": 1, "method": "manual", "families": ["inet"]});
    let rows: Vec<Value> = match call.get("type") {
        Some("bridge" | "any_bridge" | "any_local_bridge" | "include_sdn") => vec![bridge],
        Some("eth") => vec![card],
        Some(_) => Vec::new(),
        None => vec![bridge, card],
    };
    let seen = rows.into_iter().filter(|row| {
        let iface = row["iface"].as_str().unwrap_or_default();
        world.may(call.caller, &format!("/sdn/zones/localnetwork/{iface}"), "SDN.Use")
            || world.may(call.caller, &format!("/nodes/{}", call.node()), "Sys.Audit")
    });
    Ok(json!(seen.collect::<Vec<_>>()).into())
}

fn replication(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let rows: Vec<Value> = world
        .replication
        .iter()
        .filter(|job| call.number("guest").is_none_or(|id| id == u64::from(job.guest)))
        .filter(|job| world.guests.get(&job.guest).is_some_and(|guest| guest.node == call.node()))
        .filter(|job| world.may(call.caller, &format!("/vms/{}", job.guest), "VM.Audit"))
        .map(|job| {
            json!({"id": job.id, "guest": job.guest, "target": job.target, "type": "local", "fail_count": 0, "last_sync": 0})
        })
        .collect();
    Ok(json!(rows).into())
}

fn url_metadata(_: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let name =
        call.text("url").split(['?', '#']).next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    Ok(json!({"filename": name, "size": 256u64 << 20, "mimetype": "application/octet-stream"}).into())
}

/// Finished rows first, newest first (fact U6).
fn tasks(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let all = world.may(call.caller, &format!("/nodes/{}", call.node()), "Sys.Audit");
    let wanted = |task: &&Task| {
        let source = match call.get("source").unwrap_or("archive") {
            "active" => task.exit.is_none(),
            "archive" => task.exit.is_some(),
            _ => true,
        };
        let good = |exit: &str| exit == "OK" || exit.starts_with("WARNINGS");
        let class = match task.exit.as_deref() {
            None => "",
            Some("OK") => "ok",
            Some("unexpected status") => "unknown",
            Some(exit) if good(exit) => "warning",
            Some(_) => "error",
        };
        let since = call.number("since").is_none_or(|since| task.start >= since);
        let until = call.number("until").is_none_or(|until| task.start <= until);
        let filter = call.get("statusfilter");
        task.node == call.node()
            && source
            && since
            && until
            && (all || owns(call.caller, &task.user))
            && call.get("vmid").is_none_or(|id| id == task.id)
            && call.get("typefilter").is_none_or(|part| task.kind.contains(part))
            && call.get("userfilter").is_none_or(|part| task.user.contains(part))
            && (!call.flag("errors") || task.exit.as_deref().is_some_and(|exit| !good(exit)))
            && filter.is_none_or(|list| split_list(list).any(|item| item.eq_ignore_ascii_case(class)))
    };
    let found: Vec<&Task> = world.all_tasks().filter(wanted).collect();
    let start = call.number("start").unwrap_or(0) as usize;
    let limit = call.number("limit").unwrap_or(50) as usize;
    let rows: Vec<Value> = found.iter().skip(start).take(limit).map(|task| task.listed()).collect();
    Ok(Answer { data: json!(rows), total: Some(found.len()) })
}

fn task_status(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    Ok(world.visible_task(call.caller, call.node(), call.text("upid"))?.status().into())
}

/// Lines from `start`, at most `limit`, 0 for all (fact U5).
fn task_log(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let task = world.visible_task(call.caller, call.node(), call.text("upid"))?;
    let empty = vec!["no content".to_owned()];
    let lines = if task.log.is_empty() { &empty } else { &task.log };
    let start = call.number("start").unwrap_or(0) as usize;
    let limit = match call.number("limit") {
        Some(0) => usize::MAX,
        Some(limit) => limit as usize,
        None => 50,
    };
    let rows: Vec<Value> = lines
        .iter()
        .zip(1u32..)
        .skip(start)
        .take(limit)
        .map(|(text, n)| json!({"n": n, "t": text}))
        .collect();
    Ok(Answer { data: json!(rows), total: Some(lines.len()) })
}

/// Stopping needs the owner or Sys.Modify (fact U7).
fn stop_task(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let task = world.visible_task(call.caller, call.node(), call.text("upid"))?;
    if !owns(call.caller, &task.user) {
        world.need(call.caller, &format!("/nodes/{}", call.node()), &["Sys.Modify"])?;
    }
    let upid = task.upid.clone();
    if world.kill_task(&upid) { Ok(Answer::default()) } else { Err(Refused::die("task not running")) }
}
