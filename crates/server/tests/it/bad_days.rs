//! Bad days: the SMSC is gone, links break, the database is away, the disk is full.

use crate::database::{Engine, each_engine};
use crate::http::Answer;
use crate::patience::{eventually, pause};
use crate::send_sms::hello;
use crate::server::Server;
use crate::smsc::Smsc;
use crate::wrong_input::problem;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

each_engine!(bad_days: messages_wait_for_their_smsc a_lost_response_is_told);

/// Sends one message to each of these numbers.
fn send_all(server: &Server, key: &str, numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|n| server.accepted(key, &hello(&format!("447700900{n}")))).collect()
}

/// All are delivered, and each went out just once.
fn delivered_once(server: &Server, smsc: &Smsc, key: &str, ids: &[String]) {
    for id in ids {
        let message = server.ended(key, id);
        assert_eq!(message["status"], "DELIVERED", "{message}");
        assert_eq!(message["possibleDuplicate"], false, "{message}");
    }
    let mut times: HashMap<String, u32> = HashMap::new();
    for entry in smsc.journal().into_iter().filter(|e| e.event == "accepted") {
        *times.entry(entry.destination).or_default() += 1;
    }
    assert_eq!((times.len(), times.values().all(|n| *n == 1)), (ids.len(), true), "{times:?}");
    server.check();
}

/// Turned away, and told when to come again.
fn turned_away(answer: &Answer) {
    assert_eq!(problem(answer, 503, "overloaded"), []);
    assert_eq!(answer.header("retry-after"), Some("1"));
}

fn messages_wait_for_their_smsc(engine: Engine) {
    let mut smsc = Smsc::start(&[]);
    let server = Server::with(engine, &smsc.config(10));
    let key = server.live_key("ann@example.com", "0");
    let mut ids = send_all(&server, &key, 100..103);
    ids.iter().for_each(|id| drop(server.ended(&key, id)));
    smsc.kill();
    eventually("the loss is noticed", || server.log().contains("bind lost").then_some(()));
    let waiting = send_all(&server, &key, 200..260);
    // Nobody is there to take them, whoever looks and whenever.
    for id in &waiting {
        let message = server.message(&key, id).json();
        assert_eq!((&message["status"], &message["inDoubt"]), (&json!("QUEUED"), &json!(false)));
    }
    assert_eq!(server.database.number("SELECT count(*) FROM queue"), 60);
    smsc.revive();
    ids.extend(waiting);
    delivered_once(&server, &smsc, &key, &ids);
}

/// The SMSC takes two submits, and cuts the link in the middle of its answer to the second.
fn a_lost_response_is_told(engine: Engine) {
    let mut smsc = Smsc::start(&["--disconnect-every", "2"]);
    let server = Server::with(engine, &format!("[rates]\ndefault = '0.04'\n{}", smsc.config(10)));
    let key = server.live_key("ann@example.com", "1.00");
    let flags =
        |m: &Value| ["status", "inDoubt", "possibleDuplicate", "price"].map(|f| m[f].clone());
    let first = server.ended(&key, &server.accepted(&key, &hello("447700900123")));
    assert_eq!(flags(&first), [json!("DELIVERED"), json!(false), json!(false), json!("0.0400")]);
    let second = server.accepted(&key, &hello("447700900124"));
    eventually("both are out", || (smsc.accepted().len() == 2).then_some(()));
    smsc.kill();
    let doubt = eventually("the second is in doubt", || {
        let message = server.message(&key, &second).json();
        (message["inDoubt"] == true).then_some(message)
    });
    assert_eq!(flags(&doubt), [json!("QUEUED"), json!(true), json!(true), json!("0.0400")]);
    smsc.revive();
    let last = server.ended(&key, &second);
    assert_eq!(flags(&last), [json!("DELIVERED"), json!(false), json!(true), json!("0.0400")]);
    let numbers =
        smsc.journal().into_iter().filter(|e| e.event == "accepted").map(|e| e.destination);
    let numbers: Vec<_> = numbers.collect();
    assert_eq!(numbers, ["447700900123", "447700900124", "447700900124"]);
    let accounts = server.told(&["account", "list"]);
    assert!(accounts.contains("ann@example.com\t0.9200 EUR\t0.0000 reserved"), "{accounts}");
    server.check();
}

