//! What an execution needs from outside: the wiring hands it in.

use crate::{Journal, Wire};
use futures::future::BoxFuture;
use proxops_model::kind::{Method, Pairs};
use proxops_model::{Action, Change, Ended, ResourceId, Step};
use proxops_secrets::Secret;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Everything that [`crate::execute`] needs for one cluster.
#[derive(Clone)]
pub struct ExecEnv {
    /// The cluster's name.
    pub cluster: String,
    /// Commit of the tree that was planned, for the audit trail.
    pub commit: Option<String>,
    /// Who asked for this run, for the audit trail.
    pub actor: Option<String>,
    /// The cluster's PVE client.
    pub client: Arc<dyn Wire>,
    /// The operation journal of the data directory.
    pub journal: Arc<Journal>,
    /// Reads and plans anew where the world changed.
    pub replanner: Arc<dyn Replanner>,
    /// Looks secrets up when they are sent.
    pub secrets: Arc<dyn SecretSource>,
    /// Told about each action.
    pub progress: Arc<dyn Progress>,
    /// How much may run at once.
    pub limits: Limits,
    /// How long to wait for what.
    pub timing: Timing,
    /// The tag that a guest must carry to be deleted.
    pub owner_tag: String,
    /// Asks to stop.
    pub cancel: Cancel,
}

/// How many actions run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// In the whole cluster; 1 = strictly one after the other, in plan order.
    pub cluster: usize,
    /// On one node.
    pub node: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { cluster: 8, node: 4 }
    }
}

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// One task (`reconcile.task-timeout`).
    pub task: Duration,
    /// A guest that shuts down.
    pub stop: Duration,
    /// Actions in flight after [`Cancel::cancel`].
    pub shutdown: Duration,
    /// First pause between two looks at the same state; doubles up to `poll_max`.
    pub poll: Duration,
    /// Longest pause between two looks at the same state.
    pub poll_max: Duration,
    /// Looks at a state that should be there already before it counts as missing.
    pub looks: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            task: Duration::from_secs(30 * 60),
            stop: Duration::from_secs(120),
            shutdown: Duration::from_secs(120),
            poll: Duration::from_millis(250),
            poll_max: Duration::from_secs(3),
            looks: 5,
        }
    }
}

/// Pauses that double from `poll` to `poll_max`, each cut by up to a quarter at random so that many
/// actions do not ask at once.
pub(crate) struct Pauses {
    next: Duration,
    max: Duration,
}

impl Pauses {
    pub(crate) fn new(timing: &Timing) -> Self {
        Self { next: timing.poll, max: timing.poll_max }
    }

    pub(crate) async fn wait(&mut self) {
        let cut = 1.0 - rand::random::<f64>() / 4.0;
        tokio::time::sleep(self.next.mul_f64(cut)).await;
        self.next = (self.next * 2).min(self.max);
    }
}

/// Reads one resource anew and asks the planner what is left to do.
pub trait Replanner: Send + Sync {
    /// Reads the action's guest or object wherever it is now and plans it again. `fresh_clone_of` is set
    /// while the guest is a clone whose inherited identity may still be there. A read that fails is
    /// `Err` with the reason, never `present: false`.
    fn replan<'a>(
        &'a self,
        action: &'a Action,
        fresh_clone_of: Option<&'a ResourceId>,
    ) -> BoxFuture<'a, Result<Replanned, String>>;

    /// Verb, path and id parameter of an object kind's operation, checked against the grants.
    fn resolve_call(&self, action: &Action, operation: &str, vars: &Pairs) -> Result<CallTarget, String> {
        let _ = vars;
        Err(format!("operation '{operation}' of {} is not known here", action.resource()))
    }
}

/// What a fresh look says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replanned {
    /// It exists, on any node.
    pub present: bool,
    /// It is still the one that the action means: type, name and owner agree.
    pub matches: bool,
    /// Digest of the report that `steps` were planned on.
    pub digest: Option<String>,
    /// What is left to do; empty = converged (a value that PVE holds pending is). Holds `Stop` and `Start`
    /// where a restart is allowed and needed, and never a create or clone of what is present.
    pub steps: Vec<Step>,
    /// The fields that `steps` converge.
    pub changes: Vec<Change>,
    /// Why nothing more may be written, such as an anomaly of severity error.
    pub blocked: Option<String>,
    /// Where it is.
    pub node: Option<String>,
    /// Name of a guest's lock.
    pub lock: Option<String>,
}

/// One request to an object kind's API path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTarget {
    /// Verb.
    pub method: Method,
    /// Whole path, encoded, checked to lie below the kind's grant.
    pub path: String,
    /// Parameter and value of the id, where the path does not carry it.
    pub id: Option<(String, String)>,
    /// PVE takes a digest with this call.
    pub digest: bool,
}

/// Looks a secret up by the name that a parameter carries.
pub trait SecretSource: Send + Sync {
    /// The value, or why there is none.
    fn secret(&self, name: &str) -> Result<Secret, String>;
}

/// Is told what happens. Called from the executor: must not block.
pub trait Progress: Send + Sync {
    /// An action starts.
    fn started(&self, action: &Action) {
        let _ = action;
    }
    /// An action does its next step; `upid` once a task runs.
    fn step(&self, action: &Action, text: &str, upid: Option<&str>) {
        let _ = (action, text, upid);
    }
    /// An action ended, also one that never started.
    fn finished(&self, action: &Action, ended: &Ended) {
        let _ = (action, ended);
    }
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {}

/// Asks running executions to start nothing more. Clones share one switch.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl Cancel {
    /// Not cancelled.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Throws the switch, for good.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether it was thrown.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once it is thrown.
    pub async fn cancelled(&self) {
        // the sender lives in self, so this can't end early
        let _ = self.0.subscribe().wait_for(|thrown| *thrown).await;
    }
}
