//! Loading: which kinds there are, what each is, and its compiled code when it is wanted.

use crate::{
    cache::{Cache, What},
    engine::{Engine, Prepared},
    fault,
    files::{Bytes, Found, Sources, find},
    lift_steps,
    limits::Limits,
    session::Session,
    shape::{self, Shape},
    store::Instance,
};
use proxops_builtin::Builtin;
use proxops_model::kind::KindInfo;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};
use wasmtime::component::Component;

/// A failure to set up the engine that runs kinds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EngineError(String);

/// A file that can't be used as a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindProblem {
    /// The file.
    pub origin: String,
    /// The kind that it says it is, if it came that far.
    pub kind: Option<String>,
    /// Why, as a sentence that starts with "it".
    pub message: String,
}

impl std::fmt::Display for KindProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Some(kind) => write!(f, "{} (kind {kind}) is not used: {}", self.origin, self.message),
            None => write!(f, "{} is not used: {}", self.origin, self.message),
        }
    }
}

/// One line of `kinds list`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct KindListing {
    /// The manifest's `kind`; `None` if the component could not say it.
    pub kind: Option<String>,
    /// Folder of its manifests.
    pub root: Option<String>,
    /// The component's version.
    pub version: Option<String>,
    /// One line.
    pub summary: Option<String>,
    /// "built-in" or the file.
    pub origin: String,
    /// SHA-256 in hex; `None` if the file could not be read.
    pub digest: Option<String>,
    /// Bytes.
    pub size: Option<usize>,
    /// Interfaces that it imports.
    pub imports: Vec<String>,
    /// Why it is not used.
    pub error: Option<String>,
}

/// A readable component.
pub(crate) struct Entry {
    pub(crate) origin: String,
    /// Empty for a built-in kind, whose only import is the log.
    pub(crate) shape: Shape,
    bytes: Bytes,
    digest: [u8; 32],
    /// A built-in kind's machine code.
    code: Option<&'static [u8]>,
    /// Set once.
    prepared: OnceLock<Result<Prepared, String>>,
}

impl Entry {
    fn imports(&self) -> Vec<String> {
        if self.origin == BUILTIN {
            return shape::read(self.bytes.as_ref().as_ref()).unwrap_or_default().imports;
        }
        self.shape.imports.clone()
    }
}

/// A component and what is known of it.
pub(crate) struct Loaded {
    origin: String,
    entry: Option<Arc<Entry>>,
    info: Option<KindInfo>,
    error: Option<String>,
}

/// The kinds of a process. Cheap to clone.
#[derive(Clone)]
pub struct Kinds(Arc<Inner>);

pub(crate) struct Inner {
    /// For other people's kinds.
    strangers: Engine,
    /// For built-in kinds.
    trusted: Engine,
    limits: Limits,
    own_limits: BTreeMap<String, Limits>,
    cache: Option<Cache>,
    all: Vec<Loaded>,
    problems: Vec<KindProblem>,
}

impl Kinds {
    /// Finds all kinds and learns what each is. Code of a kind is compiled only if it is asked for or if
    /// no cache knows the kind's description. A file that can't be used is no error here: see
    /// [`Kinds::problems`].
    ///
    /// `cache_dir` is made if it does not exist; without one, or if it can't be used, every start
    /// compiles.
    ///
    /// # Errors
    /// If the engine can't be set up on this machine.
    pub fn load(sources: &Sources, limits: Limits, cache_dir: Option<&Path>) -> Result<Self, EngineError> {
        let widest = sources.limits.values().fold(limits.clone(), |all, own| all.or_more(own));
        let strangers = Engine::new(widest.clone(), true).map_err(EngineError)?;
        let trusted = Engine::new(widest, false).map_err(EngineError)?;
        let cache = cache_dir.and_then(|dir| Cache::open(dir, strangers.compatibility()));
        let own_limits = sources.limits.clone();
        let mut inner =
            Inner { strangers, trusted, limits, own_limits, cache, all: Vec::new(), problems: Vec::new() };
        let mut all: Vec<Loaded> = Vec::new();
        if sources.builtin {
            all.extend(proxops_builtin::BUILTIN.iter().map(built_in));
        }
        all.extend(inner.describe_all(find(sources, inner.strangers.limits.component_bytes)));
        refuse_wrong_pins(&mut all, &sources.pins);
        refuse_duplicates(&mut all, "kind", |info| &info.kind);
        refuse_duplicates(&mut all, "root", |info| &info.root);
        all.sort_by(|a, b| (kind_of(a), &a.origin).cmp(&(kind_of(b), &b.origin)));
        inner.problems = all
            .iter()
            .filter_map(|l| {
                let message = l.error.clone()?;
                let kind = l.info.as_ref().map(|i| i.kind.clone());
                Some(KindProblem { origin: l.origin.clone(), kind, message })
            })
            .collect();
        inner.all = all;
        Ok(Self(Arc::new(inner)))
    }

