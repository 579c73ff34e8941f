//! What each class of refusal does to an action: one row a class, with PVE's own texts. Asked of a configuration
//! write; a row says how the action ends and how often the write was sent.

use crate::support::*;
use proxops_model::{Outcome, Verb};
use proxops_sim::{FaultAnswer, GuestKind, RequestFault, seed};
use std::collections::BTreeMap;

struct Row {
    class: &'static str,
    status: u16,
    text: &'static str,
    /// How many answers are like this; 0 = all.
    times: u32,
    result: Outcome,
    sent: usize,
    /// In the error.
    says: &'static str,
}

const fn row(
    class: &'static str,
    (status, text): (u16, &'static str),
    times: u32,
    result: Outcome,
    sent: usize,
    says: &'static str,
) -> Row {
    Row { class, status, text, times, result, sent, says }
}

use Outcome::{Deferred, Failed, Ok};

/// "Sent" of 2 = once more after it was seen that nothing had happened.
const ROWS: &[Row] = &[
    row("permanent", (400, "Parameter verification failed."), 0, Failed, 1, "Parameter verification failed"),
    row(
        "permission",
        (403, "Permission check failed (/vms/101, VM.Config.CPU)"),
        0,
        Failed,
        1,
        "VM.Config.CPU",
    ),
    row(
        "transient",
        (500, "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout"),
        1,
        Ok,
        2,
        "",
    ),
    row("transient, configuration lock", (500, "cfs-lock 'x' error: got lock request timeout"), 1, Ok, 2, ""),
    row("locked", (500, "VM is locked (backup)"), 0, Deferred, 1, "backup"),
    row("conflict", (500, "checksum mismatch (file change by other user?)"), 1, Ok, 2, ""),
    row(
        "conflict",
        (500, "detected modified configuration - file changed by other user? Try again."),
        0,
        Failed,
        3,
        "somebody else",
    ),
    row(
        "not found",
        (500, "Configuration file 'nodes/pve01/qemu-server/101.conf' does not exist"),
        0,
        Failed,
        2,
        "keeps moving",
    ),
    row("no quorum", (500, "cluster not ready - no quorum?"), 0, Failed, 1, "quorum"),
    row("no space", (500, "not enough free space (10 < 20)"), 0, Failed, 1, "free space"),
    row(
        "protected",
        (500, "can't remove drive 'scsi1' - protection mode enabled"),
        0,
        Failed,
        1,
        "protection",
    ),
    row("node unreachable before it was sent on", (595, "No route to host"), 1, Ok, 2, ""),
    row("unknown outcome", (596, "Connection timed out"), 1, Ok, 2, ""),
    row("unknown outcome", (503, "Service Unavailable"), 1, Ok, 2, ""),
    row("any other failure", (500, "something odd"), 0, Failed, 1, "something odd"),
];

#[tokio::test]
async fn each_class_of_refusal_has_its_own_end_and_number_of_tries() {
    let mut wrong = Vec::new();
    for row in ROWS {
        let mut world = seed::empty();
        let config = [("name", "app"), ("memory", "512"), ("cores", "1"), ("tags", "proxops")];
        world.add_guest(GuestKind::Qemu, 101, "pve01", &config);
        let bench = bench(world).await;
        bench.planner.want(101, "app", &[("cores", "2")]);
        let mut update = action(Verb::Update, 101, "app", vec![configure(&[("cores", "2")])]);
        update.digest = bench.digest(101).await;
        let answer = FaultAnswer::Status {
            status: row.status,
            message: row.text.into(),
            errors: BTreeMap::new(),
            effect: false,
        };
        let fault = RequestFault::once("PUT", "/nodes/*/qemu/101/config", answer);
        bench.sim.inject(RequestFault { times: row.times, ..fault });
        let ended = bench.run_one(update).await;
        let error = ended.error.clone().unwrap_or_default();
        let sent = bench.sim.write_log().len();
        if (ended.result, sent) != (row.result, row.sent) || !error.contains(row.says) {
            wrong.push(format!(
                "{} ({}): {:?} after {sent} writes, not {:?} after {}: {error}",
                row.class, row.text, ended.result, row.result, row.sent
            ));
        }
        let cores = bench.config(101, "cores");
        if row.result == Ok && cores.as_deref() != Some("2") {
            wrong.push(format!("{}: ok is said, and cores is {cores:?}", row.class));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
