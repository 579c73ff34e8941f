//! Living clusters are adopted: nothing is lost, nothing changes but the claim, and two runs agree byte by byte.

use proxops_adopt::{Options, Report, adopt};
use proxops_daemon::{Process, Wish};
use proxops_exec::Cancel;
use proxops_kind_tests::draw::Draw;
use proxops_kind_tests::living;
use proxops_model::plan::{ClusterPlan, Verb};
use proxops_model::{Severity, text};
use proxops_repo::{LoadOptions, Overrides};
use proxops_sim::{GuestKind, Sim, SimHandle, SimOptions, World, seed};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// Clusters of one test run; `PROPTEST_CASES` and `PROXOPS_SEED` as in the other tests.
const CLUSTERS: u64 = 12;

struct Quiet;
impl proxops_adopt::Progress for Quiet {
    fn begin(&self, _: usize) {}
    fn read(&self) {}
}
impl proxops_exec::Progress for Quiet {}

/// A repository of one cluster, and the simulator behind it.
struct Ground {
    folder: tempfile::TempDir,
    sim: SimHandle,
    root: bool,
}

impl Ground {
    async fn new(world: World, root: bool) -> Self {
        let sim = Sim::start(world, SimOptions::default()).await.unwrap();
        let ground = Self { folder: tempfile::tempdir().unwrap(), sim, root };
        std::fs::create_dir_all(ground.repo().join(".git")).unwrap();
        let auth = if root { "\n      auth: ticket" } else { "" };
        let url = ground.sim.url();
        ground.write(
            "clusters/lab/config.yaml",
            &format!("pve:\n  clusters:\n    lab:\n      base-url: {url}{auth}\n"),
        );
        ground.write("clusters/lab/resources.yaml", "resources: []\n");
        ground
    }

    fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.repo().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn process(&self) -> Process {
        let root = self.root;
        let env = move |name: &str| match (name, root) {
            ("PROXOPS_PVE_TOKEN_VALUE", false) => Some(format!("{}={}", seed::TOKEN_ID, seed::TOKEN_SECRET)),
            ("PROXOPS_PVE_USER", true) => Some("root@pam".to_owned()),
            ("PROXOPS_PVE_PASSWORD", true) => Some(seed::ROOT_PASSWORD.to_owned()),
            _ => None,
        };
        // Compiled kinds are shared by all clusters of a run, and by runs.
        let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("adopt-kinds");
        let data = self.folder.path().join("data");
        std::fs::create_dir_all(cache.join("kinds")).unwrap();
        std::fs::create_dir_all(&data).unwrap();
        let link = data.join("cache");
        if !link.exists() {
            std::os::unix::fs::symlink(&cache, link).unwrap();
        }
        let overrides = Overrides { data_dir: Some(data), ..Overrides::default() };
        Process::open(&LoadOptions { overrides, ..LoadOptions::new(self.repo(), &env) }, None).unwrap()
    }

    async fn adopt(&self, force: bool) -> Report {
        let process = self.process();
        let options = Options { force, ..Options::default() };
        adopt(&process, process.repository.cluster("lab").unwrap(), &options, &Quiet).await.unwrap()
    }

    fn texts(&self, report: &Report) -> BTreeMap<String, String> {
        let read = |file: &String| (file.clone(), std::fs::read_to_string(self.repo().join(file)).unwrap());
        report.written.iter().map(read).collect()
    }

    async fn plan(&self) -> ClusterPlan {
        let process = self.process();
        let cluster = process.repository.cluster("lab").unwrap();
        process.plan(cluster, Wish::Look, &Cancel::new()).await.plan
    }

