//! One PVE key that a manifest wants, and how it is written, compared and read back.
//!
//! Each key, and each option inside a property string, is described once, as a [`Row`]; create, drift
//! and adopt all go along the same rows.

use proxops_kind::{LiveView, Param, Props, Table, Words, text};
use std::borrow::Cow;

/// Whether a live text means the wanted one.
pub type Same = fn(&str, &str) -> bool;

/// As it stands.
pub fn exact(live: &str, want: &str) -> bool {
    live == want
}
/// Letter case aside.
pub fn any_case(live: &str, want: &str) -> bool {
    live.eq_ignore_ascii_case(want)
}
/// As a number: `2`, `2.0` and `02` are equal.
pub fn number(live: &str, want: &str) -> bool {
    live == want || text::number(live) == text::number(want)
}
/// As IP addresses, words in any case.
pub fn address(live: &str, want: &str) -> bool {
    live == want || text::address(live) == text::address(want)
}
/// As a set of addresses.
pub fn address_set(live: &str, want: &str) -> bool {
    let sorted = |t: &str| {
        let mut all: Vec<String> = text::split_list(t).map(text::address).collect();
        all.sort();
        all.dedup();
        all
    };
    live == want || sorted(live) == sorted(want)
}
/// As percent-encoded text.
pub fn encoded(live: &str, want: &str) -> bool {
    live == want || text::percent_decode(live) == text::percent_decode(want)
}
/// As a boolean in any spelling.
pub fn boolean(live: &str, want: &str) -> bool {
    live == want || text::parse_bool(live).is_some_and(|live| text::parse_bool(want) == Some(live))
}
/// As a set of words.
pub fn set(live: &str, want: &str) -> bool {
    let sorted = |t: &str| {
        let mut words = Words::parse(t).0;
        words.sort();
        words.dedup();
        words
    };
    live == want || sorted(live) == sorted(want)
}

/// A key of `T` (a whole spec, or a part of it that is one property string).
pub struct Row<T> {
    /// PVE's key.
    pub key: &'static str,
    /// The wanted text; `None` = not owned.
    pub get: fn(&T) -> Option<String>,
    /// Takes a live text over; false when the manifest has no word for it.
    pub put: fn(&mut T, &str) -> bool,
    /// What PVE means when the key is absent.
    pub default: Option<&'static str>,
    /// Which texts are equal.
    pub same: Same,
}

/// A row for an `Option<bool>`.
macro_rules! flag {
    ($key:literal, $default:expr, $($field:ident).+) => {
        $crate::wanted::Row {
            key: $key,
            get: |s| s.$($field).+.map(|b| proxops_kind::text::bool_text(b).to_owned()),
            put: |s, t| { s.$($field).+ = proxops_kind::text::parse_bool(t); s.$($field).+.is_some() },
            default: $default,
            same: $crate::wanted::boolean,
        }
    };
}
/// A row for an optional number.
macro_rules! amount {
    ($key:literal, $default:expr, $($field:ident).+) => {
        $crate::wanted::Row {
            key: $key,
            get: |s| s.$($field).+.map(|n| n.to_string()),
            put: |s, t| {
                s.$($field).+ = proxops_kind::text::number(t).parse().ok();
                s.$($field).+.is_some()
            },
            default: $default,
            same: $crate::wanted::number,
        }
    };
}
/// A row for an optional choice.
macro_rules! word {
    ($key:literal, $default:expr, $choice:ty, $($field:ident).+) => {
        $crate::wanted::Row {
            key: $key,
            get: |s| s.$($field).+.map(|w| w.as_str().to_owned()),
            put: |s, t| { s.$($field).+ = <$choice>::parse(t); s.$($field).+.is_some() },
            default: $default,
            same: $crate::wanted::exact,
        }
    };
}
/// A row for an optional text.
macro_rules! plain {
    ($key:literal, $default:expr, $($field:ident).+) => {
        $crate::wanted::Row {
            key: $key,
            get: |s| s.$($field).+.clone(),
            put: |s, t| { s.$($field).+ = Some(t.to_owned()); true },
            default: $default,
            same: $crate::wanted::exact,
        }
    };
}
/// A row for an optional list of words, joined on the wire.
macro_rules! words {
    ($key:literal, $default:expr, $separator:literal, $same:expr, $($field:ident).+) => {
        $crate::wanted::Row {
            key: $key,
            get: |s| s.$($field).+.as_ref().map(|w| w.join($separator)),
            put: |s, t| { s.$($field).+ = Some(proxops_kind::Words::parse(t)); true },
            default: $default,
            same: $same,
        }
    };
}
pub(crate) use {amount, flag, plain, word, words};

