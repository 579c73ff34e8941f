//! An HTTP client that trusts the system's authorities and those of a file.

use anyhow::Context as _;
use proxops_model::file;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// For the daemon's notifications, and for commands that ask a daemon.
///
/// # Errors
/// The file can't be read or holds no certificate.
pub fn http_client(ca_file: Option<&Path>, timeout: Duration) -> anyhow::Result<reqwest::Client> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let pem = file::whole(path, file::SMALL)
            .with_context(|| format!("ca-file {} can't be read", path.display()))?;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate =
                certificate.with_context(|| format!("ca-file {} is not PEM", path.display()))?;
            roots
                .add(certificate)
                .with_context(|| format!("ca-file {} holds an unusable certificate", path.display()))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("TLS can't be set up")?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("proxops/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(timeout.min(Duration::from_secs(5)))
        .timeout(timeout)
        .build()
        .context("the HTTP client can't be set up")
}
