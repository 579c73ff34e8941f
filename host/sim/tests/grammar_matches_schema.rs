//! Holds the simulator's grammar against the official API schema, parameter by parameter, for every
//! served call, both ways. Skipped with a note where the schema is not there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use proxops_sim::api::{Access, ENDPOINTS};
use proxops_sim::grammar::{Format, Kind, Param, Table};
use serde_json::{Map, Value};

fn schema() -> Option<Value> {
    let shared = std::env::var_os("PROXOPS_SHARED")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let file = shared.join("pve/api-9.2.3.json");
    match std::fs::read(&file) {
        Ok(bytes) => Some(serde_json::from_slice(&bytes).unwrap()),
        Err(_) => {
            println!("skipped: no schema at {} (set PROXOPS_SHARED)", file.display());
            None
        }
    }
}

struct Comparison<'a> {
    formats: &'a Map<String, Value>,
    differences: Vec<String>,
}

impl Comparison<'_> {
    fn say(&mut self, at: &str, what: &str, ours: impl std::fmt::Debug, theirs: impl std::fmt::Debug) {
        self.differences.push(format!("{at}: {what}: ours {ours:?}, schema {theirs:?}"));
    }

    fn table(&mut self, at: &str, ours: Table, theirs: &Map<String, Value>) {
        // `numa` and `numa[n]` are two parameters
        let ours: BTreeMap<String, &Param> = ours
            .iter()
            .flat_map(|group| group.iter())
            .map(|p| (if p.index.is_some() { format!("{}[n]", p.name) } else { p.name.to_owned() }, p))
            .collect();
        let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        for name in names {
            let at = format!("{at} {name}");
            match (ours.get(name), theirs.get(name)) {
                (Some(_), None) => self.differences.push(format!("{at}: not in the schema")),
                (None, Some(_)) => self.differences.push(format!("{at}: missing")),
                (Some(ours), Some(theirs)) => self.param(&at, ours, theirs),
                (None, None) => unreachable!(),
            }
        }
    }

    fn param(&mut self, at: &str, ours: &Param, theirs: &Value) {
        let text = |key: &str| theirs[key].as_str().unwrap_or_default();
        let kind = match text("type") {
            _ if theirs.get("alias").is_some() => Kind::Alias,
            "integer" => Kind::Integer,
            "number" => Kind::Number,
            "boolean" => Kind::Flag,
            _ => Kind::Text,
        };
        if ours.kind != kind {
            self.say(at, "type", ours.kind, kind);
        }
        if kind == Kind::Alias {
            if ours.alias != text("alias") || ours.key_alias != text("keyAlias") {
                self.say(at, "alias", (ours.alias, ours.key_alias), (text("alias"), text("keyAlias")));
            }
            return;
        }
        let required = theirs.get("optional").is_none();
        if ours.required != required {
            self.say(at, "required", ours.required, required);
        }
        let number = |key: &str| theirs.get(key).and_then(Value::as_i64);
        for (what, ours, theirs) in [
            ("minimum", ours.min, number("minimum")),
            ("maximum", ours.max, number("maximum")),
            ("minLength", ours.min_len.map(|n| n as i64), number("minLength")),
            ("maxLength", ours.max_len.map(|n| n as i64), number("maxLength")),
        ] {
            if ours != theirs {
                self.say(at, what, ours, theirs);
            }
        }
        let index = theirs
            .get("indexed")
            .map(|range| (range[0].as_u64().unwrap() as u16, range[1].as_u64().unwrap() as u16));
        if ours.index != index {
            self.say(at, "index range", ours.index, index);
        }
        if ours.needs != text("requires") {
            self.say(at, "requires", ours.needs, text("requires"));
        }
        if ours.bare != theirs.get("default_key").is_some() {
            self.say(at, "default key", ours.bare, theirs.get("default_key"));
        }
        let values = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
        let allowed = values(ours.values.split(' ').filter(|v| !v.is_empty()).collect());
        let theirs_allowed =
            values(theirs["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect());
        // 256 slots of a container are written as a pattern
        let slots = at.ends_with("/lxc/{vmid}/resize PUT disk");
        if allowed != theirs_allowed && !slots {
            self.say(at, "enum", &allowed, &theirs_allowed);
        }
        if slots {
            for slot in &theirs_allowed {
                if !proxops_sim::grammar::check::matches(ours.pattern, slot) {
                    self.say(at, "slot", "refused", slot);
                }
            }
            if proxops_sim::grammar::check::matches(ours.pattern, "mp256") || theirs_allowed.len() != 257 {
                self.say(at, "slots", ours.pattern, theirs_allowed.len());
            }
            return;
        }
        // the regex crate has neither an octal escape nor an open lower bound
        let pattern = text("pattern").replace(r"\0\w", r"\x00\w").replace("{,", "{0,");
        if ours.pattern != pattern {
            self.say(at, "pattern", ours.pattern, pattern);
        }
        self.format(at, ours, theirs);
    }

    fn format(&mut self, at: &str, ours: &Param, theirs: &Value) {
        let props = match &theirs["format"] {
            Value::Object(props) => Some(props.clone()),
            Value::String(name) => self.formats.get(name).and_then(|f| f["properties"].as_object()).cloned(),
            _ => None,
        };
        match (ours.format, props, theirs["format"].as_str()) {
            (Format::Props(ours), Some(theirs), _) => self.table(at, ours, &theirs),
            (Format::Named(ours), None, Some(theirs)) if ours == theirs => {}
            (Format::Any, None, None) => {}
            (ours, _, theirs) => self.say(at, "format", ours, theirs),
        }
    }
}

#[test]
fn every_served_call_takes_exactly_what_the_schema_says() {
    let Some(schema) = schema() else { return };
    let mut comparison =
        Comparison { formats: schema["formats"].as_object().unwrap(), differences: Vec::new() };
    let mut compared = 0;
    for endpoint in ENDPOINTS.iter().flat_map(|group| group.iter()) {
        let key = format!("{} {}", endpoint.path, endpoint.method);
        let Some(method) = schema["methods"].get(&key) else {
            comparison.differences.push(format!("{key}: the schema has no such call"));
            continue;
        };
        compared += 1;
        let empty = Map::new();
        comparison.table(&key, endpoint.params, method["parameters"].as_object().unwrap_or(&empty));
        if endpoint.token != method["allow_token"].as_bool().unwrap_or(true) {
            comparison.say(&key, "allow_token", endpoint.token, &method["allow_token"]);
        }
        let declared = &method["permissions"];
        if !same_access(&endpoint.access, declared) {
            comparison.say(&key, "permissions", endpoint.access, declared);
        }
    }
    assert!(compared > 80, "only {compared} calls compared");
    assert!(comparison.differences.is_empty(), "\n{}", comparison.differences.join("\n"));
}

fn same_access(ours: &Access, theirs: &Value) -> bool {
    if theirs["user"] == "world" {
        return matches!(ours, Access::World);
    }
    if theirs["user"] == "all" {
        return matches!(ours, Access::All);
    }
    check(ours, &theirs["check"])
}

fn check(ours: &Access, theirs: &Value) -> bool {
    let privileges =
        |ours: &[&str]| theirs[2].as_array().is_some_and(|list| list.iter().eq(ours.iter().copied()));
    let any = theirs[3] == "any";
    match (ours, theirs[0].as_str()) {
        // Depends on who is asked about: the call itself checks it, held by a test of behaviour.
        (Access::All, Some("or")) => theirs[1] == serde_json::json!(["userid-param", "self"]),
        (Access::Need(path, list), Some("perm")) => {
            theirs[1] == *path && privileges(list) && (!any || list.len() == 1)
        }
        (Access::Any(path, list), Some("perm")) => theirs[1] == *path && privileges(list) && any,
        (Access::And(a, b), Some("and")) | (Access::Or(a, b), Some("or")) => {
            check(a, &theirs[1]) && check(b, &theirs[2])
        }
        _ => false,
    }
}

#[test]
fn every_pattern_of_the_tables_compiles() {
    fn walk(table: Table, seen: &mut usize) {
        for param in table.iter().flat_map(|group| group.iter()) {
            if !param.pattern.is_empty() {
                *seen += 1;
                // an unusable pattern matches nothing, not even with itself made optional
                let optional: &'static str = Box::leak(format!("(?:{})?", param.pattern).into_boxed_str());
                assert!(
                    proxops_sim::grammar::check::matches(optional, ""),
                    "{}: {}",
                    param.name,
                    param.pattern
                );
            }
            if let Format::Props(table) = param.format {
                walk(table, seen);
            }
        }
    }
    let mut seen = 0;
    for endpoint in ENDPOINTS.iter().flat_map(|group| group.iter()) {
        walk(endpoint.params, &mut seen);
    }
    assert!(seen > 50);
}
