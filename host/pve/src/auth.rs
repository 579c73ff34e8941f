//! Who asks: an API token, or a ticket that is fetched, renewed and once replaced when refused.

use crate::answer::{self, Envelope};
use crate::class::Class;
use crate::config::Credential;
use crate::error::PveError;
use crate::path::{ParamText, cookie_text, form};
use crate::wire::Wire;
use proxops_model::kind::Method;
use proxops_secrets::Secret;
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderValue};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Tickets live 2 h (fact T13).
const RENEW_AFTER: Duration = Duration::from_secs(110 * 60);
/// For how long a refused login is not tried again: every attempt costs 3 s (fact T15), and accounts
/// can be locked by too many.
const REFUSAL_HOLDS: Duration = Duration::from_secs(10);
const LOGIN: &str = "/access/ticket";

#[derive(Debug)]
pub(crate) struct Auth {
    credential: Credential,
    session: Mutex<Session>,
}

#[derive(Debug, Default)]
enum Session {
    #[default]
    None,
    Ticket {
        ticket: Secret,
        csrf: Secret,
        since: Instant,
        number: u64,
        /// PVE refused it.
        stale: bool,
    },
    Refused {
        error: PveError,
        since: Instant,
    },
}

impl Session {
    /// A ticket that nobody refused and that is not about to expire.
    fn usable(&self, now: Instant) -> bool {
        match self {
            Self::Ticket { since, stale, .. } => {
                !stale && now.saturating_duration_since(*since) < RENEW_AFTER
            }
            _ => false,
        }
    }
}

/// Headers of one request, and which ticket they carry (0 = a token).
pub(crate) struct Headers {
    pub map: HeaderMap,
    pub ticket: u64,
}

#[derive(serde::Deserialize)]
struct Login {
    #[serde(default)]
    ticket: Option<String>,
    #[serde(default, rename = "CSRFPreventionToken")]
    csrf: Option<String>,
    #[serde(default, rename = "NeedTFA")]
    need_tfa: crate::lenient::Scalar,
}

impl Auth {
    pub(crate) fn new(credential: Credential) -> Result<Self, PveError> {
        match &credential {
            Credential::Token(token) => {
                let shape = token.expose().split_once('=').and_then(|(id, secret)| {
                    let (user, name) = id.split_once('!')?;
                    Some(user.contains('@') && !name.is_empty() && !secret.is_empty())
                });
                if shape != Some(true) {
                    return Err(PveError::setup(
                        Class::Auth,
                        "the API token is not of the form user@realm!id=secret",
                    ));
                }
            }
            Credential::Ticket { user, password } => {
                if !user.contains('@') {
                    return Err(PveError::setup(Class::Auth, "the user needs its realm, such as root@pam"));
                }
                if password.is_empty() {
                    return Err(PveError::setup(Class::Auth, format!("the password of {user} is empty")));
                }
            }
        }
        Ok(Self { credential, session: Mutex::default() })
    }

    /// A ticket of root@pam: may do what PVE allows to nobody else (fact T26).
    pub(crate) fn is_root(&self) -> bool {
        matches!(&self.credential, Credential::Ticket { user, .. } if user == "root@pam")
    }

    /// Who logs in: `user@realm`, or `user@realm!id` for a token. No secret.
    pub(crate) fn identity(&self) -> &str {
        match &self.credential {
            Credential::Token(token) => token.expose().split_once('=').map_or("", |(id, _)| id),
            Credential::Ticket { user, .. } => user,
        }
    }

    /// Values that no message may show.
    pub(crate) async fn secrets(&self) -> Vec<Secret> {
        match &self.credential {
            Credential::Token(token) => {
                let secret = token.expose().split_once('=').map_or("", |(_, secret)| secret);
                vec![token.clone(), Secret::new(secret)]
            }
            Credential::Ticket { password, .. } => match &*self.session.lock().await {
                Session::Ticket { ticket, csrf, .. } => vec![password.clone(), ticket.clone(), csrf.clone()],
                _ => vec![password.clone()],
            },
        }
    }

    /// The headers for a request; logs in or renews first where that is due.
    pub(crate) async fn headers(&self, wire: &Wire, write: bool) -> Result<Headers, PveError> {
        match &self.credential {
            Credential::Token(token) => {
                // the value is URI-decoded and ends at `;` (fact T12)
                let token = Secret::new(token.expose().replace('%', "%25").replace(';', "%3B"));
                let mut map = HeaderMap::new();
                map.insert(AUTHORIZATION, sensitive("PVEAPIToken=", &token)?);
                Ok(Headers { map, ticket: 0 })
            }
            Credential::Ticket { user, password } => self.ticket_headers(wire, user, password, write).await,
        }
    }

