//! `heliograph backup` and `restore`: under load, and into each engine.

use crate::support::api::hello;
use crate::support::engine::Engine;
use crate::support::http::{self, Request};
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use crate::support::wait::eventually;
use serde_json::json;
use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sends messages until `stop`, and stores the ids of accepted ones.
fn send_until(
    stop: &AtomicBool,
    ids: &Mutex<Vec<String>>,
    send: impl Fn(&str) -> http::HttpResponse,
) {
    // These are not special numbers of the simulator.
    for n in 20_100.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let response = send(&format!("4477009{n}"));
        assert_eq!(response.status, 201, "{}", response.text());
        ids.lock().unwrap().push(response.json()["id"].as_str().unwrap().to_owned());
    }
}

#[test]
fn a_backup_under_load_is_complete() {
    let smsc = Smsc::start(&["--resp-delay", "20", "--receipt-delay", "100"]);
    let mut source = Server::with(&smsc.config(10));
    let key = source.live_key("ann@example.com", "0");
    let file = source.home.path().join("load.db");
    let file = file.to_str().unwrap();
    let (stop, ids, address) = (AtomicBool::new(false), Mutex::new(Vec::new()), source.address());
    let before = std::thread::scope(|scope| {
        scope.spawn(|| {
            send_until(&stop, &ids, |to| {
                http::ask(address, &Request::send_sms(&key, hello(to).to_string())).unwrap()
            });
        });
        let accepted = || ids.lock().unwrap().clone();
        let before =
            eventually("the server is under load", || Some(accepted()).filter(|a| a.len() > 100));
        let made = source.json(&["backup", file]);
        assert!(made["rows"]["messages"].as_u64().unwrap() >= before.len() as u64, "{made}");
        let during = accepted().len();
        eventually("messages are accepted after the backup", || {
            (accepted().len() > during + 20).then_some(())
        });
        stop.store(true, Ordering::Relaxed);
        before
    });
    source.kill();
    for target in Engine::available() {
        let mut target = Server::on(target, &smsc.config(10));
        target.copy_sealing_key(&source);
        let restored = target.json(&["restore", file]);
        assert_eq!(restored["violations"], json!([]));
        target.check();
        target.launch();
        target.wait_until_ready();
        for id in &before {
            target.wait_for_status(&key, id, &["SENT", "DELIVERED"]);
        }
        let new = target.accepted(&key, &hello("+447700900123"));
        assert_eq!(target.wait_until_ended(&key, &new)["status"], "DELIVERED");
        target.check();
    }
}

/// Messages that a killed node had leased are sent again, and no others.
#[test]
fn leased_messages_are_in_doubt_after_a_restore() {
    for target in Engine::available() {
        let smsc = Smsc::start(&["--resp-delay", "500", "--receipt-delay", "10"]);
        let mut source = Server::with(&smsc.config(5));
        let key = source.live_key("ann@example.com", "0");
        let numbers: Vec<_> = (100..120).map(|n| format!("447700900{n}")).collect();
        let ids: Vec<_> = numbers.iter().map(|to| source.accepted(&key, &hello(to))).collect();
        eventually("some messages are submitted", || (smsc.accepted().len() >= 5).then_some(()));
        source.kill();
        let leased = source.database.number("SELECT count(*) FROM queue WHERE owner IS NOT NULL");
        assert!((1..=32).contains(&leased), "{leased}");
        let file = source.home.path().join("crash.db");
        source.stdout(&["backup", file.to_str().unwrap()]);
        let mut target = Server::on(target, &smsc.config(5));
        target.copy_sealing_key(&source);
        let restored = target.json(&["restore", file.to_str().unwrap()]);
        assert_eq!(restored["inDoubt"], leased);
        let doubt = "SELECT count(*) FROM queue WHERE owner IS NULL AND lease_until = 0";
        assert_eq!(target.database.number(doubt), leased);
        target.launch();
        target.wait_until_ready();
        for id in &ids {
            target.wait_for_status(&key, id, &["SENT", "DELIVERED"]);
        }
        let mut times: HashMap<String, i64> = HashMap::new();
        for entry in smsc.journal().into_iter().filter(|e| e.event == "accepted") {
            *times.entry(entry.destination).or_default() += 1;
        }
        for (number, id) in numbers.iter().zip(&ids) {
            let twice = target.message(&key, id).json()["possibleDuplicate"] == true;
            assert!(times[number] == 1 || times[number] == 2 && twice, "{number}: {times:?}");
        }
        assert!(times.values().filter(|n| **n > 1).count() <= usize::try_from(leased).unwrap());
        target.check();
    }
}

