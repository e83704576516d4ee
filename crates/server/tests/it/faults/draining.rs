//! SIGTERM under load: every request gets a response, and every accepted message is stored.

use crate::support::api::{hello, problem};
use crate::support::http::{Connection, Request};
use crate::support::https_client::{CONFIG, H2, HttpsClient, Pair, send_sms};
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use crate::support::wait::eventually;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};

const CLIENTS: usize = 12;
const STORED: &str = "SELECT count(*) FROM messages";

/// Sends requests over one connection until the server closes it; counts accepted messages.
fn send_until_closed(address: SocketAddr, request: &Request, accepted: &AtomicI64) {
    let mut connection = Connection::open(address).unwrap();
    loop {
        let response = connection.ask(request).expect("a request got no response");
        let last = response.header("connection") == Some("close");
        match response.status {
            201 => accepted.fetch_add(1, Ordering::Relaxed),
            _ => {
                assert_eq!(problem(&response, 503, "overloaded"), []);
                assert_eq!((response.header("retry-after"), last), (Some("1"), true));
                0
            }
        };
        if last {
            return;
        }
    }
}

#[test]
fn every_http1_request_gets_a_response() {
    let mut server = Server::start();
    let (key, address) = (server.key(), server.address());
    let request = Request::send_sms(&key, hello("+447700900006").to_string());
    let accepted = AtomicI64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| send_until_closed(address, &request, &accepted));
        }
        eventually("the server is under load", || {
            (accepted.load(Ordering::Relaxed) > 200).then_some(())
        });
        server.process().terminate();
    });
    assert_eq!(server.process().wait().code(), Some(0));
    assert_eq!(server.database.number(STORED), accepted.into_inner());
    server.check();
}

/// Returns whether hyper or h2 held the request back because the server was closing the connection,
/// so that it
/// can be sent to another node. Requests that reached the server are counted separately.
fn was_not_sent(error: &hyper::Error) -> bool {
    let held_back = [r#"GoAway(b"", NO_ERROR, Remote)"#, "stream closed because of a broken pipe"];
    error.is_canceled() || held_back.iter().any(|h| format!("{error:?}").contains(h))
}

#[test]
fn every_http2_request_gets_a_response() {
    let pair = Pair::new();
    let mut server = Server::new(CONFIG);
    pair.put(&server);
    server.launch();
    server.wait_until_ready();
    let (key, address) = (server.key(), server.address());
    let (accepted, refused) = (AtomicI64::new(0), AtomicI64::new(0));
    let load = || {
        let mut client = HttpsClient::open(address, &pair, H2).unwrap();
        while !client.is_closed() {
            let request = || send_sms(&key, &hello("+447700900006"));
            for response in client.ask_all((0..20).map(|_| request())) {
                match response {
                    Ok(response) if response.status() == 201 => {
                        accepted.fetch_add(1, Ordering::Relaxed)
                    }
                    Ok(response) => {
                        assert_eq!(response.status(), 503);
                        refused.fetch_add(1, Ordering::Relaxed)
                    }
                    Err(error) => {
                        assert!(was_not_sent(&error), "a request got no response: {error:?}");
                        0
                    }
                };
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(load);
        }
        eventually("the server is under load", || {
            (accepted.load(Ordering::Relaxed) > 200).then_some(())
        });
        server.process().terminate();
    });
    assert_eq!(server.process().wait().code(), Some(0));
    let (accepted, refused) = (accepted.into_inner(), refused.into_inner());
    assert_eq!(server.database.number(STORED), accepted);
    // Each response of the server has arrived.
    let answered = server.log().matches("path=/v1/send/sms").count();
    assert_eq!(i64::try_from(answered).unwrap(), accepted + refused);
    server.check();
}

/// While the carrier finishes its work, the server still answers new requests.
#[test]
fn requests_during_shutdown_get_503() {
    let smsc = Smsc::start(&["--resp-delay", "1500"]);
    let mut server = Server::with(&smsc.config(1));
    let key = server.live_key("ann@example.com", "0");
    for n in 100..103 {
        server.accepted(&key, &hello(&format!("447700900{n}")));
    }
    eventually("the carrier has a message", || (!smsc.accepted().is_empty()).then_some(()));
    server.process().terminate();
    eventually("the server drains", || server.log().contains("draining").then_some(()));
    let request = Request::send_sms(&key, hello("+447700900124").to_string());
    let response = server.ask(&request);
    assert_eq!(problem(&response, 503, "overloaded"), []);
    let response = server.ask(&Request::get("/readyz"));
    assert_eq!((response.status, response.text().as_str()), (503, "shutting down\n"));
    assert_eq!(server.ask(&Request::get("/healthz")).status, 200);
    assert_eq!(server.process().wait().code(), Some(0));
    assert_eq!(server.database.number(STORED), 3);
}
