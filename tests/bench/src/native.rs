//! The kind VM compiled for this machine, behind the same trait as the component: the measure for what WebAssembly
//! costs. It converts what a call takes and returns, as every caller must; it checks nothing.

use proxops_kind::{self as sdk, kind};
use proxops_model::kind::{
    Adopted, Context, Creation, DriftReport, GuestId, Identity, KindApi, KindDiagnostic, KindFault, KindInfo,
    KindSet, Live, LiveGuest, LivePower, LiveValue, Manifest, Power, Reference, Refusal, SecretClass,
    SecretUse, StorageUse, Validated, Validation,
};
use proxops_model::{ResourceId, Severity};
use proxops_qemu::Vm;

/// The kind VM, native.
pub struct Native(pub KindInfo);

impl KindSet for Native {
    fn get(&self, kind: &str) -> Option<&dyn KindApi> {
        (kind == self.0.kind).then_some(self as &dyn KindApi)
    }

    fn all(&self) -> Vec<&dyn KindApi> {
        vec![self]
    }
}

impl KindApi for Native {
    fn info(&self) -> &KindInfo {
        &self.0
    }

    fn validate(&self, m: &Manifest) -> Result<Validation, KindFault> {
        let answer = kind::validate::<Vm>(&manifest(m));
        Ok(Validation {
            validated: answer.validated.map(validated).transpose().map_err(|why| fault("validate", why))?,
            diagnostics: answer.diagnostics.into_iter().map(diagnostic).collect(),
        })
    }

    fn create_params(&self, _: &Manifest, _: &Context) -> Result<Creation, Refusal> {
        Err(Refusal::Fault(fault("create-params", "the fleet is converged, and this guest is not there")))
    }

    fn drift(&self, m: &Manifest, l: &Live, c: &Context) -> Result<DriftReport, Refusal> {
        let l = live(l).map_err(|why| Refusal::Fault(fault("drift", why)))?;
        match kind::drift::<Vm>(&manifest(m), &l, &context(c)) {
            Ok(report) if report == sdk::DriftReport::default() => Ok(DriftReport::default()),
            Ok(report) => {
                let why = format!("the fleet is converged, and {} differs: {report:?}", m.name);
                Err(Refusal::Fault(fault("drift", &why)))
            }
            Err(diagnostics) => Err(Refusal::Diagnostics(diagnostics.into_iter().map(diagnostic).collect())),
        }
    }

    fn adopt(&self, _: &str, _: &Live, _: &Context, _: bool) -> Result<Adopted, Refusal> {
        Err(Refusal::Fault(fault("adopt", "no row of the table adopts")))
    }
}

fn fault(function: &str, message: &str) -> KindFault {
    KindFault {
        kind: "VM".to_owned(),
        origin: "native".to_owned(),
        function: function.to_owned(),
        message: message.to_owned(),
    }
}

/// A manifest as the kind's own library takes it.
pub fn manifest(m: &Manifest) -> sdk::Manifest {
    sdk::Manifest {
        name: m.name.clone(),
        labels: m.labels.clone(),
        annotations: m.annotations.clone(),
        spec: m.spec.clone(),
        ext: Vec::new(),
    }
}

fn resource(id: &ResourceId) -> sdk::ResourceRef {
    sdk::ResourceRef::new(&id.kind, &id.name)
}

/// A context as the kind's own library takes it.
pub fn context(c: &Context) -> sdk::Context {
    let storages = c.storages.iter().map(|s| sdk::StorageInfo {
        name: s.name.clone(),
        storage_type: s.storage_type.clone(),
        shared: s.shared,
        content: s.content.clone(),
        nodes: s.nodes.clone(),
        ext: Vec::new(),
    });
    let references = c.references.iter().map(|r| sdk::Resolved {
        to: resource(&r.to),
        attributes: r.attributes.clone(),
        ext: Vec::new(),
    });
    sdk::Context {
        cluster: c.cluster.clone(),
        pve_version: c.pve_version.clone(),
        owner_tag: c.owner_tag.clone(),
        root: c.root,
        tag_style: sdk::TagStyle {
            case_sensitive: c.tag_style.case_sensitive,
            keep_order: c.tag_style.keep_order,
            ext: Vec::new(),
        },
        storages: storages.collect(),
        references: references.collect(),
        public_keys: c.public_keys.clone(),
        ext: Vec::new(),
    }
}

/// A live guest as the kind's own library takes it.
pub fn live(l: &Live) -> Result<sdk::Live, &'static str> {
    match l {
        Live::Guest(guest) => Ok(sdk::Live::Guest(live_guest(guest))),
        _ => Err("only guests are measured"),
    }
}

fn live_guest(g: &LiveGuest) -> sdk::LiveGuest {
    let value = |v: &LiveValue| match v {
        LiveValue::Text(text) => sdk::LiveValue::Text(text.clone()),
        LiveValue::Json(json) => sdk::LiveValue::Json(json.clone()),
    };
    let pending = g.pending.iter().map(|p| sdk::Pending {
        key: p.key.clone(),
        running: p.running.clone(),
        configured: p.configured.clone(),
        ext: Vec::new(),
    });
    sdk::LiveGuest {
        node: g.node.clone(),
        vmid: g.vmid,
        name: g.name.clone(),
        power: match g.power {
            LivePower::Running => sdk::LivePower::Running,
            LivePower::Stopped => sdk::LivePower::Stopped,
            LivePower::Paused => sdk::LivePower::Paused,
            LivePower::Unknown => sdk::LivePower::Unknown,
        },
        template: g.template,
        lock: g.lock.clone(),
        values: g.values.iter().map(|(k, v)| (k.clone(), value(v))).collect(),
        secrets_present: g.secrets_present.clone(),
        pending: pending.collect(),
        hidden: g.hidden.clone(),
        fresh_clone_of: g.fresh_clone_of.as_ref().map(resource),
        ext: Vec::new(),
    }
}

fn diagnostic(d: sdk::Diagnostic) -> KindDiagnostic {
    KindDiagnostic {
        severity: match d.severity {
            sdk::Severity::Error => Severity::Error,
            sdk::Severity::Warning => Severity::Warning,
            sdk::Severity::Info => Severity::Info,
        },
        code: d.code,
        at: d.at,
        message: d.message,
        help: d.help,
    }
}

fn validated(v: sdk::Validated) -> Result<Validated, &'static str> {
    let sdk::Identity::Guest(guest) = v.identity else { return Err("a VM that is no guest") };
    let reference =
        |r: sdk::Reference| Reference { to: ResourceId { kind: r.to.kind, name: r.to.name }, at: r.at };
    let secret = |s: sdk::SecretUse| SecretUse {
        name: s.name,
        class: if s.class == sdk::SecretClass::Password {
            SecretClass::Password
        } else {
            SecretClass::PublicKey
        },
        at: s.at,
    };
    let storage =
        |s: sdk::StorageUse| StorageUse { storage: s.storage, node: s.node, content: s.content, at: s.at };
    Ok(Validated {
        identity: Identity::Guest(GuestId { node: guest.node, vmid: guest.vmid, name: guest.name }),
        power: v.power.map(|p| if p == sdk::Power::Running { Power::Running } else { Power::Stopped }),
        references: v.references.into_iter().map(reference).collect(),
        secrets: v.secrets.into_iter().map(secret).collect(),
        storages: v.storages.into_iter().map(storage).collect(),
        attributes: v.attributes,
        incomplete: Vec::new(),
    })
}
