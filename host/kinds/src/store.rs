//! The one constructor of a store, and what the host keeps for each instance.

use crate::{
    bindings::{
        Kind,
        proxops::kind::{log, types},
    },
    engine::{Engine, Prepared},
    limits::{LimitHit, Limits},
    log::{Log, SharedLog},
    wasi::Wasi,
};
use wasmtime::{ResourceLimiter, Store, component::HasData};

/// What the host keeps for one instance of a kind.
pub(crate) struct State {
    pub(crate) limits: Limits,
    memory: usize,
    table: usize,
    pub(crate) log: SharedLog,
    /// Made when the component first asks for it.
    pub(crate) wasi: Option<Box<Wasi>>,
}

impl State {
    fn new(limits: &Limits, kind: &str) -> Self {
        Self { limits: limits.clone(), memory: 0, table: 0, log: Log::shared(kind, limits), wasi: None }
    }
}

/// Gives the bindings access to the whole state.
pub(crate) struct HasState;

impl HasData for HasState {
    type Data<'a> = &'a mut State;
}

impl types::Host for State {}

impl log::Host for State {
    fn emit(&mut self, at: log::Level, message: String) {
        self.log.emit(at == log::Level::Panic, &message);
    }
}

impl ResourceLimiter for State {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let wanted = self.memory.saturating_add(desired.saturating_sub(current));
        if wanted > self.limits.memory {
            // a trap, since a failed growth ends as an unexplained `unreachable`
            return Err(LimitHit::Memory { wanted, limit: self.limits.memory }.into());
        }
        self.memory = wanted;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let wanted = self.table.saturating_add(desired.saturating_sub(current));
        if wanted > self.limits.table_elements {
            return Err(LimitHit::Table { wanted, limit: self.limits.table_elements }.into());
        }
        self.table = wanted;
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.limits.instances
    }

    fn tables(&self) -> usize {
        self.limits.instances
    }

    fn memories(&self) -> usize {
        self.limits.instances
    }
}

/// An instance that can be called. It is thrown away after a trap or a limit.
pub(crate) struct Instance {
    pub(crate) store: Store<State>,
    pub(crate) kind: Kind,
}

impl Instance {
    /// Makes a store with all limits set, and an instance in it.
    pub(crate) fn new(
        engine: &Engine,
        limits: &Limits,
        prepared: &Prepared,
        kind: &str,
    ) -> Result<Self, Stopped> {
        let mut store = Store::new(engine.wasmtime(), State::new(limits, kind));
        store.limiter(|state| state);
        store.set_hostcall_fuel(limits.output_bytes);
        let made = refuel(&mut store, engine).and_then(|()| {
            let _running = engine.running();
            prepared.instantiate(&mut store)
        });
        match made {
            Ok(kind) => Ok(Self { store, kind }),
            Err(error) => Err(Stopped { error, words: store.data().log.last_words() }),
        }
    }

    /// Runs one call under fresh fuel and a fresh deadline.
    pub(crate) fn run<T>(
        &mut self,
        engine: &Engine,
        call: impl FnOnce(&Kind, &mut Store<State>) -> wasmtime::Result<T>,
    ) -> Result<T, Stopped> {
        self.store.data().log.renew();
        let result = refuel(&mut self.store, engine).and_then(|()| {
            let _running = engine.running();
            call(&self.kind, &mut self.store)
        });
        self.store.data().log.flush();
        result.map_err(|error| Stopped { error, words: self.store.data().log.last_words() })
    }

    /// Worth keeping for another call: a component that never frees would meet the memory limit in a
    /// call that is innocent.
    pub(crate) fn reusable(&self) -> bool {
        let state = self.store.data();
        state.memory <= state.limits.memory / 2
    }
}

fn refuel(store: &mut Store<State>, engine: &Engine) -> wasmtime::Result<()> {
    let (fuel, ticks) = (store.data().limits.fuel, Engine::deadline_ticks(&store.data().limits));
    if engine.metered {
        store.set_fuel(fuel)?;
    }
    store.set_epoch_deadline(ticks);
    Ok(())
}

/// A call that ended without an answer.
pub(crate) struct Stopped {
    /// A trap, a limit, or an answer that breaks the component ABI.
    pub(crate) error: wasmtime::Error,
    /// What the component said last, if it panicked.
    pub(crate) words: Option<String>,
}
