//! The kinds of one cluster and cycle, each with a few warm instances.

use crate::{
    check::{Checked, Violation},
    fault,
    kinds::{Entry, Inner},
    lift::{self, Lift},
    limits::Limits,
    lower, stats,
    steps::{self, Origin, Owner},
    store::{Instance, State, Stopped},
};
use proxops_model::kind::{
    Adopted, Context, Creation, DriftReport, KindApi, KindDiagnostic, KindFault, KindInfo, KindSet, KindStep,
    Live, Manifest, Refusal, Validated, Validation,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};
use wasmtime::Store;

/// Fresh instances of all kinds; see [`crate::Kinds::session`].
pub struct Session {
    handles: BTreeMap<String, Handle>,
}

/// The most that one call of a kind has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HighWater {
    /// Work in fuel, see [`crate::Limits::fuel`].
    pub fuel: u64,
    /// Wall clock.
    pub time: Duration,
}

impl Session {
    pub(crate) fn new(
        inner: &Arc<Inner>,
        kinds: BTreeMap<String, (KindInfo, Result<Arc<Entry>, (String, String)>)>,
    ) -> Self {
        let handles = kinds
            .into_iter()
            .map(|(name, (info, ready))| {
                let handle = Handle {
                    inner: Arc::clone(inner),
                    limits: inner.limits_of(&name).clone(),
                    spent: Mutex::default(),
                    info,
                    ready,
                    pool: Mutex::default(),
                    most: Mutex::default(),
                };
                (name, handle)
            })
            .collect();
        Self { handles }
    }

    /// What the heaviest call of a kind has used in this session.
    pub fn high_water(&self, kind: &str) -> HighWater {
        let most =
            self.handles.get(kind).map(|handle| *handle.most.lock().unwrap_or_else(PoisonError::into_inner));
        most.unwrap_or_default()
    }
}

impl KindSet for Session {
    fn get(&self, kind: &str) -> Option<&dyn KindApi> {
        self.handles.get(kind).map(|handle| handle as &dyn KindApi)
    }

    fn all(&self) -> Vec<&dyn KindApi> {
        self.handles.values().map(|handle| handle as &dyn KindApi).collect()
    }
}

/// Faults of one kind in one session.
#[derive(Default)]
struct Spent {
    time: Duration,
    /// Set once the kind has cost others its own time limit.
    over: Option<String>,
}

/// One kind within a session.
struct Handle {
    inner: Arc<Inner>,
    info: KindInfo,
    limits: Limits,
    /// What faults cost this session, and why the kind is asked no more.
    spent: Mutex<Spent>,
    /// The component, or its origin and why it is not used.
    ready: Result<Arc<Entry>, (String, String)>,
    /// Instances that wait for a call; as many as there were calls at a time.
    pool: Mutex<Vec<Instance>>,
    most: Mutex<HighWater>,
}

impl Handle {
    fn fault(&self, origin: &str, function: &str, message: impl Into<String>) -> KindFault {
        KindFault {
            kind: self.info.kind.clone(),
            origin: origin.to_owned(),
            function: function.to_owned(),
            message: message.into(),
        }
    }

    /// One call: in a warm instance or a new one, which goes back to the pool only if the answer is good.
    fn call<A, T>(
        &self,
        function: &str,
        call: impl FnOnce(&crate::bindings::Kind, &mut Store<State>) -> wasmtime::Result<A> + Send,
        accept: impl FnOnce(A) -> Checked<T> + Send,
    ) -> Result<T, KindFault>
    where
        T: Send,
    {
        let entry = match &self.ready {
            Ok(entry) => entry,
            Err((origin, message)) => return Err(self.fault(origin, function, message)),
        };
        let run = || self.call_instance(entry, function, call, accept);
        // WASI blocks on a runtime of its own, which must not happen on a thread of another one
        if entry.shape.wants_wasi() && tokio::runtime::Handle::try_current().is_ok() {
            return thread::scope(|scope| scope.spawn(run).join())
                .unwrap_or_else(|_| Err(self.fault(&entry.origin, function, "the host's WASI panicked")));
        }
        run()
    }

    fn call_instance<A, T>(
        &self,
        entry: &Entry,
        function: &str,
        call: impl FnOnce(&crate::bindings::Kind, &mut Store<State>) -> wasmtime::Result<A>,
        accept: impl FnOnce(A) -> Checked<T>,
    ) -> Result<T, KindFault> {
        let engine = self.inner.engine(entry);
        if let Some(why) = &self.spent.lock().unwrap_or_else(PoisonError::into_inner).over {
            let why = format!("it is not asked again in this cycle: {why}");
            return Err(self.fault(&entry.origin, function, why));
        }
        let explain = |stopped: Stopped, time: Duration| {
            let why = fault::explain(&stopped, &self.limits);
            let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
            spent.time += time;
            if fault::is_time(&stopped) || spent.time >= self.limits.deadline {
                spent.over.get_or_insert_with(|| format!("in {function} {why}"));
            }
            self.fault(&entry.origin, function, why)
        };
        let warm = self.pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut instance = match warm {
            Some(instance) => instance,
            None => {
                let prepared = self
                    .inner
                    .prepared(entry)
                    .map_err(|message| self.fault(&entry.origin, function, message))?;
                let started = Instant::now();
                Instance::new(engine, &self.limits, prepared, &self.info.kind)
                    .map_err(|stopped| explain(stopped, started.elapsed()))?
            }
        };
        let started = Instant::now();
        let answer = instance.run(engine, call);
        let time = started.elapsed();
        let fuel = self.limits.fuel.saturating_sub(instance.store.get_fuel().unwrap_or(self.limits.fuel));
        {
            let mut most = self.most.lock().unwrap_or_else(PoisonError::into_inner);
            *most = HighWater { fuel: most.fuel.max(fuel), time: most.time.max(time) };
        }
        let accepted = match answer {
            Ok(answer) => {
                accept(answer).map_err(|Violation(message)| self.fault(&entry.origin, function, message))
            }
            Err(stopped) => Err(explain(stopped, time)),
        };
        stats::count(&self.info.kind, function, accepted.is_err(), time);
        let accepted = accepted?;
        if instance.reusable() {
            self.pool.lock().unwrap_or_else(PoisonError::into_inner).push(instance);
        }
        Ok(accepted)
    }

