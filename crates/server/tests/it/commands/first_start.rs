//! The first start: the commands of the welcome message work.

use crate::support::http::Request;
use crate::support::server::Server;
use crate::support::wait::eventually;
use serde_json::{Value, json};

/// Splits a command line into words, with single quotes.
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

/// Returns the request of a curl command line.
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

#[test]
fn the_curl_command_of_the_welcome_message_sends_a_message() {
    let server = Server::start();
    let welcome = server.welcome();
    let lines: Vec<_> = welcome.lines().filter(|l| l.contains("curl")).collect();
    let [send, look] = lines[..] else { panic!("{welcome}") };
    // Secrets are printed on terminals only.
    assert!(!welcome.contains("hg_test_") && !welcome.contains("/sign-in/"), "{welcome}");
    assert!(welcome.contains("heliograph key create --account demo@localhost"), "{welcome}");
    let [send, look] = [send, look].map(|line| line.replace("KEY", &server.key()));
    let response = server.ask(&request(&server, &send));
    assert_eq!(response.status, 201, "{}", response.text());
    assert_eq!(response.header("content-type"), Some("application/json"));
    let first = response.json();
    let id = first["id"].as_str().unwrap();
    assert_eq!(response.header("location"), Some(format!("/v1/messages/{id}").as_str()));
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
    // A key may contain "ID", so the slash is replaced, too.
    let look = look.replace("/ID", &format!("/{id}"));
    let mut seen: Vec<Value> = Vec::new();
    let last = eventually("the first message is delivered", || {
        let response = server.ask(&request(&server, &look));
        assert_eq!(response.status, 200);
        let message = response.json();
        if seen.last() != Some(&message["status"]) {
            seen.push(message["status"].clone());
        }
        (message["status"] == "DELIVERED").then_some(message)
    });
    let statuses = ["QUEUED", "SENT", "DELIVERED"];
    assert!(
        seen.iter().all(|s| statuses.contains(&s.as_str().unwrap())) && seen.is_sorted_by_key(rank)
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

#[test]
fn a_second_start_has_no_welcome_message() {
    let mut server = Server::start();
    let key = server.key();
    assert!(server.stop().success());
    server.launch();
    server.wait_until_ready();
    let body = json!({ "originator": "Shop", "recipient": "+447700900123", "text": "Again" });
    server.accepted(&key, &body);
    server.process().terminate();
    assert!(server.process().wait().success());
    assert_eq!(server.process().stdout.text(), "");
}
