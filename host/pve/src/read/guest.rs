//! One guest: its configuration, what waits for a restart, whether it runs.

use super::{guest_path, unreadable};
use crate::client::Client;
use crate::error::PveError;
use crate::lenient::{Live, LiveValues, Scalar};
use crate::path::path;
use proxops_model::kind::{GuestType, LivePower, LiveValue, PendingValue};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Reported as a mask whenever it is set (fact Q23).
const MASKED: &str = "cipassword";

/// A guest in its node's list, which is current where the inventory lags (fact C2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestEntry {
    /// Its id.
    pub vmid: u32,
    /// Its name or hostname.
    pub name: Option<String>,
    /// running or stopped; a paused VM is running.
    pub status: String,
    /// Name of the lock.
    pub lock: Option<String>,
    /// Marked as a template.
    pub template: bool,
    /// As PVE joins them.
    pub tags: String,
}

/// A guest's configuration with pending changes applied (fact Q25).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuestConfig {
    /// All but `digest` and masked secrets.
    pub values: BTreeMap<String, LiveValue>,
    /// For the next write (fact Q27).
    pub digest: Option<String>,
    /// Name of the lock.
    pub lock: Option<String>,
    /// A VM's name, a container's hostname.
    pub name: Option<String>,
    /// As PVE joins them; "" = none.
    pub tags: String,
    /// Marked as a template.
    pub template: bool,
    /// Protection mode.
    pub protection: bool,
    /// Keys whose values PVE masks, sorted.
    pub secrets_present: Vec<String>,
}

/// A guest's state now (fact Q49).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestStatus {
    /// running or stopped.
    pub status: String,
    /// A VM's finer state, such as "paused".
    pub qmp_status: Option<String>,
    /// Name of the lock.
    pub lock: Option<String>,
    /// HA manages it.
    pub ha_managed: bool,
}

