//! What a refusal of PVE means: one table from texts to classes, for HTTP answers and task ends alike.

use std::collections::BTreeMap;

/// What kind of failure it is, which decides what may be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// A parameter or request that PVE will never accept as it is.
    Invalid,
    /// The credential was refused.
    Auth,
    /// The credential lacks a privilege, or only a root@pam ticket may do this.
    Forbidden,
    /// The guest does not exist on that node.
    NotFound,
    /// The vmid, file or object exists already.
    Taken,
    /// The guest is locked by an operation of this name (backup, clone, migrate, ...).
    Locked(String),
    /// A lock was not free in time; nothing was done, so the request may be repeated.
    Busy,
    /// The configuration changed since its digest was read.
    Conflict,
    /// Protection mode forbids it.
    Protected,
    /// The guest runs, or does not run, and that is in the way.
    PowerState,
    /// Not possible with, or only possible with, a template.
    Template,
    /// A storage or volume is missing, disabled, offline or of the wrong sort.
    Storage,
    /// The storage is full.
    NoSpace,
    /// The cluster has no quorum: reads work, writes do not (fact C13).
    NoQuorum,
    /// HA or a replication job holds the guest.
    HaManaged,
    /// PVE answered, but it can't reach the node concerned (fact T23).
    NodeUnreachable,
    /// This PVE does not know the path or verb.
    Unsupported,
    /// The answer is not PVE's.
    NotJson,
    /// A write or task that may or may not have had an effect: re-read before anything else.
    UnknownOutcome,
    /// No connection, or it broke during a read. A write of this class was never sent.
    Connect,
    /// The server's certificate or TLS itself was refused.
    Tls,
    /// Any other failure that PVE reports. A 500 never means "nothing happened" (fact R8).
    Server,
}

impl Class {
    /// By one text of PVE, such as the exit status of a task.
    pub fn of_text(text: &str) -> Self {
        lookup(text).unwrap_or(Self::Server)
    }

    /// By an HTTP answer of 400 or above. 401, 403 and 501 say it all; elsewhere the text is more
    /// precise than the status.
    pub(crate) fn of_answer(status: u16, message: &str, errors: &BTreeMap<String, String>) -> Self {
        match status {
            401 => Self::Auth,
            403 => Self::Forbidden,
            501 => Self::Unsupported,
            595..=599 => Self::NodeUnreachable,
            502..=504 => Self::Connect,
            _ => std::iter::once(message)
                .chain(errors.values().map(String::as_str))
                .find_map(lookup)
                .unwrap_or(if status == 400 { Self::Invalid } else { Self::Server }),
        }
    }
}

/// Statuses that say nothing about whether the request was carried out: a proxy in front of PVE, or
/// PVE's own hop to another node (facts T23, T24).
pub(crate) fn is_gateway(status: u16) -> bool {
    matches!(status, 502..=504 | 595..=599)
}

