//! What a kind says: bounded debug lines, and its last words for a fault.

use crate::limits::Limits;
use proxops_model::text::printable;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of the last words that a fault quotes.
const LAST_WORDS: usize = 600;

/// The log of one instance; its WASI streams hold it too.
#[derive(Clone)]
pub(crate) struct SharedLog(Arc<Mutex<Log>>);

/// Lines of one call.
pub(crate) struct Log {
    kind: String,
    max_lines: usize,
    max_bytes: usize,
    lines: usize,
    bytes: usize,
    /// Of a WASI stream: text without its end of line yet.
    partial: String,
    panic: Option<String>,
    tail: String,
}

impl Log {
    /// An empty log.
    pub(crate) fn shared(kind: &str, limits: &Limits) -> SharedLog {
        SharedLog(Arc::new(Mutex::new(Self {
            kind: kind.to_owned(),
            max_lines: limits.log_lines,
            max_bytes: limits.log_bytes,
            lines: 0,
            bytes: 0,
            partial: String::new(),
            panic: None,
            tail: String::new(),
        })))
    }

    fn line(&mut self, text: &str) {
        if self.lines >= self.max_lines || self.bytes >= self.max_bytes {
            return;
        }
        let text = cut(text, self.max_bytes - self.bytes);
        self.lines += 1;
        self.bytes += text.len().max(1);
        tracing::debug!(kind = %self.kind, "{}", printable(text));
        if self.lines == self.max_lines || self.bytes >= self.max_bytes {
            tracing::debug!(kind = %self.kind, "further lines of this call are dropped");
        }
    }

    fn stream(&mut self, bytes: &[u8]) {
        // what is over the bound is not even buffered
        let room = self.max_bytes.saturating_sub(self.bytes + self.partial.len());
        let bytes = &bytes[..bytes.len().min(room)];
        let text = String::from_utf8_lossy(bytes);
        self.tail.push_str(&text);
        if self.tail.len() > LAST_WORDS {
            let from = self.tail.len() - LAST_WORDS;
            let from = (from..self.tail.len()).find(|i| self.tail.is_char_boundary(*i)).unwrap_or(from);
            self.tail.drain(..from);
        }
        self.partial.push_str(&text);
        while let Some(end) = self.partial.find('\n') {
            let line: String = self.partial.drain(..=end).collect();
            self.line(line.trim_end());
        }
    }
}

impl SharedLog {
    fn with<T>(&self, f: impl FnOnce(&mut Log) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// One line of the `log` import.
    pub(crate) fn emit(&self, panic: bool, text: &str) {
        self.with(|log| {
            if panic {
                log.panic = Some(cut(text, LAST_WORDS).to_owned());
            }
            log.line(text);
        });
    }

    /// Bytes of a WASI stream.
    pub(crate) fn stream(&self, bytes: &[u8]) {
        self.with(|log| log.stream(bytes));
    }

    /// Before a call.
    pub(crate) fn renew(&self) {
        self.with(|log| {
            (log.lines, log.bytes) = (0, 0);
            log.panic = None;
            log.tail.clear();
        });
    }

    /// After a call.
    pub(crate) fn flush(&self) {
        self.with(|log| {
            let rest = std::mem::take(&mut log.partial);
            if !rest.is_empty() {
                log.line(&rest);
            }
        });
    }

    /// The panic that it reported, or the end of what it wrote to a WASI stream; printable, one line.
    pub(crate) fn last_words(&self) -> Option<String> {
        self.with(|log| {
            let text = log.panic.as_deref().unwrap_or(log.tail.trim());
            let line = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(" ");
            (!line.is_empty()).then(|| printable(&line))
        })
    }
}

/// At most `max` bytes, cut at a character.
fn cut(text: &str, max: usize) -> &str {
    match text.char_indices().map(|(i, c)| i + c.len_utf8()).take_while(|end| *end <= max).last() {
        Some(end) => text.get(..end).unwrap_or(text),
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: usize, bytes: usize) -> SharedLog {
        let limits = Limits { log_lines: lines, log_bytes: bytes, ..Limits::standard() };
        Log::shared("Test", &limits)
    }

    #[test]
    fn lines_and_bytes_of_a_call_are_bounded() {
        let few = log(2, 1000);
        (0..10).for_each(|_| few.emit(false, "x"));
        assert_eq!(few.with(|l| l.lines), 2);
        let small = log(100, 10);
        small.emit(false, &"ä".repeat(1_000_000));
        small.stream(&[b'x'; 1_000_000]);
        assert_eq!(small.with(|l| (l.lines, l.bytes, l.partial.len())), (1, 10, 0));
        small.renew();
        small.emit(false, "again");
        assert_eq!(small.with(|l| l.lines), 1);
    }

    #[test]
    fn a_stream_without_newline_does_not_grow() {
        let log = log(100, 50);
        (0..1000).for_each(|_| log.stream(b"0123456789"));
        assert!(log.with(|l| l.partial.len()) <= 50);
    }

    #[test]
    fn last_words_are_one_printable_line() {
        let log = log(100, 1000);
        assert_eq!(log.last_words(), None);
        log.stream(b"thread panicked\n  at \x1b[31mlib.rs\n");
        assert_eq!(log.last_words().as_deref(), Some("thread panicked at \\u{1b}[31mlib.rs"));
        log.emit(true, "index out of bounds");
        assert_eq!(log.last_words().as_deref(), Some("index out of bounds"));
        log.renew();
        assert_eq!(log.last_words(), None);
    }
}
