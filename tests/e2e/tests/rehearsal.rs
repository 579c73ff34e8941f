//! Bad days: fault files as `proxops sim --faults` reads them, several faults at once, against a run of thirty
//! resources. Judged by the simulator's record, the exit code and the words; then the faults are mended, as an
//! operator would, and the run is repeated until it converges to what an undisturbed run gives.
//!
//! `PROXOPS_DAY` takes the days whose name holds its text.

use crate::{estate, watchman};
use proxops_e2e::{Bench, Run};
use proxops_sim::{Faults, World};
use std::collections::BTreeMap;
use std::time::Duration;

/// Cycles within which everything is as wanted once the faults are mended.
const CALM: u32 = 3;

struct Day {
    name: &'static str,
    faults: String,
    /// Exit code of the run under faults.
    code: i32,
    /// What that run says.
    says: &'static [&'static str],
    /// Tasks fail after PVE took the request, so that a guest may rightly be made again.
    tasks_fail: bool,
    /// With root@pam's ticket in place of the token.
    root: bool,
}

/// Every sort of write, as method and path.
const WRITES: [(&str, &str); 11] = [
    ("POST", "/nodes/*/qemu"),
    ("POST", "/nodes/*/lxc"),
    ("POST", "/nodes/*/*/*/clone"),
    ("POST", "/nodes/*/*/*/template"),
    ("POST|PUT", "/nodes/*/*/*/config"),
    ("PUT", "/nodes/*/*/*/resize"),
    ("PUT", "/nodes/*/*/*/cloudinit"),
    ("POST", "/nodes/*/*/*/status/start"),
    ("POST", "/nodes/*/*/*/status/shutdown"),
    ("DELETE", "/nodes/*/*/*"),
    ("POST", "/nodes/*/storage/*/download-url"),
];

/// The first of each sort of write gets this answer.
fn each_write(answer: &str) -> String {
    let lines = WRITES.iter().map(|(method, path)| {
        format!("  - {{method: \"{method}\", path: \"{path}\", times: 1, answer: {answer}}}\n")
    });
    format!("requests:\n{}", lines.collect::<String>())
}

fn status(status: u16, message: &str, effect: bool) -> String {
    format!("{{status: {{status: {status}, message: \"{message}\", effect: {effect}}}}}")
}

