//! Paths, methods, request ids and connections, for every request.

use crate::support::api::{hello, problem};
use crate::support::http::{Connection, Request};
use crate::support::server::Server;
use std::collections::BTreeSet;

const ANN: &str = "+447700900123";

#[test]
fn unknown_paths_and_methods_are_rejected() {
    let server = Server::start();
    let key = server.key();
    for path in [
        "/v1",
        "/v1/",
        "/v1/send",
        "/v1/send/sms/",
        "/v1/send/SMS",
        "/v1/messages/",
        "/v1/messages/a/b",
        "/v2/send/sms",
        "/docs/",
        "/docs/errors/",
        "/v1/send/sms/../sms",
        "/%2e%2e/etc/passwd",
    ] {
        for request in
            [Request::get(path), Request::send_sms(&key, hello(ANN).to_string()).to(path)]
        {
            assert_eq!(problem(&server.ask(&request), 404, "not_found"), [], "{path}");
        }
    }
    for (method, path, allowed) in [
        ("GET", "/v1/send/sms", "POST"),
        ("PUT", "/v1/send/sms", "POST"),
        ("DELETE", "/v1/messages/0190", "GET,HEAD"),
        ("POST", "/v1/messages/0190", "GET,HEAD"),
        ("POST", "/v1/messages", "GET,HEAD"),
        ("GET", "/v1/messages/0190/cancel", "POST"),
        ("POST", "/v1/balance", "GET,HEAD"),
        ("OPTIONS", "/v1/send/sms", "POST"),
        ("POST", "/healthz", "GET,HEAD"),
        ("POST", "/metrics", "GET,HEAD"),
        ("BREW", "/v1/send/sms", "POST"),
    ] {
        let response = server.ask(&Request::new(method, path).key(&key));
        assert_eq!(problem(&response, 405, "method_not_allowed"), []);
        assert_eq!(response.header("allow"), Some(allowed), "{method} {path}");
    }
    assert_eq!(server.stored(), 0);
}

/// Unusual paths get the same response as other unknown paths.
#[test]
fn unusual_paths_are_not_found() {
    let server = Server::start();
    let key = server.key();
    for path in [
        "//",
        "//v1/messages/0190",
        "/v1//messages/0190",
        "/v1/messages//0190",
        "/v1/messages/0190/",
        "/v1/messages/%FF%FE",
        "/v1/messages/%",
        "/v1/messages/%zz",
        "/v1/messages/a%2Fb",
        "/v1/optout-lists/%C3%28",
        "/v1/optout-lists/default/numbers/%E2%82",
        "/v1/inbound-messages/%80",
        "/docs/errors/%FF",
        "/docs/errors/nothing",
        "/%F0%9F%9A%80",
        "/v1/.",
        "/;",
        "http://elsewhere.example/v1/nothing",
        "v1",
    ] {
        let response = server.ask(&Request::get(path).key(&key));
        assert_eq!(problem(&response, 404, "not_found"), [], "{path}");
    }
    let long = format!("/v1/messages/{}", "x".repeat(30_000));
    problem(&server.ask(&Request::get(&long).key(&key)), 404, "not_found");
    let long = format!("/v1/inbound-messages?cursor={}", "x".repeat(30_000));
    problem(&server.ask(&Request::get(&long).key(&key)), 400, "invalid_request");
    // After a request that is not valid HTTP, the connection is closed.
    let longest = format!("/v1/messages/{}", "x".repeat(70_000));
    for (path, status, code) in
        [(&*longest, 431, "headers_too_large"), ("/v1 x", 400, "invalid_request")]
    {
        assert_eq!(problem(&server.ask(&Request::get(path)), status, code), []);
    }
}

/// HEAD gets the response to GET, without its body.
#[test]
fn head_responses_have_no_body() {
    let server = Server::start();
    let key = server.key();
    let id = server.accepted(&key, &hello(ANN));
    for (path, key, status) in [
        (&*format!("/v1/messages/{id}"), &*key, 200),
        ("/v1/messages/0190", &key, 404),
        ("/v1/messages/0190", "nobody", 401),
        ("/v1/send/sms", &key, 405),
        ("/nowhere", &key, 404),
        ("/healthz", &key, 200),
    ] {
        let response = server.ask(&Request::new("HEAD", path).key(key));
        assert_eq!((response.status, response.text().as_str()), (status, ""), "{path}");
        let kind = response.header("content-type").unwrap();
        assert_eq!(kind == "application/problem+json", status >= 400, "{path}: {kind}");
    }
}

#[test]
fn unknown_message_ids_are_not_found() {
    let server = Server::start();
    let key = server.key();
    let id = server.accepted(&key, &hello(ANN));
    for id in [
        "0190b0a0-0000-7000-8000-000000000000",
        "0",
        "nothing",
        "%00",
        "1e9999",
        "-1",
        "%F0%9F%9A%80",
        &id[1..],
    ] {
        assert_eq!(problem(&server.message(&key, id), 404, "not_found"), [], "{id}");
    }
    assert_eq!(server.message(&key, &id.to_uppercase()).json()["id"], id);
    for query in ["expand=all", "limit=1", "="] {
        let response = server.message(&key, &format!("{id}?{query}"));
        let fault = ("query".to_owned(), "unknown_field".to_owned());
        assert_eq!(problem(&response, 400, "invalid_request"), [fault], "{query}");
    }
    assert_eq!(server.message(&key, &format!("{id}?")).status, 200);
}

#[test]
fn request_ids_are_kept_if_valid() {
    let server = Server::start();
    let key = server.key();
    let with = |id: &[u8]| {
        let request = Request::send_sms(&key, hello(ANN).to_string()).header("X-Request-Id", id);
        server.ask(&request).header("x-request-id").unwrap().to_owned()
    };
    let longest = "i".repeat(128);
    for sane in ["a", "7b3f-1.2_x", longest.as_str()] {
        assert_eq!(with(sane.as_bytes()), sane);
    }
    let mut made = BTreeSet::new();
    let too_long = "i".repeat(129);
    for odd in
        [b"".as_slice(), b"a b", b"a\"b", b"<b>", "ü".as_bytes(), b"a,b", too_long.as_bytes()]
    {
        made.insert(with(odd));
    }
    made.insert(server.ask(&Request::get("/healthz")).header("x-request-id").unwrap().to_owned());
    made.insert(server.ask(&Request::get("/nowhere")).header("x-request-id").unwrap().to_owned());
    assert_eq!(made.len(), 9, "{made:?}");
    assert!(made.iter().all(|id| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())));
}

/// A connection can be used again after any response.
#[test]
fn one_connection_carries_many_requests() {
    let server = Server::start();
    let key = server.key();
    let mut connection = Connection::open(server.address()).unwrap();
    for _ in 0..3 {
        for (status, request) in [
            (201, Request::send_sms(&key, hello(ANN).to_string())),
            (400, Request::send_sms(&key, "{")),
            (401, Request::send_sms("nobody", hello(ANN).to_string())),
            (404, Request::get("/v1/messages/0").key(&key)),
            (405, Request::new("PUT", "/v1/send/sms").body("x")),
            (415, Request::new("POST", "/v1/send/sms").key(&key).body("x")),
            (200, Request::get("/healthz")),
        ] {
            assert_eq!(connection.ask(&request).unwrap().status, status);
        }
    }
}
