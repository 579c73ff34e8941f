//! Calls on containers.

use serde_json::json;

use super::Access::{All, Any};
use super::vm::{self, ALLOCATE, AUDIT, CLONE, POWER};
use super::{Access, Answer, Call, Endpoint, on};
use crate::grammar::ct as options;
use crate::grammar::other as p;
use crate::guest::GuestKind;
use crate::guest::jobs::{self, Job};
use crate::guest::power::Power;
use crate::refused::{Refused, Reply};
use crate::world::World;

const KIND: GuestKind = GuestKind::Lxc;
const CHANGE: Access = Any(
    "/vms/{vmid}",
    &["VM.Config.Disk", "VM.Config.CPU", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options"],
);

/// Calls on containers.
pub const ENDPOINTS: &[Endpoint] = &[
    on("GET", "/nodes/{node}/lxc", All, &[p::NODE], |w, c| vm::list(w, c, KIND)),
    on("POST", "/nodes/{node}/lxc", All, &[p::GUEST, options::OPTIONS, options::CREATE], create),
    on("DELETE", "/nodes/{node}/lxc/{vmid}", ALLOCATE, &[p::GUEST, p::DELETE, p::FORCE], delete),
    on("GET", "/nodes/{node}/lxc/{vmid}/config", AUDIT, &[p::GUEST, p::CONFIG_GET], |w, c| {
        vm::config(w, c, KIND)
    }),
    on(
        "PUT",
        "/nodes/{node}/lxc/{vmid}/config",
        CHANGE,
        &[p::GUEST, options::OPTIONS, options::CHANGE],
        put_config,
    ),
    on("GET", "/nodes/{node}/lxc/{vmid}/pending", AUDIT, &[p::GUEST], |w, c| vm::pending(w, c, KIND)),
    on("GET", "/nodes/{node}/lxc/{vmid}/status/current", AUDIT, &[p::GUEST], |w, c| vm::current(w, c, KIND)),
    on("POST", "/nodes/{node}/lxc/{vmid}/status/start", POWER, &[p::GUEST, p::CT_START], |w, c| {
        vm::power(w, c, KIND, Power::Start)
    }),
    on("POST", "/nodes/{node}/lxc/{vmid}/status/stop", POWER, &[p::GUEST, p::CT_STOP], |w, c| {
        vm::power(w, c, KIND, Power::Stop)
    }),
    on("POST", "/nodes/{node}/lxc/{vmid}/status/shutdown", POWER, &[p::GUEST, p::CT_SHUTDOWN], |w, c| {
        vm::power(w, c, KIND, Power::Shutdown)
    }),
    on("POST", "/nodes/{node}/lxc/{vmid}/status/reboot", POWER, &[p::GUEST, p::REBOOT], |w, c| {
        vm::power(w, c, KIND, Power::Reboot)
    }),
    on(
        "PUT",
        "/nodes/{node}/lxc/{vmid}/resize",
        Any("/vms/{vmid}", &["VM.Config.Disk"]),
        &[p::GUEST, p::RESIZE, p::CT_DISK],
        resize,
    ),
    on("POST", "/nodes/{node}/lxc/{vmid}/clone", CLONE, &[p::GUEST, p::CLONE, p::CT_CLONE], clone),
    on("POST", "/nodes/{node}/lxc/{vmid}/template", ALLOCATE, &[p::GUEST], template),
    on("GET", "/nodes/{node}/lxc/{vmid}/snapshot", AUDIT, &[p::GUEST], |w, c| vm::snapshots(w, c, KIND)),
];

fn create(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    world.begin_ct(call.caller, call.node(), call.vmid(), &call.args)?;
    let job = Job::Create(KIND, call.vmid(), call.args.clone());
    Ok(json!(world.spawn(call.caller, call.node(), "vzcreate", call.vmid(), job)).into())
}

fn put_config(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    world.change_ct(call.caller, call.node(), call.vmid(), &call.args)?;
    Ok(Answer::default())
}

/// With `force` a running container is stopped first (fact L20).
fn delete(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let vmid = call.vmid();
    let guest = world.guest(call.node(), KIND, vmid)?;
    if guest.protected() {
        return Err(Refused::die(format!("can't remove CT {vmid} - protection mode enabled")));
    }
    if let Some(text) = guest.locked_text() {
        return Err(Refused::die(text));
    }
    vm::check_jobs(world, vmid, &guest.sid(), "CT", call.flag("purge"))?;
    if guest.running && !call.flag("force") {
        return Err(Refused::die(format!("unable to destroy CT {vmid} - container is running")));
    }
    let job = Job::Destroy(KIND, vmid, call.flag("purge"));
    Ok(json!(world.spawn(call.caller, call.node(), "vzdestroy", vmid, job)).into())
}

/// A task, but what it would refuse is said at once (fact L19).
fn resize(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let (node, vmid) = (call.node(), call.vmid());
    let guest = world.guest(node, KIND, vmid)?;
    if !call.caller.is_root() {
        world.need(call.caller, &format!("/vms/{vmid}"), &["VM.Config.Options"])?;
    }
    if let Some(text) = guest.locked_text() {
        return Err(Refused::die(text));
    }
    if call.get("digest").is_some_and(|digest| digest != guest.digest()) {
        return Err(Refused::die("detected modified configuration - file changed by other user? Try again."));
    }
    vm::need_space(world, call, KIND)?;
    jobs::resize_plan(world, node, KIND, vmid, call.text("disk"), call.text("size")).map_err(Refused::die)?;
    let job = Job::Resize(KIND, vmid, call.text("disk").to_owned(), call.text("size").to_owned());
    Ok(json!(world.spawn(call.caller, node, "resize", vmid, job)).into())
}

fn clone(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let job = world.begin_ct_clone(call.caller, call.node(), call.vmid(), &call.args)?;
    Ok(json!(world.spawn(call.caller, call.node(), "vzclone", call.vmid(), Job::Clone(job))).into())
}

/// The work is a task, but its UPID is thrown away (fact L17).
fn template(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    world.check_template(call.node(), KIND, call.vmid())?;
    world.spawn(call.caller, call.node(), "vztemplate", call.vmid(), Job::Template(KIND, call.vmid()));
    Ok(Answer::default())
}
