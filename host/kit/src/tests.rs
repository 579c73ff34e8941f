//! The kit against kinds that misbehave on purpose: each check must be able to fail.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::report::{Check, Outcome};
use crate::{hostile, keys, life, mutation, shape};
use proxops_model::kind::{
    Adopted, Context, Creation, DriftReport, FieldChange, Gap, GuestId, GuestType, Identity, KindApi,
    KindFault, KindInfo, KindSet, KindStep, Live, LiveValue, Manifest, Param, ParamValue, Refusal, Target,
    Validated, Validation,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How the kind misbehaves.
#[derive(Clone, Copy, PartialEq)]
enum Vice {
    None,
    /// `drift` does not look at cores.
    Forgetful,
    /// `drift` writes another value than it wants.
    OffByOne,
    /// `adopt` tells no gaps.
    Silent,
    /// It breaks where the spec has a field that it does not know.
    Fragile,
}

struct Toy {
    info: KindInfo,
    vice: Vice,
}

struct Toys(Vec<Toy>);

impl KindSet for Toys {
    fn get(&self, kind: &str) -> Option<&dyn KindApi> {
        self.0.iter().find(|toy| toy.info.kind == kind).map(|toy| toy as &dyn KindApi)
    }
    fn all(&self) -> Vec<&dyn KindApi> {
        self.0.iter().map(|toy| toy as &dyn KindApi).collect()
    }
}

fn toy(vice: Vice) -> Toys {
    let number = |text: &str| json!({"type": "integer", "minimum": 1, "maximum": 64, "description": text});
    let schema = json!({
        "type": "object",
        "required": ["vmid", "memory"],
        "properties": {"vmid": {"type": "integer", "description": "Number."}, "memory": number("MiB."), "cores": number("Cores.")},
    });
    let example = json!({"kind": "Toy", "apiVersion": "toy/v1", "metadata": {"name": "toy"}, "spec": {"vmid": 100, "memory": 64, "cores": 2}});
    let info = KindInfo {
        kind: "Toy".into(),
        version: "1".into(),
        api_versions: vec!["toy/v1".into()],
        root: "toy".into(),
        summary: "A toy".into(),
        target: Target::Guest { guest_type: GuestType::Qemu, template: false },
        schema: schema.to_string(),
        examples: vec![example.to_string()],
    };
    Toys(vec![Toy { info, vice }])
}

fn spec(manifest: &Manifest) -> Map<String, Value> {
    serde_json::from_str(&manifest.spec).unwrap_or_default()
}

fn wanted(manifest: &Manifest) -> BTreeMap<&'static str, String> {
    let spec = spec(manifest);
    ["memory", "cores"]
        .into_iter()
        .filter_map(|key| Some((key, spec.get(key)?.as_u64()?.to_string())))
        .collect()
}

fn param(key: &str, value: &str) -> Param {
    Param { key: key.into(), value: ParamValue::Text(value.into()), at: None }
}

impl KindApi for Toy {
    fn info(&self) -> &KindInfo {
        &self.info
    }

    fn validate(&self, manifest: &Manifest) -> Result<Validation, KindFault> {
        let spec = spec(manifest);
        if self.vice == Vice::Fragile
            && spec.keys().any(|key| !["vmid", "memory", "cores"].contains(&key.as_str()))
        {
            let message = "it panicked".to_owned();
            return Err(KindFault {
                kind: "Toy".into(),
                origin: "test".into(),
                function: "validate".into(),
                message,
            });
        }
        let fits =
            |key: &str| spec.get(key).is_none_or(|v| v.as_u64().is_some_and(|n| (1..=64).contains(&n)));
        let vmid = spec.get("vmid").and_then(Value::as_u64).filter(|_| fits("memory") && fits("cores"));
        let validated = vmid.and_then(|vmid| u32::try_from(vmid).ok()).map(|vmid| Validated {
            identity: Identity::Guest(GuestId { node: "pve01".into(), vmid, name: None }),
            power: None,
            references: vec![],
            secrets: vec![],
            storages: vec![],
            attributes: vec![],
            incomplete: vec![],
        });
        Ok(Validation { validated, diagnostics: vec![] })
    }

    fn create_params(&self, manifest: &Manifest, _: &Context) -> Result<Creation, Refusal> {
        let params = wanted(manifest).iter().map(|(key, value)| param(key, value)).collect();
        Ok(Creation { steps: vec![KindStep::Create { params }], ..Creation::default() })
    }

