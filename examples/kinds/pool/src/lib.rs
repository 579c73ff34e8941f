//! A resource pool (facts C10, P9): comment, guests and storages in it.
//!
//! Everything goes through `/pools` with the id as a parameter, and the answer to `read` is a list of one.
//! What a person wrote in the comment and our marker are two lines of one field.

use proxops_kind::{
    About, AdoptOptions, Adopted, Change, Context, Creation, Diagnostic, DriftReport, Identity, Kind, Live,
    Method, ObjectView, Operation, Ownership, Param, Reference, Refusal, Report, Resource, Step, StorageUse,
    Target, Validated, marker, names,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A resource pool.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PoolSpec {
    /// Id in PVE: up to three names with `/` between them; a nested pool's parent must be there.
    #[schemars(extend("x-pve-key" = "poolid"))]
    pub pool: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-pve-key" = "comment"))]
    pub comment: String,
    /// Guests in it, each as `<kind>/<name>` of a manifest, such as `VM/web-01`. No other guest stays in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-pve-key" = "vms"))]
    pub guests: Vec<String>,
    /// Storages in it. No other storage stays in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-pve-key" = "storage"))]
    pub storages: Vec<String>,
}

/// The kind.
#[derive(Debug)]
pub struct Pool;

const KIND: &str = "Pool";

fn is_pool(id: &str) -> bool {
    let parts: Vec<&str> = id.split('/').collect();
    let plain = |part: &&str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
    };
    parts.len() <= 3 && parts.iter().all(plain)
}

/// vmids of the wanted guests.
fn vmids(spec: &PoolSpec, context: &Context) -> Result<BTreeSet<String>, Refusal> {
    let one = |(i, guest): (usize, &String)| {
        let found = guest.split_once('/').and_then(|(kind, name)| context.attribute(kind, name, "vmid"));
        found.map(str::to_owned).ok_or_else(|| {
            let message = format!("{guest} has no vmid, so it can't be in a pool");
            vec![Diagnostic::error("not-a-guest", format!("/spec/guests/{i}"), message)]
        })
    };
    spec.guests.iter().enumerate().map(one).collect()
}

/// Members of the live pool: vmids and storages.
fn members(view: &ObjectView<'_>) -> (BTreeSet<String>, BTreeSet<String>) {
    let pools = view.list();
    let list = pools.first().and_then(|pool| pool.get("members")?.as_array().cloned()).unwrap_or_default();
    let text = |member: &Value, key: &str| match member.get(key) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let guests = list.iter().filter_map(|m| text(m, "vmid")).collect();
    (guests, list.iter().filter_map(|m| text(m, "storage")).collect())
}

fn joined(set: &BTreeSet<String>) -> Option<String> {
    (!set.is_empty()).then(|| set.iter().cloned().collect::<Vec<_>>().join(","))
}

/// Compares one list of members; what is missing comes in, what is too many goes.
fn compare(
    report: &mut DriftReport,
    at: &str,
    key: &str,
    live: &BTreeSet<String>,
    wanted: &BTreeSet<String>,
) {
    if live == wanted {
        return;
    }
    report.changes.push(Change::new(at, key, joined(live), joined(wanted)));
    if let Some(gone) = joined(&(live - wanted)) {
        let set = vec![Param::text(key, gone).at(at), Param::text("delete", "1")];
        report.steps.push(Step::call_of("update", set, Vec::new()));
    }
    if let Some(new) = joined(&(wanted - live)) {
        report.steps.push(Step::call_of("update", vec![Param::text(key, new).at(at)], Vec::new()));
    }
}

fn comment(m: &Resource<PoolSpec>, context: &Context) -> Param {
    Param::text("comment", marker::line(&m.spec.comment, &marker::of(context, KIND, &m.name)))
        .at("/spec/comment")
}

impl Kind for Pool {
    type Spec = PoolSpec;

