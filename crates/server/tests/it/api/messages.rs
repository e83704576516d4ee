//! `/v1/messages`: filters, pages, timelines and cancellation; and `/v1/balance`.

use crate::support::api::{data, get, hello, post, problem};
use crate::support::billing::balance;
use crate::support::http::{HttpResponse, Request};
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use serde_json::{Value, json};

const MESSAGES: &str = "/v1/messages";

fn cancel(server: &Server, key: &str, id: &str) -> HttpResponse {
    server.ask(&Request::new("POST", &format!("{MESSAGES}/{id}/cancel")).key(key))
}

/// Returns the ids in a list with this query.
fn ids(server: &Server, key: &str, query: &str) -> Vec<String> {
    let all = data(server, key, &format!("{MESSAGES}{query}"));
    all.iter().map(|m| m["id"].as_str().unwrap().to_owned()).collect()
}

/// Sends five messages, waits until they have ended, and returns their ids, newest first.
fn five(server: &Server, key: &str) -> Vec<String> {
    let with = |to: &str, reference: Value| json!({ "originator": "Shop", "recipient": to, "text": "Hello", "reference": reference });
    let mut all: Vec<String> = [
        with("+447700900123", Value::Null),
        with("+447700900001", json!("order 7 & 8")),
        with("+447700900123", json!("order 7 & 8")),
        with("+6598234567", json!("Bestellung Ä")),
        with("+447700900001", Value::Null),
    ]
    .iter()
    .map(|body| server.accepted(key, body))
    .collect();
    all.iter().for_each(|id| drop(server.wait_until_ended(key, id)));
    all.reverse();
    all
}

#[test]
fn filters_narrow_a_list() {
    let server = Server::start();
    let key = server.key();
    let all = five(&server, &key);
    let of =
        |indices: &[usize]| -> Vec<String> { indices.iter().map(|i| all[*i].clone()).collect() };
    let created = |i: usize| {
        let message = server.message(&key, &all[i]).json();
        message["createdAt"].as_str().unwrap().to_owned()
    };
    let (oldest, newest) = (created(4), created(0));
    for (query, expected) in [
        ("", &[0, 1, 2, 3, 4][..]),
        ("?status=DELIVERED", &[1, 2, 4]),
        ("?status=FAILED", &[0, 3]),
        ("?status=QUEUED", &[]),
        ("?recipient=447700900123", &[2, 4]),
        ("?recipient=%2B44%207700%20900001", &[0, 3]),
        ("?recipient=+447700900001", &[0, 3]),
        ("?recipient=447700900999", &[]),
        ("?reference=order+7+%26+8", &[2, 3]),
        ("?reference=Bestellung%20%C3%84", &[1]),
        ("?reference=", &[]),
        ("?reference=order+7+%26+8&status=FAILED", &[3]),
        ("?recipient=447700900001&status=DELIVERED", &[]),
        ("?recipient=447700900123&reference=order+7+%26+8", &[2]),
        ("?campaignId=0190b0a0-0000-7000-8000-000000000000", &[]),
        ("?from=2026-01-01T00:00:00Z&to=2126-01-01T00:00:00%2B01:00", &[0, 1, 2, 3, 4]),
        ("?from=2026-01-01T00:00:00+01:00", &[0, 1, 2, 3, 4]),
        ("?to=2026-01-01T00:00:00Z", &[]),
        ("?from=2126-01-01T00:00:00Z&status=FAILED", &[]),
        (&format!("?to={oldest}"), &[]),
        (&format!("?from={oldest}&limit=2"), &[0, 1]),
        (&format!("?from={newest}&to={newest}"), &[]),
    ] {
        assert_eq!(ids(&server, &key, query), of(expected), "{query}");
    }
    // A message in a list has the same fields as on its own.
    let shown = &data(&server, &key, &format!("{MESSAGES}?reference=order+7+%26+8"))[0];
    assert_eq!(*shown, server.message(&key, &all[2]).json());
}

