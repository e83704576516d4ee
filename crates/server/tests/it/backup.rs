//! `heliograph backup` and `restore`: beside a server under load, and back into either engine.

use crate::database::{Engine, each_engine};
use crate::http::{self, Request};
use crate::patience::eventually;
use crate::send_sms::hello;
use crate::server::Server;
use crate::smsc::Smsc;
use serde_json::json;
use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

each_engine!(backup: under_load_nothing_is_missing what_was_leased_is_in_doubt files_are_not_written_over
    what_is_in_use_is_not_replaced what_is_no_backup_changes_nothing what_breaks_invariants_is_refused);

/// A command that fails, with what it says on stderr.
pub(crate) fn refused(server: &Server, arguments: &[&str]) -> String {
    let output = server.tool(arguments);
    let (told, talk) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    assert_eq!((output.status.code(), told.unwrap().as_str()), (Some(1), ""), "{arguments:?}");
    talk.unwrap()
}

/// Sends one message after the other until told to stop, and keeps the ids of what was accepted.
fn send_until(stop: &AtomicBool, ids: &Mutex<Vec<String>>, send: impl Fn(&str) -> http::Answer) {
    // None of the numbers that misbehave.
    for n in 20_100.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let answer = send(&format!("4477009{n}"));
        assert_eq!(answer.status, 201, "{}", answer.text());
        ids.lock().unwrap().push(answer.json()["id"].as_str().unwrap().to_owned());
    }
}

fn under_load_nothing_is_missing(engine: Engine) {
    let smsc = Smsc::start(&["--resp-delay", "20", "--receipt-delay", "100"]);
    let mut source = Server::with(engine, &smsc.config(10));
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
        let before = eventually("there is a load", || Some(accepted()).filter(|a| a.len() > 100));
        let made = source.json(&["backup", file]);
        assert!(made["rows"]["messages"].as_u64().unwrap() >= before.len() as u64, "{made}");
        let during = accepted().len();
        eventually("it goes on", || (accepted().len() > during + 20).then_some(()));
        stop.store(true, Ordering::Relaxed);
        before
    });
    source.kill();
    for target in Engine::ALL {
        let mut target = Server::new(*target, &smsc.config(10));
        target.take_key(&source);
        let restored = target.json(&["restore", file]);
        assert_eq!(restored["violations"], json!([]));
        target.check();
        target.launch();
        target.await_ready();
        for id in &before {
            target.message_in(&key, id, &["SENT", "DELIVERED"]);
        }
        let new = target.accepted(&key, &hello("+447700900123"));
        assert_eq!(target.ended(&key, &new)["status"], "DELIVERED");
        target.check();
    }
}