/// One owned option of a property string; `want: None` = must not be there.
pub struct Token {
    /// Its key.
    pub key: &'static str,
    /// The wanted text.
    pub want: Option<String>,
    /// What PVE means when it is absent.
    pub default: Option<&'static str>,
    /// Which texts are equal.
    pub same: Same,
}

impl Token {
    /// An option that must have this text.
    pub fn is(key: &'static str, want: impl Into<String>) -> Self {
        Self { key, want: Some(want.into()), default: None, same: exact }
    }
    /// An option that must not be there.
    pub fn gone(key: &'static str) -> Self {
        Self { key, want: None, default: None, same: exact }
    }
}

/// The owned options of a part of the manifest.
pub fn tokens<T>(rows: &[Row<T>], part: &T) -> Vec<Token> {
    rows.iter()
        .filter_map(|row| {
            let want = (row.get)(part)?;
            Some(Token { key: row.key, want: Some(want), default: row.default, same: row.same })
        })
        .collect()
}

/// Takes the options of a live property string over, defaults left out. Returns what the manifest has
/// no word for.
pub fn take<T>(rows: &[Row<T>], part: &mut T, live: &Props) -> Vec<String> {
    let mut rest = Vec::new();
    for (key, value) in live.iter() {
        match rows.iter().find(|row| row.key == key) {
            Some(row) if row.default.is_some_and(|d| (row.same)(d, value)) => {}
            Some(row) if (row.put)(part, value) => {}
            _ if key.is_empty() => rest.push(value.to_owned()),
            _ => rest.push(format!("{key}={value}")),
        }
    }
    rest
}

/// The live property string with the owned options put right; all other options keep their text and
/// place. Lists the options that differed.
pub fn merge(live: Option<&str>, table: &'static Table, tokens: &[Token]) -> (Props, Vec<&'static str>) {
    let mut props = live.map_or_else(|| Props::new(table), |text| Props::parse(text, table));
    let mut changed = Vec::new();
    for token in tokens {
        match &token.want {
            Some(want) => {
                let now = props.get(token.key).or(token.default);
                if !now.is_some_and(|now| (token.same)(now, want)) {
                    props.set(token.key, want.clone());
                    changed.push(token.key);
                }
            }
            None => {
                if props.remove(token.key) {
                    changed.push(token.key);
                }
            }
        }
    }
    if live.is_none() && !changed.is_empty() {
        // A new string says everything that the manifest says, PVE's defaults included.
        for token in tokens {
            if let Some(want) = &token.want {
                props.set(token.key, want.clone());
            }
        }
    }
    (props, changed)
}

/// When PVE applies a change to a running guest (facts Q30, Q31).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At once.
    AtOnce,
    /// At once if the guest's `hotplug` names this.
    Hotplug(&'static str),
    /// The balloon target moves live; the device comes and goes only with a stop.
    Balloon,
    /// After a stop.
    Stop,
}

