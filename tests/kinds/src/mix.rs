//! Two specs mixed field by field, and a failing pair made small.

use crate::draw::Draw;
use serde_json::{Map, Value as Json};

/// Mixes: each field is one's, the other's, or gone if one of them lacks it.
pub fn mix(d: &mut Draw, a: &Json, b: &Json) -> Json {
    match (a, b) {
        (Json::Object(a), Json::Object(b)) => {
            let mut out = Map::new();
            for name in a.keys().chain(b.keys().filter(|name| !a.contains_key(*name))) {
                let value = match (a.get(name), b.get(name)) {
                    (Some(x), Some(y)) => Some(mix(d, x, y)),
                    // Mostly as it was: a manifest changes in a few places.
                    (Some(x), None) => d.chance(75).then(|| x.clone()),
                    (None, Some(y)) => d.chance(40).then(|| y.clone()),
                    (None, None) => None,
                };
                out.extend(value.map(|value| (name.clone(), value)));
            }
            Json::Object(out)
        }
        (Json::Array(a), Json::Array(b)) if a.iter().chain(b).all(Json::is_object) => {
            let slot = |v: &Json| ["slot", "interface", "nic"].iter().find_map(|n| v.get(*n).cloned());
            let mut rest: Vec<&Json> = b.iter().collect();
            let mut out = Vec::new();
            for x in a {
                let twin = rest.iter().position(|y| slot(x) == slot(y)).map(|i| rest.remove(i));
                match twin {
                    Some(y) => out.push(mix(d, x, y)),
                    None if d.chance(80) => out.push(x.clone()),
                    None => {}
                }
            }
            out.extend(rest.into_iter().filter(|_| d.chance(40)).cloned());
            Json::Array(out)
        }
        (a, b) => {
            if d.chance(60) {
                a.clone()
            } else {
                b.clone()
            }
        }
    }
}

/// Every spec with one field or list entry less.
fn smaller(value: &Json) -> Vec<Json> {
    let mut out = Vec::new();
    match value {
        Json::Object(map) => {
            for name in map.keys() {
                let mut less = map.clone();
                less.remove(name);
                out.push(Json::Object(less));
            }
            for (name, inner) in map {
                out.extend(smaller(inner).into_iter().map(|inner| {
                    let mut changed = map.clone();
                    changed.insert(name.clone(), inner);
                    Json::Object(changed)
                }));
            }
        }
        Json::Array(list) => {
            for i in 0..list.len() {
                let mut less = list.clone();
                less.remove(i);
                out.push(Json::Array(less));
                out.extend(smaller(&list[i]).into_iter().map(|inner| {
                    let mut changed = list.clone();
                    changed[i] = inner;
                    Json::Array(changed)
                }));
            }
        }
        _ => {}
    }
    out
}

/// The smallest pair that still fails; `fails` also checks that the specs are valid.
pub fn shrink(mut pair: (Json, Json), fails: &dyn Fn(&Json, &Json) -> bool) -> (Json, Json) {
    loop {
        let both = smaller(&pair.0).into_iter().map(|a| (a, pair.1.clone()));
        let next = both.chain(smaller(&pair.1).into_iter().map(|b| (pair.0.clone(), b)));
        // A field of both goes from both.
        match next.into_iter().find(|(a, b)| fails(a, b)) {
            Some(smaller) => pair = smaller,
            None => return pair,
        }
    }
}
