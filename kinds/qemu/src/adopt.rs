//! A manifest for a live guest: what PVE's defaults say anyway is left out, what the manifest has no
//! word for is a gap.

use crate::drives::Drive;
use crate::spec::*;
use crate::wanted::{Row, take};
use crate::{cloudinit, cpu, devices, drives, keys, nics, options};
use proxops_kind::{
    AdoptOptions, Adopted, Context, Diagnostic, Gap, Live, LivePower, LiveValue, LiveView, Props, Refusal,
    Scalar, Size, Table, Words, names, tags,
};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The manifest of a live VM or template.
pub fn adopt(
    name: &str,
    template: bool,
    live: &Live,
    context: &Context,
    options: &AdoptOptions,
) -> Result<Adopted, Refusal> {
    let live = LiveView::of(live)?;
    let mut run = Run {
        spec: blank(&live),
        live,
        context,
        gaps: Vec::new(),
        new_keys: BTreeMap::new(),
        seen: BTreeSet::new(),
    };
    run.general(name, template);
    run.plain();
    run.devices();
    run.networks();
    run.drives();
    run.firmware();
    run.cloud_init_data(options.secrets);
    run.rest();
    let spec = serde_json::to_string(&run.spec).map_err(|e| {
        vec![Diagnostic::error("not-adoptable", "", format!("the manifest can't be written: {e}"))]
    })?;
    let mut adopted = Adopted::new(spec);
    run.gaps.sort_by(|a, b| (&a.key, &a.value).cmp(&(&b.key, &b.value)));
    adopted.gaps = run.gaps;
    adopted.new_public_keys = run.new_keys.into_iter().collect();
    adopted.masked_secrets = u32::try_from(run.live.guest.secrets_present.len()).unwrap_or(u32::MAX);
    Ok(adopted)
}

fn blank(live: &LiveView<'_>) -> VmSpec {
    VmSpec {
        node: live.guest.node.clone(),
        vmid: live.guest.vmid,
        state: None,
        pve_name: None,
        pve_description: None,
        tags: None,
        memory: Size::from_mib(cpu::live_mib(live.text("memory"))),
        balloon: None,
        shares: None,
        hugepages: None,
        keep_hugepages: None,
        cpu: Cpu { cores: 1, ..Cpu::default() },
        clone: None,
        clone_storage: None,
        clone_format: None,
        disks: Vec::new(),
        networks: Vec::new(),
        hardware: Hardware::default(),
        options: Options::default(),
        cloud_init_data: CloudInitData::default(),
        os_type: None,
        pool: None,
        extra: BTreeMap::new(),
    }
}

struct Run<'a> {
    spec: VmSpec,
    live: LiveView<'a>,
    context: &'a Context,
    gaps: Vec<Gap>,
    new_keys: BTreeMap<String, String>,
    seen: BTreeSet<String>,
}