/// What a key should be.
pub enum Want {
    /// This text.
    Text {
        /// The text.
        value: String,
        /// What PVE means when the key is absent.
        default: Option<&'static str>,
        /// Which texts are equal.
        same: Same,
    },
    /// A property string with these options.
    Tokens(&'static Table, Vec<Token>),
}

/// One wanted key.
pub struct Wanted {
    /// Pointer into the manifest.
    pub at: Cow<'static, str>,
    /// PVE's key.
    pub key: Cow<'static, str>,
    /// What it should be.
    pub want: Want,
    /// When a change applies.
    pub when: When,
    /// Only a root@pam ticket may set it (fact Q51).
    pub root: bool,
    /// Pointers of single options, where they have one of their own.
    pub places: Vec<(&'static str, &'static str)>,
}

impl Wanted {
    /// A plain text.
    pub fn text(
        at: impl Into<Cow<'static, str>>,
        key: impl Into<Cow<'static, str>>,
        value: impl Into<String>,
        same: Same,
        when: When,
    ) -> Self {
        let want = Want::Text { value: value.into(), default: None, same };
        Self { at: at.into(), key: key.into(), want, when, root: false, places: Vec::new() }
    }

    /// A property string.
    pub fn tokens(
        at: impl Into<Cow<'static, str>>,
        key: impl Into<Cow<'static, str>>,
        table: &'static Table,
        tokens: Vec<Token>,
        when: When,
    ) -> Self {
        Self {
            at: at.into(),
            key: key.into(),
            want: Want::Tokens(table, tokens),
            when,
            root: false,
            places: Vec::new(),
        }
    }

    /// Only a root@pam ticket may set it.
    #[must_use]
    pub fn root(mut self, root: bool) -> Self {
        self.root = root;
        self
    }

    /// Pointers of single options.
    #[must_use]
    pub fn places(mut self, places: Vec<(&'static str, &'static str)>) -> Self {
        self.places = places;
        self
    }

    /// Where in the manifest a difference comes from: the field of the one option that differs, or the whole.
    pub fn place(&self, live: Option<&str>) -> &str {
        let Want::Tokens(table, tokens) = &self.want else { return &self.at };
        match merge(live, table, tokens).1[..] {
            [one] => self.places.iter().find(|(key, _)| *key == one).map_or(&*self.at, |(_, at)| *at),
            _ => &self.at,
        }
    }

    /// The text to write, given what is live; `None` when the live value is right.
    pub fn write(&self, live: Option<&str>) -> Option<String> {
        match &self.want {
            Want::Text { value, default, same } => {
                let now = live.or(*default);
                (!now.is_some_and(|now| same(now, value))).then(|| value.clone())
            }
            Want::Tokens(table, tokens) => {
                let (props, changed) = merge(live, table, tokens);
                (!changed.is_empty()).then(|| props.to_string())
            }
        }
    }

    /// The parameter of a create; none when the manifest says no more than PVE's default.
    pub fn param(&self) -> Option<Param> {
        let text = match &self.want {
            Want::Text { value, .. } => value.clone(),
            Want::Tokens(..) => self.write(None)?,
        };
        Some(Param::text(self.key.clone(), text).at(self.at.clone()))
    }
}

/// What the guest's `hotplug` allows; PVE's default is network, disk and usb (fact Q30).
pub struct Hotplug(Vec<String>);

impl Hotplug {
    /// Of a live guest.
    pub fn of(live: &LiveView<'_>) -> Self {
        Self(expand_hotplug(live.text("hotplug").unwrap_or("1")))
    }
    /// Whether it names this.
    pub fn has(&self, what: &str) -> bool {
        self.0.iter().any(|w| w == what)
    }
}

fn expand_hotplug(text: &str) -> Vec<String> {
    let mut words = match text.trim() {
        "0" => Vec::new(),
        "1" => Words::parse("network,disk,usb").0,
        other => Words::parse(other).0,
    };
    words.sort();
    words.dedup();
    words
}

/// Two `hotplug` texts mean the same.
pub fn same_hotplug(live: &str, want: &str) -> bool {
    expand_hotplug(live) == expand_hotplug(want)
}
