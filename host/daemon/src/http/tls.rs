//! The certificate that the daemon shows.

use anyhow::Context as _;
use proxops_model::file;
use proxops_repo::TlsFiles;
use proxops_secrets::Secret;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// From the files of `http.cert-file` and `http.key-file`.
pub(super) fn acceptor(files: &TlsFiles) -> anyhow::Result<TlsAcceptor> {
    let (cert, key) = (&files.cert, &files.key);
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(read("http.cert-file", cert)?.expose().as_bytes())
            .collect::<Result<_, _>>()
            .with_context(|| format!("http.cert-file {} can't be used", cert.display()))?;
    anyhow::ensure!(!chain.is_empty(), "http.cert-file {} holds no certificate", cert.display());
    let private = PrivateKeyDer::from_pem_slice(read("http.key-file", key)?.expose().as_bytes())
        .with_context(|| format!("http.key-file {} can't be used", key.display()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("TLS can't be set up")?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .with_context(|| format!("{} and {} do not belong together", cert.display(), key.display()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A PEM file, wiped from memory when it was used: one of the two is a private key.
fn read(setting: &str, path: &Path) -> anyhow::Result<Secret> {
    let text = file::text(path, file::SMALL)
        .with_context(|| format!("{setting} {} can't be read", path.display()))?;
    Ok(Secret::new(text))
}
