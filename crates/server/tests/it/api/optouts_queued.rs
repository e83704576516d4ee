//! Recipients who opt out after a message was accepted: it is not sent, unless its sender overrode
//! opt-outs.

use crate::support::api::{hello, problem};
use crate::support::billing::balance;
use crate::support::http::Request;
use crate::support::optouts::{NUMBERS, add};
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use crate::support::webhook_sink::WebhookSink;
use crate::support::webhooks;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const DEMO: &str = "demo@localhost";
const ANN: &str = "+447700900123";

/// A message with this text and this value of `blockOptout`.
fn with_text(text: &str, block: bool) -> Value {
    let mut body = hello(ANN);
    (body["text"], body["blockOptout"]) = (json!(text), json!(block));
    body
}

/// Adds credit to the demo account, and creates a live key.
fn live_key(server: &Server, money: &str) -> String {
    server.stdout(&["credit", "--account", DEMO, "--amount", money]);
    server.stdout(&["key", "create", "--account", DEMO, "--live"])
}

fn is_blocked(message: &Value) {
    assert_eq!(message["status"], "FAILED", "{message}");
    let failure = &message["failure"];
    let fields = ["code", "permanent", "carrierCode"].map(|f| failure[f].clone());
    assert_eq!(json!(fields), json!(["opted_out", true, null]));
    assert!(failure["detail"].as_str().is_some_and(|d| d.len() > 5), "{message}");
    assert_eq!((&message["price"], &message["partsAccepted"]), (&json!("0.0000"), &json!(0)));
    assert_eq!((&message["sentAt"], &message["inDoubt"]), (&Value::Null, &json!(false)));
}

/// The window is 1 and responses are slow, so the other messages are leased and wait.
#[test]
fn a_leased_message_is_blocked_while_it_waits_for_the_window() {
    let smsc = Smsc::start(&["--resp-delay=1500"]);
    let rates = "[rates]\ndefault = '0.05'\n";
    let server = Server::with(&format!("{}{rates}", smsc.config(1)));
    let key = live_key(&server, "1.00");
    let to = |n: u32| format!("+4477009{:05}", 100 + n);
    let ids: Vec<_> = (0..5).map(|n| server.accepted(&key, &hello(&to(n)))).collect();
    assert_eq!(add(&server, &key, "default", &json!({ "number": to(4) })).status, 201);
    is_blocked(&server.wait_until_ended(&key, &ids[4]));
    for id in &ids[..4] {
        assert_eq!(server.wait_until_ended(&key, id)["status"], "DELIVERED");
    }
    assert_eq!(smsc.accepted().len(), 4);
    assert_eq!(balance(&server, DEMO), ("0.8000".to_owned(), "0.0000".to_owned()));
    server.check();
}

#[test]
fn a_queued_message_is_blocked_and_not_charged() {
    let mut smsc = Smsc::start(&[]);
    smsc.kill();
    let private = "[webhooks]\nallow_private = ['127.0.0.1/32']\n[rates]\ndefault = '0.05'\n";
    let server = Server::with(&format!("{}{private}", smsc.config(10)));
    let (key, sink) = (live_key(&server, "1.00"), WebhookSink::start());
    webhooks::add(&server, &sink.url("/"), &["--live", "--events", "message.failed"]);
    let held =
        ["One", &"Three parts. ".repeat(35)].map(|t| server.accepted(&key, &with_text(t, true)));
    let sent = server.accepted(&key, &with_text("Your parcel is here", false));
    assert_eq!(balance(&server, DEMO), ("0.7500".to_owned(), "0.2500".to_owned()));
    assert_eq!(add(&server, &key, "default", &json!({ "number": ANN })).status, 201);
    problem(&server.post(&key, &with_text("Two", true)), 403, "recipient_opted_out");
    // Messages are blocked when they are due; there is no carrier yet.
    let waiting = held.iter().map(|id| server.message(&key, id).json()["status"].clone());
    assert_eq!(json!(waiting.collect::<Vec<_>>()), json!(["QUEUED", "QUEUED"]));
    smsc.restart();
    held.iter().for_each(|id| is_blocked(&server.wait_until_ended(&key, id)));
    assert_eq!(server.wait_until_ended(&key, &sent)["status"], "DELIVERED");
    assert_eq!(smsc.accepted(), ["Your parcel is here"]);
    assert!(smsc.journal().iter().all(|e| e.event != "refused"), "no other message was submitted");
    assert_eq!(balance(&server, DEMO), ("0.9500".to_owned(), "0.0000".to_owned()));
    let received = sink.wait_for(2);
    let mut ids: Vec<_> = received.iter().map(|r| r.json()["data"]["id"].clone()).collect();
    ids.sort_by_key(Value::to_string);
    assert_eq!(json!(ids), json!(held));
    for event in received.iter().map(|r| r.json()) {
        assert_eq!(event["type"], "message.failed");
        assert_eq!(event["data"]["failure"]["code"], "opted_out");
        assert_eq!(event["data"]["price"], "0.0000");
    }
    assert_eq!(server.database.number("SELECT count(*) FROM queue"), 0);
    server.check();
}

#[test]
fn a_recipient_removed_from_the_list_gets_queued_messages() {
    let mut smsc = Smsc::start(&[]);
    smsc.kill();
    let server = Server::with(&smsc.config(10));
    let key = live_key(&server, "1.00");
    let first = server.accepted(&key, &with_text("First", true));
    assert_eq!(add(&server, &key, "default", &json!({ "number": ANN })).status, 201);
    let path = format!("{NUMBERS}/447700900123");
    assert_eq!(server.ask(&Request::new("DELETE", &path).key(&key)).status, 204);
    let second = server.accepted(&key, &with_text("Second", true));
    smsc.restart();
    for id in [first, second] {
        assert_eq!(server.wait_until_ended(&key, &id)["status"], "DELIVERED");
    }
    let sent: BTreeSet<_> = smsc.accepted().into_iter().collect();
    assert_eq!(sent, ["First", "Second"].map(str::to_owned).into());
}

fn once(key: &str, name: &str) -> Request {
    Request::send_sms(key, hello(ANN).to_string()).header("Idempotency-Key", name)
}

#[test]
fn a_repeated_request_is_replayed_after_an_opt_out() {
    let server = Server::start();
    let key = server.key();
    let first = server.ask(&once(&key, "order 1"));
    assert_eq!((first.status, first.header("idempotent-replayed")), (201, None));
    assert_eq!(add(&server, &key, "default", &json!({ "number": ANN })).status, 201);
    let again = server.ask(&once(&key, "order 1"));
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!(again.json(), first.json());
    let other = Request::send_sms(&key, with_text("Other", true).to_string());
    let response = server.ask(&other.header("Idempotency-Key", "order 1"));
    problem(&response, 422, "idempotency_key_reused");
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), 1);
}

#[test]
fn a_rejected_request_can_be_repeated_after_removal() {
    let server = Server::start();
    let key = server.key();
    assert_eq!(add(&server, &key, "default", &json!({ "number": ANN })).status, 201);
    let before = server.stored();
    for _ in 0..2 {
        let response = server.ask(&once(&key, "order 1"));
        assert_eq!(problem(&response, 403, "recipient_opted_out"), []);
    }
    assert_eq!(server.stored(), before);
    let path = format!("{NUMBERS}/447700900123");
    assert_eq!(server.ask(&Request::new("DELETE", &path).key(&key)).status, 204);
    let response = server.ask(&once(&key, "order 1"));
    assert_eq!((response.status, response.header("idempotent-replayed")), (201, None));
    let again = server.ask(&once(&key, "order 1"));
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
}
