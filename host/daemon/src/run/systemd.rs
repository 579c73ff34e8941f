//! What systemd is told: readiness, the state in words, and signs of life. Nothing outside of systemd.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Sends one message to the socket that `NOTIFY_SOCKET` names. Never a reason to fail.
pub fn notify(message: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = send(&path, message) {
        tracing::debug!("systemd can't be told {message:?}: {error}");
    }
}

fn send(path: &std::ffi::OsStr, message: &str) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    let address = match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(path)?,
    };
    UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address).map(|_| ())
}

/// How often a sign of life is due: half of what the unit's `WatchdogSec` allows.
pub fn watchdog() -> Option<Duration> {
    let for_us = std::env::var("WATCHDOG_PID").map_or(true, |pid| pid == std::process::id().to_string());
    let micros: u64 = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    (for_us && micros > 0).then(|| Duration::from_micros(micros / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_reaches_a_socket_by_path_and_by_abstract_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        let mut buffer = [0; 16];
        let n = by_path.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..n], b"READY=1");

        let name = format!("proxops-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        send(std::ffi::OsStr::new(&format!("@{name}")), "WATCHDOG=1").unwrap();
        let n = by_name.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..n], b"WATCHDOG=1");
    }
}
