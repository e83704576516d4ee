//! Settings in the dashboard: keys that let programs in, and webhooks that are tried out and told again.

use crate::browser::{Browser, Page, form};
use crate::database::{Engine, each_engine};
use crate::furnished::DEMO;
use crate::patience::eventually;
use crate::send_sms::hello;
use crate::server::Server;
use crate::sink::{Mood, Sink};
use crate::webhooks;
use crate::wrong_input::problem;

each_engine!(dashboard_settings: a_key_is_made_once_used_and_revoked what_is_wrong_with_a_key_stands_beside_it
    the_test_button_shows_what_happened what_to_fix_is_said what_failed_is_replayed an_endpoint_is_looked_after);

const KEYS: &str = "/settings/api-keys";
const HOOKS: &str = "/settings/webhooks";

/// The key that a page shows.
fn shown(page: &Page) -> Option<String> {
    let html = page.text();
    let (_, rest) = html.split_once("id=\"key\">")?;
    Some(rest.split('<').next()?.to_owned())
}

fn a_key_is_made_once_used_and_revoked(engine: Engine) {
    let mut server = Server::start(engine);
    let greeted = server.key();
    let (key, id) = {
        let browser = Browser::greeted(&server);
        let page = browser.open(KEYS);
        assert!(page.says("first key") && page.says("Never"), "{}", page.text());
        let made = browser.send(&page, KEYS, &[("name", "till <1>")]);
        assert_eq!((made.answer.status, made.path.as_str()), (200, KEYS));
        let key = shown(&made).unwrap();
        assert!(made.says(&format!("Authorization: Bearer {key}")) && made.says("till <1>"));
        // The same form again, as by a reload: nothing is made, and nothing is shown.
        let again = browser.send(&page, KEYS, &[("name", "till <1>")]);
        assert!(again.says("made already") && shown(&again).is_none());
        assert!(!browser.open(KEYS).says(&key));
        let all = server.list(&["key", "list", "--account", DEMO]);
        assert_eq!(all.len(), 2);
        let made = all.iter().find(|k| k["name"] == "till <1>").unwrap();
        assert_eq!(made["mode"], "test");
        assert_eq!(made["scopes"].as_array().unwrap().len(), 3);
        server.accepted(&key, &hello("+447700900123"));
        (key, made["id"].as_str().unwrap().to_owned())
    };
    // What a node knows of last uses, it writes down before it goes.
    assert!(server.stop().success());
    server.launch();
    server.await_ready();
    let used = server.list(&["key", "list", "--account", DEMO]);
    let used = used.iter().find(|k| k["id"] == id.as_str()).unwrap();
    assert!(used["lastUsedAt"].is_string(), "{used}");
    let browser = Browser::of(&server, DEMO);
    let page = browser.open(KEYS);
    assert!(page.says("Just now"), "{}", page.text());
    server.accepted(&key, &hello("+447700900123"));
    for _ in 0..2 {
        let fields = [("csrf", page.csrf()), ("id", id.clone())];
        let fields: Vec<_> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let done = browser.post("/settings/api-keys/revoke", &fields);
        assert_eq!(done.header("location"), Some("/settings/api-keys?done=revoked"));
        problem(&server.post(&key, &hello("+447700900123")), 401, "unauthenticated");
    }
    let page = browser.open("/settings/api-keys?done=revoked");
    assert!(page.says("The key is revoked") && page.says("Revoked<span"), "{}", page.text());
    server.accepted(&greeted, &hello("+447700900123"));
    let done = "SELECT count(*) FROM audit WHERE action IN ('key made', 'key revoked')";
    // One for the greeting's key, one for each form.
    assert_eq!(server.database.number(done), 3);
}

fn what_is_wrong_with_a_key_stands_beside_it(engine: Engine) {
    let server = Server::start(engine);
    let browser = Browser::greeted(&server);
    let page = browser.open(KEYS);
    let fields = [("csrf", page.csrf()), ("once", "x".to_owned()), ("name", "a".repeat(101))];
    let fields: Vec<_> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
    let answer = browser.post(KEYS, &fields);
    assert_eq!(answer.status, 422);
    let text = answer.text();
    assert!(text.contains("at most 100 printable characters") && text.contains("choose at least"));
    assert!(text.contains(&"a".repeat(101)), "what was typed is gone");
    let neither = [("name", "shop"), ("mode", "both"), ("scope", "send")];
    let neither = browser.send(&page, KEYS, &neither);
    assert!(neither.answer.status == 422 && neither.says("choose test or live"));
    // A live key is made, and listed with its mode, while test messages are looked at.
    let live = browser.send(&page, KEYS, &[("name", "shop"), ("mode", "live"), ("scope", "send")]);
    assert!(shown(&live).unwrap().starts_with("hg_live_"));
    let all = server.list(&["key", "list", "--account", DEMO]);
    assert_eq!(all.iter().filter(|k| k["mode"] == "live").count(), 1);
}

