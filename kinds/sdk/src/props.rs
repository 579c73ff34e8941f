//! PVE property strings: `local-lvm:vm-101-disk-0,discard=on,size=32G`.

use crate::text::{bool_text, parse_bool};
use std::fmt;

/// How a property string is read: which key the value without a key has, and other names of keys.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// The key of a value that stands alone, which new text leaves out. A key that may be left out and is
    /// written all the same is an alias of "".
    pub default_key: Option<&'static str>,
    /// Other spelling and the key that it means.
    pub aliases: &'static [(&'static str, &'static str)],
}

impl Table {
    /// A table without aliases.
    pub const fn with_default(key: &'static str) -> Self {
        Self { default_key: Some(key), aliases: &[] }
    }

    fn canonical<'k>(&self, key: &'k str) -> &'k str
    where
        'static: 'k,
    {
        self.aliases.iter().find(|(alias, _)| *alias == key).map_or(key, |(_, key)| *key)
    }
}

/// One option as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    text: String,
    /// Where the `=` is; `None` = a value without its key.
    equals: Option<usize>,
}

impl Token {
    fn read(part: &str) -> Self {
        Self { text: part.to_owned(), equals: part.find('=').filter(|at| *at > 0) }
    }

    fn new(key: &str, value: &str, bare: bool) -> Self {
        if bare {
            Self { text: value.to_owned(), equals: None }
        } else {
            Self { text: format!("{key}={value}"), equals: Some(key.len()) }
        }
    }

    fn key<'a>(&'a self, table: &'static Table) -> &'a str {
        match self.equals.and_then(|at| self.text.get(..at)) {
            Some(key) => table.canonical(key.trim()),
            None => table.canonical(table.default_key.unwrap_or_default()),
        }
    }

    fn value(&self) -> &str {
        match self.equals {
            Some(at) => self.text.get(at + 1..).unwrap_or_default(),
            None => &self.text,
        }
    }
}

/// A property string that can be changed key by key. What is not touched keeps its text and place,
/// known or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Props {
    tokens: Vec<Token>,
    table: &'static Table,
}

impl Props {
    /// Without keys.
    pub fn new(table: &'static Table) -> Self {
        Self { tokens: Vec::new(), table }
    }

    /// Reads a property string. Never fails: a lone value without a default key keeps its text and has
    /// the empty key.
    pub fn parse(text: &str, table: &'static Table) -> Self {
        Self { tokens: text.split(',').filter(|part| !part.is_empty()).map(Token::read).collect(), table }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.tokens.iter().find(|t| t.key(self.table) == key).map(Token::value)
    }

    /// The value of a key as a boolean; `None` when absent or no boolean.
    pub fn get_bool(&self, key: &str) -> Option<bool> {
        self.get(key).and_then(parse_bool)
    }

    /// Sets a key in its place, or at the end; the default key goes first, without its name.
    pub fn set(&mut self, key: &str, value: impl AsRef<str>) {
        let (value, table) = (value.as_ref(), self.table);
        if let Some(token) = self.tokens.iter_mut().find(|t| t.key(table) == key) {
            if token.value() != value {
                *token = Token::new(key, value, token.equals.is_none());
            }
            return;
        }
        let bare = table.default_key == Some(key);
        let at = if bare { 0 } else { self.tokens.len() };
        self.tokens.insert(at, Token::new(key, value, bare));
    }

    /// Sets a boolean as `1` or `0`, unless the key already says so in another spelling.
    pub fn set_bool(&mut self, key: &str, value: bool) {
        if self.get_bool(key) != Some(value) {
            self.set(key, bool_text(value));
        }
    }

    /// Removes a key; says whether it was there.
    pub fn remove(&mut self, key: &str) -> bool {
        let (before, table) = (self.tokens.len(), self.table);
        self.tokens.retain(|t| t.key(table) != key);
        self.tokens.len() != before
    }

    /// Keys and values in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tokens.iter().map(|t| (t.key(self.table), t.value()))
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

impl fmt::Display for Props {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, token) in self.tokens.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            f.write_str(&token.text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    static DRIVE: Table = Table { default_key: Some("file"), aliases: &[("volume", "file")] };

    #[test]
    fn one_key_changes_and_the_rest_stays() {
        let mut drive = Props::parse("local:vm-1-disk-0,aio=io_uring,foo=bar,discard=on,size=32G", &DRIVE);
        assert_eq!(drive.get("file"), Some("local:vm-1-disk-0"));
        assert_eq!(drive.get_bool("discard"), Some(true));
        drive.set_bool("discard", true);
        drive.set_bool("iothread", true);
        drive.set("aio", "native");
        assert!(drive.remove("foo") && !drive.remove("foo"));
        assert_eq!(drive.to_string(), "local:vm-1-disk-0,aio=native,discard=on,size=32G,iothread=1");
    }

    #[test]
    fn the_default_key_may_be_named_or_have_an_alias() {
        for text in ["file=a:b", "volume=a:b", "a:b"] {
            assert_eq!(Props::parse(text, &DRIVE).get("file"), Some("a:b"));
        }
        let mut new = Props::new(&DRIVE);
        new.set("size", "1G");
        new.set("file", "a:b");
        assert_eq!(new.to_string(), "a:b,size=1G");
    }

    #[test]
    fn a_key_that_may_be_left_out_is_written() {
        static STARTUP: Table = Table { default_key: None, aliases: &[("", "order")] };
        let mut live = Props::parse("1,up=30", &STARTUP);
        assert_eq!(live.get("order"), Some("1"));
        live.set("order", "2");
        assert_eq!(live.to_string(), "2,up=30");
        let mut new = Props::new(&STARTUP);
        new.set("order", "2");
        assert_eq!(new.to_string(), "order=2");
    }

    proptest! {
        #[test]
        fn untouched_text_is_kept(parts in proptest::collection::vec("[a-z0-9:/._=-]{1,12}", 0..8)) {
            let text = parts.join(",");
            prop_assert_eq!(Props::parse(&text, &DRIVE).to_string(), text);
        }

        #[test]
        fn a_set_value_reads_back(text in "[ -~]{0,60}", key in "[a-z]{1,8}", value in "[a-z0-9:]{1,8}") {
            let mut props = Props::parse(&text, &DRIVE);
            props.set(&key, value.clone());
            let again = Props::parse(&props.to_string(), &DRIVE);
            let key = if key == "volume" { "file" } else { &key };
            prop_assert_eq!(again.get(key), props.get(key).or(Some(value.as_str())));
        }
    }
}
