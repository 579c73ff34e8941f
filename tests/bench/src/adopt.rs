//! Adopting a whole fleet, against the simulator in a process of its own.

use crate::fetch;
use crate::ground::{CLUSTER, Ground, Served, token};
use crate::report::{Row, time};
use anyhow::{Context as _, Result, ensure};
use proxops_adopt::{Options, Progress, adopt};
use proxops_daemon::Process;
use proxops_repo::{LoadOptions, Overrides};
use proxops_sim::seed;
use std::time::{Duration, Instant};

const GUESTS: u32 = 2_000;

struct Quiet;
impl Progress for Quiet {
    fn begin(&self, _: usize) {}
    fn read(&self) {}
}

/// Rows about 2,000 guests without a manifest.
pub async fn rows() -> Result<Vec<Row>> {
    let mut rows = rows_at(Duration::ZERO, "answers at once").await?;
    rows.extend(rows_at(crate::LATE, "answers after 5 ms").await?);
    Ok(rows)
}

async fn rows_at(answer: Duration, how: &str) -> Result<Vec<Row>> {
    let served = Served::slow(&format!("fleet:{GUESTS}"), Duration::ZERO, answer)?;
    let token = token();
    let env = |name: &str| (name == "PROXOPS_PVE_TOKEN_VALUE").then(|| token.clone());
    let paths = paths();
    let (mut ours, mut bare, mut whole) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..6 {
        bare = bare.min(fetch::all(&served.url, &paths).await?);
        // A repository without manifests, as at the first time. One that files were just deleted from would do as well,
        // but a file system may take long to make new ones in it.
        let ground = Ground::new(&[], &served.url, &[])?;
        let overrides = Overrides { data_dir: Some(ground.data()), ..Overrides::default() };
        let options = LoadOptions { overrides, ..LoadOptions::new(ground.repo(), &env) };
        let process = Process::open(&options, None)?;
        let cluster = process.repository.clusters.first().context("no cluster")?;
        let started = Instant::now();
        let report = adopt(&process, cluster, &Options::default(), &Quiet).await?;
        let took = started.elapsed();
        let written = report.written.len();
        ensure!(
            written == GUESTS as usize,
            "{written} manifests, not {GUESTS}: {:?}",
            report.skipped.first()
        );
        ours = ours.min(took);
        whole = whole.min(ground.run(&["adopt", "--cluster", CLUSTER, "--force"])?.0);
    }
    let what = format!("adopt of {GUESTS} guests, files written, a cluster that {how}");
    // A cluster that answers at once is none that there is: no bound (docs/decisions/0012-adopt-figure.md).
    let row = if answer.is_zero() {
        let factor = ours.as_secs_f64() / bare.as_secs_f64();
        Row::plain(what, format!("{factor:.2}x: {} against {} (bare fetch)", time(ours), time(bare)))
    } else {
        Row::ratio(what, ours, ("bare fetch", bare), 1.25)
    };
    Ok(vec![row, Row::plain(format!("`proxops adopt` of them, whole command, {how}"), time(whole))])
}

/// What a run reads.
fn paths() -> Vec<String> {
    let mut paths: Vec<String> = ["/version", "/cluster/options", "/cluster/resources", "/cluster/resources"]
        .map(str::to_owned)
        .into();
    for node in seed::NODES {
        paths.push(format!("/nodes/{node}/qemu"));
        paths.push(format!("/nodes/{node}/lxc"));
    }
    paths.extend(
        (0..GUESTS).map(|n| {
            format!("/nodes/{}/qemu/{}/config", seed::NODES[n as usize % seed::NODES.len()], 1000 + n)
        }),
    );
    for content in ["iso", "vztmpl", "import"] {
        paths
            .extend(seed::NODES.map(|node| format!("/nodes/{node}/storage/local/content?content={content}")));
        paths.push(format!("/nodes/pve01/storage/nfs/content?content={content}"));
    }
    paths
}
