//! Webhook deliveries: contents, signatures, retries, replays and the URL policy.

use crate::support::api::hello;
use crate::support::ports::Port;
use crate::support::server::Server;
use crate::support::wait::eventually;
use crate::support::webhook_sink::{Behavior, WebhookSink};
use crate::support::webhooks::{add, server};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const DEMO: &str = "demo@localhost";

fn list(server: &Server) -> Vec<Value> {
    server.list(&["webhook", "list", "--account", DEMO])
}

#[test]
fn each_final_status_is_delivered_once_and_signed() {
    let (server, sink) = (server(), WebhookSink::start());
    let key = server.key();
    let (_, secret) = add(&server, &sink.url("/hook?a=b"), &[]);
    let mut body = hello("+447700900123");
    body["reference"] = json!("order 7");
    let id = server.accepted(&key, &body);
    let received = sink.wait_for(1);
    let (first, message) = (&received[0], server.wait_until_ended(&key, &id));
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
    // A message that fails, and a message with a duplicate receipt.
    let failed = server.accepted(&key, &hello("+447700900001"));
    server.accepted(&key, &hello("+447700900008"));
    let received = sink.wait_for(3);
    let event = received.iter().map(|r| r.json()).find(|e| e["data"]["id"] == failed.as_str());
    let event = event.unwrap();
    assert_eq!(event["type"], "message.failed");
    assert_eq!(event["data"]["failure"], server.wait_until_ended(&key, &failed)["failure"]);
    let ids: BTreeSet<_> = received.iter().map(|r| r.id().to_owned()).collect();
    assert_eq!(ids.len(), 3);
    // After one more message there are no other webhooks.
    server.accepted(&key, &hello("+447700900124"));
    assert_eq!(sink.wait_for(4).len(), 4);
}

#[test]
fn an_endpoint_gets_its_selected_events() {
    let (server, sink) = (server(), WebhookSink::start());
    let key = server.key();
    add(&server, &sink.url("/failed"), &["--events", "message.failed"]);
    add(&server, &sink.url("/both"), &["--events", "message.failed,message.delivered"]);
    add(&server, &sink.url("/live"), &["--live"]);
    for to in ["+447700900001", "+447700900123"] {
        let id = server.accepted(&key, &hello(to));
        server.wait_until_ended(&key, &id);
    }
    let received = sink.wait_for(3);
    let mut delivered: Vec<_> =
        received.iter().map(|r| format!("{} {}", r.path, r.json()["type"])).collect();
    delivered.sort();
    let expected =
        ["/both \"message.delivered\"", "/both \"message.failed\"", "/failed \"message.failed\""];
    assert_eq!(delivered, expected);
    let at =
        |path: &str| received.iter().find(|r| r.path == path && r.body.contains("message.failed"));
    assert_eq!(at("/both").unwrap().id(), at("/failed").unwrap().id(), "one event, one id");
}

#[test]
fn both_secrets_sign_after_a_rotation() {
    let (server, sink) = (server(), WebhookSink::start());
    let (id, old) = add(&server, &sink.url("/"), &[]);
    let rotated: Value = serde_json::from_str(&server.stdout(&["webhook", "rotate", &id])).unwrap();
    let new = rotated["secret"].as_str().unwrap();
    server.accepted(&server.key(), &hello("+447700900123"));
    let received = &sink.wait_for(1)[0];
    assert!(received.is_signed_by(&old) && received.is_signed_by(new), "{received:?}");
    assert_eq!(received.header("webhook-signature").split(' ').count(), 2);
    assert!(
        rotated["oldSecretUntil"].as_str().unwrap()
            > received.json()["timestamp"].as_str().unwrap()
    );
}

