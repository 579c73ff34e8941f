//! Calls on VMs.

use serde_json::{Value, json};

use super::Access::{All, And, Any, Need, Or};
use super::{Access, Answer, Call, Endpoint, on};
use crate::grammar::other as p;
use crate::grammar::vm as options;
use crate::guest::jobs::Job;
use crate::guest::power::Power;
use crate::guest::{GuestKind, vm_hotplug};
use crate::refused::{Refused, Reply};
use crate::world::World;
use crate::world::cluster;

const KIND: GuestKind = GuestKind::Qemu;
pub(super) const AUDIT: Access = Need("/vms/{vmid}", &["VM.Audit"]);
pub(super) const POWER: Access = Need("/vms/{vmid}", &["VM.PowerMgmt"]);
pub(super) const ALLOCATE: Access = Need("/vms/{vmid}", &["VM.Allocate"]);
pub(super) const CLONE: Access = And(
    &Need("/vms/{vmid}", &["VM.Clone"]),
    &Or(&Need("/vms/{newid}", &["VM.Allocate"]), &Need("/pool/{pool}", &["VM.Allocate"])),
);
const CHANGE: Access = Any(
    "/vms/{vmid}",
    &[
        "VM.Config.Disk",
        "VM.Config.CDROM",
        "VM.Config.CPU",
        "VM.Config.Memory",
        "VM.Config.Network",
        "VM.Config.HWType",
        "VM.Config.Options",
        "VM.Config.Cloudinit",
    ],
);

/// Calls on VMs.
pub const ENDPOINTS: &[Endpoint] = &[
    on("GET", "/nodes/{node}/qemu", All, &[p::NODE, p::FULL], |w, c| list(w, c, KIND)),
    on("POST", "/nodes/{node}/qemu", All, &[p::GUEST, options::OPTIONS, options::CREATE], create),
    on("DELETE", "/nodes/{node}/qemu/{vmid}", ALLOCATE, &[p::GUEST, p::DELETE, p::SKIPLOCK], delete),
    on("GET", "/nodes/{node}/qemu/{vmid}/config", AUDIT, &[p::GUEST, p::CONFIG_GET], |w, c| {
        config(w, c, KIND)
    }),
    on(
        "PUT",
        "/nodes/{node}/qemu/{vmid}/config",
        CHANGE,
        &[p::GUEST, options::OPTIONS, options::CHANGE],
        put_config,
    ),
    on(
        "POST",
        "/nodes/{node}/qemu/{vmid}/config",
        CHANGE,
        &[p::GUEST, options::OPTIONS, options::CHANGE, options::CHANGE_TASK],
        post_config,
    ),
    on("GET", "/nodes/{node}/qemu/{vmid}/pending", AUDIT, &[p::GUEST], |w, c| pending(w, c, KIND)),
    on("GET", "/nodes/{node}/qemu/{vmid}/status/current", AUDIT, &[p::GUEST], |w, c| current(w, c, KIND)),
    on("POST", "/nodes/{node}/qemu/{vmid}/status/start", POWER, &[p::GUEST, p::VM_START], |w, c| {
        power(w, c, KIND, Power::Start)
    }),
    on("POST", "/nodes/{node}/qemu/{vmid}/status/stop", POWER, &[p::GUEST, p::VM_STOP], |w, c| {
        power(w, c, KIND, Power::Stop)
    }),
    on("POST", "/nodes/{node}/qemu/{vmid}/status/shutdown", POWER, &[p::GUEST, p::VM_SHUTDOWN], |w, c| {
        power(w, c, KIND, Power::Shutdown)
    }),
    on("POST", "/nodes/{node}/qemu/{vmid}/status/reboot", POWER, &[p::GUEST, p::REBOOT], |w, c| {
        power(w, c, KIND, Power::Reboot)
    }),
    on("POST", "/nodes/{node}/qemu/{vmid}/status/reset", POWER, &[p::GUEST, p::SKIPLOCK], |w, c| {
        power(w, c, KIND, Power::Reset)
    }),
    on("POST", "/nodes/{node}/qemu/{vmid}/status/suspend", POWER, &[p::GUEST, p::VM_SUSPEND], |w, c| {
        power(w, c, KIND, Power::Suspend)
    }),
    on("POST", "/nodes/{node}/qemu/{vmid}/status/resume", POWER, &[p::GUEST, p::VM_RESUME], |w, c| {
        power(w, c, KIND, Power::Resume)
    }),
    on(
        "PUT",
        "/nodes/{node}/qemu/{vmid}/resize",
        Need("/vms/{vmid}", &["VM.Config.Disk"]),
        &[p::GUEST, p::RESIZE, p::VM_DISK, p::SKIPLOCK],
        resize,
    ),
    on("POST", "/nodes/{node}/qemu/{vmid}/clone", CLONE, &[p::GUEST, p::CLONE, p::VM_CLONE], clone),
    on("POST", "/nodes/{node}/qemu/{vmid}/template", ALLOCATE, &[p::GUEST, p::VM_TEMPLATE], template),
    on("GET", "/nodes/{node}/qemu/{vmid}/snapshot", AUDIT, &[p::GUEST], |w, c| snapshots(w, c, KIND)),
    on("GET", "/nodes/{node}/qemu/{vmid}/cloudinit", AUDIT, &[p::GUEST], cloudinit),
    on(
        "PUT",
        "/nodes/{node}/qemu/{vmid}/cloudinit",
        Need("/vms/{vmid}", &["VM.Config.Cloudinit"]),
        &[p::GUEST],
        regenerate,
    ),
];

