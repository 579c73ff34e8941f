//! Not run by default: how long 10,000 manifests take. `cargo test -p proxops-repo -- --ignored --nocapture`.

use crate::support::Tree;
use std::time::Instant;

#[test]
#[ignore = "a measurement, not a check"]
fn ten_thousand_manifests() {
    let paths: Vec<String> = (0..10_000).map(|i| format!("vm/lab/vm-{i:05}.yaml")).collect();
    let names: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut tree = Tree::listing(&names);
    for (i, path) in paths.iter().enumerate() {
        let text = format!(
            "apiVersion: proxops/v1alpha1\nkind: VM\nmetadata:\n  name: vm-{i:05}\nspec:\n  node: pve01\n  vmid: {}\n  memory: 2GiB\n  cpu: {{type: host, cores: 2}}\n  disks:\n    - {{storage: local-lvm, size: 32GiB, interface: scsi0}}\n    - {{storage: local-lvm, size: 32GiB, interface: scsi1}}\n  networks:\n    - bridge: vmbr0\n      vlan: 12\n  options:\n    onboot: true\n  cloud-init-data:\n    ci-user: ops\n    ipconfigs:\n      - {{nic: 0, ip: 10.0.0.1/24, gateway: 10.0.0.254}}\n",
            1000 + i
        );
        tree = tree.with(path, &text);
    }
    let runs = std::env::var("RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    for _ in 0..runs {
        let start = Instant::now();
        let repo = tree.load();
        println!("{} manifests in {:?}", repo.clusters[0].manifests.len(), start.elapsed());
    }
}

#[test]
#[ignore = "a measurement, not a check"]
fn evil_files_of_one_mebibyte() {
    let mib = |part: &str| part.repeat((1 << 20) / part.len());
    let sequence = |make: fn(usize) -> String| {
        let mut text = String::new();
        for i in 0.. {
            let next = make(i);
            if text.len() + next.len() > 1 << 20 {
                return text;
            }
            text.push_str(&next);
        }
        text
    };
    for (name, text) in [
        ("flow list", format!("[{}", &mib("a,")[2..])),
        ("flow mapping", format!("{{{}", &mib("a: b,")[2..])),
        ("open flow", mib("[")),
        ("flow nests", mib("[[[]]],")),
        ("plain lines", mib("a b\n")),
        ("blank lines", format!("a: b{}", &mib("\n")[8..])),
        ("anchors", sequence(|i| format!("- &a{i} x\n"))),
        ("aliases", format!("- &a [x]\n{}", &mib("- *a\n")[20..])),
        ("keys", sequence(|i| format!("k{i}:\n"))),
        ("same key", mib("k:\n")),
        ("dashes", mib("- ")),
        ("tags", mib("!a ")),
        ("quotes", mib("'' ")),
        ("long quote", format!("\"{}\"", &mib("\\n")[4..])),
        ("comments", mib("#\n")),
        ("documents", mib("---\n")),
        ("spaces", mib(" ")),
        ("indents", sequence(|i| format!("{}a:\n", " ".repeat(i)))),
        ("block", format!("|\n{}", &mib("  x\n")[4..])),
        ("colons", mib("a:")),
        ("bom", mib("\u{feff}")),
        ("question", mib("? a\n")),
        ("directives", mib("%X\n")),
        ("anchor keys", mib("&a ")),
        ("one line flow keys", format!("[{}", &mib("? a,")[4..])),
        ("grown alias", format!("- &a [{}]\n{}", "x,".repeat(900), mib("- *a\n").split_at(900_000).0)),
    ] {
        let start = Instant::now();
        let stream = proxops_repo::yaml::parse(text.as_bytes());
        println!("{:>10.1?} {name}: {:?}", start.elapsed(), stream.problems.first().map(|p| p.code));
    }
}