    /// What the usable kinds are, sorted by name.
    pub fn infos(&self) -> impl Iterator<Item = &KindInfo> {
        self.0.all.iter().filter(|l| l.error.is_none()).filter_map(|l| l.info.as_ref())
    }

    /// Files that can't be used, sorted by kind and file.
    pub fn problems(&self) -> &[KindProblem] {
        &self.0.problems
    }

    /// Compiles these kinds now, in parallel. A kind that fails says so at each of its calls.
    pub fn prepare<'a>(&self, kinds: impl IntoIterator<Item = &'a str>) {
        let wanted: std::collections::BTreeSet<&str> = kinds.into_iter().collect();
        let entries: Vec<&Arc<Entry>> = self
            .0
            .all
            .iter()
            .filter(|l| {
                l.error.is_none() && l.info.as_ref().is_some_and(|i| wanted.contains(i.kind.as_str()))
            })
            .filter_map(|l| l.entry.as_ref())
            .collect();
        in_parallel(&entries, |entry| {
            self.0.prepared(entry).map(|_| ()).err();
        });
    }

    /// Asks a kind again what it is: in fresh instances, never from a cache or from the build.
    ///
    /// # Errors
    /// It is not loaded, it fails, or its answers differ.
    pub fn describe(&self, kind: &str) -> Result<KindInfo, String> {
        let mut usable = self.0.all.iter().filter(|l| l.error.is_none());
        let entry = usable.find(|l| kind_of(l) == Some(kind)).and_then(|l| l.entry.as_ref());
        self.0.ask(entry.ok_or("it is not loaded")?)
    }

    /// Everything that was found, usable or not.
    pub fn list(&self) -> Vec<KindListing> {
        let listing = |l: &Loaded| KindListing {
            kind: l.info.as_ref().map(|i| i.kind.clone()),
            root: l.info.as_ref().map(|i| i.root.clone()),
            version: l.info.as_ref().map(|i| i.version.clone()),
            summary: l.info.as_ref().map(|i| i.summary.clone()),
            origin: l.origin.clone(),
            digest: l.entry.as_ref().map(|e| hex::encode(e.digest)),
            size: l.entry.as_ref().map(|e| e.bytes.as_ref().as_ref().len()),
            imports: l.entry.as_ref().map(|e| e.imports()).unwrap_or_default(),
            error: l.error.clone(),
        };
        self.0.all.iter().map(listing).collect()
    }

    /// Fresh instances for one cluster and cycle: no state of a kind outlives a session.
    pub fn session(&self) -> Session {
        let mut kinds: BTreeMap<String, (KindInfo, Result<Arc<Entry>, (String, String)>)> = BTreeMap::new();
        for loaded in &self.0.all {
            let (Some(info), Some(entry)) = (&loaded.info, &loaded.entry) else { continue };
            let ready = match &loaded.error {
                None => Ok(Arc::clone(entry)),
                // its resources learn why, unless another file serves the kind
                Some(message) => Err((loaded.origin.clone(), message.clone())),
            };
            if ready.is_ok() || !kinds.contains_key(&info.kind) {
                kinds.insert(info.kind.clone(), (info.clone(), ready));
            }
        }
        Session::new(&self.0, kinds)
    }
}

/// Origin of the kinds inside the binary.
pub(crate) const BUILTIN: &str = "built-in";

fn kind_of(loaded: &Loaded) -> Option<&str> {
    loaded.info.as_ref().map(|i| i.kind.as_str())
}

impl Inner {
    /// What a kind may use.
    pub(crate) fn limits_of(&self, kind: &str) -> &Limits {
        self.own_limits.get(kind).unwrap_or(&self.limits)
    }

    pub(crate) fn engine(&self, entry: &Entry) -> &Engine {
        if entry.origin == BUILTIN { &self.trusted } else { &self.strangers }
    }

