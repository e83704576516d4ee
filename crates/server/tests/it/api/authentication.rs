//! Authentication with API keys: scopes, revocation, and the same answer to every invalid key.

use crate::support::api::{hello, problem};
use crate::support::http::Request;
use crate::support::server::Server;
use serde_json::Value;

const ANN: &str = "+447700900123";

#[test]
fn every_invalid_key_gets_the_same_answer() {
    let server = Server::start();
    let key = server.key();
    let id = server.accepted(&key, &hello(ANN));
    server.wait_until_ended(&key, &id);
    let stored = server.stored();
    let mut mistyped = key.clone().into_bytes();
    mistyped[20] = if mistyped[20] == b'x' { b'y' } else { b'x' };
    let mistyped = String::from_utf8(mistyped).unwrap();
    // A key of another installation is well-formed, but unknown here.
    let unknown = Server::start().key();
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
            let response = server.ask(&request);
            assert_eq!(problem(&response, 401, "unauthenticated"), []);
            assert_eq!(response.header("www-authenticate"), Some("Bearer"));
            let mut body = response.json();
            body["requestId"].take();
            bodies.push(body);
        }
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    assert_eq!(server.stored(), stored);
}

#[test]
fn a_revoked_key_fails_at_once_on_every_node() {
    let server = Server::start();
    let nodes = server.other_nodes();
    let first_key = server.key();
    for first in ["post", "replay", "dry run", "get"] {
        let made = server.stdout(&["--json", "key", "create", "--account", "demo@localhost"]);
        let made: Value = serde_json::from_str(&made).unwrap();
        let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
        let once = Request::send_sms(key, hello(ANN).to_string()).header("Idempotency-Key", first);
        let message = server.ask(&once).json()["id"].as_str().unwrap().to_owned();
        assert_eq!(server.message(key, &message).status, 200);
        assert!(nodes.iter().all(|n| n.ask(&once).status == 201));
        let before = server.stored();
        server.stdout(&["key", "revoke", id]);
        let mut dry = hello(ANN);
        dry["dryRun"] = true.into();
        let response = match first {
            "post" => server.post(key, &hello(ANN)),
            "replay" => server.ask(&once),
            "dry run" => server.post(key, &dry),
            _ => server.message(key, &message),
        };
        assert_eq!(response.status, 401, "{first}: {}", response.text());
        problem(&response, 401, "unauthenticated");
        for node in nodes.iter().chain([&server]) {
            problem(&node.ask(&once), 401, "unauthenticated");
            problem(&node.post(key, &hello(ANN)), 401, "unauthenticated");
            problem(&node.message(key, &message), 401, "unauthenticated");
        }
        // Only the carrier's work on the first message may have changed something.
        assert!(server.stored() <= before);
        assert_eq!(server.message(&first_key, &message).status, 200);
    }
}

#[test]
fn a_key_needs_the_scope_of_the_operation() {
    let server = Server::start();
    let key = |scope: &str| {
        server.stdout(&["key", "create", "--account", "demo@localhost", "--scope", scope])
    };
    let (send, read, manage) = (key("send"), key("read"), key("manage"));
    let id = server.accepted(&send, &hello(ANN));
    let before = server.stored();
    assert_eq!(server.message(&read, &id).status, 200);
    for key in [&send, &manage] {
        let response = server.message(key, &id);
        problem(&response, 403, "scope_missing");
        assert!(response.text().contains("'read'"), "{}", response.text());
    }
    for key in [&read, &manage] {
        let response = server.post(key, &hello(ANN));
        problem(&response, 403, "scope_missing");
        assert!(response.text().contains("'send'"), "{}", response.text());
        let mut dry = hello(ANN);
        dry["dryRun"] = true.into();
        problem(&server.post(key, &dry), 403, "scope_missing");
    }
    assert!(server.stored() <= before);
}

#[test]
fn a_key_sees_its_own_mode_and_account() {
    let config = "[[carriers]]\nname = 'pretend'\nkind = 'simulated'\n\
                  [[routes]]\nprefix = ''\ncarriers = ['pretend']";
    let server = Server::with(config);
    let live = server.live_key("ann@example.com", "0");
    let test = server.stdout(&["key", "create", "--account", "ann@example.com", "--test"]);
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
