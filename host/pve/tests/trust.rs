//! Real TLS: which certificates are accepted, and what is said about those that are not.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Server, data, token};
use proxops_pve::{Class, Client, ClientConfig, PveError};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn file(&self) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(self.0.pem().as_bytes()).unwrap();
        file
    }

    /// A server with a certificate for this name, and the certificate's fingerprint as PVE shows it.
    async fn server(&self, name: &str) -> (Server, String) {
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        let pairs: Vec<String> =
            Sha256::digest(leaf.der()).iter().map(|byte| format!("{byte:02X}")).collect();
        let config =
            rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(
                    vec![leaf.der().clone()],
                    PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
                )
                .unwrap();
        let answer = |_: &common::Seen| data(r#"{"version":"9.2.3"}"#);
        (Server::with(answer, Some(Arc::new(config)), Duration::ZERO).await, pairs.join(":"))
    }
}

fn config(server: &Server) -> ClientConfig {
    ClientConfig::new("lab", format!("https://127.0.0.1:{}", server.port), token())
}

async fn ask(config: ClientConfig) -> Result<String, PveError> {
    Ok(Client::new(config)?.version().await?.version)
}

#[tokio::test]
async fn a_certificate_of_the_ca_file_is_accepted() {
    let ca = Authority::new();
    let (server, _) = ca.server("127.0.0.1").await;
    let file = ca.file();
    let config = ClientConfig { ca_file: Some(file.path().into()), ..config(&server) };
    assert_eq!(ask(config).await.unwrap(), "9.2.3");
}

#[tokio::test]
async fn a_certificate_of_another_ca_is_refused_with_what_to_do() {
    let (server, seen) = Authority::new().server("127.0.0.1").await;
    let other = Authority::new().file();
    for ca_file in [None, Some(other.path().into())] {
        let config = ClientConfig { ca_file, ..config(&server) };
        let error = ask(config).await.unwrap_err();
        assert_eq!(error.class, Class::Tls);
        for part in ["signed by no authority", "ca-file", "fingerprint", seen.as_str()] {
            assert!(error.message.contains(part), "{part}: {error}");
        }
    }
    assert!(server.requests().is_empty(), "the token was sent to a server that is not trusted");
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let ca = Authority::new();
    let (server, _) = ca.server("pve.example.net").await;
    let file = ca.file();
    let config = ClientConfig { ca_file: Some(file.path().into()), ..config(&server) };
    let error = ask(config).await.unwrap_err();
    assert_eq!(error.class, Class::Tls);
    assert!(error.message.contains("does not name the host"), "{error}");
}

#[tokio::test]
async fn a_pinned_certificate_is_accepted_whoever_signed_it() {
    let (server, seen) = Authority::new().server("pve.example.net").await;
    for text in [seen.clone(), seen.to_lowercase(), seen.replace(':', "")] {
        let config = ClientConfig { fingerprint: Some(text), ..config(&server) };
        assert_eq!(ask(config).await.unwrap(), "9.2.3");
    }
}

#[tokio::test]
async fn another_certificate_than_the_pinned_one_is_refused_and_both_are_shown() {
    let ca = Authority::new();
    let (server, seen) = ca.server("127.0.0.1").await;
    let expected = vec!["AB"; 32].join(":");
    // a CA that would vouch for it changes nothing
    let file = ca.file();
    let config = ClientConfig {
        fingerprint: Some(expected.clone()),
        ca_file: Some(file.path().into()),
        ..config(&server)
    };
    let error = ask(config).await.unwrap_err();
    assert_eq!(error.class, Class::Tls);
    assert!(error.message.contains(&format!("expected fingerprint {expected}")), "{error}");
    assert!(error.message.contains(&format!("seen {seen}")), "{error}");
    assert!(server.requests().is_empty(), "the token was sent to a server that is not trusted");
}

#[tokio::test]
async fn a_port_without_tls_is_explained() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    let error = ask(ClientConfig::new("lab", url, token())).await.unwrap_err();
    assert_eq!(error.class, Class::Tls);
    assert!(error.message.contains("does not speak TLS"), "{error}");
}

#[tokio::test]
async fn trust_settings_that_can_not_work_are_named() {
    let (server, _) = Authority::new().server("127.0.0.1").await;
    let missing = ClientConfig { ca_file: Some("/nowhere/ca.pem".into()), ..config(&server) };
    assert!(ask(missing).await.unwrap_err().message.contains("/nowhere/ca.pem"));
    let mut empty = tempfile::NamedTempFile::new().unwrap();
    empty.write_all(b"no certificate").unwrap();
    let empty = ClientConfig { ca_file: Some(empty.path().into()), ..config(&server) };
    assert!(ask(empty).await.unwrap_err().message.contains("no certificate"));
    let bad = ClientConfig { fingerprint: Some("AB:CD".into()), ..config(&server) };
    assert!(ask(bad).await.unwrap_err().message.contains("fingerprint"));
}
