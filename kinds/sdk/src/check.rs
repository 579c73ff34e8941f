//! Finds every structural mistake of a spec, in plain words, and repairs what it can so that the
//! kind's own checks still run.
//!
//! Two passes: a walk along the JSON Schema of the spec's type (unknown, missing, type, range,
//! choice), then the type's own parser, again and again, for what only it knows. After each mistake the
//! field is removed if it is optional, else filled with a stand-in.

use crate::Report;
use crate::report::{child, name_of, steps};
use crate::schema::{self, branches, resolve};
use crate::text::{nearest, quoted};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Most mistakes that are reported about one manifest.
const MOST: usize = 200;
/// Most mistakes that only a type's own parser knows; each takes some hundred trials to find.
const MOST_BY_TYPE: usize = 20;

/// Reads a spec, reporting every mistake with its pointer. `None` when not even a stand-in makes it
/// readable.
pub fn read<S: DeserializeOwned + JsonSchema + 'static>(spec: &str, report: &mut Report) -> Option<S> {
    let mut value: Value = match serde_json::from_str(spec) {
        Ok(value) => value,
        Err(error) => {
            report.error("/spec", "not-json", format!("`spec` is not readable: {error}"));
            return None;
        }
    };
    strip_nulls(&mut value);
    let schema = schema::of::<S>();
    let mut found = Vec::new();
    Walk { root: &schema }.check(&schema, &value, &At::root("/spec"), &mut found);
    // The usual way: nothing to repair.
    if found.is_empty()
        && let Ok(read) = serde_json::from_str(spec)
    {
        return Some(read);
    }
    found.truncate(MOST);
    for problem in found {
        repair(&schema, &mut value, &problem.at, report);
        problem.report(report);
    }
    let parse = |value: &Value| match serde_json::from_str::<S>(&value.to_string()) {
        Ok(spec) => Ok(spec),
        Err(error) => Err(told(&error)),
    };
    for _ in 0..MOST_BY_TYPE {
        let message = match parse(&value) {
            Ok(spec) => return Some(spec),
            Err(message) => message,
        };
        let fails = |value: &Value| parse(value).is_err_and(|other| other == message);
        let at = locate(&schema, &value, &fails);
        if !report.is_broken(&at) {
            let said = match message.split_once(' ') {
                Some(("must" | "is" | "has" | "may", _)) => format!("{} {message}", name_of(&at)),
                _ => format!("{}: {message}", name_of(&at)),
            };
            report.error(at.as_str(), "bad-value", said);
        }
        if !repair(&schema, &mut value, &at, report) {
            return None;
        }
    }
    None
}

/// What a type's own parser said, without the place in a text that nobody sees.
fn told(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.rsplit_once(" at line ").map_or(message.clone(), |(message, _)| message.to_owned())
}

/// Finds the field that a type's own parser does not take: fields get stand-ins, one after the other,
/// until the message goes away; then the same inside the one that did it.
fn locate(schema: &Value, spec: &Value, fails: &dyn Fn(&Value) -> bool) -> String {
    let (mut at, mut trial) = ("/spec".to_owned(), spec.clone());
    'deeper: loop {
        let pointer = at.strip_prefix("/spec").unwrap_or_default().to_owned();
        let members: Vec<String> = match trial.pointer(&pointer) {
            Some(Value::Object(map)) => map.keys().map(|name| child(&at, name)).collect(),
            Some(Value::Array(list)) => (0..list.len()).map(|i| format!("{at}/{i}")).collect(),
            _ => return at,
        };
        for member in members {
            let before = trial.clone();
            stand_in(schema, &mut trial, &member);
            if !fails(&trial) {
                trial = before;
                at = member;
                continue 'deeper;
            }
        }
        return at;
    }
}

