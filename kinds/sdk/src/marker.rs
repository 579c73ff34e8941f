//! The proof that an object is ours: the marker `proxops:<owner-tag>:<kind>/<name>` in a text field.
//!
//! A kind with `ownership: marker(...)` writes it and takes it out again before it compares.

use crate::{Context, ObjectView};

/// The marker of a resource.
pub fn of(context: &Context, kind: &str, name: &str) -> String {
    format!("proxops:{}:{kind}/{name}", context.owner_tag)
}

/// A text with the marker as its last line, for fields that keep line breaks.
pub fn line(text: &str, marker: &str) -> String {
    join(text, "\n", marker)
}

/// A text with the marker as its last word, for fields that are a single line.
pub fn word(text: &str, marker: &str) -> String {
    join(text, " ", marker)
}

fn join(text: &str, between: &str, marker: &str) -> String {
    match text.trim_end() {
        "" => marker.to_owned(),
        text => format!("{text}{between}{marker}"),
    }
}

/// A live text without its marker, whoever's it is: what a person wrote.
pub fn without(text: &str) -> String {
    let is_marker = |word: &str| {
        word.strip_prefix("proxops:").is_some_and(|rest| {
            !rest.contains(char::is_whitespace) && rest.split_once(':').is_some_and(|(_, r)| r.contains('/'))
        })
    };
    let mut lines: Vec<&str> = text.lines().filter(|line| !is_marker(line.trim())).collect();
    if let [only] = lines[..]
        && let Some((rest, last)) = only.trim_end().rsplit_once(char::is_whitespace)
        && is_marker(last)
    {
        lines = vec![rest];
    }
    lines.join("\n").trim_end().to_owned()
}

/// What a person wrote into a field of a live object's list row.
pub fn plain_row(view: &ObjectView<'_>, field: &str) -> String {
    without(view.row(field).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_goes_in_and_comes_out_again() {
        let marker = of(&Context::default(), "Pool", "web");
        assert_eq!(marker, "proxops:proxops:Pool/web");
        for text in ["", "Web", "Web servers\nof the lab"] {
            assert_eq!(without(&line(text, &marker)), text);
        }
        for text in ["", "Web", "Web servers of the lab"] {
            assert_eq!(without(&word(text, &marker)), text);
        }
    }

    #[test]
    fn what_only_looks_like_a_marker_stays() {
        for text in ["see proxops: the tool", "proxops:x", "a proxops:a:K/n b"] {
            assert_eq!(without(text), text);
        }
    }
}
