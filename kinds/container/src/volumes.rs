//! Volumes and bind mounts: `local-lvm:vm-201-disk-0,mp=/data,backup=1,size=8G` (fact L9).

use crate::paths::normalised;
use crate::rows::{Row, flag, store};
use crate::spec::{BindMount, Device, MOUNT_OPTIONS, MountPoint, MountPointOptions, Root};
use proxops_kind::text::{parse_bool, split_list};
use proxops_kind::{Props, Size, Table, Words};

/// The volume stands first, without its key.
pub static TABLE: Table = Table::with_default("volume");
/// Keys that are never owned as options.
pub const STRUCTURE: &[&str] = &["volume", "size"];

/// The options of the root volume.
pub static ROOT: &[Row<Root>] = &[
    Row::<Root>::new(
        "mountoptions",
        "/mount-options",
        |r| r.mount_options.as_ref().map(joined),
        |r, v| store(&mut r.mount_options, known_options(v)),
    )
    .normal(same_options),
    Row::<Root>::new("acl", "/acl", |r| flag(r.acl), |r, v| store(&mut r.acl, parse_bool(v))).boolean(None),
    Row::<Root>::new("quota", "/quota", |r| flag(r.quota), |r, v| store(&mut r.quota, parse_bool(v)))
        .boolean(Some(false)),
    Row::<Root>::new(
        "replicate",
        "/replicate",
        |r| flag(r.replicate),
        |r, v| store(&mut r.replicate, parse_bool(v)),
    )
    .boolean(Some(true)),
];

fn options(mount: &MountPoint) -> Option<&MountPointOptions> {
    mount.options.as_ref()
}

fn options_mut(mount: &mut MountPoint) -> &mut MountPointOptions {
    mount.options.get_or_insert_default()
}

/// The options of a mount point, its path included.
pub static MOUNT_POINT: &[Row<MountPoint>] = &[
    Row::<MountPoint>::new(
        "mp",
        "/mount-point",
        |m| Some(normalised(&m.mount_point)),
        |m, v| {
            m.mount_point = v.to_owned();
            true
        },
    )
    .normal(normalised),
    Row::<MountPoint>::new(
        "ro",
        "/options/read-only",
        |m| flag(options(m)?.read_only),
        |m, v| store(&mut options_mut(m).read_only, parse_bool(v)),
    )
    .boolean(Some(false)),
    Row::<MountPoint>::new(
        "backup",
        "/options/backup",
        |m| flag(options(m)?.backup),
        |m, v| store(&mut options_mut(m).backup, parse_bool(v)),
    )
    .boolean(Some(false)),
    Row::<MountPoint>::new(
        "acl",
        "/options/acl",
        |m| flag(options(m)?.acl),
        |m, v| store(&mut options_mut(m).acl, parse_bool(v)),
    )
    .boolean(None),
    Row::<MountPoint>::new(
        "quota",
        "/options/quota",
        |m| flag(options(m)?.quota),
        |m, v| store(&mut options_mut(m).quota, parse_bool(v)),
    )
    .boolean(Some(false)),
    Row::<MountPoint>::new(
        "shared",
        "/options/shared",
        |m| flag(options(m)?.shared),
        |m, v| store(&mut options_mut(m).shared, parse_bool(v)),
    )
    .boolean(Some(false)),
    Row::<MountPoint>::new(
        "replicate",
        "/options/replicate",
        |m| flag(options(m)?.replicate),
        |m, v| store(&mut options_mut(m).replicate, parse_bool(v)),
    )
    .boolean(Some(true)),
    Row::<MountPoint>::new(
        "mountoptions",
        "/options/mount-options",
        |m| options(m)?.mount_options.as_ref().map(joined),
        |m, v| store(&mut options_mut(m).mount_options, known_options(v)),
    )
    .normal(same_options),
];

/// The options of a bind mount. The folder itself is never re-pointed.
pub static BIND_MOUNT: &[Row<BindMount>] = &[
    Row::<BindMount>::new(
        "mp",
        "/mount-point",
        |b| Some(normalised(&b.mount_point)),
        |b, v| {
            b.mount_point = v.to_owned();
            true
        },
    )
    .normal(normalised),
    Row::<BindMount>::new(
        "ro",
        "/read-only",
        |b| flag(b.read_only),
        |b, v| store(&mut b.read_only, parse_bool(v)),
    )
    .boolean(Some(false)),
];

/// The path of a device stands first, without its key.
pub static DEVICE_TABLE: Table = Table::with_default("path");

