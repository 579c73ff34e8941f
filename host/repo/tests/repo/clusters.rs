//! `clusters/<name>/config.yaml`: endpoint, boundary, credentials, overrides.

use crate::support::{CONFIG, Tree, place};
use proxops_repo::{ClusterConfig, CredentialSource, Credentials, compose_token};
use proxops_secrets::Secret;
use std::time::Duration;

/// A configuration whose entry has these further lines.
fn config(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("      {line}\n")).collect();
    format!("{CONFIG}{lines}")
}

fn tree(lines: &str) -> Tree {
    Tree::lab().with("clusters/lab/config.yaml", &config(lines))
}

fn read(tree: &Tree) -> ClusterConfig {
    let repo = tree.load();
    assert_eq!(repo.diagnostics, []);
    repo.clusters[0].config.clone().unwrap()
}

fn credentials(tree: Tree) -> Credentials {
    read(&tree).credentials
}

fn value(value: &str, origin: &str) -> CredentialSource {
    CredentialSource::Value { value: Secret::new(value), origin: origin.into() }
}

fn key(key: &str) -> CredentialSource {
    CredentialSource::Document { key: key.into() }
}

#[test]
fn every_key_is_read_and_paths_start_from_the_cluster_s_folder() {
    let lines = "nodes: [pve01, pve02]\nca-file: ../ca.pem\nfingerprint: FP\nsecrets-file: secrets.sops.yaml\nreconcile: {prune-budget: 1, poll-interval: 1m}"
        .replace("FP", &["ab"; 32].join(":"));
    let tree =
        tree(&lines).with("proxops.yaml", "reconcile: {prune-budget: 9, task-timeout: 1m, owner-tag: x}\n");
    let c = read(&tree);
    let dir = tree.path("clusters/lab").canonicalize().unwrap();
    assert_eq!((c.name.as_str(), c.base_url.as_str()), ("lab", "https://pve.lan:8006"));
    assert_eq!(c.nodes, ["pve01", "pve02"]);
    assert!(c.allows_node("pve01") && !c.allows_node("pve03"));
    assert_eq!(c.ca_file, Some(dir.join("../ca.pem")));
    assert_eq!(c.fingerprint.unwrap(), ["AB"; 32].join(":"));
    assert_eq!(c.secrets_file, Some(dir.join("secrets.sops.yaml")));
    assert_eq!((c.reconcile.prune_budget, c.reconcile.poll_interval), (1, Duration::from_secs(60)));
    assert_eq!((c.reconcile.task_timeout, c.reconcile.owner_tag.as_str()), (Duration::from_secs(60), "x"));
    assert!(read(&Tree::lab()).allows_node("anything"));
}

#[test]
fn auth_and_ca_file_may_stand_beside_clusters_and_the_entry_wins() {
    let beside =
        "pve:\n  auth: ticket\n  ca-file: a.pem\n  clusters:\n    lab:\n      base-url: https://pve.lan\n";
    let tree = Tree::lab()
        .with("clusters/lab/config.yaml", beside)
        .with("proxops.yaml", "pve: {user: u@pam, password: p, token-id: i, token: t}\n");
    let c = read(&tree);
    assert_eq!(
        c.ca_file,
        Some(tree.path("clusters/lab/a.pem").parent().unwrap().canonicalize().unwrap().join("a.pem"))
    );
    assert!(matches!(c.credentials, Credentials::Ticket { .. }));
    let c = read(
        &tree.with("clusters/lab/config.yaml", &format!("{beside}      auth: token\n      ca-file: b.pem\n")),
    );
    assert!(c.ca_file.unwrap().ends_with("clusters/lab/b.pem"));
    assert!(matches!(c.credentials, Credentials::Token { .. }));
}

