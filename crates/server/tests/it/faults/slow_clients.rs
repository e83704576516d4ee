//! Overload, slow clients and floods do not affect other clients.

use crate::support::api::hello;
use crate::support::browser::Browser;
use crate::support::http::{Connection, Request};
use crate::support::https_client::{
    CONFIG, H2, HTTP_1_1, HttpsClient, Pair, Silent, get, send_sms,
};
use crate::support::server::Server;
use crate::support::wait::eventually;

/// Requests whose body never arrives, with and without a key, for the API and for pages, over
/// HTTP/1.1 and HTTP/2: far more than may be in flight.
#[test]
fn stalled_bodies_do_not_affect_other_clients() {
    let pair = Pair::new();
    let mut server = Server::new(&format!("{CONFIG}\n[limits]\nmax_in_flight = 16\n"));
    pair.put(&server);
    server.launch();
    server.wait_until_ready();
    let key = server.key();
    // The open requests of an account are limited, too.
    server.stdout(&["account", "create", "--email", "other@example.com"]);
    let other = server.stdout(&["key", "create", "--account", "other@example.com"]);
    let body = hello("+447700900123");
    let mut stalled = HttpsClient::open(server.address(), &pair, H2).unwrap();
    for path in ["/v1/send/sms", "/sign-in", "/optouts/1/import"] {
        stalled.stall(path, &key, 80);
    }
    let mut stalled_http1: Vec<_> = (0..40)
        .map(|_| {
            let mut client = HttpsClient::open(server.address(), &pair, HTTP_1_1).unwrap();
            client.stall("/sign-in", "", 1);
            client
        })
        .collect();
    let mut client = HttpsClient::open(server.address(), &pair, H2).unwrap();
    for _ in 0..100 {
        assert_eq!(client.ask(send_sms(&other, &body)).unwrap().status(), 201);
    }
    assert_eq!(client.ask(send_sms(&key, &body)).unwrap().status(), 429);
    assert_eq!(client.ask(get("/sign-in")).unwrap().status(), 200);
    // Those that need a key or a session were refused.
    assert!(stalled.stalled() >= 80, "requests are still waiting for their body");
    assert!(stalled_http1.iter_mut().all(|client| client.stalled() == 1));
    server.check();
}

/// The beginning of a connection with HTTP/2, and a head that does not end: HEADERS of one byte
/// without END_HEADERS, whose CONTINUATION never comes (RFC 9113, section 6.10).
const HTTP2_HEAD: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\0\0\0\0\x01\x83";

/// Heads that do not end, event streams and responses that are not read, with and without a key,
/// over HTTP/1.1 and HTTP/2: far more than requests may be in flight.
#[test]
fn stalled_heads_streams_and_readers_do_not_affect_other_clients() {
    let pair = Pair::new();
    let mut server = Server::new(&format!("{CONFIG}\n[limits]\nmax_in_flight = 16\n"));
    pair.put(&server);
    server.launch();
    server.wait_until_ready();
    let (address, key) = (server.address(), server.key());
    server.stdout(&["account", "create", "--email", "other@example.com"]);
    let other = server.stdout(&["key", "create", "--account", "other@example.com"]);
    let head =
        format!("POST /v1/send/sms HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nX-");
    let _silent: Vec<_> = (0..20)
        .flat_map(|_| {
            [(HTTP_1_1, head.as_bytes()), (HTTP_1_1, b"GET /sign-in HT"), (H2, HTTP2_HEAD)]
        })
        .map(|(protocol, bytes)| Silent::open(address, &pair, protocol, bytes))
        .collect();
    // The document is larger than the windows of HTTP/2 and the buffers of a socket.
    let _unread: Vec<_> = (0..40)
        .map(|n| {
            let mut client = HttpsClient::open(address, &pair, HTTP_1_1).unwrap();
            client.leave_unread("/v1/openapi.json", if n % 2 == 0 { &key } else { "" }, 1);
            client
        })
        .collect();
    let mut unread = HttpsClient::open(address, &pair, H2).unwrap();
    for key in [&*key, ""] {
        unread.leave_unread("/v1/openapi.json", key, 40);
        unread.leave_unread("/docs", key, 40);
    }
    let mut client = HttpsClient::open(address, &pair, H2).unwrap();
    let body = hello("+447700900123");
    for _ in 0..100 {
        assert_eq!(client.ask(send_sms(&other, &body)).unwrap().status(), 201);
        assert_eq!(client.ask(get("/sign-in")).unwrap().status(), 200);
    }
    // Not even the account whose keys the stalled clients have.
    assert_eq!(client.ask(send_sms(&key, &body)).unwrap().status(), 201);
    let mut client = HttpsClient::open(address, &pair, HTTP_1_1).unwrap();
    assert_eq!(client.ask(send_sms(&other, &body)).unwrap().status(), 201);
    server.check();
}

