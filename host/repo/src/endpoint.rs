//! A cluster's address.

use std::net::{IpAddr, Ipv6Addr};

/// Default port of PVE's API.
const PORT: u16 = 8006;

/// `https://host:port` without a trailing slash, normalised so that two spellings of one address are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// `scheme://host[:port]`
    pub url: String,
    /// Host and port alone: what two clusters may not share.
    pub address: (String, u16),
}

impl Endpoint {
    /// Reads a `base-url`.
    ///
    /// # Errors
    /// What is wrong with it and what to do.
    pub fn parse(text: &str) -> Result<Self, (&'static str, &'static str)> {
        const EXAMPLE: &str = "such as https://pve.example.org:8006";
        let (scheme, rest) = text.trim().split_once("://").ok_or(("`base-url` has no scheme", EXAMPLE))?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(("`base-url` must begin with https://", EXAMPLE)),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let path = path.trim_end_matches('/');
        if !matches!(path, "" | "/api2" | "/api2/json") {
            return Err((
                "`base-url` must not carry a path, query or fragment",
                "the API's own path is added",
            ));
        }
        if authority.contains('@') {
            return Err(("`base-url` must not carry a user", "credentials have settings of their own"));
        }
        let (host, port) = split_port(authority).ok_or(("`base-url` has no valid port", EXAMPLE))?;
        let (host, loopback) = normal_host(host).ok_or(("`base-url` has no valid host", EXAMPLE))?;
        if !secure && !loopback {
            return Err(("plain http is accepted for loopback addresses only", "use https://"));
        }
        let (url, port) = match (port, secure) {
            (Some(port), true) => (format!("https://{host}:{port}"), port),
            (None, true) => (format!("https://{host}:{PORT}"), PORT),
            (Some(port), false) => (format!("http://{host}:{port}"), port),
            (None, false) => (format!("http://{host}"), 80),
        };
        let address = if host == "localhost" { "127.0.0.1".to_owned() } else { host };
        Ok(Self { url, address: (address, port) })
    }
}

/// `None` = a port that is none.
fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let host_end = if authority.starts_with('[') {
        authority.find(']')? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, port) = authority.split_at(host_end);
    match port.strip_prefix(':') {
        None if port.is_empty() => Some((host, None)),
        Some(digits) if digits.chars().all(|c| c.is_ascii_digit()) => {
            digits.parse().ok().filter(|port| *port > 0).map(|port| (host, Some(port)))
        }
        _ => None,
    }
}

/// The host in its usual spelling, and whether it is this machine.
fn normal_host(host: &str) -> Option<(String, bool)> {
    if let Some(inner) = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        let address: Ipv6Addr = inner.parse().ok()?;
        return Some((format!("[{address}]"), address.is_loopback()));
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some((address.to_string(), address.is_loopback()));
    }
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    let numeric = host.chars().all(|c| c.is_ascii_digit() || c == '.');
    (host.len() <= 253 && !numeric && host.split('.').all(label)).then(|| {
        let loopback = host == "localhost";
        (host, loopback)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_port_is_added_for_https_only_and_a_given_one_is_kept() {
        for (text, url) in [
            ("https://pve.example.org", "https://pve.example.org:8006"),
            ("HTTPS://PVE.Example.org./", "https://pve.example.org:8006"),
            ("https://10.0.0.1:443/", "https://10.0.0.1:443"),
            ("https://[2001:DB8::1]", "https://[2001:db8::1]:8006"),
            ("https://pve:8006/api2/json", "https://pve:8006"),
            ("http://127.0.0.1:34567", "http://127.0.0.1:34567"),
            ("http://localhost", "http://localhost"),
        ] {
            assert_eq!(Endpoint::parse(text).map(|e| e.url), Ok(url.to_owned()), "{text}");
        }
    }

    #[test]
    fn two_spellings_of_one_address_are_equal() {
        let address = |text| Endpoint::parse(text).unwrap().address;
        assert_eq!(address("https://PVE.lan/"), address("https://pve.lan:8006"));
        assert_eq!(address("http://localhost:80"), address("http://127.0.0.1"));
        assert_eq!(address("https://[::0001]:8006"), address("https://[::1]"));
        assert_ne!(address("https://pve.lan"), address("https://pve.lan:443"));
    }

    #[test]
    fn anything_but_https_to_a_host_is_refused() {
        for text in [
            "pve.lan",
            "ftp://pve",
            "http://pve.lan",
            "http://10.0.0.1:8006",
            "http://localhost.evil.org",
            "https://",
            "https://:8006",
            "https://pve:0",
            "https://pve:99999",
            "https://pve:x",
            "https://root@pve",
            "https://pve/x",
            "https://pve?x",
            "https://pve#x",
            "https://[::1",
            "https://::1",
            "https://p ve",
            "https://1.2.3",
            "https://a..b",
            "http://127.0.0.1@evil.org",
            "https://pve\\evil",
        ] {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
    }
}
