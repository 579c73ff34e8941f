//! Deleting: the guard before the first write, the call, the proof.

use crate::Journal;
use crate::env::Pauses;
use crate::guest::locked;
use crate::params;
use crate::run::{Flow, Guest, Queued, Run, failed};
use crate::write::{Reply, describe};
use proxops_model::kind::Method;
use proxops_model::text::has_tag;
use proxops_pve::{Class, GuestConfig};

impl Run<'_> {
    /// Reads the guest again before anything is written: id, name and tag must still agree, and
    /// protection, a lock, HA or replication leaves it running.
    pub(crate) async fn guard_delete(&mut self) -> Flow {
        let Some(guest) = self.guest.clone() else { return self.guard_object().await };
        let Some(config) = self.guard_config(&guest).await? else {
            self.queue.clear();
            return Ok(());
        };
        let client = &self.env.client;
        let status = client.guest_status(&guest.node, guest.guest_type, guest.vmid).await;
        let in_ha = match status {
            Ok(status) => status.ha_managed,
            Err(error) => return failed(describe(&error)),
        };
        if in_ha {
            return failed(format!(
                "{guest} is an HA resource and was left as it is: remove it from HA first (`ha-manager remove {}:{}`)",
                guest.guest_type.noun().to_lowercase(),
                guest.vmid
            ));
        }
        match client.replication().await {
            Ok(jobs) => {
                if let Some(job) = jobs.iter().find(|job| job.guest == Some(guest.vmid)) {
                    return failed(format!(
                        "{guest} is replicated to {} by job {} and was left as it is: remove the job first (`pvesr \
                         delete {}`)",
                        job.target, job.id, job.id
                    ));
                }
            }
            Err(error) => {
                return failed(format!(
                    "whether {guest} is replicated can't be read, so it was left as it is: {}",
                    describe(&error)
                ));
            }
        }
        self.digest = config.digest;
        self.confirmed = true;
        Ok(())
    }

    /// The part that is asked again right before the call. `None` = gone already.
    async fn guard_config(&self, guest: &Guest) -> Flow<Option<GuestConfig>> {
        let client = &self.env.client;
        let config = match client.guest_config(&guest.node, guest.guest_type, guest.vmid).await {
            Ok(config) => config,
            Err(error) if error.class == Class::NotFound => {
                return match client.locate(guest.vmid).await {
                    Ok(None) => Ok(None),
                    Ok(Some((node, _))) => failed(format!(
                        "{guest} is on {node} now and was left as it is; the next run plans it there"
                    )),
                    Err(error) => failed(describe(&error)),
                };
            }
            Err(error) => return failed(describe(&error)),
        };
        if let Some(lock) = &config.lock {
            return Err(locked(guest, lock));
        }
        if config.protection {
            return failed(format!(
                "{guest} is protected and was left as it is: switch protection off first if it is really to go"
            ));
        }
        if !self.is_named_so(guest, config.name.as_deref()) {
            return failed(format!(
                "{guest} is now called '{}', not '{}': it was left as it is; the next run plans again",
                config.name.unwrap_or_default(),
                self.action.name
            ));
        }
        if !has_tag(&config.tags, &self.env.owner_tag) {
            return failed(format!(
                "{guest} does not carry the tag '{}' any more: it is not ours and was left as it is",
                self.env.owner_tag
            ));
        }
        Ok(Some(config))
    }

    /// A guest without a name goes by one that holds its vmid.
    fn is_named_so(&self, guest: &Guest, name: Option<&str>) -> bool {
        match name {
            Some(name) => name == self.action.name,
            None => self.action.name.is_empty() || self.action.name.contains(&guest.vmid.to_string()),
        }
    }

    /// Any other object: the planner holds the proof of ownership.
    async fn guard_object(&mut self) -> Flow {
        if !self.replan().await?.present {
            self.queue.clear();
        }
        Ok(())
    }

    pub(crate) async fn destroy(&mut self, queued: &Queued) -> Flow {
        let guest = self.guest()?;
        if self.guard_config(&guest).await?.is_none() {
            return self.gone(queued);
        }
        let vmid = guest.vmid.to_string();
        // no purge and no destroy-unreferenced-disks: what else knows the guest is not ours to clear
        let reply = self
            .write(queued.seq, Method::Delete, &guest.segments(&vmid, &[]), params::Form::new(), None)
            .await?;
        match reply {
            Reply::Done => {}
            Reply::Unknown(text) => {
                self.resolve(queued, true).await?;
                if self.is_there(&guest).await? {
                    self.tries.resends += 1;
                    if self.tries.resends > 1 {
                        return failed(text);
                    }
                    self.queue.push_front(queued.clone());
                    return Ok(());
                }
            }
            Reply::Refused(refusal) => match refusal.class {
                Class::NotFound => {}
                Class::Busy if refusal.by_task && self.busy_pause().await => {
                    self.queue.push_front(queued.clone());
                    return Ok(());
                }
                _ => return Err(refusal.stop()),
            },
        }
        let mut pauses = Pauses::new(&self.env.timing);
        for look in 1.. {
            if !self.is_there(&guest).await? {
                break;
            }
            if look >= self.env.timing.looks {
                return failed(format!("PVE reported success, but {guest} is still there"));
            }
            pauses.wait().await;
        }
        self.gone(queued)
    }

    fn gone(&mut self, queued: &Queued) -> Flow {
        self.step_done(queued.seq);
        // nothing to bring back
        self.stopped_here = false;
        self.settle_debt(Journal::settle_all);
        Ok(())
    }

    async fn is_there(&self, guest: &Guest) -> Flow<bool> {
        match self.env.client.guest_config(&guest.node, guest.guest_type, guest.vmid).await {
            Ok(_) => Ok(true),
            Err(error) if error.class == Class::NotFound => Ok(false),
            Err(error) => failed(describe(&error)),
        }
    }
}
