//! Downloads.

use crate::support::*;
use proxops_model::kind::KindStep;
use proxops_model::plan::Subject;
use proxops_model::{Action, Outcome, Step, Verb};
use proxops_sim::{FaultAnswer, TaskRule, World, seed};

const DOWNLOAD: &str = "POST /nodes/pve01/storage/local/download-url";

fn download() -> Action {
    let step = KindStep::Download {
        node: "pve01".into(),
        storage: "local".into(),
        filename: "x.iso".into(),
        params: params(&[("url", "https://images.example.org/x.iso")]),
    };
    let mut action = action(Verb::Download, 0, "x", vec![Step::Kind(step)]);
    action.vmid = None;
    action.subject = Some(Subject::Artifact { content: "iso".into() });
    action
}

fn is_there(world: &World) -> bool {
    world.volume("local:iso/x.iso", "pve01").is_some()
}

#[tokio::test]
async fn a_file_is_fetched_and_seen() {
    let bench = bench(seed::empty()).await;
    ok(&bench.run_one(download()).await);
    assert_eq!(bench.sent(0, "content").as_deref(), Some("iso"));
    assert_eq!(bench.sent(0, "filename").as_deref(), Some("x.iso"));
    assert!(is_there(&bench.sim.world()));
}

#[tokio::test]
async fn a_checksum_that_does_not_fit_fails_what_needs_the_file() {
    let mut world = seed::empty();
    world.task_rules.push(TaskRule::fail("download", "checksum mismatch: got 'aa' != expect 'bb', aborting"));
    let bench = bench(world).await;
    let mut app = create(101, "app");
    app.after = vec![download().id];
    app.level = 1;
    let ended = bench.run(vec![download(), app]).await;
    assert!(error(&ended[0], Outcome::Failed).contains("checksum mismatch"), "{ended:?}");
    assert!(error(&ended[1], Outcome::Deferred).contains(&download().id), "{ended:?}");
    assert_eq!(bench.writes(), [DOWNLOAD]);
}

#[tokio::test]
async fn a_file_that_somebody_else_put_there_is_as_good() {
    let mut world = seed::empty();
    world.add_file("local", "pve01", "iso/x.iso", 1 << 20);
    let bench = bench(world).await;
    ok(&bench.run_one(download()).await);
}

#[tokio::test]
async fn a_download_whose_answer_is_lost_is_awaited() {
    let bench = bench(seed::empty()).await;
    bench.fault("POST", "/nodes/pve01/storage/local/download-url", FaultAnswer::DropAfter);
    ok(&bench.run_one(download()).await);
    assert_eq!(bench.writes(), [DOWNLOAD]);
}

#[tokio::test]
async fn a_download_that_says_ok_and_left_nothing_is_a_failure() {
    let mut world = seed::empty();
    world.task_rules.push(TaskRule { kind: "download".into(), effect: Some(false), ..TaskRule::default() });
    let bench = bench(world).await;
    error(&bench.run_one(download()).await, Outcome::Failed);
}
