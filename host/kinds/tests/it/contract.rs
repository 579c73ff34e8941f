//! The promise of the contract: what was built for 1.0.0 keeps working.
//!
//! `pool-1.0.0.wasm` is `examples/kinds/pool` as it was when the contract was frozen. It is never built again.

use crate::components::{Folder, limits};
use proxops_kinds::Kinds;
use proxops_model::kind::{
    Context, KindSet, KindStep, Live, LiveObject, LiveValue, Manifest, ObjectId, ParamValue,
};
use std::collections::BTreeMap;
use wasmtime::component::{Component, Linker, ResourceTable, Val};
use wasmtime::{Engine, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wit_parser::{Resolve, WorldId};

const NOW: &str = include_str!("../../../../wit/kind.wit");
const FROZEN: &str = include_str!("../../../../wit/frozen/kind-1.0.0.wit");
const POOL: &[u8] = include_bytes!("pool-1.0.0.wasm");

/// The contract under another version, so that two of them can be looked at together.
fn versioned(text: &str, version: &str) -> String {
    let (before, rest) = text.split_once("package proxops:kind@").unwrap();
    let (_, after) = rest.split_once(';').unwrap();
    format!("{before}package proxops:kind@{version};{after}")
}

/// Whether a component of the old contract fits where the new one is spoken.
fn fits(old: &str, new: &str) -> Result<(), String> {
    let mut resolve = Resolve::default();
    let world = |resolve: &mut Resolve, text: &str| -> Result<WorldId, String> {
        let package = resolve.push_str("kind.wit", text).map_err(|e| format!("{e:?}"))?;
        resolve.select_world(&[package], Some("kind")).map_err(|e| format!("{e:?}"))
    };
    let old = world(&mut resolve, &versioned(old, "1.0.0"))?;
    let new = world(&mut resolve, &versioned(new, "1.0.1"))?;
    wit_component::semver_check(resolve, old, new).map_err(|e| format!("{e:#}"))
}

fn edited(from: &str, to: &str) -> String {
    assert_eq!(FROZEN.matches(from).count(), 1, "{from}");
    FROZEN.replace(from, to)
}

/// A 1.1 that has more: a function of the interface that is there, and an interface of its own.
fn larger() -> String {
    let more = edited(
        "    emit: func(at: level, message: string);\n}",
        "    emit: func(at: level, message: string);\n    measure: func(name: string, value: u64);\n}\n\n\
         interface hints {\n    hint: func(key: string) -> option<string>;\n}",
    );
    more.replace("    import log;\n", "    import log;\n    import hints;\n")
}

#[test]
fn the_contract_is_the_frozen_one_or_one_that_runs_its_components() {
    assert_eq!(fits(FROZEN, NOW), Ok(()));
    if NOW.contains("package proxops:kind@1.0.0;") {
        assert_eq!(fits(NOW, FROZEN), Ok(()), "1.0.0 is frozen: what is new needs a new version");
    }
}

#[test]
fn a_contract_that_changes_what_exists_is_found() {
    for (from, to) in [
        ("        part: bool,\n", ""),
        ("        part: bool,\n", "        part: bool,\n        more: bool,\n"),
        ("        mark-template,\n", "        mark-template,\n        snapshot,\n"),
        ("    enum guest-type { qemu, lxc }", "    enum guest-type { qemu, lxc, oci }"),
        (
            "    record resize-step { disk: string, bytes: u64,",
            "    record resize-step { disk: string, bytes: s64,",
        ),
        ("    describe: func() -> info;\n", "    describe: func(host: string) -> info;\n"),
        ("    describe: func() -> info;\n", "    describe: func() -> info;\n    health: func() -> bool;\n"),
    ] {
        assert!(fits(FROZEN, &edited(from, to)).is_err(), "{from:?} -> {to:?}");
    }
}

#[test]
fn a_contract_with_more_to_call_fits() {
    assert_eq!(fits(FROZEN, &larger()), Ok(()));
}

fn manifest() -> Manifest {
    let spec = r#"{"comment":"Web","pool":"web","storages":["nfs"]}"#;
    Manifest { name: "web".to_owned(), spec: spec.to_owned(), ..Manifest::default() }
}

#[test]
fn a_component_of_1_0_0_runs_in_this_host() {
    let folder = Folder::new();
    folder.file("pool.wasm", POOL);
    let kinds = Kinds::load(&folder.sources(), limits(), None).unwrap();
    assert_eq!(kinds.problems(), []);
    let session = kinds.session();
    let pool = session.get("Pool").unwrap();
    assert!(pool.validate(&manifest()).unwrap().diagnostics.is_empty());
    let answer = r#"[{"poolid":"web","comment":"Web\nproxops:proxops:Pool/web","members":[]}]"#;
    let live = Live::Object(LiveObject {
        id: ObjectId { id: "web".to_owned(), vars: Vec::new() },
        values: BTreeMap::from([(String::new(), LiveValue::Json(answer.to_owned()))]),
        row: BTreeMap::from([(
            "comment".to_owned(),
            LiveValue::Text("Web\nproxops:proxops:Pool/web".to_owned()),
        )]),
    });
    let context = Context { owner_tag: "proxops".to_owned(), ..Context::default() };
    let report = pool.drift(&manifest(), &live, &context).unwrap();
    let [KindStep::Call { set, .. }] = report.steps.as_slice() else { panic!("{:?}", report.steps) };
    let sent: Vec<_> = set.iter().map(|p| (p.key.as_str(), &p.value)).collect();
    assert_eq!(sent, [("storage", &ParamValue::Text("nfs".to_owned()))]);
}

/// Rust's standard library imports WASI, whether it is called or not.
#[derive(Default)]
struct World {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for World {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// A host of 1.1, reduced to what a component meets of it: names of that version, and more functions than 1.0 has.
struct Later {
    store: Store<World>,
    api: wasmtime::component::Instance,
}

impl Later {
    fn new() -> Self {
        let engine = Engine::default();
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_sync(&mut linker).unwrap();
        linker.instance("proxops:kind/types@1.1.0").unwrap();
        let mut log = linker.instance("proxops:kind/log@1.1.0").unwrap();
        log.func_new("emit", |_, _, _, _| Ok(())).unwrap();
        log.func_new("measure", |_, _, _, _| Ok(())).unwrap();
        let mut hints = linker.instance("proxops:kind/hints@1.1.0").unwrap();
        hints.func_new("hint", |_, _, _, _| Ok(())).unwrap();
        let component = Component::new(&engine, POOL).unwrap();
        let mut store = Store::new(&engine, World::default());
        let api = linker.instantiate(&mut store, &component).unwrap();
        Self { store, api }
    }

    fn call(&mut self, function: &str, arguments: &[Val]) -> Val {
        let interface = self.api.get_export_index(&mut self.store, None, "proxops:kind/api@1.1.0").unwrap();
        let index = self.api.get_export_index(&mut self.store, Some(&interface), function).unwrap();
        let function = self.api.get_func(&mut self.store, index).unwrap();
        let mut answer = [Val::Bool(false)];
        function.call(&mut self.store, arguments, &mut answer).unwrap();
        let [answer] = answer;
        answer
    }
}

fn text(text: &str) -> Val {
    Val::String(text.to_owned())
}

fn record<const N: usize>(fields: [(&str, Val); N]) -> Val {
    Val::Record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn list(items: impl IntoIterator<Item = Val>) -> Val {
    Val::List(items.into_iter().collect())
}

/// Keys that 1.0 does not have.
fn news() -> Val {
    list([Val::Tuple(vec![text("priority"), text("high")])])
}

fn field<'a>(value: &'a Val, name: &str) -> &'a Val {
    let Val::Record(fields) = value else { panic!("{value:?}") };
    &fields.iter().find(|(field, _)| field == name).unwrap().1
}

fn later_manifest() -> Val {
    let manifest = manifest();
    record([
        ("name", text(&manifest.name)),
        ("labels", list([])),
        ("annotations", list([])),
        ("spec", text(&manifest.spec)),
        ("ext", news()),
    ])
}

#[test]
fn a_component_of_1_0_0_runs_in_a_host_of_1_1() {
    let mut host = Later::new();
    assert_eq!(field(&host.call("describe", &[]), "kind"), &text("Pool"));
    let validation = host.call("validate", &[later_manifest()]);
    assert_eq!(field(&validation, "diagnostics"), &list([]));
}

#[test]
fn a_case_that_1_0_0_does_not_know_is_answered_with_a_diagnostic() {
    let mut host = Later::new();
    let style =
        record([("case-sensitive", Val::Bool(false)), ("keep-order", Val::Bool(false)), ("ext", news())]);
    let context = record([
        ("cluster", text("lab")),
        ("pve-version", text("9.2.3")),
        ("owner-tag", text("proxops")),
        ("root", Val::Bool(false)),
        ("tag-style", style),
        ("storages", list([])),
        ("references", list([])),
        ("public-keys", list([])),
        ("ext", news()),
    ]);
    let case = Val::Tuple(vec![text("volume-group"), text("{}")]);
    let live = Val::Variant("other".to_owned(), Some(Box::new(case)));
    let Val::Result(Err(Some(diagnostics))) = host.call("drift", &[later_manifest(), live, context]) else {
        panic!("no refusal")
    };
    let Val::List(diagnostics) = *diagnostics else { panic!("{diagnostics:?}") };
    assert_eq!(field(&diagnostics[0], "code"), &text("not-an-object"));
}
