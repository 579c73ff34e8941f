//! Planning converged guests, and one comparison, in WebAssembly against the same code compiled for this machine.

use crate::ground::Ground;
use crate::live;
use crate::native::{self, Native};
use crate::report::{Row, alternate, once, time};
use anyhow::{Context as _, Result, bail, ensure};
use proxops_daemon::{Process, compose};
use proxops_kind::{self as sdk, kind};
use proxops_kinds::{Kinds, Limits, Session, Sources};
use proxops_model::ResourceId;
use proxops_model::kind::{Context, KindSet, Live, Manifest, Resolved};
use proxops_plan::{Index, Options, Planner, SecretNames, World};
use proxops_qemu::Vm;
use proxops_repo::{Cluster, LoadOptions, Overrides};
use proxops_sim::{Caller, seed};
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// Nobody asks for secrets here.
struct NoSecrets;

impl SecretNames for NoSecrets {
    fn check(&self, name: &str) -> Result<(), String> {
        Err(name.to_owned())
    }
    fn public_key(&self, name: &str) -> Result<String, String> {
        Err(name.to_owned())
    }
}

struct Fleet {
    process: Process,
    world: World,
    load: Duration,
    _ground: Ground,
}

impl Fleet {
    fn new(guests: u32) -> Result<Self> {
        let (mut sim, manifests) = seed::fleet(guests);
        let ground = Ground::new(&manifests, "http://127.0.0.1:1", &[])?;
        let env = |_: &str| None;
        let overrides = Overrides { data_dir: Some(ground.data()), ..Overrides::default() };
        let options = LoadOptions { overrides, ..LoadOptions::new(ground.repo(), &env) };
        // The first compiles, the second is the time.
        Process::open(&options, None)?;
        let mut process = None;
        let load = once(|| process = Some(Process::open(&options, None)));
        let process = process.context("not opened")??;
        ensure!(process.validate().is_empty(), "the fleet does not validate: {}", process.validate()[0]);
        Ok(Self { process, world: live::world(&mut sim)?, load, _ground: ground })
    }

    fn cluster(&self) -> Result<&Cluster> {
        self.process.repository.clusters.first().context("no cluster")
    }

    fn native(&self) -> Result<Native> {
        let info = self.process.kinds.infos().find(|info| info.kind == "VM").context("no kind VM")?;
        Ok(Native(info.clone()))
    }

    fn index(&self, kinds: &dyn KindSet) -> Result<Arc<Index>> {
        let composed = compose(self.cluster()?, kinds);
        ensure!(composed.diagnostics.is_empty(), "the fleet does not compose: {}", composed.diagnostics[0]);
        Ok(composed.index)
    }

    fn plan(&self, index: &Index, kinds: &dyn KindSet, threads: usize) -> Result<()> {
        let options =
            Options { prune_budget: 3, owner_tag: "proxops".to_owned(), grants: Default::default(), threads };
        let plan = Planner { index, kinds, secrets: &NoSecrets, options: &options }.plan(&self.world);
        ensure!(
            plan.is_clean(),
            "the fleet is not converged: {:?} {:?}",
            plan.actions.first(),
            plan.anomalies.first()
        );
        Ok(())
    }
}

