//! Property strings: `[default,]key=value,...` (facts T10, T21, Q35).

use std::collections::BTreeMap;

use super::check::{self, UNKNOWN, parse_flag};
use super::{Kind, Param, Table};

/// Keys and values of a property string under their canonical names, booleans as `0` or `1`.
pub type Props = BTreeMap<&'static str, String>;

fn find(table: Table, name: &str) -> Option<&'static Param> {
    table.iter().flat_map(|group| group.iter()).find(|p| p.name == name)
}

/// Splits a text into keys and values without looking at the values.
///
/// # Errors
/// Unknown key, key twice, bare word without a default key, or a key without value.
pub fn parse(table: Table, text: &str, path: &str) -> Result<Props, String> {
    let mut props = Props::new();
    // PVE's parser passes over blank parts; by the letter of the schema they are values. Stricter.
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (param, value) = match part.split_once('=') {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                let param =
                    find(table, key).ok_or_else(|| format!("format error\n{path}.{key}: {UNKNOWN}"))?;
                (param, value)
            }
            Some(_) => return Err("missing key in comma-separated list property".to_owned()),
            None => {
                let param =
                    table.iter().flat_map(|group| group.iter()).find(|p| p.bare).ok_or_else(|| {
                        "value without key, but schema does not define a default key".to_owned()
                    })?;
                (param, part)
            }
        };
        if !param.key_alias.is_empty() {
            put(&mut props, param.key_alias, param.name.to_owned())?;
        }
        let target = match param.kind {
            Kind::Alias => find(table, param.alias).unwrap_or(param),
            _ => param,
        };
        let value = match (target.kind, parse_flag(value)) {
            (Kind::Flag, Some(yes)) => if yes { "1" } else { "0" }.to_owned(),
            _ => value.to_owned(),
        };
        put(&mut props, target.name, value)?;
    }
    Ok(props)
}

fn put(props: &mut Props, name: &'static str, value: String) -> Result<(), String> {
    match props.insert(name, value) {
        None => Ok(()),
        Some(_) => Err(format!("duplicate key in comma-separated list property: {name}")),
    }
}

/// Parses and checks every value.
///
/// # Errors
/// The text behind `invalid format - `.
pub fn check(table: Table, text: &str, path: &str) -> Result<(), String> {
    let props = parse(table, text, path)?;
    let mut errors = Vec::new();
    for param in table.iter().flat_map(|group| group.iter()).filter(|p| p.kind != Kind::Alias) {
        match props.get(param.name) {
            Some(value) => {
                let key = format!("{path}.{}", param.name);
                if let Err(why) = check::text_ok(param, value, &key, true) {
                    errors.push(format!("{key}: {}", why.trim_end()));
                }
                if !param.needs.is_empty() && !props.contains_key(param.needs) {
                    errors.push(format!(
                        "{path}.{}: missing property required by '{}'",
                        param.needs, param.name
                    ));
                }
            }
            None if param.required => {
                errors.push(format!("{path}.{}: property is missing and it is not optional", param.name));
            }
            None => {}
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(format!("format error\n{}", errors.join("\n"))) }
}

/// Prints as PVE does: the default key bare, then required keys, then the rest by alphabet.
pub fn print(table: Table, props: &Props) -> String {
    let rank = |name: &str| match find(table, name) {
        Some(param) if param.bare => 0,
        Some(param) if param.required => 1,
        _ => 2,
    };
    let mut keys: Vec<_> = props.iter().collect();
    keys.sort_by_key(|(name, _)| (rank(name), **name));
    let parts: Vec<String> = keys
        .into_iter()
        .map(|(name, value)| if rank(name) == 0 { value.clone() } else { format!("{name}={value}") })
        .collect();
    parts.join(",")
}
