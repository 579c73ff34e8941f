//! Field tables: each PVE key of a part of the spec is described once, for create, drift and adopt.

use proxops_kind::Props;
use proxops_kind::changes::{Normal, boolean, exact, numeric};
use proxops_kind::text::bool_text;

/// One PVE key: how it is read from the spec `T`, compared, and written back to a spec.
pub struct Row<T: 'static> {
    /// PVE's key, or a key inside a property string.
    pub key: &'static str,
    /// Pointer of the field, below the object that `T` is.
    pub at: &'static str,
    /// What PVE means when the key is absent.
    pub default: Option<&'static str>,
    /// Which texts are equal.
    pub normal: Normal,
    /// PVE applies it to a running container at once (fact L15).
    pub at_once: bool,
    /// PVE lets only root@pam itself set it (facts L7, L8).
    pub root_only: bool,
    /// Mask the values.
    pub sensitive: bool,
    /// PVE's text of the field; `None` = not owned, empty = owned and absent.
    pub get: fn(&T) -> Option<String>,
    /// Takes PVE's text into a spec; false when the field can't express it.
    pub put: fn(&mut T, &str) -> bool,
}

impl<T> Row<T> {
    /// A key that is compared as it stands and waits for a restart.
    pub const fn new(
        key: &'static str,
        at: &'static str,
        get: fn(&T) -> Option<String>,
        put: fn(&mut T, &str) -> bool,
    ) -> Self {
        let (at_once, root_only, sensitive) = (false, false, false);
        Self { key, at, default: None, normal: exact, at_once, root_only, sensitive, get, put }
    }
    /// A number.
    pub const fn number(mut self) -> Self {
        self.normal = numeric;
        self
    }
    /// A boolean.
    pub const fn boolean(mut self, default: Option<bool>) -> Self {
        self.normal = boolean;
        self.default = match default {
            Some(true) => Some("1"),
            Some(false) => Some("0"),
            None => None,
        };
        self
    }
    /// What PVE means when the key is absent.
    pub const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }
    /// Which texts are equal.
    pub const fn normal(mut self, normal: Normal) -> Self {
        self.normal = normal;
        self
    }
    /// PVE applies it to a running container at once.
    pub const fn at_once(mut self) -> Self {
        self.at_once = true;
        self
    }
    /// PVE lets only root@pam itself set it.
    pub const fn root_only(mut self) -> Self {
        self.root_only = true;
        self
    }
    /// Mask the values.
    pub const fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }

    /// Whether a live value (`None` = absent) is what is wanted (empty = absent).
    pub fn same(&self, live: Option<&str>, want: &str) -> bool {
        match (live.or(self.default), want) {
            (None, want) => want.is_empty(),
            (Some(_), "") => live.is_none(),
            (Some(live), want) => (self.normal)(live) == (self.normal)(want),
        }
    }
}

/// Adds the owned keys to a new property string; what PVE means anyway is left out.
pub fn write_new<T>(rows: &[Row<T>], item: &T, props: &mut Props) {
    for row in rows {
        if let Some(want) = (row.get)(item)
            && !row.same(None, &want)
        {
            props.set(row.key, want);
        }
    }
}

/// Brings the owned keys of a live property string to what is wanted and keeps everything else verbatim.
/// Says whether anything differed.
pub fn merge<T>(rows: &[Row<T>], item: &T, props: &mut Props) -> bool {
    let mut changed = false;
    for row in rows {
        let Some(want) = (row.get)(item) else { continue };
        if row.same(props.get(row.key), &want) {
            continue;
        }
        changed = true;
        if want.is_empty() {
            props.remove(row.key);
        } else {
            props.set(row.key, want);
        }
    }
    changed
}

/// Reads a live property string into a part of a spec, defaults left out. Returns the tokens that the
/// table does not know or can't express, apart from the `known` ones.
pub fn read<T>(rows: &[Row<T>], props: &Props, known: &[&str], item: &mut T) -> Vec<String> {
    let mut rest = Vec::new();
    for (key, value) in props.iter() {
        let expressed = match rows.iter().find(|row| row.key == key) {
            Some(row) => row.default.is_some_and(|d| row.same(Some(value), d)) || (row.put)(item, value),
            None => known.contains(&key),
        };
        if !expressed {
            rest.push(format!("{key}={value}"));
        }
    }
    rest
}

/// Text of an optional boolean.
pub fn flag(value: Option<bool>) -> Option<String> {
    value.map(|v| bool_text(v).to_owned())
}

/// Text of an optional number.
pub fn text<N: ToString>(value: Option<N>) -> Option<String> {
    value.map(|v| v.to_string())
}

/// Stores a parsed value; false when there is none.
pub fn store<V>(place: &mut Option<V>, value: Option<V>) -> bool {
    let there = value.is_some();
    *place = value;
    there
}