    fn about() -> About {
        let pools = |name: &str, method| Operation::new(name, method, "/pools");
        let target = Target::object_of(
            pools("list", Method::Get),
            pools("read", Method::Get).id_in("poolid"),
            "poolid",
            vec![
                pools("create", Method::Post).id_in("poolid"),
                pools("update", Method::Put).id_in("poolid"),
                pools("delete", Method::Delete).id_in("poolid"),
            ],
            Ownership::marker_in_row("comment"),
        );
        let mut about =
            About::new(KIND, env!("CARGO_PKG_VERSION"), "pool", "A resource pool and its members", target);
        about.api_versions = vec!["example.org/v1".to_owned()];
        let example = |name: &str, spec: Value| json!({"apiVersion": "example.org/v1", "kind": KIND, "metadata": {"name": name}, "spec": spec});
        about.examples = vec![
            example("lab", json!({"pool": "lab"})),
            example(
                "web",
                json!({"pool": "web", "comment": "Web servers", "guests": ["VM/web-01"], "storages": ["nfs"]}),
            ),
        ];
        about
    }

    fn validate(m: &Resource<PoolSpec>, report: &mut Report) -> Option<Validated> {
        if !is_pool(&m.spec.pool) {
            let message =
                "`pool` must be one to three names of letters, digits and _ . - with / between them";
            report.error("/spec/pool", "bad-pool-id", message);
        }
        if marker::without(&m.spec.comment) != m.spec.comment {
            report.error(
                "/spec/comment",
                "bad-comment",
                "`comment` must not end with blanks or hold a marker",
            );
        }
        let mut out = Validated::new(Identity::object_id(&m.spec.pool));
        for (i, guest) in m.spec.guests.iter().enumerate() {
            let at = format!("/spec/guests/{i}");
            match guest.split_once('/') {
                Some((kind, name)) if !kind.is_empty() && !name.is_empty() => {
                    out.references.push(Reference::new(kind, name, at));
                }
                _ => {
                    let message = "a guest is written as `<kind>/<name>`, such as VM/web-01";
                    report.error(at, "bad-guest", message);
                }
            }
        }
        for (i, storage) in m.spec.storages.iter().enumerate() {
            let at = format!("/spec/storages/{i}");
            match names::check_storage(storage) {
                Ok(_) => out.storages.push(StorageUse::new(storage, "", at)),
                Err(wrong) => drop(report.error(at, "bad-storage", format!("a storage {wrong}"))),
            }
        }
        out.attributes = vec![("pool".to_owned(), m.spec.pool.clone())];
        // A wrong id is none; the mistakes in other fields are told all the same.
        is_pool(&m.spec.pool).then_some(out)
    }

    fn create(m: &Resource<PoolSpec>, context: &Context) -> Result<Creation, Refusal> {
        // members follow from `drift`, in the same action
        Ok(Creation::new(vec![Step::call_of("create", vec![comment(m, context)], Vec::new())]))
    }

    fn drift(m: &Resource<PoolSpec>, live: &Live, context: &Context) -> Result<DriftReport, Refusal> {
        let view = ObjectView::of(live)?;
        let mut report = DriftReport::default();
        let now = marker::plain_row(&view, "comment");
        if now != m.spec.comment {
            let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            report.changes.push(Change::new("/spec/comment", "comment", text(&now), text(&m.spec.comment)));
            report.steps.push(Step::call_of("update", vec![comment(m, context)], Vec::new()));
        }
        let (guests, storages) = members(&view);
        compare(&mut report, "/spec/guests", "vms", &guests, &vmids(&m.spec, context)?);
        compare(
            &mut report,
            "/spec/storages",
            "storage",
            &storages,
            &m.spec.storages.iter().cloned().collect(),
        );
        Ok(report)
    }