/// Patterns: `*` any text, `#` digits, the rest literal and anywhere in the line. The first that fits wins.
/// Table E of the facts unless a fact is named.
static TABLE: &[(&str, Class)] = &[
    ("VM is locked (*)", Class::Locked(String::new())),
    ("CT is locked (*)", Class::Locked(String::new())),
    ("cluster not ready - no quorum?", Class::NoQuorum),
    ("cfs-lock '*' error: no quorum!", Class::NoQuorum),
    ("can't lock file '*' - got timeout", Class::Busy),
    ("got lock request timeout", Class::Busy),
    ("got lock timeout", Class::Busy),
    // R8: the guest may be left behind, locked
    ("got no worker upid", Class::UnknownOutcome),
    // U3: the task's own end is not known
    ("unable to get last line from task log", Class::UnknownOutcome),
    ("Configuration file 'nodes/*/qemu-server/#.conf' does not exist", Class::NotFound),
    ("Configuration file 'nodes/*/lxc/#.conf' does not exist", Class::NotFound),
    ("unable to find configuration file for VM # on node '", Class::NotFound),
    ("unable to find configuration file for CT # on node '", Class::NotFound),
    ("VM # already exists", Class::Taken),
    ("CT # already exists", Class::Taken),
    ("unable to create VM #: config file already exists", Class::Taken),
    ("unable to create CT #: config file already exists", Class::Taken),
    ("close (rename) atomic file '*' failed: File exists", Class::Taken),
    // C10
    ("pool '*' already exists", Class::Taken),
    ("VM # is already a pool member", Class::Taken),
    // S5
    ("refusing to override existing file '", Class::Taken),
    ("checksum mismatch (file change by other user?)", Class::Conflict),
    ("detected modified configuration - file changed by other user?", Class::Conflict),
    // S5: the download is not what the manifest promised
    ("checksum mismatch: got '", Class::Invalid),
    ("can't remove VM # - protection mode enabled", Class::Protected),
    ("can't remove CT # - protection mode enabled", Class::Protected),
    ("can't remove drive '*' - protection mode enabled", Class::Protected),
    ("can't remove unused disk '*' - protection mode enabled", Class::Protected),
    ("can't update CT # drive '*' - protection mode enabled", Class::Protected),
    ("you can't start a vm if it's a template", Class::Template),
    ("you can't start a CT if it's a template", Class::Template),
    ("you can't convert a template to a template", Class::Template),
    ("you can't convert a VM to template if VM is running", Class::Template),
    ("you can't convert a CT to template if", Class::Template),
    ("VM # is running - destroy failed", Class::PowerState),
    ("unable to destroy CT # - container is running", Class::PowerState),
    ("VM # already running", Class::PowerState),
    ("CT # already running", Class::PowerState),
    ("VM # not running", Class::PowerState),
    ("CT # not running", Class::PowerState),
    ("VM # is not running", Class::PowerState),
    // Q12
    ("cannot clone TPM state while VM is running", Class::PowerState),
    // Q48
    ("VM is paused - cannot shutdown", Class::PowerState),
    ("VM quit/powerdown failed", Class::PowerState),
    // agent
    ("No QEMU guest agent configured", Class::PowerState),
    ("QEMU guest agent is not running", Class::PowerState),
    // S14
    ("not enough free space (", Class::NoSpace),
    ("No space left on device", Class::NoSpace),
    ("Disk quota exceeded", Class::NoSpace),
    ("lvcreate '*' error: *free space", Class::NoSpace),
    ("zfs error: *out of space", Class::NoSpace),
    ("lvcreate '*' error:", Class::Storage),
    ("zfs error:", Class::Storage),
    ("storage '*' does not exist", Class::Storage),
    ("storage '*' is disabled", Class::Storage),
    ("storage '*' is not available on node '", Class::Storage),
    ("storage '*' is not online", Class::Storage),
    ("storage '*' is not configured for content-type '", Class::Storage),
    ("storage '*' does not support", Class::Storage),
    ("No such storage.", Class::Storage),
    ("volume '*' does not exist", Class::Storage),
    ("volume * does not exist", Class::Storage),
    ("unable to parse volume ID '", Class::Storage),
    ("base volume '*' is still in use by linked clone", Class::Storage),
    // Q38
    ("can't clone VM to node '*' (VM uses local storage)", Class::Storage),
    ("can't clone CT to node '*' (CT uses local storage)", Class::Storage),
    ("used in HA resources and purge parameter not set", Class::HaManaged),
    ("There is a replication job '*' for guest '#'", Class::HaManaged),
    ("Permission check failed", Class::Forbidden),
    ("only root can set '*' config", Class::Forbidden),
    ("Only root can pass arbitrary filesystem paths", Class::Forbidden),
    ("Only root may use this option", Class::Forbidden),
    ("Authentication failed!", Class::Auth),
    ("authentication failure", Class::Auth),
    ("No ticket", Class::Auth),
    ("Permission denied - invalid csrf token", Class::Auth),
    // T25
    ("hostname lookup '*' failed", Class::NodeUnreachable),
    ("proxy loop detected", Class::NodeUnreachable),
    ("unable to parse drive options", Class::Invalid),
    ("unable to parse value of '", Class::Invalid),
    // Q9, Q12, Q17, Q19, Q22, Q28, Q38, Q42, L2, L5, L18, L19: plain 500 that no repetition changes
    ("invalid bootorder: device '", Class::Invalid),
    ("SSH public key validation error", Class::Invalid),
    ("no options specified", Class::Invalid),
    ("parameter '*' not allowed for linked clones", Class::Invalid),
    ("shrinking disks is not supported", Class::Invalid),
    ("you can't resize a cdrom", Class::Invalid),
    ("disk '*' does not exist", Class::Invalid),
    ("cannot change TPM state version after creation", Class::Invalid),
    ("cloud-init drive is already attached at '", Class::Invalid),
    ("mount points configured, but 'rootfs' not set", Class::Invalid),
    ("unable to clone mountpoint '*' (type bind)", Class::Invalid),
    ("unable to shrink disk size", Class::Invalid),
    ("unable to modify read-only option: '", Class::Invalid),
    ("unable to delete read-only option: '", Class::Invalid),
    ("unable to delete required option '", Class::Invalid),
];