#[test]
fn lists_have_pages() {
    let server = Server::start();
    let key = server.key();
    let all = five(&server, &key);
    for (filter, expected) in [
        ("", all.clone()),
        ("&status=FAILED", vec![all[0].clone(), all[3].clone()]),
        ("&recipient=447700900123", vec![all[2].clone(), all[4].clone()]),
    ] {
        for limit in 1..=3 {
            let (mut found, mut cursor) = (Vec::new(), String::new());
            loop {
                let path = format!("{MESSAGES}?limit={limit}{filter}{cursor}");
                let page = get(&server, &key, &path);
                let data = page["data"].as_array().unwrap();
                assert!(data.len() <= limit);
                found.extend(data.iter().map(|m| m["id"].as_str().unwrap().to_owned()));
                let Some(next) = page["nextCursor"].as_str() else { break };
                cursor = format!("&cursor={next}");
                // A message that is sent between two pages does not move the next page.
                server.accepted(&key, &hello("+6598234567"));
            }
            assert_eq!(found[found.len() - expected.len()..], expected, "{limit}{filter}");
        }
    }
}

#[test]
fn invalid_queries_are_rejected() {
    let server = Server::start();
    let key = server.key();
    for (query, name, code) in [
        ("status=delivered", "status", "invalid_value"),
        ("status=", "status", "invalid_value"),
        ("reference=a&reference=b", "reference", "duplicate_field"),
        ("status=QUEUED&status=done", "status", "invalid_value"),
        ("recipient=Ann", "recipient", "invalid_number"),
        ("recipient=", "recipient", "invalid_number"),
        ("reference=a%00b", "reference", "invalid_character"),
        ("campaignId=1", "campaignId", "invalid_value"),
        ("from=yesterday", "from", "invalid_time"),
        ("from=2026-01-01T00:00:00", "from", "invalid_time"),
        ("to=2026-02-30", "to", "invalid_time"),
        ("to=1795165200", "to", "invalid_time"),
        ("limit=0", "limit", "out_of_range"),
        ("limit=101", "limit", "out_of_range"),
        ("limit=%2B5", "limit", "out_of_range"),
        ("limit=ten", "limit", "out_of_range"),
        ("cursor=xyz", "cursor", "invalid_cursor"),
        ("cursor=", "cursor", "invalid_cursor"),
        ("Status=QUEUED", "Status", "unknown_field"),
        ("state=QUEUED", "state", "unknown_field"),
    ] {
        let response = server.ask(&Request::get(&format!("{MESSAGES}?{query}")).key(&key));
        let expected = [(format!("query:{name}"), code.to_owned())];
        assert_eq!(problem(&response, 400, "invalid_request"), expected, "{query}");
    }
    let all = Request::get(&format!("{MESSAGES}?limit=x&status=y&z=1")).key(&key);
    assert_eq!(problem(&server.ask(&all), 400, "invalid_request").len(), 3);
    for path in ["/v1/messages/0190b0a0-0000-7000-8000-000000000000?expand=all", "/v1/balance?a=b"]
    {
        let response = server.ask(&Request::get(path).key(&key));
        assert_eq!(problem(&response, 400, "invalid_request").len(), 1);
    }
}

#[test]
fn messages_of_another_account_or_mode_are_hidden() {
    let server = Server::start();
    let key = server.key();
    let all = five(&server, &key);
    let live = server.stdout(&["key", "create", "--account", "demo@localhost", "--live"]);
    let other = server.live_key("ann@example.com", "0");
    let test = server.stdout(&["key", "create", "--account", "ann@example.com", "--test"]);
    for key in [live, other, test] {
        for query in ["", "?status=FAILED", "?recipient=447700900123", "?reference=order+7+%26+8"] {
            assert_eq!(ids(&server, &key, query), [""; 0], "{query}");
        }
        problem(&cancel(&server, &key, &all[0]), 404, "not_found");
    }
}

#[test]
fn a_timeline_has_all_events() {
    let server = Server::start();
    let key = server.key();
    let all = five(&server, &key);
    for (id, last) in [(&all[1], "delivered"), (&all[0], "failed")] {
        let message = server.message(&key, id).json();
        let expected = json!([
            { "event": "accepted", "at": message["createdAt"] },
            { "event": "sent", "at": message["sentAt"] },
            { "event": last, "at": message["doneAt"] },
        ]);
        assert_eq!(message["timeline"], expected);
    }
}

