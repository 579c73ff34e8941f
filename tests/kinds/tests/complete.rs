//! The generators know every field of every kind, and every word of every choice.

use proxops_kind_tests::draw::Draw;
use proxops_kind_tests::kinds::ALL;
use proxops_kind_tests::schema::produced;
use std::collections::{BTreeMap, BTreeSet};

/// Fields that no random manifest has, with the reason.
const LEFT_OUT: &[(&str, &str, &str)] = &[];

#[test]
fn every_field_and_every_choice_is_produced() {
    for kind in ALL {
        let known = kind.fields();
        let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for case in 0..3_000 {
            let spec = (kind.spec)(&mut Draw::new(case));
            produced(&known, &spec, &mut |path, value| {
                let values = seen.entry(path.to_owned()).or_default();
                if values.len() < 64 {
                    values.insert(value.to_string());
                }
            });
        }
        for (path, field) in &known {
            let reason = LEFT_OUT.iter().find(|(k, p, _)| *k == kind.name && p == path);
            let Some(values) = seen.get(path) else {
                assert!(reason.is_some(), "{}: no manifest has {path}", kind.name);
                continue;
            };
            assert!(reason.is_none(), "{}: {path} is produced, and listed as left out", kind.name);
            for choice in &field.choices {
                // A template never runs.
                let impossible = kind.template && path == "state" && choice == "started";
                assert!(
                    impossible || values.contains(&choice.to_string()),
                    "{}: {path} is never {choice}",
                    kind.name
                );
            }
            let both = field.types == ["boolean"];
            assert!(!both || values.len() == 2, "{}: {path} is only {values:?}", kind.name);
        }
    }
}