#[test]
fn a_failed_delivery_is_retried_with_the_same_id() {
    let (server, sink) = (server(), WebhookSink::start());
    let (id, secret) = add(&server, &sink.url("/"), &[]);
    sink.set_behavior(Behavior::Answer(500, "", "Oh no\u{1b}[31m".repeat(500)));
    server.accepted(&server.key(), &hello("+447700900123"));
    sink.wait_for(1);
    sink.set_behavior(Behavior::status(204));
    let received = sink.wait_for(2);
    assert_eq!((received[0].id(), &received[0].body), (received[1].id(), &received[1].body));
    assert!(received[1].is_signed_by(&secret));
    let waited = received[1].at - received[0].at;
    assert!(waited > Duration::from_millis(3_900), "{waited:?}");
    let attempts = eventually("both attempts are stored", || {
        let all = server.list(&["webhook", "attempts", &id]);
        (all.len() == 2).then_some(all)
    });
    assert_eq!((&attempts[0]["status"], &attempts[1]["status"]), (&json!(204), &json!(500)));
    assert_eq!(attempts[1]["detail"], "responded with 500");
    assert_eq!(attempts[1]["body"].as_str().unwrap().len(), 1_024);
    let shown = server.stdout(&["webhook", "attempts", &id]);
    assert!(!shown.contains('\u{1b}'), "the output contains a control character");
    eventually("the endpoint is healthy", || {
        list(&server)[0]["failingSince"].is_null().then_some(())
    });
    assert_eq!(list(&server)[0]["waiting"], 0);
}

#[test]
fn invalid_responses_are_failures() {
    let server = server();
    let away = WebhookSink::start();
    let behaviors = [
        ("hang", Behavior::Hang, "no response within 1 s"),
        ("reset", Behavior::Reset, "connection"),
        ("drip", Behavior::Drip, "no response within 1 s"),
        (
            "redirect",
            Behavior::Answer(302, "Location: http://127.0.0.1:1/\r\n", String::new()),
            "redirects are not followed",
        ),
        ("nonsense", Behavior::Answer(99, "", String::new()), "invalid HTTP status-code"),
    ];
    let mut endpoints = Vec::new();
    for (path, behavior, why) in behaviors {
        let sink = WebhookSink::start();
        sink.set_behavior(behavior);
        let (id, _) = add(&server, &sink.url(&format!("/{path}")), &[]);
        endpoints.push((id, sink, why));
    }
    let endless = WebhookSink::start();
    endless.set_behavior(Behavior::Endless);
    let (fine, _) = add(&server, &endless.url("/"), &[]);
    server.accepted(&server.key(), &hello("+447700900123"));
    for (id, sink, why) in &endpoints {
        let attempts = eventually(&format!("a failed attempt is stored: {why}"), || {
            Some(server.stdout(&["webhook", "attempts", id])).filter(|a| !a.is_empty())
        });
        assert!(attempts.contains(why), "{attempts}");
        sink.set_behavior(Behavior::status(200));
        let received = sink.wait_for(2);
        assert_eq!(received[0].id(), received[1].id());
    }
    assert_eq!(away.received().len(), 0);
    assert_eq!(endless.received().len(), 1, "the status was 200, so there is no retry");
    assert_eq!(
        server.stdout(&["webhook", "attempts", &fine]).lines().count(),
        1,
        "the attempts of another endpoint"
    );
}

