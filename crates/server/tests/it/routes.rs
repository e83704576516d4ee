//! Addresses, methods and request ids: what holds for every request.

use crate::database::{Engine, each_engine};
use crate::http::{Connection, Request};
use crate::send_sms::hello;
use crate::server::Server;
use crate::wrong_input::problem;
use std::collections::BTreeSet;

each_engine!(routes: unknown_addresses_and_methods unknown_messages request_ids
    one_connection_many_requests);

const ANN: &str = "+447700900123";

fn unknown_addresses_and_methods(engine: Engine) {
    let server = Server::start(engine);
    let key = server.key();
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v1/send",
        "/v1/send/sms/",
        "/v1/send/SMS",
        "/v1/messages/",
        "/v1/messages/a/b",
        "/v2/send/sms",
        "/docs",
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
        let answer = server.ask(&Request::new(method, path).key(&key));
        assert_eq!(problem(&answer, 405, "method_not_allowed"), []);
        assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
    }
    assert_eq!(server.stored(), 0);
}

fn unknown_messages(engine: Engine) {
    let server = Server::start(engine);
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
}

fn request_ids(engine: Engine) {
    let server = Server::start(engine);
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

/// Answers of all kinds leave a connection as it was.
fn one_connection_many_requests(engine: Engine) {
    let server = Server::start(engine);
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