/// Event streams of a signed-in browser that is not reading take no places.
#[test]
fn open_event_streams_do_not_affect_other_clients() {
    let server = Server::with("[limits]\nmax_in_flight = 4\n");
    let browser = Browser::of_operator(&server);
    let cookies: Vec<_> =
        browser.cookies().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let live = Request::get("/live").header("Cookie", cookies.join("; "));
    let _streams: Vec<_> = (0..8)
        .map(|_| {
            let mut connection = Connection::open(server.address()).unwrap();
            connection.begin(&live, 0).unwrap();
            connection
        })
        .collect();
    let key = server.key();
    for n in 0..50 {
        server.accepted(&key, &hello(&format!("4477009001{n:02}")));
        assert_eq!(server.ask(&Request::get("/sign-in")).status, 200);
    }
    server.check();
}

/// Requests that are refused before their body is read get the whole response.
#[test]
fn a_response_before_the_end_of_the_body_arrives() {
    let server = Server::start();
    let body = vec![b'a'; 5 << 20];
    for (path, status) in
        [("/v1/send/sms", 401), ("/v1/nothing", 404), ("/v1/openapi.json", 405), ("/sign-in", 413)]
    {
        let mut connection = Connection::open(server.address()).unwrap();
        let request = Request::new("POST", path).header("Content-Type", "application/json");
        let request = request.body(body.clone());
        connection.begin(&request, 0).unwrap();
        assert_eq!(connection.response().unwrap().status, status, "{path}");
        assert_eq!(connection.ask(&Request::get("/healthz")).unwrap().status, 200, "{path}");
    }
}

/// Thousands of cancelled HTTP/2 requests cost little, and leave nothing incomplete.
#[test]
fn a_flood_of_cancelled_requests_has_no_effect() {
    let pair = Pair::new();
    let mut server = Server::new(CONFIG);
    pair.put(&server);
    server.launch();
    server.wait_until_ready();
    let key = server.key();
    let mut flood = HttpsClient::open(server.address(), &pair, H2).unwrap();
    flood.send_and_cancel(&send_sms(&key, &hello("+447700900123")), 3_000);
    let mut client = HttpsClient::open(server.address(), &pair, H2).unwrap();
    assert_eq!(client.ask(send_sms(&key, &hello("+447700900124"))).unwrap().status(), 201);
    let busy = "SELECT count(*) FROM queue";
    eventually("all accepted messages are sent", || {
        (server.database.number(busy) == 0).then_some(())
    });
    server.check();
}

/// Idle connections, half of them with an incomplete request head, reach the limit of open files.
/// Existing
/// connections keep working, and a new one waits for a free slot.
#[test]
fn a_connection_over_the_limit_waits_for_a_free_slot() {
    let mut server = Server::new("");
    server.launch_from_shell("ulimit -n 256");
    server.wait_until_ready();
    let request = Request::send_sms(&server.key(), hello("+447700900123").to_string());
    let mut first = Connection::open(server.address()).unwrap();
    assert_eq!(first.ask(&request).unwrap().status, 201);
    let silent: Vec<_> = (0..400)
        .map(|n| {
            let mut connection = Connection::open(server.address()).unwrap();
            if n % 2 == 0 {
                connection.write(b"POST /v1/send/sms HTTP/1.1\r\nHost: te").unwrap();
            }
            connection
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(first.ask(&request).unwrap().status, 201);
    }
    let mut last = Connection::open(server.address()).unwrap();
    drop(silent);
    assert_eq!(last.ask(&request).unwrap().status, 201);
    assert!(!server.log().contains("failed to accept connection"));
    server.check();
}
