//! Nothing that PVE holds of a guest is lost silently: each key is modelled, bookkeeping, or a gap.

use crate::cluster::refusal;
use crate::life::Made;
use crate::report::Check;
use proxops_model::kind::{GuestType, KindApi, Live, LiveGuest, LiveValue, Refusal, Target};
use proxops_sim::grammar::{self, Kind, Param};
use std::sync::Arc;

/// Keys that PVE keeps for itself (facts Q19, Q28), and those that the host deals with.
const BOOKKEEPING: &[&str] = &["digest", "lock", "meta", "smbios1", "template", "vmgenid"];

/// Changes each key that PVE knows in the object's report, and expects the adopted manifest or its gaps to
/// change with it.
pub(crate) fn check(kind: &dyn KindApi, made: &[Made<'_>]) -> Check {
    let Target::Guest { guest_type, .. } = kind.info().target else {
        return Check::skipped("keys", "only guests have keys");
    };
    let Some((one, live)) = made.iter().find_map(|one| match &one.live {
        Live::Guest(guest) => Some((one, guest)),
        _ => None,
    }) else {
        return Check::skipped("keys", "there is no object");
    };
    let mut check = Check::new("keys");
    let name = &one.example.manifest.name;
    let context = &one.cluster.context;
    let base = match kind.adopt(name, &one.live, context, false) {
        Ok(base) => base,
        Err(why) => {
            check.problem(refusal(why));
            return check.done("the object can't be adopted");
        }
    };
    let table = match guest_type {
        GuestType::Qemu => grammar::vm::TABLE,
        GuestType::Lxc => grammar::ct::TABLE,
    };
    let mut probes: Vec<(String, Vec<String>)> =
        table.iter().flat_map(|group| group.iter()).map(probe).collect();
    probes.push(("kit-unknown-key".to_owned(), vec!["1".to_owned()]));
    let (mut modelled, mut gaps) = (0, 0);
    'keys: for (key, values) in &probes {
        if BOOKKEEPING.contains(&key.as_str()) {
            continue;
        }
        let mut noticed = None;
        for value in values {
            let changed = Live::Guest(Arc::new(with(live, key, value)));
            match kind.adopt(name, &changed, context, false) {
                Ok(adopted) if adopted.gaps.iter().any(|gap| gap.key == *key) => {
                    noticed = noticed.or(Some(false))
                }
                Ok(adopted) if adopted != base => noticed = Some(true),
                Ok(_) => {}
                Err(Refusal::Diagnostics(_)) => noticed = Some(true),
                Err(why) => {
                    check.problem(format!("{key}={value}: {}", refusal(why)));
                    continue 'keys;
                }
            }
        }
        match noticed {
            Some(true) => modelled += 1,
            Some(false) => gaps += 1,
            None => check.problem(format!(
                "adopt loses {key}: with {} it gives the same manifest and no gap",
                values.join(", ")
            )),
        }
    }
    check.done(format!("{} of PVE's keys: {modelled} modelled, {gaps} told as gaps", probes.len()))
}

fn with(live: &LiveGuest, key: &str, value: &str) -> LiveGuest {
    let mut live = live.clone();
    match key {
        "cipassword" => live.secrets_present.push(key.to_owned()),
        _ => {
            live.values.insert(key.to_owned(), LiveValue::Text(value.to_owned()));
        }
    }
    live.secrets_present.sort();
    live.secrets_present.dedup();
    live
}

/// A key, and values one of which is no default.
fn probe(param: &Param) -> (String, Vec<String>) {
    let key = match param.index {
        Some((_, last)) => format!("{}{last}", param.name),
        None => param.name.to_owned(),
    };
    let values = match param.kind {
        Kind::Flag => vec!["0".to_owned(), "1".to_owned()],
        Kind::Integer | Kind::Number => {
            let low = param.min.unwrap_or(1);
            vec![(low + 6).min(param.max.unwrap_or(i64::MAX)).to_string(), low.to_string()]
        }
        _ if !param.values.is_empty() => param.values.split(' ').map(str::to_owned).collect(),
        _ => vec!["kit-7".to_owned(), "7".to_owned()],
    };
    (key, values)
}
