//! Random faults over several cycles of a large repository: the safety rules hold after each, and once the faults
//! stop the cluster converges within a few cycles. `PROXOPS_NIGHTLY=1` takes more seeds.

use crate::{estate, watchman};
use proxops_e2e::Bench;
use proxops_sim::{FaultAnswer, Faults, RequestFault, TaskRule};
use std::collections::BTreeMap;
use std::time::Duration;

/// Cycles under faults.
const STORM: u32 = 3;
/// Cycles within which it must converge once they stop.
const CALM: u32 = 3;

/// A small generator: the same storm for the same seed, on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[usize::try_from(self.roll(list.len() as u64)).unwrap()].clone()
    }
}

fn status(status: u16, message: &str, effect: bool) -> FaultAnswer {
    FaultAnswer::Status { status, message: message.into(), errors: BTreeMap::new(), effect }
}

fn request_fault(dice: &mut Dice) -> RequestFault {
    let lock = "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout";
    let answer = dice.of(&[
        FaultAnswer::DropBefore,
        FaultAnswer::DropAfter,
        FaultAnswer::DropAfter,
        FaultAnswer::Truncated,
        FaultAnswer::Html,
        status(500, lock, false),
        status(500, "cfs-lock 'file-replication_cfg' error: got lock request timeout", false),
        status(500, "got no worker upid - start worker failed", false),
        status(500, "checksum mismatch (file change by other user?)", false),
        status(500, "something odd", true),
        status(503, "Service Unavailable", false),
        status(595, "No route to host", false),
        status(596, "Connection timed out", true),
    ]);
    let (method, path) = dice.of(&[
        ("*", "**"),
        ("POST", "/nodes/*/*"),
        ("POST", "/nodes/*/*/*/clone"),
        ("POST", "/nodes/*/*/*/status/*"),
        ("POST", "/nodes/*/*/*/template"),
        ("POST|PUT", "/nodes/*/*/*/config"),
        ("PUT", "/nodes/*/*/*/resize"),
        ("PUT", "/nodes/*/*/*/cloudinit"),
        ("DELETE", "/nodes/*/*/*"),
        ("GET", "/nodes/*/*/*/config"),
        ("GET", "/nodes/*/tasks/*/status"),
        ("GET", "/nodes/*/storage/*/content"),
    ]);
    RequestFault {
        skip: u32::try_from(dice.roll(6)).unwrap(),
        times: 1 + u32::try_from(dice.roll(2)).unwrap(),
        delay: dice.of(&[0.0, 0.0, 0.02]),
        ..RequestFault::once(method, path, answer)
    }
}

fn task_rule(dice: &mut Dice) -> TaskRule {
    let kind =
        dice.of(&["*", "qmcreate", "vzcreate", "qmclone", "resize", "qmstart", "download", "qmconfig"]);
    let exit = dice.of(&[
        "WARNINGS: 1",
        "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout",
        "unexpected status",
        "something odd",
    ]);
    TaskRule {
        exit: Some(exit.into()),
        seconds: Some(dice.of(&[0.0, 0.05])),
        log: vec!["WARN: it looks like rain".into()],
        ..TaskRule::fail(kind, exit)
    }
}

/// The weather of one cycle.
fn weather(dice: &mut Dice) -> Faults {
    let mut requests: Vec<RequestFault> = (0..3 + dice.roll(6)).map(|_| request_fault(dice)).collect();
    let node = dice.of(&["pve01", "pve02", "pve03"]);
    let change = match dice.roll(4) {
        0 => Some(Faults { nodes_down: vec![node.into()], ..Faults::default() }),
        1 => Some(Faults { quorum_lost: Some(true), ..Faults::default() }),
        2 => Some(Faults { moved: [(120, "pve02".into())].into(), ..Faults::default() }),
        _ => None,
    };
    if let Some(change) = change {
        // in the middle of the run, before a request that is otherwise unharmed
        requests.insert(
            0,
            RequestFault {
                skip: 40 + u32::try_from(dice.roll(120)).unwrap(),
                answer: None,
                change: Some(Box::new(change)),
                ..RequestFault::once("*", "**", FaultAnswer::Html)
            },
        );
    }
    Faults {
        requests,
        tasks: (0..dice.roll(4)).map(|_| task_rule(dice)).collect(),
        config_locks: [(100 + u32::try_from(dice.roll(14)).unwrap(), 2)].into(),
        ..Faults::default()
    }
}

