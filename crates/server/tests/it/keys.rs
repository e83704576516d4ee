//! API keys at the door: without a valid one nothing is told, and nothing is done.

use crate::database::{Engine, each_engine};
use crate::http::Request;
use crate::send_sms::hello;
use crate::server::Server;
use crate::wrong_input::problem;
use serde_json::Value;

each_engine!(keys: one_answer_without_a_valid_key a_revoked_key_fails_at_once scopes_hold
    a_key_sees_its_own_mode_and_account);

const ANN: &str = "+447700900123";

fn one_answer_without_a_valid_key(engine: Engine) {
    let server = Server::start(engine);
    let key = server.key();
    let id = server.accepted(&key, &hello(ANN));
    server.ended(&key, &id);
    let stored = server.stored();
    let mut mistyped = key.clone().into_bytes();
    mistyped[20] = if mistyped[20] == b'x' { b'y' } else { b'x' };
    let mistyped = String::from_utf8(mistyped).unwrap();
    // A key of another installation: well-formed, and unknown here.
    let unknown = Server::start(engine).key();
    let mut bodies: Vec<Value> = Vec::new();
    for authorization in [
        None,
        Some(String::new()),
        Some("Bearer".to_owned()),
        Some("Bearer ".to_owned()),
        Some(key.clone()),
        Some(format!("Basic {key}")),
        Some(format!("Bearer {mistyped}")),
        Some(format!("Bearer {}", &key[..43])),
        Some(format!("Bearer {key}x")),
        Some(format!("Bearer {}", key.replace("test", "live"))),
        Some(format!("Bearer {unknown}")),
        Some("Bearer hg_test_äöü".to_owned()),
    ] {
        let body = hello(ANN).to_string();
        let json = ("Content-Type", "application/json");
        let post = Request::new("POST", "/v1/send/sms").header(json.0, json.1).body(body);
        for request in [post, Request::get(&format!("/v1/messages/{id}"))] {
            let request = match &authorization {
                Some(value) => request.header("Authorization", value.as_str()),
                None => request,
            };
            let answer = server.ask(&request);
            assert_eq!(problem(&answer, 401, "unauthenticated"), []);
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            let mut body = answer.json();
            body["requestId"].take();
            bodies.push(body);
        }
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    assert_eq!(server.stored(), stored);
}

fn a_revoked_key_fails_at_once(engine: Engine) {
    let server = Server::start(engine);
    let nodes = server.others();
    let greeted = server.key();
    for first in ["post", "replay", "dry run", "get"] {
        let made = server.told(&["--json", "key", "create", "--account", "demo@localhost"]);
        let made: Value = serde_json::from_str(&made).unwrap();
        let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
        let once = Request::send_sms(key, hello(ANN).to_string()).header("Idempotency-Key", first);
        let message = server.ask(&once).json()["id"].as_str().unwrap().to_owned();
        assert_eq!(server.message(key, &message).status, 200);
        assert!(nodes.iter().all(|n| n.ask(&once).status == 201));
        let before = server.stored();
        server.told(&["key", "revoke", id]);
        let mut dry = hello(ANN);
        dry["dryRun"] = true.into();
        let answer = match first {
            "post" => server.post(key, &hello(ANN)),
            "replay" => server.ask(&once),
            "dry run" => server.post(key, &dry),
            _ => server.message(key, &message),
        };
        assert_eq!(answer.status, 401, "{first}: {}", answer.text());
        problem(&answer, 401, "unauthenticated");
        for node in nodes.iter().chain([&server]) {
            problem(&node.ask(&once), 401, "unauthenticated");
            problem(&node.post(key, &hello(ANN)), 401, "unauthenticated");
            problem(&node.message(key, &message), 401, "unauthenticated");
        }
        // It had left something for the carrier only.
        assert!(server.stored() <= before);
        assert_eq!(server.message(&greeted, &message).status, 200);
    }
}

fn scopes_hold(engine: Engine) {
    let server = Server::start(engine);
    let key = |scope: &str| {
        server.told(&["key", "create", "--account", "demo@localhost", "--scope", scope])
    };
    let (send, read, manage) = (key("send"), key("read"), key("manage"));
    let id = server.accepted(&send, &hello(ANN));
    let before = server.stored();
    assert_eq!(server.message(&read, &id).status, 200);
    for key in [&send, &manage] {
        let answer = server.message(key, &id);
        problem(&answer, 403, "scope_missing");
        assert!(answer.text().contains("'read'"), "{}", answer.text());
    }
    for key in [&read, &manage] {
        let answer = server.post(key, &hello(ANN));
        problem(&answer, 403, "scope_missing");
        assert!(answer.text().contains("'send'"), "{}", answer.text());
        let mut dry = hello(ANN);
        dry["dryRun"] = true.into();
        problem(&server.post(key, &dry), 403, "scope_missing");
    }
    assert!(server.stored() <= before);
}

fn a_key_sees_its_own_mode_and_account(engine: Engine) {
    let config = "[[carriers]]\nname = 'pretend'\nkind = 'simulated'\n\
                  [[routes]]\nprefix = ''\ncarriers = ['pretend']";
    let server = Server::with(engine, config);
    let live = server.live_key("ann@example.com", "0");
    let test = server.told(&["key", "create", "--account", "ann@example.com", "--test"]);
    let (stranger, other_test) = (server.live_key("bob@example.com", "0"), server.key());
    let id = server.accepted(&live, &hello(ANN));
    let test_id = server.accepted(&test, &hello(ANN));
    assert_eq!(server.message(&live, &id).json()["mode"], "live");
    assert_eq!(server.message(&test, &test_id).json()["mode"], "test");
    for (key, id) in [
        (&test, &id),
        (&stranger, &id),
        (&other_test, &id),
        (&live, &test_id),
        (&stranger, &test_id),
        (&other_test, &test_id),
    ] {
        assert_eq!(problem(&server.message(key, id), 404, "not_found"), []);
    }
}