/// While an endpoint is down, most events are not even attempted.
#[test]
fn events_are_delivered_after_an_outage() {
    let server = server();
    let key = server.key();
    let port = Port::reserve();
    let address = port.address();
    let (id, secret) = add(&server, &format!("http://{address}/"), &[]);
    let ids: BTreeSet<_> =
        (100..160).map(|n| server.accepted(&key, &hello(&format!("+4477009{n:05}")))).collect();
    ids.iter().for_each(|id| drop(server.wait_until_ended(&key, id)));
    eventually("the endpoint is failing", || {
        (!list(&server)[0]["failingSince"].is_null()).then_some(())
    });
    let tried = server.stdout(&["webhook", "attempts", &id, "--limit", "1000"]).lines().count();
    assert!(tried < ids.len(), "{tried} attempts at an endpoint that is not there");
    let sink = WebhookSink::on(address);
    let received = sink.wait_for(ids.len());
    assert!(received.iter().all(|r| r.is_signed_by(&secret)));
    let received: BTreeSet<_> =
        received.iter().map(|r| r.json()["data"]["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(received, ids);
    eventually("the endpoint is healthy again", || {
        let it = &list(&server)[0];
        (it["failingSince"].is_null() && it["waiting"] == 0).then_some(())
    });
}

/// Some events have failed twice, and would wait for five minutes.
#[test]
fn retries_are_brought_forward_after_an_outage() {
    let (server, sink) = (server(), WebhookSink::start());
    let key = server.key();
    add(&server, &sink.url("/"), &[]);
    sink.set_behavior(Behavior::status(500));
    let ids: BTreeSet<_> =
        (100..108).map(|n| server.accepted(&key, &hello(&format!("+4477009{n:05}")))).collect();
    sink.wait_for(ids.len() + 1);
    sink.set_behavior(Behavior::status(200));
    eventually("every event is delivered", || (list(&server)[0]["waiting"] == 0).then_some(()));
}

#[test]
fn pending_events_go_to_a_changed_url() {
    let (server, old, new) = (server(), WebhookSink::start(), WebhookSink::start());
    let key = server.key();
    let (id, secret) = add(&server, &old.url("/"), &[]);
    old.set_behavior(Behavior::status(500));
    let message = server.accepted(&key, &hello("+447700900123"));
    old.wait_for(1);
    let changed = server.json(&["webhook", "update", &id, "--url", &new.url("/hook")]);
    assert_eq!(changed["url"], new.url("/hook"));
    let received = new.wait_for(1);
    assert!(received[0].is_signed_by(&secret) && received[0].json()["data"]["id"] == message);
}

#[test]
fn every_event_is_delivered_if_some_attempts_fail() {
    let (server, sink) = (server(), WebhookSink::start());
    let key = server.key();
    add(&server, &sink.url("/"), &[]);
    sink.set_behavior(Behavior::Flaky);
    let ids: BTreeSet<_> =
        (100..200).map(|n| server.accepted(&key, &hello(&format!("+4477009{n:05}")))).collect();
    eventually("every event is delivered", || {
        let taken = sink.received().into_iter().filter(|r| !r.refused);
        let taken: BTreeSet<_> =
            taken.map(|r| r.json()["data"]["id"].as_str().unwrap().to_owned()).collect();
        (taken == ids).then_some(())
    });
    let again = sink.received().len() - ids.len();
    assert_eq!(again, sink.received().iter().filter(|r| r.refused).count());
}

#[test]
fn retry_after_is_respected() {
    let (server, sink) = (server(), WebhookSink::start());
    add(&server, &sink.url("/"), &[]);
    sink.set_behavior(Behavior::Answer(503, "Retry-After: 9\r\n", String::new()));
    server.accepted(&server.key(), &hello("+447700900123"));
    sink.wait_for(1);
    sink.set_behavior(Behavior::status(200));
    let received = sink.wait_for(2);
    let waited = received[1].at - received[0].at;
    assert!(waited > Duration::from_millis(8_500), "{waited:?}");
}

#[test]
fn status_410_disables_an_endpoint() {
    let (server, sink) = (server(), WebhookSink::start());
    let key = server.key();
    let (id, _) = add(&server, &sink.url("/"), &[]);
    sink.set_behavior(Behavior::status(410));
    server.accepted(&key, &hello("+447700900123"));
    let off = eventually("the endpoint is disabled", || {
        let all = list(&server);
        (!all[0]["offSince"].is_null()).then(|| all[0].clone())
    });
    assert_eq!(
        (&off["offReason"], &off["waiting"]),
        (&json!("the endpoint responded with 410 Gone"), &json!(0))
    );
    sink.set_behavior(Behavior::status(200));
    let later = server.accepted(&key, &hello("+447700900124"));
    server.wait_until_ended(&key, &later);
    let refused = server.run(&["webhook", "replay", &id, "--failed"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("enable it first"));
    server.stdout(&["webhook", "on", &id]);
    assert_eq!(sink.received().len(), 1);
    assert_eq!(
        server.stdout(&["webhook", "replay", &id, "--failed"]),
        "Events queued for replay: 2"
    );
    let received = sink.wait_for(3);
    assert_eq!(
        received[0].id(),
        received[1..].iter().find(|r| r.body == received[0].body).unwrap().id()
    );
}

#[test]
fn a_disabled_endpoint_gets_no_events() {
    let (server, sink) = (server(), WebhookSink::start());
    let key = server.key();
    let (id, _) = add(&server, &sink.url("/"), &[]);
    server.stdout(&["webhook", "off", &id]);
    assert_eq!(list(&server)[0]["offReason"], "the endpoint was disabled manually");
    server.wait_until_ended(&key, &server.accepted(&key, &hello("+447700900123")));
    server.stdout(&["webhook", "on", &id]);
    server.wait_until_ended(&key, &server.accepted(&key, &hello("+447700900124")));
    assert!(sink.wait_for(1)[0].body.contains("447700900124"));
    server.stdout(&["webhook", "remove", &id]);
    server.wait_until_ended(&key, &server.accepted(&key, &hello("+447700900125")));
    assert_eq!((list(&server).len(), sink.received().len()), (0, 1));
    for command in ["on", "off", "remove", "rotate", "test", "attempts"] {
        let output = server.run(&["webhook", command, &id]);
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("no endpoint"), "{command}");
    }
}

#[test]
fn events_can_be_replayed() {
    let (server, sink) = (server(), WebhookSink::start());
    let key = server.key();
    let (id, _) = add(&server, &sink.url("/"), &["--events", "message.delivered"]);
    let mut ids = Vec::new();
    for n in 0..3 {
        let message = server.accepted(&key, &hello(&format!("+44770090012{n}")));
        server.wait_until_ended(&key, &message);
        ids.push(sink.wait_for(n + 1).pop().unwrap());
    }
    // An event that is named twice is replayed once.
    let event = ids[1].id();
    let replay = |more: &[&str]| server.stdout(&[&["webhook", "replay", &id], more].concat());
    assert_eq!(replay(&["--event", event, "--event", event]), "Events queued for replay: 1");
    assert_eq!(sink.wait_for(4)[3].body, ids[1].body);
    assert_eq!(sink.wait_for(4)[3].id(), event);
    // The events before the third.
    let third = ids[2].json()["timestamp"].as_str().unwrap().to_owned();
    assert_eq!(replay(&["--to", &third]), "Events queued for replay: 2");
    sink.wait_for(6);
    assert_eq!(replay(&["--from", &third]), "Events queued for replay: 1");
    assert_eq!(sink.wait_for(7)[6].id(), ids[2].id());
    eventually("no failed events are left", || {
        (replay(&["--failed"]) == "Events queued for replay: 0").then_some(())
    });
    let from_to = vec!["--from", "2026-01-02T00:00:00Z", "--to", "2026-01-01T00:00:00Z"];
    for (arguments, code, why) in [
        (vec![], 2, "select events with --failed"),
        (vec!["--event", "00000000-0000-7000-8000-000000000000"], 1, "no such event"),
        (from_to, 2, "must be before"),
    ] {
        let output = server.run(&[vec!["webhook", "replay", &id], arguments].concat());
        assert_eq!(output.status.code(), Some(code));
        let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output_text.contains(why), "{output_text}");
    }
}

#[test]
fn a_test_event_is_sent_immediately() {
    let (server, sink) = (server(), WebhookSink::start());
    let (id, secret) = add(&server, &sink.url("/"), &[]);
    for (kind, field) in [("message.delivered", "DELIVERED"), ("message.failed", "FAILED")] {
        let output_text = server.stdout(&["webhook", "test", &id, "--event", kind]);
        assert!(output_text.contains("HTTP 200"), "{output_text}");
        let received = sink.received().pop().unwrap();
        assert!(received.is_signed_by(&secret));
        let event = received.json();
        assert_eq!(
            (&event["type"], &event["data"]["type"]),
            (&json!("webhook.test"), &json!(kind))
        );
        assert_eq!(event["data"]["data"]["status"], field);
    }
    sink.set_behavior(Behavior::Answer(500, "", "see the log".to_owned()));
    let output = server.run(&["webhook", "test", &id]);
    let output_text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output_text.contains("responded with 500") && output_text.contains("see the log"),
        "{output_text}"
    );
    // A disabled endpoint can be tested too, and a test is not retried.
    sink.set_behavior(Behavior::status(200));
    server.stdout(&["webhook", "off", &id]);
    assert!(server.stdout(&["webhook", "test", &id]).contains("HTTP 200"));
    assert_eq!(sink.received().len(), 4);
    assert_eq!(list(&server)[0]["waiting"], 0);
}