fn day(name: &'static str, faults: impl Into<String>, code: i32, says: &'static [&'static str]) -> Day {
    Day { name, faults: faults.into(), code, says, tasks_fail: false, root: false }
}

fn with_failing_tasks(day: Day) -> Day {
    Day { tasks_fail: true, ..day }
}

/// Lost answers: nobody knows whether it happened, and each run finds out by itself.
fn answers_that_are_lost() -> Vec<Day> {
    vec![
        day("each write is cut off after its effect", each_write("drop-after"), 0, &[]),
        day("each write is cut off before it", each_write("drop-before"), 0, &[]),
        day("each answer to a write ends half way", each_write("truncated"), 0, &[]),
        day("each answer to a write is a proxy's page", each_write("html"), 0, &[]),
        day(
            "each write times out and is done",
            each_write(&status(596, "Connection timed out", true)),
            0,
            &[],
        ),
        day(
            "no node is reached by the first of its writes",
            each_write(&status(595, "No route to host", false)),
            0,
            &[],
        ),
        day(
            "each write ends in an unknown fault and is done",
            each_write(&status(599, "Too many redirections", true)),
            0,
            &[],
        ),
        day(
            "a gateway in front of PVE gives up on each write",
            each_write(&status(504, "Gateway Time-out", true)),
            0,
            &[],
        ),
    ]
}

/// Faults one upon the other.
fn troubles_that_meet() -> Vec<Day> {
    vec![
        // a node that dies takes its tasks along and leaves half-made guests locked (facts Q41, T23)
        with_failing_tasks(day(
            "clones are cut off and then their node dies",
            "requests:
  - {method: POST, path: '/nodes/*/*/*/clone', times: 2, answer: drop-after}
  - {method: GET, path: '/nodes/pve01/tasks', times: 1, change: {nodes-down: [pve01]}}
",
            1,
            &["pve01"],
        )),
        with_failing_tasks(day(
            "a node dies while its tasks run",
            "tasks: [{type: '*', seconds: 0.4}]
requests: [{path: '/nodes/pve02/tasks/*/status', skip: 3, times: 1, change: {nodes-down: [pve02]}}]
",
            1,
            &["pve02 is offline", "the next run looks for it once the node answers"],
        )),
        with_failing_tasks(day(
            "quorum is lost while a node is down",
            "requests:
  - {path: '**', skip: 90, times: 1, change: {nodes-down: [pve03], quorum-lost: true}}
",
            1,
            &["quorum"],
        )),
        day(
            "configurations stay locked for longer than anybody waits",
            "config-locks: {'120': 40, '121': 40, '220': 40}",
            1,
            &["got timeout", "run again later"],
        ),
        day(
            "every creation warns and no log can be read",
            "tasks: [{type: '*', exit: 'WARNINGS: 1', log: ['WARN: it looks like rain']}]
requests: [{path: '/nodes/*/tasks/*/log', answer: {status: {status: 500, message: 'unable to open file'}}}]
",
            0,
            &["ended with 1 warnings; its log says which"],
        ),
        with_failing_tasks(day(
            "the storage of the clones is full and answers to clones are lost",
            "storage-full: [nfs]
requests: [{method: POST, path: '/nodes/*/*/*/clone', times: 2, answer: drop-after}]
",
            1,
            &["No space left on device"],
        )),
        day(
            "the inventory fails from the middle on",
            "requests: [{method: GET, path: /cluster/resources, skip: 8, answer: {status: {status: 500, message: 'rrd is gone'}}}]",
            1,
            &["/cluster/resources", "rrd is gone"],
        ),
        day(
            "storages can't be listed once a download began",
            "requests: [{method: POST, path: '/nodes/*/storage/local/download-url', times: 1, change: {storage-errors: {local: 'mount is gone', nfs: 'stale handle'}}}]",
            1,
            &["mount is gone"],
        ),
        day(
            "guests move and are edited while they are worked on",
            "requests:
  - {method: 'POST|PUT', path: '/nodes/pve01/qemu/120/config', times: 1, change: {moved: {'120': pve02}}}
  - {method: 'POST|PUT', path: '/nodes/*/lxc/220/config', times: 2, change: {values: {'220': {description: 'somebody was here'}}}}
  - {method: POST, path: '/nodes/pve02/qemu/802/status/shutdown', times: 1, change: {guest-locks: {'802': backup}}}
",
            0,
            &["backup"],
        ),
        day(
            "task states can't be read for a while",
            "requests: [{method: GET, path: '/nodes/*/tasks/*/status', skip: 5, times: 12, answer: {status: {status: 500, message: 'no such task'}}}]",
            0,
            &[],
        ),
        with_failing_tasks(day(
            "workers are killed, some after their work was done",
            "tasks:
  - {type: qmcreate, times: 2, exit: 'unexpected status', effect: true}
  - {type: qmclone, times: 1, exit: 'unexpected status', effect: true}
  - {type: vzcreate, times: 1, exit: 'unexpected status'}
  - {type: qmstart, times: 1, exit: 'unexpected status'}
  - {type: qmdestroy, times: 1, exit: 'unexpected status', effect: true}
  - {type: download, times: 1, exit: 'unexpected status'}
",
            0,
            &[],
        )),
        with_failing_tasks(day(
            "tasks say OK and did nothing",
            "tasks: [{type: qmcreate, times: 1, effect: false}, {type: resize, times: 1, effect: false}, {type: qmdestroy, times: 1, effect: false}]",
            1,
            &["PVE reported success, but"],
        )),
        day(
            "locks are not free for a moment, everywhere",
            each_write(&status(500, "can't lock file '/var/lock/x' - got timeout", false)),
            0,
            &[],
        ),
        day("every answer is slow", "requests: [{path: '**', delay: 0.05}]", 0, &[]),
        with_failing_tasks(day(
            "a node dies under a guest that is shut down to be deleted",
            "requests: [{method: POST, path: '/nodes/pve02/qemu/802/status/shutdown', times: 1, change: {nodes-down: [pve02]}}]",
            1,
            &["pve02"],
        )),
        Day {
            root: true,
            ..day(
                "the ticket expires while tasks run, and once more later",
                "requests:
  - {method: GET, path: '/nodes/*/tasks/*/status', skip: 4, times: 1, change: {tickets-expired: true}}
  - {method: DELETE, path: '/nodes/**', times: 1, change: {tickets-expired: true}}
",
                0,
                &[],
            )
        },
    ]
}

fn faults(text: &str) -> Faults {
    let parsed = proxops_repo::yaml::parse(text.as_bytes());
    assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
    serde_json::from_value(parsed.documents.into_iter().next().unwrap().value).unwrap()
}

/// Puts right what faults left, as an operator would: nodes, quorum, space; half-made guests are destroyed.
fn mend(bench: &Bench, before: &World) {
    bench.sim().clear_request_faults();
    let home = [(120, "pve01".to_owned())].into();
    let nodes_up = before.nodes.keys().cloned().collect();
    bench.sim().apply(Faults { nodes_up, quorum_lost: Some(false), moved: home, ..Faults::default() });
    let mut world = bench.world();
    world.task_rules.clear();
    world.busy.clear();
    for (name, storage) in &mut world.storages {
        storage.total = before.storages[name].total;
        storage.broken = None;
    }
    clear_half_made(&mut world);
}

/// What the words of a failed creation tell an operator to do (facts Q41, R8).
pub fn clear_half_made(world: &mut World) {
    world.guests.retain(|_, guest| !guest.config.keys().eq(["lock"]));
    for guest in world.guests.values_mut() {
        guest.config.remove("lock");
    }
}

/// What is wrong with a day.
fn live_through(day: &Day, wanted: &BTreeMap<String, String>) -> Result<u32, String> {
    let mut bench = Bench::new(estate::world(Duration::from_millis(10)));
    if day.root {
        bench = bench.as_root();
    }
    bench.configure(&["reconcile: {task-timeout: 30s}"]);
    estate::declare(&mut bench);
    let before = bench.world().clone();
    bench.sim().apply(faults(&day.faults));
    let run = bench.apply();
    let mut wrong = Vec::new();
    if run.code != day.code {
        wrong.push(format!("exit {} and not {}", run.code, day.code));
    }
    let said = format!("{}{}", run.stdout, run.stderr);
    wrong.extend(
        day.says.iter().filter(|text| !said.contains(**text)).map(|text| format!("{text:?} is not said")),
    );
    if said.contains("internal: ") {
        wrong.push("an internal fault".to_owned());
    }
    let judge = |bench: &Bench| match day.tasks_fail {
        true => watchman::sins_in_a_storm(&before, &bench.world(), &bench.sim().write_log()),
        false => watchman::sins(&before, &bench.world(), &bench.sim().write_log()),
    };
    wrong.extend(judge(&bench));
    let failed = |wrong: Vec<String>, run: &Run| Err(format!("{}:\n{}\n{run}", day.name, wrong.join("\n")));
    if !wrong.is_empty() {
        return failed(wrong, &run);
    }
    mend(&bench, &before);
    for cycle in 1..=CALM {
        let run = bench.apply();
        let wrong = judge(&bench);
        if !wrong.is_empty() {
            return failed(wrong, &run);
        }
        if run.code == 0 && bench.run(&["diff", "--exit-code"]).code == 0 {
            let world = bench.world().clone();
            let mut wrong = watchman::differences(wanted, &without_marks(estate::state(&world)));
            wrong.extend(watchman::leaked(&world));
            return if wrong.is_empty() { Ok(cycle) } else { failed(wrong, &run) };
        }
        if cycle == CALM {
            return failed(vec![format!("not converged after {CALM} cycles")], &run);
        }
    }
    Ok(0)
}

/// What somebody wrote in PVE and no manifest declares stays.
fn without_marks(state: BTreeMap<String, String>) -> BTreeMap<String, String> {
    state
        .into_iter()
        .map(|(key, text)| (key, text.replace("description=somebody was here\n  ", "")))
        .collect()
}

fn all(days: &[Day]) {
    let calm = {
        let mut bench = Bench::new(estate::world(Duration::from_millis(10)));
        estate::declare(&mut bench);
        bench.apply().exits(0);
        estate::state(&bench.world())
    };
    let only = std::env::var("PROXOPS_DAY").unwrap_or_default();
    let next = std::sync::Mutex::new(days.iter().filter(|day| day.name.contains(&only)));
    let wrong = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(day) = next.lock().unwrap().next() else { return };
                    match live_through(day, &calm) {
                        Ok(cycles) => eprintln!("{}: {cycles} cycles after it", day.name),
                        Err(text) => wrong.lock().unwrap().push(text),
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} days went wrong\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn whatever_answer_of_a_write_is_lost_the_same_run_finds_out() {
    all(&answers_that_are_lost());
}

#[test]
fn troubles_that_meet_break_no_rule_and_the_words_say_what_happened() {
    all(&troubles_that_meet());
}
