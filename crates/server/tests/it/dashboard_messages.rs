//! The log of messages and one message, as a person sees them.

use crate::browser::{Browser, Page, attribute, tags};
use crate::database::{Engine, each_engine};
use crate::patience::eventually;
use crate::send_sms::hello;
use crate::server::Server;
use crate::sink::Sink;
use crate::smsc::Smsc;
use crate::webhooks;
use serde_json::json;

each_engine!(dashboard_messages: filters_narrow_the_log wrong_filters_are_said_and_show_nothing
    the_log_goes_on_page_by_page a_message_tells_its_whole_story what_waits_is_called_back_on_its_page
    what_is_of_another_account_or_mode_is_not_there);

const ANN: &str = "ann@example.com";

/// The ids of the rows.
fn rows(page: &Page) -> Vec<String> {
    let ids = tags(&page.text(), "tr").into_iter().filter_map(|row| attribute(&row, "id"));
    ids.map(|id| id.trim_start_matches("m-").to_owned()).collect()
}

fn filters_narrow_the_log(engine: Engine) {
    let server = Server::start(engine);
    let (key, browser) = (server.key(), Browser::greeted(&server));
    let empty = browser.open("/messages");
    assert!(empty.says("No messages yet") && rows(&empty).is_empty());
    let send = |to: &str, reference: &str| {
        let body = json!({ "originator": "Shop", "recipient": to, "text": "Hello", "reference": reference });
        let id = server.accepted(&key, &body);
        server.ended(&key, &id);
        id
    };
    let good = send("+447700900123", "order 7 & 8");
    let bad = send("+447700900001", "order 9");
    let both = [bad.clone(), good.clone()];
    for (query, expected) in [
        ("", &both[..]),
        ("?status=DELIVERED", &both[1..]),
        ("?status=FAILED", &both[..1]),
        ("?status=FAILED&recipient=447700900123", &[]),
        ("?recipient=%2B44+7700+900123&reference=", &both[1..]),
        ("?reference=order+7+%26+8", &both[1..]),
        ("?from=2026-01-01T00%3A00&to=2126-01-01T00%3A00", &both[..]),
        ("?to=2026-01-01T00:00", &[]),
        ("?from=2126-01-01T00:00", &[]),
    ] {
        let page = browser.open(&format!("/messages{query}"));
        assert_eq!((page.answer.status, rows(&page)), (200, expected.to_vec()), "{query}");
        assert_eq!(page.says("Nothing matches"), expected.is_empty(), "{query}");
    }
    let page = browser.open("/messages?reference=order+7+%26+8&status=DELIVERED");
    assert!(page.says("value=\"order 7 & 8\""), "what was asked for stays in the fields");
    assert!(
        page.says("hx-get=\"/messages?status=DELIVERED&reference=order+7+%26+8\""),
        "it is read again as it is"
    );
    let page = browser.open("/messages");
    assert!(
        page.says("The handset could not be reached.") || page.says("does not exist"),
        "{}",
        page.text()
    );
}

fn wrong_filters_are_said_and_show_nothing(engine: Engine) {
    let server = Server::start(engine);
    let (key, browser) = (server.key(), Browser::greeted(&server));
    server.accepted(&key, &hello("+447700900123"));
    for (query, field, words) in [
        ("status=LOST", "status", "This must be one of QUEUED, SENT"),
        ("recipient=07700", "recipient", "The country code is missing"),
        ("from=yesterday", "from", "This is no date and time"),
        ("to=2026-13-01T00:00", "to", "This is no date and time"),
        ("from=2026-11-20T09:00&to=2026-11-20T08:00", "to", "later than the beginning"),
    ] {
        let page = browser.open(&format!("/messages?{query}"));
        assert_eq!((page.answer.status, rows(&page)), (422, vec![]), "{query}");
        assert!(
            page.says(words) && page.says(&format!("id=\"{field}-error\"")),
            "{query}: {}",
            page.text()
        );
    }
    assert_eq!(browser.get("/messages?before=x").status, 404);
}

fn the_log_goes_on_page_by_page(engine: Engine) {
    let server = Server::start(engine);
    let (key, browser) = (server.key(), Browser::greeted(&server));
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
    let second = browser.open(&link(&first, "Older").expect("a link to what is older"));
    assert_eq!(rows(&second), all[50..]);
    assert_eq!(link(&second, "Newest").as_deref(), Some("/messages"));
    assert!(!second.text().contains("hx-get=\"/messages"), "what is old stays as it is");
}

