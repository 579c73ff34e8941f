//! Every field of a VM with two values, and what a change from the first to the second comes to.

/// One field.
#[derive(Debug)]
pub struct Row {
    /// Path in the spec; `[]` is the first element of a list.
    pub field: &'static str,
    /// Further parts of the spec that it needs, as JSON.
    pub with: &'static str,
    /// Set at creation, as JSON; null leaves the field out.
    pub first: &'static str,
    /// Set afterwards.
    pub second: &'static str,
    /// What the change comes to.
    pub then: Then,
}

/// What a change comes to.
#[derive(Debug, Clone, Copy)]
pub enum Then {
    /// One action, then no difference.
    Converges,
    /// The same, and an anomaly stays about what the manifest no longer names.
    Leaves(&'static str),
    /// Only creation sets it: this anomaly and no write.
    Fixed(&'static str),
    /// It counts at creation and is not compared later: nothing at all.
    Ignored,
}

/// Fields that no row can change, and why.
pub const NOT_COMPARED: &[(&str, &str)] = &[("vmid", "another vmid is another guest")];

const fn row(field: &'static str, first: &'static str, second: &'static str) -> Row {
    Row { field, with: "{}", first, second, then: Then::Converges }
}

impl Row {
    const fn with(mut self, with: &'static str) -> Self {
        self.with = with;
        self
    }

    const fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }
}

use Then::{Fixed, Ignored, Leaves};

const CLONE: &str = r#"{"node": "pve01", "clone": "template-a"}"#;
const ON_FILES: &str = r#"{"disks": [{"storage": "nfs"}]}"#;
const CLOUD_INIT: &str = r#"{"hardware": {"cloud-init": {"storage": "local-lvm"}}}"#;
const EFI: &str = r#"{"hardware": {"bios": "ovmf", "efi-disk": {"storage": "local-lvm", "type": "4m"}}}"#;
const TPM: &str = r#"{"hardware": {"tpm": {"storage": "local-lvm", "version": "v2.0"}}}"#;
const PCI: &str =
    r#"{"hardware": {"machine": "q35", "pci-devices": [{"slot": "hostpci0", "mapping": "gpu"}]}}"#;
const USB: &str = r#"{"hardware": {"usb-devices": [{"slot": "usb0", "mapping": "dongle"}]}}"#;
const RNG: &str = r#"{"hardware": {"rng": {"source": "/dev/urandom"}}}"#;
const FOLDER: &str = r#"{"hardware": {"virtiofs": [{"slot": "virtiofs0", "dirid": "media"}]}}"#;
/// A burst goes beyond a limit.
const LIMITS: &str = r#"{"disks": [{"limits": {"mbps-rd": 5, "mbps-wr": 5, "iops-rd": 50, "iops-wr": 50}}]}"#;
const AGENT: &str = r#"{"options": {"agent": {"enabled": true}}}"#;
const ADDRESS: &str = r#"{"cloud-init-data": {"ipconfigs": [{"nic": 0, "ip": "192.0.2.10/24"}]}}"#;
const ADDRESS6: &str = r#"{"cloud-init-data": {"ipconfigs": [{"nic": 0, "ip6": "2001:db8::10/64"}]}}"#;

/// All of them.
pub const ROWS: &[Row] = &[
    row("node", "\"{node}\"", "\"pve02\"").with(r#"{"node": "pve01"}"#).then(Fixed("placement")),
    row("state", "\"stopped\"", "\"started\""),
    row("pve-name", r#""one.example.org""#, r#""two.example.org""#),
    row("pve-description", r#""one""#, r#""two\nlines, 50 % = ü""#),
    row("tags", r#"["a"]"#, r#"["b", "c"]"#),
    row("memory", r#""512MiB""#, r#""768MiB""#),
    row("balloon", r#""256MiB""#, "0"),
    row("shares", "500", "2000"),
    row("hugepages", r#""2""#, r#""1024""#).with(r#"{"memory": "2GiB", "cpu": {"numa": true}}"#),
    row("keep-hugepages", "true", "false").with(r#"{"memory": "2GiB", "cpu": {"numa": true}, "hugepages": "2"}"#),
    row("cpu.type", r#""host""#, r#""x86-64-v2-AES""#),
    row("cpu.cores", "2", "3"),
    row("cpu.sockets", "1", "2"),
    row("cpu.vcpus", "1", "2"),
    row("cpu.limit", "1.5", "2"),
    row("cpu.units", "100", "200"),
    row("cpu.affinity", r#""0-1""#, r#""0,2-3""#),
    row("cpu.numa", "false", "true"),
    row("cpu.flags", r#"["+aes"]"#, r#"["-pcid", "+md-clear"]"#),
    row("cpu.hidden", "true", "false"),
    row("cpu.nested-virt", "false", "true"),
    row("clone", r#""template-a""#, r#""template-b""#).with(r#"{"node": "pve01"}"#).then(Ignored),
    row("clone-storage", r#""local-lvm""#, r#""nfs""#).with(CLONE).then(Ignored),
    row("clone-format", r#""raw""#, r#""qcow2""#).with(CLONE).then(Ignored),
    row("os-type", r#""l26""#, r#""win11""#),
    row("pool", r#""one""#, r#""two""#).then(Ignored),
    row("extra", r#"{"startdate": "now"}"#, r#"{"startdate": "2026-01-01", "migrate_downtime": 0.5}"#),
    // disks
    row("disks[].interface", r#""scsi0""#, r#""scsi1""#).then(Leaves("undeclared")),
    row("disks[].storage", r#""local-lvm""#, r#""other""#).then(Fixed("storage-mismatch")),
    row("disks[].size", r#""1GiB""#, r#""2GiB""#).then(Fixed("size-mismatch")),
    row("disks[].size", r#""2GiB""#, r#""1GiB""#).with(r#"{"disks": [{"grow": true}]}"#).then(Fixed("size-mismatch")),
    row("disks[].size", r#""1GiB""#, r#""2560MiB""#).with(r#"{"disks": [{"grow": true}]}"#),
    row("disks[].grow", "false", "true").then(Ignored),
    row("disks[].image", r#""a""#, r#""b""#).then(Ignored),
    row(
        "disks[].volume",
        r#""nfs:{vmid}/vm-{vmid}-disk-8.raw""#,
        r#""nfs:{vmid}/vm-{vmid}-disk-9.raw""#,
    )
    .with(r#"{"disks": [{"storage": null, "size": null}]}"#)
    .then(Fixed("volume-mismatch")),
    row("disks[].controller", r#""virtio-scsi-single""#, r#""virtio-scsi-pci""#),
    row("disks[].format", r#""raw""#, r#""qcow2""#).with(ON_FILES).then(Ignored),
    row("disks[].cache", r#""writeback""#, r#""none""#),
    row("disks[].discard", r#""on""#, r#""ignore""#),
    row("disks[].ssd", "true", "false"),
    row("disks[].aio", r#""threads""#, r#""native""#),
    row("disks[].iothread", "true", "false"),
    row("disks[].backup", "false", "true"),
    row("disks[].replicate", "false", "true"),
    row("disks[].read-only", "true", "false"),
    row("disks[].serial", r#""DATA01""#, r#""DATA02""#),
    row("disks[].limits.mbps-rd", "10", "20.5"),
    row("disks[].limits.mbps-wr", "10", "20.5"),
    row("disks[].limits.mbps-rd-max", "10", "20.5").with(LIMITS),
    row("disks[].limits.mbps-wr-max", "10", "20.5").with(LIMITS),
    row("disks[].limits.iops-rd", "100", "200"),
    row("disks[].limits.iops-wr", "100", "200"),
    row("disks[].limits.iops-rd-max", "100", "200").with(LIMITS),
    row("disks[].limits.iops-wr-max", "100", "0").with(LIMITS),
    // networks
    row("networks[].slot", r#""net0""#, r#""net1""#).then(Leaves("undeclared")),
    row("networks[].model", r#""virtio""#, r#""e1000""#),
    row("networks[].bridge", r#""vmbr0""#, r#""vmbr1""#),
    row("networks[].mac", r#""BC:24:11:00:00:01""#, r#""bc:24:11:00:00:02""#),
    row("networks[].vlan", "10", "20"),
    row("networks[].trunks", "[10]", r#"[10, "20-30"]"#),
    row("networks[].rate-limit", "1", "2.5"),
    row("networks[].firewall", "true", "false"),
    row("networks[].link-down", "true", "false"),
    row("networks[].mtu", "1400", "1"),
    row("networks[].queues", "2", "4"),
    row("networks[].absent", "false", "true"),
    // hardware
    row("hardware.machine", r#""i440fx""#, r#""q35""#),
    row("hardware.bios", r#""seabios""#, r#""ovmf""#),
    row("hardware.display", r#""std""#, r#""qxl""#),
    row("hardware.display.type", r#""std""#, r#""virtio""#),
    row("hardware.display.memory", "16", r#""32MiB""#).with(r#"{"hardware": {"display": {"type": "std"}}}"#),
    row("hardware.display.clipboard", "null", r#""vnc""#).with(r#"{"hardware": {"display": {"type": "std"}}}"#),
    row("hardware.efi-disk.storage", r#""local-lvm""#, r#""other""#).with(EFI).then(Fixed("storage-mismatch")),
    row("hardware.efi-disk.type", r#""4m""#, r#""2m""#).with(EFI).then(Fixed("needs-recreate")),
    row("hardware.efi-disk.template", r#""4m""#, r#""2m""#)
        .with(r#"{"hardware": {"bios": "ovmf", "efi-disk": {"storage": "local-lvm"}}}"#)
        .then(Fixed("needs-recreate")),
    row("hardware.efi-disk.size", r#""1MiB""#, r#""4MiB""#).with(EFI).then(Ignored),
    row("hardware.efi-disk.secure-boot", r#""enabled""#, r#""disabled""#).with(EFI).then(Fixed("needs-recreate")),
    row("hardware.tpm.storage", r#""local-lvm""#, r#""other""#).with(TPM).then(Fixed("storage-mismatch")),
    row("hardware.tpm.version", r#""v2.0""#, r#""v1.2""#).with(TPM).then(Fixed("needs-recreate")),
    row("hardware.cdrom.iso", r#""a""#, r#""b""#),
    row("hardware.cdrom.media", r#""nfs:iso/a.iso""#, r#""none""#),
    row("hardware.cdrom.slot", r#""ide2""#, r#""ide0""#)
        .with(r#"{"hardware": {"cdrom": {"iso": "a"}}}"#)
        .then(Leaves("undeclared")),
    row("hardware.cloud-init.enabled", "true", "false").with(CLOUD_INIT).then(Fixed("cloud-init-drive")),
    row("hardware.cloud-init.storage", r#""local-lvm""#, r#""other""#).with(CLOUD_INIT).then(Fixed("storage-mismatch")),
    row("hardware.cloud-init.slot", r#""ide2""#, r#""scsi5""#).with(CLOUD_INIT).then(Fixed("cloud-init-slot")),
    row("hardware.serial0", r#""socket""#, r#""/dev/ttyS0""#),
    row("hardware.serial1", r#""socket""#, r#""/dev/ttyS0""#),
    row("hardware.serial2", r#""socket""#, r#""/dev/ttyS0""#),
    row("hardware.serial3", r#""/dev/ttyS1""#, r#""socket""#),
    row("hardware.pci-devices[].slot", r#""hostpci0""#, r#""hostpci1""#).with(PCI).then(Leaves("undeclared")),
    row("hardware.pci-devices[].device", r#""0000:01:00.0""#, r#""0000:02:00.0""#),
    row("hardware.pci-devices[].mapping", r#""gpu""#, r#""nic""#).with(PCI),
    row("hardware.pci-devices[].pcie", "true", "false").with(PCI),
    row("hardware.pci-devices[].x-vga", "true", "false").with(PCI),
    row("hardware.pci-devices[].rom-bar", "false", "true").with(PCI),
    row("hardware.pci-devices[].mdev", r#""nvidia-11""#, r#""nvidia-12""#).with(PCI),
    row("hardware.usb-devices[].slot", r#""usb0""#, r#""usb1""#).with(USB).then(Leaves("undeclared")),
    row("hardware.usb-devices[].host", r#""1234:abcd""#, r#""1-2""#),
    row("hardware.usb-devices[].mapping", r#""dongle""#, r#""key""#).with(USB),
    row("hardware.usb-devices[].usb3", "true", "false").with(USB),
    row("hardware.rng.source", r#""/dev/urandom""#, r#""/dev/random""#),
    row("hardware.rng.max-bytes", "1024", "2048").with(RNG),
    row("hardware.rng.period", "1000", "2000").with(RNG),
    row("hardware.watchdog.model", r#""i6300esb""#, r#""ib700""#),
    row("hardware.watchdog.action", r#""reset""#, r#""none""#),
    row("hardware.audio.device", r#""ich9-intel-hda""#, r#""AC97""#),
    row("hardware.audio.driver", r#""spice""#, r#""none""#).with(r#"{"hardware": {"audio": {"device": "AC97"}}}"#),
    row("hardware.virtiofs[].slot", r#""virtiofs0""#, r#""virtiofs1""#).with(FOLDER).then(Leaves("undeclared")),
    row("hardware.virtiofs[].dirid", r#""media""#, r#""music""#).with(FOLDER),
    row("hardware.virtiofs[].cache", r#""auto""#, r#""never""#).with(FOLDER),
    row("hardware.virtiofs[].direct-io", "true", "false").with(FOLDER),
    row("hardware.virtiofs[].expose-acl", "true", "false").with(FOLDER),
    row("hardware.virtiofs[].expose-xattr", "false", "true").with(FOLDER),
    row("hardware.sockets", "1", "2"),
    row("hardware.numa", "false", "true"),
    // options
    row("options.onboot", "true", "false"),
    row("options.startup", "1", r#""order=2,up=5""#),
    row("options.startup.order", "1", "2"),
    row("options.startup.up", "30", "60"),
    row("options.startup.down", "30", "60"),
    row("options.protection", "false", "true"),
    row("options.agent", "true", "false"),
    row("options.agent.enabled", "true", "false"),
    row("options.agent.type", r#""virtio""#, r#""isa""#).with(AGENT),
    row("options.agent.fstrim", "true", "false").with(AGENT),
    row("options.agent.freeze-fs", "false", "true").with(AGENT),
    row("options.acpi", "true", "false"),
    row("options.tablet", "false", "true"),
    row("options.kvm", "true", "false"),
    row("options.hotplug", r#"["network", "disk"]"#, "[]"),
    row("options.boot-order", r#"["scsi0"]"#, r#"["net0", "scsi0"]"#),
    row("options.localtime", "true", "false"),
    row("options.keyboard", r#""de""#, r#""en-us""#),
    row("options.hookscript", r#""nfs:snippets/a.yaml""#, r#""nfs:snippets/b.yaml""#),
    row("options.tdf", "true", "false"),
    row("options.hidden", "false", "true"),
    row("options.nested-virt", "true", "false"),
    // cloud-init-data
    row("cloud-init-data.ci-user", r#""ops""#, r#""dev""#).with(CLOUD_INIT),
    row("cloud-init-data.ci-password-ref", r#""cloud-init.passwords.one""#, r#""cloud-init.passwords.two""#).then(Ignored),
    row(
        "cloud-init-data.ssh-keys",
        r#"["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZpeHR1cmUta2V5LWZvci10ZXN0cy1vbmx5LTAwMDAwMDAx ops@a"]"#,
        r#"["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZpeHR1cmUta2V5LWZvci10ZXN0cy1vbmx5LTAwMDAwMDAy other key=b"]"#,
    )
    .with(CLOUD_INIT),
    row("cloud-init-data.ssh-key-refs", r#"["cloud-init.ssh-keys.one"]"#, r#"["cloud-init.ssh-keys.one", "cloud-init.ssh-keys.two"]"#),
    row("cloud-init-data.nameservers", r#"["192.0.2.53"]"#, r#"["192.0.2.54", "2001:db8::53"]"#).with(CLOUD_INIT),
    row("cloud-init-data.search-domains", r#"["example.org"]"#, r#"["example.net", "example.org"]"#),
    row("cloud-init-data.ipconfigs[].nic", "0", r#""net1""#).with(r#"{"cloud-init-data": {"ipconfigs": [{"ip": "dhcp"}]}}"#),
    row("cloud-init-data.ipconfigs[].ip", r#""dhcp""#, r#""192.0.2.10/24""#).with(CLOUD_INIT),
    row("cloud-init-data.ipconfigs[].gateway", r#""192.0.2.1""#, r#""192.0.2.2""#).with(ADDRESS),
    row("cloud-init-data.ipconfigs[].ip6", r#""auto""#, r#""dhcp""#),
    row("cloud-init-data.ipconfigs[].gateway6", r#""2001:db8::1""#, r#""2001:db8::2""#).with(ADDRESS6),
    row("cloud-init-data.upgrade", "false", "true"),
    row("cloud-init-data.type", r#""nocloud""#, r#""configdrive2""#),
    row("cloud-init-data.custom.user", r#""nfs:snippets/a.yaml""#, r#""nfs:snippets/b.yaml""#),
    row("cloud-init-data.custom.meta", r#""nfs:snippets/a.yaml""#, r#""nfs:snippets/b.yaml""#),
    row("cloud-init-data.custom.network", r#""nfs:snippets/a.yaml""#, r#""nfs:snippets/b.yaml""#),
    row("cloud-init-data.custom.vendor", r#""nfs:snippets/a.yaml""#, r#""nfs:snippets/b.yaml""#),
];
