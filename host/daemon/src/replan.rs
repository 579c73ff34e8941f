//! Answers the executor when it needs a fresh plan for one guest.

use crate::load;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use proxops_exec::{Replanned, Replanner};
use proxops_model::plan::{Action, Subject};
use proxops_model::{ResourceId, text};
use proxops_plan::{Index, Options, Planner, World};
use proxops_pve::Client;
use std::sync::Arc;

/// Everything that a plan of this cluster was made of.
pub struct ClusterReplanner {
    pub client: Client,
    pub index: Arc<Index>,
    pub kinds: Arc<proxops_kinds::Session>,
    pub vault: crate::Vault,
    pub options: Options,
    /// As loaded; guests in it may be stale, nodes and storages are used.
    pub world: Arc<World>,
}

impl Replanner for ClusterReplanner {
    fn replan<'a>(
        &'a self,
        action: &'a Action,
        fresh_clone_of: Option<&'a ResourceId>,
    ) -> BoxFuture<'a, Result<Replanned, String>> {
        async move {
            match (&action.subject, action.vmid) {
                (Some(Subject::Guest { .. }), Some(vmid)) => self.guest(action, vmid, fresh_clone_of).await,
                (Some(Subject::Artifact { content }), _) => self.artifact(action, content).await,
                _ => Err(format!("{} can't be read again", action.resource())),
            }
        }
        .boxed()
    }
}

impl ClusterReplanner {
    async fn guest(
        &self,
        action: &Action,
        vmid: u32,
        fresh_clone_of: Option<&ResourceId>,
    ) -> Result<Replanned, String> {
        let found = load::find_guest(&self.client, vmid).await.map_err(|e| e.to_string())?;
        let Some((fact, mut read)) = found else { return Ok(Replanned::default()) };
        let node = Some(fact.node.clone());
        let digest = read.digest.clone();
        let id = action.resource();
        if !self.index.resources.contains_key(&id) {
            // A delete: nothing is planned, only identity counts.
            let ours = text::has_tag(read.tags(), &self.options.owner_tag)
                && read.live.name.as_deref().is_none_or(|n| n == action.name);
            return Ok(Replanned { present: true, matches: ours, digest, node, ..Replanned::default() });
        }
        read.live.fresh_clone_of = fresh_clone_of.cloned();
        let (index, kinds, vault) = (Arc::clone(&self.index), Arc::clone(&self.kinds), self.vault.clone());
        let (options, world) = (self.options.clone(), Arc::clone(&self.world));
        // A kind's call is CPU work with a deadline of its own.
        let again = tokio::task::spawn_blocking(move || {
            let planner = Planner { index: &index, kinds: &*kinds, secrets: &vault, options: &options };
            planner.guest_again(&id, &fact, &read, &world)
        })
        .await
        .map_err(|e| format!("planning again failed: {e}"))?;
        Ok(Replanned {
            present: true,
            matches: again.matches,
            digest,
            steps: again.steps,
            changes: again.changes,
            blocked: again.blocked,
            node,
        })
    }

    /// A download is done when its copies are listed.
    async fn artifact(&self, action: &Action, content: &str) -> Result<Replanned, String> {
        let mut left = Vec::new();
        for step in &action.steps {
            let proxops_model::plan::Step::Kind(proxops_model::kind::KindStep::Download {
                node,
                storage,
                filename,
                ..
            }) = step
            else {
                continue;
            };
            let volumes =
                self.client.storage_content(node, storage, content).await.map_err(|e| e.to_string())?;
            let volid = format!("{storage}:{content}/{filename}");
            if !volumes.iter().any(|v| v.volid == volid) {
                left.push(step.clone());
            }
        }
        Ok(Replanned {
            present: left.is_empty(),
            matches: true,
            steps: left,
            node: action.node.clone(),
            ..Replanned::default()
        })
    }
}
