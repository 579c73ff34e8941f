//! Answers the executor when it needs a fresh plan for one guest or object, or the path of a call.

use crate::{load, objects};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use proxops_exec::{CallTarget, Replanned, Replanner};
use proxops_model::kind::{KindSet as _, ObjectId, ObjectTarget, Pairs, Target};
use proxops_model::object::{self, Proof};
use proxops_model::plan::{Action, Subject};
use proxops_model::{ResourceId, Verb, text};
use proxops_plan::{Again, Index, ObjectRead, Options, Planner, World};
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
                (Some(Subject::Object { id }), _) => self.object(action, id).await,
                _ => Err(format!("{} can't be read again", action.resource())),
            }
        }
        .boxed()
    }

    fn resolve_call(&self, action: &Action, operation: &str, vars: &Pairs) -> Result<CallTarget, String> {
        let (target, id) = self.target(action)?;
        let write = target
            .writes
            .iter()
            .find(|w| w.name == operation)
            .ok_or_else(|| format!("kind {} declares no operation \"{operation}\"", action.kind))?;
        let path = object::path(write, id, vars)?;
        if !self.options.grants.allow(&action.kind, &path) {
            return Err(format!("kind {} was not granted {path}; nothing was sent", action.kind));
        }
        let (method, digest) = (write.method, write.digest);
        let id = write.id_param.clone().map(|param| (param, id.id.clone()));
        Ok(CallTarget { method, path, id, digest })
    }
}

fn replanned(again: Again, digest: Option<String>, node: Option<String>, lock: Option<String>) -> Replanned {
    Replanned {
        present: true,
        matches: again.matches,
        digest,
        steps: again.steps,
        changes: again.changes,
        blocked: again.blocked,
        node,
        lock,
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
        let (digest, lock) = (read.digest.clone(), read.live.lock.clone());
        let id = action.resource();
        if !self.index.resources.contains_key(&id) {
            // A delete: nothing is planned, only identity counts.
            let ours = text::has_tag(read.tags(), &self.options.owner_tag)
                && read.live.name.as_deref().is_none_or(|n| n == action.name);
            return Ok(Replanned { present: true, matches: ours, digest, node, ..Replanned::default() });
        }
        Arc::make_mut(&mut read.live).fresh_clone_of = fresh_clone_of.cloned();
        let again = self.ask(move |planner, world| planner.guest_again(&id, &fact, &read, world)).await?;
        Ok(replanned(again, digest, node, lock))
    }

    /// An object kind's target, and the object of an action.
    fn target<'a>(&'a self, action: &'a Action) -> Result<(&'a ObjectTarget, &'a ObjectId), String> {
        let kind = self.kinds.get(&action.kind).map(|kind| &kind.info().target);
        match (kind, &action.subject) {
            (Some(Target::Object(target)), Some(Subject::Object { id })) => Ok((target, id)),
            _ => Err(format!("{} is no object of a kind that is loaded", action.resource())),
        }
    }

    async fn object(&self, action: &Action, id: &ObjectId) -> Result<Replanned, String> {
        let (target, _) = self.target(action)?;
        let resource = action.resource();
        let grants = &self.options.grants;
        let found = objects::find(&self.client, grants, &resource, target, id).await?;
        let Some(read) = found else { return Ok(Replanned::default()) };
        let (digest, node) = (read.digest.clone(), action.node.clone());
        if action.verb == Verb::Delete {
            let ObjectRead { live, .. } = &read;
            let tag = &self.options.owner_tag;
            let matches = match object::proof(&target.ownership, &action.kind, tag, &live.row, &live.values) {
                Proof::Ours(name) => name.is_none_or(|name| name == action.name),
                _ => false,
            };
            return Ok(Replanned { present: true, matches, digest, node, ..Replanned::default() });
        }
        let again = self.ask(move |planner, world| planner.object_again(&resource, &read, world)).await?;
        Ok(replanned(again, digest, node, None))
    }

    /// A kind's call is CPU work with a deadline of its own.
    async fn ask(
        &self,
        question: impl FnOnce(&Planner<'_>, &World) -> Again + Send + 'static,
    ) -> Result<Again, String> {
        let (index, kinds, vault) = (Arc::clone(&self.index), Arc::clone(&self.kinds), self.vault.clone());
        let (options, world) = (self.options.clone(), Arc::clone(&self.world));
        tokio::task::spawn_blocking(move || {
            let planner = Planner { index: &index, kinds: &*kinds, secrets: &vault, options: &options };
            question(&planner, &world)
        })
        .await
        .map_err(|e| format!("planning again failed: {e}"))
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
