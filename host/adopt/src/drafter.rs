//! Drafting while others are still read: kinds are asked on threads of their own.

use crate::draft::{Draft, Trouble, draft};
use crate::schema::Fields;
use crate::{page, target};
use proxops_model::kind::{Context, GuestType, KindApi, KindSet, Live};
use proxops_plan::GuestRead;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::{JoinError, JoinHandle};

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

/// Fields of all kinds, by kind.
pub(crate) type AllFields = BTreeMap<String, Fields>;

/// What the schemas of these kinds say.
pub(crate) fn all_fields(kinds: &dyn KindSet) -> AllFields {
    kinds.all().iter().map(|k| (k.info().kind.clone(), Fields::of(&k.info().schema))).collect()
}

/// Everything that a draft depends on but the object.
pub(crate) struct Drafter {
    pub kinds: Arc<dyn KindSet>,
    pub fields: Arc<AllFields>,
    /// By node: what an object there may refer to.
    pub contexts: BTreeMap<String, Context>,
    /// Names of guests by vmid.
    pub names: BTreeMap<u32, String>,
    pub types: BTreeMap<u32, GuestType>,
    pub secrets: bool,
}

impl Drafter {
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

    /// Starts to draft what will be handed on, until the sender is dropped. One processor is left to those who read.
    pub fn draw(self: Arc<Self>) -> (Sender<GuestRead>, Drawing) {
        let (hand_on, handed) = channel();
        let mut drawing =
            Drawing { drafter: self, handed: Arc::new(Mutex::new(handed)), threads: Vec::new() };
        (1..processors().max(2)).for_each(|_| drawing.add_thread());
        (hand_on, drawing)
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

/// Threads that draft.
pub(crate) struct Drawing {
    drafter: Arc<Drafter>,
    handed: Arc<Mutex<Receiver<GuestRead>>>,
    threads: Vec<JoinHandle<Drawn>>,
}

impl Drawing {
    fn add_thread(&mut self) {
        let (drafter, handed) = (Arc::clone(&self.drafter), Arc::clone(&self.handed));
        self.threads.push(tokio::task::spawn_blocking(move || drafter.work(&handed)));
    }

    /// All that was handed on, drafted; nobody reads any more.
    pub async fn finish(mut self) -> Result<Drawn, JoinError> {
        if self.threads.len() < processors() {
            self.add_thread();
        }
        let mut drawn = Drawn::new();
        for thread in self.threads {
            drawn.extend(thread.await?);
        }
        Ok(drawn)
    }
}

pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
