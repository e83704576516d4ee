//! Live messages: routes, prices and the balance.

use crate::support::api::{hello, problem};
use crate::support::billing::{balance, start_with_prices};
use crate::support::server::Server;
use serde_json::json;

const ANN: &str = "+447700900123";

#[test]
fn a_message_without_a_route_is_rejected() {
    let server = Server::start();
    let key = server.live_key("ann@example.com", "10.00");
    let before = server.stored();
    problem(&server.post(&key, &hello(ANN)), 403, "destination_not_allowed");
    let server = start_with_prices();
    let key = server.live_key("ann@example.com", "10.00");
    problem(&server.post(&key, &hello("+14155552671")), 403, "destination_not_allowed");
    assert_eq!(server.stored(), before);
    assert_eq!(balance(&server, "ann@example.com"), ("10.0000".to_owned(), "0.0000".to_owned()));
    // A test key needs no route and no money.
    server.accepted(&server.key(), &hello("+14155552671"));
}

#[test]
fn a_message_without_a_sufficient_balance_is_rejected() {
    let server = start_with_prices();
    let key = server.live_key("ann@example.com", "0");
    let before = server.stored();
    let request = crate::support::http::Request::send_sms(&key, hello(ANN).to_string());
    let request = request.header("Idempotency-Key", "order 1");
    for _ in 0..2 {
        assert_eq!(problem(&server.ask(&request), 402, "insufficient_balance"), []);
    }
    assert_eq!(server.stored(), before);
    // A rejected request is not stored for the idempotency key, so it can be repeated.
    server.stdout(&["credit", "--account", "ann@example.com", "--amount", "0.05"]);
    let response = server.ask(&request);
    assert_eq!((response.status, response.header("idempotent-replayed")), (201, None));
    server.check();
}

#[test]
fn the_price_is_reserved_then_charged_or_released() {
    let server = start_with_prices();
    let key = server.live_key("ann@example.com", "10.00");
    for (to, price, status, charged) in [
        (ANN, "0.0500", "DELIVERED", "0.0500"),
        ("+447911123456", "0.0420", "DELIVERED", "0.0420"),
        ("+6598234567", "0.0100", "DELIVERED", "0.0100"),
        // Accepted by the carrier, then undeliverable: charged.
        ("+447700900001", "0.0500", "FAILED", "0.0500"),
        // Rejected by the carrier: not charged.
        ("+447700900003", "0.0500", "FAILED", "0.0000"),
    ] {
        let response = server.post(&key, &hello(to));
        assert_eq!(response.status, 201, "{}", response.text());
        let first = response.json();
        assert_eq!((&first["price"], &first["currency"]), (&json!(price), &json!("EUR")));
        let last = server.wait_until_ended(&key, first["id"].as_str().unwrap());
        assert_eq!((&last["status"], &last["price"]), (&json!(status), &json!(charged)));
        assert_eq!(last["mode"], "live");
    }
    let mut long = hello(ANN);
    long["text"] = json!("x".repeat(459));
    let last = server.wait_until_ended(&key, &server.accepted(&key, &long));
    assert_eq!((&last["parts"], &last["price"]), (&json!(3), &json!("0.1500")));
    assert_eq!(balance(&server, "ann@example.com"), ("9.6980".to_owned(), "0.0000".to_owned()));
    server.check();
}

/// Concurrent requests never spend more than the balance.
#[test]
fn concurrent_requests_do_not_overdraw() {
    let server = start_with_prices();
    let key = server.live_key("ann@example.com", "0.50");
    let address = server.address();
    let request = crate::support::http::Request::send_sms(&key, hello(ANN).to_string());
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let ask = || crate::support::http::ask(address, &request).unwrap().status;
        let all: Vec<_> = (0..25).map(|_| scope.spawn(ask)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|s| [201, 402].contains(s)), "{statuses:?}");
    assert_eq!(statuses.iter().filter(|s| **s == 201).count(), 10);
    let rows = server.database.number("SELECT count(*) FROM messages");
    assert_eq!(rows, 10);
    assert_eq!(balance(&server, "ann@example.com").0, "0.0000");
    server.check();
}

#[test]
fn a_dry_run_prices_and_stores_nothing() {
    let server = start_with_prices();
    let key = server.live_key("ann@example.com", "0.1");
    let before = server.stored();
    let mut body = hello(ANN);
    (body["text"], body["dryRun"]) = (json!("日".repeat(71)), json!(true));
    let request = crate::support::http::Request::send_sms(&key, body.to_string());
    let response = server.ask(&request.header("Idempotency-Key", "order 1"));
    assert_eq!((response.status, response.header("location")), (200, None));
    assert_eq!(
        response.json(),
        json!({ "dryRun": true, "recipient": "447700900123", "originator": "Shop",
                "encoding": "UCS_2", "parts": 2, "price": "0.1000", "currency": "EUR",
                "charactersLeft": 63, "nonGsmCharacters": ["日"], "available": "0.1000" })
    );
    body["dryRun"] = json!("yes");
    problem(&server.post(&key, &body), 400, "invalid_request");
    (body["dryRun"], body["recipient"]) = (json!(true), json!("+14155552671"));
    problem(&server.post(&key, &body), 403, "destination_not_allowed");
    assert_eq!(server.stored(), before);
}
