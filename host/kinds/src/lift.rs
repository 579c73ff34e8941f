//! From the contract's types to the model: what a call returns, checked on the way.
//!
//! Texts are moved, not copied. An answer without content (a guest that converged) costs nothing here.

use crate::{
    bindings::proxops::kind::types as wit,
    check::{Budget, Checked, Places, code, json_object, name, prose, quote, refuse, value_prose, word},
    limits::Limits,
};
use proxops_model::{
    ResourceId, Severity,
    kind::{
        Adopted, Creation, DriftReport, FieldChange, Gap, GuestId, Hole, Identity, KindAnomaly,
        KindDiagnostic, Manifest, ObjectId, Pairs, Placement, Power, Reference, SecretClass, SecretUse,
        StorageUse, Target, Validated, Validation,
    },
};

/// Checks and converts one answer about one manifest.
pub(crate) struct Lift<'a> {
    pub(crate) budget: Budget,
    pub(crate) places: Places<'a>,
}

/// The host refuses what it does not know.
pub(crate) fn ext(ext: &[(String, String)]) -> Checked {
    match ext.first() {
        Some((key, _)) => refuse!("it sent the extension {}, which this host does not know", quote(key)),
        None => Ok(()),
    }
}

/// A case that this host does not know.
pub(crate) fn unknown<T>(what: &str, case: &str) -> Checked<T> {
    refuse!("its {what} is the extension {}, which this host does not know", quote(case))
}

impl<'a> Lift<'a> {
    pub(crate) fn new(manifest: &'a Manifest, limits: &Limits) -> Self {
        Self { budget: Budget::new(limits), places: Places::new(manifest) }
    }

    fn severity(severity: wit::Severity) -> Severity {
        match severity {
            wit::Severity::Error => Severity::Error,
            wit::Severity::Warning => Severity::Warning,
            wit::Severity::Info => Severity::Info,
        }
    }

    /// A list, each element by `f`.
    pub(crate) fn list<S, T>(
        &mut self,
        items: Vec<S>,
        mut f: impl FnMut(&mut Self, S) -> Checked<T>,
    ) -> Checked<Vec<T>> {
        self.budget.list(&items)?;
        items.into_iter().map(|item| f(self, item)).collect()
    }

    pub(crate) fn at(&self, at: Option<String>) -> Checked<Option<String>> {
        if let Some(at) = &at {
            self.places.pointer(at)?;
        }
        Ok(at)
    }

    pub(crate) fn diagnostics(&mut self, list: Vec<wit::Diagnostic>) -> Checked<Vec<KindDiagnostic>> {
        self.list(list, |lift, d| {
            ext(&d.ext)?;
            code(&d.code)?;
            lift.places.pointer(&d.at)?;
            Ok(KindDiagnostic {
                severity: Self::severity(d.severity),
                code: d.code,
                at: d.at,
                message: prose("message", &d.message)?,
                help: d.help.map(|h| prose("help", &h)).transpose()?,
            })
        })
    }

    /// Diagnostics in place of an answer: at least one, or nobody learns why there is none.
    pub(crate) fn refusal(&mut self, list: Vec<wit::Diagnostic>) -> Checked<Vec<KindDiagnostic>> {
        if list.is_empty() {
            refuse!("it gave no answer and no reason");
        }
        self.diagnostics(list)
    }

    pub(crate) fn validation(&mut self, answer: wit::Validation, target: &Target) -> Checked<Validation> {
        ext(&answer.ext)?;
        let diagnostics = self.diagnostics(answer.diagnostics)?;
        let validated = answer.validated.map(|v| self.validated(v, target)).transpose()?;
        if validated.is_none() && !diagnostics.iter().any(|d| d.severity == Severity::Error) {
            refuse!("it found no error and says nothing about the resource");
        }
        Ok(Validation { validated, diagnostics })
    }

