//! Storages and what is on them.

use serde_json::{Value, json};

use super::Access::{All, And, Any, Need};
use super::node::NETWORK;
use super::{Access, Answer, Call, Endpoint, on};
use crate::grammar::check::matches;
use crate::grammar::other as p;
use crate::grammar::split_list;
use crate::guest::drive::volume_content;
use crate::guest::jobs::{Download, Job};
use crate::refused::{Refused, Reply};
use crate::world::{Storage, World, volume};

const SEE: Access = Any("/storage/{storage}", &["Datastore.Audit", "Datastore.AllocateSpace"]);
const ONE: &str = "/nodes/{node}/storage/{storage}/content/{volume}";
const DOWNLOAD: Access = And(&Need("/storage/{storage}", &["Datastore.AllocateTemplate"]), &NETWORK);

/// Storages and what is on them.
pub const ENDPOINTS: &[Endpoint] = &[
    on("GET", "/storage", All, p::STORAGE_LIST, configured),
    on(
        "GET",
        "/storage/{storage}",
        Need("/storage/{storage}", &["Datastore.Allocate"]),
        p::STORAGE_ONE,
        configured_one,
    ),
    on("GET", "/nodes/{node}/storage", All, &[p::NODE, p::STORAGES], list),
    on("GET", "/nodes/{node}/storage/{storage}/status", SEE, &[p::STORAGE], status),
    on("GET", "/nodes/{node}/storage/{storage}/content", SEE, &[p::STORAGE, p::CONTENT], content),
    on("GET", ONE, All, &[p::VOLUME], content_one),
    on("DELETE", ONE, All, &[p::VOLUME, p::VOLUME_DELETE], delete),
    on(
        "POST",
        "/nodes/{node}/storage/{storage}/download-url",
        DOWNLOAD,
        &[p::STORAGE, p::DOWNLOAD],
        download,
    ),
];

fn config_row(name: &str, spec: &Storage) -> Value {
    use sha2::Digest;
    let mut row = json!({"storage": name, "type": spec.kind, "content": spec.contents()});
    if spec.shared {
        row["shared"] = json!(1);
    }
    if spec.file_based() {
        row["path"] = json!(spec.path);
    }
    if spec.disabled {
        row["disable"] = json!(1);
    }
    if let Some(nodes) = &spec.nodes {
        row["nodes"] = json!(nodes.iter().map(String::as_str).collect::<Vec<_>>().join(","));
    }
    let mut digest = hex::encode(sha2::Sha256::digest(row.to_string()));
    digest.truncate(40);
    row["digest"] = json!(digest);
    row
}

fn visible(world: &World, call: &Call<'_>, name: &str) -> bool {
    let path = format!("/storage/{name}");
    ["Datastore.Audit", "Datastore.AllocateSpace"].iter().any(|p| world.may(call.caller, &path, p))
}

fn configured(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let rows: Vec<Value> = world
        .storages
        .iter()
        .filter(|(name, _)| visible(world, call, name))
        .filter(|(_, spec)| call.get("type").is_none_or(|kind| kind == spec.kind))
        .map(|(name, spec)| config_row(name, spec))
        .collect();
    Ok(json!(rows).into())
}

fn configured_one(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let name = call.text("storage");
    match world.storages.get(name) {
        Some(spec) => Ok(config_row(name, spec).into()),
        None => Err(Refused::die(format!("storage '{name}' does not exist"))),
    }
}

fn status_row(world: &World, name: &str, spec: &Storage, node: &str) -> Value {
    let used = world.used(name, node);
    let mut row = json!({
        "type": spec.kind, "content": spec.contents(), "enabled": u8::from(!spec.disabled),
        "active": u8::from(!spec.disabled && spec.broken.is_none()), "shared": u8::from(spec.shared),
        "total": spec.total, "used": used, "avail": spec.total.saturating_sub(used),
    });
    if spec.disabled || spec.broken.is_some() {
        for key in ["total", "used", "avail"] {
            row[key] = json!(0);
        }
    }
    row
}

