//! What a client needs to know about its cluster.

use crate::class::Class;
use crate::error::PveError;
use proxops_secrets::Secret;
use reqwest::Url;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How a client proves who it is.
#[derive(Debug, Clone)]
pub enum Credential {
    /// The whole token: `user@realm!id=secret` (fact T12).
    Token(Secret),
    /// User name with realm, and password: a ticket is fetched and renewed (fact T13).
    Ticket {
        /// `user@realm`.
        user: String,
        /// The account's password.
        password: Secret,
    },
}

/// Whether anything may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everything.
    ReadWrite,
    /// GET only; the login for a ticket excepted.
    ReadOnly,
}

/// One cluster behind one endpoint.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Name of the cluster, for messages.
    pub cluster: String,
    /// https (port 8006 if it names none); http for loopback addresses only.
    pub base_url: String,
    /// How to log in.
    pub credential: Credential,
    /// PEM file with CA certificates to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    /// SHA-256 of the server's certificate as PVE shows it; when given, it alone decides.
    pub fingerprint: Option<String>,
    /// How long callers wait for one task unless they say otherwise.
    pub task_timeout: Duration,
    /// Reads in flight at one time, at least 1.
    pub concurrency: usize,
    /// Whether anything may be changed.
    pub mode: Mode,
}

impl ClientConfig {
    /// With the defaults of `reconcile.*`: 30 minutes, 8 reads, writes allowed.
    pub fn new(cluster: impl Into<String>, base_url: impl Into<String>, credential: Credential) -> Self {
        Self {
            cluster: cluster.into(),
            base_url: base_url.into(),
            credential,
            ca_file: None,
            fingerprint: None,
            task_timeout: Duration::from_secs(30 * 60),
            concurrency: 8,
            mode: Mode::ReadWrite,
        }
    }
}

/// A checked base-url.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// `scheme://host:port[/prefix]`, no slash at the end.
    pub base: String,
    /// Port and host are this machine's.
    pub loopback: bool,
    pub https: bool,
}

impl Endpoint {
    pub(crate) fn parse(text: &str) -> Result<Self, PveError> {
        let refuse = |why: &str| {
            // no quote of the whole: somebody may have put a password into it
            Err(PveError::setup(
                Class::Invalid,
                format!("base-url {why}; it looks like https://pve.example.net:8006"),
            ))
        };
        let Ok(mut url) = Url::parse(text.trim()) else { return refuse("is not a URL") };
        if !matches!(url.scheme(), "https" | "http") {
            return refuse("must start with https://");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("must not hold a user or password: credentials have their own settings");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse("must not hold ? or #");
        }
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
            return refuse("names no host");
        };
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let loopback = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        let https = url.scheme() == "https";
        if !https && !loopback {
            return refuse(
                "must be https: plain http would show the credential to the network (loopback excepted)",
            );
        }
        // `Url` hides an explicit :443, which is a port that somebody chose
        let authority = text.trim().split("://").nth(1).unwrap_or("").split('/').next().unwrap_or("");
        if https && url.port().is_none() && !authority.ends_with(":443") && url.set_port(Some(8006)).is_err()
        {
            return refuse("can't carry a port");
        }
        let base = url.as_str().trim_end_matches('/');
        let base = base.strip_suffix("/api2/json").unwrap_or(base);
        Ok(Self { base: base.to_owned(), loopback, https })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_without_a_port_means_8006() {
        for (text, base) in [
            ("https://pve.example.net", "https://pve.example.net:8006"),
            ("https://pve.example.net/", "https://pve.example.net:8006"),
            ("https://pve.example.net:443", "https://pve.example.net"),
            ("https://10.0.0.1:9000", "https://10.0.0.1:9000"),
            ("https://[fd00::1]", "https://[fd00::1]:8006"),
            ("https://pve:8006/api2/json/", "https://pve:8006"),
            ("https://gate.example.net:443/pve/", "https://gate.example.net/pve"),
        ] {
            assert_eq!(Endpoint::parse(text).unwrap().base, base, "{text}");
        }
    }

    #[test]
    fn plain_http_is_for_loopback_only() {
        for text in ["http://127.0.0.1:8006", "http://[::1]:1", "http://localhost:1"] {
            assert!(Endpoint::parse(text).unwrap().loopback, "{text}");
        }
        for text in ["http://10.0.0.1:8006", "http://localhost.example.net"] {
            assert!(Endpoint::parse(text).unwrap_err().message.contains("https"), "{text}");
        }
    }

    #[test]
    fn a_password_in_the_url_is_refused_and_not_quoted() {
        let error = Endpoint::parse("https://root:hunter2@pve:8006").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
        for text in ["", "pve:8006", "ftp://pve", "https://pve/?a=b", "https://"] {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
    }
}
