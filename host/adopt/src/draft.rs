//! One object as a manifest: what its kind adopts, without what may be a secret, and only fields that hold. A manifest
//! is a promise that nothing changes; so it is validated and compared with the object before it is written, and a field
//! that does not hold is left to PVE and told as a gap.

use crate::redact;
use crate::schema::Fields;
use crate::tree::{Tree, steps};
use proxops_model::kind::{
    Context, Gap, Hole, KindApi, Live, Manifest, Pairs, Refusal, SecretClass, Validated,
};
use proxops_model::{ResourceId, Severity};
use std::collections::BTreeSet;

/// Most fields that are left out of one manifest before it is given up.
const MOST_REPAIRS: usize = 64;
/// PVE's key of the tags, whose claim is the one change that stays.
const TAGS: &str = "tags";

/// A manifest before it is text.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub id: ResourceId,
    pub labels: Pairs,
    pub annotations: Pairs,
    pub spec: Tree,
    pub gaps: Vec<Gap>,
    pub holes: Vec<Hole>,
    /// Full names and keys for the secrets document.
    pub new_keys: Pairs,
    pub masked: u32,
    /// What other resources may read.
    pub attributes: Pairs,
    /// What a diff of the manifest will say beside the claim.
    pub notes: Vec<String>,
}

/// Why there is no manifest.
#[derive(Debug, Clone)]
pub(crate) enum Trouble {
    /// The kind is broken.
    Fault(String),
    /// The object can't be described.
    Refused(String),
}

impl Trouble {
    fn of(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Fault(fault) => Self::Fault(fault.to_string()),
            Refusal::Diagnostics(list) => {
                Self::Refused(list.into_iter().map(|d| d.message).collect::<Vec<_>>().join("; "))
            }
        }
    }
}

/// Asks the kind, and makes what it says hold. `references` are those of the context that the object's node reaches.
pub(crate) fn draft(
    kind: &dyn KindApi,
    fields: &Fields,
    name: &str,
    live: &Live,
    context: &Context,
    secrets: bool,
) -> Result<Draft, Trouble> {
    let adopted = kind.adopt(name, live, context, secrets).map_err(Trouble::of)?;
    let spec = Tree::parse(&adopted.spec)
        .map_err(|error| Trouble::Fault(format!("kind {}, adopt: no JSON: {error}", kind.info().kind)))?;
    let draft = Draft {
        id: ResourceId::new(&kind.info().kind, name),
        labels: adopted.labels,
        annotations: adopted.annotations,
        spec,
        gaps: adopted.gaps,
        holes: adopted.incomplete,
        new_keys: adopted.new_public_keys,
        masked: adopted.masked_secrets,
        attributes: Vec::new(),
        notes: Vec::new(),
    };
    let mut run = Run { kind, fields, live, context, draft, json: None };
    run.tell_hidden();
    run.hide_secrets();
    let validated = run.make_valid()?;
    run.compare(validated)?;
    let mut draft = run.draft;
    for gap in &mut draft.gaps {
        gap.value = redact::gap_value(&gap.key, gap.value.take());
    }
    draft.gaps.sort_by(|a, b| (&a.key, &a.value, &a.why).cmp(&(&b.key, &b.value, &b.why)));
    draft.gaps.dedup();
    Ok(draft)
}

struct Run<'a> {
    kind: &'a dyn KindApi,
    fields: &'a Fields,
    live: &'a Live,
    context: &'a Context,
    draft: Draft,
    /// The spec as kinds get it, until it changes.
    json: Option<String>,
}

