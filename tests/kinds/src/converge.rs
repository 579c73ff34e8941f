//! The property: create and drift is empty; change the manifest, apply once, and drift is empty.

use crate::draw::Draw;
use crate::kinds::{Kind, What};
use crate::lab::Lab;
use crate::mix::{mix, shrink};
use crate::oracle::{Expected, expected, kept};
use proxops_kind::{DriftReport, Identity, Live, PlacementState, Presence, Severity, Step};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Number of cases: `PROPTEST_CASES`, or this many.
pub fn cases(usual: u64) -> u64 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Runs a property over random pairs of manifests; a failing pair is made small and shown.
pub fn hold(kind: &Kind, usual: u64, property: fn(&Kind, &Json, &Json) -> Result<(), String>) {
    let first: u64 = std::env::var("PROXOPS_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    for case in first..first + cases(usual) {
        let mut d = Draw::new(case);
        let a = (kind.spec)(&mut d);
        d.vary();
        let other = (kind.spec)(&mut d);
        let mut b = mix(&mut d, &a, &other);
        (kind.fix)(&mut b);
        for spec in [&a, &b] {
            let errors = kind.errors(spec);
            assert!(errors.is_empty(), "case {case}: {} refuses {spec}: {errors:?}", kind.name);
        }
        let Err(why) = property(kind, &a, &b) else { continue };
        let word = |why: &str| why.split(':').next().unwrap_or_default().to_owned();
        let fails = |a: &Json, b: &Json| {
            [a, b].into_iter().all(|spec| valid(kind, spec))
                && property(kind, a, b).is_err_and(|other| word(&other) == word(&why))
        };
        let (a, b) = shrink((a, b), &fails);
        let why = property(kind, &a, &b).err().unwrap_or_default();
        panic!("{} case {case} ({why})\n  first:  {a}\n  second: {b}", kind.name);
    }
}

/// Without errors, and nothing that the repair would take out.
fn valid(kind: &Kind, spec: &Json) -> bool {
    let mut fixed = spec.clone();
    (kind.fix)(&mut fixed);
    fixed == *spec && kind.errors(spec).is_empty()
}

/// Nothing differs, nothing is left to write, and exactly the expected anomalies are told.
pub fn settled(when: &str, report: &DriftReport, expected: &Expected, pending: bool) -> Result<(), String> {
    if !report.changes.is_empty() || !report.steps.is_empty() {
        return Err(format!("{when}, not empty: {:?} {:?}", report.changes, report.steps));
    }
    if !pending && !report.pending.is_empty() {
        return Err(format!("{when}, pending: {:?}", report.pending));
    }
    let loud = report.anomalies.iter().filter(|a| a.severity != Severity::Info);
    let told: BTreeSet<(String, String)> =
        loud.map(|a| (a.code.clone(), a.key.clone().unwrap_or_default())).collect();
    let missing: Vec<_> = expected.must.difference(&told).collect();
    let more: Vec<_> =
        told.iter().filter(|t| !expected.must.contains(*t) && !expected.may.contains(*t)).collect();
    if missing.is_empty() && more.is_empty() {
        Ok(())
    } else {
        Err(format!("{when}, anomalies: missing {missing:?}, unexpected {more:?}"))
    }
}

/// Creates as the host does and checks that nothing is left.
pub fn created(kind: &Kind, spec: &Json) -> Result<Lab, String> {
    let mut lab = Lab::new();
    let fresh = lab.begin(kind, spec)?;
    // A new guest is all that its manifest says; a clone has what its template had.
    let left = match &fresh {
        Some(_) => expected(kind, &lab.config(), spec, true),
        None => Expected::default(),
    };
    lab.settle(kind, spec, fresh)?;
    let report = lab.drift(kind, spec)?;
    settled("after create", &report, &left, false)?;
    let template = lab.config().get("template").is_some_and(|t| t == "1");
    if template != kind.template {
        return Err(format!("after create, template is {template}"));
    }
    Ok(lab)
}

/// On a stopped guest.
pub fn stopped(kind: &Kind, a: &Json, b: &Json) -> Result<(), String> {
    let mut lab = created(kind, a)?;
    let before = lab.config();
    let left = expected(kind, &before, b, false);
    let report = lab.drift(kind, b)?;
    one_write("update", &report)?;
    lab.run(kind, &report.steps).map_err(|why| format!("update refused: {why}"))?;
    kept(kind, &before, &lab.config()).map_err(|why| format!("volumes: {why}"))?;
    let again = lab.drift(kind, b)?;
    settled("after update", &again, &left, false)
}

