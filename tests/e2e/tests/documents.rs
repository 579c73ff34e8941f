//! What the documentation shows works: README, the example repository, the examples that kinds give of themselves. And
//! checking a repository needs neither credentials nor secrets.

use crate::support::{manifest, vm};
use proxops_e2e::{Bench, CLUSTER, builtin_kinds, root};
use proxops_secrets::{Document, Value as Secret};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// A throw-away age key: secret and public.
pub fn age_key() -> &'static (String, String) {
    static KEY: OnceLock<(String, String)> = OnceLock::new();
    KEY.get_or_init(|| {
        use age::secrecy::ExposeSecret as _;
        let identity = age::x25519::Identity::generate();
        (identity.to_string().expose_secret().to_owned(), identity.to_public().to_string())
    })
}

/// What a cluster's config.yaml says of its secrets document; its credentials come from the environment.
pub const SECRETS_LINES: [&str; 1] = ["secrets-file: secrets.sops.yaml"];

/// A cluster's secrets document: two SSH keys and two passwords.
pub fn secrets_document() -> String {
    let map = |entries: &[(&str, Secret)]| {
        Secret::Map(entries.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect())
    };
    let key = |n: u8| {
        format!(
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZpeHR1cmUta2V5LWZvci10ZXN0cy1vbmx5LTAwMDAwMDA{} k",
            char::from(n)
        )
    };
    let tree = map(&[(
        "cloud-init",
        map(&[
            ("ssh-keys", map(&[("one", Secret::str(key(b'x'))), ("two", Secret::str(key(b'y')))])),
            ("passwords", map(&[("one", Secret::str(PASSWORD)), ("two", Secret::str("second"))])),
        ]),
    )]);
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    Document::create("secrets.sops.yaml", std::slice::from_ref(&age_key().1), &tree, now).unwrap()
}

/// A password of [`secrets_document`].
pub const PASSWORD: &str = "correct-horse-battery";

/// The YAML blocks of a text, each with the path in its first line's comment.
fn yaml_blocks(text: &str) -> Vec<(String, String)> {
    text.split("```yaml\n")
        .skip(1)
        .filter_map(|rest| {
            let block = rest.split("```").next()?;
            let path = block.lines().next()?.strip_prefix("# ")?.trim();
            path.ends_with(".yaml").then(|| (path.to_owned(), block.to_owned()))
        })
        .collect()
}

#[test]
fn the_readmes_first_repository_is_valid() {
    let bench = Bench::offline("https://192.0.2.1:8006");
    let blocks = yaml_blocks(&fs::read_to_string(root().join("README.md")).unwrap());
    let paths: Vec<&str> = blocks.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["clusters/lab/config.yaml", "clusters/lab/resources.yaml", "vm/lab/web-01.yaml"]);
    for (path, text) in &blocks {
        bench.write(path, text);
    }
    bench.run(&["validate"]).exits(0).says("1 manifest in 1 cluster: all valid");
}

fn copy(from: &Path, bench: &Bench, to: &str) {
    for entry in fs::read_dir(from).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let to = if to.is_empty() { name } else { format!("{to}/{name}") };
        if entry.path().is_dir() {
            copy(&entry.path(), bench, &to);
        } else {
            bench.write(&to, fs::read(entry.path()).unwrap());
        }
    }
}

#[test]
fn the_example_repository_is_valid() {
    let bench = Bench::offline("https://192.0.2.1:8006");
    copy(&root().join("examples/home-lab"), &bench, "");
    bench.run(&["validate"]).exits(0).says("4 manifests in 1 cluster: all valid");
}

