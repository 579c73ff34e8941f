//! What a kind costs: a fresh instance and its first call, a warm call, compiling, reading the compiled code, memory.
//! For the built-in kinds, the example in Rust, and a kind in Python if `PROXOPS_FOREIGN_KIND` names its component.

use crate::ground;
use crate::report::{Row, once, time};
use anyhow::{Context as _, Result};
use proxops_kinds::{Kinds, Limits, Session, Sources};
use proxops_model::kind::{KindInfo, KindSet as _, Manifest};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Instances that are held to see what one weighs.
const HELD: usize = 32;

/// A few rows for each kind.
pub fn rows() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let builtin = Sources { builtin: true, ..Sources::default() };
    rows.extend(of(&builtin, "ISO", "built-in")?);
    rows.extend(of(&builtin, "VM", "built-in")?);
    let pool = ground::build_example("pool")?;
    rows.extend(of(&file(pool), "Pool", "Rust, wasm32-wasip2")?);
    match std::env::var_os("PROXOPS_FOREIGN_KIND") {
        Some(path) => rows.extend(of(&file(PathBuf::from(path)), "FirewallGroup", "Python")?),
        None => {
            rows.push(Row::plain("kind in Python", "not measured: PROXOPS_FOREIGN_KIND names no component"))
        }
    }
    Ok(rows)
}

fn file(path: PathBuf) -> Sources {
    Sources { files: vec![path], ..Sources::default() }
}

fn example(info: &KindInfo) -> Result<Manifest> {
    let text = info.examples.last().context("no example")?;
    let value: serde_json::Value = serde_json::from_str(text)?;
    Ok(Manifest { name: "bench".to_owned(), spec: value["spec"].to_string(), ..Manifest::default() })
}

fn of(sources: &Sources, kind: &str, what: &str) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let load = || Kinds::load(sources, Limits::standard(), Some(folder.path()));
    // the first load of a file compiles it to ask what it is
    let mut cold = Duration::ZERO;
    let kinds = {
        let mut kinds = None;
        cold += once(|| kinds = Some(load()));
        kinds.context("not loaded")??
    };
    cold += once(|| kinds.prepare([kind]));
    let info = kinds.infos().find(|info| info.kind == kind).context("the kind was not loaded")?;
    let manifest = example(info)?;
    let mut warm = Duration::MAX;
    for _ in 0..3 {
        let again = load()?;
        warm = warm.min(once(|| again.prepare([kind])));
    }
    let ask = |session: &Session| match session.get(kind) {
        Some(kind) => kind.validate(&manifest).map(drop).map_err(|fault| anyhow::anyhow!("{fault}")),
        None => Err(anyhow::anyhow!("no kind {kind}")),
    };
    let mut fresh = Duration::MAX;
    for _ in 0..20 {
        let session = kinds.session();
        let mut result = Ok(());
        fresh = fresh.min(once(|| result = ask(&session)));
        result?;
    }
    let session = kinds.session();
    ask(&session)?;
    let mut call = Duration::MAX;
    for _ in 0..200 {
        let mut result = Ok(());
        call = call.min(once(|| result = ask(&session)));
        result?;
    }
    let before = resident()?;
    let held: Vec<Session> = (0..HELD).map(|_| kinds.session()).collect();
    for session in &held {
        ask(session)?;
    }
    let each = resident()?.saturating_sub(before) / HELD as u64;
    drop(held);
    let most = session.high_water(kind);
    let name = format!("kind {kind} ({what})");
    Ok(vec![
        Row::plain(format!("{name}: fresh instance and first call"), time(fresh)),
        Row::plain(format!("{name}: warm call"), format!("{}, {} fuel", time(call), most.fuel)),
        Row::plain(
            format!("{name}: compiled, read from the cache"),
            format!("{}, {}", time(cold), time(warm)),
        ),
        Row::plain(format!("{name}: memory of an instance"), format!("{} KiB resident", each / 1024)),
    ])
}

/// Bytes of this process that are in memory.
fn resident() -> Result<u64> {
    let text = std::fs::read_to_string(Path::new("/proc/self/statm"))?;
    let pages: u64 = text.split_whitespace().nth(1).context("statm")?.parse()?;
    Ok(pages * 4096)
}
