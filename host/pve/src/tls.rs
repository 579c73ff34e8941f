//! Trust: the system's CAs, a CA file beside them, or the fingerprint of one certificate.

use crate::class::Class;
use crate::error::PveError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::{Arc, OnceLock};

type Fingerprint = [u8; 32];

/// The TLS side of a client. `needed` is false for plain http, which gets an empty configuration.
pub(crate) fn configure(
    needed: bool,
    ca_file: Option<&Path>,
    fingerprint: Option<&str>,
) -> Result<rustls::ClientConfig, PveError> {
    let provider = Arc::new(ring::default_provider());
    let rule = match (needed, fingerprint) {
        (false, _) => Rule::Pin([0; 32]),
        (true, Some(text)) => Rule::Pin(parse_fingerprint(text)?),
        (true, None) => Rule::Authorities(authorities(provider.clone(), ca_file)?),
    };
    client(rule, provider)
}

/// For a look at a certificate before any trust: nothing may be sent over such a connection.
pub(crate) fn unverified() -> Result<rustls::ClientConfig, PveError> {
    client(Rule::Anyone, Arc::new(ring::default_provider()))
}

fn client(rule: Rule, provider: Arc<CryptoProvider>) -> Result<rustls::ClientConfig, PveError> {
    let verifier = Arc::new(Verifier { rule, provider: provider.clone() });
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| PveError::setup(Class::Tls, format!("TLS can't be set up: {error}")))?;
    let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    // PVE speaks nothing else (fact T2)
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// 64 hex digits, with or without colons, any case.
fn parse_fingerprint(text: &str) -> Result<Fingerprint, PveError> {
    let digits: String = text.chars().filter(|c| *c != ':' && !c.is_whitespace()).collect();
    let mut out = [0; 32];
    hex::decode_to_slice(&digits, &mut out).map_err(|_| {
        PveError::setup(
            Class::Invalid,
            "fingerprint must be the SHA-256 of the certificate: 32 pairs of hex digits, such as AB:CD:..., as PVE \
             shows it under System > Certificates",
        )
    })?;
    Ok(out)
}

/// As PVE prints it.
pub(crate) fn show(fingerprint: &Fingerprint) -> String {
    let pairs: Vec<String> = fingerprint.iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}

/// The system's certificates, read once per process.
fn system_certificates() -> &'static [CertificateDer<'static>] {
    static CERTIFICATES: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();
    CERTIFICATES.get_or_init(|| rustls_native_certs::load_native_certs().certs)
}

fn authorities(
    provider: Arc<CryptoProvider>,
    ca_file: Option<&Path>,
) -> Result<Arc<WebPkiServerVerifier>, PveError> {
    let mut roots = RootCertStore::empty();
    // the system's store may hold certificates that no verifier can use; those are left out
    roots.add_parsable_certificates(system_certificates().iter().cloned());
    if let Some(file) = ca_file {
        let refuse = |why: String| PveError::setup(Class::Tls, format!("ca-file {} {why}", file.display()));
        let pem = proxops_model::file::whole(file, proxops_model::file::SMALL)
            .map_err(|error| refuse(format!("can't be read: {error}")))?;
        let mut count = 0;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| refuse(format!("is not PEM: {error}")))?;
            roots
                .add(certificate)
                .map_err(|error| refuse(format!("holds an unusable certificate: {error}")))?;
            count += 1;
        }
        if count == 0 {
            return Err(refuse(
                "holds no certificate (a line -----BEGIN CERTIFICATE----- is expected)".into(),
            ));
        }
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().map_err(|_| {
        PveError::setup(
            Class::Tls,
            "this machine trusts no certificate authority: set ca-file or fingerprint",
        )
    })
}

#[derive(Debug)]
enum Rule {
    /// Only for [`unverified`].
    Anyone,
    Pin(Fingerprint),
    Authorities(Arc<WebPkiServerVerifier>),
}

/// Applies the rule and keeps the fingerprint that was seen for the message.
#[derive(Debug)]
struct Verifier {
    rule: Rule,
    provider: Arc<CryptoProvider>,
}

/// Why a certificate was refused; travels through the TLS error to [`explain`].
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(
        "the server's certificate is another than the pinned one: expected fingerprint {expected}, seen {seen}. If the \
         certificate was renewed, compare with `pvenode cert info` on the node and set fingerprint anew; else \
         somebody may sit between"
    )]
    Pin { expected: String, seen: String },
    #[error(
        "the server's certificate is not trusted ({why}). Set ca-file to the cluster's /etc/pve/pve-root-ca.pem, or, \
         once compared with `pvenode cert info` on the node, fingerprint to {seen}"
    )]
    Authorities { why: String, seen: String },
}

impl From<Refused> for rustls::Error {
    fn from(refused: Refused) -> Self {
        CertificateError::Other(OtherError(Arc::new(refused))).into()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let seen: Fingerprint = Sha256::digest(end_entity.as_ref()).into();
        match &self.rule {
            Rule::Anyone => Ok(ServerCertVerified::assertion()),
            Rule::Pin(expected) if *expected == seen => Ok(ServerCertVerified::assertion()),
            Rule::Pin(expected) => Err(Refused::Pin { expected: show(expected), seen: show(&seen) }.into()),
            Rule::Authorities(webpki) => webpki
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
                .map_err(|error| {
                    let why = match &error {
                        rustls::Error::InvalidCertificate(inner) => reason(inner),
                        other => other.to_string(),
                    };
                    Refused::Authorities { why, seen: show(&seen) }.into()
                }),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A person's words for the common refusals.
fn reason(error: &CertificateError) -> String {
    match error {
        // the second: an authority of the same name, such as that of a cluster set up anew
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "it is signed by no authority that this machine trusts".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired, or this machine's clock is wrong".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet, or this machine's clock is wrong".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it does not name the host of base-url".to_owned()
        }
        other => other.to_string(),
    }
}

/// The TLS error inside a failed connection, in a person's words; `None` if TLS was not the trouble.
pub(crate) fn explain(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(match tls {
                rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(inner))) => {
                    inner.to_string()
                }
                rustls::Error::InvalidMessage(_) => {
                    "the server does not speak TLS there: check the port of base-url".to_owned()
                }
                other => format!("TLS failed: {other}"),
            });
        }
        // an io::Error hides what it wraps from `source`
        next = match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_in_every_form_that_people_paste() {
        let plain = "ab".repeat(32);
        let colons = vec!["AB"; 32].join(":");
        assert_eq!(parse_fingerprint(&plain).unwrap(), [0xab; 32]);
        assert_eq!(parse_fingerprint(&format!(" {colons}\n")).unwrap(), [0xab; 32]);
        assert_eq!(show(&[0xab; 32]), colons);
        for bad in ["", "ab", &"ab".repeat(20), &"zz".repeat(32)] {
            assert!(parse_fingerprint(bad).is_err(), "{bad}");
        }
    }
}
