//! Which credential each cluster uses, and where it comes from.
//!
//! Environment over YAML, a cluster's secrets document over both. What comes from a document stays a
//! reference here: the daemon decrypts it and looks the key up.

use crate::{options::LoadOptions, reader::Reader};
use proxops_secrets::Secret;

/// `pve.auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// API token.
    Token,
    /// User and password.
    Ticket,
}

impl AuthMethod {
    /// All words with their methods.
    pub const WORDS: &[(&str, Self)] = &[("token", Self::Token), ("ticket", Self::Ticket)];
}

/// One value and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSource {
    /// Known already.
    Value {
        /// The value.
        value: Secret,
        /// Where it was found, such as `PROXOPS_PVE_TOKEN` or `proxops.yaml:3:3`.
        origin: String,
    },
    /// `secrets.<key>` of the cluster's secrets document.
    Document {
        /// The key under `secrets:`.
        key: String,
    },
}

impl CredentialSource {
    /// Where it comes from, for messages.
    pub fn origin(&self) -> String {
        match self {
            Self::Value { origin, .. } => origin.clone(),
            Self::Document { key } => format!("secrets.{key}"),
        }
    }
}

/// Credentials of the process: `proxops.yaml` with the environment laid over.
#[derive(Debug, Clone, Default)]
pub struct SharedCredentials {
    /// `pve.user`, with realm.
    pub user: Option<CredentialSource>,
    /// `pve.token-id`
    pub token_id: Option<CredentialSource>,
    /// `pve.token`: the secret part alone.
    pub token: Option<CredentialSource>,
    /// `pve.token-value`: `user@realm!id=secret`.
    pub token_value: Option<CredentialSource>,
    /// `pve.password`
    pub password: Option<CredentialSource>,
    /// `git.token`
    pub git_token: Option<CredentialSource>,
}

impl SharedCredentials {
    /// From the process file alone.
    pub(crate) fn read(r: &mut Reader<'_>) -> Self {
        let mut get = |pointer: &str| {
            let value = Secret::new(r.text(pointer)?);
            Some(CredentialSource::Value { value, origin: r.location(pointer).to_string() })
        };
        Self {
            user: get("/pve/user"),
            token_id: get("/pve/token-id"),
            token: get("/pve/token"),
            token_value: get("/pve/token-value"),
            password: get("/pve/password"),
            git_token: get("/git/token"),
        }
    }

    /// Lays the environment over.
    pub(crate) fn with_environment(mut self, options: &LoadOptions<'_>) -> Self {
        let lay = |slot: &mut Option<CredentialSource>, name: &str| {
            if let Some(value) = options.var(name) {
                *slot = Some(CredentialSource::Value { value: Secret::new(value), origin: name.to_owned() });
            }
        };
        lay(&mut self.user, "PROXOPS_PVE_USER");
        lay(&mut self.token, "PROXOPS_PVE_TOKEN");
        lay(&mut self.token_value, "PROXOPS_PVE_TOKEN_VALUE");
        lay(&mut self.password, "PROXOPS_PVE_PASSWORD");
        lay(&mut self.git_token, "PROXOPS_GIT_TOKEN");
        self
    }

    /// `token` and `token-value` are two spellings of one thing: where both come from, if both are set.
    pub(crate) fn conflict(&self) -> Option<(&CredentialSource, &CredentialSource)> {
        Some((self.token.as_ref()?, self.token_value.as_ref()?))
    }
}

/// What a cluster's entry refers to in its secrets document: keys under `secrets:`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretRefs {
    /// `secrets.pve.user`
    pub user: Option<String>,
    /// `secrets.pve.token-id`
    pub token_id: Option<String>,
    /// `secrets.pve.token`
    pub token: Option<String>,
    /// `secrets.pve.password`
    pub password: Option<String>,
    /// `secrets.git.token`
    pub git_token: Option<String>,
}

impl SecretRefs {
    /// Whether any PVE credential comes from the document.
    pub fn has_pve(&self) -> bool {
        [&self.user, &self.token_id, &self.token, &self.password].iter().any(|key| key.is_some())
    }

    /// Whether nothing comes from the document.
    pub fn is_empty(&self) -> bool {
        !self.has_pve() && self.git_token.is_none()
    }
}

/// How to log in to one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// The whole token, `user@realm!id=secret`.
    TokenValue(CredentialSource),
    /// A token in parts; see [`compose_token`].
    Token {
        /// `user@realm`; may be missing if the id is a whole one.
        user: Option<CredentialSource>,
        /// The token's name, or `user@realm!name`.
        token_id: CredentialSource,
        /// The secret.
        token: CredentialSource,
    },
    /// User and password.
    Ticket {
        /// `user@realm`
        user: CredentialSource,
        /// The password.
        password: CredentialSource,
    },
    /// Not enough is set. No error before somebody wants to log in: `validate` needs no credentials.
    Missing {
        /// What to set.
        help: String,
    },
}

/// Decides how a cluster logs in.
///
/// A cluster that refers to its secrets document for any PVE credential takes every secret from there;
/// the process's token and password do not exist for it, only its `user` and `token-id`, which are no
/// secrets. A token wins over a password unless `auth` says ticket.
pub fn decide(shared: &SharedCredentials, refs: &SecretRefs, auth: Option<AuthMethod>) -> Credentials {
    let document = |key: &Option<String>| key.clone().map(|key| CredentialSource::Document { key });
    let own = refs.has_pve();
    let secret = |key: &Option<String>, shared: &Option<CredentialSource>| {
        document(key).or_else(|| shared.clone().filter(|_| !own))
    };
    let user = document(&refs.user).or_else(|| shared.user.clone());
    let token_id = document(&refs.token_id).or_else(|| shared.token_id.clone());
    let token = secret(&refs.token, &shared.token);
    let password = secret(&refs.password, &shared.password);
    let token_value = shared.token_value.clone().filter(|_| !own);

    let missing = |what: &str| {
        let place =
            if own { "secrets.pve in the cluster's config.yaml" } else { "proxops.yaml or the environment" };
        Credentials::Missing { help: format!("{what} (in {place})") }
    };
    let use_ticket = match auth {
        Some(AuthMethod::Ticket) => true,
        Some(AuthMethod::Token) => false,
        None => token_value.is_none() && token.is_none() && password.is_some(),
    };
    if use_ticket {
        return match (user, password) {
            (Some(user), Some(password)) => Credentials::Ticket { user, password },
            (None, Some(_)) => missing("set `user`, such as root@pam, beside the password"),
            _ => missing("set `password`: `auth` is ticket"),
        };
    }
    if let Some(value) = token_value {
        return Credentials::TokenValue(value);
    }
    match (token_id, token) {
        (Some(token_id), Some(token)) => Credentials::Token { user, token_id, token },
        (None, Some(_)) => missing("set `token-id` beside the token"),
        _ if own => missing("refer to a token (`user`, `token-id`, `token`) or to a password"),
        _ => missing("set PROXOPS_PVE_TOKEN_VALUE to user@realm!id=secret, or a user and password"),
    }
}

/// Joins the parts of a token: `user@realm!id=secret`. An id that is whole already needs no user.
/// `None` when the user is missing.
pub fn compose_token(user: Option<&Secret>, token_id: &Secret, token: &Secret) -> Option<Secret> {
    let id = token_id.expose();
    let secret = token.expose();
    if id.contains('!') {
        return Some(Secret::new(format!("{id}={secret}")));
    }
    let user = user.filter(|user| !user.is_empty())?.expose();
    Some(Secret::new(format!("{user}!{id}={secret}")))
}
