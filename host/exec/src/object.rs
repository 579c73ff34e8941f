//! Requests of object kinds. Verb and path come from the wiring, which checked them against the grants.

use crate::params;
use crate::run::{Flow, Queued, Run, Stop, failed};
use crate::write::Reply;
use proxops_model::kind::{Pairs, Param};
use proxops_model::{Step, Verb};
use proxops_pve::Class;

impl Run<'_> {
    pub(crate) async fn call(
        &mut self,
        queued: &Queued,
        operation: &str,
        vars: &Pairs,
        set: &[Param],
        unset: &[String],
    ) -> Flow {
        let target = self.env.replanner.resolve_call(self.action, operation, vars).map_err(Stop::Failed)?;
        if !self.confirmed && self.action.verb == Verb::Update {
            // the plan may be old: nothing is written to what is not ours (any more)
            return self.replan_rest().await;
        }
        let mut form = self.form(set, &["digest"])?;
        if !unset.is_empty() {
            params::push(&mut form, "delete", unset.join(","));
        }
        if let Some((key, value)) = target.id
            && !params::has(&form, &key)
        {
            params::push(&mut form, &key, value);
        }
        if target.digest
            && let Some(digest) = &self.digest
        {
            params::push(&mut form, "digest", digest.clone());
        }
        self.unproven = true;
        let reply = self.write_at(queued.seq, target.method, &target.path, form, None).await?;
        let (text, again) = match reply {
            Reply::Done => return self.after_call(target.digest).await,
            Reply::Unknown(text) => {
                self.tries.unknowns += 1;
                (text, self.tries.unknowns <= 2)
            }
            Reply::Refused(refusal) => match refusal.class {
                Class::Conflict | Class::Taken => {
                    self.tries.conflicts += 1;
                    (refusal.text, self.tries.conflicts <= 2)
                }
                _ => return Err(refusal.stop()),
            },
        };
        if !again {
            return failed(text);
        }
        let found = self.replan().await?;
        self.open = false;
        match (self.action.verb == Verb::Delete, found.present) {
            (true, false) => self.queue.clear(),
            // the request did nothing: once more what was planned
            (true, true) | (false, false) => self.queue.push_front(queued.clone()),
            (false, true) => self.requeue(found.steps),
        }
        Ok(())
    }

    /// After a call that took a digest the old one is stale, and positions may have moved: what is left is
    /// planned anew. Each call must leave less to do, or two sides disagree.
    async fn after_call(&mut self, digest: bool) -> Flow {
        let kind_steps = |queue: &std::collections::VecDeque<Queued>| {
            queue.iter().filter(|queued| matches!(queued.step, Step::Kind(_))).count()
        };
        let left = kind_steps(&self.queue);
        if !digest || left == 0 {
            return Ok(());
        }
        let found = self.replan().await?;
        if !found.present {
            return failed(format!("{} is gone: somebody else deleted it. Run again", self.what()));
        }
        if found.steps.len() > left {
            self.tries.settles += 1;
            if self.tries.settles > 4 {
                return failed(self.not_as_wanted(&found.changes));
            }
        }
        self.requeue(found.steps);
        Ok(())
    }
}