    fn describe_all(&self, found: Vec<Found>) -> Vec<Loaded> {
        let slots: Vec<(Found, OnceLock<Loaded>)> = found.into_iter().map(|f| (f, OnceLock::new())).collect();
        in_parallel(&slots, |(found, slot)| {
            slot.get_or_init(|| self.load_one(found));
        });
        slots.into_iter().filter_map(|(_, slot)| slot.into_inner()).collect()
    }

    fn load_one(&self, found: &Found) -> Loaded {
        let mut loaded = Loaded { origin: found.origin.clone(), entry: None, info: None, error: None };
        let bytes = match &found.bytes {
            Ok(bytes) => bytes,
            Err(error) => {
                loaded.error = Some(error.clone());
                return loaded;
            }
        };
        let raw = bytes.as_ref().as_ref();
        let (shape, error) = match shape::read(raw) {
            Ok(shape) => (shape, None),
            Err(error) => (Shape::default(), Some(error)),
        };
        loaded.error = error;
        let entry = Arc::new(Entry {
            origin: found.origin.clone(),
            shape,
            bytes: Arc::clone(bytes),
            digest: Sha256::digest(raw).into(),
            code: None,
            prepared: OnceLock::new(),
        });
        if loaded.error.is_none() {
            match self.describe(&entry) {
                Ok(info) => loaded.info = Some(info),
                Err(error) => loaded.error = Some(error),
            }
        }
        loaded.entry = Some(entry);
        loaded
    }

    /// What the kind is: from the cache, or by asking it.
    fn describe(&self, entry: &Entry) -> Result<KindInfo, String> {
        if let Some(info) = self.cached_info(entry) {
            return Ok(info);
        }
        let info = self.ask(entry)?;
        if let (Some(cache), Ok(json)) = (&self.cache, serde_json::to_vec(&info)) {
            cache.put(&entry.digest, What::Info, &json);
        }
        Ok(info)
    }

    /// The kind's own answer, which must be the same each time.
    fn ask(&self, entry: &Entry) -> Result<KindInfo, String> {
        let (engine, prepared) = (self.engine(entry), self.prepared(entry)?);
        let ask = |instance: &mut Instance| {
            let answer = instance
                .run(engine, |kind, store| kind.proxops_kind_api().call_describe(store))
                .map_err(|stopped| fault::explain(&stopped, &engine.limits))?;
            lift_steps::info(answer, &engine.limits).map_err(|violation| violation.to_string())
        };
        let fresh = || {
            Instance::new(engine, &engine.limits, prepared, &entry.origin)
                .map_err(|stopped| fault::explain(&stopped, &engine.limits))
        };
        let in_describe = |message: String| format!("it failed in describe: {message}");
        let mut instance = fresh().map_err(in_describe)?;
        let info = ask(&mut instance).map_err(in_describe)?;
        // twice in one instance, once in another: no state, no luck
        let again = ask(&mut instance).map_err(in_describe)?;
        let other = fresh().and_then(|mut instance| ask(&mut instance)).map_err(in_describe)?;
        if info != again || info != other {
            return Err("it describes itself differently from call to call".to_owned());
        }
        Ok(info)
    }

    fn cached_info(&self, entry: &Entry) -> Option<KindInfo> {
        let json = self.cache.as_ref()?.get(&entry.digest, What::Info)?;
        let info: KindInfo = serde_json::from_slice(&json).ok()?;
        // a newer host may ask for more than the one that wrote the entry
        crate::describe::check(&info).ok()?;
        Some(info)
    }

    /// The compiled kind; compiled, or read from the cache, by the first who asks.
    pub(crate) fn prepared<'a>(&self, entry: &'a Entry) -> Result<&'a Prepared, String> {
        entry.prepared.get_or_init(|| self.compile(entry)).as_ref().map_err(Clone::clone)
    }

    fn compile(&self, entry: &Entry) -> Result<Prepared, String> {
        let engine = self.engine(entry);
        if let Some(component) = built_in_code(engine, entry).or_else(|| self.cached_code(entry)) {
            return engine.prepare(&component, entry.shape.wants_wasi());
        }
        let started = std::time::Instant::now();
        let component = engine.compile(Arc::clone(&entry.bytes))?;
        tracing::debug!(origin = %entry.origin, ms = started.elapsed().as_millis(), "compiled a kind");
        let prepared = engine.prepare(&component, entry.shape.wants_wasi())?;
        if let (true, Some(cache), Ok(code)) = (engine.metered, &self.cache, component.serialize()) {
            cache.put(&entry.digest, What::Code, &code);
        }
        Ok(prepared)
    }

    #[allow(unsafe_code)]
    fn cached_code(&self, entry: &Entry) -> Option<Component> {
        let engine = self.engine(entry);
        let code = self.cache.as_ref().filter(|_| engine.metered)?.get(&entry.digest, What::Code)?;
        // SAFETY: `deserialize` wants bytes that `Component::serialize` made with a compatible engine,
        // unchanged. `Cache::get` returns only what `Cache::put` was given: it checks an HMAC under a key
        // that no other user of the machine can read, over the code, the digest of the component and the
        // engine's compatibility hash. `put` is called with `What::Code` in one place, `compile` above,
        // with the result of `serialize`. The bytes are in our memory; nothing can change them between
        // the check and this call. wasmtime itself checks version and settings once more.
        let component = unsafe { Component::deserialize(engine.wasmtime(), code) };
        component
            .inspect_err(|error| tracing::debug!(origin = %entry.origin, %error, "cached code is not used"))
            .ok()
    }
}

