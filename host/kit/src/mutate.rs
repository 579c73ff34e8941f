//! Other values for a field, guessed from its schema and from the value that an example has.

use crate::schema::Node;
use proxops_model::text::scalar;
use serde_json::{Value, json};

/// Most guesses a field.
const MOST: usize = 40;
/// Texts that some field of a guest takes.
const TYPICAL: &[&str] = &[
    "kit-2",
    "kit2",
    "kit",
    "2",
    "2GiB",
    "local:snippets/kit.yaml",
    "192.0.2.7/24",
    "192.0.2.1",
    "2001:db8::7/64",
    "2001:db8::1",
    "BC:24:11:00:00:77",
    "dhcp",
    "socket",
    "q35",
    "1-2",
    "0000:01:00.0",
    "scsi5",
    "net1",
    "local-lvm",
];

/// Values that differ from `current`, the likeliest first. Which of them are valid only the kind knows.
pub(crate) fn candidates(node: &Node<'_>, current: Option<&Value>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    out.extend(node.choices().into_iter().cloned());
    let types = node.types();
    // the form that the example has comes first; other forms only if there is none
    let is = |name: &str| types.contains(&name);
    match current {
        Some(Value::Bool(flag)) => out.push(json!(!flag)),
        Some(Value::Number(_)) => numbers(node, current.and_then(Value::as_f64), is("number"), &mut out),
        Some(Value::String(text)) => texts(node, Some(text), &mut out),
        Some(Value::Array(list)) => lists(node, list, &mut out),
        Some(Value::Object(map)) => {
            for (key, value) in map {
                let free = node.free_keys();
                for other in free.iter().flat_map(|free| candidates(free, Some(value))) {
                    let mut map = map.clone();
                    map.insert(key.clone(), other);
                    out.push(Value::Object(map));
                }
            }
        }
        Some(Value::Null) | None => {
            if is("boolean") && !is("string") {
                out.extend([json!(true), json!(false)]);
            }
            if is("integer") || is("number") {
                numbers(node, None, false, &mut out);
            }
            if is("string") {
                texts(node, None, &mut out);
            }
            if is("array") && node.items().is_none_or(|items| items.fields().is_empty()) {
                lists(node, &[], &mut out);
            }
        }
    }
    let mut seen = Vec::new();
    out.retain(|value| {
        let fresh = Some(value) != current && !seen.contains(value);
        seen.push(value.clone());
        fresh
    });
    out.truncate(MOST);
    out
}

fn numbers(node: &Node<'_>, current: Option<f64>, fractions: bool, out: &mut Vec<Value>) {
    let bound = |name: &str| node.keyword(name).and_then(Value::as_f64);
    let (low, high) = (bound("minimum"), bound("maximum"));
    let default = node.keyword("default").and_then(Value::as_f64);
    let mut guesses: Vec<f64> = match current {
        Some(now) => vec![now + 1.0, now - 1.0, now * 2.0],
        None => vec![default.or(low).unwrap_or(1.0) + 1.0, low.unwrap_or(1.0), 2.0],
    };
    guesses.extend(low);
    guesses.extend(high);
    guesses.retain(|n| low.is_none_or(|low| *n >= low) && high.is_none_or(|high| *n <= high));
    out.extend(guesses.into_iter().map(|n| {
        if n.fract() == 0.0 && n.abs() < 1e15 {
            json!(n as i64)
        } else if fractions {
            json!(n)
        } else {
            json!(n.floor() as i64)
        }
    }));
}

fn texts(node: &Node<'_>, current: Option<&str>, out: &mut Vec<Value>) {
    if let Some(now) = current {
        out.extend(step_numbers(now).into_iter().map(Value::from));
        if let Some((stem, ending)) = now.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
            out.push(json!(format!("{stem}-b.{ending}")));
        }
        out.push(json!(format!("{now}2")));
        out.push(json!(format!("{now}b")));
        out.push(json!(format!("b{now}")));
    }
    for words in ["x-expect", "x-placeholder", "default", "description"]
        .map(|name| node.text(name))
        .into_iter()
        .flatten()
    {
        for word in examples(words) {
            out.extend(step_numbers(&word).into_iter().map(Value::from));
            out.push(Value::from(word));
        }
    }
    out.extend(TYPICAL.iter().map(|text| json!(text)));
}

