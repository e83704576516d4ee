//! SIGTERM: what was begun is finished, nothing new is begun, and nothing stays behind half done.

use crate::database::{Engine, each_engine};
use crate::http::{Connection, Request};
use crate::patience::eventually;
use crate::send_sms::hello;
use crate::server::Server;
use crate::smsc::Smsc;
use std::collections::HashMap;

each_engine!(shutdown: a_request_under_way_is_answered work_under_way_is_given_back);

/// Messages that somebody holds, or held to the end.
const LEASED: &str =
    "SELECT count(*) FROM queue WHERE owner IS NOT NULL OR lease_until IS NOT NULL";

fn a_request_under_way_is_answered(engine: Engine) {
    let smsc = Smsc::start(&[]);
    let mut server = Server::with(engine, &smsc.config(10));
    let key = server.live_key("ann@example.com", "0");
    let mut idle = Connection::open(server.address()).unwrap();
    assert_eq!(idle.ask(&Request::get("/healthz")).unwrap().status, 200);
    let mut busy = Connection::open(server.address()).unwrap();
    let request = Request::send_sms(&key, hello("+447700900123").to_string());
    let rest = busy.begin(&request.clone().header("Expect", "100-continue"), 5).unwrap();
    // The server says so when it waits for the body.
    assert_eq!(busy.answer().unwrap().status, 100);
    server.process().terminate();
    eventually("it drains", || server.log().contains("draining").then_some(()));
    // Whoever asks for something new is sent away, or finds the door shut.
    if let Ok(answer) = crate::http::ask(server.address(), &Request::get("/readyz")) {
        assert_eq!(answer.status, 503);
    }
    if let Ok(answer) = idle.ask(&request) {
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    }
    busy.say(&rest).unwrap();
    let answer = busy.answer().unwrap();
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(server.process().wait().code(), Some(0));
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), 1);
    server.launch();
    server.await_ready();
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    let message = server.ended(&key, &id);
    assert_eq!(
        (&message["status"], &message["possibleDuplicate"]),
        (&"DELIVERED".into(), &false.into())
    );
}

/// Somebody who never finishes a request holds up the end for a while, and nothing else.
#[test]
fn a_dawdling_client_costs_only_time() {
    let smsc = Smsc::start(&["--resp-delay", "200"]);
    let mut server = Server::with(Engine::Sqlite, &smsc.config(1));
    let key = server.live_key("ann@example.com", "0");
    for n in 100..200 {
        server.accepted(&key, &hello(&format!("447700900{n}")));
    }
    let mut dawdler = Connection::open(server.address()).unwrap();
    let request = Request::send_sms(&key, hello("+447700900200").to_string());
    dawdler.begin(&request.header("Expect", "100-continue"), 5).unwrap();
    assert_eq!(dawdler.answer().unwrap().status, 100);
    assert_eq!(server.stop().code(), Some(0));
    assert!(server.log().contains("did not finish its request in time"));
    assert_eq!(server.database.number(LEASED), 0);
    assert!(server.database.number("SELECT count(*) FROM queue") > 0, "all were out already");
    server.check();
}

fn work_under_way_is_given_back(engine: Engine) {
    let smsc = Smsc::start(&["--resp-delay", "100", "--receipt-delay", "400"]);
    let mut server = Server::with(engine, &smsc.config(5));
    let key = server.live_key("ann@example.com", "0");
    let numbers: Vec<_> = (100..160).map(|n| format!("447700900{n}")).collect();
    let ids: Vec<_> = numbers.iter().map(|to| server.accepted(&key, &hello(to))).collect();
    eventually("some are out", || (smsc.accepted().len() > 7).then_some(()));
    assert_eq!(server.stop().code(), Some(0));
    assert_eq!(server.database.number(LEASED), 0);
    assert!(server.database.number("SELECT count(*) FROM queue") > 0, "all were out already");
    server.check();
    server.launch();
    server.await_ready();
    for id in &ids {
        let message = server.ended(&key, id);
        assert_eq!(
            (&message["status"], &message["possibleDuplicate"]),
            (&"DELIVERED".into(), &false.into())
        );
    }
    let mut times: HashMap<String, u32> = HashMap::new();
    for entry in smsc.journal().into_iter().filter(|e| e.event == "accepted") {
        *times.entry(entry.destination).or_default() += 1;
    }
    assert!(numbers.iter().all(|n| times.get(n) == Some(&1)), "{times:?}");
    server.check();
}
