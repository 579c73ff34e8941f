//! `init`: a new repository that works at once.

use proxops_e2e::{Run, binary};
use proxops_sim::{Sim, SimHandle, SimOptions, seed};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

const SECRET: &str = "5ec7e700-0000-4000-8000-c0ffee000001";

fn proxops(home: &Path, at: &Path, env: &[(&str, &str)], words: &[&str]) -> Run {
    let mut command = Command::new(binary());
    command
        .args(words)
        .arg("--data-dir")
        .arg(home.join("data"))
        .current_dir(at)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home)
        .env("NO_COLOR", "1")
        .envs(env.iter().copied())
        .stdin(Stdio::null());
    Run::of(command.output().unwrap())
}

fn simulator() -> (tokio::runtime::Runtime, SimHandle) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let sim = runtime.block_on(Sim::start(seed::demo(), SimOptions::default())).unwrap();
    (runtime, sim)
}

#[test]
fn a_repository_around_an_endpoint_validates_adopts_and_diffs() {
    let (_runtime, sim) = simulator();
    let home = tempfile::tempdir().unwrap();
    let token = format!("{}={}", seed::TOKEN_ID, seed::TOKEN_SECRET);
    assert_eq!(seed::TOKEN_SECRET, SECRET);
    let env = [("PROXOPS_PVE_TOKEN_VALUE", token.as_str())];
    let url = sim.url();
    proxops(home.path(), home.path(), &env, &["init", "infra", "--cluster", "lab", "--base-url", &url])
        .exits(0)
        .says("A new age key was made")
        .says("proxops adopt --cluster lab");
    let repo = home.path().join("infra");
    let key = home.path().join(".config/sops/age/keys.txt");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let document = fs::read_to_string(repo.join("clusters/lab/secrets.sops.yaml")).unwrap();
    assert!(
        document.contains("ENC[") && !document.contains(SECRET) && !document.contains("gitops@pve"),
        "{document}"
    );
    for file in [
        ".git",
        ".sops.yaml",
        "clusters/lab/config.yaml",
        "schemas/vm.schema.json",
        "ci/proxops.yaml",
        "vm/lab",
    ] {
        assert!(repo.join(file).exists(), "{file}");
    }
    // From here on the credentials come from the document.
    proxops(home.path(), &repo, &[], &["validate"]).exits(0);
    let run =
        proxops(home.path(), &repo, &[], &["adopt", "--cluster", "lab", "--adopt-secrets", "-o", "json"])
            .exits(0);
    let lines: Vec<String> =
        run.json()["resources"].as_array().unwrap().iter().map(|l| l.as_str().unwrap().to_owned()).collect();
    fs::write(repo.join("clusters/lab/resources.yaml"), format!("resources:\n{}\n", lines.join("\n")))
        .unwrap();
    let plan = proxops(home.path(), &repo, &[], &["diff", "-o", "json"]).exits(0);
    assert_eq!(plan.actions(), ["update LXC/dns", "update TemplateVM/debian-13", "update VM/legacy-db"]);

    // A second time nothing is written over; another cluster joins, for the same readers.
    proxops(home.path(), &repo, &env, &["init", "--cluster", "lab", "--base-url", &url])
        .exits(1)
        .says("is configured");
    let rules = fs::read_to_string(repo.join(".sops.yaml")).unwrap();
    proxops(home.path(), &repo, &[], &["init", "--cluster", "edge"])
        .exits(0)
        .says("was there and stays as it is");
    assert_eq!(fs::read_to_string(repo.join(".sops.yaml")).unwrap(), rules);
    proxops(home.path(), &repo, &[], &["validate"]).exits(0);
    assert_eq!(fs::read_to_string(&key).unwrap().matches("AGE-SECRET-KEY-").count(), 1);
    assert!(sim.write_log().is_empty());
}

#[test]
fn from_nothing_it_says_what_is_missing() {
    let home = tempfile::tempdir().unwrap();
    let run = proxops(home.path(), home.path(), &[], &["init", "infra"]).exits(0);
    assert!(run.stdout.contains("address") && run.stdout.contains("sops edit"), "{run}");
    let repo = home.path().join("infra");
    proxops(home.path(), &repo, &[], &["validate"]).exits(0);
    let bad = [("PROXOPS_PVE_TOKEN_VALUE", "nonsense")];
    proxops(home.path(), &repo, &bad, &["init", "--cluster", "b", "--base-url", "https://192.0.2.1:8006"])
        .exits(1)
        .says("user@realm!name=secret");
    proxops(home.path(), &repo, &[], &["init", "--cluster", "B/../c"]).exits(1).says("lower-case");
    // A home inside the repository would commit the private key.
    let inside = repo.join("home");
    fs::create_dir_all(inside.join(".config")).unwrap();
    fs::remove_file(repo.join(".sops.yaml")).unwrap();
    proxops(&inside, &repo, &[], &["init", "--cluster", "c"]).exits(1).says("lies in the repository");
}

/// What `validate` would refuse afterwards is refused before anything is written, and never repeated.
#[test]
fn what_can_not_be_used_is_refused_and_nothing_is_left_behind() {
    let home = tempfile::tempdir().unwrap();
    let refused = |env: &[(&str, &str)], words: &[&str], why: &str| {
        let mut all = vec!["init", "infra", "--cluster", "lab"];
        all.extend_from_slice(words);
        let run = proxops(home.path(), home.path(), env, &all).exits(1).says(why);
        assert!(!run.stderr.contains("PASSWORD") && !run.stdout.contains("PASSWORD"), "{run}");
        assert!(!home.path().join("infra").exists(), "{words:?}");
        assert!(!home.path().join(".config").exists(), "no key was made: {words:?}");
    };
    for (url, why) in [
        ("http://10.0.0.1", "loopback"),
        ("10.0.0.1", "no scheme"),
        ("", "no scheme"),
        ("not a url", "no scheme"),
        ("https://u:PASSWORD@h/x", "path"),
        ("https://u:PASSWORD@h", "user"),
    ] {
        refused(&[], &["--base-url", url], why);
    }
    let url = ["--base-url", "https://192.0.2.1:8006"];
    refused(&[], &[url[0], url[1], "--fingerprint", "zz"], "SHA-256");
    refused(&[], &[url[0], url[1], "--nodes", ""], "--nodes");
    refused(&[], &[url[0], url[1], "--nodes", "pve01,pve01"], "twice");
    refused(&[("SOPS_AGE_KEY", "garbage")], &url, "SOPS_AGE_KEY");
    refused(&[("SOPS_AGE_KEY_FILE", "/does/not/exist")], &url, "SOPS_AGE_KEY_FILE");
}

#[test]
fn clusters_without_an_address_yet_do_not_share_one() {
    let home = tempfile::tempdir().unwrap();
    proxops(home.path(), home.path(), &[], &["init", "infra", "--cluster", "first"]).exits(0);
    let repo = home.path().join("infra");
    proxops(home.path(), &repo, &[], &["init", "--cluster", "second"]).exits(0);
    proxops(home.path(), &repo, &[], &["validate"]).exits(0);
}
