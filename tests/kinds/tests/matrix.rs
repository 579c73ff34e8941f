//! Every field of every kind: created with it, changed, taken out of the manifest, and changed behind
//! proxops' back.

use crate::pve;
use proxops_kind::{DriftReport, Step};
use proxops_kind_tests::converge::{created, settled};
use proxops_kind_tests::kinds::{ALL, Kind, What};
use proxops_kind_tests::lab::{Lab, Request};
use proxops_kind_tests::oracle::Expected;
use proxops_kind_tests::samples::{Gone, Sample, Then, left_out, put, sample};
use proxops_kind_tests::schema::Field;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// Fields that hold a value, not only other fields.
fn is_leaf(field: &Field) -> bool {
    let scalar = field.types.iter().any(|t| ["string", "integer", "number", "boolean"].contains(&t.as_str()));
    !field.has_fields || (scalar && !field.types.iter().all(|t| t == "object" || t == "array"))
}

fn fits_pve(requests: &[Request]) -> Result<(), String> {
    let wrong: Vec<String> = requests.iter().flat_map(pve::complaints).collect();
    if wrong.is_empty() { Ok(()) } else { Err(format!("PVE's schema: {wrong:?}")) }
}

fn nothing(when: &str, report: &DriftReport) -> Result<(), String> {
    if report.steps.is_empty() && report.changes.is_empty() {
        return Ok(());
    }
    Err(format!("{when}: {:?} {:?}", report.changes, report.steps))
}

/// Applies a manifest with one write, which touches this key only, and is empty afterwards.
fn one_update(when: &str, kind: &Kind, lab: &mut Lab, spec: &Json, sample: &Sample) -> Result<(), String> {
    let report = lab.drift(kind, spec)?;
    let keys: Vec<&str> = report.changes.iter().map(|c| c.key.as_str()).collect();
    if keys != [sample.key.as_str()] {
        return Err(format!("{when}: changes of {keys:?} instead of {}", sample.key));
    }
    let [Step::Configure(_) | Step::Resize(_)] = &report.steps[..] else {
        return Err(format!("{when}: {:?}", report.steps));
    };
    lab.requests.clear();
    lab.run(kind, &report.steps).map_err(|why| format!("{when}: {why}"))?;
    fits_pve(&lab.requests)?;
    let report = lab.drift(kind, spec)?;
    settled(when, &report, &Expected::default(), false)
}

fn told(when: &str, report: &DriftReport, code: &str) -> Result<(), String> {
    nothing(when, report)?;
    let codes: Vec<&str> = report.anomalies.iter().map(|a| a.code.as_str()).collect();
    let helped = report.anomalies.iter().all(|a| a.help.is_some() && a.at.is_some());
    if codes == [code] && helped { Ok(()) } else { Err(format!("{when}: {:?}", report.anomalies)) }
}

fn guest_field(kind: &Kind, path: &str, sample: &Sample) -> Result<(), String> {
    let one = put(&sample.base, path, Some(&sample.one));
    let two = put(&sample.base, path, Some(&sample.two));
    for spec in [&one, &two] {
        let errors = kind.errors(spec);
        if !errors.is_empty() {
            return Err(format!("{spec} is refused: {errors:?}"));
        }
    }
    let lab = created(kind, &one)?;
    fits_pve(&lab.requests)?;
    if !sample.key.is_empty() && !lab.requests.iter().any(|r| r.params.contains_key(&sample.key)) {
        return Err(format!("{} is not sent: {:?}", sample.key, lab.requests));
    }
    fits_pve(&created(kind, &two)?.requests)?;

    // Changed in the manifest, then changed back as somebody did it by hand.
    let mut changed = lab.clone();
    match sample.then {
        _ if sample.one == sample.two => nothing("no change", &changed.drift(kind, &two)?)?,
        Then::Write => {
            one_update("change", kind, &mut changed, &two, sample)?;
            let by_hand: Vec<Request> = changed.requests.clone();
            one_update("change back", kind, &mut changed, &one, sample)?;
            let mut behind = lab.clone();
            for Request { method, path, params } in by_hand {
                behind.send(method, path, params)?;
            }
            one_update("changed by hand", kind, &mut behind, &one, sample)?;
            removed_by_hand(kind, &lab, &one, sample)?;
        }
        Then::Grow(back) => {
            one_update("growth", kind, &mut changed, &two, sample)?;
            told("shrinking", &changed.drift(kind, &one)?, back)?;
        }
        Then::Fixed(code) => told("change", &changed.drift(kind, &two)?, code)?,
        Then::Nothing => nothing("change", &changed.drift(kind, &two)?)?,
    }

    // Taken out of the manifest: not owned any more.
    let mut lab = lab;
    let without = put(&sample.base, path, None);
    match sample.gone {
        Gone::Stays => nothing("removal", &lab.drift(kind, &without)?),
        Gone::Default => one_update("removal", kind, &mut lab, &without, sample),
        Gone::Required => Ok(()),
    }
}