/// Rows about plans of many guests.
pub fn plans() -> Result<Vec<Row>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let large = Fleet::new(10_000)?;
    let small = Fleet::new(1_000)?;
    let (session, native) = (large.process.kinds.session(), large.native()?);
    let failed = RefCell::new(Ok(()));
    let keep = |result: Result<()>| {
        if result.is_err() {
            let _ = failed.replace(result);
        }
    };
    let (validated, validated_native) =
        alternate(3, || keep(large.index(&session).map(|_| ())), || keep(large.index(&native).map(|_| ())));
    let (index, small_index) = (large.index(&session)?, small.index(&session)?);
    let (ours, measure) = alternate(
        5,
        || keep(large.plan(&index, &session, threads)),
        || keep(large.plan(&index, &native, threads)),
    );
    let small_session = small.process.kinds.session();
    let (large_time, small_time) = alternate(
        5,
        || keep(large.plan(&index, &session, threads)),
        || keep(small.plan(&small_index, &small_session, threads)),
    );
    failed.into_inner()?;
    Ok(vec![
        Row::ratio("plan of 10,000 converged guests", ours, ("native kinds", measure), 2.0),
        Row::ratio(
            "plan of 10,000 guests, manifests validated first",
            ours + validated,
            ("native kinds", measure + validated_native),
            2.0,
        ),
        Row::ratio("plan of 10,000 guests against 1,000", large_time, ("1,000 guests", small_time), 11.0),
        Row::plain("reading a repository of 10,000 manifests", time(large.load)),
        Row::plain("reading a repository of 1,000 manifests", time(small.load)),
    ])
}

/// Rows about one comparison of the full example of kind VM.
pub fn drift() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let sources = Sources { builtin: true, ..Sources::default() };
    let kinds = Kinds::load(&sources, Limits::standard(), Some(folder.path()))?;
    kinds.prepare(["VM"]);
    let session = kinds.session();
    let full = full(&kinds, &session)?;
    let vm = session.get("VM").context("no kind VM")?;
    let (m, l, c) = (native::manifest(&full.manifest), full.native_live()?, native::context(&full.context));
    const CALLS: u32 = 2_000;
    let (ours, bare) = alternate(
        7,
        || {
            (0..CALLS)
                .for_each(|_| drop(std::hint::black_box(vm.drift(&full.manifest, &full.live, &full.context))))
        },
        || (0..CALLS).for_each(|_| drop(std::hint::black_box(kind::drift::<Vm>(&m, &l, &c)))),
    );
    let converting = || {
        for _ in 0..CALLS {
            let l = full.native_live().ok();
            let (m, c) = (native::manifest(&full.manifest), native::context(&full.context));
            drop(std::hint::black_box(l.map(|l| kind::drift::<Vm>(&m, &l, &c))));
        }
    };
    let (converted, validated) = alternate(5, converting, || {
        (0..CALLS).for_each(|_| drop(std::hint::black_box(vm.validate(&full.manifest))))
    });
    let (_, validated_native) =
        alternate(5, || (), || (0..CALLS).for_each(|_| drop(std::hint::black_box(kind::validate::<Vm>(&m)))));
    let most = session.high_water("VM");
    Ok(vec![
        Row::ratio("one drift call, warm, full VM manifest", ours / CALLS, ("native", bare / CALLS), 1.5),
        Row::ratio(
            "the same, native with converted arguments",
            ours / CALLS,
            ("native", converted / CALLS),
            1.5,
        ),
        Row::plain(
            "one validate call, warm, full VM manifest",
            format!("{} against {} (native)", time(validated / CALLS), time(validated_native / CALLS)),
        ),
        Row::plain("most fuel of one call", format!("{} of {}", most.fuel, Limits::standard().fuel)),
    ])
}

/// The full example with a live guest that matches it.
struct Full {
    manifest: Manifest,
    live: Live,
    context: Context,
}

impl Full {
    fn native_live(&self) -> Result<sdk::Live> {
        native::live(&self.live).map_err(anyhow::Error::msg)
    }
}

const NODE: &str = "pve01";
const VMID: u32 = 102;

