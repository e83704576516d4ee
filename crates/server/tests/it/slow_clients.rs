//! Clients that dawdle, flood, or ask for more than there is: the others do not notice.

use crate::database::{Engine, each_engine};
use crate::http::{Connection, Request};
use crate::https_client::{CONFIG, Client, H2, Pair, get, send_sms};
use crate::patience::eventually;
use crate::send_sms::hello;
use crate::server::Server;
use crate::wrong_input::problem;

each_engine!(slow_clients: more_than_can_be_carried_is_refused);

/// A request whose last bytes are kept back, and those bytes.
fn begun(server: &Server, request: &Request) -> (Connection, Vec<u8>) {
    let mut connection = Connection::open(server.address()).unwrap();
    let rest = connection.begin(&request.clone().header("Expect", "100-continue"), 5).unwrap();
    // The server says so when it waits for the body.
    assert_eq!(connection.answer().unwrap().status, 100);
    (connection, rest)
}

fn more_than_can_be_carried_is_refused(engine: Engine) {
    let server = Server::with(engine, "[limits]\nmax_in_flight = 2\n");
    let key = server.key();
    let request = Request::send_sms(&key, hello("+447700900123").to_string());
    let (mut first, mut second) = (begun(&server, &request), begun(&server, &request));
    let mut third = Connection::open(server.address()).unwrap();
    let answer = third.ask(&request).unwrap();
    assert_eq!(problem(&answer, 503, "overloaded"), []);
    assert_eq!((answer.header("retry-after"), answer.header("connection")), (Some("1"), None));
    // Those who watch are answered, and so is who sends the body after the answer was decided.
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(third.ask(&Request::get(path)).unwrap().status, 200, "{path}");
    }
    let rest = third.begin(&request, 5).unwrap();
    third.say(&rest).unwrap();
    assert_eq!(third.answer().unwrap().status, 503);
    assert_eq!(server.stored(), 0);
    for (connection, rest) in [&mut first, &mut second] {
        connection.say(rest).unwrap();
        assert_eq!(connection.answer().unwrap().status, 201);
    }
    assert_eq!(third.ask(&request).unwrap().status, 201);
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), 3);
}

#[test]
fn heads_without_measure_are_refused() {
    let pair = Pair::new();
    let mut server = Server::new(Engine::Sqlite, CONFIG);
    pair.put(&server);
    server.launch();
    server.await_ready();
    let mut client = Client::open(server.address(), &pair, H2).unwrap();
    let mut large = get("/healthz");
    large.headers_mut().insert("cookie", "a".repeat(15 << 10).parse().unwrap());
    assert_eq!(client.ask(large.clone()).unwrap().status(), 200);
    for _ in 0..2 {
        large.headers_mut().append("cookie", "a".repeat(15 << 10).parse().unwrap());
    }
    // hyper's client may see the limit and not even ask.
    assert!(client.ask(large).map_or(true, |answer| answer.status() == 431));
    let mut other = Client::open(server.address(), &pair, H2).unwrap();
    assert_eq!(other.ask(get("/healthz")).unwrap().status(), 200);
    let plain = Server::start(Engine::Sqlite);
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

/// Thousands of requests that are taken back at once cost little, and leave nothing half done.
#[test]
fn a_flood_of_requests_taken_back_harms_nobody() {
    let pair = Pair::new();
    let mut server = Server::new(Engine::Sqlite, CONFIG);
    pair.put(&server);
    server.launch();
    server.await_ready();
    let key = server.key();
    let mut flood = Client::open(server.address(), &pair, H2).unwrap();
    flood.take_back(&send_sms(&key, &hello("+447700900123")), 3_000);
    let mut client = Client::open(server.address(), &pair, H2).unwrap();
    assert_eq!(client.ask(send_sms(&key, &hello("+447700900124"))).unwrap().status(), 201);
    let busy = "SELECT count(*) FROM queue";
    eventually("all that was accepted is sent", || {
        (server.database.number(busy) == 0).then_some(())
    });
    server.check();
}

/// Silent connections up to the limit of open files, every second with half a head: whoever is connected is
/// served as before, and others as soon as there is room.
#[test]
fn silent_connections_leave_files_for_the_work() {
    let mut server = Server::new(Engine::Sqlite, "");
    server.launch_after("ulimit -n 256");
    server.await_ready();
    let request = Request::send_sms(&server.key(), hello("+447700900123").to_string());
    let mut first = Connection::open(server.address()).unwrap();
    assert_eq!(first.ask(&request).unwrap().status, 201);
    let silent: Vec<_> = (0..400)
        .map(|n| {
            let mut connection = Connection::open(server.address()).unwrap();
            if n % 2 == 0 {
                connection.say(b"POST /v1/send/sms HTTP/1.1\r\nHost: te").unwrap();
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
    assert!(!server.log().contains("could not be taken up"));
    server.check();
}