/// A field that says nothing (`options:` without a value) is a field left out.
fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(strip_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

/// Puts a stand-in for a field and marks it as broken; false when nothing changed.
fn repair(schema: &Value, spec: &mut Value, at: &str, report: &mut Report) -> bool {
    let (known, changed) = stand_in(schema, spec, at);
    if known {
        report.break_at(at.to_owned());
    }
    changed
}

/// Removes the field if it is optional, else puts a stand-in there. Says whether the schema knows the
/// field, and whether anything changed.
fn stand_in(schema: &Value, spec: &mut Value, at: &str) -> (bool, bool) {
    let path: Vec<String> = steps(at).skip(1).collect();
    let Some((last, above)) = path.split_last() else { return (true, false) };
    let (mut here_schema, mut here) = (schema, spec);
    for step in above {
        let Some((next, _)) = schema::member(schema, here_schema, step) else { break };
        here_schema = next;
        let next = match here {
            Value::Object(map) => map.get_mut(step),
            Value::Array(list) => step.parse::<usize>().ok().and_then(|i| list.get_mut(i)),
            _ => None,
        };
        match next {
            Some(next) => here = next,
            None => return (true, false),
        }
    }
    let member = schema::member(schema, here_schema, last);
    let changed = match (here, member) {
        // Items keep their place, so that later pointers stay right.
        (Value::Array(list), Some((item, _))) => {
            let stand_in = schema::placeholder(schema, item, 0);
            match last.parse::<usize>().ok().and_then(|i| list.get_mut(i)) {
                Some(slot) => std::mem::replace(slot, stand_in.clone()) != stand_in,
                None => false,
            }
        }
        (Value::Object(map), Some((property, true))) => {
            let stand_in = schema::placeholder(schema, property, 0);
            map.insert(last.clone(), stand_in.clone()).as_ref() != Some(&stand_in)
        }
        (Value::Object(map), _) => map.remove(last).is_some(),
        _ => false,
    };
    (member.is_some(), changed)
}

struct Problem {
    at: String,
    code: &'static str,
    message: String,
    help: Option<String>,
}

impl Problem {
    /// The place is already marked as broken, so this goes past the filter.
    fn report(self, report: &mut Report) {
        report.push(self.at, self.code, self.message, self.help);
    }
}

/// A place in the manifest; its pointer is only made for a message.
struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    fn root(pointer: &'a str) -> Self {
        Self { parent: None, step: Step::Name(pointer) }
    }

    fn name(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Name(name) }
    }

    fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    fn pointer(&self) -> String {
        match (self.parent, &self.step) {
            (None, Step::Name(root)) => (*root).to_owned(),
            (None, Step::Index(_)) => String::new(),
            (Some(parent), Step::Name(name)) => child(&parent.pointer(), name),
            (Some(parent), Step::Index(index)) => format!("{}/{index}", parent.pointer()),
        }
    }
}

struct Walk<'a> {
    root: &'a Value,
}

