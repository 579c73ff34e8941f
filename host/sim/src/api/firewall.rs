//! Security groups of the cluster firewall (fact C12).

use serde_json::{Value, json};
use sha2::Digest;

use super::Access::{All, Need};
use super::{Access, Answer, Call, Endpoint, on};
use crate::grammar::{other as p, split_list};
use crate::refused::{Refused, Reply};
use crate::world::{SecurityGroup, World};

const AUDIT: Access = Need("/", &["Sys.Audit"]);
const MODIFY: Access = Need("/", &["Sys.Modify"]);
const GROUPS: &str = "/cluster/firewall/groups";
const GROUP: &str = "/cluster/firewall/groups/{group}";
const RULE: &str = "/cluster/firewall/groups/{group}/{pos}";

/// Security groups.
pub const ENDPOINTS: &[Endpoint] = &[
    on("GET", GROUPS, All, p::NONE, list),
    on("POST", GROUPS, MODIFY, p::GROUP_CREATE, create),
    on("GET", GROUP, AUDIT, &[p::GROUP], rules),
    on("POST", GROUP, MODIFY, &[p::GROUP, p::RULE_POS, p::RULE, p::RULE_NEW], add_rule),
    on("DELETE", GROUP, MODIFY, &[p::GROUP], delete),
    on("GET", RULE, AUDIT, &[p::GROUP, p::RULE_POS], rule),
    on("PUT", RULE, MODIFY, &[p::GROUP, p::RULE_POS, p::RULE, p::RULE_CHANGE], change_rule),
    on("DELETE", RULE, MODIFY, &[p::GROUP, p::RULE_POS, p::RULE_DIGEST], delete_rule),
];

fn digest(world: &World) -> String {
    let mut digest = hex::encode(sha2::Sha256::digest(format!("{:?}", world.groups)));
    digest.truncate(40);
    digest
}

fn assert_digest(world: &World, call: &Call<'_>) -> Reply<()> {
    match call.get("digest") {
        Some(sent) if sent != digest(world) => {
            Err(Refused::die("detected modified configuration - file changed by other user? Try again."))
        }
        _ => Ok(()),
    }
}

fn group<'a>(world: &'a World, call: &Call<'_>) -> Reply<&'a SecurityGroup> {
    let name = call.text("group");
    world.groups.get(name).ok_or_else(|| Refused::die(format!("no such security group '{name}'")))
}

fn list(world: &mut World, _: &Call<'_>) -> Reply<Answer> {
    let digest = digest(world);
    let rows: Vec<Value> = world
        .groups
        .iter()
        .map(|(name, group)| {
            let mut row = json!({"group": name, "digest": digest});
            if !group.comment.is_empty() {
                row["comment"] = json!(group.comment);
            }
            row
        })
        .collect();
    Ok(json!(rows).into())
}

fn create(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    // a group's comment stands on the line of its header: more than one line is not known to survive
    if call.text("comment").contains('\n') {
        return Err(Refused::param("comment", "value does not fit on one line"));
    }
    assert_digest(world, call)?;
    let name = call.text("group");
    match call.get("rename") {
        Some(old) => {
            let mut moved = world
                .groups
                .remove(old)
                .ok_or_else(|| Refused::param("group", format!("Security group '{old}' does not exist")))?;
            if let Some(comment) = call.get("comment") {
                moved.comment = comment.to_owned();
            }
            world.groups.insert(name.to_owned(), moved);
        }
        None if world.groups.contains_key(name) => {
            return Err(Refused::param("group", format!("Security group '{name}' already exists")));
        }
        None => {
            let fresh = SecurityGroup { comment: call.text("comment").to_owned(), rules: Vec::new() };
            world.groups.insert(name.to_owned(), fresh);
        }
    }
    Ok(Answer::default())
}

fn delete(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    if !group(world, call)?.rules.is_empty() {
        return Err(Refused::die(format!("Security group '{}' is not empty", call.text("group"))));
    }
    world.groups.remove(call.text("group"));
    Ok(Answer::default())
}

fn row(group: &SecurityGroup, pos: usize, digest: &str) -> Option<Value> {
    let rule = group.rules.get(pos)?;
    let mut row = json!({"pos": pos, "digest": digest});
    for (key, value) in rule {
        row[key] = match value.parse::<i64>() {
            Ok(n) if key == "enable" => json!(n),
            _ => json!(value),
        };
    }
    Some(row)
}

fn rules(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let digest = digest(world);
    let group = group(world, call)?;
    let rows: Vec<Value> = (0..group.rules.len()).filter_map(|pos| row(group, pos, &digest)).collect();
    Ok(json!(rows).into())
}

fn position(call: &Call<'_>) -> usize {
    call.number("pos").unwrap_or(0) as usize
}

fn rule(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    let digest = digest(world);
    let found = row(group(world, call)?, position(call), &digest);
    found.map(Answer::from).ok_or_else(no_rule)
}

fn no_rule() -> Refused {
    Refused::die("no rule at position")
}

/// New rules come first unless `pos` says otherwise.
fn add_rule(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    assert_digest(world, call)?;
    group(world, call)?;
    let mut rule = call.args.clone();
    rule.retain(|key, _| !matches!(key.as_str(), "group" | "pos" | "digest"));
    rule.entry("enable".to_owned()).or_insert_with(|| "0".to_owned());
    if let Some(group) = world.groups.get_mut(call.text("group")) {
        let at = position(call).min(group.rules.len());
        group.rules.insert(at, rule);
    }
    Ok(Answer::default())
}

fn change_rule(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    assert_digest(world, call)?;
    let at = position(call);
    let group = world.groups.get_mut(call.text("group")).ok_or_else(no_rule)?;
    if at >= group.rules.len() {
        return Err(no_rule());
    }
    if let Some(to) = call.number("moveto") {
        let rule = group.rules.remove(at);
        // the target counts in the list as it was
        let to = to as usize;
        let to = if to > at { to - 1 } else { to };
        group.rules.insert(to.min(group.rules.len()), rule);
        return Ok(Answer::default());
    }
    if let Some(rule) = group.rules.get_mut(at) {
        for key in split_list(call.text("delete")) {
            rule.remove(key);
        }
        let own = |key: &str| matches!(key, "group" | "pos" | "digest" | "delete" | "moveto");
        for (key, value) in call.args.iter().filter(|(key, _)| !own(key)) {
            rule.insert(key.clone(), value.clone());
        }
    }
    Ok(Answer::default())
}

fn delete_rule(world: &mut World, call: &Call<'_>) -> Reply<Answer> {
    assert_digest(world, call)?;
    let at = position(call);
    let group = world.groups.get_mut(call.text("group")).ok_or_else(no_rule)?;
    if at >= group.rules.len() {
        return Err(no_rule());
    }
    group.rules.remove(at);
    Ok(Answer::default())
}
