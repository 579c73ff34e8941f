//! The served calls: one table row each, and the order in which PVE checks them (fact T20).

pub mod cluster;
pub mod ct;
pub mod firewall;
pub mod node;
pub mod pool;
pub mod storage;
pub mod vm;

use serde_json::{Map, Value};

use crate::grammar::Table;
use crate::grammar::check::{self, Args};
use crate::refused::{Refused, Reply};
use crate::world::{Caller, World};

/// The privileges a call declares; `{name}` in a path is a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Nobody needs to be logged in.
    World,
    /// Any caller; the handler may check more.
    All,
    /// All of the privileges on the path.
    Need(&'static str, &'static [&'static str]),
    /// One of the privileges on the path.
    Any(&'static str, &'static [&'static str]),
    /// Both.
    And(&'static Access, &'static Access),
    /// Either.
    Or(&'static Access, &'static Access),
}

/// A call on its way to its handler.
#[derive(Debug)]
pub struct Call<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// Checked parameters, path included.
    pub args: Args,
}

impl Call<'_> {
    /// A parameter as text, empty when it was not sent.
    pub fn text(&self, name: &str) -> &str {
        self.args.get(name).map_or("", String::as_str)
    }

    /// A parameter that may be missing.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.args.get(name).map(String::as_str)
    }

    /// Whether a boolean is set.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == Some("1")
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(|text| text.parse().ok())
    }

    /// The node in the path.
    pub fn node(&self) -> &str {
        self.text("node")
    }

    /// The guest in the path.
    pub fn vmid(&self) -> u32 {
        self.get("vmid").and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

/// A good answer: `data`, and `total` beside it on lists of tasks and log lines.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// What the call returns.
    pub data: Value,
    /// Number of rows there are.
    pub total: Option<usize>,
}

impl From<Value> for Answer {
    fn from(data: Value) -> Self {
        Self { data, total: None }
    }
}

type Handler = fn(&mut World, &Call<'_>) -> Reply<Answer>;

/// One served call.
#[derive(Clone, Copy)]
pub struct Endpoint {
    /// HTTP method.
    pub method: &'static str,
    /// Path with `{name}` for parameters; the last one may hold slashes if it is `{volume}` (fact S8).
    pub path: &'static str,
    /// Whether API tokens may call it (fact T28).
    pub token: bool,
    /// Declared privileges.
    pub access: Access,
    /// Accepted parameters.
    pub params: Table,
    run: Handler,
}

const fn on(
    method: &'static str,
    path: &'static str,
    access: Access,
    params: Table,
    run: Handler,
) -> Endpoint {
    Endpoint { method, path, token: true, access, params, run }
}

/// Every served call.
pub const ENDPOINTS: &[&[Endpoint]] = &[
    cluster::ENDPOINTS,
    node::ENDPOINTS,
    storage::ENDPOINTS,
    vm::ENDPOINTS,
    ct::ENDPOINTS,
    pool::ENDPOINTS,
    firewall::ENDPOINTS,
];

/// The call that serves a request, and what its path says.
pub fn route(method: &str, path: &str) -> Option<(&'static Endpoint, Vec<(&'static str, String)>)> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    ENDPOINTS
        .iter()
        .flat_map(|group| group.iter())
        .filter(|endpoint| endpoint.method == method)
        .find_map(|endpoint| bind(endpoint.path, &parts).map(|bound| (endpoint, bound)))
}

fn bind(pattern: &'static str, parts: &[&str]) -> Option<Vec<(&'static str, String)>> {
    let mut bound = Vec::new();
    let mut rest = parts;
    for name in pattern.split('/').filter(|part| !part.is_empty()) {
        let (first, tail) = rest.split_first()?;
        match name.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some("volume") => {
                bound.push(("volume", rest.join("/")));
                return Some(bound);
            }
            Some(parameter) => bound.push((parameter, (*first).to_owned())),
            None if name == *first => {}
            None => return None,
        }
        rest = tail;
    }
    rest.is_empty().then_some(bound)
}

/// Whether a call needs no login (fact T16).
pub fn is_open(method: &str, path: &str) -> bool {
    route(method, path).is_some_and(|(endpoint, _)| matches!(endpoint.access, Access::World))
}

