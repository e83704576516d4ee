//! Webhooks: what an endpoint is told, and that it is told in spite of everything.

use crate::database::{Engine, each_engine};
use crate::patience::eventually;
use crate::ports::Port;
use crate::send_sms::hello;
use crate::server::Server;
use crate::sink::{Mood, Sink};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

each_engine!(webhooks: each_end_is_told_once_and_signed an_endpoint_hears_what_it_chose
    a_secret_is_rotated a_failure_is_tried_again_with_the_same_id answers_that_are_none
    gone_and_back_again many_at_once_and_some_fail wait_when_asked_to gone_for_good off_and_on_again what_was_told_is_told_again
    the_test_button a_number_is_not_given_twice a_crash_between_attempt_and_record places_that_nobody_may_reach);

const DEMO: &str = "demo@localhost";

/// A server whose webhooks may go to this machine, and may take a second.
pub(crate) fn server(engine: Engine) -> Server {
    let config = "[webhooks]\nallow_private = ['127.0.0.1/32']\ntimeout_seconds = 1\n";
    Server::with(engine, config)
}

/// Registers an endpoint; its number and its secret.
pub(crate) fn add(server: &Server, url: &str, more: &[&str]) -> (String, String) {
    let arguments = [&["webhook", "add", "--account", DEMO, "--url", url], more].concat();
    let made: Value = serde_json::from_str(&server.told(&arguments)).unwrap();
    (made["id"].to_string(), made["secret"].as_str().unwrap().to_owned())
}

fn list(server: &Server) -> Vec<Value> {
    server.list(&["webhook", "list", "--account", DEMO])
}

