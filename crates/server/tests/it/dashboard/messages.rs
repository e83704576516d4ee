//! The list of messages, and the page of a message.

use crate::support::api::hello;
use crate::support::browser::{Browser, Page, attribute, tags};
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use crate::support::wait::eventually;
use crate::support::webhook_sink::WebhookSink;
use crate::support::webhooks;
use serde_json::json;

const ANN: &str = "ann@example.com";

/// Returns the message ids of the rows.
fn rows(page: &Page) -> Vec<String> {
    let ids = tags(&page.text(), "tr").into_iter().filter_map(|row| attribute(&row, "id"));
    ids.map(|id| id.trim_start_matches("m-").to_owned()).collect()
}

#[test]
fn filters_narrow_the_list() {
    let server = Server::start();
    let (key, browser) = (server.key(), Browser::of_operator(&server));
    let empty = browser.open("/messages");
    assert!(empty.contains("No messages yet") && rows(&empty).is_empty());
    let send = |to: &str, reference: &str| {
        let body = json!({ "originator": "Shop", "recipient": to, "text": "Hello", "reference": reference });
        let id = server.accepted(&key, &body);
        server.wait_until_ended(&key, &id);
        id
    };
    let good = send("+447700900123", "order 7 & 8");
    let bad = send("+447700900001", "order 9");
    let both = [bad.clone(), good.clone()];
    for (query, expected) in [
        ("", &both[..]),
        ("?status=DELIVERED", &both[1..]),
        ("?status=FAILED", &both[..1]),
        ("?status=FAILED&q=447700900123", &[]),
        ("?q=%2B44+7700+900123", &both[1..]),
        ("?q=order+7+%26+8", &both[1..]),
        ("?q=900123", &both[1..]),
        ("?q=HELLO&period=24h", &both[..]),
        ("?from=2026-01-01T00%3A00&to=2126-01-01T00%3A00", &both[..]),
        ("?to=2026-01-01T00:00", &[]),
        ("?from=2126-01-01T00:00", &[]),
    ] {
        let page = browser.open(&format!("/messages{query}"));
        assert_eq!((page.response.status, rows(&page)), (200, expected.to_vec()), "{query}");
        assert_eq!(page.contains("No messages match"), expected.is_empty(), "{query}");
    }
    let page = browser.open("/messages?q=order+7+%26+8&status=DELIVERED");
    assert!(page.contains("value=\"order 7 & 8\""), "the fields keep the filter");
    assert!(
        page.contains("hx-get=\"/messages?q=order+7+%26+8&status=DELIVERED\""),
        "live updates keep the filter"
    );
    let page = browser.open("/messages");
    assert!(
        page.contains("The handset could not be reached.") || page.contains("does not exist"),
        "{}",
        page.text()
    );
}

#[test]
fn invalid_filters_are_reported() {
    let server = Server::start();
    let (key, browser) = (server.key(), Browser::of_operator(&server));
    server.accepted(&key, &hello("+447700900123"));
    for (query, field, words) in [
        ("status=LOST", "status", "Select one of the statuses."),
        ("from=yesterday", "from", "Enter a date and time"),
        ("to=2026-13-01T00:00", "to", "Enter a date and time"),
        ("from=2026-11-20T09:00&to=2026-11-20T08:00", "to", "Must be later than"),
    ] {
        let page = browser.open(&format!("/messages?{query}"));
        assert_eq!((page.response.status, rows(&page)), (422, vec![]), "{query}");
        assert!(
            page.contains(words) && page.contains(&format!("id=\"{field}-error\"")),
            "{query}: {}",
            page.text()
        );
    }
    assert_eq!(browser.get("/messages?before=x").status, 404);
}

#[test]
fn the_list_has_pages() {
    let server = Server::start();
    let (key, browser) = (server.key(), Browser::of_operator(&server));
    let mut all: Vec<_> =
        (0..52).map(|n| server.accepted(&key, &hello(&format!("4477009001{n:02}")))).collect();
    all.reverse();
    let first = browser.open("/messages?status=");
    assert_eq!(rows(&first), all[..50]);
    let link = |page: &Page, words: &str| {
        let html = page.text();
        let link =
            html.split("<a ").find(|link| link.split("</a>").next().unwrap().contains(words));
        attribute(link?, "href")
    };
    assert_eq!(link(&first, "Newest"), None);
    let second = browser.open(&link(&first, "Older").expect("a link to older messages"));
    assert_eq!(rows(&second), all[50..]);
    assert_eq!(link(&second, "Newest").as_deref(), Some("/messages"));
    assert!(!second.text().contains("hx-get=\"/messages"), "older pages have no live updates");
}

