//! Limits of a request head.

use crate::support::http::Request;
use crate::support::https_client::{CONFIG, H2, HttpsClient, Pair, get};
use crate::support::server::Server;

#[test]
fn a_request_head_over_the_limit_is_rejected() {
    let pair = Pair::new();
    let mut server = Server::new(CONFIG);
    pair.put(&server);
    server.launch();
    server.wait_until_ready();
    let mut client = HttpsClient::open(server.address(), &pair, H2).unwrap();
    let mut large = get("/healthz");
    large.headers_mut().insert("cookie", "a".repeat(15 << 10).parse().unwrap());
    assert_eq!(client.ask(large.clone()).unwrap().status(), 200);
    for _ in 0..2 {
        large.headers_mut().append("cookie", "a".repeat(15 << 10).parse().unwrap());
    }
    assert_eq!(client.ask(large.clone()).unwrap().status(), 431);
    for _ in 0..2 {
        large.headers_mut().append("cookie", "a".repeat(15 << 10).parse().unwrap());
    }
    // hyper's client may see the limit of the connection, and not send the request.
    assert!(client.ask(large).map_or(true, |response| response.status() == 431));
    let mut other = HttpsClient::open(server.address(), &pair, H2).unwrap();
    assert_eq!(other.ask(get("/healthz")).unwrap().status(), 200);
    let plain = Server::start();
    let mut many = Request::get("/healthz");
    for n in 0..101 {
        many = many.header(&format!("X-{n}"), "a");
    }
    let large = Request::get("/healthz").header("Cookie", "a".repeat(33 << 10));
    for request in [many, large] {
        assert_eq!(plain.ask(&request).status, 431);
    }
    assert_eq!(plain.ask(&Request::get("/healthz")).status, 200);
}