    fn drift(&self, manifest: &Manifest, live: &Live, _: &Context) -> Result<DriftReport, Refusal> {
        let Live::Guest(guest) = live else { return Ok(DriftReport::default()) };
        let mut report = DriftReport::default();
        let mut set = Vec::new();
        for (key, value) in wanted(manifest) {
            let before = guest.values.get(key).and_then(LiveValue::text).map(str::to_owned);
            if before.as_ref() == Some(&value) || (self.vice == Vice::Forgetful && key == "cores") {
                continue;
            }
            let off = u64::from(self.vice == Vice::OffByOne);
            set.push(param(key, &(value.parse::<u64>().unwrap() + off).to_string()));
            report.changes.push(FieldChange {
                at: format!("/spec/{key}"),
                key: key.into(),
                before,
                after: Some(value),
                sensitive: false,
                needs_stop: false,
            });
        }
        if !set.is_empty() {
            report.steps.push(KindStep::Configure { set, unset: vec![], revert: vec![] });
        }
        Ok(report)
    }

    fn adopt(&self, _: &str, live: &Live, _: &Context, _: bool) -> Result<Adopted, Refusal> {
        let Live::Guest(guest) = live else { panic!("a guest") };
        let mut spec = Map::from_iter([("vmid".to_owned(), json!(guest.vmid))]);
        let mut gaps = Vec::new();
        for (key, value) in &guest.values {
            let text = value.text().unwrap_or_default();
            match (key.as_str(), text.parse::<u64>()) {
                ("memory" | "cores", Ok(n)) => drop(spec.insert(key.clone(), json!(n))),
                ("meta" | "smbios1" | "vmgenid", _) => {}
                _ if self.vice == Vice::Silent => {}
                _ => gaps.push(Gap {
                    key: key.clone(),
                    value: Some(text.to_owned()),
                    why: "not modelled".into(),
                }),
            }
        }
        gaps.extend(guest.secrets_present.iter().map(|key| Gap {
            key: key.clone(),
            value: None,
            why: "secret".into(),
        }));
        Ok(Adopted {
            labels: vec![],
            annotations: vec![],
            spec: Value::Object(spec).to_string(),
            gaps,
            incomplete: vec![],
            new_public_keys: vec![],
            masked_secrets: 0,
        })
    }
}

/// All checks that need no component, by name.
fn checks(vice: Vice) -> BTreeMap<&'static str, Check> {
    let toys = toy(vice);
    let kind = toys.get("Toy").unwrap();
    let (examples, valid) = life::examples(kind);
    let (created, made) = life::create(&toys, kind, &valid);
    let all = [
        shape::schema(kind.info()),
        examples,
        created,
        life::adopt(kind, &made),
        mutation::check(&toys, kind, &made),
        keys::check(kind, &made),
        hostile::check(kind, &valid, &made),
    ];
    all.into_iter().map(|check| (check.name, check)).collect()
}

fn failed(vice: Vice) -> Vec<(&'static str, String)> {
    let all = checks(vice);
    all.iter()
        .filter(|(_, c)| c.outcome == Outcome::Failed)
        .map(|(name, c)| (*name, c.problems.join(" | ")))
        .collect()
}

#[test]
fn an_honest_kind_passes() {
    assert_eq!(failed(Vice::None), []);
    let mutation = &checks(Vice::None)["mutation"];
    assert!(
        mutation.summary.starts_with("3 fields: 2 converge in one update, 0 are told, 1 mean another"),
        "{}",
        mutation.summary
    );
}

#[test]
fn a_field_that_drift_forgets_is_found() {
    assert_eq!(failed(Vice::Forgetful), [("mutation", "cores: no change is seen".to_owned())]);
}

#[test]
fn an_update_that_does_not_converge_is_found() {
    let failed = failed(Vice::OffByOne);
    assert_eq!(failed.len(), 1, "{failed:?}");
    let (check, text) = &failed[0];
    assert!(*check == "mutation" && text.contains("after one update, still a change memory"), "{text}");
}

#[test]
fn a_live_key_that_adopt_drops_is_found() {
    let failed = failed(Vice::Silent);
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(failed[0].0 == "keys" && failed[0].1.contains("adopt loses onboot"), "{failed:?}");
}

#[test]
fn a_kind_that_breaks_on_hostile_input_is_found() {
    let failed = failed(Vice::Fragile);
    assert_eq!(failed.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["hostile"]);
}
