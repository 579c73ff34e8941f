//! What the credential may do, against what the composition needs (facts P1 to P10, C9).

use super::Report;
use proxops_model::kind::{GuestType, Identity, Target};
use proxops_plan::{Index, Mode, Resource};
use proxops_pve::Client;
use std::collections::{BTreeMap, BTreeSet};

type Needs = BTreeMap<String, BTreeSet<&'static str>>;

/// Of a guest of either type. Which of its keys change is not known beforehand, so all classes count (fact P2).
const GUEST: &[&str] = &[
    "VM.Allocate",
    "VM.Audit",
    "VM.Config.CPU",
    "VM.Config.Disk",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.PowerMgmt",
];
/// Of a VM besides.
const QEMU: &[&str] = &["VM.Config.CDROM", "VM.Config.Cloudinit", "VM.Config.HWType"];
const BRIDGES: &str = "/sdn/zones/localnetwork";
/// Paths that are shown of many with one finding.
const SHOWN: usize = 5;

/// One finding for each set of missing privileges.
pub(super) async fn check(report: &mut Report, client: &Client, index: &Index, nodes: &[String]) {
    if client.is_root() {
        report.ok("privileges", "root@pam with a password: every privilege");
        return;
    }
    let held = match client.permissions().await {
        Ok(held) => held,
        Err(error) => {
            report.fail("privileges", format!("they can't be read: {error}"), "see the credential's check");
            return;
        }
    };
    let needs = needs(index, nodes);
    let mut missing: BTreeMap<(String, BTreeSet<&'static str>), Vec<String>> = BTreeMap::new();
    let total = needs.len();
    for (path, wanted) in needs {
        let mut lacking: BTreeSet<&'static str> =
            wanted.into_iter().filter(|privilege| !holds(&held, &path, privilege)).collect();
        if !lacking.is_empty() {
            // The whole list leaves out what a pool grants; asked for the path, PVE counts it in.
            if let Ok(exact) = client.permissions_at(&path).await {
                lacking.retain(|privilege| !exact.contains(*privilege));
            }
        }
        if path == BRIDGES {
            // A grant on single bridges is enough for those.
            let below = held.iter().any(|(at, all)| at.starts_with(BRIDGES) && all.contains_key("SDN.Use"));
            lacking.retain(|privilege| *privilege != "SDN.Use" || !below);
        }
        if path.starts_with("/nodes/") && lacking.contains("Sys.AccessNetwork") {
            // Either this, or both of those on the root (fact P8).
            if holds(&held, "/", "Sys.Audit") && holds(&held, "/", "Sys.Modify") {
                lacking.remove("Sys.AccessNetwork");
            }
        }
        if !lacking.is_empty() {
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
            missing.entry((parent, lacking)).or_default().push(path);
        }
    }
    if missing.is_empty() {
        report.ok("privileges", format!("all that the composition needs, on {total} paths"));
        return;
    }
    for ((_, lacking), paths) in missing {
        let names: Vec<&str> = lacking.iter().copied().collect();
        let more = paths.len().saturating_sub(SHOWN);
        let mut shown = paths.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        if more > 0 {
            shown.push_str(&format!(" and {more} more"));
        }
        report.fail(
            "privileges",
            format!("missing on {shown}: {}", names.join(", ")),
            advice(client, &paths, &names),
        );
    }
}

/// Whether the list of all paths gives a privilege on this one: its own entry decides, else the nearest above that
/// propagates.
fn holds(held: &BTreeMap<String, BTreeMap<String, bool>>, path: &str, privilege: &str) -> bool {
    if let Some(all) = held.get(path) {
        return all.contains_key(privilege);
    }
    let mut at = path;
    while let Some((above, _)) = at.rsplit_once('/') {
        at = if above.is_empty() { "/" } else { above };
        if let Some(all) = held.get(at) {
            return all.get(privilege).is_some_and(|propagates| *propagates);
        }
        if at == "/" {
            break;
        }
    }
    false
}

/// Roles of PVE that hold a privilege, the narrowest first; a role of one's own where none does.
fn role(privilege: &str) -> &'static str {
    match privilege {
        "Datastore.AllocateSpace" | "Datastore.Audit" => "PVEDatastoreUser",
        "Datastore.Allocate" | "Datastore.AllocateTemplate" => "PVEDatastoreAdmin",
        "SDN.Use" => "PVESDNUser",
        "Sys.Audit" => "PVEAuditor",
        vm if vm.starts_with("VM.") => "PVEVMAdmin",
        _ => "a role of your own",
    }
}

