//! The first minute: what the greeting says to type works as it stands there.

use crate::database::{Engine, each_engine};
use crate::http::Request;
use crate::patience::eventually;
use crate::server::Server;
use serde_json::{Value, json};

each_engine!(first_message: the_greetings_own_line_sends_a_message a_second_start_greets_nobody);

/// The words of a command line, where single quotes keep words together.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.trim().chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

/// What curl would do with these words.
fn request(server: &Server, line: &str) -> Request {
    let words = words(line);
    let mut words = words.iter().map(String::as_str).filter(|w| *w != "-i");
    assert_eq!(words.next(), Some("curl"));
    let base = format!("http://{}", server.address());
    let path = words.next().unwrap().strip_prefix(&base).unwrap();
    let (mut headers, mut body) = (Vec::new(), None);
    while let Some(option) = words.next() {
        match (option, words.next().unwrap()) {
            ("-H", header) => headers.push(header.split_once(": ").unwrap()),
            ("-d", text) => body = Some(text),
            other => panic!("what is {other:?}?"),
        }
    }
    let method = if body.is_some() { "POST" } else { "GET" };
    let request = Request::new(method, path).body(body.unwrap_or_default());
    headers.iter().fold(request, |request, (name, value)| request.header(name, *value))
}

fn the_greetings_own_line_sends_a_message(engine: Engine) {
    let server = Server::start(engine);
    let greeting = server.greeting();
    let lines: Vec<_> = greeting.lines().filter(|l| l.contains("curl")).collect();
    let [send, look] = lines[..] else { panic!("{greeting}") };
    let answer = server.ask(&request(&server, send));
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let first = answer.json();
    let id = first["id"].as_str().unwrap();
    assert_eq!(answer.header("location"), Some(format!("/v1/messages/{id}").as_str()));
    let created = first["createdAt"].as_str().unwrap();
    assert_eq!(
        first,
        json!({
            "id": id, "recipient": "447700900123", "status": "QUEUED", "originator": "Heliograph",
            "reference": null, "campaignId": null, "text": "Hello, world", "mode": "test", "encoding": "GSM_7",
            "parts": 1, "partsAccepted": 0, "partsDelivered": 0, "price": "0.0000",
            "currency": "EUR", "createdAt": created, "expiresAt": first["expiresAt"],
            "sentAt": null, "doneAt": null, "failure": null, "inDoubt": false, "possibleDuplicate": false,
            "timeline": [{ "event": "accepted", "at": created }]
        })
    );
    // With its slash: a key may hold these two letters as well.
    let look = look.replace("/ID", &format!("/{id}"));
    let mut seen: Vec<Value> = Vec::new();
    let last = eventually("the first message is delivered", || {
        let answer = server.ask(&request(&server, &look));
        assert_eq!(answer.status, 200);
        let message = answer.json();
        if seen.last() != Some(&message["status"]) {
            seen.push(message["status"].clone());
        }
        (message["status"] == "DELIVERED").then_some(message)
    });
    let road = ["QUEUED", "SENT", "DELIVERED"];
    assert!(
        seen.iter().all(|s| road.contains(&s.as_str().unwrap())) && seen.is_sorted_by_key(rank)
    );
    assert_eq!((&last["partsAccepted"], &last["partsDelivered"]), (&json!(1), &json!(1)));
    let times = ["createdAt", "sentAt", "doneAt", "expiresAt"].map(|t| last[t].as_str().unwrap());
    assert!(times.is_sorted(), "{times:?}");
    assert!(times.iter().all(|t| t.len() == 24 && t.ends_with('Z')), "{times:?}");
    server.check();
}

fn rank(status: &Value) -> usize {
    ["QUEUED", "SENT", "DELIVERED"].iter().position(|s| status == s).unwrap()
}

fn a_second_start_greets_nobody(engine: Engine) {
    let mut server = Server::start(engine);
    let key = server.key();
    assert!(server.stop().success());
    server.launch();
    server.await_ready();
    let body = json!({ "originator": "Shop", "recipient": "+447700900123", "text": "Again" });
    server.accepted(&key, &body);
    server.process().terminate();
    assert!(server.process().wait().success());
    assert_eq!(server.process().stdout.text(), "");
}