/// What the build knows of a built-in kind: nothing is read, asked or compiled at a start.
fn built_in(builtin: &'static Builtin) -> Loaded {
    let mut digest = [0; 32];
    let known = hex::decode_to_slice(builtin.sha256, &mut digest).map_err(|e| e.to_string());
    let info = known.and_then(|()| serde_json::from_str(builtin.info).map_err(|e| e.to_string()));
    let (info, error) = match info {
        Ok(info) => (Some(info), None),
        Err(error) => (None, Some(format!("its build is damaged: {error}"))),
    };
    let entry = Entry {
        origin: BUILTIN.to_owned(),
        shape: Shape::default(),
        bytes: Arc::new(builtin.bytes),
        digest,
        code: builtin.code,
        prepared: OnceLock::new(),
    };
    Loaded { origin: BUILTIN.to_owned(), entry: Some(Arc::new(entry)), info, error }
}

/// The code that the build made of a built-in kind.
#[allow(unsafe_code)]
fn built_in_code(engine: &Engine, entry: &Entry) -> Option<Component> {
    let code = entry.code?;
    // SAFETY: `deserialize` wants bytes that wasmtime's compiler made, unchanged. These are part of the
    // running binary, as its own machine code is: the build script wrote what `precompile_component`
    // returned. wasmtime checks version, settings and processor itself.
    let component = unsafe { Component::deserialize(engine.wasmtime(), code) };
    component
        .inspect_err(
            |error| tracing::warn!(%error, "the code of a built-in kind can't be used; it is compiled"),
        )
        .ok()
}

/// A file whose digest is not the pinned one is not used.
fn refuse_wrong_pins(all: &mut [Loaded], pins: &BTreeMap<String, String>) {
    for loaded in all.iter_mut().filter(|l| l.error.is_none() && l.origin != BUILTIN) {
        let Some(pin) = kind_of(loaded).and_then(|kind| pins.get(kind)) else { continue };
        let digest = loaded.entry.as_ref().map(|e| hex::encode(e.digest)).unwrap_or_default();
        if !pin.eq_ignore_ascii_case(&digest) {
            loaded.error = Some(format!(
                "its sha256 is {digest}, and proxops.yaml pins {pin}; put the pinned file there or change the pin"
            ));
        }
    }
}

/// Two components with one name: neither is used, unless one is built-in: that one stays.
fn refuse_duplicates(all: &mut [Loaded], what: &str, of: impl Fn(&KindInfo) -> &String) {
    let mut owners: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, loaded) in all.iter().enumerate().filter(|(_, l)| l.error.is_none()) {
        if let Some(info) = &loaded.info {
            owners.entry(of(info).clone()).or_default().push(index);
        }
    }
    for (value, indices) in owners.into_iter().filter(|(_, indices)| indices.len() > 1) {
        let origins: Vec<String> = indices.iter().filter_map(|i| Some(all.get(*i)?.origin.clone())).collect();
        for index in indices {
            let Some(loaded) = all.get_mut(index).filter(|l| l.origin != BUILTIN) else { continue };
            loaded.error = Some(format!(
                "the {what} \"{value}\" belongs to more than one component: {}; remove all but one",
                origins.join(", ")
            ));
        }
    }
}

/// Runs `work` over all items on as many threads as the machine has cores.
fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    // Never on the caller's thread: WASI blocks on a runtime of its own, which the caller may be inside of.
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(worker);
        }
    });
}