    fn adopt(_: &str, live: &Live, context: &Context, _: &AdoptOptions) -> Result<Adopted, Refusal> {
        let view = ObjectView::of(live)?;
        let (guests, storages) = members(&view);
        let named = |vmid: &String| {
            let owner = context
                .references
                .iter()
                .find(|r| r.attributes.iter().any(|(key, value)| key == "vmid" && value == vmid));
            owner.map(|r| format!("{}/{}", r.to.kind, r.to.name))
        };
        let mut spec = PoolSpec {
            pool: view.object.id.id.clone(),
            comment: marker::plain_row(&view, "comment"),
            guests: guests.iter().filter_map(named).collect(),
            storages: storages.into_iter().collect(),
        };
        spec.guests.sort();
        let mut adopted = Adopted::new(serde_json::to_string(&spec).unwrap_or_default());
        for vmid in guests.iter().filter(|vmid| named(vmid).is_none()) {
            let why = "the guest has no manifest, and members are named by their manifests";
            adopted.gaps.push(proxops_kind::Gap::new("vms", Some(vmid.clone()), why));
        }
        Ok(adopted)
    }
}

proxops_kind::export_kind!(Pool);

#[cfg(test)]
mod tests {
    use super::*;
    use proxops_kind::{LiveObject, LiveValue, Manifest, ObjectId, kind};

    fn manifest(spec: Value) -> Manifest {
        Manifest {
            name: "web".to_owned(),
            labels: Vec::new(),
            annotations: Vec::new(),
            spec: spec.to_string(),
            ext: Vec::new(),
        }
    }

    fn live(comment: &str, members: Value) -> Live {
        let answer = json!([{"poolid": "web", "comment": comment, "members": members}]);
        Live::Object(LiveObject {
            id: ObjectId { id: "web".to_owned(), vars: Vec::new(), ext: Vec::new() },
            values: vec![(String::new(), LiveValue::Json(answer.to_string()))],
            row: vec![("comment".to_owned(), LiveValue::Text(comment.to_owned()))],
            ext: Vec::new(),
        })
    }

    #[test]
    fn a_pool_as_wanted_has_nothing_to_do() {
        let live = live("Web\nproxops:proxops:Pool/web", json!([{"type": "storage", "storage": "nfs"}]));
        let wanted = manifest(json!({"pool": "web", "comment": "Web", "storages": ["nfs"]}));
        let report = kind::drift::<Pool>(&wanted, &live, &Context::default()).unwrap();
        assert_eq!(report, DriftReport::default());
    }

    #[test]
    fn members_come_and_go_and_the_marker_stays() {
        let live = live("proxops:proxops:Pool/web", json!([{"type": "qemu", "vmid": 100}]));
        let wanted = manifest(json!({"pool": "web", "comment": "Web", "storages": ["nfs"]}));
        let report = kind::drift::<Pool>(&wanted, &live, &Context::default()).unwrap();
        let marked = Param::text("comment", "Web\nproxops:proxops:Pool/web").at("/spec/comment");
        let gone = vec![Param::text("vms", "100").at("/spec/guests"), Param::text("delete", "1")];
        let new = vec![Param::text("storage", "nfs").at("/spec/storages")];
        let calls = [vec![marked], gone, new].map(|set| Step::call_of("update", set, Vec::new()));
        assert_eq!(report.steps, calls);
    }

    #[test]
    fn a_wrong_id_or_guest_is_named_at_its_place() {
        let wrong = kind::validate::<Pool>(&manifest(json!({"pool": "a//b", "guests": ["web"]})));
        let places: Vec<&str> = wrong.diagnostics.iter().map(|d| d.at.as_str()).collect();
        assert_eq!(places, ["/spec/guests/0", "/spec/pool"]);
        assert_eq!(wrong.validated, None);
        let wrong = kind::validate::<Pool>(&manifest(json!({"pool": "a/b", "guests": ["web"]})));
        let places: Vec<&str> = wrong.diagnostics.iter().map(|d| d.at.as_str()).collect();
        assert_eq!(places, ["/spec/guests/0"]);
    }
}
