//! Users, tokens, tickets and privileges.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::World;
use crate::refused::{Refused, Reply};

/// Every privilege of PVE 9.2.
pub const PRIVILEGES: &[&str] = &[
    "Datastore.Allocate",
    "Datastore.AllocateSpace",
    "Datastore.AllocateTemplate",
    "Datastore.Audit",
    "Group.Allocate",
    "Mapping.Audit",
    "Mapping.Modify",
    "Mapping.Use",
    "Permissions.Modify",
    "Pool.Allocate",
    "Pool.Audit",
    "Realm.Allocate",
    "Realm.AllocateUser",
    "SDN.Allocate",
    "SDN.Audit",
    "SDN.Use",
    "Sys.AccessNetwork",
    "Sys.Audit",
    "Sys.Console",
    "Sys.Incoming",
    "Sys.Modify",
    "Sys.PowerMgmt",
    "Sys.Syslog",
    "User.Modify",
    "VM.Allocate",
    "VM.Audit",
    "VM.Backup",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Cloudinit",
    "VM.Config.Disk",
    "VM.Config.HWType",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.Console",
    "VM.GuestAgent.Audit",
    "VM.GuestAgent.FileRead",
    "VM.GuestAgent.FileSystemMgmt",
    "VM.GuestAgent.FileWrite",
    "VM.GuestAgent.Unrestricted",
    "VM.Migrate",
    "VM.PowerMgmt",
    "VM.Replicate",
    "VM.Snapshot",
    "VM.Snapshot.Rollback",
];

/// The smallest role with which a reconciler can do its work, on one ACL at `/` (fact P10), without
/// the extras for pools, artifacts, mappings and startup order.
pub const RECONCILER_ROLE: &[&str] = &[
    "VM.Allocate",
    "VM.Audit",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Cloudinit",
    "VM.Config.Disk",
    "VM.Config.HWType",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.PowerMgmt",
    "VM.GuestAgent.Audit",
    "Datastore.Audit",
    "Datastore.AllocateSpace",
    "Datastore.AllocateTemplate",
    "SDN.Use",
    "Sys.Audit",
    "Sys.AccessNetwork",
    "Pool.Audit",
];

/// Seconds a ticket lives (fact T13).
const TICKET_LIFE: u64 = 7200;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// `user@realm`; empty before login.
    pub user: String,
    /// Id of the API token, if one was used.
    pub token: Option<String>,
}

impl Caller {
    /// A user with a ticket.
    pub fn user(user: &str) -> Self {
        Self { user: user.to_owned(), token: None }
    }

    /// root@pam with a ticket: passes every check.
    pub fn root() -> Self {
        Self::user("root@pam")
    }

    /// An API token `user@realm!id`.
    pub fn token(user: &str, token: &str) -> Self {
        Self { user: user.to_owned(), token: Some(token.to_owned()) }
    }

    /// Nobody yet.
    pub fn anonymous() -> Self {
        Self::user("")
    }

    /// `user@realm` or `user@realm!token`.
    pub fn identity(&self) -> String {
        match &self.token {
            Some(token) => format!("{}!{token}", self.user),
            None => self.user.clone(),
        }
    }

    /// Whether root-only checks pass: a root@pam token is not root@pam (fact T26).
    pub fn is_root(&self) -> bool {
        self.token.is_none() && self.user == "root@pam"
    }
}

#[derive(Clone, Debug, Default)]
struct User {
    password: String,
    tokens: BTreeMap<String, Token>,
}

#[derive(Clone, Debug)]
struct Token {
    secret: String,
    separate: bool,
    /// Seconds since 1970; 0 = never.
    expire: u64,
}

#[derive(Clone, Debug)]
struct Acl {
    path: String,
    who: String,
    privileges: BTreeSet<String>,
    propagate: bool,
}

#[derive(Clone, Debug)]
struct Ticket {
    user: String,
    csrf: String,
    until: u64,
}

/// Users, ACLs and live tickets.
#[derive(Clone, Debug, Default)]
pub struct Access {
    users: BTreeMap<String, User>,
    acls: Vec<Acl>,
    tickets: BTreeMap<String, Ticket>,
}

