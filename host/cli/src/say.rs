//! What the command says. Saying never panics and never changes what is done: a reader that went away, as in
//! `proxops diff | head -1`, changes nothing, and a full disk under stdout is told at the end ([`finish`]). Nothing else
//! writes to stdout or stderr; a test holds that (`tests/e2e/tests/house.rs`).

use std::io::{Error, ErrorKind, Result, Write};
use std::sync::OnceLock;

/// Why stdout does not hold everything, if somebody still wants it.
static LOST: OnceLock<Error> = OnceLock::new();

/// A line on stdout, as `println!`.
macro_rules! out {
    ($($text:tt)*) => { $crate::say::line($crate::say::Stdout, format_args!($($text)*)) };
}

/// A line on stderr, as `eprintln!`.
macro_rules! err {
    ($($text:tt)*) => { $crate::say::line($crate::say::Stderr, format_args!($($text)*)) };
}

pub(crate) use {err, out};

/// A line in one piece: others may write at the same time.
pub fn line(mut to: impl Write, text: std::fmt::Arguments<'_>) {
    let _ = to.write_all(format!("{text}\n").as_bytes());
}

/// Stdout, which takes everything.
pub struct Stdout;

/// Stderr, which takes everything.
pub struct Stderr;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        taken(std::io::stdout().write(bytes), bytes, lost)
    }

    fn flush(&mut self) -> Result<()> {
        std::io::stdout().flush().or_else(|error| {
            lost(error);
            Ok(())
        })
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        taken(std::io::stderr().write(bytes), bytes, drop)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

fn taken(written: Result<usize>, bytes: &[u8], note: impl FnOnce(Error)) -> Result<usize> {
    match written {
        // The caller tries again.
        Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
        Err(error) => {
            note(error);
            Ok(bytes.len())
        }
        written => written,
    }
}

/// Stdout could not be written.
pub fn lost(error: Error) {
    if error.kind() != ErrorKind::BrokenPipe {
        let _ = LOST.set(error);
    }
}

/// The exit code: that of the work, unless stdout could not hold what was said.
pub fn finish(code: u8) -> u8 {
    let _ = Stdout.flush();
    match LOST.get() {
        Some(error) => {
            err!("error: the output is not whole: stdout can't be written: {error}");
            1
        }
        None => code,
    }
}
