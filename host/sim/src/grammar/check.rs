//! Checks a call's parameters against a table and turns them into plain texts.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, RwLock};

use regex::Regex;
use serde_json::{Map, Value};

use super::{Format, Kind, Param, Table, formats, lookup, property};

/// The answer to an unknown parameter or key (fact T21).
pub const UNKNOWN: &str =
    "property is not defined in schema and the schema does not allow additional properties";
const MISSING: &str = "property is missing and it is not optional";

/// Parameters after the check: texts, booleans as `0` or `1`.
pub type Args = BTreeMap<String, String>;
/// Error texts by parameter, as in the `errors` of a 400.
pub type Errors = BTreeMap<String, String>;

/// Checks `params` and returns them as texts.
///
/// # Errors
/// One text per refused parameter, in PVE's words (facts T9, T10, T21, T22).
pub fn check(table: Table, params: &Map<String, Value>) -> Result<Args, Errors> {
    let mut args = Args::new();
    let mut errors = Errors::new();
    for (name, value) in params {
        let Some(param) = lookup(table, name) else {
            add(&mut errors, name, UNKNOWN.to_owned());
            continue;
        };
        match scalar(param, value).and_then(|text| text_ok(param, &text, name, false).map(|()| text)) {
            Ok(text) => {
                args.insert(name.clone(), text);
            }
            Err(text) => add(&mut errors, name, text),
        }
        if !param.needs.is_empty() && !params.contains_key(param.needs) {
            add(&mut errors, param.needs, format!("missing property required by '{name}'"));
        }
    }
    for param in table.iter().flat_map(|group| group.iter()) {
        if param.required && param.index.is_none() && !params.contains_key(param.name) {
            add(&mut errors, param.name, MISSING.to_owned());
        }
    }
    if errors.is_empty() { Ok(args) } else { Err(errors) }
}

/// Several errors on one parameter are joined by a newline (fact T22).
fn add(errors: &mut Errors, name: &str, text: String) {
    errors
        .entry(name.to_owned())
        .and_modify(|all| {
            all.push('\n');
            all.push_str(&text);
        })
        .or_insert(text);
}

/// A JSON value as the text that a form would have carried (fact T9).
fn scalar(param: &Param, value: &Value) -> Result<String, String> {
    let kind = kind_name(param.kind);
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(yes) if param.kind == Kind::Flag => Ok(if *yes { "1" } else { "0" }.to_owned()),
        // JSON booleans outside of boolean parameters are 1 and the empty string in Perl
        Value::Bool(yes) => Ok(if *yes { "1" } else { "" }.to_owned()),
        Value::Array(items) if is_list(param) => items
            .iter()
            .map(|item| scalar(param, item))
            .collect::<Result<Vec<_>, _>>()
            .map(|all| all.join(",")),
        Value::Array(_) => Err(format!("type check ('{kind}') failed - got ARRAY")),
        Value::Object(_) => Err(format!("type check ('{kind}') failed - got HASH")),
        Value::Null => Err(format!("type check ('{kind}') failed - got ''")),
    }
}

fn is_list(param: &Param) -> bool {
    matches!(param.format, Format::Named(name) if name.ends_with("-list"))
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Alias => "string",
        Kind::Integer => "integer",
        Kind::Number => "number",
        Kind::Flag => "boolean",
    }
}

/// Checks one text; `inside` a property string booleans have the wide grammar (fact T10).
///
/// # Errors
/// The first rule that the text breaks, in PVE's words.
pub fn text_ok(param: &Param, text: &str, path: &str, inside: bool) -> Result<(), String> {
    let numeric = match param.kind {
        Kind::Flag => {
            let good = if inside { parse_flag(text).is_some() } else { text == "0" || text == "1" };
            return if good { Ok(()) } else { Err(format!("type check ('boolean') failed - got '{text}'")) };
        }
        Kind::Integer if !matches("[+-]?\\d+", text) => {
            return Err(format!("type check ('integer') failed - got '{text}'"));
        }
        Kind::Number if !looks_numeric(text) => {
            return Err(format!("type check ('number') failed - got '{text}'"));
        }
        _ => param.kind != Kind::Text || looks_numeric(text),
    };
    let length = text.chars().count();
    if let Some(max) = param.max_len
        && length > max
    {
        return Err(format!("value may only be {max} characters long"));
    }
    if let Some(min) = param.min_len
        && length < min
    {
        return Err(format!("value must be at least {min} characters long"));
    }
    if numeric && let Ok(value) = text.parse::<f64>() {
        if let Some(min) = param.min
            && value < min as f64
        {
            return Err(format!("value must have a minimum value of {min}"));
        }
        if let Some(max) = param.max
            && value > max as f64
        {
            return Err(format!("value must have a maximum value of {max}"));
        }
    }
    if !param.values.is_empty() && !param.values.split(' ').any(|allowed| allowed == text) {
        let all = param.values.replace(' ', ", ");
        return Err(format!("value '{text}' does not have a value in the enumeration '{all}'"));
    }
    if !param.pattern.is_empty() && !matches(param.pattern, text) {
        return Err("value does not match the regex pattern".to_owned());
    }
    match param.format {
        Format::Any => Ok(()),
        Format::Named(name) => formats::check(name, text).map_err(|why| format!("invalid format - {why}\n")),
        Format::Props(table) => {
            property::check(table, text, path).map_err(|why| format!("invalid format - {why}\n"))
        }
    }
}

/// The wide boolean grammar of property strings.
pub fn parse_flag(text: &str) -> Option<bool> {
    let one_of = |words: [&str; 4]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if one_of(["1", "on", "yes", "true"]) {
        Some(true)
    } else if one_of(["0", "off", "no", "false"]) {
        Some(false)
    } else {
        None
    }
}

fn looks_numeric(text: &str) -> bool {
    matches(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text)
}

/// Compiled patterns; `None` for one that does not compile, which then matches nothing.
type Patterns = RwLock<HashMap<&'static str, Option<Arc<Regex>>>>;
static PATTERNS: LazyLock<Patterns> = LazyLock::new(Patterns::default);

/// Whether the whole text matches; patterns are compiled once.
pub fn matches(pattern: &'static str, text: &str) -> bool {
    let known = PATTERNS.read().ok().and_then(|all| all.get(pattern).cloned());
    let regex = known.unwrap_or_else(|| {
        let fresh = Regex::new(&format!(r"^(?s:{pattern})$")).ok().map(Arc::new);
        if let Ok(mut all) = PATTERNS.write() {
            all.insert(pattern, fresh.clone());
        }
        fresh
    });
    regex.is_some_and(|regex| regex.is_match(text))
}
