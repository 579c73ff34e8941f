//! What lies in `packaging/`, held against the daemon and against the programs that it is written for.

use crate::support::{tool, vm};
use proxops_e2e::{Bench, CLUSTER, Daemon, binary};
use proxops_sim::{GuestKind, TaskRule, seed};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(file).canonicalize().unwrap()
}

fn yaml(file: &str) -> Value {
    let stream = proxops_repo::yaml::parse(&fs::read(packaging(file)).unwrap());
    assert!(stream.problems.is_empty(), "{file}: {:?}", stream.problems);
    stream.documents[0].value.clone()
}

/// Values of labels by metric and label.
type Samples = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn note(text: &str, samples: &mut Samples) {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_once(['{', ' ']).unwrap();
        let labels = samples.entry(name.to_owned()).or_default();
        let Some((inner, _)) = rest.rsplit_once("\"}") else { continue };
        for pair in inner.split("\",") {
            let (label, value) = pair.split_once("=\"").unwrap();
            labels.entry(label.to_owned()).or_default().insert(value.trim_end_matches('"').to_owned());
        }
    }
}

/// `/metrics` of two daemons that saw something of everything: one applies, one watches.
fn metrics() -> Vec<String> {
    let estate = |observe: bool| {
        let mut bench = Bench::new(seed::empty());
        bench.write("proxops.yaml", "reconcile: {poll-interval: 1h}\n");
        bench.set("PROXOPS_WEBHOOK_SECRET", "right");
        let good = vm("web", 100, json!({}));
        bench.documents(&format!("vm/{CLUSTER}/web.yaml"), std::slice::from_ref(&good));
        bench.apply().exits(0);
        bench.meddle("PUT", "/nodes/pve01/qemu/100/config", json!({"memory": "4096"}));
        bench.world().add_guest(GuestKind::Qemu, 9000, "pve01", &[("name", "foreign"), ("memory", "512")]);
        let broken = TaskRule { id: Some("101".into()), ..TaskRule::fail("qmcreate", "no space left") };
        bench.world().task_rules.push(broken);
        let more = [vm("db", 101, json!({})), vm("taken", 9000, json!({}))];
        bench.documents(&format!("vm/{CLUSTER}/more.yaml"), &more);
        let daemon = Daemon::start(&bench, if observe { &["--observe"] } else { &[] });
        daemon.until(CLUSTER, "looked at", |c| c["cycles"].as_array().is_some_and(|c| c.len() == 1));
        let wrong = daemon.send("POST", "/webhook", &[("X-Gitlab-Token", "wrong")], b"{}");
        assert_eq!(wrong.status, 401);
        daemon.get("/metrics").body
    };
    vec![estate(false), estate(true)]
}

/// The metrics of an expression, each with the label matchers in its braces.
fn selectors(expr: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = expr;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let from = &rest[at..];
        let end = from.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(from.len());
        let (name, after) = from.split_at(end);
        let braces = after.strip_prefix('{').and_then(|inner| inner.split_once('}')).map(|(inner, _)| inner);
        if name.starts_with("proxops_") || name.starts_with("process_") {
            found.push((name.to_owned(), braces.unwrap_or_default().to_owned()));
        }
        rest = braces.map_or(after, |inner| &after[inner.len() + 2..]);
        // What stands in quotes is no name.
        if let Some(quoted) = rest.strip_prefix('"') {
            rest = quoted.split_once('"').map_or("", |(_, rest)| rest);
        }
    }
    found
}

/// Labels that `by (...)` keeps; `None` without one.
fn kept(expr: &str) -> Option<Vec<String>> {
    let (_, rest) = expr.split_once(" by (")?;
    let (inner, _) = rest.split_once(')')?;
    Some(inner.split(',').map(|label| label.trim().to_owned()).collect())
}

/// Everything that an expression names is there; the labels of its result.
#[track_caller]
fn held(expr: &str, samples: &Samples) -> BTreeSet<String> {
    let found = selectors(expr);
    let mut labels: BTreeSet<String> = ["job", "instance"].map(str::to_owned).into();
    for (name, matchers) in &found {
        let of = samples.get(name).unwrap_or_else(|| panic!("{expr}: no daemon has the metric {name}"));
        for matcher in matchers.split(',').filter(|m| !m.is_empty()) {
            let (label, wanted) = matcher.split_once(['=', '!']).unwrap();
            let wanted = wanted.trim_start_matches(['=', '~']).trim_matches('"');
            if ["job", "instance"].contains(&label) {
                continue;
            }
            let values = of.get(label).unwrap_or_else(|| panic!("{expr}: {name} has no label {label}"));
            for value in wanted.split('|').filter(|value| !value.starts_with('$')) {
                assert!(values.contains(value), "{expr}: {label} of {name} is {values:?}, never {value}");
            }
        }
        labels.extend(of.keys().cloned());
    }
    match kept(expr) {
        Some(kept) => {
            for label in &kept {
                assert!(labels.contains(label), "{expr}: nothing has the label {label}");
            }
            kept.into_iter().collect()
        }
        None => labels,
    }
}