fn advice(client: &Client, paths: &[String], privileges: &[&str]) -> String {
    let roles: BTreeSet<&str> = privileges.iter().map(|privilege| role(privilege)).collect();
    let roles = roles.into_iter().collect::<Vec<_>>().join(", ");
    let path = match paths {
        [one] => one.clone(),
        many => many
            .first()
            .and_then(|p| p.rsplit_once('/'))
            .map_or_else(|| "/".to_owned(), |(p, _)| p.to_owned()),
    };
    let who = client.identity();
    let flag = if who.contains('!') { "--tokens" } else { "--users" };
    let also = if who.contains('!') { " (a token with privilege separation: and to its user)" } else { "" };
    format!(
        "the role with them: {roles}; or a role of your own: pveum role add proxops --privs \"{}\" && pveum acl modify \
         {path} --roles proxops {flag} '{who}'{also}",
        privileges.join(" ")
    )
}

/// Paths with the privileges that the composition needs there.
fn needs(index: &Index, nodes: &[String]) -> Needs {
    let mut needs = Needs::new();
    // Quorum, HA and replication are asked before a delete.
    needs.entry("/".to_owned()).or_default().insert("Sys.Audit");
    for node in nodes {
        // Tasks of other users are seen with it (fact U7).
        needs.entry(format!("/nodes/{node}")).or_default().insert("Sys.Audit");
    }
    for resource in index.resources.values().filter(|r| r.mode != Mode::Suspended) {
        match &resource.validated.identity {
            Identity::Guest(guest) => {
                let here = needs.entry(format!("/vms/{}", guest.vmid)).or_default();
                here.insert("VM.Audit");
                if resource.mode == Mode::Observe {
                    continue;
                }
                here.extend(GUEST);
                if matches!(resource.target, Target::Guest { guest_type: GuestType::Qemu, .. }) {
                    here.extend(QEMU);
                }
                needs.entry(BRIDGES.to_owned()).or_default().insert("SDN.Use");
                sources(index, resource, &mut needs);
                for used in &resource.validated.storages {
                    let here = needs.entry(format!("/storage/{}", used.storage)).or_default();
                    here.insert("Datastore.Audit");
                    if matches!(used.content.as_str(), "images" | "rootdir") {
                        here.insert("Datastore.AllocateSpace");
                    }
                }
            }
            Identity::Artifact(placements) => {
                for place in placements {
                    let here = needs.entry(format!("/storage/{}", place.storage)).or_default();
                    here.insert("Datastore.Audit");
                    if resource.mode != Mode::Observe {
                        here.insert("Datastore.AllocateTemplate");
                        let node = needs.entry(format!("/nodes/{}", place.node)).or_default();
                        node.insert("Sys.AccessNetwork");
                    }
                }
            }
            Identity::Object(_) => {}
        }
    }
    needs
}

/// A guest that another one refers to is cloned (fact P5).
fn sources(index: &Index, resource: &Resource, needs: &mut Needs) {
    for reference in &resource.validated.references {
        let Some(source) = index.resources.get(&reference.to).and_then(Resource::guest_id) else { continue };
        let here = needs.entry(format!("/vms/{}", source.vmid)).or_default();
        here.extend(["VM.Audit", "VM.Clone"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(rows: &[(&str, &[(&str, bool)])]) -> BTreeMap<String, BTreeMap<String, bool>> {
        let row = |(path, all): &(&str, &[(&str, bool)])| {
            let all = all.iter().map(|(name, propagates)| ((*name).to_owned(), *propagates)).collect();
            ((*path).to_owned(), all)
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn the_nearest_entry_decides_and_passes_on_only_what_propagates_c9() {
        let held = held(&[
            ("/", &[("Sys.Audit", true), ("VM.Audit", false)]),
            ("/vms", &[("VM.Clone", true)]),
            ("/vms/100", &[]),
        ]);
        assert!(holds(&held, "/", "VM.Audit") && holds(&held, "/nodes/pve01", "Sys.Audit"));
        assert!(!holds(&held, "/storage/local", "VM.Audit"), "it does not propagate");
        assert!(holds(&held, "/vms/101", "VM.Clone"));
        assert!(!holds(&held, "/vms/101", "Sys.Audit"), "a deeper entry takes the place of the root's");
        assert!(!holds(&held, "/vms/100", "VM.Clone"));
    }
}