impl Walk<'_> {
    fn check(&self, schema: &Value, value: &Value, at: &At<'_>, out: &mut Vec<Problem>) {
        let expect = expect_of(schema);
        self.check_inner(resolve(self.root, schema), value, at, out, expect);
    }

    fn check_inner(
        &self,
        schema: &Value,
        value: &Value,
        at: &At<'_>,
        out: &mut Vec<Problem>,
        expect: Option<&str>,
    ) {
        if out.len() >= MOST {
            return;
        }
        let expect = expect.or_else(|| expect_of(schema));
        if let Some(all) = branches(schema) {
            self.check_branches(schema, all, value, at, out, expect);
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.check(part, value, at, out);
        }
        if !types_of(schema).is_none_or(|mut types| types.any(|t| has_type(value, t))) {
            let wanted = expect.map_or_else(|| self.describe(schema), str::to_owned);
            out.push(wrong_type(schema, &wanted, value, at));
            return;
        }
        if choices_of(schema).is_some_and(|mut choices| !choices.any(|c| c == value)) {
            let choices: Vec<&Value> = choices_of(schema).into_iter().flatten().collect();
            out.push(unknown_choice(&choices, value, at));
            return;
        }
        match value {
            Value::Number(_) => check_range(schema, value, at, out),
            Value::Object(map) => self.check_object(schema, map, at, out),
            Value::Array(list) => self.check_list(schema, list, at, out),
            _ => {}
        }
    }

    fn check_branches(
        &self,
        schema: &Value,
        all: &[Value],
        value: &Value,
        at: &At<'_>,
        out: &mut Vec<Problem>,
        expect: Option<&str>,
    ) {
        let branches = || all.iter().map(|b| resolve(self.root, b));
        if value.is_null() && branches().any(is_null) {
            return;
        }
        let real = || branches().filter(|b| !is_null(b));
        // A documented enumeration: every branch is a choice.
        if real().all(|b| choices_of(b).is_some()) {
            if !real().flat_map(|b| choices_of(b).into_iter().flatten()).any(|c| c == value) {
                let choices: Vec<&Value> = real().flat_map(|b| choices_of(b).into_iter().flatten()).collect();
                out.push(match (value, expect) {
                    (Value::String(_), _) | (_, None) => unknown_choice(&choices, value, at),
                    (_, Some(wanted)) => wrong_type(schema, wanted, value, at),
                });
            }
            return;
        }
        let mut best: Option<Vec<Problem>> = None;
        for branch in real() {
            if !types_of(branch).is_none_or(|mut types| types.any(|t| has_type(value, t))) {
                continue;
            }
            let mut problems = Vec::new();
            self.check_inner(branch, value, at, &mut problems, expect);
            if problems.is_empty() {
                return;
            }
            if best.as_ref().is_none_or(|b| problems.len() < b.len()) {
                best = Some(problems);
            }
        }
        match best {
            Some(problems) => out.extend(problems),
            None => {
                let wanted = expect.map(str::to_owned).unwrap_or_else(|| {
                    let mut words: Vec<String> = real().map(|b| self.describe(b)).collect();
                    words.dedup();
                    words.join(" or ")
                });
                out.push(wrong_type(schema, &wanted, value, at));
            }
        }
    }

    fn check_object(
        &self,
        schema: &Value,
        map: &serde_json::Map<String, Value>,
        at: &At<'_>,
        out: &mut Vec<Problem>,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, value) in map {
            let here = at.name(name);
            if let Some(property) = properties.and_then(|p| p.get(name)) {
                self.check(property, value, &here, out);
                continue;
            }
            match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => out.push(unknown_field(properties, name, at)),
                Some(extra) if extra.is_object() => self.check(extra, value, &here, out),
                _ => {}
            }
        }
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = name.as_str().filter(|n| !map.contains_key(*n)) else { continue };
            let property = properties.and_then(|p| p.get(name));
            let help = property
                .and_then(|p| p.get("description").or_else(|| resolve(self.root, p).get("description")))
                .and_then(Value::as_str)
                .map(|d| format!("{name}: {}", d.split("\n\n").next().unwrap_or(d).replace('\n', " ")));
            out.push(Problem {
                at: at.name(name).pointer(),
                code: "missing-field",
                message: format!("{} needs {}", name_of(&at.pointer()), quoted_name(name)),
                help,
            });
        }
    }

    fn check_list(&self, schema: &Value, list: &[Value], at: &At<'_>, out: &mut Vec<Problem>) {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let wanted = match (bound("minItems"), bound("maxItems")) {
            (Some(low), _) if list.len() < low => format!("at least {low}"),
            (_, Some(high)) if list.len() > high => format!("at most {high}"),
            _ => String::new(),
        };
        if !wanted.is_empty() {
            let pointer = at.pointer();
            let message = format!("{} must have {wanted} entries, not {}", name_of(&pointer), list.len());
            out.push(Problem { at: pointer, code: "wrong-count", message, help: None });
        }
        if let Some(items) = schema.get("items") {
            for (i, value) in list.iter().enumerate() {
                self.check(items, value, &at.index(i), out);
            }
        }
    }

    /// What a schema accepts, in words.
    fn describe(&self, schema: &Value) -> String {
        if let Some(expect) = expect_of(schema) {
            return expect.to_owned();
        }
        if let Some(choices) = choices_of(schema) {
            return or_list(&choices.map(word_of).collect::<Vec<_>>());
        }
        let words: Vec<&str> = types_of(schema)
            .into_iter()
            .flatten()
            .filter(|t| *t != "null")
            .map(|t| match t {
                "string" => "text",
                "integer" => "a whole number",
                "number" => "a number",
                "boolean" => "true or false",
                "array" => "a list",
                "object" => "a map of fields",
                other => other,
            })
            .collect();
        words.join(" or ")
    }
}

