//! `Idempotency-Key`: a repeated request has one effect, also if it is sent concurrently or to
//! another node.

use crate::support::api::{hello, post, problem};
use crate::support::http::{self, Request};
use crate::support::optouts::{LISTS, NUMBERS, file};
use crate::support::server::Server;
use serde_json::json;
use std::collections::BTreeSet;

const ANN: &str = "+447700900123";

fn request(key: &str, once: &str) -> Request {
    Request::send_sms(key, hello(ANN).to_string()).header("Idempotency-Key", once)
}

fn messages(server: &Server) -> i64 {
    server.database.number("SELECT count(*) FROM messages")
}

#[test]
fn a_repeated_request_gets_the_same_response() {
    let mut server = Server::start();
    let key = server.key();
    for once in ["order 1", "x", &"k".repeat(255), "~!@#$%^&*()_+{}|:\"<>?"] {
        let first = server.ask(&request(&key, once));
        assert_eq!((first.status, first.header("idempotent-replayed")), (201, None));
        let id = first.json()["id"].as_str().unwrap().to_owned();
        let replayed = |server: &Server| {
            let again = server.ask(&request(&key, once));
            assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
            assert_eq!(again.header("location"), first.header("location"));
            assert_eq!(again.json(), first.json());
        };
        replayed(&server);
        // The same holds after delivery, and after a restart of the server.
        assert_eq!(server.wait_until_ended(&key, &id)["status"], "DELIVERED");
        replayed(&server);
        server.kill();
        server.launch();
        server.wait_until_ready();
        replayed(&server);
    }
    assert_eq!(messages(&server), 4);
}

#[test]
fn a_key_with_another_body_is_rejected() {
    let server = Server::start();
    let key = server.key();
    let first = server.ask(&request(&key, "order 1"));
    assert_eq!(first.status, 201);
    let body = hello(ANN).to_string();
    for other in
        [hello("+447700900124").to_string(), format!("{body} "), body.replace("Hello", "hello")]
    {
        let response =
            server.ask(&Request::send_sms(&key, other).header("Idempotency-Key", "order 1"));
        assert_eq!(problem(&response, 422, "idempotency_key_reused"), []);
    }
    assert_eq!(server.ask(&request(&key, "order 1")).json(), first.json());
    assert_eq!(messages(&server), 1);
}

#[test]
fn concurrent_requests_send_one_message() {
    let server = Server::start();
    let nodes = server.other_nodes();
    let addresses: Vec<_> = nodes.iter().chain([&server]).map(Server::address).collect();
    let request = &request(&server.key(), "twins");
    let responses: Vec<_> = std::thread::scope(|scope| {
        let targets = addresses.iter().cycle().take(20);
        let ask = |address| http::ask(address, request).unwrap();
        let twins: Vec<_> = targets.map(|to| scope.spawn(move || ask(*to))).collect();
        twins.into_iter().map(|twin| twin.join().unwrap()).collect()
    });
    assert!(responses.iter().all(|a| a.status == 201), "{responses:?}");
    let bodies: BTreeSet<_> = responses.iter().map(http::HttpResponse::text).collect();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    let firsts = responses.iter().filter(|a| a.header("idempotent-replayed").is_none());
    assert_eq!(firsts.count(), 1);
    assert_eq!(messages(&server), 1);
}

#[test]
fn keys_belong_to_account_and_mode() {
    let config = "[[carriers]]\nname = 'pretend'\nkind = 'simulated'\n\
                  [[routes]]\nprefix = ''\ncarriers = ['pretend']";
    let server = Server::with(config);
    let live = server.live_key("ann@example.com", "0");
    let test = server.stdout(&["key", "create", "--account", "ann@example.com"]);
    let other = server.stdout(&["key", "create", "--account", "ann@example.com"]);
    let ids: BTreeSet<_> = [&live, &test, &server.key()]
        .map(|key| {
            let response = server.ask(&request(key, "order 1"));
            assert_eq!((response.status, response.header("idempotent-replayed")), (201, None));
            response.json()["id"].as_str().unwrap().to_owned()
        })
        .into();
    assert_eq!(ids.len(), 3);
    // Another API key of the same account and mode may repeat the request.
    let response = server.ask(&request(&other, "order 1"));
    assert_eq!(response.header("idempotent-replayed"), Some("true"));
    assert_eq!(messages(&server), 3);
}