    async fn apply(&self) -> ClusterPlan {
        let process = self.process();
        let cluster = process.repository.cluster("lab").unwrap();
        let mut planned = process.plan(cluster, Wish::Change, &Cancel::new()).await;
        process.execute(&mut planned, Arc::new(Quiet), Cancel::new()).await;
        planned.plan
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn a_random_living_cluster_is_adopted_listed_and_claimed_and_nothing_else_happens() {
    let first: u64 = std::env::var("PROXOPS_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let runtime = runtime();
    let cases = proxops_kind_tests::converge::cases(CLUSTERS);
    let (mut guests, mut gaps) = (0, 0);
    for case in first..first + cases {
        let (more_guests, more_gaps) = runtime.block_on(one_cluster(case));
        guests += more_guests;
        gaps += more_gaps;
    }
    println!("{cases} clusters, {guests} guests, {gaps} gaps");
    assert!(
        guests as u64 > cases * 12 && gaps as u64 > cases,
        "too few to tell: {guests} guests, {gaps} gaps"
    );
}

async fn one_cluster(case: u64) -> (usize, usize) {
    let world = living::cluster(case);
    let unowned: BTreeSet<u32> = world
        .guests
        .values()
        .filter(|g| !g.config.get("tags").is_some_and(|tags| text::has_tag(tags, "proxops")))
        .map(|g| g.vmid)
        .collect();
    let running: BTreeMap<u32, bool> = world.guests.values().map(|g| (g.vmid, g.running)).collect();
    let guests = world.guests.len();
    let ground = Ground::new(world, case % 2 == 1).await;
    let report = ground.adopt(false).await;
    assert!(ground.sim.write_log().is_empty(), "case {case}: {:?}", ground.sim.write_log());
    assert!(report.skipped.is_empty(), "case {case}: {:?}", report.skipped);
    assert!(report.written.len() >= guests, "case {case}: {:?}", report.written);
    // What a kind adopts holds as it is: leaving a field out is for kinds that are wrong.
    let repaired = report
        .gaps
        .iter()
        .find(|g| g.why.contains("does not take this value:") || g.why.contains("would change"));
    assert!(repaired.is_none() && report.noted.is_empty(), "case {case}: {repaired:?} {:?}", report.noted);
    let texts = ground.texts(&report);
    let explain = |plan: &ClusterPlan, name: &str| {
        let file = texts.iter().find(|(file, _)| file.ends_with(&format!("/{name}.yaml")));
        format!("case {case}: {:#?}\n{:?}\n{}", plan.anomalies, plan.actions, file.map_or("", |(_, t)| t))
    };

    let again = ground.adopt(true).await;
    assert_eq!(again.written, report.written, "case {case}");
    assert_eq!(ground.texts(&again), texts, "case {case}: two runs differ");

    ground.write("clusters/lab/resources.yaml", &format!("resources:\n{}\n", report.resources.join("\n")));
    let plan = ground.plan().await;
    assert_eq!(plan.error, None, "case {case}");
    let loud = plan.anomalies.iter().find(|a| a.severity != Severity::Info);
    assert!(loud.is_none(), "{loud:?} {}", explain(&plan, &loud.unwrap().name));
    for action in &plan.actions {
        let only_tags = action.changes.iter().all(|change| change.key == "tags");
        let claim = action.verb == Verb::Update && only_tags && !action.disruptive;
        assert!(claim, "{action:?} {}", explain(&plan, &action.name));
    }
    let claimed: BTreeSet<u32> = plan.actions.iter().filter_map(|a| a.vmid).collect();
    assert_eq!(claimed, unowned, "case {case}");
    assert!(
        plan.unknown.is_empty() && plan.deferred.is_empty() && plan.pending.is_empty(),
        "case {case}: {plan:?}"
    );

    let applied = ground.apply().await;
    let bad = applied.actions.iter().find(|a| a.ended.as_ref().is_none_or(|e| e.error.is_some()));
    assert!(bad.is_none(), "case {case}: {bad:?}");
    for write in ground.sim.write_log() {
        let keys: Vec<&str> = write.params.keys().map(String::as_str).collect();
        assert!(write.path.ends_with("/config") && keys == ["digest", "tags"], "case {case}: {write:?}");
    }
    let after: BTreeMap<u32, bool> =
        ground.sim.world().guests.values().map(|g| (g.vmid, g.running)).collect();
    assert_eq!(after, running, "case {case}: power changed");
    let plan = ground.plan().await;
    assert!(plan.is_clean(), "case {case}: {plan:?}");
    (guests, report.gaps.len())
}

/// Keys that PVE or the host keeps, and that no manifest says: fact Q19, Q28, and what `kind` and `state` say.
const BOOK_KEEPING: [&str; 13] = [
    "digest",
    "lock",
    "meta",
    "parent",
    "runningcpu",
    "runningmachine",
    "running-nets-host-mtu",
    "snaptime",
    "template",
    "vmgenid",
    "vmstate",
    "snapshots",
    "unprivileged",
];

#[test]
fn every_key_of_pves_schema_ends_as_field_bookkeeping_or_gap() {
    let runtime = runtime();
    for (guest, base) in [
        (GuestKind::Qemu, &[("memory", "2048"), ("name", "g")][..]),
        (
            GuestKind::Lxc,
            &[("memory", "512"), ("hostname", "g"), ("rootfs", "local-lvm:vm-100-disk-0,size=8G")][..],
        ),
    ] {
        let mut world = seed::empty();
        world.add_guest(guest, 100, "pve01", base);
        let mut d = Draw::new(7);
        let mut probes: Vec<(u32, String, String)> = Vec::new();
        for param in living::table(guest).iter().flat_map(|group| group.iter()) {
            if param.kind == proxops_sim::grammar::Kind::Alias || BOOK_KEEPING.contains(&param.name) {
                continue;
            }
            // Several values: one may be the default, which a manifest leaves out.
            for _ in 0..8 {
                let (key, value) = (living::key(param, &mut d), living::value(param, &mut d));
                probes.push((1000 + probes.len() as u32, key, value));
            }
        }
        probes.push((999, "some-later-key".to_owned(), "1".to_owned()));
        for (vmid, key, value) in &probes {
            let mut config = base.to_vec();
            config.retain(|(k, _)| k != key);
            config.push((key, value));
            world.add_guest(guest, *vmid, "pve01", &config);
        }
        let ground = runtime.block_on(Ground::new(world, true));
        let report = runtime.block_on(ground.adopt(false));
        assert!(!report.failed, "{:?}", report.skipped);
        // Each guest's manifest without what differs anyway.
        let mut texts: BTreeMap<u32, String> = BTreeMap::new();
        for text in ground.texts(&report).into_values() {
            let vmid = text.lines().find_map(|line| line.strip_prefix("  vmid: ")?.parse().ok()).unwrap();
            let names = ["  vmid:", "  name:", "  pve-name:", "    hostname:"];
            let lines = text.lines().filter(|line| !names.iter().any(|name| line.starts_with(name)));
            texts.insert(vmid, lines.collect::<Vec<_>>().join("\n"));
        }
        let of = |vmid: u32| texts.get(&vmid).cloned();
        let bare = of(100).expect("the bare guest");
        let mut seen: BTreeMap<String, bool> = BTreeMap::new();
        for (vmid, key, _) in &probes {
            let family = key.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
            // Refused altogether is loud as well.
            let named = report.skipped.iter().any(|s| s.vmid == Some(*vmid));
            let told = named || of(*vmid).is_some_and(|text| text != bare);
            *seen.entry(family).or_default() |= told;
        }
        seen.remove(if guest == GuestKind::Qemu { "name" } else { "hostname" });
        let lost: Vec<&String> = seen.iter().filter(|(_, told)| !**told).map(|(key, _)| key).collect();
        assert!(lost.is_empty(), "{guest:?}: adopt loses {lost:?}");
        assert!(seen.len() > 25, "{guest:?}: only {} keys", seen.len());
    }
}