impl World {
    /// Adds a user, or sets the password of one.
    pub fn add_user(&mut self, user: &str, password: &str) {
        self.access.users.entry(user.to_owned()).or_default().password = password.to_owned();
    }

    /// Adds an API token; `separate` is privilege separation: the token then has only what both its own
    /// ACLs and its user's allow (fact T27).
    pub fn add_token(&mut self, user: &str, id: &str, secret: &str, separate: bool) {
        let token = Token { secret: secret.to_owned(), separate, expire: 0 };
        self.access.users.entry(user.to_owned()).or_default().tokens.insert(id.to_owned(), token);
    }

    /// Sets when a token ends, in seconds since 1970; 0 = never.
    pub fn set_token_end(&mut self, user: &str, id: &str, expire: u64) {
        if let Some(token) = self.access.users.get_mut(user).and_then(|u| u.tokens.get_mut(id)) {
            token.expire = expire;
        }
    }

    /// What PVE says of a token, never its secret.
    pub(crate) fn token_info(&self, user: &str, id: &str) -> Reply {
        match self.access.users.get(user).and_then(|u| u.tokens.get(id)) {
            Some(token) => Ok(json!({"expire": token.expire, "privsep": u8::from(token.separate)})),
            None => Err(Refused::die(format!("no such token '{id}' for user '{user}'"))),
        }
    }

    /// Grants privileges on a path to `user@realm` or `user@realm!token`, replacing an older grant.
    pub fn grant(&mut self, who: &str, path: &str, privileges: &[&str], propagate: bool) {
        self.access.acls.retain(|acl| !(acl.who == who && acl.path == path));
        self.access.acls.push(Acl {
            path: path.to_owned(),
            who: who.to_owned(),
            privileges: privileges.iter().map(|p| (*p).to_owned()).collect(),
            propagate,
        });
    }

    /// Ends every ticket, as after a change of the authentication key.
    pub fn expire_tickets(&mut self) {
        self.access.tickets.clear();
    }

    /// The caller behind `user@realm!id=secret` (fact T12).
    pub fn token_caller(&self, credential: &str) -> Option<Caller> {
        let (identity, secret) = credential.split_once('=')?;
        let (user, id) = identity.split_once('!')?;
        let token = self.access.users.get(user)?.tokens.get(id)?;
        let ended = token.expire != 0 && token.expire <= self.unix_time();
        (token.secret == secret && !ended).then(|| Caller::token(user, id))
    }

    /// The caller behind a live ticket.
    pub fn ticket_caller(&self, ticket: &str) -> Option<Caller> {
        let ticket = self.access.tickets.get(ticket)?;
        (self.unix_time() < ticket.until).then(|| Caller::user(&ticket.user))
    }

    /// Whether the CSRF token belongs to one of the caller's live tickets (fact T14).
    pub fn csrf_valid(&self, caller: &Caller, csrf: &str) -> bool {
        let now = self.unix_time();
        self.access.tickets.values().any(|t| t.user == caller.user && t.csrf == csrf && now < t.until)
    }

    /// Login: `username` and either the password or an old ticket (fact T13).
    pub(crate) fn login(&mut self, username: &str, realm: Option<&str>, password: &str) -> Reply {
        let user = match realm {
            Some(realm) if !username.contains('@') => format!("{username}@{realm}"),
            _ => username.to_owned(),
        };
        let known =
            self.access.users.get(&user).is_some_and(|u| !u.password.is_empty() && u.password == password);
        let renewed = self.ticket_caller(password).is_some_and(|caller| caller.user == user);
        if !known && !renewed {
            return Err(Refused::new(401, "authentication failure"));
        }
        let now = self.unix_time();
        self.access.tickets.retain(|_, ticket| ticket.until > now);
        let serial = self.random();
        let ticket = format!("PVE:{user}:{now:08X}::c2lt{serial:016x}==");
        let csrf = format!("{now:08X}:c2lt{:016x}", self.random());
        let life = Ticket { user: user.clone(), csrf: csrf.clone(), until: now + TICKET_LIFE };
        self.access.tickets.insert(ticket.clone(), life);
        Ok(json!({
            "username": user,
            "ticket": ticket,
            "CSRFPreventionToken": csrf,
            "cap": {"vms": {}, "storage": {}, "nodes": {}, "access": {}, "dc": {}, "mapping": {}, "sdn": {}},
            "clustername": self.name,
        }))
    }

