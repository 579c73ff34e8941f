//! Input that no honest host sends: the kind says what is wrong and does not break.

use crate::life::{Example, Made};
use crate::report::Check;
use proxops_model::kind::{Context, KindApi, KindFault, Live, LiveValue, Manifest, Refusal};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The same inputs in every run.
const SEED: u64 = 0x70_72_6f_78_6f_70_73;
/// Manifests that are tried.
const MANIFESTS: usize = 300;
/// Reports of live objects that are tried, in drift and in adopt.
const REPORTS: usize = 150;

/// splitmix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.roll() % most.max(1) as u64).unwrap_or(0)
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        let index = self.below(list.len());
        list.get(index)
    }

    fn text(&mut self) -> String {
        const TEXTS: &[&str] = &[
            "",
            " ",
            "0",
            "-1",
            "1",
            "18446744073709551616",
            "1e309",
            "NaN",
            "true",
            "none",
            "null",
            "*",
            ",",
            "=",
            ",,=,=",
            "a=b=c",
            "x:",
            ":",
            "local:",
            "local:iso/../../etc/passwd",
            "../..",
            "%2e%2e%2f",
            "a/b",
            "a;b c,d",
            "\u{0}",
            "\n",
            "\r\n\t",
            "\u{1b}[2J",
            "\u{202e}txt",
            "\u{feff}",
            "é",
            "日本語",
            "🦀",
            "size=",
            "size=1G,size=2G",
            "999999999999T",
            "virtio",
            "virtio=zz",
            "order=",
            "order=scsi0;scsi0",
            "ip=dhcp,ip=dhcp",
            "10.0.0.1/33",
            "::/129",
            "[",
            "{\"a\":1}",
        ];
        match self.below(12) {
            0 => "a".repeat(1 + self.below(20_000)),
            1 => (0..self.below(40))
                .filter_map(|_| char::from_u32(u32::try_from(self.roll() % 0x11_0000).ok()?))
                .collect(),
            2 => format!(
                "{},{}",
                self.pick(TEXTS).copied().unwrap_or_default(),
                self.pick(TEXTS).copied().unwrap_or_default()
            ),
            _ => self.pick(TEXTS).copied().unwrap_or_default().to_owned(),
        }
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 8 } else { 10 }) {
            0 => Value::Null,
            1 => json!(self.roll() & 1 == 1),
            2 => json!(self.roll()),
            3 => json!(-i64::from(u32::try_from(self.roll() >> 33).unwrap_or(0))),
            4 => json!([f64::MAX, -0.0, 0.1, 1e-320, 4294967296.0][self.below(5)]),
            8 => Value::Array((0..self.below(6)).map(|_| self.value(depth - 1)).collect()),
            9 => Value::Object((0..self.below(6)).map(|_| (self.text(), self.value(depth - 1))).collect()),
            _ => Value::String(self.text()),
        }
    }

    /// Changes one place somewhere in a value.
    fn spoil(&mut self, value: &mut Value) {
        let deeper = self.below(4) > 0;
        match value {
            Value::Object(map) if deeper && !map.is_empty() => {
                let names: Vec<String> = map.keys().cloned().collect();
                let Some(name) = self.pick(&names).cloned() else { return };
                match self.below(8) {
                    0 => drop(map.remove(&name)),
                    1 => drop(map.insert(self.text(), self.value(2))),
                    _ => {
                        if let Some(inner) = map.get_mut(&name) {
                            self.spoil(inner);
                        }
                    }
                }
            }
            Value::Array(list) if deeper && !list.is_empty() => {
                let index = self.below(list.len());
                match (self.below(6), list.get(index).cloned()) {
                    (0, Some(again)) => list.push(again),
                    (1, _) => drop(list.remove(index)),
                    _ => {
                        if let Some(inner) = list.get_mut(index) {
                            self.spoil(inner);
                        }
                    }
                }
            }
            other => *other = self.value(3),
        }
    }

    fn live(&mut self, live: &Live) -> Live {
        let mut live = live.clone();
        let values = match &mut live {
            Live::Guest(guest) => {
                let guest = Arc::make_mut(guest);
                if self.below(8) == 0 {
                    guest.name = Some(self.text());
                }
                &mut guest.values
            }
            Live::Object(object) => &mut object.values,
            Live::Artifact(states) => {
                for state in states {
                    state.size = Some(self.roll());
                }
                return live;
            }
        };
        for _ in 0..1 + self.below(4) {
            let keys: Vec<String> = values.keys().cloned().collect();
            let key = match self.below(5) {
                0 => self.text(),
                1 => format!(
                    "{}{}",
                    ["net", "scsi", "mp", "dev", "ide", "hostpci", "unused", "ipconfig"][self.below(8)],
                    self.below(400)
                ),
                _ => self.pick(&keys).cloned().unwrap_or_default(),
            };
            let value = match self.below(8) {
                0 => LiveValue::Json(self.value(3).to_string()),
                1 => LiveValue::Text(format!(
                    "{},{}",
                    values.get(&key).and_then(LiveValue::text).unwrap_or_default(),
                    self.text()
                )),
                _ => LiveValue::Text(self.text()),
            };
            values.insert(key, value);
        }
        live
    }
}