    fn validated(&mut self, v: wit::Validated, target: &Target) -> Checked<Validated> {
        ext(&v.ext)?;
        let power = match v.power {
            None => None,
            Some(wit::Power::Running) => Some(Power::Running),
            Some(wit::Power::Stopped) => Some(Power::Stopped),
            Some(wit::Power::Other(case)) => return unknown("power", &case),
        };
        if power.is_some() && !matches!(target, Target::Guest { .. }) {
            refuse!("it wants a power state, and its target is no guest");
        }
        let secrets = self.list(v.secrets, |lift, s| {
            ext(&s.ext)?;
            lift.places.pointer(&s.at)?;
            name("secret name", &s.name, 200)?;
            if lift.places.text(&s.at) != Some(s.name.as_str()) {
                refuse!(
                    "it uses the secret {}, which does not stand in the manifest at {}",
                    quote(&s.name),
                    quote(&s.at)
                );
            }
            let class = match s.class {
                wit::SecretClass::Password => SecretClass::Password,
                wit::SecretClass::PublicKey => SecretClass::PublicKey,
                wit::SecretClass::Other(case) => return unknown("secret class", &case),
            };
            Ok(SecretUse { name: s.name, class, at: s.at })
        })?;
        Ok(Validated {
            identity: self.identity(v.identity, target)?,
            power,
            references: self.list(v.references, |lift, r| {
                ext(&r.ext)?;
                lift.places.pointer(&r.at)?;
                Ok(Reference { to: resource(r.to)?, at: r.at })
            })?,
            secrets,
            storages: self.list(v.storages, |lift, s| {
                ext(&s.ext)?;
                lift.places.pointer(&s.at)?;
                word("storage", &s.storage)?;
                s.node.iter().try_for_each(|n| word("node", n))?;
                if !s.content.is_empty() {
                    word("storage content", &s.content)?;
                }
                Ok(StorageUse { storage: s.storage, node: s.node, content: s.content, at: s.at })
            })?,
            attributes: self.pairs("attribute", v.attributes)?,
            incomplete: self.holes(v.incomplete)?,
        })
    }

    fn identity(&mut self, identity: wit::Identity, target: &Target) -> Checked<Identity> {
        Ok(match (identity, target) {
            (wit::Identity::Guest(g), Target::Guest { .. }) => {
                ext(&g.ext)?;
                word("node", &g.node)?;
                // fact of the API schema: vmid 100..999999999
                if !(100..=999_999_999).contains(&g.vmid) {
                    refuse!("its vmid {} is not between 100 and 999999999", g.vmid);
                }
                g.name.iter().try_for_each(|n| name("guest name", n, 255))?;
                Identity::Guest(GuestId { node: g.node, vmid: g.vmid, name: g.name })
            }
            (wit::Identity::Artifact(placements), Target::Artifact { .. }) => {
                Identity::Artifact(self.list(placements, |_, p| placement(p))?)
            }
            (wit::Identity::Object(o), Target::Object(object)) => {
                ext(&o.ext)?;
                // Only as a parameter may an id hold more than one segment: nested pools.
                let in_path = object.operations().any(|operation| operation.path.contains("{id}"));
                let parts = if in_path { vec![o.id.as_str()] } else { o.id.split('/').collect() };
                parts.into_iter().try_for_each(|part| crate::check::segment("object id", part))?;
                Identity::Object(ObjectId { id: o.id, vars: self.path_vars(o.vars)? })
            }
            (wit::Identity::Other((case, _)), _) => return unknown("identity", &case),
            _ => refuse!("its identity is not of its target's sort"),
        })
    }

    /// Names and values that become path segments.
    pub(crate) fn path_vars(&mut self, vars: Vec<(String, String)>) -> Checked<Pairs> {
        self.list(vars, |_, (key, value)| {
            crate::check::key(&key)?;
            crate::check::segment("path variable", &value)?;
            Ok((key, value))
        })
    }

    /// Pairs with distinct keys and no control characters in them.
    fn pairs(&mut self, what: &str, pairs: Vec<(String, String)>) -> Checked<Pairs> {
        let pairs = self.list(pairs, |_, (key, value)| {
            name(&format!("{what} key"), &key, 255)?;
            crate::check::no_nul(what, &value)?;
            Ok((key, value))
        })?;
        let distinct: std::collections::BTreeSet<&str> = pairs.iter().map(|(k, _)| k.as_str()).collect();
        if distinct.len() < pairs.len() {
            refuse!("it sent the same {what} key twice");
        }
        Ok(pairs)
    }

