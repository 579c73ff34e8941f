//! A cluster in the simulator, a small planner, and plans to run.

use futures::FutureExt;
use futures::future::BoxFuture;
use proxops_exec::{
    Cancel, ExecEnv, Journal, Limits, NoProgress, Replanned, Replanner, SecretSource, Timing, execute,
};
use proxops_model::kind::{GuestType, KindStep, LiveValue, Param, ParamValue};
use proxops_model::plan::Subject;
use proxops_model::{Action, Change, ClusterPlan, Ended, Outcome, ResourceId, Step, Verb};
use proxops_pve::{Client, ClientConfig, Credential};
use proxops_secrets::Secret;
use proxops_sim::{FaultAnswer, RequestFault, Sim, SimHandle, SimOptions, World, seed};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

pub const PASSWORD: &str = "Rabbit-7-moon";

/// Short pauses; nothing here asserts on time.
pub fn timing() -> Timing {
    Timing {
        task: Duration::from_secs(20),
        stop: Duration::from_secs(1),
        shutdown: Duration::from_secs(20),
        poll: Duration::from_millis(2),
        poll_max: Duration::from_millis(10),
        looks: 4,
    }
}

pub struct Bench {
    pub sim: SimHandle,
    pub env: ExecEnv,
    pub client: Client,
    pub planner: Arc<Planner>,
    pub dir: TempDir,
}

pub async fn bench(world: World) -> Bench {
    let options = SimOptions { task_duration: Some(Duration::from_millis(20)), ..SimOptions::default() };
    let sim = Sim::start(world, options).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let client = client(&sim.url());
    let planner = Arc::new(Planner::new(client.clone()));
    let env = env(client.clone(), planner.clone(), dir.path());
    Bench { sim, env, client, planner, dir }
}

pub fn client(url: &str) -> Client {
    let token = format!("{}={}", seed::TOKEN_ID, seed::TOKEN_SECRET);
    Client::new(ClientConfig::new("lab", url, Credential::Token(Secret::new(token)))).unwrap()
}

pub fn env(client: Client, planner: Arc<Planner>, dir: &Path) -> ExecEnv {
    ExecEnv {
        cluster: "lab".into(),
        commit: Some("c0ffee".into()),
        actor: None,
        client: Arc::new(client),
        journal: Arc::new(Journal::open(dir).unwrap()),
        replanner: planner,
        secrets: Arc::new(Passwords),
        progress: Arc::new(NoProgress),
        limits: Limits::default(),
        timing: timing(),
        owner_tag: "proxops".into(),
        cancel: Cancel::new(),
    }
}

impl Bench {
    /// Runs actions as one plan and gives back how each ended.
    pub async fn run(&self, actions: Vec<Action>) -> Vec<Ended> {
        let mut plan = ClusterPlan::new("lab");
        plan.actions = actions;
        execute(&mut plan, &self.env).await;
        plan.actions.into_iter().map(|action| action.ended.unwrap()).collect()
    }

    pub async fn run_one(&self, action: Action) -> Ended {
        self.run(vec![action]).await.remove(0)
    }

    /// `METHOD path` of every write, with its status (0 = dropped).
    pub fn writes(&self) -> Vec<String> {
        let log = self.sim.write_log();
        log.iter().map(|sent| format!("{} {}", sent.method, sent.path)).collect()
    }

    /// A parameter of the n-th write.
    pub fn sent(&self, index: usize, key: &str) -> Option<String> {
        let log = self.sim.write_log();
        log.get(index)?.params.get(key).and_then(proxops_model::text::scalar)
    }

    pub fn config(&self, vmid: u32, key: &str) -> Option<String> {
        self.sim.world().guests.get(&vmid)?.config.get(key).cloned()
    }

    pub async fn digest(&self, vmid: u32) -> Option<String> {
        self.client.guest_config("pve01", GuestType::Qemu, vmid).await.unwrap().digest
    }

    pub fn fault(&self, method: &str, path: &str, answer: FaultAnswer) {
        self.sim.inject(RequestFault::once(method, path, answer));
    }
}

pub fn refuse(message: &str) -> FaultAnswer {
    FaultAnswer::Status { status: 500, message: message.into(), errors: BTreeMap::new(), effect: false }
}

struct Passwords;

impl SecretSource for Passwords {
    fn secret(&self, name: &str) -> Result<Secret, String> {
        match name {
            "cloud-init.passwords.ops" => Ok(Secret::new(PASSWORD)),
            _ => Err(format!("there is no secret '{name}'")),
        }
    }
}

/// What a guest should be: keys and values, a template or not. Compares texts, writes what differs.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub name: String,
    pub keys: Vec<(String, String)>,
    pub template: bool,
    /// Keys that must not be there; cleared only while the guest is a fresh clone.
    pub cleared_in_clones: Vec<String>,
}

/// The smallest planner that can disagree with the world.
pub struct Planner {
    client: Client,
    pub wanted: Mutex<BTreeMap<u32, Wanted>>,
    /// `fresh_clone_of` of every question.
    pub asked: Mutex<Vec<Option<ResourceId>>>,
}