/// The guests of a kind on a node that the caller may see.
pub(super) fn list(world: &mut World, call: &Call<'_>, kind: GuestKind) -> Reply<Answer> {
    let rows: Vec<Value> = world
        .guests
        .values()
        .filter(|guest| guest.kind == kind && guest.node == call.node())
        .filter(|guest| world.may(call.caller, &format!("/vms/{}", guest.vmid), "VM.Audit"))
        .map(|guest| status(world, guest))
        .collect();
    Ok(Value::Array(rows).into())
}

fn status(world: &World, guest: &crate::guest::Guest) -> Value {
    let counters = world.counters(guest).into_iter();
    let mut row: Vec<(&str, Value)> =
        counters.map(|(key, value)| (if key == "maxcpu" { "cpus" } else { key }, value)).collect();
    row.push(("vmid", json!(guest.vmid)));
    row.push(("name", Value::String(guest.name())));
    row.push(("status", json!(if guest.running { "running" } else { "stopped" })));
    if guest.kind == GuestKind::Lxc {
        row.push(("type", json!("lxc")));
    }
    if guest.running {
        row.push(("pid", json!(100_000 + guest.vmid)));
    }
    // only templates say so (fact Q49)
    if guest.is_template() {
        row.push(("template", json!(1)));
    }
    row.extend(guest.lock().map(|lock| ("lock", json!(lock))));
    row.extend(guest.config.get("tags").map(|tags| ("tags", json!(tags))));
    cluster::row(row)
}

/// GET config (fact Q25).
pub(super) fn config(world: &mut World, call: &Call<'_>, kind: GuestKind) -> Reply<Answer> {
    let guest = world.guest(call.node(), kind, call.vmid())?;
    let current = call.flag("current");
    if let Some(name) = call.get("snapshot") {
        if current {
            let text = "cannot use 'snapshot' parameter with 'current'";
            return Err(Refused::params(
                [("snapshot".to_owned(), text.to_owned()), ("current".to_owned(), text.to_owned())].into(),
            ));
        }
        if !guest.snapshots.iter().any(|snapshot| snapshot.name == name) {
            return Err(Refused::die(format!("snapshot '{name}' does not exist")));
        }
    }
    let mut report = guest.report(current);
    // environment may hold secrets (fact L12)
    if kind == GuestKind::Lxc
        && !world.may(call.caller, &format!("/vms/{}", call.vmid()), "VM.Config.Options")
        && let Some(report) = report.as_object_mut()
    {
        report.remove("env");
    }
    Ok(report.into())
}

/// GET pending.
pub(super) fn pending(world: &mut World, call: &Call<'_>, kind: GuestKind) -> Reply<Answer> {
    Ok(json!(world.guest(call.node(), kind, call.vmid())?.pending_report()).into())
}