/// Answers one call, in PVE's order of checks (fact T20).
pub(crate) fn answer(
    world: &mut World,
    caller: &Caller,
    method: &str,
    path: &str,
    params: Map<String, Value>,
) -> Reply<Answer> {
    world.settle();
    let Some((endpoint, bound)) = route(method, path) else {
        return Err(Refused::new(501, format!("Method '{method} {path}' not implemented")));
    };
    let mut params = params;
    for (name, value) in bound {
        if let Some(sent) = params.get(name)
            && text_of(sent) != value
        {
            return Err(Refused::param(
                name,
                "duplicate parameter (already defined in URI) with conflicting values!",
            ));
        }
        let value = if name == "node" && value == "localhost" { world.local_node() } else { value };
        params.insert(name.to_owned(), Value::String(value));
    }
    if caller.token.is_some() && !endpoint.token {
        let why = format!("URI '{path}' not available with API token, need proper ticket.");
        return Err(Refused::new(403, format!("Permission check failed ({why}")));
    }
    allowed(world, caller, &endpoint.access, &params)?;
    if let Some(node) = params.get("node").and_then(Value::as_str).filter(|_| path.starts_with("/nodes/")) {
        reachable(world, node)?;
    }
    let args = check::check(endpoint.params, &params).map_err(Refused::params)?;
    let call = Call { caller, args };
    if method != "GET" {
        writable(world, endpoint.path, &call)?;
    }
    (endpoint.run)(world, &call)
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn allowed(world: &World, caller: &Caller, access: &Access, params: &Map<String, Value>) -> Reply<()> {
    match access {
        Access::World | Access::All => Ok(()),
        Access::Need(path, privileges) => match fill(path, params) {
            Some(path) => world.need(caller, &path, privileges),
            None => Err(Refused::denied("")),
        },
        Access::Any(path, privileges) => match fill(path, params) {
            Some(path) => world.need_any(caller, &path, privileges),
            None => Err(Refused::denied("")),
        },
        Access::And(a, b) => {
            allowed(world, caller, a, params)?;
            allowed(world, caller, b, params)
        }
        Access::Or(a, b) => {
            let either =
                allowed(world, caller, a, params).is_ok() || allowed(world, caller, b, params).is_ok();
            if either || caller.is_root() { Ok(()) } else { Err(Refused::denied("")) }
        }
    }
}

/// Puts parameters into a permission path; `None` when one is missing.
fn fill(path: &str, params: &Map<String, Value>) -> Option<String> {
    let mut filled = String::new();
    let mut rest = path;
    while let Some((before, tail)) = rest.split_once('{') {
        let (name, after) = tail.split_once('}')?;
        filled.push_str(before);
        filled.push_str(&text_of(params.get(name)?));
        rest = after;
    }
    filled.push_str(rest);
    Some(filled)
}

/// The proxy between nodes (facts T23, T25).
fn reachable(world: &World, node: &str) -> Reply<()> {
    match world.nodes.get(node) {
        Some(state) if state.online => Ok(()),
        Some(_) => Err(Refused::new(595, "No route to host")),
        None => Err(Refused::die(format!(
            "hostname lookup '{node}' failed - failed to get address info for: {node}: Name or service not known"
        ))),
    }
}

/// Quorum and config locks (facts C13, E busy).
fn writable(world: &mut World, path: &str, call: &Call<'_>) -> Reply<()> {
    let guest = path.contains("/qemu") || path.contains("/lxc");
    if !world.quorate {
        if guest {
            return Err(Refused::die("cluster not ready - no quorum?"));
        }
        let file = match path.split('/').nth(if path.starts_with("/cluster") { 2 } else { 1 }) {
            Some("pools") => Some("file-user_cfg"),
            Some("ha") => Some("domain-ha"),
            Some("firewall") => Some("firewall-cluster"),
            Some("options") => Some("file-datacenter_cfg"),
            _ => None,
        };
        if let Some(file) = file {
            return Err(Refused::die(format!("cfs-lock '{file}' error: no quorum!")));
        }
    }
    let vmid = call.vmid();
    if guest
        && path.contains("{vmid}")
        && let Some(left) = world.busy.get_mut(&vmid).filter(|left| **left > 0)
    {
        *left -= 1;
        let file = if path.contains("/qemu") {
            format!("/var/lock/qemu-server/lock-{vmid}.conf")
        } else {
            format!("/run/lock/lxc/pve-config-{vmid}.lock")
        };
        return Err(Refused::die(format!("can't lock file '{file}' - got timeout")));
    }
    Ok(())
}

impl World {
    /// The node that a client is connected to: the first one that is up.
    pub(crate) fn local_node(&self) -> String {
        self.nodes
            .iter()
            .find(|(_, node)| node.online)
            .map_or_else(|| "localhost".to_owned(), |(name, _)| name.clone())
    }
}
