//! schemathesis generates valid and invalid requests from the OpenAPI document.

use crate::support::server::Server;
use std::path::Path;
use std::process::Command;

/// The minimum number of generated cases.
const CASES: u64 = 10_000;

/// `schemathesis.toml` sets the number of cases and the allowed errors.
#[test]
fn ten_thousand_requests_get_documented_responses() {
    let python = std::env::var_os("HELIOGRAPH_PEERS_PYTHON");
    let python = python.expect("HELIOGRAPH_PEERS_PYTHON names no python: run scripts/test");
    let server = Server::start();
    // schemathesis writes files to its working directory.
    let folder = tempfile::tempdir().unwrap();
    for file in ["schemathesis.toml", "schemathesis_hooks.py"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi").join(file);
        std::fs::copy(from, folder.path().join(file)).unwrap();
    }
    let document = format!("http://{}/v1/openapi.json", server.address());
    let mut schemathesis = Command::new(python);
    schemathesis.args(["-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run"]);
    schemathesis.args([&document, "--checks", "all", "--no-color", "--header"]);
    schemathesis.arg(format!("Authorization: Bearer {}", server.key()));
    let output = schemathesis.current_dir(folder.path()).output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}{}", String::from_utf8_lossy(&output.stderr));
    let generated = report.split_once(" generated").and_then(|(before, _)| {
        before.rsplit([' ', '\n']).next().and_then(|n| n.replace(',', "").parse::<u64>().ok())
    });
    assert!(generated.is_some_and(|n| n >= CASES), "too few cases: {report}");
    server.check();
}
