//! Reads the file of additional certificate authorities.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::Path;

/// The certificate authorities that webhooks trust in addition to the public ones.
#[derive(Clone, Debug, Default)]
pub struct Authorities(pub(crate) Vec<CertificateDer<'static>>);

/// Reads the certificates of a PEM file.
///
/// # Errors
/// Explains what is wrong with the file.
pub fn read_authorities(path: &Path) -> Result<Authorities, String> {
    let file = path.display();
    let pem = std::fs::read(path).map_err(|error| format!("failed to read {file}: {error}"))?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let all = all.map_err(|_| format!("{file} is not a valid PEM file"))?;
    if all.is_empty() {
        return Err(format!(
            "{file} contains no certificate: it must have a BEGIN CERTIFICATE section for each authority"
        ));
    }
    let mut store = RootCertStore::empty();
    for certificate in &all {
        store.add(certificate.clone()).map_err(|error| {
            format!("{file} contains a certificate that cannot be used: {error}")
        })?;
    }
    Ok(Authorities(all))
}