fn each_end_is_told_once_and_signed(engine: Engine) {
    let (server, sink) = (server(engine), Sink::start());
    let key = server.key();
    let (_, secret) = add(&server, &sink.url("/hook?a=b"), &[]);
    let mut body = hello("+447700900123");
    body["reference"] = json!("order 7");
    let id = server.accepted(&key, &body);
    let told = sink.has(1);
    let (first, message) = (&told[0], server.ended(&key, &id));
    assert_eq!(first.path, "/hook?a=b");
    assert_eq!(first.header("content-type"), "application/json");
    assert_eq!(first.header("host"), sink.address.to_string());
    assert!(first.is_signed_by(&secret), "{first:?}");
    assert!(!first.is_signed_by("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
    let event = first.json();
    assert_eq!(event["type"], "message.delivered");
    assert_eq!(event["timestamp"], message["doneAt"]);
    let field = |name: &str| message[name].clone();
    let expected = json!({
        "id": id, "recipient": "447700900123", "originator": "Shop", "reference": "order 7",
        "campaignId": null, "mode": "test", "status": "DELIVERED", "failure": null, "parts": 1,
        "price": "0.0000", "currency": "EUR", "createdAt": field("createdAt"),
        "sentAt": field("sentAt"), "doneAt": field("doneAt"),
    });
    assert_eq!(event["data"], expected);
    // One that fails, and one whose receipt comes twice.
    let failed = server.accepted(&key, &hello("+447700900001"));
    server.accepted(&key, &hello("+447700900008"));
    let told = sink.has(3);
    let event = told.iter().map(|r| r.json()).find(|e| e["data"]["id"] == failed.as_str());
    let event = event.unwrap();
    assert_eq!(event["type"], "message.failed");
    assert_eq!(event["data"]["failure"], server.ended(&key, &failed)["failure"]);
    let ids: BTreeSet<_> = told.iter().map(|r| r.id().to_owned()).collect();
    assert_eq!(ids.len(), 3);
    // A last one, after which nothing else has come.
    server.accepted(&key, &hello("+447700900124"));
    assert_eq!(sink.has(4).len(), 4);
}

fn an_endpoint_hears_what_it_chose(engine: Engine) {
    let (server, sink) = (server(engine), Sink::start());
    let key = server.key();
    add(&server, &sink.url("/failed"), &["--events", "message.failed"]);
    add(&server, &sink.url("/both"), &["--events", "message.failed,message.delivered"]);
    add(&server, &sink.url("/live"), &["--live"]);
    for to in ["+447700900001", "+447700900123"] {
        let id = server.accepted(&key, &hello(to));
        server.ended(&key, &id);
    }
    let told = sink.has(3);
    let mut heard: Vec<_> =
        told.iter().map(|r| format!("{} {}", r.path, r.json()["type"])).collect();
    heard.sort();
    let expected =
        ["/both \"message.delivered\"", "/both \"message.failed\"", "/failed \"message.failed\""];
    assert_eq!(heard, expected);
    let at = |path: &str| told.iter().find(|r| r.path == path && r.body.contains("message.failed"));
    assert_eq!(at("/both").unwrap().id(), at("/failed").unwrap().id(), "one event, one id");
}

fn a_secret_is_rotated(engine: Engine) {
    let (server, sink) = (server(engine), Sink::start());
    let (id, old) = add(&server, &sink.url("/"), &[]);
    let rotated: Value = serde_json::from_str(&server.told(&["webhook", "rotate", &id])).unwrap();
    let new = rotated["secret"].as_str().unwrap();
    server.accepted(&server.key(), &hello("+447700900123"));
    let told = &sink.has(1)[0];
    assert!(told.is_signed_by(&old) && told.is_signed_by(new), "{told:?}");
    assert_eq!(told.header("webhook-signature").split(' ').count(), 2);
    assert!(
        rotated["oldSecretUntil"].as_str().unwrap() > told.json()["timestamp"].as_str().unwrap()
    );
}

fn a_failure_is_tried_again_with_the_same_id(engine: Engine) {
    let (server, sink) = (server(engine), Sink::start());
    let (id, secret) = add(&server, &sink.url("/"), &[]);
    sink.behave(Mood::Answer(500, "", "Oh no\u{1b}[31m".repeat(500)));
    server.accepted(&server.key(), &hello("+447700900123"));
    sink.has(1);
    sink.behave(Mood::status(204));
    let told = sink.has(2);
    assert_eq!((told[0].id(), &told[0].body), (told[1].id(), &told[1].body));
    assert!(told[1].is_signed_by(&secret));
    let waited = told[1].at - told[0].at;
    assert!(waited > Duration::from_millis(3_900), "{waited:?}");
    let attempts = eventually("both attempts are written down", || {
        let all = server.list(&["webhook", "attempts", &id]);
        (all.len() == 2).then_some(all)
    });
    assert_eq!((&attempts[0]["status"], &attempts[1]["status"]), (&json!(204), &json!(500)));
    assert_eq!(attempts[1]["detail"], "it answered 500");
    assert_eq!(attempts[1]["body"].as_str().unwrap().len(), 1_024);
    let shown = server.told(&["webhook", "attempts", &id]);
    assert!(!shown.contains('\u{1b}'), "an endpoint must not speak to the terminal");
    eventually("it counts as working", || list(&server)[0]["failingSince"].is_null().then_some(()));
    assert_eq!(list(&server)[0]["waiting"], 0);
}

fn answers_that_are_none(engine: Engine) {
    let server = server(engine);
    let away = Sink::start();
    let moods = [
        ("hang", Mood::Hang, "no answer within 1 s"),
        ("reset", Mood::Reset, "connection"),
        ("drip", Mood::Drip, "no answer within 1 s"),
        (
            "redirect",
            Mood::Answer(302, "Location: http://127.0.0.1:1/\r\n", String::new()),
            "redirects are not followed",
        ),
        ("nonsense", Mood::Answer(99, "", String::new()), "invalid HTTP status-code"),
    ];
    let mut endpoints = Vec::new();
    for (path, mood, why) in moods {
        let sink = Sink::start();
        sink.behave(mood);
        let (id, _) = add(&server, &sink.url(&format!("/{path}")), &[]);
        endpoints.push((id, sink, why));
    }
    let endless = Sink::start();
    endless.behave(Mood::Endless);
    let (fine, _) = add(&server, &endless.url("/"), &[]);
    server.accepted(&server.key(), &hello("+447700900123"));
    for (id, sink, why) in &endpoints {
        let attempts = eventually(&format!("a failure is noted: {why}"), || {
            Some(server.told(&["webhook", "attempts", id])).filter(|a| !a.is_empty())
        });
        assert!(attempts.contains(why), "{attempts}");
        sink.behave(Mood::status(200));
        let told = sink.has(2);
        assert_eq!(told[0].id(), told[1].id());
    }
    assert_eq!(away.received().len(), 0);
    assert_eq!(endless.received().len(), 1, "the status was told, and it was a good one");
    assert_eq!(
        server.told(&["webhook", "attempts", &fine]).lines().count(),
        1,
        "not the first one's"
    );
}

/// Nobody is there for a while: most of what happens meanwhile is not even tried.
fn gone_and_back_again(engine: Engine) {
    let server = server(engine);
    let key = server.key();
    let port = Port::reserve();
    let address = port.address();
    let (id, secret) = add(&server, &format!("http://{address}/"), &[]);
    let ids: BTreeSet<_> =
        (100..160).map(|n| server.accepted(&key, &hello(&format!("+4477009{n:05}")))).collect();
    ids.iter().for_each(|id| drop(server.ended(&key, id)));
    eventually("it is found to fail", || {
        (!list(&server)[0]["failingSince"].is_null()).then_some(())
    });
    let tried = server.told(&["webhook", "attempts", &id, "--limit", "1000"]).lines().count();
    assert!(tried < ids.len(), "{tried} attempts at an endpoint that is not there");
    let sink = Sink::on(address);
    let told = sink.has(ids.len());
    assert!(told.iter().all(|r| r.is_signed_by(&secret)));
    let told: BTreeSet<_> =
        told.iter().map(|r| r.json()["data"]["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(told, ids);
    eventually("it works again", || {
        let it = &list(&server)[0];
        (it["failingSince"].is_null() && it["waiting"] == 0).then_some(())
    });
}

fn many_at_once_and_some_fail(engine: Engine) {
    let (server, sink) = (server(engine), Sink::start());
    let key = server.key();
    add(&server, &sink.url("/"), &[]);
    sink.behave(Mood::Flaky);
    let ids: BTreeSet<_> =
        (100..200).map(|n| server.accepted(&key, &hello(&format!("+4477009{n:05}")))).collect();
    eventually("every one is taken", || {
        let taken = sink.received().into_iter().filter(|r| !r.refused);
        let taken: BTreeSet<_> =
            taken.map(|r| r.json()["data"]["id"].as_str().unwrap().to_owned()).collect();
        (taken == ids).then_some(())
    });
    let again = sink.received().len() - ids.len();
    assert_eq!(again, sink.received().iter().filter(|r| r.refused).count());
}

fn wait_when_asked_to(engine: Engine) {
    let (server, sink) = (server(engine), Sink::start());
    add(&server, &sink.url("/"), &[]);
    sink.behave(Mood::Answer(503, "Retry-After: 9\r\n", String::new()));
    server.accepted(&server.key(), &hello("+447700900123"));
    sink.has(1);
    sink.behave(Mood::status(200));
    let told = sink.has(2);
    let waited = told[1].at - told[0].at;
    assert!(waited > Duration::from_millis(8_500), "{waited:?}");
}

fn gone_for_good(engine: Engine) {
    let (server, sink) = (server(engine), Sink::start());
    let key = server.key();
    let (id, _) = add(&server, &sink.url("/"), &[]);
    sink.behave(Mood::status(410));
    server.accepted(&key, &hello("+447700900123"));
    let off = eventually("it is switched off", || {
        let all = list(&server);
        (!all[0]["offSince"].is_null()).then(|| all[0].clone())
    });
    assert_eq!((&off["offReason"], &off["waiting"]), (&json!("it answered 410 Gone"), &json!(0)));
    sink.behave(Mood::status(200));
    let later = server.accepted(&key, &hello("+447700900124"));
    server.ended(&key, &later);
    let refused = server.tool(&["webhook", "replay", &id, "--failed"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("switch it on first"));
    server.told(&["webhook", "on", &id]);
    assert_eq!(sink.received().len(), 1);
    assert_eq!(server.told(&["webhook", "replay", &id, "--failed"]), "2 events will be told again");
    let told = sink.has(3);
    assert_eq!(told[0].id(), told[1..].iter().find(|r| r.body == told[0].body).unwrap().id());
}

fn off_and_on_again(engine: Engine) {
    let (server, sink) = (server(engine), Sink::start());
    let key = server.key();
    let (id, _) = add(&server, &sink.url("/"), &[]);
    server.told(&["webhook", "off", &id]);
    assert_eq!(list(&server)[0]["offReason"], "it was switched off by hand");
    server.ended(&key, &server.accepted(&key, &hello("+447700900123")));
    server.told(&["webhook", "on", &id]);
    server.ended(&key, &server.accepted(&key, &hello("+447700900124")));
    assert!(sink.has(1)[0].body.contains("447700900124"));
    server.told(&["webhook", "remove", &id]);
    server.ended(&key, &server.accepted(&key, &hello("+447700900125")));
    assert_eq!((list(&server).len(), sink.received().len()), (0, 1));
    for command in ["on", "off", "remove", "rotate", "test", "attempts"] {
        let output = server.tool(&["webhook", command, &id]);
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("there is no endpoint"),
            "{command}"
        );
    }
}

fn what_was_told_is_told_again(engine: Engine) {
    let (server, sink) = (server(engine), Sink::start());
    let key = server.key();
    let (id, _) = add(&server, &sink.url("/"), &["--events", "message.delivered"]);
    let mut ids = Vec::new();
    for n in 0..3 {
        let message = server.accepted(&key, &hello(&format!("+44770090012{n}")));
        server.ended(&key, &message);
        ids.push(sink.has(n + 1).pop().unwrap());
    }
    // One by its id, twice named: once.
    let event = ids[1].id();
    let replay = |more: &[&str]| server.told(&[&["webhook", "replay", &id], more].concat());
    assert_eq!(replay(&["--event", event, "--event", event]), "1 events will be told again");
    assert_eq!(sink.has(4)[3].body, ids[1].body);
    assert_eq!(sink.has(4)[3].id(), event);
    // By time: what happened before the third.
    let third = ids[2].json()["timestamp"].as_str().unwrap().to_owned();
    assert_eq!(replay(&["--to", &third]), "2 events will be told again");
    sink.has(6);
    assert_eq!(replay(&["--from", &third]), "1 events will be told again");
    assert_eq!(sink.has(7)[6].id(), ids[2].id());
    eventually("nothing is left that failed", || {
        (replay(&["--failed"]) == "0 events will be told again").then_some(())
    });
    for (arguments, why) in [
        (vec![], "say what"),
        (vec!["--event", "00000000-0000-7000-8000-000000000000"], "no such event"),
        (vec!["--from", "2026-01-02T00:00:00Z", "--to", "2026-01-01T00:00:00Z"], "must be before"),
    ] {
        let output = server.tool(&[vec!["webhook", "replay", &id], arguments].concat());
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(why), "{said}");
    }
}

fn the_test_button(engine: Engine) {
    let (server, sink) = (server(engine), Sink::start());
    let (id, secret) = add(&server, &sink.url("/"), &[]);
    for (kind, field) in [("message.delivered", "DELIVERED"), ("message.failed", "FAILED")] {
        let said = server.told(&["webhook", "test", &id, "--event", kind]);
        assert!(said.contains("it answered 200"), "{said}");
        let told = sink.received().pop().unwrap();
        assert!(told.is_signed_by(&secret));
        let event = told.json();
        assert_eq!(
            (&event["type"], &event["data"]["type"]),
            (&json!("webhook.test"), &json!(kind))
        );
        assert_eq!(event["data"]["data"]["status"], field);
    }
    sink.behave(Mood::Answer(500, "", "see the log".to_owned()));
    let output = server.tool(&["webhook", "test", &id]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("it answered 500") && said.contains("see the log"), "{said}");
    // Also to one that is off, and only once.
    sink.behave(Mood::status(200));
    server.told(&["webhook", "off", &id]);
    assert!(server.told(&["webhook", "test", &id]).contains("it answered 200"));
    assert_eq!(sink.received().len(), 4);
    assert_eq!(list(&server)[0]["waiting"], 0);
}

/// What was for one endpoint never goes to the address of another.
fn a_number_is_not_given_twice(engine: Engine) {
    let (server, sink) = (server(engine), Sink::start());
    let (first, _) = add(&server, &sink.url("/first"), &[]);
    let key = server.key();
    server.accepted(&key, &hello("+447700900123"));
    sink.has(1);
    server.told(&["webhook", "remove", &first]);
    let (second, secret) = add(&server, &sink.url("/second"), &[]);
    assert_ne!(first, second);
    let id = server.accepted(&key, &hello("+447700900124"));
    let told = sink.has(2).pop().unwrap();
    assert_eq!((&*told.path, &told.json()["data"]["id"]), ("/second", &json!(id)));
    assert!(told.is_signed_by(&secret));
    // Nor is its history that of another.
    server.told(&["webhook", "remove", &second]);
    let (third, _) = add(&server, &sink.url("/third"), &[]);
    let again = server.told(&["--json", "webhook", "replay", &third, "--failed"]);
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), json!({ "events": 2 }));
}

fn a_crash_between_attempt_and_record(engine: Engine) {
    let (mut server, sink) = (server(engine), Sink::start());
    let key = server.key();
    add(&server, &sink.url("/"), &[]);
    sink.behave(Mood::After(Duration::from_millis(900)));
    let id = server.accepted(&key, &hello("+447700900123"));
    sink.has(1);
    server.kill();
    sink.behave(Mood::status(200));
    server.launch();
    server.await_ready();
    let told = sink.has(2);
    assert_eq!((told[0].id(), &told[0].body), (told[1].id(), &told[1].body));
    assert!(told[0].body.contains(&id));
    eventually("it is noted", || (list(&server)[0]["waiting"] == 0).then_some(()));
    server.check();
}

fn places_that_nobody_may_reach(engine: Engine) {
    let server = Server::start(engine);
    let before = list(&server).len();
    for (url, why) in [
        ("http://127.0.0.1:1/", "not a public address"),
        ("https://localhost/", "not a public address"),
        ("https://2130706433/", "not a public address"),
        ("https://0x7f.1/", "not a public address"),
        ("https://127.1:8443/", "not a public address"),
        ("https://[::1]/", "not a public address"),
        ("https://[::ffff:127.0.0.1]/", "not a public address"),
        ("https://169.254.169.254/latest/meta-data", "not a public address"),
        ("https://[64:ff9b::a9fe:a9fe]/", "not a public address"),
        ("https://[2002:7f00:1::]/", "not a public address"),
        ("https://10.0.0.1/", "not a public address"),
        ("https://nowhere.invalid/", "can't be resolved"),
        ("ftp://example.com/", "must begin with https://"),
        ("https://user:secret@example.com/", "must not hold a user"),
        ("example.com", "this is no URL"),
        ("http://8.8.8.8/", "use https://"),
    ] {
        let output = server.tool(&["webhook", "add", "--account", DEMO, "--url", url]);
        assert_eq!(output.status.code(), Some(1), "{url}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(why), "{url}: {said}");
    }
    let wrong = server.tool(&[
        "webhook",
        "add",
        "--account",
        DEMO,
        "--url",
        "https://8.8.8.8",
        "--events",
        "message.read",
    ]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("message.delivered, message.failed"));
    let nobody =
        server.tool(&["webhook", "add", "--account", "zoe@x.org", "--url", "https://8.8.8.8"]);
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("no account for zoe@x.org"));
    assert_eq!(list(&server).len(), before);
}
