//! A run as its operator sees it: signals, time limits, warnings, progress, a data directory that fails.

use crate::support::vm;
use proxops_e2e::{Bench, CLUSTER, Run};
use proxops_sim::{TaskRule, seed};
use serde_json::json;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn bench(task: Duration) -> Bench {
    let mut world = seed::empty();
    world.task_duration = task;
    let mut bench = Bench::new(world);
    bench.configure(&["reconcile: {concurrency: 1, task-timeout: 2s}"]);
    bench.documents(&format!("vm/{CLUSTER}/all.yaml"), &[vm("a", 100, json!({})), vm("b", 101, json!({}))]);
    bench
}

fn apply_until_create(bench: &Bench) -> Child {
    let mut child = bench
        .command(&["apply", "--yes", "-o", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while bench.sim().write_log().is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "apply ended early");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn a_stop_signal_lets_what_runs_end_starts_nothing_more_and_says_so() {
    for name in ["INT", "TERM"] {
        let bench = bench(Duration::from_millis(700));
        let child = apply_until_create(&bench);
        signal(&child, name);
        let run = Run::of(child.wait_with_output().unwrap()).exits(1);
        let results: Vec<_> = run.list("actions").iter().map(|a| a["result"].clone()).collect();
        assert_eq!(results, [json!("ok"), json!("not-started")], "{name}: {run}");
        assert_eq!(bench.writes().len(), 1, "{name}: {run}");
        bench.apply().exits(0);
        bench.converged();
    }
}

#[test]
fn a_task_that_outlives_its_time_fails_its_action_and_is_awaited_by_the_next_run() {
    let bench = bench(Duration::ZERO);
    bench.world().task_rules.push(TaskRule {
        kind: "qmcreate".into(),
        id: Some("100".into()),
        times: 1,
        seconds: Some(4.0),
        ..TaskRule::default()
    });
    let run = bench.apply().exits(1);
    let actions = run.list("actions");
    let (a, b) = (&actions[0], &actions[1]);
    assert!(a["error"].as_str().unwrap().contains("still runs after 2 s"), "{run}");
    assert!(a["upids"][0].as_str().unwrap().contains(":qmcreate:100:"), "{run}");
    assert_eq!(b["result"], "ok", "the limit is the task's, not the run's: {run}");
    let creates =
        |bench: &Bench| bench.sim().write_log().iter().filter(|w| w.path.ends_with("/qemu")).count();
    assert_eq!(creates(&bench), 2);
    bench.apply();
    bench.apply().exits(0);
    assert_eq!(creates(&bench), 2, "the guest in the making was not made again");
    bench.converged();
}

#[test]
fn warnings_of_a_task_are_shown_and_are_no_failure() {
    let bench = bench(Duration::ZERO);
    bench.world().task_rules.push(TaskRule {
        kind: "qmcreate".into(),
        times: 1,
        exit: Some("WARNINGS: 2".into()),
        log: vec!["fine".into(), "WARN: no discard".into(), "WARN: thin pool is nearly full".into()],
        ..TaskRule::default()
    });
    let run = bench.apply().exits(0);
    let warnings = run.list("actions")[0]["warnings"].to_string();
    assert!(warnings.contains("no discard") && warnings.contains("nearly full"), "{run}");
    bench.converged();
}

#[test]
fn progress_is_plain_lines_in_a_pipe_and_a_moving_line_on_a_terminal() {
    let bench = bench(Duration::from_millis(300));
    let run = bench.run(&["apply", "--yes"]).exits(0);
    assert!(run.stderr.contains("create VM/a") && !run.stderr.contains('\u{1b}'), "{run}");

    let bench = self::bench(Duration::from_millis(300));
    let plain = bench.command(&["apply", "--yes"]);
    let line: Vec<String> = std::iter::once(plain.get_program())
        .chain(plain.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let mut command = Command::new("script");
    command.args(["-qec", &line.join(" "), "/dev/null"]).current_dir(bench.repo()).env_clear();
    command.env("PATH", "/usr/bin:/bin").env("TERM", "xterm").envs(&bench.env).stdin(Stdio::null());
    let output = command.output().expect("script(1) gives a terminal");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("create VM/a") && text.contains('\u{1b}'), "{text:?}");
    bench.converged();
}

/// Whichever command makes it; one that is there stays as it is.
#[test]
fn the_data_directory_is_made_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let commands: [&[&str]; 6] = [
        &["validate"],
        &["diff"],
        &["status", "--no-daemon"],
        &["doctor"],
        &["apply", "--yes"],
        &["suspend", "--cluster", CLUSTER],
    ];
    for words in commands {
        let bench = bench(Duration::ZERO);
        let data = bench.data_dir();
        // With the cache, which the tests share.
        std::fs::remove_dir_all(&data).unwrap();
        bench.run(words);
        assert_eq!(mode(&data), 0o700, "{words:?}");
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o750)).unwrap();
        bench.run(words);
        assert_eq!(mode(&data), 0o750, "{words:?}");
    }
}

