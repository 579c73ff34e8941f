//! The life of each example: it validates, is made in the simulator, is as wanted, and can be adopted.

use crate::cluster::{Cluster, Resource, refusal};
use crate::manifest;
use crate::report::Check;
use proxops_model::Severity;
use proxops_model::kind::{Adopted, DriftReport, KindAnomaly, KindApi, KindSet, Live, Manifest, Validated};

/// An example that validates.
pub(crate) struct Example {
    pub manifest: Manifest,
    pub validated: Validated,
}

/// An example that was made.
pub(crate) struct Made<'e> {
    pub example: &'e Example,
    /// As it is after the object was made.
    pub cluster: Cluster,
    /// The object in it.
    pub live: Live,
    /// What `drift` says of the untouched object, beside nothing.
    pub anomalies: Vec<KindAnomaly>,
}

/// Every example validates.
pub(crate) fn examples(kind: &dyn KindApi) -> (Check, Vec<Example>) {
    let mut check = Check::new("examples");
    let mut valid = Vec::new();
    for (number, text) in kind.info().examples.iter().enumerate() {
        let Some(manifest) = manifest::read(text) else {
            check.problem(format!("example {number} is not a manifest with a name and a spec"));
            continue;
        };
        let name = &manifest.name;
        match kind.validate(&manifest) {
            Err(fault) => check.problem(format!("{name}: {fault}")),
            Ok(answer) => {
                for d in &answer.diagnostics {
                    let text = format!("{name}: {} at {}: {}", d.code, d.at, d.message);
                    match d.severity {
                        Severity::Error => check.problem(text),
                        _ => check.note(text),
                    }
                }
                let errors = answer.diagnostics.iter().any(|d| d.severity == Severity::Error);
                match answer.validated.filter(|_| !errors) {
                    Some(validated) => valid.push(Example { manifest, validated }),
                    None if !errors => check.problem(format!("{name}: no error, and no answer either")),
                    None => {}
                }
            }
        }
    }
    let done = format!("{} of {} validate", valid.len(), kind.info().examples.len());
    (check.done(done), valid)
}

/// What is still to be done, as one text; `None` = nothing.
pub(crate) fn left(report: &DriftReport) -> Option<String> {
    let mut left: Vec<String> = Vec::new();
    let shown = |c: &proxops_model::kind::FieldChange, what: &str| {
        let text = |v: &Option<String>| v.as_deref().map_or("nothing".to_owned(), |v| format!("\"{v}\""));
        format!("{what} {} ({}): {} to {}", c.key, c.at, text(&c.before), text(&c.after))
    };
    left.extend(report.changes.iter().map(|c| shown(c, "change")));
    left.extend(report.pending.iter().map(|c| shown(c, "pending")));
    if left.is_empty() && !report.steps.is_empty() {
        left.push(format!("steps without a change: {:?}", report.steps));
    }
    (!left.is_empty()).then(|| left.join("; "))
}

/// Each example is made, and then there is nothing left to do.
pub(crate) fn create<'e>(
    kinds: &dyn KindSet,
    kind: &dyn KindApi,
    examples: &'e [Example],
) -> (Check, Vec<Made<'e>>) {
    let mut check = Check::new("create");
    let mut made = Vec::new();
    for example in examples {
        let name = &example.manifest.name;
        if let Some(hole) = example.validated.incomplete.first() {
            check.note(format!("{name}: can't be created as it is ({}: {})", hole.at, hole.why));
            continue;
        }
        let mut cluster = Cluster::new();
        if let Err(why) = cluster.provide(kinds, &example.validated) {
            check.note(format!("{name}: not tried, {why}"));
            continue;
        }
        match one(kind, example, cluster) {
            Ok(one) => {
                for anomaly in one.anomalies.iter().filter(|a| a.severity != Severity::Info) {
                    check.problem(format!(
                        "{name}: {} is said of what was just made: {}",
                        anomaly.code, anomaly.message
                    ));
                }
                made.push(one);
            }
            Err(why) => check.problem(format!("{name}: {why}")),
        }
    }
    if made.is_empty() && check.problems.is_empty() {
        return (Check { outcome: crate::Outcome::Skipped, ..check.done("no example could be made") }, made);
    }
    let done = format!("{} of {} made, then nothing is left to do", made.len(), examples.len());
    (check.done(done), made)
}

fn one<'e>(kind: &dyn KindApi, example: &'e Example, mut cluster: Cluster) -> Result<Made<'e>, String> {
    let resource = Resource { target: &kind.info().target, identity: &example.validated.identity };
    cluster.create(kind, &example.manifest, resource)?;
    let live = cluster.live(resource)?.ok_or("it is not there after it was made")?;
    let report = kind.drift(&example.manifest, &live, &cluster.context).map_err(refusal)?;
    match left(&report) {
        Some(left) => Err(format!("after it was made, {left}")),
        None => Ok(Made { example, cluster, live, anomalies: report.anomalies }),
    }
}

/// The adopted manifest.
pub(crate) fn adopted_manifest(name: &str, adopted: &Adopted) -> Manifest {
    Manifest {
        name: name.to_owned(),
        labels: adopted.labels.clone(),
        annotations: adopted.annotations.clone(),
        spec: adopted.spec.clone(),
    }
}

/// Each object can be adopted; that manifest validates and finds nothing to do.
pub(crate) fn adopt(kind: &dyn KindApi, made: &[Made<'_>]) -> Check {
    let mut check = Check::new("adopt");
    if made.is_empty() {
        return Check::skipped("adopt", "there is no object");
    }
    for one in made {
        let name = &one.example.manifest.name;
        let context = &one.cluster.context;
        let adopted = match kind.adopt(name, &one.live, context, false) {
            Ok(adopted) => adopted,
            Err(why) => {
                check.problem(format!("{name}: {}", refusal(why)));
                continue;
            }
        };
        for gap in &adopted.gaps {
            check.note(format!("{name}: {} stays outside of the manifest: {}", gap.key, gap.why));
        }
        let manifest = adopted_manifest(name, &adopted);
        let validation = match kind.validate(&manifest) {
            Ok(validation) => validation,
            Err(fault) => {
                check.problem(format!("{name}: {fault}"));
                continue;
            }
        };
        for d in validation.diagnostics.iter().filter(|d| d.severity == Severity::Error) {
            check.problem(format!(
                "{name}: the adopted manifest is refused, {} at {}: {}",
                d.code, d.at, d.message
            ));
        }
        let Some(validated) = validation.validated else { continue };
        if !crate::mutation::same_object(&validated.identity, &one.example.validated.identity) {
            check.problem(format!(
                "{name}: the adopted manifest means another object: {:?}",
                validated.identity
            ));
            continue;
        }
        match kind.drift(&manifest, &one.live, context) {
            Err(why) => check.problem(format!("{name}: {}", refusal(why))),
            Ok(report) => {
                if let Some(left) = left(&report) {
                    check.problem(format!("{name}: the adopted manifest wants a {left}"));
                }
            }
        }
    }
    check.done(format!("{} adopted, with nothing left to do", made.len()))
}