/// Creates the full example in the simulator from what the kind says, until nothing is left to do.
fn full(kinds: &Kinds, session: &Session) -> Result<Full> {
    let info = kinds.infos().find(|info| info.kind == "VM").context("no kind VM")?;
    let examples = info.examples.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let example =
        examples.into_iter().find(|e| e["metadata"]["name"] == "full").context("no full example")?;
    let manifest =
        Manifest { name: "full".to_owned(), spec: example["spec"].to_string(), ..Manifest::default() };
    let mut sim = seed::empty();
    sim.add_file("local", NODE, "import/debian-13.qcow2", 400 << 20).virtual_size = Some(2 << 30);
    sim.add_file("local", NODE, "iso/debian-13.iso", 700 << 20);
    sim.add_file("local", NODE, "snippets/vendor.yaml", 100);
    sim.pools.insert("web".to_owned(), Default::default());
    let resolved = |kind: &str, name: &str, volid: &str| Resolved {
        to: ResourceId { kind: kind.to_owned(), name: name.to_owned() },
        attributes: vec![("volid".to_owned(), volid.to_owned())],
    };
    let mut context = live::context(&sim);
    context.root = true;
    context.references = vec![
        resolved("DiskImage", "debian-13", "local:import/debian-13.qcow2"),
        resolved("ISO", "debian-13-netinst", "local:iso/debian-13.iso"),
    ];
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZpeHR1cmUta2V5LWZvci10ZXN0cy1vbmx5LTAwMDAwMDAx bench";
    context.public_keys = vec![("cloud-init.ssh-keys.ops".to_owned(), key.to_owned())];

    let vm = session.get("VM").context("no kind VM")?;
    let mut steps = vm.create_params(&manifest, &context).map_err(|e| anyhow::anyhow!("{e:?}"))?.steps;
    for _ in 0..4 {
        for step in steps {
            run(&mut sim, step)?;
        }
        let live = Live::Guest(Arc::new(live::guest(&mut sim, NODE, VMID)?));
        let report = vm.drift(&manifest, &live, &context).map_err(|e| anyhow::anyhow!("{e:?}"))?;
        if report.steps.is_empty() {
            ensure!(report.changes.is_empty() && report.anomalies.is_empty(), "not converged: {report:?}");
            return Ok(Full { manifest, live, context });
        }
        steps = report.steps;
    }
    bail!("the full example does not converge")
}

fn run(sim: &mut proxops_sim::World, step: proxops_model::kind::KindStep) -> Result<()> {
    use proxops_model::kind::{KindStep, Param, ParamValue};
    let form = |params: &[Param]| -> Map<String, Value> {
        params
            .iter()
            .map(|p| {
                let value = match &p.value {
                    ParamValue::Text(text) => json!(text),
                    ParamValue::Many(list) => json!(list),
                    ParamValue::Secret(_) => json!("Bench-password-1"),
                };
                (p.key.clone(), value)
            })
            .collect()
    };
    let own = format!("/nodes/{NODE}/qemu/{VMID}");
    let (method, path, form) = match step {
        KindStep::Create { params } => {
            let mut form = form(&params);
            form.insert("vmid".to_owned(), json!(VMID));
            ("POST", format!("/nodes/{NODE}/qemu"), form)
        }
        KindStep::Configure { set, unset, revert } => {
            let mut form = form(&set);
            for (key, list) in [("delete", unset), ("revert", revert)] {
                if !list.is_empty() {
                    form.insert(key.to_owned(), json!(list.join(",")));
                }
            }
            ("POST", format!("{own}/config"), form)
        }
        KindStep::Resize { disk, bytes, .. } => {
            let form = [("disk".to_owned(), json!(disk)), ("size".to_owned(), json!(bytes.to_string()))];
            ("PUT", format!("{own}/resize"), Map::from_iter(form))
        }
        KindStep::RebuildCloudInit => ("PUT", format!("{own}/cloudinit"), Map::new()),
        other => bail!("a step that the full example needs not: {other:?}"),
    };
    let answer = sim.call(&Caller::root(), method, &path, Value::Object(form));
    let answer = answer.map_err(|refused| anyhow::anyhow!("{method} {path}: {refused:?}"))?;
    sim.finish_tasks();
    match sim.exit_status(&answer) {
        Some(exit) if exit != "OK" && !exit.starts_with("WARNINGS") => {
            bail!("{method} {path} ended with {exit}")
        }
        _ => Ok(()),
    }
}
