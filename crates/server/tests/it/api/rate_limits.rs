//! Rate limits: requests per second for each key, over all nodes.

use crate::support::api::{hello, problem};
use crate::support::http::{Connection, HttpResponse, Request};
use crate::support::server::Server;
use crate::support::wait::eventually;

const ANN: &str = "+447700900123";

fn limited(limit: u32) -> Server {
    Server::with(&format!("[limits]\nrequests_per_second = {limit}\n"))
}

/// Returns the headers `RateLimit-Policy` and `RateLimit`.
fn limit_headers(response: &HttpResponse) -> (Option<&str>, Option<&str>) {
    (response.header("ratelimit-policy"), response.header("ratelimit"))
}

#[test]
fn a_key_over_its_limit_gets_429_and_retry_after() {
    let server = limited(5);
    let (key, other) =
        (server.key(), server.stdout(&["key", "create", "--account", "demo@localhost"]));
    let mut connection = Connection::open(server.address()).unwrap();
    let send = Request::send_sms(&key, hello(ANN).to_string());
    let (mut sent, mut refused) = (0, 0);
    while refused < 20 {
        let response = connection.ask(&send).unwrap();
        assert_eq!(limit_headers(&response).0, Some("\"key\";q=5;w=1"));
        match response.status {
            201 => sent += 1,
            _ => {
                assert_eq!(problem(&response, 429, "rate_limited"), []);
                assert_eq!(response.header("retry-after"), Some("1"));
                assert_eq!(limit_headers(&response).1, Some("\"key\";r=0;t=1"));
                refused += 1;
            }
        }
    }
    assert!(sent >= 5, "{sent}");
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), sent);
    // Each key has its own limit, and requests without a key are not counted.
    for _ in 0..2 {
        let response = server.ask(&Request::get("/v1/balance").key(&other));
        assert_eq!(response.status, 200);
    }
    let response = server.ask(&Request::get("/v1/balance"));
    assert_eq!((response.status, limit_headers(&response)), (401, (None, None)));
    assert_eq!(limit_headers(&server.ask(&Request::get("/healthz"))), (None, None));
    eventually("the key is below its limit again", || {
        let response = connection.ask(&send).unwrap();
        (response.status == 201).then_some(())
    });
}

#[test]
fn without_a_limit_there_are_no_headers() {
    let server = limited(0);
    let key = server.key();
    for _ in 0..50 {
        let response = server.ask(&Request::get("/v1/balance").key(&key));
        assert_eq!((response.status, limit_headers(&response)), (200, (None, None)));
    }
}

#[test]
fn nodes_share_the_limit_of_a_key() {
    let server = limited(101);
    let key = server.key();
    let policy = |server: &Server| {
        let response = server.ask(&Request::get("/v1/balance").key(&key));
        limit_headers(&response).0.map(str::to_owned)
    };
    let each = |all: &[&Server], share: u32| {
        let expected = Some(format!("\"key\";q={share};w=1"));
        eventually("each node has its share", || {
            all.iter().all(|server| policy(server) == expected).then_some(())
        });
    };
    each(&[&server], 101);
    let mut others = server.other_nodes();
    // SQLite has no other nodes.
    if let Some(other) = others.first_mut() {
        each(&[&server, other], 51);
        assert!(other.stop().success());
        each(&[&server], 101);
    }
}
