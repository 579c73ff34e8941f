//! A live guest, looked up by key.

use crate::{Diagnostic, Live, LiveGuest, LivePower, LiveValue, Pending, Refusal};

/// A guest as PVE reports it.
#[derive(Debug)]
pub struct LiveView<'a> {
    /// The contract's record.
    pub guest: &'a LiveGuest,
    /// Sorted by key.
    values: Vec<(&'a str, &'a LiveValue)>,
}

impl<'a> LiveView<'a> {
    /// The guest of a live report; anything else is not for a guest kind.
    pub fn of(live: &'a Live) -> Result<Self, Refusal> {
        match live {
            Live::Guest(guest) => Ok(Self::new(guest)),
            _ => Err(vec![Diagnostic::error("not-a-guest", "", "the live object is not a guest")]),
        }
    }

    /// Of a guest.
    pub fn new(guest: &'a LiveGuest) -> Self {
        let mut values: Vec<_> = guest.values.iter().map(|(k, v)| (k.as_str(), v)).collect();
        values.sort_by_key(|(key, _)| *key);
        Self { guest, values }
    }

    /// The text of a key; `None` when it is not set (or not a scalar).
    pub fn text(&self, key: &str) -> Option<&'a str> {
        match self.get(key)? {
            LiveValue::Text(text) => Some(text),
            LiveValue::Json(_) => None,
        }
    }

    fn get(&self, key: &str) -> Option<&'a LiveValue> {
        let at = self.values.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        self.values.get(at).map(|(_, value)| *value)
    }

    /// Whether the key is set.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// All keys with their values, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a LiveValue)> {
        self.values.iter().copied()
    }

    /// The set keys `<prefix>N`, by N: index, key, text.
    pub fn slots(&self, prefix: &str) -> Vec<(u32, &'a str, &'a str)> {
        let start = self.values.partition_point(|(key, _)| *key < prefix);
        let mut out: Vec<(u32, &str, &str)> = self
            .values
            .get(start..)
            .unwrap_or_default()
            .iter()
            .take_while(|(key, _)| key.starts_with(prefix))
            .filter_map(|(key, value)| match value {
                LiveValue::Text(text) => Some((slot_index(key, prefix)?, *key, text.as_str())),
                LiveValue::Json(_) => None,
            })
            .collect();
        out.sort_unstable();
        out
    }

    /// Whether it runs: a guest that is not surely stopped counts as running.
    pub fn is_running(&self) -> bool {
        !matches!(self.guest.power, LivePower::Stopped)
    }

    /// The change of a key that waits for a restart.
    pub fn pending(&self, key: &str) -> Option<&'a Pending> {
        self.guest.pending.iter().find(|p| p.key == key)
    }

    /// Whether PVE hides this key from the credential: nobody can tell whether it is set.
    pub fn is_hidden(&self, key: &str) -> bool {
        self.guest.hidden.iter().any(|k| k == key)
    }

    /// Whether PVE reports this masked secret as set.
    pub fn has_secret(&self, key: &str) -> bool {
        self.guest.secrets_present.iter().any(|k| k == key)
    }
}

/// N of a key `<prefix>N` without leading zeros.
pub fn slot_index(key: &str, prefix: &str) -> Option<u32> {
    let digits = key.strip_prefix(prefix)?;
    let plain = digits == "0" || (digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0'));
    if plain { digits.parse().ok() } else { None }
}
