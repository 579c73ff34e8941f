//! Which privilege a change of which option of a VM needs (facts P1 to P4, Q51).

use crate::grammar::check::Args;
use crate::grammar::property::{self, Props};
use crate::grammar::{drive, split_index, vm};
use crate::refused::{Refused, Reply};
use crate::world::{Caller, World};

use super::GuestKind;
use super::drive::Drive;

/// Options that only root@pam with a ticket may set (fact Q51).
const ROOT_ONLY: &[&str] = &[
    "args",
    "lock",
    "hookscript",
    "affinity",
    "arch",
    "hugepages",
    "keephugepages",
    "ivshmem",
    "spice_enhancements",
    "vmgenid",
    "amd-sev",
    "intel-tdx",
];

/// What is done with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed<'a> {
    /// Set to a text, on a new VM.
    Create(&'a str),
    /// Set to a text.
    Set(&'a str),
    /// Removed; the text it has.
    Delete(&'a str),
}

impl<'a> Deed<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Create(text) | Self::Set(text) | Self::Delete(text) => text,
        }
    }
}

impl World {
    /// Checks all keys of a create call.
    pub(crate) fn check_create_rights(
        &self,
        caller: &Caller,
        vmid: u32,
        pool: Option<&str>,
        args: &Args,
    ) -> Reply<()> {
        args.iter().try_for_each(|(key, text)| self.check_option(caller, vmid, pool, key, Deed::Create(text)))
    }

    /// Checks one key.
    pub(crate) fn check_option(
        &self,
        caller: &Caller,
        vmid: u32,
        pool: Option<&str>,
        key: &str,
        deed: Deed<'_>,
    ) -> Reply<()> {
        if caller.is_root() {
            return Ok(());
        }
        if ROOT_ONLY.contains(&key) {
            return Err(Refused::die(format!("only root can set '{key}' config")));
        }
        let guest = format!("/vms/{vmid}");
        let has = |privilege: &str| {
            self.may(caller, &guest, privilege)
                || pool.is_some_and(|pool| self.may(caller, &format!("/pool/{pool}"), privilege))
        };
        let need = |privilege: &str| {
            if has(privilege) { Ok(()) } else { Err(Refused::denied(&format!("{guest}, {privilege}"))) }
        };
        if drive::table(key).is_some() {
            return self.check_drive_option(key, deed, &need);
        }
        let stem = split_index(key).map_or(key, |(stem, _)| stem);
        match (stem, key) {
            ("net", _) => {
                need("VM.Config.Network")?;
                self.check_bridge(caller, GuestKind::Qemu, deed.text())
            }
            ("ipconfig", _) | (_, "nameserver" | "searchdomain" | "sshkeys") => {
                either_cloudinit(&has, &guest)
            }
            _ if key.starts_with("ci") => either_cloudinit(&has, &guest),
            ("unused", _) => need("VM.Config.Disk"),
            ("parallel", _) => Err(Refused::die(format!("only root can set '{key}' config"))),
            ("serial", _) if deed.text() == "socket" => need("VM.Config.HWType"),
            ("serial", _) => Err(Refused::die(format!("only root can set '{key}' config for real devices"))),
            ("usb", _) => self.check_device(caller, key, "usb", &props(vm::USB, deed), &need),
            ("hostpci", _) => self.check_device(caller, key, "pci", &props(vm::HOSTPCI, deed), &need),
            ("virtiofs", _) => {
                if let Some(id) = props(vm::VIRTIOFS, deed).get("dirid") {
                    self.need(caller, &format!("/mapping/dir/{id}"), &["Mapping.Use"])?;
                }
                need("VM.Config.Options")
            }
            // checked apart, by the tags themselves (fact C5)
            (_, "tags") => Ok(()),
            ("numa", _) | (_, "cores" | "cpu" | "cpulimit" | "cpuunits" | "smp" | "sockets" | "vcpus") => {
                need("VM.Config.CPU")
            }
            (_, "memory" | "balloon" | "shares" | "allow-ksm") => need("VM.Config.Memory"),
            (
                _,
                "acpi" | "hotplug" | "kvm" | "machine" | "scsihw" | "smbios1" | "tablet" | "vga" | "watchdog"
                | "audio0" | "rng0",
            ) => need("VM.Config.HWType"),
            (_, "boot" | "bootdisk" | "vmstatestorage") => need("VM.Config.Disk"),
            (_, "startup") => {
                need("VM.Config.Options")?;
                self.need(caller, "/", &["Sys.Modify"])
            }
            _ => need("VM.Config.Options"),
        }
    }

    fn check_drive_option(&self, slot: &str, deed: Deed<'_>, need: &dyn Fn(&str) -> Reply<()>) -> Reply<()> {
        let drive = Drive::read(slot, deed.text());
        let cloudinit = drive.as_ref().is_some_and(Drive::is_cloudinit);
        let cdrom = drive.as_ref().is_some_and(Drive::is_cdrom);
        match deed {
            // storage access is what counts for disks on create (fact P1)
            Deed::Create(_) if cloudinit => {
                need("VM.Config.Cloudinit")?;
                need("VM.Config.CDROM")
            }
            Deed::Create(_) if cdrom => need("VM.Config.CDROM"),
            Deed::Create(_) => Ok(()),
            Deed::Set(_) | Deed::Delete(_) if cloudinit => {
                need("VM.Config.Cloudinit")?;
                need("VM.Config.CDROM")
            }
            Deed::Set(_) | Deed::Delete(_) if cdrom => need("VM.Config.CDROM"),
            Deed::Set(_) | Deed::Delete(_) => need("VM.Config.Disk"),
        }
    }

    /// A mapped device needs the mapping, a raw one root@pam (fact Q51).
    fn check_device(
        &self,
        caller: &Caller,
        key: &str,
        kind: &str,
        props: &Props,
        need: &dyn Fn(&str) -> Reply<()>,
    ) -> Reply<()> {
        let host = props.get("host");
        if kind == "usb" && host.is_some_and(|host| host.eq_ignore_ascii_case("spice")) {
            return need("VM.Config.HWType");
        }
        match props.get("mapping") {
            Some(id) if host.is_none() => {
                self.need(caller, &format!("/mapping/{kind}/{id}"), &["Mapping.Use"])?;
                need("VM.Config.HWType")
            }
            _ if kind == "usb" => {
                Err(Refused::die(format!("only root can set '{key}' config for real devices")))
            }
            _ => Err(Refused::die(format!("only root can set '{key}' config for non-mapped devices"))),
        }
    }
}

fn props(table: crate::grammar::Table, deed: Deed<'_>) -> Props {
    property::parse(table, deed.text(), "").unwrap_or_default()
}

fn either_cloudinit(has: &dyn Fn(&str) -> bool, guest: &str) -> Reply<()> {
    if has("VM.Config.Cloudinit") || has("VM.Config.Network") {
        return Ok(());
    }
    Err(Refused::denied(&format!("{guest}, VM.Config.Cloudinit|VM.Config.Network")))
}