impl<'a> Run<'a> {
    /// The text of a key, which counts as handled from now on.
    fn text(&mut self, key: &str) -> Option<&'a str> {
        self.seen.insert(key.to_owned());
        self.live.text(key)
    }

    fn gap(&mut self, key: &str, value: &str, why: &str) {
        let value = (!names::is_secret_like(key) && !names::is_secret_like(value)).then(|| value.to_owned());
        self.gaps.push(Gap::new(key, value, why));
    }

    /// Options of a property string that the manifest has no word for. They stay in PVE.
    fn left(&mut self, key: &str, rest: Vec<String>) {
        for option in rest {
            self.gap(key, &option, "the manifest has no field for this option; proxops keeps it as it is");
        }
    }

    fn general(&mut self, name: &str, template: bool) {
        let stopped = matches!(self.live.guest.power, LivePower::Stopped);
        self.spec.state = (stopped || template).then_some(State::Stopped);
        self.spec.pve_name = match self.text("name") {
            Some(live) if live == name => None,
            Some(live) => Some(live.to_owned()),
            None => Some(String::new()),
        };
        let description = self.text("description").map(|d| d.trim_end().to_owned());
        self.spec.pve_description = description.filter(|d| !d.is_empty());
        let owner = self.context.owner_tag.clone();
        let mut live = tags::parse(self.text("tags").unwrap_or_default(), &self.context.tag_style);
        live.retain(|t| !t.eq_ignore_ascii_case(&owner));
        self.spec.tags = (!live.is_empty()).then_some(live);
        self.seen.insert("memory".to_owned());
        let memory = Props::parse(self.live.text("memory").unwrap_or_default(), &cpu::MEMORY);
        let rest = memory.iter().filter(|(k, _)| *k != "current").map(|(k, v)| format!("{k}={v}")).collect();
        self.left("memory", rest);
        let processor = self.text("cpu");
        let rest = cpu::adopt(&mut self.spec, processor);
        self.left("cpu", rest);
    }

    fn plain(&mut self) {
        for key in options::KEYS {
            let row = &key.row;
            if self.seen.contains(row.key) {
                continue;
            }
            let Some(text) = self.text(row.key) else { continue };
            let is_default = row.default.is_some_and(|d| (row.same)(d, text));
            if !is_default && !(row.put)(&mut self.spec, text) {
                self.gap(row.key, text, "the manifest's field does not take this value");
            }
        }
    }

    /// One property string as a part of the manifest.
    fn part<T>(&mut self, key: &str, table: &'static Table, rows: &[Row<T>], part: T) -> Option<T> {
        let text = self.text(key)?;
        let mut part = part;
        let rest = take(rows, &mut part, &Props::parse(text, table));
        self.left(key, rest);
        Some(part)
    }

    fn devices(&mut self) {
        if let Some(text) = self.text("machine") {
            let rest = devices::adopt_machine(&mut self.spec, text);
            self.left("machine", rest);
        }
        self.spec.hardware.display = self
            .part("vga", &devices::VGA, devices::VGA_ROWS, DisplayFull::default())
            .and_then(|full| match full {
                DisplayFull { kind: Some(kind), memory: None, clipboard: None } => Some(Display::Type(kind)),
                full if full == DisplayFull::default() => None,
                full => Some(Display::Full(full)),
            });
        self.spec.options.agent =
            self.part("agent", &devices::AGENT, devices::AGENT_ROWS, AgentFull::default()).and_then(|full| {
                let bare = AgentFull { enabled: full.enabled, ..AgentFull::default() };
                match full.enabled {
                    Some(on) if full == bare => Some(Agent::Switch(on)),
                    None if full == bare => None,
                    enabled => Some(Agent::Full(AgentFull { enabled: enabled.or(Some(false)), ..full })),
                }
            });
        self.spec.options.startup = self
            .part("startup", &devices::STARTUP, devices::STARTUP_ROWS, StartupFull::default())
            .filter(|full| *full != StartupFull::default())
            .map(Startup::Full);
        let rng = Rng { source: RngSource::Urandom, max_bytes: None, period: None };
        self.spec.hardware.rng = self.part("rng0", &devices::RNG, devices::RNG_ROWS, rng);
        self.spec.hardware.watchdog =
            self.part("watchdog", &devices::WATCHDOG, devices::WATCHDOG_ROWS, Watchdog::default());
        let audio = Audio { device: AudioDevice::Ich9, driver: None };
        self.spec.hardware.audio = self.part("audio0", &devices::AUDIO, devices::AUDIO_ROWS, audio);
        for (_, slot, _) in self.live.slots("hostpci") {
            let part = PciDevice { slot: Some(slot.to_owned()), ..PciDevice::default() };
            let part = self.part(slot, &devices::PCI, devices::PCI_ROWS, part);
            self.spec.hardware.pci_devices.extend(part);
        }
        for (_, slot, _) in self.live.slots("usb") {
            let part = UsbDevice { slot: Some(slot.to_owned()), ..UsbDevice::default() };
            let part = self.part(slot, &devices::USB, devices::USB_ROWS, part);
            self.spec.hardware.usb_devices.extend(part);
        }
        for (_, slot, _) in self.live.slots("virtiofs") {
            let part = VirtioFs { slot: Some(slot.to_owned()), ..VirtioFs::default() };
            let part = self.part(slot, &devices::VIRTIOFS, devices::VIRTIOFS_ROWS, part);
            self.spec.hardware.virtiofs.extend(part);
        }
    }

    fn networks(&mut self) {
        for (_, slot, text) in self.live.slots("net") {
            self.seen.insert(slot.to_owned());
            let (nic, rest) = nics::adopt(slot, text);
            if nic.bridge.is_none() {
                self.gap(slot, text, "a network card without a bridge has no place in the manifest");
                continue;
            }
            self.left(slot, rest);
            self.spec.networks.push(nic);
        }
    }

    fn drives(&mut self) {
        let mut cds = Vec::new();
        for drive in drives::live(&self.live) {
            let slot = drive.slot;
            self.seen.insert(slot.to_owned());
            match drive.kind {
                Drive::Disk => self.disk(slot, &drive.props),
                Drive::Cd => cds.push(drive),
                Drive::CloudInit => {
                    let storage = drives::storage_of(drive.file()).map(str::to_owned);
                    let slot = (slot != "ide2").then(|| slot.to_owned());
                    self.spec.hardware.cloud_init = Some(CloudInit { enabled: None, storage, slot });
                }
            }
        }
        for drive in cds {
            let (slot, file, props) = (drive.slot, drive.file(), &drive.props);
            if self.spec.hardware.cdrom.is_some() {
                self.gap(slot, drive.text, "the manifest has one CD drive");
                continue;
            }
            let by_name = self.context.references.iter().find(|r| {
                r.to.kind == "ISO" && proxops_kind::records::pair(&r.attributes, "volid") == Some(file)
            });
            let (iso, media) = match (file, by_name) {
                ("none", _) => (Some("none".to_owned()), None),
                (_, Some(iso)) => (Some(iso.to.name.clone()), None),
                (other, None) => (None, Some(other.to_owned())),
            };
            let default = drives::cd_slot(&self.spec.hardware, &[]);
            let place = (default != slot).then(|| slot.to_owned());
            self.spec.hardware.cdrom = Some(CdRom { iso, media, slot: place });
            let known = ["file", "media", "size"];
            let rest =
                props.iter().filter(|(k, _)| !known.contains(k)).map(|(k, v)| format!("{k}={v}")).collect();
            self.left(slot, rest);
        }
        if let Some(controller) = self.text("scsihw").filter(|c| *c != "lsi") {
            let on_scsi = |d: &&mut Disk| d.interface.as_deref().and_then(drives::bus) == Some("scsi");
            match (Controller::parse(controller), self.spec.disks.iter_mut().find(on_scsi)) {
                (Some(parsed), Some(disk)) => disk.controller = Some(parsed),
                _ => self.gap(
                    "scsihw",
                    controller,
                    "the manifest names the controller on a SCSI disk, and there is none",
                ),
            }
        }
    }

    fn disk(&mut self, slot: &str, props: &Props) {
        let file = props.get("file").unwrap_or_default();
        let size = props.get("size").and_then(Size::parse_pve);
        let mut disk = Disk { interface: Some(slot.to_owned()), ..Disk::default() };
        match (drives::storage_of(file), size) {
            (Some(storage), Some(size)) => {
                disk.storage = Some(storage.to_owned());
                disk.size = Some(size);
            }
            _ => disk.volume = Some(file.to_owned()),
        }
        let mut own = props.clone();
        for key in ["file", "size", "format", "media"] {
            own.remove(key);
        }
        let rest = take(drives::DISK, &mut disk, &own);
        self.left(slot, rest);
        self.spec.disks.push(disk);
    }

    fn firmware(&mut self) {
        if let Some(text) = self.text("efidisk0") {
            let props = Props::parse(text, &drives::DRIVE);
            match drives::storage_of(props.get("file").unwrap_or_default()) {
                Some(storage) => {
                    self.spec.hardware.efi_disk = Some(EfiDisk {
                        storage: storage.to_owned(),
                        kind: props.get("efitype").and_then(EfiType::parse),
                        secure_boot: props
                            .get_bool("pre-enrolled-keys")
                            .filter(|on| *on)
                            .map(|_| Switch::Enabled),
                        ..EfiDisk::default()
                    });
                }
                None => self.gap("efidisk0", text, "the manifest can't name a firmware volume by path"),
            }
        }
        if let Some(text) = self.text("tpmstate0") {
            let props = Props::parse(text, &drives::DRIVE);
            match drives::storage_of(props.get("file").unwrap_or_default()) {
                Some(storage) => {
                    let version = TpmVersion::parse(props.get("version").unwrap_or("v1.2"));
                    self.spec.hardware.tpm = Some(Tpm { storage: Some(storage.to_owned()), version });
                }
                None => self.gap("tpmstate0", text, "the manifest can't name a TPM volume by path"),
            }
        }
    }

    fn cloud_init_data(&mut self, secrets: bool) {
        for (n, key, text) in self.live.slots("ipconfig") {
            self.seen.insert(key.to_owned());
            let mut config = IpConfig { nic: Some(Scalar(n.to_string())), ..IpConfig::default() };
            let rest = take(cloudinit::IP_ROWS, &mut config, &Props::parse(text, &cloudinit::IPCONFIG));
            self.left(key, rest);
            self.spec.cloud_init_data.ipconfigs.push(config);
        }
        let custom = self.part("cicustom", &cloudinit::CUSTOM, cloudinit::CUSTOM_ROWS, Custom::default());
        self.spec.cloud_init_data.custom = custom.filter(|c| *c != Custom::default());
        self.seen.insert("cipassword".to_owned());
        let Some(encoded) = self.text("sshkeys") else { return };
        let keys = cloudinit::key_lines(encoded);
        if keys.is_empty() {
            return;
        }
        match self.key_names(&keys, secrets) {
            Some((refs, new)) => {
                self.spec.cloud_init_data.ssh_key_refs = Some(refs.into_iter().collect());
                self.new_keys = new;
            }
            None => self.spec.cloud_init_data.ssh_keys = Some(vec!["*".to_owned()]),
        }
    }

    /// Every key's name in the secrets document, new ones included; all or nothing.
    fn key_names(
        &self,
        keys: &[String],
        may_add: bool,
    ) -> Option<(BTreeSet<String>, BTreeMap<String, String>)> {
        let (mut refs, mut new) = (BTreeSet::new(), BTreeMap::new());
        for key in keys {
            let known = self
                .context
                .public_keys
                .iter()
                .find(|(_, text)| cloudinit::identity(text.trim()) == cloudinit::identity(key));
            match known {
                Some((name, _)) => {
                    refs.insert(name.clone());
                }
                None if may_add => {
                    let (kind, data) = cloudinit::type_and_data(key)?;
                    let name = format!("cloud-init.ssh-keys.adopted-{}", fingerprint(&kind, &data));
                    refs.insert(name.clone());
                    new.insert(name, key.clone());
                }
                None => return None,
            }
        }
        Some((refs, new))
    }

    /// Everything that nothing has taken over.
    fn rest(&mut self) {
        let live: Vec<(&str, &LiveValue)> = self.live.iter().collect();
        for (key, value) in live {
            if self.seen.contains(key) || keys::is_book_keeping(key) {
                continue;
            }
            let text = match value {
                LiveValue::Text(text) | LiveValue::Json(text) => text.as_str(),
            };
            // PVE makes the uuid itself.
            if key == "smbios1" && Words::parse(text).0.iter().all(|w| w.starts_with("uuid=")) {
                continue;
            }
            let why = if proxops_kind::live::slot_index(key, "unused").is_some() {
                "a detached volume; no manifest describes it"
            } else {
                "no field covers this key; `extra` can own it"
            };
            self.gap(key, text, why);
        }
    }
}

/// First 8 bytes of sha256 of `sshpki NUL type NUL data`, as hex.
fn fingerprint(kind: &str, data: &str) -> String {
    let digest = Sha256::digest(format!("sshpki\0{kind}\0{data}").as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
