//! `heliograph check`.

use crate::support::api::hello;
use crate::support::server::Server;
use serde_json::{Value, json};

#[test]
fn check_finds_violations() {
    let server = Server::start();
    let key = server.key();
    server.wait_until_ended(&key, &server.accepted(&key, &hello("+447700900123")));
    let (code, stdout, stderr) = server.run_text(&["check"]);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "", "No violations found\n"));
    assert_eq!(server.json(&["check"]), json!({ "violations": [] }));
    for (change, undo, hint) in [
        (
            "accounts SET available = available + 1",
            "accounts SET available = available - 1",
            "the ledger adds up",
        ),
        (
            "accounts SET reserved = reserved + 1",
            "accounts SET reserved = reserved - 1",
            "reserved",
        ),
        (
            "messages SET status = 0, done_at = NULL",
            "messages SET status = 2, done_at = accepted_at",
            "queue row",
        ),
        ("messages SET parts_delivered = 0", "messages SET parts_delivered = 1", "parts"),
    ] {
        server.database.change(&format!("UPDATE {change}"));
        let (code, stdout, stderr) = server.run_text(&["check"]);
        assert_eq!(code, Some(1), "{change}");
        assert!(stdout.contains(hint), "{change}: {stdout}");
        assert!(stderr.starts_with("Violations found: "), "{stderr}");
        let (code, json, _) = server.run_text(&["check", "--json"]);
        let list = serde_json::from_str::<Value>(&json).unwrap();
        assert_eq!((code, list["violations"].as_array().unwrap().is_empty()), (Some(1), false));
        server.database.change(&format!("UPDATE {undo}"));
    }
    server.check();
}
