//! Whole request bodies, written down by hand in `golden/*.yaml` after specification and wire facts.

use crate::pve;
use proxops_kind::{Identity, Severity};
use proxops_kind_tests::kinds::{ALL, Kind, What};
use proxops_kind_tests::lab::{Lab, Request};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(PartialEq)]
struct Wire(Vec<(String, BTreeMap<String, String>)>);

impl Wire {
    fn expected(case: &Json) -> Self {
        let call = |r: &Json| {
            let form = r["form"].as_object().expect("a form").iter();
            let text = |v: &Json| v.as_str().unwrap_or_else(|| panic!("{v} is no text")).to_owned();
            (
                r["call"].as_str().expect("a call").to_owned(),
                form.map(|(k, v)| (k.clone(), text(v))).collect(),
            )
        };
        Self(case["requests"].as_array().expect("requests").iter().map(call).collect())
    }

    /// With addresses that PVE drew as `<MAC>`.
    fn sent(requests: &[Request], spec: &Json) -> Self {
        let pinned = spec.to_string().to_ascii_uppercase();
        let hide = |text: &String| {
            let mut out = text.clone();
            for (at, _) in text.match_indices("BC:24:11:") {
                let mac = &text[at..at + 17];
                if !pinned.contains(mac) {
                    out = out.replace(mac, "<MAC>");
                }
            }
            out
        };
        let one = |r: &Request| {
            let form = r.params.iter().map(|(k, v)| (k.clone(), hide(v))).collect();
            (format!("{} {}", r.method, r.path), form)
        };
        Self(requests.iter().map(one).collect())
    }

    fn lines(&self) -> Vec<String> {
        let mut out = Vec::new();
        for (call, form) in &self.0 {
            out.push(call.clone());
            out.extend(form.iter().map(|(key, value)| format!("    {key}: {value:?}")));
        }
        out
    }
}

/// What is missing and what is too much.
fn difference(expected: &Wire, sent: &Wire) -> String {
    let (expected, sent) = (expected.lines(), sent.lines());
    let mut out = Vec::new();
    out.extend(expected.iter().filter(|l| !sent.contains(l)).map(|l| format!("  - {l}")));
    out.extend(sent.iter().filter(|l| !expected.contains(l)).map(|l| format!("  + {l}")));
    if out.is_empty() {
        out.extend(sent.iter().map(|l| format!("  ? {l} (another order)")));
    }
    out.join("\n")
}

/// JSON merge patch: null removes.
fn patch(spec: &mut Json, change: &Json) {
    let Json::Object(change) = change else {
        *spec = change.clone();
        return;
    };
    if !spec.is_object() {
        *spec = Json::Object(Map::new());
    }
    let map = spec.as_object_mut().unwrap();
    for (name, value) in change {
        if value.is_null() {
            map.remove(name);
        } else {
            patch(map.entry(name.clone()).or_insert(Json::Null), value);
        }
    }
}

fn make(kind: &Kind, lab: &mut Lab, spec: &Json) -> Result<(), String> {
    match kind.what {
        What::Guest(_) => lab.create(kind, spec),
        What::File(content) => {
            let manifest = kind.manifest(spec);
            let Some(Identity::Artifact(copies)) = (kind.validate)(&manifest).validated.map(|v| v.identity)
            else {
                return Err("no placements".into());
            };
            let live = lab.copies(&copies, content);
            let report = (kind.drift)(&manifest, &live, &lab.context).map_err(|r| format!("{r:?}"))?;
            lab.run(kind, &report.steps)
        }
    }
}

fn check(case: &Json) -> Result<(), String> {
    let kind = ALL.into_iter().find(|k| case["kind"] == k.name).ok_or("no such kind")?;
    let mut spec = case["spec"].clone();
    let mut lab = Lab::new();
    if case["token"] == json!(true) {
        lab = lab.with_token();
    }
    let valid = |spec: &Json| match kind.errors(spec) {
        errors if errors.is_empty() => Ok(()),
        errors => Err(format!("refused: {errors:?}")),
    };
    let compare = |step: &Json, lab: &Lab, spec: &Json, when: &str| {
        let (expected, sent) = (Wire::expected(step), Wire::sent(&lab.requests, spec));
        let schema: Vec<String> = lab.requests.iter().flat_map(pve::complaints).collect();
        match (expected == sent, schema.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => Err(format!("{when}: PVE's schema says {schema:?}")),
            (false, _) => Err(format!("{when}:\n{}", difference(&expected, &sent))),
        }
    };
    valid(&spec)?;
    make(&kind, &mut lab, &spec)?;
    if case["requests"].is_array() {
        compare(case, &lab, &spec, "create")?;
    }
    for (i, step) in case["then"].as_array().into_iter().flatten().enumerate() {
        let when = format!("then {}", i + 1);
        patch(&mut spec, &step["change"]);
        valid(&spec)?;
        let report = lab.drift(&kind, &spec)?;
        let mut told: Vec<String> = report
            .anomalies
            .iter()
            .filter(|a| a.severity != Severity::Info)
            .map(|a| format!("{} {}", a.code, a.key.clone().unwrap_or_default()))
            .collect();
        told.sort();
        let expected = if step["anomalies"].is_array() { step["anomalies"].clone() } else { json!([]) };
        if json!(told) != expected {
            return Err(format!("{when}: anomalies {told:?} instead of {expected}"));
        }
        lab.requests.clear();
        lab.run(&kind, &report.steps)?;
        compare(step, &lab, &spec, &when)?;
    }
    Ok(())
}

#[test]
fn requests_are_as_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let (mut wrong, mut cases, mut steps) = (Vec::new(), 0, 0);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let all: Json = serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for case in all.as_array().expect("a list of cases") {
            cases += 1;
            steps += 1 + case["then"].as_array().map_or(0, Vec::len);
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            wrong.extend(check(case).err().map(|why| format!("{name}, {}: {why}", case["name"])));
        }
    }
    assert!(wrong.is_empty(), "{} of {cases} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(steps >= 60, "only {steps} steps in {cases} cases");
}
