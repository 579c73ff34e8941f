//! What of a cluster is adopted: everything, or what `--only` names.

use crate::target;
use anyhow::bail;
use proxops_model::kind::{KindSet, Target};
use proxops_plan::{Index, World};
use std::collections::BTreeSet;

/// One word of `--only`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Only {
    /// Everything of a kind.
    Kind(String),
    /// One guest.
    Vmid(u32),
}

/// What is adopted.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Kinds by name.
    pub kinds: BTreeSet<String>,
    /// Guests by vmid.
    pub guests: BTreeSet<u32>,
}

/// Reads the words of `--only`: kinds in any case of letters, and vmids.
///
/// # Errors
/// A word that is neither, with the nearest kind.
pub fn only(words: &[String], kinds: &dyn KindSet) -> anyhow::Result<Vec<Only>> {
    let all = kinds.all();
    let names: Vec<&str> = all
        .iter()
        .filter(|kind| !matches!(kind.info().target, Target::Object(_)))
        .map(|kind| kind.info().kind.as_str())
        .collect();
    let mut found = Vec::new();
    for word in words.iter().flat_map(|w| w.split(',')).map(str::trim).filter(|w| !w.is_empty()) {
        if let Ok(vmid) = word.parse::<u32>() {
            found.push(Only::Vmid(vmid));
        } else if let Some(name) = names.iter().find(|name| name.eq_ignore_ascii_case(word)) {
            found.push(Only::Kind((*name).to_owned()));
        } else {
            match proxops_repo::nearest(word, names.iter().copied()) {
                Some(near) => bail!("--only {word}: neither a kind nor a vmid; did you mean {near}?"),
                None => bail!("--only {word}: neither a vmid nor one of the kinds {}", names.join(", ")),
            }
        }
    }
    if found.is_empty() && !words.is_empty() {
        bail!("--only names nothing; give kinds or vmids, such as VM,101");
    }
    Ok(found)
}

impl Wanted {
    /// Of what there is.
    ///
    /// # Errors
    /// `--only` names a vmid that the cluster does not have, or not within the allowlist.
    pub fn new(only: &[Only], world: &World, index: &Index, kinds: &dyn KindSet) -> anyhow::Result<Self> {
        let mut wanted = Self::default();
        let all = |name: &str| only.is_empty() || only.contains(&Only::Kind(name.to_owned()));
        wanted.kinds.extend(kinds.all().iter().map(|k| k.info().kind.clone()).filter(|name| all(name)));
        for fact in world.guests.values().filter(|fact| index.allows(&fact.node)) {
            let kind = target::guest(kinds, fact.guest_type, fact.template);
            if only.contains(&Only::Vmid(fact.vmid)) || kind.is_some_and(|k| all(&k.info().kind)) {
                wanted.guests.insert(fact.vmid);
            }
        }
        for one in only {
            let Only::Vmid(vmid) = one else { continue };
            match world.guests.get(vmid) {
                None => bail!(
                    "cluster {} has no guest {vmid}; also check that the credential may see it (VM.Audit)",
                    index.cluster
                ),
                Some(fact) if !index.allows(&fact.node) => bail!(
                    "guest {vmid} is on node {}, which is outside the allowlist of cluster {}",
                    fact.node,
                    index.cluster
                ),
                Some(_) => {}
            }
        }
        Ok(wanted)
    }
}