/// Registers the sink on the page; the address of the endpoint's page.
fn register(browser: &Browser<'_>, sink: &Sink) -> String {
    let page = browser.open(HOOKS);
    let made = browser.send(&page, HOOKS, &[("url", &sink.url("/hook"))]);
    assert_eq!(made.answer.status, 200, "{}", made.text());
    // A double submit leads to the same one.
    let again = browser.send(&page, HOOKS, &[("url", &sink.url("/hook"))]);
    assert_eq!(made.path, again.path);
    made.path.split('?').next().unwrap().to_owned()
}

fn the_test_button_shows_what_happened(engine: Engine) {
    let (server, sink) = (webhooks::server(engine), Sink::start());
    let browser = Browser::greeted(&server);
    let here = register(&browser, &sink);
    sink.behave(Mood::Answer(202, "", "thanks <3".to_owned()));
    let page = browser.open(&here);
    let tested = browser.send(&page, &format!("{here}/test"), &[("kind", "message.failed")]);
    let told = sink.has(1).pop().unwrap();
    assert!(tested.says("It answered 202") && tested.says("thanks <3"), "{}", tested.text());
    // To the letter what came.
    assert!(tested.says(&told.body), "{}", tested.text());
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature", "user-agent", "host"] {
        assert!(
            tested.says(&format!("{name}: {}", told.header(name))),
            "{name}: {}",
            tested.text()
        );
    }
    let revealed = browser.send(&browser.open(&here), &format!("{here}/secret"), &[]);
    let html = revealed.text();
    let (_, rest) = html.split_once("id=\"whsec\"").unwrap();
    let secret = rest.split(['>', '<']).nth(1).unwrap();
    assert!(told.is_signed_by(secret), "{secret}");
    assert!(!browser.open(&here).says(secret));
    let seen = "SELECT count(*) FROM audit WHERE action = 'webhook secret revealed'";
    assert_eq!(server.database.number(seen), 1);
    let page = browser.open(&here);
    assert!(page.says("sample") && page.says("Taken"), "{}", page.text());
}

fn what_to_fix_is_said(engine: Engine) {
    let (server, sink) = (webhooks::server(engine), Sink::start());
    let browser = Browser::greeted(&server);
    let here = register(&browser, &sink);
    let redirect = Mood::Answer(301, "Location: /there\r\n", String::new());
    for (mood, said, fix) in [
        (Mood::Answer(500, "", "see the log".to_owned()), "see the log", "Its log at this time"),
        (redirect, "It answered 301", "Register the address that it leads to"),
        (Mood::status(404), "It answered 404", "Compare the path"),
        (Mood::status(401), "It answered 401", "a signature and no password"),
        (Mood::Hang, "no answer within 1 s", "do the work afterwards"),
        (Mood::Reset, "There was no answer", "a crash looks like this"),
    ] {
        sink.behave(mood);
        let page = browser.open(&here);
        let tested = browser.send(&page, &format!("{here}/test"), &[]);
        assert!(tested.says(said) && tested.says(fix), "{said}: {}", tested.text());
    }
    for (url, fix) in [
        ("http://127.0.0.1:1/", "Nothing listens at this address"),
        ("https://SINK/", "speaks plain HTTP"),
    ] {
        let url = url.replace("SINK", &sink.address.to_string());
        let page = browser.open(HOOKS);
        let made = browser.send(&page, HOOKS, &[("url", &url)]);
        let here = made.path.split('?').next().unwrap();
        let tested = browser.send(&made, &format!("{here}/test"), &[]);
        assert!(tested.says(fix), "{url}: {}", tested.text());
    }
    let page = browser.open(HOOKS);
    for (url, why) in [("https://10.0.0.1/", "not a public address"), ("", "write the address")] {
        let refused = browser.send(&page, HOOKS, &[("url", url)]);
        assert_eq!(refused.answer.status, 422);
        assert!(refused.says(why) && refused.says("aria-invalid"), "{}", refused.text());
    }
}

