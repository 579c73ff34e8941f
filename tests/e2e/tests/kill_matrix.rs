//! SIGKILL after every request of a large run, before and after the request's effect; then the run again.
//!
//! The whole matrix is large: `PROXOPS_NIGHTLY=1` runs it, everything else a sample that is drawn anew from
//! `PROXOPS_SEED` (a fixed one if it is not set).

use crate::{estate, watchman};
use proxops_e2e::{Bench, Run};
use proxops_sim::{FaultAnswer, RequestFault, World};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Time that a task takes: long enough for a poll to find it running.
const TASK: Duration = Duration::from_millis(15);
/// Places of the sample.
const SAMPLE: usize = 24;

/// `lanes`: how many actions run at once. With 1 the k-th request is the same one in every run; with more, others
/// are in flight when the process dies.
fn bench(lanes: u32) -> Bench {
    let mut bench = Bench::new(estate::world(TASK));
    bench.configure(&[&format!("reconcile: {{concurrency: {lanes}}}")]);
    estate::declare(&mut bench);
    bench
}

/// Where the process is killed: at the request with this number, before or after its effect.
#[derive(Debug, Clone, Copy)]
struct Place {
    request: u32,
    effect: bool,
}

/// Holds the request at this place back and kills the process that waits for its answer. `false` = it ended before.
fn killed_at(bench: &Bench, place: Place) -> bool {
    let answer = if place.effect { FaultAnswer::DropAfter } else { FaultAnswer::DropBefore };
    bench.sim().inject(RequestFault {
        skip: place.request,
        delay: 3600.0,
        ..RequestFault::once("*", "**", answer)
    });
    let mut child =
        bench.command(&["apply", "--yes"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let held = loop {
        if bench.sim().held() > 0 {
            break true;
        }
        if child.try_wait().unwrap().is_some() {
            break false;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    if held {
        child.kill().unwrap(); // SIGKILL
    }
    child.wait().unwrap();
    bench.sim().clear_request_faults();
    held
}

fn undisturbed(lanes: u32) -> (BTreeMap<String, String>, u32) {
    let bench = bench(lanes);
    bench.apply().exits(0);
    let state = estate::state(&bench.world());
    let requests = u32::try_from(bench.sim().requests()).unwrap();
    bench.converged();
    (state, requests)
}

/// What is wrong after a run that was killed at this place and its repetition.
fn after_kill(lanes: u32, place: Place, wanted: &BTreeMap<String, String>) -> Result<bool, String> {
    let bench = bench(lanes);
    let before: World = bench.world().clone();
    if !killed_at(&bench, place) {
        return Ok(false);
    }
    let repeated: Run = bench.run(&["apply", "-o", "json", "--yes"]);
    let after: World = bench.world().clone();
    let mut wrong = watchman::sins(&before, &after, &bench.sim().write_log());
    wrong.extend(watchman::leaked(&after));
    if repeated.code != 0 {
        wrong.push(format!("the second run: {repeated}"));
    }
    let state = estate::state(&after);
    wrong.extend(watchman::differences(wanted, &state));
    let again = bench.run(&["diff", "-o", "json", "--exit-code"]);
    if again.code != 0 {
        wrong.push(format!("not converged: {again}"));
    }
    if wrong.is_empty() {
        Ok(true)
    } else {
        Err(format!("killed at {place:?}, {lanes} at once:\n{}", wrong.join("\n")))
    }
}

#[test]
fn an_undisturbed_run_does_all_of_it_and_nothing_else() {
    let bench = bench(1);
    let before = bench.world().clone();
    let run = bench.apply().exits(0);
    let verbs: Vec<String> = run.actions().iter().map(|a| a.split(' ').next().unwrap().to_owned()).collect();
    for verb in
        ["create", "clone", "mark-template", "update", "resize", "download", "start", "stop", "delete"]
    {
        assert!(verbs.iter().any(|v| v == verb), "no {verb}: {verbs:?}");
    }
    assert!(verbs.len() >= 30, "{verbs:?}");
    let after = bench.world().clone();
    let mut wrong = watchman::sins(&before, &after, &bench.sim().write_log());
    wrong.extend(watchman::leaked(&after));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    bench.converged();
}

#[test]
fn a_run_killed_at_any_request_ends_as_an_undisturbed_one() {
    matrix(1, SAMPLE);
}

#[test]
fn a_run_killed_with_several_requests_in_flight_ends_as_an_undisturbed_one() {
    matrix(8, SAMPLE / 2);
}

fn matrix(lanes: u32, sample: usize) {
    let (wanted, requests) = undisturbed(lanes);
    let all: Vec<Place> =
        (0..requests).flat_map(|request| [true, false].map(|effect| Place { request, effect })).collect();
    let nightly = std::env::var_os("PROXOPS_NIGHTLY").is_some();
    let places = if nightly { all } else { drawn(&all, sample) };
    let started = Instant::now();
    let next = std::sync::Mutex::new(places.iter().copied());
    let wrong = std::sync::Mutex::new(Vec::new());
    let kills = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..if nightly { 3 } else { 2 } {
            scope.spawn(|| {
                loop {
                    let Some(place) = next.lock().unwrap().next() else { return };
                    match after_kill(lanes, place, &wanted) {
                        Ok(hit) => {
                            kills.fetch_add(u32::from(hit), std::sync::atomic::Ordering::Relaxed);
                        }
                        Err(text) => {
                            if nightly {
                                eprintln!("{text}\n");
                            }
                            wrong.lock().unwrap().push(text);
                        }
                    }
                }
            });
        }
    });
    let kills = kills.into_inner();
    let wrong = wrong.into_inner().unwrap();
    eprintln!(
        "{lanes} at once: {} places of {requests} requests, {kills} killed and repeated well, {} not, {:?}",
        places.len(),
        wrong.len(),
        started.elapsed()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// So many of them, evenly spread, at an offset that the seed gives.
fn drawn(all: &[Place], count: usize) -> Vec<Place> {
    let seed: usize = std::env::var("PROXOPS_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(7);
    let step = (all.len() / count).max(1) | 1;
    all.iter().copied().skip(seed % step).step_by(step).collect()
}
