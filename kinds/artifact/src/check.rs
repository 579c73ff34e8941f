//! What the spec's type can't check.

use crate::content::Content;
use crate::spec::FileSpec;
use proxops_kind::{Hole, Identity, Placement, Report, StorageUse, Validated, names};

/// Why an artifact without a URL is incomplete.
pub(crate) const NO_URL: &str = "the address to download the file from; PVE does not keep it";

/// One copy of the file that the manifest asks for, with the place that names its node.
pub(crate) fn placements(spec: &FileSpec) -> Vec<(Placement, String)> {
    let one = spec.node.iter().map(|node| (node, "/spec/node".to_owned()));
    let many = spec.nodes.iter().flatten().enumerate().map(|(i, node)| (node, format!("/spec/nodes/{i}")));
    one.chain(many).map(|(node, at)| (Placement::new(node, &spec.storage, &spec.filename), at)).collect()
}

pub(crate) fn validate(content: Content, spec: &FileSpec, report: &mut Report) -> Option<Validated> {
    check_nodes(spec, report);
    if let Err(wrong) = names::check_storage(&spec.storage) {
        report.error("/spec/storage", "bad-storage", format!("`storage` {wrong}"));
    }
    if let Err(wrong) = content.check_filename(&spec.filename) {
        report.error("/spec/filename", "bad-filename", format!("`filename` {wrong}"));
    }
    check_source(spec, report);

    let copies = placements(spec);
    let identity_broken =
        ["/spec/storage", "/spec/filename", "/spec/node"].iter().any(|at| report.is_broken(at));
    if copies.is_empty() || identity_broken || !report.is_whole("/spec/nodes") {
        return None;
    }
    let mut validated =
        Validated::new(Identity::Artifact(copies.iter().map(|(copy, _)| copy.clone()).collect()));
    validated.storages = copies
        .iter()
        .map(|(copy, _)| StorageUse::new(&copy.storage, content.as_str(), "/spec/storage").on(&copy.node))
        .collect();
    validated.attributes = vec![
        ("volid".to_owned(), content.volid(&spec.storage, &spec.filename)),
        ("storage".to_owned(), spec.storage.clone()),
        ("filename".to_owned(), spec.filename.clone()),
    ];
    if spec.url.is_none() {
        validated.incomplete.push(Hole::new("/spec/url", NO_URL));
    }
    Some(validated)
}

fn check_nodes(spec: &FileSpec, report: &mut Report) {
    match (&spec.node, &spec.nodes) {
        (Some(_), Some(_)) => report
            .error(
                "/spec/nodes",
                "node-and-nodes",
                "`node` and `nodes` say the same; only one of them may stand there",
            )
            .help("keep `nodes` and move the node there"),
        (None, None) => report
            .error("/spec/node", "missing-field", "`spec` needs `node` or `nodes`: where the file is needed")
            .help("one node: `node: pve01`; several: `nodes: [pve01, pve02]`"),
        (None, Some(nodes)) if nodes.is_empty() => report
            .error("/spec/nodes", "no-node", "`nodes` must name at least one node")
            .help("such as [pve01]"),
        _ => {}
    }
    let mut seen: Vec<&str> = Vec::new();
    for (copy, at) in &placements(spec) {
        if let Err(wrong) = names::check_node(&copy.node) {
            report.error(at, "bad-node", format!("a node {wrong}"));
        } else if let Some(node) = spec.nodes.iter().flatten().find(|n| **n == copy.node) {
            if seen.contains(&node.as_str()) {
                report.error(at, "node-twice", format!("node {node} stands in `nodes` twice"));
            }
            seen.push(node);
        }
    }
}

fn check_source(spec: &FileSpec, report: &mut Report) {
    if let Some(url) = &spec.url {
        let scheme = url.split_once("://").map(|(scheme, rest)| (scheme, rest.trim_start_matches('/')));
        let odd = |c: char| c.is_whitespace() || c.is_control();
        match scheme {
            Some(("https" | "http", rest)) if rest.is_empty() || url.contains(odd) => {
                report.error("/spec/url", "bad-url", "`url` must name a host and hold no white space");
            }
            Some(("http", _)) if spec.checksum.is_none() && report.is_whole("/spec/checksum") => {
                report
                    .error(
                        "/spec/url",
                        "http-without-checksum",
                        "`url` is http, which anybody on the way can change",
                    )
                    .help("use https, or add `checksum: {algorithm: sha256, value: ...}`");
            }
            Some(("https" | "http", _)) => {}
            _ => {
                report.error(
                    "/spec/url",
                    "bad-url",
                    "`url` must start with https:// (or http:// with a checksum)",
                );
            }
        }
    }
    if let Some(checksum) = &spec.checksum {
        let (digits, value) = (checksum.algorithm.digits(), &checksum.value);
        let hex = value.bytes().all(|b| b.is_ascii_hexdigit());
        if report.is_whole("/spec/checksum") && (!hex || value.len() != digits) {
            let name = checksum.algorithm.as_str();
            report.error(
                "/spec/checksum/value",
                "bad-checksum",
                format!(
                    "`value` must be the {digits} hexadecimal digits of a {name} hash; it has {} characters",
                    value.len()
                ),
            );
        }
    }
}