#[test]
fn a_data_directory_that_can_not_be_used_stops_the_run_before_it_writes() {
    let bench = bench(Duration::ZERO);
    let file = bench.repo().join("a-file");
    std::fs::write(&file, "x").unwrap();
    let folder = file.join("data");
    for words in [&["apply", "--yes", "-o", "json"][..], &["apply", "--yes"][..]] {
        let mut command = bench.command(words);
        // the last one counts
        let args: Vec<_> = command.get_args().map(std::ffi::OsStr::to_owned).collect();
        let program = command.get_program().to_owned();
        let mut again = Command::new(program);
        again
            .args(&args[..args.len() - 1])
            .arg(&folder)
            .current_dir(bench.repo())
            .env_clear()
            .envs(&bench.env);
        again.env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
        command = again;
        let run = Run::of(command.output().unwrap()).exits(1);
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(told.contains("a-file/data"), "it names the folder: {run}");
    }
    assert!(bench.writes().is_empty());
}

/// A data directory on a file system of its own, for as long as this lives. `None`, said aloud, where nothing may be
/// mounted.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn over(folder: std::path::PathBuf, options: &str) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "none"])
            .arg(&folder)
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !mounted {
            eprintln!("LEFT OUT: no right to mount a file system, so nothing was tested");
        }
        mounted.then_some(Self(folder))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Takes every byte that is left.
fn fill(folder: &std::path::Path) {
    use std::io::Write as _;
    let mut filler = std::fs::File::create(folder.join("filler")).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
    while filler.write_all(&[0]).is_ok() {}
}

#[test]
fn a_disk_that_fills_up_in_the_middle_of_a_run_stops_it_and_loses_nothing() {
    let bench = bench(Duration::from_millis(1500));
    let Some(disk) = Mounted::over(bench.data_dir(), "size=2m") else { return };
    let child = apply_until_create(&bench);
    fill(&disk.0);
    let run = Run::of(child.wait_with_output().unwrap()).exits(1);
    let actions = run.list("actions");
    let error = actions[1]["error"].as_str().unwrap();
    assert!(error.contains("the disk is full") && error.contains("Nothing was sent"), "{run}");
    assert_eq!(bench.writes().len(), 1, "the second guest was not begun: {run}");
    assert_eq!(bench.world().guests.len(), 1, "{run}");

    // still full: before any write
    let run = bench.apply().exits(1);
    assert!(format!("{}{}", run.stdout, run.stderr).to_lowercase().contains("full"), "{run}");
    assert!(bench.writes().is_empty(), "{run}");

    std::fs::remove_file(disk.0.join("filler")).unwrap();
    bench.apply().exits(0);
    let creates = bench.writes().iter().filter(|write| write.path.ends_with("/qemu")).count();
    assert_eq!(creates, 1, "only the one that was not begun");
    bench.converged();
}

/// Needs the right to mount; elsewhere it says that it was left out.
#[test]
fn a_full_and_a_read_only_data_directory_stop_the_run_before_it_writes() {
    for (options, says) in [("size=64k", "no space left"), ("size=8m,ro", "read-only")] {
        let bench = bench(Duration::ZERO);
        let data = bench.data_dir();
        let Some(disk) = Mounted::over(data.clone(), options) else { return };
        if says == "no space left" {
            std::fs::write(data.join("filler"), vec![0; 60 << 10]).unwrap();
        }
        let run = bench.run(&["apply", "--yes", "-o", "json"]);
        drop(disk);
        assert_eq!(run.code, 1, "{run}");
        let told = format!("{}{}", run.stdout, run.stderr).to_lowercase();
        assert!(told.contains(says), "{says}: {run}");
        assert!(bench.writes().is_empty(), "{run}");
        bench.apply().exits(0);
        bench.converged();
    }
}