/// GET status/current (fact Q49).
pub(super) fn current(world: &mut World, call: &Call<'_>, kind: GuestKind) -> Reply<Answer> {
    let guest = world.guest(call.node(), kind, call.vmid())?;
    let mut row = status(world, guest);
    row["ha"] = match world.ha.get(&guest.sid()) {
        Some(resource) => {
            json!({"managed": 1, "state": resource.get("state").map_or("started", String::as_str)})
        }
        None => json!({"managed": 0}),
    };
    if kind == GuestKind::Qemu {
        let state = match (guest.running, guest.paused) {
            (true, true) => "paused",
            (true, false) => "running",
            _ => "stopped",
        };
        row["qmpstatus"] = json!(state);
        let agent = guest
            .config
            .get("agent")
            .and_then(|text| crate::grammar::property::parse(options::AGENT, text, "agent").ok());
        if agent.and_then(|agent| agent.get("enabled").cloned()).is_some_and(|flag| flag == "1") {
            row["agent"] = json!(1);
        }
    }
    Ok(row.into())
}

/// GET snapshot: ends with the present (fact Q52).
pub(super) fn snapshots(world: &mut World, call: &Call<'_>, kind: GuestKind) -> Reply<Answer> {
    let guest = world.guest(call.node(), kind, call.vmid())?;
    let mut rows = Vec::new();
    let mut parent: Option<&str> = None;
    for snapshot in &guest.snapshots {
        let mut row =
            json!({"name": snapshot.name, "snaptime": snapshot.time, "description": snapshot.description});
        if let Some(parent) = parent {
            row["parent"] = json!(parent);
        }
        parent = Some(&snapshot.name);
        rows.push(row);
    }
    let mut now = json!({
        "name": "current", "description": "You are here!", "running": u8::from(guest.running), "digest": guest.digest(),
    });
    if let Some(parent) = parent {
        now["parent"] = json!(parent);
    }
    rows.push(now);
    Ok(json!(rows).into())
}

fn create(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    world.begin_vm(call.caller, call.node(), call.vmid(), &call.args)?;
    let job = Job::Create(KIND, call.vmid(), call.args.clone());
    Ok(json!(world.spawn(call.caller, call.node(), "qmcreate", call.vmid(), job)).into())
}

fn put_config(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let change = world.check_vm_change(call.caller, call.node(), call.vmid(), &call.args)?;
    world.change_vm(call.node(), call.vmid(), &change)?;
    Ok(Answer::default())
}

/// The same in a task; with `background_delay` the answer waits for it (fact Q26).
fn post_config(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let change = world.check_vm_change(call.caller, call.node(), call.vmid(), &call.args)?;
    let upid =
        world.spawn(call.caller, call.node(), "qmconfig", call.vmid(), Job::Change(call.vmid(), change));
    if let Some(wait) = call.number("background_delay").filter(|wait| world.task_duration.as_secs() < *wait) {
        tracing::debug!(wait, "config write waited for");
        world.settle();
        return match world.exit_status(&json!(upid)).as_deref() {
            Some("OK") => Ok(Answer::default()),
            Some(exit) => Err(Refused::die(format!("failed to update VM {}: {exit}", call.vmid()))),
            None => Ok(json!(upid).into()),
        };
    }
    Ok(json!(upid).into())
}

fn delete(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let vmid = call.vmid();
    if call.flag("skiplock") && !call.caller.is_root() {
        return Err(Refused::param("skiplock", "Only root may use this option."));
    }
    let guest = world.guest(call.node(), KIND, vmid)?;
    if guest.protected() {
        return Err(Refused::die(format!("can't remove VM {vmid} - protection mode enabled")));
    }
    check_jobs(world, vmid, &guest.sid(), "VM", call.flag("purge"))?;
    if guest.running {
        return Err(Refused::die(format!("VM {vmid} is running - destroy failed")));
    }
    let job = Job::Destroy(KIND, vmid, call.flag("purge"));
    Ok(json!(world.spawn(call.caller, call.node(), "qmdestroy", vmid, job)).into())
}

