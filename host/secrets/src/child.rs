//! Programs that are run on the way: none inherits our secrets, none is waited for without end.

use std::io::Read as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

/// Environment variables that hold a secret of this process.
const SECRET_VARIABLES: [&str; 9] = [
    "PROXOPS_PVE_TOKEN",
    "PROXOPS_PVE_TOKEN_VALUE",
    "PROXOPS_PVE_PASSWORD",
    "PROXOPS_GIT_TOKEN",
    "PROXOPS_HTTP_TOKEN",
    "PROXOPS_WEBHOOK_SECRET",
    "PROXOPS_NOTIFY_TOKEN",
    "PROXOPS_COMMIT_STATUS_TOKEN",
    "SOPS_AGE_KEY",
];

/// Takes the variables that hold secrets out of a child's environment.
pub fn without_secrets(command: &mut Command) {
    for name in SECRET_VARIABLES {
        command.env_remove(name);
    }
}

/// Runs a program with `input` on stdin and returns what it wrote to stdout; stderr is dropped. After `limit` it is
/// killed, which is an error of kind `TimedOut`.
pub(crate) fn output(
    mut command: Command,
    input: &str,
    limit: Duration,
) -> std::io::Result<(ExitStatus, Zeroizing<Vec<u8>>)> {
    without_secrets(&mut command);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let input = Zeroizing::new(input.to_owned());
    // Neither thread is joined: what a child left running may hold its pipes open.
    std::thread::spawn(move || stdin.map(|mut pipe| std::io::Write::write_all(&mut pipe, input.as_bytes())));
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Zeroizing::new(Vec::new());
        let read = stdout.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes));
        let _ = send.send(read.map(|_| bytes));
    });
    let end = Instant::now() + limit;
    let late = || std::io::Error::new(std::io::ErrorKind::TimedOut, format!("no end after {limit:?}"));
    let bytes = receive.recv_timeout(limit);
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if bytes.is_err() || Instant::now() >= end => break None,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    match (status, bytes) {
        (Some(status), Ok(bytes)) => Ok((status, bytes?)),
        (Some(_), Err(_)) => Err(late()),
        (None, _) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(late())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_and_said_to_be_late() {
        let error = output(sh("sleep 600"), "", Duration::from_millis(200)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        // Its own child holds the pipe open.
        let error = output(sh("sleep 600 & wait"), "", Duration::from_millis(200)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    }

    #[test]
    fn input_goes_in_and_output_and_status_come_out() {
        let (status, bytes) = output(sh("cat; exit 3"), "text", Duration::from_secs(60)).unwrap();
        assert_eq!((status.code(), bytes.as_slice()), (Some(3), b"text".as_slice()));
    }

    #[test]
    fn the_variables_with_secrets_are_taken_out() {
        let mut command = sh("true");
        without_secrets(&mut command);
        let removed: Vec<_> =
            command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        assert_eq!(removed.len(), SECRET_VARIABLES.len());
        assert!(SECRET_VARIABLES.iter().all(|name| removed.contains(&std::ffi::OsStr::new(name))));
    }
}
