//! Version, access and cluster-wide calls.

use serde_json::{Value, json};

use super::Access::{All, Need, World as Open};
use super::{Access, Answer, Call, Endpoint, on};
use crate::grammar::other as p;
use crate::grammar::split_list;
use crate::refused::{Refused, Reply};
use crate::world::World;
use crate::world::task::owns;

const AUDIT: Access = Need("/", &["Sys.Audit"]);
const CONSOLE: Access = Need("/", &["Sys.Console"]);
const LOGIN: Endpoint = Endpoint { token: false, ..on("POST", "/access/ticket", Open, p::LOGIN, login) };

/// Cluster-wide calls.
pub const ENDPOINTS: &[Endpoint] = &[
    on("GET", "/version", All, p::NONE, version),
    on("GET", "/access/ticket", Open, p::NONE, |_, _| Ok(Answer::default())),
    LOGIN,
    on("GET", "/access/permissions", All, p::PERMISSIONS, permissions),
    on("GET", "/access/users/{userid}/token/{tokenid}", All, p::TOKEN, token),
    on("GET", "/cluster/resources", All, p::RESOURCES, |w, c| {
        Ok(Value::Array(w.resources(c.caller, c.get("type"))).into())
    }),
    on("GET", "/cluster/nextid", All, p::NEXTID, nextid),
    on("GET", "/cluster/status", AUDIT, p::NONE, |w, _| Ok(json!(w.cluster_status()).into())),
    on("GET", "/cluster/options", All, p::NONE, options),
    on("PUT", "/cluster/options", Need("/", &["Sys.Modify"]), p::OPTIONS, set_options),
    on("GET", "/cluster/tasks", All, p::NONE, tasks),
    on("GET", "/cluster/backup", AUDIT, p::NONE, |w, _| Ok(json!(w.backup_jobs).into())),
    on("GET", "/cluster/replication", All, p::NONE, replication),
    on("GET", "/cluster/ha/resources", AUDIT, p::HA_LIST, ha_list),
    on("POST", "/cluster/ha/resources", CONSOLE, &[p::HA_SID, p::HA_SETTINGS, p::HA_TYPE], ha_create),
    on("GET", "/cluster/ha/resources/{sid}", AUDIT, &[p::HA_SID], ha_get),
    on("PUT", "/cluster/ha/resources/{sid}", CONSOLE, &[p::HA_SID, p::HA_SETTINGS, p::HA_CHANGE], ha_change),
    on("DELETE", "/cluster/ha/resources/{sid}", CONSOLE, &[p::HA_SID, p::HA_DELETE], ha_delete),
    on("GET", "/cluster/ha/rules", AUDIT, p::HA_RULES, |_, _| Ok(json!([]).into())),
    on("GET", "/cluster/ha/groups", AUDIT, p::NONE, |_, _| {
        Err(Refused::die("cannot index groups: ha groups have been migrated to rules"))
    }),
    on("GET", "/cluster/ha/status/current", AUDIT, p::NONE, ha_status),
];

/// What `/version` says (fact C14).
pub(super) fn version(_: &mut World, _: &Call<'_>) -> Reply<Answer> {
    Ok(json!({"version": "9.2.3", "release": "9.2", "repoid": "5ce0516a73d2b4f1"}).into())
}

fn login(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    world.login(call.text("username"), call.get("realm"), call.text("password")).map(Answer::from)
}

/// For the user itself and its tokens, else with User.Modify.
fn token(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let user = call.text("userid");
    if call.caller.user != user {
        world.need(call.caller, "/access/groups", &["User.Modify"])?;
    }
    world.token_info(user, call.text("tokenid")).map(Answer::from)
}

fn permissions(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    if call.get("userid").is_some_and(|user| user != call.caller.identity()) {
        world.need(call.caller, "/access", &["Sys.Audit"])?;
    }
    Ok(world.permissions(call.caller, call.get("path")).into())
}

/// A string, and no reservation (facts C6, R9).
fn nextid(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    if let Some(vmid) = call.get("vmid") {
        if world.taken(call.vmid()).is_some() {
            return Err(Refused::param("vmid", format!("VM {vmid} already exists")));
        }
        return Ok(json!(vmid).into());
    }
    match world.next_id() {
        Some(id) => Ok(json!(id.to_string()).into()),
        None => Err(Refused::die("unable to get any free VMID")),
    }
}

fn options(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let mut report = world.datacenter_options();
    if !world.may(call.caller, "/", "Sys.Audit")
        && let Some(report) = report.as_object_mut()
    {
        let open = ["allowed-tags", "tag-style", "user-tag-access", "keyboard", "language", "console"];
        report.retain(|key, _| open.contains(&key.as_str()));
    }
    Ok(report.into())
}

fn set_options(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    for key in split_list(call.text("delete")) {
        world.options.remove(key);
    }
    for (key, value) in call.args.iter().filter(|(key, _)| *key != "delete") {
        world.options.insert(key.clone(), value.clone());
    }
    Ok(Answer::default())
}

/// A recent window only (fact U6).
fn tasks(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let rows: Vec<Value> = world
        .all_tasks()
        .filter(|task| {
            owns(call.caller, &task.user)
                || world.may(call.caller, &format!("/nodes/{}", task.node), "Sys.Audit")
        })
        .take(25 * world.nodes.len().max(1))
        .map(|task| task.listed())
        .collect();
    Ok(json!(rows).into())
}

