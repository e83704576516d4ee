//! Who opts out after a message was accepted does not get it, unless its sender overrode that.

use crate::database::{Engine, each_engine};
use crate::http::Request;
use crate::live::balance;
use crate::optouts::{NUMBERS, add};
use crate::send_sms::hello;
use crate::server::Server;
use crate::sink::Sink;
use crate::smsc::Smsc;
use crate::webhooks;
use crate::wrong_input::problem;
use serde_json::{Value, json};
use std::collections::BTreeSet;

each_engine!(optouts_held_back: what_waits_is_held_back_and_costs_nothing
    what_waits_for_a_slow_carrier_is_called_back who_is_off_the_list_again_is_sent_to a_repeated_request_is_answered_as_before
    a_refused_request_may_be_repeated);

const DEMO: &str = "demo@localhost";
const ANN: &str = "+447700900123";

/// A message that says this.
fn saying(text: &str, block: bool) -> Value {
    let mut body = hello(ANN);
    (body["text"], body["blockOptout"]) = (json!(text), json!(block));
    body
}

/// A live key of the demo account, and this much money.
fn live_key(server: &Server, money: &str) -> String {
    server.told(&["credit", "--account", DEMO, "--amount", money]);
    server.told(&["key", "create", "--account", DEMO, "--live"])
}

fn held_back(message: &Value) {
    assert_eq!(message["status"], "FAILED", "{message}");
    let failure = &message["failure"];
    let told = ["code", "permanent", "carrierCode"].map(|f| failure[f].clone());
    assert_eq!(json!(told), json!(["opted_out", true, null]));
    assert!(failure["detail"].as_str().is_some_and(|d| d.len() > 5), "{message}");
    assert_eq!((&message["price"], &message["partsAccepted"]), (&json!("0.0000"), &json!(0)));
    assert_eq!((&message["sentAt"], &message["inDoubt"]), (&Value::Null, &json!(false)));
}

/// One at a time, each with an answer that takes its time: the others are leased and wait for the window.
fn what_waits_for_a_slow_carrier_is_called_back(engine: Engine) {
    let smsc = Smsc::start(&["--resp-delay=1500"]);
    let rates = "[rates]\ndefault = '0.05'\n";
    let server = Server::with(engine, &format!("{}{rates}", smsc.config(1)));
    let key = live_key(&server, "1.00");
    let to = |n: u32| format!("+4477009{:05}", 100 + n);
    let ids: Vec<_> = (0..5).map(|n| server.accepted(&key, &hello(&to(n)))).collect();
    assert_eq!(add(&server, &key, "default", &json!({ "number": to(4) })).status, 201);
    held_back(&server.ended(&key, &ids[4]));
    for id in &ids[..4] {
        assert_eq!(server.ended(&key, id)["status"], "DELIVERED");
    }
    assert_eq!(smsc.accepted().len(), 4);
    assert_eq!(balance(&server, DEMO), ("0.8000".to_owned(), "0.0000".to_owned()));
    server.check();
}