fn a_message_tells_its_whole_story(engine: Engine) {
    let (server, sink) = (webhooks::server(engine), Sink::start());
    let browser = Browser::greeted(&server);
    webhooks::add(&server, &sink.url("/hook"), &[]);
    let key =
        server.told(&["key", "create", "--account", "demo@localhost", "--name", "The shop's key"]);
    let text = format!("“{}”", "a".repeat(80));
    let body = json!({
        "originator": "Shop", "recipient": "+447700900123", "text": text, "reference": "order <7>",
        "validitySeconds": 3600,
    });
    let id = server.accepted(&key, &body);
    server.ended(&key, &id);
    sink.has(1);
    let path = format!("/messages/{id}");
    let page = eventually("the webhook's answer is kept", || {
        Some(browser.open(&path)).filter(|page| page.says("The webhook was answered with 2"))
    });
    for words in [
        "To +447700900123",
        "from Shop",
        &text,
        "order <7>",
        "The shop's key",
        "82 characters, 2 parts",
        "UCS_2, because of “ ”",
        "Accepted",
        "Sent to the carrier",
        "Told message.delivered",
        "/hook",
        "free, as every test message",
    ] {
        assert!(page.says(words), "{words}: {}", page.text());
    }
    assert_eq!(page.text().matches("status-delivered\">delivered").count(), 2, "each part arrived");
    let failed = server.accepted(&key, &hello("+447700900001"));
    let failure = server.ended(&key, &failed)["failure"].clone();
    let page = browser.open(&format!("/messages/{failed}"));
    assert!(page.says(failure["detail"].as_str().unwrap()), "{failure}: {}", page.text());
    assert!(
        page.says(&format!("<code>{}</code>", failure["carrierCode"].as_str().unwrap())),
        "{}",
        page.text()
    );
    assert!(!page.says("/cancel"), "what has ended can't be called back");
}

fn what_waits_is_called_back_on_its_page(engine: Engine) {
    let mut smsc = Smsc::start(&[]);
    let rates = "[rates]\ndefault = '0.0400'\n";
    let server = Server::with(engine, &format!("{rates}{}", smsc.config(10)));
    let key = server.live_key(ANN, "1.00");
    let gone = server.accepted(&key, &hello("447700900100"));
    server.ended(&key, &gone);
    smsc.kill();
    eventually("the loss is noticed", || server.log().contains("bind lost").then_some(()));
    let id = server.accepted(&key, &hello("447700900200"));
    let browser = Browser::of(&server, ANN);
    let page = browser.open("/messages");
    browser.send(&page, "/mode", &[("mode", "live")]);
    let (path, action) = (format!("/messages/{id}"), format!("/messages/{id}/cancel"));
    let page = browser.open(&path);
    assert!(page.says("On its way to the carrier") && page.says("0.0400 EUR"), "{}", page.text());
    for again in [false, true] {
        let done = browser.send(&page, &action, &[]);
        assert_eq!(done.answer.status, 200, "again: {again}");
        assert!(done.says("It is called back") && done.says("Cancelled"), "{}", done.text());
        assert!(!done.text().contains(&action));
    }
    assert_eq!(server.message(&key, &id).json()["status"], "CANCELLED");
    let late = browser.post(&format!("/messages/{gone}/cancel"), &[("csrf", &page.csrf())]);
    assert_eq!(late.status, 409);
    assert!(late.text().contains("It was delivered already."), "{}", late.text());
    let no_proof = browser.post(&action, &[]);
    assert_eq!(no_proof.status, 403);
    server.check();
}

fn what_is_of_another_account_or_mode_is_not_there(engine: Engine) {
    let server = Server::start(engine);
    let id = server.accepted(&server.key(), &hello("+447700900123"));
    server.told(&["account", "create", "--email", ANN]);
    let (demo, ann) = (Browser::greeted(&server), Browser::of(&server, ANN));
    let path = format!("/messages/{id}");
    assert_eq!((demo.get(&path).status, ann.get(&path).status), (200, 404));
    let mine = ann.open("/messages");
    assert!(rows(&mine).is_empty() && rows(&demo.open("/messages")) == [id.clone()]);
    let cancel = ann.post(&format!("{path}/cancel"), &[("csrf", &mine.csrf())]);
    assert_eq!(cancel.status, 404);
    let there = demo.open("/messages");
    demo.send(&there, "/mode", &[("mode", "live")]);
    assert_eq!(demo.get(&path).status, 404);
    assert!(rows(&demo.open("/messages")).is_empty());
    assert_eq!(
        Browser::new(&server).get(&path).header("location"),
        Some(&*format!("/sign-in?next=%2Fmessages%2F{id}"))
    );
}