fn check_range(schema: &Value, value: &Value, at: &At<'_>, out: &mut Vec<Problem>) {
    let Some(number) = value.as_f64() else { return };
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    // What the field's Rust type holds is a bound too.
    let widest = match schema.get("format").and_then(Value::as_str) {
        Some("uint8") => Some(f64::from(u8::MAX)),
        Some("uint16") => Some(f64::from(u16::MAX)),
        Some("uint32") => Some(f64::from(u32::MAX)),
        _ => None,
    };
    let (low, high) = (bound("minimum"), bound("maximum").or(widest));
    if low.is_none_or(|low| number >= low) && high.is_none_or(|high| number <= high) {
        return;
    }
    let wanted = match (low, high) {
        (Some(low), Some(high)) if high < 4e9 => format!("between {low} and {high}"),
        (Some(low), _) if number < low => format!("at least {low}"),
        (_, Some(high)) => format!("at most {high}"),
        _ => return,
    };
    let at = at.pointer();
    let message = format!("{} must be {wanted}, not {}", name_of(&at), show(schema, value));
    out.push(Problem { at, code: "out-of-range", message, help: None });
}

fn unknown_field(properties: Option<&serde_json::Map<String, Value>>, name: &str, at: &At<'_>) -> Problem {
    let names = properties.into_iter().flatten().filter(|(_, p)| p.get("deprecated").is_none());
    let names: Vec<&str> = names.map(|(n, _)| n.as_str()).collect();
    let help = match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? Fields here: {}", names.join(", ")),
        None if names.is_empty() => "no field is allowed here".to_owned(),
        None => format!("fields here: {}", names.join(", ")),
    };
    Problem {
        at: at.name(name).pointer(),
        code: "unknown-field",
        message: format!("{} is not a field of {}", quoted_name(name), name_of(&at.pointer())),
        help: Some(help),
    }
}

fn wrong_type(schema: &Value, wanted: &str, value: &Value, at: &At<'_>) -> Problem {
    let at = at.pointer();
    let message = format!("{} must be {wanted}, not {}", name_of(&at), show(schema, value));
    Problem { at, code: "wrong-type", message, help: None }
}

fn unknown_choice(choices: &[&Value], value: &Value, at: &At<'_>) -> Problem {
    let words: Vec<String> = choices.iter().map(|c| word_of(c)).collect();
    let near = value.as_str().and_then(|text| nearest(text, words.iter().map(String::as_str)));
    let at = at.pointer();
    let message = format!("{} must be {}, not {}", name_of(&at), or_list(&words), show(&Value::Null, value));
    Problem { at, code: "unknown-value", message, help: near.map(|near| format!("did you mean {near}?")) }
}

fn word_of(choice: &Value) -> String {
    choice.as_str().map_or_else(|| choice.to_string(), str::to_owned)
}

fn expect_of(schema: &Value) -> Option<&str> {
    schema.get("x-expect").and_then(Value::as_str)
}

/// The values of `const` or `enum`.
fn choices_of(schema: &Value) -> Option<std::slice::Iter<'_, Value>> {
    match schema.get("const") {
        Some(one) => Some(std::slice::from_ref(one).iter()),
        None => schema.get("enum").and_then(Value::as_array).map(|all| all.iter()),
    }
}

