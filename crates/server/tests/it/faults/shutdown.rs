//! SIGTERM: requests and submissions in progress are finished, and leases are given back.

use crate::support::api::hello;
use crate::support::http::{Connection, Request};
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use crate::support::wait::eventually;
use std::collections::HashMap;

/// Messages that are leased.
const LEASED: &str =
    "SELECT count(*) FROM queue WHERE owner IS NOT NULL OR lease_until IS NOT NULL";

#[test]
fn a_request_in_progress_gets_its_response() {
    let smsc = Smsc::start(&[]);
    let mut server = Server::with(&smsc.config(10));
    let key = server.live_key("ann@example.com", "0");
    let mut idle = Connection::open(server.address()).unwrap();
    assert_eq!(idle.ask(&Request::get("/healthz")).unwrap().status, 200);
    let mut busy = Connection::open(server.address()).unwrap();
    let request = Request::send_sms(&key, hello("+447700900123").to_string());
    let rest = busy.begin(&request.clone().header("Expect", "100-continue"), 5).unwrap();
    // The server waits for the body.
    assert_eq!(busy.response().unwrap().status, 100);
    server.process().terminate();
    eventually("the server drains", || server.log().contains("draining").then_some(()));
    // New requests get 503, or no connection.
    if let Ok(response) = crate::support::http::ask(server.address(), &Request::get("/readyz")) {
        assert_eq!(response.status, 503);
    }
    if let Ok(response) = idle.ask(&request) {
        assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
    }
    busy.write(&rest).unwrap();
    let response = busy.response().unwrap();
    assert_eq!(response.status, 201, "{}", response.text());
    assert_eq!(server.process().wait().code(), Some(0));
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), 1);
    server.launch();
    server.wait_until_ready();
    let id = response.json()["id"].as_str().unwrap().to_owned();
    let message = server.wait_until_ended(&key, &id);
    assert_eq!(
        (&message["status"], &message["possibleDuplicate"]),
        (&"DELIVERED".into(), &false.into())
    );
}

/// An unfinished request delays the shutdown, and has no other effect.
#[test]
fn an_unfinished_request_only_delays_shutdown() {
    let smsc = Smsc::start(&["--resp-delay", "200"]);
    let mut server = Server::with(&smsc.config(1));
    let key = server.live_key("ann@example.com", "0");
    for n in 100..200 {
        server.accepted(&key, &hello(&format!("447700900{n}")));
    }
    let mut unfinished = Connection::open(server.address()).unwrap();
    let request = Request::send_sms(&key, hello("+447700900200").to_string());
    unfinished.begin(&request.header("Expect", "100-continue"), 5).unwrap();
    assert_eq!(unfinished.response().unwrap().status, 100);
    assert_eq!(server.stop().code(), Some(0));
    assert!(server.log().contains("did not finish its request in time"));
    assert_eq!(server.database.number(LEASED), 0);
    assert!(
        server.database.number("SELECT count(*) FROM queue") > 0,
        "all messages were already submitted"
    );
    server.check();
}

#[test]
fn leases_are_given_back() {
    let smsc = Smsc::start(&["--resp-delay", "100", "--receipt-delay", "400"]);
    let mut server = Server::with(&smsc.config(5));
    let key = server.live_key("ann@example.com", "0");
    let numbers: Vec<_> = (100..160).map(|n| format!("447700900{n}")).collect();
    let ids: Vec<_> = numbers.iter().map(|to| server.accepted(&key, &hello(to))).collect();
    eventually("some messages are submitted", || (smsc.accepted().len() > 7).then_some(()));
    assert_eq!(server.stop().code(), Some(0));
    assert_eq!(server.database.number(LEASED), 0);
    assert!(
        server.database.number("SELECT count(*) FROM queue") > 0,
        "all messages were already submitted"
    );
    server.check();
    server.launch();
    server.wait_until_ready();
    for id in &ids {
        let message = server.wait_until_ended(&key, id);
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
