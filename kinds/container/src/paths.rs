//! Paths inside a container and on its node.

/// Folders that belong to the node's system: PVE warns against handing them to a container. What is
/// below them is refused as well.
const SYSTEM: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var/lib/pve-cluster",
    "/var/lib/pve-manager",
    "/var/log",
    "/var/run",
];
/// Refused themselves; what is below them may be a folder of data.
const SYSTEM_ITSELF: &[&str] = &["/", "/var", "/var/lib"];

/// The path without doubled and trailing slashes, as PVE mounts it.
pub fn normalised(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    format!("/{}", parts.join("/"))
}

/// Checks an absolute path. The error completes the sentence "`field` ...".
pub fn check_absolute(path: &str) -> Result<(), String> {
    let odd = |c: char| c == ',' || c.is_control();
    if !path.starts_with('/') {
        Err("must be an absolute path such as /srv/data".to_owned())
    } else if path.split('/').any(|part| part == "." || part == "..") {
        Err("must not hold '.' or '..' as a part, which PVE refuses".to_owned())
    } else if path.contains(odd) {
        Err("must not hold a comma or a control character, which PVE's property strings can't carry"
            .to_owned())
    } else {
        Ok(())
    }
}

/// Checks a mount point inside the container.
pub fn check_mount_point(path: &str) -> Result<(), String> {
    check_absolute(path)?;
    if normalised(path) == "/" {
        Err("must not be /, which is the root volume's place".to_owned())
    } else {
        Ok(())
    }
}

/// Checks a folder of the node that is mounted into the container. Below /dev it is a block device, which
/// PVE mounts as a file system (fact L9).
pub fn check_host_path(path: &str) -> Result<(), String> {
    check_absolute(path)?;
    if path.contains('=') {
        return Err("must not hold '=', which PVE would read as a key".to_owned());
    }
    let path = normalised(path);
    let below = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    let device = path.starts_with("/dev/");
    let system = SYSTEM.iter().chain(SYSTEM_ITSELF).any(|folder| path == *folder)
        || SYSTEM.iter().any(|folder| below(folder));
    if system && !device {
        Err(format!("must not be {path}, a folder of the node's own system"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_folders_are_refused_however_they_are_written() {
        for path in [
            "/",
            "//",
            "/etc",
            "/etc/",
            "//etc",
            "/etc/pve",
            "/proc/1",
            "/var",
            "/var/lib",
            "/dev",
            "/usr/share",
        ] {
            assert!(check_host_path(path).unwrap_err().contains("own system"), "{path}");
        }
        for path in
            ["/mnt/data", "/srv/x", "/var/lib/vz/share", "/tank/media", "/etcetera", "/dev/sdb1", "/home/ops"]
        {
            assert_eq!(check_host_path(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn a_path_is_absolute_and_plain() {
        for path in ["srv", "", "/a/../b", "/a/./b", "/a,b", "/a\nb"] {
            assert!(check_host_path(path).is_err(), "{path:?}");
            assert!(check_mount_point(path).is_err(), "{path:?}");
        }
        assert!(check_host_path("/srv/a=b").unwrap_err().contains('='));
        assert!(check_mount_point("/").is_err());
        assert_eq!(check_mount_point("/data"), Ok(()));
    }

    #[test]
    fn slashes_are_normalised() {
        assert_eq!(normalised("//srv///x/"), "/srv/x");
        assert_eq!(normalised("/"), "/");
    }
}