/// The keys of a passed-through device.
pub static DEVICE: &[Row<Device>] = &[
    Row::<Device>::new(
        "path",
        "/path",
        |d| Some(normalised(&d.path)),
        |d, v| {
            d.path = v.to_owned();
            true
        },
    ),
    Row::<Device>::new("mode", "/mode", |d| d.mode.clone(), |d, v| store(&mut d.mode, Some(v.to_owned()))),
    Row::<Device>::new(
        "uid",
        "/uid",
        |d| d.uid.map(|n| n.to_string()),
        |d, v| store(&mut d.uid, v.parse().ok()),
    )
    .number()
    .default("0"),
    Row::<Device>::new(
        "gid",
        "/gid",
        |d| d.gid.map(|n| n.to_string()),
        |d, v| store(&mut d.gid, v.parse().ok()),
    )
    .number()
    .default("0"),
    Row::<Device>::new(
        "deny-write",
        "/deny-write",
        |d| flag(d.deny_write),
        |d, v| store(&mut d.deny_write, parse_bool(v)),
    )
    .boolean(Some(false)),
];

fn joined(options: &Words) -> String {
    same_options(&options.join(";"))
}

/// Options that PVE knows; `None` when there is another one.
fn known_options(text: &str) -> Option<Words> {
    Some(Words::parse(text)).filter(|words| words.iter().all(|word| MOUNT_OPTIONS.contains(&word)))
}

fn same_options(text: &str) -> String {
    let mut words: Vec<&str> = split_list(text).collect();
    words.sort_unstable();
    words.dedup();
    words.join(";")
}

/// `<storage>:<GiB>`: PVE allocates a volume. Only ever sent for an empty slot (fact L16).
pub fn allocation(storage: &str, size: Size) -> Props {
    let mut props = Props::new(&TABLE);
    props.set("volume", format!("{storage}:{}", size.gib()));
    props
}

/// A live volume: its storage, or that it is no volume of a storage.
pub enum Holds<'a> {
    /// A volume of this storage.
    Volume {
        /// The storage's name.
        storage: &'a str,
    },
    /// A folder or device of the node.
    HostPath(&'a str),
}

/// What a live property string mounts (fact L9).
pub fn holds(props: &Props) -> Holds<'_> {
    let volume = props.get("volume").unwrap_or_default();
    if volume.starts_with('/') {
        return Holds::HostPath(volume);
    }
    Holds::Volume { storage: volume.split_once(':').map_or(volume, |(storage, _)| storage) }
}

/// The size that a live property string tells.
pub fn size(props: &Props) -> Option<Size> {
    props.get("size").and_then(Size::parse_pve)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{merge, write_new};
    use proxops_kind::size::{GIB, MIB};

    #[test]
    fn the_live_form_keeps_volume_and_foreign_tokens() {
        let mut live =
            Props::parse("local-lvm:vm-201-disk-1,mp=/data,backup=1,idmap=passthrough,size=4G", &TABLE);
        let wanted =
            MountPoint { mount_point: "/srv/".into(), storage: "local-lvm".into(), ..MountPoint::default() };
        assert!(merge(MOUNT_POINT, &wanted, &mut live));
        assert_eq!(live.to_string(), "local-lvm:vm-201-disk-1,mp=/srv,backup=1,idmap=passthrough,size=4G");
    }

    #[test]
    fn defaults_are_no_difference() {
        let mut live = Props::parse("local-lvm:vm-201-disk-1,mp=/data,size=4G", &TABLE);
        let options = MountPointOptions {
            read_only: Some(false),
            backup: Some(false),
            replicate: Some(true),
            mount_options: Some(Words::default()),
            ..MountPointOptions::default()
        };
        let wanted = MountPoint {
            mount_point: "/data".into(),
            options: Some(options.clone()),
            ..MountPoint::default()
        };
        assert!(!merge(MOUNT_POINT, &wanted, &mut live));
        // An absent acl is the file system's default, which is not the same as switched off.
        let options = MountPointOptions { acl: Some(false), ..options };
        let wanted =
            MountPoint { mount_point: "/data".into(), options: Some(options), ..MountPoint::default() };
        assert!(merge(MOUNT_POINT, &wanted, &mut live));
        assert_eq!(live.get("acl"), Some("0"));
    }

    #[test]
    fn a_new_volume_has_its_size_in_gib() {
        assert_eq!(allocation("local-lvm", Size(4 * GIB)).to_string(), "local-lvm:4");
        let mut props = allocation("local-lvm", Size(4 * GIB + 512 * MIB));
        let wanted = MountPoint {
            mount_point: "/data".into(),
            options: Some(MountPointOptions {
                backup: Some(true),
                mount_options: Some(Words::parse("nosuid noatime")),
                ..MountPointOptions::default()
            }),
            ..MountPoint::default()
        };
        write_new(MOUNT_POINT, &wanted, &mut props);
        assert_eq!(props.to_string(), "local-lvm:4.5,mp=/data,backup=1,mountoptions=noatime;nosuid");
    }
}
