//! TLS with a certificate and a key from files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// The files of a certificate and of its key, both in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those that it depends on.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error("{} is not a PEM file with {what}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What it has to hold.
        what: &'static str,
        /// The problem.
        reason: String,
    },
    /// Certificate and key do not fit.
    #[error("the certificate cannot be used with this key: {0}")]
    Unfit(#[source] rustls::Error),
}

impl TlsFiles {
    /// Reads the files.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let failed = |path: &Path, what, error: rustls::pki_types::pem::Error| TlsError::File {
            path: path.to_owned(),
            what,
            reason: error.to_string(),
        };
        let (certificate, key) = (&*self.certificate, &*self.key);
        let of_chain = |error| failed(certificate, "certificates", error);
        let chain = CertificateDer::pem_file_iter(certificate).map_err(of_chain)?;
        let chain = chain.collect::<Result<Vec<_>, _>>().map_err(of_chain)?;
        let private =
            PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, "a private key", error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unfit)?
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .map_err(TlsError::Unfit)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
