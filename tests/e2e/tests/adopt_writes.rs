//! The moment in which `adopt` writes: edits by others, kills, and file systems that can do less.
//!
//! strace holds the process at the system calls in question: the instants are hit every time, not now and then.

use crate::adopt::{adopt, guest, open, tree, with_secrets, words};
use proxops_e2e::{Bench, CLUSTER, Run};
use proxops_sim::{FaultAnswer, RequestFault, seed};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SECRETS: [&str; 5] = ["adopt", "--cluster", CLUSTER, "--adopt-secrets", "--force"];

/// The command under strace. `None` where strace can't trace.
fn traced(options: &[&str], inner: &Command) -> Option<Command> {
    let probe = Command::new("strace").args(["-f", "-qq", "-e", "trace=none", "true"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        eprintln!("SKIPPED: strace is not here or may not trace, so the instant of writing was NOT tested.");
        return None;
    }
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq"])
        .args(options)
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(inner.get_current_dir().unwrap())
        .env_clear()
        .envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Some(command)
}

/// New files that lie beside this one.
fn sidecars(path: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(path.parent().unwrap()).unwrap().flatten().map(|entry| entry.path());
    all.filter(|other| other.extension().is_some_and(|e| e == "new")).collect()
}

fn until(what: &str, so: impl Fn() -> bool) {
    let started = Instant::now();
    while !so() {
        assert!(started.elapsed() < Duration::from_secs(60), "never {what}");
        std::thread::yield_now();
    }
}

/// Runs with one guest's answer held back, and calls `edit` in the meantime.
fn edited_meanwhile(bench: &Bench, words: &[&str], edit: impl FnOnce()) -> Run {
    bench.sim().inject(RequestFault {
        delay: 2.0,
        answer: None,
        ..RequestFault::once("GET", "/nodes/pve01/qemu/101/config", FaultAnswer::Html)
    });
    let held = bench.sim().held();
    let child = bench.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("held back", || bench.sim().held() > held);
    edit();
    Run::of(child.wait_with_output().unwrap())
}

#[test]
fn an_operators_edit_in_the_middle_is_detected_and_kept() {
    let (bench, file, _) = with_secrets();
    let path = bench.repo().join(&file);
    let edited = format!("# edited\n{}", fs::read_to_string(&path).unwrap());
    let run = edited_meanwhile(&bench, &SECRETS[..4], || fs::write(&path, &edited).unwrap())
        .exits(1)
        .says("was changed by somebody else");
    assert_eq!(fs::read_to_string(&path).unwrap(), edited, "{run}");
    assert!(
        !tree(&bench).keys().any(|file| file.starts_with("vm/")),
        "no manifest refers to a key that is not there"
    );
}

#[test]
fn a_manifest_that_somebody_edits_meanwhile_is_kept_even_with_force() {
    let mut world = seed::empty();
    for (vmid, name) in [(100, "web"), (101, "db"), (102, "gone")] {
        guest(&mut world, vmid, name, &[]);
    }
    let bench = Bench::new(world);
    adopt(&bench, &[]).exits(0);
    bench.world().guests.values_mut().for_each(|g| drop(g.config.insert("memory".into(), "1024".into())));
    let path = bench.repo().join("vm/lab/web.yaml");
    let edited = format!("# edited\n{}", fs::read_to_string(&path).unwrap());
    let words_of = ["adopt", "--cluster", CLUSTER, "-o", "json", "--force"];
    let run = edited_meanwhile(&bench, &words_of, || {
        fs::write(&path, &edited).unwrap();
        fs::remove_file(bench.repo().join("vm/lab/gone.yaml")).unwrap();
    })
    .exits(0);
    assert_eq!(words(&run, "written"), ["vm/lab/db.yaml"], "{run}");
    let skipped = words(&run, "skipped").join("\n");
    assert!(skipped.contains("vm/lab/web.yaml: it was changed by somebody else"), "{skipped}");
    assert!(skipped.contains("vm/lab/gone.yaml: it was removed by somebody else"), "{skipped}");
    assert_eq!(fs::read_to_string(&path).unwrap(), edited);
    assert!(!bench.repo().join("vm/lab/gone.yaml").exists() && sidecars(&path).is_empty());
}

#[test]
fn an_edit_in_the_instant_before_the_rename_is_put_back() {
    let (bench, file, _) = with_secrets();
    let path = bench.repo().join(&file);
    let log = bench.data_dir().join("strace.log");
    // The last look at the file is over; the rename comes four seconds later.
    let held = "inject=renameat2:delay_enter=4000000:when=1";
    let options = ["-o", log.to_str().unwrap(), "-e", "trace=renameat2", "-e", held];
    let Some(mut command) = traced(&options, &bench.command(&SECRETS)) else { return };
    let child = command.spawn().unwrap();
    until("about to write", || !sidecars(&path).is_empty());
    std::thread::sleep(Duration::from_secs(2));
    let edited = format!("# edited\n{}", fs::read_to_string(&path).unwrap());
    fs::write(&path, &edited).unwrap();
    let run = Run::of(child.wait_with_output().unwrap()).exits(1).says("was changed by somebody else");
    let log = fs::read_to_string(log).unwrap();
    let exchanges = log.lines().filter(|l| l.contains("RENAME_EXCHANGE")).count();
    assert_eq!(exchanges, 2, "there and back: {log}\n{run}");
    assert_eq!(fs::read_to_string(&path).unwrap(), edited, "{run}");
    assert!(sidecars(&path).is_empty());
    assert!(!tree(&bench).keys().any(|file| file.starts_with("vm/")));
}

#[test]
fn a_file_system_that_can_not_exchange_files_is_written_to_all_the_same() {
    let (bench, file, secret) = with_secrets();
    let path = bench.repo().join(&file);
    let Some(mut command) = traced(
        &["-o", "/dev/null", "-e", "trace=renameat2", "-e", "inject=renameat2:error=EINVAL"],
        &bench.command(&SECRETS),
    ) else {
        return;
    };
    Run::of(command.output().unwrap()).exits(0);
    let now = fs::read_to_string(&path).unwrap();
    assert!(open(&now, &secret).get("cloud-init.ssh-keys.adopted-6e6b623311b45b88").is_ok());
    assert!(sidecars(&path).is_empty() && tree(&bench).contains_key("vm/lab/new.yaml"));
}

#[test]
fn killed_at_each_step_of_the_write_the_secrets_document_is_the_old_or_the_new_one() {
    let (bench, file, secret) = with_secrets();
    let path = bench.repo().join(&file);
    let old = fs::read_to_string(&path).unwrap();
    // Each call of the write in its order, whether a sidecar lies there when it begins, and whether the file is new.
    for (call, beside, new) in [
        ("fchmod:signal=KILL:when=1", true, false),
        ("fsync:signal=KILL:when=1", true, false),
        ("renameat2:signal=KILL:when=1", true, false),
        ("unlink:signal=KILL:when=1", true, true),
        ("fsync:signal=KILL:when=2", false, true),
    ] {
        fs::write(&path, &old).unwrap();
        sidecars(&path).iter().for_each(|left| fs::remove_file(left).unwrap());
        let (name, _) = call.split_once(':').unwrap();
        let (trace, inject) = (format!("trace={name}"), format!("inject={call}"));
        let options = ["-o", "/dev/null", "-e", &trace, "-e", &inject];
        let Some(mut command) = traced(&options, &bench.command(&SECRETS)) else { return };
        let run = command.output().unwrap();
        assert_eq!(run.status.signal(), Some(9), "{call}: {run:?}");
        let now = fs::read_to_string(&path).unwrap();
        assert_eq!(now != old, new, "{call}");
        assert_eq!(sidecars(&path).len(), usize::from(beside), "{call}");
        open(&now, &secret);
        // The next run is not in the way of what lies about.
        adopt(&bench, &SECRETS[3..]).exits(0);
        assert!(tree(&bench)["vm/lab/new.yaml"].contains("adopted-6e6b623311b45b88"), "{call}");
    }
}

#[test]
fn killed_at_any_moment_the_secrets_document_is_the_old_or_the_new_one() {
    const KILLS: u32 = 30;
    let (bench, file, secret) = with_secrets();
    let path = bench.repo().join(&file);
    let old = fs::read_to_string(&path).unwrap();
    let (mut olds, mut news, mut within) = (0, 0, 0);
    for n in 0..KILLS {
        fs::write(&path, &old).unwrap();
        sidecars(&path).iter().for_each(|left| fs::remove_file(left).unwrap());
        // Each step of the write is drawn out, so that a kill from outside can hit it. -D: the child is adopt itself.
        let slow = "inject=fchmod,fsync,renameat2,unlink:delay_enter=20000";
        let options = ["-D", "-o", "/dev/null", "-e", "trace=fchmod,fsync,renameat2,unlink", "-e", slow];
        let Some(mut command) = traced(&options, &bench.command(&SECRETS)) else { return };
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("writing", || !sidecars(&path).is_empty() || child_ended(child.id()));
        std::thread::sleep(Duration::from_millis(4) * n);
        child.kill().unwrap();
        child.wait().unwrap();
        within += usize::from(!sidecars(&path).is_empty());
        let now = fs::read_to_string(&path).unwrap();
        if now == old {
            olds += 1;
        } else {
            open(&now, &secret);
            news += 1;
        }
    }
    println!("{KILLS} kills, {within} of them within the write: {olds} old, {news} new");
    assert_eq!(olds + news, KILLS);
    assert!(within >= 10 && olds >= 5 && news >= 5, "{within} within, {olds} old, {news} new");
}

/// A process that ended and was not waited for yet.
fn child_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}
