use super::*;
use proxops_model::kind::{GuestType, KindStep, Param, ParamValue};
use proxops_model::{Outcome, ResourceId, Step};
use std::process::{Command, Stdio};

const UPID: &str = "UPID:pve01:00000001:00000001:00000001:qmclone:9000:root@pam:";

fn begin(journal: &Journal, steps: &[Step]) -> i64 {
    let start = OperationStart {
        cluster: "lab",
        commit: Some("c0ffee"),
        actor: Some("ops@desk"),
        action: "clone:VM/web",
        verb: "clone",
        resource: &ResourceId::new("VM", "web"),
        node: Some("pve01"),
        guest: Some((GuestType::Qemu, 111)),
    };
    journal.begin(&start, steps).unwrap()
}

fn debt() -> Debt {
    Debt {
        cluster: "lab".into(),
        vmid: 111,
        resource: ResourceId::new("VM", "web"),
        node: "pve01".into(),
        guest_type: GuestType::Qemu,
        clone_of: Some(ResourceId::new("TemplateVM", "tpl")),
        seed: false,
        grow: Vec::new(),
        making: false,
    }
}

fn steps() -> [Step; 3] {
    let secret = Param {
        key: "cipassword".into(),
        value: ParamValue::Secret("cloud-init.passwords.ops".into()),
        at: None,
    };
    [
        Step::CloneFrom {
            source_node: "pve01".into(),
            source_vmid: 9000,
            source: ResourceId::new("TemplateVM", "tpl"),
            params: Vec::new(),
        },
        Step::Kind(KindStep::Configure { set: vec![secret], unset: Vec::new(), revert: Vec::new() }),
        Step::Settle,
    ]
}

/// Dies by SIGKILL with the intent of the second step just written.
#[test]
#[ignore = "a child of the test below"]
fn child_dies() {
    let dir = std::env::var_os("CHILD_DIR").expect("only run by its parent");
    let journal = Journal::open(Path::new(&dir)).unwrap();
    let operation = begin(&journal, &steps());
    journal.intent(operation, 0, Some(&debt())).unwrap();
    journal.sent(operation, 0, UPID).unwrap();
    journal.intent(operation, 1, None).unwrap();
    let me = std::process::id().to_string();
    Command::new("kill").args(["-KILL", &me]).status().unwrap();
    unreachable!("killed");
}

#[test]
fn what_a_killed_process_wrote_is_there_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "journal::tests::child_dies", "--ignored"])
        .env("CHILD_DIR", dir.path())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    let journal = Journal::open(dir.path()).unwrap();
    let left = journal.unfinished("lab").unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].in_flight.iter().map(|task| task.upid.as_str()).collect::<Vec<_>>(), [UPID]);
    assert_eq!(left[0].unanswered, [(1, steps()[1].clone())]);
    assert_eq!(left[0].left, [Step::Settle]);
    assert_eq!(left[0].fresh_clone_of, Some(ResourceId::new("TemplateVM", "tpl")));
    assert!(journal.unfinished("other").unwrap().is_empty());
}

#[test]
fn a_finished_operation_is_history_and_its_debt_stays() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let operation = begin(&journal, &steps());
    journal.intent(operation, 0, Some(&debt())).unwrap();
    journal.ended(operation, 0, StepState::Done, None).unwrap();
    journal.finish(operation, Outcome::Failed, Some("boom")).unwrap();
    assert!(journal.unfinished("lab").unwrap().is_empty());
    let entry = journal.history(&HistoryFilter::default(), 10).unwrap().remove(0);
    assert_eq!((entry.result.as_deref(), entry.error.as_deref()), (Some("failed"), Some("boom")));
    let states: Vec<StepState> = entry.steps.iter().map(|step| step.state).collect();
    assert_eq!(states, [StepState::Done, StepState::Dropped, StepState::Dropped]);
    assert!(journal.owed("lab").unwrap()[&111].fresh_clone_of.is_some());
    journal.settle_clone("lab", 111).unwrap();
    assert!(journal.owed("lab").unwrap().is_empty());
}

#[test]
fn debts_add_up_and_are_paid_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let operation = begin(&journal, &steps());
    journal.intent(operation, 0, Some(&debt())).unwrap();
    journal.intent(operation, 1, Some(&Debt { clone_of: None, seed: true, ..debt() })).unwrap();
    let owed = journal.owed("lab").unwrap();
    assert!(owed[&111].fresh_clone_of.is_some() && owed[&111].rebuild_seed);
    journal.settle_clone("lab", 111).unwrap();
    let owed = journal.owed("lab").unwrap();
    assert!(owed[&111].fresh_clone_of.is_none() && owed[&111].rebuild_seed);
    journal.settle_seed("lab", 111).unwrap();
    assert!(journal.owed("lab").unwrap().is_empty());
}