/// As after a crash: what a node held is sent again, and nothing else.
fn what_was_leased_is_in_doubt(engine: Engine) {
    for target in Engine::ALL {
        let smsc = Smsc::start(&["--resp-delay", "500", "--receipt-delay", "10"]);
        let mut source = Server::with(engine, &smsc.config(5));
        let key = source.live_key("ann@example.com", "0");
        let numbers: Vec<_> = (100..120).map(|n| format!("447700900{n}")).collect();
        let ids: Vec<_> = numbers.iter().map(|to| source.accepted(&key, &hello(to))).collect();
        eventually("some are out", || (smsc.accepted().len() >= 5).then_some(()));
        source.kill();
        let leased = source.database.number("SELECT count(*) FROM queue WHERE owner IS NOT NULL");
        assert!((1..=32).contains(&leased), "{leased}");
        let file = source.home.path().join("crash.db");
        source.told(&["backup", file.to_str().unwrap()]);
        let mut target = Server::new(*target, &smsc.config(5));
        target.take_key(&source);
        let restored = target.json(&["restore", file.to_str().unwrap()]);
        assert_eq!(restored["inDoubt"], leased);
        let doubt = "SELECT count(*) FROM queue WHERE owner IS NULL AND lease_until = 0";
        assert_eq!(target.database.number(doubt), leased);
        target.launch();
        target.await_ready();
        for id in &ids {
            target.message_in(&key, id, &["SENT", "DELIVERED"]);
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

fn files_are_not_written_over(engine: Engine) {
    let server = Server::start(engine);
    let at = |name: &str| server.home.path().join(name);
    let output = server.tool(&["backup", "one.db"]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.stderr.is_empty(), "progress is for terminals");
    assert!(told.starts_with("one.db holds ") && told.contains("schema version "), "{told}");
    assert_eq!(at("one.db").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!at("one.db.part").exists());
    let first = std::fs::read(at("one.db")).unwrap();
    server.told(&["account", "create", "--email", "ann@example.com"]);
    assert!(refused(&server, &["backup", "one.db"]).contains("is there already"));
    assert!(std::fs::read(at("one.db")).unwrap() == first);
    server.told(&["backup", "--force", "one.db"]);
    assert!(std::fs::read(at("one.db")).unwrap() != first);
    // What an earlier try left behind is of no use; what another one writes is left alone.
    let part = at("two.db.part");
    std::fs::write(&part, "half of something").unwrap();
    let writing = std::fs::File::open(&part).unwrap();
    writing.lock().unwrap();
    assert!(
        refused(&server, &["backup", "two.db"]).contains("another backup is writing two.db.part")
    );
    drop(writing);
    server.told(&["backup", "two.db"]);
    assert!(!part.exists());
    assert_eq!(at("two.db").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::os::unix::fs::symlink("one.db", at("four.db.part")).unwrap();
    assert!(refused(&server, &["backup", "four.db"]).contains("four.db.part is no file"));
    assert!(refused(&server, &["backup", "nowhere/three.db"]).contains("nowhere/three.db.part"));
    if engine == Engine::Sqlite {
        let own = refused(&server, &["backup", "--force", "data/heliograph.db"]);
        assert!(own.contains("is the database in use"), "{own}");
    }
    server.check();
}

fn what_is_in_use_is_not_replaced(engine: Engine) {
    let mut server = Server::start(engine);
    server.told(&["backup", "one.db"]);
    server.told(&["account", "create", "--email", "ann@example.com"]);
    let accounts = || server.database.number("SELECT count(*) FROM accounts");
    let talk = refused(&server, &["restore", "--force", "one.db"]);
    assert!(talk.contains("another heliograph is running on data"), "{talk}");
    for other in server.others() {
        let file = server.home.path().join("one.db");
        let elsewhere = tempfile::tempdir().unwrap();
        let key = std::fs::read_to_string(server.home.path().join("data/sealing.key")).unwrap();
        let mut restore = other.command();
        restore.env("HELIOGRAPH_DATABASE__SEALING_KEY", key);
        let output =
            restore.current_dir(elsewhere.path()).args(["restore", "--force"]).arg(file).output();
        let talk = String::from_utf8(output.unwrap().stderr).unwrap();
        assert!(talk.contains("another heliograph is"), "{talk}");
    }
    assert_eq!(accounts(), 2);
    assert!(server.stop().success());
    let accounts = || server.database.number("SELECT count(*) FROM accounts");
    let talk = refused(&server, &["restore", "one.db"]);
    assert!(talk.contains("holds accounts already (2)") && talk.contains("--force"), "{talk}");
    assert_eq!(accounts(), 2);
    server.told(&["restore", "--force", "one.db"]);
    assert_eq!(accounts(), 1);
    server.launch();
    server.await_ready();
    server.check();
}

fn what_is_no_backup_changes_nothing(engine: Engine) {
    let mut server = Server::start(engine);
    server.told(&["backup", "whole.db"]);
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
    change(&at("newer"), "INSERT INTO refinery_schema_history VALUES (99, 'later', '', '1')");
    change(&at("other"), "CREATE TABLE t (a)");
    for (name, hint) in [
        ("gone", "No such file"),
        ("empty", "this is no backup"),
        ("text", "this is no backup"),
        ("other", "another program's SQLite database"),
        ("half", "malformed"),
        ("newer", "use a newer heliograph"),
    ] {
        let talk = refused(&server, &["restore", "--force", name]);
        assert!(talk.contains(&format!("{name}: ")) && talk.contains(hint), "{talk}");
    }
    assert!(!at("data/restore.part").exists());
    server.check();
    // Nor is a database made for it.
    let fresh = Server::new(Engine::Sqlite, "");
    refused(&fresh, &["restore", at("half").to_str().unwrap()]);
    assert!(!fresh.home.path().join("data/heliograph.db").exists());
}

fn what_breaks_invariants_is_refused(engine: Engine) {
    let mut server = Server::start(engine);
    server.told(&["credit", "--account", "demo@localhost", "--amount", "5"]);
    server.database.change("UPDATE accounts SET available = available + 1");
    server.told(&["backup", "wrong.db"]);
    server.database.change("UPDATE accounts SET available = available - 1");
    assert!(server.stop().success());
    let target = Server::new(engine, "");
    target.take_key(&server);
    let file = server.home.path().join("wrong.db");
    let file = file.to_str().unwrap();
    let talk = refused(&target, &["restore", file]);
    assert!(talk.contains("the ledger's sum") && talk.contains("nothing was changed"), "{talk}");
    assert_eq!(target.database.number("SELECT count(*) FROM accounts"), 0);
    let restored = target.json(&["restore", "--force", file]);
    assert_eq!(restored["violations"].as_array().unwrap().len(), 1);
    assert_eq!(target.database.number("SELECT count(*) FROM accounts"), 1);
}
