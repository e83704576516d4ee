//! Tests of valid, invalid and replaced certificates.

use super::*;
use rcgen::{CertifiedKey as SelfSigned, KeyPair};
use std::fs::write;
use tempfile::TempDir;

fn self_signed() -> SelfSigned<KeyPair> {
    rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap()
}

/// A temporary folder with a certificate and a key file.
struct Folder(TempDir);

impl Folder {
    fn new(cert: &str, key: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.put(cert, key);
        folder
    }

    fn put(&self, cert: &str, key: &str) {
        let (cert_file, key_file) = self.files();
        write(cert_file, cert).unwrap();
        write(key_file, key).unwrap();
    }

    fn files(&self) -> (PathBuf, PathBuf) {
        (self.0.path().join("cert.pem"), self.0.path().join("key.pem"))
    }

    fn read(&self) -> Result<(Tls, CertificateReloader), CertificateError> {
        let (cert, key) = self.files();
        read(&cert, &key)
    }
}

#[test]
fn errors_name_the_cause_without_quoting_the_key() {
    let (one, other) = (self_signed(), self_signed());
    let (cert, key) = (one.cert.pem(), one.signing_key.serialize_pem());
    let one_line = key.replace('\n', "");
    let broken = cert.replace("MII", "AII");
    for (cert, key, hint) in [
        ("", key.as_str(), "cert.pem contains no certificate"),
        (&key, &key, "cert.pem contains no certificate"),
        ("-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n", &key, "not a valid PEM"),
        (&broken, &key, "cert.pem"),
        (&cert, "", "key.pem contains no readable private key"),
        (&cert, &cert, "key.pem contains no readable private key"),
        (&cert, &one_line, "key.pem contains no readable private key"),
        (&cert, &other.signing_key.serialize_pem(), "does not match the first certificate"),
        (
            &cert,
            "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n",
            "is not supported",
        ),
    ] {
        let why = Folder::new(cert, key).read().err().unwrap().to_string();
        assert!(why.contains(hint), "{why}");
        assert!(!why.contains("MI"), "{why}");
    }
    let why = read(Path::new("/gone/cert.pem"), Path::new("/gone/key.pem")).err().unwrap();
    assert!(why.to_string().contains("cannot read /gone/cert.pem"), "{why}");
}

#[test]
fn whole_chain_is_presented() {
    let (own, authority) = (self_signed(), self_signed());
    let chain = format!("{}{}", own.cert.pem(), authority.cert.pem());
    let (_, reloader) = Folder::new(&chain, &own.signing_key.serialize_pem()).read().unwrap();
    assert_eq!(
        reloader.current.0.read().unwrap().cert,
        [own.cert.der().clone(), authority.cert.der().clone()]
    );
}

#[tokio::test]
async fn new_certificate_is_used_once_its_key_matches() {
    let (old, new) = (self_signed(), self_signed());
    let folder = Folder::new(&old.cert.pem(), &old.signing_key.serialize_pem());
    let (_, mut reloader) = folder.read().unwrap();
    let mut reload = async || {
        reloader.reload().await;
        reloader.current.0.read().unwrap().cert.clone()
    };
    folder.put(&new.cert.pem(), &old.signing_key.serialize_pem());
    assert_eq!(reload().await, [old.cert.der().clone()]);
    std::fs::remove_file(folder.files().1).unwrap();
    assert_eq!(reload().await, [old.cert.der().clone()]);
    folder.put(&new.cert.pem(), &new.signing_key.serialize_pem());
    assert_eq!(reload().await, [new.cert.der().clone()]);
}