impl Run<'_> {
    fn manifest(&mut self) -> Manifest {
        let spec = self.json.get_or_insert_with(|| self.draft.spec.to_value().to_string());
        Manifest {
            name: self.draft.id.name.clone(),
            labels: self.draft.labels.clone(),
            annotations: self.draft.annotations.clone(),
            spec: spec.clone(),
        }
    }

    /// Leaves a field out and tells it as a gap. `false` = there is nothing there to leave out.
    fn leave_out(&mut self, pointer: &str, key: Option<&str>, why: &str) -> bool {
        let Some(inner) = pointer.strip_prefix("/spec") else { return false };
        let slot = self.slot_of(inner);
        let Some((at, taken)) = self.draft.spec.take(inner) else { return false };
        self.json = None;
        let path = steps(&at);
        let key = key.map(str::to_owned).or(slot).or_else(|| self.fields.key(&path).map(str::to_owned));
        let key = key.or_else(|| path.last().cloned()).unwrap_or_default();
        let value = match &taken {
            Tree::Text(text) => text.clone(),
            other => other.to_value().to_string(),
        };
        self.draft.gaps.push(Gap { key, value: Some(value), why: why.to_owned() });
        self.draft.holes.retain(|hole| !hole.at.starts_with(pointer));
        true
    }

    /// The slot of the list item that a pointer leads into.
    fn slot_of(&self, pointer: &str) -> Option<String> {
        let path = steps(pointer);
        let [list, index, ..] = path.as_slice() else { return None };
        let item = self.draft.spec.get(list)?.get(index)?;
        item.get("interface").or_else(|| item.get("slot"))?.text().map(str::to_owned)
    }

    /// Keys that PVE does not show to this credential.
    fn tell_hidden(&mut self) {
        let Live::Guest(guest) = self.live else { return };
        for key in &guest.hidden {
            let why = "PVE does not show it to this credential; it is not owned".to_owned();
            self.draft.gaps.push(Gap { key: key.clone(), value: None, why });
        }
    }

    /// Texts that seem to hold a secret stay in PVE.
    fn hide_secrets(&mut self) {
        const WHY: &str = "it may hold a secret; it is not owned and stays in PVE";
        // Names that point somewhere are no secrets, whatever they are called.
        const POINTERS: [&str; 9] =
            ["node", "nodes", "storage", "filename", "pve-name", "hostname", "slot", "interface", "bridge"];
        let suspicious = |(at, leaf): &(String, &Tree)| {
            let path = steps(at);
            let field = path.iter().rev().find(|step| step.parse::<usize>().is_err());
            let field = field.map(String::as_str).unwrap_or_default();
            let free = path.iter().any(|step| step == "env" || step == "extra");
            let reference = POINTERS.contains(&field) || field.contains("ssh-key") || field.ends_with("-ref");
            let text = leaf.text().unwrap_or_default();
            !text.is_empty()
                && !reference
                && (redact::holds_secret(text) || (free && redact::is_secret_key(field)))
        };
        // A list of words is owned as a whole: without one of them it would say something else.
        let whole = |at: String| match at.rsplit_once('/') {
            Some((list, last)) if last.parse::<usize>().is_ok() => list.to_owned(),
            _ => at,
        };
        let leaves = self.draft.spec.leaves().into_iter();
        let mut found: Vec<String> = leaves.filter(suspicious).map(|(at, _)| whole(at)).collect();
        found.dedup();
        // From the last to the first, so that indices of lists stay true.
        for at in found.into_iter().rev() {
            let before = self.draft.gaps.len();
            self.leave_out(&format!("/spec{at}"), None, WHY);
            self.draft.gaps.iter_mut().skip(before).for_each(|gap| gap.value = None);
        }
    }

    /// Leaves out what the kind itself would refuse.
    fn make_valid(&mut self) -> Result<Validated, Trouble> {
        for _ in 0..MOST_REPAIRS {
            let manifest = self.manifest();
            let validation =
                self.kind.validate(&manifest).map_err(|fault| Trouble::Fault(fault.to_string()))?;
            let errors = validation.diagnostics.iter().filter(|d| d.severity == Severity::Error);
            let Some(error) = errors.max_by_key(|d| d.at.len()) else {
                return validation
                    .validated
                    .ok_or_else(|| Trouble::Refused("its kind says nothing about the manifest".to_owned()));
            };
            let why = format!("the field does not take this value: {}", error.message);
            if !self.leave_out(&error.at.clone(), None, &why) {
                return Err(Trouble::Refused(error.message.clone()));
            }
        }
        Err(Trouble::Refused("too many of its values are none that a manifest can hold".to_owned()))
    }

    /// Leaves out what a comparison with the object would change, the claim aside, and marks slots that only PVE
    /// describes as ignored.
    fn compare(&mut self, mut validated: Validated) -> Result<(), Trouble> {
        let mut ignore: BTreeSet<String> = BTreeSet::new();
        for _ in 0..MOST_REPAIRS {
            let (manifest, context) = (self.manifest(), self.context_of(&validated));
            let report = self.kind.drift(&manifest, self.live, &context).map_err(Trouble::of)?;
            const WHY: &str = "a comparison would change it; it is not owned and stays in PVE";
            let wrong = report.changes.into_iter().filter(|change| change.key != TAGS);
            if let Some(change) = wrong.max_by_key(|change| change.at.len()) {
                if !self.leave_out(&change.at, Some(&change.key), WHY) {
                    self.draft.notes.push(format!("a diff will show a change of {}", change.key));
                    break;
                }
                validated = self.make_valid()?;
                continue;
            }
            for anomaly in report.anomalies {
                let slot = anomaly.key.as_deref().filter(|key| is_slot(key));
                match (anomaly.severity, slot) {
                    (Severity::Info, _) => {}
                    (Severity::Warning, Some(slot)) => {
                        ignore.insert(slot.to_owned());
                    }
                    _ => self.draft.notes.push(anomaly.message),
                }
            }
            break;
        }
        if !ignore.is_empty() {
            let slots = ignore.into_iter().collect::<Vec<_>>().join(",");
            self.draft.annotations.push((proxops_repo::IGNORE.to_owned(), slots));
        }
        for hole in validated.incomplete {
            if !self.draft.holes.iter().any(|known| known.at == hole.at) {
                self.draft.holes.push(hole);
            }
        }
        self.draft.attributes = validated.attributes;
        Ok(())
    }

    /// What a comparison of this manifest gets to know, as in a plan.
    fn context_of(&self, validated: &Validated) -> Context {
        let of = self.context;
        let mut context = Context {
            cluster: of.cluster.clone(),
            pve_version: of.pve_version.clone(),
            owner_tag: of.owner_tag.clone(),
            root: of.root,
            tag_style: of.tag_style,
            storages: of.storages.clone(),
            references: Vec::new(),
            public_keys: Vec::new(),
        };
        for reference in &validated.references {
            let known = self.context.references.iter().find(|r| r.to == reference.to);
            context.references.extend(known.cloned());
        }
        for secret in validated.secrets.iter().filter(|s| s.class == SecretClass::PublicKey) {
            let mut all = self.context.public_keys.iter().chain(&self.draft.new_keys);
            context.public_keys.extend(all.find(|(name, _)| *name == secret.name).cloned());
        }
        context
    }
}

/// As the annotation `proxops/ignore` takes it.
fn is_slot(key: &str) -> bool {
    let letters = key.trim_end_matches(|c: char| c.is_ascii_digit());
    !letters.is_empty() && letters.chars().all(|c| c.is_ascii_lowercase())
}