/// HA and replication forbid the removal unless it purges (fact Q46).
pub(super) fn check_jobs(world: &World, vmid: u32, sid: &str, word: &str, purge: bool) -> Reply<()> {
    if purge {
        return Ok(());
    }
    if let Some(job) = world.replication.iter().find(|job| job.guest == vmid) {
        let text =
            format!("There is a replication job '{}' for guest '{vmid}' - Please remove that first.", job.id);
        return Err(Refused::die(text));
    }
    if world.ha.contains_key(sid) {
        return Err(Refused::die(format!(
            "unable to remove {word} {vmid} - used in HA resources and purge parameter not set."
        )));
    }
    Ok(())
}

/// Start, stop and the like: a task (fact U8).
pub(super) fn power(world: &mut World, call: &Call<'_>, kind: GuestKind, power: Power) -> Reply<Answer> {
    let vmid = call.vmid();
    world.check_power(call.caller, call.node(), kind, vmid, power, &call.args)?;
    let task = world.power_task(kind, vmid, power);
    let job = Job::Power(kind, vmid, power, call.flag("skiplock"));
    Ok(json!(world.spawn(call.caller, call.node(), &task, vmid, job)).into())
}

/// A task that finds out everything itself (fact Q42).
fn resize(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let (vmid, disk) = (call.vmid(), call.text("disk"));
    let guest = world.guest(call.node(), KIND, vmid)?;
    if call.get("digest").is_some_and(|digest| digest != guest.digest()) {
        return Err(Refused::die("checksum mismatch (file change by other user?)"));
    }
    need_space(world, call, KIND)?;
    let job = Job::Resize(KIND, vmid, disk.to_owned(), call.text("size").to_owned());
    Ok(json!(world.spawn(call.caller, call.node(), "resize", vmid, job)).into())
}

/// AllocateSpace on the storage of the disk (fact P6).
pub(super) fn need_space(world: &World, call: &Call<'_>, kind: GuestKind) -> Reply<()> {
    let slot = call.text("disk");
    let guest = world.guest(call.node(), kind, call.vmid())?;
    let volume = guest.config.get(slot).and_then(|text| guest.volume_of(slot, text));
    let Some(storage) =
        volume.as_deref().and_then(|volume| volume.split(':').next()).filter(|s| !s.starts_with('/'))
    else {
        return Ok(());
    };
    world.need(call.caller, &format!("/storage/{storage}"), &["Datastore.AllocateSpace"])
}

fn clone(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let job = world.begin_vm_clone(call.caller, call.node(), call.vmid(), &call.args)?;
    Ok(json!(world.spawn(call.caller, call.node(), "qmclone", call.vmid(), Job::Clone(job))).into())
}

fn template(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    world.check_template(call.node(), KIND, call.vmid())?;
    let job = Job::Template(KIND, call.vmid());
    Ok(json!(world.spawn(call.caller, call.node(), "qmtemplate", call.vmid(), job)).into())
}

/// The cloud-init values beside those in the seed image (fact Q24).
fn cloudinit(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let guest = world.guest(call.node(), KIND, call.vmid())?;
    let hide = |key: &str, value: &str| {
        if key == "cipassword" { crate::guest::MASK.to_owned() } else { value.to_owned() }
    };
    let mut rows = Vec::new();
    let mut keys: Vec<&String> = guest
        .config
        .keys()
        .chain(guest.seeded.keys())
        .filter(|key| vm_hotplug::is_cloudinit_key(key))
        .collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let mut row = json!({"key": key});
        match (guest.seeded.get(key), guest.config.get(key)) {
            (Some(old), Some(new)) if old == new => row["value"] = json!(hide(key, old)),
            (Some(old), Some(new)) => {
                row["value"] = json!(hide(key, old));
                row["pending"] = json!(hide(key, new));
            }
            (Some(old), None) => {
                row["value"] = json!(hide(key, old));
                row["delete"] = json!(1);
            }
            (None, Some(new)) => row["pending"] = json!(hide(key, new)),
            (None, None) => {}
        }
        rows.push(row);
    }
    Ok(json!(rows).into())
}

fn regenerate(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let guest = world.guest_mut(call.node(), KIND, call.vmid())?;
    if let Some(text) = guest.locked_text() {
        return Err(Refused::die(text));
    }
    vm_hotplug::seed_image(guest);
    Ok(Answer::default())
}
