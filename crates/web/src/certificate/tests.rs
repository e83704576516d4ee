//! Certificates that are good, bad, and replaced.

use super::*;
use rcgen::{CertifiedKey as Made, KeyPair};
use std::fs::write;
use tempfile::TempDir;

fn made() -> Made<KeyPair> {
    rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap()
}

/// Two files, and what is in them.
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

    fn read(&self) -> Result<(Tls, Renewal), Unusable> {
        let (cert, key) = self.files();
        read(&cert, &key)
    }
}

#[test]
fn what_cannot_be_used_is_told_without_the_key() {
    let (one, other) = (made(), made());
    let (cert, key) = (one.cert.pem(), one.signing_key.serialize_pem());
    let one_line = key.replace('\n', "");
    let broken = cert.replace("MII", "AII");
    for (cert, key, hint) in [
        ("", key.as_str(), "cert.pem holds no certificate"),
        (&key, &key, "cert.pem holds no certificate"),
        ("-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n", &key, "no valid PEM"),
        (&broken, &key, "cert.pem"),
        (&cert, "", "key.pem holds no private key"),
        (&cert, &cert, "key.pem holds no private key"),
        (&cert, &one_line, "key.pem holds no private key"),
        (&cert, &other.signing_key.serialize_pem(), "does not belong to the first certificate"),
        (
            &cert,
            "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n",
            "of no kind that TLS",
        ),
    ] {
        let why = Folder::new(cert, key).read().err().unwrap().to_string();
        assert!(why.contains(hint), "{why}");
        assert!(!why.contains("MI"), "{why}");
    }
    let why = read(Path::new("/gone/cert.pem"), Path::new("/gone/key.pem")).err().unwrap();
    assert!(why.to_string().contains("/gone/cert.pem can't be read"), "{why}");
}

#[test]
fn a_chain_is_shown_whole() {
    let (own, authority) = (made(), made());
    let chain = format!("{}{}", own.cert.pem(), authority.cert.pem());
    let (_, renewal) = Folder::new(&chain, &own.signing_key.serialize_pem()).read().unwrap();
    assert_eq!(
        renewal.shown.0.read().unwrap().cert,
        [own.cert.der().clone(), authority.cert.der().clone()]
    );
}

#[test]
fn a_new_pair_is_used_once_it_is_whole() {
    let (old, new) = (made(), made());
    let folder = Folder::new(&old.cert.pem(), &old.signing_key.serialize_pem());
    let (_, mut renewal) = folder.read().unwrap();
    let mut look = || {
        let found = renewal.files.read();
        renewal.take(found);
        renewal.shown.0.read().unwrap().cert.clone()
    };
    folder.put(&new.cert.pem(), &old.signing_key.serialize_pem());
    assert_eq!(look(), [old.cert.der().clone()]);
    std::fs::remove_file(folder.files().1).unwrap();
    assert_eq!(look(), [old.cert.der().clone()]);
    folder.put(&new.cert.pem(), &new.signing_key.serialize_pem());
    assert_eq!(look(), [new.cert.der().clone()]);
}
