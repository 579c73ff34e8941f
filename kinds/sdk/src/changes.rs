//! Compares fields one by one and collects what follows: changes, parameters, values already pending.

use crate::{
    Anomaly, Change, ConfigureStep, DriftReport, LiveView, Param, ParamRef, Step, Value,
    text::{bool_text, number, parse_bool},
};

/// Brings two spellings of a value to one form.
pub type Normal = fn(&str) -> String;

/// As it stands.
pub fn exact(text: &str) -> String {
    text.to_owned()
}

/// A number: `2`, `2.0` and `02` are equal.
pub fn numeric(text: &str) -> String {
    number(text).into_owned()
}

/// A boolean in any spelling.
pub fn boolean(text: &str) -> String {
    parse_bool(text).map_or_else(|| text.to_owned(), |b| bool_text(b).to_owned())
}

/// Text that PVE may strip or end with a newline (fact Q37).
pub fn trimmed(text: &str) -> String {
    text.trim_end().to_owned()
}

/// How one field of the manifest maps to one PVE key.
#[derive(Debug, Clone, Copy)]
pub struct Field<'f> {
    /// Pointer into the manifest.
    pub at: &'f str,
    /// PVE's key.
    pub key: &'f str,
    /// What PVE means when the key is absent.
    pub default: Option<&'f str>,
    /// Which texts are equal.
    pub normal: Normal,
    /// PVE applies it only after a stop.
    pub needs_stop: bool,
    /// Mask both values.
    pub sensitive: bool,
}

impl<'f> Field<'f> {
    /// Compared as it stands, applied at once.
    pub fn new(at: &'f str, key: &'f str) -> Self {
        Self { at, key, default: None, normal: exact, needs_stop: false, sensitive: false }
    }
    /// What PVE means when the key is absent.
    #[must_use]
    pub fn default(mut self, value: &'f str) -> Self {
        self.default = Some(value);
        self
    }
    /// Which texts are equal.
    #[must_use]
    pub fn normal(mut self, normal: Normal) -> Self {
        self.normal = normal;
        self
    }
    /// PVE applies it only after a stop.
    #[must_use]
    pub fn needs_stop(mut self, needs_stop: bool) -> Self {
        self.needs_stop = needs_stop;
        self
    }
    /// Mask both values.
    #[must_use]
    pub fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }
}

/// What one guest's comparison found.
#[derive(Debug, Default)]
pub struct Changes {
    /// Fields that differ.
    pub changes: Vec<Change>,
    /// Keys to write.
    pub set: Vec<Param>,
    /// Keys to remove.
    pub unset: Vec<ParamRef>,
    /// Steps after the configuration is written.
    pub later: Vec<Step>,
    /// Wanted values that wait for a restart.
    pub pending: Vec<Change>,
    /// What a person must know.
    pub anomalies: Vec<Anomaly>,
}

impl Changes {
    /// Nothing found.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wants a text value; writes it when the live one differs. Says whether it does.
    pub fn want(&mut self, live: &LiveView<'_>, field: Field<'_>, want: &str) -> bool {
        let normal = field.normal;
        let now = live.text(field.key).or(field.default);
        let same =
            now.is_some_and(|now| normal(now) == normal(want)) && (now.is_some() || !live.has(field.key));
        self.settle(live, field, same, Some(want.to_owned()), Value::Text(want.to_owned()))
    }

    /// Wants the key absent.
    pub fn want_absent(&mut self, live: &LiveView<'_>, field: Field<'_>) -> bool {
        if live.has(field.key) {
            self.note(live, field, None);
            self.unset.push(ParamRef::new(field.key).at(field.at));
            return true;
        }
        self.note_pending(live, field);
        false
    }

    /// For values with their own comparison: `same` says whether the live value is right; otherwise
    /// `write` is sent and `shown` displayed.
    pub fn settle(
        &mut self,
        live: &LiveView<'_>,
        field: Field<'_>,
        same: bool,
        shown: Option<String>,
        write: Value,
    ) -> bool {
        if same {
            self.note_pending(live, field);
            return false;
        }
        self.note(live, field, shown);
        self.set.push(Param {
            key: field.key.to_owned(),
            value: write,
            at: Some(field.at.to_owned()),
            ext: Vec::new(),
        });
        true
    }

    /// Records a difference without a write.
    pub fn note(&mut self, live: &LiveView<'_>, field: Field<'_>, after: Option<String>) {
        let mut change = Change::new(field.at, field.key, live.text(field.key).map(str::to_owned), after);
        change.sensitive = field.sensitive;
        // Back to what runs only takes a waiting change away.
        let running = live.pending(field.key).and_then(|p| p.running.as_deref());
        let takes_back =
            running.is_some_and(|r| change.after.as_deref().map(field.normal) == Some((field.normal)(r)));
        change.needs_stop = field.needs_stop && live.is_running() && !takes_back;
        self.changes.push(change);
    }

    /// Records that the wanted value waits for a restart, if it does.
    pub fn note_pending(&mut self, live: &LiveView<'_>, field: Field<'_>) {
        if let Some(waiting) = live.pending(field.key)
            && !self.pending.iter().any(|c| c.key == field.key)
        {
            let mut change =
                Change::new(field.at, field.key, waiting.running.clone(), waiting.configured.clone());
            change.sensitive = field.sensitive;
            change.needs_stop = true;
            self.pending.push(change);
        }
    }

    /// Whether nothing has to be written.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.unset.is_empty() && self.later.is_empty()
    }

    /// The report: one configuration step, then what comes later.
    pub fn into_report(mut self) -> DriftReport {
        let mut steps = Vec::new();
        if !self.set.is_empty() || !self.unset.is_empty() {
            // PVE refuses a key that stands in both lists (fact Q28).
            let mut seen: Vec<String> = self.set.iter().map(|p| p.key.clone()).collect();
            self.unset.retain(|gone| {
                let new = !seen.contains(&gone.key);
                seen.push(gone.key.clone());
                new
            });
            let (set, unset) = (self.set, self.unset);
            steps.push(Step::Configure(ConfigureStep { set, unset, revert: Vec::new(), ext: Vec::new() }));
        }
        steps.append(&mut self.later);
        DriftReport {
            changes: self.changes,
            steps,
            pending: self.pending,
            anomalies: self.anomalies,
            ext: Vec::new(),
        }
    }
}
