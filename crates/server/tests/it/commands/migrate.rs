//! `heliograph migrate`.

use crate::support::engine::Engine;
use crate::support::server::Server;
use serde_json::{Value, json};

/// Until a version is released, only an empty database can be migrated.
#[test]
fn an_empty_database_is_migrated() {
    let server = Server::new("");
    let check = |exit: i32| {
        let (code, stdout, _) = server.run_text(&["migrate", "--check"]);
        assert_eq!(code, Some(exit), "{stdout}");
        stdout
    };
    assert!(check(1).starts_with("Migrations pending: schema version none to "));
    let (code, stdout, _) = server.run_text(&["--json", "migrate", "--check"]);
    let stdout = serde_json::from_str::<Value>(&stdout).unwrap();
    assert_eq!(
        (code, &stdout["from"], &stdout["upToDate"]),
        (Some(1), &Value::Null, &json!(false))
    );
    if Engine::current() == Engine::Sqlite {
        assert!(!server.home.path().join("data/heliograph.db").exists());
    }
    let done = server.json(&["migrate"]);
    assert_eq!((&done["from"], &done["to"]), (&Value::Null, &stdout["to"]));
    assert!(check(0).starts_with("Schema is up to date (version "));
    let again = server.json(&["migrate"]);
    assert_eq!((&again["from"], &again["upToDate"]), (&stdout["to"], &json!(true)));
    server.database.change(
        "INSERT INTO schema_migrations (version, name, applied_at, checksum)
         VALUES (99, 'later', '2030-01-01T00:00:00Z', '1')",
    );
    let (code, _, stderr) = server.run_text(&["migrate", "--check"]);
    assert_eq!((code, stderr.contains("use a newer heliograph")), (Some(1), true), "{stderr}");
}