#[test]
fn a_message_page_has_all_details() {
    let (server, sink) = (webhooks::server(), WebhookSink::start());
    let browser = Browser::of_operator(&server);
    webhooks::add(&server, &sink.url("/hook"), &[]);
    let key = server.stdout(&[
        "key",
        "create",
        "--account",
        "demo@localhost",
        "--name",
        "The shop's key",
    ]);
    let text = format!("“{}”", "a".repeat(80));
    let body = json!({
        "originator": "Shop", "recipient": "+447700900123", "text": text, "reference": "order <7>",
        "validitySeconds": 3600,
    });
    let id = server.accepted(&key, &body);
    server.wait_until_ended(&key, &id);
    sink.wait_for(1);
    let path = format!("/messages/{id}");
    let page = eventually("the response to the webhook is stored", || {
        Some(browser.open(&path)).filter(|page| page.contains("The endpoint responded with 2"))
    });
    for words in [
        "To +447700900123",
        "From Shop",
        &text,
        "order <7>",
        "The shop's key",
        "82 characters, 2 segments",
        "Unicode (UCS-2), because of “ ”",
        "Accepted",
        "Sent to carrier",
        "Webhook deliveries",
        "message.delivered",
        "/hook",
        "Free (test mode)",
    ] {
        assert!(page.contains(words), "{words}: {}", page.text());
    }
    assert_eq!(
        page.text().matches("status-delivered\">Delivered").count(),
        3,
        "the message and both segments"
    );
    let failed = server.accepted(&key, &hello("+447700900001"));
    let failure = server.wait_until_ended(&key, &failed)["failure"].clone();
    let page = browser.open(&format!("/messages/{failed}"));
    assert!(page.contains(failure["detail"].as_str().unwrap()), "{failure}: {}", page.text());
    assert!(
        page.contains(&format!("<code>{}</code>", failure["carrierCode"].as_str().unwrap())),
        "{}",
        page.text()
    );
    assert!(!page.contains("/cancel"), "a message that has ended cannot be cancelled");
}

#[test]
fn a_queued_message_can_be_cancelled() {
    let mut smsc = Smsc::start(&[]);
    let rates = "[rates]\ndefault = '0.0400'\n";
    let server = Server::with(&format!("{rates}{}", smsc.config(10)));
    let key = server.live_key(ANN, "1.00");
    let gone = server.accepted(&key, &hello("447700900100"));
    server.wait_until_ended(&key, &gone);
    smsc.kill();
    eventually("the server notices the lost connection", || {
        server.log().contains("bind lost").then_some(())
    });
    let id = server.accepted(&key, &hello("447700900200"));
    let browser = Browser::of(&server, ANN);
    let page = browser.open("/messages");
    browser.send(&page, "/mode", &[("mode", "live")]);
    let (path, action) = (format!("/messages/{id}"), format!("/messages/{id}/cancel"));
    let page = browser.open(&path);
    assert!(page.contains("Waiting to be sent") && page.contains("0.0400 EUR"), "{}", page.text());
    for again in [false, true] {
        let done = browser.send(&page, &action, &[]);
        assert_eq!(done.response.status, 200, "again: {again}");
        assert!(
            done.contains("Message cancelled") && done.contains("Cancelled"),
            "{}",
            done.text()
        );
        assert!(!done.text().contains(&action));
    }
    assert_eq!(server.message(&key, &id).json()["status"], "CANCELLED");
    let late = browser.post(&format!("/messages/{gone}/cancel"), &[("csrf", &page.csrf())]);
    assert_eq!(late.status, 409);
    assert!(late.text().contains("The message was delivered."), "{}", late.text());
    let no_proof = browser.post(&action, &[]);
    assert_eq!(no_proof.status, 403);
    server.check();
}

#[test]
fn messages_of_another_account_or_mode_are_hidden() {
    let server = Server::start();
    let id = server.accepted(&server.key(), &hello("+447700900123"));
    server.stdout(&["account", "create", "--email", ANN]);
    let (demo, ann) = (Browser::of_operator(&server), Browser::of(&server, ANN));
    let path = format!("/messages/{id}");
    assert_eq!((demo.get(&path).status, ann.get(&path).status), (200, 404));
    let mine = ann.open("/messages");
    assert!(rows(&mine).is_empty() && rows(&demo.open("/messages")) == [id.clone()]);
    let cancel = ann.post(&format!("{path}/cancel"), &[("csrf", &mine.csrf())]);
    assert_eq!(cancel.status, 404);
    let there = demo.open("/messages");
    demo.send(&there, "/mode", &[("mode", "live")]);
    let other = demo.get(&path);
    assert_eq!(other.header("location"), Some(&*format!("{path}?mode=test")));
    assert!(rows(&demo.open("/messages")).is_empty());
    assert_eq!(
        Browser::new(&server).get(&path).header("location"),
        Some(&*format!("/sign-in?next=%2Fmessages%2F{id}"))
    );
}
