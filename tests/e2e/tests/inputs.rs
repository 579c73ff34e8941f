//! Files that nobody wrote on purpose: a clear error, exit 1, never a panic.

use crate::support::vm;
use proxops_e2e::{Bench, CLUSTER, Run};
use proxops_sim::seed;
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

const FILE: &str = "vm/lab/x.yaml";

fn offline() -> Bench {
    let mut bench = Bench::offline("https://192.0.2.1:8006");
    bench.documents(&format!("vm/{CLUSTER}/good.yaml"), &[vm("good", 100, json!({}))]);
    bench
}

/// `validate` with this as a manifest file: the errors that it gives.
fn judged(content: &[u8]) -> (Run, Vec<serde_json::Value>) {
    let mut bench = offline();
    bench.manifest(FILE, "");
    bench.write(FILE, content);
    let run = bench.run(&["validate", "-o", "json"]).exits(1);
    let found = run.json()["diagnostics"].as_array().unwrap().clone();
    assert!(!found.is_empty(), "{run}");
    for d in &found {
        assert_eq!(d["file"], FILE, "only the bad file is complained about: {run}");
        assert!(d["message"].as_str().is_some_and(|m| !m.is_empty() && m.len() < 2000), "{run}");
        assert!(d["line"].as_u64().is_some_and(|line| line >= 1), "{run}");
    }
    // And on the way to a plan as well; it aborts before any call.
    let plan = bench.diff().exits(1);
    assert_eq!(plan.json()["clusters"][0]["state"], "aborted");
    assert!(plan.stdout.len() < 100_000, "an error is no dump");
    (run, found)
}

