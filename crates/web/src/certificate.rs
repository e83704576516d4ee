//! The certificate that the listener shows: read from two PEM files, and read again when they change.

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
use std::time::Duration;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// How often the files are looked at. They are small, and nobody who renews a certificate waits for us.
const LOOK: Duration = Duration::from_secs(5);
/// The largest file that is read: a chain of certificates has some kilobytes.
const LARGEST: u64 = 1 << 20;

/// Why a certificate can't be used, without a word of what is in the files.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(String);

/// What it takes to speak TLS.
#[derive(Clone)]
pub struct Tls(pub(crate) TlsAcceptor);

/// Keeps a certificate up to date with its files.
pub struct Renewal {
    files: Files,
    /// What the files held when they were last looked at, good or not.
    seen: Result<Contents, Unusable>,
    shown: Arc<Shown>,
}

/// Reads the certificate chain from `cert` and its private key from `key`, both in PEM.
pub fn read(cert: &Path, key: &Path) -> Result<(Tls, Renewal), Unusable> {
    let files = Files { cert: cert.to_owned(), key: key.to_owned() };
    let contents = files.read()?;
    let shown = Arc::new(Shown(RwLock::new(Arc::new(files.pair(&contents)?))));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions();
    let config = config.map_err(|e| Unusable(format!("TLS can't be spoken: {e}")))?;
    let mut config = config.with_no_client_auth().with_cert_resolver(shown.clone());
    config.alpn_protocols = vec![H2.to_vec(), HTTP_1_1.to_vec()];
    let renewal = Renewal { files, seen: Ok(contents), shown };
    Ok((Tls(TlsAcceptor::from(Arc::new(config))), renewal))
}

impl Renewal {
    /// Looks at the files every few seconds, and at once when it is nudged.
    pub async fn run(mut self, nudge: Arc<Notify>) {
        loop {
            // Which of the two it was does not matter.
            let _ = tokio::time::timeout(LOOK, nudge.notified()).await;
            let files = self.files.clone();
            if let Ok(found) = tokio::task::spawn_blocking(move || files.read()).await {
                self.take(found);
            }
        }
    }

    /// Uses what was found from now on, if it is new and good.
    fn take(&mut self, found: Result<Contents, Unusable>) {
        if found == self.seen {
            return;
        }
        match found.as_ref().map_err(Clone::clone).and_then(|c| self.files.pair(c)) {
            Ok(pair) => {
                *self.shown.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
                tracing::info!(file = %self.files.cert.display(), "a new certificate is in use");
            }
            Err(error) => {
                tracing::warn!(%error, "the new certificate can't be used: the one before is kept");
            }
        }
        self.seen = found;
    }
}

/// Where the certificate and its key are.
#[derive(Clone)]
struct Files {
    cert: PathBuf,
    key: PathBuf,
}

/// What is in the files. It can't be printed, since the key is in it.
#[derive(PartialEq, Eq)]
struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl Files {
    fn read(&self) -> Result<Contents, Unusable> {
        Ok(Contents { cert: read_file(&self.cert)?, key: read_file(&self.key)? })
    }

    /// The chain and the key, if they can be used. What the parsers say is kept back: they quote.
    fn pair(&self, contents: &Contents) -> Result<CertifiedKey, Unusable> {
        let (cert, key) = (self.cert.display(), self.key.display());
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&contents.cert).collect();
        let chain = chain.map_err(|_| Unusable(format!("{cert} is no valid PEM file")))?;
        if chain.is_empty() {
            return Err(Unusable(format!(
                "{cert} holds no certificate: it must have a section BEGIN CERTIFICATE for the server, and then \
                 one for each authority between it and the root"
            )));
        }
        let private = PrivateKeyDer::from_pem_slice(&contents.key).map_err(|_| {
            Unusable(format!(
                "{key} holds no private key that can be read: it must have a section BEGIN PRIVATE KEY, without a \
                 passphrase"
            ))
        })?;
        CertifiedKey::from_der(chain, private, &ring::default_provider()).map_err(|e| {
            Unusable(match e {
                Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                    format!("the key in {key} does not belong to the first certificate in {cert}")
                }
                Error::InvalidCertificate(_) => {
                    format!("the first certificate in {cert} is broken")
                }
                _ => format!(
                    "the key in {key} is of no kind that TLS uses: take ECDSA, Ed25519 or RSA"
                ),
            })
        })
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, Unusable> {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|f| f.take(LARGEST).read_to_end(&mut bytes));
    read.map_err(|e| Unusable(format!("{} can't be read: {e}", path.display())))?;
    Ok(bytes)
}

/// The certificate that new connections see.
struct Shown(RwLock<Arc<CertifiedKey>>);

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shown")
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

#[cfg(test)]
mod tests;