impl Planner {
    pub fn new(client: Client) -> Self {
        Self { client, wanted: Mutex::default(), asked: Mutex::default() }
    }

    pub fn want(&self, vmid: u32, name: &str, keys: &[(&str, &str)]) {
        let keys = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self.wanted.lock().unwrap().insert(vmid, Wanted { name: name.into(), keys, ..Wanted::default() });
    }

    pub fn edit(&self, vmid: u32, edit: impl FnOnce(&mut Wanted)) {
        edit(self.wanted.lock().unwrap().get_mut(&vmid).unwrap());
    }

    async fn look(&self, action: &Action, fresh: Option<ResourceId>) -> Result<Replanned, String> {
        self.asked.lock().unwrap().push(fresh.clone());
        let vmid = action.vmid.ok_or("no vmid")?;
        let wanted = self.wanted.lock().unwrap().get(&vmid).cloned().unwrap_or_default();
        let inventory = self.client.inventory().await.map_err(|error| error.to_string())?;
        let Some(row) = inventory.guests.iter().find(|row| row.vmid == vmid) else {
            return Ok(Replanned::default());
        };
        let config = self.client.guest_config(&row.node, row.guest_type, vmid).await;
        let config = config.map_err(|error| error.to_string())?;
        let mut found = Replanned {
            present: true,
            matches: config.name.as_deref() == Some(&wanted.name),
            digest: config.digest.clone(),
            node: Some(row.node.clone()),
            lock: config.lock.clone(),
            ..Replanned::default()
        };
        let mut set = Vec::new();
        for (key, value) in &wanted.keys {
            let live = match config.values.get(key) {
                Some(LiveValue::Text(text)) => Some(text.clone()),
                _ => None,
            };
            if live.as_ref() != Some(value) {
                found.changes.push(change(key, live.as_deref(), Some(value)));
                set.push(text(key, value));
            }
        }
        let unset: Vec<String> = match fresh {
            Some(_) => wanted
                .cleared_in_clones
                .iter()
                .filter(|key| config.values.contains_key(*key) || config.secrets_present.contains(*key))
                .cloned()
                .collect(),
            None => Vec::new(),
        };
        found.changes.extend(unset.iter().map(|key| change(key, Some("inherited"), None)));
        let cloud_init = set.iter().any(|param| param.key.starts_with("ci"));
        if !set.is_empty() || !unset.is_empty() {
            found.steps.push(Step::Kind(KindStep::Configure { set, unset, revert: Vec::new() }));
        }
        if cloud_init {
            found.steps.push(Step::Kind(KindStep::RebuildCloudInit));
        }
        if wanted.template && !config.template {
            found.changes.push(change("template", None, Some("1")));
            found.steps.push(Step::Kind(KindStep::MarkTemplate));
        }
        Ok(found)
    }
}

impl Replanner for Planner {
    fn replan<'a>(
        &'a self,
        action: &'a Action,
        fresh_clone_of: Option<&'a ResourceId>,
    ) -> BoxFuture<'a, Result<Replanned, String>> {
        self.look(action, fresh_clone_of.cloned()).boxed()
    }
}

fn change(key: &str, from: Option<&str>, to: Option<&str>) -> Change {
    Change {
        field: format!("/spec/{key}"),
        key: key.into(),
        from: from.map(str::to_owned),
        to: to.map(str::to_owned),
        sensitive: false,
    }
}

pub fn text(key: &str, value: &str) -> Param {
    Param { key: key.into(), value: ParamValue::Text(value.into()), at: None }
}

pub fn params(pairs: &[(&str, &str)]) -> Vec<Param> {
    pairs.iter().map(|(key, value)| text(key, value)).collect()
}

pub fn configure(pairs: &[(&str, &str)]) -> Step {
    Step::Kind(KindStep::Configure { set: params(pairs), unset: Vec::new(), revert: Vec::new() })
}

/// An action on VM `vmid` on pve01.
pub fn action(verb: Verb, vmid: u32, name: &str, steps: Vec<Step>) -> Action {
    Action {
        id: format!("{verb}:VM/{name}"),
        verb,
        kind: "VM".into(),
        name: name.into(),
        node: Some("pve01".into()),
        vmid: Some(vmid),
        level: 0,
        after: Vec::new(),
        disruptive: false,
        reason: "test".into(),
        changes: Vec::new(),
        subject: Some(Subject::Guest { guest_type: "qemu".into() }),
        steps,
        digest: None,
        ended: None,
    }
}

pub fn create(vmid: u32, name: &str) -> Action {
    let params = params(&[
        ("name", name),
        ("memory", "1024"),
        ("cores", "2"),
        ("scsi0", "local-lvm:8"),
        ("tags", "proxops"),
    ]);
    action(Verb::Create, vmid, name, vec![Step::Kind(KindStep::Create { params }), Step::Settle])
}

pub fn ok(ended: &Ended) {
    assert_eq!((ended.result, &ended.error), (Outcome::Ok, &None));
}

/// The error of an action that ended so.
pub fn error(ended: &Ended, result: Outcome) -> String {
    assert_eq!(ended.result, result, "{:?}", ended.error);
    ended.error.clone().unwrap()
}