fn codes(content: &[u8]) -> Vec<String> {
    judged(content).1.iter().map(|d| d["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn binary_garbage_is_an_error() {
    let noise: Vec<u8> = (0..4096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    judged(&noise);
    judged(b"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00");
    judged(&[0; 1000]);
    judged(b"\xff\xfea\x00p\x00i\x00");
}

#[test]
fn a_line_of_ten_megabytes_is_an_error() {
    let head = "apiVersion: proxops/v1alpha1\nkind: VM\nmetadata: {name: x}\nspec:\n  pve-description: ";
    let mut text = head.as_bytes().to_vec();
    text.extend(std::iter::repeat_n(b'x', 10 << 20));
    judged(&text);
}

#[test]
fn deep_nesting_is_an_error() {
    for (open, close) in [("[", "]"), ("{a: ", "}")] {
        let text = format!("a: {}{}\n", open.repeat(100_000), close.repeat(100_000));
        assert_eq!(codes(text.as_bytes()).len(), 1);
    }
    let block: String = (0..5_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    judged(block.as_bytes());
}

#[test]
fn anchors_that_expand_without_bound_are_an_error() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let list = vec![format!("*a{}", n - 1); 10].join(", ");
        text.push_str(&format!("a{n}: &a{n} [{list}]\n"));
    }
    assert!(codes(text.as_bytes()).contains(&"too-many-nodes".to_owned()), "{:?}", codes(text.as_bytes()));
}

#[test]
fn an_empty_file_and_a_file_of_another_program_are_errors() {
    judged(b"");
    judged(b"# nothing but a comment\n");
    judged(b"version: '3'\nservices:\n  web: {image: nginx}\n");
    judged(b"<html><body>502 Bad Gateway</body></html>\n");
    judged(b"!!python/object/apply:os.system [id]\n");
}

#[test]
fn a_listed_file_whose_name_is_not_utf8_is_an_error() {
    let mut bench = offline();
    let name = OsStr::from_bytes(b"caf\xe9.yaml");
    std::fs::write(bench.repo().join("vm/lab").join(name), "x: 1\n").unwrap();
    // YAML can only come near its name.
    bench.manifest("vm/lab/other.yaml", &vm("other", 101, json!({})).to_string());
    let list = bench.repo().join("clusters/lab/resources.yaml");
    let mut text = std::fs::read(&list).unwrap();
    text.extend(b"  - ../../vm/lab/caf\xe9.yaml\n");
    std::fs::write(&list, text).unwrap();
    let run = bench.run(&["validate", "-o", "json"]).exits(1);
    assert!(
        run.json()["diagnostics"]
            .as_array()
            .unwrap()
            .iter()
            .all(|d| d["file"] == "clusters/lab/resources.yaml")
    );
    std::fs::write(&list, "resources:\n  - \"../../vm/lab/caf\\xe9.yaml\"\n").unwrap();
    bench.run(&["validate"]).exits(1).says("clusters/lab/resources.yaml:2:5: error[no-such-file]");
}

#[test]
fn what_is_not_listed_may_have_any_name_and_content() {
    let bench = offline();
    std::fs::write(bench.repo().join("vm/lab").join(OsStr::from_bytes(b"\xff\xfe.yaml")), b"\x00").unwrap();
    bench.write("vm/lab/draft.yaml", b"kind: [unfinished");
    assert_eq!(bench.errors(), [""; 0]);
}

#[test]
fn a_link_out_of_the_repository_is_refused() {
    let bench = offline();
    let outside = bench.data_dir().join("outside.yaml");
    std::fs::write(&outside, vm("outside", 101, json!({})).to_string()).unwrap();
    std::os::unix::fs::symlink(&outside, bench.repo().join(FILE)).unwrap();
    let list = "resources:\n  - ../../vm/lab/good.yaml\n  - ../../vm/lab/x.yaml\n";
    bench.write("clusters/lab/resources.yaml", list);
    assert_eq!(bench.errors(), ["outside-repository clusters/lab/resources.yaml:3:5"]);
    // a folder on the way
    std::fs::remove_file(bench.repo().join(FILE)).unwrap();
    std::os::unix::fs::symlink(bench.data_dir(), bench.repo().join("vm/lab/sub")).unwrap();
    bench.write("clusters/lab/resources.yaml", list.replace("x.yaml", "sub/outside.yaml"));
    assert_eq!(bench.errors(), ["outside-repository clusters/lab/resources.yaml:3:5"]);
    // and by dots
    bench.write("clusters/lab/resources.yaml", list.replace("vm/lab/x.yaml", "../data/outside.yaml"));
    assert_eq!(bench.errors(), ["outside-repository clusters/lab/resources.yaml:3:5"]);
}

#[test]
fn a_loop_of_links_a_folder_and_a_pipe_are_no_manifests() {
    let bench = offline();
    let file = bench.repo().join(FILE);
    bench.write("clusters/lab/resources.yaml", "resources:\n  - ../../vm/lab/x.yaml\n");
    std::os::unix::fs::symlink("x.yaml", &file).unwrap();
    assert_eq!(bench.errors().len(), 1);
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert_eq!(bench.errors().len(), 1);
    std::fs::remove_dir(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert_eq!(bench.errors().len(), 1, "a pipe is refused, not read for ever");
}

#[test]
fn without_a_repository_nothing_happens_at_all() {
    let bench = offline();
    std::fs::remove_dir_all(bench.repo().join(".git")).unwrap();
    for words in [&["validate"][..], &["diff"], &["apply", "--yes"], &["status"]] {
        bench.run(words).exits(1).says(".git");
    }
}

#[test]
fn a_form_that_a_command_does_not_have_is_refused() {
    let bench = Bench::new(seed::empty());
    for words in
        [&["validate"][..], &["status"], &["doctor"], &["history"], &["kinds", "list"], &["explain", "VM"]]
    {
        let mut all = words.to_vec();
        all.extend(["-o", "markdown"]);
        let run = bench.run(&all).exits(1).says("only diff and apply");
        assert!(run.stdout.is_empty(), "{run}");
    }
    for words in [&["diff"][..], &["apply", "--dry-run"]] {
        let mut all = words.to_vec();
        all.extend(["-o", "markdown"]);
        bench.run(&all).exits(0);
    }
}

const CONFIGURATION: [&str; 3] = ["proxops.yaml", "clusters/lab/config.yaml", "clusters/lab/resources.yaml"];

/// The binary with four gigabytes of memory and twenty seconds: what reads without an end is ended.
fn within_bounds(bench: &Bench, words: &[&str]) -> Run {
    let command = bench.command(words);
    let mut bounded = std::process::Command::new("timeout");
    bounded.args(["-s", "KILL", "20", "prlimit", "--data=4294967296", "--"]).arg(command.get_program());
    bounded.args(command.get_args()).current_dir(bench.repo()).env_clear().stdin(std::process::Stdio::null());
    bounded.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Run::of(bounded.output().unwrap())
}

#[test]
fn configuration_that_is_a_link_out_of_the_tree_is_refused_and_not_quoted() {
    for name in CONFIGURATION {
        let bench = offline();
        let outside = bench.data_dir().join("shadow");
        std::fs::write(&outside, "root:$6$hunter2:19000:0:99999:7:::\n").unwrap();
        let file = bench.repo().join(name);
        let _ = std::fs::remove_file(&file);
        std::os::unix::fs::symlink(&outside, &file).unwrap();
        for words in [["validate"].as_slice(), &["validate", "-o", "json"], &["diff"]] {
            let run = bench.run(words).exits(1).says("outside");
            assert!(!format!("{}{}", run.stdout, run.stderr).contains("hunter2"), "{run}");
        }
    }
}

#[test]
fn a_device_or_a_pipe_as_configuration_is_an_error_and_takes_neither_memory_nor_time() {
    for name in CONFIGURATION {
        let bench = offline();
        let file = bench.repo().join(name);
        let _ = std::fs::remove_file(&file);
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        within_bounds(&bench, &["validate"]).exits(1).says("outside-repository");
        std::fs::remove_file(&file).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        within_bounds(&bench, &["validate"]).exits(1).says("not a regular file");
        within_bounds(&bench, &["diff"]).exits(1);
    }
}

#[test]
fn a_pipe_in_place_of_any_other_file_that_is_named_is_an_error() {
    let bench = offline();
    let pipe = bench.data_dir().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let named = pipe.display().to_string();
    within_bounds(&bench, &["apply", named.as_str()]).exits(1).says("not a regular file");
    within_bounds(&bench, &["apply", "/dev/zero"]).exits(1).says("not a regular file");
    for name in ["ca-file", "secrets-file"] {
        let mut bench = offline();
        bench.set("PROXOPS_PVE_TOKEN_VALUE", "gitops@pve!proxops=5ec7e700-0000-4000-8000-c0ffee000009");
        bench.configure(&[&format!("{name}: {named}")]);
        within_bounds(&bench, &["diff"]).exits(1).says("not a regular file");
    }
    for line in [format!("token-file: {named}"), format!("cert-file: {named}\n  key-file: {named}")] {
        bench.write("proxops.yaml", format!("http:\n  {line}\n"));
        let run = within_bounds(&bench, &["run", "--listen", "127.0.0.1:0"]).exits(1);
        assert!(run.stderr.contains("not a regular file"), "{run}");
    }
}
