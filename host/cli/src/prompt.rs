//! Questions on a terminal. Without one the default is taken, and nothing is asked.

use crate::say;
use proxops_secrets::Secret;
use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

/// Whether anybody can answer.
pub fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

fn read(prompt: &str) -> std::io::Result<String> {
    let mut err = std::io::stderr().lock();
    write!(err, "{prompt}")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}

/// A line of text; empty = the default.
pub fn line(question: &str, default: Option<&str>) -> anyhow::Result<String> {
    let default = default.unwrap_or_default();
    if !is_terminal() {
        return Ok(default.to_owned());
    }
    let hint = if default.is_empty() { String::new() } else { format!(" [{default}]") };
    let answer = read(&format!("{question}{hint}: "))?;
    Ok(if answer.is_empty() { default.to_owned() } else { answer })
}

/// Yes or no; no without a terminal.
pub fn yes(question: &str) -> anyhow::Result<bool> {
    if !is_terminal() {
        return Ok(false);
    }
    Ok(matches!(read(&format!("{question} [y/N]: "))?.to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Text that the terminal does not show.
pub fn secret(question: &str) -> anyhow::Result<Secret> {
    let echo = |mode: &str| Command::new("stty").arg(mode).stdin(Stdio::inherit()).status();
    let hidden = echo("-echo").is_ok_and(|status| status.success());
    let answer = read(&format!("{question}{}: ", if hidden { "" } else { " (it will be visible)" }));
    if hidden {
        let _ = echo("echo");
        say::err!("");
    }
    Ok(Secret::new(answer?))
}
