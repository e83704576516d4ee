//! The TLS certificate of the listener, loaded from two PEM files and reloaded when they change.

use crate::tls::{H2, HTTP_1_1};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, ServerConfig};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use tokio_rustls::TlsAcceptor;

/// The largest file that is read, in bytes: a certificate chain has a few kilobytes.
const MAX_FILE_SIZE: u64 = 1 << 20;

/// The reason why a certificate cannot be used. Never quotes the contents of the files.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct CertificateError(String);

/// The TLS configuration of the listener.
#[derive(Clone)]
pub struct Tls(pub(crate) TlsAcceptor);

/// Reloads the certificate when its files change.
pub struct CertificateReloader {
    files: Files,
    /// The contents at the last check, valid or not.
    last: Result<Contents, CertificateError>,
    current: Arc<CurrentCertificate>,
}

/// Loads the certificate chain from `cert` and its private key from `key`, both in PEM format.
pub fn read(cert: &Path, key: &Path) -> Result<(Tls, CertificateReloader), CertificateError> {
    let files = Files { cert: cert.to_owned(), key: key.to_owned() };
    let contents = files.read()?;
    let current = Arc::new(CurrentCertificate(RwLock::new(Arc::new(files.pair(&contents)?))));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions();
    let config = config.map_err(|e| CertificateError(format!("TLS is not available: {e}")))?;
    let mut config = config.with_no_client_auth().with_cert_resolver(current.clone());
    config.alpn_protocols = vec![H2.to_vec(), HTTP_1_1.to_vec()];
    let renewal = CertificateReloader { files, last: Ok(contents), current };
    Ok((Tls(TlsAcceptor::from(Arc::new(config))), renewal))
}

impl CertificateReloader {
    /// Reads the files. If they changed and are valid, new connections use them from now on. A
    /// change that is not valid is logged once.
    pub async fn reload(&mut self) {
        let files = self.files.clone();
        if let Ok(found) = tokio::task::spawn_blocking(move || files.read()).await {
            self.apply(found);
        }
    }

    /// Uses the new contents from now on, if they changed and are valid.
    fn apply(&mut self, found: Result<Contents, CertificateError>) {
        if found == self.last {
            return;
        }
        match found.as_ref().map_err(Clone::clone).and_then(|c| self.files.pair(c)) {
            Ok(pair) => {
                *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
                tracing::info!(file = %self.files.cert.display(), "certificate reloaded");
            }
            Err(error) => {
                tracing::warn!(%error, "failed to reload certificate, keeping the current one");
            }
        }
        self.last = found;
    }
}

/// The paths of the certificate and its private key.
#[derive(Clone)]
struct Files {
    cert: PathBuf,
    key: PathBuf,
}

/// The contents of the files. Not `Debug`, since the private key is among them.
#[derive(PartialEq, Eq)]
struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl Files {
    fn read(&self) -> Result<Contents, CertificateError> {
        Ok(Contents { cert: read_file(&self.cert)?, key: read_file(&self.key)? })
    }

    /// Parses the chain and the key. The errors of the parsers are not passed on, since they quote
    /// the input.
    fn pair(&self, contents: &Contents) -> Result<CertifiedKey, CertificateError> {
        let (cert, key) = (self.cert.display(), self.key.display());
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&contents.cert).collect();
        let chain =
            chain.map_err(|_| CertificateError(format!("{cert} is not a valid PEM file")))?;
        if chain.is_empty() {
            return Err(CertificateError(format!(
                "{cert} contains no certificate: it must have a BEGIN CERTIFICATE section for the \
                 server, followed by one for each intermediate authority"
            )));
        }
        let private = PrivateKeyDer::from_pem_slice(&contents.key).map_err(|_| {
            CertificateError(format!(
                "{key} contains no readable private key: it must have a BEGIN PRIVATE KEY section, \
                 not encrypted with a passphrase"
            ))
        })?;
        CertifiedKey::from_der(chain, private, &ring::default_provider()).map_err(|e| {
            CertificateError(match e {
                Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                    format!("the key in {key} does not match the first certificate in {cert}")
                }
                Error::InvalidCertificate(_) => {
                    format!("the first certificate in {cert} is malformed")
                }
                _ => format!("the key type of {key} is not supported: use ECDSA, Ed25519 or RSA"),
            })
        })
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let mut bytes = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|f| f.take(MAX_FILE_SIZE).read_to_end(&mut bytes));
    read.map_err(|e| CertificateError(format!("cannot read {}: {e}", path.display())))?;
    Ok(bytes)
}

/// The certificate that new connections get.
struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl std::fmt::Debug for CurrentCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CurrentCertificate")
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

#[cfg(test)]
mod tests;
