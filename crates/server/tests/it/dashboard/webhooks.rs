//! Webhook endpoints: tests, advice, replays and changes.

use crate::support::api::hello;
use crate::support::browser::{Browser, form};
use crate::support::fixtures::DEMO;
use crate::support::wait::eventually;
use crate::support::webhook_sink::{Behavior, WebhookSink};
use crate::support::webhooks;

const HOOKS: &str = "/settings/webhooks";

/// Registers the sink on the page; returns the path of the endpoint's page.
fn register(browser: &Browser<'_>, sink: &WebhookSink) -> String {
    let page = browser.open(HOOKS);
    let made = browser.send(&page, HOOKS, &[("url", &sink.url("/hook"))]);
    assert_eq!(made.response.status, 200, "{}", made.text());
    // A double click creates one endpoint.
    let again = browser.send(&page, HOOKS, &[("url", &sink.url("/hook"))]);
    assert_eq!(made.path, again.path);
    made.path.split('?').next().unwrap().to_owned()
}

#[test]
fn a_test_shows_request_and_response() {
    let (server, sink) = (webhooks::server(), WebhookSink::start());
    let browser = Browser::of_operator(&server);
    let here = register(&browser, &sink);
    sink.set_behavior(Behavior::Answer(202, "", "thanks <3".to_owned()));
    let page = browser.open(&here);
    let tested = browser.send(&page, &format!("{here}/test"), &[("kind", "message.failed")]);
    let received = sink.wait_for(1).pop().unwrap();
    assert!(tested.contains("Response 202") && tested.contains("thanks <3"), "{}", tested.text());
    // The page has the exact body.
    assert!(tested.contains(&received.body), "{}", tested.text());
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature", "user-agent", "host"] {
        assert!(
            tested.contains(&format!("{name}: {}", received.header(name))),
            "{name}: {}",
            tested.text()
        );
    }
    let revealed = browser.send(&browser.open(&here), &format!("{here}/secret"), &[]);
    let html = revealed.text();
    let (_, rest) = html.split_once("id=\"whsec\"").unwrap();
    let secret = rest.split(['>', '<']).nth(1).unwrap();
    assert!(received.is_signed_by(secret), "{secret}");
    assert!(!browser.open(&here).contains(secret));
    let seen = "SELECT count(*) FROM audit WHERE action = 'webhook_secret_revealed'";
    assert_eq!(server.database.number(seen), 1);
    let page = browser.open(&here);
    assert!(
        page.contains("\"hint\">Test</span>") && page.contains("status-good\">Delivered"),
        "{}",
        page.text()
    );
}

#[test]
fn a_failed_test_has_advice() {
    let (server, sink) = (webhooks::server(), WebhookSink::start());
    let browser = Browser::of_operator(&server);
    let here = register(&browser, &sink);
    let redirect = Behavior::Answer(301, "Location: /there\r\n", String::new());
    for (behavior, text, fix) in [
        (
            Behavior::Answer(500, "", "see the log".to_owned()),
            "see the log",
            "Check its log at this time",
        ),
        (redirect, "Response 301", "Register the final URL"),
        (Behavior::status(404), "Response 404", "Compare the path"),
        (Behavior::status(401), "Response 401", "a signature but no credentials"),
        (Behavior::Hang, "No response within 1 s", "process it afterwards"),
        (Behavior::Reset, "No response", "it may have crashed"),
    ] {
        sink.set_behavior(behavior);
        let page = browser.open(&here);
        let tested = browser.send(&page, &format!("{here}/test"), &[]);
        assert!(tested.contains(text) && tested.contains(fix), "{text}: {}", tested.text());
    }
    for (url, fix) in [
        ("http://127.0.0.1:1024/", "The connection was refused"),
        ("https://SINK/", "speaks plain HTTP"),
    ] {
        let url = url.replace("SINK", &sink.address.to_string());
        let page = browser.open(HOOKS);
        let made = browser.send(&page, HOOKS, &[("url", &url)]);
        let here = made.path.split('?').next().unwrap();
        let tested = browser.send(&made, &format!("{here}/test"), &[]);
        assert!(tested.contains(fix), "{url}: {}", tested.text());
    }
    let page = browser.open(HOOKS);
    for (url, why) in [("https://10.0.0.1/", "not a public address"), ("", "Enter the URL")] {
        let refused = browser.send(&page, HOOKS, &[("url", url)]);
        assert_eq!(refused.response.status, 422);
        assert!(refused.contains(why) && refused.contains("aria-invalid"), "{}", refused.text());
    }
}