#[test]
fn every_mistake_is_reported_at_its_place_and_stops_every_cluster() {
    let text = "pve:
  user: root@pam
  clusters:
    prod:
      base-url: http://pve.lan
      nodes: [pve01, pve01, -x, 3]
      fingerprint: AB:CD
      auth: none
      secrets: {pve: {tokn: a, token: b}}
      secret-file: x
log: {}
";
    let tree = Tree::lab().with("clusters/lab/config.yaml", text);
    let repo = tree.load();
    let places: Vec<_> = repo.diagnostics.iter().map(place).collect();
    assert_eq!(
        places,
        [
            "clusters/lab/config.yaml:2:3 unknown-field",
            "clusters/lab/config.yaml:4:5 cluster-name",
            "clusters/lab/config.yaml:5:7 base-url",
            "clusters/lab/config.yaml:6:22 duplicate-entry",
            "clusters/lab/config.yaml:6:29 invalid-value",
            "clusters/lab/config.yaml:6:33 wrong-type",
            "clusters/lab/config.yaml:7:7 invalid-value",
            "clusters/lab/config.yaml:8:7 invalid-value",
            "clusters/lab/config.yaml:9:7 no-secrets-file",
            "clusters/lab/config.yaml:9:23 unknown-field",
            "clusters/lab/config.yaml:10:7 unknown-field",
            "clusters/lab/config.yaml:11:1 unknown-field",
        ]
    );
    assert!(repo.diagnostics.iter().all(|d| d.cluster.is_none()));
    assert!(repo.clusters.iter().all(|cluster| !cluster.ok));
}

#[test]
fn exactly_one_cluster_with_the_folder_s_name_is_configured() {
    for text in [
        "pve: {clusters: {}}\n",
        "pve: {}\n",
        "",
        "pve: {clusters: {lab: {base-url: 'https://a'}, two: {base-url: 'https://b'}}}\n",
    ] {
        let repo = Tree::lab().with("clusters/lab/config.yaml", text).load();
        assert_eq!(repo.diagnostics.len(), 1, "{text}");
        assert_eq!(repo.diagnostics[0].code, "one-cluster", "{text}");
    }
    let repo = Tree::lab().with("clusters/lab/config.yaml", "pve: {clusters: {lab: {nodes: []}}}\n").load();
    assert_eq!(repo.diagnostics[0].code, "missing-field");
    assert!(repo.diagnostics[0].message.contains("base-url"));
}

#[test]
fn both_ways_fail_closed() {
    let tree = Tree::lab()
        .with("clusters/new/resources.yaml", "resources: []\n")
        .with("clusters/half/config.yaml", &CONFIG.replace("lab", "half").replace("pve.lan", "half.lan"));
    let repo = tree.load();
    let found: Vec<_> = repo.diagnostics.iter().map(|d| (d.code.as_str(), d.cluster.as_deref())).collect();
    assert_eq!(found, [("no-composition", Some("half")), ("no-cluster-config", Some("new"))]);
    let ok: Vec<_> = repo.clusters.iter().map(|c| (c.name.as_str(), c.ok)).collect();
    assert_eq!(ok, [("half", false), ("lab", true), ("new", false)]);
}

#[test]
fn two_clusters_can_not_share_an_endpoint_however_it_is_spelled() {
    let other = CONFIG.replace("lab", "two").replace("https://pve.lan", "https://PVE.lan:8006/");
    let tree = Tree::lab()
        .with("clusters/two/config.yaml", &other)
        .with("clusters/two/resources.yaml", "resources: []\n");
    let repo = tree.load();
    let found: Vec<_> = repo.diagnostics.iter().map(|d| (place(d), d.cluster.clone().unwrap())).collect();
    assert_eq!(
        found,
        [
            ("clusters/lab/config.yaml:4:7 shared-endpoint".into(), "lab".into()),
            ("clusters/two/config.yaml:4:7 shared-endpoint".into(), "two".into()),
        ]
    );
}

#[test]
fn a_tree_without_clusters_or_with_an_impossible_name_is_an_error() {
    assert_eq!(Tree::empty().places(), ["clusters no-clusters"]);
    assert_eq!(Tree::lab().with("clusters/base/config.yaml", "").places(), ["clusters/base cluster-name"]);
    assert_eq!(Tree::lab().with("clusters/a b/config.yaml", "").places(), ["clusters/a b cluster-name"]);
    // Other files and hidden folders are nobody's business.
    assert_eq!(
        Tree::lab().with("clusters/README.md", "").with("clusters/.x/config.yaml", "").places(),
        Vec::<String>::new()
    );
}