fn list(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    if let Some(name) = call.get("storage")
        && !world.storages.contains_key(name)
    {
        return Err(Refused::die(format!("storage '{name}' does not exist")));
    }
    let wanted = |name: &str, spec: &Storage| {
        spec.on(call.node())
            && call.get("target").is_none_or(|target| spec.on(target))
            && call.get("storage").is_none_or(|only| only == name)
            && (!call.flag("enabled") || !spec.disabled)
            && call.get("content").is_none_or(|list| split_list(list).any(|c| spec.content.contains(c)))
            && visible(world, call, name)
    };
    let rows: Vec<Value> = world
        .storages
        .iter()
        .filter(|(name, spec)| wanted(name, spec))
        .map(|(name, spec)| {
            let mut row = status_row(world, name, spec, call.node());
            row["storage"] = json!(name);
            row
        })
        .collect();
    Ok(json!(rows).into())
}

/// An unknown storage is a bad parameter here, a failure elsewhere (fact S11).
fn status(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let name = call.text("storage");
    let spec = world
        .storages
        .get(name)
        .filter(|spec| spec.on(call.node()))
        .ok_or_else(|| Refused::param("storage", "No such storage."))?;
    Ok(status_row(world, name, spec, call.node()).into())
}

fn readable<'a>(world: &'a World, name: &str, node: &str) -> Reply<&'a Storage> {
    let spec = world.usable_storage(name, node)?;
    match &spec.broken {
        Some(text) => Err(Refused::die(text.clone())),
        None => Ok(spec),
    }
}

/// A listing leaves out silently what the caller may not read (fact S7).
fn content(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let name = call.text("storage");
    readable(world, name, call.node())?;
    let mut rows = Vec::new();
    for (file, volume) in world.volumes_on(name, call.node()) {
        let kind = world.listed_content(volume);
        if call.get("content").is_some_and(|wanted| wanted != kind)
            || call.number("vmid").is_some_and(|id| volume.vmid.map(u64::from) != Some(id))
        {
            continue;
        }
        let volid = format!("{name}:{file}");
        if !may_read(world, call, &volid, volume.vmid) {
            continue;
        }
        let mut row = json!({
            "volid": volid, "content": kind, "format": volume.format, "size": volume.size, "ctime": volume.ctime,
        });
        if let Some(vmid) = volume.vmid {
            row["vmid"] = json!(vmid);
            row["used"] = json!(volume.size);
        }
        if let Some(parent) = &volume.parent {
            row["parent"] = json!(parent.split_once(':').map_or(parent.as_str(), |(_, name)| name));
        }
        rows.push(row);
    }
    Ok(json!(rows).into())
}

fn may_read(world: &World, call: &Call<'_>, volid: &str, owner: Option<u32>) -> bool {
    world.check_volume_access(call.caller, call.node(), owner.unwrap_or(0), volid).is_ok()
        && (owner.is_none()
            || world.may(call.caller, &format!("/storage/{}", call.text("storage")), "Datastore.Audit"))
}

/// `local:iso/x.iso`, or the same without its storage (fact S8).
fn volume_id(call: &Call<'_>) -> Reply<String> {
    let (storage, text) = (call.text("storage"), call.text("volume"));
    match volume::split(text) {
        Some((named, _)) if !storage.is_empty() && named != storage => {
            Err(Refused::die(format!("storage ID mismatch ({named} != {storage})")))
        }
        Some(_) => Ok(text.to_owned()),
        None if storage.is_empty() => Err(Refused::die("no storage ID specified")),
        None => Ok(format!("{storage}:{text}")),
    }
}

fn check_name(world: &World, volid: &str, node: &str) -> Reply<()> {
    let (storage, name) =
        volume::split(volid).ok_or_else(|| Refused::die(format!("unable to parse volume ID '{volid}'")))?;
    let spec = world.usable_storage(storage, node)?;
    if spec.file_based() && !name.contains('/') {
        return Err(Refused::die(format!("unable to parse directory volume name '{name}'")));
    }
    Ok(())
}

