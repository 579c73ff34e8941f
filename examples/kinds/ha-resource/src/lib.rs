//! A guest under HA (facts C11, P9): wanted state, how often to restart and move it.
//!
//! A plain object with `delete` lists and a digest, whose id is made of a guest's vmid.

use proxops_kind::{
    About, AdoptOptions, Adopted, Anomaly, Change, Context, Creation, Diagnostic, DriftReport, Identity,
    Kind, Live, Method, ObjectView, Operation, Ownership, Param, ParamRef, Reference, Refusal, Report,
    Resource, Severity, Step, Target, Validated, marker,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

proxops_kind::choice! {
    /// What HA does with the guest.
    State {
        /// Keeps it running.
        Started = "started",
        /// Keeps it stopped.
        Stopped = "stopped",
        /// Stopped, and not started anywhere after a failure.
        Disabled = "disabled",
        /// Left alone.
        Ignored = "ignored",
    }
}

/// A guest under HA.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HaSpec {
    /// The guest as `<kind>/<name>` of its manifest, such as `VM/web-01`.
    pub guest: String,
    /// The guest's vmid, which is the resource's id in PVE.
    #[schemars(range(min = 100, max = 999999999))]
    pub vmid: u32,
    /// Whether the guest is a container.
    #[serde(default)]
    pub container: bool,
    /// Wanted state.
    #[serde(default = "started")]
    #[schemars(extend("x-pve-key" = "state"))]
    pub state: State,
    /// Restarts on one node before it is moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "max_restart"), range(max = 10))]
    pub max_restart: Option<u32>,
    /// Moves before it is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-pve-key" = "max_relocate"), range(max = 10))]
    pub max_relocate: Option<u32>,
    /// What it is for; one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-pve-key" = "comment"))]
    pub comment: String,
}

fn started() -> State {
    State::Started
}

/// The kind.
#[derive(Debug)]
pub struct HaResource;

const KIND: &str = "HAResource";

fn sid(spec: &HaSpec) -> String {
    format!("{}:{}", if spec.container { "ct" } else { "vm" }, spec.vmid)
}

/// Fields that may be left out: PVE's key, pointer, value.
fn optional(spec: &HaSpec) -> [(&'static str, &'static str, Option<String>); 2] {
    [
        ("max_restart", "/spec/max-restart", spec.max_restart.map(|n| n.to_string())),
        ("max_relocate", "/spec/max-relocate", spec.max_relocate.map(|n| n.to_string())),
    ]
}

fn comment(m: &Resource<HaSpec>, context: &Context) -> Param {
    Param::text("comment", marker::word(&m.spec.comment, &marker::of(context, KIND, &m.name)))
        .at("/spec/comment")
}

/// Why the manifest's vmid is not the guest's own; `None` = it is.
fn other_vmid(spec: &HaSpec, context: &Context) -> Option<String> {
    let (kind, name) = spec.guest.split_once('/').unwrap_or_default();
    match context.attribute(kind, name, "vmid") {
        Some(vmid) if vmid == spec.vmid.to_string() => None,
        found => Some(format!("{} has vmid {}, not {}", spec.guest, found.unwrap_or("none"), spec.vmid)),
    }
}

impl Kind for HaResource {
    type Spec = HaSpec;

    fn about() -> About {
        let all = "/cluster/ha/resources";
        let one = "/cluster/ha/resources/{id}";
        let target = Target::object_of(
            Operation::new("list", Method::Get, all),
            Operation::new("read", Method::Get, one),
            "sid",
            vec![
                Operation::new("create", Method::Post, all).id_in("sid"),
                Operation::new("update", Method::Put, one).with_digest(),
                Operation::new("delete", Method::Delete, one),
            ],
            Ownership::marker_in("comment"),
        );
        let mut about = About::new(KIND, env!("CARGO_PKG_VERSION"), "ha", "A guest under HA", target);
        about.api_versions = vec!["example.org/v1".to_owned()];
        let example = |name: &str, spec: Value| json!({"apiVersion": "example.org/v1", "kind": KIND, "metadata": {"name": name}, "spec": spec});
        about.examples = vec![
            example("web", json!({"guest": "VM/web-01", "vmid": 5000})),
            example(
                "db",
                json!({
                    "guest": "VM/db-01", "vmid": 5000, "state": "stopped", "max-restart": 2, "max-relocate": 3,
                    "comment": "the database",
                }),
            ),
        ];
        about
    }

