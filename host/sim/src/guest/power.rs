//! Starting and stopping guests (facts Q47 to Q49, L21, L22, R6).

use super::{Guest, GuestKind};
use crate::grammar::check::Args;
use crate::grammar::property;
use crate::refused::{Refused, Reply};
use crate::world::{Caller, World};

/// What is done with a guest's power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// Start.
    Start,
    /// Stop hard.
    Stop,
    /// Ask the guest to stop.
    Shutdown,
    /// Shut down and start again.
    Reboot,
    /// Reset the machine.
    Reset,
    /// Pause.
    Suspend,
    /// Go on after a pause.
    Resume,
}

impl Power {
    /// As in paths and task types.
    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Shutdown => "shutdown",
            Self::Reboot => "reboot",
            Self::Reset => "reset",
            Self::Suspend => "suspend",
            Self::Resume => "resume",
        }
    }
}

impl World {
    /// What is refused at once; all else is found by the task.
    pub(crate) fn check_power(
        &self,
        caller: &Caller,
        node: &str,
        kind: GuestKind,
        vmid: u32,
        power: Power,
        args: &Args,
    ) -> Reply<()> {
        let skiplock = args.get("skiplock").is_some_and(|flag| flag == "1");
        if skiplock && !caller.is_root() {
            return Err(Refused::param("skiplock", "Only root may use this option."));
        }
        let guest = self.guests.get(&vmid).filter(|guest| guest.kind == kind && guest.node == node);
        let Some(guest) = guest else {
            // only start, stop and shutdown leave it to the task (fact Q47, R15)
            return match power {
                Power::Start | Power::Stop | Power::Shutdown => Ok(()),
                _ => Err(Refused::die(format!(
                    "unable to find configuration file for {} {vmid} on node '{node}'",
                    kind.word()
                ))),
            };
        };
        match (kind, power, guest.running) {
            (GuestKind::Lxc, Power::Start, true) => Err(Refused::die(format!("CT {vmid} already running"))),
            (GuestKind::Lxc, Power::Stop | Power::Shutdown, false) => {
                Err(Refused::die(format!("CT {vmid} not running")))
            }
            (_, Power::Reboot | Power::Suspend | Power::Reset, false) => {
                Err(Refused::die(format!("{} {vmid} not running", kind.word())))
            }
            (GuestKind::Qemu, Power::Shutdown, true) if guest.paused => {
                Err(Refused::die("VM is paused - cannot shutdown"))
            }
            _ => Ok(()),
        }
    }

    /// Task type and id: HA-managed guests get a request task (facts U8, U10).
    pub(crate) fn power_task(&self, kind: GuestKind, vmid: u32, power: Power) -> String {
        let managed = self
            .ha
            .get(&format!("{}:{vmid}", kind.ha()))
            .is_some_and(|r| r.get("state").is_none_or(|s| s != "ignored"));
        match power {
            Power::Start if managed => "hastart".to_owned(),
            Power::Stop | Power::Shutdown if managed => "hastop".to_owned(),
            _ => format!("{}{}", kind.task(), power.word()),
        }
    }

    /// The work of the task; returns the number of warnings.
    pub(crate) fn power_guest(
        &mut self,
        node: &str,
        kind: GuestKind,
        vmid: u32,
        power: Power,
        skiplock: bool,
    ) -> Result<u32, String> {
        let missing = || match (kind, power) {
            (GuestKind::Qemu, Power::Stop) => {
                format!("unable to find configuration file for VM {vmid} on node '{node}'")
            }
            _ => kind.missing(node, vmid),
        };
        let mut guest = self
            .guests
            .get(&vmid)
            .filter(|guest| guest.kind == kind && guest.node == node)
            .cloned()
            .ok_or_else(missing)?;
        let sid = guest.sid();
        if let Some(resource) = self.ha.get_mut(&sid)
            && resource.get("state").is_none_or(|state| state != "ignored")
        {
            let state = match power {
                Power::Start => Some("started"),
                Power::Stop | Power::Shutdown => Some("stopped"),
                _ => None,
            };
            if let Some(state) = state {
                resource.insert("state".to_owned(), state.to_owned());
            }
        }
        // a backup may be stopped, nothing else may be done with a locked guest
        let free = skiplock || (power == Power::Stop && guest.lock() == Some("backup"));
        if let Some(text) = guest.locked_text().filter(|_| !free) {
            return Err(text);
        }
        let now = self.unix_time();
        match power {
            Power::Start => {
                self.check_start(&guest)?;
                self.apply_all(&mut guest);
                guest.running = true;
                guest.started = now;
                super::vm_hotplug::seed_image(&mut guest);
            }
            Power::Stop | Power::Shutdown => self.stop(&mut guest),
            Power::Reboot => {
                self.stop(&mut guest);
                guest.running = true;
                guest.started = now;
                super::vm_hotplug::seed_image(&mut guest);
            }
            Power::Suspend => guest.paused = true,
            Power::Resume => guest.paused = false,
            Power::Reset => {}
        }
        self.guests.insert(vmid, guest);
        Ok(0)
    }

    /// Stops a guest and applies what waited for it.
    pub(crate) fn stop(&mut self, guest: &mut Guest) {
        guest.running = false;
        guest.paused = false;
        self.apply_all(guest);
    }

    fn apply_all(&mut self, guest: &mut Guest) {
        match guest.kind {
            GuestKind::Qemu => self.apply_vm(guest),
            GuestKind::Lxc => self.apply_ct(guest),
        };
        guest.tidy_unused();
    }

    fn check_start(&self, guest: &Guest) -> Result<(), String> {
        let vmid = guest.vmid;
        match (guest.kind, guest.is_template(), guest.running) {
            (GuestKind::Qemu, true, _) => return Err("you can't start a vm if it's a template".to_owned()),
            (GuestKind::Lxc, true, _) => return Err("you can't start a CT if it's a template".to_owned()),
            (kind, _, true) => return Err(format!("{} {vmid} already running", kind.word())),
            _ => {}
        }
        let number =
            |key: &str, default: u32| guest.config.get(key).and_then(|n| n.parse().ok()).unwrap_or(default);
        let limit = self.nodes.get(&guest.node).map_or(u32::MAX, |node| node.cpus);
        if guest.kind == GuestKind::Qemu && number("cores", 1).saturating_mul(number("sockets", 1)) > limit {
            return Err(format!("MAX {limit} vcpus allowed per VM on this node"));
        }
        let snippets = guest.config.get("cicustom").map_or("", String::as_str);
        let snippets =
            property::parse(crate::grammar::vm::CICUSTOM, snippets, "cicustom").unwrap_or_default();
        if let Some(missing) = snippets.values().find(|volid| self.volume(volid, &guest.node).is_none()) {
            return Err(format!("volume '{missing}' does not exist"));
        }
        let wanted = if guest.kind == GuestKind::Qemu { "images" } else { "rootdir" };
        for (_, volume) in guest.volumes() {
            let storage = volume.split(':').next().unwrap_or_default();
            self.usable_storage(storage, &guest.node).map_err(|refused| refused.message)?;
            if self.storages.get(storage).is_some_and(|spec| !spec.content.contains(wanted)) {
                return Err(format!("storage '{storage}' does not support content-type '{wanted}'"));
            }
            if self.volume(&volume, &guest.node).is_none() {
                return Err(format!("volume '{volume}' does not exist"));
            }
        }
        Ok(())
    }
}
