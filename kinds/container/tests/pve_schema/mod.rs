//! Checks parameters against PVE's API schema, where that file is on the machine.
#![allow(dead_code)]

use regex::Regex;
use serde_json::{Map, Value};
use std::path::Path;

/// The schema of one method; `None` when the file is not there.
pub fn method(name: &str) -> Option<Map<String, Value>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pve/api-9.2.3.json");
    let data: Value = serde_json::from_str(&std::fs::read_to_string(file).ok()?).unwrap();
    Some(data["methods"][name]["parameters"].as_object().unwrap().clone())
}

/// Everything that PVE's schema would refuse.
pub fn complaints(schema: &Map<String, Value>, params: &[(String, String)]) -> Vec<String> {
    let mut out = vec![];
    for (key, value) in params {
        match lookup(schema, key) {
            Some(spec) => out.extend(check(spec, value).map(|text| format!("{key}={value}: {text}"))),
            None => out.push(format!("{key}: not defined")),
        }
    }
    out
}

fn lookup<'a>(schema: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    if let Some(spec) = schema.get(key) {
        return Some(spec);
    }
    let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
    let number: u64 = key[stem.len()..].parse().ok()?;
    let spec = schema.get(&format!("{stem}[n]"))?;
    (number <= spec["indexed"][1].as_u64()?).then_some(spec)
}

fn check(spec: &Value, text: &str) -> Option<String> {
    let number = text.parse::<f64>();
    let wrong = match spec["type"].as_str() {
        Some("boolean") => !["0", "1"].contains(&text),
        Some("integer") => text.parse::<i64>().is_err(),
        Some("number") => number.is_err(),
        _ => false,
    };
    if wrong {
        return Some(format!("is no {}", spec["type"]));
    }
    if let Ok(number) = number {
        let low = spec["minimum"].as_f64().is_some_and(|low| number < low);
        let high = spec["maximum"].as_f64().is_some_and(|high| number > high);
        if low || high {
            return Some("is out of range".to_owned());
        }
    }
    if spec["enum"].as_array().is_some_and(|all| !all.iter().any(|word| word == text)) {
        return Some("is not in the enumeration".to_owned());
    }
    if let Some(pattern) = spec["pattern"].as_str() {
        let pattern = Regex::new(&format!("^(?:{})$", pattern.replace("\\0", "\\x00"))).unwrap();
        if !pattern.is_match(text) {
            return Some("does not match the pattern".to_owned());
        }
    }
    if spec["maxLength"].as_u64().is_some_and(|most| text.len() as u64 > most) {
        return Some("is too long".to_owned());
    }
    spec["format"].as_object().and_then(|keys| property_string(keys, text))
}

fn property_string(keys: &Map<String, Value>, text: &str) -> Option<String> {
    let mut seen = vec![];
    for part in text.split(',') {
        let default = keys.iter().find(|(_, spec)| spec["default_key"].as_bool() == Some(true));
        let (key, value) = match (part.split_once('='), default) {
            (Some((key, value)), _) => (key, value),
            (None, Some((key, _))) => (key.as_str(), part),
            (None, None) => return Some(format!("{part} has no key")),
        };
        let Some(spec) = keys.get(key) else { return Some(format!("{key} is not defined")) };
        // `virtio=<MAC>` says the model by its key, and is the address.
        let (name, spec) = match spec["alias"].as_str() {
            Some(target) => (target, &keys[target]),
            None => (key, spec),
        };
        let named = keys[key]["keyAlias"].as_str();
        for name in [Some(name), named].into_iter().flatten() {
            if seen.contains(&name) {
                return Some(format!("{name} twice"));
            }
            seen.push(name);
        }
        if let Some(text) = check(spec, value) {
            return Some(format!("{key} {text}"));
        }
    }
    let needed = |spec: &Value| spec["optional"].is_null() && spec["alias"].is_null();
    let missing = keys.iter().find(|(key, spec)| needed(spec) && !seen.contains(&key.as_str()));
    missing.map(|(key, _)| format!("{key} is missing"))
}