/// `{{ $labels.x }}` of an alert and `{{x}}` of a legend.
fn named(text: &str) -> Vec<String> {
    let inner = text.split("{{").skip(1).filter_map(|rest| rest.split_once("}}"));
    let inner = inner.map(|(inner, _)| inner.trim()).filter(|inner| *inner != "$value");
    inner.map(|inner| inner.trim_start_matches("$labels.").to_owned()).collect()
}

fn rules() -> Vec<Value> {
    let document = yaml("alerts.yml");
    let groups = document["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

#[test]
fn alerts_and_dashboard_use_only_metrics_labels_and_values_that_a_daemon_has() {
    let mut samples = Samples::new();
    metrics().iter().for_each(|text| note(text, &mut samples));
    let mut used = BTreeSet::new();
    for rule in rules() {
        let expr = rule["expr"].as_str().unwrap();
        used.extend(selectors(expr).into_iter().map(|(name, _)| name));
        let labels = held(expr, &samples);
        for text in rule["annotations"].as_object().unwrap().values() {
            for label in named(text.as_str().unwrap()) {
                assert!(labels.contains(&label), "{}: no label {label} in {labels:?}", rule["alert"]);
            }
        }
    }
    let dashboard: Value =
        serde_json::from_slice(&fs::read(packaging("grafana-dashboard.json")).unwrap()).unwrap();
    let mut panels = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            panels += 1;
            let expr = target["expr"].as_str().unwrap();
            used.extend(selectors(expr).into_iter().map(|(name, _)| name));
            let labels = held(expr, &samples);
            for label in named(target["legendFormat"].as_str().unwrap_or_default()) {
                assert!(labels.contains(&label), "{expr}: no label {label} in {labels:?}");
            }
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let query = variable["definition"].as_str().unwrap_or_default();
        held(query, &samples);
    }
    assert!(panels >= 15 && used.len() >= 18, "{panels} panels, {used:?}");
    // The check is worth something only if it can fail.
    let fails = |expr: &str| std::panic::catch_unwind(|| held(expr, &samples)).is_err();
    assert!(fails("proxops_cyles_total > 0") && fails("sum by (nodes) (proxops_objects)"));
    assert!(fails("proxops_objects{state=\"drifted\"}") && fails("proxops_objects{status=\"drift\"}"));
    assert!(!fails("proxops_objects{state=\"drift\"}"));
}

fn promtool() -> Option<PathBuf> {
    tool("PROXOPS_TEST_PROMTOOL", "promtool", "alert rules and metrics were")
}

fn given(mut command: Command, input: &str) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn promtool_takes_the_metrics_of_a_daemon_without_a_complaint() {
    let Some(promtool) = promtool() else { return };
    for text in metrics() {
        let mut command = Command::new(&promtool);
        command.args(["check", "metrics"]);
        let output = given(command, &text);
        assert!(output.status.success() && said(&output).is_empty(), "{}", said(&output));
    }
}

#[test]
fn every_alert_fires_on_its_trouble_and_none_on_a_daemon_that_is_well() {
    let Some(promtool) = promtool() else { return };
    // The alert, the further labels of what fires, and what leads to it.
    let ill = [
        ("ProxopsDown", "job=\"proxops\"", "up{job=\"proxops\"} 0x60"),
        ("ProxopsClusterAborted", "cluster=\"lab\"", "proxops_cluster_up{cluster=\"lab\"} 0x60"),
        (
            "ProxopsCycleOverdue",
            "cluster=\"lab\"",
            "proxops_last_cycle_timestamp_seconds{cluster=\"lab\"} 0x60",
        ),
        (
            "ProxopsNotConverging",
            "cluster=\"lab\",kind=\"VM\"",
            "proxops_objects{cluster=\"lab\",kind=\"VM\",state=\"drift\"} 2x2000",
        ),
        (
            "ProxopsActionsFail",
            "cluster=\"lab\",result=\"failed\",verb=\"create\"",
            "proxops_actions_total{cluster=\"lab\",verb=\"create\",result=\"failed\"} 1+1x2000",
        ),
        (
            "ProxopsAnomaly",
            "cluster=\"lab\",code=\"not-ours\"",
            "proxops_anomalies{cluster=\"lab\",kind=\"VM\",code=\"not-ours\"} 1x2000",
        ),
        ("ProxopsTreeStale", "", "proxops_tree_stale_seconds 901x2000"),
        ("ProxopsSuspended", "cluster=\"edge\"", "proxops_cluster_suspended{cluster=\"edge\"} 1x2000"),
        (
            "ProxopsKindFaults",
            "function=\"drift\",kind=\"VM\",result=\"fault\"",
            "proxops_kind_calls_total{kind=\"VM\",function=\"drift\",result=\"fault\"} 0+1x2000",
        ),
        (
            "ProxopsWebhookRefused",
            "result=\"refused\"",
            "proxops_webhook_requests_total{result=\"refused\"} 0+1x2000",
        ),
    ];
    let well = [
        "up{job=\"proxops\"} 1x2000",
        "proxops_cluster_up{cluster=\"lab\"} 1x2000",
        // A cycle ended a minute ago, at any time.
        "proxops_last_cycle_timestamp_seconds{cluster=\"lab\"} 0+60x2000",
        "proxops_cluster_suspended{cluster=\"lab\"} 0x2000",
        "proxops_objects{cluster=\"lab\",kind=\"VM\",state=\"converged\"} 9x2000",
        "proxops_actions_total{cluster=\"lab\",verb=\"create\",result=\"ok\"} 1+1x2000",
        "proxops_actions_total{cluster=\"lab\",verb=\"create\",result=\"failed\"} 2x2000",
        "proxops_tree_stale_seconds 0x2000",
        "proxops_kind_calls_total{kind=\"VM\",function=\"drift\",result=\"fault\"} 0x2000",
        "proxops_webhook_requests_total{result=\"refused\"} 3x2000",
    ];
    let all: Vec<Value> = rules();
    let names: Vec<&str> = all.iter().map(|rule| rule["alert"].as_str().unwrap()).collect();
    assert_eq!(names, ill.map(|(name, ..)| name), "an alert without a test, or the other way round");
    let series = |lines: &[&str]| -> Vec<Value> {
        let split = lines.iter().map(|line| line.rsplit_once(' ').unwrap());
        split.map(|(series, values)| json!({"series": series, "values": values})).collect()
    };
    let firing = |expected: Vec<Value>| json!([{"expr": "ALERTS{alertstate=\"firing\"}", "eval_time": "30h", "exp_samples": expected}]);
    let mut tests =
        vec![json!({"interval": "1m", "input_series": series(&well), "promql_expr_test": firing(vec![])})];
    for ((name, labels, line), rule) in ill.iter().zip(&all) {
        // Whatever else is there is well, but for the series of this trouble.
        let own = line.rsplit_once(' ').unwrap().0;
        let mut lines: Vec<&str> = well.iter().copied().filter(|w| !w.starts_with(own)).collect();
        let long = line.replace("x60", "x2000");
        lines.push(&long);
        let severity = rule["labels"]["severity"].as_str().unwrap();
        let comma = if labels.is_empty() { "" } else { "," };
        let sample = format!(
            "ALERTS{{alertname=\"{name}\",alertstate=\"firing\",severity=\"{severity}\"{comma}{labels}}}"
        );
        tests.push(json!({
            "interval": "1m",
            "input_series": series(&lines),
            "promql_expr_test": firing(vec![json!({"labels": sample, "value": 1})]),
        }));
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.yml");
    let document =
        json!({"rule_files": [packaging("alerts.yml")], "evaluation_interval": "1m", "tests": tests});
    fs::write(&file, format!("{document:#}")).unwrap();
    let check =
        Command::new(&promtool).args(["check", "rules"]).arg(packaging("alerts.yml")).output().unwrap();
    assert!(check.status.success(), "{}", said(&check));
    let test = Command::new(&promtool).args(["test", "rules"]).arg(&file).output().unwrap();
    assert!(test.status.success(), "{}", said(&test));
}

#[test]
fn systemd_understands_every_line_of_the_unit() {
    let Some(analyze) = tool("PROXOPS_TEST_SYSTEMD_ANALYZE", "systemd-analyze", "the systemd unit was")
    else {
        return;
    };
    let unit = fs::read_to_string(packaging("proxops.service")).unwrap();
    // Where the program lies here; the manual page is in the package.
    let here = unit
        .replace("/usr/bin/proxops", binary().to_str().unwrap())
        .replace("Documentation=man:proxops(1)\n", "");
    assert_ne!(here, unit);
    let folder = tempfile::tempdir().unwrap();
    let verify = |text: &str| {
        let file = folder.path().join("proxops.service");
        fs::write(&file, text).unwrap();
        said(&Command::new(&analyze).args(["verify", "--man=no"]).arg(&file).output().unwrap())
    };
    // What systemd says of other units of this machine is not ours.
    let ours = |said: String| -> Vec<String> {
        said.lines().filter(|line| line.contains("proxops.service")).map(str::to_owned).collect()
    };
    assert_eq!(ours(verify(&here)), [""; 0]);
    let typo = here.replace("NoNewPrivileges", "NoNewPrivilege");
    assert!(!ours(verify(&typo)).is_empty(), "a wrong line is found");
}

#[test]
fn every_file_that_the_debian_package_takes_is_there() {
    let text = fs::read_to_string(packaging("../host/cli/Cargo.toml")).unwrap();
    let (_, assets) = text.split_once("assets = [").unwrap();
    let (assets, _) = assets.split_once("\n]").unwrap();
    let folder = packaging("../host/cli");
    let mut made = Vec::new();
    for line in assets.lines().filter(|line| line.contains('[')) {
        let source = line.split('"').nth(1).unwrap();
        match source.split_once("target/") {
            Some((_, built)) => made.push(built),
            None => assert!(folder.join(source).is_file(), "{source}"),
        }
    }
    let makefile = fs::read_to_string(packaging("../Makefile")).unwrap();
    for built in made.iter().filter(|built| !built.starts_with("release/")) {
        let file = built.split('*').next().unwrap().trim_end_matches('/');
        assert!(makefile.contains(&format!("target/{file}")), "`make package` does not make {built}");
    }
    assert!(made.len() >= 5, "{made:?}");
}

/// The `plan` job of the recipes, run as their runners do: the script, in the repository, with `proxops` on the path.
#[test]
fn the_recipes_for_pull_requests_say_what_a_change_would_do() {
    let mut bench = Bench::new(seed::empty());
    bench.write("proxops.yaml", format!("data-dir: {}\n", bench.data_dir().display()));
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({}))]);
    let bin = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(binary(), bin.path().join("proxops")).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    let output = bin.path().join("github-output");
    let run = |bench: &Bench, script: &str| {
        let mut shell = Command::new("bash");
        // As GitHub's runners call it.
        shell.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]).current_dir(bench.repo());
        shell.env_clear().envs(&bench.env).env("PATH", &path).env("GITHUB_OUTPUT", &output);
        shell.output().unwrap()
    };
    let recipe = yaml("ci/github.yml");
    let steps = recipe["jobs"]["plan"]["steps"].as_array().unwrap();
    let script = steps.iter().find(|step| step["id"] == "plan").unwrap()["run"].as_str().unwrap();
    let validate = recipe["jobs"]["validate"]["steps"][1]["run"].as_str().unwrap();
    assert!(run(&bench, validate).status.success());
    let done = run(&bench, script);
    assert!(done.status.success(), "{}", said(&done));
    let comment = fs::read_to_string(bench.repo().join("comment.md")).unwrap();
    assert!(comment.starts_with("<!-- proxops -->\n") && comment.contains("web"), "{comment}");
    assert_eq!(fs::read_to_string(&output).unwrap(), "code=2\n");

    // GitLab's, up to the call of its API.
    let recipe = yaml("ci/gitlab.yml");
    let script = recipe["plan"]["script"][0].as_str().unwrap();
    let done = run(&bench, &format!("{script}\ncat plan.md; echo \"code $code\""));
    assert!(
        done.status.success() && said(&done).contains("web") && said(&done).contains("code 2"),
        "{}",
        said(&done)
    );

    // A cluster that can't be reached fails the job, and the comment says so.
    bench.point_at("http://127.0.0.1:1");
    fs::remove_file(&output).unwrap();
    let script = steps.iter().find(|step| step["id"] == "plan").unwrap()["run"].as_str().unwrap();
    assert!(run(&bench, script).status.success());
    assert_eq!(fs::read_to_string(&output).unwrap(), "code=1\n");
    let comment = fs::read_to_string(bench.repo().join("comment.md")).unwrap();
    assert!(comment.contains("The plan failed"), "{comment}");
    assert!(bench.writes().is_empty());
}
