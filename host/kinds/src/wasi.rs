//! The empty WASI world, for components that import WASI because their toolchain always does.
//!
//! There is nothing to read and nothing to reach: no arguments, environment, files, sockets or input;
//! the clocks stand still, randomness has a fixed seed, output becomes log lines. Interfaces that are
//! not linked here (sockets, HTTP, ...) trap when they are called.
//!
//! Time is the trap to mind: an epoch deadline stops a component only while its own code runs, so a
//! component that sleeps in the host would outlive it. Both ways to wait for time are refused, and no
//! other pollable of this world is ever unready.

use crate::{log::SharedLog, store::State};
use std::time::Duration;
use wasmtime::component::{
    Component, HasData, Linker, Resource, ResourceTable, ResourceType, types::ComponentItem,
};
use wasmtime_wasi::{
    Deterministic, HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxView, WasiView, async_trait,
    cli::{IsTerminal, StdoutStream, WasiCli, WasiCliView},
    clocks::{WasiClocks, WasiClocksView},
    filesystem::{WasiFilesystem, WasiFilesystemView},
    p2::{
        DynPollable, OutputStream, Pollable, StreamResult,
        bindings::{cli, clocks, filesystem, random, sync},
    },
    random::{WasiRandom, WasiRandomView},
};

/// 2020-01-01T00:00:00Z. No kind may depend on it.
const NOW: Duration = Duration::from_secs(1_577_836_800);

/// Handles that a component may hold at a time.
const MAX_HANDLES: usize = 1000;

/// Bytes that one request for randomness may ask for.
const MAX_RANDOM: u64 = 64 * 1024;

/// Bytes that a stream takes at a time.
const CHUNK: usize = 64 * 1024;

/// A component asked for something that this world does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    #[error("it tried to wait for a time (wasi:clocks {0}); a kind has no time")]
    Time(&'static str),
    #[error("it called {0}, which a kind does not have")]
    Absent(String),
}

/// The WASI side of one instance.
pub(crate) struct Wasi {
    ctx: WasiCtx,
    table: ResourceTable,
}

impl Wasi {
    fn locked(log: &SharedLog) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        let ctx = WasiCtx::builder()
            .stdout(LogStream(log.clone()))
            .stderr(LogStream(log.clone()))
            .secure_random(Deterministic::new(seed()))
            .insecure_random(Deterministic::new(seed()))
            .insecure_random_seed(0)
            .max_random_size(MAX_RANDOM)
            .wall_clock(Still)
            .monotonic_clock(Still)
            .allow_ip_name_lookup(false)
            .allow_tcp(false)
            .allow_udp(false)
            .build();
        Self { ctx, table }
    }
}

/// A cycle of 256 different bytes.
fn seed() -> Vec<u8> {
    (0..=255u8).map(|i| i.wrapping_mul(167).wrapping_add(13)).collect()
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let wasi = self.wasi.get_or_insert_with(|| Box::new(Wasi::locked(&self.log)));
        WasiCtxView { ctx: &mut wasi.ctx, table: &mut wasi.table }
    }
}

/// Links what the standard libraries of Rust, Python and JavaScript ask for, and no more.
pub(crate) fn add_empty_world(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    type T = State;
    let l = linker;
    sync::io::error::add_to_linker::<T, Table>(l, |t| t.ctx().table)?;
    sync::io::poll::add_to_linker::<T, Table>(l, |t| t.ctx().table)?;
    sync::io::streams::add_to_linker::<T, Table>(l, |t| t.ctx().table)?;
    clocks::wall_clock::add_to_linker::<T, WasiClocks>(l, T::clocks)?;
    clocks::monotonic_clock::add_to_linker::<T, Frozen>(l, |_| Still)?;
    filesystem::preopens::add_to_linker::<T, WasiFilesystem>(l, T::filesystem)?;
    sync::filesystem::types::add_to_linker::<T, WasiFilesystem>(l, T::filesystem)?;
    random::random::add_to_linker::<T, WasiRandom>(l, T::random)?;
    random::insecure::add_to_linker::<T, WasiRandom>(l, T::random)?;
    random::insecure_seed::add_to_linker::<T, WasiRandom>(l, T::random)?;
    cli::exit::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::environment::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::stdin::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::stdout::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::stderr::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_input::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_output::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_stdin::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_stdout::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_stderr::add_to_linker::<T, WasiCli>(l, T::cli)?;
    Ok(())
}

/// What [`add_empty_world`] links, of WASI 0.2.
const LINKED: &[&str] = &[
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:clocks/wall-clock",
    "wasi:clocks/monotonic-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:random/random",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:cli/exit",
    "wasi:cli/environment",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/terminal-stderr",
];

fn is_linked(import: &str) -> bool {
    match import.split_once('@') {
        Some((interface, version)) => LINKED.contains(&interface) && version.starts_with("0.2."),
        None => false,
    }
}

/// Lets each function of the WASI interfaces that are not linked trap when it is called: a component that
/// merely could open a socket still runs.
pub(crate) fn trap_the_rest(linker: &mut Linker<State>, component: &Component) -> wasmtime::Result<()> {
    let engine = component.engine().clone();
    let mut known: Vec<ResourceType> = Vec::new();
    for (import, item) in component.component_type().imports(&engine) {
        let ComponentItem::ComponentInstance(interface) = item.ty else { continue };
        let mut root = linker.root();
        let mut stub = match import.starts_with("wasi:") && !is_linked(import) {
            true => Some(root.instance(import)?),
            false => None,
        };
        for (name, export) in interface.exports(&engine) {
            match export.ty {
                // a resource belongs to the interface that names it first; the others only use it
                ComponentItem::Resource(resource) if !known.contains(&resource) => {
                    known.push(resource);
                    if let Some(stub) = &mut stub {
                        stub.resource(name, ResourceType::host::<Denied>(), |_, _| Ok(()))?;
                    }
                }
                ComponentItem::ComponentFunc(_) => {
                    if let Some(stub) = &mut stub {
                        let denied = Denied::Absent(format!("{import}#{name}"));
                        stub.func_new(name, move |_, _, _, _| Err(denied.clone().into()))?;
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

/// A clock that stands still and can't be waited for.
struct Still;

struct Frozen;

impl HasData for Frozen {
    type Data<'a> = Still;
}

impl clocks::monotonic_clock::Host for Still {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(0)
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(1)
    }

    fn subscribe_instant(&mut self, _when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        Err(Denied::Time("subscribe-instant").into())
    }

    fn subscribe_duration(&mut self, _duration: u64) -> wasmtime::Result<Resource<DynPollable>> {
        Err(Denied::Time("subscribe-duration").into())
    }
}

impl HostWallClock for Still {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        NOW
    }
}

impl HostMonotonicClock for Still {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        0
    }
}

/// stdout or stderr, always ready; what is over the log's bound is swallowed.
#[derive(Clone)]
struct LogStream(SharedLog);

impl IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogStream {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // only WASI 0.3 would use it
        Box::new(tokio::io::sink())
    }
}

#[async_trait]
impl Pollable for LogStream {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for LogStream {
    fn write(&mut self, bytes: bytes::Bytes) -> StreamResult<()> {
        self.0.stream(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(CHUNK)
    }
}
