//! Credentials and secrets: which one is used, where it goes, and what is said when there is none.

use crate::documents::age_key;
use crate::support::{sops, vm};
use proxops_e2e::{Bench, CLUSTER, Tap};
use proxops_sim::seed;
use serde_json::json;

const TOKEN_LINES: [&str; 2] =
    ["secrets-file: secrets.sops.yaml", "secrets: {pve: {user: user, token-id: id, token: token}}"];

fn document(token: &str) -> String {
    sops(&[("secrets.user", "gitops@pve"), ("secrets.id", "proxops"), ("secrets.token", token)])
}

fn bench() -> Bench {
    let mut bench = Bench::new(seed::empty());
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({}))]);
    bench.set("SOPS_AGE_KEY", &age_key().0);
    bench
}

#[test]
fn one_clusters_secret_never_reaches_another_clusters_endpoint() {
    let (mut lab, east) = (bench(), Bench::new(seed::empty()));
    let (secret_lab, secret_east) = ("Heron-fixture-lab-5521", "Bison-fixture-east-8812");
    let shared = "gitops@pve!proxops=Shared-fixture-3107";
    lab.world().add_token("gitops@pve", "proxops", secret_lab, true);
    east.world().add_token("gitops@pve", "proxops", secret_east, true);
    let (to_lab, to_east) = (Tap::on(&lab.url()), Tap::on(&east.url()));
    lab.set("PROXOPS_PVE_TOKEN_VALUE", shared);
    lab.point_at(to_lab.url());
    lab.configure(&TOKEN_LINES);
    lab.write(&format!("clusters/{CLUSTER}/secrets.sops.yaml"), document(secret_lab));
    let config = format!(
        "pve:\n  clusters:\n    east:\n      base-url: {}\n      {}\n      {}\n",
        to_east.url(),
        TOKEN_LINES[0],
        TOKEN_LINES[1]
    );
    lab.write("clusters/east/config.yaml", config);
    lab.write("clusters/east/resources.yaml", "resources: []");
    lab.write("clusters/east/secrets.sops.yaml", document(secret_east));
    for words in [&["diff"][..], &["apply", "--yes"], &["status"], &["doctor"]] {
        lab.run(words).exits(0);
    }
    let (lab_heard, east_heard) = (to_lab.heard(), to_east.heard());
    assert!(lab_heard.contains(secret_lab) && east_heard.contains(secret_east));
    assert!(!lab_heard.contains(secret_east) && !east_heard.contains(secret_lab));
    assert!(!lab_heard.contains("Shared-fixture") && !east_heard.contains("Shared-fixture"));

    // Without its document a cluster has no credential: it does not fall back to the shared one.
    std::fs::remove_file(lab.repo().join("clusters/east/secrets.sops.yaml")).unwrap();
    let run = lab.run(&["diff", "-o", "json"]).exits(1);
    let clusters = &run.json()["clusters"];
    assert_eq!((&clusters[0]["cluster"], &clusters[0]["state"]), (&json!("east"), &json!("aborted")));
    assert_eq!(clusters[1]["state"], json!("ok"));
    assert_eq!(to_east.heard(), east_heard, "nothing more was sent to it");
}

#[test]
fn the_shared_token_reaches_clusters_without_a_document_only() {
    let (mut lab, east) = (bench(), Bench::new(seed::empty()));
    let (to_lab, to_east) = (Tap::on(&lab.url()), Tap::on(&east.url()));
    lab.point_at(to_lab.url());
    lab.configure(&TOKEN_LINES);
    lab.world().add_token("gitops@pve", "proxops", "Heron-fixture-lab-5521", true);
    lab.write(&format!("clusters/{CLUSTER}/secrets.sops.yaml"), document("Heron-fixture-lab-5521"));
    lab.write(
        "clusters/east/config.yaml",
        format!("pve: {{clusters: {{east: {{base-url: '{}'}}}}}}", to_east.url()),
    );
    lab.write("clusters/east/resources.yaml", "resources: []");
    lab.run(&["diff"]).exits(0);
    assert!(to_east.heard().contains(seed::TOKEN_SECRET) && !to_east.heard().contains("Heron"));
    assert!(to_lab.heard().contains("Heron") && !to_lab.heard().contains(seed::TOKEN_SECRET));
}

