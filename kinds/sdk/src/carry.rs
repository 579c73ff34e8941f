//! What of an answer the host can carry. A manifest or a live value may hold any text, the contract's names,
//! pointers and messages may not; a kind that passed such a text on would count as broken, not its input.

use crate::text::quoted;
use crate::{
    Adopted, Anomaly, Change, Diagnostic, DriftReport, Identity, Refusal, Report, Step, Validated, Value,
};

/// Longest pointer in bytes.
const POINTER: usize = 1000;

/// Characters that could repaint a terminal or turn a line around.
fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

fn is_text(text: &str, most: usize) -> bool {
    !text.is_empty() && text.len() <= most && !text.contains(is_control)
}

/// A name: letters, digits, `.`, `_` and `-`, a letter or digit first.
fn is_word(text: &str) -> bool {
    text.len() <= 100
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// Something that can be one segment of an API path.
fn is_segment(text: &str) -> bool {
    let bad =
        |c: char| matches!(c, '/' | '\\' | '%' | '?' | '#' | ';') || !c.is_ascii() || c.is_ascii_control();
    !text.is_empty() && text.len() <= 255 && text != "." && text != ".." && !text.contains(bad)
}

/// Something that can be one segment of an object's path.
fn is_plain(text: &str) -> bool {
    is_segment(text) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:@!+".contains(&b))
}

/// A diagnostic about a field whose name can't be carried points at the field above it.
pub(crate) fn diagnostic(mut d: Diagnostic) -> Diagnostic {
    while d.at.len() > POINTER || d.at.contains(is_control) {
        match d.at.rfind('/') {
            Some(end) => d.at.truncate(end),
            None => break,
        }
    }
    clean(&mut d.message);
    d.help.iter_mut().for_each(clean);
    d
}

/// The same for all diagnostics of a refusal.
pub(crate) fn refusal(list: Refusal) -> Refusal {
    list.into_iter().map(diagnostic).collect()
}

/// NUL is shown as what can't be shown.
fn clean(text: &mut String) {
    if text.contains('\0') {
        *text = text.replace('\0', "\u{fffd}");
    }
}

/// What people read of a drift report. A container's `env` has NUL between its entries and may keep it.
pub(crate) fn report(report: &mut DriftReport) {
    let shown = |change: &mut Change| {
        if change.key != "env" {
            change.before.iter_mut().chain(&mut change.after).for_each(clean);
        }
    };
    report.changes.iter_mut().for_each(shown);
    report.pending.iter_mut().for_each(shown);
    // A write carries live parts along; PVE takes NUL nowhere else.
    for step in &mut report.steps {
        let Step::Configure(write) = step else { continue };
        for param in write.set.iter_mut().filter(|param| param.key != "env") {
            if let Value::Text(text) = &mut param.value {
                text.retain(|c| c != '\0');
            }
        }
    }
    report.anomalies.iter_mut().for_each(|anomaly: &mut Anomaly| {
        clean(&mut anomaly.message);
        anomaly.key.iter_mut().chain(&mut anomaly.help).for_each(clean);
    });
}

/// The same for what `adopt` leaves out.
pub(crate) fn adopted(adopted: &mut Adopted) {
    for gap in &mut adopted.gaps {
        clean(&mut gap.key);
        clean(&mut gap.why);
        if gap.key != "env" {
            gap.value.iter_mut().for_each(clean);
        }
    }
}

/// Takes out what can't be carried; each such thing is an error of the manifest.
pub(crate) fn validated(validated: Option<Validated>, report: &mut Report) -> Option<Validated> {
    let mut v = validated?;
    let mut refuse = |at: &str, what: &str, text: &str| {
        // The kind's own words about the place or a part of it (`nodes/0` for `node`) are better.
        if !report.diagnostics().iter().any(|d| d.at.starts_with(at)) {
            report.error(at, "bad-name", format!("{} is no {what}", quoted(text)));
        }
        false
    };
    v.references.retain(|r| is_word(&r.to.name) || refuse(&r.at, "resource's name", &r.to.name));
    v.references.retain(|r| is_word(&r.to.kind) || refuse(&r.at, "kind's name", &r.to.kind));
    v.secrets.retain(|s| is_text(&s.name, 200) || refuse(&s.at, "name in the secrets document", &s.name));
    v.storages.retain(|s| {
        let node = s.node.as_deref().unwrap_or("any");
        (is_word(&s.storage) || refuse(&s.at, "storage's name", &s.storage))
            && (is_word(node) || refuse("/spec/node", "node's name", node))
    });
    v.attributes.retain(|(_, value)| !value.contains('\0'));
    let good = match &mut v.identity {
        Identity::Guest(guest) => {
            if let Some(name) = guest.name.take_if(|name| !is_text(name, 255)) {
                refuse("/metadata/name", "guest's name", &name);
            }
            is_word(&guest.node) || refuse("/spec/node", "node's name", &guest.node)
        }
        Identity::Artifact(placements) => {
            placements.retain(|p| {
                (is_word(&p.node) || refuse("/spec/node", "node's name", &p.node))
                    && (is_word(&p.storage) || refuse("/spec/storage", "storage's name", &p.storage))
                    && (is_segment(&p.filename) || refuse("/spec/filename", "file's name", &p.filename))
            });
            true
        }
        Identity::Object(object) => {
            // an id that travels as a parameter may hold slashes, as a nested pool's does
            let plain = object.id.len() <= 255 && object.id.split('/').all(is_plain);
            plain && object.vars.iter().all(|(_, value)| is_plain(value))
                || refuse("/spec", "object's id", &object.id)
        }
        Identity::Other(_) => true,
    };
    good.then_some(v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reference, SecretClass, SecretUse, StorageUse};

    #[test]
    fn a_field_whose_name_can_not_be_carried_is_told_at_the_one_above() {
        for name in ["a\nb".to_owned(), "\u{202e}txt".to_owned(), "\0".to_owned(), "x".repeat(2000)] {
            let mut report = Report::new();
            report.error(format!("/spec/cpu/{name}"), "unknown-field", format!("no `{name}`"));
            let found = report.into_diagnostics();
            assert_eq!(found.first().map(|d| d.at.as_str()), Some("/spec/cpu"));
            assert!(!found.iter().any(|d| d.message.contains('\0')));
        }
    }

    #[test]
    fn names_that_nobody_can_have_are_mistakes_of_the_manifest() {
        let mut v = Validated::new(Identity::guest_id("pve01", 100, Some(&"a".repeat(300))));
        v.references.push(Reference::new("ISO", ",,=", "/spec/iso"));
        v.references.push(Reference::new("ISO", "debian", "/spec/other"));
        v.secrets.push(SecretUse::new("a\nb", SecretClass::Password, "/spec/password"));
        v.storages.push(StorageUse::new("../x", "images", "/spec/storage"));
        v.storages.push(StorageUse::new("local", "iso", "/spec/storage").on("10.0.0.1/33"));
        let mut report = Report::new();
        let v = validated(Some(v), &mut report).expect("the rest is good");
        assert_eq!((v.references.len(), v.secrets.len(), v.storages.len()), (1, 0, 0));
        let places: Vec<String> = report.into_diagnostics().into_iter().map(|d| d.at).collect();
        assert_eq!(places, ["/metadata/name", "/spec/iso", "/spec/node", "/spec/password", "/spec/storage"]);
        let mut report = Report::new();
        assert!(validated(Some(Validated::new(Identity::guest_id("a b", 100, None))), &mut report).is_none());
        assert!(report.has_errors());
    }
}