/// A key that somebody deleted comes back, unless its value is PVE's default anyway.
fn removed_by_hand(kind: &Kind, lab: &Lab, spec: &Json, sample: &Sample) -> Result<(), String> {
    let volume = ["scsi0", "mp0", "rootfs", "memory", "ostype", "tags", "name", "hostname"];
    let mut lab = lab.clone();
    let guest = kind.guest().map(|g| g.path()).unwrap_or_default();
    if !lab.config().contains_key(&sample.key) || volume.contains(&sample.key.as_str()) {
        return Ok(());
    }
    let params = BTreeMap::from([("delete".to_owned(), sample.key.clone())]);
    lab.send("PUT", format!("/nodes/pve01/{guest}/101/config"), params)?;
    let report = lab.drift(kind, spec)?;
    if report.changes.len() > 1 {
        return Err(format!("deleted by hand: {:?}", report.changes));
    }
    lab.run(kind, &report.steps).map_err(|why| format!("deleted by hand: {why}"))?;
    settled("deleted by hand", &lab.drift(kind, spec)?, &Expected::default(), false)
}

fn file_field(kind: &Kind, content: &str, path: &str, field: &Field) -> Result<(), String> {
    let name = match content {
        "iso" => "x.iso",
        "vztmpl" => "x.tar.zst",
        _ => "x.qcow2",
    };
    let sum = json!({ "algorithm": "md5", "value": "0".repeat(32) });
    let base =
        json!({ "node": "pve01", "storage": "local", "filename": name, "url": "https://a.example.org/x" });
    let base = if path.starts_with("checksum") { put(&base, "checksum", Some(&sum)) } else { base };
    let (one, two) = match path {
        "url" => (json!("https://a.example.org/x"), json!("https://b.example.org/x?a=1&b=2;c")),
        "checksum/value" => (json!("0".repeat(32)), json!("F".repeat(32))),
        // An algorithm and its digits change together.
        "checksum/algorithm" => (json!("md5"), json!("md5")),
        _ => match &field.choices[..] {
            [one, two, ..] => (one.clone(), two.clone()),
            _ => (json!(true), json!(false)),
        },
    };
    let key = field.pve_key.clone().ok_or("no x-pve-key")?;
    let mut lab = Lab::new();
    let spec = put(&base, path, Some(&one));
    let creation = (kind.create)(&kind.manifest(&spec), &lab.context).map_err(|r| format!("{r:?}"))?;
    lab.run(kind, &creation.steps)?;
    fits_pve(&lab.requests)?;
    if !lab.requests.iter().all(|r| r.params.contains_key(&key)) {
        return Err(format!("{key} is not sent: {:?}", lab.requests));
    }
    let at = [proxops_kind::Placement::new("pve01", "local", name)];
    for spec in [put(&base, path, Some(&two)), put(&base, path, None)] {
        if path == "checksum/value" || path == "checksum/algorithm" {
            // A hash needs both.
            continue;
        }
        let live = lab.copies(&at, content);
        let report =
            (kind.drift)(&kind.manifest(&spec), &live, &lab.context).map_err(|r| format!("{r:?}"))?;
        settled("a file that is there", &report, &Expected::default(), false)?;
    }
    Ok(())
}

#[test]
fn every_field_of_every_kind() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for kind in ALL {
        for (path, field) in kind.fields().iter().filter(|(_, field)| is_leaf(field)) {
            if left_out(&kind, path).is_some() {
                continue;
            }
            let result = match kind.what {
                What::File(content) => file_field(&kind, content, path, field),
                What::Guest(_) => match sample(&kind, path, field) {
                    None => Err("no sample: add one to src/samples.rs".to_owned()),
                    Some(sample) => guest_field(&kind, path, &sample),
                },
            };
            tried += 1;
            wrong.extend(result.err().map(|why| format!("{} {path}: {why}", kind.name)));
        }
    }
    assert!(wrong.is_empty(), "{} of {tried} fields:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tried > 400, "only {tried} fields");
}
