//! A look at an endpoint before any login: name, port, certificate.

use crate::config::Endpoint;
use crate::tls::{show, unverified};
use rustls_pki_types::ServerName;
use sha2::{Digest as _, Sha256};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Of each step.
const LIMIT: Duration = Duration::from_secs(10);

/// How far a connection came. A step is absent if one before it failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Probe {
    /// `host:port` that was looked for.
    pub address: String,
    /// The addresses of the name, or why there are none.
    pub resolved: Option<Result<Vec<SocketAddr>, String>>,
    /// The address that took the connection, or why none did.
    pub connected: Option<Result<SocketAddr, String>>,
    /// The server's certificate, trusted or not; absent for plain http.
    pub certificate: Option<Result<Certificate, String>>,
}

/// A server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// SHA-256 as PVE shows it.
    pub fingerprint: String,
    /// End of its validity in seconds since 1970, if it could be read.
    pub not_after: Option<i64>,
}

/// Looks at an endpoint. Sends nothing but a TLS handshake, which trusts any certificate.
pub async fn probe(base_url: &str) -> Probe {
    let mut found = Probe::default();
    let Ok(endpoint) = Endpoint::parse(base_url) else {
        found.resolved = Some(Err("base-url is not an address".to_owned()));
        return found;
    };
    let Ok(url) = reqwest::Url::parse(&endpoint.base) else { return found };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or(8006);
    found.address = format!("{}:{port}", url.host_str().unwrap_or_default());

    let looked_up = within(tokio::net::lookup_host((host.as_str(), port))).await;
    let addresses: Vec<SocketAddr> = match looked_up {
        Ok(addresses) => addresses.collect(),
        Err(why) => {
            found.resolved = Some(Err(why));
            return found;
        }
    };
    found.resolved = Some(Ok(addresses.clone()));

    let mut why = "the name has no address".to_owned();
    let mut stream = None;
    for address in addresses {
        match within(tokio::net::TcpStream::connect(address)).await {
            Ok(open) => {
                stream = Some((address, open));
                break;
            }
            Err(error) => why = error,
        }
    }
    let Some((address, stream)) = stream else {
        found.connected = Some(Err(why));
        return found;
    };
    found.connected = Some(Ok(address));
    if endpoint.https {
        found.certificate = Some(certificate(&host, stream).await);
    }
    found
}

async fn within<T>(step: impl Future<Output = std::io::Result<T>>) -> Result<T, String> {
    match tokio::time::timeout(LIMIT, step).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", LIMIT.as_secs())),
    }
}

async fn certificate(host: &str, stream: tokio::net::TcpStream) -> Result<Certificate, String> {
    let config = unverified().map_err(|error| error.to_string())?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let tls = within(tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream)).await?;
    let der = tls
        .get_ref()
        .1
        .peer_certificates()
        .and_then(<[_]>::first)
        .ok_or_else(|| "the server showed no certificate".to_owned())?;
    let fingerprint = show(&Sha256::digest(der.as_ref()).into());
    Ok(Certificate { fingerprint, not_after: not_after(der) })
}

/// The end of a certificate's validity, out of its DER form (RFC 5280, 4.1): certificate, signed part, then
/// version, serial number, algorithm, issuer, validity.
fn not_after(der: &[u8]) -> Option<i64> {
    let (_, certificate, _) = element(der)?;
    let (_, mut rest, _) = element(certificate)?;
    if rest.first() == Some(&0xa0) {
        rest = element(rest)?.2;
    }
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (_, validity, _) = element(rest)?;
    let (_, _, after_start) = element(validity)?;
    let (tag, end, _) = element(after_start)?;
    time(tag, std::str::from_utf8(end).ok()?)
}

/// Tag, content and what follows.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(*first) {
        short if short < 0x80 => (short, rest),
        long => {
            let (digits, rest) = rest.split_at_checked(long & 0x7f)?;
            if digits.is_empty() || digits.len() > 4 {
                return None;
            }
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// `YYMMDDHHMMSSZ` (tag 0x17, years 1950 to 2049) or `YYYYMMDDHHMMSSZ` as seconds since 1970.
fn time(tag: u8, text: &str) -> Option<i64> {
    let digits = text.strip_suffix('Z')?;
    let full = match tag {
        0x17 => format!("{}{digits}", if digits.get(..2)? < "50" { "20" } else { "19" }),
        0x18 => digits.to_owned(),
        _ => return None,
    };
    if full.len() != 14 || !full.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let part = |from: usize, to: usize| full.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    // Days since 1970 of a date in the Gregorian calendar, counted from a March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (153 * m + 2) / 5 + day
        - 1
        - 719_468;
    Some(((days * 24 + part(8, 10)?) * 60 + part(10, 12)?) * 60 + part(12, 14)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_time_are_read() {
        assert_eq!(time(0x17, "700101000000Z"), Some(0));
        assert_eq!(time(0x17, "491231235959Z"), Some(2_524_607_999));
        assert_eq!(time(0x18, "20500101000000Z"), Some(2_524_608_000));
        assert_eq!(time(0x18, "20240229120000Z"), Some(1_709_208_000));
        assert_eq!(time(0x18, "2024"), None);
        assert_eq!(time(0x16, "700101000000Z"), None);
    }

    #[test]
    fn the_end_of_a_real_certificate_is_read_and_no_cut_of_it_breaks_the_reader() {
        let mut params = rcgen::CertificateParams::new(vec!["pve.example.org".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2031, 5, 17);
        let key = rcgen::KeyPair::generate().unwrap();
        let der = params.self_signed(&key).unwrap().der().to_vec();
        assert_eq!(not_after(&der), Some(1_936_742_400));
        for cut in 0..der.len() {
            let _ = not_after(&der[..cut]);
        }
    }
}
