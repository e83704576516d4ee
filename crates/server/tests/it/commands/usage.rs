//! Output, exit codes and errors that all commands have in common.

use crate::support::server::Server;
use serde_json::{Value, json};

/// With `--json` this includes messages that are otherwise on stderr. Lists have their own tests.
#[test]
fn json_output_is_one_document() {
    let server = Server::with("[webhooks]\nallow_private = ['127.0.0.0/8']");
    let demo = "demo@localhost";
    let key = server.json(&["key", "create", "--account", demo]);
    let id = key["id"].as_str().unwrap();
    assert_eq!(key["mode"], "test");
    assert_eq!(server.json(&["key", "revoke", id]), json!({ "id": id, "revoked": true }));
    let url = ["--url", "http://127.0.0.1:1024/"];
    let hook = server.json(&[&["webhook", "add", "--account", demo][..], &url].concat());
    let id = hook["id"].to_string();
    for (arguments, done) in [
        (&["webhook", "off", &id][..], json!({ "id": hook["id"], "on": false })),
        (&["webhook", "on", &id], json!({ "id": hook["id"], "on": true })),
        (&["webhook", "replay", &id, "--failed"], json!({ "events": 0 })),
        (&["webhook", "attempts", &id], json!([])),
        (&["webhook", "remove", &id], json!({ "id": hook["id"], "removed": true })),
        (&["webhook", "list", "--account", demo], json!([])),
    ] {
        assert_eq!(server.json(arguments), done, "{arguments:?}");
    }
    let backup = server.json(&["backup", "one.db"]);
    assert_eq!((&backup["file"], &backup["rows"]["accounts"]), (&json!("one.db"), &json!(1)));
    let bytes = server.home.path().join("one.db").metadata().unwrap().len();
    assert_eq!((&backup["bytes"], backup["schemaVersion"].is_u64()), (&json!(bytes), true));
    assert_eq!(server.json(&["config"])["server"]["data_dir"]["value"], "data");
}

#[test]
fn failures_have_a_reason_and_exit_code_1() {
    let server = Server::start();
    let id = "0190b0a0-0000-7000-8000-000000000000";
    for (arguments, hint) in [
        (
            &["account", "create", "--email", "demo@localhost"][..],
            "demo@localhost already has an account",
        ),
        (
            &["key", "create", "--account", "nobody@example.com"],
            "no account for nobody@example.com",
        ),
        (&["key", "list", "--account", "nobody@example.com"], "run 'heliograph account list'"),
        (&["key", "revoke", id], "run 'heliograph key list'"),
        (
            &["credit", "--account", "nobody@example.com", "--amount", "1"],
            "no account for nobody@example.com",
        ),
        (&["--config", "missing.toml", "check"], "failed to read missing.toml"),
        (&["--config", "missing.toml", "config"], "failed to read missing.toml"),
        (&["webhook", "off", "7"], "no endpoint 7"),
        (&["restore", "gone.db"], "is running on data"),
        (&["backup", "/proc/nothing/x.db"], "/proc/nothing/x.db.part"),
    ] {
        let (code, stdout, stderr) = server.run_text(arguments);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{arguments:?}: {stderr}");
        assert!(
            stderr.starts_with("heliograph: ") && stderr.contains(hint),
            "{arguments:?}: {stderr}"
        );
        // The JSON output has the same text.
        let (code, stdout, stderr) = server.run_text(&[&["--json"], arguments].concat());
        let error: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!((code, error.as_object().unwrap().len()), (Some(1), 1), "{stdout}");
        assert_eq!(stderr, format!("heliograph: {}\n", error["error"].as_str().unwrap()));
    }
}

#[test]
fn invalid_usage_has_exit_code_2() {
    let server = Server::start();
    let before = server.database.number("SELECT count(*) FROM accounts");
    for (arguments, hint) in [
        (&["accounts"][..], "account"),
        (&["account"], "Usage"),
        (&["account", "create"], "--email"),
        (&["account", "create", "--email", "Ann"], "(example: ann@example.com)"),
        (&["account", "create", "--email", "a b@example.com"], "(example: ann@example.com)"),
        (
            &["key", "create", "--account", "demo@localhost", "--live", "--test"],
            "cannot be used with",
        ),
        (&["key", "create", "--account", "demo@localhost", "--scope", "all"], "possible values"),
        (&["key", "revoke", "abc"], "not the ID of an API key; run 'heliograph key list"),
        (&["key", "list", "--account", "Ann"], "expected the ID of an account"),
        (&["serve", "--json"], "--json has no effect with 'serve'"),
        (&["--json"], "--json has no effect with 'serve'"),
        (&["--json", "smsc"], "--json has no effect with 'smsc'"),
        (&["credit", "--account", "demo@localhost", "--amount", "1,5"], "1,5"),
        (&["credit", "--account", "demo@localhost", "--amount", "0.0000001"], "0.0000001"),
        (&["credit", "--account", "demo@localhost", "--amount", "9e99"], "9e99"),
        (&["serve", "--listen", "everywhere"], "everywhere"),
        (&["serve", "--role", "poet"], "poet"),
        (&["smsc", "--error-rate", "2"], "from 0 to 1"),
        (&["check", "--verbose"], "--verbose"),
    ] {
        let (code, stdout, stderr) = server.run_text(arguments);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(hint), "{arguments:?}: {stderr}");
    }
    for (command, offered) in [("serve", false), ("smsc", false), ("check", true)] {
        let (_, stdout, _) = server.run_text(&[command, "--help"]);
        assert_eq!(stdout.contains("--json"), offered, "{stdout}");
    }
    for arguments in [&["--help"][..], &["--version"], &["smsc", "--help"], &["help", "key"]] {
        let (code, stdout, stderr) = server.run_text(arguments);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(!stdout.is_empty());
    }
    assert_eq!(server.database.number("SELECT count(*) FROM accounts"), before);
}