fn lookup(text: &str) -> Option<Class> {
    let (pattern, class) = TABLE.iter().find(|(pattern, _)| occurs(pattern, text))?;
    Some(match class {
        Class::Locked(_) => Class::Locked(lock_name(text, pattern)),
        other => other.clone(),
    })
}

/// What stands in the brackets of "VM is locked (backup)".
fn lock_name(text: &str, pattern: &str) -> String {
    let head = pattern.split('*').next().unwrap_or(pattern);
    let rest = text.split_once(head).map_or("", |(_, rest)| rest);
    rest.split_once(')').map_or(rest, |(name, _)| name).to_owned()
}

/// Whether the pattern fits somewhere in the text.
fn occurs(pattern: &str, text: &str) -> bool {
    let literal = pattern.find(['*', '#']).unwrap_or(pattern.len());
    let (head, tail) = pattern.split_at(literal);
    text.match_indices(head).any(|(at, _)| continues(tail, text.get(at + head.len()..).unwrap_or("")))
}

/// Whether the text goes on as the rest of the pattern, which is empty or starts with a wildcard, says.
fn continues(pattern: &str, text: &str) -> bool {
    if let Some(pattern) = pattern.strip_prefix('*') {
        return occurs(pattern, text);
    }
    let Some(pattern) = pattern.strip_prefix('#') else { return pattern.is_empty() };
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let literal = pattern.find(['*', '#']).unwrap_or(pattern.len());
    let (head, tail) = pattern.split_at(literal);
    rest.len() < text.len() && rest.strip_prefix(head).is_some_and(|rest| continues(tail, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The literal texts of table E and the facts named in the table above, with values put in.
    fn rows() -> Vec<(&'static str, Class)> {
        use Class::*;
        vec![
            ("VM is locked (backup)", Locked("backup".into())),
            ("CT is locked (snapshot-delete)", Locked("snapshot-delete".into())),
            ("cluster not ready - no quorum?", NoQuorum),
            ("cfs-lock 'file-user_cfg' error: no quorum!", NoQuorum),
            ("can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout", Busy),
            ("can't lock file '/run/lock/lxc/pve-config-200.lock' - got timeout", Busy),
            ("cfs-lock 'storage-local' error: got lock request timeout", Busy),
            ("trying to acquire cfs lock ... got lock timeout", Busy),
            ("got no worker upid - start worker failed", UnknownOutcome),
            ("unable to get last line from task log - No such file or directory", UnknownOutcome),
            ("Configuration file 'nodes/pve01/qemu-server/101.conf' does not exist", NotFound),
            ("Configuration file 'nodes/pve01/lxc/200.conf' does not exist", NotFound),
            ("unable to find configuration file for VM 101 on node 'pve01'", NotFound),
            ("unable to find configuration file for CT 200 on node 'pve01'", NotFound),
            ("unable to create VM 101 - VM 101 already exists on node 'pve02'", Taken),
            ("unable to create VM 101 - CT 101 already exists on node 'pve02'", Taken),
            ("CT 200 already exists on node 'pve01'", Taken),
            ("VM 101 already exists", Taken),
            ("unable to create VM 101: config file already exists", Taken),
            ("unable to create CT 200: config file already exists", Taken),
            ("close (rename) atomic file '/etc/pve/nodes/a/qemu-server/9.conf' failed: File exists", Taken),
            ("pool 'prod' already exists", Taken),
            ("VM 101 is already a pool member", Taken),
            ("refusing to override existing file '/var/lib/vz/template/iso/x.iso'", Taken),
            ("checksum mismatch (file change by other user?)", Conflict),
            ("detected modified configuration - file changed by other user? Try again.", Conflict),
            ("checksum mismatch: got 'aa' != expect 'bb', aborting", Invalid),
            ("can't remove VM 101 - protection mode enabled", Protected),
            ("can't remove CT 200 - protection mode enabled", Protected),
            ("can't remove drive 'scsi1' - protection mode enabled", Protected),
            ("can't remove unused disk 'unused0' - protection mode enabled", Protected),
            ("can't update CT 200 drive 'mp0' - protection mode enabled", Protected),
            ("you can't start a vm if it's a template", Template),
            ("you can't start a CT if it's a template", Template),
            ("you can't convert a template to a template", Template),
            ("you can't convert a VM to template if VM is running", Template),
            ("you can't convert a CT to template if the CT is running", Template),
            ("VM 101 is running - destroy failed", PowerState),
            ("unable to destroy CT 200 - container is running", PowerState),
            ("VM 101 already running", PowerState),
            ("CT 200 already running", PowerState),
            ("VM 101 not running", PowerState),
            ("CT 200 not running", PowerState),
            ("VM 101 is not running", PowerState),
            ("cannot clone TPM state while VM is running", PowerState),
            ("VM is paused - cannot shutdown", PowerState),
            ("VM quit/powerdown failed - got timeout", PowerState),
            ("No QEMU guest agent configured", PowerState),
            ("QEMU guest agent is not running", PowerState),
            ("unable to create VM 101 - not enough free space (10 < 20)", NoSpace),
            ("write failed: No space left on device", NoSpace),
            ("write failed: Disk quota exceeded", NoSpace),
            ("lvcreate 'pve/vm-1-disk-0' error: Volume group \"pve\" has insufficient free space", NoSpace),
            ("zfs error: cannot create 'rpool/vm-1-disk-0': out of space", NoSpace),
            ("lvcreate 'pve/vm-1-cloudinit' error: Logical Volume already exists", Storage),
            ("zfs error: cannot open 'rpool': no such pool", Storage),
            ("storage 'nope' does not exist", Storage),
            ("storage 'nas' is disabled", Storage),
            ("storage 'nas' is not available on node 'pve01'", Storage),
            ("storage 'nas' is not online", Storage),
            ("storage 'nas' is not configured for content-type 'iso'", Storage),
            ("storage 'local' does not support content-type 'images'", Storage),
            ("No such storage.", Storage),
            ("unable to create CT 200 - volume 'local:vztmpl/x.tar.zst' does not exist", Storage),
            ("volume local:iso/x.iso does not exist", Storage),
            ("unable to parse volume ID 'x'", Storage),
            ("base volume 'local:base-1-disk-0' is still in use by linked cloned", Storage),
            ("can't clone VM to node 'pve02' (VM uses local storage)", Storage),
            ("can't clone CT to node 'pve02' (CT uses local storage)", Storage),
            ("unable to remove VM 101 - used in HA resources and purge parameter not set.", HaManaged),
            ("There is a replication job '101-0' for guest '101' - Please remove that first.", HaManaged),
            ("Permission check failed (/vms/101, VM.Allocate)", Forbidden),
            ("only root can set 'args' config", Forbidden),
            ("only root can set 'hostpci0' config for non-mapped devices", Forbidden),
            ("Only root can pass arbitrary filesystem paths. at /usr/share/perl5/x.pm line 3.", Forbidden),
            ("Only root may use this option.", Forbidden),
            ("Authentication failed!", Auth),
            ("authentication failure", Auth),
            ("No ticket", Auth),
            ("Permission denied - invalid csrf token", Auth),
            (
                "hostname lookup 'pve9' failed - failed to get address info for: pve9: Name unknown",
                NodeUnreachable,
            ),
            ("proxy loop detected", NodeUnreachable),
            ("unable to parse drive options", Invalid),
            ("unable to parse value of 'scsi0' - format error", Invalid),
            ("invalid bootorder: device 'scsi9' does not exist'", Invalid),
            ("SSH public key validation error", Invalid),
            ("no options specified", Invalid),
            ("parameter 'storage' not allowed for linked clones", Invalid),
            ("shrinking disks is not supported", Invalid),
            ("you can't resize a cdrom", Invalid),
            ("disk 'scsi7' does not exist", Invalid),
            ("cannot change TPM state version after creation", Invalid),
            ("ide2 - cloud-init drive is already attached at 'scsi1'", Invalid),
            ("mount points configured, but 'rootfs' not set - aborting", Invalid),
            ("unable to clone mountpoint 'mp0' (type bind)", Invalid),
            ("unable to shrink disk size", Invalid),
            ("unable to modify read-only option: 'unprivileged'", Invalid),
            ("unable to delete read-only option: 'unprivileged'", Invalid),
            ("unable to delete required option 'memory'", Invalid),
        ]
    }

    #[test]
    fn every_text_of_the_table_has_its_class() {
        for (text, class) in rows() {
            assert_eq!(Class::of_text(text), class, "{text}");
            let wrapped = format!("clone failed: {text}");
            assert_eq!(Class::of_text(&wrapped), class, "as part of a task's end: {text}");
        }
    }

    #[test]
    fn every_row_of_the_table_is_reached_by_a_text() {
        for (pattern, _) in TABLE {
            let reached = rows().iter().any(|(text, _)| {
                TABLE.iter().find(|(p, _)| occurs(p, text)).is_some_and(|(p, _)| p == pattern)
            });
            assert!(reached, "no text reaches {pattern}");
        }
    }

    #[test]
    fn a_digit_wildcard_takes_digits_only() {
        // Q20: not a guest that exists already
        assert_eq!(Class::of_text("unable to create VM 101 - disk image 'x' already exists"), Class::Server);
        assert_eq!(Class::of_text("VM  already running"), Class::Server);
    }

    #[test]
    fn the_status_decides_where_it_says_it_all() {
        let none = BTreeMap::new();
        for (status, class) in [
            (400, Class::Invalid),
            (401, Class::Auth),
            (403, Class::Forbidden),
            (500, Class::Server),
            (501, Class::Unsupported),
            (503, Class::Connect),
            (595, Class::NodeUnreachable),
            (596, Class::NodeUnreachable),
            (599, Class::NodeUnreachable),
        ] {
            assert_eq!(Class::of_answer(status, "something else", &none), class, "{status}");
        }
    }

    #[test]
    fn an_errors_map_is_looked_up_as_well() {
        let errors = BTreeMap::from([("storage".to_owned(), "No such storage.".to_owned())]);
        assert_eq!(Class::of_answer(400, "Parameter verification failed.", &errors), Class::Storage);
    }
}