/// The words of `type`; `None` when any type is right.
fn types_of(schema: &Value) -> Option<impl Iterator<Item = &str>> {
    let types = match schema.get("type")? {
        Value::Array(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    Some(types.iter().filter_map(Value::as_str))
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        _ => false,
    }
}

/// The value as a message shows it.
fn show(schema: &Value, value: &Value) -> String {
    if schema.get("x-sensitive").is_some() {
        return "what stands there".to_owned();
    }
    match value {
        Value::Null => "empty".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map of fields".to_owned(),
        other => other.to_string(),
    }
}

fn quoted_name(name: &str) -> String {
    let shown = quoted(name);
    format!("`{}`", shown.trim_matches('"'))
}

fn or_list(words: &[String]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [start @ .., last] => format!("{} or {last}", start.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scalar, Size};
    use serde::{Deserialize, Serialize};
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields)]
    struct Spec {
        /// How much.
        memory: Size,
        /// Number in the cluster.
        #[schemars(range(min = 100, max = 999))]
        vmid: u32,
        bios: Option<Bios>,
        #[serde(default)]
        disks: Vec<Disk>,
        agent: Option<Agent>,
        #[serde(default)]
        extra: BTreeMap<String, Scalar>,
    }

    #[derive(Debug, Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Bios {
        /// Old.
        Seabios,
        /// New.
        Ovmf,
    }

    #[derive(Debug, Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields)]
    struct Disk {
        storage: String,
        size: Option<Size>,
    }

    #[derive(Debug, Deserialize, Serialize, JsonSchema)]
    #[serde(untagged)]
    enum Agent {
        Switch(bool),
        Full(Disk),
    }

    fn findings(spec: &str) -> (Option<Spec>, Vec<(String, String)>) {
        let mut report = Report::new();
        let spec = read::<Spec>(spec, &mut report);
        (spec, report.into_diagnostics().into_iter().map(|d| (d.at, d.message)).collect())
    }

    #[test]
    fn a_right_spec_has_no_findings() {
        let (spec, found) = findings(
            r#"{"memory":"2GiB","vmid":100,"bios":"ovmf","agent":true,"disks":[{"storage":"a","size":null}],"extra":{"a":1,"b":"x"}}"#,
        );
        assert_eq!(found, []);
        let spec = spec.unwrap();
        assert_eq!(spec.memory, Size(2 << 30));
        assert_eq!(spec.extra["a"].as_str(), "1");
    }

    #[test]
    fn every_mistake_is_found_at_its_place() {
        let (spec, found) = findings(
            r#"{"memory":12,"vmid":5,"bios":"uefi","disks":[{"storage":"a","size":"0.1K"},{"sise":1}],"agent":"x","memroy":"1G","extra":{"k":[]}}"#,
        );
        let expected = [
            ("/spec/agent", "`agent` must be true or false or a map of fields, not \"x\""),
            ("/spec/bios", "`bios` must be seabios or ovmf, not \"uefi\""),
            ("/spec/disks/0/size", "`size` must be a whole number of bytes, which \"0.1K\" is not"),
            ("/spec/disks/1/sise", "`sise` is not a field of `disks[1]`"),
            ("/spec/disks/1/storage", "`disks[1]` needs `storage`"),
            ("/spec/extra/k", "`k` must be text or a number or true or false, not a list"),
            ("/spec/memory", "`memory` must be a size such as 2GiB, not 12"),
            ("/spec/memroy", "`memroy` is not a field of `spec`"),
            ("/spec/vmid", "`vmid` must be between 100 and 999, not 5"),
        ];
        let found: Vec<(&str, &str)> = found.iter().map(|(a, m)| (a.as_str(), m.as_str())).collect();
        assert_eq!(found, expected);
        // The rest was still read.
        let spec = spec.unwrap();
        assert_eq!(spec.disks[0].storage, "a");
        assert_eq!(spec.vmid, 100);
    }

    #[test]
    fn the_same_mistake_twice_is_found_twice() {
        let (spec, found) = findings(
            r#"{"memory":"0.1K","vmid":100,"disks":[{"storage":"a","size":"0.1K"},{"storage":"b"},{"storage":"c","size":"0.1K"}]}"#,
        );
        let places: Vec<&str> = found.iter().map(|(at, _)| at.as_str()).collect();
        assert_eq!(places, ["/spec/disks/0/size", "/spec/disks/2/size", "/spec/memory"]);
        assert_eq!(spec.unwrap().disks[2].storage, "c");
    }

    #[test]
    fn an_unknown_field_names_its_neighbours() {
        let mut report = Report::new();
        let _ =
            read::<Spec>(r#"{"memory":"1G","vmid":100,"disks":[{"storage":"a","sise":"1G"}]}"#, &mut report);
        let help = report.diagnostics()[0].help.clone().unwrap();
        assert!(help.contains("did you mean `size`?") && help.contains("storage"), "{help}");
    }

    #[test]
    fn remarks_about_broken_fields_are_dropped() {
        let mut report = Report::new();
        let _ = read::<Spec>(r#"{"memory":1,"vmid":100}"#, &mut report);
        report.error("/spec/memory", "too-small", "not true");
        report.error("/spec/vmid", "taken", "true");
        assert_eq!(report.diagnostics().len(), 2);
        assert!(
            report.is_broken("/spec/memory") && !report.is_broken("/spec/vmid") && !report.is_whole("/spec")
        );
    }

    #[test]
    fn what_is_no_object_is_an_error_and_no_panic() {
        for spec in ["", "[]", "1", "null", "{", "{\"memory\":{\"a\":{}}}"] {
            let mut report = Report::new();
            let _ = read::<Spec>(spec, &mut report);
            assert!(report.has_errors(), "{spec}");
        }
    }
}
