//! A CA of the simulator's own and the certificates it signs.

use std::sync::Arc;

use anyhow::Context;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// A certificate authority.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut params = CertificateParams::new(Vec::new()).context("cannot describe the CA")?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "proxops simulator CA");
        let key = KeyPair::generate().context("cannot make the CA's key")?;
        Ok(Self(CertifiedIssuer::self_signed(params, key).context("cannot sign the CA")?))
    }

    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Serves a fresh certificate for loopback and `names`.
    pub(super) fn acceptor(&self, names: &[String]) -> anyhow::Result<TlsAcceptor> {
        let mut all = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        all.extend(names.iter().cloned());
        let params = CertificateParams::new(all).context("bad name for the server certificate")?;
        let key = KeyPair::generate().context("cannot make the server's key")?;
        let certificate = params.signed_by(&key, &self.0).context("cannot sign the server certificate")?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .context("no TLS version")?
                .with_no_client_auth()
                .with_single_cert(vec![certificate.der().clone()], private)
                .context("cannot use the server certificate")?;
        // HTTP/1 only (fact T2)
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
