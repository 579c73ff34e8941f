//! Steps that make and configure guests.

use crate::env::Pauses;
use crate::params::{self, GUEST_RESERVED};
use crate::run::{Flow, Guest, Queued, Run, Stop, failed};
use crate::unknown::Presence;
use crate::write::{Refusal, Reply, describe};
use crate::{Journal, StepState};
use proxops_model::kind::{GuestType, KindStep, LiveValue, Method, Param, ParamValue};
use proxops_model::{ResourceId, Step, text};
use proxops_pve::{Class, GuestConfig};
use std::time::Instant;

impl Guest {
    /// Path segments of the guest itself, then `rest`.
    pub(crate) fn segments<'a>(&'a self, vmid: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
        let mut segments = vec!["nodes", self.node.as_str(), self.guest_type.as_str(), vmid];
        segments.extend_from_slice(rest);
        segments
    }
}

impl Run<'_> {
    /// POST to one of the guest's own paths.
    pub(crate) async fn post(&mut self, seq: u32, rest: &[&str], form: params::Form) -> Flow<Reply> {
        let guest = self.guest()?;
        let vmid = guest.vmid.to_string();
        self.write(seq, Method::Post, &guest.segments(&vmid, rest), form, None).await
    }

    /// The guest's configuration now.
    pub(crate) async fn config(&self) -> Flow<GuestConfig> {
        let guest = self.guest()?;
        let config = self.env.client.guest_config(&guest.node, guest.guest_type, guest.vmid).await;
        config.map_err(|error| Stop::Failed(describe(&error)))
    }

    // ---- create, restore, clone -----------------------------------------------------------------------

    pub(crate) async fn create(&mut self, queued: &Queued, params: &[Param], restore: bool) -> Flow {
        let guest = self.guest()?;
        let reserved: Vec<&str> =
            GUEST_RESERVED.iter().copied().filter(|key| !(restore && *key == "force")).collect();
        let mut form = self.form(params, &reserved)?;
        params::push(&mut form, "vmid", guest.vmid.to_string());
        if restore && guest.guest_type == GuestType::Lxc && !params::has(&form, "restore") {
            params::push(&mut form, "restore", "1");
        }
        let segments = ["nodes", &guest.node, guest.guest_type.as_str()];
        let debt = self.owe_growth(None);
        let debt = self.owe_making(debt);
        let reply = self.write(queued.seq, Method::Post, &segments, form, debt).await?;
        self.after_creation(queued, reply).await
    }

    pub(crate) async fn clone_guest(
        &mut self,
        queued: &Queued,
        (source_node, source_vmid, source): (&str, u32, &ResourceId),
        params: &[Param],
    ) -> Flow {
        let guest = self.guest()?;
        let mut form = self.form(params, GUEST_RESERVED)?;
        params::push(&mut form, "newid", guest.vmid.to_string());
        if !params::has(&form, "full") {
            params::push(&mut form, "full", "1");
        }
        if guest.node != source_node && !params::has(&form, "target") {
            params::push(&mut form, "target", guest.node.clone());
        }
        self.clone_debt_is_ours = self.fresh_clone_of.as_ref() != Some(source);
        self.fresh_clone_of = Some(source.clone());
        let debt = self.debt(Some(source.clone()), false);
        let debt = self.owe_making(debt);
        let vmid = source_vmid.to_string();
        let segments = ["nodes", source_node, guest.guest_type.as_str(), &vmid, "clone"];
        let reply = self.write(queued.seq, Method::Post, &segments, form, debt).await?;
        self.after_creation(queued, reply).await
    }

    /// Never a second create or clone while a guest is there; once more where it certainly is not.
    async fn after_creation(&mut self, queued: &Queued, reply: Reply) -> Flow {
        let unanswered = matches!(reply, Reply::Unknown(_));
        let mut said = None;
        let (text, again) = match reply {
            Reply::Done => {
                self.unproven = true;
                self.confirmed = true;
                self.digest = None;
                return Ok(());
            }
            Reply::Unknown(text) => {
                self.tries.resends += 1;
                (text, self.tries.resends <= 1)
            }
            Reply::Refused(refusal) => match refusal.class {
                Class::Busy if refusal.by_task => {
                    let again = self.busy_pause().await;
                    (refusal.text, again)
                }
                Class::Taken => {
                    // PVE answered, so the one that is there is not ours: it gets no clone's treatment
                    if self.tries.resends == 0 {
                        self.forget_debt();
                    }
                    (refusal.text, false)
                }
                // R8: a 500 never means "nothing happened"; a task that failed cleans up where it still can, and
                // without quorum it can't (facts Q2, Q41, C13)
                Class::Server => {
                    said = Some(refusal.text.clone());
                    (refusal.text, false)
                }
                ref class if refusal.by_task && !matches!(class, Class::Locked(_)) => {
                    said = Some(refusal.text.clone());
                    (refusal.text, false)
                }
                _ => {
                    self.forget_debt();
                    return Err(refusal.stop());
                }
            },
        };
        let found = self.resolve(queued, unanswered).await;
        let found = found.map_err(|stop| match stop {
            Stop::Failed(then) if said.is_some() => Stop::Failed(format!("{text}; {then}")),
            stop => stop,
        })?;
        match found {
            Presence::Present => {
                let found = self.replan().await?;
                if !found.present {
                    return failed(text);
                }
                self.unproven = true;
                self.warnings.extend(said);
                self.requeue(found.steps);
                self.step_done(queued.seq);
                Ok(())
            }
            Presence::Absent if again => {
                self.queue.push_front(queued.clone());
                Ok(())
            }
            Presence::Absent => {
                self.forget_debt();
                self.step_failed(queued.seq, &text);
                failed(text)
            }
        }
    }

    // ---- configuration ---------------------------------------------------------------------------------

    pub(crate) async fn configure(
        &mut self,
        queued: &Queued,
        set: &[Param],
        unset: &[String],
        revert: &[String],
    ) -> Flow {
        if set.is_empty() && unset.is_empty() && revert.is_empty() {
            self.step_done(queued.seq);
            return Ok(());
        }
        let guest = self.guest()?;
        let Some(digest) = self.current_digest().await? else { return self.moved(queued).await };
        let mut form = self.form(set, GUEST_RESERVED)?;
        for (key, names) in [("delete", unset), ("revert", revert)] {
            if !names.is_empty() {
                params::push(&mut form, key, names.join(","));
            }
        }
        params::push(&mut form, "digest", digest);
        // POST is the same in a task, without the 30 s of a synchronous call (facts Q26, T24)
        let allocates = set.iter().any(params::allocates);
        let slow = guest.guest_type == GuestType::Qemu && allocates;
        let method = if slow { Method::Post } else { Method::Put };
        let owes_seed = self.queue.iter().any(|next| next.step == Step::Kind(KindStep::RebuildCloudInit));
        let debt = if owes_seed { self.debt(None, true) } else { None };
        // a disk made on a guest that is there; one that only grows is seen again by the next plan
        let debt = if allocates { self.owe_growth(debt) } else { debt };
        let owed_before = self.seed_owed;
        self.seed_owed |= owes_seed;
        let vmid = guest.vmid.to_string();
        let reply = self.write(queued.seq, method, &guest.segments(&vmid, &["config"]), form, debt).await?;
        if matches!(reply, Reply::Done) {
            let secret = |param: &&Param| matches!(param.value, ParamValue::Secret(_));
            self.secrets_written.extend(set.iter().filter(secret).map(|param| param.key.clone()));
        }
        if let Reply::Refused(refusal) = &reply
            && owes_seed
            && !owed_before
            && wrote_nothing(refusal)
        {
            self.seed_owed = false;
            self.settle_debt(Journal::settle_seed);
        }
        if let Reply::Refused(refusal) = &reply
            && allocates
            && wrote_nothing(refusal)
        {
            self.forget_growth();
        }
        self.after_change(queued, reply).await
    }

    /// Digest for the next write; `None` = the guest is not on its node any more.
    async fn current_digest(&mut self) -> Flow<Option<String>> {
        if let Some(digest) = self.digest.clone() {
            return Ok(Some(digest));
        }
        let guest = self.guest()?;
        match self.env.client.guest_config(&guest.node, guest.guest_type, guest.vmid).await {
            Ok(GuestConfig { lock: Some(lock), .. }) => Err(locked(&guest, &lock)),
            Ok(GuestConfig { digest: Some(digest), .. }) => Ok(Some(digest)),
            Ok(_) => failed(format!("PVE reports no digest for {guest}: it can't be written safely")),
            Err(error) if error.class == Class::NotFound => Ok(None),
            Err(error) => failed(describe(&error)),
        }
    }

    /// What follows a write to a guest that was there: plan again where the world is not as planned.
    async fn after_change(&mut self, queued: &Queued, reply: Reply) -> Flow {
        match reply {
            Reply::Done => {
                self.unproven = true;
                self.confirmed = true;
                self.digest = None;
                Ok(())
            }
            Reply::Unknown(text) => {
                self.digest = None;
                self.unproven = true;
                match self.resolve(queued, true).await? {
                    Presence::Present => self.replan_rest().await,
                    Presence::Absent => failed(text),
                }
            }
            Reply::Refused(refusal) => match refusal.class {
                Class::Conflict => self.conflict(&refusal.text).await,
                Class::NotFound => self.moved(queued).await,
                Class::Busy if refusal.by_task && self.busy_pause().await => self.replan_rest().await,
                _ => Err(refusal.stop()),
            },
        }
    }

    /// Somebody else wrote: read and plan again, twice at most; never overwrite.
    async fn conflict(&mut self, text: &str) -> Flow {
        self.tries.conflicts += 1;
        if self.tries.conflicts > 2 {
            return failed(format!(
                "{} was changed by somebody else three times while it was written, last: {text}",
                self.what()
            ));
        }
        self.replan_rest().await
    }

    /// The guest left its node after the plan: once, go on where it is.
    async fn moved(&mut self, queued: &Queued) -> Flow {
        self.tries.moves += 1;
        if self.tries.moves > 1 {
            return failed(format!("{} keeps moving between nodes; run again", self.what()));
        }
        self.step_failed(queued.seq, "not on this node any more");
        self.replan_rest().await
    }

    pub(crate) async fn resize(&mut self, queued: &Queued, disk: &str, bytes: u64) -> Flow {
        let guest = self.guest()?;
        let config = match self.env.client.guest_config(&guest.node, guest.guest_type, guest.vmid).await {
            Ok(config) => config,
            Err(error) if error.class == Class::NotFound => return self.moved(queued).await,
            Err(error) => return failed(describe(&error)),
        };
        let live = config.values.get(disk).and_then(LiveValue::text).and_then(text::drive_size);
        if live.is_some_and(|live| live >= bytes) {
            self.step_done(queued.seq);
            self.grown(disk);
            return Ok(());
        }
        let mut form = params::Form::new();
        params::push(&mut form, "disk", disk);
        params::push(&mut form, "size", text::size(bytes));
        if let Some(digest) = self.digest.clone().or(config.digest) {
            params::push(&mut form, "digest", digest);
        }
        let vmid = guest.vmid.to_string();
        let reply =
            self.write(queued.seq, Method::Put, &guest.segments(&vmid, &["resize"]), form, None).await?;
        match reply {
            // L19: somebody grew it in this very moment
            Reply::Refused(refusal) if refusal.text.contains("disk is already at specified size") => {
                self.step_done(queued.seq);
                self.digest = None;
                self.grown(disk);
                Ok(())
            }
            Reply::Done => {
                self.grown(disk);
                self.after_change(queued, Reply::Done).await
            }
            reply => self.after_change(queued, reply).await,
        }
    }

    pub(crate) async fn rebuild_seed(&mut self, queued: &Queued) -> Flow {
        let guest = self.guest()?;
        let vmid = guest.vmid.to_string();
        let segments = guest.segments(&vmid, &["cloudinit"]);
        let mut reply = self.write(queued.seq, Method::Put, &segments, params::Form::new(), None).await?;
        if matches!(reply, Reply::Unknown(_)) {
            // the same image comes out however often it is made
            reply = self.write(queued.seq, Method::Put, &segments, params::Form::new(), None).await?;
        }
        match reply {
            Reply::Done => {
                self.open = false;
                self.digest = None;
                self.seed_paid();
                Ok(())
            }
            Reply::Refused(refusal) => {
                self.open = false;
                Err(refusal.stop())
            }
            Reply::Unknown(text) => failed(text),
        }
    }

    /// The seed image is as the configuration says.
    pub(crate) fn seed_paid(&mut self) {
        if std::mem::take(&mut self.seed_owed) {
            self.settle_debt(Journal::settle_seed);
        }
    }

    // ---- template ------------------------------------------------------------------------------------

    pub(crate) async fn mark_template(&mut self, queued: &Queued) -> Flow {
        let known = match self.guest()?.guest_type {
            GuestType::Lxc => self.tasks(&queued.step, false).await?,
            GuestType::Qemu => Vec::new(),
        };
        let reply = self.post(queued.seq, &["template"], params::Form::new()).await?;
        if let Reply::Refused(refusal) = &reply
            && refusal.class == Class::Template
            && self.config().await?.template
        {
            self.step_done(queued.seq);
            self.unproven = true;
            return Ok(());
        }
        if let (Reply::Done, GuestType::Lxc) = (&reply, self.guest()?.guest_type) {
            self.await_template(queued, &known).await?;
        }
        self.after_change(queued, reply).await
    }

    /// A container's call answers null while a task that it does not name works (fact L17).
    async fn await_template(&mut self, queued: &Queued, known: &[proxops_pve::Upid]) -> Flow {
        self.note_state(queued.seq, StepState::Intent);
        let deadline = Instant::now() + self.task_time();
        let mut pauses = Pauses::new(&self.env.timing);
        loop {
            let fresh = self.tasks(&queued.step, false).await?.into_iter().find(|upid| !known.contains(upid));
            if let Some(upid) = fresh {
                return match self.watch(queued.seq, &upid).await? {
                    Reply::Refused(refusal) => Err(refusal.stop()),
                    // read back by what follows
                    Reply::Done | Reply::Unknown(_) => {
                        self.open = false;
                        Ok(())
                    }
                };
            }
            if self.config().await?.template {
                self.step_done(queued.seq);
                return Ok(());
            }
            if Instant::now() > deadline {
                self.open = true;
                return failed(format!(
                    "{} is not a template {} s after it was asked to become one",
                    self.what(),
                    self.task_time().as_secs()
                ));
            }
            pauses.wait().await;
        }
    }
}

/// The end of an action on a locked guest: no hot retry, never `skiplock`.
pub(crate) fn locked(guest: &Guest, lock: &str) -> Stop {
    Stop::Deferred(format!(
        "{guest} is locked ({lock}): wait for the operation that holds the lock; if none is running, `{} unlock {}` on \
         {} removes it",
        guest.guest_type.tool(),
        guest.vmid,
        guest.node
    ))
}

/// Whether a refused configuration write certainly left the configuration as it was. A failed hot-plug did
/// not (fact Q32).
fn wrote_nothing(refusal: &Refusal) -> bool {
    match refusal.class {
        Class::Invalid => {
            !refusal.text.contains("hotplug problem") && !refusal.text.contains("unable to apply pending")
        }
        Class::Locked(_)
        | Class::Busy
        | Class::Conflict
        | Class::Auth
        | Class::Forbidden
        | Class::NoQuorum
        | Class::NotFound
        | Class::Connect
        | Class::Tls => true,
        _ => false,
    }
}