    /// Whether the caller has a privilege on a path.
    pub fn may(&self, caller: &Caller, path: &str, privilege: &str) -> bool {
        if caller.is_root() {
            return true;
        }
        let by_user = || caller.user == "root@pam" || self.granted(&caller.user, path, privilege);
        match &caller.token {
            None => by_user(),
            Some(id) => {
                let separate = self
                    .access
                    .users
                    .get(&caller.user)
                    .and_then(|u| u.tokens.get(id))
                    .is_none_or(|t| t.separate);
                (!separate || self.granted(&caller.identity(), path, privilege)) && by_user()
            }
        }
    }

    /// The deepest path with an entry decides; a pool's grant counts for its members too.
    fn granted(&self, who: &str, path: &str, privilege: &str) -> bool {
        if self.acl_has(who, path, privilege) {
            return true;
        }
        let member = |pool: &super::Pool| {
            path.strip_prefix("/vms/").and_then(|id| id.parse().ok()).is_some_and(|id| pool.vms.contains(&id))
                || path.strip_prefix("/storage/").is_some_and(|name| pool.storages.contains(name))
        };
        self.pools
            .iter()
            .any(|(name, pool)| member(pool) && self.acl_has(who, &format!("/pool/{name}"), privilege))
    }

    fn acl_has(&self, who: &str, path: &str, privilege: &str) -> bool {
        let mut at = path;
        loop {
            let here: Vec<&Acl> = self
                .access
                .acls
                .iter()
                .filter(|acl| acl.who == who && acl.path == at && (acl.propagate || at == path))
                .collect();
            if !here.is_empty() {
                return here.iter().any(|acl| acl.privileges.contains(privilege));
            }
            if at == "/" {
                return false;
            }
            at = match at.rfind('/') {
                Some(0) | None => "/",
                Some(cut) => &at[..cut],
            };
        }
    }

    /// 403 unless the caller has all of the privileges on the path.
    pub(crate) fn need(&self, caller: &Caller, path: &str, privileges: &[&str]) -> Reply<()> {
        match privileges.iter().find(|p| !self.may(caller, path, p)) {
            None => Ok(()),
            Some(missing) => Err(Refused::denied(&format!("{path}, {missing}"))),
        }
    }

    /// 403 unless the caller has one of the privileges on the path.
    pub(crate) fn need_any(&self, caller: &Caller, path: &str, privileges: &[&str]) -> Reply<()> {
        if privileges.iter().any(|p| self.may(caller, path, p)) {
            return Ok(());
        }
        Err(Refused::denied(&format!("{path}, {}", privileges.join("|"))))
    }

    /// `{path: {privilege: propagates}}` of the caller (fact C9).
    pub(crate) fn permissions(&self, caller: &Caller, only: Option<&str>) -> Value {
        let fixed = ["/", "/access", "/nodes", "/pool", "/sdn", "/storage", "/vms"];
        let mut paths: BTreeSet<&str> = fixed.into_iter().collect();
        paths.extend(self.access.acls.iter().map(|acl| acl.path.as_str()));
        if let Some(path) = only {
            paths = BTreeSet::from([path]);
        }
        let mut report = Map::new();
        for path in paths {
            let held: Map<String, Value> = PRIVILEGES
                .iter()
                .filter(|p| self.may(caller, path, p))
                .map(|p| ((*p).to_owned(), json!(1)))
                .collect();
            if !held.is_empty() || only.is_some() {
                report.insert(path.to_owned(), Value::Object(held));
            }
        }
        Value::Object(report)
    }
}