#[test]
fn history_is_filtered_and_newest_first() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let ids = [begin(&journal, &[]), begin(&journal, &[])];
    let all = journal.history(&HistoryFilter::default(), 10).unwrap();
    assert_eq!(all.iter().map(|entry| entry.id).collect::<Vec<_>>(), [ids[1], ids[0]]);
    assert_eq!(journal.history(&HistoryFilter::default(), 1).unwrap().len(), 1);
    let other = HistoryFilter { vmid: Some(1), ..HistoryFilter::default() };
    assert!(journal.history(&other, 10).unwrap().is_empty());
    let ours =
        HistoryFilter { cluster: Some("lab".into()), name: Some("web".into()), ..HistoryFilter::default() };
    assert_eq!(journal.history(&ours, 10).unwrap().len(), 2);
}

#[test]
fn a_damaged_file_is_an_error_and_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.sqlite3");
    std::fs::write(&path, vec![7u8; 4096]).unwrap();
    let error = Journal::open(dir.path()).unwrap_err();
    assert!(matches!(error, JournalError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("move the file away"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), vec![7u8; 4096]);
}

#[test]
fn a_journal_of_a_later_version_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(Journal::open(dir.path()).unwrap());
    let db = Connection::open(dir.path().join("journal.sqlite3")).unwrap();
    db.pragma_update(None, "user_version", SCHEMA + 1).unwrap();
    drop(db);
    assert!(matches!(Journal::open(dir.path()).unwrap_err(), JournalError::Newer { .. }));
}

#[test]
fn a_folder_that_can_not_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Journal::open(&file.join("data")).unwrap_err();
    assert!(matches!(error, JournalError::Folder { .. }), "{error}");
    assert!(error.to_string().contains("data-dir"), "{error}");
}

#[test]
fn folder_and_file_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let journal = Journal::open(&data).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(journal.path()), 0o600);
}

#[test]
fn errors_of_the_disk_say_what_to_do() {
    let path = Path::new("/data/journal.sqlite3");
    let of = |code: i32| {
        let failure = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        JournalError::of(path, failure).to_string()
    };
    assert!(of(rusqlite::ffi::SQLITE_FULL).contains("disk is full"));
    assert!(of(rusqlite::ffi::SQLITE_READONLY).contains("read-only"));
    assert!(of(rusqlite::ffi::SQLITE_CORRUPT).contains("damaged"));
    assert!(of(rusqlite::ffi::SQLITE_BUSY).contains("another process"));
}

#[test]
fn the_trail_is_bounded_and_what_is_open_or_owed_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let open = begin(&journal, &steps());
    journal.intent(open, 0, Some(&debt())).unwrap();
    let closed: Vec<i64> = (0..20).map(|_| begin(&journal, &steps())).collect();
    for operation in &closed {
        journal.finish(*operation, Outcome::Ok, None).unwrap();
    }
    journal.prune("other", 0).unwrap();
    assert_eq!(journal.history(&HistoryFilter::default(), 100).unwrap().len(), 21);
    journal.prune("lab", 5).unwrap();
    let kept: Vec<i64> =
        journal.history(&HistoryFilter::default(), 100).unwrap().iter().map(|entry| entry.id).collect();
    let mut wanted: Vec<i64> = closed[15..].to_vec();
    wanted.insert(0, open);
    wanted.reverse();
    assert_eq!(kept, wanted);
    assert_eq!(journal.unfinished("lab").unwrap().len(), 1);
    assert!(journal.owed("lab").unwrap().contains_key(&111));
    let orphans: i64 = journal
        .read(|db| {
            db.query_row(
                "select count(*) from steps where operation not in (select id from operations)",
                [],
                |row| row.get(0),
            )
        })
        .unwrap();
    assert_eq!(orphans, 0);
}

#[test]
fn a_journal_of_the_first_version_is_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("journal.sqlite3");
    let old = include_str!("schema.sql")
        .replace("  actor text,\n", "")
        .replace("  -- slots of disks that were to grow once they were made, divided by blanks\n", "")
        .replace("  grow text not null default '',\n", "")
        .replace("  -- its making was begun and did not end well\n", "")
        .replace("  making integer not null default 0,\n", "");
    let db = Connection::open(&file).unwrap();
    db.execute_batch(&old).unwrap();
    db.execute(
        "insert into owed values ('lab', 111, 'VM', 'web', 'pve01', 'qemu', 'TemplateVM', 'tpl', 1, '2026-01-01T00:00:00Z')",
        [],
    )
    .unwrap();
    db.pragma_update(None, "user_version", 1).unwrap();
    drop(db);
    let journal = Journal::open(dir.path()).unwrap();
    let owed = journal.owed("lab").unwrap();
    assert!(owed[&111].rebuild_seed && owed[&111].fresh_clone_of.is_some() && owed[&111].grow.is_empty());
    assert!(!owed[&111].making);
    begin(&journal, &steps());
    assert_eq!(journal.history(&HistoryFilter::default(), 9).unwrap()[0].actor.as_deref(), Some("ops@desk"));
}
