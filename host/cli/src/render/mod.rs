//! What people and programs read. Everything from outside goes through `printable`.

pub mod adopt;
pub mod diagnostics;
pub mod doctor;
pub mod explain;
pub mod history;
pub mod json;
pub mod kinds;
pub mod markdown;
pub mod status;
pub mod text;

use crate::args::Color;
use std::io::IsTerminal as _;

/// Colours of stdout.
#[derive(Clone, Copy)]
pub struct Paint(bool);

impl Paint {
    /// As the flag, NO_COLOR and the terminal say.
    pub fn new(color: Color) -> Self {
        Self(match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
            }
        })
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
    pub fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }
    pub fn red(self, text: &str) -> String {
        self.wrap("31", text)
    }
    pub fn yellow(self, text: &str) -> String {
        self.wrap("33", text)
    }
    /// For what destroys data.
    pub fn alarm(self, text: &str) -> String {
        self.wrap("1;31", text)
    }
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }
}

/// "1 VM", "2 VMs".
pub fn count(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}