    fn holes(&mut self, holes: Vec<wit::Hole>) -> Checked<Vec<Hole>> {
        self.list(holes, |lift, h| {
            ext(&h.ext)?;
            lift.places.pointer(&h.at)?;
            Ok(Hole { at: h.at, why: prose("reason", &h.why)? })
        })
    }

    fn anomalies(&mut self, list: Vec<wit::Anomaly>) -> Checked<Vec<KindAnomaly>> {
        self.list(list, |lift, a| {
            ext(&a.ext)?;
            code(&a.code)?;
            let key = a.key.map(|k| prose("anomaly key", &k)).transpose()?;
            let of = key.as_deref().unwrap_or_default();
            Ok(KindAnomaly {
                severity: Self::severity(a.severity),
                code: a.code,
                at: lift.at(a.at)?,
                message: value_prose("message", of, &a.message)?,
                help: a.help.map(|h| prose("help", &h)).transpose()?,
                key,
            })
        })
    }

    fn changes(&mut self, list: Vec<wit::Change>) -> Checked<Vec<FieldChange>> {
        self.list(list, |lift, c| {
            ext(&c.ext)?;
            lift.places.pointer(&c.at)?;
            let key = prose("change key", &c.key)?;
            let value = |v: Option<String>| v.map(|v| value_prose("value", &key, &v)).transpose();
            Ok(FieldChange {
                before: value(c.before)?,
                after: value(c.after)?,
                at: c.at,
                sensitive: c.sensitive,
                needs_stop: c.needs_stop,
                key,
            })
        })
    }

    pub(crate) fn creation(&mut self, answer: wit::Creation) -> Checked<Creation> {
        ext(&answer.ext)?;
        Ok(Creation {
            steps: self.steps(answer.steps)?,
            warnings: self.diagnostics(answer.warnings)?,
            anomalies: self.anomalies(answer.anomalies)?,
        })
    }

    pub(crate) fn report(&mut self, answer: wit::DriftReport) -> Checked<DriftReport> {
        ext(&answer.ext)?;
        Ok(DriftReport {
            changes: self.changes(answer.changes)?,
            steps: self.steps(answer.steps)?,
            pending: self.changes(answer.pending)?,
            anomalies: self.anomalies(answer.anomalies)?,
        })
    }
}

/// A resource's name, as the envelope allows it.
pub(crate) fn resource(to: wit::ResourceRefResult) -> Checked<ResourceId> {
    word("referred kind", &to.kind)?;
    word("referred name", &to.name)?;
    Ok(ResourceId { kind: to.kind, name: to.name })
}

/// One copy of a file.
pub(crate) fn placement(p: wit::PlacementResult) -> Checked<Placement> {
    ext(&p.ext)?;
    word("node", &p.node)?;
    word("storage", &p.storage)?;
    name("file name", &p.filename, 255)?;
    if p.filename.contains(['/', '\\']) || p.filename == "." || p.filename == ".." {
        refuse!("its file name {} leaves its folder", quote(&p.filename));
    }
    Ok(Placement { node: p.node, storage: p.storage, filename: p.filename })
}

/// An adopted manifest. Its pointers point into itself.
pub(crate) fn adopted(answer: wit::Adopted, manifest_name: &str, limits: &Limits) -> Checked<Adopted> {
    ext(&answer.ext)?;
    json_object("spec", &answer.spec)?;
    let manifest = Manifest {
        name: manifest_name.to_owned(),
        labels: answer.labels,
        annotations: answer.annotations,
        spec: answer.spec,
    };
    let mut lift = Lift::new(&manifest, limits);
    let labels = lift.pairs("label", manifest.labels.clone())?;
    let annotations = lift.pairs("annotation", manifest.annotations.clone())?;
    let new_public_keys = lift.pairs("public key", answer.new_public_keys)?;
    let gaps = lift.list(answer.gaps, |_, g| {
        ext(&g.ext)?;
        let key = prose("gap key", &g.key)?;
        let value = g.value.map(|v| value_prose("value", &key, &v)).transpose()?;
        Ok(Gap { value, why: prose("reason", &g.why)?, key })
    })?;
    let incomplete = lift.holes(answer.incomplete)?;
    let spec = manifest.spec.clone();
    Ok(Adopted {
        labels,
        annotations,
        spec,
        gaps,
        incomplete,
        new_public_keys,
        masked_secrets: answer.masked_secrets,
    })
}
