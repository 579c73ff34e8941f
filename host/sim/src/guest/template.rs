//! Turning guests into templates (facts Q44, Q45, L17).

use super::{Guest, GuestKind};
use crate::refused::{Refused, Reply};
use crate::world::World;

impl World {
    /// What is refused at once.
    pub(crate) fn check_template(&self, node: &str, kind: GuestKind, vmid: u32) -> Reply<()> {
        let guest = self.guest(node, kind, vmid)?;
        let word = kind.word();
        if !guest.snapshots.is_empty() {
            return Err(Refused::die(format!("you can't convert a {word} to template if it has snapshots")));
        }
        if guest.is_template() {
            return Err(Refused::die("you can't convert a template to a template"));
        }
        if guest.running {
            return Err(Refused::die(format!("you can't convert a {word} to template if {word} is running")));
        }
        if let Some(text) = guest.locked_text() {
            return Err(Refused::die(text));
        }
        Ok(())
    }

    /// The work of the task; the template mark comes last.
    pub(crate) fn make_template(&mut self, node: &str, kind: GuestKind, vmid: u32) -> Result<(), String> {
        let mut guest = self.guest(node, kind, vmid).map_err(|refused| refused.message)?.clone();
        if let Some(text) = guest.locked_text() {
            return Err(text);
        }
        for (_, volume) in guest.volumes() {
            let storage = volume.split(':').next().unwrap_or_default();
            if self.storages.get(storage).is_some_and(|spec| spec.kind == "lvm") {
                return Err("can't create base image: storage type does not support it".to_owned());
            }
        }
        self.make_bases(&mut guest);
        guest.config.insert("template".to_owned(), "1".to_owned());
        self.guests.insert(vmid, guest);
        Ok(())
    }

    /// Renames a guest's volumes to base volumes; CD drives and cloud-init stay.
    pub(crate) fn make_bases(&mut self, guest: &mut Guest) {
        for (key, old) in guest.volumes() {
            let file = old.rsplit(['/', ':']).next().unwrap_or_default().to_owned();
            if file.contains("-cloudinit") {
                continue;
            }
            let base = match file.split_once('-') {
                Some(("vm", rest)) => format!("base-{rest}"),
                Some(("subvol", rest)) => format!("basevol-{rest}"),
                _ => continue,
            };
            let mut new = format!("{}{base}", &old[..old.len() - file.len()]);
            // a base of its own does not name its former base any more
            if let Some((storage, name)) = new.split_once(':')
                && name.matches('/').count() > 1
            {
                new = format!("{storage}:{}/{base}", guest.vmid);
            }
            if let Some(volume) = self.volume(&old, &guest.node).cloned() {
                self.remove_volume(&old, &guest.node);
                self.put_volume(&new, &guest.node, volume);
            }
            if let Some(text) = guest.config.get_mut(&key) {
                *text = text.replacen(&old, &new, 1);
            }
        }
    }
}
