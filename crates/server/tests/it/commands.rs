//! The commands, each beside a running server: results on stdout, talk on stderr, exit codes.

use crate::database::{Engine, each_engine};
use crate::process::command;
use crate::send_sms::hello;
use crate::server::Server;
use serde_json::{Value, json};

each_engine!(commands: accounts keys credit check_finds_what_is_wrong failures_are_told
    wrong_usage_is_told before_the_first_start what_is_done_is_one_document schemas_go_forward);

/// A command's exit code, stdout and stderr.
fn said(server: &Server, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = server.tool(arguments);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn accounts(engine: Engine) {
    let server = Server::start(engine);
    let made = server.json(&["account", "create", "--email", " Ann@Example.com "]);
    let link = made["signInUrl"].as_str().unwrap();
    assert!(link.starts_with("http://127.0.0.1:8080/sign-in/"), "{link}");
    assert_eq!(
        made,
        json!({ "id": 2, "email": "ann@example.com", "currency": "EUR", "signInUrl": link })
    );
    let (code, told, _) = said(&server, &["account", "create", "--email", "bob@example.com"]);
    assert!(
        code == Some(0) && told.starts_with("account 3 for bob@example.com, in EUR\n"),
        "{told}"
    );
    server.told(&["credit", "--account", "ann@example.com", "--amount", "1.5"]);
    let all = server.list(&["account", "list"]);
    let names: Vec<_> = all.iter().map(|a| a["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["demo@localhost", "ann@example.com", "bob@example.com"]);
    let created = &all[1]["createdAt"];
    assert!(created.as_str().unwrap().ends_with('Z'));
    assert_eq!(
        all[1],
        json!({ "id": 2, "name": "ann@example.com", "currency": "EUR", "available": "1.5000",
                "reserved": "0.0000", "createdAt": created })
    );
    let (_, told, _) = said(&server, &["account", "list"]);
    assert_eq!(told.lines().count(), 3);
    assert!(told.contains("2\tann@example.com\t1.5000 EUR\t0.0000 reserved\n"), "{told}");
}

fn keys(engine: Engine) {
    let server = Server::start(engine);
    server.told(&["account", "create", "--email", "ann@example.com"]);
    let create = |more: &[&str]| {
        said(&server, &[&["key", "create", "--account", "ann@example.com"], more].concat())
    };
    // The key stands alone on stdout, so that a script can take it.
    for (more, begin) in
        [(&[][..], "hg_test_"), (&["--test"], "hg_test_"), (&["--live"], "hg_live_")]
    {
        let (code, key, talk) = create(more);
        assert_eq!((code, key.len(), key.starts_with(begin)), (Some(0), 45, true), "{key}");
        assert!(talk.contains("shown only now") && !talk.contains(key.trim()), "{talk}");
    }
    create(&["--name", "readers", "--scope", "read", "--scope", "send"]);
    let all = server.list(&["key", "list", "--account", "ann@example.com"]);
    let modes: Vec<_> = all.iter().map(|k| k["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["test", "test", "live", "test"]);
    let last = &all[3];
    let (id, created) = (last["id"].as_str().unwrap(), &last["createdAt"]);
    assert_eq!(
        *last,
        json!({ "id": id, "name": "readers", "mode": "test", "scopes": ["send", "read"],
                "createdAt": created, "lastUsedAt": null, "revokedAt": null })
    );
    let (code, told, talk) = said(&server, &["key", "revoke", id]);
    assert_eq!((code, told.as_str()), (Some(0), ""));
    assert_eq!(talk, format!("key {id} is revoked\n"));
    let all = server.list(&["key", "list", "--account", "ann@example.com"]);
    assert!(all[3]["revokedAt"].is_string() && all[2]["revokedAt"].is_null());
    let (_, told, _) = said(&server, &["key", "list", "--account", "ann@example.com"]);
    assert_eq!(told.lines().filter(|l| l.contains("revoked")).count(), 1, "{told}");
    assert!(!told.contains("hg_"), "{told}");
}

fn credit(engine: Engine) {
    let server = Server::start(engine);
    let credit = |amount: &str| {
        let amount = format!("--amount={amount}");
        said(&server, &["credit", "--account", "demo@localhost", &amount, "--note", "by hand"])
    };
    let balance =
        |available: &str| format!("demo@localhost has {available} EUR, and 0.0000 reserved\n");
    for (amount, available) in
        [("25.00", "25.0000"), ("0.0001", "25.0001"), ("-5", "20.0001"), ("-20.0001", "0.0000")]
    {
        assert_eq!(credit(amount).1, balance(available));
    }
    let (code, told, talk) = credit("-0.0001");
    assert_eq!((code, told.as_str()), (Some(1), ""));
    assert!(talk.contains("only 0.0000 EUR can be taken out"), "{talk}");
    assert_eq!(credit("0").0, Some(1));
    let json = server.json(&["credit", "--account", "DEMO@localhost", "--amount", "3"]);
    assert_eq!(json, json!({ "available": "3.0000", "reserved": "0.0000", "currency": "EUR" }));
    server.check();
}

fn check_finds_what_is_wrong(engine: Engine) {
    let server = Server::start(engine);
    let key = server.key();
    server.ended(&key, &server.accepted(&key, &hello("+447700900123")));
    let (code, told, talk) = said(&server, &["check"]);
    assert_eq!((code, told.as_str(), talk.as_str()), (Some(0), "", "every invariant holds\n"));
    assert_eq!(server.json(&["check"]), json!({ "violations": [] }));
    for (change, undo, hint) in [
        (
            "accounts SET available = available + 1",
            "accounts SET available = available - 1",
            "the ledger's sum",
        ),
        (
            "accounts SET reserved = reserved + 1",
            "accounts SET reserved = reserved - 1",
            "reserved",
        ),
        (
            "messages SET status = 0, done_at = NULL",
            "messages SET status = 2, done_at = accepted_at",
            "in the queue",
        ),
        ("messages SET parts_delivered = 0", "messages SET parts_delivered = 1", "parts"),
    ] {
        server.database.change(&format!("UPDATE {change}"));
        let (code, told, talk) = said(&server, &["check"]);
        assert_eq!(code, Some(1), "{change}");
        assert!(told.contains(hint), "{change}: {told}");
        assert!(talk.ends_with("violations\n"), "{talk}");
        let (code, json, _) = said(&server, &["check", "--json"]);
        let list = serde_json::from_str::<Value>(&json).unwrap();
        assert_eq!((code, list["violations"].as_array().unwrap().is_empty()), (Some(1), false));
        server.database.change(&format!("UPDATE {undo}"));
    }
    server.check();
}

/// Also what a person is told on stderr alone; lists and the rest have tests of their own.
fn what_is_done_is_one_document(engine: Engine) {
    let server = Server::with(engine, "[webhooks]\nallow_private = ['127.0.0.0/8']");
    let demo = "demo@localhost";
    let key = server.json(&["key", "create", "--account", demo]);
    let id = key["id"].as_str().unwrap();
    assert_eq!(key["mode"], "test");
    assert_eq!(server.json(&["key", "revoke", id]), json!({ "id": id, "revoked": true }));
    let url = ["--url", "http://127.0.0.1:1/"];
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
fn an_older_schema_is_brought_up_to_date() {
    let (new, old) = (Server::new(Engine::Sqlite, ""), Server::new(Engine::Sqlite, ""));
    new.told(&["migrate"]);
    let (new, file) =
        (new.home.path().join("data/heliograph.db"), old.home.path().join("data/heliograph.db"));
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    let first =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../store/migrations/sqlite/V1__foundation.sql");
    let conn = rusqlite::Connection::open(&file).unwrap();
    conn.execute_batch(&std::fs::read_to_string(first).unwrap()).unwrap();
    conn.execute("ATTACH $1 AS new", [new.to_str().unwrap()]).unwrap();
    let history = "CREATE TABLE refinery_schema_history AS SELECT * FROM new.refinery_schema_history WHERE version = 1";
    conn.execute_batch(history).unwrap();
    drop(conn);
    let before = std::fs::read(&file).unwrap();
    let (code, told, _) = said(&old, &["migrate", "--check"]);
    assert_eq!(
        (code, told.starts_with("the schema would go from version 1 to ")),
        (Some(1), true),
        "{told}"
    );
    assert!(std::fs::read(&file).unwrap() == before);
    assert!(old.told(&["migrate"]).starts_with("the schema went from version 1 to version "));
    assert_eq!(said(&old, &["migrate", "--check"]).0, Some(0));
    old.check();
}

/// Migrating an empty database is all that there can be to do, until a version is released.
fn schemas_go_forward(engine: Engine) {
    let server = Server::new(engine, "");
    let check = |exit: i32| {
        let (code, told, _) = said(&server, &["migrate", "--check"]);
        assert_eq!(code, Some(exit), "{told}");
        told
    };
    assert!(check(1).starts_with("the schema would go from nothing to version "));
    let (code, told, _) = said(&server, &["--json", "migrate", "--check"]);
    let told = serde_json::from_str::<Value>(&told).unwrap();
    assert_eq!((code, &told["from"], &told["upToDate"]), (Some(1), &Value::Null, &json!(false)));
    if engine == Engine::Sqlite {
        assert!(!server.home.path().join("data/heliograph.db").exists());
    }
    let done = server.json(&["migrate"]);
    assert_eq!((&done["from"], &done["to"]), (&Value::Null, &told["to"]));
    assert!(check(0).ends_with("which is the newest\n"));
    let again = server.json(&["migrate"]);
    assert_eq!((&again["from"], &again["upToDate"]), (&told["to"], &json!(true)));
    server.database.change(
        "INSERT INTO refinery_schema_history (version, name, applied_on, checksum)
         VALUES (99, 'later', '2030-01-01T00:00:00Z', '1')",
    );
    let (code, _, talk) = said(&server, &["migrate", "--check"]);
    assert_eq!((code, talk.contains("use a newer heliograph")), (Some(1), true), "{talk}");
}

fn failures_are_told(engine: Engine) {
    let server = Server::start(engine);
    let id = "0190b0a0-0000-7000-8000-000000000000";
    for (arguments, hint) in [
        (
            &["account", "create", "--email", "demo@localhost"][..],
            "demo@localhost has an account already",
        ),
        (
            &["key", "create", "--account", "nobody@example.com"],
            "no account for nobody@example.com",
        ),
        (&["key", "list", "--account", "nobody@example.com"], "see 'heliograph account list'"),
        (&["key", "revoke", id], "see 'heliograph key list'"),
        (
            &["credit", "--account", "nobody@example.com", "--amount", "1"],
            "no account for nobody@example.com",
        ),
        (&["--config", "missing.toml", "check"], "missing.toml can't be read"),
        (&["--config", "missing.toml", "config"], "missing.toml can't be read"),
        (&["webhook", "off", "7"], "there is no endpoint 7"),
        (&["restore", "gone.db"], "is running on data"),
        (&["backup", "/proc/nothing/x.db"], "/proc/nothing/x.db.part"),
    ] {
        let (code, told, talk) = said(&server, arguments);
        assert_eq!((code, told.as_str()), (Some(1), ""), "{arguments:?}: {talk}");
        assert!(talk.starts_with("heliograph: ") && talk.contains(hint), "{arguments:?}: {talk}");
        // A script gets the same words.
        let (code, told, talk) = said(&server, &[&["--json"], arguments].concat());
        let error: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((code, error.as_object().unwrap().len()), (Some(1), 1), "{told}");
        assert_eq!(talk, format!("heliograph: {}\n", error["error"].as_str().unwrap()));
    }
}

fn wrong_usage_is_told(engine: Engine) {
    let server = Server::start(engine);
    let before = server.database.number("SELECT count(*) FROM accounts");
    for (arguments, hint) in [
        (&["accounts"][..], "account"),
        (&["account"], "Usage"),
        (&["account", "create"], "--email"),
        (&["account", "create", "--email", "Ann"], "like ann@example.com"),
        (&["account", "create", "--email", "a b@example.com"], "like ann@example.com"),
        (
            &["key", "create", "--account", "demo@localhost", "--live", "--test"],
            "cannot be used with",
        ),
        (&["key", "create", "--account", "demo@localhost", "--scope", "all"], "possible values"),
        (&["key", "revoke", "7"], "7"),
        (&["credit", "--account", "demo@localhost", "--amount", "1,5"], "1,5"),
        (&["credit", "--account", "demo@localhost", "--amount", "0.0000001"], "0.0000001"),
        (&["credit", "--account", "demo@localhost", "--amount", "9e99"], "9e99"),
        (&["serve", "--listen", "everywhere"], "everywhere"),
        (&["serve", "--role", "poet"], "poet"),
        (&["smsc", "--error-rate", "2"], "from 0 to 1"),
        (&["check", "--verbose"], "--verbose"),
    ] {
        let (code, told, talk) = said(&server, arguments);
        assert_eq!((code, told.as_str()), (Some(2), ""), "{arguments:?}: {talk}");
        assert!(talk.contains(hint), "{arguments:?}: {talk}");
    }
    for arguments in [&["--help"][..], &["--version"], &["smsc", "--help"], &["help", "key"]] {
        let (code, told, talk) = said(&server, arguments);
        assert_eq!((code, talk.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(!told.is_empty());
    }
    assert_eq!(server.database.number("SELECT count(*) FROM accounts"), before);
}

/// Everything can be set up before the server runs; then there is nobody to greet.
fn before_the_first_start(engine: Engine) {
    let mut server = Server::new(engine, "");
    // A command that only looks makes no database of its own.
    #[cfg(feature = "test-postgres")]
    let has_one = engine == Engine::Postgres;
    #[cfg(not(feature = "test-postgres"))]
    let has_one = false;
    if !has_one {
        let (code, _, why) = said(&server, &["check"]);
        assert_eq!((code, why.contains("there is no database at")), (Some(1), true), "{why}");
    }
    server.told(&["account", "create", "--email", "ann@example.com"]);
    let key = server.told(&["key", "create", "--account", "ann@example.com"]);
    server.check();
    server.launch();
    server.await_ready();
    server.ended(&key, &server.accepted(&key, &hello("+447700900123")));
    server.process().terminate();
    assert!(server.process().wait().success());
    assert_eq!(server.process().stdout.text(), "");
    // A pipe that nobody reads any more is no failure.
    let script = "\"$0\" account list | true; exit \"${PIPESTATUS[0]}\"";
    let mut pipe = std::process::Command::new("bash");
    pipe.args(["-c", script]).arg(command().get_program()).current_dir(server.home.path());
    pipe.envs(server.command().get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert!(pipe.status().unwrap().success());
}