    async fn ticket_headers(
        &self,
        wire: &Wire,
        user: &str,
        password: &Secret,
        write: bool,
    ) -> Result<Headers, PveError> {
        let mut session = self.session.lock().await;
        let last = match &*session {
            Session::Refused { error, since } if since.elapsed() < REFUSAL_HOLDS => return Err(error.clone()),
            Session::Ticket { number, .. } => *number,
            _ => 0,
        };
        if !session.usable(Instant::now()) {
            match login(wire, user, password).await {
                Ok((ticket, csrf)) => {
                    let (since, number) = (Instant::now(), last + 1);
                    *session = Session::Ticket { ticket, csrf, since, number, stale: false };
                }
                Err(error) => {
                    if error.class == Class::Auth {
                        *session = Session::Refused { error: error.clone(), since: Instant::now() };
                    }
                    return Err(error);
                }
            }
        }
        let Session::Ticket { ticket, csrf, number, .. } = &*session else {
            return Err(PveError::request(Class::Auth, "POST", LOGIN, "no ticket"));
        };
        let mut map = HeaderMap::new();
        map.insert(COOKIE, sensitive("PVEAuthCookie=", &Secret::new(cookie_text(ticket.expose())))?);
        if write {
            map.insert("CSRFPreventionToken", sensitive("", csrf)?);
        }
        Ok(Headers { map, ticket: *number })
    }

    /// Notes that this ticket was refused; another request may have replaced it already. Whether trying
    /// again makes sense.
    pub(crate) async fn refused(&self, ticket: u64) -> bool {
        if ticket == 0 {
            return false;
        }
        if let Session::Ticket { number, stale, .. } = &mut *self.session.lock().await {
            *stale |= *number == ticket;
        }
        true
    }
}

/// Fetches a ticket. Changes nothing in PVE, so it may be repeated like a read.
async fn login(wire: &Wire, user: &str, password: &Secret) -> Result<(Secret, Secret), PveError> {
    let body = form(&[
        ("username".to_owned(), ParamText::from(user)),
        ("password".to_owned(), ParamText::Secret(password.clone())),
    ]);
    let raw = wire
        .exchange(Method::Post, LOGIN, "", Some(body), HeaderMap::new())
        .await
        .map_err(|fault| answer::fault("POST", LOGIN, false, fault));
    let login: Envelope<Login> = answer::decode("POST", LOGIN, false, raw?)
        .map_err(|error| told_plainly(error, user).scrubbed([password]))?;
    if login.data.need_tfa.flag() {
        return Err(PveError::request(
            Class::Auth,
            "POST",
            LOGIN,
            format!("{user} needs a second factor, which proxops can't give: use an API token instead"),
        ));
    }
    match (login.data.ticket, login.data.csrf) {
        (Some(ticket), Some(csrf)) => Ok((Secret::new(ticket), Secret::new(csrf))),
        _ => Err(PveError::request(Class::NotJson, "POST", LOGIN, "the answer to the login holds no ticket")),
    }
}

/// Says whose login failed, and quotes no answer that might hold a ticket.
fn told_plainly(mut error: PveError, user: &str) -> PveError {
    match error.class {
        Class::Auth => error.message = format!("PVE refused the password of {user}: {}", error.message),
        Class::NotJson => error.message = "the answer to the login is not PVE's".to_owned(),
        _ => {}
    }
    error
}

fn sensitive(prefix: &str, secret: &Secret) -> Result<HeaderValue, PveError> {
    let text = Secret::new(format!("{prefix}{}", secret.expose()));
    let mut value = HeaderValue::from_str(text.expose()).map_err(|_| {
        PveError::setup(Class::Auth, "the credential holds characters that no header can carry")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_renewed_before_its_two_hours_are_over() {
        let since = Instant::now();
        let session = |stale| Session::Ticket {
            ticket: Secret::new("t"),
            csrf: Secret::new("c"),
            since,
            number: 1,
            stale,
        };
        let minutes = |n: u64| since + Duration::from_secs(n * 60);
        assert!(session(false).usable(minutes(100)));
        assert!(!session(false).usable(minutes(115)));
        assert!(!session(true).usable(minutes(1)));
        assert!(!Session::None.usable(since));
    }
}
