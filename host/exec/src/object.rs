//! Requests of object kinds. Verb and path come from the wiring, which checked them against the grants.

use crate::params;
use crate::run::{Flow, Queued, Run, Stop, failed};
use crate::write::Reply;
use proxops_model::Verb;
use proxops_model::kind::{Pairs, Param};
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
        let mut form = self.form(set, &[])?;
        if !unset.is_empty() {
            params::push(&mut form, "delete", unset.join(","));
        }
        if let Some((key, value)) = target.id
            && !params::has(&form, &key)
        {
            params::push(&mut form, &key, value);
        }
        self.unproven = true;
        let reply = self.write_at(queued.seq, target.method, &target.path, form, None).await?;
        let (text, again) = match reply {
            Reply::Done => return Ok(()),
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
}
