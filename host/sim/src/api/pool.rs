//! Pools (fact C10).

use serde_json::{Value, json};

use super::Access::{All, Need};
use super::{Access, Answer, Call, Endpoint, on};
use crate::grammar::{other as p, split_list};
use crate::guest::GuestKind;
use crate::refused::{Refused, Reply};
use crate::world::{Pool, World};

const ALLOCATE: Access = Need("/pool/{poolid}", &["Pool.Allocate"]);
const CHANGE: &[&[crate::grammar::Param]] = &[p::POOL, p::POOL_COMMENT, p::POOL_MEMBERS];

/// Pools.
pub const ENDPOINTS: &[Endpoint] = &[
    on("GET", "/pools", All, p::POOL_LIST, list),
    on("POST", "/pools", ALLOCATE, &[p::POOL, p::POOL_COMMENT], create),
    on("PUT", "/pools", ALLOCATE, CHANGE, change),
    on("DELETE", "/pools", ALLOCATE, &[p::POOL], delete),
    on("GET", "/pools/{poolid}", Need("/pool/{poolid}", &["Pool.Audit"]), &[p::POOL, p::POOL_TYPE], get),
    on("PUT", "/pools/{poolid}", ALLOCATE, CHANGE, change),
    on("DELETE", "/pools/{poolid}", ALLOCATE, &[p::POOL], delete),
];

fn missing(name: &str) -> Refused {
    Refused::die(format!("pool '{name}' does not exist"))
}

fn row(name: &str, pool: &Pool) -> Value {
    let mut row = json!({"poolid": name});
    if !pool.comment.is_empty() {
        row["comment"] = json!(pool.comment);
    }
    row
}

fn with_members(world: &World, call: &Call<'_>, name: &str) -> Reply<Value> {
    let pool = world.pools.get(name).ok_or_else(|| missing(name))?;
    let mut members = Vec::new();
    for guest in pool.vms.iter().filter_map(|id| world.guests.get(id)) {
        let kind = guest.kind.path();
        if call.get("type").is_none_or(|wanted| wanted == kind) {
            let status = if guest.running { "running" } else { "stopped" };
            members.push(json!({
                "id": format!("{kind}/{}", guest.vmid), "type": kind, "vmid": guest.vmid, "node": guest.node,
                "name": guest.name(), "status": status, "template": u8::from(guest.is_template()),
            }));
        }
    }
    if call.get("type").is_none_or(|wanted| wanted == "storage") {
        for storage in &pool.storages {
            members.push(json!({"id": format!("storage/{storage}"), "type": "storage", "storage": storage}));
        }
    }
    let mut report = row(name, pool);
    report["members"] = json!(members);
    Ok(report)
}

fn list(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    if let Some(name) = call.get("poolid") {
        world.need(call.caller, &format!("/pool/{name}"), &["Pool.Audit"])?;
        return Ok(json!([with_members(world, call, name)?]).into());
    }
    let rows: Vec<Value> = world
        .pools
        .iter()
        .filter(|(name, _)| world.may(call.caller, &format!("/pool/{name}"), "Pool.Audit"))
        .map(|(name, pool)| row(name, pool))
        .collect();
    Ok(json!(rows).into())
}

fn get(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let mut report = with_members(world, call, call.text("poolid"))?;
    if let Some(report) = report.as_object_mut() {
        report.remove("poolid");
    }
    Ok(report.into())
}

fn create(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let name = call.text("poolid");
    if world.pools.contains_key(name) {
        return Err(Refused::die(format!("pool '{name}' already exists")));
    }
    if let Some((parent, _)) = name.rsplit_once('/')
        && !world.pools.contains_key(parent)
    {
        return Err(Refused::die(format!("parent pool '{parent}' of pool '{name}' does not exist")));
    }
    let pool = Pool { comment: call.text("comment").to_owned(), ..Pool::default() };
    world.pools.insert(name.to_owned(), pool);
    Ok(Answer::default())
}

fn change(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let name = call.text("poolid");
    let remove = call.flag("delete");
    let pool = world.pools.get(name).ok_or_else(|| missing(name))?;
    let mut changed = pool.clone();
    if let Some(comment) = call.get("comment") {
        changed.comment = comment.to_owned();
    }
    let mut leaving = Vec::new();
    for vmid in split_list(call.text("vms")).filter_map(|id| id.parse::<u32>().ok()) {
        world.need_any(call.caller, &format!("/vms/{vmid}"), &["VM.Allocate", "Permissions.Modify"])?;
        if remove {
            if !changed.vms.remove(&vmid) {
                return Err(Refused::die(format!("VM {vmid} is not a pool member")));
            }
            continue;
        }
        if !world.guests.contains_key(&vmid) {
            return Err(Refused::die(format!("VM {vmid} does not exist")));
        }
        if changed.vms.contains(&vmid) {
            return Err(Refused::die(format!("VM {vmid} is already a pool member")));
        }
        let other =
            world.pools.iter().find(|(_, pool)| pool.vms.contains(&vmid)).map(|(name, _)| name.clone());
        if let Some(other) = other {
            if !call.flag("allow-move") {
                return Err(Refused::die(format!(
                    "VM {vmid} belongs already to pool '{other}' and 'allow-move' is not set"
                )));
            }
            leaving.push((other, vmid));
        }
        changed.vms.insert(vmid);
    }
    for storage in split_list(call.text("storage")) {
        world.need(call.caller, &format!("/storage/{storage}"), &["Datastore.Allocate"])?;
        match (remove, changed.storages.contains(storage)) {
            (true, false) => return Err(Refused::die(format!("Storage '{storage}' is not a pool member"))),
            (false, true) => {
                return Err(Refused::die(format!("Storage '{storage}' is already a pool member")));
            }
            (true, true) => changed.storages.remove(storage),
            (false, false) if !world.storages.contains_key(storage) => {
                return Err(Refused::die(format!("storage '{storage}' does not exist")));
            }
            (false, false) => changed.storages.insert(storage.to_owned()),
        };
    }
    for (other, vmid) in leaving {
        if let Some(pool) = world.pools.get_mut(&other) {
            pool.vms.remove(&vmid);
        }
    }
    world.pools.insert(name.to_owned(), changed);
    Ok(Answer::default())
}

fn delete(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let name = call.text("poolid");
    let pool = world.pools.get(name).ok_or_else(|| missing(name))?;
    if let Some(vmid) = pool.vms.first() {
        let word = world.guests.get(vmid).map_or(GuestKind::Qemu, |guest| guest.kind).word();
        return Err(Refused::die(format!("pool '{name}' is not empty (contains {word} {vmid})")));
    }
    if let Some(storage) = pool.storages.first() {
        return Err(Refused::die(format!("pool '{name}' is not empty (contains storage '{storage}')")));
    }
    let children = format!("{name}/");
    if world.pools.keys().any(|other| other.starts_with(&children)) {
        return Err(Refused::die(format!("pool '{name}' is not empty (contains pools)")));
    }
    world.pools.remove(name);
    Ok(Answer::default())
}