fn content_one(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let volid = volume_id(call)?;
    check_name(world, &volid, call.node())?;
    let owner = world.volume(&volid, call.node()).and_then(|volume| volume.vmid).unwrap_or(0);
    world.check_volume_access(call.caller, call.node(), owner, &volid)?;
    let volume = world
        .volume(&volid, call.node())
        .ok_or_else(|| Refused::die(format!("volume '{volid}' does not exist")))?;
    let path = world.storages.get(call.text("storage")).map_or("/dev/pve", |spec| spec.path.as_str());
    let name = volid.split_once(':').map_or("", |(_, name)| name);
    Ok(json!({"path": format!("{path}/{name}"), "size": volume.size, "used": volume.size, "format": volume.format}).into())
}

/// Datastore.Allocate, a task, and no error when the file is not there (fact S9).
fn delete(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let volid = volume_id(call)?;
    check_name(world, &volid, call.node())?;
    let storage = volid.split(':').next().unwrap_or_default();
    let path = format!("/storage/{storage}");
    let content = volume_content(&volid);
    if content == "backup" {
        world.need(call.caller, &path, &["Datastore.AllocateSpace"])?;
    } else {
        world.need(call.caller, &path, &["Datastore.Allocate"])?;
    }
    if content == "images"
        && let Some(vmid) = world.in_use_by(&volid)
    {
        let text = format!(
            "Cannot remove image, a guest with VMID '{vmid}' exists! You can delete the image from the guest's hardware pane"
        );
        return Err(Refused::die(text));
    }
    let id =
        format!("{}@{storage}", volid.split_once(':').map_or("", |(_, name)| name)).replace(['/', ' '], "-");
    let upid = world.spawn(call.caller, call.node(), "imgdel", id, Job::RemoveVolume(volid));
    if call.number("delay").is_some_and(|wait| world.task_duration.as_secs() < wait) {
        world.settle();
        if world.exit_status(&json!(upid)).is_some() {
            return Ok(Answer::default());
        }
    }
    Ok(json!(upid).into())
}

/// Extensions by content type (fact S1).
fn extension_ok(content: &str, name: &str) -> bool {
    match content {
        "iso" => matches(r"(?i:.+\.(iso|img))", name),
        "vztmpl" => matches(r".+\.tar(\.(gz|xz|zst|bz2))?", name),
        _ => matches(r".+\.(ova|qcow2|raw|vmdk)", name),
    }
}

fn download(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let (storage, content) = (call.text("storage"), call.text("content"));
    if let Some(compression) = call.get("compression") {
        if !["gz", "lzo", "zst", "bz2"].contains(&compression) {
            return Err(Refused::param("compression", format!("invalid compression '{compression}'")));
        }
        if content != "iso" {
            return Err(Refused::param("compression", "decompression not supported for this content type"));
        }
    }
    let name = normal_filename(call.text("filename"));
    if !extension_ok(content, &name) {
        let text =
            if content == "import" { "invalid filename or wrong extension" } else { "wrong file extension" };
        return Err(Refused::param("filename", text));
    }
    let spec = world.usable_storage(storage, call.node())?;
    if !spec.content.contains(content) {
        return Err(Refused::die(format!(
            "storage '{storage}' is not configured for content-type '{content}'"
        )));
    }
    let job = Download {
        storage: storage.to_owned(),
        name: format!("{content}/{name}"),
        checksum: call.get("checksum").map(str::to_owned),
    };
    Ok(json!(world.spawn(call.caller, call.node(), "download", name, Job::Download(job))).into())
}

/// Path stripped, odd characters replaced (fact S3).
fn normal_filename(name: &str) -> String {
    let base = name.rsplit(['/', '\\']).next().unwrap_or_default();
    base.chars().map(|c| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' }).collect()
}