fn what_failed_is_replayed(engine: Engine) {
    let (server, sink) = (webhooks::server(engine), Sink::start());
    let browser = Browser::greeted(&server);
    let here = register(&browser, &sink);
    sink.behave(Mood::Answer(503, "Retry-After: 3600\r\n", "closed".to_owned()));
    let id = server.accepted(&server.key(), &hello("+447700900123"));
    let first = sink.has(1).pop().unwrap();
    let failed = format!("{here}?show=failed");
    let page = eventually("it is noted", || {
        let page = browser.open(&failed);
        (page.says("Retrying") && page.says("it answered 503")).then_some(page)
    });
    assert!(page.says(&format!("/messages/{id}")) && page.says("closed"), "{}", page.text());
    assert!(browser.open(&format!("{here}?show=waiting")).says(first.id()));
    // What waits is left alone; off and on again, it is told only when that is asked for.
    sink.behave(Mood::status(200));
    browser.send(&page, &format!("{here}/off"), &[]);
    let off = browser.open(&here);
    assert!(off.says("it was switched off by hand") && off.says("Failed"), "{}", off.text());
    browser.send(&off, &format!("{here}/on"), &[]);
    let page = browser.open(&here);
    let csrf = page.csrf();
    let once = "0190b0a0-6f2e-7c3d-8a41-2b5c9d7e1f30";
    for _ in 0..2 {
        let fields = [("csrf", csrf.as_str()), ("once", once), ("all", "failed")];
        let answer = browser.post(&format!("{here}/replay"), &fields);
        assert_eq!(answer.header("location"), Some(format!("{here}?done=replayed").as_str()));
    }
    assert_eq!(sink.has(2)[1].id(), first.id());
    eventually("it is taken", || browser.open(&here).says("Taken").then_some(()));
    assert!(browser.open(&failed).says("Nothing failed"));
    // And once more, alone.
    let page = browser.open(&here);
    let fields = [("csrf", page.csrf()), ("once", page.once()), ("event", first.id().to_owned())];
    let fields: Vec<_> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
    assert_eq!(browser.post(&format!("{here}/replay"), &fields).status, 303);
    assert_eq!(sink.has(3)[2].id(), first.id());
}

fn an_endpoint_is_looked_after(engine: Engine) {
    let (server, sink) = (webhooks::server(engine), Sink::start());
    let browser = Browser::greeted(&server);
    let here = register(&browser, &sink);
    let page = browser.open(&here);
    // The boxes of the form stand in for what is left out.
    let none = browser.post(&here, &[("csrf", &page.csrf())]);
    assert_eq!(none.status, 422);
    assert!(none.text().contains("choose at least one"));
    let chosen = browser.post(&here, &[("csrf", &page.csrf()), ("kind", "message.received")]);
    assert_eq!(chosen.status, 303);
    let list = || server.list(&["webhook", "list", "--account", DEMO]);
    assert_eq!(list()[0]["events"], serde_json::json!(["message.received"]));
    // Twice from the same page: the old secret signs on.
    let secret = "SELECT secret AS s FROM endpoints";
    let before = server.database.rows(secret);
    let rotate = format!("{here}/rotate");
    let rotated = browser.send(&page, &rotate, &[]);
    assert!(rotated.says("still signs until"), "{}", rotated.text());
    let after = server.database.rows(secret);
    browser.send(&page, &rotate, &[]);
    assert_ne!(after, before);
    assert_eq!(server.database.rows(secret), after);
    // In the other world there is none such.
    let switched = browser.post("/mode", &[("csrf", &page.csrf()), ("mode", "live")]);
    assert_eq!(switched.status, 303);
    assert_eq!(browser.get(&here).status, 404);
    assert!(browser.open(HOOKS).says("Nobody listens yet"));
    browser.post("/mode", &[("csrf", &page.csrf()), ("mode", "test")]);
    let gone = browser.send(&browser.open(&here), &format!("{here}/remove"), &[]);
    assert!(gone.path.starts_with(HOOKS) && gone.says("is removed"), "{}", gone.text());
    assert_eq!(browser.get(&here).status, 404);
    assert_eq!(list().len(), 0);
    let stranger = Browser::new(&server).ask(form(&here, &[]));
    assert!(stranger.header("location").unwrap().starts_with("/sign-in"));
}
