//! A wasmtime engine: its settings, the ticker behind deadlines, and compiling with a budget.

use crate::{
    bindings,
    files::Bytes,
    limits::{Limits, size},
    store::{HasState, State},
    wasi,
};
use proxops_builtin::settings;
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};
use wasmtime::component::{Component, Linker};

/// How often the epoch moves while a call runs.
const TICK: Duration = Duration::from_millis(10);

/// A compiled kind with its imports resolved; instantiating it is cheap.
pub(crate) type Prepared = bindings::KindPre<State>;

/// Settings, linkers and the ticker, shared by all built-in kinds of a run, or by all others.
pub(crate) struct Engine {
    inner: wasmtime::Engine,
    /// For components without WASI: nothing but `log`.
    plain: Linker<State>,
    /// Names the settings and the version, so that compiled code of another build is told apart.
    compatibility: u64,
    ticker: Ticker,
    /// Counts the work of a call: for other people's components.
    pub(crate) metered: bool,
    /// The widest of all kinds; each instance has its own kind's.
    pub(crate) limits: Limits,
}

impl Engine {
    /// # Errors
    /// If this machine can't run compiled code, as a sentence.
    pub(crate) fn new(limits: Limits, metered: bool) -> Result<Self, String> {
        Self::build(limits, metered).map_err(|e| format!("the WebAssembly engine can't be set up: {e:#}"))
    }

    fn build(limits: Limits, metered: bool) -> wasmtime::Result<Self> {
        let mut config = if metered { settings::strangers() } else { settings::trusted() };
        config.max_wasm_stack(limits.stack);
        let inner = wasmtime::Engine::new(&config)?;
        let mut plain = Linker::new(&inner);
        bindings::Kind::add_to_linker::<State, HasState>(&mut plain, |state| state)?;
        let mut hasher = DefaultHasher::new();
        inner.precompile_compatibility_hash().hash(&mut hasher);
        let ticker = Ticker::start(inner.clone())?;
        Ok(Self { compatibility: hasher.finish(), inner, plain, ticker, metered, limits })
    }

    pub(crate) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.inner
    }

    /// Equal for engines whose compiled code is interchangeable.
    pub(crate) fn compatibility(&self) -> u64 {
        self.compatibility
    }

    /// Ticks after which a call is stopped.
    pub(crate) fn deadline_ticks(limits: &Limits) -> u64 {
        let ticks = limits.deadline.as_millis() / TICK.as_millis();
        u64::try_from(ticks).unwrap_or(u64::MAX / 2).max(1)
    }

    /// Keeps the epoch moving until it is dropped.
    pub(crate) fn running(&self) -> Running<'_> {
        self.ticker.enter()
    }

    /// Compiles within the size and time of the limits. Code that compiles for longer is left to end by
    /// itself on its own thread: a compiler can't be interrupted.
    ///
    /// # Errors
    /// What is wrong with the component, as a sentence that starts with "it".
    pub(crate) fn compile(&self, bytes: Bytes) -> Result<Component, String> {
        let limit = self.limits.component_bytes;
        if bytes.as_ref().as_ref().len() > limit {
            return Err(format!("it is larger than {} (limit component-bytes)", size(limit)));
        }
        let (sender, receiver) = mpsc::channel();
        let engine = self.inner.clone();
        thread::Builder::new()
            .name("compile-kind".to_owned())
            .spawn(move || {
                // the receiver may have given up
                let _ = sender.send(Component::from_binary(&engine, bytes.as_ref().as_ref()));
            })
            .map_err(|e| format!("it can't be compiled: no thread: {e}"))?;
        match receiver.recv_timeout(self.limits.compile) {
            Ok(Ok(component)) => Ok(component),
            Ok(Err(error)) => Err(format!("it can't be compiled: {error:#}")),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(format!(
                "it took longer than {} s to compile (limit compile)",
                self.limits.compile.as_secs()
            )),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err("it can't be compiled: the compiler panicked".to_owned())
            }
        }
    }

    /// Resolves the imports of a component: `log` for all, the empty world for those that want WASI.
    ///
    /// # Errors
    /// What the component wants and the contract does not have, as a sentence that starts with "it".
    pub(crate) fn prepare(&self, component: &Component, wants_wasi: bool) -> Result<Prepared, String> {
        let linked = if wants_wasi {
            let mut linker = self.plain.clone();
            wasi::add_empty_world(&mut linker)
                .and_then(|()| wasi::trap_the_rest(&mut linker, component))
                .and_then(|()| linker.instantiate_pre(component))
        } else {
            self.plain.instantiate_pre(component)
        };
        linked.and_then(Prepared::new).map_err(|e| {
            format!(
                "it does not fit the contract proxops:kind {}: {e:#}. Build it against wit/kind.wit of this version",
                crate::shape::CONTRACT
            )
        })
    }
}

/// Moves the epoch every 10 ms while at least one call runs, and sleeps otherwise: an idle daemon
/// does not wake.
struct Ticker {
    shared: Arc<Shared>,
    thread: thread::Thread,
}

#[derive(Default)]
struct Shared {
    running: AtomicUsize,
    stop: AtomicBool,
}

impl Ticker {
    fn start(engine: wasmtime::Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let seen = Arc::clone(&shared);
        let handle = thread::Builder::new().name("kind-ticker".to_owned()).spawn(move || {
            while !seen.stop.load(Ordering::Acquire) {
                if seen.running.load(Ordering::Acquire) == 0 {
                    thread::park();
                } else {
                    thread::sleep(TICK);
                    engine.increment_epoch();
                }
            }
        })?;
        Ok(Self { shared, thread: handle.thread().clone() })
    }

    fn enter(&self) -> Running<'_> {
        if self.shared.running.fetch_add(1, Ordering::AcqRel) == 0 {
            self.thread.unpark();
        }
        Running(self)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// A call is running; see [`Engine::running`].
pub(crate) struct Running<'a>(&'a Ticker);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.shared.running.fetch_sub(1, Ordering::AcqRel);
    }
}
