//! PVE's API schema, where that file is on the machine: every request must fit it.

#[path = "../../../kinds/container/tests/pve_schema/mod.rs"]
mod pve_schema;

use proxops_kind_tests::lab::Request;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Mutex;

type Methods = BTreeMap<String, Option<Map<String, Value>>>;
static METHODS: Mutex<Methods> = Mutex::new(Methods::new());

/// What PVE's schema says against a request.
pub fn complaints(request: &Request) -> Vec<String> {
    let name = name_of(request);
    let mut all = METHODS.lock().unwrap();
    let Some(schema) = all.entry(name.clone()).or_insert_with(|| pve_schema::method(&name)) else {
        return vec![];
    };
    let params: Vec<(String, String)> = request.params.clone().into_iter().collect();
    pve_schema::complaints(schema, &params)
}

/// `/nodes/{node}/qemu/{vmid}/config PUT`.
fn name_of(request: &Request) -> String {
    let parts: Vec<&str> = request.path.split('/').collect();
    let part = |(i, part): (usize, &&str)| match (parts[i.saturating_sub(1)], *part) {
        ("nodes", _) => "{node}".to_owned(),
        ("qemu" | "lxc", _) => "{vmid}".to_owned(),
        ("storage", _) if i > 2 => "{storage}".to_owned(),
        (_, other) => other.to_owned(),
    };
    let path: Vec<String> = parts.iter().enumerate().map(part).collect();
    format!("{} {}", path.join("/"), request.method)
}