/// Resources that examples refer to, as (root, manifest).
fn referred() -> Vec<(&'static str, Value)> {
    let file = |kind: &str, name: &str, end: &str| {
        manifest(
            kind,
            name,
            json!({"node": "pve01", "storage": "local", "filename": format!("referred-{name}{end}")}),
        )
    };
    let mut template = vm("debian-13", 990_001, json!({}));
    template["kind"] = json!("TemplateVM");
    let container = json!({
        "node": "pve01", "vmid": 990_002, "state": "stopped", "template": "debian-13",
        "root": {"storage": "local-lvm", "size": "4GiB"},
    });
    vec![
        ("templatevm", template),
        ("templatect", manifest("TemplateCT", "debian-13-base", container)),
        ("iso", file("ISO", "debian-13-netinst", ".iso")),
        ("diskimage", file("DiskImage", "debian-13", ".qcow2")),
        ("ctt", file("CTTemplate", "debian-13", ".tar.zst")),
    ]
}

#[test]
fn every_example_that_a_kind_gives_is_valid() {
    let bench = Bench::offline("https://192.0.2.1:8006");
    fs::remove_dir_all(bench.repo().join("clusters")).unwrap();
    for (root, document) in referred() {
        bench.write(&format!("{root}/base/referred.yaml"), document.to_string());
    }
    let kinds = builtin_kinds();
    assert_eq!(kinds.len(), 7);
    // One cluster an example, since examples share names and vmids.
    let mut clusters = 0;
    for info in &kinds {
        assert!(!info.examples.is_empty(), "{} has no example", info.kind);
        for example in &info.examples {
            clusters += 1;
            let cluster = format!("c{clusters}");
            let own: Value = serde_json::from_str(example).unwrap();
            assert_eq!(own["kind"], info.kind.as_str());
            bench.write(&format!("{}/{cluster}/example.yaml", info.root), example);
            let mut list = format!("resources:\n  - ../../{}/{cluster}/example.yaml\n", info.root);
            for (root, document) in referred() {
                let same = document["kind"] == own["kind"]
                    && document["metadata"]["name"] == own["metadata"]["name"];
                if !same {
                    list.push_str(&format!("  - ../../{root}/base/referred.yaml\n"));
                }
            }
            bench.write(&format!("clusters/{cluster}/resources.yaml"), list);
            let config =
                format!("pve:\n  clusters:\n    {cluster}:\n      base-url: https://{cluster}.example.org\n");
            bench.write(&format!("clusters/{cluster}/config.yaml"), config);
        }
    }
    assert!(clusters >= 14, "only {clusters} examples");
    assert_eq!(bench.errors(), [""; 0]);
}

#[test]
fn validate_needs_neither_credentials_nor_an_identity_for_the_secrets() {
    let mut bench = Bench::offline("https://192.0.2.1:8006");
    bench.configure(&SECRETS_LINES);
    bench.configure(&["secrets: {pve: {token-id: id, token: secret}}"]);
    let data = json!({
        "ci-password-ref": "cloud-init.passwords.one",
        "ssh-key-refs": ["cloud-init.ssh-keys.one"],
    });
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({"cloud-init-data": data}))]);
    // As a checkout in CI has it: encrypted, and no key anywhere.
    bench.write(&format!("clusters/{CLUSTER}/secrets.sops.yaml"), secrets_document());
    assert!(bench.env.is_empty());
    assert_eq!(bench.errors(), [""; 0]);
}

#[test]
fn a_password_reaches_pve_and_no_output() {
    let mut bench = Bench::new(proxops_sim::seed::empty());
    bench.configure(&SECRETS_LINES);
    bench.write(&format!("clusters/{CLUSTER}/secrets.sops.yaml"), secrets_document());
    bench.set("SOPS_AGE_KEY", &age_key().0);
    bench.set("PROXOPS_LOG", "trace");
    let data = json!({"cloud-init-data": {"ci-password-ref": "cloud-init.passwords.one"}});
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, data)]);
    for run in [bench.diff(), bench.run(&["diff"]), bench.apply().exits(0), bench.run(&["status"])] {
        for secret in [PASSWORD, &age_key().0] {
            assert!(
                !run.stdout.contains(secret) && !run.stderr.contains(secret),
                "a secret is in the output"
            );
        }
    }
    assert!(bench.world().guests[&100].config.contains_key("cipassword"));
}