    /// Judges steps; what `validate` says about the manifest is asked for only where it matters.
    fn check_steps(
        &self,
        steps: &[KindStep],
        origin: Origin,
        manifest: &Manifest,
        context: &Context,
    ) -> Result<(), KindFault> {
        if steps.is_empty() {
            return Ok(());
        }
        let validated: Option<Validated> = match steps::need_validated(steps) {
            true => self.validate(manifest)?.validated,
            false => None,
        };
        let function = match origin {
            Origin::Create => "create-params",
            Origin::Drift => "drift",
        };
        let owner = Owner { kind: &self.info.kind, name: &manifest.name, tag: &context.owner_tag };
        steps::check(steps, &self.info.target, origin, owner, validated.as_ref()).map_err(
            |Violation(message)| {
                let origin = self.ready.as_ref().map_or("", |entry| entry.origin.as_str());
                self.fault(origin, function, message)
            },
        )
    }
}

/// A kind's answer, or its diagnostics.
type Answer<T> = Result<T, Vec<KindDiagnostic>>;

fn settle<T>(answer: Result<Answer<T>, KindFault>) -> Result<T, Refusal> {
    answer.map_err(Refusal::Fault)?.map_err(Refusal::Diagnostics)
}

impl KindApi for Handle {
    fn info(&self) -> &KindInfo {
        &self.info
    }

    fn validate(&self, manifest: &Manifest) -> Result<Validation, KindFault> {
        let mut lift = Lift::new(manifest, &self.limits);
        self.call(
            "validate",
            |kind, store| lower::manifest(manifest, |m| kind.proxops_kind_api().call_validate(store, m)),
            |answer| lift.validation(answer, &self.info.target),
        )
    }

    fn create_params(&self, manifest: &Manifest, context: &Context) -> Result<Creation, Refusal> {
        let mut lift = Lift::new(manifest, &self.limits);
        let creation = settle(self.call(
            "create-params",
            |kind, store| {
                lower::manifest(manifest, |m| {
                    lower::context(context, |c| kind.proxops_kind_api().call_create_params(store, m, c))
                })
            },
            |answer| match answer {
                Ok(creation) => lift.creation(creation).map(Ok),
                Err(diagnostics) => lift.refusal(diagnostics).map(Err),
            },
        ))?;
        self.check_steps(&creation.steps, Origin::Create, manifest, context).map_err(Refusal::Fault)?;
        Ok(creation)
    }

    fn drift(&self, manifest: &Manifest, live: &Live, context: &Context) -> Result<DriftReport, Refusal> {
        let mut lift = Lift::new(manifest, &self.limits);
        let report = settle(self.call(
            "drift",
            |kind, store| {
                lower::manifest(manifest, |m| {
                    lower::live(live, |l| {
                        lower::context(context, |c| kind.proxops_kind_api().call_drift(store, m, l, c))
                    })
                })
            },
            |answer| match answer {
                Ok(report) => lift.report(report).map(Ok),
                Err(diagnostics) => lift.refusal(diagnostics).map(Err),
            },
        ))?;
        self.check_steps(&report.steps, Origin::Drift, manifest, context).map_err(Refusal::Fault)?;
        Ok(report)
    }

    fn adopt(&self, name: &str, live: &Live, context: &Context, secrets: bool) -> Result<Adopted, Refusal> {
        let limits = &self.limits;
        let options = crate::bindings::proxops::kind::types::AdoptOptions { secrets, ext: &[] };
        settle(self.call(
            "adopt",
            |kind, store| {
                lower::live(live, |l| {
                    lower::context(context, |c| {
                        kind.proxops_kind_api().call_adopt(store, name, l, c, options)
                    })
                })
            },
            |answer| match answer {
                Ok(adopted) => lift::adopted(adopted, name, limits).map(Ok),
                Err(diagnostics) => {
                    // there is no manifest yet: a pointer can only name fields of an empty one
                    let manifest =
                        Manifest { name: name.to_owned(), spec: "{}".to_owned(), ..Manifest::default() };
                    Lift::new(&manifest, limits).refusal(diagnostics).map(Err)
                }
            },
        ))
    }
}
