//! From the model to the contract's types: what a call takes.
//!
//! Nothing is copied: the contract's records borrow from the model. Lists of records need a place to
//! live while the call runs, so each function lends its record to a closure.

use crate::bindings::proxops::kind::types as wit;
use proxops_model::{
    ResourceId,
    kind::{
        Context, Live, LiveGuest, LiveObject, LivePower, LiveValue, Manifest, ObjectId, Pairs,
        PlacementState, Presence,
    },
};
use std::collections::BTreeMap;

/// No key of `ext` is defined in 1.0.
const EXT: &[(&str, &str)] = &[];

fn pairs(pairs: &Pairs) -> Vec<(&str, &str)> {
    pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

fn texts(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

fn resource(id: &ResourceId) -> wit::ResourceRefParam<'_> {
    wit::ResourceRefParam { kind: &id.kind, name: &id.name }
}

/// Lends a manifest.
pub(crate) fn manifest<R>(manifest: &Manifest, call: impl FnOnce(wit::Manifest<'_>) -> R) -> R {
    let (labels, annotations) = (pairs(&manifest.labels), pairs(&manifest.annotations));
    call(wit::Manifest {
        name: &manifest.name,
        labels: &labels,
        annotations: &annotations,
        spec: &manifest.spec,
        ext: EXT,
    })
}

/// Lends a context.
pub(crate) fn context<R>(context: &Context, call: impl FnOnce(wit::Context<'_>) -> R) -> R {
    let lists: Vec<_> = context.storages.iter().map(|s| (texts(&s.content), texts(&s.nodes))).collect();
    let storages: Vec<_> = context
        .storages
        .iter()
        .zip(&lists)
        .map(|(storage, (content, nodes))| wit::StorageInfo {
            name: &storage.name,
            storage_type: &storage.storage_type,
            shared: storage.shared,
            content,
            nodes,
            ext: EXT,
        })
        .collect();
    let attributes: Vec<_> = context.references.iter().map(|r| pairs(&r.attributes)).collect();
    let references: Vec<_> = context
        .references
        .iter()
        .zip(&attributes)
        .map(|(reference, attributes)| wit::Resolved { to: resource(&reference.to), attributes, ext: EXT })
        .collect();
    let public_keys = pairs(&context.public_keys);
    call(wit::Context {
        cluster: &context.cluster,
        pve_version: &context.pve_version,
        owner_tag: &context.owner_tag,
        root: context.root,
        tag_style: wit::TagStyle {
            case_sensitive: context.tag_style.case_sensitive,
            keep_order: context.tag_style.keep_order,
            ext: EXT,
        },
        storages: &storages,
        references: &references,
        public_keys: &public_keys,
        ext: EXT,
    })
}

/// Lends what is live.
pub(crate) fn live<R>(live: &Live, call: impl FnOnce(wit::Live<'_>) -> R) -> R {
    match live {
        Live::Guest(guest) => live_guest(guest, |g| call(wit::Live::Guest(g))),
        Live::Artifact(states) => {
            let states: Vec<_> = states.iter().map(placement_state).collect();
            call(wit::Live::Artifact(&states))
        }
        Live::Object(object) => live_object(object, |o| call(wit::Live::Object(o))),
    }
}

fn values(values: &BTreeMap<String, LiveValue>) -> Vec<(&str, wit::LiveValue<'_>)> {
    values
        .iter()
        .map(|(key, value)| {
            let value = match value {
                LiveValue::Text(text) => wit::LiveValue::Text(text),
                LiveValue::Json(json) => wit::LiveValue::Json(json),
            };
            (key.as_str(), value)
        })
        .collect()
}

fn live_guest<R>(guest: &LiveGuest, call: impl FnOnce(wit::LiveGuest<'_>) -> R) -> R {
    let values = values(&guest.values);
    let secrets_present = texts(&guest.secrets_present);
    let hidden = texts(&guest.hidden);
    let pending: Vec<_> = guest
        .pending
        .iter()
        .map(|p| wit::Pending {
            key: &p.key,
            running: p.running.as_deref(),
            configured: p.configured.as_deref(),
            ext: EXT,
        })
        .collect();
    call(wit::LiveGuest {
        node: &guest.node,
        vmid: guest.vmid,
        name: guest.name.as_deref(),
        power: match guest.power {
            LivePower::Running => wit::LivePower::Running,
            LivePower::Stopped => wit::LivePower::Stopped,
            LivePower::Paused => wit::LivePower::Paused,
            LivePower::Unknown => wit::LivePower::Unknown,
        },
        template: guest.template,
        lock: guest.lock.as_deref(),
        values: &values,
        secrets_present: &secrets_present,
        pending: &pending,
        hidden: &hidden,
        fresh_clone_of: guest.fresh_clone_of.as_ref().map(resource),
        ext: EXT,
    })
}

fn placement_state(state: &PlacementState) -> wit::PlacementState<'_> {
    wit::PlacementState {
        at: wit::PlacementParam {
            node: &state.at.node,
            storage: &state.at.storage,
            filename: &state.at.filename,
            ext: EXT,
        },
        presence: match state.presence {
            Presence::Present => wit::Presence::Present,
            Presence::Absent => wit::Presence::Absent,
            Presence::Unknown => wit::Presence::Unknown,
        },
        size: state.size,
        ext: EXT,
    }
}

fn live_object<R>(object: &LiveObject, call: impl FnOnce(wit::LiveObject<'_>) -> R) -> R {
    let ObjectId { id, vars } = &object.id;
    let vars = pairs(vars);
    let (values, row) = (values(&object.values), values(&object.row));
    call(wit::LiveObject {
        id: wit::ObjectIdParam { id, vars: &vars, ext: EXT },
        values: &values,
        row: &row,
        ext: EXT,
    })
}
