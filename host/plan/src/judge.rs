//! Shared judgements: kind anomalies into plan anomalies, steps into a verb, storages into trouble.

use crate::{Resource, World};
use proxops_model::Severity;
use proxops_model::kind::{
    FieldChange, KindAnomaly, KindDiagnostic, KindStep, Param, ParamValue, Refusal, StorageUse,
};
use proxops_model::plan::{Anomaly, Change, Noted, Pending, Verb};

/// What stands for a value that must not be shown.
pub const MASK: &str = "***";

/// Whom a finding is about.
#[derive(Clone)]
pub struct About<'a> {
    pub resource: &'a Resource,
    pub node: Option<String>,
    pub vmid: Option<u32>,
}

impl About<'_> {
    pub fn anomaly(
        &self,
        severity: Severity,
        code: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Anomaly {
        let help: String = help.into();
        Anomaly {
            code: code.to_owned(),
            severity,
            kind: self.resource.id.kind.clone(),
            name: self.resource.id.name.clone(),
            node: self.node.clone(),
            vmid: self.vmid,
            message: message.into(),
            help: (!help.is_empty()).then_some(help),
        }
    }

    /// An error of this resource alone, with the place in its manifest.
    pub fn error_at(
        &self,
        code: &str,
        at: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Anomaly {
        let message = format!("{} ({})", message.into(), (self.resource.locate)(at));
        self.anomaly(Severity::Error, code, message, help)
    }

    pub fn noted(&self, why: impl Into<String>) -> Noted {
        Noted {
            kind: self.resource.id.kind.clone(),
            name: self.resource.id.name.clone(),
            node: self.node.clone(),
            vmid: self.vmid,
            why: why.into(),
        }
    }

    pub fn of_kind(&self, a: KindAnomaly) -> Anomaly {
        let ignored = a.key.as_ref().is_some_and(|k| self.resource.ignore.contains(k));
        let severity = if ignored { Severity::Info } else { a.severity };
        let message = match a.at.as_deref() {
            Some(at) => format!("{} ({})", a.message, (self.resource.locate)(at)),
            None => a.message,
        };
        self.anomaly(severity, &a.code, message, a.help.unwrap_or_default())
    }

    pub fn of_diagnostic(&self, d: KindDiagnostic) -> Anomaly {
        let message = format!("{} ({})", d.message, (self.resource.locate)(&d.at));
        self.anomaly(d.severity, &d.code, message, d.help.unwrap_or_default())
    }

    pub fn of_refusal(&self, refusal: Refusal) -> Vec<Anomaly> {
        match refusal {
            Refusal::Diagnostics(list) => list.into_iter().map(|d| self.of_diagnostic(d)).collect(),
            Refusal::Fault(fault) => vec![self.anomaly(
                Severity::Error,
                "kind-fault",
                fault.to_string(),
                "the kind's component is broken; other kinds go on. Report it to its author or remove the file",
            )],
        }
    }

    pub fn pending(&self, c: FieldChange) -> Pending {
        let c = change(c);
        Pending {
            kind: self.resource.id.kind.clone(),
            name: self.resource.id.name.clone(),
            node: self.node.clone(),
            vmid: self.vmid,
            key: c.key,
            current: c.from,
            pending: c.to,
        }
    }
}

/// A kind's change as the plan shows it: sensitive values masked here and for good.
pub fn change(c: FieldChange) -> Change {
    let show = |v: Option<String>| if c.sensitive { v.map(|_| MASK.to_owned()) } else { v };
    Change { field: c.at, key: c.key, from: show(c.before), to: show(c.after), sensitive: c.sensitive }
}

/// The strongest of mark-template, update and resize; `None` if the steps do nothing.
pub fn verb(steps: &[KindStep]) -> Option<Verb> {
    let rank = |s: &KindStep| match s {
        KindStep::Create { .. } | KindStep::Restore { .. } => Some((0, Verb::Create)),
        KindStep::Clone { .. } => Some((1, Verb::Clone)),
        KindStep::MarkTemplate => Some((2, Verb::MarkTemplate)),
        KindStep::Configure { .. } | KindStep::RebuildCloudInit | KindStep::Call { .. } => {
            Some((3, Verb::Update))
        }
        KindStep::Resize { .. } => Some((4, Verb::Resize)),
        KindStep::Download { .. } => Some((5, Verb::Download)),
    };
    steps.iter().filter_map(rank).min_by_key(|(r, _)| *r).map(|(_, v)| v)
}

/// All parameter texts of the steps.
pub fn texts(steps: &[KindStep]) -> impl Iterator<Item = &str> {
    steps.iter().flat_map(params).flat_map(|p| match &p.value {
        ParamValue::Text(text) => vec![text.as_str()],
        ParamValue::Many(list) => list.iter().map(String::as_str).collect(),
        ParamValue::Secret(_) => Vec::new(),
    })
}

fn params(step: &KindStep) -> &[Param] {
    match step {
        KindStep::Create { params } | KindStep::Restore { params } => params,
        KindStep::Clone { params, .. } | KindStep::Download { params, .. } => params,
        KindStep::Configure { set, .. } | KindStep::Call { set, .. } => set,
        KindStep::Resize { .. } | KindStep::RebuildCloudInit | KindStep::MarkTemplate => &[],
    }
}

/// Whether a step makes a new volume on this storage: `<storage>:<GiB>` or `<storage>:cloudinit`.
pub fn allocates_on(steps: &[KindStep], storage: &str) -> bool {
    texts(steps).any(|text| {
        let volume = text.split(',').next().unwrap_or_default();
        let volume =
            volume.strip_prefix("file=").or_else(|| volume.strip_prefix("volume=")).unwrap_or(volume);
        volume
            .strip_prefix(storage)
            .and_then(|rest| rest.strip_prefix(':'))
            .is_some_and(|rest| rest == "cloudinit" || rest.parse::<f64>().is_ok())
    })
}

/// Why a storage can't serve this use on this node, with its help.
pub fn storage_trouble(world: &World, wanted: &StorageUse, node: &str) -> Option<(String, String)> {
    let Some(storage) = world.storage_on(&wanted.storage, node) else {
        let there: Vec<&str> = world
            .context
            .storages
            .iter()
            .filter(|s| s.nodes.is_empty() || s.nodes.iter().any(|n| n == node))
            .map(|s| s.name.as_str())
            .collect();
        return Some((
            format!("node {node} has no storage {}", wanted.storage),
            format!(
                "it has {}; also check that the credential may see it (Datastore.Audit)",
                there.join(", ")
            ),
        ));
    };
    if wanted.content.is_empty() || storage.content.is_empty() || storage.content.contains(&wanted.content) {
        return None;
    }
    Some((
        format!("storage {} does not carry content type {}", wanted.storage, wanted.content),
        format!(
            "it carries {}; choose another storage or add the content type in PVE",
            storage.content.join(", ")
        ),
    ))
}
