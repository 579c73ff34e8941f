//! What PVE accepts: parameter tables of every served endpoint, in PVE's own schema semantics.
//!
//! A table is a list of [`Param`] groups, so that create and the two config writes share one list of
//! guest options. [`check`] validates a call (facts T9, T10, T21, T22), [`property`] reads and prints
//! property strings, [`formats`] knows the named formats. `tests/grammar_matches_schema.rs` holds all
//! of it against the official schema.

pub mod check;
pub mod ct;
pub mod drive;
pub mod formats;
pub mod other;
pub mod property;
pub mod vm;

/// Groups of parameters; a name occurs in one group only.
pub type Table = &'static [&'static [Param]];

/// Basic type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A whole number.
    Integer,
    /// A number, fractions allowed.
    Number,
    /// `0` or `1`; inside property strings also `on`, `yes`, `true` and their opposites (fact T10).
    Flag,
    /// Another spelling of the key named by [`Param::alias`].
    Alias,
}

/// How the text of a parameter is checked beyond its type.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// Nothing more.
    Any,
    /// A named format, see [`formats::check`].
    Named(&'static str),
    /// A property string with this table.
    Props(Table),
}

/// One parameter, or one key of a property string. Optional unless [`Param::req`] was called.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Name; of an indexed family the stem (`scsi` for `scsi0`..`scsi30`).
    pub name: &'static str,
    /// Basic type.
    pub kind: Kind,
    /// Must be there.
    pub required: bool,
    /// Smallest value, applied to anything that looks like a number.
    pub min: Option<i64>,
    /// Largest value.
    pub max: Option<i64>,
    /// Shortest text.
    pub min_len: Option<usize>,
    /// Longest text.
    pub max_len: Option<usize>,
    /// Regular expression, anchored at both ends; empty for none.
    pub pattern: &'static str,
    /// Allowed values, separated by spaces; empty for any.
    pub values: &'static str,
    /// Further format.
    pub format: Format,
    /// Inclusive index range of a family.
    pub index: Option<(u16, u16)>,
    /// Another parameter that must come with this one; empty for none.
    pub needs: &'static str,
    /// The key of a property string whose value may be sent bare.
    pub bare: bool,
    /// The key this one is another spelling of.
    pub alias: &'static str,
    /// The key that takes this key's own name as value (`virtio=<MAC>` sets `model`).
    pub key_alias: &'static str,
}

const fn param(name: &'static str, kind: Kind) -> Param {
    Param {
        name,
        kind,
        required: false,
        min: None,
        max: None,
        min_len: None,
        max_len: None,
        pattern: "",
        values: "",
        format: Format::Any,
        index: None,
        needs: "",
        bare: false,
        alias: "",
        key_alias: "",
    }
}

/// A text parameter.
pub const fn text(name: &'static str) -> Param {
    param(name, Kind::Text)
}
/// A whole number.
pub const fn int(name: &'static str) -> Param {
    param(name, Kind::Integer)
}
/// A number.
pub const fn num(name: &'static str) -> Param {
    param(name, Kind::Number)
}
/// A boolean.
pub const fn flag(name: &'static str) -> Param {
    param(name, Kind::Flag)
}
/// A text out of a space-separated list.
pub const fn one_of(name: &'static str, values: &'static str) -> Param {
    let mut p = param(name, Kind::Text);
    p.values = values;
    p
}
/// Another spelling of `target`.
pub const fn alias(name: &'static str, target: &'static str) -> Param {
    let mut p = param(name, Kind::Alias);
    p.alias = target;
    p
}
/// A network card model used as key: `virtio=<MAC>`.
pub const fn model(name: &'static str) -> Param {
    let mut p = alias(name, "macaddr");
    p.key_alias = "model";
    p
}

impl Param {
    /// Makes it required.
    pub const fn req(mut self) -> Self {
        self.required = true;
        self
    }
    /// Sets the smallest value.
    pub const fn min(mut self, min: i64) -> Self {
        self.min = Some(min);
        self
    }
    /// Sets the largest value.
    pub const fn max(mut self, max: i64) -> Self {
        self.max = Some(max);
        self
    }
    /// Sets the shortest text.
    pub const fn min_len(mut self, len: usize) -> Self {
        self.min_len = Some(len);
        self
    }
    /// Sets the longest text.
    pub const fn max_len(mut self, len: usize) -> Self {
        self.max_len = Some(len);
        self
    }
    /// Sets the regular expression.
    pub const fn re(mut self, pattern: &'static str) -> Self {
        self.pattern = pattern;
        self
    }
    /// Sets a named format.
    pub const fn of(mut self, format: &'static str) -> Self {
        self.format = Format::Named(format);
        self
    }
    /// Makes it a property string.
    pub const fn props(mut self, table: Table) -> Self {
        self.format = Format::Props(table);
        self
    }
    /// Makes it a family `name<low>`..`name<high>`.
    pub const fn family(mut self, low: u16, high: u16) -> Self {
        self.index = Some((low, high));
        self
    }
    /// Names another parameter that must be sent along.
    pub const fn needs(mut self, other: &'static str) -> Self {
        self.needs = other;
        self
    }
    /// Makes it the default key of its property string.
    pub const fn bare(mut self) -> Self {
        self.bare = true;
        self
    }
}

/// The parameter that `name` stands for, families included; `None` when the table does not know it.
pub fn lookup(table: Table, name: &str) -> Option<&'static Param> {
    let all = || table.iter().flat_map(|group| group.iter());
    if let Some(found) = all().find(|p| p.index.is_none() && p.name == name) {
        return Some(found);
    }
    let (stem, index) = split_index(name)?;
    all().find(|p| p.name == stem && p.index.is_some_and(|(low, high)| (low..=high).contains(&index)))
}

/// `scsi12` as `("scsi", 12)`; `None` without digits at the end or with a leading zero.
pub fn split_index(name: &str) -> Option<(&str, u16)> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &name[stem.len()..];
    if digits.is_empty() || stem.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((stem, digits.parse().ok()?))
}

/// Splits a list value as PVE does: comma, semicolon, white space or NUL (fact T11).
pub fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == ',' || c == ';' || c == '\0' || c.is_ascii_whitespace())
        .filter(|part| !part.is_empty())
}