fn what_waits_is_held_back_and_costs_nothing(engine: Engine) {
    let mut smsc = Smsc::start(&[]);
    smsc.kill();
    let private = "[webhooks]\nallow_private = ['127.0.0.1/32']\n[rates]\ndefault = '0.05'\n";
    let server = Server::with(engine, &format!("{}{private}", smsc.config(10)));
    let (key, sink) = (live_key(&server, "1.00"), Sink::start());
    webhooks::add(&server, &sink.url("/"), &["--live", "--events", "message.failed"]);
    let held =
        ["One", &"Three parts. ".repeat(35)].map(|t| server.accepted(&key, &saying(t, true)));
    let sent = server.accepted(&key, &saying("Your parcel is here", false));
    assert_eq!(balance(&server, DEMO), ("0.7500".to_owned(), "0.2500".to_owned()));
    assert_eq!(add(&server, &key, "default", &json!({ "number": ANN })).status, 201);
    problem(&server.post(&key, &saying("Two", true)), 403, "recipient_opted_out");
    // It is held back when its turn comes, and nobody is there to take it yet.
    let waiting = held.iter().map(|id| server.message(&key, id).json()["status"].clone());
    assert_eq!(json!(waiting.collect::<Vec<_>>()), json!(["QUEUED", "QUEUED"]));
    smsc.revive();
    held.iter().for_each(|id| held_back(&server.ended(&key, id)));
    assert_eq!(server.ended(&key, &sent)["status"], "DELIVERED");
    assert_eq!(smsc.accepted(), ["Your parcel is here"]);
    assert!(smsc.journal().iter().all(|e| e.event != "refused"), "nothing else was tried");
    assert_eq!(balance(&server, DEMO), ("0.9500".to_owned(), "0.0000".to_owned()));
    let told = sink.has(2);
    let mut ids: Vec<_> = told.iter().map(|r| r.json()["data"]["id"].clone()).collect();
    ids.sort_by_key(Value::to_string);
    assert_eq!(json!(ids), json!(held));
    for event in told.iter().map(|r| r.json()) {
        assert_eq!(event["type"], "message.failed");
        assert_eq!(event["data"]["failure"]["code"], "opted_out");
        assert_eq!(event["data"]["price"], "0.0000");
    }
    assert_eq!(server.database.number("SELECT count(*) FROM queue"), 0);
    server.check();
}

fn who_is_off_the_list_again_is_sent_to(engine: Engine) {
    let mut smsc = Smsc::start(&[]);
    smsc.kill();
    let server = Server::with(engine, &smsc.config(10));
    let key = live_key(&server, "1.00");
    let first = server.accepted(&key, &saying("First", true));
    assert_eq!(add(&server, &key, "default", &json!({ "number": ANN })).status, 201);
    let path = format!("{NUMBERS}/447700900123");
    assert_eq!(server.ask(&Request::new("DELETE", &path).key(&key)).status, 204);
    let second = server.accepted(&key, &saying("Second", true));
    smsc.revive();
    for id in [first, second] {
        assert_eq!(server.ended(&key, &id)["status"], "DELIVERED");
    }
    let sent: BTreeSet<_> = smsc.accepted().into_iter().collect();
    assert_eq!(sent, ["First", "Second"].map(str::to_owned).into());
}

fn once(key: &str, name: &str) -> Request {
    Request::send_sms(key, hello(ANN).to_string()).header("Idempotency-Key", name)
}

fn a_repeated_request_is_answered_as_before(engine: Engine) {
    let server = Server::start(engine);
    let key = server.key();
    let first = server.ask(&once(&key, "order 1"));
    assert_eq!((first.status, first.header("idempotent-replayed")), (201, None));
    assert_eq!(add(&server, &key, "default", &json!({ "number": ANN })).status, 201);
    let again = server.ask(&once(&key, "order 1"));
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!(again.json(), first.json());
    let other = Request::send_sms(&key, saying("Other", true).to_string());
    let answer = server.ask(&other.header("Idempotency-Key", "order 1"));
    problem(&answer, 422, "idempotency_key_reused");
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), 1);
}

fn a_refused_request_may_be_repeated(engine: Engine) {
    let server = Server::start(engine);
    let key = server.key();
    assert_eq!(add(&server, &key, "default", &json!({ "number": ANN })).status, 201);
    let before = server.stored();
    for _ in 0..2 {
        let answer = server.ask(&once(&key, "order 1"));
        assert_eq!(problem(&answer, 403, "recipient_opted_out"), []);
    }
    assert_eq!(server.stored(), before);
    let path = format!("{NUMBERS}/447700900123");
    assert_eq!(server.ask(&Request::new("DELETE", &path).key(&key)).status, 204);
    let answer = server.ask(&once(&key, "order 1"));
    assert_eq!((answer.status, answer.header("idempotent-replayed")), (201, None));
    let again = server.ask(&once(&key, "order 1"));
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
}
