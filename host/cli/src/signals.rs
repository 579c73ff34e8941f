//! SIGINT and SIGTERM: the first asks for an orderly end, the second ends at once.

use crate::say;
use proxops_exec::Cancel;

/// Cancels on the first signal, exits with 130 on the second.
pub fn listen() -> Cancel {
    let cancel = Cancel::new();
    let told = cancel.clone();
    tokio::spawn(async move {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut int), Ok(mut term)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return;
        };
        let mut asked = false;
        loop {
            tokio::select! { _ = int.recv() => {}, _ = term.recv() => {} }
            if asked {
                std::process::exit(130);
            }
            asked = true;
            told.cancel();
            say::err!(
                "stopping: nothing new is started, actions in flight are awaited (again to stop at once)"
            );
        }
    });
    cancel
}
