//! After a request whose outcome is not known (facts T23, T24, R8): find its task, wait, look.

use crate::env::Pauses;
use crate::run::{Flow, Queued, Run, Stop, failed, is_creation};
use crate::write::describe;
use proxops_model::Step;
use proxops_model::kind::KindStep;
use proxops_pve::{Class, TaskQuery, Upid};
use std::time::Instant;

/// Whether the guest is there, on any node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Present,
    Absent,
}

/// Locks of a guest that is still being made (facts Q2, Q41, L18).
pub(crate) fn is_in_the_making(lock: &str) -> bool {
    matches!(lock, "create" | "clone")
}

/// Where the task of a step would be, what its id is, and of which types it is.
pub(crate) struct TaskHint {
    pub node: String,
    pub id: String,
    pub types: &'static [&'static str],
}

/// The hint of a step on a guest, or of a download (fact U8).
pub(crate) fn task_hint(step: &Step, guest: Option<(&str, u32)>) -> Option<TaskHint> {
    let types: &[&str] = match step {
        Step::CloneFrom { source_node, source_vmid, .. } => {
            return Some(TaskHint {
                node: source_node.clone(),
                id: source_vmid.to_string(),
                types: &["qmclone", "vzclone"],
            });
        }
        Step::Kind(KindStep::Download { node, filename, .. }) => {
            return Some(TaskHint { node: node.clone(), id: filename.clone(), types: &["download"] });
        }
        Step::Kind(KindStep::Create { .. } | KindStep::Restore { .. }) => {
            &["qmcreate", "qmrestore", "vzcreate", "vzrestore"]
        }
        Step::Kind(KindStep::Configure { .. }) => &["qmconfig"],
        Step::Kind(KindStep::Resize { .. }) => &["resize"],
        Step::Kind(KindStep::MarkTemplate) => &["qmtemplate", "vztemplate"],
        Step::Stop { .. } => &["qmshutdown", "qmstop", "vzshutdown", "vzstop", "hastop"],
        Step::Start => &["qmstart", "vzstart", "hastart"],
        Step::Destroy => &["qmdestroy", "vzdestroy"],
        Step::Kind(KindStep::RebuildCloudInit | KindStep::Clone { .. } | KindStep::Call { .. })
        | Step::Settle => {
            return None;
        }
    };
    let (node, vmid) = guest?;
    Some(TaskHint { node: node.to_owned(), id: vmid.to_string(), types })
}

impl Run<'_> {
    /// Waits until nothing of ours is under way for this guest any more, and says whether it is there.
    ///
    /// A guest that stays locked while no task runs was left behind by a worker that died (fact R8). A step that
    /// makes guests has failed then, since no later run gets on without a person; any other waits for the lock
    /// to go. Absence is believed only after several looks, or at once where PVE has answered.
    pub(crate) async fn resolve(&mut self, queued: &Queued, unanswered: bool) -> Flow<Presence> {
        self.open = true;
        self.tries.unknowns += 1;
        if self.tries.unknowns > 3 {
            return failed(format!(
                "what became of the requests for {} stays unknown after three looks; the next run looks again",
                self.what()
            ));
        }
        let deadline = Instant::now() + self.task_time();
        let mut pauses = Pauses::new(&self.env.timing);
        let (mut absent, mut idle) = (0, 0);
        loop {
            let running = self.running(&queued.step).await?;
            // a clone's task carries the source's id, and others may clone from it: the lock tells
            if !matches!(queued.step, Step::CloneFrom { .. }) {
                for upid in &running {
                    // its end does not matter: what is there afterwards does
                    self.watch(queued.seq, upid).await?;
                }
            }
            match self.look().await? {
                Some(Some(lock)) if is_in_the_making(&lock) => {
                    idle = if running.is_empty() { idle + 1 } else { 0 };
                    if idle > self.env.timing.looks {
                        self.open = false;
                        let text = self.orphaned(&lock);
                        return Err(if is_creation(&queued.step) {
                            Stop::Failed(text)
                        } else {
                            Stop::Deferred(text)
                        });
                    }
                    if Instant::now() > deadline {
                        return failed(format!("{} is still locked ({lock})", self.what()));
                    }
                }
                Some(_) => {
                    self.open = false;
                    return Ok(Presence::Present);
                }
                None => {
                    absent += 1;
                    if !unanswered || absent >= self.env.timing.looks {
                        self.open = false;
                        return Ok(Presence::Absent);
                    }
                }
            }
            pauses.wait().await;
        }
    }

    /// What to do about a guest whose making ended without an end.
    pub(crate) fn orphaned(&self, lock: &str) -> String {
        let Some(guest) = &self.guest else { return format!("it is locked ({lock})") };
        let (tool, vmid, node) = (guest.guest_type.tool(), guest.vmid, &guest.node);
        format!(
            "{guest} is locked ({lock}) and no task works on it: what held the lock died, maybe half way. Look at its \
             disks in PVE. If none is missing, `{tool} unlock {vmid}` on {node}, and the next run goes on from there; \
             else `{tool} unlock {vmid}` and `{tool} destroy {vmid}`, and the next run makes it anew"
        )
    }

    /// Running tasks that may be the step's.
    pub(crate) async fn running(&self, step: &Step) -> Flow<Vec<Upid>> {
        self.tasks(step, true).await
    }

    /// Tasks that may be the step's, running ones or all.
    pub(crate) async fn tasks(&self, step: &Step, running: bool) -> Flow<Vec<Upid>> {
        let guest = self.guest.as_ref().map(|guest| (guest.node.as_str(), guest.vmid));
        let Some(hint) = task_hint(step, guest) else { return Ok(Vec::new()) };
        let query = TaskQuery { vmid: hint.id.parse().ok(), running, ..TaskQuery::default() };
        let rows = self.env.client.node_tasks(&hint.node, &query).await;
        let rows = rows.map_err(|error| Stop::Failed(describe(&error)))?;
        Ok(rows
            .into_iter()
            .filter(|row| row.id == hint.id && hint.types.contains(&row.task_type.as_str()))
            .filter_map(|row| Upid::parse(&row.upid).ok())
            .collect())
    }

    /// The guest's lock if it is there: on its node, or anywhere in the cluster.
    async fn look(&self) -> Flow<Option<Option<String>>> {
        let guest = self.guest()?;
        match self.env.client.guest_config(&guest.node, guest.guest_type, guest.vmid).await {
            Ok(config) => return Ok(Some(config.lock)),
            Err(error) if error.class == Class::NotFound => {}
            Err(error) => return failed(describe(&error)),
        }
        match self.env.client.locate(guest.vmid).await {
            Ok(place) => Ok(place.map(|_| None)),
            Err(error) => failed(describe(&error)),
        }
    }

    /// Who has the vmid instead of the guest that was meant.
    pub(crate) async fn holder(&self) -> String {
        let Some(guest) = &self.guest else {
            return format!("{} is not the one that the plan means; nothing more is written", self.what());
        };
        let there = match self.env.client.locate(guest.vmid).await {
            Ok(Some((node, guest_type))) => {
                let config = self.env.client.guest_config(&node, guest_type, guest.vmid).await;
                let name = config.ok().and_then(|config| config.name);
                let name = name.map_or_else(|| "no name".to_owned(), |name| format!("name '{name}'"));
                format!("{} {} with {name} on {node}", guest_type.noun(), guest.vmid)
            }
            _ => "another guest".to_owned(),
        };
        format!(
            "vmid {} is held by {there}, which is not the guest that the plan means; nothing was written to it. Give \
             the manifest another vmid, or rename or remove that guest",
            guest.vmid
        )
    }
}