/// The last number one higher, then one lower; then the same for the first.
fn step_numbers(text: &str) -> Vec<String> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, c) in text.char_indices() {
        if c.is_ascii_digit() {
            match runs.last_mut() {
                Some((_, end)) if *end == at => *end = at + 1,
                _ => runs.push((at, at + 1)),
            }
        }
    }
    let mut out = Vec::new();
    for (start, end) in runs.last().into_iter().chain(runs.first()) {
        let (before, rest) = text.split_at(*start);
        let (digits, after) = rest.split_at(end - start);
        let Ok(number) = digits.parse::<u64>() else { continue };
        for next in [number.checked_add(1), number.checked_sub(1)].into_iter().flatten() {
            out.push(format!("{before}{next:0width$}{after}", width = digits.len()));
        }
    }
    out
}

/// Words that a text gives as examples: "such as A, B or C", and a text that is one word.
fn examples(text: &str) -> Vec<String> {
    let clean = |word: &str| word.trim_matches(|c: char| "\"`'.,;:()".contains(c)).to_owned();
    let mut out: Vec<String> = Vec::new();
    if !text.contains(' ') {
        out.push(clean(text));
    }
    for tail in text.split("such as ").skip(1) {
        let sentence = tail.split(". ").next().unwrap_or(tail);
        out.extend(sentence.split([' ', ',']).map(clean).filter(|w| !w.is_empty()).take(4));
    }
    // every second piece between backticks is quoted
    out.extend(text.split('`').skip(1).step_by(2).map(clean));
    out.retain(|word| !matches!(word.as_str(), "or" | "and" | "a" | ""));
    out
}

fn lists(node: &Node<'_>, current: &[Value], out: &mut Vec<Value>) {
    let items = node.items();
    if let (Some(items), Some(last)) = (&items, current.last()) {
        for other in candidates(items, Some(last)).into_iter().take(4) {
            let mut changed = current.to_vec();
            changed.pop();
            changed.push(other.clone());
            out.push(Value::Array(changed));
            let mut longer = current.to_vec();
            longer.push(other);
            out.push(Value::Array(longer));
        }
    }
    if current.len() > 1 {
        out.push(Value::Array(current.iter().take(current.len() - 1).cloned().collect()));
        out.push(Value::Array(current.iter().rev().cloned().collect()));
    }
    if current.is_empty() {
        let mut guesses: Vec<Value> = items.iter().flat_map(|items| candidates(items, None)).collect();
        let words = node.text("description").unwrap_or_default();
        guesses.extend(
            words
                .split(|c: char| !c.is_ascii_alphanumeric() && !"-+/.".contains(c))
                .filter(|w| w.len() > 2)
                .map(Value::from),
        );
        out.extend(guesses.into_iter().map(|guess| Value::Array(vec![guess])));
    }
}

/// A value in a message, short.
pub(crate) fn shown(value: &Value) -> String {
    let text = scalar(value).unwrap_or_else(|| value.to_string());
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: Value, current: Option<Value>) -> Vec<Value> {
        candidates(&Node::root(&schema), current.as_ref())
    }

    #[test]
    fn closed_sets_ranges_and_switches_give_what_they_allow() {
        assert_eq!(of(json!({"enum": ["a", "b"]}), Some(json!("a"))).first(), Some(&json!("b")));
        assert_eq!(of(json!({"type": "boolean"}), Some(json!(true))), [json!(false)]);
        let numbers = of(json!({"type": "integer", "minimum": 1, "maximum": 4}), Some(json!(4)));
        assert_eq!(numbers, [json!(3), json!(1)]);
    }

    #[test]
    fn texts_keep_their_form() {
        for (now, next) in [
            ("32GiB", "33GiB"),
            ("192.0.2.10/24", "192.0.2.10/25"),
            ("BC:24:11:00:00:09", "BC:24:11:00:00:10"),
        ] {
            assert_eq!(of(json!({"type": "string"}), Some(json!(now))).first(), Some(&json!(next)));
        }
        let guessed =
            of(json!({"type": "string", "description": "Device such as /dev/sdb. Needs root."}), None);
        assert!(guessed.contains(&json!("/dev/sdb")), "{guessed:?}");
    }
}
