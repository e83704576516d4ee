//! Live messages: routes, prices and balances.

use crate::database::{Engine, each_engine};
use crate::send_sms::hello;
use crate::server::Server;
use crate::wrong_input::problem;
use serde_json::json;

each_engine!(live: without_a_route without_money money_moves_with_the_message the_last_cent
    a_dry_run_prices_and_stores_nothing);

const ANN: &str = "+447700900123";

/// A carrier that only pretends, for British and Singaporean numbers, at prices of their own.
pub(crate) fn pretending(engine: Engine) -> Server {
    let config = "[[carriers]]\nname = 'pretend'\nkind = 'simulated'\n\
                  [[routes]]\nprefix = '44'\ncarriers = ['pretend']\n\
                  [[routes]]\nprefix = '65'\ncarriers = ['pretend']\n\
                  [rates]\ndefault = '0.0100'\nfile = 'rates.csv'\n";
    let mut server = Server::new(engine, config);
    let rates = "prefix,price,currency\n44,0.0420,EUR\n447700,0.05,EUR\n";
    std::fs::write(server.home.path().join("rates.csv"), rates).unwrap();
    server.launch();
    server.await_ready();
    server
}

/// Available and reserved of an account.
pub(crate) fn balance(server: &Server, email: &str) -> (String, String) {
    let accounts = server.list(&["account", "list"]);
    let account = accounts.into_iter().find(|a| a["name"] == email).unwrap();
    let text = |field: &str| account[field].as_str().unwrap().to_owned();
    (text("available"), text("reserved"))
}

fn without_a_route(engine: Engine) {
    let server = Server::start(engine);
    let key = server.live_key("ann@example.com", "10.00");
    let before = server.stored();
    problem(&server.post(&key, &hello(ANN)), 403, "destination_not_allowed");
    let server = pretending(engine);
    let key = server.live_key("ann@example.com", "10.00");
    problem(&server.post(&key, &hello("+14155552671")), 403, "destination_not_allowed");
    assert_eq!(server.stored(), before);
    assert_eq!(balance(&server, "ann@example.com"), ("10.0000".to_owned(), "0.0000".to_owned()));
    // A test key needs no route and no money.
    server.accepted(&server.key(), &hello("+14155552671"));
}

fn without_money(engine: Engine) {
    let server = pretending(engine);
    let key = server.live_key("ann@example.com", "0");
    let before = server.stored();
    let request = crate::http::Request::send_sms(&key, hello(ANN).to_string());
    let request = request.header("Idempotency-Key", "order 1");
    for _ in 0..2 {
        assert_eq!(problem(&server.ask(&request), 402, "insufficient_balance"), []);
    }
    assert_eq!(server.stored(), before);
    // Only what was accepted is kept for the key: with money, the same request is a first one.
    server.told(&["credit", "--account", "ann@example.com", "--amount", "0.05"]);
    let answer = server.ask(&request);
    assert_eq!((answer.status, answer.header("idempotent-replayed")), (201, None));
    server.check();
}

fn money_moves_with_the_message(engine: Engine) {
    let server = pretending(engine);
    let key = server.live_key("ann@example.com", "10.00");
    for (to, price, status, charged) in [
        (ANN, "0.0500", "DELIVERED", "0.0500"),
        ("+447911123456", "0.0420", "DELIVERED", "0.0420"),
        ("+6598234567", "0.0100", "DELIVERED", "0.0100"),
        // Taken by the carrier, and then in vain.
        ("+447700900001", "0.0500", "FAILED", "0.0500"),
        // Never taken.
        ("+447700900003", "0.0500", "FAILED", "0.0000"),
    ] {
        let answer = server.post(&key, &hello(to));
        assert_eq!(answer.status, 201, "{}", answer.text());
        let first = answer.json();
        assert_eq!((&first["price"], &first["currency"]), (&json!(price), &json!("EUR")));
        let last = server.ended(&key, first["id"].as_str().unwrap());
        assert_eq!((&last["status"], &last["price"]), (&json!(status), &json!(charged)));
        assert_eq!(last["mode"], "live");
    }
    let mut long = hello(ANN);
    long["text"] = json!("x".repeat(459));
    let last = server.ended(&key, &server.accepted(&key, &long));
    assert_eq!((&last["parts"], &last["price"]), (&json!(3), &json!("0.1500")));
    assert_eq!(balance(&server, "ann@example.com"), ("9.6980".to_owned(), "0.0000".to_owned()));
    server.check();
}

/// Many at once, with money for some: just those are accepted.
fn the_last_cent(engine: Engine) {
    let server = pretending(engine);
    let key = server.live_key("ann@example.com", "0.50");
    let address = server.address();
    let request = crate::http::Request::send_sms(&key, hello(ANN).to_string());
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let ask = || crate::http::ask(address, &request).unwrap().status;
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

fn a_dry_run_prices_and_stores_nothing(engine: Engine) {
    let server = pretending(engine);
    let key = server.live_key("ann@example.com", "0");
    let before = server.stored();
    let mut body = hello(ANN);
    (body["text"], body["dryRun"]) = (json!("日".repeat(71)), json!(true));
    let request = crate::http::Request::send_sms(&key, body.to_string());
    let answer = server.ask(&request.header("Idempotency-Key", "order 1"));
    assert_eq!((answer.status, answer.header("location")), (200, None));
    assert_eq!(
        answer.json(),
        json!({ "dryRun": true, "recipient": "447700900123", "originator": "Shop",
                "encoding": "UCS_2", "parts": 2, "price": "0.1000", "currency": "EUR" })
    );
    body["dryRun"] = json!("yes");
    problem(&server.post(&key, &body), 400, "invalid_request");
    (body["dryRun"], body["recipient"]) = (json!(true), json!("+14155552671"));
    problem(&server.post(&key, &body), 403, "destination_not_allowed");
    assert_eq!(server.stored(), before);
}
