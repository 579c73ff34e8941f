//! Drafting while others are still read: kinds are asked on threads of their own.

use crate::draft::{Draft, Trouble, draft};
use crate::schema::Fields;
use crate::{page, target};
use proxops_model::kind::{Context, GuestType, KindApi, KindSet, Live};
use proxops_plan::GuestRead;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinHandle;

/// A draft with its text.
pub(crate) type Outcome = Result<(Draft, String), Trouble>;

/// What came of a guest, and of what it was made.
pub(crate) struct Drew {
    pub name: String,
    pub kind: String,
    pub live: Live,
    pub outcome: Outcome,
}

/// By vmid.
pub(crate) type Drawn = BTreeMap<u32, Drew>;

/// Everything that a draft depends on but the object.
pub(crate) struct Drafter {
    kinds: Arc<dyn KindSet>,
    fields: BTreeMap<String, Fields>,
    /// By node: what an object there may refer to.
    contexts: BTreeMap<String, Context>,
    /// Names of guests by vmid.
    names: BTreeMap<u32, String>,
    types: BTreeMap<u32, GuestType>,
    secrets: bool,
}

impl Drafter {
    pub fn new(
        kinds: Arc<dyn KindSet>,
        contexts: BTreeMap<String, Context>,
        names: BTreeMap<u32, String>,
        types: BTreeMap<u32, GuestType>,
        secrets: bool,
    ) -> Self {
        let fields =
            kinds.all().iter().map(|k| (k.info().kind.clone(), Fields::of(&k.info().schema))).collect();
        Self { kinds, fields, contexts, names, types, secrets }
    }

    /// One object on a node.
    pub fn draft(&self, kind: &dyn KindApi, name: &str, live: &Live, node: &str) -> Outcome {
        let (context, fields) = (self.contexts.get(node), self.fields.get(&kind.info().kind));
        let (Some(context), Some(fields)) = (context, fields) else {
            return Err(Trouble::Refused(format!("node {node} is not part of the cluster")));
        };
        let draft = draft(kind, fields, name, live, context, self.secrets)?;
        let text = page::text(&draft, kind.info(), fields);
        Ok((draft, text))
    }

    /// Threads that draft what is handed on to them, until the sender is dropped.
    pub fn draw(self: &Arc<Self>) -> (Sender<GuestRead>, Vec<JoinHandle<Drawn>>) {
        let (hand_on, handed) = channel();
        let handed = Arc::new(Mutex::new(handed));
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let drawing = (0..threads).map(|_| {
            let (drafter, handed) = (Arc::clone(self), Arc::clone(&handed));
            tokio::task::spawn_blocking(move || drafter.work(&handed))
        });
        (hand_on, drawing.collect())
    }

    fn work(&self, handed: &Mutex<Receiver<GuestRead>>) -> Drawn {
        let mut drawn = Drawn::new();
        loop {
            let next = handed.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(read) = next else { return drawn };
            let (vmid, node) = (read.live.vmid, read.live.node.clone());
            let (Some(name), Some(guest_type)) = (self.names.get(&vmid), self.types.get(&vmid)) else {
                continue;
            };
            let kind = target::guest(&*self.kinds, *guest_type, read.live.template);
            let Some(kind) = kind else { continue };
            let live = Live::Guest(read.live);
            let outcome = self.draft(kind, name, &live, &node);
            let (name, kind) = (name.clone(), kind.info().kind.clone());
            drawn.insert(vmid, Drew { name, kind, live, outcome });
        }
    }
}
