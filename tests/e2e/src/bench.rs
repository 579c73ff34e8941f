//! A repository, a simulator, and the binary between them.

use crate::{Run, binary};
use proxops_sim::{LoggedRequest, Sim, SimHandle, SimOptions, Tls, World, seed};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{MutexGuard, OnceLock};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Name of the cluster of every bench.
pub const CLUSTER: &str = "lab";

/// One repository with one cluster.
#[derive(Debug)]
pub struct Bench {
    folder: TempDir,
    sim: Option<SimHandle>,
    /// Environment of the binary; nothing else is in it.
    pub env: BTreeMap<String, String>,
    url: String,
    /// Further lines below the cluster's name in its config.yaml, indented by nothing.
    config: Vec<String>,
    listed: Vec<String>,
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
    })
}

/// Compiled kinds, which all benches share and the next test run too: compiling takes seconds, and is not what they
/// test.
fn warm_cache() -> &'static Path {
    static CACHE: OnceLock<PathBuf> = OnceLock::new();
    CACHE.get_or_init(|| {
        let cache = crate::build::target_dir().join("tmp/e2e-kinds");
        fs::create_dir_all(&cache).unwrap();
        let mut bench = Bench::empty("https://192.0.2.1:8006", &cache);
        for info in crate::builtin_kinds() {
            let example = info.examples.first().expect("an example");
            bench.manifest(&format!("{}/{CLUSTER}/x.yaml", info.root), example);
        }
        // The examples refer to what is not here; that they are compiled is enough.
        bench.run(&["validate"]);
        cache
    })
}

impl Bench {
    fn empty(url: &str, cache: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Self {
            folder,
            sim: None,
            env: BTreeMap::new(),
            url: url.to_owned(),
            config: Vec::new(),
            listed: Vec::new(),
        };
        fs::create_dir_all(bench.data_dir()).unwrap();
        std::os::unix::fs::symlink(cache, bench.data_dir().join("cache")).unwrap();
        fs::create_dir_all(bench.repo()).unwrap();
        let git = Command::new("git").args(["init", "--quiet"]).current_dir(bench.repo()).status().unwrap();
        assert!(git.success());
        bench.configure(&[]);
        bench.list();
        bench
    }

    fn warm(url: &str) -> Self {
        Self::empty(url, warm_cache())
    }

    /// Nothing answers at this address; no credentials.
    pub fn offline(url: &str) -> Self {
        Self::warm(url)
    }

    /// The world over plain HTTP, and the reconciler's token.
    pub fn new(world: World) -> Self {
        Self::start(world, SimOptions::default())
    }

    /// The world over TLS with a CA of its own, and the reconciler's token.
    pub fn tls(world: World) -> Self {
        let mut bench = Self::start(world, SimOptions { tls: Some(Tls::default()), ..SimOptions::default() });
        let ca = bench.folder.path().join("ca.pem");
        fs::write(&ca, bench.sim().ca_pem().unwrap()).unwrap();
        bench.configure(&[&format!("ca-file: {}", ca.display())]);
        bench
    }

    fn start(world: World, options: SimOptions) -> Self {
        let sim = runtime().block_on(Sim::start(world, options)).unwrap();
        let mut bench = Self::warm(&sim.url());
        bench.sim = Some(sim);
        bench.set("PROXOPS_PVE_TOKEN_VALUE", &format!("{}={}", seed::TOKEN_ID, seed::TOKEN_SECRET));
        bench
    }

    /// root@pam with its password in place of the token.
    pub fn as_root(mut self) -> Self {
        self.env.clear();
        self.set("PROXOPS_PVE_USER", "root@pam");
        self.set("PROXOPS_PVE_PASSWORD", seed::ROOT_PASSWORD);
        self
    }