/// Events of a removed endpoint never go to a new endpoint.
#[test]
fn endpoint_ids_are_not_reused() {
    let (server, sink) = (server(), WebhookSink::start());
    let (first, _) = add(&server, &sink.url("/first"), &[]);
    let key = server.key();
    server.accepted(&key, &hello("+447700900123"));
    sink.wait_for(1);
    server.stdout(&["webhook", "remove", &first]);
    let (second, secret) = add(&server, &sink.url("/second"), &[]);
    assert_ne!(first, second);
    let id = server.accepted(&key, &hello("+447700900124"));
    let received = sink.wait_for(2).pop().unwrap();
    assert_eq!((&*received.path, &received.json()["data"]["id"]), ("/second", &json!(id)));
    assert!(received.is_signed_by(&secret));
    // The new endpoint does not have the history of the removed one.
    server.stdout(&["webhook", "remove", &second]);
    let (third, _) = add(&server, &sink.url("/third"), &[]);
    let again = server.stdout(&["--json", "webhook", "replay", &third, "--failed"]);
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), json!({ "events": 2 }));
}

#[test]
fn a_delivery_is_repeated_after_a_crash() {
    let (mut server, sink) = (server(), WebhookSink::start());
    let key = server.key();
    add(&server, &sink.url("/"), &[]);
    sink.set_behavior(Behavior::After(Duration::from_millis(900)));
    let id = server.accepted(&key, &hello("+447700900123"));
    sink.wait_for(1);
    server.kill();
    sink.set_behavior(Behavior::status(200));
    server.launch();
    server.wait_until_ready();
    let received = sink.wait_for(2);
    assert_eq!((received[0].id(), &received[0].body), (received[1].id(), &received[1].body));
    assert!(received[0].body.contains(&id));
    eventually("the delivery is stored", || (list(&server)[0]["waiting"] == 0).then_some(()));
    server.check();
}

#[test]
fn urls_outside_the_policy_are_rejected() {
    let server = Server::start();
    let before = list(&server).len();
    for (url, why) in [
        ("http://127.0.0.1:1024/", "not a public address"),
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
        ("https://user:secret@example.com/", "must not contain a user"),
        ("example.com", "invalid URL"),
        ("http://8.8.8.8/", "use https://"),
        ("https://8.8.8.8:22/", "port 22 is not allowed"),
    ] {
        let output = server.run(&["webhook", "add", "--account", DEMO, "--url", url]);
        let is_usage = ["must ", "invalid URL"].iter().any(|begin| why.starts_with(begin));
        assert_eq!(output.status.code(), Some(if is_usage { 2 } else { 1 }), "{url}");
        let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output_text.contains(why), "{url}: {output_text}");
    }
    let wrong = server.run(&[
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
        server.run(&["webhook", "add", "--account", "zoe@x.org", "--url", "https://8.8.8.8"]);
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("no account for zoe@x.org"));
    assert_eq!(list(&server).len(), before);
}
