//! Order: reference cycles, and the level of each action.

use crate::Index;
use petgraph::graphmap::DiGraphMap;
use proxops_model::ResourceId;
use proxops_model::plan::Action;
use std::collections::BTreeMap;

/// Groups of resources that wait for each other, each rotated to start with its smallest member.
pub fn cycles(index: &Index) -> Vec<Vec<ResourceId>> {
    let mut graph: DiGraphMap<&ResourceId, ()> = DiGraphMap::new();
    let mut own = Vec::new();
    for r in index.resources.values() {
        graph.add_node(&r.id);
        for p in r.prerequisites() {
            if p.to == r.id {
                own.push(vec![r.id.clone()]);
            } else if let Some((to, _)) = index.resources.get_key_value(&p.to) {
                graph.add_edge(&r.id, to, ());
            }
        }
    }
    let mut found: Vec<Vec<ResourceId>> = petgraph::algo::tarjan_scc(&graph)
        .into_iter()
        .filter(|group| group.len() > 1)
        .map(|group| {
            let mut group: Vec<ResourceId> = group.into_iter().cloned().collect();
            group.sort();
            group
        })
        .chain(own)
        .collect();
    found.sort();
    found
}

/// Sets `level` to the length of the longest chain of prerequisites and sorts by level, kind, name.
/// Prerequisites that are not in the plan are dropped.
pub fn level(actions: &mut [Action]) {
    let mut levels: BTreeMap<String, u32> = actions.iter().map(|a| (a.id.clone(), 0)).collect();
    for action in actions.iter_mut() {
        action.after.retain(|id| levels.contains_key(id));
        action.after.sort();
        action.after.dedup();
    }
    // As many rounds as the longest chain; references can't be cyclic here, the bound is a belt.
    for _ in 0..=actions.len() {
        let mut moved = false;
        for action in actions.iter() {
            let wanted = action.after.iter().filter_map(|id| levels.get(id)).max().map_or(0, |l| l + 1);
            if levels.get(&action.id).is_some_and(|l| *l < wanted) {
                levels.insert(action.id.clone(), wanted);
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    for action in actions.iter_mut() {
        action.level = levels.get(&action.id).copied().unwrap_or(0);
    }
    actions.sort_by(|a, b| (a.level, &a.kind, &a.name, &a.id).cmp(&(b.level, &b.kind, &b.name, &b.id)));
}