#[test]
fn a_queued_message_can_be_cancelled() {
    let mut smsc = Smsc::start(&[]);
    let rates = "[rates]\ndefault = '0.0400'\n";
    let server = Server::with(&format!("{rates}{}", smsc.config(10)));
    let key = server.live_key("ann@example.com", "1.00");
    server.wait_until_ended(&key, &server.accepted(&key, &hello("447700900100")));
    smsc.kill();
    crate::support::wait::eventually("the server notices the lost connection", || {
        server.log().contains("bind lost").then_some(())
    });
    let waiting: Vec<_> =
        (200..203).map(|n| server.accepted(&key, &hello(&format!("447700900{n}")))).collect();
    assert_eq!(balance(&server, "ann@example.com"), ("0.8400".to_owned(), "0.1200".to_owned()));
    for again in [false, true] {
        let response = cancel(&server, &key, &waiting[1]);
        assert_eq!(response.status, 200, "{}, again: {again}", response.text());
        let message = response.json();
        let fields = ["status", "price", "sentAt", "failure"].map(|f| message[f].clone());
        assert_eq!(fields, [json!("CANCELLED"), json!("0.0000"), Value::Null, Value::Null]);
        assert_eq!(message["timeline"][1]["event"], "cancelled");
        assert_eq!(message, server.message(&key, &waiting[1]).json());
    }
    assert_eq!(ids(&server, &key, "?status=CANCELLED"), waiting[1..2]);
    assert_eq!(balance(&server, "ann@example.com"), ("0.8800".to_owned(), "0.0800".to_owned()));
    server.check();
    smsc.restart();
    for id in [&waiting[0], &waiting[2]] {
        assert_eq!(server.wait_until_ended(&key, id)["status"], "DELIVERED");
    }
    let journal = smsc.journal().into_iter().filter(|e| e.event == "accepted");
    let submitted: Vec<_> = journal.map(|e| e.destination).collect();
    assert_eq!(submitted, ["447700900100", "447700900200", "447700900202"]);
    server.check();
}

#[test]
fn a_sent_message_cannot_be_cancelled() {
    let server = Server::start();
    let key = server.key();
    for id in five(&server, &key) {
        let before = server.message(&key, &id).json();
        assert_eq!(problem(&cancel(&server, &key, &id), 409, "not_cancellable"), []);
        assert_eq!(server.message(&key, &id).json(), before);
    }
    for id in ["0190b0a0-0000-7000-8000-000000000000", "x", "%00"] {
        problem(&cancel(&server, &key, id), 404, "not_found");
    }
    // The request takes no fields and no query.
    let id = server.accepted(&key, &hello("+447700900123"));
    let path = format!("{MESSAGES}/{id}/cancel");
    let with_body = server.ask(&post(&key, &path, &json!({ "reason": "a mistake" })));
    problem(&with_body, 400, "invalid_request");
    let with_query = server.ask(&Request::new("POST", &format!("{path}?force=true")).key(&key));
    problem(&with_query, 400, "invalid_request");
    assert_eq!(server.wait_until_ended(&key, &id)["status"], "DELIVERED");
    problem(&server.ask(&post(&key, &path, &json!({}))), 409, "not_cancellable");
}

#[test]
fn a_key_needs_the_scope_of_the_operation() {
    let server = Server::start();
    let make = |scope| {
        server.stdout(&["key", "create", "--account", "demo@localhost", "--test", "--scope", scope])
    };
    let (send, read, manage) = (make("send"), make("read"), make("manage"));
    let id = server.accepted(&send, &hello("+447700900123"));
    for key in [&send, &manage] {
        for path in [MESSAGES, "/v1/balance"] {
            problem(&server.ask(&Request::get(path).key(key)), 403, "scope_missing");
        }
    }
    for key in [&read, &manage] {
        problem(&cancel(&server, key, &id), 403, "scope_missing");
    }
    assert_eq!(ids(&server, &read, "").len(), 1);
}

#[test]
fn a_live_key_sees_the_balance() {
    let server = Server::start();
    let key = server.live_key("ann@example.com", "12.34");
    let expected =
        json!({ "available": "12.3400", "reserved": "0.0000", "currency": "EUR", "mode": "live" });
    assert_eq!(get(&server, &key, "/v1/balance"), expected);
    // A test key has no balance, and does not see the live balance.
    let key = server.stdout(&["key", "create", "--account", "ann@example.com", "--test"]);
    let expected =
        json!({ "available": "0.0000", "reserved": "0.0000", "currency": "EUR", "mode": "test" });
    assert_eq!(get(&server, &key, "/v1/balance"), expected);
}