/// A limit on the size of files is a full disk to whoever writes: it works as an ordinary user.
#[test]
fn a_full_disk_turns_messages_away() {
    let smsc = Smsc::start(&["--receipt-delay", "50"]);
    let mut server = Server::new(Engine::Sqlite, &smsc.config(10));
    server.launch_without_sigxfsz();
    server.await_ready();
    let key = server.live_key("ann@example.com", "0");
    let mut ids = send_all(&server, &key, 100..130);
    server.process().limit_files(Some(1));
    let rows = "SELECT count(*) FROM messages";
    let before = server.database.number(rows);
    for n in 200..205 {
        turned_away(&server.post(&key, &hello(&format!("447700900{n}"))));
    }
    assert_eq!(server.database.number(rows), before);
    // What is there can be read; what carriers tell has to wait.
    let shown: Vec<_> = ids.iter().map(|id| server.message(&key, id)).collect();
    assert!(shown.iter().all(|m| m.status == 200));
    pause(Duration::from_millis(1_500));
    turned_away(&server.post(&key, &hello("447700900300")));
    assert!(server.process().ended().is_none());
    server.process().limit_files(None);
    ids.push(eventually("there is room again", || {
        let answer = server.post(&key, &hello("447700900400"));
        (answer.status == 201).then(|| answer.json()["id"].as_str().unwrap().to_owned())
    }));
    delivered_once(&server, &smsc, &key, &ids);
    assert!(server.stop().success());
}

/// Somebody else writes into the file for longer than a writer waits.
#[test]
fn a_locked_database_turns_messages_away() {
    let server = Server::start(Engine::Sqlite);
    let key = server.key();
    let id = server.accepted(&key, &hello("447700900123"));
    server.ended(&key, &id);
    let lock = server.database.lock();
    turned_away(&server.post(&key, &hello("447700900124")));
    assert_eq!(server.message(&key, &id).status, 200);
    drop(lock);
    server.ended(&key, &server.accepted(&key, &hello("447700900125")));
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), 2);
    server.check();
}

#[cfg(feature = "test-postgres")]
#[test]
fn a_lost_database_turns_requests_away() {
    let smsc = Smsc::start(&["--receipt-delay", "300", "--resp-delay", "100"]);
    let mut server = Server::with(Engine::Postgres, &smsc.config(10));
    let key = server.live_key("ann@example.com", "0");
    let database = server.database.clone();
    let crate::database::Database::Postgres(postgres) = &*database else { panic!("no PostgreSQL") };
    let mut ids = send_all(&server, &key, 100..130);
    postgres.lose();
    let ready = crate::http::Request::get("/readyz");
    for n in 200..205 {
        turned_away(&server.post(&key, &hello(&format!("447700900{n}"))));
        turned_away(&server.message(&key, &ids[0]));
        assert_eq!(server.ask(&ready).status, 503);
    }
    assert_eq!(server.ask(&crate::http::Request::get("/healthz")).status, 200);
    // Receipts come in meanwhile, and must come again.
    pause(Duration::from_millis(1_500));
    assert!(server.process().ended().is_none());
    postgres.find_again();
    ids.push(eventually("the database is back", || {
        let answer = server.post(&key, &hello("447700900400"));
        (answer.status == 201).then(|| answer.json()["id"].as_str().unwrap().to_owned())
    }));
    assert_eq!(server.ask(&ready).status, 200);
    delivered_once(&server, &smsc, &key, &ids);
    assert!(server.stop().success());
}
