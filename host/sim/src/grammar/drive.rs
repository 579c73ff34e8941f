//! Drives of a VM: the common keys of all buses and what each bus adds (facts Q6 to Q12).

use super::{Param, Table, alias, flag, int, num, one_of, text};

const COMMON: &[Param] = &[
    one_of("aio", "native threads io_uring"),
    flag("backup"),
    int("bps"),
    int("bps_max_length").min(1),
    int("bps_rd"),
    alias("bps_rd_length", "bps_rd_max_length"),
    int("bps_rd_max_length").min(1),
    int("bps_wr"),
    alias("bps_wr_length", "bps_wr_max_length"),
    int("bps_wr_max_length").min(1),
    one_of("cache", "none writethrough writeback unsafe directsync"),
    flag("detect_zeroes"),
    one_of("discard", "ignore on"),
    text("file").req().bare().of("pve-volume-id-or-qm-path"),
    one_of("format", "raw qcow qed qcow2 vmdk cloop"),
    int("iops"),
    int("iops_max"),
    int("iops_max_length").min(1),
    int("iops_rd"),
    alias("iops_rd_length", "iops_rd_max_length"),
    int("iops_rd_max"),
    int("iops_rd_max_length").min(1),
    int("iops_wr"),
    alias("iops_wr_length", "iops_wr_max_length"),
    int("iops_wr_max"),
    int("iops_wr_max_length").min(1),
    num("mbps"),
    num("mbps_max"),
    num("mbps_rd"),
    num("mbps_rd_max"),
    num("mbps_wr"),
    num("mbps_wr_max"),
    one_of("media", "cdrom disk"),
    flag("replicate"),
    one_of("rerror", "ignore report stop"),
    text("serial").max_len(60).of("urlencoded"),
    flag("shared"),
    text("size").of("disk-size"),
    flag("snapshot"),
    alias("volume", "file"),
    one_of("werror", "enospc ignore report stop"),
];
const SOURCE: &[Param] = &[text("import-from").of("pve-volume-id-or-absolute-path")];
const SSD: &[Param] = &[flag("ssd"), text("wwn").re("(?:^(0x)[0-9a-fA-F]{16})")];
const MODEL: &[Param] = &[text("model").max_len(120).of("urlencoded")];
const FAST: &[Param] = &[flag("iothread"), flag("ro")];
const SCSI_ONLY: &[Param] = &[
    text("product").re(r"[A-Za-z0-9\-_\s]{0,16}"),
    int("queues").min(2),
    flag("scsiblock"),
    text("vendor").re(r"[A-Za-z0-9\-_\s]{0,8}"),
];

/// `ide[n]`.
pub const IDE: Table = &[COMMON, SOURCE, SSD, MODEL];
/// `sata[n]`.
pub const SATA: Table = &[COMMON, SOURCE, SSD];
/// `scsi[n]`.
pub const SCSI: Table = &[COMMON, SOURCE, SSD, FAST, SCSI_ONLY];
/// `virtio[n]`.
pub const VIRTIO: Table = &[COMMON, SOURCE, FAST];
/// `cdrom`, the old name of ide2.
pub const CDROM: Table = &[COMMON, SSD, MODEL];
/// `efidisk0` (fact Q10).
pub const EFIDISK: Table = &[&[
    one_of("efitype", "2m 4m"),
    text("file").req().bare().of("pve-volume-id-or-qm-path"),
    one_of("format", "raw qcow qed qcow2 vmdk cloop"),
    text("import-from").of("pve-volume-id-or-absolute-path"),
    one_of("ms-cert", "2011 2023 2023w 2023k"),
    flag("pre-enrolled-keys"),
    text("size").of("disk-size"),
    alias("volume", "file"),
]];
/// `tpmstate0` (fact Q12).
pub const TPMSTATE: Table = &[&[
    text("file").req().bare().of("pve-volume-id-or-qm-path"),
    one_of("format", "raw qcow2 vmdk"),
    text("import-from").of("pve-volume-id-or-absolute-path"),
    text("size").of("disk-size"),
    one_of("version", "v1.2 v2.0"),
    alias("volume", "file"),
]];

/// Every slot of a VM that holds a drive, in the order in which PVE walks them.
pub const SLOTS: &str = "ide0 ide1 ide2 ide3 scsi0 scsi1 scsi2 scsi3 scsi4 scsi5 scsi6 scsi7 scsi8 scsi9 scsi10 \
    scsi11 scsi12 scsi13 scsi14 scsi15 scsi16 scsi17 scsi18 scsi19 scsi20 scsi21 scsi22 scsi23 scsi24 scsi25 \
    scsi26 scsi27 scsi28 scsi29 scsi30 virtio0 virtio1 virtio2 virtio3 virtio4 virtio5 virtio6 virtio7 virtio8 \
    virtio9 virtio10 virtio11 virtio12 virtio13 virtio14 virtio15 sata0 sata1 sata2 sata3 sata4 sata5 efidisk0 \
    tpmstate0";

/// The grammar of a drive slot; `None` for anything else.
pub fn table(slot: &str) -> Option<Table> {
    match slot {
        "efidisk0" => return Some(EFIDISK),
        "tpmstate0" => return Some(TPMSTATE),
        _ => {}
    }
    let (bus, index) = super::split_index(slot)?;
    match bus {
        "ide" if index < 4 => Some(IDE),
        "sata" if index < 6 => Some(SATA),
        "scsi" if index < 31 => Some(SCSI),
        "virtio" if index < 16 => Some(VIRTIO),
        _ => None,
    }
}
