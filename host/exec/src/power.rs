//! Stop and start, each judged by what the guest does afterwards.

use crate::env::Pauses;
use crate::params;
use crate::run::{Flow, Queued, Run, Stop, failed};
use crate::write::{Reply, describe};
use proxops_model::Step;
use proxops_pve::{Class, GuestStatus};
use std::time::{Duration, Instant};

impl Run<'_> {
    async fn status(&self) -> Flow<GuestStatus> {
        let guest = self.guest()?;
        let status = self.env.client.guest_status(&guest.node, guest.guest_type, guest.vmid).await;
        status.map_err(|error| Stop::Failed(describe(&error)))
    }

    /// Looks until the guest has this state. HA only records the wish (fact U10): that takes as long as a
    /// guest may take; everything else must show at once.
    async fn becomes(&self, wanted: &str) -> Flow<bool> {
        let deadline = Instant::now() + self.env.timing.stop + Duration::from_secs(30);
        let mut pauses = Pauses::new(&self.env.timing);
        let mut looks = 0;
        loop {
            let status = self.status().await?;
            if status.status == wanted {
                return Ok(true);
            }
            looks += 1;
            let over =
                if status.ha_managed { Instant::now() > deadline } else { looks >= self.env.timing.looks };
            if over {
                return Ok(false);
            }
            pauses.wait().await;
        }
    }

    /// Before the first power request on a guest that nothing else has looked at: is it still the one that
    /// was planned? Answers whether the queue was replaced.
    async fn confirm(&mut self) -> Flow<bool> {
        if self.confirmed {
            return Ok(false);
        }
        let unchanged = match &self.digest {
            Some(planned) => self.config().await.is_ok_and(|config| config.digest.as_ref() == Some(planned)),
            None => false,
        };
        self.confirmed = true;
        if unchanged {
            return Ok(false);
        }
        let writes = self.queue.iter().any(|next| matches!(next.step, Step::Kind(_)));
        let found = self.replan().await?;
        if !found.present {
            return failed(format!(
                "{} is gone: it was deleted after the plan was made. Run again",
                self.what()
            ));
        }
        if writes {
            self.requeue(found.steps);
        }
        Ok(writes)
    }

    /// Waits for the task if there is one, then does the step once more: it looks before it asks.
    async fn power_unknown(&mut self, queued: &Queued, text: String) -> Flow {
        self.resolve(queued, true).await?;
        self.tries.resends += 1;
        if self.tries.resends > 2 {
            return failed(text);
        }
        self.queue.push_front(queued.clone());
        Ok(())
    }

    pub(crate) async fn start(&mut self, queued: &Queued) -> Flow {
        // one without a digest was made by a prerequisite in this very run
        if self.digest.is_some() && self.confirm().await? {
            return Ok(());
        }
        let before = self.status().await?;
        if before.status != "running" {
            match self.post(queued.seq, &["status", "start"], params::Form::new()).await? {
                Reply::Done => {}
                Reply::Unknown(text) => return self.power_unknown(queued, text).await,
                // Q48, L21: somebody was quicker
                Reply::Refused(refusal) if refusal.class == Class::PowerState => {}
                Reply::Refused(refusal)
                    if refusal.class == Class::Busy && refusal.by_task && self.busy_pause().await =>
                {
                    self.queue.push_front(queued.clone());
                    return Ok(());
                }
                Reply::Refused(refusal) => return Err(refusal.stop()),
            }
            if !self.becomes("running").await? {
                return failed(format!(
                    "{} was started and is not running; see its start task and console",
                    self.what()
                ));
            }
            // Q24: a start makes the seed image again
            self.seed_paid();
        }
        self.stopped_here = false;
        self.step_done(queued.seq);
        Ok(())
    }

    pub(crate) async fn stop(&mut self, queued: &Queued, hard: bool) -> Flow {
        if self.confirm().await? {
            return Ok(());
        }
        if self.status().await?.status == "stopped" {
            self.step_done(queued.seq);
            return Ok(());
        }
        let mut form = params::Form::new();
        params::push(&mut form, "timeout", self.env.timing.stop.as_secs().to_string());
        let why = match self.post(queued.seq, &["status", "shutdown"], form).await? {
            Reply::Done => "the shutdown ended and the guest still runs".to_owned(),
            Reply::Unknown(text) => return self.power_unknown(queued, text).await,
            Reply::Refused(refusal) => match refusal.class {
                Class::Busy if refusal.by_task && self.busy_pause().await => {
                    self.queue.push_front(queued.clone());
                    return Ok(());
                }
                Class::PowerState | Class::Server | Class::Busy => refusal.text,
                _ => return Err(refusal.stop()),
            },
        };
        if !self.becomes("stopped").await? {
            if !hard {
                return failed(format!(
                    "{} did not shut down within {} s and was left running ({why}); shut it down from inside or stop \
                     it by hand, then run again",
                    self.what(),
                    self.env.timing.stop.as_secs()
                ));
            }
            match self.post(queued.seq, &["status", "stop"], params::Form::new()).await? {
                Reply::Done => {}
                Reply::Unknown(text) => return self.power_unknown(queued, text).await,
                Reply::Refused(refusal) if refusal.class == Class::PowerState => {}
                Reply::Refused(refusal) => return Err(refusal.stop()),
            }
            if !self.becomes("stopped").await? {
                return failed(format!("{} was stopped hard and still runs; see its stop task", self.what()));
            }
        }
        self.stopped_here = true;
        self.step_done(queued.seq);
        Ok(())
    }
}
