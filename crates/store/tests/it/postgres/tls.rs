//! TLS to a real server, for each `sslmode`.

use heliograph_store::{Db, Options};
use heliograph_testing::{TestClock, sealing_key};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/postgres-cluster");

/// A cluster that serves TLS, which is removed at the end.
struct Cluster {
    folder: PathBuf,
    port: String,
    _home: TempDir,
}

impl Cluster {
    fn start(home: TempDir, certificate: &Path, key: &Path) -> Self {
        let folder = std::env::temp_dir().join(format!("heliograph-tls-{}", std::process::id()));
        let mut script = Command::new(SCRIPT);
        let output = script.arg("start").arg(&folder).arg("--tls").args([certificate, key]);
        let output = output.output().unwrap();
        let url = String::from_utf8(output.stdout).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let port = url.rsplit(':').next().unwrap().split('/').next().unwrap().to_owned();
        Self { folder, port, _home: home }
    }

    async fn open(&self, host: &str, parameters: &str) -> Result<(), String> {
        let url = format!("postgres://postgres@{host}:{}/postgres?{parameters}", self.port);
        let clock = Arc::new(TestClock::default());
        let db = Db::open(Options { url, connections: 2, key: sealing_key(), clock }).await;
        db.map_err(|e| e.to_string())?.ping().await.map_err(|e| e.to_string())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = Command::new(SCRIPT).arg("stop").arg(&self.folder).output();
    }
}

/// Returns an authority with this name.
fn authority(name: &str) -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    (pem, Issuer::new(params, key))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_checked_as_sslmode_says() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let (ours, issuer) = authority("ours");
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    for (name, text) in [
        ("ca.pem", ours),
        ("other.pem", authority("other").0),
        ("cert.pem", certificate.pem()),
        ("key.pem", key.serialize_pem()),
        ("empty.pem", String::new()),
    ] {
        fs::write(path(name), text).unwrap();
    }
    let root = |name: &str| format!("sslrootcert={}", path(name).display());
    let (ours, other) = (root("ca.pem"), root("other.pem"));
    let (none, empty) = (root("none.pem"), root("empty.pem"));
    let (certificate, key) = (path("cert.pem"), path("key.pem"));
    let cluster = Cluster::start(home, &certificate, &key);
    let issuer = "UnknownIssuer";
    for (host, parameters, error) in [
        // The server refuses connections without TLS.
        ("127.0.0.1", "sslmode=disable".to_owned(), "no encryption"),
        ("127.0.0.1", String::new(), "no encryption"),
        ("127.0.0.1", "sslmode=prefer".to_owned(), ""),
        ("127.0.0.1", "sslmode=require".to_owned(), ""),
        ("127.0.0.1", format!("sslmode=require&{other}"), issuer),
        ("127.0.0.1", format!("sslmode=verify-ca&{ours}"), ""),
        ("127.0.0.1", format!("sslmode=verify-ca&{other}"), issuer),
        ("localhost", format!("sslmode=verify-full&{ours}"), ""),
        ("localhost", format!("sslmode=verify-full&{other}"), issuer),
        ("localhost", "sslmode=verify-full".to_owned(), issuer),
        ("localhost", "sslmode=verify-full&sslrootcert=system".to_owned(), issuer),
        ("127.0.0.1", format!("sslmode=verify-full&{ours}"), "not valid for name"),
        ("127.0.0.1", format!("sslmode=verify-full&{none}"), "none.pem"),
        ("127.0.0.1", format!("sslmode=verify-full&{empty}"), "contains no certificate"),
        // A host that is not local gets verify-full by default; this address reaches this machine.
        ("0.0.0.0", ours.clone(), "not valid for name"),
    ] {
        let found = cluster.open(host, &parameters).await;
        match error {
            "" => assert_eq!(found, Ok(()), "{host} {parameters}"),
            error => {
                let found = found.unwrap_err();
                assert!(found.contains(error), "{host} {parameters}: {found}");
            }
        }
    }
}
