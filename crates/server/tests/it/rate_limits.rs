//! Rate limits: so many requests a second for each key, over all nodes together.

use crate::database::{Engine, each_engine};
use crate::http::{Answer, Connection, Request};
use crate::patience::eventually;
use crate::send_sms::hello;
use crate::server::Server;
use crate::wrong_input::problem;

each_engine!(rate_limits: a_key_that_asks_too_much_has_to_wait without_a_limit_nothing_is_said
    nodes_share_what_a_key_may_ask);

const ANN: &str = "+447700900123";

fn limited(engine: Engine, limit: u32) -> Server {
    Server::with(engine, &format!("[limits]\nrequests_per_second = {limit}\n"))
}

/// What the headers say: the policy, and what is left.
fn told(answer: &Answer) -> (Option<&str>, Option<&str>) {
    (answer.header("ratelimit-policy"), answer.header("ratelimit"))
}

fn a_key_that_asks_too_much_has_to_wait(engine: Engine) {
    let server = limited(engine, 5);
    let (key, other) =
        (server.key(), server.told(&["key", "create", "--account", "demo@localhost"]));
    let mut connection = Connection::open(server.address()).unwrap();
    let send = Request::send_sms(&key, hello(ANN).to_string());
    let (mut sent, mut refused) = (0, 0);
    while refused < 20 {
        let answer = connection.ask(&send).unwrap();
        assert_eq!(told(&answer).0, Some("\"key\";q=5;w=1"));
        match answer.status {
            201 => sent += 1,
            _ => {
                assert_eq!(problem(&answer, 429, "rate_limited"), []);
                assert_eq!(answer.header("retry-after"), Some("1"));
                assert_eq!(told(&answer).1, Some("\"key\";r=0;t=1"));
                refused += 1;
            }
        }
    }
    assert!(sent >= 5, "{sent}");
    assert_eq!(server.database.number("SELECT count(*) FROM messages"), sent);
    // Others have their own, and what answers nobody's key is not counted.
    for _ in 0..2 {
        let answer = server.ask(&Request::get("/v1/balance").key(&other));
        assert_eq!(answer.status, 200);
    }
    let answer = server.ask(&Request::get("/v1/balance"));
    assert_eq!((answer.status, told(&answer)), (401, (None, None)));
    assert_eq!(told(&server.ask(&Request::get("/healthz"))), (None, None));
    eventually("it may ask again", || {
        let answer = connection.ask(&send).unwrap();
        (answer.status == 201).then_some(())
    });
}

fn without_a_limit_nothing_is_said(engine: Engine) {
    let server = Server::start(engine);
    let key = server.key();
    for _ in 0..50 {
        let answer = server.ask(&Request::get("/v1/balance").key(&key));
        assert_eq!((answer.status, told(&answer)), (200, (None, None)));
    }
}

fn nodes_share_what_a_key_may_ask(engine: Engine) {
    let server = limited(engine, 101);
    let key = server.key();
    let policy = |server: &Server| {
        let answer = server.ask(&Request::get("/v1/balance").key(&key));
        told(&answer).0.map(str::to_owned)
    };
    let each = |all: &[&Server], share: u32| {
        let expected = Some(format!("\"key\";q={share};w=1"));
        eventually("each has its share", || {
            all.iter().all(|server| policy(server) == expected).then_some(())
        });
    };
    each(&[&server], 101);
    let mut others = server.others();
    // SQLite has no other nodes.
    if let Some(other) = others.first_mut() {
        each(&[&server, other], 51);
        assert!(other.stop().success());
        each(&[&server], 101);
    }
}
