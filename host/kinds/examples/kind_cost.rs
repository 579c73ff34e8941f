//! What kinds cost: compiling each, loading it from the cache, and one call of `validate` on a fresh and a
//! warm instance. `cargo run -p proxops-kinds --example kind_cost`

use proxops_kinds::{Kinds, Limits, Sources};
use proxops_model::kind::{KindSet, Manifest};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cache = std::env::temp_dir().join(format!("proxops-kind-cost-{}", std::process::id()));
    let load = || Kinds::load(&Sources::builtin(), Limits::standard(), Some(&cache));
    let (took, cold) = time(load);
    let cold = cold?;
    println!("load without cache: {took:?}");
    let names: Vec<String> = cold.infos().map(|i| i.kind.clone()).collect();
    for name in &names {
        println!("compile {name:10} {:?}", time(|| cold.prepare([name.as_str()])).0);
    }
    let (took, all) = time(load);
    let all = all?;
    println!(
        "load with cache: {took:?}; all code from cache: {:?}",
        time(|| all.prepare(names.iter().map(String::as_str))).0
    );
    std::fs::remove_dir_all(&cache)?;
    let (took, again) = time(load);
    let again = again?;
    println!(
        "load: {took:?}; compile all in parallel: {:?}",
        time(|| again.prepare(names.iter().map(String::as_str))).0
    );

    let session = again.session();
    for kind in session.all() {
        let Some(example) = kind.info().examples.last() else { continue };
        let value: serde_json::Value = serde_json::from_str(example)?;
        let manifest = Manifest { name: "x".into(), spec: value["spec"].to_string(), ..Manifest::default() };
        let (fresh, _) = time(|| kind.validate(&manifest));
        let rounds: u32 = 2000;
        let (warm, _) = time(|| (0..rounds).for_each(|_| drop(kind.validate(&manifest))));
        println!("validate {:10} fresh {fresh:?}, warm {:?}", kind.info().kind, warm / rounds);
    }
    std::fs::remove_dir_all(&cache)?;
    compare(&session)
}

/// `drift` of the fullest VM example against what creating it would have made, natively and in WebAssembly.
fn compare(session: &dyn KindSet) -> Result<(), Box<dyn std::error::Error>> {
    use proxops_kind::{kind, types as wit};
    use proxops_model::kind::{Context, KindStep, Live, LiveGuest, LivePower, LiveValue, ParamValue};

    let vm = session.get("VM").ok_or("no VM")?;
    let example = vm.info().examples.iter().max_by_key(|e| e.len()).ok_or("no example")?;
    let spec = serde_json::from_str::<serde_json::Value>(example)?["spec"].to_string();
    let manifest = Manifest { name: "x".into(), spec: spec.clone(), ..Manifest::default() };
    let context = Context { owner_tag: "proxops".into(), ..Context::default() };
    let creation = vm.create_params(&manifest, &context).map_err(|e| format!("{e:?}"))?;
    let values: std::collections::BTreeMap<String, LiveValue> = creation
        .steps
        .iter()
        .flat_map(|step| match step {
            KindStep::Create { params } | KindStep::Clone { params, .. } => params.clone(),
            _ => Vec::new(),
        })
        .filter_map(|p| match p.value {
            ParamValue::Text(text) => Some((p.key, LiveValue::Text(text))),
            _ => None,
        })
        .collect();
    let wit_values: Vec<(String, wit::LiveValue)> = values
        .iter()
        .filter_map(|(k, v)| Some((k.clone(), wit::LiveValue::Text(v.text()?.to_owned()))))
        .collect();
    println!("drift of a manifest of {} bytes against {} live values", spec.len(), values.len());
    let live = Live::Guest(Arc::new(LiveGuest {
        node: "n1".into(),
        vmid: 100,
        name: Some("x".into()),
        power: LivePower::Running,
        template: false,
        lock: None,
        values,
        secrets_present: vec![],
        pending: vec![],
        hidden: vec![],
        fresh_clone_of: None,
    }));
    let native_manifest =
        wit::Manifest { name: "x".into(), labels: vec![], annotations: vec![], spec, ext: vec![] };
    let native_live = wit::Live::Guest(wit::LiveGuest {
        node: "n1".into(),
        vmid: 100,
        name: Some("x".into()),
        power: wit::LivePower::Running,
        template: false,
        lock: None,
        values: wit_values,
        secrets_present: vec![],
        pending: vec![],
        hidden: vec![],
        fresh_clone_of: None,
        ext: vec![],
    });
    let native_context = wit::Context { owner_tag: "proxops".into(), ..wit::Context::default() };
    let rounds: u32 = 3000;
    let native = || drop(kind::drift::<proxops_qemu::Vm>(&native_manifest, &native_live, &native_context));
    let wasm = || drop(vm.drift(&manifest, &live, &context));
    for _ in 0..3 {
        let (n, _) = time(|| (0..rounds).for_each(|_| native()));
        let (w, _) = time(|| (0..rounds).for_each(|_| wasm()));
        println!(
            "native {:?}, warm {:?}, ratio {:.2}",
            n / rounds,
            w / rounds,
            w.as_secs_f64() / n.as_secs_f64()
        );
    }
    Ok(())
}