#[test]
fn failed_events_can_be_replayed() {
    let (server, sink) = (webhooks::server(), WebhookSink::start());
    let browser = Browser::of_operator(&server);
    let here = register(&browser, &sink);
    sink.set_behavior(Behavior::Answer(503, "Retry-After: 3600\r\n", "closed".to_owned()));
    let id = server.accepted(&server.key(), &hello("+447700900123"));
    let first = sink.wait_for(1).pop().unwrap();
    let failed = format!("{here}?show=failed");
    let page = eventually("the attempt is stored", || {
        let page = browser.open(&failed);
        (page.contains("Retrying") && page.contains("503")).then_some(page)
    });
    assert!(
        page.contains(&format!("/messages/{id}")) && page.contains("closed"),
        "{}",
        page.text()
    );
    assert!(browser.open(&format!("{here}?show=pending")).contains(first.id()));
    // Pending events are not replayed. After disabling and enabling, failed events are sent on
    // request only.
    sink.set_behavior(Behavior::status(200));
    browser.send(&page, &format!("{here}/disable"), &[]);
    let off = browser.open(&here);
    assert!(
        off.contains("the endpoint was disabled manually") && off.contains("Failed"),
        "{}",
        off.text()
    );
    browser.send(&off, &format!("{here}/enable"), &[]);
    let page = browser.open(&here);
    let csrf = page.csrf();
    let once = "0190b0a0-6f2e-7c3d-8a41-2b5c9d7e1f30";
    for _ in 0..2 {
        let fields = [("csrf", csrf.as_str()), ("idempotency_key", once), ("all", "failed")];
        let response = browser.post(&format!("{here}/replay"), &fields);
        assert_eq!(response.header("location"), Some(format!("{here}?done=replayed").as_str()));
    }
    assert_eq!(sink.wait_for(2)[1].id(), first.id());
    eventually("the event is delivered", || {
        browser.open(&here).contains("status-good\">Delivered").then_some(())
    });
    assert!(browser.open(&failed).contains("No failed deliveries"));
    // A single event can be replayed, too.
    let page = browser.open(&here);
    let fields =
        [("csrf", page.csrf()), ("idempotency_key", page.once()), ("event", first.id().to_owned())];
    let fields: Vec<_> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
    assert_eq!(browser.post(&format!("{here}/replay"), &fields).status, 303);
    assert_eq!(sink.wait_for(3)[2].id(), first.id());
}

#[test]
fn an_endpoint_can_be_changed_and_removed() {
    let (server, sink) = (webhooks::server(), WebhookSink::start());
    let browser = Browser::of_operator(&server);
    let here = register(&browser, &sink);
    let page = browser.open(&here);
    // At least one event has to be selected.
    let none = browser.post(&here, &[("csrf", &page.csrf())]);
    assert_eq!(none.status, 422);
    assert!(none.text().contains("Select at least one"));
    let list = || server.list(&["webhook", "list", "--account", DEMO]);
    let url = list()[0]["url"].as_str().unwrap().to_owned();
    let fields = [("csrf", page.csrf()), ("url", url), ("kind", "message.received".to_owned())];
    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(browser.post(&here, &fields).status, 303);
    assert_eq!(list()[0]["events"], serde_json::json!(["message.received"]));
    // A form that is sent twice rotates the secret once.
    let secret = "SELECT secret AS s FROM endpoints";
    let before = server.database.rows(secret);
    let rotate = format!("{here}/rotate");
    let rotated = browser.send(&page, &rotate, &[]);
    assert!(rotated.contains("stays valid until"), "{}", rotated.text());
    let after = server.database.rows(secret);
    browser.send(&page, &rotate, &[]);
    assert_ne!(after, before);
    assert_eq!(server.database.rows(secret), after);
    // The endpoint does not exist in live mode.
    let switched = browser.post("/mode", &[("csrf", &page.csrf()), ("mode", "live")]);
    assert_eq!(switched.status, 303);
    assert_eq!(browser.get(&here).status, 404);
    assert!(browser.open(HOOKS).contains("No endpoints yet"));
    browser.post("/mode", &[("csrf", &page.csrf()), ("mode", "test")]);
    let gone = browser.send(&browser.open(&here), &format!("{here}/remove"), &[]);
    assert!(
        gone.path.starts_with(HOOKS) && gone.contains("The endpoint was removed"),
        "{}",
        gone.text()
    );
    assert_eq!(browser.get(&here).status, 404);
    assert_eq!(list().len(), 0);
    let stranger = Browser::new(&server).ask(form(&here, &[]));
    assert!(stranger.header("location").unwrap().starts_with("/sign-in"));
}