/// Counts, and keeps the first fault of each sort.
struct Faults {
    check: Check,
    asked: usize,
    broken: usize,
    sorts: BTreeSet<String>,
}

impl Faults {
    fn asked(&mut self, fault: Option<KindFault>, input: impl FnOnce() -> String) {
        self.asked += 1;
        if let Some(fault) = fault {
            self.broken += 1;
            // what is quoted differs from input to input
            let sort: String = fault.message.split('"').step_by(2).collect();
            if self.sorts.insert(format!("{} {sort}", fault.function)) {
                let input: String = input().chars().take(300).collect();
                self.check.problem(format!("{fault}; asked about {input}"));
            }
        }
    }
}

fn fault<T>(answer: Result<T, Refusal>) -> Option<KindFault> {
    match answer {
        Err(Refusal::Fault(fault)) => Some(fault),
        _ => None,
    }
}

pub(crate) fn check(kind: &dyn KindApi, examples: &[Example], made: &[Made<'_>]) -> Check {
    let mut dice = Dice(SEED);
    let mut faults = Faults { check: Check::new("hostile"), asked: 0, broken: 0, sorts: BTreeSet::new() };
    for spec in ["", "{", "null", "[]", "1", "\"x\"", "{}", "{\"a\":{\"a\":{\"a\":{}}}}"] {
        let manifest = Manifest { name: "kit".to_owned(), spec: spec.to_owned(), ..Manifest::default() };
        faults.asked(kind.validate(&manifest).err(), || spec.to_owned());
    }
    for round in 0..MANIFESTS {
        let spec = match dice.pick(examples).filter(|_| round % 5 > 0) {
            Some(example) => {
                let mut spec = crate::manifest::spec(&example.manifest);
                for _ in 0..1 + dice.below(3) {
                    dice.spoil(&mut spec);
                }
                spec
            }
            None => {
                Value::Object((0..dice.below(8)).map(|_| (dice.text(), dice.value(4))).collect::<Map<_, _>>())
            }
        };
        let name = if dice.below(10) == 0 { dice.text() } else { "kit".to_owned() };
        let manifest = Manifest { name, spec: spec.to_string(), ..Manifest::default() };
        faults.asked(kind.validate(&manifest).err(), || manifest.spec.clone());
    }
    for _ in 0..REPORTS {
        let Some(one) = dice.pick(made) else { break };
        let live = dice.live(&one.live);
        let (manifest, context): (&Manifest, &Context) = (&one.example.manifest, &one.cluster.context);
        faults.asked(fault(kind.drift(manifest, &live, context)), || format!("{live:?}"));
        faults.asked(fault(kind.adopt(&manifest.name, &live, context, dice.below(2) == 0)), || {
            format!("{live:?}")
        });
    }
    let Faults { check, asked, broken, .. } = faults;
    check.done(format!("{asked} hostile inputs, {broken} faults"))
}