impl GuestStatus {
    /// In the contract's words.
    pub fn power(&self) -> LivePower {
        match (self.status.as_str(), self.qmp_status.as_deref()) {
            ("stopped", _) => LivePower::Stopped,
            ("running", Some("paused" | "suspended" | "prelaunch")) => LivePower::Paused,
            ("running", _) => LivePower::Running,
            _ => LivePower::Unknown,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    vmid: Scalar,
    name: Scalar,
    status: Scalar,
    lock: Scalar,
    template: Scalar,
    tags: Scalar,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Current {
    status: Scalar,
    qmpstatus: Scalar,
    lock: Scalar,
    ha: Ha,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ha {
    managed: Scalar,
}

#[derive(Deserialize)]
struct PendingAnswer {
    key: String,
    #[serde(default)]
    value: Option<Live>,
    #[serde(default)]
    pending: Option<Live>,
    #[serde(default)]
    delete: Scalar,
}

impl Client {
    /// The guests of one type on one node, sorted by vmid.
    pub async fn guest_list(&self, node: &str, guest_type: GuestType) -> Result<Vec<GuestEntry>, PveError> {
        let at = path(&["nodes", node, guest_type.as_str()])?;
        let rows = self.read::<Vec<Entry>>(&at, &[]).await?.data;
        let mut list: Vec<GuestEntry> = rows
            .into_iter()
            .map(|row| match row.vmid.vmid() {
                Some(vmid) => Ok(GuestEntry {
                    vmid,
                    name: row.name.filled(),
                    status: row.status.or_empty(),
                    lock: row.lock.filled(),
                    template: row.template.flag(),
                    tags: row.tags.or_empty(),
                }),
                None => Err(unreadable(&at, "a guest without a vmid")),
            })
            .collect::<Result<_, _>>()?;
        list.sort_by_key(|guest| guest.vmid);
        Ok(list)
    }

    /// A guest's configuration. A guest that is not there is `NotFound`.
    pub async fn guest_config(
        &self,
        node: &str,
        guest_type: GuestType,
        vmid: u32,
    ) -> Result<GuestConfig, PveError> {
        let at = guest_path(node, guest_type, vmid, &["config"])?;
        let values = self.read::<LiveValues>(&at, &[]).await?.data.0;
        Ok(config(guest_type, values))
    }

    /// What differs between the running guest and its configuration, sorted by key. PVE lists every key;
    /// here are only those that a restart would change.
    pub async fn guest_pending(
        &self,
        node: &str,
        guest_type: GuestType,
        vmid: u32,
    ) -> Result<Vec<PendingValue>, PveError> {
        let at = guest_path(node, guest_type, vmid, &["pending"])?;
        let rows = self.read::<Vec<PendingAnswer>>(&at, &[]).await?.data;
        let mut list: Vec<PendingValue> = rows.into_iter().filter_map(pending).collect();
        list.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(list)
    }

    /// A guest's state now.
    pub async fn guest_status(
        &self,
        node: &str,
        guest_type: GuestType,
        vmid: u32,
    ) -> Result<GuestStatus, PveError> {
        let at = guest_path(node, guest_type, vmid, &["status", "current"])?;
        let now = self.read::<Current>(&at, &[]).await?.data;
        Ok(GuestStatus {
            status: now.status.or_empty(),
            qmp_status: now.qmpstatus.filled(),
            lock: now.lock.filled(),
            ha_managed: now.ha.managed.flag(),
        })
    }
}

fn config(guest_type: GuestType, mut values: BTreeMap<String, LiveValue>) -> GuestConfig {
    let text = |key: &str| {
        let text = values.get(key).and_then(LiveValue::text);
        text.filter(|text| !text.trim().is_empty()).map(str::to_owned)
    };
    let flag = |key: &str| text(key).is_some_and(|text| Scalar::from(text.as_str()).flag());
    let config = GuestConfig {
        digest: text("digest"),
        lock: text("lock"),
        name: text(guest_type.name_key()),
        tags: text("tags").unwrap_or_default(),
        template: flag("template"),
        protection: flag("protection"),
        ..GuestConfig::default()
    };
    values.remove("digest");
    let masked = values.remove(MASKED).is_some();
    let secrets_present = if masked { vec![MASKED.to_owned()] } else { Vec::new() };
    GuestConfig { secrets_present, values, ..config }
}

/// The row of `digest` is no key (fact R14), and the password never waits (fact Q23).
fn pending(row: PendingAnswer) -> Option<PendingValue> {
    if matches!(row.key.as_str(), "digest" | MASKED) {
        return None;
    }
    let text = |value: Option<Live>| {
        value.map(|Live(value)| match value {
            LiveValue::Text(text) | LiveValue::Json(text) => text,
        })
    };
    let running = text(row.value);
    // 1, or 2 for "by force"
    let configured = match row.delete.whole().unwrap_or(0) {
        0 => Some(text(row.pending)?),
        _ => None,
    };
    (configured != running || configured.is_none()).then_some(PendingValue {
        key: row.key,
        running,
        configured,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(answer: Value) -> GuestConfig {
        config(GuestType::Qemu, serde_json::from_value::<LiveValues>(answer).unwrap().0)
    }

    #[test]
    fn a_masked_password_is_named_and_left_out() {
        let config =
            of(json!({"name": "web", "cipassword": "**********", "digest": "abc", "memory": "2048"}));
        assert_eq!(config.secrets_present, ["cipassword"]);
        assert_eq!(config.values.keys().collect::<Vec<_>>(), ["memory", "name"]);
        assert_eq!(config.digest.as_deref(), Some("abc"));
    }

    #[test]
    fn flags_and_numbers_are_read_in_every_form() {
        for one in [json!(1), json!("1"), json!(true)] {
            let config = of(json!({"template": one.clone(), "protection": one, "cores": 4.0}));
            assert!(config.template && config.protection);
            assert_eq!(config.values["cores"], LiveValue::Text("4".into()));
            assert_eq!(config.values["template"], LiveValue::Text("1".into()));
        }
    }

    #[test]
    fn raw_lines_of_a_container_stay_json() {
        let answer = json!({"hostname": "ct", "lxc": [["lxc.signal.halt", "SIGINT"]]});
        let config = config(GuestType::Lxc, serde_json::from_value::<LiveValues>(answer).unwrap().0);
        assert_eq!(config.name.as_deref(), Some("ct"));
        assert!(matches!(&config.values["lxc"], LiveValue::Json(text) if text.contains("SIGINT")));
    }

    #[test]
    fn only_real_differences_are_pending() {
        let rows = json!([
            {"key": "digest", "value": "abc", "pending": "def"},
            {"key": "cipassword", "value": "**********", "pending": "**********"},
            {"key": "memory", "value": 2048, "pending": "2048"},
            {"key": "name", "value": "web"},
            {"key": "cores", "value": 2, "pending": 4},
            {"key": "vga", "value": "std", "delete": 1},
            {"key": "bios", "pending": "ovmf"},
            {"key": "agent", "value": "1", "delete": 0},
        ]);
        let rows: Vec<PendingAnswer> = serde_json::from_value(rows).unwrap();
        let list: Vec<_> = rows
            .into_iter()
            .filter_map(pending)
            .map(|p| (p.key, p.running.unwrap_or("-".into()), p.configured.unwrap_or("-".into())))
            .collect();
        let want = [("cores", "2", "4"), ("vga", "std", "-"), ("bios", "-", "ovmf")];
        assert_eq!(list, want.map(|(k, r, c)| (k.to_owned(), r.to_owned(), c.to_owned())));
    }
}