fn replication(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let rows: Vec<Value> = world
        .replication
        .iter()
        .filter(|job| world.may(call.caller, &format!("/vms/{}", job.guest), "VM.Audit"))
        .map(|job| {
            let number = job.id.rsplit('-').next().and_then(|n| n.parse::<u32>().ok()).unwrap_or_default();
            json!({"id": job.id, "guest": job.guest, "jobnum": number, "target": job.target, "type": "local"})
        })
        .collect();
    Ok(json!(rows).into())
}

/// `100` and `vm:100` are the same resource.
fn sid(world: &World, text: &str) -> Reply<String> {
    let (kind, id) = text.split_once(':').map_or((None, text), |(kind, id)| (Some(kind), id));
    let vmid: u32 = id.parse().unwrap_or_default();
    let guest = world.guests.get(&vmid);
    match (kind, guest) {
        (None, Some(guest)) => Ok(guest.sid()),
        (Some(kind), _) => Ok(format!("{kind}:{vmid}")),
        (None, None) => Err(Refused::die(format!("no such VM ('{vmid}')"))),
    }
}

fn ha_row(world: &World, sid: &str) -> Option<Value> {
    let settings = world.ha.get(sid)?;
    let mut row = json!({
        "sid": sid, "type": sid.split(':').next(), "state": "started", "digest": ha_digest(world),
    });
    for (key, value) in settings {
        let number = !matches!(key.as_str(), "comment" | "group" | "state");
        row[key] = match value.parse::<i64>() {
            Ok(n) if number => json!(n),
            _ => json!(value),
        };
    }
    Some(row)
}

fn ha_digest(world: &World) -> String {
    use sha2::Digest;
    let mut digest = hex::encode(sha2::Sha256::digest(format!("{:?}", world.ha)));
    digest.truncate(40);
    digest
}

fn ha_list(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let wanted = |sid: &str| call.get("type").is_none_or(|kind| sid.split(':').next() == Some(kind));
    let rows: Vec<Value> =
        world.ha.keys().filter(|sid| wanted(sid)).filter_map(|sid| ha_row(world, sid)).collect();
    Ok(json!(rows).into())
}

fn ha_get(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let sid = sid(world, call.text("sid"))?;
    match ha_row(world, &sid) {
        Some(row) => Ok(row.into()),
        None => Err(Refused::die(format!("no such resource '{sid}'"))),
    }
}

fn ha_create(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let sid = sid(world, call.text("sid"))?;
    refuse_groups(call)?;
    one_line(call)?;
    let known = world.guests.values().any(|guest| guest.sid() == sid);
    if !known {
        let id = sid.rsplit(':').next().unwrap_or_default();
        return Err(Refused::die(format!("unable to find configuration file for VM {id} in cluster")));
    }
    if world.ha.contains_key(&sid) {
        return Err(Refused::die(format!("resource ID '{sid}' already defined")));
    }
    let settings = call.args.iter().filter(|(key, _)| !matches!(key.as_str(), "sid" | "type"));
    let settings = settings.map(|(key, value)| (key.clone(), value.clone())).collect();
    world.ha.insert(sid, settings);
    Ok(Answer::default())
}

/// Whether a comment of several lines survives is not known.
fn one_line(call: &Call<'_>) -> Reply<()> {
    match call.text("comment").contains('\n') {
        true => Err(Refused::param("comment", "value does not fit on one line")),
        false => Ok(()),
    }
}

/// Groups are gone on 9 (fact R9).
fn refuse_groups(call: &Call<'_>) -> Reply<()> {
    match call.get("group") {
        Some(_) => Err(Refused::die("invalid parameter 'group': ha groups have been migrated to rules")),
        None => Ok(()),
    }
}

fn ha_change(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let sid = sid(world, call.text("sid"))?;
    refuse_groups(call)?;
    one_line(call)?;
    if call.get("digest").is_some_and(|digest| digest != ha_digest(world)) {
        return Err(Refused::die("detected modified configuration - file changed by other user? Try again."));
    }
    let settings = world.ha.get_mut(&sid).ok_or_else(|| Refused::die(format!("no such resource '{sid}'")))?;
    for key in split_list(call.text("delete")) {
        settings.remove(key);
    }
    for (key, value) in
        call.args.iter().filter(|(key, _)| !matches!(key.as_str(), "sid" | "delete" | "digest"))
    {
        settings.insert(key.clone(), value.clone());
    }
    Ok(Answer::default())
}

fn ha_delete(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let sid = sid(world, call.text("sid"))?;
    match world.ha.remove(&sid) {
        Some(_) => Ok(Answer::default()),
        None => Err(Refused::die(format!("cannot delete service '{sid}', not HA managed!"))),
    }
}

fn ha_status(world: &mut World, _: &Call<'_>) -> Reply<Answer> {
    let quorum = json!({
        "id": "quorum", "type": "quorum", "node": world.local_node(), "status": if world.quorate { "OK" } else { "No quorum!" },
        "quorate": u8::from(world.quorate),
    });
    let services = world.ha.iter().filter_map(|(sid, settings)| {
        let vmid: u32 = sid.rsplit(':').next()?.parse().ok()?;
        let node = &world.guests.get(&vmid)?.node;
        let state = settings.get("state").map_or("started", String::as_str);
        Some(json!({
            "id": format!("service:{sid}"), "type": "service", "sid": sid, "node": node, "state": state,
            "request_state": state, "crm_state": state, "status": format!("{sid} ({node}, {state})"),
        }))
    });
    let rows: Vec<Value> = std::iter::once(quorum).chain(services).collect();
    Ok(json!(rows).into())
}