#[test]
fn a_failed_request_is_not_stored() {
    let server = Server::start();
    let key = server.key();
    let wrong = Request::send_sms(&key, "{}").header("Idempotency-Key", "order 1");
    problem(&server.ask(&wrong), 400, "invalid_request");
    assert_eq!(server.ask(&request("nobody", "order 1")).status, 401);
    let response = server.ask(&request(&key, "order 1"));
    assert_eq!((response.status, response.header("idempotent-replayed")), (201, None));
}

/// A list, a number and an import: a repeated request gets the first response, even if the object
/// is gone.
#[test]
fn every_creating_request_is_idempotent() {
    let mut server = Server::start();
    let key = server.key();
    let with = |request: Request, once: &str| request.header("Idempotency-Key", once);
    let list = || with(post(&key, LISTS, &json!({ "name": "Spring" })), "k");
    let number = || with(post(&key, NUMBERS, &json!({ "number": ANN, "note": "asked" })), "k");
    let numbers = "number\n+447700900123\n+447700900124\nnobody\n";
    let import = || with(file(&key, "default", numbers), "k");
    let requests: [&dyn Fn() -> Request; 3] = [&list, &number, &import];
    let firsts: Vec<_> = requests.iter().map(|request| server.ask(&request())).collect();
    assert_eq!(firsts.iter().map(|a| a.status).collect::<Vec<_>>(), [201, 201, 200]);
    assert_eq!(firsts[2].json()["alreadyListed"], 1);
    let made = firsts[0].header("location").unwrap();
    for path in [made.to_owned(), format!("{NUMBERS}/447700900123")] {
        assert_eq!(server.ask(&Request::new("DELETE", &path).key(&key)).status, 204);
    }
    for life in 0..2 {
        for (request, first) in requests.iter().zip(&firsts) {
            let again = server.ask(&request());
            assert_eq!(again.header("idempotent-replayed"), Some("true"), "life {life}");
            assert_eq!((again.status, &again.body), (first.status, &first.body));
            assert_eq!(again.header("location"), first.header("location"));
            assert_eq!(first.header("idempotent-replayed"), None);
        }
        server.kill();
        server.launch();
        server.wait_until_ready();
    }
    assert_eq!(server.ask(&Request::get(made).key(&key)).status, 404);
    for other in [
        with(post(&key, LISTS, &json!({ "name": "Summer" })), "k"),
        with(post(&key, NUMBERS, &json!({ "number": ANN })), "k"),
        with(file(&key, "default", "number\n"), "k"),
    ] {
        assert_eq!(problem(&server.ask(&other), 422, "idempotency_key_reused"), []);
    }
    // A key belongs to a path, and a failed request is not stored.
    let id = server.ask(&post(&key, LISTS, &json!({ "name": "Summer" }))).json()["id"].clone();
    let there = format!("{LISTS}/{}/numbers", id.as_str().unwrap());
    let wrong = with(post(&key, &there, &json!({ "number": "nobody" })), "k");
    problem(&server.ask(&wrong), 400, "invalid_request");
    let right = server.ask(&with(post(&key, &there, &json!({ "number": ANN })), "k"));
    assert_eq!((right.status, right.header("idempotent-replayed")), (201, None));
    let mut quote = hello(ANN);
    quote["dryRun"] = json!(true);
    let wrong = Request::send_sms(&key, quote.to_string()).header("Idempotency-Key", "k\u{e9}y");
    assert_eq!(problem(&server.ask(&wrong), 400, "invalid_request").len(), 1);
    let long = with(post(&key, LISTS, &json!({ "name": "Autumn" })), &"k".repeat(256));
    assert_eq!(problem(&server.ask(&long), 400, "invalid_request").len(), 1);
}

#[test]
fn concurrent_requests_create_one_list() {
    let server = Server::start();
    let nodes = server.other_nodes();
    let addresses: Vec<_> = nodes.iter().chain([&server]).map(Server::address).collect();
    let key = server.key();
    let request = &post(&key, LISTS, &json!({ "name": "Spring" })).header("Idempotency-Key", "k");
    let responses: Vec<_> = std::thread::scope(|scope| {
        let targets = addresses.iter().cycle().take(12);
        let ask = |address| http::ask(address, request).unwrap();
        let twins: Vec<_> = targets.map(|to| scope.spawn(move || ask(*to))).collect();
        twins.into_iter().map(|twin| twin.join().unwrap()).collect()
    });
    assert!(responses.iter().all(|a| a.status == 201), "{responses:?}");
    let bodies: BTreeSet<_> = responses.iter().map(http::HttpResponse::text).collect();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    let rows = "SELECT count(*) FROM optout_lists WHERE name = 'Spring'";
    assert_eq!(server.database.number(rows), 1);
}