    fn validate(m: &Resource<HaSpec>, report: &mut Report) -> Option<Validated> {
        if m.spec.comment.contains('\n') || marker::without(&m.spec.comment) != m.spec.comment {
            report.error(
                "/spec/comment",
                "bad-comment",
                "`comment` must be one line without a marker or blanks at its end",
            );
        }
        if report.is_broken("/spec/vmid") {
            return None;
        }
        let mut out = Validated::new(Identity::object_id(&sid(&m.spec)));
        match m.spec.guest.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() => {
                out.references.push(Reference::new(kind, name, "/spec/guest"));
            }
            _ => {
                let message = "`guest` is written as `<kind>/<name>`, such as VM/web-01";
                report.error("/spec/guest", "bad-guest", message);
            }
        }
        Some(out)
    }

    fn create(m: &Resource<HaSpec>, context: &Context) -> Result<Creation, Refusal> {
        if let Some(why) = other_vmid(&m.spec, context) {
            return Err(vec![Diagnostic::error("other-vmid", "/spec/vmid", why)]);
        }
        let mut set =
            vec![comment(m, context), Param::text("state", m.spec.state.as_str()).at("/spec/state")];
        for (key, at, value) in optional(&m.spec) {
            set.extend(value.map(|value| Param::text(key, value).at(at)));
        }
        Ok(Creation::new(vec![Step::call_of("create", set, Vec::new())]))
    }

    fn drift(m: &Resource<HaSpec>, live: &Live, context: &Context) -> Result<DriftReport, Refusal> {
        let view = ObjectView::of(live)?;
        let mut report = DriftReport::default();
        if let Some(why) = other_vmid(&m.spec, context) {
            report.anomalies.push(Anomaly::new(Severity::Error, "other-vmid", why).at("/spec/vmid"));
            return Ok(report);
        }
        let (mut set, mut unset) = (Vec::new(), Vec::new());
        // "enabled" is an old word for "started"
        let state =
            view.text("state").map(|s| if s == "enabled" { "started" } else { s }).unwrap_or("started");
        let wanted = m.spec.state.as_str();
        if state != wanted {
            report.changes.push(Change::new(
                "/spec/state",
                "state",
                Some(state.to_owned()),
                Some(wanted.to_owned()),
            ));
            set.push(Param::text("state", wanted).at("/spec/state"));
        }
        for (key, at, wanted) in optional(&m.spec) {
            let now = view.text(key).map(str::to_owned);
            if now == wanted {
                continue;
            }
            report.changes.push(Change::new(at, key, now, wanted.clone()));
            match wanted {
                Some(value) => set.push(Param::text(key, value).at(at)),
                None => unset.push(ParamRef::new(key).at(at)),
            }
        }
        let now = marker::without(view.text("comment").unwrap_or_default());
        if now != m.spec.comment {
            let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            report.changes.push(Change::new("/spec/comment", "comment", text(&now), text(&m.spec.comment)));
            set.push(comment(m, context));
        }
        if !set.is_empty() || !unset.is_empty() {
            report.steps.push(Step::call_of("update", set, unset));
        }
        Ok(report)
    }

    fn adopt(_: &str, live: &Live, context: &Context, _: &AdoptOptions) -> Result<Adopted, Refusal> {
        let view = ObjectView::of(live)?;
        let number = |key: &str| view.text(key).and_then(|text| text.parse().ok());
        let (kind, vmid) = view.object.id.id.split_once(':').unwrap_or_default();
        let owner = context
            .references
            .iter()
            .find(|r| r.attributes.iter().any(|(key, value)| key == "vmid" && value == vmid));
        let mut spec = serde_json::Map::new();
        spec.insert(
            "guest".into(),
            json!(owner.map_or("VM/unknown".to_owned(), |r| format!("{}/{}", r.to.kind, r.to.name))),
        );
        spec.insert("vmid".into(), json!(vmid.parse::<u32>().unwrap_or_default()));
        if kind == "ct" {
            spec.insert("container".into(), json!(true));
        }
        let state = view.text("state").and_then(State::parse).unwrap_or(State::Started);
        spec.insert("state".into(), json!(state));
        for key in ["max_restart", "max_relocate"] {
            if let Some(value) = number(key) {
                let value: u32 = value;
                spec.insert(key.replace('_', "-"), json!(value));
            }
        }
        let comment = marker::without(view.text("comment").unwrap_or_default());
        if !comment.is_empty() {
            spec.insert("comment".into(), json!(comment));
        }
        let mut adopted = Adopted::new(Value::Object(spec).to_string());
        for key in ["failback", "auto-rebalance"] {
            if let Some(value) = view.text(key) {
                adopted.gaps.push(proxops_kind::Gap::new(key, Some(value.to_owned()), "not modelled"));
            }
        }
        Ok(adopted)
    }
}

proxops_kind::export_kind!(HaResource);