#[test]
fn each_way_to_fail_is_said_in_its_own_words_with_file_and_key() {
    let mut bench = bench();
    bench.env.remove("PROXOPS_PVE_TOKEN_VALUE");
    bench.configure(&TOKEN_LINES);
    let file = format!("clusters/{CLUSTER}/secrets.sops.yaml");
    let secret = "Marten-fixture-7741";
    let good = document(secret);
    let token = good.lines().find(|l| l.contains("token:")).unwrap();
    let mut said = Vec::new();
    for (text, words) in [
        ("secrets: {token: Marten-fixture-7741}\n".to_owned(), "not encrypted"),
        ("secrets: [Marten-fixture-7741".to_owned(), "malformed"),
        (good.replace(token, &token.replace("data:", "data:AAAA")), "MAC mismatch"),
        (good.replace(token, "    token: Marten-fixture-7741"), "secrets.token"),
        (sops(&[("secrets.user", "gitops@pve"), ("secrets.id", "proxops")]), "no key secrets.token"),
        (document(""), "key secrets.token is empty"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:00\n".to_owned(), "Git LFS"),
    ] {
        bench.write(&file, text);
        let run = bench.run(&["diff", "-o", "json"]).exits(1);
        let error = run.json()["clusters"][0]["error"].as_str().unwrap().to_owned();
        assert!(error.contains(words) && error.contains(&file), "{words}: {error}");
        assert!(!format!("{run}").contains(secret), "{run}");
        said.push(error);
    }
    bench.write(&file, &good);
    bench.set("SOPS_AGE_KEY", "");
    let none = bench.run(&["diff"]).exits(1);
    assert!(none.stdout.contains("no identity") && none.stdout.contains(&file), "{none}");
    bench.set("SOPS_AGE_KEY", "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ");
    bench.run(&["diff"]).exits(1).says("SOPS_AGE_KEY");
    use age::secrecy::ExposeSecret as _;
    let other = age::x25519::Identity::generate().to_string();
    bench.set("SOPS_AGE_KEY", other.expose_secret());
    bench.run(&["diff"]).exits(1).says("none of the 1 identities");
    said.sort();
    said.dedup();
    assert_eq!(said.len(), 7, "two failures say the same");
    assert_eq!(bench.sim().requests(), 0, "nobody was asked with half a credential");
}

#[test]
fn two_spellings_of_one_credential_are_a_conflict_that_names_both_places() {
    let mut bench = bench();
    bench.set("PROXOPS_PVE_TOKEN", "Otter-fixture-1");
    bench.set("PROXOPS_PVE_TOKEN_VALUE", "gitops@pve!x=Otter-fixture-2");
    let run = bench.run(&["diff"]).exits(1);
    assert!(
        format!("{run}").contains("PROXOPS_PVE_TOKEN_VALUE") && !format!("{run}").contains("Otter"),
        "{run}"
    );
    assert_eq!(bench.sim().requests(), 0);
}

#[test]
fn two_clusters_with_different_git_tokens_are_an_error_that_names_both() {
    let mut bench = bench();
    let lines = "secrets-file: secrets.sops.yaml\n      secrets: {git: {token: git-token}}";
    bench.configure(&lines.split("\n      ").collect::<Vec<_>>());
    bench.write(
        "clusters/east/config.yaml",
        format!("pve:\n  clusters:\n    east:\n      base-url: https://127.0.0.1:1\n      {lines}\n"),
    );
    bench.write("clusters/east/resources.yaml", "resources: []");
    let repo = bench.repo();
    let write = |cluster: &str, token: &str| {
        let file = repo.join(format!("clusters/{cluster}/secrets.sops.yaml"));
        std::fs::write(file, sops(&[("secrets.git-token", token)])).unwrap();
    };
    write(CLUSTER, "Otter-fixture-1");
    write("east", "Otter-fixture-2");
    let run = bench.run(&["diff", "-o", "json"]).exits(1);
    for cluster in run.json()["clusters"].as_array().unwrap() {
        let error = cluster["error"].as_str().unwrap();
        assert!(error.contains("cluster east") && error.contains("cluster lab"), "{error}");
        assert!(error.contains("different git tokens") && !error.contains("Otter"), "{error}");
    }
    assert_eq!(bench.sim().requests(), 0);
    // One and the same is none; a document that can't be read stops its own cluster only.
    write("east", "Otter-fixture-1");
    assert_eq!(bench.run(&["diff", "-o", "json", "--cluster", CLUSTER]).exits(0).actions().len(), 1);
    bench.write("clusters/east/secrets.sops.yaml", "broken");
    bench.run(&["diff", "--cluster", CLUSTER]).exits(0);
    // validate needs no secret.
    bench.env.remove("SOPS_AGE_KEY");
    write("east", "Otter-fixture-2");
    bench.run(&["validate"]).exits(0);
}

#[test]
fn a_certificate_that_changes_under_a_pin_shows_both_fingerprints() {
    let mut bench = Bench::tls(seed::empty());
    let run = bench.run(&["doctor", "-o", "json"]).exits(0).json();
    let tls = run["checks"].as_array().unwrap().iter().find(|c| c["check"] == "tls").unwrap();
    let before = tls["message"].as_str().unwrap().split("fingerprint ").nth(1).unwrap()[..95].to_owned();
    bench.configure(&[&format!("fingerprint: '{before}'")]);
    bench.run(&["diff"]).exits(0);
    bench.sim().change_certificate(true).unwrap();
    let run = bench.run(&["diff", "-o", "json"]).exits(1);
    let error = run.json()["clusters"][0]["error"].as_str().unwrap().to_owned();
    let seen = error.split("seen ").nth(1).unwrap()[..95].to_owned();
    assert!(error.contains(&before) && seen != before && seen.matches(':').count() == 31, "{error}");
}

#[test]
fn a_ticket_that_dies_during_a_run_is_replaced_once() {
    let bench = bench().as_root();
    bench.run(&["diff"]).exits(0);
    bench.sim().inject(proxops_sim::RequestFault::once(
        "GET",
        "/cluster/resources",
        proxops_sim::FaultAnswer::Status {
            status: 401,
            message: "permission denied - invalid PVE ticket".to_owned(),
            errors: [].into(),
            effect: false,
        },
    ));
    bench.run(&["diff"]).exits(0);
}
