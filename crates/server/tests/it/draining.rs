//! SIGTERM under load: every request that was sent is answered, and what was answered with 201 is kept.

use crate::database::{Engine, each_engine};
use crate::http::{Connection, Request};
use crate::https_client::{CONFIG, Client, H2, Pair, send_sms};
use crate::patience::eventually;
use crate::send_sms::hello;
use crate::server::Server;
use crate::smsc::Smsc;
use crate::wrong_input::problem;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};

each_engine!(draining: no_request_is_cut_over_http1 no_request_is_cut_over_http2
    who_comes_late_is_refused_in_words);

const CLIENTS: usize = 12;
const STORED: &str = "SELECT count(*) FROM messages";

/// One client, on one connection, until it is told to go; how many messages were accepted.
fn ask_until_told(address: SocketAddr, request: &Request, accepted: &AtomicI64) {
    let mut connection = Connection::open(address).unwrap();
    loop {
        let answer = connection.ask(request).expect("a request was cut");
        let last = answer.header("connection") == Some("close");
        match answer.status {
            201 => accepted.fetch_add(1, Ordering::Relaxed),
            _ => {
                assert_eq!(problem(&answer, 503, "overloaded"), []);
                assert_eq!((answer.header("retry-after"), last), (Some("1"), true));
                0
            }
        };
        if last {
            return;
        }
    }
}

fn no_request_is_cut_over_http1(engine: Engine) {
    let mut server = Server::start(engine);
    let (key, address) = (server.key(), server.address());
    let request = Request::send_sms(&key, hello("+447700900006").to_string());
    let accepted = AtomicI64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| ask_until_told(address, &request, &accepted));
        }
        eventually("the load is on", || (accepted.load(Ordering::Relaxed) > 200).then_some(()));
        server.process().terminate();
    });
    assert_eq!(server.process().wait().code(), Some(0));
    assert_eq!(server.database.number(STORED), accepted.into_inner());
    server.check();
}

/// The request had not left when the client was told to go, and may be sent to another node: hyper held it back,
/// or h2 did, which then ends the connection in order. (What the server has begun is counted beside this.)
fn never_begun(error: &hyper::Error) -> bool {
    let held_back = [r#"GoAway(b"", NO_ERROR, Remote)"#, "stream closed because of a broken pipe"];
    error.is_canceled() || held_back.iter().any(|h| format!("{error:?}").contains(h))
}

fn no_request_is_cut_over_http2(engine: Engine) {
    let pair = Pair::new();
    let mut server = Server::new(engine, CONFIG);
    pair.put(&server);
    server.launch();
    server.await_ready();
    let (key, address) = (server.key(), server.address());
    let (accepted, refused) = (AtomicI64::new(0), AtomicI64::new(0));
    let load = || {
        let mut client = Client::open(address, &pair, H2).unwrap();
        while !client.is_closed() {
            let request = || send_sms(&key, &hello("+447700900006"));
            for answer in client.ask_all((0..20).map(|_| request())) {
                match answer {
                    Ok(answer) if answer.status() == 201 => {
                        accepted.fetch_add(1, Ordering::Relaxed)
                    }
                    Ok(answer) => {
                        assert_eq!(answer.status(), 503);
                        refused.fetch_add(1, Ordering::Relaxed)
                    }
                    Err(error) => {
                        assert!(never_begun(&error), "a request was cut: {error:?}");
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
        eventually("the load is on", || (accepted.load(Ordering::Relaxed) > 200).then_some(()));
        server.process().terminate();
    });
    assert_eq!(server.process().wait().code(), Some(0));
    let (accepted, refused) = (accepted.into_inner(), refused.into_inner());
    assert_eq!(server.database.number(STORED), accepted);
    // Each answer that the server gave has arrived.
    let answered = server.log().matches("path=/v1/send/sms").count();
    assert_eq!(i64::try_from(answered).unwrap(), accepted + refused);
    server.check();
}

/// While the carrier's work drains, the door stays open to say no.
fn who_comes_late_is_refused_in_words(engine: Engine) {
    let smsc = Smsc::start(&["--resp-delay", "1500"]);
    let mut server = Server::with(engine, &smsc.config(1));
    let key = server.live_key("ann@example.com", "0");
    for n in 100..103 {
        server.accepted(&key, &hello(&format!("447700900{n}")));
    }
    eventually("the carrier is at work", || (!smsc.accepted().is_empty()).then_some(()));
    server.process().terminate();
    eventually("it drains", || server.log().contains("draining").then_some(()));
    let request = Request::send_sms(&key, hello("+447700900124").to_string());
    let answer = server.ask(&request);
    assert_eq!(problem(&answer, 503, "overloaded"), []);
    let answer = server.ask(&Request::get("/readyz"));
    assert_eq!((answer.status, answer.text().as_str()), (503, "shutting down\n"));
    assert_eq!(server.ask(&Request::get("/healthz")).status, 200);
    assert_eq!(server.process().wait().code(), Some(0));
    assert_eq!(server.database.number(STORED), 3);
}