fn storm(seed: u64, calm: &BTreeMap<String, String>) -> Result<u32, String> {
    let mut dice = Dice(seed);
    let mut bench = Bench::new(estate::world(Duration::from_millis(5)));
    // a node that is offline is given up after an eighth of this, one that hangs after all of it
    bench.configure(&["reconcile: {task-timeout: 3s}"]);
    estate::declare(&mut bench);
    let before = bench.world().clone();
    let fail = |what: &str, lines: Vec<String>| Err(format!("seed {seed}, {what}:\n{}", lines.join("\n")));
    for cycle in 0..STORM {
        bench.sim().apply(weather(&mut dice));
        bench.apply();
        let after = bench.world().clone();
        let sins = watchman::sins_in_a_storm(&before, &after, &bench.sim().write_log());
        if !sins.is_empty() {
            return fail(&format!("cycle {cycle}"), sins);
        }
        // what went down comes back, what moved comes home, and the next weather brings its own
        bench.sim().clear_request_faults();
        let up = ["pve01", "pve02", "pve03"].map(str::to_owned).to_vec();
        bench.sim().apply(Faults {
            nodes_up: up,
            quorum_lost: Some(false),
            moved: [(120, "pve01".into())].into(),
            ..Faults::default()
        });
    }
    {
        let mut world = bench.world();
        world.task_rules.clear();
        world.busy.clear();
        // a worker that died keeps its lock until somebody removes it (fact R8)
        crate::rehearsal::clear_half_made(&mut world);
    }
    for cycle in 1..=CALM {
        let run = bench.apply();
        let sins = watchman::sins_in_a_storm(&before, &bench.world(), &bench.sim().write_log());
        if !sins.is_empty() {
            return fail("after the storm", sins);
        }
        if run.code == 0 && bench.run(&["diff", "--exit-code"]).code == 0 {
            let state = estate::state(&bench.world());
            let mut wrong = watchman::differences(calm, &state);
            wrong.extend(watchman::leaked(&bench.world()));
            return if wrong.is_empty() { Ok(cycle) } else { fail("converged to something else", wrong) };
        }
        if cycle == CALM {
            let left = bench.run(&["diff"]);
            return fail("not converged", vec![run.to_string(), left.to_string()]);
        }
    }
    Ok(0)
}

#[test]
fn after_any_storm_the_cluster_converges_and_no_rule_was_broken_meanwhile() {
    let mut bench = Bench::new(estate::world(Duration::from_millis(5)));
    estate::declare(&mut bench);
    bench.apply().exits(0);
    let calm = estate::state(&bench.world());
    let nightly = std::env::var_os("PROXOPS_NIGHTLY").is_some();
    let first: u64 = std::env::var("PROXOPS_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let seeds = first..first + if nightly { 60 } else { 4 };
    let seeds = std::sync::Mutex::new(seeds);
    let wrong = std::sync::Mutex::new(Vec::new());
    let cycles = std::sync::Mutex::new(BTreeMap::<u32, u32>::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(seed) = seeds.lock().unwrap().next() else { return };
                    match storm(seed, &calm) {
                        Ok(needed) => *cycles.lock().unwrap().entry(needed).or_default() += 1,
                        Err(text) => {
                            eprintln!("{text}\n");
                            wrong.lock().unwrap().push(text);
                        }
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    eprintln!("cycles needed after the storm: {:?} (cycles: storms)", cycles.into_inner().unwrap());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