#[test]
fn existing_files_are_not_overwritten() {
    let server = Server::start();
    let at = |name: &str| server.home.path().join(name);
    let output = server.run(&["backup", "one.db"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.stderr.is_empty(), "progress is shown on terminals only");
    assert!(stdout.starts_with("Wrote one.db: ") && stdout.contains("schema version "), "{stdout}");
    assert_eq!(at("one.db").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!at("one.db.part").exists());
    let first = std::fs::read(at("one.db")).unwrap();
    server.stdout(&["account", "create", "--email", "ann@example.com"]);
    assert!(server.fails(&["backup", "one.db"]).contains("already exists"));
    assert!(std::fs::read(at("one.db")).unwrap() == first);
    server.stdout(&["backup", "--force", "one.db"]);
    assert!(std::fs::read(at("one.db")).unwrap() != first);
    // An incomplete file of an earlier backup is replaced; a file that another backup writes is
    // not.
    let part = at("two.db.part");
    std::fs::write(&part, "half of something").unwrap();
    let writing = std::fs::File::open(&part).unwrap();
    writing.lock().unwrap();
    assert!(
        server.fails(&["backup", "two.db"]).contains("another backup is writing to two.db.part")
    );
    drop(writing);
    server.stdout(&["backup", "two.db"]);
    assert!(!part.exists());
    assert_eq!(at("two.db").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::os::unix::fs::symlink("one.db", at("four.db.part")).unwrap();
    assert!(server.fails(&["backup", "four.db"]).contains("four.db.part is not a regular file"));
    assert!(server.fails(&["backup", "nowhere/three.db"]).contains("nowhere/three.db.part"));
    if Engine::current() == Engine::Sqlite {
        let own = server.fails(&["backup", "--force", "data/heliograph.db"]);
        assert!(own.contains("is the database in use"), "{own}");
    }
    server.check();
}

#[test]
fn a_database_in_use_is_not_replaced() {
    let mut server = Server::start();
    server.stdout(&["backup", "one.db"]);
    server.stdout(&["account", "create", "--email", "ann@example.com"]);
    let accounts = || server.database.number("SELECT count(*) FROM accounts");
    let stderr = server.fails(&["restore", "--force", "one.db"]);
    assert!(stderr.contains("another heliograph is running on data"), "{stderr}");
    for other in server.other_nodes() {
        let file = server.home.path().join("one.db");
        let elsewhere = tempfile::tempdir().unwrap();
        let key = std::fs::read_to_string(server.home.path().join("data/sealing.key")).unwrap();
        let mut restore = other.command();
        restore.env("HELIOGRAPH_DATABASE__SEALING_KEY", key);
        let output =
            restore.current_dir(elsewhere.path()).args(["restore", "--force"]).arg(file).output();
        let stderr = String::from_utf8(output.unwrap().stderr).unwrap();
        assert!(stderr.contains("another heliograph is"), "{stderr}");
    }
    assert_eq!(accounts(), 2);
    assert!(server.stop().success());
    let accounts = || server.database.number("SELECT count(*) FROM accounts");
    let stderr = server.fails(&["restore", "one.db"]);
    assert!(
        stderr.contains("holds accounts already (2)") && stderr.contains("--force"),
        "{stderr}"
    );
    assert_eq!(accounts(), 2);
    server.stdout(&["restore", "--force", "one.db"]);
    assert_eq!(accounts(), 1);
    server.launch();
    server.wait_until_ready();
    server.check();
}

#[test]
fn an_invalid_backup_changes_nothing() {
    let mut server = Server::start();
    server.stdout(&["backup", "whole.db"]);
    assert!(server.stop().success());
    let at = |name: &str| server.home.path().join(name);
    let whole = std::fs::read(at("whole.db")).unwrap();
    std::fs::write(at("empty"), "").unwrap();
    std::fs::write(at("text"), "Dear diary, nothing is backed up").unwrap();
    std::fs::write(at("half"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(at("newer"), &whole).unwrap();
    let change = |path: &Path, sql: &str| {
        rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
    };
    change(&at("newer"), "INSERT INTO schema_migrations VALUES (99, 'later', '', '1')");
    change(&at("other"), "CREATE TABLE t (a)");
    for (name, hint) in [
        ("gone", "No such file"),
        ("empty", "not a backup"),
        ("text", "not a backup"),
        ("other", "SQLite database of another program"),
        ("half", "malformed"),
        ("newer", "use a newer heliograph"),
    ] {
        let stderr = server.fails(&["restore", "--force", name]);
        assert!(stderr.contains(&format!("{name}: ")) && stderr.contains(hint), "{stderr}");
    }
    assert!(!at("data/restore.part").exists());
    server.check();
    // No database is created for it.
    let fresh = Server::on(Engine::Sqlite, "");
    fresh.fails(&["restore", at("half").to_str().unwrap()]);
    assert!(!fresh.home.path().join("data/heliograph.db").exists());
}

#[test]
fn a_backup_with_violations_needs_force() {
    let mut server = Server::start();
    server.stdout(&["credit", "--account", "demo@localhost", "--amount", "5"]);
    server.database.change("UPDATE accounts SET available = available + 1");
    server.stdout(&["backup", "wrong.db"]);
    server.database.change("UPDATE accounts SET available = available - 1");
    assert!(server.stop().success());
    let target = Server::new("");
    target.copy_sealing_key(&server);
    let file = server.home.path().join("wrong.db");
    let file = file.to_str().unwrap();
    let stderr = target.fails(&["restore", file]);
    assert!(
        stderr.contains("the ledger adds up") && stderr.contains("nothing was changed"),
        "{stderr}"
    );
    assert_eq!(target.database.number("SELECT count(*) FROM accounts"), 0);
    let restored = target.json(&["restore", "--force", file]);
    assert_eq!(restored["violations"].as_array().unwrap().len(), 1);
    assert_eq!(target.database.number("SELECT count(*) FROM accounts"), 1);
}

#[test]
fn a_restore_ends_sign_ins_and_names_revoked_access() {
    let mut server = Server::start();
    let key = server.json(&["key", "create", "--account", "1", "--name", "till"]);
    let id = key["id"].as_str().unwrap();
    server.stdout(&["account", "create", "--email", "ann@example.com"]);
    let ann = "(SELECT id FROM users WHERE email = 'ann@example.com')";
    server
        .database
        .change(&format!("INSERT INTO memberships (account, user_id, role) VALUES (1, {ann}, 1)"));
    server.stdout(&["account", "link", "--email", "ann@example.com"]);
    server.stdout(&["backup", "one.db"]);
    server.stdout(&["key", "revoke", id]);
    server
        .database
        .change(&format!("DELETE FROM memberships WHERE account = 1 AND user_id = {ann}"));
    assert!(server.stop().success());
    let (code, _, notes) = server.run_text(&["restore", "--force", "one.db"]);
    assert_eq!(code, Some(0), "{notes}");
    for words in [
        "API key 'till' of account 1 was revoked after the backup and is valid again",
        &format!("heliograph key revoke {id}"),
        "ann@example.com was removed from account 1 after the backup and is admin again",
        "Everyone has to sign in again",
    ] {
        assert!(notes.contains(words), "{notes}");
    }
    let left = ["sessions", "magic_links", "invitations", "mails"]
        .map(|table| server.database.number(&format!("SELECT count(*) FROM {table}")));
    assert_eq!(left, [0; 4]);
    // Without the previous data nobody can know; keys can be revoked altogether.
    let target = Server::new("");
    target.copy_sealing_key(&server);
    let file = server.home.path().join("one.db");
    let file = file.to_str().unwrap();
    let (code, _, notes) = target.run_text(&["restore", file]);
    assert!(code == Some(0) && notes.contains("--revoke-keys"), "{notes}");
    let done = target.json(&["restore", "--force", "--revoke-keys", file]);
    let valid = target.database.number("SELECT count(*) FROM api_keys WHERE revoked_at IS NULL");
    assert_eq!((&done["revokedKeys"], valid), (&json!(1), 0));
    let audited = "SELECT count(*) FROM audit WHERE action = 'backup_restored'";
    assert_eq!(target.database.number(audited), 2);
    target.check();
}