    /// Sets a variable of the binary's environment.
    pub fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.to_owned(), value.to_owned());
    }

    /// The repository.
    pub fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Writes a file of the repository.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let file = self.repo().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    /// Writes a manifest file and lists it in the composition.
    pub fn manifest(&mut self, path: &str, content: &str) {
        self.write(path, content);
        if !self.listed.iter().any(|p| p == path) {
            self.listed.push(path.to_owned());
        }
        self.list();
    }

    /// Writes one manifest file with a document for each of these.
    pub fn documents(&mut self, path: &str, documents: &[Value]) {
        let text: String = documents.iter().map(|d| format!("---\n{d:#}\n")).collect();
        self.manifest(path, &text);
    }

    /// Takes a manifest file off the composition.
    pub fn unlist(&mut self, path: &str) {
        self.listed.retain(|p| p != path);
        self.list();
    }

    /// Turns the order of the composition round.
    pub fn reverse_list(&mut self) {
        self.listed.reverse();
        self.list();
    }

    fn list(&self) {
        let lines: String = self.listed.iter().map(|p| format!("  - ../../{p}\n")).collect();
        let text =
            if lines.is_empty() { "resources: []\n".to_owned() } else { format!("resources:\n{lines}") };
        self.write(&format!("clusters/{CLUSTER}/resources.yaml"), text);
    }

    /// Adds lines to the cluster's configuration, such as `nodes: [pve01]`.
    pub fn configure(&mut self, lines: &[&str]) {
        self.config.extend(lines.iter().map(|l| (*l).to_owned()));
        let lines: String = self.config.iter().map(|line| format!("      {line}\n")).collect();
        let text = format!("pve:\n  clusters:\n    {CLUSTER}:\n      base-url: {}\n{lines}", self.url);
        self.write(&format!("clusters/{CLUSTER}/config.yaml"), text);
    }

    /// Points the cluster at another address.
    pub fn point_at(&mut self, url: &str) {
        self.url = url.to_owned();
        self.configure(&[]);
    }

    /// Where the simulator serves.
    pub fn url(&self) -> String {
        self.sim().url()
    }

    /// The simulator.
    pub fn sim(&self) -> &SimHandle {
        self.sim.as_ref().expect("a bench with a simulator")
    }

    /// The simulated cluster.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.sim().world()
    }

    /// Calls the simulated API as root@pam, as a person in PVE's own interface does.
    #[track_caller]
    pub fn meddle(&self, method: &str, path: &str, params: Value) -> Value {
        let mut world = self.world();
        let answer = world.call(&proxops_sim::Caller::root(), method, path, params);
        world.finish_tasks();
        answer.unwrap_or_else(|refused| panic!("{method} {path}: {refused:?}"))
    }

    /// Writes that reached the simulator since the last look.
    pub fn writes(&self) -> Vec<LoggedRequest> {
        let log = self.sim().write_log();
        self.sim().clear_log();
        log
    }

    /// The binary in the repository, ready to run.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(words)
            .arg("--data-dir")
            .arg(self.data_dir())
            .current_dir(self.repo())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("NO_COLOR", "1")
            .envs(&self.env)
            .stdin(std::process::Stdio::null());
        command
    }

    /// Runs the binary in the repository.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> Run {
        Run::of(self.command(words).output().unwrap())
    }

    /// `diff`, as JSON.
    #[track_caller]
    pub fn diff(&self) -> Run {
        self.run(&["diff", "-o", "json"])
    }

    /// `apply`, as JSON, deletes agreed to.
    #[track_caller]
    pub fn apply(&self) -> Run {
        self.run(&["apply", "-o", "json", "--yes"])
    }

    /// `validate`: each error as "code file:line:column".
    #[track_caller]
    pub fn errors(&self) -> Vec<String> {
        let run = self.run(&["validate", "-o", "json"]);
        let document = run.json();
        let list = document["diagnostics"].as_array().expect("diagnostics");
        let found: Vec<String> = list
            .iter()
            .filter(|d| d["severity"] == "error")
            .map(|d| {
                let text = |key: &str| d[key].as_str().unwrap_or("?").to_owned();
                format!("{} {}:{}:{}", text("code"), text("file"), d["line"], d["column"])
            })
            .collect();
        assert_eq!(run.code, i32::from(!found.is_empty()), "{run}");
        found
    }

    /// `diff` must find nothing at all.
    #[track_caller]
    pub fn converged(&self) {
        let run = self.run(&["diff", "-o", "json", "--exit-code"]);
        assert_eq!(run.code, 0, "not converged: {run}");
        assert!(run.list("actions").is_empty(), "{run}");
    }
}
