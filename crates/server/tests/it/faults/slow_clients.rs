//! Overload, slow clients and floods do not affect other clients.

use crate::support::api::{hello, problem};
use crate::support::http::{Connection, Request};
use crate::support::https_client::{CONFIG, H2, HttpsClient, Pair, send_sms};
use crate::support::server::Server;
use crate::support::wait::eventually;

/// Sends a request without its last bytes; returns the connection and these bytes.
fn begin(server: &Server, request: &Request) -> (Connection, Vec<u8>) {
    let mut connection = Connection::open(server.address()).unwrap();
    let rest = connection.begin(&request.clone().header("Expect", "100-continue"), 5).unwrap();
    // The server waits for the body.
    assert_eq!(connection.response().unwrap().status, 100);
    (connection, rest)
}

#[test]
fn requests_over_the_limit_get_503() {
    let server = Server::with("[limits]\nmax_in_flight = 2\n");
    let key = server.key();
    let request = Request::send_sms(&key, hello("+447700900123").to_string());
    let (mut first, mut second) = (begin(&server, &request), begin(&server, &request));
    let mut third = Connection::open(server.address()).unwrap();
    let response = third.ask(&request).unwrap();
    assert_eq!(problem(&response, 503, "overloaded"), []);
    assert_eq!((response.header("retry-after"), response.header("connection")), (Some("1"), None));
    // Monitoring is not limited, and a body may follow after the decision.
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(third.ask(&Request::get(path)).unwrap().status, 200, "{path}");
    }
    let rest = third.begin(&request, 5).unwrap();
    third.write(&rest).unwrap();
    assert_eq!(third.response().unwrap().status, 503);
    assert_eq!(server.stored(), 0);
    for (connection, rest) in [&mut first, &mut second] {
        connection.write(rest).unwrap();
        assert_eq!(connection.response().unwrap().status, 201);
    }
    assert_eq!(third.ask(&request).unwrap().status, 201);
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), 3);
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