#[test]
fn credentials_come_from_the_environment_over_the_file() {
    let tree =
        Tree::lab().with("proxops.yaml", "pve:\n  token-value: a\n").var("PROXOPS_PVE_TOKEN_VALUE", "b");
    assert_eq!(credentials(tree), Credentials::TokenValue(value("b", "PROXOPS_PVE_TOKEN_VALUE")));
    let tree = Tree::lab()
        .with("proxops.yaml", "pve:\n  token-id: ci\n  user: u@pve\n")
        .var("PROXOPS_PVE_TOKEN", "t");
    assert_eq!(
        credentials(tree),
        Credentials::Token {
            user: Some(value("u@pve", "proxops.yaml:3:3")),
            token_id: value("ci", "proxops.yaml:2:3"),
            token: value("t", "PROXOPS_PVE_TOKEN"),
        }
    );
}

#[test]
fn with_a_token_and_a_password_the_token_is_used_unless_auth_says_ticket() {
    let both = || {
        Tree::lab()
            .var("PROXOPS_PVE_TOKEN_VALUE", "t")
            .var("PROXOPS_PVE_USER", "u@pam")
            .var("PROXOPS_PVE_PASSWORD", "p")
    };
    assert!(matches!(credentials(both()), Credentials::TokenValue(_)));
    let ticket = both().with("proxops.yaml", "pve: {auth: ticket}\n");
    assert!(matches!(credentials(ticket), Credentials::Ticket { .. }));
    let alone = Tree::lab().var("PROXOPS_PVE_USER", "u@pam").var("PROXOPS_PVE_PASSWORD", "p");
    assert!(matches!(credentials(alone), Credentials::Ticket { .. }));
    let token = Tree::lab()
        .with("proxops.yaml", "pve: {auth: token}\n")
        .var("PROXOPS_PVE_USER", "u")
        .var("PROXOPS_PVE_PASSWORD", "p");
    assert!(matches!(credentials(token), Credentials::Missing { .. }));
}

#[test]
fn no_credentials_are_no_error_before_somebody_logs_in() {
    match credentials(Tree::lab()) {
        Credentials::Missing { help } => assert!(help.contains("PROXOPS_PVE_TOKEN_VALUE"), "{help}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cluster_that_refers_to_its_secrets_document_takes_nothing_secret_from_elsewhere() {
    let shared = |lines: &str| {
        tree(&format!("secrets-file: s.yaml\n{lines}"))
            .var("PROXOPS_PVE_TOKEN_VALUE", "shared")
            .var("PROXOPS_PVE_PASSWORD", "shared")
            .var("PROXOPS_PVE_USER", "u@pam")
    };
    assert_eq!(
        credentials(shared("secrets: {pve: {user: a, token-id: b, token: c, password: d}}")),
        Credentials::Token { user: Some(key("a")), token_id: key("b"), token: key("c") }
    );
    assert_eq!(
        credentials(shared("auth: ticket\nsecrets: {pve: {user: a, token-id: b, token: c, password: d}}")),
        Credentials::Ticket { user: key("a"), password: key("d") }
    );
    assert_eq!(
        credentials(shared("secrets: {pve: {password: d}}")),
        Credentials::Ticket { user: value("u@pam", "PROXOPS_PVE_USER"), password: key("d") }
    );
    // The document's own token is not complete: the shared one does not step in.
    assert!(matches!(credentials(shared("secrets: {pve: {token: c}}")), Credentials::Missing { .. }));
    assert!(matches!(credentials(shared("secrets: {pve: {user: a}}")), Credentials::Missing { .. }));
    // A document that is there for cloud-init data alone leaves the login as it is.
    assert!(matches!(credentials(shared("")), Credentials::TokenValue(_)));
    let git = read(&shared("secrets: {git: {token: g}}"));
    assert_eq!(git.git_token, Some(key("g")));
}

#[test]
fn a_token_is_joined_from_its_parts() {
    let secret = |text: &str| Secret::new(text);
    let whole = compose_token(Some(&secret("root@pam")), &secret("ci"), &secret("abc")).unwrap();
    assert_eq!(whole.expose(), "root@pam!ci=abc");
    assert_eq!(
        compose_token(None, &secret("root@pam!ci"), &secret("abc")).unwrap().expose(),
        "root@pam!ci=abc"
    );
    assert!(compose_token(None, &secret("ci"), &secret("abc")).is_none());
}