/// On a running guest: what waits for a stop is said to wait, and a power cycle brings it.
pub fn running(kind: &Kind, a: &Json, b: &Json) -> Result<(), String> {
    let mut lab = created(kind, a)?;
    lab.power(kind, "start")?;
    let before = lab.config();
    let left = expected(kind, &before, b, false);
    let report = lab.drift(kind, b)?;
    one_write("update", &report)?;
    if let Err(why) = lab.run(kind, &report.steps) {
        // PVE can't grow a disk that is not plugged yet: the apply says so, and the rest is written.
        let waits = |c: &proxops_kind::Change| c.needs_stop && c.before.is_none();
        let new = report
            .changes
            .iter()
            .any(|c| waits(c) && why.contains(&format!("disk '{}' does not exist", c.key)));
        return if new { Ok(()) } else { Err(format!("update refused: {why}")) };
    }
    kept(kind, &before, &lab.config()).map_err(|why| format!("volumes: {why}"))?;
    let again = lab.drift(kind, b)?;
    settled("after update", &again, &left, true)?;
    let mut waits: BTreeSet<&str> =
        report.changes.iter().filter(|c| c.needs_stop).map(|c| c.key.as_str()).collect();
    let pending: BTreeSet<&str> = again.pending.iter().map(|c| c.key.as_str()).collect();
    // Some options of cards that can't be plugged, and of ide and sata disks, change live. Fact Q30 does not
    // tell which, so the kind may ask for a restart too many.
    let plugs = before.get("hotplug").is_none_or(|h| h == "1" || h.contains("network"));
    let unsure =
        |key: &str| (key.starts_with("net") && !plugs) || key.starts_with("ide") || key.starts_with("sata");
    waits.retain(|key| !unsure(key) || pending.contains(key));
    // PVE takes a new serial number at once, but the guest sees it after a power cycle only.
    let serial = |text: &Option<String>| {
        text.as_deref().and_then(|t| t.split(',').find(|p| p.starts_with("serial=")).map(str::to_owned))
    };
    for change in report.changes.iter().filter(|c| c.needs_stop && serial(&c.before) != serial(&c.after)) {
        if !pending.contains(change.key.as_str()) {
            waits.remove(change.key.as_str());
        }
    }
    if waits != pending {
        return Err(format!("restart: said to wait {waits:?}, waiting {pending:?}"));
    }
    lab.power(kind, "stop")?;
    lab.power(kind, "start").map_err(|why| format!("start: {why}"))?;
    let again = lab.drift(kind, b)?;
    settled("after a power cycle", &again, &left, false)
}

/// A change is one configuration write but for protection, which PVE reads as it was before (fact L23).
fn one_write(when: &str, report: &DriftReport) -> Result<(), String> {
    let writes: Vec<&Step> = report.steps.iter().filter(|s| matches!(s, Step::Configure(_))).collect();
    let lifts = |step: &Step| match step {
        Step::Configure(w) => {
            w.set.iter().map(|p| &p.key).chain(w.unset.iter().map(|p| &p.key)).eq(["protection"])
        }
        _ => false,
    };
    match writes.iter().filter(|step| !lifts(step)).count() {
        0 | 1 => Ok(()),
        n => Err(format!("{when}: {n} configuration writes")),
    }
}

/// Files: downloaded where they are absent, once on a shared storage, and never touched again.
pub fn files(kind: &Kind, a: &Json, b: &Json) -> Result<(), String> {
    let What::File(content) = kind.what else { return Err("not a file kind".into()) };
    let mut lab = Lab::new();
    for spec in [a, b] {
        let manifest = kind.manifest(spec);
        let Some(Identity::Artifact(copies)) = (kind.validate)(&manifest).validated.map(|v| v.identity)
        else {
            return Err("no placements".into());
        };
        let live = lab.copies(&copies, content);
        let absent = match &live {
            Live::Artifact(states) => {
                states.iter().filter(|s: &&PlacementState| s.presence == Presence::Absent).count()
            }
            _ => 0,
        };
        let shared = spec["storage"] == "nfs";
        let wanted = if shared { absent.min(1) } else { absent };
        let report =
            (kind.drift)(&manifest, &live, &lab.context).map_err(|r| format!("drift refused: {r:?}"))?;
        if spec["url"].is_string() {
            if report.steps.len() != wanted {
                return Err(format!("downloads: {} instead of {wanted}", report.steps.len()));
            }
            lab.run(kind, &report.steps)?;
        } else {
            let told =
                report.anomalies.iter().filter(|a| a.code == "no-url" && a.severity == Severity::Error);
            if !report.steps.is_empty() || told.count() != wanted {
                return Err(format!("without url: {:?} {:?}", report.steps, report.anomalies));
            }
            // By hand.
            for copy in &copies {
                let name = format!("{content}/{}", copy.filename);
                lab.world.add_file(&copy.storage, &copy.node, &name, 1 << 20);
            }
        }
        let live = lab.copies(&copies, content);
        let report =
            (kind.drift)(&manifest, &live, &lab.context).map_err(|r| format!("drift refused: {r:?}"))?;
        settled("after download", &report, &Expected::default(), false)?;
    }
    match lab.requests.iter().find(|r| r.method != "POST") {
        Some(other) => Err(format!("more than downloads: {other:?}")),
        None => Ok(()),
    }
}
